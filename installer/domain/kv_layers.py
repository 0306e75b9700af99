"""What one layer of each kind keeps in vLLM's KV cache: pages of tokens, or states of fixed size.

Sources, read in 0.19.1 to 0.33.0: vllm/v1/kv_cache_interface.py (what is kept for a sequence), vllm/platforms/
interface.py (the block of a hybrid model; in 0.19 model_executor/models/config.py) and model_executor/layers (which
block and which states a layer asks for). Bytes, blocks and tokens.
"""

from __future__ import annotations

import math
import sys
from collections import Counter

import msgspec
from msgspec.structs import replace

from installer.domain.registry import Architecture, KvCacheDtype, LayerGroup
from installer.domain.settings import MambaCacheMode, Settings

KERNEL_BLOCK_TOKENS = 16
"""The smallest block of the attention kernels for CUDA (vllm/v1/attention/backends/flash_attn.py)."""

MLA_BLOCK_TOKENS = 64
"""The block of most MLA kernels (backends/mla/flashmla.py); Triton's takes 16, which rounds less."""

WHOLE_CONTEXT = sys.maxsize

Release = tuple[int, int]
"""Major and minor version of vLLM: no rule here changed with a patch release."""


class CannotLayOut(ValueError):
    """vLLM refuses these layers, in this release: their pages differ in size and cannot be made equal."""


class LayerCache(msgspec.Struct, frozen=True, kw_only=True):
    """What one layer keeps: the pages of a sequence's last `kept_tokens` tokens, and `extra_blocks` more.

    `geometry` is the layer's group without its count: vLLM pools only layers that are alike in all of it.
    """

    geometry: LayerGroup
    block_tokens: int
    page_bytes: int
    kept_tokens: int
    extra_blocks: int

    def blocks(self, context: int) -> int:
        """Return the blocks that one sequence of `context` tokens takes (kv_cache_interface.py)."""
        return math.ceil(min(self.kept_tokens, context) / self.block_tokens) + self.extra_blocks


def layer_caches(architecture: Architecture, settings: Settings, release: Release) -> Counter[LayerCache]:
    """Count the layers of each kind; those of a draft model join the main model's where they are alike.

    Raises CannotLayOut for sliding layers beside MLA up to 0.25, which refused them.
    """
    if release < (0, 26) and {"mla", "sliding"} <= {group.kind for group in architecture.layer_groups}:
        raise CannotLayOut("sliding layers beside MLA")
    server = _Server.of(architecture, settings, release)
    counted: Counter[LayerCache] = Counter()
    for group in architecture.layer_groups + (architecture.draft_layer_groups if settings.speculative_tokens else ()):
        counted[server.cache(group)] += group.layers
    return counted


class _Server(msgspec.Struct, frozen=True, kw_only=True):
    """A release with its settings, and what it makes of them for all layers: cache mode, block and state page."""

    settings: Settings
    release: Release
    mode: MambaCacheMode
    block: int
    state_page_bytes: int

    @classmethod
    def of(cls, architecture: Architecture, settings: Settings, release: Release) -> _Server:
        attention = [group for group in architecture.layer_groups if group.kind != "linear"]
        states = [group for group in architecture.layer_groups if group.kind == "linear"]
        mode = _mamba_cache_mode(attention, states, settings, release)
        kernel = MLA_BLOCK_TOKENS if attention and attention[0].kind == "mla" else KERNEL_BLOCK_TOKENS
        block = settings.block_tokens or kernel
        state_page = 0
        if attention and states:
            token = _assumed_token_bytes(attention[0], settings.kv_cache_dtype)
            step = _block_step(kernel, states, mode, settings, release)
            state = max(_state_bytes(group, settings) for group in states)
            block = max(block, step * math.ceil(state / (step * token)))
            state_page = block * token
        return cls(settings=settings, release=release, mode=mode, block=block, state_page_bytes=state_page)

    def cache(self, group: LayerGroup) -> LayerCache:
        match group.kind:
            case "linear":
                return self._state(group)
            case "sliding":
                return self._sliding(group)
            case "full" | "mla":
                return self._full(group, self.block)

    def _full(self, group: LayerGroup, block: int) -> LayerCache:
        return LayerCache(
            geometry=replace(group, layers=0),
            block_tokens=block,
            page_bytes=block * token_bytes(group, self.settings.kv_cache_dtype),
            kept_tokens=WHOLE_CONTEXT,
            extra_blocks=0,
        )

    def _sliding(self, group: LayerGroup) -> LayerCache:
        """Keep the window and all that is in flight, and one block more as the window may start inside one.

        Source: `SlidingWindowSpec`. Since 0.26 two batches may be in flight where scheduling is asynchronous, as it is
        by default; from 0.25 to 0.29 these layers start from the kernel's own block (layers/attention/attention.py).
        """
        own_block = KERNEL_BLOCK_TOKENS if (0, 25) <= self.release < (0, 30) else self.block
        batches = 2 if self.settings.async_scheduling and self.release >= (0, 26) else 1
        in_flight = batches * self.settings.max_num_batched_tokens
        return replace(self._full(group, own_block), kept_tokens=group.window - 1 + in_flight, extra_blocks=1)

    def _state(self, group: LayerGroup) -> LayerCache:
        """Keep one state, two where prefixes are cached or one per block, and one per speculative token (`MambaSpec`).

        A kernel that saves a state inside a prefill needs one more to save it to.
        """
        drafts, per_block = self.settings.speculative_tokens, self.mode == "all"
        if per_block:
            extra = drafts if self.release >= (0, 22) else 0
        elif self.mode == "align":
            extra = 2 + drafts + (1 if _checkpoint_step(group, self.settings, self.release) else 0)
        else:
            extra = 1 + drafts
        return LayerCache(
            geometry=replace(group, layers=0),
            block_tokens=self.settings.context if self.mode == "none" else self.block,
            page_bytes=self.state_page_bytes or _state_bytes(group, self.settings),
            kept_tokens=WHOLE_CONTEXT if per_block else 0,
            extra_blocks=extra,
        )


def token_bytes(group: LayerGroup, dtype: KvCacheDtype) -> int:
    """Return the bytes of one token in one layer (`AttentionSpec.unpadded_page_size_bytes`)."""
    fp8 = dtype == "fp8"
    packed = (group.fp8_token_bytes if fp8 else 0) or group.token_bytes
    if packed:
        return packed
    elements = group.latent_dim or group.kv_heads * (group.head_dim + (group.value_head_dim or group.head_dim))
    return elements * (1 if fp8 else 2)


def _assumed_token_bytes(group: LayerGroup, dtype: KvCacheDtype) -> int:
    """Return the bytes that vLLM aligns by: it takes values to be as wide as keys, and no scales to be in the row."""
    return token_bytes(replace(group, value_head_dim=0, fp8_token_bytes=0), dtype)


def _state_bytes(group: LayerGroup, settings: Settings) -> int:
    return group.state_bytes + group.draft_state_bytes * settings.speculative_tokens


def _mamba_cache_mode(
    attention: list[LayerGroup], states: list[LayerGroup], settings: Settings, release: Release
) -> MambaCacheMode:
    """Resolve the mode as `MambaModelConfig` does; hybrid models cache prefixes by default since 0.28."""
    mode = settings.mamba_cache_mode
    if mode == "default":
        return "align" if release >= (0, 28) and attention else "none"
    if mode == "all" and (release >= (0, 32) or not all(group.state_chunk for group in states)):
        return "align"
    return mode


def _block_step(
    kernel: int, states: list[LayerGroup], mode: MambaCacheMode, settings: Settings, release: Release
) -> int:
    """Return what the block of a hybrid model is a multiple of, so that its page holds a linear layer's whole state.

    Source: `_align_hybrid_block_size`. The block asked for (up to 0.19 the kernel's), since 0.27 at least 128 for MLA,
    and whole chunks or checkpoints of the state's kernel.
    """
    step = (settings.block_tokens or kernel) if release >= (0, 20) else kernel
    if kernel == MLA_BLOCK_TOKENS and release >= (0, 27):
        step = max(step, 128)
    if mode == "all":
        return math.lcm(step, *(group.state_chunk for group in states))
    if mode == "align" and release >= (0, 33):
        return math.lcm(step, *(_checkpoint_step(group, settings, release) or 1 for group in states))
    return step


def _checkpoint_step(group: LayerGroup, settings: Settings, release: Release) -> int:
    """Return the tokens between the states that a kernel can save inside a prefill; 0 where it saves none.

    Source: `get_kv_cache_spec` in layers/mamba/mamba_mixer2.py and layers/mamba/gdn/qwen_gdn_linear_attn.py.
    """
    if group.state == "mamba2":
        return 1 if release >= (0, 32) else 0
    if group.state == "gated_delta" and settings.state_checkpoints:
        return 64 if release >= (0, 33) else 0
    return 0

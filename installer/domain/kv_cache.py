"""vLLM's KV cache: pages, groups and blocks, as its own code lays them out.

Layers are grouped by the kind of their cache; every group draws whole blocks from one pool. Sources:
vllm/v1/core/kv_cache_utils.py, vllm/v1/kv_cache_interface.py and the hybrid alignment in vllm/model_executor/models/
config.py and vllm/platforms/interface.py, read in 0.19.1 and 0.33.0. All results are bytes or blocks.
"""

from __future__ import annotations

import math

import msgspec

from installer.domain.registry import Architecture, KvCacheDtype, LayerGroup
from installer.domain.settings import Settings

KERNEL_BLOCK_TOKENS = 16
"""vLLM's smallest attention block."""


def kv_bytes_per_sequence(architecture: Architecture, settings: Settings) -> int:
    """Return the KV cache that one sequence of full length takes, in whole blocks.

    Equal to the "KV cache is needed" figure of vLLM's own refusal.
    """
    pool = _Pool.of(architecture, settings.kv_cache_dtype)
    return pool.blocks(settings) * pool.bytes_per_block


def kv_blocks(architecture: Architecture, settings: Settings, available_bytes: int) -> int:
    """Return how many blocks vLLM makes of the bytes that are left for the KV cache."""
    return max(0, available_bytes) // _Pool.of(architecture, settings.kv_cache_dtype).bytes_per_block


class _Pool(msgspec.Struct, frozen=True, kw_only=True):
    """vLLM's block pool: every group of layers draws from the same blocks."""

    block_tokens: int
    bytes_per_block: int
    groups: tuple[tuple[LayerGroup, int], ...]

    @classmethod
    def of(cls, architecture: Architecture, dtype: KvCacheDtype) -> _Pool:
        element_bytes = 1 if dtype == "fp8" else 2
        layers = architecture.layer_groups
        block_tokens = _aligned_block(layers, element_bytes)
        page_bytes = max(_page(group, block_tokens, element_bytes) for group in layers)
        counts = [group.layers for group in layers]
        smallest, largest = min(counts), max(counts)
        group_size = largest if largest < 1.5 * smallest else smallest
        return cls(
            block_tokens=block_tokens,
            bytes_per_block=page_bytes * group_size,
            groups=tuple((group, math.ceil(group.layers / group_size)) for group in layers),
        )

    def blocks(self, settings: Settings) -> int:
        """Count the blocks of one sequence of `settings.context` tokens."""
        return sum(count * self._blocks_of(group, settings) for group, count in self.groups)

    def _blocks_of(self, group: LayerGroup, settings: Settings) -> int:
        if group.kind == "linear":
            return 2
        if group.kind == "sliding":
            kept = min(group.window - 1 + settings.max_num_batched_tokens, settings.context)
            return math.ceil(kept / self.block_tokens) + 1
        return math.ceil(settings.context / self.block_tokens)


def _aligned_block(layers: tuple[LayerGroup, ...], element_bytes: int) -> int:
    """Return the attention block that is large enough for a linear layer's whole state to fit its page."""
    state = max((group.state_bytes for group in layers if group.kind == "linear"), default=0)
    attention = [_page(group, 1, element_bytes) for group in layers if group.kind != "linear"]
    if not state or not attention:
        return KERNEL_BLOCK_TOKENS
    return KERNEL_BLOCK_TOKENS * math.ceil(state / (KERNEL_BLOCK_TOKENS * max(attention)))


def _page(group: LayerGroup, block_tokens: int, element_bytes: int) -> int:
    if group.kind == "linear":
        return group.state_bytes
    if group.kind == "mla":
        return block_tokens * group.latent_dim * element_bytes
    return 2 * block_tokens * group.kv_heads * group.head_dim * element_bytes

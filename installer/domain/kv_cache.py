"""vLLM's KV cache: groups, blocks and tokens, as its own code lays them out.

Layers of the same kind form groups of equal size. A block lies across all layers of a group, and every group draws
whole blocks from one pool. Sources, read in 0.19.1 to 0.33.0: vllm/v1/core/kv_cache_utils.py (in 0.33 kv_cache_
planning.py); what a single layer keeps is in `kv_layers`. `make bench-kv` compares both with vLLM's own functions. All
results are bytes, blocks or tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace
from packaging.version import Version

from installer.domain.kv_layers import WHOLE_CONTEXT, CannotLayOut, LayerCache, Release, layer_caches
from installer.domain.registry import Architecture
from installer.domain.settings import Settings


class KvLayout(msgspec.Struct, frozen=True, kw_only=True):
    """A model's cache as vLLM lays it out: one entry of `groups` per group of layers, all drawing from one pool.

    `reserved_blocks` are those that vLLM sets aside before it compares.
    """

    groups: tuple[LayerCache, ...]
    bytes_per_block: int
    reserved_blocks: int
    context: int
    release: Release

    @property
    def blocks_per_sequence(self) -> int:
        """Return the blocks of one sequence of full length."""
        return self._blocks(self.context)

    @property
    def sequence_bytes(self) -> int:
        """Return what vLLM's refusal calls needed ("... GiB KV cache is needed")."""
        return self.blocks_per_sequence * self.bytes_per_block

    @property
    def start_bytes(self) -> int:
        """Return what must be left for the cache, or vLLM refuses to start."""
        return self.sequence_bytes + self.reserved_blocks * self.bytes_per_block

    def blocks(self, available_bytes: int) -> int:
        """Return the blocks that vLLM makes of the bytes that are left for the cache."""
        return max(0, available_bytes) // self.bytes_per_block

    def concurrency(self, available_bytes: int) -> float:
        """Return how many sequences of full length fit at once: the log's "Maximum concurrency"."""
        return self.blocks(available_bytes) / self.blocks_per_sequence

    def logged_tokens(self, available_bytes: int) -> int:
        """Return the log's "GPU KV cache size", which up to 0.20 counted hybrid models too low."""
        if self.release >= (0, 21):
            return int(self.concurrency(available_bytes) * self.context)
        return self.blocks(available_bytes) // len(self.groups) * min(group.block_tokens for group in self.groups)

    def longest_context(self, available_bytes: int) -> int:
        """Return the refusal's "estimated maximum model length" (`estimate_max_model_len`); 0 where nothing fits."""
        usable = self.blocks(available_bytes) - self.reserved_blocks
        if usable < self._blocks(1):
            return 0
        shortest, longest = 1, self.context
        while shortest < longest:
            middle = (shortest + longest + 1) // 2
            if self._blocks(middle) <= usable:
                shortest = middle
            else:
                longest = middle - 1
        return shortest

    def state_blocks_suffice(self, available_bytes: int, settings: Settings) -> bool:
        """Say whether every sequence can have a state: since 0.20 vLLM refuses to capture CUDA graphs without.

        Source: vllm/config/compilation.py, "max_num_seqs exceeds available Mamba cache blocks". Up to 0.19 it captured
        fewer sizes and said nothing.
        """
        keeps_state = any(group.geometry.kind == "linear" for group in self.groups)
        if settings.enforce_eager or not keeps_state or self.release < (0, 20):
            return True
        return settings.max_num_seqs <= self.blocks(available_bytes)

    def _blocks(self, context: int) -> int:
        return sum(group.blocks(context) for group in self.groups)


def kv_bytes_per_sequence(architecture: Architecture, settings: Settings) -> int:
    """Return what must be left for the KV cache so that vLLM starts: one sequence of full length, in whole blocks.

    Up to 0.28 that is the "KV cache is needed" figure of vLLM's own refusal, since 0.29 one block more.
    """
    return layout(architecture, settings).start_bytes


def kv_blocks(architecture: Architecture, settings: Settings, available_bytes: int) -> int:
    """Return how many blocks vLLM makes of the bytes that are left for the KV cache."""
    return layout(architecture, settings).blocks(available_bytes)


def layout(architecture: Architecture, settings: Settings) -> KvLayout:
    """Return how vLLM lays out a model's cache. Raises CannotLayOut where it refuses to.

    Source: `get_kv_cache_groups` and `get_kv_cache_config_from_groups` in kv_cache_utils.py. Since 0.29 vLLM plans
    without the pool's null block.
    """
    release = _release(settings)
    groups, bytes_per_block = _pooled(layer_caches(architecture, settings, release), release)
    return KvLayout(
        groups=groups,
        bytes_per_block=bytes_per_block,
        reserved_blocks=1 if release >= (0, 29) else 0,
        context=settings.context,
        release=release,
    )


def _release(settings: Settings) -> Release:
    version = Version(settings.release)
    return version.major, version.minor


def _pooled(counted: Mapping[LayerCache, int], release: Release) -> tuple[tuple[LayerCache, ...], int]:
    """Return one cache per group and the bytes of a block, which lies across all layers of a group."""
    if not _need_equal_slots(counted):
        try:
            return _grouped(_with_equal_pages(counted, release))
        except CannotLayOut:
            counted = _all_kept_in_full(counted, release)
    return (next(iter(counted)),), sum(cache.page_bytes * layers for cache, layers in counted.items())


def _need_equal_slots(counted: Mapping[LayerCache, int]) -> bool:
    """Say whether all layers take the same number of blocks and so form one group (`UniformTypeKVCacheSpecs`)."""
    linear = any(cache.geometry.kind == "linear" for cache in counted)
    pages = {cache.page_bytes for cache in counted} if linear else set()
    return len(pages) <= 1 and len({_slots(cache) for cache in counted}) == 1


def _slots(cache: LayerCache) -> tuple[str, int, int, int]:
    kind = "full" if cache.geometry.kind == "mla" else cache.geometry.kind
    return kind, cache.block_tokens, cache.kept_tokens, cache.extra_blocks


def _with_equal_pages(counted: Mapping[LayerCache, int], release: Release) -> Counter[LayerCache]:
    """Give every layer the largest page: by a larger block where it divides, else by padding.

    Source: `unify_kv_cache_spec_page_size`.
    """
    largest = max(cache.page_bytes for cache in counted)
    equal: Counter[LayerCache] = Counter()
    for cache, layers in counted.items():
        kind, times = cache.geometry.kind, largest // cache.page_bytes
        if kind != "linear" and largest % cache.page_bytes == 0:
            enlarged = replace(cache, page_bytes=largest, block_tokens=cache.block_tokens * times)
        elif cache.page_bytes == largest or _can_be_padded(kind, release):
            enlarged = replace(cache, page_bytes=largest)
        else:
            raise CannotLayOut(f"{cache.page_bytes} bytes a page beside {largest}")
        equal[enlarged] += layers
    return equal


def _can_be_padded(kind: str, release: Release) -> bool:
    if kind == "linear":
        return release >= (0, 26)
    if kind == "mla":
        return (0, 24) <= release < (0, 29)
    return release >= (0, 24)


def _grouped(counted: Mapping[LayerCache, int]) -> tuple[tuple[LayerCache, ...], int]:
    """Split the layers into groups of one size, the rarest kind's, or the commonest's if that is not much larger.

    Source: `_get_kv_cache_groups_uniform_page_size`; what is missing in a kind's last group is padding.
    """
    rarest, commonest = min(counted.values()), max(counted.values())
    size = commonest if commonest < 1.5 * rarest else rarest
    groups = tuple(cache for cache, layers in counted.items() for _ in range(math.ceil(layers / size)))
    return groups, size * next(iter(counted)).page_bytes


def _all_kept_in_full(counted: Mapping[LayerCache, int], release: Release) -> Counter[LayerCache]:
    """Keep sliding layers beside MLA in full, as vLLM does since 0.27 where their pages cannot be made equal.

    Source: `_try_get_full_allocation_fallback_groups`. Raises CannotLayOut for any other mix.
    """
    kinds = {cache.geometry.kind for cache in counted}
    if release < (0, 27) or not {"mla", "sliding"} <= kinds or "linear" in kinds:
        raise CannotLayOut("pages of different sizes")
    block = next(cache.block_tokens for cache in counted if cache.geometry.kind != "sliding")
    kept: Counter[LayerCache] = Counter()
    for cache, layers in counted.items():
        page = cache.page_bytes // cache.block_tokens * block
        full = replace(cache, block_tokens=block, page_bytes=page, kept_tokens=WHOLE_CONTEXT, extra_blocks=0)
        kept[full] += layers
    return kept

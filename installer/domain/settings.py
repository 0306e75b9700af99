"""The server's settings that cost memory: a profile proposes them, the ladder only ever lowers them."""

from __future__ import annotations

import msgspec

from installer.domain.registry import KvCacheDtype


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a server is told to take. `context` and `max_num_batched_tokens` are tokens, `release` is vLLM's."""

    context: int
    utilisation: float
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_cache_dtype: KvCacheDtype = "auto"
    enforce_eager: bool = False
    reads_media: bool = False
    cpu_offload_gib: int = 0
    graph_sizes: tuple[int, ...] = ()
    release: str = "0.33.0"

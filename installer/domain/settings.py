"""The server's settings that cost memory: a profile proposes them, the ladder only ever lowers them."""

from __future__ import annotations

from typing import Literal

import msgspec

from installer.domain.registry import KvCacheDtype
from installer.domain.units import Natural, Share

MambaCacheMode = Literal["default", "none", "align", "all"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a server is told to take. `context` and `max_num_batched_tokens` are tokens, `release` is vLLM's.

    `block_tokens` is `--block-size`, 0 leaves it to vLLM. `speculative_tokens` are drafted per step, 0 drafts nothing.
    `mamba_cache_mode` is what `--enable-prefix-caching` ("align"), its opposite ("none") or the flag of that name ask
    for; "default" is the release's own. `state_checkpoints` is false on cards whose kernels for gated-delta layers save
    no state inside a prefill (below compute capability 9.0). `wsl2_pins_memory` says that the server is told to pin
    memory under WSL2, where vLLM does without unless told. `second_runner` is what VLLM_USE_V2_MODEL_RUNNER asks for;
    None leaves it to the release. `serves_adapters` is `--enable-lora`, for which graphs are captured twice.
    """

    context: Natural
    utilisation: Share
    max_num_seqs: Natural
    max_num_batched_tokens: Natural
    kv_cache_dtype: KvCacheDtype = "auto"
    enforce_eager: bool = False
    reads_media: bool = False
    cpu_offload_gib: Natural = 0
    graph_sizes: tuple[Natural, ...] = ()
    block_tokens: Natural = 0
    speculative_tokens: Natural = 0
    mamba_cache_mode: MambaCacheMode = "default"
    async_scheduling: bool = True
    state_checkpoints: bool = True
    wsl2_pins_memory: bool = False
    second_runner: bool | None = None
    serves_adapters: bool = False
    release: str = "0.33.0"

"""vLLM's memory accounting: what a profile needs on a card, term by term, and whether the card can give it.

vLLM takes `ceil(total * utilisation)` of the card and refuses to start if less is free. From that it subtracts the
weights, what a dummy forward pass uses, and (since 0.20) the CUDA graphs; the rest is the KV cache, which must hold at
least one sequence of full length. Sources: vllm/v1/worker/utils.py (`request_memory`), vllm/v1/core/kv_cache_utils.py,
vllm/model_executor/models/config.py (hybrid alignment), read in 0.19.1 and 0.33.0. All results are bytes.
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from installer.domain.facts import Facts, Gpu, GpuMemory
from installer.domain.kv_cache import kv_blocks, kv_bytes_per_sequence
from installer.domain.registry import Architecture
from installer.domain.settings import Settings
from installer.domain.units import gib

CUDA_SHARE_OF_NVML_ON_LINUX = 0.98
"""CUDA's total over NVML's, natively on Linux: 31.36 to 31.40 of 31.84 GiB (RTX 5090), 23.52 of 23.99 (4090).

Only where the driver does not tell what it keeps for itself: with that figure the total is exact (measured on an H200,
driver 580.159: 143771 MiB less 615 MiB reserved is CUDA's total to the byte).
"""

CONTEXT_BYTES = gib(0.52)
"""What vLLM's own CUDA context takes before its start gate looks (0.2 to 0.5 GiB in public logs, 0.515 on an H200)."""

WSL2_HIDDEN_BASE_BYTES = gib(0.85)
WSL2_HIDDEN_SHARE = 0.025
"""Idle memory that WSL2 keeps: 0.85 GiB and 2.5 % of the card, fitted to idle cards of 8, 12, 16, 24 and 32 GB."""

WSL2_BELOW_NVML_BYTES = gib(0.77)
"""A container under WSL2 sees this much less than the host's driver shows (RTX 5090, `spike-2026-04-rtx5090`)."""

SAFE_MARGIN_HEADLESS_BYTES = gib(0.3)
SAFE_MARGIN_DESKTOP_BYTES = gib(0.5)
"""What must stay free above vLLM's gate so that a window opened meanwhile does not break the start."""

LOWEST_UTILISATION, HIGHEST_UTILISATION = 0.30, 0.95


class Verdict(StrEnum):
    """The promise: *fits* starts, *tight* may start, *no* will not, *blocked* has nothing to do with room."""

    FITS = "fits"
    TIGHT = "tight"
    NO = "no"
    BLOCKED = "blocked"


class Limit(StrEnum):
    """The term that is short."""

    NONE = "none"
    FREE_MEMORY = "free_memory"
    WEIGHTS = "weights"
    KV_CACHE = "kv_cache"
    OVERHEAD = "overhead"
    SEQUENCES = "sequences"


class _Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Budget(_Value, frozen=True, kw_only=True):
    """What CUDA can see of a card. `source` tells whether CUDA itself said so or it was derived from NVML."""

    total_bytes: int
    free_bytes: int
    hidden_bytes: int
    margin_bytes: int
    source: str

    @property
    def utilisation_max(self) -> float:
        """Return the highest utilisation that passes vLLM's gate now, in steps of 0.01."""
        return _floor_2(self.free_bytes / self.total_bytes)

    @property
    def utilisation_safe(self) -> float:
        """Return the highest utilisation that still passes after the platform's margin is gone."""
        return _floor_2((self.free_bytes - self.margin_bytes) / self.total_bytes)


class Term(_Value, frozen=True, kw_only=True):
    """One named part of the overhead, as a band."""

    name: str
    low_bytes: int
    high_bytes: int


class Estimate(_Value, frozen=True, kw_only=True):
    """What a profile needs inside vLLM's share of the card."""

    weights_bytes: int
    kv_bytes: int
    terms: tuple[Term, ...]

    @property
    def low_bytes(self) -> int:
        """Return the least it can need."""
        return self.weights_bytes + self.kv_bytes + sum(term.low_bytes for term in self.terms)

    @property
    def high_bytes(self) -> int:
        """Return the most it should need."""
        return self.weights_bytes + self.kv_bytes + self.overhead_high_bytes

    @property
    def overhead_high_bytes(self) -> int:
        """Return the upper end of the overhead alone."""
        return sum(term.high_bytes for term in self.terms)


class Fit(_Value, frozen=True, kw_only=True):
    """The verdict for one profile on one card. `utilisation` is the one to start with."""

    verdict: Verdict
    limit: Limit
    utilisation: float
    share_bytes: int
    estimate: Estimate
    budget: Budget

    @property
    def free_needed_bytes(self) -> int:
        """Return how much must be free on the card for a start that counts as *fits*."""
        return min(self.budget.total_bytes, self.estimate.high_bytes + self.budget.margin_bytes)

    @property
    def spare_bytes(self) -> int:
        """Return what is left of the share after the most that is needed; negative when it is short."""
        return self.share_bytes - self.estimate.high_bytes


def budget(facts: Facts, gpu: Gpu) -> Budget | None:
    """Return what CUDA can use of a card, or None where its memory cannot be known.

    CUDA's own figure wins; without it the figure is derived from NVML's, always downwards.
    """
    if gpu.cuda:
        hidden = max(0, gpu.memory.free_bytes - gpu.cuda.free_bytes) if isinstance(gpu.memory, GpuMemory) else 0
        return Budget(
            total_bytes=gpu.cuda.total_bytes,
            free_bytes=gpu.cuda.free_bytes,
            hidden_bytes=hidden,
            margin_bytes=_margin(facts),
            source="cuda",
        )
    if gpu.unified_memory and facts.host.ram_total_bytes and facts.host.ram_available_bytes:
        return Budget(
            total_bytes=facts.host.ram_total_bytes,
            free_bytes=facts.host.ram_available_bytes,
            hidden_bytes=0,
            margin_bytes=_margin(facts),
            source="host_memory",
        )
    if not isinstance(gpu.memory, GpuMemory):
        return None
    return _from_nvml(facts, gpu.memory)


def _from_nvml(facts: Facts, memory: GpuMemory) -> Budget:
    if facts.behind_wsl2:
        total = memory.total_bytes
        ceiling = total - WSL2_HIDDEN_BASE_BYTES - round(WSL2_HIDDEN_SHARE * total)
        free = min(memory.free_bytes - WSL2_BELOW_NVML_BYTES, ceiling)
    else:
        total = memory.total_bytes - memory.reserved_bytes
        if not memory.reserved_bytes:
            total = round(memory.total_bytes * CUDA_SHARE_OF_NVML_ON_LINUX)
        free = min(memory.free_bytes, total) - CONTEXT_BYTES
    free = max(0, free)
    return Budget(
        total_bytes=total,
        free_bytes=free,
        hidden_bytes=memory.free_bytes - free,
        margin_bytes=_margin(facts),
        source="nvml",
    )


def _margin(facts: Facts) -> int:
    shared_with_desktop = facts.behind_wsl2 or facts.host.desktop_session or facts.host.system == "Windows"
    return SAFE_MARGIN_DESKTOP_BYTES if shared_with_desktop else SAFE_MARGIN_HEADLESS_BYTES


def overhead(architecture: Architecture, settings: Settings) -> tuple[Term, ...]:
    """Return what vLLM uses besides weights and KV cache, as named bands.

    The bands hold the 36 public runs whose overhead is known: 0.16 to 0.19 GiB on 4 GB cards, 0.5 GiB eager, 1.0 to
    1.5 GiB with graphs, up to 2.8 GiB with a vision tower.
    """
    hidden_row = settings.max_num_batched_tokens * architecture.hidden_size * 2
    spread = 4 + architecture.experts_per_token
    logits = settings.max_num_seqs * architecture.vocab_size * 4
    terms = [
        Term(name="base", low_bytes=gib(0.12), high_bytes=gib(0.5)),
        Term(name="activations", low_bytes=hidden_row * 4, high_bytes=hidden_row * 4 * spread),
        Term(name="sampler", low_bytes=logits, high_bytes=3 * logits),
    ]
    if settings.reads_media:
        terms.append(Term(name="encoder", low_bytes=gib(0.05), high_bytes=gib(0.9)))
    if not settings.enforce_eager and _graphs_counted(settings.release):
        terms.append(
            Term(
                name="graphs",
                low_bytes=gib(0.05),
                high_bytes=gib(0.4) + gib(0.9) * min(max(settings.graph_sizes or (settings.max_num_seqs,)), 256) // 256,
            )
        )
    return tuple(terms)


def _graphs_counted(release: str) -> bool:
    """Say whether CUDA graphs come out of vLLM's share (since 0.20) or land outside it."""
    return _version(release) >= (0, 20)


def _version(release: str) -> tuple[int, int]:
    major, minor, *_ = (*release.removeprefix("v").split("."), "0")
    return int(major), int(minor)


def estimate(architecture: Architecture, weights_bytes: int, settings: Settings) -> Estimate:
    """Return what a profile needs of vLLM's share.

    CPU offload counts as nothing gained where layers keep a state: in the one run that is known
    (`spike-2026-04-rtx5090`) 28.25 GiB were resident with 4 GiB of offload.
    """
    keeps_state = any(group.kind == "linear" for group in architecture.layer_groups)
    offloaded = 0 if keeps_state else gib(settings.cpu_offload_gib)
    return Estimate(
        weights_bytes=max(0, weights_bytes - offloaded),
        kv_bytes=kv_bytes_per_sequence(architecture, settings),
        terms=overhead(architecture, settings),
    )


def judge(architecture: Architecture, weights_bytes: int, settings: Settings, room: Budget) -> Fit:
    """Say whether a profile starts on a card with this room, at which utilisation, and what is short if not.

    *fits*: the most it needs is inside a utilisation that survives the platform's margin. *tight*: the least it needs
    is inside one that passes vLLM's gate now.
    """
    need = estimate(architecture, weights_bytes, settings)
    cap = min(settings.utilisation, HIGHEST_UTILISATION)

    def fit(verdict: Verdict, limit: Limit, utilisation: float) -> Fit:
        share = math.ceil(room.total_bytes * utilisation)
        return Fit(verdict=verdict, limit=limit, utilisation=utilisation, share_bytes=share, estimate=need, budget=room)

    safe = min(cap, room.utilisation_safe)
    if _inside(need.high_bytes, safe, room) and _sequences_fit(architecture, settings, need, safe, room):
        return fit(Verdict.FITS, Limit.NONE, safe)
    highest = min(cap, room.utilisation_max)
    if _inside(need.low_bytes, highest, room):
        short_of_free = _inside(need.high_bytes, highest, room)
        return fit(Verdict.TIGHT, Limit.FREE_MEMORY if short_of_free else _limit(need, highest, room), highest)
    if _inside(need.low_bytes, cap, room):
        return fit(Verdict.NO, Limit.FREE_MEMORY, cap)
    return fit(Verdict.NO, _limit(need, cap, room), cap)


def _inside(need_bytes: int, utilisation: float, room: Budget) -> bool:
    return utilisation >= LOWEST_UTILISATION and need_bytes <= math.floor(room.total_bytes * utilisation)


def _sequences_fit(
    architecture: Architecture, settings: Settings, need: Estimate, utilisation: float, room: Budget
) -> bool:
    """Say whether there are as many state blocks as sequences, which CUDA graphs over linear layers need (>= 0.20)."""
    if settings.enforce_eager or not any(group.kind == "linear" for group in architecture.layer_groups):
        return True
    left = math.floor(room.total_bytes * utilisation) - need.weights_bytes - need.overhead_high_bytes
    return kv_blocks(architecture, settings, left) >= settings.max_num_seqs


def _limit(need: Estimate, utilisation: float, room: Budget) -> Limit:
    share = math.floor(room.total_bytes * utilisation)
    if need.weights_bytes > share:
        return Limit.WEIGHTS
    if need.weights_bytes + need.overhead_high_bytes > share:
        return Limit.OVERHEAD
    if need.high_bytes > share:
        return Limit.KV_CACHE
    return Limit.SEQUENCES


def longest_context(
    architecture: Architecture, weights_bytes: int, settings: Settings, room: Budget, native_context: int
) -> int:
    """Return the longest context in tokens, in steps of 1024, that *fits*; 0 if none does."""

    def fits(context: int) -> bool:
        asked = msgspec.structs.replace(settings, context=context)
        return judge(architecture, weights_bytes, asked, room).verdict is Verdict.FITS

    low, high = 0, native_context // 1024
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle * 1024) else (low, middle - 1)
    return low * 1024


def _floor_2(value: float) -> float:
    """Round down to two digits; a tiny nudge keeps 0.29 from becoming 0.28 in binary."""
    return math.floor(value * 100 + 1e-9) / 100

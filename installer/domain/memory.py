"""vLLM's memory accounting: what a profile needs on a card, term by term, and whether the card can give it.

vLLM takes `ceil(total * utilisation)` of the card and refuses to start if less is free. From that it subtracts the
weights, what a dummy forward pass uses, and (since 0.20) the CUDA graphs; the rest is the KV cache, which must hold at
least one sequence of full length. Sources: vllm/v1/worker/utils.py (`request_memory`), vllm/v1/core/kv_cache_utils.py,
vllm/model_executor/models/config.py (hybrid alignment), read in 0.19.1 and 0.33.0. All results are bytes.
"""

from __future__ import annotations

import functools
import math
from enum import StrEnum
from typing import NamedTuple

import msgspec

from installer.domain.kv_cache import KvLayout, layout
from installer.domain.overhead import (
    Term,
    beside_the_share,
    graphs_may_be_counted,
    inside_the_share,
    least,
    most,
)
from installer.domain.registry import Architecture
from installer.domain.room import CUDA_SHARE_OF_NVML_ON_LINUX, Budget, budget, highest_share, idle_room
from installer.domain.settings import Settings
from installer.domain.units import Natural, Share, gib

__all__ = [
    "CUDA_SHARE_OF_NVML_ON_LINUX",
    "LOWEST_UTILISATION",
    "Budget",
    "Estimate",
    "Fit",
    "Limit",
    "Term",
    "Verdict",
    "agreed",
    "budget",
    "estimate",
    "idle_room",
    "judge",
    "judge_gate",
    "judge_start",
    "longest_context",
]

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
    GRAPHS = "graphs"


class _Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Estimate(_Value, frozen=True, kw_only=True):
    """What a profile needs of vLLM's share of the card, and `beside` it once the KV cache was made."""

    weights_bytes: Natural
    kv_bytes: Natural
    terms: tuple[Term, ...]
    beside: tuple[Term, ...] = ()

    @property
    def low_bytes(self) -> int:
        """Return the least it can need of the share."""
        return self.weights_bytes + self.kv_bytes + self.overhead_low_bytes

    @property
    def high_bytes(self) -> int:
        """Return the most it should need of the share."""
        return self.weights_bytes + self.kv_bytes + self.overhead_high_bytes

    @property
    def overhead_low_bytes(self) -> int:
        """Return the lower end of the overhead alone."""
        return least(self.terms)

    @property
    def overhead_high_bytes(self) -> int:
        """Return the upper end of the overhead alone."""
        return most(self.terms)

    @property
    def beside_low_bytes(self) -> int:
        """Return the least that must stay free beside the share."""
        return least(self.beside)

    @property
    def beside_high_bytes(self) -> int:
        """Return the most that should have to stay free beside the share."""
        return most(self.beside)


class Fit(_Value, frozen=True, kw_only=True):
    """The verdict for one profile on one card. `utilisation` is the one to start with."""

    verdict: Verdict
    limit: Limit
    utilisation: Share
    share_bytes: Natural
    estimate: Estimate
    budget: Budget

    @property
    def free_needed_bytes(self) -> int:
        """Return how much must be free on the card for a start that counts as *fits*."""
        needed = self.estimate.high_bytes + self.estimate.beside_high_bytes + self.budget.margin_bytes
        return min(self.budget.total_bytes, needed)

    @property
    def to_free_bytes(self) -> int:
        """Return what other programs must give back first; 0 where enough is free."""
        return max(0, self.free_needed_bytes - self.budget.free_bytes)

    @property
    def spare_bytes(self) -> int:
        """Return what is left of the share after the most that is needed; negative when it is short."""
        return self.share_bytes - self.estimate.high_bytes


def estimate(
    architecture: Architecture,
    weights_bytes: int,
    settings: Settings,
    *,
    wsl2: bool = False,
    graphs_counted: bool | None = None,
    shift_bytes: int = 0,
) -> Estimate:
    """Return what a profile needs of vLLM's share and beside it.

    `graphs_counted` is for releases that do it either way. `shift_bytes` is what this machine's own starts taught
    (`installer.domain.calibration`). CPU offload counts as nothing gained where layers keep a state: in the one run
    that is known (`spike-2026-04-rtx5090`) 28.25 GiB were resident with 4 GiB of offload. Under WSL2 it counts as
    nothing either: without pinned memory a whole layer is copied in every pass.
    """
    keeps_state = any(group.kind == "linear" for group in architecture.layer_groups)
    offloaded = 0 if keeps_state or wsl2 else gib(settings.cpu_offload_gib)
    if graphs_counted is None:
        graphs_counted = graphs_may_be_counted(architecture, settings, wsl2=wsl2)[0]
    terms = inside_the_share(architecture, settings, wsl2=wsl2, graphs_counted=graphs_counted)
    if shift_bytes:
        measured = Term(name="measured", low_bytes=shift_bytes, likely_bytes=shift_bytes, high_bytes=shift_bytes)
        terms = (*terms, measured)
    return Estimate(
        weights_bytes=max(0, weights_bytes - offloaded),
        kv_bytes=_laid_out(architecture, settings).start_bytes,
        terms=terms,
        beside=beside_the_share(architecture, settings, wsl2=wsl2, graphs_counted=graphs_counted),
    )


def judge(
    architecture: Architecture, weights_bytes: int, settings: Settings, room: Budget, *, shift_bytes: int = 0
) -> Fit:
    """Say whether a profile starts on a card with this room, at which utilisation, and what is short if not.

    `settings.utilisation` is the most it may take. *fits*: the most it needs is inside a share that survives the
    platform's margin. *tight*: the least it needs is inside one that passes vLLM's gate now.
    """
    cap = min(settings.utilisation, HIGHEST_UTILISATION)
    estimates = _estimates(architecture, weights_bytes, settings, room, shift_bytes)
    ends = tuple(_Ends.of(need) for need in estimates)
    beside = max(end.beside_high for end in ends)
    safe = min(cap, highest_share(room.free_bytes - room.margin_bytes - beside, room.total_bytes))
    highest = min(cap, room.utilisation_max)

    def start(utilisation: float, card: Budget) -> Fit:
        tried = (_start(architecture, settings, *each, utilisation, card) for each in zip(estimates, ends, strict=True))
        return agreed(tuple(tried))

    at_safe = start(safe, room)
    if safe >= LOWEST_UTILISATION and at_safe.verdict is Verdict.FITS:
        return at_safe
    at_highest = start(highest, msgspec.structs.replace(room, margin_bytes=0))
    if highest >= LOWEST_UTILISATION and at_highest.verdict in (Verdict.FITS, Verdict.TIGHT):
        limit = Limit.FREE_MEMORY if at_highest.verdict is Verdict.FITS else at_highest.limit
        return msgspec.structs.replace(at_highest, verdict=Verdict.TIGHT, limit=limit, budget=room)
    whole = msgspec.structs.replace(room, free_bytes=room.total_bytes)
    alone = start(cap, whole)
    limit = alone.limit if alone.verdict is Verdict.NO else Limit.FREE_MEMORY
    return msgspec.structs.replace(alone, verdict=Verdict.NO, limit=limit, budget=room)


def judge_start(
    architecture: Architecture, weights_bytes: int, settings: Settings, room: Budget, *, shift_bytes: int = 0
) -> Fit:
    """Say what becomes of a start with exactly these settings, `settings.utilisation` included."""
    estimates = _estimates(architecture, weights_bytes, settings, room, shift_bytes)
    return agreed(
        tuple(_start(architecture, settings, need, _Ends.of(need), settings.utilisation, room) for need in estimates)
    )


def judge_gate(utilisation: float, room: Budget) -> Verdict:
    """Say what is sure before anything is known of the model: the gate alone can refuse, but never promise."""
    return Verdict.NO if _share(utilisation, room) > room.free_bytes else Verdict.TIGHT


def agreed(fits: tuple[Fit, ...]) -> Fit:
    """Return one answer for several that are possible: a promise or a refusal only where all say the same.

    Of differing ones it carries the figures of the worst.
    """
    order = (Verdict.BLOCKED, Verdict.NO, Verdict.TIGHT, Verdict.FITS)
    worst = min(fits, key=lambda fit: (order.index(fit.verdict), fit.spare_bytes))
    if len({fit.verdict for fit in fits}) == 1:
        return worst
    return msgspec.structs.replace(worst, verdict=Verdict.TIGHT)


def _estimates(
    architecture: Architecture, weights_bytes: int, settings: Settings, room: Budget, shift_bytes: int
) -> tuple[Estimate, ...]:
    return tuple(
        estimate(
            architecture,
            weights_bytes,
            settings,
            wsl2=room.wsl2,
            graphs_counted=counted,
            shift_bytes=shift_bytes,
        )
        for counted in graphs_may_be_counted(architecture, settings, wsl2=room.wsl2)
    )


class _Ends(NamedTuple):
    """Both ends of an estimate's bands, worked out once for every share that is tried."""

    overhead_low: int
    overhead_high: int
    beside_low: int
    beside_likely: int
    beside_high: int

    @classmethod
    def of(cls, need: Estimate) -> _Ends:
        return cls(
            overhead_low=need.overhead_low_bytes,
            overhead_high=need.overhead_high_bytes,
            beside_low=need.beside_low_bytes,
            beside_likely=sum(term.likely_bytes for term in need.beside),
            beside_high=need.beside_high_bytes,
        )


def _share(utilisation: float, room: Budget) -> int:
    """Return what vLLM takes: `ceil(total * utilisation)` (`request_memory`)."""
    return math.ceil(room.total_bytes * utilisation)


def _start(
    architecture: Architecture, settings: Settings, need: Estimate, ends: _Ends, utilisation: float, room: Budget
) -> Fit:
    """Follow a start at one utilisation: the gate, the weights, the profile run, the cache, and what comes after it.

    Under WSL2 what is likely to come after it has to fit, not the most: Windows moves what is beyond into the
    computer's own memory without an error, as public reports tell, and of four public starts there three got ready.
    `judge` leaves room for the most all the same, since a server that lives there is slow.
    """
    share = _share(utilisation, room)
    beside = ends.beside_likely if room.wsl2 else ends.beside_high
    free = room.free_bytes - room.margin_bytes
    verdict, limit = Verdict.FITS, _short(architecture, settings, need, ends.overhead_high, beside, share, free)
    if limit is not Limit.NONE:
        surely = _short(architecture, settings, need, ends.overhead_low, ends.beside_low, share, room.free_bytes)
        verdict, limit = (Verdict.TIGHT, limit) if surely is Limit.NONE else (Verdict.NO, surely)
    return Fit(verdict=verdict, limit=limit, utilisation=utilisation, share_bytes=share, estimate=need, budget=room)


def _short(
    architecture: Architecture, settings: Settings, need: Estimate, overhead: int, beside: int, share: int, free: int
) -> Limit:
    """Return the first term that is short, in the order in which vLLM meets them, with one end of the bands."""
    left = share - need.weights_bytes - overhead
    if share > free:
        return Limit.FREE_MEMORY
    if need.weights_bytes > share:
        return Limit.WEIGHTS
    if left < 0:
        return Limit.OVERHEAD
    if need.kv_bytes > left:
        return Limit.KV_CACHE
    if not _states_fit(architecture, settings, left):
        return Limit.SEQUENCES
    if share + beside > free:
        return Limit.GRAPHS
    return Limit.NONE


def _states_fit(architecture: Architecture, settings: Settings, left: int) -> bool:
    if settings.enforce_eager or not any(group.kind == "linear" for group in architecture.layer_groups):
        return True
    return _laid_out(architecture, settings).state_blocks_suffice(left, settings)


@functools.lru_cache(maxsize=64)
def _laid_out(architecture: Architecture, settings: Settings) -> KvLayout:
    """Lay the cache out once for all questions about the same settings."""
    return layout(architecture, settings)


def longest_context(
    architecture: Architecture,
    weights_bytes: int,
    settings: Settings,
    room: Budget,
    native_context: int,
    *,
    shift_bytes: int = 0,
) -> int:
    """Return the longest context in tokens, in steps of 1024, that *fits*; 0 if none does."""

    def fits(context: int) -> bool:
        asked = msgspec.structs.replace(settings, context=context)
        return judge(architecture, weights_bytes, asked, room, shift_bytes=shift_bytes).verdict is Verdict.FITS

    low, high = 0, native_context // 1024
    if high and fits(high * 1024):
        return high * 1024
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle * 1024) else (low, middle - 1)
    return low * 1024

"""Offers: every profile with its verdict on this machine and the reason, best first."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from installer.domain import checks
from installer.domain.facts import Facts, Gpu, GpuMemory, Missing
from installer.domain.kv_layers import CannotLayOut
from installer.domain.levers import Case, Lever, levers
from installer.domain.memory import Fit, Limit, Verdict, budget
from installer.domain.problems import (
    AnyProblem,
    CacheNotLaidOut,
    DoesNotFit,
    NoGpu,
    NotEnoughFreeMemory,
    NotServedYet,
    Tagged,
)
from installer.domain.registry import (
    SERVED_BACKENDS,
    Evidence,
    EvidenceKind,
    Flag,
    ImageRelease,
    Profile,
    Registry,
    StackName,
)
from installer.domain.room import Budget
from installer.domain.settings import Settings
from installer.domain.sources import WeightsSource
from installer.domain.units import gib

SAME_TIER_TOLERANCE = 0.06
"""Cards of one tier differ by a few per cent: a 16 GB card reports 15.5 to 15.93 GiB."""

TRIAL_CACHE_GIB = 4
"""Host memory that the CPU trial takes besides its weights."""


class RoomEnough(Tagged, frozen=True, kw_only=True):
    """Why an offer fits: what it needs at most, and what it may take."""

    gpu: str
    needed_bytes: int
    share_bytes: int
    free_bytes: int
    utilisation: float


class RoomTight(Tagged, frozen=True, kw_only=True):
    """Why an offer is tight: the least it needs is there, the most it may need is not."""

    gpu: str
    needed_low_bytes: int
    needed_high_bytes: int
    share_bytes: int
    free_bytes: int
    utilisation: float
    limit: Limit


class RunsWithoutGpu(Tagged, frozen=True, kw_only=True):
    """Why the trial runs: it needs the engine's own memory only."""

    needed_bytes: int
    memory_bytes: int


Reason = RoomEnough | RoomTight | RunsWithoutGpu | AnyProblem


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One profile on this machine. `gpu_uuid` is the card that suits it best.

    `context` is in tokens, 0 for a profile that makes pictures: that one has `references` instead. `evidence` is the
    strongest there is, `evidence_here` the strongest that counts for this class of card. `starts` counts this
    profile's own starts on this card, which the verdict takes into account. `levers` are what would gain memory.
    """

    profile: str
    model: str
    task: str
    verdict: Verdict
    untested: bool
    evidence: EvidenceKind
    evidence_here: EvidenceKind = "derived"
    reason: Reason
    context: int
    references: int = 0
    gpu_uuid: str | None
    fit: Fit | None
    starts: int = 0
    levers: tuple[Lever, ...] = ()
    recommended: bool = False


def offers(facts: Facts, registry: Registry, gpu_uuid: str | None = None) -> tuple[Offer, ...]:
    """Judge every profile of the registry on this machine, on one card or on the best one for each; best first.

    They are ordered by task (chat before pictures), then by fit, then by the evidence for this class of card, then by
    quality. The first that fits and may be recommended carries `recommended`.
    """
    judged = [with_levers(_best(facts, registry, name, gpu_uuid), facts, registry) for name in registry.profiles]
    ordered = sorted(judged, key=lambda offer: _rank(offer, registry))
    chosen = next((o.profile for o in ordered if _may_recommend(o, registry)), None)
    return tuple(msgspec.structs.replace(o, recommended=o.profile == chosen) for o in ordered)


def with_levers(offered: Offer, facts: Facts, registry: Registry) -> Offer:
    """Return an offer with everything that a person could turn to gain memory."""
    gpu = facts.gpu(offered.gpu_uuid) if offered.gpu_uuid else None
    if offered.fit is None or gpu is None:
        return offered
    profile = registry.profile(offered.profile)
    settings = settings_of(profile, registry.image_of(profile), offered.context, gpu)
    found = levers(case_of(facts, registry, offered.profile, gpu, offered.fit.budget), settings, before=offered.fit)
    return msgspec.structs.replace(offered, levers=found)


def longest_context_here(facts: Facts, registry: Registry, offered: Offer) -> int:
    """Return the longest context in tokens that *fits* with an offer's settings on its card; 0 if none does."""
    gpu = facts.gpu(offered.gpu_uuid) if offered.gpu_uuid else None
    if gpu is None or offered.fit is None:
        return 0
    profile = registry.profile(offered.profile)
    settings = settings_of(profile, registry.image_of(profile), offered.context, gpu)
    case = case_of(facts, registry, offered.profile, gpu, offered.fit.budget)
    return case.longest_context(settings, registry.model_of(profile).native_context)


def case_of(
    facts: Facts, registry: Registry, name: str, gpu: Gpu, room: Budget, weights: WeightsSource | None = None
) -> Case:
    """Return a profile on a card, for questions about settings other than its own."""
    profile = registry.profile(name)
    return Case(
        architecture=registry.architecture_of(profile),
        weights_bytes=resident_bytes(registry, profile, weights),
        room=room,
        shift_bytes=facts.shift_bytes(gpu.uuid, name),
        fp8_kv_runs=_at_least(gpu, OLDEST_WITH_FP8_KV),
    )


def _at_least(gpu: Gpu | None, capability: tuple[int, int]) -> bool:
    """Say whether a card has this compute capability; one that does not tell is taken at its best."""
    has = None if gpu is None or isinstance(gpu.compute_capability, Missing) else gpu.compute_capability
    return has is None or has >= capability


def _may_recommend(offer: Offer, registry: Registry) -> bool:
    return offer.verdict is Verdict.FITS and registry.profiles[offer.profile].recommended


_VERDICT_ORDER = (Verdict.FITS, Verdict.TIGHT, Verdict.NO, Verdict.BLOCKED)


_STACK_ORDER: tuple[StackName, ...] = ("chat", "images")
_EVIDENCE_ORDER: tuple[EvidenceKind, ...] = ("measured", "documented", "derived")


def _rank(offer: Offer, registry: Registry) -> tuple[int, int, int, int, int, str]:
    profile = registry.profiles[offer.profile]
    return (
        _STACK_ORDER.index(profile.stack),
        _VERDICT_ORDER.index(offer.verdict),
        int(not profile.recommended),
        _EVIDENCE_ORDER.index(offer.evidence_here),
        -profile.quality,
        offer.profile,
    )


def _best(facts: Facts, registry: Registry, name: str, gpu_uuid: str | None) -> Offer:
    profile = registry.profiles[name]
    cards = [gpu for gpu in facts.nvidia.gpus if gpu_uuid in (None, gpu.uuid)]
    if not profile.gpu or not cards:
        return offer(facts, registry, name, None)
    candidates = [offer(facts, registry, name, gpu) for gpu in cards]
    return min(candidates, key=lambda o: (_VERDICT_ORDER.index(o.verdict), -(o.fit.spare_bytes if o.fit else 0)))


def offer(
    facts: Facts,
    registry: Registry,
    name: str,
    gpu: Gpu | None,
    context: int | None = None,
    weights: WeightsSource | None = None,
) -> Offer:
    """Judge one profile on one card; None is a machine without a card, or a profile that needs none."""
    profile = registry.profile(name)
    model = registry.model_of(profile)
    settings = settings_of(profile, registry.image_of(profile), context, gpu)

    def made(verdict: Verdict, reason: Reason, fit: Fit | None = None) -> Offer:
        return Offer(
            profile=name,
            model=model.repo,
            task=profile.task,
            verdict=verdict,
            untested=not tested_on(profile, gpu),
            evidence=_strongest(profile),
            evidence_here=evidence_on(profile, gpu),
            reason=reason,
            context=settings.context,
            references=profile.max_references,
            gpu_uuid=gpu.uuid if gpu else None,
            fit=fit,
            starts=_starts(facts, gpu, name),
        )

    blocking = checks.engine(facts) + checks.compose(facts) + (checks.nvidia(facts) if profile.gpu else ())
    if not profile.gpu:
        return made(*_without_gpu(facts, name, resident_bytes(registry, profile, weights), blocking))
    if gpu is not None:
        known = msgspec.structs.replace(profile, blocks=registry.blocks_of(profile))
        blocking += checks.card(facts, gpu, name, known, registry.image_of(profile))
    blocking += _not_served(name, profile)
    if blocking:
        return made(Verdict.BLOCKED, blocking[0])
    room = budget(facts, gpu) if gpu is not None else None
    if gpu is None or room is None:
        return made(Verdict.BLOCKED, NoGpu())
    try:
        fit = case_of(facts, registry, name, gpu, room, weights).judge(settings)
    except CannotLayOut:
        return made(Verdict.BLOCKED, CacheNotLaidOut(profile=name, release=settings.release))
    return made(fit.verdict, reason_of(fit, gpu, name), fit)


def _starts(facts: Facts, gpu: Gpu | None, name: str) -> int:
    learnt = facts.calibration(gpu.uuid, name) if gpu else None
    return learnt.starts if learnt else 0


def _not_served(name: str, profile: Profile) -> tuple[AnyProblem, ...]:
    """Say last of all that this version cannot start a profile: what the card lacks is the better reason."""
    if profile.backend not in SERVED_BACKENDS:
        return (NotServedYet(profile=name, backend=profile.backend),)
    return (NotServedYet(profile=name, backend="tensor_parallel"),) if profile.tensor_parallel > 1 else ()


def _strongest(profile: Profile) -> EvidenceKind:
    return min((row.kind for row in profile.evidence), key=_EVIDENCE_ORDER.index)


def _without_gpu(
    facts: Facts, name: str, weights_bytes: int, blocking: tuple[AnyProblem, ...]
) -> tuple[Verdict, Reason]:
    if blocking:
        return Verdict.BLOCKED, blocking[0]
    memory = facts.engine.memory_bytes or facts.host.ram_total_bytes or 0
    needed = weights_bytes + gib(TRIAL_CACHE_GIB)
    if needed > memory:
        reason = DoesNotFit(
            profile=name, gpu="", needed_bytes=needed, available_bytes=memory, limit=Limit.FREE_MEMORY.value
        )
        return Verdict.NO, reason
    return Verdict.FITS, RunsWithoutGpu(needed_bytes=needed, memory_bytes=memory)


def reason_of(fit: Fit, gpu: Gpu, name: str) -> Reason:
    """Turn a verdict about room into its reason, with the figures that a person needs."""
    match fit.verdict:
        case Verdict.FITS:
            return RoomEnough(
                gpu=gpu.name,
                needed_bytes=fit.estimate.high_bytes,
                share_bytes=fit.share_bytes,
                free_bytes=fit.budget.free_bytes,
                utilisation=fit.utilisation,
            )
        case Verdict.TIGHT:
            return RoomTight(
                gpu=gpu.name,
                needed_low_bytes=fit.estimate.low_bytes,
                needed_high_bytes=fit.estimate.high_bytes,
                share_bytes=fit.share_bytes,
                free_bytes=fit.budget.free_bytes,
                utilisation=fit.utilisation,
                limit=fit.limit,
            )
        case _ if fit.limit is Limit.FREE_MEMORY:
            return NotEnoughFreeMemory(
                gpu=gpu.name,
                free_bytes=fit.budget.free_bytes,
                total_bytes=fit.budget.total_bytes,
                needed_bytes=fit.free_needed_bytes,
                holders=checks.holders(gpu),
            )
        case _:
            return DoesNotFit(
                profile=name,
                gpu=gpu.name,
                needed_bytes=fit.estimate.low_bytes,
                available_bytes=fit.share_bytes,
                limit=fit.limit.value,
            )


OLDEST_WITH_FP8_KV = (8, 9)
"""Below this capability a cache in 8 bits runs with one attention backend at most, which a profile has to name."""

OLDEST_WITH_STATE_CHECKPOINTS = (9, 0)
"""Below this capability vLLM's kernels for gated-delta layers save no state inside a prefill (see Settings)."""


def settings_of(profile: Profile, image: ImageRelease, context: int | None = None, gpu: Gpu | None = None) -> Settings:
    """Return a profile's settings on a card, with the context that a person chose, if one did."""
    return Settings(
        state_checkpoints=_at_least(gpu, OLDEST_WITH_STATE_CHECKPOINTS),
        context=context or profile.context,
        utilisation=profile.utilisation,
        max_num_seqs=profile.max_num_seqs,
        max_num_batched_tokens=profile.max_num_batched_tokens,
        kv_cache_dtype=profile.kv_cache_dtype,
        enforce_eager=profile.enforce_eager,
        reads_media=profile.reads_media,
        cpu_offload_gib=profile.cpu_offload_gib,
        release=image.version,
        **_from_flags(profile.flags),
    )


def _from_flags(flags: tuple[Flag, ...]) -> dict[str, Any]:
    """Return the settings that a profile asks for by arguments of its own, as far as they cost memory."""
    found: dict[str, Any] = {}
    for flag in flags:
        match flag.flag, flag.value:
            case "--block-size", int(tokens):
                found["block_tokens"] = tokens
            case "--speculative-config", {"num_speculative_tokens": int(tokens)}:
                found["speculative_tokens"] = tokens
            case "--mamba-cache-mode", str(mode):
                found["mamba_cache_mode"] = mode
            case "--enable-prefix-caching", True:
                found.setdefault("mamba_cache_mode", "align")
            case "--no-enable-prefix-caching", True:
                found.setdefault("mamba_cache_mode", "none")
            case "--enable-lora", True:
                found["serves_adapters"] = True
            case "--no-async-scheduling", True:
                found["async_scheduling"] = False
            case _:
                pass
    return found


def resident_bytes(registry: Registry, profile: Profile, weights: WeightsSource | None) -> int:
    """Return what the weights take on the card.

    A measured figure wins over the file sizes, and the hub's own sizes win over the registry's where they are larger:
    too little is the dangerous direction.
    """
    model = registry.model_of(profile)
    known = model.resident_bytes or model.checkpoint_bytes
    return max(known, weights.checkpoint_bytes if weights else 0)


def tested_on(profile: Profile, gpu: Gpu | None) -> bool:
    """Say whether somebody measured this profile on this class of card: same capability, same tier of memory."""
    return gpu is not None and any(_same_class(row, gpu) for row in profile.evidence if row.kind == "measured")


def evidence_on(profile: Profile, gpu: Gpu | None) -> EvidenceKind:
    """Return the strongest evidence for this class of card; from a measurement on another it can only be derived."""
    if tested_on(profile, gpu):
        return "measured"
    return "documented" if any(row.kind == "documented" for row in profile.evidence) else "derived"


def _same_class(row: Evidence, gpu: Gpu) -> bool:
    has = gpu.compute_capability
    if isinstance(has, Missing) or row.capability != f"{has[0]}.{has[1]}" or row.unified_memory != gpu.unified_memory:
        return False
    if gpu.unified_memory:
        return True
    if row.memory_gib is None or not isinstance(gpu.memory, GpuMemory):
        return False
    return math.isclose(gpu.memory.total_bytes, gib(row.memory_gib), rel_tol=SAME_TIER_TOLERANCE)

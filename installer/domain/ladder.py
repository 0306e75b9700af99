"""The ladder: after a failed start, the same plan with one thing changed, chosen by where it failed.

Settings only fall, below a value that the person chose only with consent. Whether there is a rung at all is the
Problem's own treatment; which one it is stands in the table of fingerprints, too. Source of the rungs: where public
runs failed, and `spike-2026-04-rtx5090`'s three attempts (0.88: no cache; 0.95: gate; 0.94: ready).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import msgspec

from installer.domain.fingerprints import LadderStep
from installer.domain.memory import LOWEST_UTILISATION
from installer.domain.plan import Plan, Refusal, Relaxation
from installer.domain.problems import (
    AnyProblem,
    CudaOutOfMemory,
    DriverCombination,
    Fp8NotSupported,
    FreeBelowUtilisation,
    FreeMemoryMoved,
    KvCacheTooSmall,
    NoCacheBlocks,
    NotResident,
    PortTaken,
    ReadyTimedOut,
    RelaxRefused,
    StateBlocksTooFew,
    Treatment,
    UnknownArgument,
)
from installer.domain.settings import Settings

MOST_RETRIES = 3
SHORTEST_CONTEXT = 2048
SMALLEST_BATCH = 2048
SMALL_GRAPHS = (1, 2, 4)
POSSIBLE_TOKENS_SHARE = 0.95
"""vLLM's own estimate of the longest context leaves no room for a run that needs a little more."""

SHARE_LESS_UNDER_WSL2 = 0.08
"""What made WSL2 keep memory on the card where the allocator's setting did not (WSL issue 41176: 0.88 to 0.80)."""

SEGMENTS = ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False")
DRIVER_LIBRARIES = (
    "LD_LIBRARY_PATH",
    "/usr/local/nvidia/lib64:/usr/local/nvidia/lib:/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu",
)
"""Where NVIDIA's runtime mounts the driver's own libraries (gpustack issue 4678)."""

READY_PATIENCE = ("VLLM_ENGINE_READY_TIMEOUT_S", "3600")


def step_of(failure: AnyProblem) -> LadderStep | None:  # noqa: C901 - a table in the form of a match
    """Return the rung for a failure, or None where there is none."""
    match failure:
        case FreeBelowUtilisation():
            return "lower_utilisation"
        case KvCacheTooSmall():
            return "shorter_context"
        case StateBlocksTooFew():
            return "fewer_sequences"
        case CudaOutOfMemory(phase="graphs"):
            return "fewer_graphs"
        case NoCacheBlocks() | CudaOutOfMemory():
            return "smaller_working_set"
        case NotResident():
            return "segments_then_share"
        case Fp8NotSupported():
            return "cache_in_16_bits"
        case DriverCombination():
            return "driver_libraries_first"
        case ReadyTimedOut():
            return "more_patience"
        case UnknownArgument():
            return "without_argument"
        case PortTaken():
            return "next_port"
        case FreeMemoryMoved():
            return "once_more"
        case _:
            return None


def relax(
    plan: Plan, failure: AnyProblem, *, consent: bool = False, free_ports: tuple[int, ...] = ()
) -> Plan | Refusal:
    """Return the plan with one thing changed, or the failure itself if no rung is left.

    `consent` allows to go below a value that the person chose; without it that is RelaxRefused. `free_ports` are those
    that nobody listens on now, for a port that somebody took meanwhile.
    """
    step = step_of(failure)
    if step is None or failure.treatment not in (Treatment.ADAPT, Treatment.RETRY):
        return Refusal(problems=(failure,))
    changed = _on_another_port(plan, failure, free_ports) if step == "next_port" else _RUNGS[step](plan, failure)
    if changed is None:
        return Refusal(problems=(failure,))
    if changed.settings.context < plan.settings.context and plan.choices.context is not None and not consent:
        chosen, possible = str(plan.settings.context), str(changed.settings.context)
        return Refusal(problems=(RelaxRefused(field="context", chosen=chosen, possible=possible), failure))
    return changed


Rung = Callable[[Plan, AnyProblem], Plan | None]
"""Changes a plan for a failure, or says with None that there is nothing left to change."""


def _lowered(lower: Callable[[Plan, AnyProblem], Settings | None]) -> Rung:
    """Return a rung that lowers one setting."""

    def rung(plan: Plan, failure: AnyProblem) -> Plan | None:
        lowered = lower(plan, failure)
        if lowered is None or lowered == plan.settings:
            return None
        field, old, new = _difference(plan.settings, lowered)
        return _noted(msgspec.structs.replace(plan, settings=lowered), failure, field, old, new)

    return rung


def _noted(plan: Plan, failure: AnyProblem, field: str, old: str, new: str) -> Plan:
    step = Relaxation(field=field, old=old, new=new, because=failure.kind)
    return msgspec.structs.replace(plan, relaxed=(*plan.relaxed, step))


def _once(plan: Plan, failure: AnyProblem) -> bool:
    """Say whether this failure has not been answered in this run yet."""
    return all(step.because != failure.kind for step in plan.relaxed)


def _on_another_port(plan: Plan, failure: AnyProblem, free_ports: tuple[int, ...]) -> Plan | None:
    """Move on where somebody was quicker: a port that nobody chose may be exchanged, a chosen one stays."""
    other = next((port for port in free_ports if port != plan.port), None)
    if plan.choices.port is not None or other is None:
        return None
    return _noted(msgspec.structs.replace(plan, port=other), failure, "port", str(plan.port), str(other))


def _once_more(plan: Plan, failure: AnyProblem) -> Plan | None:
    return _noted(plan, failure, "attempt", "1", "2") if _once(plan, failure) else None


def _with_variable(variable: tuple[str, str]) -> Rung:
    """Return a rung that gives the server one variable of the environment more."""
    name, value = variable

    def rung(plan: Plan, failure: AnyProblem) -> Plan | None:
        old = plan.environment.get(name, "")
        if old == value:
            return None
        changed = msgspec.structs.replace(plan, environment=plan.environment | {name: value})
        return _noted(changed, failure, "environment", old, f"{name}={value}")

    return rung


def _without_argument(plan: Plan, failure: AnyProblem) -> Plan | None:
    """Leave out what the image does not know, if it is one of the profile's own arguments and not one of memory."""
    assert isinstance(failure, UnknownArgument)
    unknown = {word.partition("=")[0] for word in failure.arguments.split() if word.startswith("--")}
    kept = tuple(flag for flag in plan.flags if flag.flag not in unknown)
    if not unknown or len(kept) != len(plan.flags) - len(unknown):
        return None
    return _noted(msgspec.structs.replace(plan, flags=kept), failure, "arguments", " ".join(sorted(unknown)), "")


def _segments_then_share(plan: Plan, failure: AnyProblem) -> Plan | None:
    return _with_variable(SEGMENTS)(plan, failure) or _lowered(_share_under_wsl2)(plan, failure)


def _share_under_wsl2(plan: Plan, _: AnyProblem) -> Settings | None:
    return _share(plan, round(plan.settings.utilisation - SHARE_LESS_UNDER_WSL2, 2))


def _share_that_passes(plan: Plan, failure: AnyProblem) -> Settings | None:
    assert isinstance(failure, FreeBelowUtilisation)
    return _share(plan, math.floor(100 * failure.free_gib / failure.total_gib) / 100)


def _share(plan: Plan, passes: float) -> Settings | None:
    """Take a lower share, if the least that is needed is still inside it."""
    if plan.fit is None or passes < LOWEST_UTILISATION or passes >= plan.settings.utilisation:
        return None
    inside = plan.fit.estimate.low_bytes <= plan.fit.budget.total_bytes * passes
    return _with(plan.settings, utilisation=passes) if inside else None


def _shorter(plan: Plan, failure: AnyProblem) -> Settings | None:
    assert isinstance(failure, KvCacheTooSmall)
    if failure.possible_tokens is None:
        return None
    context = math.floor(failure.possible_tokens * POSSIBLE_TOKENS_SHARE / 1024) * 1024
    fewer = SHORTEST_CONTEXT <= context < plan.settings.context
    return _with(plan.settings, context=context) if fewer else None


def _sequences(plan: Plan, failure: AnyProblem) -> Settings | None:
    assert isinstance(failure, StateBlocksTooFew)
    return _with(plan.settings, max_num_seqs=min(plan.settings.max_num_seqs, failure.blocks))


def _smaller_working_set(plan: Plan, failure: AnyProblem) -> Settings | None:
    now = plan.settings
    if now.max_num_batched_tokens > SMALLEST_BATCH:
        return _with(now, max_num_batched_tokens=SMALLEST_BATCH)
    if now.max_num_seqs > 1:
        return _with(now, max_num_seqs=max(1, now.max_num_seqs // 4))
    return _fewer_graphs(plan, failure)


def _fewer_graphs(plan: Plan, _: AnyProblem) -> Settings | None:
    now = plan.settings
    if now.enforce_eager:
        return None
    return _with(now, enforce_eager=True, graph_sizes=()) if now.graph_sizes else _with(now, graph_sizes=SMALL_GRAPHS)


def _in_16_bits(plan: Plan, _: AnyProblem) -> Settings | None:
    return _with(plan.settings, kv_cache_dtype="auto")


_RUNGS: Mapping[LadderStep, Rung] = {
    "lower_utilisation": _lowered(_share_that_passes),
    "shorter_context": _lowered(_shorter),
    "smaller_working_set": _lowered(_smaller_working_set),
    "fewer_graphs": _lowered(_fewer_graphs),
    "fewer_sequences": _lowered(_sequences),
    "cache_in_16_bits": _lowered(_in_16_bits),
    "segments_then_share": _segments_then_share,
    "driver_libraries_first": _with_variable(DRIVER_LIBRARIES),
    "more_patience": _with_variable(READY_PATIENCE),
    "without_argument": _without_argument,
    "once_more": _once_more,
}


def _with(now: Settings, **changes: object) -> Settings:
    return msgspec.structs.replace(now, **changes)


def _difference(old: Settings, new: Settings) -> tuple[str, str, str]:
    before, after = msgspec.structs.asdict(old), msgspec.structs.asdict(new)
    field = next(name for name in after if before[name] != after[name])
    return field, str(before[field]), str(after[field])

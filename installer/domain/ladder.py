"""The ladder: after a failed start, the same plan with one setting lowered, chosen by where it failed.

It only lowers. Below a value that the person chose it needs consent. Source of the rungs: where public runs
failed, and `spike-2026-04-rtx5090`'s three attempts (0.88: no cache; 0.95: gate; 0.94: ready).
"""

from __future__ import annotations

import math

import msgspec

from installer.domain.memory import LOWEST_UTILISATION
from installer.domain.plan import Plan, Refusal, Relaxation
from installer.domain.problems import (
    AnyProblem,
    CudaOutOfMemory,
    FreeBelowUtilisation,
    KvCacheTooSmall,
    NoCacheBlocks,
    PortTaken,
    RelaxRefused,
    StateBlocksTooFew,
)
from installer.domain.settings import Settings

MOST_RETRIES = 3
SHORTEST_CONTEXT = 2048
SMALLEST_BATCH = 2048
SMALL_GRAPHS = (1, 2, 4)
POSSIBLE_TOKENS_SHARE = 0.95
"""vLLM's own estimate of the longest context leaves no room for a run that needs a little more."""


def relax(
    plan: Plan, failure: AnyProblem, *, consent: bool = False, free_ports: tuple[int, ...] = ()
) -> Plan | Refusal:
    """Return the plan with one setting lowered, or the failure itself if no rung is left.

    `consent` allows to go below a value that the person chose; without it that is RelaxRefused. `free_ports` are those
    that nobody listens on now, for a port that somebody took meanwhile.
    """
    if isinstance(failure, PortTaken):
        return _on_another_port(plan, failure, free_ports)
    lowered = _lower(plan, failure)
    if lowered is None or lowered == plan.settings:
        return Refusal(problems=(failure,))
    field, old, new = _difference(plan.settings, lowered)
    if field == "context" and plan.choices.context is not None and not consent:
        return Refusal(problems=(RelaxRefused(field=field, chosen=old, possible=new), failure))
    step = Relaxation(field=field, old=old, new=new, because=failure.kind)
    return msgspec.structs.replace(plan, settings=lowered, relaxed=(*plan.relaxed, step))


def _on_another_port(plan: Plan, taken: PortTaken, free_ports: tuple[int, ...]) -> Plan | Refusal:
    """Move on where somebody was quicker: a port that nobody chose may be exchanged, a chosen one stays."""
    other = next((port for port in free_ports if port != plan.port), None)
    if plan.choices.port is not None or other is None:
        return Refusal(problems=(taken,))
    step = Relaxation(field="port", old=str(plan.port), new=str(other), because=taken.kind)
    return msgspec.structs.replace(plan, port=other, relaxed=(*plan.relaxed, step))


def _lower(plan: Plan, failure: AnyProblem) -> Settings | None:
    now = plan.settings
    match failure:
        case FreeBelowUtilisation(free_gib=free, total_gib=total):
            return _lower_utilisation(plan, math.floor(100 * free / total) / 100)
        case KvCacheTooSmall(possible_tokens=possible):
            return _shorter(now, possible)
        case NoCacheBlocks():
            return _smaller_working_set(now)
        case StateBlocksTooFew(blocks=blocks):
            return _with(now, max_num_seqs=min(now.max_num_seqs, blocks)) if blocks >= 1 else None
        case CudaOutOfMemory(phase="graphs"):
            return _fewer_graphs(now)
        case CudaOutOfMemory(phase="profiling" | "sampler" | "request"):
            return _smaller_working_set(now)
        case _:
            return None


def _lower_utilisation(plan: Plan, passes: float) -> Settings | None:
    """Take the highest share that passes the gate, if the least that is needed is still inside it."""
    if plan.fit is None or passes < LOWEST_UTILISATION or passes >= plan.settings.utilisation:
        return None
    inside = plan.fit.estimate.low_bytes <= plan.fit.budget.total_bytes * passes
    return _with(plan.settings, utilisation=passes) if inside else None


def _shorter(now: Settings, possible_tokens: int | None) -> Settings | None:
    if possible_tokens is None:
        return None
    context = math.floor(possible_tokens * POSSIBLE_TOKENS_SHARE / 1024) * 1024
    return _with(now, context=context) if SHORTEST_CONTEXT <= context < now.context else None


def _smaller_working_set(now: Settings) -> Settings | None:
    if now.max_num_batched_tokens > SMALLEST_BATCH:
        return _with(now, max_num_batched_tokens=SMALLEST_BATCH)
    if now.max_num_seqs > 1:
        return _with(now, max_num_seqs=max(1, now.max_num_seqs // 4))
    return _fewer_graphs(now)


def _fewer_graphs(now: Settings) -> Settings | None:
    if now.enforce_eager:
        return None
    return _with(now, enforce_eager=True, graph_sizes=()) if now.graph_sizes else _with(now, graph_sizes=SMALL_GRAPHS)


def _with(now: Settings, **changes: object) -> Settings:
    return msgspec.structs.replace(now, **changes)


def _difference(old: Settings, new: Settings) -> tuple[str, str, str]:
    before, after = msgspec.structs.asdict(old), msgspec.structs.asdict(new)
    field = next(name for name in after if before[name] != after[name])
    return field, str(before[field]), str(after[field])

"""What a window or a report draws, as values: everything is worked out here, and nothing is said in words."""

from __future__ import annotations

from typing import Literal

import msgspec

from installer.domain import checks
from installer.domain.facts import EngineState, Facts, NvidiaState
from installer.domain.memory import Fit
from installer.domain.problems import AnyProblem, NvidiaToolkitMissing

State = Literal["ok", "problem", "unknown"]
RequirementName = Literal["engine", "compose", "driver", "toolkit"]


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that containers need here. `problem` is why not; `figure` is as it was read."""

    name: RequirementName
    state: State
    figure: str = ""
    problem: AnyProblem | None = None


def requirements(facts: Facts) -> tuple[Requirement, ...]:
    """Return every requirement in the order in which a person can mend it."""
    rows = [_engine(facts), _compose(facts)]
    if facts.nvidia.state is not NvidiaState.NO_DRIVER or facts.nvidia.gpus:
        rows += [_driver(facts), _toolkit(facts)]
    return tuple(rows)


def _row(name: RequirementName, problems: tuple[AnyProblem, ...], figure: str, *, known: bool = True) -> Requirement:
    if problems:
        return Requirement(name=name, state="problem", figure=figure, problem=problems[0])
    return Requirement(name=name, state="ok" if known else "unknown", figure=figure)


def _engine(facts: Facts) -> Requirement:
    engine = facts.engine
    figure = " ".join(part for part in (engine.operating_system, engine.version) if part)
    return _row("engine", checks.engine(facts), figure)


def _compose(facts: Facts) -> Requirement:
    return _row("compose", checks.compose(facts), facts.compose.version)


def _driver(facts: Facts) -> Requirement:
    wrong = tuple(p for p in checks.nvidia(facts) if not isinstance(p, NvidiaToolkitMissing))
    return _row("driver", wrong, facts.nvidia.driver_version or "", known=bool(facts.nvidia.gpus))


def _toolkit(facts: Facts) -> Requirement:
    wrong = tuple(p for p in checks.nvidia(facts) if isinstance(p, NvidiaToolkitMissing))
    runs = facts.engine.state is EngineState.RUNNING
    return _row("toolkit", wrong, "", known=runs and bool(facts.nvidia.gpus))


PartKind = Literal["weights", "kv", "overhead", "hidden", "free"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the card's memory: weights, kv, overhead, hidden or free."""

    kind: PartKind
    size_bytes: int


def parts(fit: Fit) -> tuple[Part, ...]:
    """Return how a profile would divide the card's memory; together they are the card, unless it does not fit."""
    need, room = fit.estimate, fit.budget
    used = need.weights_bytes + need.kv_bytes + need.overhead_high_bytes
    left = max(0, room.total_bytes - room.hidden_bytes - used)
    sizes: tuple[tuple[PartKind, int], ...] = (
        ("weights", need.weights_bytes),
        ("kv", need.kv_bytes),
        ("overhead", need.overhead_high_bytes),
        ("hidden", room.hidden_bytes),
        ("free", left),
    )
    return tuple(Part(kind=kind, size_bytes=size) for kind, size in sizes)

"""The page *Docker* as values: everything that containers with a model need here, and what is known of it."""

from __future__ import annotations

from typing import Literal

import msgspec
from packaging.version import InvalidVersion, Version

from installer.domain import checks
from installer.domain.facts import EngineState, Facts, NvidiaState
from installer.domain.plan import UNPACKED_OVER_COMPRESSED
from installer.domain.problems import AnyProblem, DiskFull, NotEnoughHostMemory, NotWritable, NvidiaToolkitMissing
from installer.steps.known import Flow

RequirementName = Literal["engine", "compose", "driver", "toolkit", "memory", "image_disk", "model_disk", "proxy"]
Weight = Literal["required", "advice"]
State = Literal["ok", "problem", "unknown"]


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is needed here.

    `weight` tells whether nothing runs on the card without it. `state` unknown is inconclusive: it is neither fine nor
    a problem, and shows later. `figure` is a version as it was read; `there_bytes` and `needed_bytes` are of memory or
    disk, None where they are not known.
    """

    name: RequirementName
    weight: Weight
    state: State
    problem: AnyProblem | None = None
    figure: str = ""
    there_bytes: int | None = None
    needed_bytes: int | None = None


def requirements_of(flow: Flow) -> tuple[Requirement, ...]:
    """Return every requirement of the profile in force; without facts there is nothing to say."""
    if flow.facts is None:
        return ()
    if flow.profile is None:
        return requirements(flow.facts)
    profile = flow.registry.profiles[flow.profile]
    model, image = flow.registry.model_of(profile), flow.registry.image_of(profile)
    return requirements(flow.facts, weights_bytes=model.checkpoint_bytes, image_bytes=image.compressed_bytes)


def requirements(facts: Facts, *, weights_bytes: int = 0, image_bytes: int = 0) -> tuple[Requirement, ...]:
    """Return every requirement in the order in which a person can mend it.

    `weights_bytes` and `image_bytes` (compressed) are of the profile that is to run, 0 where none is known yet.
    """
    rows = (_engine(facts), _compose(facts), _driver(facts), _toolkit(facts))
    return (*rows, *_room(facts, weights_bytes, image_bytes), *_proxies(facts, weights_bytes))


def _room(facts: Facts, weights_bytes: int, image_bytes: int) -> tuple[Requirement, ...]:
    """Say what there is of memory and disk; of a Docker that does not answer nothing is known, and it is told so."""
    unpacked, in_volume = UNPACKED_OVER_COMPRESSED * image_bytes, facts.engine.docker_desktop
    folder = () if in_volume else (_model_disk(facts, weights_bytes),)
    if facts.engine.state is not EngineState.RUNNING:
        return folder
    store = _image_disk(facts, unpacked + (weights_bytes if in_volume else 0))
    return (_memory(facts, weights_bytes), store, *folder)


def _engine(facts: Facts) -> Requirement:
    engine = facts.engine
    figure = " ".join(part for part in (engine.operating_system, engine.version) if part)
    return _row("engine", "required", checks.engine(facts), figure=figure)


def _compose(facts: Facts) -> Requirement:
    version = facts.compose.version
    return _row("compose", "required", checks.compose(facts), figure=version, known=_is_version(version))


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _driver(facts: Facts) -> Requirement:
    wrong = tuple(problem for problem in checks.nvidia(facts) if problem.family == "gpu")
    return _row("driver", _weight(facts), wrong, figure=facts.nvidia.driver_version or "")


def _weight(facts: Facts) -> Weight:
    """Without any sign of an NVIDIA card the trial on the processor is what is left, and it needs no driver."""
    return "advice" if facts.nvidia.state in (NvidiaState.NO_DRIVER, NvidiaState.NO_DEVICE) else "required"


def _toolkit(facts: Facts) -> Requirement:
    """Docker Desktop announces nothing: whether a container reaches the card is proved by one, before the download."""
    missing = tuple(problem for problem in checks.nvidia(facts) if isinstance(problem, NvidiaToolkitMissing))
    answers = facts.engine.state is EngineState.RUNNING and bool(facts.nvidia.gpus)
    return _row("toolkit", _weight(facts), missing, known=answers and not facts.engine.docker_desktop)


def _memory(facts: Facts, weights_bytes: int) -> Requirement:
    there = facts.engine.memory_bytes
    said = checks.advice(facts, None, None, weights_bytes)
    short = tuple(problem for problem in said if isinstance(problem, NotEnoughHostMemory))
    needed = weights_bytes + checks.LOADING_NEEDS_BYTES
    return _row("memory", "advice", short, known=there is not None, there_bytes=there, needed_bytes=needed)


def _proxies(facts: Facts, weights_bytes: int) -> tuple[Requirement, ...]:
    """Return a row for everything else that blocks nothing and should be known: that is about proxies."""
    said = checks.advice(facts, None, None, weights_bytes)
    others = (problem for problem in said if not isinstance(problem, NotEnoughHostMemory))
    return tuple(_row("proxy", "advice", (problem,)) for problem in others)


def _image_disk(facts: Facts, needed: int) -> Requirement:
    free = facts.engine.data_root_free_bytes
    full = DiskFull(where=facts.engine.data_root, needed_bytes=needed, free_bytes=free, engine=True)
    problems = (full,) if free is not None and free < needed else ()
    return _row("image_disk", "advice", problems, known=free is not None, there_bytes=free, needed_bytes=needed)


def _model_disk(facts: Facts, needed: int) -> Requirement:
    folder = facts.weights_folder
    problems: tuple[AnyProblem, ...] = ()
    if not folder.writable:
        problems = (NotWritable(path=folder.path),)
    elif folder.free_bytes is not None and folder.free_bytes < needed:
        problems = (DiskFull(where=folder.path, needed_bytes=needed, free_bytes=folder.free_bytes),)
    known = folder.free_bytes is not None
    return _row("model_disk", "advice", problems, known=known, there_bytes=folder.free_bytes, needed_bytes=needed)


def _row(
    name: RequirementName,
    weight: Weight,
    problems: tuple[AnyProblem, ...],
    *,
    known: bool = True,
    figure: str = "",
    there_bytes: int | None = None,
    needed_bytes: int | None = None,
) -> Requirement:
    state: State = "problem" if problems else ("ok" if known else "unknown")
    return Requirement(
        name=name,
        weight=weight,
        state=state,
        problem=problems[0] if problems else None,
        figure=figure,
        there_bytes=there_bytes,
        needed_bytes=needed_bytes,
    )

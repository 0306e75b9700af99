"""Looking after an installation: what runs, start, stop, prove again, remove."""

from __future__ import annotations

import shutil
from typing import Literal

import msgspec

from installer.domain import compose
from installer.domain.calibration import StartFigures
from installer.domain.facts import EngineState
from installer.domain.plan import Plan
from installer.domain.problems import EngineTimedOut, InstallerError
from installer.steps import figures, install, start
from installer.steps.cancel import Cancel
from installer.steps.events import Step
from installer.steps.home import STACKS, Created, Home, StackHome, read_bytes
from installer.steps.job import Job
from installer.steps.ports import ContainerState, Ports
from installer.steps.smoke import SmokeReport

STOPPED_BY_US = (0, 137, 143)
"""How a server ends that was told to: in good order, by SIGKILL, by SIGTERM."""

WAIT_FOR_ENGINE_SECONDS = 300.0
"""After sign-in Docker Desktop takes a minute or two to come up."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What is installed in one stack and how it does. `context` is in tokens, `endpoint` the API's base address."""

    stack: str
    state: Literal["serving", "starting", "stopped", "failed", "missing"]
    profile: str
    model: str
    context: int
    endpoint: str
    image: str
    image_digest: str
    pinned: bool
    compose_file: str
    container: ContainerState | None
    proof: SmokeReport | None
    figures: StartFigures | None


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What an uninstall will remove, with its bytes, and what it keeps."""

    project: str
    image: str
    image_bytes: int
    weights: str
    weights_bytes: int
    files: tuple[str, ...]
    keeps_image: bool
    keeps_weights: bool


def status(job: Job) -> Status:
    """Say what is installed and whether it serves. Raises InstallerError(NotInstalled)."""
    plan = job.home.installed()
    container = start.current_container(plan, job)
    return Status(
        stack=plan.stack,
        state=_state(plan, container, job),
        profile=plan.profile,
        model=plan.weights.repo,
        context=plan.settings.context,
        endpoint=plan.endpoint,
        image=plan.image_reference,
        image_digest=plan.image.index_digest,
        pinned=plan.pinned,
        compose_file=str(job.home.path(compose.file_name(plan.stack))),
        container=container,
        proof=job.home.proof(),
        figures=job.home.figures(),
    )


def _state(
    plan: Plan, container: ContainerState | None, job: Job
) -> Literal["serving", "starting", "stopped", "failed", "missing"]:
    if container is None:
        return "missing"
    if container.status == "running":
        serves = job.ports.server.get(plan.base, "/health", timeout_s=5.0).status == 200
        return "serving" if serves else "starting"
    if container.status == "restarting" or container.exit_code not in STOPPED_BY_US:
        return "failed"
    return "stopped"


def start_again(job: Job) -> Plan:
    """Start what is installed, through the gate, without asking any registry, and wait until it serves."""
    plan = job.home.installed()
    figures.learn(plan, start.start(plan, job), job)
    return plan


def wait_for_engine(ports: Ports, cancel: Cancel) -> None:
    """Wait until the engine answers, as after sign-in. Raises InstallerError(EngineTimedOut)."""
    clock = ports.clock
    began = clock.monotonic()
    while (seen := ports.engine.facts()).state is not EngineState.RUNNING:
        if clock.monotonic() - began > WAIT_FOR_ENGINE_SECONDS:
            raise InstallerError(EngineTimedOut(endpoint=seen.endpoint, seconds=WAIT_FOR_ENGINE_SECONDS))
        clock.wait(2.0, cancel)


def stop(job: Job) -> Plan:
    """Stop the container and leave it; the card's memory is free afterwards."""
    plan = job.home.installed()
    container = start.current_container(plan, job)
    if container is None or container.status not in ("running", "restarting", "paused"):
        job.run.skip(Step.STOP)
        return plan
    file = str(job.home.path(compose.file_name(plan.stack)))
    job.run.step(Step.STOP, lambda _, __: job.ports.stack.stop(file))
    return plan


def prove_again(job: Job) -> SmokeReport:
    """Prove the running server again. Raises InstallerError with what the proof found."""
    plan = job.home.installed()
    there = start.running(plan, job)
    container = start.wait_until_serving(plan, job, job.run.cancel) if there else start.start(plan, job)
    return install.prove(plan, container, job, again=True)


def removal(job: Job, home: Home, *, keep_weights: bool, keep_image: bool) -> Removal:
    """Say what an uninstall would remove: only what this installation made and no other stack uses."""
    plan = job.home.installed()
    created = job.home.created()
    others = tuple(other for _, other in _others(home, job.home))
    made_image = Created(kind="image", name=plan.image.by_digest) in created
    made_weights = any(c.kind == "weights" and c.name.endswith(plan.weights.folder) for c in created)
    shared_image = any(o.image.index_digest == plan.image.index_digest for o in others)
    shared_weights = any(o.weights == plan.weights for o in others)
    keeps_image = keep_image or not made_image or shared_image
    keeps_weights = keep_weights or not made_weights or shared_weights
    return Removal(
        project=plan.project,
        image=plan.image.by_digest,
        image_bytes=plan.image.size_bytes,
        weights=next((c.name for c in created if c.kind == "weights"), plan.weights.folder),
        weights_bytes=plan.weights.size_bytes,
        files=tuple(c.name for c in created if c.kind in ("file", "autostart")),
        keeps_image=keeps_image,
        keeps_weights=keeps_weights,
    )


def _others(home: Home, mine: StackHome) -> tuple[tuple[StackHome, Plan], ...]:
    """Return the other stacks of a home that are installed, with their plans."""
    stacks = [home.stack(name) for name in STACKS if name != mine.name]
    return tuple((stack, plan) for stack in stacks if (plan := stack.plan()) is not None)


def uninstall(job: Job, what: Removal) -> None:
    """Remove containers, volumes, image, weights and files, in that order, so that a run cut short can go on."""
    plan = job.home.installed()
    job.run.step(Step.REMOVE, lambda _, __: _remove(plan, job, what))


def _remove(plan: Plan, job: Job, what: Removal) -> None:
    _hand_over(job)
    file = job.home.path(compose.file_name(plan.stack))
    if read_bytes(file) is not None:
        job.ports.stack.down(str(file), volumes=True)
    if not what.keeps_image:
        job.ports.engine.remove_image(plan.image)
        _remove_unused_helper(plan, job)
    if not what.keeps_weights:
        job.ports.hub.remove(plan.weights, plan.place)
    job.ports.autostart.disable(plan.stack)
    shutil.rmtree(job.home.folder, ignore_errors=True)


def _hand_over(job: Job) -> None:
    """Note what was made here and another stack goes on using as that one's, so that whoever goes last removes it."""
    for stack, plan in _others(job.home.home, job.home):
        for made in job.home.created():
            if _is_used_by(plan, made):
                stack.note_created(made.kind, made.name)


def _is_used_by(plan: Plan, made: Created) -> bool:
    if made.kind == "image":
        return made.name in (plan.image.by_digest, plan.helper.by_digest)
    return made.kind == "weights" and made.name.endswith(plan.weights.folder)


def _remove_unused_helper(plan: Plan, job: Job) -> None:
    helper = Created(kind="image", name=plan.helper.by_digest)
    others = _others(job.home.home, job.home)
    if helper in job.home.created() and not any(_is_used_by(other, helper) for _, other in others):
        job.ports.engine.remove_image(plan.helper)

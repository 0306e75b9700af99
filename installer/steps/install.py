"""The whole story of an installation on one screen: prove the room, fetch, start, prove the answer."""

from __future__ import annotations

import msgspec

from installer.domain import checks
from installer.domain import plan as plans
from installer.domain.ladder import relax
from installer.domain.plan import Plan, Refusal
from installer.domain.problems import AnyProblem, InstallerError, RelaxRefused
from installer.domain.sources import FolderWeights
from installer.steps import figures, smoke, start
from installer.steps.cancel import Cancel
from installer.steps.events import Advice, Proved, Recomputed, Step
from installer.steps.job import Job
from installer.steps.planning import present
from installer.steps.ports import ContainerState, Report
from installer.steps.run import Work
from installer.steps.smoke import SmokeReport


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation ends with: the plan as it runs, and its proof."""

    plan: Plan
    report: SmokeReport


def install(plan: Plan, job: Job) -> Installed:
    """Install a plan. Every step looks first, so that running again is resuming.

    Raises InstallerError with the Problem of the step that failed, and Cancelled. Image and weights stay for the next
    try; only what this run started is taken down. The computer is kept from going to standby meanwhile.
    """
    with job.ports.awake.held():
        return _install(plan, job)


def _install(plan: Plan, job: Job) -> Installed:
    job.home.save_plan(plan)
    start.stop_outdated(plan, job)
    plan = _prove_room(plan, job)
    _fetch(plan, job)
    with start.taken_down_on_cancel(plan, job):
        plan, container = job.run.ladder(
            plan,
            lambda relaxed: start.start(relaxed, job),
            lambda failed, problem: _relax(failed, problem, job),
            Step.START,
        )
        figures.learn(plan, container, job)
        report = prove(plan, container, job)
    _keep_autostart(plan, job)
    return Installed(plan=plan, report=report)


def _relax(plan: Plan, problem: AnyProblem, job: Job) -> Plan | Refusal:
    """Lower one setting; below a value that the person chose only if the person agrees now."""
    relaxed = relax(plan, problem)
    if isinstance(relaxed, Refusal) and isinstance(relaxed.problems[0], RelaxRefused):
        return relax(plan, problem, consent=True) if job.agrees(relaxed.problems[0]) else relaxed
    return relaxed


def _prove_room(plan: Plan, job: Job) -> Plan:
    """Let CUDA itself say what is free, in a container, before anything large is pulled."""
    if start.running(plan, job):
        job.run.skip(Step.PROBE)
        return plan
    return job.run.step(Step.PROBE, lambda _, cancel: _probed(plan, job, cancel))


def _probed(plan: Plan, job: Job, cancel: Cancel) -> Plan:
    job.home.note_created("image", plan.helper.by_digest)
    reading = job.ports.engine.probe(plan.helper, plan.gpu.uuid if plan.gpu else None, cancel)
    again = plans.decide_again(plan, job.facts, job.registry, reading.cuda)
    if isinstance(again, Refusal):
        raise InstallerError(again.problems[0])
    there = present(plan.image, plan.helper, plan.weights, plan.place, job.ports)
    no_room = plans.disk_refusal(plan, job.facts.engine.data_root, reading.data_root_free_bytes, there)
    if no_room:
        raise InstallerError(no_room.problems[0])
    _tell_what_changed(plan, again, job)
    return again


def _tell_what_changed(old: Plan, new: Plan, job: Job) -> None:
    if new.fit and new.settings.utilisation != old.settings.utilisation:
        job.run.notice(
            Step.PROBE,
            Recomputed(
                free_bytes=new.fit.budget.free_bytes,
                total_bytes=new.fit.budget.total_bytes,
                old_utilisation=old.settings.utilisation,
                new_utilisation=new.settings.utilisation,
            ),
        )
    gpu = job.facts.gpu(new.gpu.uuid) if new.gpu else None
    for problem in checks.advice(job.facts, gpu, new.fit.budget if new.fit else None, new.weights_bytes):
        job.run.notice(Step.PROBE, Advice(problem=problem))


def _fetch(plan: Plan, job: Job) -> None:
    """Pull the image and fetch the weights side by side: they share the line, so the total is the longer of the two."""
    missing: list[tuple[Step, Work[None]]] = []
    if job.ports.engine.has_image(plan.image):
        job.run.skip(Step.IMAGE)
    else:
        missing.append((Step.IMAGE, lambda report, cancel: _pull(plan, job, report, cancel)))
    if job.ports.hub.missing_bytes(plan.weights, plan.place) == 0:
        job.run.skip(Step.WEIGHTS)
    else:
        missing.append((Step.WEIGHTS, lambda report, cancel: _fetch_weights(plan, job, report, cancel)))
    if missing:
        job.run.together(*missing)
    if not plan.pinned:
        job.ports.engine.tag(plan.image)


def _pull(plan: Plan, job: Job, report: Report, cancel: Cancel) -> None:
    job.home.note_created("image", plan.image.by_digest)
    job.ports.engine.pull(plan.image, report, cancel)


def _fetch_weights(plan: Plan, job: Job, report: Report, cancel: Cancel) -> None:
    place = plan.place.folder if isinstance(plan.place, FolderWeights) else plan.place.volume
    job.home.note_created("weights", f"{place}/{plan.weights.folder}")
    job.ports.hub.fetch(plan.weights, plan.place, report, cancel)


def _keep_autostart(plan: Plan, job: Job) -> None:
    if plan.choices.autostart:
        job.home.note_created("autostart", job.ports.autostart.enable(plan.stack))
    else:
        job.ports.autostart.disable(plan.stack)


def prove(plan: Plan, container: ContainerState, job: Job, *, again: bool = False) -> SmokeReport:
    """Prove a running container with real requests; a proof of this very start counts unless asked `again`.

    Raises InstallerError with SmokeFailed or NotAnswering; the report is told before.
    """
    last = job.home.proof()
    if last and not again and last.start == _start_of(container):
        job.run.skip(Step.SMOKE)
        job.run.emit(Proved(at=job.ports.clock.now(), report=last))
        return last
    return job.run.step(Step.SMOKE, lambda _, cancel: _proved(plan, container, job, cancel))


def _proved(plan: Plan, container: ContainerState, job: Job, cancel: Cancel) -> SmokeReport:
    target = smoke.Target(
        port=plan.port, model=plan.profile, context=plan.settings.context, thinking_off=plan.thinking_off
    )
    key = start.key_for(plan, job)
    report = smoke.run(target, _start_of(container), job.ports.server, job.ports.clock, key, cancel)
    job.run.emit(Proved(at=report.at, report=report))
    problem = smoke.problem(report)
    if problem:
        raise InstallerError(problem)
    job.home.save_proof(report)
    return report


def _start_of(container: ContainerState) -> smoke.Start:
    return smoke.Start(container=container.id, started_at=container.started_at, fingerprint=container.fingerprint)

"""The whole story of an installation on one screen: prove the room, fetch, start, prove the answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from installer.domain import answers, checks, decoding, remarks, video
from installer.domain import plan as plans
from installer.domain.answers import Answer
from installer.domain.facts import GpuMemory
from installer.domain.ladder import relax
from installer.domain.plan import Plan, Refusal
from installer.domain.problems import AnyProblem, InstallerError, PortTaken, RateLimited, RelaxRefused, Treatment
from installer.domain.sources import FolderWeights
from installer.steps import figures, showing, smoke, start
from installer.steps.cancel import Cancel
from installer.steps.events import Advice, Again, Proved, Recomputed, Step
from installer.steps.job import Job
from installer.steps.planning import present
from installer.steps.ports import ContainerState, Report, ServerAnswer
from installer.steps.run import Work
from installer.steps.smoke import SmokeReport

PULL_TRIES = 3
PULL_WAIT_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 120.0
"""Docker Hub's own limit lasts hours: nobody waits for that in front of a window."""


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
    free_ports = job.ports.machine.free_ports(plan.port + 1, 1) if isinstance(problem, PortTaken) else ()
    relaxed = relax(plan, problem, free_ports=free_ports)
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
    try:
        reading = job.ports.engine.probe(plan.helper, plan.gpu.uuid if plan.gpu else None, cancel)
    except InstallerError as error:
        raise InstallerError(checks.completed(error.problem, job.facts)) from error
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
    said = checks.advice(job.facts, gpu, new.fit.budget if new.fit else None, new.weights_bytes)
    for problem in (*said, *(remark for remark in remarks.all_of(job.facts) if remark.advice)):
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
    _patiently(lambda: job.ports.engine.pull(plan.image, report, cancel), job, cancel)


def _patiently(pull: Callable[[], None], job: Job, cancel: Cancel) -> None:
    """Try again what passes: the engine keeps the layers that it has."""
    for attempt in range(1, PULL_TRIES + 1):
        try:
            return pull()
        except InstallerError as error:
            problem = error.problem
            wait_s = problem.retry_after_s if isinstance(problem, RateLimited) else PULL_WAIT_SECONDS * attempt
            patient = wait_s is not None and wait_s <= LONGEST_WAIT_SECONDS
            if problem.treatment is not Treatment.RETRY or attempt == PULL_TRIES or not patient:
                raise
            job.run.notice(Step.IMAGE, Again(problem=problem, attempt=attempt + 1))
            job.ports.clock.wait(wait_s or 0.0, cancel)
    return None


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
    key = start.key_for(plan, job)

    def why(answer: ServerAnswer) -> AnyProblem | None:
        log = decoding.plain(job.ports.engine.logs(container.id, start.TAIL_LINES))
        said = Answer(status=answer.status, body=answer.body)
        return answers.cause_behind(said, log, job.registry.known_failures(), start.situation_of(plan))

    def clip(asked: smoke.Asked) -> AbstractContextManager[str]:
        media = job.ports.media
        return showing.shown(showing.proof_clip(media), container.id, media, cancel, asked.remarks.append)

    evidence = smoke.Evidence(
        log=lambda: decoding.plain(job.ports.engine.logs(container.id)),
        used_bytes=lambda: _used_bytes(plan, job),
        clip=clip,
    )
    report = smoke.run(
        target_of(plan), _start_of(container), job.ports.server, job.ports.clock, key, cancel, why, evidence=evidence
    )
    job.run.emit(Proved(at=report.at, report=report))
    for remark in report.remarks:
        job.run.notice(Step.SMOKE, Advice(problem=remark))
    problem = smoke.problem(report)
    if problem:
        raise InstallerError(problem)
    job.home.save_proof(report)
    return report


def target_of(plan: Plan) -> smoke.Target:
    """Return where a plan's server is and what the plan claims of it."""
    flags = {flag.flag for flag in plan.arguments}
    fit = plan.fit
    return smoke.Target(
        base=plan.base,
        model=plan.profile,
        context=plan.settings.context,
        thinking_off=plan.thinking_off,
        reasoning="--reasoning-parser" in flags,
        tools="--tool-call-parser" in flags,
        pictures=plan.settings.reads_media,
        video=plan.takes_video,
        chooses_frames=video.may_choose_frames(plan.settings.release, tuple(flags)),
        predicted_bytes=fit.share_bytes + fit.estimate.beside_high_bytes if fit else None,
    )


def _used_bytes(plan: Plan, job: Job) -> int | None:
    """Return what is in use on the plan's card now, by whatever program; None where the driver does not tell."""
    if plan.gpu is None:
        return None
    card = next((gpu for gpu in job.ports.gpus.read().gpus if gpu.uuid == plan.gpu.uuid), None)
    return card.memory.used_bytes if card and isinstance(card.memory, GpuMemory) else None


def _start_of(container: ContainerState) -> smoke.Start:
    return smoke.Start(container=container.id, started_at=container.started_at, fingerprint=container.fingerprint)

"""What a real start told of its memory: read from its log, kept beside the prediction, and learnt for the next plan."""

from __future__ import annotations

from installer.domain.calibration import StartFigures, prediction, read_log, recalibrated
from installer.domain.facts import Calibration
from installer.domain.memory import judge_start
from installer.domain.plan import Plan
from installer.steps.events import Measured, Step
from installer.steps.job import Job
from installer.steps.ports import ContainerState


def learn(plan: Plan, container: ContainerState, job: Job) -> None:
    """Keep what the log of this start tells, tell it, and let later plans for this card profit; once per start.

    Nothing is learnt where there is nothing to compare: no card, a profile that the registry no longer has, or a log
    that does not tell its cache.
    """
    known = job.home.figures()
    if known is not None and known.start == _start_of(container):
        return
    figures = _compared(plan, container, job)
    if figures is None:
        return
    job.home.save_figures(figures)
    _recalibrate(plan, figures, job)
    job.run.notice(Step.START, Measured(predicted=figures.predicted, logged=figures.logged))


def _start_of(container: ContainerState) -> str:
    return f"{container.id} {container.started_at}"


def _compared(plan: Plan, container: ContainerState, job: Job) -> StartFigures | None:
    if plan.fit is None or plan.profile not in job.registry.profiles:
        return None
    logged = read_log(job.ports.engine.logs(container.id).decode(errors="replace"))
    if logged.kv_bytes is None:
        return None
    architecture = job.registry.architecture_of(job.registry.profile(plan.profile))
    fit = judge_start(architecture, plan.weights_bytes, plan.settings, plan.fit.budget)
    predicted = prediction(architecture, plan.settings, fit)
    return StartFigures(start=_start_of(container), predicted=predicted, logged=logged)


def _recalibrate(plan: Plan, figures: StartFigures, job: Job) -> None:
    if plan.gpu is None:
        return
    fresh = Calibration(gpu_uuid=plan.gpu.uuid, wsl2=plan.wsl2, profile=plan.profile)
    all_known = {(c.gpu_uuid, c.wsl2, c.profile): c for c in job.home.home.calibrations()}
    key = (fresh.gpu_uuid, fresh.wsl2, fresh.profile)
    all_known[key] = recalibrated(all_known.get(key, fresh), figures.predicted, figures.logged)
    job.home.home.save_calibrations(tuple(all_known.values()))

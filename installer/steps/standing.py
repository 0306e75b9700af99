"""Whether a page of the wizard lets go, why not, and where something can be done about it."""

from __future__ import annotations

from dataclasses import dataclass

from installer.domain import checks
from installer.domain import plan as plans
from installer.domain.plan import Refusal
from installer.domain.problems import (
    Action,
    AnyProblem,
    DigestGone,
    DiskFull,
    DriverTooOld,
    LicenceNotAccepted,
    NothingFits,
    NotWritable,
    PortTaken,
    RelaxRefused,
)
from installer.steps.bookmark import Page
from installer.steps.known import WANTS_A_TOKEN, Flow, needs_reading, port_taken, token_lacking


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Whether one may go on from a page. Not valid and without a reason means that something is still being read.

    Valid with a reason means that it is good to know and does not stand in the way.
    """

    valid: bool
    reason: AnyProblem | None = None


GO = Standing(valid=True)
WAIT = Standing(valid=False)


def standing(flow: Flow, page: Page | None = None) -> Standing:
    """Say whether a person may go on from a page, the current one by default."""
    match page or flow.page:
        case Page.WELCOME | Page.DONE:
            return GO
        case Page.CARD:
            return _card_stands(flow)
        case Page.DOCKER:
            return _docker_stands(flow)
        case Page.MODEL:
            return _model_stands(flow)
        case Page.VERSION:
            return _version_stands(flow)
        case Page.OPTIONS:
            return _options_stand(flow)
        case Page.SUMMARY:
            return _summary_stands(flow)
        case Page.INSTALLATION:
            return GO if flow.installed else Standing(valid=False, reason=flow.failure)


def _card_stands(flow: Flow) -> Standing:
    """Let go also without a card: the trial on the processor needs none."""
    if flow.facts is None:
        return Standing(valid=False, reason=flow.not_read)
    about_the_card = (problem for problem in checks.nvidia(flow.facts) if problem.family == "gpu")
    return Standing(valid=True, reason=flow.not_read or next(about_the_card, None))


def _docker_stands(flow: Flow) -> Standing:
    if flow.facts is None:
        return WAIT
    return _unless(checks.engine(flow.facts) + checks.compose(flow.facts))


def _model_stands(flow: Flow) -> Standing:
    if flow.facts is None:
        return WAIT
    chosen = flow.offered
    if chosen is None:
        names = ", ".join(gpu.name for gpu in flow.facts.nvidia.gpus)
        return _unless(checks.machine(flow.facts) or (NothingFits(gpu=names),))
    return _unless(but_consent(plans.refusal_of(chosen, flow.registry, flow.choices)))


def _version_stands(flow: Flow) -> Standing:
    if flow.answer is None:
        return Standing(valid=False, reason=flow.not_resolved)
    return _unless(tuple(problem for problem in but_consent(flow.refusal) if isinstance(problem, DriverTooOld)))


def _options_stand(flow: Flow) -> Standing:
    if needs_reading(flow):
        return Standing(valid=False, reason=flow.not_read)
    missing = token_lacking(flow) or port_taken(flow)
    if missing is not None:
        return Standing(valid=False, reason=missing)
    return WAIT if flow.plan is None and flow.refusal is None else _unless(but_consent(flow.refusal))


def _summary_stands(flow: Flow) -> Standing:
    if flow.refusal is not None:
        return _unless(flow.refusal.problems)
    return WAIT if flow.plan is None or needs_reading(flow) else GO


def _unless(problems: tuple[AnyProblem, ...]) -> Standing:
    return Standing(valid=False, reason=problems[0]) if problems else GO


def but_consent(refusal: Refusal | None) -> tuple[AnyProblem, ...]:
    """Return what stands against a plan but consent to a licence, which is given last of all."""
    problems = refusal.problems if refusal else ()
    return tuple(problem for problem in problems if not isinstance(problem, LicenceNotAccepted))


def page_to_mend(flow: Flow, problem: AnyProblem) -> Page | None:
    """Return the earlier page on which a person can do something about a problem, or None."""
    page = _where(problem)
    return page if page in flow.history and flow.page is not Page.DONE else None


def _where(problem: AnyProblem) -> Page | None:
    match problem:
        case LicenceNotAccepted():
            return Page.SUMMARY
        case DiskFull(engine=False) | NotWritable() | PortTaken():
            return Page.OPTIONS
        case _ if isinstance(problem, WANTS_A_TOKEN):
            return Page.OPTIONS
        case DigestGone():
            return Page.VERSION
        case RelaxRefused():
            return Page.MODEL
        case _ if problem.action is Action.CHOOSE_ANOTHER:
            return Page.MODEL
        case _ if problem.action is Action.SIGN_IN:
            return Page.VERSION
        case _:
            return {"gpu": Page.CARD, "docker": Page.DOCKER}.get(problem.family)

"""The wizard without a toolkit: which page, may one go on, and what every choice changes.

A `Flow` is a value; every move returns another one. The window draws it and sends moves; a test does the same without
a window. All judgements are those of the domain: here is only their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from installer import __version__
from installer.domain import checks
from installer.domain import choices as choice_rules
from installer.domain import plan as plans
from installer.domain.choices import Choices
from installer.domain.facts import Facts
from installer.domain.offers import Offer, RoomEnough, RoomTight, RunsWithoutGpu, offer, offers
from installer.domain.plan import Plan, Present, Refusal
from installer.domain.problems import AnyProblem, LicenceNotAccepted
from installer.domain.registry import Registry
from installer.domain.sources import Sources
from installer.steps.bookmark import Bookmark, Page
from installer.steps.install import Installed

PAGES = tuple(Page)


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Everything that the wizard knows. `choices` is the only place of a decision.

    `sources` is what the network said of the chosen profile, `plan` or `refusal` what follows from all of it. `failure`
    is why the last installation ended without success.
    """

    registry: Registry
    choices: Choices
    page: Page = Page.WELCOME
    facts: Facts | None = None
    offers: tuple[Offer, ...] = ()
    sources: Sources | None = None
    present: Present = field(default_factory=Present)
    plan: Plan | None = None
    refusal: Refusal | None = None
    installed: Installed | None = None
    failure: AnyProblem | None = None

    @property
    def offered(self) -> Offer | None:
        """Return the offer of the chosen profile, judged with the chosen context, or None."""
        name = self.choices.profile
        found = next((each for each in self.offers if each.profile == name), None)
        if found is None or self.choices.context in (None, found.context) or self.facts is None:
            return found
        gpu = self.facts.gpu(found.gpu_uuid) if found.gpu_uuid else None
        return offer(self.facts, self.registry, found.profile, gpu, self.choices.context)

    @property
    def recommended(self) -> Offer | None:
        """Return the offer that is recommended here, or None."""
        return next((each for each in self.offers if each.recommended), None)

    @property
    def history(self) -> tuple[Page, ...]:
        """Return the pages behind this one, the first one first."""
        return PAGES[: PAGES.index(self.page)]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Whether one may go on from a page; `problem` is why not, None where something is only still missing."""

    valid: bool
    problem: AnyProblem | None = None


GO = Standing(valid=True)
WAIT = Standing(valid=False)


def standing(flow: Flow, page: Page | None = None) -> Standing:
    """Say whether a person may go on from a page, the current one by default."""
    match page or flow.page:
        case Page.WELCOME:
            return GO
        case Page.CARD:
            return WAIT if flow.facts is None else GO
        case Page.DOCKER:
            return _engine_stands(flow)
        case Page.MODEL:
            return _model_stands(flow)
        case Page.VERSION:
            return _version_stands(flow)
        case Page.OPTIONS:
            return _against(flow, ignore_licence=True)
        case Page.SUMMARY:
            return _against(flow, ignore_licence=False)
        case Page.INSTALLATION:
            return GO if flow.installed else Standing(valid=False, problem=flow.failure)
        case Page.DONE:
            return GO


def _engine_stands(flow: Flow) -> Standing:
    if flow.facts is None:
        return WAIT
    blocking = checks.engine(flow.facts) + checks.compose(flow.facts)
    return Standing(valid=False, problem=blocking[0]) if blocking else GO


def _model_stands(flow: Flow) -> Standing:
    chosen = flow.offered
    if chosen is None:
        return WAIT
    if isinstance(chosen.reason, RoomEnough | RoomTight | RunsWithoutGpu):
        return GO
    return Standing(valid=False, problem=chosen.reason)


def _version_stands(flow: Flow) -> Standing:
    if flow.sources is None:
        return WAIT
    return GO


def _against(flow: Flow, *, ignore_licence: bool) -> Standing:
    if flow.plan is not None:
        return GO
    problems = flow.refusal.problems if flow.refusal else ()
    counted = [each for each in problems if not (ignore_licence and isinstance(each, LicenceNotAccepted))]
    if counted:
        return Standing(valid=False, problem=counted[0])
    return GO if problems else WAIT


def opened(registry: Registry, bookmark: Bookmark | None, choices: Choices) -> Flow:
    """Begin, with what was chosen before if there is something; the page follows once its forerunners stand."""
    if bookmark is None:
        return Flow(registry=registry, choices=choices)
    known = bookmark.choices.profile in registry.profiles
    kept = bookmark.choices if known else msgspec.structs.replace(bookmark.choices, profile=None, context=None)
    return Flow(registry=registry, choices=kept)


def bookmark(flow: Flow) -> Bookmark:
    """Return what has to be kept of a flow."""
    return Bookmark(page=flow.page, choices=flow.choices)


def seen(flow: Flow, facts: Facts) -> Flow:
    """Take in a reading of the machine: everything is judged anew, and a card that is gone is no choice any more."""
    card = flow.choices.gpu_uuid
    choices = flow.choices if card is None or facts.gpu(card) else msgspec.structs.replace(flow.choices, gpu_uuid=None)
    judged = offers(facts, flow.registry, choices.gpu_uuid)
    return _decided(_with_profile(replace(flow, facts=facts, choices=choices, offers=judged, failure=None)))


def chose(flow: Flow, **changes: Any) -> Flow:
    """Change choices; what follows from them is judged anew, and what no longer holds is dropped.

    Raises InstallerError(BadChoice) for a value that cannot be taken; the flow stays as it was.
    """
    choices = msgspec.structs.replace(flow.choices, **changes)
    choice_rules.check(choices)
    if choices == flow.choices:
        return flow
    if choices.profile != flow.choices.profile and "context" not in changes:
        choices = msgspec.structs.replace(choices, context=None)
    changed = replace(flow, choices=choices, failure=None)
    if choices.gpu_uuid != flow.choices.gpu_uuid and flow.facts is not None:
        changed = replace(changed, offers=offers(flow.facts, flow.registry, choices.gpu_uuid))
    return _decided(_with_profile(changed))


def _with_profile(flow: Flow) -> Flow:
    """Choose what is recommended where nothing is chosen: a person need not choose to go on."""
    best = flow.recommended
    if flow.choices.profile is not None or best is None:
        return flow
    return replace(flow, choices=msgspec.structs.replace(flow.choices, profile=best.profile))


def resolved(flow: Flow, sources: Sources, present: Present) -> Flow:
    """Take in what the network told of the chosen profile, and what an earlier run left here."""
    return _decided(replace(flow, sources=sources, present=present, failure=None))


def needs_sources(flow: Flow) -> bool:
    """Say whether the network has to be asked (again) for what is chosen."""
    return flow.choices.profile is not None and not _sources_hold(flow)


def _sources_hold(flow: Flow) -> bool:
    known = flow.sources
    if known is None or known.profile != flow.choices.profile:
        return False
    wanted = choice_rules.pinned_digest(flow.choices)
    return wanted is None or wanted == known.image.index_digest


def _decided(flow: Flow) -> Flow:
    if flow.facts is None or flow.sources is None or not _sources_hold(flow):
        return replace(flow, sources=flow.sources if _sources_hold(flow) else None, plan=None, refusal=None)
    made = plans.decide(
        flow.facts, flow.registry, flow.sources, flow.choices, slipway=__version__, present=flow.present
    )
    if isinstance(made, Refusal):
        return replace(flow, plan=None, refusal=made)
    return replace(flow, plan=made, refusal=None)


def forward(flow: Flow) -> Flow:
    """Go to the next page if this one lets go, otherwise stay."""
    here = PAGES.index(flow.page)
    if not standing(flow).valid or here + 1 == len(PAGES):
        return flow
    return replace(flow, page=PAGES[here + 1])


def back(flow: Flow) -> Flow:
    """Go to the page before; from an installation that ended without success to the summary, from *Done* nowhere."""
    here = PAGES.index(flow.page)
    return flow if here == 0 or flow.page is Page.DONE else replace(flow, page=PAGES[here - 1], failure=None)


def back_to(flow: Flow, page: Page) -> Flow:
    """Go back to an earlier page; a later one is only reached by going on."""
    return replace(flow, page=page, failure=None) if page in flow.history and flow.page is not Page.DONE else flow


def on_to(flow: Flow, page: Page) -> Flow:
    """Go on as far as the pages let go, at most to this one: that is how a bookmark is opened again.

    The installation itself is never entered that way: its button is the person's to press.
    """
    goal = min(PAGES.index(page), PAGES.index(Page.SUMMARY))
    while PAGES.index(flow.page) < goal and standing(flow).valid:
        flow = forward(flow)
    return flow


def ended(flow: Flow, installed: Installed) -> Flow:
    """Take in that the installation is done and proved."""
    return replace(flow, installed=installed, plan=installed.plan, failure=None, page=Page.DONE)


def failed(flow: Flow, problem: AnyProblem) -> Flow:
    """Take in that the installation ended without success; choices, image and weights stay for the next try."""
    return replace(flow, failure=problem)

"""The wizard without a toolkit: what comes in, what a person does, and what follows from it.

A `Flow` is a value and every move returns another one. The window draws it and sends moves; a test does the same
without a window. All judgements are those of the domain: here is their order and the guard.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from installer import __version__
from installer.domain import choices as choice_rules
from installer.domain import plan as plans
from installer.domain.choices import PIN_CURRENT, Choices
from installer.domain.facts import Facts
from installer.domain.offers import offers
from installer.domain.plan import Plan, Refusal
from installer.domain.problems import AnyProblem
from installer.domain.registry import Registry
from installer.domain.sources import Sources
from installer.steps.bookmark import PAGES, Bookmark, Page
from installer.steps.home import full_path
from installer.steps.install import Installed
from installer.steps.known import (
    WANTS_A_TOKEN,
    Flow,
    asks_for_token,
    needs_port_look,
    needs_reading,
    needs_sources,
    token_lacking,
    weights_folder,
)
from installer.steps.lifecycle import Status
from installer.steps.planning import without_ours
from installer.steps.resolving import Answer
from installer.steps.standing import GO, WAIT, Standing, page_to_mend, standing

__all__ = [
    "GO",
    "PAGES",
    "WAIT",
    "Answer",
    "Bookmark",
    "Flow",
    "Page",
    "Standing",
    "asks_for_token",
    "back",
    "bookmark",
    "change_model",
    "chose",
    "ended",
    "failed",
    "forward",
    "found",
    "go_back_to",
    "needs_port_look",
    "needs_reading",
    "needs_sources",
    "opened",
    "page_to_mend",
    "pinned",
    "port_looked_at",
    "removed",
    "resolved",
    "seen",
    "standing",
    "to_overview",
    "token_known",
    "token_lacking",
    "unread",
    "unresolved",
    "weights_folder",
]

_FIXED = (Page.INSTALLATION, Page.DONE)
"""What is being installed is what the summary showed: from there on nothing is decided any more."""


def opened(
    registry: Registry,
    bookmark: Bookmark | None = None,
    choices: Choices | None = None,
    *,
    default_folder: str | None = None,
) -> Flow:
    """Begin: with given choices, or where a bookmark was left as soon as what it takes was read.

    A profile of the bookmark that the registry no longer has is no choice any more. Raises InstallerError(UnknownName)
    where the given choices name one.
    """
    kept = bookmark.choices if bookmark else Choices()
    if choices is not None:
        if choices.profile is not None:
            registry.profile(choices.profile)
        choices = msgspec.structs.replace(choices, language=choices.language or kept.language)
        return Flow(registry=registry, choices=choices, default_folder=default_folder)
    goal = bookmark.page if bookmark and bookmark.page not in (Page.WELCOME, Page.DONE) else None
    return Flow(registry=registry, choices=_known(kept, registry), goal=goal, default_folder=default_folder)


def bookmark(flow: Flow) -> Bookmark:
    """Return what has to be kept of a flow: at the overview and after an installation only the language."""
    if flow.at_overview or flow.page is Page.DONE:
        return Bookmark(page=Page.WELCOME, choices=Choices(language=flow.choices.language))
    return Bookmark(page=flow.goal or flow.page, choices=flow.choices)


def seen(flow: Flow, facts: Facts, running: Plan | None = None) -> Flow:
    """Take in a reading of the machine: everything is judged anew, and a card that is gone is no choice any more.

    `running` is the plan of our own server if it runs: another model is judged as if it were stopped, which it will be.
    """
    if flow.page in _FIXED:
        return flow
    free = without_ours(facts, running) if running else facts
    return _to_goal(_judged_anew(replace(flow, facts=free, running=running, not_read=None)))


def unread(flow: Flow, problem: AnyProblem) -> Flow:
    """Take in that the machine could not be read; what was read before stays."""
    return replace(flow, not_read=problem)


def resolved(flow: Flow, answer: Answer) -> Flow:
    """Take in what the network told; an answer to another question than the current one changes nothing."""
    if flow.page in _FIXED or not _answers(answer, flow):
        return flow
    return _to_goal(_decided(replace(flow, answer=answer, not_resolved=None)))


def unresolved(flow: Flow, problem: AnyProblem) -> Flow:
    """Take in that the network could not be asked."""
    return replace(flow, not_resolved=problem, goal=None)


def ended(flow: Flow, installed: Installed) -> Flow:
    """Take in that the installation is done and proved."""
    if flow.page is not Page.INSTALLATION:
        return flow
    return replace(flow, installed=installed, plan=installed.plan, failure=None, page=Page.DONE)


def failed(flow: Flow, problem: AnyProblem) -> Flow:
    """Take in that the installation ended without success; choices, image and weights stay for the next try."""
    return replace(flow, failure=problem) if flow.page is Page.INSTALLATION else flow


def chose(flow: Flow, **changes: Any) -> Flow:
    """Change choices; what follows from them is decided anew, and what no longer holds is dropped.

    A context that was chosen names its profile too. At the overview, during an installation and after it only the
    language changes. Raises InstallerError(BadChoice or UnknownName) for a value that cannot be taken.
    """
    choices = msgspec.structs.replace(flow.choices, **changes)
    choice_rules.check(choices)
    if choices.folder is not None:
        full_path(choices.folder)
    if choices.profile is not None:
        flow.registry.profile(choices.profile)
    if flow.page in _FIXED or flow.at_overview:
        return replace(flow, choices=msgspec.structs.replace(flow.choices, language=choices.language))
    if choices.context is not None and choices.profile is None:
        choices = msgspec.structs.replace(choices, profile=flow.profile)
    if choices == flow.choices:
        return flow
    changed = replace(flow, choices=choices, not_resolved=None)
    if choices.gpu_uuid != flow.choices.gpu_uuid:
        changed = _offering(replace(changed, card_gone=False))
    if changed.profile != flow.profile:
        changed = replace(changed, choices=_for_profile(changed, changes))
    return _decided(changed if set(changes) == {"language"} else replace(changed, goal=None))


def port_looked_at(flow: Flow, port: int, owner: str | None) -> Flow:
    """Take in who has a port that a person named, None for nobody."""
    return _decided(replace(flow, port_seen=(port, owner)))


def token_known(flow: Flow, known: bool) -> Flow:
    """Take in whether a token for the hub is at hand; a question that the hub refused may be asked again."""
    refused = isinstance(flow.not_resolved, WANTS_A_TOKEN)
    return replace(flow, has_token=known, not_resolved=None if known and refused else flow.not_resolved)


def forward(flow: Flow) -> Flow:
    """Go to the next page if this one lets go, otherwise stay. Who goes on from a recommended model has chosen it."""
    if flow.at_overview or flow.page is Page.DONE or not standing(flow).valid:
        return flow
    if flow.page is Page.CARD:
        flow = replace(flow, card_gone=False)
    if flow.page is Page.MODEL:
        flow = replace(flow, choices=msgspec.structs.replace(flow.choices, profile=flow.profile))
    return replace(flow, page=PAGES[len(flow.history) + 1], goal=None)


def back(flow: Flow) -> Flow:
    """Go to the page before; from the first one to the overview if something is installed, from *Done* nowhere."""
    return go_back_to(flow, flow.history[-1]) if flow.history else to_overview(flow)


def go_back_to(flow: Flow, page: Page) -> Flow:
    """Go back to an earlier page; a later one is only reached by going on."""
    if flow.at_overview or flow.page is Page.DONE or page not in flow.history:
        return flow
    return replace(flow, page=page, goal=None, failure=None)


def found(flow: Flow, status: Status) -> Flow:
    """Take in what is installed and how it does. It opens the overview, unless a person is in the wizard already."""
    begins = flow.page is Page.WELCOME and flow.goal is None
    return replace(flow, status=status, at_overview=flow.at_overview or (flow.status is None and begins))


def to_overview(flow: Flow) -> Flow:
    """Leave the wizard for what is installed; the choices made in it are dropped. Without one the flow stays."""
    if flow.status is None:
        return flow
    return replace(_afresh(flow), status=flow.status, at_overview=True, facts=flow.facts, running=flow.running)


def change_model(flow: Flow, plan: Plan) -> Flow:
    """Leave the overview for the page *Model*, with what is installed as the choice."""
    folder = plan.choices.folder if plan.choices.folder != flow.default_folder else None
    choices = msgspec.structs.replace(plan.choices, folder=folder, language=flow.choices.language)
    again = replace(to_overview(flow), choices=_known(choices, flow.registry), at_overview=False, goal=Page.MODEL)
    return _to_goal(_judged_anew(again))


def pinned(flow: Flow, plan: Plan) -> Flow:
    """Take in that what was installed just now names its image in another way."""
    if flow.installed is None:
        return flow
    return replace(flow, installed=msgspec.structs.replace(flow.installed, plan=plan))


def removed(flow: Flow) -> Flow:
    """Take in that nothing is installed any more: begin at the first page; the machine has to be read again."""
    return _afresh(flow)


def _afresh(flow: Flow) -> Flow:
    choices = Choices(language=flow.choices.language)
    return Flow(registry=flow.registry, choices=choices, default_folder=flow.default_folder, has_token=flow.has_token)


def _judged_anew(flow: Flow) -> Flow:
    """Judge everything from the facts. A chosen card that is not there any more leads back to its page."""
    card = flow.choices.gpu_uuid
    if card is not None and flow.facts is not None and flow.facts.gpu(card) is None:
        choices = msgspec.structs.replace(flow.choices, gpu_uuid=None)
        flow = replace(flow, choices=choices, card_gone=True, page=_at_most_card(flow.page))
        flow = replace(flow, goal=_at_most_card(flow.goal) if flow.goal else None)
    return _decided(_offering(flow))


def _at_most_card(page: Page) -> Page:
    return min(page, Page.CARD, key=PAGES.index)


def _offering(flow: Flow) -> Flow:
    if flow.facts is None:
        return flow
    return replace(flow, offers=offers(flow.facts, flow.registry, flow.choices.gpu_uuid))


def _decided(flow: Flow) -> Flow:
    """Decide anew from all that is known, and return to the first page that no longer lets go."""
    if flow.answer is not None and not _answers(flow.answer, flow):
        flow = replace(flow, answer=None)
    flow = replace(flow, plan=None, refusal=None)
    if flow.facts is not None and flow.answer is not None:
        flow = _with_plan(flow, flow.facts, flow.answer.sources)
    stuck = next((page for page in flow.history if not standing(flow, page).valid), None)
    return flow if stuck is None else replace(flow, page=stuck)


def _answers(answer: Answer, flow: Flow) -> bool:
    return answer.sources.profile == flow.profile and answer.pin == choice_rules.pinned_digest(flow.choices)


def _with_plan(flow: Flow, facts: Facts, sources: Sources) -> Flow:
    """Make the plan. Where only consent is missing it is made as well, to be shown, and holds no consent."""
    choices = _carried_out(flow, sources)
    made = _made(flow, facts, sources, choices)
    if isinstance(made, Plan):
        return replace(flow, plan=made)
    licence = flow.registry.licence_of(flow.registry.profile(sources.profile)).id
    agreed = msgspec.structs.replace(choices, accept_licenses=(*choices.accept_licenses, licence))
    shown = _made(flow, facts, sources, agreed)
    plan = msgspec.structs.replace(shown, choices=choices) if isinstance(shown, Plan) else None
    return replace(flow, plan=plan, refusal=made)


def _made(flow: Flow, facts: Facts, sources: Sources, choices: Choices) -> Plan | Refusal:
    return plans.decide(facts, flow.registry, sources, choices, slipway=__version__, present=flow.present)


def _carried_out(flow: Flow, sources: Sources) -> Choices:
    """Name what Slipway decided, so that what is installed is what the summary showed.

    A port that nobody chose stays open: the installation may take the next one where somebody was quicker.
    """
    offered = flow.offered
    return msgspec.structs.replace(
        flow.choices,
        profile=sources.profile,
        gpu_uuid=offered.gpu_uuid if offered else flow.choices.gpu_uuid,
        folder=weights_folder(flow),
    )


def _known(choices: Choices, registry: Registry) -> Choices:
    """Return choices without a profile that the registry does not have."""
    if choices.profile is None or choices.profile in registry.profiles:
        return choices
    return msgspec.structs.replace(choices, profile=None, **_blank(choices))


def _for_profile(flow: Flow, changes: dict[str, Any]) -> Choices:
    """Return the choices without what belonged to the profile before, except what was chosen just now."""
    name = flow.profile
    stack = flow.registry.profiles[name].stack if name else flow.choices.stack
    stale = {field: value for field, value in _blank(flow.choices).items() if field not in changes}
    return msgspec.structs.replace(flow.choices, stack=stack, **stale)


def _blank(choices: Choices) -> dict[str, Any]:
    """Return the choices that belong to one profile at their beginning; of a pin only whether there is one stays."""
    pin = PIN_CURRENT if choices.docker_image_pin_digest else ""
    return {"context": None, "references": None, "vram_budget_gib": None, "docker_image_pin_digest": pin}


def _to_goal(flow: Flow) -> Flow:
    """Go on towards the bookmark as far as the pages let go, and forget it where one says why not."""
    while flow.goal is not None and flow.page is not flow.goal:
        here = standing(flow)
        if not here.valid:
            return flow if here.reason is None else replace(flow, goal=None)
        flow = replace(flow, page=PAGES[len(flow.history) + 1])
    return replace(flow, goal=None)

"""What the wizard knows, as one value, and what still has to be found out."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from installer.domain import plan as plans
from installer.domain.choices import Choices
from installer.domain.facts import Facts
from installer.domain.memory import Verdict
from installer.domain.offers import Offer, offer, with_levers
from installer.domain.plan import Plan, Present, Refusal
from installer.domain.problems import AccessNotGranted, AnyProblem, BadToken, PortTaken, TokenNeeded
from installer.domain.registry import Registry
from installer.domain.sources import Sources
from installer.steps.bookmark import PAGES, Page
from installer.steps.home import full_path
from installer.steps.install import Installed
from installer.steps.lifecycle import Status
from installer.steps.resolving import Answer

WANTS_A_TOKEN = TokenNeeded | AccessNotGranted | BadToken
"""What the hub refuses until there is a token that may read the model."""

_ASKS_THE_NETWORK = (Page.VERSION, Page.OPTIONS, Page.SUMMARY)


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Everything that the wizard knows. `choices` is the only place of a decision.

    `goal` is the page to which a bookmark leads, as long as what it takes is still being read. `default_folder` is
    where weights lie unless `choices.folder` says otherwise. `running` is the plan of a server of ours that holds
    memory now and makes room for another: `facts` are without it. `card_gone` says that the chosen card is not there
    any more, until a person has seen it. `answer` is what the network said of the profile.
    `port_seen` is the port that was looked at last, and what the machine said of its owner.
    `has_token` says that a token for the hub is at hand; the token itself is in no flow.
    `plan` is there also where nothing but consent to a licence is missing; `refusal` names it then.

    `not_read`, `not_resolved` and `failure` are why the last reading, question to the network and installation ended
    without success. `status` is what is installed; `at_overview` says that it is shown in place of the wizard.
    """

    registry: Registry
    choices: Choices
    page: Page = Page.WELCOME
    goal: Page | None = None
    default_folder: str | None = None
    facts: Facts | None = None
    running: Plan | None = None
    card_gone: bool = False
    offers: tuple[Offer, ...] = ()
    port_seen: tuple[int, str | None] | None = None
    has_token: bool = False
    answer: Answer | None = None
    plan: Plan | None = None
    refusal: Refusal | None = None
    installed: Installed | None = None
    not_read: AnyProblem | None = None
    not_resolved: AnyProblem | None = None
    failure: AnyProblem | None = None
    status: Status | None = None
    at_overview: bool = False

    @property
    def history(self) -> tuple[Page, ...]:
        """Return the pages behind this one, the first one first: *back* takes the last of them."""
        return PAGES[: PAGES.index(self.page)]

    @property
    def recommended(self) -> Offer | None:
        """Return the best offer that fits and may be recommended for the chosen stack, or None."""
        best = next((each for each in self.offers if each.recommended), None)
        return best if best and self.registry.profiles[best.profile].stack == self.choices.stack else None

    @property
    def profile(self) -> str | None:
        """Return the profile that was chosen, or the recommended one: nobody has to choose to go on."""
        best = self.recommended
        return self.choices.profile or (best.profile if best else None)

    @property
    def offered(self) -> Offer | None:
        """Return the offer of the profile in force, judged with the chosen context and the hub's own sizes."""
        found = next((each for each in self.offers if each.profile == self.profile), None)
        if found is None or (self.choices.context is None and self.sources is None):
            return found
        return judged(self, found, self.choices.context)

    @property
    def sources(self) -> Sources | None:
        """Return what the network said of the profile in force, or None."""
        return self.answer.sources if self.answer else None

    @property
    def present(self) -> Present:
        """Return what is here already; of weights only what lies where they will be looked for."""
        if self.answer is None or self.facts is None:
            return Present()
        if plans.place_of(self.facts, self.answer.sources) == self.answer.place:
            return self.answer.present
        return Present(image=self.answer.present.image)


def needs_port_look(flow: Flow) -> bool:
    """Say whether a port that a person named has still to be looked at; one that Slipway proposes was free."""
    port = flow.choices.port
    asked_for = flow.facts is not None and flow.page in (Page.OPTIONS, Page.SUMMARY) and port is not None
    return asked_for and (flow.port_seen is None or flow.port_seen[0] != port)


def port_taken(flow: Flow) -> PortTaken | None:
    """Return who has the port that a person named; our own server leaves it before another one starts."""
    if flow.port_seen is None or flow.port_seen[0] != flow.choices.port:
        return None
    port, owner = flow.port_seen
    ours = flow.running is not None and flow.running.port == port
    return None if owner is None or ours else PortTaken(port=port, owner=owner)


def asks_for_token(flow: Flow) -> bool:
    """Say whether a token for the hub is of use: what is to be fetched is gated, or the hub refused for want of one."""
    refused = (flow.not_resolved, flow.failure)
    return _is_gated(flow) or any(isinstance(each, WANTS_A_TOKEN) for each in refused)


def token_lacking(flow: Flow) -> TokenNeeded | None:
    """Return why a gated model cannot be fetched, None where a token is at hand or everything is here already."""
    if flow.sources is None or flow.has_token or not _is_gated(flow):
        return None
    return TokenNeeded(repo=flow.sources.weights.repo, had_token=False, gated=True)


def _is_gated(flow: Flow) -> bool:
    if flow.sources is None or not flow.sources.weights.gated:
        return False
    return flow.present.weights_bytes < flow.sources.weights.size_bytes


def judged(flow: Flow, offered: Offer, context: int | None) -> Offer:
    """Judge an offer anew with another context in tokens, on the same card; None is the profile's own."""
    if flow.facts is None:
        return offered
    gpu = flow.facts.gpu(offered.gpu_uuid) if offered.gpu_uuid else None
    weights = flow.sources.weights if flow.sources and flow.sources.profile == offered.profile else None
    again = offer(flow.facts, flow.registry, offered.profile, gpu, context, weights)
    recommended = offered.recommended and again.verdict is Verdict.FITS
    return msgspec.structs.replace(with_levers(again, flow.facts, flow.registry), recommended=recommended)


def weights_folder(flow: Flow) -> str | None:
    """Return the folder for the weights: the chosen one, or the one that is used otherwise."""
    chosen = flow.choices.folder
    return full_path(chosen) if chosen else flow.default_folder


def needs_reading(flow: Flow) -> bool:
    """Say whether the machine has to be read: never yet, or the room in another folder is asked for now."""
    if flow.facts is None:
        return True
    folder = weights_folder(flow)
    return folder is not None and folder != flow.facts.weights_folder.path


def needs_sources(flow: Flow) -> bool:
    """Say whether the network has to be asked now. Not again by itself where it could not be asked."""
    if flow.page not in _ASKS_THE_NETWORK or flow.profile is None or flow.facts is None or flow.not_resolved:
        return False
    return flow.answer is None or plans.place_of(flow.facts, flow.answer.sources) != flow.answer.place

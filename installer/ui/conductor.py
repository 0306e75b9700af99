"""The conductor: holds the wizard's flow, lets the steps work for it, tells the pages. It decides nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
from PySide6.QtCore import Signal

from installer import doors
from installer.domain import choices as choice_files
from installer.domain import compose
from installer.domain.choices import Choices
from installer.domain.facts import Nvidia
from installer.domain.plan import Plan
from installer.domain.problems import AnyProblem, InstallerError
from installer.domain.sources import WeightsSource
from installer.steps import flow as flows
from installer.steps import install as installing
from installer.steps import resolving, speed
from installer.steps.bookmark import Bookmark, Page
from installer.steps.cancel import Cancel
from installer.steps.flow import Answer, Flow
from installer.steps.home import read_bytes
from installer.steps.install import Installed
from installer.steps.lifecycle import Status
from installer.steps.planning import plan_to_install
from installer.steps.speed import Estimate
from installer.text import Language, Text
from installer.ui.keeper import Keeper, Look
from installer.ui.options import Options
from installer.ui.workroom import Workroom, problem_of


class Opening(NamedTuple):
    """What is known when the window has looked around for the first time."""

    flow: Flow
    look: Look


class Conductor(Workroom):
    """Everything that the pages share. Each method returns at once; what comes of it is told by a signal."""

    flow_changed = Signal()

    def __init__(self, options: Options, text: Text) -> None:
        super().__init__(options, text)
        self.flow: Flow | None = None
        self.keeper = Keeper(self)
        self.keeper.looked.connect(self._take_look)
        self.keeper.removed.connect(self._take_removed)
        self.keeper.pinned.connect(self._take_pin)
        self._forward_once_read = self._looking = False
        self._language_chosen: Language | None = None
        self._kept: Bookmark | None = None
        self._to_keep: Bookmark | None = None
        self._keeping = False
        self._measured: WeightsSource | None = None
        self._expected: Estimate | None = None
        self._line = Cancel()
        self._port_asked: int | None = None
        self.closing.connect(self._line.set)

    @property
    def status(self) -> Status | None:
        """Return what the overview shows, None while the wizard is shown."""
        return self.flow.status if self.flow and self.flow.at_overview else None

    @property
    def keeps_up(self) -> bool:
        """Say whether where the wizard is has been written down."""
        return not self._keeping

    # What the pages ask for

    def open(self) -> None:
        """Read registry, earlier choices and the machine; an installation that is there is looked at as well."""
        self.work("reading", self._opened, self._take_opening)

    def look_again(self) -> None:
        """Read the machine again; where opening has failed, open again."""
        flow = self.flow
        if flow is None:
            self.open()
        else:
            self.work("reading", lambda: self._looked(flow), self._take_look, self._fail(flows.unread))

    def choose(self, **changes: Any) -> None:
        """Change choices; what follows is told. A value that cannot be taken becomes the problem to show."""
        try:
            self._set(flows.chose(self._known, **changes))
        except InstallerError as error:
            self.show_problem(error.problem)

    def look_at_cards(self) -> None:
        """Read the graphics cards alone, as for a live bar; nothing is said where that fails.

        A card that was asleep would be kept awake by it and is left alone.
        """
        if self.busy or self._looking or self.flow is None or self.flow.facts is None:
            return
        known = self.flow.facts
        if any(gpu.asleep for gpu in known.nvidia.gpus):
            return
        self._looking = True

        def take(nvidia: Nvidia) -> None:
            self._looking = False
            if not self.busy and self.flow is not None and self.flow.facts is known:
                self._set(flows.seen(self.flow, msgspec.structs.replace(known, nvidia=nvidia), self.flow.running))

        def give_up(_: BaseException) -> None:
            self._looking = False

        self.bridge.run(self.ports.gpus.read, take, give_up)

    def compose_on_disk(self, plan: Plan) -> bytes | None:
        """Return the compose file that is there already, or None."""
        return read_bytes(self.home.stack(plan.stack).path(compose.file_name(plan.stack)))

    def resolve(self) -> None:
        """Ask registry and hub about the profile in force."""
        flow = self._known

        def take(answer: Answer) -> None:
            self._set(flows.resolved(self._known, answer))

        self.work("resolving", lambda: self._asked(flow), take, self._fail(flows.unresolved))

    def expected(self, plan: Plan) -> Estimate | None:
        """Return how long a download will take; None while the line is being measured, and where it cannot be."""
        if self._measured != plan.weights:
            self._measured, self._expected = plan.weights, None
            self.bridge.run(lambda: self._measure(plan), lambda told: self._take_estimate(plan, told), _quiet)
        return self._expected

    def _measure(self, plan: Plan) -> Estimate | None:
        return speed.estimate(plan, self.ports, self._line)

    def _take_estimate(self, plan: Plan, told: Estimate | None) -> None:
        if self._measured == plan.weights and told is not None:
            self._expected = told
            self.flow_changed.emit()

    def forward(self) -> None:
        """Go on; from the first page as soon as the machine was read."""
        if self.flow is None:
            self._forward_once_read = True
            return
        self._set(flows.forward(self._known))

    def look_at_port(self) -> None:
        """Find out who has the port that a person named; nothing is said where that fails."""
        port = self._known.choices.port
        if port is None or port == self._port_asked:
            return
        self._port_asked = port

        def take(owner: str | None) -> None:
            self._port_asked = None
            self._set(flows.port_looked_at(self._known, port, owner))

        self.bridge.run(lambda: self.ports.machine.port_owner(port), take, _quiet)

    def use_token(self, token: str) -> None:
        """Use this token for the hub, and ask again what was refused without it; one that cannot be one is told."""
        try:
            super().use_token(token)
        except InstallerError as error:
            self.show_problem(error.problem)
            return
        if self.flow is not None:
            self._set(flows.token_known(self.flow, self.secrets.hf_token is not None))

    def back(self) -> None:
        """Go back one page."""
        if self.flow is not None and not self.busy:
            self._set(flows.back(self.flow))

    def back_to(self, page: Page) -> None:
        """Go back to an earlier page."""
        self._set(flows.go_back_to(self._known, page))

    def install(self) -> None:
        """Install what the summary showed, or try it again."""
        flow = flows.forward(self._known)
        if flow.page is not Page.INSTALLATION or flow.plan is None:
            return
        choices = flow.plan.choices
        self._set(replace(flow, failure=None))
        self.work("installing", lambda: self._installed(choices), self._take_installed, self._fail(flows.failed))

    def to_overview(self) -> None:
        """Leave the wizard for what is installed, as it does now."""

        def take(look: Look) -> None:
            self._take_look(look)
            self._set(flows.to_overview(self._known))

        flow = self._known
        self.work("reading", lambda: self._looked(flow), take)

    def change_model(self) -> None:
        """Leave the overview for the wizard, with what is installed as the choice."""
        self._set(flows.change_model(self._known, self.stack.installed()))

    def set_language(self, language: Language) -> None:
        """Speak another language from now on, and remember it."""
        self._language_chosen = language
        self.text = Text(language)
        if self.flow is not None:
            self.choose(language=language)
        self.text_changed.emit()

    def close(self, wait_seconds: float) -> bool:
        """Cancel what goes on and wait for it; say whether everything has ended."""
        self.cancel()
        self.closing.emit()
        ended = self.bridge.wait(wait_seconds)
        self.bridge.close()
        if self._to_keep is not None:
            with contextlib.suppress(InstallerError):  # nobody is there any more to be told
                self.home.save_bookmark(self._to_keep)
        return ended

    # What the threads do

    def _opened(self) -> Opening:
        registry = self.enter()
        answers = self.options.answers
        choices = choice_files.from_text(doors.read_text(answers), answers) if answers else None
        flow = flows.opened(registry, self.home.bookmark(), choices, default_folder=str(self.home.models))
        flow = flows.token_known(flow, self.secrets.hf_token is not None)
        return Opening(flow, self._looked(flow))

    def _looked(self, flow: Flow) -> Look:
        return self.keeper.look(flow.choices.folder)

    def _asked(self, flow: Flow) -> Answer:
        assert flow.facts is not None
        assert flow.profile is not None
        return resolving.ask(flow.facts, flow.registry, flow.profile, flow.choices, self.ports, self.home)

    def _installed(self, choices: Choices) -> Installed:
        with self.home.held():
            job, plan = plan_to_install(choices, self.job(self.facts(choices.folder)), self.home)
            job.home.begin_record()
            return job.run.settle(lambda: installing.install(plan, job))

    # What comes back from them

    @property
    def _known(self) -> Flow:
        assert self.flow is not None
        return self.flow

    def _fail(self, tell: Callable[[Flow, AnyProblem], Flow]) -> Callable[[AnyProblem], None]:
        def take(problem: AnyProblem) -> None:
            self.flow = tell(self._known, problem)

        return take

    def _set(self, flow: Flow) -> None:
        """Take a flow as the one in force, keep where it is, and find out what it needs now."""
        self.flow = flow
        self.problem = None
        self._keep(flows.bookmark(flow))
        self.flow_changed.emit()
        if flows.needs_reading(flow):
            self.look_again()
        elif flows.needs_sources(flow):
            self.resolve()
        if flows.needs_port_look(flow):
            self.look_at_port()

    def _keep(self, bookmark: Bookmark) -> None:
        """Have a bookmark written on a thread: a disk may take its time. The newest one is written last."""
        if bookmark == self._kept:
            return
        self._kept = self._to_keep = bookmark
        if not self._keeping:
            self._keep_newest()

    def _keep_newest(self) -> None:
        newest, self._to_keep = self._to_keep, None
        self._keeping = newest is not None
        if newest is not None:
            self.bridge.run(lambda: self.home.save_bookmark(newest), lambda _: self._keep_newest(), self._not_kept)

    def _not_kept(self, error: BaseException) -> None:
        self._keep_newest()
        self.show_problem(problem_of(error))

    def _take_opening(self, told: Opening) -> None:
        flow = told.flow
        self._kept = flows.bookmark(flow)
        if self._language_chosen is not None:
            flow = flows.chose(flow, language=self._language_chosen)
        kept = flow.choices.language
        if kept and self.options.language is None and kept != self.text.language:
            self.text = Text(kept)
            self.text_changed.emit()
        self.flow = flow
        self._take_look(told.look)
        may_go_on = self.problem is None and not self._known.at_overview
        if self._forward_once_read and may_go_on and self._known.page is Page.WELCOME:
            self.forward()

    def _take_look(self, look: Look) -> None:
        flow = self._known
        if look.status is not None:
            flow = flows.found(flow, look.status)
        elif flow.at_overview and look.problem is None:
            flow = flows.removed(flow)
        self._set(flows.seen(flow, look.facts, look.running))
        if look.problem is not None:
            self.show_problem(look.problem)

    def _take_installed(self, installed: Installed) -> None:
        self._set(flows.ended(self._known, installed))

    def _take_pin(self, plan: Plan | None) -> None:
        """Show the pin as it is now, also where it could not be changed."""
        if plan is not None:
            self.flow = flows.pinned(self._known, plan)
        self.flow_changed.emit()

    def _take_removed(self) -> None:
        self._set(flows.removed(self._known))


def _quiet(_: BaseException) -> None:
    """Say nothing: a line that cannot be measured shows when something is fetched."""

"""The conductor: holds the flow, lets the steps work on threads, tells the pages what changed. It decides nothing."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import msgspec
from PySide6.QtCore import QObject, Signal

from installer import doors
from installer.domain import choices as choice_files
from installer.domain import compose
from installer.domain import plan as plans
from installer.domain.calibration import StartFigures
from installer.domain.choices import Choices
from installer.domain.facts import Facts, Nvidia
from installer.domain.plan import Plan, Present
from installer.domain.problems import AnyProblem, Bug, Cancelled, InstallerError, Interrupted, RelaxRefused
from installer.domain.registry import Registry
from installer.domain.sources import Sources
from installer.steps import flow as flows
from installer.steps import install as installing
from installer.steps import lifecycle, read, start
from installer.steps.bookmark import Bookmark, Page
from installer.steps.cancel import Cancel
from installer.steps.events import Event
from installer.steps.flow import Flow
from installer.steps.home import Home, StackHome, read_bytes
from installer.steps.install import Installed
from installer.steps.job import Job, Secrets
from installer.steps.lifecycle import Removal, Status
from installer.steps.planning import plan_to_install, present, without_ours
from installer.steps.ports import Ports
from installer.steps.run import Run
from installer.text import Language, Text
from installer.ui.bridge import Bridge
from installer.ui.options import Options

T = TypeVar("T")

LOG_LINES = 400
RUNS = ("serving", "starting")


class Opening(NamedTuple):
    """What is known when the window has looked around for the first time; `problem` keeps the overview from opening."""

    registry: Registry
    bookmark: Bookmark | None
    choices: Choices
    facts: Facts
    status: Status | None
    problem: AnyProblem | None


class Conductor(QObject):
    """Everything that the pages share. Each method returns at once; what comes of it is told by a signal."""

    flow_changed = Signal()
    text_changed = Signal()
    busy_changed = Signal()
    status_changed = Signal()
    event_told = Signal(object)
    question = Signal(object)
    log_told = Signal(str)

    def __init__(self, options: Options, text: Text) -> None:
        super().__init__()
        self.options = options
        self.text = text
        self.bridge = Bridge()
        rehearses = options.dry_run and not options.home
        self._rehearsal = TemporaryDirectory(prefix="slipway-dry-run-") if rehearses else None
        self.home: Home = Home(Path(self._rehearsal.name)) if self._rehearsal else doors.home(options.home)
        self.secrets = Secrets()
        self.flow: Flow | None = None
        self.status: Status | None = None
        self.removal: Removal | None = None
        self.problem: AnyProblem | None = None
        self.busy = ""
        self._forward_once_read = self._looking = False
        self._must_open_again = True
        self._ours: Plan | None = None
        self._recorded: Facts | None = None
        self._ports: Ports | None = None
        self._cancel = Cancel()
        self._answer: queue.SimpleQueue[bool] = queue.SimpleQueue()

    # What the pages ask for

    def open(self) -> None:
        """Read registry, earlier choices and the machine; an installation that is there is looked at as well."""
        self._work("reading", self._opened, self._take_opening)

    def look_again(self) -> None:
        """Read the machine again; where opening has failed, open again."""
        if self._must_open_again:
            self.open()
        else:
            self._work("reading", self._facts, lambda facts: self._set(flows.seen(self._known, self._judged(facts))))

    def choose(self, **changes: Any) -> None:
        """Change choices; what follows is told. A value that cannot be taken becomes the problem to show."""
        try:
            self._set(flows.chose(self._known, **changes))
        except InstallerError as error:
            self.show_problem(error.problem)

    def look_at_cards(self) -> None:
        """Read the graphics cards alone, as for a live bar; nothing is said where that fails."""
        if self.busy or self._looking or self.flow is None or self.flow.facts is None:
            return
        known = self.flow.facts
        self._looking = True

        def take(nvidia: Nvidia) -> None:
            self._looking = False
            if not self.busy and self.flow is not None and self.flow.facts is known:
                self._set(flows.seen(self.flow, self._judged(msgspec.structs.replace(known, nvidia=nvidia))))

        def give_up(_: BaseException) -> None:
            self._looking = False

        self.bridge.run(self._live.gpus.read, take, give_up)

    def choose_folder(self, folder: str | None) -> None:
        """Keep the models elsewhere; how much room there is has to be read."""
        self.choose(folder=folder)
        self.look_again()

    def use_api_key(self, key: str) -> None:
        """Use this key for the server; "" has one made."""
        self.secrets = replace(self.secrets, api_key=key.strip() or None)

    def use_token(self, token: str) -> None:
        """Use this token for the hub; a rehearsal asks no hub and keeps its world."""
        if token.strip() in ("", self.secrets.hf_token):
            return
        self.secrets = replace(self.secrets, hf_token=token.strip())
        if not self.options.dry_run:
            self._ports = doors.real(self.secrets)

    def compose_preview(self, plan: Plan) -> str:
        """Return the compose file of a plan, or what changes where there is one already."""
        rendered = compose.render(plan)
        old = read_bytes(self.home.stack(plan.stack).path(rendered.name))
        return rendered.text if old is None or old == rendered.text.encode() else start.difference(old, rendered.text)

    def api_key(self, plan: Plan) -> str | None:
        """Return the API key of an installation from the file that holds it, None where the server asks for none."""
        text = read_bytes(self.home.stack(plan.stack).path(compose.env_name(plan.stack)))
        return compose.key_from_env(text.decode(errors="replace")) if plan.needs_key and text else None

    def installed_key(self) -> str | None:
        """Return the API key of what is installed."""
        plan = self._stack.plan()
        return self.api_key(plan) if plan else None

    def figures(self) -> StartFigures | None:
        """Return what the last start told of its memory."""
        return self._stack.figures()

    def read_log(self) -> None:
        """Read the end of the server's log; it is told by `log_told`."""

        def log() -> str:
            found = start.current_container(self._stack.installed(), self._job(facts=self._known.facts))
            return self._live.engine.logs(found.id, LOG_LINES).decode(errors="replace") if found else ""

        self.bridge.run(log, self.log_told.emit, lambda error: self.show_problem(problem_of(error)))

    def resolve(self) -> None:
        """Ask registry and hub about the chosen profile."""
        flow = self._known

        def take(told: tuple[Sources, Present]) -> None:
            self._set(flows.resolved(self._known, *told))

        self._work("resolving", lambda: self._resolved(flow), take)

    def forward(self) -> None:
        """Go on, and do what the next page needs; from the first page as soon as the machine was read."""
        if self.flow is None:
            self._forward_once_read = True
            return
        self._set(flows.forward(self._known))
        if self._known.page in (Page.VERSION, Page.OPTIONS, Page.SUMMARY) and flows.needs_sources(self._known):
            self.resolve()

    def back(self) -> None:
        """Go back one page."""
        self._set(flows.back(self._known))

    def back_to(self, page: Page) -> None:
        """Go back to an earlier page."""
        self._set(flows.back_to(self._known, page))

    def install(self) -> None:
        """Install what was planned."""
        flow = self._known
        self._set(replace(flow, page=Page.INSTALLATION, failure=None))
        self._work("installing", lambda: self._installed(flow), self._take_installed)

    def cancel(self) -> None:
        """End the work that is going on."""
        self._cancel.set()
        self._answer.put(False)

    def answer(self, agreed: bool) -> None:
        """Answer the question that was asked last."""
        self._answer.put(agreed)

    def look_after(self) -> None:
        """Read how the installation does."""
        self._work("reading", self._status_now, self._take_status)

    def start_stack(self) -> None:
        """Start what is installed."""
        self._work("starting", lambda: self._held(lifecycle.start_again), lambda _: self.look_after())

    def stop_stack(self) -> None:
        """Stop what is installed and free the card."""
        self._work("stopping", lambda: self._held(lifecycle.stop), lambda _: self.look_after())

    def prove_again(self) -> None:
        """Prove the running server again."""
        self._work("proving", lambda: self._held(lifecycle.prove_again), lambda _: self.look_after())

    def ask_removal(self, *, keep_weights: bool, keep_image: bool) -> None:
        """Work out what an uninstall would remove."""

        def removal() -> Removal:
            return lifecycle.removal(self._job(), self.home, keep_weights=keep_weights, keep_image=keep_image)

        def take(found: Removal) -> None:
            self.removal = found
            self.status_changed.emit()

        self._work("reading", removal, take)

    def uninstall(self, *, keep_weights: bool, keep_image: bool) -> None:
        """Remove everything but what shall be kept: what was shown may be older than the last tick."""

        def remove(job: Job) -> None:
            what = lifecycle.removal(job, self.home, keep_weights=keep_weights, keep_image=keep_image)
            lifecycle.uninstall(job, what)

        self._work("removing", lambda: self._held(remove), self._take_removed)

    def change_model(self) -> None:
        """Leave the overview for the wizard, with what is installed as the choice."""
        plan, runs = self._stack.installed(), self.status is not None and self.status.state in RUNS
        self._ours = plan if runs else None
        self.status = None
        flow = flows.chose(replace(self._known, installed=None, page=Page.WELCOME), profile=plan.profile, context=None)
        if flow.facts is not None:
            flow = flows.seen(flow, self._judged(flow.facts))
        self._set(flows.on_to(flow, Page.MODEL))
        self.status_changed.emit()

    def set_language(self, language: Language) -> None:
        """Speak another language from now on, and remember it."""
        self.text = Text(language)
        if self.flow is not None:
            self.choose(language=language)
        self.text_changed.emit()

    def close(self, wait_seconds: float) -> bool:
        """Cancel what goes on and wait for it; say whether everything has ended."""
        self.cancel()
        ended = self.bridge.wait(wait_seconds)
        self.bridge.close()
        return ended

    # What the threads do

    def _opened(self) -> Opening:
        registry = doors.registry(self.options.registry, self.home).registry
        self._recorded = doors.machine(self.options.machine) if self.options.machine else None
        self.secrets = doors.secrets(None, None, ask_store=True)
        self._ports = self._doors(registry)
        answers = self.options.answers
        choices = choice_files.from_text(doors.read_text(answers), answers) if answers else Choices()
        bookmark = None if answers else self.home.bookmark()
        facts = self._facts()
        try:
            status, problem = self._installed_already(registry, facts), None
        except InstallerError as error:  # such as an engine that is down: the wizard opens and says so
            status, problem = None, error.problem
        return Opening(registry, bookmark, choices, facts, status, problem)

    def _doors(self, registry: Registry) -> Ports:
        if not self.options.dry_run:
            return doors.real(self.secrets)
        recorded = self._recorded or read.facts(doors.real(self.secrets), str(self.home.models))
        return doors.dry_run(recorded, registry, self.options.speed, self.options.fail)

    def _facts(self) -> Facts:
        return read.facts(self._live, self._weights_folder, self.home.calibrations())

    @property
    def _weights_folder(self) -> str:
        return self.home.weights_folder(self.flow.choices.folder if self.flow else None)

    @property
    def _live(self) -> Ports:
        assert self._ports is not None
        return self._ports

    @property
    def _known(self) -> Flow:
        assert self.flow is not None
        return self.flow

    def _installed_already(self, registry: Registry, facts: Facts) -> Status | None:
        if self._stack.plan() is None or self._stack.proof() is None:
            return None
        return lifecycle.status(self._job(registry, facts))

    def _judged(self, facts: Facts) -> Facts:
        """Return the machine as other models are judged on it: as if our own server were stopped."""
        return without_ours(facts, self._ours) if self._ours else facts

    @property
    def _stack(self) -> StackHome:
        """Return the stack that the window is about; the other one is not served yet."""
        return self.home.stack("chat")

    def _resolved(self, flow: Flow) -> tuple[Sources, Present]:
        assert flow.facts is not None
        assert flow.choices.profile is not None
        sources = read.sources(flow.facts, flow.registry, flow.choices.profile, flow.choices, self._live, self.home)
        place = plans.place_of(flow.facts, sources)
        return sources, present(sources.image, sources.helper, sources.weights, place, self._live)

    def _installed(self, flow: Flow) -> Installed:
        choices = msgspec.structs.replace(flow.choices, folder=self._weights_folder)
        with self.home.held():
            job, plan = plan_to_install(choices, self._job(), self.home)
            job.home.begin_record()
            return job.run.settle(lambda: installing.install(plan, job))

    def _status_now(self) -> Status:
        return lifecycle.status(self._job())

    def _held(self, work: Callable[[Job], T]) -> T:
        self._stack.installed()
        with self.home.held():
            job = self._job()
            return job.run.settle(lambda: work(job))

    def _job(self, registry: Registry | None = None, facts: Facts | None = None) -> Job:
        stack = self._stack

        def emit(event: Event) -> None:
            stack.append(event)
            self.bridge.tell(lambda: self.event_told.emit(event))

        return Job(
            ports=self._live,
            run=Run(emit, self._cancel, self._live.clock),
            home=stack,
            registry=registry or self._known.registry,
            facts=facts or self._facts(),
            secrets=self.secrets,
            agrees=self._agrees,
        )

    def _agrees(self, problem: RelaxRefused) -> bool:
        """Ask the person, from a thread that waits for the answer."""
        self.bridge.tell(lambda: self.question.emit(problem))
        return self._answer.get()

    # What comes back from them

    def _work(self, busy: str, work: Callable[[], T], done: Callable[[T], None]) -> None:
        if self.busy:
            return
        self._cancel, self._answer = Cancel(), queue.SimpleQueue()  # an answer that came too late answers nothing
        self.problem = None
        self._set_busy(busy)

        def ended(result: T) -> None:
            self._set_busy("")
            done(result)

        self.bridge.run(work, ended, self._failed)

    def _failed(self, error: BaseException) -> None:
        was, self.busy = self.busy, ""
        problem = problem_of(error)
        if was == "installing" and self.flow is not None:
            self.flow = flows.failed(self.flow, problem)
        self._set_busy("")
        self.show_problem(problem)

    def show_problem(self, problem: AnyProblem) -> None:
        """Show a problem on the current page."""
        self.problem = problem
        self.flow_changed.emit()

    def _set(self, flow: Flow) -> None:
        moved = self.flow is None or flows.bookmark(flow) != flows.bookmark(self.flow)
        self.flow = flow
        self.problem = None
        if moved and flow.page is not Page.DONE and not self.status:
            self.home.save_bookmark(flows.bookmark(flow))
        self.flow_changed.emit()

    def _set_busy(self, busy: str) -> None:
        self.busy = busy
        self.busy_changed.emit()

    def _take_opening(self, told: Opening) -> None:
        registry, bookmark, choices, facts, status, problem = told
        self._must_open_again = problem is not None
        self.status = status
        kept = bookmark.choices.language if bookmark else choices.language
        flow = flows.seen(flows.opened(registry, bookmark, choices), facts)
        if kept and self.options.language is None and kept != self.text.language:
            self.text = Text(kept)
            self.text_changed.emit()
        if bookmark is not None and status is None:
            flow = flows.on_to(flow, min(bookmark.page, Page.MODEL, key=flows.PAGES.index))
        self._set(flow)
        self.status_changed.emit()
        if problem is not None:
            self.show_problem(problem)
        elif self._forward_once_read and status is None and flow.page is Page.WELCOME:
            self.forward()

    def _take_installed(self, installed: Installed) -> None:
        self._ours = None
        self.home.forget_bookmark()
        self._set(flows.ended(self._known, installed))

    def _take_status(self, status: Status) -> None:
        self.status = status
        self.status_changed.emit()

    def _take_removed(self, _: object) -> None:
        self.status = self.removal = self._ours = None
        self._set(replace(self._known, page=Page.WELCOME, installed=None))
        self.status_changed.emit()
        self.look_again()


def problem_of(error: BaseException) -> AnyProblem:
    """Return what to show for anything that was raised; a fault of ours is named as one."""
    if isinstance(error, InstallerError):
        return error.problem
    if isinstance(error, Cancelled):
        return Interrupted()
    return Bug.of(error)

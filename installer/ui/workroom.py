"""The workroom: what everything in the window shares: language, doors, home, and one piece of work at a time."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from installer import doors
from installer.domain.facts import Facts
from installer.domain.hub_token import clean_token
from installer.domain.problems import AnyProblem, Bug, Cancelled, InstallerError, Interrupted, RelaxRefused
from installer.domain.registry import Registry
from installer.steps import read
from installer.steps.cancel import Cancel
from installer.steps.events import Event
from installer.steps.home import Home, StackHome
from installer.steps.job import Job, Secrets
from installer.steps.ports import Ports
from installer.steps.run import Run
from installer.text import Text
from installer.ui.bridge import Bridge
from installer.ui.options import Options

T = TypeVar("T")


class Workroom(QObject):
    """Lets the steps work on threads, one piece at a time. What comes of it is told by signals and by `done`."""

    text_changed = Signal()
    busy_changed = Signal()
    problem_changed = Signal()
    event_told = Signal(object)
    closing = Signal()
    question = Signal(object)

    def __init__(self, options: Options, text: Text) -> None:
        super().__init__()
        self.options = options
        self.text = text
        self.bridge = Bridge()
        rehearses = options.dry_run and not options.home
        self._rehearsal = TemporaryDirectory(prefix="slipway-dry-run-") if rehearses else None
        self.home: Home = Home(Path(self._rehearsal.name)) if self._rehearsal else doors.home(options.home)
        self.secrets = Secrets()
        self.problem: AnyProblem | None = None
        self.busy = ""
        self._recorded: Facts | None = None
        self._registry: Registry | None = None
        self._ports: Ports | None = None
        self._cancel = Cancel()
        self._answer: queue.SimpleQueue[bool] = queue.SimpleQueue()

    @property
    def stack(self) -> StackHome:
        """Return the stack that the window is about; the other one is not served yet."""
        return self.home.stack("chat")

    @property
    def ports(self) -> Ports:
        """Return the doors to the world, which `enter` opened."""
        assert self._ports is not None
        return self._ports

    def enter(self) -> Registry:
        """Read the registry and open the doors. Raises InstallerError; to be called on a thread."""
        self._registry = doors.registry(self.options.registry, self.home).registry
        self._recorded = doors.machine(self.options.machine) if self.options.machine else None
        self.secrets = doors.secrets(None, None, ask_store=True)
        self._ports = self._doors(self._registry)
        return self._registry

    def _doors(self, registry: Registry) -> Ports:
        if not self.options.dry_run:
            return doors.real(self.secrets)
        recorded = self._recorded or read.facts(doors.real(self.secrets), str(self.home.models))
        return doors.dry_run(recorded, registry, self.options.speed, self.options.fail)

    def use_api_key(self, key: str) -> None:
        """Use this key for the server; "" has one made."""
        self.secrets = replace(self.secrets, api_key=key.strip() or None)

    def use_token(self, token: str) -> None:
        """Use this token for the hub; a rehearsal asks no hub and keeps its world. Raises InstallerError(BadToken)."""
        clean = clean_token(token)
        if clean in (None, self.secrets.hf_token):
            return
        self.secrets = replace(self.secrets, hf_token=clean)
        if not self.options.dry_run:
            self._ports = doors.real(self.secrets)

    def keep_token(self) -> None:
        """Keep the token in the system's store; a rehearsal keeps nothing. To be called on a thread.

        Raises InstallerError(BadToken, NoTokenStore).
        """
        if not self.options.dry_run:
            doors.store_token(self.secrets.hf_token or "")

    def forget_token(self) -> None:
        """Remove the token from the system's store. To be called on a thread. Raises InstallerError(NoTokenStore)."""
        if not self.options.dry_run:
            doors.forget_token()

    def work(
        self,
        busy: str,
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[AnyProblem], object] | None = None,
    ) -> None:
        """Do something on a thread, unless something is being done already; a failure is shown as a problem."""
        if self.busy:
            return
        self._cancel, self._answer = Cancel(), queue.SimpleQueue()  # an answer that came too late answers nothing
        self.problem = None
        self._set_busy(busy)

        def ended(result: T) -> None:
            self._set_busy("")
            done(result)

        def broke(error: BaseException) -> None:
            self.busy = ""
            problem = problem_of(error)
            if failed is not None:
                failed(problem)
            self.busy_changed.emit()
            self.show_problem(problem)

        self.bridge.run(work, ended, broke)

    def facts(self, folder: str | None) -> Facts:
        """Read the machine, and the room in the folder that a person named for weights; to be called on a thread."""
        return read.facts(self.ports, self.home.weights_folder(folder), self.home.calibrations())

    def job(self, facts: Facts) -> Job:
        """Return what a use case needs on this machine."""
        stack, registry = self.stack, self._registry
        assert registry is not None

        def emit(event: Event) -> None:
            stack.append(event)
            self.bridge.tell(lambda: self.event_told.emit(event))

        return Job(
            ports=self.ports,
            run=Run(emit, self._cancel, self.ports.clock),
            home=stack,
            registry=registry,
            facts=facts,
            secrets=self.secrets,
            agrees=self._agrees,
        )

    def _agrees(self, problem: RelaxRefused) -> bool:
        """Ask the person, from a thread that waits for the answer."""
        self.bridge.tell(lambda: self.question.emit(problem))
        return self._answer.get()

    def cancel(self) -> None:
        """End the work that is going on."""
        self._cancel.set()
        self._answer.put(False)

    def answer(self, agreed: bool) -> None:
        """Answer the question that was asked last."""
        self._answer.put(agreed)

    def show_problem(self, problem: AnyProblem) -> None:
        """Show a problem on the current page."""
        self.problem = problem
        self.problem_changed.emit()

    def _set_busy(self, busy: str) -> None:
        self.busy = busy
        self.busy_changed.emit()


def problem_of(error: BaseException) -> AnyProblem:
    """Return what to show for anything that was raised; a fault of ours is named as one."""
    if isinstance(error, InstallerError):
        return error.problem
    if isinstance(error, Cancelled):
        return Interrupted()
    return Bug.of(error)

"""The keeper: looks after what is installed: how it does, start, stop, prove again, remove, its log and its key."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from PySide6.QtCore import QObject, Signal

from installer import doors
from installer.domain import compose
from installer.domain.calibration import StartFigures
from installer.domain.facts import EngineState, Facts
from installer.domain.plan import Plan
from installer.domain.problems import AnyProblem, InstallerError
from installer.steps import bundle, lifecycle, pin, report, start
from installer.steps.home import read_bytes
from installer.steps.job import Job
from installer.steps.lifecycle import Removal, Status
from installer.ui.workroom import Workroom, problem_of

LOG_LINES = 400
T = TypeVar("T")
RUNS = ("serving", "starting")


class Look(NamedTuple):
    """One look at machine and installation.

    `running` is the plan of a server of ours that holds memory now. `problem` is why the installation could not be
    looked at, such as an engine that is down.
    """

    facts: Facts
    running: Plan | None = None
    status: Status | None = None
    problem: AnyProblem | None = None


class Keeper(QObject):
    """Each method returns at once; how the installation does afterwards is told by `looked` or `removed`."""

    looked = Signal(object)
    removed = Signal()
    removal_changed = Signal()
    log_told = Signal(str)
    report_saved = Signal(str)
    bundle_saved = Signal(str)
    pinned = Signal(object)

    def __init__(self, room: Workroom) -> None:
        super().__init__()
        self._room = room
        self.removal: Removal | None = None

    def look(self, folder: str | None) -> Look:
        """Look at the machine and at what is installed; to be called on a thread."""
        facts = self._room.facts(folder)
        try:
            return self._with_installed(facts)
        except InstallerError as error:
            return Look(facts, problem=error.problem)

    def _with_installed(self, facts: Facts) -> Look:
        stack = self._room.stack
        plan = stack.plan()
        if plan is None:
            return Look(facts)
        job = self._room.job(facts)
        status = lifecycle.status(job) if stack.proof() is not None else None
        return Look(facts, running=plan if _runs(plan, job) else None, status=status)

    def look_after(self) -> None:
        """Look how the installation does."""
        self._room.work("reading", lambda: self.look(self._folder), self.looked.emit)

    def start(self) -> None:
        """Start what is installed."""
        self._work("starting", lifecycle.start_again)

    def stop(self) -> None:
        """Stop what is installed and free the card."""
        self._work("stopping", lifecycle.stop)

    def prove_again(self) -> None:
        """Prove the running server again."""
        self._work("proving", lifecycle.prove_again)

    def set_pin(self, pinned: bool) -> None:
        """Name the image by its digest or by its tag from now on; `pinned` tells the plan as it is then."""
        change: Callable[[Job], Plan] = pin.pin if pinned else pin.unpin

        def take(plan: Plan) -> None:
            self.pinned.emit(plan)
            self.look_after()

        self._room.work("pinning", lambda: self._held(change), take, lambda _: self.pinned.emit(None))

    def ask_removal(self, *, keep_weights: bool, keep_image: bool) -> None:
        """Work out what an uninstall would remove."""

        def removal() -> Removal:
            return lifecycle.removal(self._job(), self._room.home, keep_weights=keep_weights, keep_image=keep_image)

        def take(found: Removal) -> None:
            self.removal = found
            self.removal_changed.emit()

        self._room.work("reading", removal, take)

    def uninstall(self, *, keep_weights: bool, keep_image: bool) -> None:
        """Remove everything but what shall be kept: what was shown may be older than the last tick."""

        def remove(job: Job) -> None:
            what = lifecycle.removal(job, self._room.home, keep_weights=keep_weights, keep_image=keep_image)
            lifecycle.uninstall(job, what)

        def take(_: object) -> None:
            self.removal = None
            self.removed.emit()

        self._room.work("removing", lambda: self._held(remove), take)

    def read_log(self) -> None:
        """Read the end of the server's log; it is told by `log_told`."""

        def log() -> str:
            found = start.current_container(self._room.stack.installed(), self._job())
            return self._room.ports.engine.logs(found.id, LOG_LINES).decode(errors="replace") if found else ""

        self._room.bridge.run(log, self.log_told.emit, lambda error: self._room.show_problem(problem_of(error)))

    def save_report(self, path: str) -> None:
        """Write what runs and how it was proved into a file; `report_saved` tells which."""
        stack, text = self._room.stack, self._room.text

        def save() -> str:
            facts = self._room.facts(self._folder)
            return str(report.save(path, text.report(report.of(stack, doors.now(), facts))))

        self._room.bridge.run(save, self.report_saved.emit, lambda error: self._room.show_problem(problem_of(error)))

    def save_bundle(self, path: str) -> None:
        """Pack what somebody needs who looks into a failure; `bundle_saved` tells where it is."""
        room = self._room

        def save() -> str:
            return str(bundle.save(path, bundle.files(room.home, room.facts(self._folder), doors.now())))

        room.bridge.run(save, self.bundle_saved.emit, lambda error: room.show_problem(problem_of(error)))

    def api_key(self, plan: Plan) -> str | None:
        """Return the API key of an installation from the file that holds it, None where the server asks for none."""
        text = read_bytes(self._room.home.stack(plan.stack).path(compose.env_name(plan.stack)))
        return compose.key_from_env(text.decode(errors="replace")) if plan.needs_key and text else None

    def installed_key(self) -> str | None:
        """Return the API key of what is installed."""
        plan = self._room.stack.plan()
        return self.api_key(plan) if plan else None

    def figures(self) -> StartFigures | None:
        """Return what the last start told of its memory."""
        return self._room.stack.figures()

    def _work(self, busy: str, work: Callable[[Job], object]) -> None:
        self._room.work(busy, lambda: self._held(work), lambda _: self.look_after())

    def _held(self, work: Callable[[Job], T]) -> T:
        self._room.stack.installed()
        with self._room.home.held():
            job = self._job()
            return job.run.settle(lambda: work(job))

    def _job(self) -> Job:
        return self._room.job(self._room.facts(self._folder))

    @property
    def _folder(self) -> str | None:
        plan = self._room.stack.plan()
        return plan.choices.folder if plan else None


def _runs(plan: Plan, job: Job) -> bool:
    if job.facts.engine.state is not EngineState.RUNNING:
        return False
    container = start.current_container(plan, job)
    return container is not None and container.status == "running"

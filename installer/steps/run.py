"""A run: steps that tell what they do, one after the other or two side by side, and a ladder of retries."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from installer.domain.ladder import MOST_RETRIES
from installer.domain.plan import Plan, Refusal
from installer.domain.problems import AnyProblem, Bug, Cancelled, InstallerError, Interrupted
from installer.steps.cancel import Cancel
from installer.steps.events import (
    Event,
    Failed,
    Finished,
    Note,
    Notice,
    Progress,
    Relaxed,
    Settled,
    Skipped,
    Started,
    Step,
)
from installer.steps.ports import Clock, Report

T = TypeVar("T")

PROGRESS_EVERY_SECONDS = 0.1
"""Faster than this nobody sees it, and a pull would send thousands."""

Emit = Callable[[Event], None]
Work = Callable[[Report, Cancel], T]


class Run:
    """One run of a use case. `emit` is called from the run's own threads, one at a time."""

    def __init__(self, emit: Emit, cancel: Cancel, clock: Clock) -> None:
        self._emit_unlocked = emit
        self._lock = threading.RLock()
        self.cancel = cancel
        self.clock = clock
        self._began = clock.monotonic()

    def emit(self, event: Event) -> None:
        """Tell one event."""
        with self._lock:
            self._emit_unlocked(event)

    def notice(self, step: Step, note: Note) -> None:
        """Tell something that a person should read."""
        self.emit(Notice(at=self.clock.now(), step=step, notice=note))

    def skip(self, step: Step) -> None:
        """Tell that a step's result is there already."""
        self.emit(Skipped(at=self.clock.now(), step=step))

    def step(self, step: Step, work: Work[T], *, cancel: Cancel | None = None) -> T:
        """Do one step and tell of it; a failure is told and raised again."""
        token = cancel or self.cancel
        token.check()
        began = self.clock.monotonic()
        self.emit(Started(at=self.clock.now(), step=step))
        try:
            result = work(self._throttled(step), token)
            token.check()
        except InstallerError as error:
            self.emit(Failed(at=self.clock.now(), step=step, problem=error.problem))
            raise
        self.emit(Finished(at=self.clock.now(), step=step, seconds=round(self.clock.monotonic() - began, 3)))
        return result

    def together(self, first: tuple[Step, Work[T]], *others: tuple[Step, Work[T]]) -> tuple[T, ...]:
        """Do steps side by side; when one fails the others are cancelled, and the first failure is raised."""
        token = self.cancel.child()
        pairs = (first, *others)
        with ThreadPoolExecutor(max_workers=len(pairs)) as pool:
            futures = [pool.submit(self.step, step, work, cancel=token) for step, work in pairs]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            failed = next((f.exception() for f in done if f.exception() is not None), None)
            if failed is not None:
                token.set()
        if failed is not None:
            self.cancel.check()
            raise failed
        return tuple(future.result() for future in futures)

    def ladder(
        self,
        plan: Plan,
        attempt: Callable[[Plan], T],
        relax: Callable[[Plan, AnyProblem], Plan | Refusal],
        step: Step,
    ) -> tuple[Plan, T]:
        """Try to start; after a failure that a lower setting may mend, try again, three times at most."""
        for number in range(MOST_RETRIES + 1):
            try:
                return plan, attempt(plan)
            except InstallerError as error:
                relaxed = relax(plan, error.problem)
                if isinstance(relaxed, Refusal):
                    if relaxed.problems[0] == error.problem:
                        raise
                    raise InstallerError(relaxed.problems[0]) from error
                if number == MOST_RETRIES:
                    raise
                plan = relaxed
                self.notice(step, Relaxed(change=plan.relaxed[-1], attempt=number + 1))
        raise AssertionError("the ladder has an end")

    def settle(self, work: Callable[[], T]) -> T:
        """Do the whole run and tell how it ended, whatever happens; the failure is raised again."""
        try:
            result = work()
        except InstallerError as error:
            self._settled("failed", error.problem)
            raise
        except Cancelled:
            self._settled("cancelled", Interrupted())
            raise
        except Exception as error:
            self._settled("failed", Bug.of(error))
            raise
        self._settled("ok", None)
        return result

    def _settled(self, outcome: str, problem: AnyProblem | None) -> None:
        seconds = round(self.clock.monotonic() - self._began, 3)
        self.emit(Settled(at=self.clock.now(), outcome=outcome, problem=problem, seconds=seconds))

    def _throttled(self, step: Step) -> Report:
        """Return a report that never goes back and tells at most ten times a second, the last figure always."""
        last_time, most = float("-inf"), -1

        def report(done: int, total: int) -> None:
            nonlocal last_time, most
            with self._lock:
                now = self.clock.monotonic()
                if done <= most or (done < total and now - last_time < PROGRESS_EVERY_SECONDS):
                    return
                last_time, most = now, done
                self._emit_unlocked(Progress(at=self.clock.now(), step=step, done=done, total=total))

        return report

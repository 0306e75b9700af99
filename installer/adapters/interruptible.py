"""Blocking sources that a person can stop at once: they run in a thread of their own, the caller waits on a queue."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from installer.steps.cancel import Cancel

T = TypeVar("T")


@dataclass(frozen=True)
class Opened(Generic[T]):
    """A source that gives items. `wake` ends a blocked read from another thread, `close` frees what it holds."""

    items: Iterator[T]
    wake: Callable[[], object]
    close: Callable[[], object]


class QuietError(Exception):
    """Nothing came for longer than it may take."""


def interruptible(open_source: Callable[[], Opened[T]], cancel: Cancel, quiet_s: float | None = None) -> Generator[T]:
    """Yield what a source yields until it ends.

    A thread is needed because a waker alone does not reach everywhere: while an answer's headers have not come there
    is no socket to shut down, and a Windows named pipe cannot be shut down at all. The thread that is left behind
    ends with its read.
    Raises Cancelled at once when the person cancels, QuietError after `quiet_s` seconds without an item, and what the
    source raises.
    """
    source = _Source(open_source)
    source.start()
    try:
        with cancel.waking(source.end):
            while (item := source.next(quiet_s)) is not source.ENDED:
                cancel.check()
                yield item
    finally:
        source.end()


def waited_for(call: Callable[[], T], cancel: Cancel, limit_s: float | None = None) -> T:
    """Return what a blocking call returns, under the same rules as `interruptible`."""

    def source() -> Opened[T]:
        return Opened(iter((call(),)), _nothing, _nothing)

    with contextlib.closing(interruptible(source, cancel, limit_s)) as answers:
        return next(answers)


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class _Failed:
    error: Exception


class _Source(threading.Thread):
    ENDED = object()

    def __init__(self, open_source: Callable[[], Opened[Any]]) -> None:
        super().__init__(daemon=True)
        self._open = open_source
        self._opened: Opened[Any] | None = None
        self._asked_to_end = threading.Event()
        self._given: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def run(self) -> None:
        try:
            self._opened = self._open()
            try:
                if not self._asked_to_end.is_set():  # before the source was open, nobody could wake it
                    for item in self._opened.items:
                        self._given.put(item)
            finally:
                self._opened.close()
        except Exception as error:  # noqa: BLE001 - raised again where the caller waits
            self._given.put(_Failed(error))
        self._given.put(self.ENDED)

    def next(self, quiet_s: float | None) -> Any:
        try:
            item = self._given.get(timeout=quiet_s)
        except queue.Empty:
            raise QuietError from None
        if isinstance(item, _Failed):
            raise item.error
        return item

    def end(self) -> None:
        self._asked_to_end.set()
        self._given.put(self.ENDED)
        opened = self._opened
        if opened is not None:
            # whatever goes wrong here, the caller is gone and the thread ends with its read
            with contextlib.suppress(Exception):
                opened.wake()

"""The bridge between the window's thread and those that work: one queued signal, by which a call comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, Signal, Slot

T = TypeVar("T")
Ended = Callable[[T], None]


class Bridge(QObject):
    """Runs work on a thread of its own and brings its end back into the window's thread.

    After `close` nothing comes back any more: the window is gone, and what still ends is dropped.
    """

    _call = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._open = True
        self._gate = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._call.connect(self._do, Qt.ConnectionType.QueuedConnection)

    def run(self, work: Callable[[], T], done: Ended[T], failed: Ended[BaseException]) -> None:
        """Do `work` on a thread, then in the window's `done` with its result or `failed` with what it raised."""

        def body() -> None:
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - whatever it is, the window shows it
                self.tell(lambda error=error: failed(error))  # type: ignore[misc]
            else:
                self.tell(lambda: done(result))

        thread = threading.Thread(target=body, name="slipway-work", daemon=True)
        self._threads = {each for each in self._threads if each.is_alive()} | {thread}
        thread.start()

    def tell(self, call: Callable[[], Any]) -> None:
        """Call something in the window's thread, from any thread; in the order in which it was told."""
        with self._gate:
            if self._open:
                self._call.emit(call)

    def wait(self, seconds: float) -> bool:
        """Wait until all work has ended, at most so long; say whether it has."""
        for thread in self._threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """Let nothing come back any more, and no thread be inside Qt when the application is taken down."""
        with self._gate:
            self._open = False

    @Slot(object)
    def _do(self, call: Callable[[], Any]) -> None:
        if self._open:
            call()

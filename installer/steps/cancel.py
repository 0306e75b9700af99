"""Cancelling: one token for a run. Blocking reads leave a waker with it and are ended at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from installer.domain.problems import Cancelled


class Cancel:
    """A token that is set once, from a window or a signal, and wakes whoever waits in a blocking read."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.RLock()
        self._wakers: list[Callable[[], None]] = []

    def set(self) -> None:
        """Cancel: every waker is called, once. Safe to call from a signal handler's thread and more than once."""
        self._event.set()
        with self._lock:
            wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    @property
    def is_set(self) -> bool:
        """Say whether the person cancelled."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise Cancelled if the person cancelled."""
        if self._event.is_set():
            raise Cancelled

    def wait(self, seconds: float) -> None:
        """Wait that long, or raise Cancelled at once."""
        if self._event.wait(seconds):
            raise Cancelled

    def child(self) -> Cancel:
        """Return a token that is set with this one, and can be set alone."""
        child = Cancel()
        with self._lock:
            self._wakers.append(child.set)
        if self.is_set:
            child.set()
        return child

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Hold a waker for a blocking read: `wake` is called on cancel, for instance to shut a socket down.

        An error of the read that comes from the waker turns into Cancelled.
        """
        self.check()
        with self._lock:
            self._wakers.append(wake)
        try:
            yield
        except Exception:
            self.check()
            raise
        finally:
            with self._lock:
                if wake in self._wakers:
                    self._wakers.remove(wake)
        self.check()

"""Work in a thread of its own, so that Ctrl-C reaches a blocking read at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from installer.steps.cancel import Cancel

T = TypeVar("T")


def cancellable(work: Callable[[], T], cancel: Cancel) -> T:
    """Do work in a thread while this one waits for signals; SIGINT and SIGTERM set `cancel`.

    Whatever the work raises is raised here, Cancelled among it.
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def worked() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            failures.append(error)

    thread = threading.Thread(target=worked, name="slipway-run")
    with _signals(cancel):
        thread.start()
        while thread.is_alive():
            # A join without a limit would keep Windows from delivering Ctrl-C.
            thread.join(0.2)
    if failures:
        raise failures[0]
    return results[0]


@contextmanager
def _signals(cancel: Cancel) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda _, __: cancel.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

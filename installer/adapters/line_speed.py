"""How fast the line is: a short read of what will be fetched, kept nowhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import requests

from installer.adapters.http import FAILURES, shut_down
from installer.adapters.interruptible import Opened, QuietError, interruptible
from installer.domain.problems import InstallerError
from installer.steps.cancel import Cancel

_BLOCK = 1 << 18
LEAST_BYTES = 1 << 20
LEAST_SECONDS = 0.05
"""Below these a figure would be that of the first packets, or of the clock."""


def measured(ask: Callable[[], requests.Response], seconds: float, cancel: Cancel) -> float | None:
    """Return bytes per second from the first byte on, None where too little came in `seconds`, or none at all.

    One connection only, so that a fetch over several is rather faster. Raises Cancelled at once.
    """

    def opened() -> Opened[int]:
        response = ask()
        sizes = iter(lambda: len(response.raw.read1(_BLOCK)), 0)
        return Opened(sizes, lambda: shut_down(response), response.close)

    came, first_at, last_at = 0, None, 0.0
    deadline = time.monotonic() + seconds
    try:
        with contextlib.closing(interruptible(opened, cancel, quiet_s=seconds)) as blocks:
            for size in blocks:
                last_at = time.monotonic()
                if first_at is None:  # the first block came while nobody measured
                    first_at, deadline = last_at, last_at + seconds
                else:
                    came += size
                if last_at >= deadline:
                    break
    except (QuietError, InstallerError, *FAILURES):
        pass  # what came until then tells
    took = last_at - (first_at or last_at)
    return came / took if came >= LEAST_BYTES and took >= LEAST_SECONDS else None

"""Fetching many files into a sink: in parallel, resumed, checked, patient with the line and at once with a cancel.

The address of a file names a commit, so its content cannot change between two tries. That is why a part is resumed
with a plain `Range` and no `If-Range`: mirrors behind one address have different ETags, and the checksum decides.
"""

from __future__ import annotations

import queue
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
import requests

from installer.adapters.http import READ_ERRORS, is_passing, shut_down, timed_out
from installer.adapters.sinks import Checksum, Entry, OpenFile, Sink
from installer.domain.problems import (
    Cancelled,
    DiskFull,
    InstallerError,
    RateLimited,
    ServerError,
    Stalled,
    Truncated,
    Unreachable,
    WrongContent,
)
from installer.domain.sources import WeightFile, WeightsSource
from installer.steps.cancel import Cancel
from installer.steps.ports import Report

MEMORY = ".slipway-verified.json"

_BLOCK = 1 << 20
_FLUSH_S = 0.5
_BIG = 16 << 20
_BAD_COPIES = 2
_GRACE_S = 0.3
_REPORT_EVERY_S = 0.05
_RANGE = re.compile(r"bytes (\d+)-")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to bear with a line. `tries` and `stalls` count failures in a row, without a MiB gained in between."""

    tries: int = 5
    stalls: int = 3
    connect_s: float = 10
    stall_s: float = 60
    first_wait_s: float = 1
    longest_wait_s: float = 30
    longest_rate_limit_s: float = 600

    def before_try(self, failures: int) -> float:
        """Return how long to wait after so many failures: doubled each time, less up to a half so as not to march."""
        full = min(self.first_wait_s * 2 ** (failures - 1), self.longest_wait_s)
        return full * random.uniform(0.5, 1)  # noqa: S311 - a wait is no secret


Ask = Callable[[WeightFile, int, Cancel], requests.Response]
"""Asks for a file from an offset on; returns an answer with status 200, 206 or 416, else raises InstallerError."""


class _Remembered(msgspec.Struct, frozen=True):
    """What a file was like when its checksum was right."""

    size: int
    changed_ns: int
    checksum: str


class _Memory:
    """The checksums that were right, kept beside the files: a second run need not read tens of gigabytes again."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        try:
            self._known = msgspec.json.decode(sink.read(MEMORY) or b"{}", type=dict[str, _Remembered])
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._known = {}

    def holds(self, file: WeightFile, entry: Entry) -> bool:
        """Say whether this very file was checked, and was not touched since."""
        return self._known.get(file.path) == _Remembered(entry.size, entry.changed_ns, checksum_of(file).text)

    def remember(self, file: WeightFile, changed_ns: int) -> None:
        """Note that a file was checked."""
        with self._lock:
            self._known[file.path] = _Remembered(file.size_bytes, changed_ns, checksum_of(file).text)
            self.save()

    def save(self) -> None:
        """Write it down."""
        self._sink.write(MEMORY, msgspec.json.format(msgspec.json.encode(self._known)))

"""Fetching many files into a sink: in parallel, resumed, checked, patient with the line and at once with a cancel.

The address of a file names a commit, so its content cannot change between two tries. That is why a part is resumed
with a plain `Range` and no `If-Range`: mirrors behind one address have different ETags, and the checksum decides.
"""

from __future__ import annotations

import contextlib
import queue
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import requests

from installer.adapters.http import FAILURES, is_passing, shut_down, timed_out
from installer.adapters.sinks import OpenFile, Sink
from installer.adapters.store import PART
from installer.adapters.weights import Checksum, Memory, Survey, part_of, survey
from installer.domain.figures import whole
from installer.domain.problems import (
    Cancelled,
    DiskFull,
    InstallerError,
    RateLimited,
    Stalled,
    Truncated,
    WrongContent,
)
from installer.domain.sources import WeightFile, WeightsSource
from installer.steps.cancel import Cancel
from installer.steps.ports import Report

_BLOCK = 1 << 20
_FLUSH_S = 0.5
_BIG = 16 << 20
_COPIES = 2
_GRACE_S = 0.3
_REPORT_EVERY_S = 0.05
_RANGE = re.compile(r"bytes (\d+)-")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to bear with a line, in seconds and in failures in a row (without a MiB gained in between)."""

    tries: int = 5
    stalls: int = 3
    connect_s: float = 10
    stall_s: float = 60
    first_wait_s: float = 1
    longest_wait_s: float = 30
    longest_rate_limit_s: float = 600

    def wait_s(self, failures: int) -> float:
        """Return how long to wait after so many failures: doubled each time, and less by chance, so as not to march."""
        doubled = self.first_wait_s * 2.0 ** (failures - 1)
        return min(doubled, self.longest_wait_s) * random.uniform(0.5, 1)


Ask = Callable[[WeightFile, int], requests.Response]
"""Asks for a file from an offset on; returns an answer of status 200, 206 or 416, or raises InstallerError."""


def fetch(
    weights: WeightsSource, sink: Sink, ask: Ask, report: Report, cancel: Cancel, patience: Patience, workers: int
) -> None:
    """Fetch what is missing. Every file is checked before it gets its name.

    Raises what `ask` and the sink raise, WrongContent, Truncated, Stalled, DiskFull.
    """
    memory = Memory(sink)
    found = survey(weights, sink, memory, cancel.check)
    for path in found.bad:
        sink.remove(path)
    if found.absent:
        memory.save()  # shows that the folder can be written, before the first byte is fetched
    elif found.checked_now:
        with contextlib.suppress(InstallerError):  # a folder that can only be read is no worse to serve from
            memory.save()
    free = sink.free_bytes()
    if free < found.missing_bytes:
        raise InstallerError(_no_room(sink, found.missing_bytes, free))
    meter = _Meter(found, report)
    job = _Job(sink, memory, ask, meter, patience)
    try:
        _share(_order(found.absent), job.fetch, workers, cancel)
    except InstallerError as error:
        if isinstance(error.problem, DiskFull):
            missing = survey(weights, sink, memory, cancel.check).missing_bytes
            raise InstallerError(_no_room(sink, missing, sink.free_bytes())) from error
        raise
    meter.finish()


def _no_room(sink: Sink, needed: int, free: int) -> DiskFull:
    return DiskFull(where=sink.where, needed_bytes=needed, free_bytes=free, engine=sink.in_engine)


def _order(files: Sequence[WeightFile]) -> list[WeightFile]:
    """Small files first, so that a refusal shows within a second; then the largest, so that no worker is left alone."""
    return sorted(files, key=lambda file: (file.size_bytes >= _BIG, -file.size_bytes))


class _Meter:
    """Adds up the bytes of all files. What is reported never falls, even where a file has to start over."""

    def __init__(self, found: Survey, report: Report) -> None:
        self._lock = threading.Lock()
        self._report = report
        self._total = found.weights.size_bytes
        self._at = {file.path: found.parts.get(file.path, 0) for file in found.absent}
        self._sum = self._total - found.missing_bytes
        self._shown = self._sum
        self._shown_at = time.monotonic()
        report(self._shown, self._total)

    def set(self, path: str, offset: int) -> None:
        """Note how far a file is; report it, but not more often than anyone can see."""
        with self._lock:
            self._sum += offset - self._at[path]
            self._at[path] = offset
            now = time.monotonic()
            if self._sum > self._shown and now - self._shown_at >= _REPORT_EVERY_S:
                self._shown, self._shown_at = min(self._sum, self._total), now
                self._report(self._shown, self._total)

    def finish(self) -> None:
        """Report that all is there."""
        if self._shown < self._total:
            self._report(self._total, self._total)


@dataclass
class _Trouble:
    """Failures in a row. Bytes that were never reached before wipe them out."""

    failures: int = 0
    stalls: int = 0
    furthest: int = 0

    def count(self, error: InstallerError, offset: int) -> None:
        """Count a failure at an offset."""
        if offset >= self.furthest + _BLOCK:
            self.failures = self.stalls = 0
        self.furthest = max(self.furthest, offset)
        self.failures += 1
        self.stalls = self.stalls + 1 if isinstance(error.problem, Stalled) else 0


class _Job:
    """The fetching of one file after the other, by several workers at once."""

    def __init__(self, sink: Sink, memory: Memory, ask: Ask, meter: _Meter, patience: Patience) -> None:
        self._sink = sink
        self._memory = memory
        self._ask = ask
        self._meter = meter
        self._patience = patience

    def fetch(self, file: WeightFile, stop: Cancel) -> None:
        """Fetch one file; a second copy is fetched where the first is not what was announced."""
        checksum = Checksum.of(file)
        got = ""
        with part_of(self._sink, file) as part:
            if part.length > file.size_bytes:
                part.restart()
            part.hash_all(stop.check)
            for _ in range(_COPIES):
                self._complete(file, part, stop)
                got = part.digest()
                if part.offset == file.size_bytes and checksum.fits(got):
                    self._memory.note(file, part.publish())
                    self._memory.save()
                    return
                self._restart(file, part)
        self._sink.remove(file.path + PART)
        raise InstallerError(WrongContent(file=file.path, expected=checksum.text, got=f"{checksum.algorithm}:{got}"))

    def _restart(self, file: WeightFile, part: OpenFile) -> None:
        part.restart()
        self._meter.set(file.path, 0)

    def _complete(self, file: WeightFile, part: OpenFile, stop: Cancel) -> None:
        trouble = _Trouble(furthest=part.offset)
        while part.offset < file.size_bytes:
            try:
                self._receive(file, part, stop)
            except InstallerError as error:
                trouble.count(error, part.offset)
                self._bear(error, trouble, stop)

    def _bear(self, error: InstallerError, trouble: _Trouble, stop: Cancel) -> None:
        """Wait before the next try, or raise the error where another try is of no use."""
        problem, patience = error.problem, self._patience
        if not is_passing(problem) or trouble.failures >= patience.tries or trouble.stalls >= patience.stalls:
            raise error
        wait = patience.wait_s(trouble.failures)
        if isinstance(problem, RateLimited) and problem.retry_after_s is not None:
            if problem.retry_after_s > patience.longest_rate_limit_s:
                raise error
            wait += problem.retry_after_s
        stop.wait(wait)

    def _receive(self, file: WeightFile, part: OpenFile, stop: Cancel) -> None:
        """Receive as much as comes. Raises Truncated or Stalled where that is not all."""
        stop.check()
        with self._ask(file, part.offset) as response, stop.waking(lambda: shut_down(response)):
            start = _first_byte(response)
            if start != part.offset:
                self._restart(file, part)
            if start == part.offset:
                self._write(file, part, response, stop)
        if part.offset < file.size_bytes:
            raise InstallerError(Truncated(file=file.path, got_bytes=part.offset, expected_bytes=file.size_bytes))

    def _write(self, file: WeightFile, part: OpenFile, response: requests.Response, stop: Cancel) -> None:
        for block in self._blocks(file, response):
            part.append(block)
            self._meter.set(file.path, min(part.offset, file.size_bytes))
            stop.check()
            if part.offset > file.size_bytes:
                break

    def _blocks(self, file: WeightFile, response: requests.Response) -> Iterator[bytes]:
        """Yield what comes, a MiB or half a second at a time; what came before a failure is not lost."""
        held, since, failure = bytearray(), time.monotonic(), None
        while True:
            try:
                data = response.raw.read1(_BLOCK, decode_content=True)
            except FAILURES as error:
                failure = error
                break
            if not data:
                break
            held += data
            if len(held) >= _BLOCK or time.monotonic() - since >= _FLUSH_S:
                yield bytes(held)
                held.clear()
                since = time.monotonic()
        if held:
            yield bytes(held)
        if failure is not None and timed_out(failure):
            raise InstallerError(Stalled(what=file.path, seconds=self._patience.stall_s)) from failure


def _first_byte(response: requests.Response) -> int | None:
    """Return where the body starts in the file: 0 where the server sends all of it, None where it sends none."""
    if response.status_code == 200:
        return 0
    announced = _RANGE.match(response.headers.get("Content-Range", ""))
    return whole(announced[1]) if response.status_code == 206 and announced else None


def _share(files: list[WeightFile], work: Callable[[WeightFile, Cancel], None], workers: int, cancel: Cancel) -> None:
    """Let workers take files until none is left. The first failure, or a cancel, stops them all.

    A worker that waits for a connection cannot be woken. It is left behind: it looks at `stop` before it writes, and
    the sink is closed by then.
    """
    stop = Cancel()
    waiting = deque(files)
    outcomes: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def take() -> None:
        try:
            while True:
                work(waiting.popleft(), stop)
        except IndexError:
            outcomes.put(None)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            outcomes.put(error)

    def wake() -> None:
        stop.set()
        outcomes.put(Cancelled())

    threads = [threading.Thread(target=take, daemon=True, name="weights") for _ in range(min(workers, len(files)))]
    with cancel.waking(wake):
        try:
            for thread in threads:
                thread.start()
            for _ in threads:
                if (outcome := outcomes.get()) is not None:
                    raise outcome
        finally:
            stop.set()
            deadline = time.monotonic() + _GRACE_S
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))

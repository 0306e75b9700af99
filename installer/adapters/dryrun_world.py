"""The world of a dry run: what its engine holds, what its disks hold, and how fast its line and its clock are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from installer.adapters.clock import SystemClock
from installer.adapters.dryrun_container import SimulatedContainer
from installer.adapters.dryrun_failures import Failure
from installer.domain import checks
from installer.domain.facts import CudaMemory, Facts, Gpu
from installer.domain.memory import budget
from installer.domain.plan import UNPACKED_OVER_COMPRESSED
from installer.domain.problems import InstallerError
from installer.domain.registry import Registry
from installer.domain.sources import FolderWeights, ImageSource, WeightsPlace, WeightsSource
from installer.steps.cancel import Cancel
from installer.steps.ports import Clock

LINE_BYTES_PER_SECOND = 100_000_000
REPORT_EVERY_SECONDS = 0.25
LEAST_REPORTS = 20
DISK_WHERE_NONE_WAS_READ = 500_000_000_000


class SpedUpClock:
    """The system's clock, `speed` times as fast; implements `Clock`."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._dates = SystemClock()

    def now(self) -> str:
        """Return the real time: a dry run happens today."""
        return self._dates.now()

    def monotonic(self) -> float:
        """Return simulated seconds."""
        return time.monotonic() * self._speed

    def wait(self, seconds: float, cancel: Cancel) -> None:
        """Wait for simulated seconds, or raise Cancelled at once."""
        cancel.wait(seconds / self._speed)


class Line:
    """The one line to the outside, shared by everything that goes over it at the same time."""

    def __init__(self, clock: Clock, report_every_s: float) -> None:
        self._clock = clock
        self._report_every_s = report_every_s
        self._lock = threading.Lock()
        self._users = 0

    def carry(self, size_bytes: int, cancel: Cancel) -> Generator[int]:
        """Yield how many more bytes came over, until all did. Raises Cancelled at once."""
        longest_wait = min(self._report_every_s, size_bytes / LINE_BYTES_PER_SECOND / LEAST_REPORTS)
        with self._used():
            left, before = size_bytes, self._clock.monotonic()
            while left > 0:
                rate = LINE_BYTES_PER_SECOND / self._users
                self._clock.wait(min(longest_wait, left / rate), cancel)
                now = self._clock.monotonic()
                came = min(left, round((now - before) * rate))
                left, before = left - came, now
                yield came

    @contextmanager
    def _used(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1


@dataclass(kw_only=True)
class World:
    """Everything that a dry run changes, in memory. It begins with nothing there.

    `layers` and `weights` count the bytes that are here, by index digest, and by place and folder. `images` are whole.
    """

    recorded: Facts
    registry: Registry
    clock: Clock
    line: Line
    failure: Failure
    images: dict[str, ImageSource] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    layers: dict[str, int] = field(default_factory=dict)
    weights: dict[tuple[str, str], int] = field(default_factory=dict)
    containers: dict[str, SimulatedContainer] = field(default_factory=dict)
    starts: int = 0

    def pause(self, seconds: float, cancel: Cancel | None = None) -> None:
        """Let something take its time."""
        self.clock.wait(seconds, cancel or Cancel())

    def require_engine(self) -> None:
        """Raise the Problem of an engine that was recorded as not answering."""
        problems = checks.engine(self.recorded)
        if problems:
            raise InstallerError(problems[0])

    def holds(self, image: ImageSource) -> bool:
        """Say whether the engine has an image."""
        return image.index_digest in self.images

    def running(self) -> tuple[SimulatedContainer, ...]:
        """Return the containers that run."""
        return tuple(one for one in tuple(self.containers.values()) if one.status(self.clock.monotonic()) == "running")

    def serving_at(self, port: int) -> SimulatedContainer | None:
        """Return the container behind a port, if it answers already."""
        now = self.clock.monotonic()
        return next((one for one in self.running() if one.port == port and one.serves(now)), None)

    def data_root_free_bytes(self) -> int:
        """Return what the engine's disk has left."""
        free = self.recorded.engine.data_root_free_bytes
        taken = UNPACKED_OVER_COMPRESSED * sum(self.layers.values()) + self._weights_bytes("volume")
        return max(0, (DISK_WHERE_NONE_WAS_READ if free is None else free) - taken)

    def folder_free_bytes(self) -> int | None:
        """Return what the disk of the weights folder has left."""
        free = self.recorded.weights_folder.free_bytes
        return None if free is None else max(0, free - self._weights_bytes("folder"))

    def _weights_bytes(self, kind: str) -> int:
        return sum(size for (place, _), size in tuple(self.weights.items()) if place.startswith(f"{kind}:"))

    def taken_bytes(self, gpu: Gpu) -> int:
        """Return what our own running servers hold of a card."""
        room = budget(self.recorded, gpu)
        share = sum(one.utilisation for one in self.running() if one.gpu_uuid == gpu.uuid)
        return round(room.total_bytes * share) if room else 0

    def cuda(self, gpu_uuid: str | None) -> CudaMemory | None:
        """Return CUDA's own figures for a card: the recorded ones, or those that are derived from NVML's."""
        gpu = self.recorded.gpu(gpu_uuid) if gpu_uuid else None
        room = budget(self.recorded, gpu) if gpu else None
        if gpu is None or room is None:
            return None
        free_bytes = max(0, room.free_bytes - self.taken_bytes(gpu))
        return CudaMemory(total_bytes=room.total_bytes, free_bytes=free_bytes)


def key_of(weights: WeightsSource, place: WeightsPlace) -> tuple[str, str]:
    """Return how the world knows the weights of one commit in one place."""
    name = place.folder if isinstance(place, FolderWeights) else place.volume
    kind = "folder" if isinstance(place, FolderWeights) else "volume"
    return f"{kind}:{name}", weights.folder


def transfer(
    world: World, total: int, here: int, report: Callable[[int, int], None], cancel: Cancel, came: Callable[[int], None]
) -> None:
    """Bring what is missing over the line; `came` is told after every piece how much is here now."""
    report(here, total)
    # Closed also when `came` raises, so that the line is free again for whoever else is on it.
    with closing(world.line.carry(total - here, cancel)) as pieces:
        for more in pieces:
            here += more
            came(here)
            report(here, total)


def made(recorded: Facts, registry: Registry, clock: Clock, speed: float, failure: Failure) -> World:
    """Make a world for a recorded machine. At a high speed there is less to see, and fewer reports."""
    every_s = max(REPORT_EVERY_SECONDS, speed / 500)
    return World(
        recorded=recorded,
        registry=registry,
        clock=clock,
        line=Line(clock, every_s),
        failure=failure,
    )

"""A dry run: the same steps over a recorded machine, for a person without a graphics card or before a long download.

Nothing is asked of Docker, of the network or of any port, and nothing is written but by the steps, into their home.
The world begins empty, is kept in memory, and ends with the process; what is made up is the same every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from installer import resources
from installer.adapters.dryrun_engine import SimulatedEngine
from installer.adapters.dryrun_failures import Failure
from installer.adapters.dryrun_server import SimulatedServer
from installer.adapters.dryrun_sources import SimulatedHub, SimulatedRegistry
from installer.adapters.dryrun_stack import SimulatedStack
from installer.adapters.dryrun_world import SpedUpClock, World, made
from installer.adapters.media import VideoFiles
from installer.adapters.pictures import PictureFiles
from installer.domain.addresses import HOST_IN_CONTAINER, shown, split
from installer.domain.facts import CudaMemory, Facts, Gpu, GpuMemory, GpuProcess, Host, Missing, Nvidia
from installer.domain.problems import BadChoice, InstallerError
from installer.domain.registry import Registry
from installer.resources import PROOF_CLIP
from installer.steps.cancel import Cancel
from installer.steps.ports import Clip, Clock, Ports
from installer.steps.read import FIRST_PORT

SERVER_PROCESS = "VLLM::EngineCore"
SERVER_PID = 4242


def dry_run_ports(
    recorded: Facts, registry: Registry, *, speed: float = 1.0, fail: str | None = None, clock: Clock | None = None
) -> Ports:
    """Return doors that lead nowhere.

    `speed` is how much faster than real downloads and starts go; `fail` is a STEP:KIND that happens once; `clock`
    takes the place of the sped-up one. Raises InstallerError(BadChoice) for a speed or a failure that cannot be.
    """
    if not (math.isfinite(speed) and speed > 0):
        raise InstallerError(BadChoice(field="dry_run_speed", value=str(speed), limit="> 0"))
    world = made(recorded, registry, clock or SpedUpClock(speed), speed, Failure(fail))
    return Ports(
        gpus=RecordedGpus(world),
        machine=RecordedMachine(world),
        engine=SimulatedEngine(world),
        images=SimulatedRegistry(world),
        hub=SimulatedHub(world),
        stack=SimulatedStack(world),
        server=SimulatedServer(world),
        clock=world.clock,
        autostart=SimulatedAutostart(),
        awake=RecordedAwake(),
        pictures=PictureFiles(),  # a picture that a person names is really read: nothing changes by that
        media=RecordedMedia(),
    )


class RecordedGpus:
    """The recorded driver and cards, less what our own simulated servers hold; implements `Gpus`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def read(self) -> Nvidia:
        """Return driver and cards."""
        nvidia = self._world.recorded.nvidia
        return msgspec.structs.replace(nvidia, gpus=tuple(self._now(gpu) for gpu in nvidia.gpus))

    def _now(self, gpu: Gpu) -> Gpu:
        taken = self._world.taken_bytes(gpu)
        if not taken or not isinstance(gpu.memory, GpuMemory):
            return gpu
        memory = msgspec.structs.replace(
            gpu.memory,
            free_bytes=max(0, gpu.memory.free_bytes - taken),
            used_bytes=gpu.memory.used_bytes + taken,
        )
        cuda: CudaMemory | None = self._world.cuda(gpu.uuid) if gpu.cuda else None
        server = GpuProcess(pid=SERVER_PID, name=SERVER_PROCESS, used_bytes=taken)
        processes = gpu.processes if isinstance(gpu.processes, Missing) else (*gpu.processes, server)
        return msgspec.structs.replace(gpu, memory=memory, cuda=cuda, processes=processes)


class RecordedMachine:
    """The recorded computer, with the room and the ports that are left; implements `Machine`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def host(self) -> Host:
        """Return the recorded host."""
        return self._world.recorded.host

    def folder_free(self, path: str) -> tuple[int | None, bool]:  # noqa: ARG002 - one disk was recorded
        """Return what the recorded disk has left, whatever the folder is called here."""
        return self._world.folder_free_bytes(), self._world.recorded.weights_folder.writable

    def free_ports(self, first: int, count: int) -> tuple[int, ...]:
        """Return the recorded free ports that no simulated server has."""
        taken = {container.port for container in self._world.running()}
        recorded = self._world.recorded.ports.free
        return tuple(port for port in recorded if port >= first and port not in taken)[:count]

    def port_owner(self, port: int) -> str | None:
        """Return None for a free port: below the last recorded one, a port that is not listed is taken."""
        if any(container.port == port for container in self._world.running()):
            return "docker-proxy"
        if self._world.failure.take("start", "port_taken"):
            return ""
        free = self._world.recorded.ports.free
        return "" if free and FIRST_PORT <= port < max(free) and port not in free else None


class SimulatedAutostart:
    """Writes no entry; implements `Autostart`."""

    def enable(self, stack: str) -> str:
        """Return the name that the entry would have."""
        return f"slipway-{stack}.desktop"

    def disable(self, stack: str) -> None:
        """Have nothing to remove."""


class RecordedAwake:
    """Keeps no computer awake; `asked` counts how often it was asked to, `now` how many hold it. Implements `Awake`."""

    def __init__(self) -> None:
        self.asked = 0
        self.now = 0

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Count."""
        self.asked += 1
        self.now += 1
        try:
            yield True
        finally:
            self.now -= 1


class RecordedMedia(VideoFiles):
    """Reads a file that a person names, and neither fetches nor serves one. Implements `Media`."""

    @contextmanager
    def fetched(self, url: str, cancel: Cancel) -> Iterator[Clip]:
        """Return the clip that comes with Slipway in place of what is at the address."""
        cancel.check()
        if split(url).scheme not in ("http", "https"):
            raise InstallerError(BadChoice(field="video", value=shown(url), limit="http://, https://"))
        yield self.read(str(resources.file("assets", *PROOF_CLIP)))

    @contextmanager
    def offered(self, clip: Clip, container_id: str, cancel: Cancel) -> Iterator[str]:  # noqa: ARG002 - no container
        """Return an address that the simulated server takes."""
        cancel.check()
        yield f"http://{HOST_IN_CONTAINER}:49152/dry-run/video"

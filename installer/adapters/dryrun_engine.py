"""The container engine of a dry run: images and containers in memory, facts and card as they were recorded."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from installer.adapters.dryrun_container import SimulatedContainer
from installer.adapters.dryrun_failures import BEFORE_THE_FIRST_BYTE, Subject
from installer.adapters.dryrun_world import World, transfer
from installer.domain.facts import CudaMemory, Engine
from installer.domain.plan import UNPACKED_OVER_COMPRESSED
from installer.domain.problems import EngineFailed, GpuNotInContainer, ImageUnknown, InstallerError
from installer.domain.sources import ImageSource
from installer.domain.units import gib
from installer.steps.cancel import Cancel
from installer.steps.ports import ContainerState, ProbeReading, Report

PROBE_SECONDS = 3.0
FOLLOW_EVERY_SECONDS = 0.5
LITTLE_MEMORY_BYTES = gib(1.5)
LITTLE_ROOM_BYTES = 2_000_000_000


class SimulatedEngine:
    """Implements `ContainerEngine`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def facts(self) -> Engine:
        """Return the recorded engine, with the room that is left now."""
        recorded = self._world.recorded.engine
        if recorded.data_root_free_bytes is None:
            return recorded
        return msgspec.structs.replace(recorded, data_root_free_bytes=self._world.data_root_free_bytes())

    def probe(self, helper: ImageSource, gpu_uuid: str | None, cancel: Cancel) -> ProbeReading:
        """Return the recorded figures of CUDA and of the engine's disk, less what was taken since."""
        world = self._world
        world.require_engine()
        cancel.check()
        if not world.holds(helper):
            self._fetch(helper, _unreported, cancel)
        world.pause(PROBE_SECONDS, cancel)
        recorded = world.recorded
        subject = Subject(
            name=helper.repository,
            gpu=gpu_uuid or "",
            driver=recorded.nvidia.driver_version or "",
            where=recorded.engine.endpoint,
        )
        world.failure.strike("probe", subject)
        cuda = world.cuda(gpu_uuid)
        if gpu_uuid is not None and cuda is None:
            raise InstallerError(GpuNotInContainer(gpu=gpu_uuid, cuda_error=None, detail="cuDeviceGet"))
        return self._reading(cuda)

    def _reading(self, cuda: CudaMemory | None) -> ProbeReading:
        """Return the reading, with too little in it where that was asked for."""
        world = self._world
        at_the_gate = len(world.images) > 1
        short = world.failure.take("probe", "too_little_memory") or (
            at_the_gate and world.failure.take("gate", "not_enough_free_memory")
        )
        if short and cuda is not None:
            cuda = CudaMemory(total_bytes=cuda.total_bytes, free_bytes=LITTLE_MEMORY_BYTES)
        full = world.failure.take("probe", "disk_full")
        return ProbeReading(cuda=cuda, data_root_free_bytes=LITTLE_ROOM_BYTES if full else world.data_root_free_bytes())

    def has_image(self, image: ImageSource) -> bool:
        """Say whether the image was pulled."""
        self._world.require_engine()
        return self._world.holds(image)

    def pull(self, image: ImageSource, report: Report, cancel: Cancel) -> None:
        """Pull over the simulated line. As with Docker, whole layers stay after a failure or a cancel."""
        world = self._world
        world.require_engine()
        cancel.check()
        subject = Subject(
            name=image.repository,
            tag=image.tag,
            digest=image.index_digest,
            where=world.recorded.engine.data_root,
            needed_bytes=UNPACKED_OVER_COMPRESSED * image.size_bytes,
            in_engine=True,
        )
        world.failure.strike("image", subject, *BEFORE_THE_FIRST_BYTE)
        self._fetch(image, report, cancel, subject)

    def _fetch(self, image: ImageSource, report: Report, cancel: Cancel, subject: Subject | None = None) -> None:
        world, digest, total = self._world, image.index_digest, image.size_bytes
        fails_from = total * 2 // 5

        def came(here: int) -> None:
            world.layers[digest] = _whole_layers(image, here)
            if subject and here >= fails_from:
                world.failure.strike("image", subject)

        transfer(world, total, world.layers.get(digest, 0), report, cancel, came)
        world.images[digest] = image

    def tag(self, image: ImageSource) -> None:
        """Give an image its publisher's tag."""
        if not self._world.holds(image):
            raise InstallerError(ImageUnknown(image=image.by_digest))
        self._world.tags[image.by_tag] = image.index_digest

    def remove_image(self, image: ImageSource) -> int:
        """Forget an image and its tags; return how many bytes that freed."""
        world, digest = self._world, image.index_digest
        world.require_engine()
        if world.images.pop(digest, None) is None:
            return 0
        world.tags = {tag: other for tag, other in world.tags.items() if other != digest}
        return UNPACKED_OVER_COMPRESSED * world.layers.pop(digest, 0)

    def containers(self, project: str) -> tuple[ContainerState, ...]:
        """Return the container of a project, if there is one."""
        self._world.require_engine()
        found = self._world.containers.get(project)
        return (found.state(self._world.clock.monotonic()),) if found else ()

    def logs(self, container_id: str, tail: int | None = None) -> bytes:
        """Return what a container wrote so far."""
        lines = self._container(container_id).log(self._world.clock.monotonic())
        return b"".join(line + b"\n" for line in (lines if tail is None else lines[-tail:] if tail else []))

    def follow_logs(self, container_id: str, cancel: Cancel) -> Iterator[bytes]:
        """Yield lines as they come, until the container ends or the person cancels."""
        container, told = self._container(container_id), 0
        while True:
            now = self._world.clock.monotonic()
            lines = container.log(now)
            yield from lines[told:]
            told = len(lines)
            if container.status(now) == "exited":
                return
            self._world.pause(FOLLOW_EVERY_SECONDS, cancel)

    def _container(self, container_id: str) -> SimulatedContainer:
        self._world.require_engine()
        known = tuple(self._world.containers.values())
        found = next((one for one in known if one.id == container_id), None)
        if found is None:
            raise InstallerError(EngineFailed(operation="logs", detail=f"No such container: {container_id}"))
        return found


def _whole_layers(image: ImageSource, here: int) -> int:
    """Return the bytes of the layers that are whole when so many bytes came, one layer after the other."""
    whole = 0
    for layer in image.layers:
        if whole + layer.size_bytes > here:
            break
        whole += layer.size_bytes
    return whole


def _unreported(_done: int, _total: int) -> None:
    """Take the progress of a helper image, which is small."""

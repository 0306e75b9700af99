"""Compose of a dry run: it reads the file that was really written and makes its container in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from installer.adapters.dryrun_container import CREATED_SECONDS, Service, SimulatedContainer, text_of
from installer.adapters.dryrun_failures import Subject
from installer.adapters.dryrun_log import FAULTS, Asked, script
from installer.adapters.dryrun_world import World
from installer.domain import checks
from installer.domain.compose import LABEL_PREFIX, SERVICE, key_from_env
from installer.domain.facts import Compose, GpuMemory
from installer.domain.problems import (
    ImageUnknown,
    InstallerError,
    MalformedFile,
    NvidiaToolkitMissing,
    PortTaken,
)
from installer.steps.cancel import Cancel

STOP_SECONDS = 2.0


class SimulatedStack:
    """Implements `Stack`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def compose(self) -> Compose:
        """Return the recorded Compose."""
        return self._world.recorded.compose

    def check(self, file: str) -> None:
        """Read the file. Raises InstallerError(MalformedFile)."""
        self._service(file)

    def up(self, file: str, cancel: Cancel) -> None:
        """Make the container, or start the one that is there if the file is still the same."""
        world, service = self._world, self._service(file)
        world.require_engine()
        cancel.check()
        self._refuse(service)
        self._adopt(service)
        container = world.containers[service.project]
        world.pause(CREATED_SECONDS, cancel)
        if container.status(world.clock.monotonic()) == "running":
            return
        world.starts += 1
        started_at = f"{world.clock.now().removesuffix('Z')}.{world.starts:09d}Z"
        fault = world.failure.take("start", *FAULTS)
        container.start(script(service.asked, fault), world.clock.monotonic(), started_at)

    def _refuse(self, service: Service) -> None:
        world = self._world
        world.failure.strike("start", Subject())
        if service.image not in {one.by_digest for one in world.images.values()} | set(world.tags):
            raise InstallerError(ImageUnknown(image=service.image))
        if service.gpu_uuid and not world.recorded.engine.nvidia_ready:
            raise InstallerError(NvidiaToolkitMissing(runtimes=world.recorded.engine.runtimes))
        if any(other.port == service.port for other in world.running() if other.service.project != service.project):
            raise InstallerError(PortTaken(port=service.port))

    def _adopt(self, service: Service) -> None:
        """Make the container anew where the file says something else than before."""
        there = self._world.containers.get(service.project)
        if there is not None and there.service == service:
            return
        number = there.number + 1 if there else len(self._world.containers) + self._world.starts
        self._world.containers[service.project] = SimulatedContainer(service=service, number=number)

    def stop(self, file: str) -> None:
        """Stop the container and leave it."""
        container = self._world.containers.get(self._service(file).project)
        if container is not None:
            self._world.pause(STOP_SECONDS)
            container.stopped = True

    def down(self, file: str, volumes: bool = False) -> None:  # noqa: ARG002 - caches take no room in a dry run
        """Remove the container."""
        self._world.pause(STOP_SECONDS)
        self._world.containers.pop(self._service(file).project, None)

    def _service(self, file: str) -> Service:
        problems = checks.compose(self._world.recorded)
        if problems:
            raise InstallerError(problems[0])
        path = Path(file)
        try:
            document = yaml.safe_load(path.read_bytes())
            return self._read(path.parent, document)
        except (yaml.YAMLError, OSError) as error:
            reason = " ".join(str(error).split())
            raise InstallerError(MalformedFile(path=file, where="$", reason=reason)) from error
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise InstallerError(MalformedFile(path=file, where=f"$.services.{SERVICE}", reason=reason)) from error

    def _read(self, folder: Path, document: dict[str, Any]) -> Service:
        service = document["services"][SERVICE]
        labels = {str(name): text_of(value) for name, value in service["labels"].items()}
        model, *arguments = (text_of(word) for word in service["command"])
        gpu_uuid = _gpu_of(service)
        env_files = [folder / name for name in service.get("env_file", ())]
        return Service(
            project=document["name"],
            image=text_of(service["image"]),
            port=int(str(service["ports"][0]).split(":")[-2]),
            gpu_uuid=gpu_uuid,
            labels=labels,
            has_health_check="healthcheck" in service,
            key=key_from_env("".join(path.read_text("utf-8") for path in env_files)),
            asked=Asked(
                model=model,
                arguments=tuple(arguments),
                version=labels.get(f"{LABEL_PREFIX}.image-tag", ""),
                weights_bytes=self._weights_bytes(model),
                card_bytes=self._card_bytes(gpu_uuid),
            ),
        )

    def _weights_bytes(self, model: str) -> int:
        """Return the size of what lies where the container looks for its model."""
        return next((size for (_, name), size in tuple(self._world.weights.items()) if model.endswith(name)), 0)

    def _card_bytes(self, gpu_uuid: str | None) -> int:
        gpu = self._world.recorded.gpu(gpu_uuid) if gpu_uuid else None
        return gpu.memory.total_bytes if gpu and isinstance(gpu.memory, GpuMemory) else 0


def _gpu_of(service: dict[str, Any]) -> str | None:
    if "deploy" not in service:
        return None
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    return str(device["device_ids"][0])

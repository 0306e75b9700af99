"""A short-lived container that proves the way from the engine to the card, and reads what CUDA has there."""

from __future__ import annotations

import contextlib
import json
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import msgspec

from installer.adapters.engine_endpoint import transport_errors
from installer.adapters.engine_errors import detail_of
from installer.domain.facts import CudaMemory
from installer.domain.figures import natural
from installer.domain.problems import EngineFailed, GpuNotInContainer, InstallerError
from installer.domain.sources import ImageSource
from installer.domain.units import Natural
from installer.steps.ports import ProbeReading

if TYPE_CHECKING:
    from docker import APIClient

OPERATION = "probe"
LABELS = {"app.slipway.role": "probe"}
FORGOTTEN_AFTER_S = 600
"""Several times as long as a probe may run."""


@contextlib.contextmanager
def container(
    client: APIClient, helper: ImageSource, gpu_uuid: str | None, again: Callable[[], AbstractContextManager[APIClient]]
) -> Iterator[str]:
    """Create the container and remove it whatever happens; `again` opens the client that removes it.

    Another client, because this one may still be waiting in a thread that was left behind.
    """
    created = client.create_container(
        helper.by_digest,
        command=["-c", _source(), *([gpu_uuid] if gpu_uuid else [])],
        entrypoint=["python3"],
        environment=_environment(gpu_uuid),
        labels=LABELS,
        network_disabled=True,
        host_config=_host_config(client, gpu_uuid),
    )
    name: str = created["Id"]
    try:
        _remove_forgotten(client, name)
        yield name
    finally:
        with contextlib.suppress(*transport_errors(), InstallerError), again() as remover:
            remover.remove_container(name, v=True, force=True)


def _remove_forgotten(client: APIClient, ours: str) -> None:
    """Remove containers of runs that were killed: those so old, by the engine's clock, that nobody waits for them."""
    label = next(f"{name}={value}" for name, value in LABELS.items())
    there = {one["Id"]: int(one["Created"]) for one in client.containers(all=True, filters={"label": label})}
    for other, created_s in there.items():
        if other != ours and created_s < there.get(ours, 0) - FORGOTTEN_AFTER_S:
            with contextlib.suppress(*transport_errors()):
                client.remove_container(other, v=True, force=True)


def run(client: APIClient, name: str) -> tuple[int, bytes, bytes]:
    """Start a container and return its exit code, standard output and standard error. Blocks until it ends."""
    client.start(name)
    code = client.wait(name, timeout=None)["StatusCode"]
    return code, client.logs(name, stdout=True, stderr=False), client.logs(name, stdout=False, stderr=True)


def reading_of(code: int, stdout: bytes, stderr: bytes, gpu_uuid: str | None) -> ProbeReading:
    """Return what the helper saw.

    Raises InstallerError(GpuNotInContainer) with CUDA's own error code, or EngineFailed where it said nothing.
    """
    lines = stdout.decode(errors="replace").split("\n")
    try:
        seen: dict[str, Any] = json.loads(next(line for line in reversed(lines) if line.startswith("{")))
        free = msgspec.convert(seen["disk_free_bytes"], Natural)
        memory = msgspec.convert(seen["cuda"], CudaMemory | None)
    except (StopIteration, ValueError, KeyError, RecursionError, msgspec.ValidationError) as error:
        said = detail_of(stderr.decode(errors="replace") or stdout.decode(errors="replace"))
        raise InstallerError(EngineFailed(operation=OPERATION, detail=f"exit code {code}: {said}")) from error
    if gpu_uuid and memory is None:
        failed = str(seen.get("failed_call", ""))
        cuda_error = natural(seen.get("code"))
        raise InstallerError(GpuNotInContainer(gpu=gpu_uuid, cuda_error=cuda_error, detail=detail_of(failed)))
    return ProbeReading(cuda=memory, data_root_free_bytes=free)


def _host_config(client: APIClient, gpu_uuid: str | None) -> dict[str, Any]:
    from docker.types import DeviceRequest, LogConfig

    # the same request that Compose makes for the stack: driver, one UUID, the capability "gpu" alone
    card = DeviceRequest(driver="nvidia", device_ids=[gpu_uuid], capabilities=[["gpu"]]) if gpu_uuid else None
    return client.create_host_config(
        network_mode="none",
        device_requests=[card] if card else None,
        log_config=LogConfig(type=LogConfig.types.JSON),  # the engine's own default may be one that cannot be read
    )


def _environment(gpu_uuid: str | None) -> dict[str, str]:
    if not gpu_uuid:
        return {}
    # Under WSL2 device_ids may be ignored and every card be there. `compute` is what brings libcuda in.
    return {"CUDA_VISIBLE_DEVICES": gpu_uuid, "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}


def _source() -> str:
    source = pkgutil.get_data("installer.adapters", "helper_probe.py")
    if source is None:
        raise FileNotFoundError("helper_probe.py")
    return source.decode()

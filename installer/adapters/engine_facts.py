"""What an engine tells of itself, as facts. The engine's state is part of the answer, never an error."""

from __future__ import annotations

import os
import platform
import shutil
from typing import TYPE_CHECKING, Any

from installer.adapters.engine_endpoint import Endpoint, docker_program, endpoint_of, transport_errors
from installer.adapters.engine_errors import detail_of, state_of
from installer.domain.facts import Engine, EngineState, Proxy
from installer.domain.inspection import engine_of, is_desktop, is_podman
from installer.domain.problems import AnyProblem, EngineFailed, InstallerError, UnknownName
from installer.domain.proxy import without_credentials

if TYPE_CHECKING:
    from docker import APIClient

NVIDIA_HOOK = "nvidia-container-runtime-hook"
"""With this program on its PATH dockerd takes GPU requests, although it lists no runtime (moby, nvidia_linux.go)."""


def read(context: str | None, timeout_s: float) -> Engine:
    """Read the engine behind a context; `timeout_s` is the limit of one answer."""
    failures = transport_errors()
    try:
        endpoint = endpoint_of(context)
    except InstallerError as error:
        return Engine(state=EngineState.FAILED, context=context or "", detail=_why(error.problem))
    try:
        with endpoint.connect(timeout_s) as client:
            return _answering(client, endpoint)
    except failures as error:
        return _not_answering(error, endpoint)


def state_without_answer(error: BaseException) -> EngineState:
    """Return why an engine could not be asked; no socket and no docker program means that nothing is installed."""
    state = state_of(error)
    if state is EngineState.DOWN and docker_program() is None:
        return EngineState.NOT_INSTALLED
    return state


def _why(problem: AnyProblem) -> str:
    match problem:
        case UnknownName(value=name):
            return f"no context {name!r}"
        case EngineFailed(detail=detail):
            return detail
        case _:
            return problem.kind


def _not_answering(error: Exception, endpoint: Endpoint) -> Engine:
    return Engine(
        state=state_without_answer(error),
        context=endpoint.context,
        endpoint=endpoint.url,
        detail=detail_of(str(error)),
    )


def _answering(client: APIClient, endpoint: Endpoint) -> Engine:
    version: dict[str, Any] = client.version()
    named: dict[str, Any] = {
        "context": endpoint.context,
        "endpoint": endpoint.url,
        "version": str(version.get("Version") or ""),
        "api_version": str(version.get("ApiVersion") or ""),
    }
    if is_podman(version):
        return Engine(state=EngineState.PODMAN, **named)
    info: dict[str, Any] = client.info()
    return engine_of(
        info,
        version,
        context=endpoint.context,
        endpoint=endpoint.url,
        nvidia_hook=_shares_our_kernel(endpoint.url, info) and shutil.which(NVIDIA_HOOK) is not None,
        data_root_free_bytes=local_free_bytes(endpoint.url, info),
        other_contexts=_others(endpoint.context) if is_desktop(info) else (),
        proxy=_proxy(info),
    )


def _proxy(info: dict[str, Any]) -> Proxy:
    """Return the proxy that the engine pulls through. Go, in which it is written, never asks one for the loopback."""
    return Proxy(
        http=without_credentials(str(info.get("HttpProxy") or "")),
        https=without_credentials(str(info.get("HttpsProxy") or "")),
        no_proxy=str(info.get("NoProxy") or ""),
        reaches_loopback=False,
    )


def _others(current: str) -> tuple[str, ...]:
    """Name the contexts whose socket is there, so that an engine may answer behind it."""
    from docker.context import ContextAPI

    try:
        contexts = ContextAPI.contexts()
    except Exception:  # noqa: BLE001 - docker-py raises bare exceptions for broken files of a context
        return ()
    sockets = {str(one.Name): str(one.Host).removeprefix("unix://") for one in contexts}
    return tuple(name for name, socket in sockets.items() if name != current and os.path.exists(socket))  # noqa: PTH110


def local_free_bytes(url: str, info: dict[str, Any]) -> int | None:
    """Return the free bytes of the data root, or None where it lies in a virtual machine or on another computer.

    An engine on this host shares its kernel; Docker Desktop, Colima and their like bring one of their own.
    """
    if not _shares_our_kernel(url, info) or not info.get("DockerRootDir"):
        return None
    try:
        return shutil.disk_usage(info["DockerRootDir"]).free
    except OSError:
        return None


def _shares_our_kernel(url: str, info: dict[str, Any]) -> bool:
    same_kernel = url.startswith("unix://") and info.get("KernelVersion") == platform.release()
    return same_kernel and not is_desktop(info)

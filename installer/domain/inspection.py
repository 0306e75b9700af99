"""Inspection: what Docker's own JSON says of a container, an image and the engine. Pure: documents in, facts out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from installer.domain.facts import Engine, EngineState
from installer.domain.problems import (
    AnyProblem,
    ComposeFlaw,
    ContainerExited,
    ContainerKilled,
    HealthProgramMissing,
    OtherDigest,
    ProgramNotInImage,
    SharedMemoryTooSmall,
)
from installer.domain.sightings import relevant_lines

DEFAULT_SHM_BYTES = 64 * 1024**2
"""What Docker gives a container where nobody asks for more."""

KILLED = 137
BUS_ERROR = 135
"""128 + SIGBUS."""

_NOT_UP_YET = re.compile(r"Connection refused|Failed to connect|\bstatus 503\b")
_NOT_FOUND = re.compile(r'exec: "([^"]+)": (?:executable file not found|stat \S+ no such file)')


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Docker's word on a container's health.

    `missing_program` is the check's own, where that is not in the image; `early` tells that it asked a server that was
    still loading.
    """

    status: str = ""
    failures: int = 0
    missing_program: str = ""
    early: bool = False


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """A container as `docker inspect` shows it. `error` is the engine's, `shm_bytes` of /dev/shm."""

    status: str = ""
    exit_code: int = 0
    out_of_memory: bool = False
    error: str = ""
    health: Health = Health()
    shm_bytes: int | None = None


def health_of(state: Mapping[str, Any]) -> Health:
    """Read the part `State.Health`, with or without the rest around it."""
    health = state.get("Health") or {}
    entries = health.get("Log") or []
    outputs = [str(entry.get("Output") or "") for entry in entries if isinstance(entry, dict)]
    missing = next((found[1] for output in reversed(outputs) if (found := _NOT_FOUND.search(output))), "")
    status = str(health.get("Status") or "")
    return Health(
        status="" if status == "none" else status,
        failures=int(health.get("FailingStreak") or 0),
        missing_program=missing,
        early=any(_NOT_UP_YET.search(output) for output in outputs),
    )


def container_of(seen: Mapping[str, Any]) -> Container:
    """Read a container's JSON, or a part of it."""
    state: Mapping[str, Any] = seen.get("State") or {}
    shm = (seen.get("HostConfig") or {}).get("ShmSize")
    return Container(
        status=str(state.get("Status") or ""),
        exit_code=int(state.get("ExitCode") or 0),
        out_of_memory=bool(state.get("OOMKilled")),
        error=str(state.get("Error") or ""),
        health=health_of(state),
        shm_bytes=int(shm) if isinstance(shm, int) else None,
    )


def of_container(seen: Container, host_memory_bytes: int | None = None) -> AnyProblem | None:
    """Say what a container's state alone tells of its trouble; None where it tells of none."""
    if seen.health.missing_program:
        return HealthProgramMissing(program=seen.health.missing_program, failures=seen.health.failures or None)
    if seen.health.status == "unhealthy" and seen.health.early:
        return ComposeFlaw(flaw="no_patience", place="healthcheck.start_period", value=str(seen.health.failures))
    program = _NOT_FOUND.search(seen.error)
    if program:
        return ProgramNotInImage(program=program[1])
    if seen.out_of_memory or seen.exit_code == KILLED:
        return ContainerKilled(out_of_memory=seen.out_of_memory, host_memory_bytes=host_memory_bytes)
    if seen.exit_code == BUS_ERROR:
        return SharedMemoryTooSmall(shm_bytes=seen.shm_bytes)
    if seen.exit_code and seen.status != "running":
        return ContainerExited(exit_code_of_container=seen.exit_code, lines=relevant_lines(seen.error))
    return None


def of_image(seen: Mapping[str, Any]) -> AnyProblem | None:
    """Say that an image starts no program by itself: command and entrypoint are then the file's to name."""
    config = seen.get("Config")
    if "RepoDigests" not in seen or not isinstance(config, dict) or config.get("Entrypoint"):
        return None
    name = next(iter(seen.get("RepoTags") or seen.get("RepoDigests") or ()), "")
    return ComposeFlaw(flaw="program_missing", place=str(name), value=" ".join(config.get("Cmd") or ()))


def platform_pin(pinned: str, index_digest: str, platform_digests: tuple[str, ...]) -> OtherDigest | None:
    """Say that a pin names the image of one platform, where the index of all of them is what a tag leads to."""
    if pinned == index_digest or pinned not in platform_digests:
        return None
    return OtherDigest(wrong=pinned, right=index_digest)


def other_digest(pinned: str, image_id: str, repo_digests: tuple[str, ...]) -> OtherDigest | None:
    """Say that a pin names an image's Id, which no registry knows, in place of the digest that it was pulled by."""
    digests = [name.rpartition("@")[2] for name in repo_digests]
    if pinned in digests or not digests:
        return None
    return OtherDigest(wrong=pinned, right=digests[0]) if pinned == image_id else None


def engine_of(info: Mapping[str, Any], version: Mapping[str, Any], **named: Any) -> Engine:
    """Read `/info` and `/version`; `named` are the fields that neither tells."""
    return Engine(
        state=EngineState.RUNNING,
        version=str(version.get("Version") or info.get("ServerVersion") or ""),
        api_version=str(version.get("ApiVersion") or ""),
        os_type=str(info.get("OSType") or ""),
        operating_system=str(info.get("OperatingSystem") or ""),
        architecture=str(info.get("Architecture") or ""),
        kernel=str(info.get("KernelVersion") or ""),
        docker_desktop=is_desktop(info),
        rootless=any("rootless" in str(option) for option in info.get("SecurityOptions") or ()),
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
        cdi_spec_dirs=tuple(info.get("CDISpecDirs") or ()),
        cdi_devices=tuple(str(device.get("ID", "")) for device in info.get("DiscoveredDevices") or ()),
        memory_bytes=info.get("MemTotal") or None,
        data_root=str(info.get("DockerRootDir") or ""),
        **named,
    )


def is_desktop(info: Mapping[str, Any]) -> bool:
    """Say whether `/info` is that of Docker Desktop, on whatever system."""
    return str(info.get("OperatingSystem") or "").startswith("Docker Desktop")


def is_podman(version: Mapping[str, Any]) -> bool:
    """Say whether `/version` is Podman's: it takes Docker's GPU requests and ignores them (podman #22645)."""
    return any("podman" in str(part.get("Name", "")).casefold() for part in version.get("Components") or ())

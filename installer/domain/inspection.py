"""Inspection: what Docker's own JSON says of a container, an image and the engine. Pure: documents in, facts out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from installer.domain.facts import Engine, EngineState
from installer.domain.figures import natural
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
from installer.domain.redaction import redacted
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
    health = _mapping(state.get("Health"))
    outputs = [_text(entry.get("Output")) for entry in _mappings(health.get("Log"))]
    missing = next((found[1] for output in reversed(outputs) if (found := _NOT_FOUND.search(output))), "")
    status = _text(health.get("Status"))
    return Health(
        status="" if status == "none" else status,
        failures=natural(health.get("FailingStreak")) or 0,
        missing_program=missing,
        early=any(_NOT_UP_YET.search(output) for output in outputs),
    )


def container_of(seen: Mapping[str, Any]) -> Container:
    """Read a container's JSON, or a part of it."""
    state = _mapping(seen.get("State"))
    return Container(
        status=_text(state.get("Status")),
        exit_code=exit_code_in(state),
        out_of_memory=state.get("OOMKilled") is True,
        error=_text(state.get("Error")),
        health=health_of(state),
        shm_bytes=natural(_mapping(seen.get("HostConfig")).get("ShmSize")),
    )


def exit_code_in(state: Mapping[str, Any]) -> int:
    """Return a container's exit code; 0 where its state tells none."""
    return natural(state.get("ExitCode")) or 0


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> tuple[Mapping[str, Any], ...]:
    return tuple(one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list, or the names of a mapping."""
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list | dict) else ()


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
    name = next(iter((*_texts(seen.get("RepoTags")), *_texts(seen.get("RepoDigests")))), "")
    return ComposeFlaw(flaw="program_missing", place=name, value=redacted(" ".join(_texts(config.get("Cmd")))))


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
        os_type=_text(info.get("OSType")),
        operating_system=_text(info.get("OperatingSystem")),
        architecture=_text(info.get("Architecture")),
        kernel=_text(info.get("KernelVersion")),
        docker_desktop=is_desktop(info),
        rootless=any("rootless" in option for option in _texts(info.get("SecurityOptions"))),
        runtimes=runtimes_of(info),
        cdi_spec_dirs=_texts(info.get("CDISpecDirs")),
        cdi_devices=tuple(_text(device.get("ID")) for device in _mappings(info.get("DiscoveredDevices"))),
        memory_bytes=natural(info.get("MemTotal")) or None,
        data_root=_text(info.get("DockerRootDir")),
        version=_text(version.get("Version")) or _text(info.get("ServerVersion")),
        api_version=_text(version.get("ApiVersion")),
        **named,
    )


def runtimes_of(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of an engine's runtimes."""
    return tuple(sorted(_texts(info.get("Runtimes"))))


def is_desktop(info: Mapping[str, Any]) -> bool:
    """Say whether `/info` is that of Docker Desktop, on whatever system."""
    return _text(info.get("OperatingSystem")).startswith("Docker Desktop")


def is_podman(version: Mapping[str, Any]) -> bool:
    """Say whether `/version` is Podman's: it takes Docker's GPU requests and ignores them (podman #22645)."""
    return any("podman" in _text(part.get("Name")).casefold() for part in _mappings(version.get("Components")))

"""When a field case is passed: verdict, family, and the input's figures. What to expect, not how it is found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from installer.domain import pasted
from installer.domain.problems import (
    AnyProblem,
    CauseUnknown,
    ContainerExited,
    EngineFailed,
    GpuReadFailed,
    SmokeFailed,
)

UNKNOWN = (CauseUnknown, ContainerExited, EngineFailed, GpuReadFailed, SmokeFailed)
"""Kinds that say only that something went wrong."""

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "antivirus": ("system",),
    "argv": ("docker", "start"),
    "cache-permission": ("disk",),
    "cdi": ("docker",),
    "chat-template": ("smoke",),
    "compose-version": ("docker",),
    "corrupt-file": ("network",),
    "cpu-offload": ("gpu", "start"),
    "digest-gone": ("network",),
    "disk-full": ("disk",),
    "docker-config": ("docker",),
    "docker-down": ("docker",),
    "docker-mode": ("docker",),
    "docker-permission": ("docker",),
    "driver-combination": ("gpu",),
    "driver-mismatch": ("gpu",),
    "driver-too-old": ("gpu",),
    "encoding": ("system", "docker"),
    "flaky-network": ("network",),
    "fp8-ampere": ("gpu",),
    "gpu-lost": ("gpu",),
    "gpu-name": ("gpu",),
    "hang": ("gpu",),
    "healthcheck": ("docker", "smoke"),
    "hf-auth": ("network", "system"),
    "hidpi": ("system",),
    "hybrid-gpu": ("gpu",),
    "image-id": ("docker",),
    "image-oom": ("gpu", "start"),
    "image-quality": ("smoke",),
    "image-too-old": ("start", "gpu"),
    "interpolation": ("docker",),
    "json-quoting": ("docker", "start"),
    "kv-cache": ("start",),
    "mig": ("gpu",),
    "multi-arch-digest": ("docker", "network"),
    "multi-gpu-order": ("gpu",),
    "multimodal": ("smoke",),
    "non-ascii-path": ("system",),
    "nvfp4-kernel": ("gpu",),
    "nvidia-runtime": ("docker",),
    "nvidia-smi-format": ("gpu",),
    "nvml-load": ("gpu",),
    "oom-load": ("start",),
    "oom-prefill": ("start",),
    "port": ("start",),
    "profiling": ("start",),
    "proxy-localhost": ("system", "network"),
    "proxy-tls": ("network",),
    "pynvml": ("system",),
    "qt-platform": ("system",),
    "ram-limit": ("start",),
    "rate-limit": ("network",),
    "readiness": ("smoke",),
    "reasoning": ("smoke",),
    "rerun": ("docker",),
    "shm": ("start",),
    "slow-mount": ("disk",),
    "slow-start": ("start",),
    "stale-vram": ("gpu",),
    "threads": ("system",),
    "unified-memory": ("gpu",),
    "util-too-high": ("gpu", "start"),
    "vgpu": ("gpu",),
    "wddm": ("gpu",),
    "windows-paths": ("docker",),
    "windows-symlink": ("disk",),
    "wsl-gpu": ("gpu", "docker"),
    "wsl-memory": ("gpu",),
    "wsl-residency": ("gpu",),
    "xet-stall": ("network",),
    "yaml-types": ("docker",),
}
"""Which families of Problems a topic of the field is about: by topics, never by cases."""


def shortfall(case: Mapping[str, Any], seen: tuple[AnyProblem, ...]) -> str:
    """Return why a case is not passed, or ""."""
    wanted = case["expected"]["verdict"]
    strongest = pasted.strongest(seen)
    verdict = strongest.value if strongest else "ok"
    told = ", ".join(problem.kind for problem in seen) or "nothing"
    if verdict != wanted:
        return f"{verdict} in place of {wanted} ({told})"
    if wanted == "ok":
        return ""
    gravest = [problem for problem in seen if problem.treatment is strongest]
    known = [problem for problem in gravest if not isinstance(problem, UNKNOWN)]
    if not known:
        return f"nothing but unknown ({told})"
    families = FAMILIES.get(case["topic"], ())
    fitting = [problem for problem in known if problem.family in families]
    if not fitting:
        return f"family {known[0].family} is not of {case['topic']} ({told})"
    unnamed = [figure for figure in figures(case) if not any(names(problem, figure) for problem in seen)]
    return f"{', '.join(unnamed)} not named ({told})" if unnamed else ""


def figures(case: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the case itself marks as its figures: the groups of its own pattern, on any text of its input."""
    if not case["match"]:
        return ()
    pattern = re.compile(case["match"], re.MULTILINE | re.DOTALL)
    matches = (pattern.search(text) for text in texts(case["input"]))
    groups = next((match.groups() for match in matches if match), ())
    return tuple(group for group in groups if group and any(letter.isdigit() for letter in group))


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def names(problem: AnyProblem, figure: str) -> bool:
    """Say whether a figure stands in a Problem: as a number of the same value, or in one of its texts."""
    return any(equals(value, figure) for value in leaves(msgspec.to_builtins(problem)))


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def equals(value: Any, figure: str) -> bool:
    if isinstance(value, str):
        return figure in value
    try:
        return isinstance(value, int | float) and float(figure) == float(value)
    except ValueError:
        return False

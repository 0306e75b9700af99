"""Diagnosis: from what a failed container left behind to a Problem. What is not recognised is said to be unknown."""

from __future__ import annotations

import re
from collections.abc import Callable

from installer.domain.problems import (
    AnyProblem,
    ContainerExited,
    ContainerKilled,
    CudaOutOfMemory,
    FreeBelowUtilisation,
    KvCacheTooSmall,
    NoCacheBlocks,
    StateBlocksTooFew,
    UnknownArgument,
)

KILLED = 137
"""128 + SIGKILL: ended from outside, most often by the kernel when memory ran out."""

LINES_TO_SHOW = 12

PHASES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("serving", re.compile(r"Application startup complete|Started server process")),
    ("graphs", re.compile(r"Captur\w+ (CUDA )?graph|Graph capturing", re.IGNORECASE)),
    ("kv_cache", re.compile(r"Available KV cache memory|GPU KV cache size|[Mm]emory profiling")),
    ("compile", re.compile(r"torch\.compile|Dynamo|Compiling a graph|autotun", re.IGNORECASE)),
    ("weights", re.compile(r"Loading safetensors|Loading weights|Starting to load model|Model loading took")),
)
"""How far a start came, last phase first, by words of vLLM's own log (0.19 to 0.33)."""


def phase(log: str) -> str:
    """Return how far a start came: starting, weights, compile, kv_cache, graphs or serving."""
    return next((name for name, pattern in PHASES if pattern.search(log)), "starting")


def of_container(log: str, exit_code: int, *, out_of_memory: bool, host_memory_bytes: int | None = None) -> AnyProblem:
    """Say why a container ended, from its log and its exit state."""
    recognised = of_log(log)
    if recognised:
        return recognised
    if out_of_memory or exit_code == KILLED:
        return ContainerKilled(out_of_memory=out_of_memory, host_memory_bytes=host_memory_bytes)
    return ContainerExited(exit_code_of_container=exit_code, lines=relevant_lines(log))


def of_log(log: str) -> AnyProblem | None:
    """Return the Problem that a server's log names, or None."""
    for pattern, make in _FINGERPRINTS:
        match = pattern.search(log)
        if match:
            return make(match, log)
    return None


def relevant_lines(log: str) -> tuple[str, ...]:
    """Return the lines that say most: those with an error in them, else the last ones that are not empty."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"error|exception|fatal|denied|not found", line, re.IGNORECASE)]
    return tuple((errors or lines)[-LINES_TO_SHOW:])


def _free_below(match: re.Match[str], _: str) -> AnyProblem:
    return FreeBelowUtilisation(
        free_gib=float(match["free"]),
        total_gib=float(match["total"]),
        utilisation=float(match["util"]),
        wanted_gib=float(match["wanted"]),
    )


def _kv_too_small(match: re.Match[str], log: str) -> AnyProblem:
    possible = re.search(r"estimated maximum model length is (\d+)", log)
    return KvCacheTooSmall(
        context=int(match["context"]),
        needed_gib=float(match["needed"]),
        available_gib=float(match["available"]),
        possible_tokens=int(possible[1]) if possible else None,
    )


def _state_blocks(match: re.Match[str], _: str) -> AnyProblem:
    return StateBlocksTooFew(max_num_seqs=int(match["seqs"]), blocks=int(match["blocks"]))


def _out_of_memory(match: re.Match[str], log: str) -> AnyProblem:
    tried = re.search(r"Tried to allocate ([\d.]+ [KMG]iB)", log[match.start() :])
    reached = phase(log)  # all of it: the engine mixes what came on two streams, and the error may stand too early
    where = {"starting": "weights", "compile": "profiling", "kv_cache": "graphs", "serving": "request"}
    return CudaOutOfMemory(phase=where.get(reached, reached), tried=tried[1] if tried else "")


_FINGERPRINTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], AnyProblem]], ...] = (
    (
        re.compile(
            r"Free memory on device(?: \S+)? \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than "
            r"desired GPU memory utilization \((?P<util>[\d.]+), (?P<wanted>[\d.]+) GiB\)"
        ),
        _free_below,
    ),
    (
        re.compile(
            r"max seq len \((?P<context>\d+)\), \(?(?P<needed>[\d.]+) GiB KV cache is needed, which is larger than the "
            r"available KV cache memory \((?P<available>[\d.]+) GiB\)"
        ),
        _kv_too_small,
    ),
    (
        re.compile(r"max_num_seqs \((?P<seqs>\d+)\) exceeds available Mamba cache blocks \((?P<blocks>\d+)\)"),
        _state_blocks,
    ),
    (re.compile(r"No available memory for the cache blocks"), lambda _, __: NoCacheBlocks()),
    (
        re.compile(r"error: unrecognized arguments: (?P<arguments>.+)"),
        lambda match, _: UnknownArgument(arguments=match["arguments"].strip()),
    ),
    (re.compile(r"torch\.(?:cuda\.)?OutOfMemoryError|CUDA out of memory"), _out_of_memory),
)

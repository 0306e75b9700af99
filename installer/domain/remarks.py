"""Remarks: what a person should know of their cards before anything is chosen, and what Slipway makes of it.

Nothing here blocks a machine as a whole but a board and cards that are all split; the rest is advice.
"""

from __future__ import annotations

import re

from installer.domain import checks
from installer.domain.facts import Facts, Gpu, GpuMemory, GpuProcess, Missing
from installer.domain.problems import (
    AnyProblem,
    CardAsleep,
    CardNameUnknown,
    CardsDiffer,
    CardVariant,
    GpuMemoryUnknown,
    HostMemoryBelowCard,
    LeftoverWorkers,
    MigNotServed,
    SlowDisk,
    UsesHostMemory,
    VariableFlaw,
    VirtualGpu,
)

SAME_SIZE_TOLERANCE = 0.06
"""Cards of one kind differ by a few per cent of what their drivers show."""

SLOW_BYTES_PER_SECOND = 40_000_000
"""A bind mount from NTFS reads at about 20 MB/s, the slowest disk of one's own at 80."""

_WINDOWS_MOUNT = re.compile(r"/mnt/[a-z](?:/|$)|//wsl|\\\\wsl")
_WINDOWS_FILE_SYSTEMS = ("9p", "v9fs", "drvfs", "virtiofs", "fuse.grpcfuse", "fakeowner")
_VARIANT = re.compile(r"Laptop GPU|Max-Q|Mobile|Notebook|\bD v\d")
_VIRTUAL = re.compile(r"^GRID |-\d+[ABCQ]$|\bvGPU\b")
_NO_NAME = re.compile(r"^(?:NVIDIA )?(?:Graphics Device)?$|[\ufffd\x00-\x1f]")
_WORKERS = re.compile(r"^VLLM::|\bvllm\b|EngineCore|sglang::|sd-server", re.IGNORECASE)


def all_of(facts: Facts) -> tuple[AnyProblem, ...]:
    """Return all remarks about a machine: its cards, then its environment."""
    flaws = (VariableFlaw(variable=name, flaw=flaw) for name, flaw in facts.host.variables)
    return (*cards(facts), *_slow_folder(facts), *flaws)


def _slow_folder(facts: Facts) -> tuple[AnyProblem, ...]:
    """Say that the folder for the weights lies on Windows' disk, which WSL reads through a mount."""
    slow = slow_disk(facts.weights_folder.path, "") if facts.host.wsl2 else None
    return (slow,) if slow else ()


def slow_disk(path: str, filesystem: str, bytes_per_second: int | None = None) -> SlowDisk | None:
    """Judge a folder by its path under WSL, by its file system, or by how fast somebody read from it."""
    mounted = _WINDOWS_MOUNT.match(path) is not None or filesystem.casefold() in _WINDOWS_FILE_SYSTEMS
    slow = bytes_per_second is not None and bytes_per_second < SLOW_BYTES_PER_SECOND
    return SlowDisk(path=path, bytes_per_second=bytes_per_second) if mounted or slow else None


def cards(facts: Facts) -> tuple[AnyProblem, ...]:
    """Return what the reading of the cards tells, the gravest first."""
    gpus = facts.nvidia.gpus
    each = [one for gpu in gpus for one in (*checks.board(facts, gpu), *_of(facts, gpu))]
    return (*each, *_differences(gpus), *_asleep(facts), *_host_memory(facts))


def _of(facts: Facts, gpu: Gpu) -> tuple[AnyProblem, ...]:
    if checks.board(facts, gpu):
        return ()
    if gpu.mig_enabled:
        return (MigNotServed(gpu=gpu.name),)
    total = gpu.memory.total_bytes if isinstance(gpu.memory, GpuMemory) else None
    found: list[AnyProblem] = []
    if _NO_NAME.search(gpu.name):
        found.append(CardNameUnknown(gpu=gpu.name, total_bytes=total, driver=facts.nvidia.driver_version or ""))
    if _VIRTUAL.search(gpu.name):
        found.append(VirtualGpu(gpu=gpu.name, total_bytes=total))
    if _VARIANT.search(gpu.name) and total is not None:
        found.append(CardVariant(gpu=gpu.name, total_bytes=total))
    if gpu.unified_memory:
        found.append(UsesHostMemory(gpu=gpu.name, memory_bytes=facts.host.ram_total_bytes))
    elif isinstance(gpu.memory, Missing) and gpu.cuda is None:
        found.append(GpuMemoryUnknown(gpu=gpu.name, state=gpu.memory.value))
    return tuple(found)


def _differences(gpus: tuple[Gpu, ...]) -> tuple[AnyProblem, ...]:
    """Say that cards are not alike, by their size, or by what is free where they are of one size."""
    known = [gpu.memory for gpu in gpus if isinstance(gpu.memory, GpuMemory)]
    if len(known) < 2:
        return ()
    names = tuple(gpu.name for gpu in gpus)
    for free, sizes in ((False, [m.total_bytes for m in known]), (True, [m.free_bytes for m in known])):
        smallest, largest = min(sizes), max(sizes)
        if smallest < largest * (1 - SAME_SIZE_TOLERANCE):
            return (CardsDiffer(cards=names, smallest_bytes=smallest, largest_bytes=largest, free=free),)
    return ()


def _asleep(facts: Facts) -> tuple[AnyProblem, ...]:
    return tuple(CardAsleep(gpu=card.address, state=card.power) for card in facts.host.nvidia_cards if card.asleep)


def _host_memory(facts: Facts) -> tuple[AnyProblem, ...]:
    """Compare main memory with the largest card where CUDA runs behind WSL2 (WSL issue 40678)."""
    memory = facts.engine.memory_bytes or facts.host.ram_total_bytes
    sizes = [gpu.memory.total_bytes for gpu in facts.nvidia.gpus if isinstance(gpu.memory, GpuMemory)]
    if not facts.behind_wsl2 or memory is None or not sizes or memory >= max(sizes):
        return ()
    return (HostMemoryBelowCard(memory_bytes=memory, card_bytes=max(sizes)),)


def leftovers(gpu: Gpu) -> LeftoverWorkers | None:
    """Return the workers of a model server on this card; whoever knows that no server runs knows them for left over."""
    if isinstance(gpu.processes, Missing):
        return None
    workers = [one for one in gpu.processes if not isinstance(one.name, Missing) and _WORKERS.search(one.name)]
    if not workers:
        return None
    names = tuple(f"{one.name} ({one.pid})" for one in workers)
    return LeftoverWorkers(gpu=gpu.name, holders=names, used_bytes=_together(workers, gpu))


def _together(workers: list[GpuProcess], gpu: Gpu) -> int:
    """Add up what workers hold; where the driver does not tell, all that is used on the card."""
    told = [one.used_bytes for one in workers if not isinstance(one.used_bytes, Missing)]
    if len(told) == len(workers):
        return sum(told)
    return gpu.memory.used_bytes if isinstance(gpu.memory, GpuMemory) else 0

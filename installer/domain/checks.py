"""Checks: from facts to problems, all of them, blocking or advice. What is not known is never taken for good."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from installer.domain import proxy
from installer.domain.facts import (
    ComposeState,
    EngineState,
    Facts,
    Gpu,
    GpuMemory,
    GpuProcess,
    Missing,
    NvidiaState,
)
from installer.domain.memory import Budget
from installer.domain.problems import (
    AnyProblem,
    CapabilityTooLow,
    ComposeMissing,
    ComposeTooOld,
    DriverLibraryMismatch,
    DriverNotLoaded,
    DriverTooOld,
    EngineDown,
    EngineFailed,
    EngineIsPodman,
    EngineNoPermission,
    EngineNotInstalled,
    EngineNotLinux,
    EngineTimedOut,
    GpuLost,
    GpuMemoryUnknown,
    GpuReadFailed,
    GpuReadTimedOut,
    MemoryHiddenByWsl2,
    MigNotServed,
    NoGpu,
    NoNvidiaDriver,
    NotEnoughHostMemory,
    NvidiaNoPermission,
    NvidiaToolkitMissing,
    ProfileBlocked,
)
from installer.domain.registry import Block, ImageRelease, Profile, capability
from installer.domain.units import GB, to_gib

OLDEST_COMPOSE = "2.20"
"""The first Compose that knows every key that we write (docs.docker.com, compose release notes)."""

READ_LIMIT_SECONDS = 10.0
"""How long the driver and the engine may take to answer a reading."""

LOADING_NEEDS_BYTES = 8 * GB
"""Host memory that loading takes besides the checkpoint's own pages (public WSL2 reports, club-3090)."""


def machine(facts: Facts) -> tuple[AnyProblem, ...]:
    """Return everything that keeps any profile from running here."""
    return engine(facts) + compose(facts) + nvidia(facts)


def engine(facts: Facts) -> tuple[AnyProblem, ...]:
    """Say what is wrong with the container engine."""
    seen = facts.engine
    match seen.state:
        case EngineState.NOT_INSTALLED:
            return (EngineNotInstalled(system=facts.host.system),)
        case EngineState.DOWN:
            return (EngineDown(endpoint=seen.endpoint, detail=seen.detail),)
        case EngineState.NO_PERMISSION:
            return (EngineNoPermission(endpoint=seen.endpoint),)
        case EngineState.TIMED_OUT:
            return (EngineTimedOut(endpoint=seen.endpoint, seconds=READ_LIMIT_SECONDS),)
        case EngineState.PODMAN:
            return (EngineIsPodman(endpoint=seen.endpoint, version=seen.version),)
        case EngineState.FAILED:
            return (EngineFailed(operation="info", detail=seen.detail),)
        case EngineState.RUNNING:
            wrong_kind = seen.os_type not in ("", "linux")
            return (EngineNotLinux(os_type=seen.os_type),) if wrong_kind else ()


def compose(facts: Facts) -> tuple[AnyProblem, ...]:
    """Say what is wrong with Compose."""
    seen = facts.compose
    if seen.state is not ComposeState.READY:
        return (ComposeMissing(detail=seen.detail),)
    try:
        too_old = Version(seen.version) < Version(OLDEST_COMPOSE)
    except InvalidVersion:
        return ()
    return (ComposeTooOld(version=seen.version, needed=OLDEST_COMPOSE),) if too_old else ()


def nvidia(facts: Facts) -> tuple[AnyProblem, ...]:
    """Say what is wrong with the NVIDIA driver and with the way from the engine to the card."""
    seen = facts.nvidia
    match seen.state:
        case NvidiaState.NO_DRIVER:
            return (NoNvidiaDriver(wsl2=facts.host.wsl2),)
        case NvidiaState.NOT_LOADED | NvidiaState.NOT_SUPPORTED:
            return (DriverNotLoaded(detail=seen.detail),)
        case NvidiaState.LIBRARY_MISMATCH:
            return (DriverLibraryMismatch(detail=seen.detail),)
        case NvidiaState.NO_PERMISSION:
            return (NvidiaNoPermission(detail=seen.detail),)
        case NvidiaState.TIMED_OUT:
            return (GpuReadTimedOut(seconds=READ_LIMIT_SECONDS),)
        case NvidiaState.GPU_LOST:
            return (GpuLost(detail=seen.detail),)
        case NvidiaState.FAILED:
            return (GpuReadFailed(detail=seen.detail),)
        case NvidiaState.NO_DEVICE:
            return (NoGpu(),)
        case NvidiaState.READ:
            return (NoGpu(),) if not seen.gpus else _toolkit(facts)


def _toolkit(facts: Facts) -> tuple[AnyProblem, ...]:
    if facts.engine.state is not EngineState.RUNNING or facts.engine.nvidia_ready:
        return ()
    return (NvidiaToolkitMissing(runtimes=facts.engine.runtimes, docker_desktop=facts.engine.docker_desktop),)


def card(facts: Facts, gpu: Gpu, name: str, profile: Profile, image: ImageRelease) -> tuple[AnyProblem, ...]:
    """Return what keeps a profile from this card for reasons other than room."""
    return (
        *_split_by_mig(gpu),
        *_capability(gpu, name, profile),
        *driver(facts, image.tag, image.cuda),
        *_known_blocks(facts, gpu, name, profile),
        *_memory_known(facts, gpu),
    )


def _split_by_mig(gpu: Gpu) -> tuple[AnyProblem, ...]:
    return (MigNotServed(gpu=gpu.name),) if gpu.mig_enabled else ()


def _capability(gpu: Gpu, name: str, profile: Profile) -> tuple[AnyProblem, ...]:
    has = gpu.compute_capability
    if isinstance(has, Missing):
        return (CapabilityTooLow(profile=name, capability=has.value, needed=profile.min_capability),)
    too_old = has < capability(profile.min_capability)
    too_new = profile.max_capability is not None and has > capability(profile.max_capability)
    if not (too_old or too_new):
        return ()
    needed = profile.min_capability if too_old else f"<= {profile.max_capability}"
    return (CapabilityTooLow(profile=name, capability=f"{has[0]}.{has[1]}", needed=needed),)


def driver(facts: Facts, image: str, image_cuda: str | None) -> tuple[AnyProblem, ...]:
    """Say whether the driver can run the image's CUDA; an unknown driver figure blocks nothing by itself."""
    runs = facts.nvidia.cuda_version
    if image_cuda is None or runs is None or runs >= capability(image_cuda):
        return ()
    return (
        DriverTooOld(
            driver=facts.nvidia.driver_version or "",
            driver_cuda=f"{runs[0]}.{runs[1]}",
            image=image,
            image_cuda=image_cuda,
            wsl2=facts.behind_wsl2,
        ),
    )


def _known_blocks(facts: Facts, gpu: Gpu, name: str, profile: Profile) -> tuple[AnyProblem, ...]:
    return tuple(
        ProfileBlocked(profile=name, reason=block.reason, source=block.source)
        for block in profile.blocks
        if _applies(block, facts, gpu)
    )


def _applies(block: Block, facts: Facts, gpu: Gpu) -> bool:
    has = gpu.compute_capability
    small_enough = block.max_memory_gib is None or (
        isinstance(gpu.memory, GpuMemory) and to_gib(gpu.memory.total_bytes) <= block.max_memory_gib
    )
    same_class = not block.capabilities or (not isinstance(has, Missing) and f"{has[0]}.{has[1]}" in block.capabilities)
    same_platform = block.wsl2 is None or block.wsl2 == facts.behind_wsl2
    return small_enough and same_class and same_platform


def _memory_known(facts: Facts, gpu: Gpu) -> tuple[AnyProblem, ...]:
    measured = isinstance(gpu.memory, GpuMemory) or gpu.cuda is not None
    shared = gpu.unified_memory and facts.host.ram_available_bytes is not None
    if measured or shared:
        return ()
    state = gpu.memory.value if isinstance(gpu.memory, Missing) else Missing.NOTHING_THERE.value
    return (GpuMemoryUnknown(gpu=gpu.name, state=state),)


def advice(facts: Facts, gpu: Gpu | None, room: Budget | None, weights_bytes: int) -> tuple[AnyProblem, ...]:
    """Return what does not block but should be said: memory that is short or hidden by WSL2, one-sided proxies."""
    said: list[AnyProblem] = []
    memory = facts.engine.memory_bytes
    needed = weights_bytes + LOADING_NEEDS_BYTES
    if memory is not None and memory < needed:
        said.append(NotEnoughHostMemory(memory_bytes=memory, needed_bytes=needed, wsl2=facts.behind_wsl2))
    if gpu is not None and room is not None and facts.behind_wsl2 and room.hidden_bytes > 0:
        said.append(MemoryHiddenByWsl2(gpu=gpu.name, hidden_bytes=room.hidden_bytes))
    return (*said, *proxy.advice(facts))


def holders(gpu: Gpu) -> tuple[str, ...]:
    """Name the processes that hold this card's memory, largest first, where the driver tells."""
    if isinstance(gpu.processes, Missing):
        return ()

    def size(process: GpuProcess) -> int:
        return 0 if isinstance(process.used_bytes, Missing) else process.used_bytes

    named = sorted(gpu.processes, key=size, reverse=True)
    return tuple(f"{p.name if not isinstance(p.name, Missing) else '?'} ({p.pid})" for p in named)

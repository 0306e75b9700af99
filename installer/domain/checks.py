"""Checks: from facts to problems, all of them, blocking or advice. What is not known is never taken for good."""

from __future__ import annotations

import msgspec
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
    BoardNotServed,
    CapabilityTooLow,
    ComposeMissing,
    ComposeTooOld,
    DesktopWithoutGpu,
    DriverCombination,
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
    WslIntegrationOff,
)
from installer.domain.registry import Block, ImageRelease, Profile, capability
from installer.domain.units import GB, to_gib

OLDEST_COMPOSE = "2.20"
"""The first Compose that knows every key that we write (docs.docker.com, compose release notes)."""

READ_LIMIT_SECONDS = 10.0
"""How long the driver and the engine may take to answer a reading."""

JETSON_DRIVER = "(nvgpu)"
JETSON_KERNEL = "-tegra"

LOADING_NEEDS_BYTES = 8 * GB
"""Host memory that loading takes besides the checkpoint's own pages (public WSL2 reports, club-3090)."""


def machine(facts: Facts) -> tuple[AnyProblem, ...]:
    """Return everything that keeps any profile from running here."""
    return engine(facts) + compose(facts) + nvidia(facts)


STUB_IN_WSL = "in this WSL"
"""What Docker Desktop's stub says inside a distribution that it does not serve."""


def engine(facts: Facts) -> tuple[AnyProblem, ...]:
    """Say what is wrong with the container engine."""
    seen = facts.engine
    if seen.state in (EngineState.NOT_INSTALLED, EngineState.DOWN) and STUB_IN_WSL in facts.compose.detail:
        return (WslIntegrationOff(detail=facts.compose.detail),)
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
            return _without_driver(facts)
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
            return (NoGpu(),) if not seen.gpus else way_to_the_card(facts)


def _without_driver(facts: Facts) -> tuple[AnyProblem, ...]:
    """Tell a card whose driver is another one (nouveau, a virtual machine's) from a computer without any."""
    foreign = next((card for card in facts.host.nvidia_cards if card.driver not in ("", "nvidia")), None)
    if foreign is not None:
        return (DriverNotLoaded(detail=f"{foreign.address}: {foreign.driver}"),)
    return (NoNvidiaDriver(wsl2=facts.host.wsl2),)


def way_to_the_card(facts: Facts) -> tuple[AnyProblem, ...]:
    """Say what keeps the engine from handing a card to a container."""
    if facts.engine.state is not EngineState.RUNNING:
        return ()
    if facts.engine.docker_desktop and facts.host.system == "Linux" and not facts.host.wsl2:
        return (DesktopWithoutGpu(context=facts.engine.context, other=next(iter(facts.engine.other_contexts), "")),)
    if facts.engine.nvidia_ready:
        return ()
    return (NvidiaToolkitMissing(runtimes=facts.engine.runtimes, docker_desktop=facts.engine.docker_desktop),)


def card(facts: Facts, gpu: Gpu, name: str, profile: Profile, image: ImageRelease) -> tuple[AnyProblem, ...]:
    """Return what keeps a profile from this card for reasons other than room."""
    return (
        *board(facts, gpu),
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


def completed(problem: AnyProblem, facts: Facts) -> AnyProblem:
    """Add what the driver said of itself to a Problem with it that somebody else told."""
    runs = facts.nvidia.cuda_version
    driver = facts.nvidia.driver_version or ""
    if isinstance(problem, DriverTooOld) and not problem.driver:
        cuda = f"{runs[0]}.{runs[1]}" if runs else problem.driver_cuda
        return msgspec.structs.replace(problem, driver=driver, driver_cuda=cuda, wsl2=facts.behind_wsl2)
    if isinstance(problem, DriverCombination) and not problem.driver:
        return msgspec.structs.replace(problem, driver=driver)
    return problem


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


def board(facts: Facts, gpu: Gpu) -> tuple[AnyProblem, ...]:
    """Say that a card is part of a Jetson: its driver and its kernel have names of their own."""
    is_board = JETSON_DRIVER in gpu.name or JETSON_KERNEL in facts.host.release
    return (BoardNotServed(gpu=gpu.name),) if is_board else ()


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
    if gpu is not None and room is not None and facts.behind_wsl2:
        said += hidden_by_wsl2(gpu.name, room.hidden_bytes)
    return (*said, *proxy.advice(facts))


def hidden_by_wsl2(gpu: str, hidden_bytes: int) -> tuple[AnyProblem, ...]:
    """Say how much of a card WSL2 keeps for itself, where it keeps any."""
    return (MemoryHiddenByWsl2(gpu=gpu, hidden_bytes=hidden_bytes),) if hidden_bytes > 0 else ()


def holders(gpu: Gpu) -> tuple[str, ...]:
    """Name the processes that hold this card's memory, largest first, where the driver tells."""
    if isinstance(gpu.processes, Missing):
        return ()

    def size(process: GpuProcess) -> int:
        return 0 if isinstance(process.used_bytes, Missing) else process.used_bytes

    named = sorted(gpu.processes, key=size, reverse=True)
    return tuple(f"{p.name if not isinstance(p.name, Missing) else '?'} ({p.pid})" for p in named)

"""Room: what CUDA can see of a card, from its own figures or derived from NVML's, always downwards. All in bytes."""

from __future__ import annotations

import math

import msgspec

from installer.domain.facts import Facts, Gpu, GpuMemory
from installer.domain.units import Balance, Natural, gib

CUDA_SHARE_OF_NVML_ON_LINUX = 0.98
"""CUDA's total over NVML's, natively on Linux: 31.36 to 31.40 of 31.84 GiB (RTX 5090), 23.52 of 23.99 (4090).

Only where the driver does not tell what it keeps for itself: with that figure the total is exact (measured on an H200,
driver 580.159: 143771 MiB less 615 MiB reserved is CUDA's total to the byte).
"""

CONTEXT_BYTES = gib(0.52)
"""What vLLM's own CUDA context takes before its start gate looks (0.2 to 0.5 GiB in public logs, 0.515 on an H200)."""

WSL2_HIDDEN_BASE_BYTES = gib(0.85)
WSL2_HIDDEN_SHARE = 0.025
"""Idle memory that WSL2 keeps: 0.85 GiB and 2.5 % of the card, fitted to idle cards of 8, 12, 16, 24 and 32 GB."""

WSL2_BELOW_NVML_BYTES = gib(0.77)
"""A container under WSL2 sees this much less than the host's driver shows (RTX 5090, `spike-2026-04-rtx5090`)."""

SAFE_MARGIN_HEADLESS_BYTES = gib(0.3)
SAFE_MARGIN_DESKTOP_BYTES = gib(0.5)
"""What must stay free above vLLM's gate so that a window opened meanwhile does not break the start."""


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What CUDA can see of a card. `source` tells whether CUDA itself said so or it was derived from NVML."""

    total_bytes: Natural
    free_bytes: Natural
    hidden_bytes: Balance
    margin_bytes: Natural
    source: str
    wsl2: bool = False

    @property
    def utilisation_max(self) -> float:
        """Return the highest utilisation that passes vLLM's gate now, in steps of 0.01."""
        return highest_share(self.free_bytes, self.total_bytes)

    @property
    def utilisation_safe(self) -> float:
        """Return the highest utilisation that still passes after the platform's margin is gone."""
        return highest_share(self.free_bytes - self.margin_bytes, self.total_bytes)


def budget(facts: Facts, gpu: Gpu) -> Budget | None:
    """Return what CUDA can use of a card, or None where its memory cannot be known.

    CUDA's own figure wins; without it the figure is derived from NVML's, always downwards.
    """
    if gpu.cuda:
        hidden = max(0, gpu.memory.free_bytes - gpu.cuda.free_bytes) if isinstance(gpu.memory, GpuMemory) else 0
        return Budget(
            total_bytes=gpu.cuda.total_bytes,
            free_bytes=gpu.cuda.free_bytes,
            hidden_bytes=hidden,
            margin_bytes=_margin(facts),
            source="cuda",
            wsl2=facts.behind_wsl2,
        )
    if gpu.unified_memory and facts.host.ram_total_bytes and facts.host.ram_available_bytes:
        return Budget(
            total_bytes=facts.host.ram_total_bytes,
            free_bytes=facts.host.ram_available_bytes,
            hidden_bytes=0,
            margin_bytes=_margin(facts),
            source="host_memory",
        )
    if not isinstance(gpu.memory, GpuMemory):
        return None
    return _from_nvml(facts, gpu.memory)


def _from_nvml(facts: Facts, memory: GpuMemory) -> Budget:
    if facts.behind_wsl2:
        total = memory.total_bytes
        ceiling = total - WSL2_HIDDEN_BASE_BYTES - round(WSL2_HIDDEN_SHARE * total)
        free = min(memory.free_bytes - WSL2_BELOW_NVML_BYTES, ceiling)
    else:
        total = memory.total_bytes - memory.reserved_bytes
        if not memory.reserved_bytes:
            total = round(memory.total_bytes * CUDA_SHARE_OF_NVML_ON_LINUX)
        free = min(memory.free_bytes, total) - CONTEXT_BYTES
    free = max(0, free)
    return Budget(
        total_bytes=total,
        free_bytes=free,
        hidden_bytes=memory.free_bytes - free,
        margin_bytes=_margin(facts),
        source="nvml",
        wsl2=facts.behind_wsl2,
    )


def idle_room(total_bytes: int, *, wsl2: bool) -> Budget:
    """Return what an idle card of this size has free, where only CUDA's total is known."""
    taken = WSL2_HIDDEN_BASE_BYTES + round(WSL2_HIDDEN_SHARE * total_bytes) if wsl2 else CONTEXT_BYTES
    return Budget(
        total_bytes=total_bytes,
        free_bytes=max(0, total_bytes - taken),
        hidden_bytes=taken,
        margin_bytes=0,
        source="idle",
        wsl2=wsl2,
    )


def _margin(facts: Facts) -> int:
    shared_with_desktop = facts.behind_wsl2 or facts.host.desktop_session or facts.host.system == "Windows"
    return SAFE_MARGIN_DESKTOP_BYTES if shared_with_desktop else SAFE_MARGIN_HEADLESS_BYTES


def highest_share(free_bytes: int, total_bytes: int) -> float:
    """Return the highest utilisation in steps of 0.01 whose share is free; a share is rounded up to whole bytes."""
    hundredths = max(0, math.floor(100 * free_bytes / total_bytes + 1e-9))
    while hundredths and math.ceil(total_bytes * (hundredths / 100)) > free_bytes:
        hundredths -= 1
    return hundredths / 100

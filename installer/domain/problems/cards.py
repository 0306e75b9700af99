"""What a reading of the cards means for a plan: what their names hide, how they differ, who still sits on them."""

from __future__ import annotations

from installer.domain.problems.base import Action, Treatment
from installer.domain.problems.graphics_card import GpuProblem


class CardsDiffer(GpuProblem, frozen=True, kw_only=True):
    """Several cards that are not alike: each is judged by itself and addressed by its UUID.

    NVML numbers them by the bus, CUDA by speed; memory is never added up. `smallest_bytes` and `largest_bytes` are of
    their memory, or of what is free of it where they are of one size.
    """

    advice = True
    treated = Treatment.ADAPT
    cards: tuple[str, ...]
    smallest_bytes: int
    largest_bytes: int
    free: bool = False


class CardVariant(GpuProblem, frozen=True, kw_only=True):
    """A card that shares its name with a larger one (laptop, D v2): memory and capability count, never the name."""

    advice = True
    treated = Treatment.ADAPT
    gpu: str
    total_bytes: int


class CardNameUnknown(GpuProblem, frozen=True, kw_only=True):
    """The driver is older than the card and has no name for it, or one that cannot be read."""

    advice = True
    gpu: str
    total_bytes: int | None = None
    driver: str = ""


class VirtualGpu(GpuProblem, frozen=True, kw_only=True):
    """A share of a card in a virtual machine (vGPU, GRID): no unified memory, slow without a licence."""

    advice = True
    gpu: str
    total_bytes: int | None = None


class UsesHostMemory(GpuProblem, frozen=True, kw_only=True):
    """A card without memory of its own (GB10): the computer's memory is what counts."""

    advice = True
    treated = Treatment.ADAPT
    gpu: str
    memory_bytes: int | None = None


class BoardNotServed(GpuProblem, frozen=True, kw_only=True):
    """A Jetson board: NVIDIA's small computers need images of their own."""

    action = Action.REPORT
    gpu: str


class CardAsleep(GpuProblem, frozen=True, kw_only=True):
    """A laptop's card sleeps to save power; a reading wakes it."""

    advice = True
    treated = Treatment.ADAPT
    gpu: str
    state: str


class CardSwitchedOff(GpuProblem, frozen=True, kw_only=True):
    """A laptop's mode has switched the NVIDIA card off; `mode` is what its tool says."""

    action = Action.START
    mode: str


class LeftoverWorkers(GpuProblem, frozen=True, kw_only=True):
    """Workers of a server that is gone still hold graphics memory."""

    action = Action.FREE_MEMORY
    gpu: str
    holders: tuple[str, ...]
    used_bytes: int


class HostMemoryBelowCard(GpuProblem, frozen=True, kw_only=True):
    """Under WSL2 a machine with less main memory than graphics memory fails in odd ways (WSL issue 40678)."""

    advice = True
    memory_bytes: int
    card_bytes: int

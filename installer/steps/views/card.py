"""The page *Graphics card* as values: each card with its memory, who holds it, and what would have to be freed."""

from __future__ import annotations

import typing

import msgspec

from installer.domain.facts import Facts, Gpu, GpuMemory, GpuProcess, Missing
from installer.domain.memory import Budget, Verdict, budget
from installer.domain.offers import Offer, offer
from installer.domain.problems import AnyProblem, MigNotServed
from installer.domain.registry import EvidenceKind
from installer.domain.units import MIB, mib_up
from installer.steps.known import Flow

_EVIDENCE: tuple[EvidenceKind, ...] = typing.get_args(EvidenceKind)


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A program that holds the card's memory; name and bytes are None where the driver does not tell."""

    pid: int
    name: str | None
    used_bytes: int | None


class GpuCard(msgspec.Struct, frozen=True, kw_only=True):
    """One graphics card. Sizes are bytes; `free_bytes` and `used_bytes` are the driver's, `usable_bytes` is CUDA's.

    `missing` is why the driver tells no memory. `holders` is None where it tells no programs. `wanted` is the chosen
    profile on this card, or the one that would be recommended if other programs held nothing; `to_free_bytes` is what
    they must give back for it, 0 where enough is free or freeing does not help. `ours` says that a server of ours runs
    on it, whose memory counts as free. `asleep` says that looking at the card would wake it: it must not be polled.
    """

    uuid: str
    name: str
    capability: str | None
    total_bytes: int | None
    free_bytes: int | None
    used_bytes: int | None
    usable_bytes: int | None
    missing: Missing | None
    shares_main_memory: bool
    holders: tuple[Holder, ...] | None
    wanted: Offer | None
    to_free_bytes: int
    problem: AnyProblem | None
    ours: bool
    asleep: bool
    chosen: bool


def gpu_cards(flow: Flow) -> tuple[GpuCard, ...]:
    """Return every card in the driver's order."""
    facts = flow.facts
    if facts is None:
        return ()
    wanted = _wanted(flow, facts)
    chosen = flow.choices.gpu_uuid or (flow.offered.gpu_uuid if flow.offered else None)
    return tuple(_card(flow, facts, gpu, wanted, chosen) for gpu in facts.nvidia.gpus)


def _card(flow: Flow, facts: Facts, gpu: Gpu, wanted: str | None, chosen: str | None) -> GpuCard:
    room = budget(facts, gpu)
    context = flow.choices.context if wanted == flow.choices.profile else None
    offered = offer(facts, flow.registry, wanted, gpu, context) if wanted else None
    total, free = _as_shown(gpu, room)
    return GpuCard(
        uuid=gpu.uuid,
        name=gpu.name,
        capability=None if isinstance(gpu.compute_capability, Missing) else "{}.{}".format(*gpu.compute_capability),
        total_bytes=total,
        free_bytes=free,
        used_bytes=None if total is None or free is None else total - free,
        usable_bytes=room.free_bytes if room else None,
        missing=_why_missing(gpu) if total is None else None,
        shares_main_memory=gpu.unified_memory,
        holders=_holders(gpu),
        wanted=offered,
        to_free_bytes=_to_free(gpu, offered, flow, facts),
        problem=MigNotServed(gpu=gpu.name) if gpu.mig_enabled else None,
        ours=flow.running is not None and flow.running.gpu is not None and flow.running.gpu.uuid == gpu.uuid,
        asleep=gpu.asleep,
        chosen=gpu.uuid == chosen,
    )


def _as_shown(gpu: Gpu, room: Budget | None) -> tuple[int | None, int | None]:
    """Return total and free as the driver shows them, or the computer's own where the card shares it."""
    if isinstance(gpu.memory, GpuMemory):
        return gpu.memory.total_bytes, gpu.memory.free_bytes
    return (room.total_bytes, room.free_bytes) if room else (None, None)


def _why_missing(gpu: Gpu) -> Missing:
    return gpu.memory if isinstance(gpu.memory, Missing) else Missing.NOTHING_THERE


def _holders(gpu: Gpu) -> tuple[Holder, ...] | None:
    if isinstance(gpu.processes, Missing):
        return None
    held = (_holder(process) for process in gpu.processes)
    return tuple(sorted(held, key=lambda holder: -(holder.used_bytes or 0)))


def _holder(process: GpuProcess) -> Holder:
    return Holder(
        pid=process.pid,
        name=None if isinstance(process.name, Missing) else process.name,
        used_bytes=None if isinstance(process.used_bytes, Missing) else process.used_bytes,
    )


def _wanted(flow: Flow, facts: Facts) -> str | None:
    """Return what was chosen, else the best of what fits and of what only other programs keep from fitting."""
    if flow.choices.profile is not None:
        return flow.choices.profile
    possible = [each for each in flow.offers if _would_be_good(flow, facts, each)]
    best = min(possible, key=lambda each: _rank(flow, each), default=None)
    return best.profile if best else None


def _would_be_good(flow: Flow, facts: Facts, offered: Offer) -> bool:
    profile = flow.registry.profiles[offered.profile]
    if not profile.recommended or profile.stack != flow.choices.stack:
        return False
    gpu = facts.gpu(offered.gpu_uuid) if offered.gpu_uuid else None
    return offered.verdict is Verdict.FITS or (gpu is not None and _fits_with(gpu, _held(gpu), offered, flow, facts))


def _rank(flow: Flow, offered: Offer) -> tuple[int, int, str]:
    quality = flow.registry.profiles[offered.profile].quality
    return _EVIDENCE.index(offered.evidence_here), -quality, offered.profile


def _to_free(gpu: Gpu, offered: Offer | None, flow: Flow, facts: Facts) -> int:
    """Return the least whole MiB that other programs must give back, in bytes; 0 if not needed or of no help."""
    if offered is None or offered.verdict is Verdict.FITS or not _fits_with(gpu, _held(gpu), offered, flow, facts):
        return 0
    least, most = 0, mib_up(_held(gpu))
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if _fits_with(gpu, middle * MIB, offered, flow, facts) else (middle, most)
    return most * MIB


def _held(gpu: Gpu) -> int:
    """Return what could be given back at most; where the computer's memory is shared that is not for us to say."""
    return gpu.memory.total_bytes - gpu.memory.free_bytes if isinstance(gpu.memory, GpuMemory) else 0


def _fits_with(gpu: Gpu, freed_bytes: int, offered: Offer, flow: Flow, facts: Facts) -> bool:
    """Say whether a profile fits once so much was given back; CUDA's own figure is of before and is left out."""
    if offered.fit is None or not isinstance(gpu.memory, GpuMemory):
        return False
    seen = gpu.memory
    free_bytes = min(seen.total_bytes - seen.reserved_bytes, seen.free_bytes + freed_bytes)
    memory = msgspec.structs.replace(seen, free_bytes=free_bytes, used_bytes=seen.total_bytes - free_bytes)
    freed = msgspec.structs.replace(gpu, memory=memory, cuda=None)
    return offer(facts, flow.registry, offered.profile, freed, offered.context or None).verdict is Verdict.FITS

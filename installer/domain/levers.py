"""Levers: what a person could turn to make a profile fit, each with what it gains and what then becomes of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from installer.domain.kv_cache import layout
from installer.domain.memory import Budget, Fit, Verdict, judge, longest_context
from installer.domain.overhead import DEFAULT_BATCHED_TOKENS
from installer.domain.registry import Architecture
from installer.domain.settings import Settings

LeverName = Literal["kv_fp8", "fewer_sequences", "text_only", "eager", "fewer_batched_tokens", "shorter_context"]
FEW_SEQUENCES = 8
SHORTEST_USEFUL_CONTEXT = 2048
CONTEXT_STEP = 1024


class Lever(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change, the memory that it gains at the upper end of the need, and the verdict with it."""

    name: LeverName
    settings: Settings
    gained_bytes: int
    verdict: Verdict


def levers(
    architecture: Architecture,
    weights_bytes: int,
    settings: Settings,
    room: Budget,
    *,
    before: Fit | None = None,
    fp8_kv_runs: bool = True,
) -> tuple[Lever, ...]:
    """Return every lever that gains memory, the ones that make it fit first, then by gain.

    `before` is what the oracle said of these very settings, if it was asked already. `fp8_kv_runs` is false for cards
    or models whose kernels cannot read it. A text-only server also leaves the vision tower's weights out; how large
    they are is not known of every checkpoint, so that only its working memory counts.
    """
    before = before or judge(architecture, weights_bytes, settings, room)
    found = []
    for name, changed in _changes(architecture, weights_bytes, settings, room, before, fp8_kv_runs=fp8_kv_runs):
        after = judge(architecture, weights_bytes, changed, room)
        gained = _need(before) - _need(after)
        if gained > 0:
            found.append(Lever(name=name, settings=changed, gained_bytes=gained, verdict=after.verdict))
    order = (Verdict.FITS, Verdict.TIGHT, Verdict.NO)
    return tuple(sorted(found, key=lambda lever: (order.index(lever.verdict), -lever.gained_bytes)))


def _need(fit: Fit) -> int:
    return fit.estimate.high_bytes + fit.estimate.beside_high_bytes


def _changes(
    architecture: Architecture,
    weights_bytes: int,
    settings: Settings,
    room: Budget,
    before: Fit,
    *,
    fp8_kv_runs: bool,
) -> list[tuple[LeverName, Settings]]:
    possible: list[tuple[LeverName, Settings]] = []

    def add(name: LeverName, **changes: object) -> None:
        changed = msgspec.structs.replace(settings, **changes)
        if changed != settings:
            possible.append((name, changed))

    if fp8_kv_runs and settings.kv_cache_dtype == "auto":
        add("kv_fp8", kv_cache_dtype="fp8")
    add("fewer_sequences", max_num_seqs=FEW_SEQUENCES if settings.max_num_seqs > FEW_SEQUENCES else 1)
    add("text_only", reads_media=False)
    add("eager", enforce_eager=True, graph_sizes=())
    add("fewer_batched_tokens", max_num_batched_tokens=min(settings.max_num_batched_tokens, DEFAULT_BATCHED_TOKENS))
    if before.verdict is not Verdict.FITS:
        shorter = context_that_fits(architecture, weights_bytes, settings, room, before)
        if shorter:
            add("shorter_context", context=shorter)
    return possible


def context_that_fits(
    architecture: Architecture, weights_bytes: int, settings: Settings, room: Budget, before: Fit
) -> int:
    """Return the longest context below the one asked for that *fits*, in steps of 1024 tokens; 0 if none does.

    The bytes that are left say where to look, so that nothing has to be searched where the cache alone is short.
    """
    left = before.share_bytes - before.estimate.weights_bytes - before.estimate.overhead_high_bytes
    if left <= 0:
        return 0
    guess = layout(architecture, settings).longest_context(left) // CONTEXT_STEP * CONTEXT_STEP
    if guess >= SHORTEST_USEFUL_CONTEXT:
        shorter = msgspec.structs.replace(settings, context=guess)
        if guess < settings.context and judge(architecture, weights_bytes, shorter, room).verdict is Verdict.FITS:
            return guess
    shortest = msgspec.structs.replace(settings, context=SHORTEST_USEFUL_CONTEXT)
    if judge(architecture, weights_bytes, shortest, room).verdict is not Verdict.FITS:
        return 0
    return longest_context(architecture, weights_bytes, settings, room, settings.context)

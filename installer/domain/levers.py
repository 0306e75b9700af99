"""Levers: what a person could turn to make a profile fit, each with what it gains and what then becomes of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

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


class Case(NamedTuple):
    """A profile on a card: everything about it that no lever changes. `shift_bytes` is what its own starts taught.

    `fp8_kv_runs` is false for cards or models whose kernels cannot read such a cache.
    """

    architecture: Architecture
    weights_bytes: int
    room: Budget
    shift_bytes: int = 0
    fp8_kv_runs: bool = True

    def judge(self, settings: Settings) -> Fit:
        """Ask the oracle about these settings."""
        return judge(self.architecture, self.weights_bytes, settings, self.room, shift_bytes=self.shift_bytes)

    def longest_context(self, settings: Settings, at_most: int) -> int:
        """Return the longest context in tokens that *fits*, in steps of 1024; 0 if none does."""
        return longest_context(
            self.architecture, self.weights_bytes, settings, self.room, at_most, shift_bytes=self.shift_bytes
        )


def levers(case: Case, settings: Settings, *, before: Fit | None = None) -> tuple[Lever, ...]:
    """Return every lever that gains memory, the ones that make it fit first, then by gain.

    `before` is what the oracle said of these very settings, if it was asked already. A text-only server also leaves the
    vision tower's weights out; how large they are is not known of every checkpoint, so that only its working memory
    counts.
    """
    before = before or case.judge(settings)
    found = []
    for name, changed in _changes(case, settings, before):
        after = case.judge(changed)
        gained = _need(before) - _need(after)
        if gained > 0:
            found.append(Lever(name=name, settings=changed, gained_bytes=gained, verdict=after.verdict))
    order = (Verdict.FITS, Verdict.TIGHT, Verdict.NO)
    return tuple(sorted(found, key=lambda lever: (order.index(lever.verdict), -lever.gained_bytes)))


def _need(fit: Fit) -> int:
    return fit.estimate.high_bytes + fit.estimate.beside_high_bytes


def _changes(case: Case, settings: Settings, before: Fit) -> list[tuple[LeverName, Settings]]:
    possible: list[tuple[LeverName, Settings]] = []

    def add(name: LeverName, **changes: object) -> None:
        changed = msgspec.structs.replace(settings, **changes)
        if changed != settings:
            possible.append((name, changed))

    if case.fp8_kv_runs and settings.kv_cache_dtype == "auto":
        add("kv_fp8", kv_cache_dtype="fp8")
    add("fewer_sequences", max_num_seqs=FEW_SEQUENCES if settings.max_num_seqs > FEW_SEQUENCES else 1)
    add("text_only", reads_media=False)
    add("eager", enforce_eager=True, graph_sizes=())
    add("fewer_batched_tokens", max_num_batched_tokens=min(settings.max_num_batched_tokens, DEFAULT_BATCHED_TOKENS))
    if before.verdict is not Verdict.FITS:
        shorter = context_that_fits(case, settings, before)
        if shorter:
            add("shorter_context", context=shorter)
    return possible


def context_that_fits(case: Case, settings: Settings, before: Fit) -> int:
    """Return the longest context below the one asked for that *fits*, in steps of 1024 tokens; 0 if none does.

    The bytes that are left say where to look, so that nothing has to be searched where the cache alone is short.
    """
    left = before.share_bytes - before.estimate.weights_bytes - before.estimate.overhead_high_bytes
    if left <= 0:
        return 0
    guess = layout(case.architecture, settings).longest_context(left) // CONTEXT_STEP * CONTEXT_STEP
    if guess >= SHORTEST_USEFUL_CONTEXT:
        shorter = msgspec.structs.replace(settings, context=guess)
        if guess < settings.context and case.judge(shorter).verdict is Verdict.FITS:
            return guess
    shortest = msgspec.structs.replace(settings, context=SHORTEST_USEFUL_CONTEXT)
    if case.judge(shortest).verdict is not Verdict.FITS:
        return 0
    return case.longest_context(settings, settings.context)

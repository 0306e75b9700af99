"""The memory bar of a profile as values."""

from __future__ import annotations

from typing import Literal

import msgspec

from installer.domain.memory import Fit

PartKind = Literal["weights", "kv", "overhead", "hidden", "free"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the card's memory: weights, kv, overhead, hidden or free."""

    kind: PartKind
    size_bytes: int


def parts(fit: Fit) -> tuple[Part, ...]:
    """Return how a profile would divide the card's memory; together they are the card, unless it does not fit."""
    need, room = fit.estimate, fit.budget
    used = need.weights_bytes + need.kv_bytes + need.overhead_high_bytes
    left = max(0, room.total_bytes - room.hidden_bytes - used)
    sizes: tuple[tuple[PartKind, int], ...] = (
        ("weights", need.weights_bytes),
        ("kv", need.kv_bytes),
        ("overhead", need.overhead_high_bytes),
        ("hidden", room.hidden_bytes),
        ("free", left),
    )
    return tuple(Part(kind=kind, size_bytes=size) for kind, size in sizes)

"""Watching a transfer: a download that stands still is told by its bytes, never by a clock that ran out.

hf-xet 1.5.1 stood still for ever after 65 MB, without an error (xet-core issue 898).
"""

from __future__ import annotations

from collections.abc import Iterable

from installer.domain.problems import Stalled

STALL_SECONDS = 60.0
"""How long nothing may arrive: names are looked up and connections made anew in less."""


def stalled(what: str, points: Iterable[tuple[float, float]], total: float) -> Stalled | None:
    """Say whether a transfer stood still before its end. `points` are seconds and bytes, in their order."""
    since, most, longest = 0.0, -1.0, 0.0
    for seconds, done in points:
        if done > most:
            since, most = seconds, done
        longest = max(longest, seconds - since) if most < total else longest
    return Stalled(what=what, seconds=longest) if longest >= STALL_SECONDS else None

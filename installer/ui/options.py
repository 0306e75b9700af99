"""How the window was started."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the command line gave to the window; `machine` with `dry_run` is a rehearsal over a recorded machine."""

    home: str | None = None
    registry: str | None = None
    language: str | None = None
    answers: str | None = None
    machine: str | None = None
    dry_run: bool = False
    speed: float = 20.0
    fail: str | None = None

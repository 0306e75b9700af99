"""Diagnosis: from what a failed container or a message left behind to a Problem. What is not known stays unknown."""

from __future__ import annotations

from dataclasses import replace

from installer.domain.fingerprints import Found, Platform, Situation, Table
from installer.domain.problems import AnyProblem, ContainerExited, ContainerKilled
from installer.domain.sightings import PHASES, phase, relevant_lines
from installer.domain.units import to_gib

__all__ = ["KILLED", "PHASES", "of_container", "of_log", "of_message", "phase", "relevant_lines", "serving"]

KILLED = 137
"""128 + SIGKILL: ended from outside, most often by the kernel when memory ran out."""


def serving(
    *, release: str = "", wsl2: bool | None = None, weights_bytes: int | None = None, share_bytes: int | None = None
) -> Situation:
    """Return the situation of a server's log. The sizes tell whether a smaller working set can help at all."""
    known: dict[str, object] = {}
    if weights_bytes is not None and share_bytes is not None:
        known = {"weights_gib": round(to_gib(weights_bytes), 2), "share_gib": round(to_gib(share_bytes), 2)}
    platform: Platform | None = None if wsl2 is None else "wsl2" if wsl2 else "linux"
    return Situation(origin="server", release=release, platform=platform, known=known)


def of_container(
    log: str,
    exit_code: int,
    table: Table,
    *,
    out_of_memory: bool,
    host_memory_bytes: int | None = None,
    situation: Situation | None = None,
) -> AnyProblem:
    """Say why a container ended, from its log and its exit state."""
    recognised = of_log(log, table, situation)
    if recognised:
        return recognised
    if out_of_memory or exit_code == KILLED:
        return ContainerKilled(out_of_memory=out_of_memory, host_memory_bytes=host_memory_bytes)
    return ContainerExited(exit_code_of_container=exit_code, lines=relevant_lines(table.without_harmless(log)))


def of_log(log: str, table: Table, situation: Situation | None = None) -> AnyProblem | None:
    """Return the Problem that a server's log names, or None."""
    return table.cause(log, situation or serving())


def of_message(text: str, table: Table, situation: Situation | None = None) -> Found | None:
    """Return what a message of unknown origin names: what a server, the engine, the hub or a window would say."""
    return table.find(text, replace(situation, origin=None) if situation else Situation())

"""Room and permission on a disk."""

from __future__ import annotations

from installer.domain.problems.base import Action, Problem


class DiskProblem(Problem, frozen=True, kw_only=True):
    """Disk space and the right to write."""

    family = "disk"
    exit_code = 40
    action = Action.TRY_AGAIN


class DiskFull(DiskProblem, frozen=True, kw_only=True):
    """Not enough room: `where` is a folder, or the engine's data root."""

    where: str
    needed_bytes: int | None
    free_bytes: int | None
    engine: bool = False


class NotWritable(DiskProblem, frozen=True, kw_only=True):
    """A folder or file cannot be written by this user."""

    path: str
    reason: str = ""

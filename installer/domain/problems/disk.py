"""Room and permission on a disk."""

from __future__ import annotations

from installer.domain.problems.base import Action, Problem, Treatment


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


class SymlinkRefused(DiskProblem, frozen=True, kw_only=True):
    """Windows lets this account make no symbolic links (WinError 1314); Slipway's own download makes none."""

    treated = Treatment.ADAPT
    path: str


class SlowDisk(DiskProblem, frozen=True, kw_only=True):
    """Weights behind a mount of Windows' disk are read slowly; a volume of the engine is not."""

    advice = True
    treated = Treatment.ADAPT
    path: str
    bytes_per_second: int | None = None

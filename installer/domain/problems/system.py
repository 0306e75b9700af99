"""The system around Slipway: its window, its encodings, its variables, and what watches over programs."""

from __future__ import annotations

from typing import Literal

from installer.domain.problems.base import Action, Problem, Treatment


class SystemProblem(Problem, frozen=True, kw_only=True):
    """The operating system, the window system, the environment."""

    family = "system"
    exit_code = 70
    action = Action.CHECK_AGAIN


class ForeignEncoding(SystemProblem, frozen=True, kw_only=True):
    """A file or a program's answer is not UTF-8 (UTF-16, a byte order mark, an ANSI code page); it is read anyway."""

    advice = True
    treated = Treatment.ADAPT
    source: str
    encoding: str


Flaw = Literal["empty", "blanks", "loopback_through_proxy", "undecodable"]


class VariableFlaw(SystemProblem, frozen=True, kw_only=True):
    """A variable of the environment that misleads other programs; Slipway goes around it. Never holds its value."""

    advice = True
    treated = Treatment.ADAPT
    variable: str
    flaw: str


class QtLibraryMissing(SystemProblem, frozen=True, kw_only=True):
    """The window needs a library of the system that is not there."""

    action = Action.INSTALL
    library: str

    @property
    def command(self) -> str:
        """Return the command that installs it on Debian and Ubuntu."""
        return f"sudo apt install {self.library or 'libxcb-cursor0'}"


class QtPluginMissing(SystemProblem, frozen=True, kw_only=True):
    """The window toolkit finds no way to draw here: the package is incomplete, or there is no screen."""

    action = Action.INSTALL
    plugin: str


class ThreadStillRunning(SystemProblem, frozen=True, kw_only=True):
    """A window was closed while its work went on; Slipway asks, stops its work and waits for it."""

    advice = True
    treated = Treatment.ADAPT
    detail: str = ""


class WrongThread(SystemProblem, frozen=True, kw_only=True):
    """A window was touched from another thread; Slipway hands every change over by one queued signal."""

    advice = True
    treated = Treatment.ADAPT
    detail: str = ""


class Quarantined(SystemProblem, frozen=True, kw_only=True):
    """A virus scanner took a program away by a guess (`!ml`): packed Python programs are often taken for malware."""

    advice = True
    threat: str
    file: str = ""


class NvmlModuleDoubled(SystemProblem, frozen=True, kw_only=True):
    """The package pynvml is a redirect to nvidia-ml-py; both own the module's name. Slipway uses the latter alone."""

    advice = True
    treated = Treatment.ADAPT
    module: str = "pynvml"


class CauseUnknown(SystemProblem, frozen=True, kw_only=True):
    """Nothing that is known explains what was pasted; the lines are those that say most."""

    action = Action.REPORT
    lines: tuple[str, ...] = ()

    @property
    def technical(self) -> tuple[str, ...]:
        """Return the lines that say most."""
        return self.lines

"""The entry by which a person's session starts a stack: a desktop file on Linux, a command file on Windows.

Never a system service: the card belongs to the person at the screen, and no administrator is asked.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from installer.steps.home import write_atomically


class SessionAutostart:
    """Writes and removes the entries; implements `Autostart`.

    `command` is how Slipway is called, `folder` where the session looks (found from the environment if None).
    """

    def __init__(self, command: tuple[str, ...] | None = None, folder: Path | None = None) -> None:
        self._command = command or _own_command()
        self._folder = folder or _session_folder(os.environ, sys.platform)

    def enable(self, stack: str) -> str:
        """Write the entry; return its path. Raises InstallerError(NotWritable or DiskFull)."""
        argv = (*self._command, "start", "--stack", stack, "--wait-engine")
        path = self._path(stack)
        write_atomically(path, _windows_entry(argv) if sys.platform == "win32" else _desktop_entry(stack, argv))
        return str(path)

    def disable(self, stack: str) -> None:
        """Remove the entry if it is there."""
        self._path(stack).unlink(missing_ok=True)

    def _path(self, stack: str) -> Path:
        ending = "cmd" if sys.platform == "win32" else "desktop"
        return self._folder / f"slipway-{stack}.{ending}"


def _own_command() -> tuple[str, ...]:
    if getattr(sys, "frozen", False):
        return (sys.executable,)
    return (sys.executable, "-m", "installer")


def _session_folder(environ: Mapping[str, str], system: str) -> Path:
    if system == "win32":
        roaming = environ.get("APPDATA") or str(Path.home() / "AppData" / "Roaming")
        return Path(roaming) / "Microsoft" / "Windows" / "Start Menu" / "Programs" / "Startup"
    return Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "autostart"


def _desktop_entry(stack: str, argv: tuple[str, ...]) -> str:
    r"""Quote by the desktop entry specification: `\`, `"`, `` ` `` and `$` escaped in double quotes, `%` doubled."""

    def quoted(word: str) -> str:
        escaped = "".join(f"\\\\{c}" if c in '\\"`$' else c for c in word)
        return f'"{escaped}"'.replace("%", "%%")

    exec_line = " ".join(quoted(word) if shlex.quote(word) != word else word for word in argv)
    return f"[Desktop Entry]\nType=Application\nName=Slipway ({stack})\nExec={exec_line}\nTerminal=false\n"


def _windows_entry(argv: tuple[str, ...]) -> str:
    words = " ".join(f'"{word}"' for word in argv).replace("%", "%%")
    return f'@start "" /min {words}\r\n'

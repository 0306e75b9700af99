"""The way in: `slipway` as a window or a command, and the same program as the child that asks the graphics driver."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec


def main() -> int:
    """Run Slipway and return its exit code."""
    argv = sys.argv[1:]
    if argv == ["--version"]:
        # Read before anything is imported: a shell prompt or a package test may ask for it often.
        from installer import __version__

        print(f"slipway {__version__}")
        return 0
    if argv == ["--nvml-child"]:
        from installer import doors

        return doors.nvml_child()
    if wants_window(argv, os.environ) and _can_load_qt():
        from installer.ui import start

        try:
            given = start.options(argv[1:])
        except ValueError:
            given = None  # what is wrong with it is said by the command line
        if given is not None:
            return start.run(given)
    from installer.cli.main import run

    return run(argv)


def wants_window(argv: list[str], environ: Mapping[str, str]) -> bool:
    """Say whether a window is meant: `slipway window`, or `slipway` alone where there is a screen to show it on."""
    if argv[:1] == ["window"]:
        return "--help" not in argv and "-h" not in argv
    has_screen = sys.platform in ("win32", "darwin") or any(environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY"))
    return not argv and has_screen


def _can_load_qt() -> bool:
    """Say whether Qt is here with the libraries that it needs from the desktop."""
    if find_spec("PySide6") is None:
        return False
    try:
        import_module("PySide6.QtWidgets")
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())

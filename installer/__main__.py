"""The way in: `slipway`, and the same program as the child that asks the graphics driver."""

from __future__ import annotations

import sys


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
    from installer.cli.main import run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())

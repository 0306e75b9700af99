"""Starting the window: its arguments, then Qt. A wrong argument is said by the command line, which knows them all."""

from __future__ import annotations

import argparse
from typing import NoReturn

from installer.ui.options import Options


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def run(given: Options) -> int:
    """Open the window; return when it is closed."""
    from installer.ui.app import run as run_application

    return run_application(given)


def options(argv: list[str]) -> Options:
    """Read the arguments of the window. Raises ValueError for what it does not know."""
    parser = _Parser(prog="slipway window", allow_abbrev=False, add_help=False)
    for name in ("--home", "--registry", "--answers", "--machine"):
        parser.add_argument(name)
    parser.add_argument("--language", choices=("de", "en"))
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--dry-run-speed", type=float, default=20.0)
    parser.add_argument("--dry-run-fail")
    given = parser.parse_args(argv)
    return Options(
        home=given.home,
        registry=given.registry,
        answers=given.answers,
        machine=given.machine,
        language=given.language,
        dry_run=given.dry_run,
        speed=given.dry_run_speed,
        fail=given.dry_run_fail,
    )

"""How long `slipway --version` and `slipway detect --json` take as whole processes, next to an empty Python.

The three take turns, so that whatever else the machine does falls on all of them alike.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 9
SLIPWAY = str(Path(sys.executable).with_name("slipway"))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "slipway --version": [SLIPWAY, "--version"],
    "slipway detect --json": [SLIPWAY, "detect", "--json"],
}
HEAVY = ("docker", "PySide6", "keyring", "rich", "requests", "yaml")
"""What a command that does not need it should not import."""


def main() -> int:
    measured = medians()
    empty, _ = measured["python -c pass"]
    print(f"{'median of ' + str(ROUNDS):<24}{'ms':>8}{'CPU ms':>8}{'of python':>12}  imports")
    for name, (taken, worked) in measured.items():
        shown = "" if name.startswith("python") else ", ".join(imported(COMMANDS[name][1:])) or "none of the heavy ones"
        print(f"{name:<24}{taken * 1000:>8.0f}{worked * 1000:>8.0f}{taken / empty:>11.1f}x  {shown}".rstrip())
    version = imported(["--version"])
    for module in ("docker", "PySide6"):
        print(f"--version imports {module}: {'yes' if module in version else 'no'}")
    return 0


def medians() -> dict[str, tuple[float, float]]:
    """Return what a clock and what the processor says, in seconds; the first round only warms the disk's cache."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS + 1):
        for name, command in COMMANDS.items():
            began, worked = time.perf_counter(), _worked()
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            measured[name].append((time.perf_counter() - began, _worked() - worked))
    return {
        name: (statistics.median(t for t, _ in runs[1:]), statistics.median(w for _, w in runs[1:]))
        for name, runs in measured.items()
    }


def _worked() -> float:
    """Return the processor's time for all children so far; it hardly minds what else the machine does."""
    times = os.times()
    return times.children_user + times.children_system


def imported(arguments: list[str]) -> list[str]:
    """Return which of the heavy packages a command line imports, as Python's own list of imports says."""
    command = [sys.executable, "-X", "importtime", "-m", "installer", *arguments]
    done = subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    lines = done.stderr.decode(errors="replace").splitlines()
    names = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    return [name for name in HEAVY if name in names]


if __name__ == "__main__":
    sys.exit(main())

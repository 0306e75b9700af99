"""How long `slipway --version` and `slipway detect --json` take as whole processes, next to an empty Python.

The three take turns, so that whatever else the machine does falls on all of them alike.
"""

from __future__ import annotations

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
    seconds = medians()
    empty = seconds["python -c pass"]
    print(f"{'median of ' + str(ROUNDS):<24}{'ms':>8}{'of python':>12}  imports")
    for name, taken in seconds.items():
        shown = "" if name.startswith("python") else ", ".join(imported(COMMANDS[name][1:])) or "none of the heavy ones"
        print(f"{name:<24}{taken * 1000:>8.0f}{taken / empty:>11.1f}x  {shown}")
    version = imported(["--version"])
    for module in ("docker", "PySide6"):
        print(f"--version imports {module}: {'yes' if module in version else 'no'}")
    return 0


def medians() -> dict[str, float]:
    """Run every command once a round; the first round only warms the disk's cache."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS + 1):
        for name, command in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(times[1:]) for name, times in taken.items()}


def imported(arguments: list[str]) -> list[str]:
    """Return which of the heavy packages a command line imports, as Python's own list of imports says."""
    command = [sys.executable, "-X", "importtime", "-m", "installer", *arguments]
    done = subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    lines = done.stderr.decode(errors="replace").splitlines()
    names = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    return [name for name in HEAVY if name in names]


if __name__ == "__main__":
    sys.exit(main())

"""The longer run by hand: `python -m tests.fuzz --minutes 15 [NAME ...]`, every target in turn, with new examples.

A failure does not stop it. Each kind of failure (target, exception, place in the product) is told once, with the
shortest example that was seen, and at the end the figures of every target. Ends with 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, seed, settings

from tests.fuzz.kit import GATE, Hang, Target, target

HERE = Path(__file__).parent
PRODUCT = str(HERE.parents[1] / "installer")
ROUND_SECONDS = 10.0
LONGEST_EXAMPLE = 3000


@dataclass
class Failure:
    """One kind of failure, and the shortest example of it."""

    times: int
    example: str
    trace: str


@dataclass
class Log:
    """What was tried, and what came of it."""

    examples: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    failures: dict[tuple[str, str], Failure] = field(default_factory=dict)

    def note(self, name: str, error: BaseException, example: str) -> None:
        place = where(error)
        known = self.failures.get((name, place))
        trace = "".join(traceback.format_exception(error)[-12:])
        if known is None:
            self.failures[name, place] = Failure(1, example, trace)
            print(f"\n== {name}: {place}\n{example[:LONGEST_EXAMPLE]}\n", flush=True)
        else:
            known.times += 1
            if len(example) < len(known.example):
                known.example, known.trace = example, trace

    def table(self) -> None:
        width = max(map(len, self.examples), default=0)
        for name, count in self.examples.items():
            kinds = sum(1 for other, _ in self.failures if other == name)
            said = f", {kinds} kinds of failure" if kinds else ""
            print(f"{name:<{width}} {count:>9,} examples {self.seconds[name]:>7.0f} s{said}")


def where(error: BaseException) -> str:
    """Name an exception and the innermost line of the product, or of the target where it is an assertion."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PRODUCT)] or frames
    last = frames[-1] if isinstance(error, AssertionError) else ours[-1]
    said = str(error).partition("\n")[0][:60] if isinstance(error, AssertionError) else ""
    return f"{type(error).__name__} {said} at {Path(last.filename).name}:{last.lineno}"


def rounds(one: Target, log: Log, deadline: float, chance: random.Random) -> None:
    """Try a target with new examples until its turn is over."""
    began = time.monotonic()
    done = 0

    def check(**values: Any) -> None:
        nonlocal done
        if time.monotonic() > deadline:
            return
        done += 1
        try:
            one.check(**values)
        except (Exception, Hang) as error:  # noqa: BLE001 - whatever it is, it is what was looked for
            log.note(one.name, error, ", ".join(f"{name}={value!r}" for name, value in values.items()))

    while time.monotonic() < deadline:
        examples = max(20, one.examples)
        fresh = settings(GATE, max_examples=examples, derandomize=False, phases=[Phase.generate])
        seed(chance.getrandbits(64))(fresh(given(**one.strategies)(check)))()
    log.examples[one.name] += done
    log.seconds[one.name] += round(time.monotonic() - began)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.getrandbits(32))
    parser.add_argument("names", nargs="*", metavar="NAME", help="part of a target's name; all without one")
    asked = parser.parse_args(argv)
    for file in sorted(HERE.glob("test_*.py")):
        importlib.import_module(f"tests.fuzz.{file.stem}")
    chosen = [one for one in target.known if not asked.names or any(name in one.name for name in asked.names)]
    end, log, chance = time.monotonic() + 60 * asked.minutes, Log(), random.Random(asked.seed)
    turn = min(ROUND_SECONDS, 60 * asked.minutes / max(1, len(chosen)))
    print(f"{len(chosen)} targets, {asked.minutes:g} minutes, seed {asked.seed}", flush=True)
    try:
        while chosen and time.monotonic() < end:
            for one in chosen:
                rounds(one, log, min(end, time.monotonic() + turn), chance)
    except KeyboardInterrupt:
        print("Stopped.")
    for (name, place), failure in log.failures.items():
        print(f"\n== {name}: {place}, {failure.times} times\n{failure.example[:LONGEST_EXAMPLE]}\n{failure.trace}")
    log.table()
    print(f"{sum(log.examples.values()):,} examples, {len(log.failures)} kinds of failure")
    return 1 if log.failures or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

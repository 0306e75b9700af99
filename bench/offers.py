"""What one machine costs against all profiles, with every profile's levers, in the processor's time after import."""

from __future__ import annotations

import statistics
import sys
import time

from installer.domain.offers import offers
from tests.builders import MACHINES, recorded, shipped_registry

ROUNDS = 9
TARGET_MS = 25


def main() -> int:
    registry = shipped_registry()
    slowest = 0.0
    print(f"{'machine':<32}{'offers':>8}{'levers':>8}{'CPU ms':>9}")
    for name in MACHINES:
        facts = recorded(name)
        counted, taken = (0, 0), []
        for _ in range(ROUNDS):
            began = time.process_time()
            counted = all_of(facts, registry)
            taken.append(1000 * (time.process_time() - began))
        median = statistics.median(taken)
        slowest = max(slowest, median)
        print(f"{name:<32}{counted[0]:>8}{counted[1]:>8}{median:>9.1f}")
    met = "met" if slowest < TARGET_MS else "MISSED"
    print(f"offers: slowest machine {slowest:.1f} ms of CPU, target {TARGET_MS}: {met}")
    return 0


def all_of(facts, registry) -> tuple[int, int]:
    """Judge every profile, with the levers of each that was judged by room; count both."""
    judged = offers(facts, registry)
    return len(judged), sum(len(each.levers) for each in judged)


if __name__ == "__main__":
    sys.exit(main())

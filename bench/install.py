"""Image and weights side by side, against the longer of the two alone: what a person waits for in an installation.

The product's own fetch phase runs over a private engine and a registry behind a slow line, and over a hub that is slow
by itself. Every run begins without image and weights. Needs root and what `tests/rig/install-debian.sh` installs.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from installer import doors
from installer.domain.choices import Choices
from installer.domain.plan import Plan
from installer.steps import install
from installer.steps.cancel import Cancel
from installer.steps.home import Home
from installer.steps.job import Job, Secrets
from installer.steps.planning import planned
from installer.steps.run import Run
from tests.builders import recorded, shipped_registry
from tests.rig.checkpoint import tiny_checkpoint
from tests.rig.engine import PrivateEngine
from tests.rig.hub import LocalHub
from tests.rig.images import build_and_push
from tests.rig.registry import LocalRegistry
from tests.rig.rig import missing
from tests.rig.throttle import Throttle

RUNS = 5
TARGET = 1.15
MACHINE, PROFILE = "rtx-5090-linux", "qwen3.6-27b-nvfp4-64k"
# Each takes about five seconds by itself: the closer the two are, the more one could hold up the other.
IMAGE_BYTES_PER_S = 2_400_000
WEIGHTS_BYTES_PER_S = 330_000
"""Of one file; both shards come at the same time."""


def main() -> int:
    if reason := missing():
        print(f"install: not measured, {reason}")
        return 0
    with (
        PrivateEngine() as engine,
        LocalRegistry() as registry,
        LocalHub() as hub,
        Throttle(registry.port) as line,
        tempfile.TemporaryDirectory(prefix="slipway-bench-") as folder,
    ):
        build_and_push(registry, salt="bench")
        hub.add(shipped_registry().models[shipped_registry().profiles[PROFILE].model].repo, tiny_checkpoint(hidden=256))
        os.environ |= {name: engine.env[name] for name in ("DOCKER_HOST", "DOCKER_CONFIG")}
        os.environ |= {"SLIPWAY_REGISTRY_MIRROR": line.address, "HF_ENDPOINT": hub.endpoint}
        plan, job = prepare(Path(folder))
        show(plan, measure(plan, job, line, hub))
    return 0


def prepare(folder: Path) -> tuple[Plan, Job]:
    """Plan as the command line does, with the doors of the command line, on a recorded machine."""
    home, ports, registry, facts = Home(folder), doors.real(Secrets()), shipped_registry(), recorded(MACHINE)
    plan = planned(facts, registry, Choices(profile=PROFILE, folder=str(home.models)), ports, home)
    assert isinstance(plan, Plan), plan
    run = Run(lambda _event: None, Cancel(), ports.clock)
    return plan, Job(ports=ports, run=run, home=home.stack(plan.stack), registry=registry, facts=facts)


def measure(plan: Plan, job: Job, line: Throttle, server: LocalHub) -> dict[str, list[float]]:
    """Time the fetch phase with one of the two there already, and with neither; in turn, so that noise falls on all."""
    engine, hub, cancel = job.ports.engine, job.ports.hub, job.run.cancel

    def timed(there: Callable[[], None]) -> float:
        line.rate = None
        server.heal()
        engine.remove_image(plan.image)
        hub.remove(plan.weights, plan.place)
        there()
        image_is_there, sent = engine.has_image(plan.image), line.bytes_down
        line.rate = IMAGE_BYTES_PER_S
        server.fault(on="content", bytes_per_s=WEIGHTS_BYTES_PER_S)
        began = time.perf_counter()
        install._fetch(plan, job)
        taken = time.perf_counter() - began
        assert engine.has_image(plan.image)
        assert hub.missing_bytes(plan.weights, plan.place) == 0
        # An engine that kept a layer would pull faster than the line.
        assert image_is_there or line.bytes_down - sent >= plan.image.size_bytes
        return taken

    cases: dict[str, Callable[[], None]] = {
        "image": lambda: hub.fetch(plan.weights, plan.place, _untold, cancel),
        "weights": lambda: engine.pull(plan.image, _untold, cancel),
        "together": lambda: None,
    }
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(RUNS):
        for name, there in cases.items():
            seconds[name].append(timed(there))
    return seconds


def show(plan: Plan, seconds: dict[str, list[float]]) -> None:
    middle = {name: statistics.median(times) for name, times in seconds.items()}
    longer = max(middle["image"], middle["weights"])
    megabytes = {"image": plan.image.size_bytes / 1e6, "weights": plan.weights.size_bytes / 1e6}
    print(f"{'median of ' + str(RUNS):<22}{'s':>8}{'from':>8}{'to':>8}{'MB':>8}")
    for name, label in (("image", "image alone"), ("weights", "weights alone"), ("together", "side by side")):
        times, size = seconds[name], megabytes.get(name, sum(megabytes.values()))
        print(f"{label:<22}{middle[name]:>8.2f}{min(times):>8.2f}{max(times):>8.2f}{size:>8.1f}")
    print(f"one after the other would take {(middle['image'] + middle['weights']) / longer:.2f} of the longer one")
    print(f"install: ratio {middle['together'] / longer:.2f} (target {TARGET})")


def _untold(_done: int, _total: int) -> None:
    """Take progress that nobody looks at."""


if __name__ == "__main__":
    sys.exit(main())

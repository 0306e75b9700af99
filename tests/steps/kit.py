"""A rehearsal: the steps over the doors of a dry run, with a clock that jumps and a person that answers in advance."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from installer import resources
from installer.adapters.dryrun import dry_run_ports
from installer.domain import facts as fact_files
from installer.domain import registry as registries
from installer.domain.choices import Choices
from installer.domain.facts import Facts, Gpu, GpuMemory
from installer.domain.plan import Plan
from installer.domain.problems import AnyProblem, Cancelled, InstallerError, RelaxRefused
from installer.domain.registry import Registry
from installer.steps import install as installing
from installer.steps import read
from installer.steps.cancel import Cancel
from installer.steps.events import Event, Failed, Finished, Notice, Progress, Settled, Skipped, Started, Step
from installer.steps.home import Home
from installer.steps.install import Installed
from installer.steps.job import Job, Secrets
from installer.steps.planning import plan_to_install
from installer.steps.ports import Ports
from installer.steps.run import Run

T = TypeVar("T")
E = TypeVar("E")

MACHINES = Path(__file__).parents[1] / "machines"
SHIPPED = registries.parse(resources.registry_texts())
SMALL_CARD = "rtx-4060-8gb"
SMALL_PROFILE = "qwen3.5-4b-fp8-8gb"
LARGE_PROFILE = "qwen3.6-27b-nvfp4-64k"
FASTEST = 1e9
"""So fast that transfers report as rarely as they may."""


class JumpingClock:
    """Nobody waits: time goes on by what somebody would have waited. Implements `Clock`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds = 0.0

    def now(self) -> str:
        return "2026-11-02T09:00:00Z"

    def monotonic(self) -> float:
        return self._seconds

    def wait(self, seconds: float, cancel: Cancel) -> None:
        cancel.check()
        with self._lock:
            self._seconds += seconds


def machine(name: str, folder: Path) -> Facts:
    """A recorded machine whose weights folder is this one."""
    seen = fact_files.from_json((MACHINES / f"{name}.json").read_bytes())
    return msgspec.structs.replace(seen, weights_folder=msgspec.structs.replace(seen.weights_folder, path=str(folder)))


def with_card_bytes(seen: Facts, total_bytes: int) -> Facts:
    """The same machine with a card of another size, all of it free."""
    (gpu,) = seen.nvidia.gpus
    assert isinstance(gpu.memory, GpuMemory)
    memory = GpuMemory(total_bytes=total_bytes, free_bytes=total_bytes, used_bytes=0)
    other: Gpu = msgspec.structs.replace(gpu, memory=memory)
    return msgspec.structs.replace(seen, nvidia=msgspec.structs.replace(seen.nvidia, gpus=(other,)))


@dataclass
class Told:
    """The events of one run."""

    events: list[Event] = field(default_factory=list)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def steps(self, kind: type[Started | Finished | Skipped | Failed]) -> list[Step]:
        return [event.step for event in self.of(kind)]

    @property
    def notes(self) -> list[Any]:
        return [event.notice for event in self.of(Notice)]

    @property
    def outcome(self) -> str:
        return self.of(Settled)[-1].outcome

    def progress(self, step: Step) -> list[tuple[int, int]]:
        return [(event.done, event.total) for event in self.of(Progress) if event.step is step]


@dataclass
class Rehearsal:
    """One home over one dry run; every call of `install` is one call of the command."""

    folder: Path
    recorded: Facts
    ports: Ports
    registry: Registry = SHIPPED
    choices: Choices = field(default_factory=Choices)
    secrets: Secrets = field(default_factory=Secrets)
    overwrite: bool = False
    agrees: Callable[[RelaxRefused], bool] = lambda _: False
    patience_s: dict[str, float] = field(default_factory=dict)
    cancel: Cancel = field(default_factory=Cancel)
    on_event: Callable[[Told], object] = lambda _: None
    told: Told = field(default_factory=Told)

    @property
    def home(self) -> Home:
        return Home(self.folder)

    def job(self, stack: str | None = None) -> Job:
        self.told = told = Told()

        def emit(event: Event) -> None:
            home.append(event)
            told.events.append(event)
            self.on_event(told)

        home = self.home.stack(stack or self.choices.stack)
        return Job(
            ports=self.ports,
            run=Run(emit, self.cancel, self.ports.clock),
            home=home,
            registry=self.registry,
            facts=self.facts(),
            secrets=self.secrets,
            agrees=self.agrees,
            overwrite=self.overwrite,
            patience_s=self.patience_s,
        )

    def plan(self, job: Job) -> Plan:
        return plan_to_install(self.choices, job, self.home)[1]

    def facts(self) -> Facts:
        return read.facts(self.ports, self.recorded.weights_folder.path, self.home.calibrations())

    def install(self) -> Installed:
        job = self.job()
        with self.home.held():
            job, plan = plan_to_install(self.choices, job, self.home)
            return job.run.settle(lambda: installing.install(plan, job))

    def run(self, work: Callable[[Job], T], stack: str | None = None) -> T:
        job = self.job(stack)
        return job.run.settle(lambda: work(job))

    def fails(self, work: Callable[[], object] | None = None) -> AnyProblem:
        """The Problem that an installation (or other work) ends in."""
        with pytest.raises(InstallerError) as caught:
            (work or self.install)()
        return caught.value.problem

    def cancelled_after(self, wanted: Callable[[Told], bool]) -> bool:
        """Install and cancel as soon as the events are like this; say whether the run ended by that."""

        cancel = Cancel()

        def watch(told: Told) -> None:
            if wanted(told):
                cancel.set()

        again = replace(self, on_event=watch, cancel=cancel)
        try:
            again.install()
        except Cancelled:
            return True
        finally:
            self.told = again.told
        return False

    def container(self, stack: str = "chat") -> Any:
        found = self.ports.engine.containers(f"slipway-{stack}")
        return found[0] if found else None

    def file(self, name: str, stack: str = "chat") -> Path:
        return self.folder / stack / name


def rehearsal(
    tmp_path: Path,
    card: str = SMALL_CARD,
    profile: str | None = SMALL_PROFILE,
    fail: str | None = None,
    seen: Facts | None = None,
    registry: Registry = SHIPPED,
    **choices: Any,
) -> Rehearsal:
    """Begin with nothing there."""
    folder = tmp_path / "home"
    recorded = seen or machine(card, folder / "models")
    ports = dry_run_ports(recorded, registry, speed=FASTEST, fail=fail, clock=JumpingClock())
    return Rehearsal(
        folder=folder, recorded=recorded, ports=ports, registry=registry, choices=Choices(profile=profile, **choices)
    )

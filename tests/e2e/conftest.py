"""The world that the command line meets in these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.world import MODEL, QUICK, World, at_once, made_world, quick_registry
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


@pytest.fixture(scope="session")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The registry of the quick world."""
    return quick_registry(tmp_path_factory.mktemp("registry") / "registry")


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub() as served:
        served.add(MODEL, tiny_checkpoint(hidden=128))
        yield served


@pytest.fixture(scope="module")
def quick(rig: Rig, driver: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """The rig with a stand-in that loads at once, under the namespace QUICK; what was pulled goes with the module."""
    rig.variant(QUICK, standin=at_once())
    yield rig
    with LocalHub() as nobody:
        World(rig, nobody, tmp_path_factory.mktemp("end"), driver).clean()


@pytest.fixture
def world(quick: Rig, hub: LocalHub, driver: dict[str, str], tmp_path: Path, profiles: Path) -> Iterator[World]:
    """A home of its own with secrets planted. Images stay from test to test: most are about something else."""
    made = made_world(quick, hub, driver, tmp_path, profiles)
    yield made
    made.stop_all()

"""What the tests of the hub share: a server with one small checkpoint, and how to fetch from it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from installer.adapters.download import Patience
from installer.adapters.hub import HuggingFaceHub
from installer.domain.problems import (
    InstallerError,
    Problem,
)
from installer.domain.sources import FolderWeights, WeightsSource
from installer.steps.cancel import Cancel
from tests.rig.hub import LocalHub, tiny_checkpoint

REPO = "org/tiny"
BIG = "model-00001-of-00002.safetensors"
SECRET = "hf_ThisIsTheTokenThatNobodyMaySee"
EAGER = Patience(first_wait_s=0.01, longest_wait_s=0.02, stall_s=30, connect_s=30)
FILES = tiny_checkpoint(hidden=128, layers=4)


@pytest.fixture(name="server")
def server_fixture() -> Iterator[LocalHub]:
    with LocalHub() as hub:
        hub.add(REPO, FILES, tags=("v1",))
        yield hub


@pytest.fixture(name="place")
def place_fixture(tmp_path: Path) -> FolderWeights:
    return FolderWeights(folder=str(tmp_path / "models"))


def hub_of(server: LocalHub, token: str | None = None, patience: Patience = EAGER) -> HuggingFaceHub:
    return HuggingFaceHub(server.endpoint, token, patience=patience)


def fetch(hub: HuggingFaceHub, weights: WeightsSource, place: FolderWeights) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []
    hub.fetch(weights, place, lambda done, total: seen.append((done, total)), Cancel())
    return seen


def folder_of(weights: WeightsSource, place: FolderWeights) -> Path:
    return Path(place.folder, weights.folder)


def only(weights: WeightsSource, *paths: str) -> WeightsSource:
    return msgspec.structs.replace(weights, files=tuple(file for file in weights.files if file.path in paths))


@contextlib.contextmanager
def refusal() -> Iterator[list[Problem]]:
    """Expect an InstallerError; its Problem is the list's only item."""
    caught: list[Problem] = []
    with pytest.raises(InstallerError) as raised:
        yield caught
    caught.append(raised.value.problem)


def until(ready: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.01)

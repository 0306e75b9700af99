"""The speed of a line whose speed is known: a local hub that sends no faster than it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from installer.domain.problems import Cancelled
from installer.steps.cancel import Cancel
from tests.adapters.hub_kit import hub_of
from tests.rig.hub import LocalHub

REPO = "org/large"
LARGE = {"config.json": b"{}", "model.safetensors": b"\0" * 12_000_000}
MEGABYTE = 1_000_000


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub() as served:
        served.add(REPO, LARGE)
        yield served


def speed(hub: LocalHub, seconds: float = 0.5, cancel: Cancel | None = None) -> float | None:
    door = hub_of(hub)
    return door.speed(door.resolve(REPO, "main"), seconds, cancel or Cancel())


def test_the_speed_is_that_of_the_line(hub: LocalHub) -> None:
    hub.fault("model.safetensors", bytes_per_s=8 * MEGABYTE)
    assert speed(hub) == pytest.approx(8 * MEGABYTE, rel=0.4)


def test_the_look_is_short_and_keeps_nothing(hub: LocalHub) -> None:
    hub.fault("model.safetensors", bytes_per_s=8 * MEGABYTE)
    began = time.monotonic()
    speed(hub, seconds=0.3)
    assert time.monotonic() - began < 3


def test_a_whole_file_may_be_over_before_the_time_is(hub: LocalHub) -> None:
    began = time.monotonic()
    figure = speed(hub, seconds=20)
    assert time.monotonic() - began < 10
    assert figure is None or figure > MEGABYTE


NOTHING = {
    "silence": {"stall": 0},
    "a refusal": {"status": 403},
    "a fault": {"status": 500},
    "a broken line": {"drop": 0},
    "too few bytes": {"bytes_per_s": 1000},
}


@pytest.mark.parametrize("case", NOTHING)
def test_where_too_little_comes_nothing_is_claimed(hub: LocalHub, case: str) -> None:
    hub.fault("model.safetensors", **NOTHING[case])
    began = time.monotonic()
    assert speed(hub, seconds=0.3) is None
    assert time.monotonic() - began < 5


def test_what_came_before_a_line_broke_still_tells(hub: LocalHub) -> None:
    hub.fault("model.safetensors", bytes_per_s=8 * MEGABYTE, drop=4 * MEGABYTE)
    assert speed(hub, seconds=5) == pytest.approx(8 * MEGABYTE, rel=0.4)


def test_the_person_is_not_kept_waiting(hub: LocalHub) -> None:
    hub.fault("model.safetensors", stall=0)
    cancel = Cancel()
    threading.Timer(0.2, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        speed(hub, seconds=30, cancel=cancel)
    assert time.monotonic() - began < 3

"""How long a download will take: what is still missing, at the speed that was measured, if it was."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from installer.steps import speed
from installer.steps.cancel import Cancel
from installer.steps.speed import Estimate
from installer.text import Text
from tests.steps.kit import Rehearsal, rehearsal


@pytest.fixture
def stage(tmp_path: Path) -> Rehearsal:
    return rehearsal(tmp_path)


def test_everything_is_still_to_come_at_first(stage: Rehearsal) -> None:
    plan = stage.plan(stage.job())
    expected = speed.estimate(plan, stage.ports, Cancel())
    assert expected is not None
    assert expected.missing_bytes == plan.download_bytes
    assert expected.seconds == pytest.approx(plan.download_bytes / 100e6)


def test_what_an_earlier_run_left_is_not_counted_again(stage: Rehearsal) -> None:
    plan = stage.plan(stage.job())
    stage.ports.engine.pull(plan.image, lambda _, __: None, Cancel())
    expected = speed.estimate(plan, stage.ports, Cancel())
    assert expected is not None
    assert expected.missing_bytes == plan.weights.size_bytes
    stage.ports.hub.fetch(plan.weights, plan.place, lambda _, __: None, Cancel())
    assert speed.estimate(plan, stage.ports, Cancel()) is None


def test_a_line_that_tells_nothing_gives_no_estimate(stage: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = stage.plan(stage.job())
    hub = stage.ports.hub
    monkeypatch.setattr(hub, "speed", lambda *_: None)
    assert speed.estimate(plan, dataclasses.replace(stage.ports, hub=hub), Cancel()) is None


@pytest.mark.parametrize(
    ("seconds", "german", "english"),
    [(1, "1 Minute", "1 minute"), (89, "1 Minute", "1 minute"), (1500, "25 Minuten", "25 minutes"),
     (5400, "1\N{NO-BREAK SPACE}h 30\N{NO-BREAK SPACE}min", "1\N{NO-BREAK SPACE}h 30\N{NO-BREAK SPACE}min")],
)  # fmt: skip
def test_it_is_said_in_minutes(seconds: float, german: str, english: str) -> None:
    expected = Estimate(missing_bytes=round(seconds * 20e6), bytes_per_second=20e6)
    assert f"etwa {german} bei 20\N{NO-BREAK SPACE}MB pro Sekunde" in Text("de").estimate(expected)
    assert f"about {english} at 20\N{NO-BREAK SPACE}MB per second" in Text("en").estimate(expected)

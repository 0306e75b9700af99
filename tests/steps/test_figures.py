"""A real start teaches: its log is kept beside the prediction, and the next plan for this card counts it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from installer.domain.calibration import SWING_BYTES
from installer.domain.offers import offers
from installer.steps import figures, lifecycle
from installer.steps.events import Measured
from tests.steps.kit import Rehearsal, rehearsal


@pytest.fixture
def stage(tmp_path: Path) -> Rehearsal:
    installed = rehearsal(tmp_path)
    installed.install()
    return installed


def logging(stage: Rehearsal, text: str) -> Rehearsal:
    """The same stage whose server's log is this."""
    engine = stage.ports.engine
    engine.logs = lambda container_id, tail=None: text.encode()  # type: ignore[method-assign]
    return stage


def test_the_figures_of_the_log_are_told_and_kept_beside_the_prediction(stage: Rehearsal) -> None:
    (told,) = [note for note in stage.told.notes if isinstance(note, Measured)]
    kept = lifecycle.status(stage.job()).figures
    assert kept is not None
    assert (kept.logged, kept.predicted) == (told.logged, told.predicted)
    assert kept.logged.model_bytes == pytest.approx(kept.predicted.weights_bytes, rel=0.01)
    assert kept.predicted.kv_low_bytes < kept.predicted.kv_high_bytes


def test_a_start_is_learnt_from_once(stage: Rehearsal) -> None:
    before = stage.home.calibrations()
    stage.install()
    assert not [note for note in stage.told.notes if isinstance(note, Measured)]
    assert stage.home.calibrations() == before


def test_every_further_start_counts(stage: Rehearsal) -> None:
    stage.run(lifecycle.stop)
    stage.run(lifecycle.start_again)
    assert [learnt.starts for learnt in stage.home.calibrations()] == [2]


def test_a_start_that_took_more_than_predicted_makes_the_next_plan_more_careful(stage: Rehearsal) -> None:
    plan = stage.home.stack("chat").installed()
    container = stage.container()
    kept = stage.home.stack("chat").figures()
    worse = kept.predicted.kv_low_bytes / 2**30 - 0.4
    # As if this start were another one, of which nothing is known yet.
    again = msgspec.structs.replace(container, started_at="later")
    figures.learn(plan, again, logging(stage, f"Available KV cache memory: {worse:.2f} GiB").job())
    (learnt,) = stage.home.calibrations()
    assert learnt.shift_bytes == pytest.approx(SWING_BYTES + 0.4 * 2**30, abs=0.02 * 2**30)
    first = next(o for o in offers(stage.recorded, stage.registry) if o.profile == plan.profile)
    now = next(o for o in offers(stage.facts(), stage.registry) if o.profile == plan.profile)
    assert now.fit.estimate.high_bytes - first.fit.estimate.high_bytes == learnt.shift_bytes
    assert (first.starts, now.starts) == (0, 2)


@pytest.mark.parametrize("log", ["", "Model loading took 3.1 GiB", "GPU KV cache size: many tokens"])
def test_a_log_that_does_not_tell_its_cache_teaches_nothing(stage: Rehearsal, log: str) -> None:
    before = (stage.home.calibrations(), stage.home.stack("chat").figures())
    again = msgspec.structs.replace(stage.container(), started_at="later")
    figures.learn(stage.home.stack("chat").installed(), again, logging(stage, log).job())
    assert (stage.home.calibrations(), stage.home.stack("chat").figures()) == before


def test_what_was_learnt_and_cannot_be_read_any_more_is_nothing(stage: Rehearsal) -> None:
    (stage.folder / "calibrations.json").write_text("[{]")
    stage.file("figures.json").write_text("[]")
    assert stage.home.calibrations() == ()
    assert lifecycle.status(stage.job()).figures is None

"""The log of either shape gives the same figures, and a machine's own starts move its band by the rule."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from installer.domain.calibration import (
    MOST_RELAXED_BYTES,
    SWING_BYTES,
    LogFigures,
    Prediction,
    measured_overhead,
    prediction,
    read_log,
    recalibrated,
)
from installer.domain.facts import Calibration
from installer.domain.memory import estimate, judge_start
from installer.domain.room import idle_room
from installer.domain.settings import Settings
from installer.domain.units import gib
from tests.builders import recorded, shipped_registry

BEFORE_0_28 = """\
(EngineCore) INFO 10:00:00 [gpu_model_runner.py:4566] Model loading took 21.86 GiB memory and 63.1 seconds
(EngineCore) INFO 10:00:30 [gpu_worker.py:380] Estimated CUDA graph memory: 0.36 GiB total
(EngineCore) INFO 10:00:31 [gpu_worker.py:436] Available KV cache memory: 2.95 GiB
(EngineCore) INFO 10:00:31 [kv_cache_utils.py:1319] GPU KV cache size: 75,456 tokens
(EngineCore) INFO 10:00:31 [kv_cache_utils.py:1324] Maximum concurrency for 65,536 tokens per request: 3.87x
(EngineCore) INFO 10:00:40 [gpu_model_runner.py:5560] Graph capturing finished in 4 secs, took 0.73 GiB
"""
SINCE_0_28 = """\
INFO 10-01 [gpu_model_runner.py:5149] Model loading took 21.86 GiB memory and 63.123456 seconds
INFO 10-01 [gpu_worker.py:700] Estimated CUDA graph memory: 0.36 GiB total
INFO 10-01 [gpu_worker.py:759] Available KV cache memory: 2.95 GiB
INFO [kv.py:2327] GPU KV cache size: 75,456 tokens, Maximum concurrency for 65,536 tokens per request: 3.87x
INFO 10-01 [gpu_model_runner.py:6582] Graph capturing finished in 4 secs, took 0.73 GiB
"""


@pytest.mark.parametrize("log", [BEFORE_0_28, SINCE_0_28], ids=["before 0.28", "since 0.28"])
def test_both_shapes_of_the_log_tell_the_same(log: str):
    assert read_log(log) == LogFigures(
        model_bytes=gib(21.86),
        kv_bytes=gib(2.95),
        kv_tokens=75456,
        context=65536,
        concurrency=3.87,
        graph_bytes=gib(0.73),
        graph_estimate_bytes=gib(0.36),
    )


def test_the_card_s_figures_are_read_where_the_log_has_them():
    figures = read_log(
        "Free memory on device (15.32/15.55 GiB) on startup. Desired GPU memory utilization is (0.9, 13.99 GiB). "
        "Actual usage is 0.93 GiB for weight, 1.06 GiB for peak activation, 0.07 GiB for non-torch memory"
    )
    assert (figures.free_bytes, figures.total_bytes) == (gib(15.32), gib(15.55))
    assert (figures.requested_bytes, figures.activation_bytes) == (gib(13.99), gib(1.06))


def test_older_words_for_the_weights_are_read_too():
    assert read_log("Model loading took 14.9889 GiB and 3.21 seconds").model_bytes == gib(14.9889)


def test_the_last_start_of_a_log_counts():
    assert read_log(SINCE_0_28 + SINCE_0_28.replace("2.95", "1.50")).kv_bytes == gib(1.5)


@given(st.text())
def test_no_text_breaks_the_reader(text: str):
    for line in (text, f"GPU KV cache size: {text} tokens", f"Model loading took {text} GiB"):
        assert isinstance(read_log(line), LogFigures)


@pytest.mark.parametrize("line", ["Model loading took 1.2.3 GiB", "GPU KV cache size: , tokens"])
def test_a_figure_that_is_none_is_left_out(line: str):
    assert not read_log(line).model_bytes


def predicted(low: float = 1.0, high: float = 2.0) -> Prediction:
    return Prediction(
        share_bytes=gib(28),
        weights_bytes=gib(20),
        overhead_low_bytes=gib(low),
        overhead_high_bytes=gib(high),
        kv_low_bytes=gib(8 - high),
        kv_high_bytes=gib(8 - low),
        tokens_low=0,
        tokens_high=0,
    )


NOTHING = Calibration(gpu_uuid="GPU-1", wsl2=False, profile="a")


def started(overhead: float, share: float = 28.0) -> LogFigures:
    return LogFigures(model_bytes=gib(20), kv_bytes=gib(share - 20 - overhead))


def test_a_start_that_took_more_than_predicted_widens_by_all_of_it_and_the_swing():
    learnt = recalibrated(NOTHING, predicted(), started(2.4))
    assert learnt.shift_bytes == pytest.approx(gib(0.4) + SWING_BYTES, abs=2)


def test_a_start_that_took_less_relaxes_no_further_than_its_swing_and_the_bound():
    assert recalibrated(NOTHING, predicted(), started(1.3)).shift_bytes == pytest.approx(gib(-0.2), abs=2)
    assert recalibrated(NOTHING, predicted(), started(0.2)).shift_bytes == -MOST_RELAXED_BYTES
    assert recalibrated(NOTHING, predicted(), started(1.8)).shift_bytes == 0


@given(st.lists(st.floats(0, 5), min_size=1, max_size=6))
def test_the_worst_start_counts_whatever_came_after(overheads: list[float]):
    known = NOTHING
    for overhead in overheads:
        known = recalibrated(known, predicted(), started(overhead))
    alone = recalibrated(NOTHING, predicted(), started(max(overheads)))
    assert (known.shift_bytes, known.starts) == (alone.shift_bytes, len(overheads))
    assert predicted().overhead_high_bytes + known.shift_bytes >= min(
        gib(max(overheads)) - 2, predicted().overhead_high_bytes - MOST_RELAXED_BYTES
    )


def test_a_log_without_figures_teaches_nothing():
    known = Calibration(gpu_uuid="GPU-1", wsl2=False, profile="a", shift_bytes=5, starts=1)
    assert recalibrated(known, predicted(), LogFigures()) == known
    assert measured_overhead(LogFigures(model_bytes=1), gib(28)) is None


def test_what_was_learnt_moves_both_ends_of_the_band():
    architecture = shipped_registry().architectures["qwen3-8b"]
    asked = Settings(context=8192, utilisation=0.9, max_num_seqs=8, max_num_batched_tokens=2048)
    plain = estimate(architecture, gib(15), asked)
    learnt = estimate(architecture, gib(15), asked, shift_bytes=gib(0.3))
    assert learnt.high_bytes - plain.high_bytes == learnt.low_bytes - plain.low_bytes == gib(0.3)


def test_weights_that_are_larger_on_the_card_than_their_files_teach_too():
    figures = LogFigures(model_bytes=gib(21), kv_bytes=gib(28 - 21 - 1.9))
    assert recalibrated(NOTHING, predicted(), figures).shift_bytes > gib(0.9)


def of_card(profile: str, shift_gib: float, **changes: object) -> Calibration:
    known = Calibration(gpu_uuid="GPU-1", wsl2=False, profile=profile, shift_bytes=gib(shift_gib), starts=1)
    return msgspec.structs.replace(known, **changes)


def test_the_starts_of_other_profiles_can_only_make_more_careful():
    facts = msgspec.structs.replace(recorded("rtx-5090-linux"), calibrations=(of_card("a", -0.4), of_card("b", 0.3)))
    assert facts.shift_bytes("GPU-1", "a") == gib(-0.4)
    assert facts.shift_bytes("GPU-1", "c") == gib(0.3)
    alone = msgspec.structs.replace(facts, calibrations=(of_card("a", -0.4),))
    assert alone.shift_bytes("GPU-1", "c") == 0


def test_another_card_and_the_same_card_behind_wsl2_are_known_for_nothing():
    learnt = (of_card("a", 0.3, gpu_uuid="GPU-2"), of_card("a", 0.3, wsl2=True))
    facts = msgspec.structs.replace(recorded("rtx-5090-linux"), calibrations=learnt)
    assert facts.shift_bytes("GPU-1", "a") == 0


def test_a_prediction_brackets_the_cache_and_counts_its_tokens_as_the_log_does():
    architecture = shipped_registry().architectures["qwen3-8b"]
    asked = Settings(context=8192, utilisation=0.9, max_num_seqs=8, max_num_batched_tokens=2048)
    fit = judge_start(architecture, gib(15), asked, idle_room(gib(24), wsl2=False))
    said = prediction(architecture, asked, fit)
    assert 0 < said.kv_low_bytes < said.kv_high_bytes < said.share_bytes - said.weights_bytes
    assert said.tokens_low % 16 == 0
    assert said.tokens_low * 144 * 1024 <= said.kv_low_bytes < (said.tokens_low + 16) * 144 * 1024

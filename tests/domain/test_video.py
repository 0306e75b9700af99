"""Videos in requests: frames that the context has room for, and what each release lets a request say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installer.domain import video
from installer.domain.video import Sampling
from installer.text import Text


@given(st.one_of(st.none(), st.floats(0, 1e6)), st.integers(0, 300_000))
def test_no_sampling_is_larger_than_the_context(seconds: float | None, context: int) -> None:
    found = video.sampling(seconds, context)
    assert found.frames <= found.wanted
    assert not found.frames or found.frames * 280 + 60 + 1200 <= context


@pytest.mark.parametrize(
    ("seconds", "frames", "wanted"),
    [(5, 15, 15), (25, 50, 50), (60, 54, 60), (120, 54, 120), (200, 54, 64), (1000, 32, 32), (None, 32, 32)],
)
def test_the_buckets_that_exceed_a_context_of_16384_are_cut_and_the_person_is_told(
    seconds: float | None, frames: int, wanted: int
) -> None:
    found = video.sampling(seconds, 16_384)
    assert found == Sampling(frames=frames, wanted=wanted)
    said = Text("de").video_sampled(found)
    assert bool(said) == (frames < wanted)
    assert not said or (str(frames) in said and str(wanted) in said)


@pytest.mark.parametrize(
    ("release", "trusted", "may"),
    [
        ("0.19.1", False, True),
        ("0.30.0", False, True),
        ("0.31.0", False, False),
        ("0.33.0", True, True),
        ("1.0.0", False, False),
        ("nightly", False, False),
    ],
)
def test_from_0_31_on_a_request_chooses_its_frames_only_where_the_server_trusts_it(
    release: str, trusted: bool, may: bool
) -> None:
    assert video.may_choose_frames(release, (video.TRUST_FLAG,) if trusted else ()) is may


def test_every_shape_names_the_frames_once_at_least() -> None:
    assert [name for name, _ in video.shapes(8)] == ["flat", "nested", "decoder"]
    assert all("8" in str(shape) for _, shape in video.shapes(8))

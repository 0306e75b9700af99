"""A pull's progress: whatever the engine sends, the bar never runs backwards and ends full."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from installer.domain.progress import PullProgress, short_id
from installer.domain.sources import Layer

SIZES = (5_000_000_000, 3_000, 1)
LAYERS = tuple(Layer(digest=f"sha256:{index:012x}{0:052x}", size_bytes=size) for index, size in enumerate(SIZES, 1))
IDS = tuple(short_id(layer.digest) for layer in LAYERS)
STATUSES = (
    "Pulling fs layer", "Waiting", "Downloading", "Verifying Checksum", "Download complete", "Extracting",
    "Pull complete", "Already exists", "Retrying in 5 seconds", "Digest: sha256:00",
)  # fmt: skip


def event(layer: str, status: str, current: int | None = None, total: int | None = None) -> dict[str, Any]:
    figures = {"current": current, "total": total}
    return {"id": layer, "status": status, "progressDetail": {k: v for k, v in figures.items() if v is not None}}


def after(progress: PullProgress, *events: dict[str, Any]) -> PullProgress:
    for one in events:
        progress = progress.after(one)
    return progress


figures = st.one_of(st.none(), st.integers(-5, 9_000_000_000))
any_event = st.one_of(
    st.builds(event, st.sampled_from((*IDS, "f" * 12)), st.sampled_from(STATUSES), figures, figures),
    st.sampled_from([{"status": "Status: Downloaded newer image"}, {}, {"id": 7, "status": "Downloading"}]),
    st.fixed_dictionaries({"id": st.sampled_from(IDS), "status": st.none(), "progressDetail": st.none()}),
)


@given(st.lists(any_event))
def test_with_announced_layers_done_only_grows_towards_a_total_that_stands(events: list[dict[str, Any]]) -> None:
    steps = [PullProgress.of(LAYERS)]
    for one in events:
        steps.append(steps[-1].after(one))
    assert all(earlier.done <= later.done for earlier, later in pairwise(steps))
    assert {step.total for step in steps} == {sum(SIZES)}
    assert steps[-1].done <= steps[-1].total
    assert steps[-1].finished().done == sum(SIZES)


@given(st.lists(any_event))
def test_without_announced_layers_the_engines_own_totals_count(events: list[dict[str, Any]]) -> None:
    steps = [PullProgress.of(())]
    for one in events:
        steps.append(steps[-1].after(one))
    assert all(earlier.done <= later.done and earlier.total <= later.total for earlier, later in pairwise(steps))
    end = steps[-1].finished()
    assert steps[-1].done <= steps[-1].total == end.total == end.done


@given(st.permutations(IDS), st.data())
def test_every_way_that_a_layer_can_arrive_ends_full(order: list[str], data: st.DataObject) -> None:
    progress = PullProgress.of(LAYERS)
    for layer in order:
        progress = progress.after(event(layer, data.draw(st.sampled_from(("Already exists", "Pull complete")))))
    assert progress.done == progress.total == sum(SIZES)


def test_unpacking_is_not_counted_a_second_time() -> None:
    big, size = IDS[0], SIZES[0]
    fetched = after(PullProgress.of(LAYERS), event(big, "Downloading", size, size), event(big, "Download complete"))
    unpacked = after(fetched, event(big, "Extracting", size // 3, size), event(big, "Pull complete"))
    assert fetched.done == unpacked.done == size


def test_a_layer_that_starts_anew_does_not_run_the_bar_backwards() -> None:
    big = IDS[0]
    before = after(PullProgress.of(LAYERS), event(big, "Downloading", 4_000_000_000, SIZES[0]))
    anew = after(before, event(big, "Retrying in 1 second"), event(big, "Downloading", 1_000, SIZES[0]))
    assert anew.done == 4_000_000_000
    assert after(anew, event(big, "Downloading", 4_500_000_000, SIZES[0])).done == 4_500_000_000


def test_two_layers_with_the_same_digest_count_once() -> None:
    assert PullProgress.of((*LAYERS, LAYERS[0])).total == sum(SIZES)

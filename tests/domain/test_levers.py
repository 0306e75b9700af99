"""Levers gain what they say, and what they promise holds."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from installer.domain.levers import Case, levers
from installer.domain.memory import Budget, Verdict, judge
from installer.domain.settings import Settings
from installer.domain.units import gib
from tests.builders import shipped_registry

HYBRID = shipped_registry().architectures["qwen3.6-27b"]
WEIGHTS = gib(20.4)


def wanted(**changes) -> Settings:
    base = Settings(context=65536, utilisation=0.92, max_num_seqs=256, max_num_batched_tokens=8192, reads_media=True)
    return msgspec.structs.replace(base, **changes)


def room(total: float, free: float | None = None) -> Budget:
    return Budget(
        total_bytes=gib(total),
        free_bytes=gib(free or total - 0.5),
        hidden_bytes=0,
        margin_bytes=gib(0.3),
        source="cuda",
    )


def test_every_lever_of_a_large_profile_gains_and_says_how_much():
    found = {lever.name: lever for lever in levers(Case(HYBRID, WEIGHTS, room(31.36)), wanted(max_num_seqs=32))}
    assert set(found) >= {"kv_fp8", "fewer_sequences", "text_only", "eager", "fewer_batched_tokens"}
    assert all(lever.gained_bytes > 0 for lever in found.values())
    assert found["kv_fp8"].gained_bytes > gib(1.8)


def test_what_is_turned_already_is_no_lever():
    small = wanted(
        kv_cache_dtype="fp8", max_num_seqs=1, max_num_batched_tokens=2048, reads_media=False, enforce_eager=True
    )
    assert {lever.name for lever in levers(Case(HYBRID, WEIGHTS, room(31.36)), small)} <= {"shorter_context"}


def test_a_cache_that_its_kernels_cannot_read_is_not_proposed():
    assert "kv_fp8" not in {
        lever.name for lever in levers(Case(HYBRID, WEIGHTS, room(31.36), fp8_kv_runs=False), wanted())
    }


def test_a_shorter_context_is_the_longest_that_fits():
    asked = wanted(context=262144, max_num_seqs=4, max_num_batched_tokens=2048, kv_cache_dtype="fp8")
    shorter = next(
        lever for lever in levers(Case(HYBRID, WEIGHTS, room(31.36)), asked) if lever.name == "shorter_context"
    )
    assert shorter.verdict is Verdict.FITS
    longer = msgspec.structs.replace(asked, context=shorter.settings.context + 4096)
    assert judge(HYBRID, WEIGHTS, longer, room(31.36)).verdict is not Verdict.FITS


@given(st.floats(12, 60), st.sampled_from([1, 8, 64, 256]), st.booleans(), st.integers(2, 256))
def test_what_a_lever_promises_is_what_the_oracle_says_of_its_settings(total: float, seqs: int, media: bool, k: int):
    asked = wanted(max_num_seqs=seqs, reads_media=media, context=k * 1024)
    before = judge(HYBRID, WEIGHTS, asked, room(total))
    order = [Verdict.NO, Verdict.TIGHT, Verdict.FITS]
    for lever in levers(Case(HYBRID, WEIGHTS, room(total)), asked):
        assert judge(HYBRID, WEIGHTS, lever.settings, room(total)).verdict is lever.verdict
        assert order.index(lever.verdict) >= order.index(before.verdict)

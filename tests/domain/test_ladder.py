"""The ladder only lowers, ends, and asks before it goes below what a person chose."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from installer.domain.choices import Choices
from installer.domain.ladder import relax
from installer.domain.plan import Plan, Refusal
from installer.domain.problems import (
    ContainerExited,
    CudaOutOfMemory,
    FreeBelowUtilisation,
    KvCacheTooSmall,
    NoCacheBlocks,
    PortTaken,
    StateBlocksTooFew,
)
from tests.builders import planned

KV = KvCacheTooSmall(context=65536, needed_gib=2.3, available_gib=1.2, possible_tokens=34736)


def with_settings(**changes) -> Plan:
    plan = planned()
    return msgspec.structs.replace(plan, settings=msgspec.structs.replace(plan.settings, **changes))


def test_a_cache_that_is_too_small_shortens_the_context_to_what_the_engine_says_less_a_margin():
    relaxed = relax(planned(), KV)
    assert relaxed.settings.context == 32768
    assert [(r.field, r.old, r.new, r.because) for r in relaxed.relaxed] == [
        ("context", "65536", "32768", "kv_cache_too_small")
    ]


def test_a_context_that_the_person_chose_is_not_shortened_without_a_yes():
    plan = planned(choices=Choices(folder="/m", context=60000))
    refused = relax(plan, KV)
    assert isinstance(refused, Refusal)
    assert (refused.problems[0].kind, refused.problems[0].exit_code) == ("relax_refused", 50)
    assert relax(plan, KV, consent=True).settings.context == 32768


def test_the_gate_s_own_figures_give_the_next_share():
    failure = FreeBelowUtilisation(free_gib=26.0, total_gib=31.36, utilisation=0.85, wanted_gib=26.66)
    assert relax(planned(), failure).settings.utilisation == 0.82


def test_a_share_below_the_need_is_not_tried():
    failure = FreeBelowUtilisation(free_gib=12.0, total_gib=31.36, utilisation=0.85, wanted_gib=26.66)
    assert relax(planned(), failure) == Refusal(problems=(failure,))


def test_graphs_that_do_not_fit_get_fewer_then_none():
    failure = CudaOutOfMemory(phase="graphs")
    first = relax(with_settings(enforce_eager=False), failure)
    assert isinstance(first, Plan)
    second = relax(first, failure)
    assert isinstance(second, Plan)
    assert (first.settings.graph_sizes, second.settings.enforce_eager) == ((1, 2, 4), True)
    assert isinstance(relax(second, failure), Refusal)


def test_too_few_state_blocks_lower_the_sequences_to_them():
    relaxed = relax(with_settings(max_num_seqs=256), StateBlocksTooFew(max_num_seqs=256, blocks=184))
    assert relaxed.settings.max_num_seqs == 184


@pytest.mark.parametrize(
    "failure", [CudaOutOfMemory(phase="weights"), ContainerExited(exit_code_of_container=1), NoCacheBlocks()]
)
def test_where_nothing_can_be_lowered_the_failure_itself_stands(failure):
    bottom = with_settings(max_num_batched_tokens=2048, max_num_seqs=1, enforce_eager=True)
    assert relax(bottom, failure) == Refusal(problems=(failure,))


def test_a_port_that_nobody_chose_is_exchanged_and_a_chosen_one_is_not():
    taken = PortTaken(port=8000, owner="nginx (812)")
    moved = relax(planned(), taken, free_ports=(8000, 8003))
    assert isinstance(moved, Plan)
    assert moved.port == 8003
    assert moved.settings == planned().settings
    chosen = planned(choices=Choices(folder="/m", port=8000))
    assert relax(chosen, taken, consent=True, free_ports=(8003,)) == Refusal(problems=(taken,))
    assert relax(planned(), taken) == Refusal(problems=(taken,))


FAILURES = st.one_of(
    st.builds(
        KvCacheTooSmall,
        context=st.just(65536),
        needed_gib=st.just(2.3),
        available_gib=st.just(1.0),
        possible_tokens=st.one_of(st.none(), st.integers(0, 300_000)),
    ),
    st.just(NoCacheBlocks()),
    st.builds(StateBlocksTooFew, max_num_seqs=st.just(256), blocks=st.integers(-1, 300)),
    st.builds(CudaOutOfMemory, phase=st.sampled_from(["weights", "profiling", "graphs", "sampler", "request"])),
    st.builds(
        FreeBelowUtilisation,
        free_gib=st.floats(0, 40),
        total_gib=st.floats(1, 40),
        utilisation=st.just(0.85),
        wanted_gib=st.just(26.6),
    ),
)


@given(st.lists(FAILURES, max_size=12), st.integers(1, 256), st.sampled_from([2048, 8192]), st.booleans())
def test_whatever_fails_nothing_ever_rises(failures, seqs: int, batch: int, eager: bool):
    plan = with_settings(max_num_seqs=seqs, max_num_batched_tokens=batch, enforce_eager=eager)
    for failure in failures:
        relaxed = relax(plan, failure)
        if isinstance(relaxed, Refusal):
            continue
        before, after = plan.settings, relaxed.settings
        assert after != before
        assert after.context <= before.context
        assert after.utilisation <= before.utilisation
        assert 1 <= after.max_num_seqs <= before.max_num_seqs
        assert after.max_num_batched_tokens <= before.max_num_batched_tokens
        assert after.enforce_eager >= before.enforce_eager
        plan = relaxed

"""vLLM's arithmetic: the figures are those of public logs and of the first source document."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from installer.domain.facts import CudaMemory, GpuMemory
from installer.domain.kv_cache import kv_blocks, kv_bytes_per_sequence
from installer.domain.memory import (
    Budget,
    Limit,
    Verdict,
    agreed,
    budget,
    estimate,
    idle_room,
    judge,
    judge_gate,
    judge_start,
    longest_context,
)
from installer.domain.overhead import default_batch, default_utilisation, graphs_may_be_counted, inside_the_share
from installer.domain.settings import Settings
from installer.domain.units import gib, to_gib
from tests.builders import recorded, shipped_registry

REGISTRY = shipped_registry()
HYBRID = REGISTRY.architecture_of(REGISTRY.profile("qwen3.6-27b-nvfp4-64k"))
SPIKE_WEIGHTS = gib(28.25)


def settings(**changes) -> Settings:
    base = Settings(context=16384, utilisation=0.94, max_num_seqs=2, max_num_batched_tokens=2048, enforce_eager=True)
    return msgspec.structs.replace(base, release="0.19.1", **changes)


def room(free: float, total: float, margin: float = 0.5) -> Budget:
    return Budget(total_bytes=gib(total), free_bytes=gib(free), hidden_bytes=0, margin_bytes=gib(margin), source="cuda")


@pytest.mark.parametrize(
    ("dtype", "context", "expected_gib"),
    [("auto", 8192, 0.81), ("auto", 65536, 4.31), ("auto", 131072, 8.33), ("fp8", 8192, 0.57), ("fp8", 65536, 2.30)],
)
def test_one_sequence_needs_what_vllm_says_it_needs(dtype: str, context: int, expected_gib: float):
    need = kv_bytes_per_sequence(HYBRID, settings(context=context, kv_cache_dtype=dtype, mamba_cache_mode="align"))
    assert round(to_gib(need), 2) == expected_gib


@pytest.mark.parametrize("blocks", [75, 112, 126])
def test_blocks_of_the_recipe_s_token_counts(blocks: int):
    pool = blocks * 51_380_224
    assert kv_blocks(HYBRID, settings(), pool) == blocks
    assert kv_blocks(HYBRID, settings(), pool - 1) == blocks - 1


class TestTheFirstSourceDocument:
    """30.12 of 31.84 GiB free: 0.88 failed at the cache, 0.95 at the gate, 0.94 was ready."""

    @pytest.mark.parametrize(
        ("share", "context", "limit"),
        [(0.88, 32768, Limit.WEIGHTS), (0.95, 16384, Limit.FREE_MEMORY), (0.94, 16384, None)],
    )
    def test_each_attempt_as_it_was_made(self, share: float, context: int, limit: Limit | None):
        asked = settings(utilisation=share, context=context, reads_media=True, cpu_offload_gib=4)
        fit = judge_start(HYBRID, SPIKE_WEIGHTS, asked, room(30.12, 31.84, margin=0))
        assert (fit.verdict is Verdict.NO, fit.limit if limit else None) == (limit is not None, limit)

    def test_the_ready_one_is_reached_in_a_single_step(self):
        fit = judge(HYBRID, SPIKE_WEIGHTS, settings(utilisation=0.95, reads_media=True), room(30.12, 31.84))
        assert fit.verdict is Verdict.TIGHT
        assert fit.utilisation == 0.94

    def test_lower_shares_leave_nothing_for_the_cache(self):
        fit = judge(HYBRID, SPIKE_WEIGHTS, settings(utilisation=0.88), room(30.12, 31.84))
        assert fit.verdict is Verdict.NO
        assert fit.limit in (Limit.WEIGHTS, Limit.OVERHEAD)

    def test_cpu_offload_gains_nothing_where_layers_keep_a_state(self):
        with_offload = judge(HYBRID, SPIKE_WEIGHTS, settings(cpu_offload_gib=4), room(30.12, 31.84))
        assert with_offload.estimate.weights_bytes == SPIKE_WEIGHTS

    def test_twice_the_context_does_not_fit(self):
        fit = judge(HYBRID, SPIKE_WEIGHTS, settings(context=32768), room(30.12, 31.84))
        assert fit.verdict is Verdict.NO


@pytest.mark.parametrize(
    ("free", "total", "highest"),
    [(30.12, 31.84, 0.94), (22.64, 23.52, 0.96), (6.95, 8.0, 0.86), (31.44, 47.38, 0.66)],
)
def test_the_gate_passes_at_the_highest_share_and_not_one_above(free: float, total: float, highest: float):
    limit = room(free, total).utilisation_max
    assert limit == highest
    assert total * limit <= free < total * (limit + 0.01)


def test_short_of_free_memory_says_how_much_must_be_freed():
    fit = judge(HYBRID, gib(20.4), settings(utilisation=0.85, kv_cache_dtype="fp8"), room(15.0, 31.84))
    assert (fit.verdict, fit.limit) == (Verdict.NO, Limit.FREE_MEMORY)
    freed = judge(
        HYBRID,
        gib(20.4),
        settings(utilisation=0.85, kv_cache_dtype="fp8"),
        room(to_gib(fit.free_needed_bytes) + 0.32, 31.84),
    )
    assert freed.verdict is Verdict.FITS


geometry = st.builds(
    settings,
    context=st.integers(1, 256).map(lambda k: k * 1024),
    max_num_seqs=st.integers(1, 16),
    kv_cache_dtype=st.sampled_from(["auto", "fp8"]),
    utilisation=st.sampled_from([0.8, 0.85, 0.9, 0.92, 0.94]),
    enforce_eager=st.booleans(),
    reads_media=st.booleans(),
)
ORDER = [Verdict.NO, Verdict.TIGHT, Verdict.FITS]


@given(geometry, st.floats(10, 60), st.floats(0.5, 1.0), st.floats(0, 0.5))
def test_more_free_memory_never_makes_it_worse(wanted: Settings, total: float, share: float, more: float):
    less = judge(HYBRID, gib(17.6), wanted, room(total * share, total))
    freer = judge(HYBRID, gib(17.6), wanted, room(min(total, total * (share + more)), total))
    assert ORDER.index(freer.verdict) >= ORDER.index(less.verdict)


@given(geometry, st.floats(10, 60), st.floats(0.5, 1.0))
def test_a_shorter_context_never_makes_it_worse(wanted: Settings, total: float, share: float):
    long = judge(HYBRID, gib(17.6), wanted, room(total * share, total))
    short = judge(HYBRID, gib(17.6), msgspec.structs.replace(wanted, context=1024), room(total * share, total))
    assert ORDER.index(short.verdict) >= ORDER.index(long.verdict)


@given(geometry, st.floats(10, 60), st.floats(0.5, 1.0))
def test_what_is_promised_starts_with_that_very_share_and_needs_no_more_than_is_free(
    wanted: Settings, total: float, share: float
):
    available = room(total * share, total)
    fit = judge(HYBRID, gib(17.6), wanted, available)
    if fit.verdict is not Verdict.FITS:
        return
    started = judge_start(HYBRID, gib(17.6), msgspec.structs.replace(wanted, utilisation=fit.utilisation), available)
    assert started.verdict is Verdict.FITS
    assert fit.estimate.high_bytes <= fit.share_bytes <= available.free_bytes - available.margin_bytes
    assert fit.to_free_bytes == 0


@given(geometry, st.floats(10, 60), st.floats(0.5, 1.0))
def test_what_is_offered_passes_the_gate(wanted: Settings, total: float, share: float):
    available = room(total * share, total)
    fit = judge(HYBRID, gib(17.6), wanted, available)
    if fit.verdict in (Verdict.FITS, Verdict.TIGHT):
        assert fit.share_bytes <= available.free_bytes + 1
        assert fit.utilisation <= wanted.utilisation


@given(st.floats(22, 60))
def test_the_longest_context_fits_and_the_next_does_not(total: float):
    wanted, available = settings(utilisation=0.92), room(total * 0.97, total)
    longest = longest_context(HYBRID, gib(17.6), wanted, available, 262144)
    if longest:
        fit = judge(HYBRID, gib(17.6), msgspec.structs.replace(wanted, context=longest), available)
        assert fit.verdict is Verdict.FITS
    if longest < 262144:
        longer = msgspec.structs.replace(wanted, context=longest + 1024)
        assert judge(HYBRID, gib(17.6), longer, available).verdict is not Verdict.FITS


def dense(**changes) -> Settings:
    base = Settings(context=4096, utilisation=0.9, max_num_seqs=256, max_num_batched_tokens=2048)
    return msgspec.structs.replace(base, **changes)


class TestReleases:
    """The same 8B, whose CUDA graphs lie inside the share, beside it, or nobody knows."""

    DENSE = REGISTRY.architectures["qwen3-8b"]

    def judged(self, release: str, free: float = 23.3, total: float = 23.52, wsl2: bool = False, **changes):
        card = msgspec.structs.replace(room(free, total, margin=0), wsl2=wsl2)
        return judge_start(self.DENSE, gib(15.27), dense(release=release, **changes), card)

    def test_graphs_beside_the_share_need_room_there(self):
        assert self.judged("0.19.1").verdict is Verdict.FITS
        fit = self.judged("0.19.1", free=21.3)
        assert (fit.verdict, fit.limit) == (Verdict.NO, Limit.GRAPHS)
        assert self.judged("0.19.1", free=21.3, enforce_eager=True).verdict is Verdict.FITS

    def test_graphs_that_are_counted_come_out_of_the_share(self):
        before, after = self.judged("0.19.1").estimate, self.judged("0.21.0").estimate
        assert after.high_bytes > before.high_bytes
        assert before.beside_high_bytes > after.beside_high_bytes

    def test_where_a_release_does_it_either_way_nothing_is_promised_that_only_one_holds(self):
        assert self.judged("0.23.0", free=21.3).verdict is Verdict.TIGHT
        assert self.judged("0.23.0", free=21.3, wsl2=True).verdict is Verdict.FITS
        assert self.judged("0.23.0", free=23.3).verdict is Verdict.FITS

    def test_the_second_runner_warms_its_sampler_up_beside_the_share(self):
        for release in ("0.27.1", "0.30.0"):
            assert self.judged(release, free=21.3).verdict is Verdict.TIGHT
            assert self.judged(release, free=23.3).verdict is Verdict.FITS
        assert self.judged("0.30.0", free=21.3, second_runner=False).verdict is Verdict.FITS
        assert self.judged("0.30.0", free=21.3, max_num_seqs=8).verdict is Verdict.FITS

    def test_what_the_profile_run_gave_back_is_there_for_the_graphs(self):
        """A vision tower's picture needs more at the profile run than the graphs that come after it."""

        def beside(reads_media: bool) -> int:
            seen = dense(release="0.19.1", max_num_seqs=8, reads_media=reads_media)
            return estimate(HYBRID, gib(17.6), seen, graphs_counted=False).beside_high_bytes

        assert beside(reads_media=True) < beside(reads_media=False)

    def test_adapters_and_layers_without_a_cache_have_graphs_too(self):
        plain, adapted = (self.judged("0.19.1", serves_adapters=each).estimate for each in (False, True))
        assert plain.beside_high_bytes * 1.5 < adapted.beside_high_bytes
        sharing = msgspec.structs.replace(self.DENSE, layers_without_cache=18)
        shared = estimate(sharing, gib(15.27), dense(release="0.19.1"), graphs_counted=False)
        assert (shared.kv_bytes, shared.beside_high_bytes > plain.beside_high_bytes) == (plain.kv_bytes, True)

    def test_under_wsl2_what_is_likely_beside_the_share_is_enough_for_a_start(self):
        """Windows moves the rest into the computer's memory; what is chosen leaves room for the most all the same."""
        assert self.judged("0.19.1", free=21.9).verdict is Verdict.TIGHT
        assert self.judged("0.19.1", free=21.9, wsl2=True).verdict is Verdict.FITS
        assert self.judged("0.19.1", free=21.3, wsl2=True).verdict is not Verdict.FITS
        card = msgspec.structs.replace(room(21.9, 23.52, margin=0), wsl2=True)
        chosen = judge(self.DENSE, gib(15.27), dense(release="0.19.1"), card)
        assert card.free_bytes - chosen.share_bytes >= chosen.estimate.beside_high_bytes

    def test_all_dense_models_take_the_second_runner_since_0_25(self):
        def counted(release: str, architecture=self.DENSE, **changes) -> tuple[bool, ...]:
            return graphs_may_be_counted(architecture, dense(release=release, **changes), wsl2=False)

        assert [counted(r) for r in ("0.19.1", "0.21.0", "0.23.0", "0.25.0", "0.29.0")] == [
            (False,),
            (True,),
            (True, False),
            (False,),
            (True,),
        ]
        assert counted("0.27.1", HYBRID) == (True,)
        assert counted("0.27.1", second_runner=False) == (True,)

    def test_the_profile_run_needs_its_largest_part_and_not_their_sum(self):
        few, many = (self.judged("0.21.0", max_num_seqs=count).estimate for count in (8, 256))
        assert [term.name for term in few.terms] == ["base", "activations", "graphs"]
        assert [term.name for term in many.terms] == ["base", "sampler", "graphs"]

    def test_the_forward_pass_is_what_the_old_engine_logged(self):
        asked = dense(release="0.6.4", context=29000)
        llama = msgspec.structs.replace(self.DENSE, intermediate_size=14336)
        forward = inside_the_share(llama, asked, wsl2=False, graphs_counted=False)[1]
        assert round(to_gib(forward.likely_bytes), 2) == 2.99
        chunked = inside_the_share(llama, dense(release="0.6.4", context=35000), wsl2=False, graphs_counted=False)[1]
        assert chunked.low_bytes < gib(0.1)

    def test_the_old_engine_computes_a_whole_prompt_at_once(self):
        assert self.judged("0.6.6", context=29000).verdict is Verdict.NO
        assert self.judged("0.19.1", context=29000).verdict is not Verdict.NO

    def test_the_default_share_rose_with_0_20(self):
        assert [default_utilisation(r) for r in ("0.19.1", "0.20.0", "v0.33.0")] == [0.90, 0.92, 0.92]

    def test_large_cards_take_more_at_once_unless_told(self):
        sizes = [default_batch(gib(total), "0.33.0") for total in (31.4, 79.2, 267.7)]
        assert sizes == [(256, 2048), (1024, 8192), (1024, 16384)]
        assert default_batch(gib(79.2), "0.33.0", a100=True) == (256, 2048)
        assert default_batch(gib(267.7), "0.27.1") == (1024, 8192)

    def test_state_blocks_limit_the_sequences_only_with_graphs(self):
        asked = dense(release="0.26.0", utilisation=0.92)
        many = judge_start(HYBRID, gib(20.4), asked, room(30.8, 31.4, 0))
        few = judge_start(HYBRID, gib(20.4), msgspec.structs.replace(asked, max_num_seqs=8), room(30.8, 31.4, 0))
        assert (many.verdict, many.limit, few.verdict) == (Verdict.NO, Limit.SEQUENCES, Verdict.FITS)


def test_offload_counts_for_a_dense_model_on_linux_alone():
    asked = dense(cpu_offload_gib=4, release="0.33.0")
    linux, wsl2 = idle_room(gib(16), wsl2=False), idle_room(gib(16), wsl2=True)
    needs = [judge(TestReleases.DENSE, gib(15.27), asked, card).estimate.weights_bytes for card in (linux, wsl2)]
    assert needs == [gib(15.27) - gib(4), gib(15.27)]


def test_without_a_model_the_gate_refuses_but_never_promises():
    assert judge_gate(0.95, room(30.12, 31.84)) is Verdict.NO
    assert judge_gate(0.50, room(30.12, 31.84)) is Verdict.TIGHT


def test_answers_that_differ_make_no_promise():
    fits = judge(HYBRID, gib(17.6), settings(), room(31, 31.84))
    refused = judge(HYBRID, gib(30), settings(), room(31, 31.84))
    assert (fits.verdict, refused.verdict) == (Verdict.FITS, Verdict.NO)
    assert agreed((fits, refused)).verdict is Verdict.TIGHT
    assert agreed((fits, fits)) == fits


class TestBudget:
    def test_linux_takes_cuda_s_smaller_total_and_the_context(self):
        facts = recorded("rtx-5090-linux")
        found = budget(facts, msgspec.structs.replace(facts.nvidia.gpus[0], cuda=None))
        assert to_gib(found.total_bytes) == pytest.approx(31.3, abs=0.15)
        assert to_gib(found.free_bytes) == pytest.approx(30.8, abs=0.3)

    def test_an_h200_is_derived_as_cuda_itself_said_on_that_very_card(self):
        facts = recorded("h200")
        found = budget(facts, facts.nvidia.gpus[0])
        assert found.total_bytes == 150_109_880_320
        assert 0 <= 149_557_477_376 - found.free_bytes < 16 << 20

    def test_a_driver_that_does_not_tell_its_own_share_gets_the_share_of_public_logs(self):
        facts = recorded("rtx-5090-linux")
        memory = facts.nvidia.gpus[0].memory
        assert isinstance(memory, GpuMemory)
        memory = msgspec.structs.replace(memory, reserved_bytes=0)
        found = budget(facts, msgspec.structs.replace(facts.nvidia.gpus[0], memory=memory, cuda=None))
        assert found.total_bytes == round(memory.total_bytes * 0.98)

    def test_wsl2_hides_a_share_and_says_how_much(self):
        facts = recorded("rtx-5090-wsl2")
        found = budget(facts, msgspec.structs.replace(facts.nvidia.gpus[0], cuda=None))
        assert to_gib(found.total_bytes) == pytest.approx(31.84, abs=0.01)
        assert to_gib(found.free_bytes) == pytest.approx(30.12, abs=0.2)
        assert found.hidden_bytes > 0

    def test_cuda_s_own_figure_wins(self):
        facts = recorded("rtx-5090-linux")
        seen = CudaMemory(total_bytes=gib(31.36), free_bytes=gib(20))
        found = budget(facts, msgspec.structs.replace(facts.nvidia.gpus[0], cuda=seen))
        assert (found.free_bytes, found.source) == (gib(20), "cuda")

    def test_unified_memory_is_the_host_s_and_an_unreadable_card_has_none(self):
        facts = recorded("gb10")
        (gpu,) = facts.nvidia.gpus
        assert budget(facts, gpu).free_bytes == facts.host.ram_available_bytes
        assert budget(facts, msgspec.structs.replace(gpu, unified_memory=False)) is None

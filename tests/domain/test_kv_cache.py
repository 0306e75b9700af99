"""vLLM's KV arithmetic: what its own functions answered, and the figures of public logs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench._kv_geometries import Answer, Case
from bench.kv_oracle import answer
from installer.domain.kv_cache import kv_blocks, kv_bytes_per_sequence, layout
from installer.domain.kv_layers import CannotLayOut
from installer.domain.registry import Architecture, LayerGroup
from installer.domain.settings import Settings
from installer.domain.units import gib
from tests.builders import shipped_registry

RECORDED = json.loads((Path(__file__).parent / "kv_oracle.json").read_text(encoding="utf-8"))


def architecture(*groups: LayerGroup, drafts: tuple[LayerGroup, ...] = ()) -> Architecture:
    return Architecture(
        hidden_size=1, vocab_size=1, layer_groups=groups, draft_layer_groups=drafts, source="the test's own"
    )


def full(layers: int, kv_heads: int, head_dim: int, **more) -> LayerGroup:
    return LayerGroup(kind="full", layers=layers, kv_heads=kv_heads, head_dim=head_dim, **more)


def sliding(layers: int, kv_heads: int, head_dim: int, window: int) -> LayerGroup:
    return LayerGroup(kind="sliding", layers=layers, kv_heads=kv_heads, head_dim=head_dim, window=window)


def states(layers: int, state_bytes: int, **more) -> LayerGroup:
    return LayerGroup(kind="linear", layers=layers, state_bytes=state_bytes, **more)


def settings(context: int = 32768, release: str = "0.27.0", **changes) -> Settings:
    base = Settings(context=context, utilisation=0.9, max_num_seqs=8, max_num_batched_tokens=2048, release=release)
    return msgspec.structs.replace(base, **changes)


QWEN_27B = architecture(
    full(16, 4, 256), states(48, 3207168, draft_state_bytes=20480), drafts=(full(1, 4, 256),)
)  # Qwen3.6 and 3.8
QWEN_27B_ON_ONE_OF_TWO = architecture(full(16, 2, 256), states(48, 3207168 // 2))
QWEN_35B = architecture(full(10, 2, 256), states(30, 2146304))
QWEN_35B_ON_ONE_OF_TWO = architecture(full(10, 1, 256), states(30, 2146304 // 2))
QWEN_9B = architecture(full(8, 4, 256), states(24, 2146304))
GEMMA_3_4B = architecture(full(5, 4, 256), sliding(29, 4, 256, window=1024))
GEMMA_4_12B = architecture(full(8, 1, 512), sliding(40, 8, 256, window=1024))
QWEN_25_05B = architecture(full(24, 2, 64))
LLAMA_8B = architecture(full(32, 8, 128))


class TestWhatVllmAnswered:
    @pytest.mark.parametrize("release", RECORDED)
    def test_the_product_answers_the_same(self, release: str):
        rows = [(msgspec.convert(row["case"], Case), msgspec.convert(row["vllm"], Answer)) for row in RECORDED[release]]
        wrong = [(case, answer(case), theirs) for case, theirs in rows if answer(case) != theirs]
        assert wrong == []

    def test_every_kind_of_layers_was_asked_and_both_outcomes_are_there(self):
        rows = RECORDED["0.32.0"]
        assert len(rows) >= 40
        assert min(Counter(row["case"]["family"] for row in rows).values()) >= 2
        assert {row["vllm"]["starts"] for row in rows} == {True, False}
        assert any(row["vllm"]["refused"] for rows in RECORDED.values() for row in rows)


def logged(model: Architecture, asked: Settings, available_gib: float) -> set[int]:
    """Return the tokens that a log could show whose GiB were rounded to this figure."""
    laid_out = layout(model, asked)
    least, most = (laid_out.blocks(gib(available_gib + rounding)) for rounding in (-0.005, 0.005))
    return {laid_out.logged_tokens(blocks * laid_out.bytes_per_block) for blocks in range(least, most + 1)}


class TestPublicLogs:
    """Token counts of public logs; the ids are rows of bench/data/vram-runs.jsonl."""

    @pytest.mark.parametrize(
        ("model", "asked", "available_gib", "tokens"),
        [
            pytest.param(
                QWEN_35B,
                settings(65536, "0.20.0", kv_cache_dtype="fp8", mamba_cache_mode="align"),
                2.95,
                75456,
                id="v018",
            ),
            pytest.param(QWEN_27B, settings(32768, "0.20.0", kv_cache_dtype="fp8"), 6.67, 53312, id="v019"),
            pytest.param(
                QWEN_35B,
                settings(131072, "0.24.0", kv_cache_dtype="fp8", mamba_cache_mode="align"),
                5.98,
                567978,
                id="v029",
            ),
            pytest.param(GEMMA_3_4B, settings(131072, "0.15.0"), 2.94, 21984, id="v075"),
            pytest.param(QWEN_25_05B, settings(32768, "0.26.0"), 11.94, 1043072, id="v077"),
            pytest.param(
                QWEN_35B_ON_ONE_OF_TWO,
                settings(262144, "0.24.0", kv_cache_dtype="fp8", mamba_cache_mode="align"),
                4.55,
                903602,
                id="v091",
            ),
            pytest.param(LLAMA_8B, settings(8192, "0.10.0"), 3.78, 30960, id="v093"),
            pytest.param(
                QWEN_35B,
                settings(262144, "0.17.1", kv_cache_dtype="fp8", mamba_cache_mode="align"),
                5.18,
                134144,
                id="v126",
            ),
        ],
    )
    def test_tokens_of_the_gibibytes_beside_them(
        self, model: Architecture, asked: Settings, available_gib: float, tokens: int
    ):
        assert tokens in logged(model, asked, available_gib)

    @pytest.mark.parametrize(
        ("model", "asked", "blocks", "tokens"),
        [
            pytest.param(QWEN_27B, settings(mamba_cache_mode="align", kv_cache_dtype="fp8"), 75, 91022, id="v020"),
            pytest.param(QWEN_27B, settings(mamba_cache_mode="align", kv_cache_dtype="fp8"), 112, 135926, id="v022"),
            pytest.param(QWEN_27B, settings(mamba_cache_mode="align", kv_cache_dtype="fp8"), 126, 152917, id="v023"),
            pytest.param(QWEN_27B, settings(mamba_cache_mode="align"), 112, 76458, id="recipe-bf16"),
            pytest.param(
                QWEN_27B,
                settings(mamba_cache_mode="align", kv_cache_dtype="fp8", speculative_tokens=3),
                99,
                90112,
                id="v025",
            ),
            pytest.param(QWEN_27B_ON_ONE_OF_TWO, settings(262144, mamba_cache_mode="align"), 491, 377456, id="v026"),
            pytest.param(QWEN_9B, settings(4096, "0.30.0"), 48, 14043, id="v071"),
        ],
    )
    def test_tokens_are_those_of_whole_blocks(self, model: Architecture, asked: Settings, blocks: int, tokens: int):
        laid_out = layout(model, asked)
        assert laid_out.logged_tokens(blocks * laid_out.bytes_per_block) == tokens

    @pytest.mark.parametrize(("context", "concurrency"), [(32768, 6.97), (65536, 5.29), (131072, 3.57), (262144, 2.17)])
    def test_gemma_4_makes_the_block_of_its_full_layers_larger(self, context: int, concurrency: float):
        laid_out = layout(GEMMA_4_12B, settings(context, "0.24.0", max_num_batched_tokens=2496))
        assert (laid_out.bytes_per_block, laid_out.blocks(gib(11))) == (1 << 20, 11264)
        assert laid_out.blocks_per_sequence == 1105 + context // 64
        assert laid_out.concurrency(gib(11)) == pytest.approx(concurrency, abs=0.005)

    def test_blocks_of_the_hybrid_models(self):
        def block(model: Architecture, **changes) -> int:
            return layout(model, settings(**changes)).groups[0].block_tokens

        assert [block(QWEN_27B), block(QWEN_27B, kv_cache_dtype="fp8")] == [784, 1568]
        assert [block(QWEN_35B), block(QWEN_35B, kv_cache_dtype="fp8")] == [1056, 2096]
        assert block(QWEN_35B, block_tokens=128) == 1152


class TestReleases:
    def test_two_batches_in_flight_since_0_26_unless_scheduling_waits(self):
        def blocks(release: str, **changes) -> int:
            return layout(GEMMA_3_4B, settings(release=release, **changes)).blocks_per_sequence

        assert blocks("0.26.0") > blocks("0.25.0") == blocks("0.26.0", async_scheduling=False)

    def test_one_block_more_must_be_left_since_0_29(self):
        before, since = settings(release="0.28.0"), settings(release="0.29.0")
        one_block = kv_bytes_per_sequence(LLAMA_8B, since) - kv_bytes_per_sequence(LLAMA_8B, before)
        assert one_block == layout(LLAMA_8B, since).bytes_per_block
        assert layout(LLAMA_8B, since).sequence_bytes == layout(LLAMA_8B, before).sequence_bytes

    def test_a_second_state_since_prefixes_are_cached_by_default(self):
        def states_kept(release: str, **changes) -> int:
            return layout(QWEN_27B, settings(release=release, **changes)).groups[-1].extra_blocks

        assert [states_kept("0.27.1"), states_kept("0.28.0")] == [1, 2]
        assert states_kept("0.28.0", mamba_cache_mode="none") == 1
        assert states_kept("0.28.0", speculative_tokens=3) == 5

    def test_cards_that_save_states_inside_a_prefill_need_one_more_since_0_33(self):
        with_it, without = (layout(QWEN_27B, settings(release="0.33.0", state_checkpoints=on)) for on in (True, False))
        assert (with_it.groups[-1].extra_blocks, without.groups[-1].extra_blocks) == (3, 2)
        assert (with_it.groups[0].block_tokens, without.groups[0].block_tokens) == (832, 784)

    def test_states_for_all_sequences_are_asked_for_since_0_20_and_for_graphs_only(self):
        def suffice(release: str, **changes) -> bool:
            asked = settings(release=release, **{"max_num_seqs": 256, **changes})
            return layout(QWEN_27B, asked).state_blocks_suffice(gib(9), asked)

        assert suffice("0.19.1")
        assert not suffice("0.20.0")
        assert suffice("0.20.0", enforce_eager=True)
        assert suffice("0.20.0", max_num_seqs=kv_blocks(QWEN_27B, settings(), gib(9)))

    def test_pages_that_do_not_divide_are_refused_before_0_24(self):
        uneven = architecture(full(8, 4, 96), sliding(8, 4, 256, window=1024))
        assert layout(uneven, settings(release="0.24.0")).bytes_per_block == 8 * 16 * 4 * 256 * 4
        with pytest.raises(CannotLayOut):
            layout(uneven, settings(release="0.23.0"))

    def test_a_release_candidate_and_a_tag_are_releases_too(self):
        for release in ("v0.24.0", "0.24.1rc1.dev608+g99a10304d"):
            assert layout(LLAMA_8B, settings(release=release)).release == (0, 24)


@pytest.mark.parametrize("name", shipped_registry().architectures)
class TestTheShippedArchitectures:
    def test_the_longest_context_is_the_last_one_that_starts(self, name: str):
        model = shipped_registry().architectures[name]
        laid_out = layout(model, settings(262144, "0.33.0"))
        available = laid_out.start_bytes * 2 // 3
        longest = laid_out.longest_context(available)
        assert kv_bytes_per_sequence(model, settings(longest, "0.33.0")) <= available
        assert kv_bytes_per_sequence(model, settings(longest + 1, "0.33.0")) > available

    def test_fp8_halves_no_state_but_never_needs_more(self, name: str):
        model = shipped_registry().architectures[name]
        need = kv_bytes_per_sequence(model, settings(131072))
        assert need / 2 <= kv_bytes_per_sequence(model, settings(131072, kv_cache_dtype="fp8")) * 1.05 <= need * 1.05


@given(st.sampled_from([QWEN_27B, QWEN_35B, GEMMA_3_4B, GEMMA_4_12B, LLAMA_8B]), st.integers(1, 300_000), st.data())
def test_a_shorter_context_never_needs_more(model: Architecture, context: int, data: st.DataObject):
    shorter = data.draw(st.integers(1, context))
    release = data.draw(st.sampled_from(["0.19.1", "0.24.0", "0.28.0", "0.33.0"]))
    assert kv_bytes_per_sequence(model, settings(shorter, release)) <= kv_bytes_per_sequence(
        model, settings(context, release)
    )

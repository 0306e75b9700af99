"""Made-up models of every kind of layer, and settings to run them with; the same seed gives the same ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from installer.domain.kv_cache import layout
from installer.domain.kv_layers import CannotLayOut
from installer.domain.registry import Architecture, LayerGroup
from installer.domain.settings import Settings

GIB = 1 << 30
BF16, FLOAT32 = 2, 4


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A model, settings and the bytes that are left for its cache. `state` is what the layers' state is made of."""

    family: str
    architecture: Architecture
    settings: Settings
    available_bytes: int
    state: State | None = None


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The dimensions of a linear layer: heads, the dimensions of keys and values, and its convolution."""

    kind: Literal["gated_delta", "mamba2"]
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int

    def group(self, layers: int) -> LayerGroup:
        """Return the layers as the registry would have them, by the formula of its own comment."""
        if self.kind == "gated_delta":
            channels = 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
        else:
            channels = self.value_heads * self.value_dim + 2 * self.key_heads * self.key_dim
        recurrent = self.value_heads * self.value_dim * self.key_dim * FLOAT32
        return LayerGroup(
            kind="linear",
            layers=layers,
            state=self.kind,
            state_bytes=channels * (self.kernel - 1) * BF16 + recurrent,
            draft_state_bytes=channels * BF16,
            state_chunk=256 if self.kind == "mamba2" else 0,
        )


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared. `refused`: vLLM lays this out in no way; `starts` is false where memory is short."""

    refused: bool = False
    groups: int = 0
    block_tokens: tuple[int, ...] = ()
    bytes_per_block: int = 0
    blocks: int = 0
    needed_bytes: int = 0
    concurrency: float = 0
    tokens: int = 0
    starts: bool = False
    longest: int = 0


def cases(count: int, seed: int, release: str) -> Iterator[Case]:
    """Yield `count` cases, the families in turn."""
    dice = random.Random(f"{seed} {release}")
    families = list(_FAMILIES.items())
    for index in range(count):
        name, make = families[index % len(families)]
        layers, state = make(dice)
        settings = _settings(dice, release)
        drafted: tuple[LayerGroup, ...] = ()
        if settings.speculative_tokens and dice.random() < 0.7:
            main = next((group for group in layers if group.kind in ("full", "mla")), None)
            drafted = (msgspec.structs.replace(main, layers=dice.choice((1, 1, 2))),) if main else ()
        architecture = Architecture(
            hidden_size=2048, vocab_size=32000, layer_groups=layers, draft_layer_groups=drafted, source="made up"
        )
        yield Case(
            family=name,
            architecture=architecture,
            settings=settings,
            available_bytes=_available(dice, architecture, settings),
            state=state,
        )


def _settings(dice: random.Random, release: str) -> Settings:
    return Settings(
        context=dice.choice((2048, 4096, 16384, 32768, 65536, 131072, 262144, dice.randrange(1, 200_000))),
        utilisation=0.9,
        max_num_seqs=dice.choice((1, 8, 256)),
        max_num_batched_tokens=dice.choice((512, 2048, 2496, 8192)),
        kv_cache_dtype=dice.choice(("auto", "fp8")),
        block_tokens=dice.choice((0, 0, 0, 64, 128)),
        speculative_tokens=dice.choice((0, 0, 0, 1, 3)),
        mamba_cache_mode=dice.choice(("default", "none", "align", "all")),
        async_scheduling=dice.random() < 0.8,
        state_checkpoints=dice.random() < 0.5,
        release=release,
    )


def _available(dice: random.Random, architecture: Architecture, settings: Settings) -> int:
    """Choose what is left: often just enough or just too little, where mistakes would show."""
    anything = int(dice.uniform(0.05, 60) * GIB)
    try:
        needed = layout(architecture, settings)
    except CannotLayOut:
        return anything
    enough = needed.start_bytes
    return dice.choice((anything, anything, enough, enough - 1, enough + needed.bytes_per_block // 2, enough // 2))


def _attention(
    dice: random.Random, kind: Literal["full", "sliding"] = "full", layers: int | None = None, **fields: Any
) -> LayerGroup:
    layers = layers or dice.randrange(4, 65)
    heads, head = dice.choice((1, 2, 4, 8, 16)), dice.choice((64, 80, 96, 128, 256))
    return LayerGroup(kind=kind, layers=layers, **{"kv_heads": heads, "head_dim": head, **fields})


def _mla(dice: random.Random, **fields: Any) -> LayerGroup:
    return LayerGroup(kind="mla", layers=dice.randrange(8, 62), **{"latent_dim": dice.choice((576, 320)), **fields})


def _gated_delta(dice: random.Random) -> State:
    dim = dice.choice((64, 128))
    keys = dice.choice((8, 16))
    return State(
        kind="gated_delta",
        key_heads=keys,
        value_heads=keys * dice.choice((1, 2, 3, 4)),
        key_dim=dim,
        value_dim=128,
        kernel=4,
    )


def _mamba2(dice: random.Random) -> State:
    return State(
        kind="mamba2",
        key_heads=dice.choice((1, 8)),
        value_heads=dice.choice((48, 64, 112)),
        key_dim=128,
        value_dim=64,
        kernel=4,
    )


Layers = tuple[tuple[LayerGroup, ...], State | None]


def _dense(dice: random.Random) -> Layers:
    return (_attention(dice),), None


def _unequal_heads(dice: random.Random) -> Layers:
    group = _attention(dice, head_dim=192, value_head_dim=128)
    return (group, _attention(dice)) if dice.random() < 0.5 else (group,), None


def _sliding(dice: random.Random) -> Layers:
    """Make a model of Gemma's or gpt-oss's kind: all pages are equal."""
    full = _attention(dice)
    layers = max(1, int(full.layers * dice.choice((1, 1.2, 3, 5, 5.4))))
    window = dice.choice((128, 512, 1024, 4096))
    return (full, msgspec.structs.replace(full, kind="sliding", layers=layers, window=window)), None


def _mixed_pages(dice: random.Random) -> Layers:
    """Make a model of Gemma 4's kind, where the two kinds differ in heads."""
    window = dice.choice((512, 1024))
    return (_attention(dice), _attention(dice, "sliding", window=window)), None


def _two_windows(dice: random.Random) -> Layers:
    first = _attention(dice, "sliding", window=1024)
    second = msgspec.structs.replace(first, layers=dice.randrange(4, 40), window=dice.choice((1024, 256)))
    return (first, second, _attention(dice)) if dice.random() < 0.5 else (first, second), None


def _compressed(dice: random.Random) -> Layers:
    return (_mla(dice),), None


def _sparse_compressed(dice: random.Random) -> Layers:
    """Make a model of DeepSeek V3.2's kind: an indexer of 132 bytes a token beside every layer."""
    main = _mla(dice, latent_dim=576, fp8_token_bytes=656)
    return (main, LayerGroup(kind="mla", layers=main.layers, token_bytes=132)), None


def _compressed_and_sliding(dice: random.Random) -> Layers:
    return (_mla(dice), _attention(dice, "sliding", window=512)), None


def _gated_delta_hybrid(dice: random.Random) -> Layers:
    state, full = _gated_delta(dice), _attention(dice)
    return (full, state.group(full.layers * 3)), state


def _mamba_hybrid(dice: random.Random) -> Layers:
    state = _mamba2(dice)
    return (_attention(dice, layers=dice.randrange(2, 9)), state.group(dice.randrange(20, 55))), state


def _compressed_hybrid(dice: random.Random) -> Layers:
    state, main = _gated_delta(dice), _mla(dice)
    return (main, state.group(main.layers * 3)), state


def _hybrid_with_windows(dice: random.Random) -> Layers:
    state, full = _gated_delta(dice), _attention(dice)
    near = msgspec.structs.replace(full, kind="sliding", layers=dice.randrange(4, 30), window=1024)
    return (full, near, state.group(dice.randrange(4, 50))), state


def _hybrid_with_unequal_heads(dice: random.Random) -> Layers:
    state = _gated_delta(dice)
    return (_attention(dice, head_dim=192, value_head_dim=128), state.group(dice.randrange(4, 50))), state


def _states_alone(dice: random.Random) -> Layers:
    state = _mamba2(dice)
    return (state.group(dice.randrange(24, 65)),), state


_FAMILIES: dict[str, Callable[[random.Random], Layers]] = {
    "dense": _dense,
    "unequal heads": _unequal_heads,
    "sliding": _sliding,
    "mixed pages": _mixed_pages,
    "two windows": _two_windows,
    "MLA": _compressed,
    "sparse MLA": _sparse_compressed,
    "MLA and sliding": _compressed_and_sliding,
    "gated delta": _gated_delta_hybrid,
    "Mamba 2": _mamba_hybrid,
    "MLA and gated delta": _compressed_hybrid,
    "gated delta and sliding": _hybrid_with_windows,
    "gated delta, unequal heads": _hybrid_with_unequal_heads,
    "Mamba 2 alone": _states_alone,
}

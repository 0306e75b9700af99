"""Models that public runs name: which one a name means, its geometry, and what its weights may take.

A name that means no known model is never guessed at: `candidates` are all known models that such weights could be.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from installer.domain.registry import Architecture, LayerGroup
from installer.domain.units import gib

DATA = Path(__file__).parent / "data"

NAMES = (
    (r"nemotron.*30b", "nvidia/Nemotron-3-Nano-30B-A3B"),
    (r"qwen.?3[._]?[5-9].*122b", "Qwen/Qwen3.5-122B-A10B"),
    (r"qwen.?3[._]?[5-9].*35b", "Qwen/Qwen3.6-35B-A3B"),
    (r"qwen.?3[._]?[5-9].*27b|27b hybrid", "Qwen/Qwen3.6-27B"),
    (r"qwen.?3[._]?[5-9].*\b9b", "Qwen/Qwen3.5-9B"),
    (r"qwen.?3[._]?[5-9].*\b4b", "Qwen/Qwen3.5-4B"),
    (r"qwen.?3[._]?[5-9].*\b2b", "Qwen/Qwen3.5-2B"),
    (r"qwen.?3[._]?[5-9].*\b0\.8b", "Qwen/Qwen3.5-0.8B"),
    (r"qwen3-next.*80b", "Qwen/Qwen3-Next-80B-A3B"),
    (r"qwen3-?vl.*30b", "Qwen/Qwen3-VL-30B-A3B"),
    (r"qwen3-?vl.*32b", "Qwen/Qwen3-VL-32B"),
    (r"qwen3-?vl.*\b8b", "Qwen/Qwen3-VL-8B"),
    (r"qwen3-?vl.*\b4b", "Qwen/Qwen3-VL-4B"),
    (r"qwen3-?vl.*\b2b|cosmos-reason2-2b", "Qwen/Qwen3-VL-2B"),
    (r"qwen3.*235b.*2507", "Qwen/Qwen3-235B-A22B-2507"),
    (r"qwen3.*235b", "Qwen/Qwen3-235B-A22B"),
    (r"qwen3-?coder.*30b|qwen3.*30b.*2507", "Qwen/Qwen3-Coder-30B-A3B"),
    (r"qwen3.*30b", "Qwen/Qwen3-30B-A3B"),
    (r"qwen3\b.*\b32b", "Qwen/Qwen3-32B"),
    (r"qwen3\b.*\b14b", "Qwen/Qwen3-14B"),
    (r"qwen3\b.*\b8b", "Qwen/Qwen3-8B"),
    (r"qwen3\b.*\b4b.*2507", "Qwen/Qwen3-4B-2507"),
    (r"qwen3\b.*\b4b", "Qwen/Qwen3-4B"),
    (r"qwen3\b.*\b1\.7b", "Qwen/Qwen3-1.7B"),
    (r"qwen3\b.*\b0\.6b", "Qwen/Qwen3-0.6B"),
    (r"qwen3\b(?!.*\d\s?b\b)", ""),
    (r"qwen2\.?5-?vl.*32b", "Qwen/Qwen2.5-VL-32B-Instruct"),
    (r"qwen2\.?5-?vl.*\b7b", "Qwen/Qwen2.5-VL-7B-Instruct"),
    (r"qwen2\.?5-?vl.*\b3b", "Qwen/Qwen2.5-VL-3B-Instruct"),
    (r"distill-llama.*70b", "meta-llama/Llama-3.3-70B-Instruct"),
    (r"distill-llama.*8b", "meta-llama/Llama-3.1-8B-Instruct"),
    (r"distill-qwen.*32b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"),
    (r"distill-qwen.*14b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"),
    (r"distill-qwen.*1\.5b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"),
    (r"distill-qwen.*7b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"),
    (r"qwq.*32b", "Qwen/QwQ-32B"),
    (r"gemma-?\s?4.*e4b|\be4b", "google/gemma-4-E4B-it"),
    (r"gemma-?\s?4.*e2b|\be2b", "google/gemma-4-E2B-it"),
    (r"gemma-?\s?4.*31b", "google/gemma-4-31b-it"),
    (r"gemma-?\s?4.*26b", "google/gemma-4-26b-a4b-it"),
    (r"gemma-?\s?4.*12b", "google/gemma-4-12b-it"),
    (r"gemma-?\s?3.*27b|medgemma.*27b", "google/gemma-3-27b-it"),
    (r"gemma-?\s?3.*12b", "google/gemma-3-12b-it"),
    (r"gemma-?\s?3.*\b1b", "google/gemma-3-1b-it"),
    (r"gemma-?\s?3.*\b4b|medgemma", "google/gemma-3-4b-it"),
    (r"gemma-?\s?2.*27b", "google/gemma-2-27b-it"),
    (r"gemma-?\s?2.*\b9b", "google/gemma-2-9b-it"),
    (r"gemma-?\s?2.*\b2b", "google/gemma-2-2b-it"),
    (r"gpt-?oss.*120b", "openai/gpt-oss-120b"),
    (r"gpt-?oss.*20b", "openai/gpt-oss-20b"),
    (r"devstral-small-2\b(?!5)|devstral.*2512", "mistralai/Devstral-Small-2-24B"),
    (r"devstral", "mistralai/Mistral-Small-24B-2501"),
    (r"mistral-small.*2501", "mistralai/Mistral-Small-24B-2501"),
    (r"ministral-?3.*14b", "mistralai/Ministral-3-14B"),
    (r"ministral-?3.*\b8b", "mistralai/Ministral-3-8B"),
    (r"ministral-?3.*\b3b", "mistralai/Ministral-3-3B"),
    (r"(?<!mi)nistral.*\d", ""),
    (r"mi[sx]tral.*8x7b", "mistralai/Mixtral-8x7B"),
    (r"(mistral|magistral).*24b|mistral-small-3|magistral-small", "mistralai/Mistral-Small-3.2-24B"),
    (r"mistral-?nemo|nemo.*12b", "mistralai/Mistral-Nemo-12B"),
    (r"mistral.*\b7b|zephyr|openchat-3", "mistralai/Mistral-7B"),
    (r"llama-?3\.?[123]?.*70b", "meta-llama/Llama-3.3-70B-Instruct"),
    (r"llama-?2.*13b", "meta-llama/Llama-2-13b"),
    (r"llama-?2.*\b7b|codellama.*7b|vicuna.*7b|deepseek-coder-6\.7b", "meta-llama/Llama-2-7b"),
    (r"tinyllama", "TinyLlama/TinyLlama-1.1B"),
    (r"llama.*\b1b", "meta-llama/Llama-3.2-1B-Instruct"),
    (r"llama.*\b3b|orpheus", "meta-llama/Llama-3.2-3B-Instruct"),
    (r"meta-llama-3-8b|llama-3-8b(?!-geom)", "meta-llama/Meta-Llama-3-8B-Instruct"),
    (r"llama.*\b8b|hermes-3.*8b|sea-lion.*8b", "meta-llama/Llama-3.1-8B-Instruct"),
    (r"deepseek-v2-lite|deepseek-coder-v2-lite", "deepseek-ai/DeepSeek-V2-Lite"),
    (r"deepseek-(v3|r1)\b", "deepseek-ai/DeepSeek-V3"),
    (r"deepseek-coder-33b", "deepseek-ai/deepseek-coder-33b"),
    (r"glm-?4\.7-?flash", "zai-org/GLM-4.7-Flash"),
    (r"glm-?4\.5-?air", "zai-org/GLM-4.5-Air"),
    (r"glm-?4.*32b", "zai-org/GLM-4-32B-0414"),
    (r"glm-?4.*\b9b", "zai-org/GLM-4-9B-0414"),
    (r"phi-?4-?mini", "microsoft/Phi-4-mini-instruct"),
    (r"phi-?4", "microsoft/phi-4"),
    (r"phi-?3\.?5?-?mini", "microsoft/Phi-3.5-mini-instruct"),
    (r"seed-?oss.*36b", "ByteDance-Seed/Seed-OSS-36B-Instruct"),
    (r"smollm3", "HuggingFaceTB/SmolLM3-3B"),
    (r"smollm.*1\.7b", "HuggingFaceTB/SmolLM2-1.7B"),
    (r"smollm.*360m", "HuggingFaceTB/SmolLM2-360M"),
    (r"smollm.*135m", "HuggingFaceTB/SmolLM2-135M"),
    (r"\byi-.*34b", "01-ai/Yi-34B"),
    (r"solar.*10\.7b", "upstage/SOLAR-10.7B"),
    (r"aya-expanse-8b", "CohereLabs/aya-expanse-8b"),
    (r"opt-125m", "facebook/opt-125m"),
    (r"flash-next|v4-flash|glm-?5|kimi|minimax|omni|image|whisper|\basr\b|\btts\b", ""),
    # A bare size, or one of Qwen2.5, is taken for the commonest model of that size.
    (r"\b72b", "Qwen/Qwen2.5-72B-Instruct"),
    (r"\b70b", "meta-llama/Llama-3.3-70B-Instruct"),
    (r"\b0\.5b", "Qwen/Qwen2.5-0.5B"),
    (r"\b1\.5b", "Qwen/Qwen2.5-1.5B-Instruct"),
    (r"\b3b", "Qwen/Qwen2.5-3B-Instruct"),
    (r"\b7b", "Qwen/Qwen2.5-7B-Instruct"),
    (r"\b8b", "Qwen/Qwen3-8B"),
    (r"\b14b", "Qwen/Qwen2.5-14B-Instruct"),
    (r"\b32b", "Qwen/Qwen2.5-32B-Instruct"),
)
"""What a name is searched for, in this order; an empty model means one whose geometry is not known."""

FOUR_BITS = r"nvfp4|mxfp4|awq|gptq|int4|4-?bit|w4|fp4|autoround|bnb|bitsandbytes"
EIGHT_BITS = r"fp8|int8|8-?bit|w8"


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on one card: told by the run, known of its checkpoint, or between two bounds."""

    low_bytes: int
    high_bytes: int
    source: str


@functools.cache
def shapes() -> dict[str, dict[str, Any]]:
    """Return every model that is known, by its repository."""
    known = json.loads((DATA / "model-configs.json").read_text("utf-8"))
    more = json.loads((DATA / "model-shapes.json").read_text("utf-8"))
    return {name: known.get(name, {}) | more[name] for name in more if "/" in name}


@functools.cache
def model_of(name: str | None) -> str | None:
    """Return the repository of the base model behind a name, as people write it.

    What stands in brackets about the geometry counts more than the name itself: a run may say "8B bf16 (131,072 B/token
    = Llama-3.1-8B geometry)".
    """
    text = (name or "").casefold()
    in_brackets = re.findall(r"\(([^)]*)\)", text)
    telling = [part for part in in_brackets if re.search(r"geometry|\db\b", part)]
    for said in (re.sub(r"[\d,.]+ (?:kib|b)/token", "", part) for part in (*telling, text)):
        found = next((repo for pattern, repo in NAMES if re.search(pattern, said)), None)
        if found:
            return found
        if found == "":
            return None
    return None


def candidates(weights: Weights, cards: int = 1) -> tuple[str, ...]:
    """Return every known model that these weights could be: with half a byte a parameter, two, or anything between."""
    low, high = weights.low_bytes * cards, weights.high_bytes * cards
    return tuple(
        name
        for name, shape in shapes().items()
        if 0.4e9 * shape["params_b"] <= high and low <= 2.3e9 * shape["params_b"]
    )


# --- geometry --------------------------------------------------------------------------------------------------------


@functools.cache
def architecture(name: str, cards: int = 1) -> Architecture:
    """Return what one of several cards holds of a model: heads and states are split, the vocabulary is not."""
    shape = shapes()[name]
    return Architecture(
        hidden_size=shape["hidden"],
        vocab_size=shape["vocab"],
        layer_groups=_layer_groups(shape, cards),
        draft_layer_groups=_drafts(shape, cards),
        experts_per_token=shape.get("experts_per_tok", 0),
        intermediate_size=shape.get("inter", 0) // cards,
        encoder_bytes=gib(shape.get("encoder_gib", 0)),
        layers_without_cache=shape.get("layers_without_cache", 0),
        source=shape["source"],
    )


def _layer_groups(shape: dict[str, Any], cards: int) -> tuple[LayerGroup, ...]:
    def attention(kind: str, layers: str, which: str = "") -> LayerGroup:
        heads = shape.get(f"kv_heads_{which}") or shape["kv_heads"]
        return LayerGroup(
            kind="sliding" if kind == "sliding" else "full",
            layers=shape[layers],
            kv_heads=max(1, heads // cards),
            head_dim=shape.get(f"head_dim_{which}") or shape["head_dim"],
            window=shape["sliding_window"] if kind == "sliding" else 0,
        )

    if "latent" in shape:
        return (LayerGroup(kind="mla", layers=shape["layers"], latent_dim=shape["latent"]),)
    if "linear_layers" in shape:
        return attention("full", "full_attention_layers"), _linear(shape, cards)
    if "sliding_layers" in shape:
        return attention("full", "full_attention_layers", "global"), attention("sliding", "sliding_layers", "sliding")
    return (attention("full", "layers"),)


def _linear(shape: dict[str, Any], cards: int) -> LayerGroup:
    return LayerGroup(
        kind="linear",
        layers=shape["linear_layers"],
        state_bytes=(shape.get("state_bytes") or _state_bytes(shape)) // cards,
        state=shape.get("state", "gated_delta"),
        state_chunk=shape.get("state_chunk", 0),
    )


def _state_bytes(shape: dict[str, Any]) -> int:
    keys = shape["linear_num_key_heads"] * shape["linear_key_head_dim"]
    values = shape["linear_num_value_heads"] * shape["linear_value_head_dim"]
    return (2 * keys + values) * (shape["conv_kernel"] - 1) * 2 + values * shape["linear_key_head_dim"] * 4


def _drafts(shape: dict[str, Any], cards: int) -> tuple[LayerGroup, ...]:
    if not shape.get("mtp_layers"):
        return ()
    heads = max(1, shape["kv_heads"] // cards)
    return (LayerGroup(kind="full", layers=shape["mtp_layers"], kv_heads=heads, head_dim=shape["head_dim"]),)


# --- weights ---------------------------------------------------------------------------------------------------------


def weights_of_checkpoint(model: str | None, quant: str | None, cards: int = 1) -> Weights | None:
    """Return what is known of a checkpoint, or the bounds that its parameters and its kind of numbers set."""
    known = model_of(model)
    if known is None or model is None:
        return None
    text = f"{model} {quant or ''}".casefold()
    for label, size in checkpoints():
        if model.casefold() == label or ("/" not in label and set(label.split()) <= set(_words(text))):
            return Weights(low_bytes=gib(size / cards), high_bytes=gib(size / cards), source="checkpoint")
    low, high = _bounds(shapes()[known], text)
    return Weights(low_bytes=round(low / cards), high_bytes=round(high / cards), source="parameters")


def _words(text: str) -> list[str]:
    short = [part.removesuffix("-it").removesuffix("-instruct") for part in re.split(r"[\s/()]+", text)]
    return short + [word for part in short for word in re.split(r"-(?=bf16|fp8|nvfp4|awq|gptq|int4)", part)]


def _bounds(shape: dict[str, Any], text: str) -> tuple[float, float]:
    """Two bytes a parameter are exact; what is quantised leaves embeddings and more in 16 bits, or does not.

    Builds for models with states or experts leave those layers alone that are not the feed-forward ones.
    """
    count = shape["params_b"] * 1e9
    embedded = shape["vocab"] * shape["hidden"] * (1 if shape.get("tied") else 2)
    tower = gib(0.9) if shape.get("vision") else 0
    if re.search(FOUR_BITS, text) or shape.get("mxfp4"):
        least = 0.52 * (count - embedded) + 2 * embedded if re.search(r"awq|gptq|mxfp4", text) else 0.5 * count
        return least, max(0.57 * (count - embedded) + 2 * embedded, _feed_forward_only(shape, count)) + tower
    if re.search(EIGHT_BITS, text):
        return count, count + embedded + tower
    return 2 * count, 2.02 * count


def _feed_forward_only(shape: dict[str, Any], count: float) -> float:
    if shape.get("experts_per_tok"):
        quantised = 0.92 * count
    elif "linear_layers" in shape:
        quantised = shape["layers"] * 3 * shape["hidden"] * shape["inter"]
    else:
        return 0
    return 0.57 * quantised + 2 * (count - quantised)


@functools.cache
def checkpoints() -> tuple[tuple[str, float], ...]:
    """Return the checkpoints whose resident size is known, in GiB, by their lower-case name."""
    read = [json.loads((DATA / name).read_text("utf-8")) for name in ("model-configs.json", "model-shapes.json")]
    known = read[0]["_checkpoints"] | read[1]["_checkpoints"]
    found: list[tuple[str, float]] = []
    for name, value in known.items():
        entries = value.items() if isinstance(value, dict) else [("", value)]
        for sub, size in entries:
            label = sub if "/" in sub else f"{name} {sub}".strip()
            per_card = re.match(r"([\d.]+)/GPU at TP(\d)", str(size))
            if per_card:
                found.append((label.casefold(), float(per_card[1]) * int(per_card[2])))
            elif isinstance(size, int | float):
                found.append((label.casefold(), float(size)))
    return tuple(found)

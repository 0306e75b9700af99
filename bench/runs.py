"""Public runs of vLLM, translated into the product's own types. Nothing is judged here.

A run is one line of JSON as in `bench/data/vram-runs.jsonl`. What it tells of its outcome is taken off before anything
is translated; what it leaves open (a release, the size of its weights) becomes every value that is possible.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from installer.domain.memory import Budget, idle_room
from installer.domain.overhead import DEFAULT_BATCHED_TOKENS, DEFAULT_SEQUENCES, default_utilisation
from installer.domain.registry import Architecture, LayerGroup
from installer.domain.settings import Settings
from installer.domain.units import gib

DATA = Path(__file__).parent / "data"
OUTCOME = (
    "outcome",
    "quote",
    "notes",
    "max_concurrency",
    "est_max_len",
    "needed",
    "act",
    "consumed",
    "nontorch",
    "cudagraph",
)
OUTCOME_PREFIXES = ("kv_", "needed", "act_", "consumed", "nontorch", "cudagraph")
UNKNOWN_RELEASE = ("0.19.1", "0.27.1", "0.33.0")
"""Where a run does not tell: graphs beside the share, graphs that one runner forgets, graphs inside it."""

RELEASED = (
    ("2026-04-18", "0.19.1"), ("2026-04-27", "0.20.0"), ("2026-05-15", "0.21.0"), ("2026-05-29", "0.22.0"),
    ("2026-06-15", "0.23.0"), ("2026-06-30", "0.24.0"), ("2026-07-14", "0.25.1"), ("2026-07-25", "0.26.0"),
    ("2026-08-11", "0.27.1"), ("2026-08-26", "0.28.0"), ("2026-09-09", "0.29.0"), ("2026-09-22", "0.30.0"),
    ("2026-10-05", "0.31.0"), ("2026-10-18", "0.32.0"), ("2026-11-02", "0.33.0"),
)  # fmt: skip

NAMES = (
    (r"qwen3\.[5-9].*35b", "Qwen/Qwen3.6-35B-A3B"),
    (r"qwen3\.[5-9].*27b|27b hybrid", "Qwen/Qwen3.6-27B"),
    (r"qwen3\.5.*9b", "Qwen/Qwen3.5-9B"),
    (r"qwen3-vl-2b", "Qwen/Qwen3-VL-2B"),
    (r"qwen3.*30b", "Qwen/Qwen3-30B-A3B"),
    (r"qwen3\b.*\b32b", "Qwen/Qwen3-32B"),
    (r"qwen3\b.*\b14b", "Qwen/Qwen3-14B"),
    (r"qwen3\b.*\b8b", "Qwen/Qwen3-8B"),
    (r"qwen3\b.*\b4b", "Qwen/Qwen3-4B"),
    (r"qwen3\b.*\b1\.7b", "Qwen/Qwen3-1.7B"),
    (r"qwen3\b.*\b0\.6b", "Qwen/Qwen3-0.6B"),
    (r"gemma-?\s?4.*e4b|e4b", "google/gemma-4-E4B-it"),
    (r"gemma-?\s?4.*e2b|e2b", "google/gemma-4-E2B-it"),
    (r"gemma-?\s?4.*31b", "google/gemma-4-31b-it"),
    (r"gemma-?\s?4.*26b", "google/gemma-4-26b-a4b-it"),
    (r"gemma-?\s?3.*4b|medgemma", "google/gemma-3-4b-it"),
    (r"gpt-oss.*20b", "openai/gpt-oss-20b"),
    (r"mistral.*24b", "mistralai/Mistral-Small-3.2-24B"),
    (r"mistral.*7b", "mistralai/Mistral-7B"),
    (r"llama.*\b1b", "meta-llama/Llama-3.2-1B-Instruct"),
    (r"llama.*\b3b", "meta-llama/Llama-3.2-3B-Instruct"),
    (r"llama.*\b8b", "meta-llama/Llama-3.1-8B-Instruct"),
    (r"aya-expanse-8b", "CohereLabs/aya-expanse-8b"),
    (r"opt-125m", "facebook/opt-125m"),
    # A bare size is taken for the commonest model of that size.
    (r"\b0\.5b", "Qwen/Qwen2.5-0.5B"),
    (r"\b1\.5b", "Qwen/Qwen2.5-1.5B-Instruct"),
    (r"\b3b", "Qwen/Qwen2.5-3B-Instruct"),
    (r"\b7b", "Qwen/Qwen2.5-7B-Instruct"),
    (r"\b8b", "Qwen/Qwen3-8B"),
    (r"\b14b", "Qwen/Qwen2.5-14B-Instruct"),
    (r"\b32b", "Qwen/Qwen2.5-32B-Instruct"),
)


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on one card: told by the run, known of its checkpoint, or between two bounds."""

    low_bytes: int
    high_bytes: int
    source: str


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the product's types; None for what cannot be known. `releases` are all that it may have been."""

    id: str
    room: Budget
    settings: Settings
    releases: tuple[str, ...]
    architecture: Architecture | None
    weights: Weights | None


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, blank lines left out."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def stripped(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without a word about what became of it."""
    return {key: value for key, value in row.items() if key not in OUTCOME and not key.startswith(OUTCOME_PREFIXES)}


def why_not(row: dict[str, Any]) -> str | None:
    """Return why a run cannot be judged, or None."""
    if not row.get("vram_total_gib"):
        return "total memory is not told"
    if row["flags"].get("gpu_memory_utilization") is None and not releases_of(row.get("vllm")):
        return "neither utilisation nor release is told"
    if row.get("vram_free_gib") is None and weights_of(row) is None:
        return "neither free memory nor weights are told"
    return None


def translated(row: dict[str, Any]) -> Run:
    """Return a stripped row in the product's types. Needs what `why_not` asks for."""
    releases = releases_of(row.get("vllm")) or UNKNOWN_RELEASE
    known = model_of(row.get("model"))
    return Run(
        id=row["id"],
        room=_room(row),
        settings=_settings(row, known, releases[-1]),
        releases=releases,
        architecture=architecture(known, int(row["flags"].get("tp") or 1)) if known else None,
        weights=weights_of(row),
    )


def _room(row: dict[str, Any]) -> Budget:
    idle = idle_room(gib(row["vram_total_gib"]), wsl2="wsl2" in (row.get("platform") or ""))
    if row.get("vram_free_gib") is None:
        return idle
    # It is the figure of vLLM's own gate: no time passes in which another program could take a margin.
    return msgspec.structs.replace(idle, free_bytes=gib(row["vram_free_gib"]), hidden_bytes=0, source="cuda")


def _settings(row: dict[str, Any], known: str | None, release: str) -> Settings:
    flags = row["flags"]
    speculative = str(flags.get("speculative") or "")
    drafted = re.search(r"\d+", speculative)
    return Settings(
        context=_context(flags.get("max_model_len"), known),
        utilisation=flags.get("gpu_memory_utilization") or default_utilisation(release),
        max_num_seqs=flags.get("max_num_seqs") or DEFAULT_SEQUENCES,
        max_num_batched_tokens=flags.get("max_num_batched_tokens") or DEFAULT_BATCHED_TOKENS,
        kv_cache_dtype="fp8" if str(flags.get("kv_cache_dtype")).startswith("fp8") else "auto",
        enforce_eager=bool(flags.get("enforce_eager")),
        reads_media=reads_media(row, known),
        cpu_offload_gib=int(flags.get("cpu_offload_gb") or 0),
        speculative_tokens=int(drafted[0]) if drafted else 3 if speculative else 0,
        mamba_cache_mode="align" if flags.get("enable_prefix_caching") else "default",
        release=release,
    )


def _context(asked: object, known: str | None) -> int:
    """Return the context that a run asked for; without one vLLM takes the model's own."""
    if isinstance(asked, int) and asked > 0:
        return asked
    return int(shapes()[known]["native"]) if known else DEFAULT_BATCHED_TOKENS


def reads_media(row: dict[str, Any], known: str | None) -> bool:
    """Say whether the vision tower is loaded and profiled."""
    flags = row["flags"]
    if known is None or not shapes()[known].get("vision"):
        return False
    limits = re.findall(r"(?:image|video)(\d+)", str(flags.get("limit_mm_per_prompt") or ""))
    text_only = flags.get("language_model_only") or flags.get("text_only") or "-text-" in row["model"].casefold()
    return not text_only and not (limits and set(limits) == {"0"})


def releases_of(text: str | None) -> tuple[str, ...]:
    """Return the release that a run names, by number or by date; nothing where it names none."""
    number = re.search(r"(?<![\d-])(\d\.\d+(?:\.\d+)?)", text or "")
    if number:
        return (number[1],)
    month = re.search(r"\d{4}-\d{2}", text or "")
    if month:
        return tuple(release for day, release in RELEASED if day < f"{month[0]}-20")[-1:]
    return ()


@functools.cache
def shapes() -> dict[str, dict[str, Any]]:
    """Return every model that is known, by its repository."""
    known = json.loads((DATA / "model-configs.json").read_text("utf-8"))
    more = json.loads((DATA / "model-shapes.json").read_text("utf-8"))
    names = [name for name in known | more if "/" in name]
    return {name: known.get(name, {}) | more.get(name, {}) for name in names}


def model_of(name: str | None) -> str | None:
    """Return the repository of the base model behind a name, as people write it."""
    text = (name or "").casefold()
    return next((repo for pattern, repo in NAMES if re.search(pattern, text)), None)


def architecture(name: str, cards: int = 1) -> Architecture:
    """Return what one of several cards holds of a model: heads and states are split, the vocabulary is not."""
    shape = shapes()[name]
    return Architecture(
        hidden_size=shape["hidden"],
        vocab_size=shape["vocab"],
        layer_groups=_layer_groups(shape, cards),
        draft_layer_groups=_drafts(shape, cards),
        experts_per_token=shape.get("experts_per_tok", 0),
        source=shape.get("source", "public config.json"),
    )


def _layer_groups(shape: dict[str, Any], cards: int) -> tuple[LayerGroup, ...]:
    def heads(name: str) -> int:
        return max(1, int(shape.get(name) or shape["kv_heads"]) // cards)

    if "linear_layers" in shape:
        full = LayerGroup(
            kind="full", layers=shape["full_attention_layers"], kv_heads=heads("kv_heads"), head_dim=shape["head_dim"]
        )
        state = _state_bytes(shape) // cards
        return full, LayerGroup(kind="linear", layers=shape["linear_layers"], state_bytes=state)
    if "sliding_layers" in shape:
        wide, narrow = shape.get("head_dim_global"), shape.get("head_dim_sliding")
        return (
            LayerGroup(
                kind="full",
                layers=shape["full_attention_layers"],
                kv_heads=heads("kv_heads_global"),
                head_dim=wide or shape["head_dim"],
            ),
            LayerGroup(
                kind="sliding",
                layers=shape["sliding_layers"],
                kv_heads=heads("kv_heads_sliding"),
                head_dim=narrow or shape["head_dim"],
                window=shape["sliding_window"],
            ),
        )
    return (LayerGroup(kind="full", layers=shape["layers"], kv_heads=heads("kv_heads"), head_dim=shape["head_dim"]),)


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


def weights_of(row: dict[str, Any]) -> Weights | None:
    """Return a run's weights on one card, or None for a model that nothing is known of."""
    if row.get("model_load_gib"):
        told = gib(row["model_load_gib"])
        return Weights(low_bytes=told, high_bytes=told, source="the run")
    return weights_without_the_run(row)


def weights_without_the_run(row: dict[str, Any]) -> Weights | None:
    """Return what is known of the checkpoint, or the bounds that its parameters and its kind of numbers set."""
    known = model_of(row.get("model"))
    if known is None:
        return None
    cards = int(row["flags"].get("tp") or 1)
    text = f"{row.get('model')} {row.get('quant') or ''}".casefold()
    for label, size in checkpoints():
        named = row["model"].casefold() == label or ("/" not in label and set(label.split()) <= set(_words(text)))
        if named:
            return Weights(low_bytes=gib(size / cards), high_bytes=gib(size / cards), source="checkpoint")
    low, high = _bounds(shapes()[known], text)
    return Weights(low_bytes=round(low / cards), high_bytes=round(high / cards), source="parameters")


def _words(text: str) -> list[str]:
    short = [part.removesuffix("-it").removesuffix("-instruct") for part in re.split(r"[\s/()]+", text)]
    return short + [word for part in short for word in re.split(r"-(?=bf16|fp8|nvfp4|awq|gptq|int4)", part)]


def _bounds(shape: dict[str, Any], text: str) -> tuple[float, float]:
    """Two bytes a parameter are exact; what is quantised leaves embeddings and more in 16 bits, or does not."""
    count = shape["params_b"] * 1e9
    embedded = shape["vocab"] * shape["hidden"] * (1 if shape.get("tied") else 2)
    if re.search(r"nvfp4|awq|gptq|int4|4bit|4-bit|w4|fp4|autoround", text):
        # AWQ and GPTQ leave embeddings and the last layer alone; other builds may shrink those too.
        least = 0.52 * (count - embedded) + 2 * embedded if re.search(r"awq|gptq", text) else 0.5 * count
        return least, 0.57 * (count - embedded) + 2 * embedded + (gib(0.9) if shape.get("vision") else 0)
    if re.search(r"fp8|int8|8bit|8-bit", text):
        return count, count - embedded + 2 * embedded + (gib(0.9) if shape.get("vision") else 0)
    return 2 * count, 2 * count


@functools.cache
def checkpoints() -> tuple[tuple[str, float], ...]:
    """Return the checkpoints whose resident size is known, in GiB, by their lower-case name."""
    known = json.loads((DATA / "model-configs.json").read_text("utf-8"))["_checkpoints"]
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

"""Public runs of vLLM, translated into the product's own types. Nothing is judged here.

A run is one line of JSON as in `bench/data/vram-runs.jsonl`. What it tells of its outcome is taken off before anything
is translated; what it leaves open (a release, a runner, the size of its weights) becomes every value that is possible.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from bench.models import DATA, Weights, architecture, candidates, model_of, shapes, weights_of_checkpoint
from installer.domain.memory import Budget, idle_room
from installer.domain.overhead import default_batch, default_utilisation
from installer.domain.registry import Architecture
from installer.domain.settings import Settings
from installer.domain.units import gib

__all__ = ["DATA", "Run", "read", "read_all", "stripped", "translated", "why_not"]

OUTCOME = ("outcome", "quote", "notes", "max_concurrency", "est_max_len", "needed", "act", "consumed", "nontorch")
OUTCOME_PREFIXES = ("kv_", "needed", "act_", "consumed", "nontorch", "cudagraph", "est_max", "max_conc", "outcome")
UNKNOWN_RELEASE = ("0.27.1", "0.33.0")
"""Where a run does not tell: one that forgets some graphs, and one that counts them all.

Of the public runs that tell their release four in five have one of 2026, which counts graphs unless a runner forgets.
"""

LAST_WITH_OLD_LOG = "0.19.1"
"""The last release that logged the tokens of one group of layers alone."""

V0_RELEASE = "0.7.3"
"""The last release whose only engine was V0; later ones fell back to it on old cards."""

RELEASED = (
    ("2024-11-15", "0.6.4"), ("2025-01-27", "0.7.0"), ("2025-03-18", "0.8.0"), ("2025-05-28", "0.9.0"),
    ("2025-07-24", "0.10.0"), ("2025-10-02", "0.11.0"), ("2025-12-03", "0.12.0"), ("2026-01-20", "0.14.0"),
    ("2026-02-25", "0.16.0"), ("2026-03-31", "0.18.1"),
    ("2026-04-18", "0.19.1"), ("2026-04-27", "0.20.0"), ("2026-05-15", "0.21.0"), ("2026-05-29", "0.22.0"),
    ("2026-06-15", "0.23.0"), ("2026-06-30", "0.24.0"), ("2026-07-14", "0.25.1"), ("2026-07-25", "0.26.0"),
    ("2026-08-11", "0.27.1"), ("2026-08-26", "0.28.0"), ("2026-09-09", "0.29.0"), ("2026-09-22", "0.30.0"),
    ("2026-10-05", "0.31.0"), ("2026-10-18", "0.32.0"), ("2026-11-02", "0.33.0"),
)  # fmt: skip

UNKNOWN_CONTEXT = 2048
"""What a model is asked for at least where neither the run nor its geometry tells a context."""

FEW_SEQUENCES = 8


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the product's types.

    `settings` are all that it may have had, one for each possible release. `possible` are those with each model that it
    may have been: the one that its name means, else every known one that its weights could be; empty where nothing is
    known of either.
    """

    id: str
    room: Budget
    settings: tuple[Settings, ...]
    possible: tuple[tuple[Architecture, Settings], ...]
    known: bool
    weights: Weights | None


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file; a line that is no run raises ValueError."""
    rows, broken = read_all(path)
    if broken:
        raise ValueError(f"{broken[0][0]}: {broken[0][1]}")
    return rows


def read_all(path: Path) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Return the rows of a file, and the lines that are none, each with the reason. Blank lines count for nothing."""
    rows, broken = [], []
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(_row(json.loads(line), number))
        except ValueError as error:
            broken.append((f"line {number}", f"not a run: {error}"))
    return rows, broken


def _row(value: object, number: int) -> dict[str, Any]:
    """Return a line as a row whose figures are numbers or None. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError("no object of names and values")
    flags = value.get("flags")
    if not isinstance(flags, dict | None):
        raise ValueError("flags are no object of names and values")
    named = {str(key).lstrip("-").replace("-", "_"): given for key, given in (flags or {}).items()}
    figures = {key: _number(value.get(key)) for key in ("vram_total_gib", "vram_free_gib", "model_load_gib")}
    texts = {key: _text(value.get(key)) for key in ("gpu", "vllm", "model", "quant", "platform", "outcome")}
    return value | figures | texts | {"id": str(value.get("id") or f"line {number}"), "flags": named}


def _number(value: object) -> float | None:
    """Return a figure, also where it is written as text with a unit; None for everything else."""
    if isinstance(value, bool) or value is None:
        return None
    found = re.search(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", str(value).replace(",", ""))
    return float(found[0]) if found else None


def _tokens(value: object) -> int | None:
    """Return a count, where "32k" is 32,768."""
    number = _number(value)
    if number is None or number <= 0:
        return None
    return int(number * 1024) if re.fullmatch(r"\s*[\d.]+\s*[kK]\s*", str(value)) else int(number)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _is_on(value: object) -> bool:
    return value is not None and str(value).casefold() not in ("", "0", "false", "no", "none", "off")


def stripped(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without a word about what became of it."""
    return {key: value for key, value in row.items() if key not in OUTCOME and not key.startswith(OUTCOME_PREFIXES)}


def why_not(row: dict[str, Any]) -> str | None:
    """Return why a run cannot be judged, or None: it must tell total memory, share, and free memory or weights."""
    if not (row.get("vram_total_gib") or 0) > 0:
        return "total memory is not told"
    if not 0 < (_number(row["flags"].get("gpu_memory_utilization")) or 0) <= 1:
        return "utilisation is not told"
    if row.get("vram_free_gib") is None and not row.get("model_load_gib"):
        return "neither free memory nor weights are told"
    return None


def translated(row: dict[str, Any]) -> Run:
    """Return a stripped row in the product's types. Needs what `why_not` asks for."""
    known, weights = model_of(row.get("model")), weights_of(row)
    count = cards(row)
    names = (known,) if known else candidates(weights, count) if weights else ()
    possible = ((architecture(name, count), settings) for name in names for settings in _settings(row, name))
    return Run(
        id=row["id"],
        room=_room(row),
        settings=_settings(row, known),
        possible=tuple(dict.fromkeys(possible)),
        known=known is not None,
        weights=weights,
    )


def cards(row: dict[str, Any]) -> int:
    return max(1, _tokens(row["flags"].get("tp") or row["flags"].get("tensor_parallel_size")) or 1)


def _under_wsl2(row: dict[str, Any]) -> bool:
    return "wsl" in (row.get("platform") or "").casefold()


def _room(row: dict[str, Any]) -> Budget:
    idle = idle_room(gib(row["vram_total_gib"]), wsl2=_under_wsl2(row))
    if row.get("vram_free_gib") is None:
        return idle
    # It is the figure of vLLM's own gate: no time passes in which another program could take a margin.
    return msgspec.structs.replace(idle, free_bytes=gib(row["vram_free_gib"]), hidden_bytes=0, source="cuda")


def _settings(row: dict[str, Any], known: str | None) -> tuple[Settings, ...]:
    """Return every settings that the run may have had: those of each possible release.

    A patched build comes with a command of its own, which for a single card serves few sequences.
    """
    told = row["flags"].get("max_num_seqs")
    sequences = _tokens(told)
    if sequences is None and "patched" in (row.get("vllm") or "").casefold():
        sequences = FEW_SEQUENCES
    return tuple(_of_release(row, known, release, sequences) for release in _releases(row))


def _of_release(row: dict[str, Any], known: str | None, release: str, sequences: int | None) -> Settings:
    flags = row["flags"]
    a100 = "a100" in (row.get("gpu") or "").casefold()
    default_sequences, default_tokens = default_batch(gib(row["vram_total_gib"]), release, a100=a100)
    offload = int(_number(flags.get("cpu_offload_gb")) or 0)
    return Settings(
        context=_context(row, known),
        utilisation=_number(flags.get("gpu_memory_utilization")) or default_utilisation(release),
        max_num_seqs=sequences or default_sequences,
        max_num_batched_tokens=_tokens(flags.get("max_num_batched_tokens")) or default_tokens,
        kv_cache_dtype="auto"
        if str(flags.get("kv_cache_dtype") or "auto") in ("auto", "bfloat16", "float16")
        else "fp8",
        enforce_eager=_is_on(flags.get("enforce_eager")),
        reads_media=reads_media(row, known),
        cpu_offload_gib=offload,
        block_tokens=_tokens(flags.get("block_size")) or 0,
        speculative_tokens=_drafted(flags.get("speculative") or flags.get("speculative_config")),
        mamba_cache_mode="align" if _is_on(flags.get("enable_prefix_caching")) else "default",
        wsl2_pins_memory=_may_pin_memory(row, offload),
        serves_adapters=any(_is_on(flags.get(name)) for name in ("enable_lora", "max_loras", "lora_modules")),
        second_runner=_is_on(flags["use_v2_model_runner"]) if "use_v2_model_runner" in flags else None,
        release=release,
    )


def _may_pin_memory(row: dict[str, Any], offload: int) -> bool:
    """Say whether memory may be pinned under WSL2: where the release is told, runs of both kinds are known."""
    told = row["flags"].get("wsl2_enable_pin_memory")
    if told is not None:
        return _is_on(told)
    return _under_wsl2(row) and not offload and bool(releases_of(row.get("vllm")))


def _drafted(value: object) -> int:
    """Return the tokens that are drafted in each step; 3, as most do, where only the method is told."""
    if not _is_on(value):
        return 0
    told = value.get("num_speculative_tokens", "") if isinstance(value, dict) else value
    found = re.search(r"\d+", str(told))
    return int(found[0]) if found else 3


def _context(row: dict[str, Any], known: str | None) -> int:
    """Return the context that a run asked for; without one vLLM takes the model's own."""
    asked = _tokens(row["flags"].get("max_model_len"))
    if asked:
        return asked
    return int(shapes()[known]["native"]) if known else UNKNOWN_CONTEXT


def reads_media(row: dict[str, Any], known: str | None) -> bool:
    """Say whether the vision tower is loaded and profiled."""
    flags, model = row["flags"], (row.get("model") or "").casefold()
    if known is None or not shapes()[known].get("vision"):
        return False
    if any(_is_on(flags.get(name)) for name in ("language_model_only", "text_only", "skip_mm_profiling")):
        return False
    limits = re.findall(r"(?:image|video|audio)\D*(\d+)", str(flags.get("limit_mm_per_prompt") or ""))
    return "-text-" not in model and not (limits and set(limits) == {"0"})


def _releases(row: dict[str, Any]) -> tuple[str, ...]:
    return releases_of(row.get("vllm")) or UNKNOWN_RELEASE


def releases_of(text: str | None) -> tuple[str, ...]:
    """Return the releases that a run may mean, by number or by date; nothing where it names none.

    A build of the main branch is named after the release before it and works like the next one already.
    """
    text = text or ""
    if re.search(r"\bV0\b", text):
        number = re.search(r"(?<![\d-])(0\.[0-7](?:\.\d+)?)(?![\d])", text)
        return (number[1] if number else V0_RELEASE,)
    number = re.search(r"(?<![\d-])(\d\.\d+(?:\.\d+)?)", text)
    by_date = _released_by(text)
    if number and re.search(r">=?|≥", text):
        return by_date or (number[1], *[each for each in UNKNOWN_RELEASE if _minor(each) > _minor(number[1])])
    if number and ".dev" in text:
        return number[1], f"0.{_minor(number[1]) + 1}.0"
    return (number[1],) if number else by_date


def _minor(release: str) -> int:
    return int(release.split(".")[1])


def _released_by(text: str) -> tuple[str, ...]:
    date = re.search(r"\d{4}-\d{2}(?:-\d{2})?", text)
    if not date:
        return ()
    day = date[0] if len(date[0]) > len("2026-08") else f"{date[0]}-20"
    return tuple(release for released, release in RELEASED if released < day)[-1:]


def weights_of(row: dict[str, Any]) -> Weights | None:
    """Return a run's weights on one card, or None for a model that nothing is known of."""
    if row.get("model_load_gib"):
        told = gib(row["model_load_gib"])
        return Weights(low_bytes=told, high_bytes=told, source="the run")
    return weights_of_checkpoint(row.get("model"), row.get("quant"), cards(row))

"""What a real start teaches: the figures of its log, and how far this machine is from the prediction.

vLLM's log changed with 0.28, which writes cache and concurrency into one line and tells everything that is gone from
the card instead of its parts. Both are read by the numbers and the few words around them.
"""

from __future__ import annotations

import re

import msgspec

from installer.domain.facts import Calibration
from installer.domain.figures import decimal, whole
from installer.domain.kv_cache import layout
from installer.domain.memory import Fit
from installer.domain.registry import Architecture
from installer.domain.settings import Settings
from installer.domain.units import gib

SWING_BYTES = gib(0.5)
"""How far one start may be from the next: warm and cold ones differ by up to 1 GiB, so half of it to either side."""

MOST_RELAXED_BYTES = gib(0.5)
"""How much a machine's own starts may take off the upper end at most."""


class LogFigures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a server's log told of its memory; None for what it did not tell. The last figure counts.

    `concurrency` is how many sequences of `context` tokens fit at once. `graph_bytes` is what the CUDA graphs took,
    `graph_estimate_bytes` what vLLM had set aside for them, `requested_bytes` is its share.
    """

    model_bytes: int | None = None
    kv_bytes: int | None = None
    kv_tokens: int | None = None
    context: int | None = None
    concurrency: float | None = None
    graph_bytes: int | None = None
    graph_estimate_bytes: int | None = None
    activation_bytes: int | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    requested_bytes: int | None = None


class Prediction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the oracle said of a start, in the terms of the server's log. `tokens_low` goes with the least cache."""

    share_bytes: int
    weights_bytes: int
    overhead_low_bytes: int
    overhead_high_bytes: int
    kv_low_bytes: int
    kv_high_bytes: int
    tokens_low: int
    tokens_high: int


class StartFigures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One start, what was predicted of it and what its log told. `start` is the container's id and when it began."""

    start: str
    predicted: Prediction
    logged: LogFigures


def prediction(architecture: Architecture, settings: Settings, fit: Fit) -> Prediction:
    """Return what the log of a start should tell, given what the oracle says of it."""
    need = fit.estimate
    least_left = max(0, fit.share_bytes - need.weights_bytes - need.overhead_high_bytes)
    most_left = max(0, fit.share_bytes - need.weights_bytes - need.overhead_low_bytes)
    laid_out = layout(architecture, settings)
    return Prediction(
        share_bytes=fit.share_bytes,
        weights_bytes=need.weights_bytes,
        overhead_low_bytes=need.overhead_low_bytes,
        overhead_high_bytes=need.overhead_high_bytes,
        kv_low_bytes=least_left,
        kv_high_bytes=most_left,
        tokens_low=laid_out.logged_tokens(least_left),
        tokens_high=laid_out.logged_tokens(most_left),
    )


_NUMBER = r"([\d.]+)"
_SIZES = {
    "model_bytes": (rf"Model loading took {_NUMBER} ?GiB", rf"Loading model weights took {_NUMBER} ?GB"),
    "kv_bytes": (r"Available KV cache memory: (-?[\d.]+) ?GiB",),
    "graph_bytes": (rf"Graph capturing finished in {_NUMBER} secs?, took (?P<value>[\d.]+) ?GiB",),
    "graph_estimate_bytes": (rf"Estimated CUDA graph memory:? {_NUMBER} ?GiB",),
    "activation_bytes": (rf"{_NUMBER} ?GiB for peak activation", rf"activation peak memory takes {_NUMBER} ?GiB"),
}
_CACHE = re.compile(r"GPU KV cache size: ([\d,]+) tokens")
_CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")
_GATE = re.compile(r"Free memory on device(?: cuda:\d+)? \(([\d.]+)/([\d.]+) ?GiB\)")
_REQUESTED = re.compile(r"gpu memory utilization(?: is)? \(([\d.]+), ([\d.]+) ?GiB\)", re.IGNORECASE)
_PATTERNS = {field: tuple(re.compile(text) for text in texts) for field, texts in _SIZES.items()}


def read_log(text: str) -> LogFigures:
    """Read a server's log of any release; what it does not tell stays None."""
    found: dict[str, int | float] = {}
    for line in text.splitlines():
        found |= _sizes(line) | _cache(line) | _card(line)
    return msgspec.convert(found, LogFigures)


def _sizes(line: str) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    for field, patterns in _PATTERNS.items():
        match = next((hit for pattern in patterns if (hit := pattern.search(line))), None)
        if match:
            value = decimal(match.groupdict().get("value") or match[1])
            if value is not None:
                found[field] = gib(value)
    return found


def _cache(line: str) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    if size := _CACHE.search(line):
        found |= _known("kv_tokens", whole(size[1].replace(",", "")))
    if most := _CONCURRENCY.search(line):
        found |= _known("context", whole(most[1].replace(",", "")))
        found |= _known("concurrency", decimal(most[2]))
    return found


def _known(field: str, value: float | None) -> dict[str, int | float]:
    return {} if value is None else {field: value}


def _card(line: str) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    if gate := _GATE.search(line):
        free, total = decimal(gate[1]), decimal(gate[2])
        if free is not None and total is not None:
            found |= {"free_bytes": gib(free), "total_bytes": gib(total)}
    if share := _REQUESTED.search(line):
        requested = decimal(share[2])
        if requested is not None:
            found["requested_bytes"] = gib(requested)
    return found


def measured_overhead(figures: LogFigures, share_bytes: int) -> int | None:
    """Return what a start took of its share besides weights and cache; None where the log did not tell both."""
    if figures.model_bytes is None or figures.kv_bytes is None:
        return None
    return share_bytes - figures.model_bytes - figures.kv_bytes


def recalibrated(known: Calibration, predicted: Prediction, figures: LogFigures) -> Calibration:
    """Return what a card is known for after one more start; `known` is what the starts before it taught.

    `predicted` is without any shift. What a start took is its share less its cache, weights included, so that a
    checkpoint which is larger on the card than its files teaches too. A start that took more than the upper end adds
    all of what was missing, and half a GiB for the next one to differ. One that took less takes off what is left above
    it and that half GiB, but no more than half a GiB, and never more than any earlier start allows: the worst counts.
    """
    if figures.kv_bytes is None:
        return known
    above = predicted.kv_low_bytes - figures.kv_bytes
    shift = above + SWING_BYTES if above > 0 else max(-MOST_RELAXED_BYTES, min(0, above + SWING_BYTES))
    worst = max(known.shift_bytes, shift) if known.starts else shift
    return msgspec.structs.replace(known, shift_bytes=worst, starts=known.starts + 1)

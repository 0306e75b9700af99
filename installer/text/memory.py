"""Words about memory: what a start told beside its prediction, and what would gain room."""

from __future__ import annotations

from installer.domain.calibration import LogFigures, Prediction, measured_overhead
from installer.domain.levers import Lever
from installer.domain.memory import Verdict
from installer.domain.offers import Offer
from installer.text import names
from installer.text.voice import Voice


def measured(predicted: Prediction, logged: LogFigures, t: Voice) -> str:
    """Say in one paragraph what the server's log told, each figure beside its prediction."""
    return " ".join(f"{name}: {seen} ({said})." for name, seen, said in comparison(predicted, logged, t))


def comparison(predicted: Prediction, logged: LogFigures, t: Voice) -> tuple[tuple[str, str, str], ...]:
    """Return a row for each figure that the log told: its name, what was seen, what was predicted."""
    rows: list[tuple[str, str, str]] = []

    def add(name: str, seen: str, said: str) -> None:
        rows.append((name, seen, t.gettext("predicted: {figure}", figure=said)))

    if logged.model_bytes is not None:
        add(names.term("weights", t), t.gib(logged.model_bytes), t.gib(predicted.weights_bytes))
    overhead = measured_overhead(logged, predicted.share_bytes)
    if overhead is not None:
        said = _span(t.gib(predicted.overhead_low_bytes), t.gib(predicted.overhead_high_bytes), t)
        add(names.term("overhead", t), t.gib(overhead), said)
    if logged.kv_bytes is not None:
        said = _span(t.gib(predicted.kv_low_bytes), t.gib(predicted.kv_high_bytes), t)
        add(names.term("kv", t), t.gib(logged.kv_bytes), said)
    if logged.kv_tokens is not None:
        said = _span(t.number(predicted.tokens_low), t.tokens(predicted.tokens_high), t)
        add(t.gettext("Room for"), t.tokens(logged.kv_tokens), said)
    return tuple(rows)


def _span(low: str, high: str, t: Voice) -> str:
    return low if low == high else t.gettext("{low} to {high}", low=low, high=high)


def lever(value: Lever, t: Voice) -> str:
    """Say what one lever is, what it gains, and what becomes of the profile with it."""
    seqs, per_step = value.settings.max_num_seqs, value.settings.max_num_batched_tokens
    what = {
        "kv_fp8": t.gettext("KV cache in 8 bits"),
        "fewer_sequences": t.ngettext("{count} request at once", "{count} requests at once", seqs),
        "text_only": t.gettext("text only"),
        "eager": t.gettext("without CUDA graphs"),
        "fewer_batched_tokens": t.gettext("{tokens} per step", tokens=t.tokens(per_step)),
        "shorter_context": t.gettext("context {tokens}", tokens=t.tokens(value.settings.context)),
    }[value.name]
    return t.gettext(
        "{change} (gains {gain}: {verdict})",
        change=what,
        gain=t.gib(value.gained_bytes),
        verdict=names.verdict(value.verdict, t),
    )


def levers(offer: Offer, t: Voice) -> str:
    """Say what would help an offer that is tight or does not fit; "" where no single change makes its verdict better.

    Where something makes it fit, what only makes it tight is not told.
    """
    better = {Verdict.NO: (Verdict.FITS, Verdict.TIGHT), Verdict.TIGHT: (Verdict.FITS,)}.get(offer.verdict, ())
    reached = next((verdict for verdict in better if any(each.verdict is verdict for each in offer.levers)), None)
    told = [lever(each, t) for each in offer.levers if each.verdict is reached]
    return t.gettext("What helps: {levers}.", levers="; ".join(told)) if told else ""


def recalibrated(starts: int, t: Voice) -> str:
    """Say that a verdict counts what this machine's own starts taught."""
    return t.ngettext(
        "Checked against {count} start on this card.", "Checked against {count} starts on this card.", starts
    )

"""Words for a run while it runs: steps, notes, checks; and for why an offer is what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from installer.domain.memory import Limit
from installer.domain.offers import Reason, RoomEnough, RoomTight, RunsWithoutGpu
from installer.domain.plan import Relaxation
from installer.domain.registry import Evidence, EvidenceKind
from installer.steps import events
from installer.steps.events import Note, Step
from installer.steps.smoke import Check
from installer.text import checked, memory, names
from installer.text.problems import words_for
from installer.text.voice import Voice


@dataclass(frozen=True)
class StepText:
    """A step in words: its name, what is being done, what has been done, and that there was nothing to do."""

    noun: str
    present: str
    done: str
    skipped: str


def step(value: Step, t: Voice) -> StepText:
    """Return the words for a step."""
    match value:
        case Step.PROBE:
            return StepText(
                t.gettext("Graphics card in a container"),
                t.gettext("The graphics card is being tried in a container"),
                t.gettext("Graphics card tried in a container"),
                t.gettext("Graphics card: already in use by this installation"),
            )
        case Step.IMAGE:
            return StepText(
                t.gettext("Image"),
                t.gettext("The image is being downloaded"),
                t.gettext("Image downloaded"),
                t.gettext("Image: already here"),
            )
        case Step.WEIGHTS:
            return StepText(
                t.gettext("Weights"),
                t.gettext("The weights are being downloaded"),
                t.gettext("Weights downloaded"),
                t.gettext("Weights: already here"),
            )
        case Step.FILES:
            return StepText(
                t.gettext("Compose file"),
                t.gettext("The compose file is being written"),
                t.gettext("Compose file written"),
                t.gettext("Compose file: unchanged"),
            )
        case Step.GATE:
            return StepText(
                t.gettext("Free graphics memory"),
                t.gettext("The free graphics memory is being measured again"),
                t.gettext("Enough graphics memory is free"),
                t.gettext("Free graphics memory: nothing to measure"),
            )
        case Step.START:
            return StepText(
                t.gettext("Start"),
                t.gettext("The server is being started"),
                t.gettext("Server started"),
                t.gettext("Server: already running"),
            )
        case Step.SMOKE:
            return StepText(
                t.gettext("Proof"),
                t.gettext("The server is being proved with real requests"),
                t.gettext("Server proved with real requests"),
                t.gettext("Proof: already there for this start"),
            )
        case Step.STOP:
            return StepText(
                t.gettext("Stop"),
                t.gettext("The server is being stopped"),
                t.gettext("Server stopped"),
                t.gettext("Server: not running"),
            )
        case Step.REMOVE:
            return StepText(
                t.gettext("Removal"),
                t.gettext("The installation is being removed"),
                t.gettext("Installation removed"),
                t.gettext("Installation: nothing to remove"),
            )


def note(value: Note, t: Voice) -> str:
    """Return the sentence of a note."""
    match value:
        case events.Recomputed():
            return t.gettext(
                "CUDA itself sees {free} of {total} free. vLLM gets {new} of the card, not {old}.",
                free=t.gib(value.free_bytes),
                total=t.gib(value.total_bytes),
                new=t.percent(value.new_utilisation),
                old=t.percent(value.old_utilisation),
            )
        case events.Relaxed():
            failed = t.gettext("The start failed. Attempt {attempt}:", attempt=t.number(value.attempt))
            return f"{failed} {lowered(value.change, t)}"
        case events.Phase():
            return names.phase(value.name, t)
        case events.Advice():
            words = words_for(value.problem, t)
            return f"{words.sentence} {words.remedy}"
        case events.Again():
            again = t.gettext("It is tried again, attempt {attempt}.", attempt=t.number(value.attempt))
            return f"{words_for(value.problem, t).sentence} {again}"
        case events.BackedUp():
            return t.gettext(
                "The old file {path} is kept as {backup}.", path=t.quote(value.path), backup=t.quote(value.backup)
            )
        case events.Measured():
            return memory.measured(value.predicted, value.logged, t)
        case _:
            assert_never(value)


def lowered(change: Relaxation, t: Voice) -> str:
    """Say what was changed; some of it are no figures that mean something to a person."""
    if change.field == "enforce_eager":
        return t.gettext("without CUDA graphs. It answers more slowly then.")
    if change.field == "graph_sizes":
        return t.gettext("with fewer CUDA graphs.")
    if change.field == "attempt":
        return t.gettext("once more with the same settings.")
    if change.field == "arguments":
        return t.gettext("without {arguments}, which this image does not know.", arguments=change.old)
    if change.field == "environment":
        return t.gettext("with {variable} for the server.", variable=change.new)
    if change.field == "kv_cache_dtype":
        return t.gettext("with the KV cache in 16 bits.")
    if change.field == "port":
        return t.gettext("port {new} instead of {old}.", new=change.new, old=change.old)
    return t.gettext(
        "{setting} {new}, not {old}.",
        setting=names.choice_name(change.field, t),
        new=names.value_of(change.field, change.new, t),
        old=names.value_of(change.field, change.old, t),
    )


def check(value: Check, t: Voice) -> str:
    """Return one line about a check: its name, how it ended, and its figure."""
    seen = found(value, t)
    figure = f" ({seen})" if seen else ""
    return f"{names.check(value.name, t)}: {outcome(value, t)}{figure}, {t.duration(value.seconds)}"


def found(value: Check, t: Voice) -> str:
    """Return what a check measured, what it read in quotation marks, or why it failed or does not apply."""
    if value.outcome == "not_applicable":
        return names.not_applicable(value.detail, t)
    if value.outcome == "failed":
        return t.quote(value.detail) if value.detail else ""
    return checked.figures(value.name, value.figure, t)


def found_or_not(value: Check, t: Voice) -> str:
    """Return what a check found and how long it took, behind how it ended where it did not pass."""
    seen = found(value, t)
    if value.outcome != "passed":
        seen = f"{outcome(value, t)}: {seen}" if seen else outcome(value, t)
    return f"{seen}, {t.duration(value.seconds)}" if seen else t.duration(value.seconds)


def outcome(value: Check, t: Voice) -> str:
    """Say how a check ended."""
    outcomes = {
        "passed": t.gettext("passed"),
        "failed": t.gettext("not passed"),
        "not_applicable": t.gettext("does not apply"),
    }
    return outcomes[value.outcome]


def reason(value: Reason, t: Voice) -> str:
    """Say why an offer fits, is tight, or is not possible."""
    match value:
        case RoomEnough():
            return t.gettext(
                "Needs {needed} at most. {card} can give it {share}; {free} are free.",
                needed=t.gib(value.needed_bytes),
                card=t.card(value.gpu),
                share=t.gib(value.share_bytes),
                free=t.gib(value.free_bytes),
            )
        case RoomTight():
            return _tight(value, t)
        case RunsWithoutGpu():
            return t.gettext(
                "Runs without a graphics card. Needs {needed} of main memory; there are {memory}.",
                needed=t.gib(value.needed_bytes),
                memory=t.gib(value.memory_bytes),
            )
        case _:
            return words_for(value, t).sentence


def _tight(value: RoomTight, t: Voice) -> str:
    sentence = t.gettext(
        "Needs {low} to {high}. {card} can give it {share}; {free} are free.",
        low=t.gib(value.needed_low_bytes),
        high=t.gib(value.needed_high_bytes),
        card=t.card(value.gpu),
        share=t.gib(value.share_bytes),
        free=t.gib(value.free_bytes),
    )
    if value.limit is Limit.NONE:
        return sentence
    short = t.gettext("Short is: {limit}.", limit=names.limit(value.limit, t))
    return f"{sentence} {short}"


def evidence(kind: EvidenceKind, t: Voice, *, untested: bool) -> str:
    """Say in a few words how sure a profile's claim is for this card."""
    match kind:
        case "measured":
            if untested:
                return t.gettext("measured on another class of card")
            return t.gettext("measured on this class of card")
        case "documented":
            return t.gettext("documented, not measured")
        case "derived":
            return t.gettext("calculated, not measured")


def evidence_of(row: Evidence, t: Voice) -> str:
    """Return one row of evidence: what was done, on which card, with which version, and who says so."""
    kinds: dict[EvidenceKind, str] = {
        "measured": t.gettext("measured"),
        "documented": t.gettext("documented"),
        "derived": t.gettext("calculated"),
    }
    parts = [kinds[row.kind], row.card, f"vLLM {row.version}" if row.version[:1].isdigit() else row.version]
    line = ", ".join(part for part in parts if part)
    return t.gettext("{line} (source: {source})", line=line, source=row.source)

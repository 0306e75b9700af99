"""The report of an installation as Markdown: what runs, how it was proved, its memory, and every argument with why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from installer.domain.plan import Plan
from installer.domain.registry import Flag
from installer.steps.report import Report
from installer.steps.smoke import SmokeReport
from installer.text import context, flags, machine, memory, names, notes
from installer.text.voice import Voice

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def markdown(report: Report, t: Voice) -> str:
    """Return the whole report. Nothing in it is secret, and nothing tells whose computer it is."""
    plan = report.plan
    made = t.gettext(
        "Made on {date} by Slipway {version}. It holds no key, no token and no folder of this computer.",
        date=t.date(report.made_at),
        version=report.slipway,
    )
    limit = context.context_copy(
        plan.settings.context,
        plan.native_context,
        t,
        reads_media=plan.settings.reads_media,
        graphics_card=plan.gpu is not None,
    )
    parts = [
        f"# Slipway: {plan.profile}",
        made,
        _table(("", ""), _what_runs(plan, t)),
        limit,
        _heading(t.gettext("Proof")),
        _proof(report.proof, t),
        *((_heading(t.gettext("Graphics memory")), _memory(report, t)) if plan.gpu else ()),
        _heading(t.gettext("Computer")),
        _table(("", ""), machine.rows(report.facts, t)),
        _heading(t.gettext("Arguments of the server")),
        _arguments(plan, t),
    ]
    return "\n\n".join(parts) + "\n"


def _heading(words: str) -> str:
    return f"## {words}"


def _what_runs(plan: Plan, t: Voice) -> list[tuple[str, ...]]:
    pinned = t.gettext("pinned") if plan.pinned else t.gettext("follows its tag")
    rows = [
        (t.gettext("Model"), f"{plan.weights.repo} @ {plan.weights.commit}, {t.gb(plan.weights.size_bytes)}"),
        (t.gettext("Image"), f"{plan.image.by_tag}, {t.gb(plan.image.size_bytes)} ({pinned})"),
        (t.gettext("Digest"), plan.image.index_digest),
        (t.gettext("Known since"), t.date(plan.resolved_at)),
        (t.gettext("Graphics card"), plan.gpu.name if plan.gpu else "–"),
        (
            t.gettext("Context"),
            t.gettext(
                "{limit} of {native}", limit=t.number(plan.settings.context), native=t.tokens(plan.native_context)
            ),
        ),
        (t.gettext("Address"), plan.endpoint),
        (t.gettext("Registry"), plan.registry_revision),
    ]
    lowered = [notes.lowered(change, t) for change in plan.relaxed]
    return [*rows, *((t.gettext("Lowered"), sentence) for sentence in lowered)]


def _proof(proof: SmokeReport | None, t: Voice) -> str:
    if proof is None:
        return t.gettext("This plan has not been proved yet.")
    rows = [
        (names.check(check.name, t), notes.outcome(check, t), notes.found(check, t), t.duration(check.seconds))
        for check in proof.checks
    ]
    header = (t.gettext("Check"), t.gettext("Result"), t.gettext("Figure"), t.gettext("Time"))
    return _table(header, rows) + "\n\n" + t.gettext("Proved on {date}.", date=t.date(proof.at))


def _memory(report: Report, t: Voice) -> str:
    """Return what the start told beside its prediction; before a start, what the plan reckons with."""
    if report.figures:
        rows = memory.comparison(report.figures.predicted, report.figures.logged, t)
        return _table((t.gettext("Part"), t.gettext("Measured"), ""), rows)
    fit = report.plan.fit
    if fit is None:
        return "–"
    return t.gettext(
        "Predicted: {low} to {high}. vLLM may take {share}.",
        low=t.gib(fit.estimate.low_bytes),
        high=t.gib(fit.estimate.high_bytes),
        share=t.gib(fit.share_bytes),
    )


def _arguments(plan: Plan, t: Voice) -> str:
    reasons = flags.flag_reasons(t)
    rows = [(f"`{flag.flag}`", _value(flag), reasons.get(flag.reason, flag.reason)) for flag in plan.arguments]
    return _table((t.gettext("Argument"), t.gettext("Value"), t.gettext("Why")), rows)


def _value(flag: Flag) -> str:
    """Return a value as the server gets it; a switch has none."""
    if flag.value is True:
        return ""
    return flag.value if isinstance(flag.value, str) else msgspec.json.encode(flag.value).decode()


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of GitHub's Markdown; a bar in a cell would begin another."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return _CONTROLS.sub(" ", text).replace("|", "\\|")

"""The proof: real requests to a server that runs. One code path for every front end.

"Healthy" proves nothing: a server can be healthy and never answer. Each check has a name, a time and a figure.
"""

from __future__ import annotations

from collections.abc import Callable

from installer.domain.redaction import redacted
from installer.steps.cancel import Cancel
from installer.steps.ports import Clock, Server
from installer.steps.smoke import text
from installer.steps.smoke.asked import (
    FIRST_ANSWER_SECONDS,
    QUICK_SECONDS,
    Asked,
    Failed,
    NotApplicable,
    Why,
)
from installer.steps.smoke.report import Check, Outcome, SmokeReport, Start, Target, problem

__all__ = [
    "FIRST_ANSWER_SECONDS",
    "QUICK_SECONDS",
    "Asked",
    "Check",
    "Failed",
    "NotApplicable",
    "Outcome",
    "SmokeReport",
    "Start",
    "Target",
    "Why",
    "problem",
    "run",
]

CHECKS: tuple[tuple[str, Callable[[Asked], str]], ...] = (
    ("health", text.health),
    ("models", text.models),
    ("completion", text.completion),
)
"""Every check by its name, in the order they run."""


def run(
    target: Target,
    start: Start,
    server: Server,
    clock: Clock,
    key: str | None,
    cancel: Cancel,
    why: Why = lambda _: None,
) -> SmokeReport:
    """Do every check; one that fails is a row of the report."""
    asked = Asked(target, server, clock, key, cancel, why)
    checks: list[Check] = []
    for name, check in CHECKS:
        cancel.check()
        checks.append(_timed(name, check, asked))
    return SmokeReport(
        start=start,
        at=clock.now(),
        checks=tuple(checks),
        silent_seconds=asked.silent_seconds,
        cause=asked.cause,
        remarks=tuple(asked.remarks),
    )


def _timed(name: str, check: Callable[[Asked], str], asked: Asked) -> Check:
    began = asked.clock.monotonic()
    outcome: Outcome = "passed"
    figure = detail = ""
    try:
        figure = check(asked)
    except Failed as failure:
        outcome, detail = "failed", _without(asked.key, str(failure))
    except NotApplicable as reason:
        outcome, detail = "not_applicable", str(reason)
    seconds = round(asked.clock.monotonic() - began, 3)
    return Check(name=name, outcome=outcome, seconds=seconds, figure=figure, detail=detail)


def _without(key: str | None, said: str) -> str:
    """Take secrets out of what a server said, also the bare key, which it may repeat when it refuses it."""
    return redacted(said.replace(key, "…") if key else said)

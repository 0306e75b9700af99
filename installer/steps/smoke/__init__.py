"""The proof: real requests to a server that runs. One code path for every front end.

"Healthy" proves nothing: a server can be healthy and never answer. Each check has a name, a time and a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from installer.domain.redaction import redacted
from installer.steps.cancel import Cancel
from installer.steps.ports import Clock, Server
from installer.steps.smoke import limit, log, memory, picture, stream, text, tools, video
from installer.steps.smoke.asked import (
    FIRST_ANSWER_SECONDS,
    QUICK_SECONDS,
    Asked,
    Evidence,
    Failed,
    NotApplicable,
    Why,
)
from installer.steps.smoke.report import Check, Outcome, SmokeReport, Start, Target, problem

__all__ = [
    "BASIC",
    "CHECKS",
    "FIRST_ANSWER_SECONDS",
    "QUICK_SECONDS",
    "Asked",
    "Check",
    "Evidence",
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
    ("stream", stream.stream),
    ("umlauts", text.umlauts),
    ("reasoning", tools.reasoning),
    ("tools", tools.tool_call),
    ("picture", picture.picture),
    ("video", video.video),
    ("long_prompt", limit.long_prompt),
    ("over_limit", limit.over_limit),
    ("memory", memory.memory),
    ("kernel", log.kernel),
    ("alive", text.alive),
)
"""Every check by its name, in the order they run."""

BASIC = ("health", "models", "completion")
NEED_NO_ANSWER = (*BASIC, "memory", "kernel", "alive")
"""What is checked although a question gets no answer; the rest would only fail for the same reason."""


def run(
    target: Target,
    start: Start,
    server: Server,
    clock: Clock,
    key: str | None,
    cancel: Cancel,
    why: Why = lambda _: None,
    *,
    evidence: Evidence | None = None,
    names: Collection[str] | None = None,
) -> SmokeReport:
    """Do every check, or those that are named; one that fails is a row of the report."""
    asked = Asked(target, server, clock, key, cancel, why, evidence or Evidence())
    checks: list[Check] = []
    for name, check in CHECKS:
        if names is None or name in names:
            cancel.check()
            checks.append(_timed(name, _pointless(name, asked, checks) or check, asked))
    return SmokeReport(
        start=start,
        at=clock.now(),
        checks=tuple(checks),
        silent_seconds=asked.silent_seconds,
        cause=asked.cause,
        remarks=tuple(asked.remarks),
    )


def _pointless(name: str, asked: Asked, before: list[Check]) -> Callable[[Asked], str] | None:
    """Return what says why a check is not worth its time, where it is not: a silent server would be waited for."""
    if name in NEED_NO_ANSWER:
        return None
    failed = any(check.name == "completion" and check.outcome == "failed" for check in before)
    reason = "silent" if asked.silent_seconds else "not_answering" if failed else asked.hindrance

    def say_so(_: Asked) -> str:
        raise NotApplicable(reason)

    return say_so if reason else None


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

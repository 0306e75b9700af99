"""What is proved and what came of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from installer.domain.problems import AnyProblem, NotAnswering, SmokeFailed

Outcome = Literal["passed", "failed", "not_applicable"]


class _Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Target(_Value, frozen=True, kw_only=True):
    """Where to ask, and what the plan promised.

    `base` is an address such as "http://127.0.0.1:8000". An empty `model` is the only one that the server lists.
    `context` and `predicted_bytes` are None where they are not ours to know. `reasoning`, `tools`, `pictures` and
    `video` say what the plan claims, `chooses_frames` that a request may say how many frames are read; None, of a
    server that is not ours, means to ask it and see.
    """

    base: str
    model: str = ""
    context: int | None = None
    thinking_off: bool = False
    reasoning: bool | None = None
    tools: bool | None = None
    pictures: bool | None = None
    video: bool | None = None
    chooses_frames: bool | None = None
    predicted_bytes: int | None = None


class Check(_Value, frozen=True, kw_only=True):
    """One check: `figure` is what was measured or read, `detail` why it failed or does not apply."""

    name: str
    outcome: Outcome
    seconds: float
    figure: str = ""
    detail: str = ""


class Start(_Value, frozen=True, kw_only=True):
    """Which start of which container was proved, and the fingerprint of the plan that it was made from."""

    container: str = ""
    started_at: str = ""
    fingerprint: str = ""


class SmokeReport(_Value, frozen=True, kw_only=True):
    """All checks of one start, in the order they ran; `silent_seconds` if a request got no answer.

    `cause` is why a check failed, where server or log told; `remarks` block nothing and should be known.
    """

    start: Start
    at: str
    checks: tuple[Check, ...]
    silent_seconds: float = 0.0
    cause: AnyProblem | None = None
    remarks: tuple[AnyProblem, ...] = ()


def problem(report: SmokeReport) -> AnyProblem | None:
    """Return what a report means: its cause, NotAnswering for a healthy server that is silent, SmokeFailed, or None."""
    failed = [check for check in report.checks if check.outcome == "failed"]
    if failed and report.cause is not None and not report.cause.advice:
        return report.cause
    healthy = all(check.name != "health" for check in failed)
    if report.silent_seconds and healthy:
        return NotAnswering(seconds=report.silent_seconds)
    if not failed:
        return None
    return SmokeFailed(checks=tuple(c.name for c in failed), details=tuple(c.detail for c in failed))

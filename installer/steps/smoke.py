"""The proof: real requests to the server that was started. One code path for every front end.

"Healthy" proves nothing: a server can be healthy and never answer. Each check has a name, a time and a figure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from installer.domain import answers
from installer.domain.problems import (
    AnswerCutShort,
    AnyProblem,
    ChatTemplateMissing,
    NotAnswering,
    ReasoningOnly,
    SmokeFailed,
)
from installer.domain.redaction import redacted
from installer.domain.strict_json import NOT_OF_THAT_FORM
from installer.steps.cancel import Cancel
from installer.steps.ports import Clock, Server, ServerAnswer

Outcome = Literal["passed", "failed", "not_applicable"]

EXPECTED_WORD = "alive"
PROMPT = f"Answer with exactly one word: {EXPECTED_WORD}"
QUICK_SECONDS = 10.0
TOKENS = 64
MORE_TOKENS = 1024
"""For a model that thinks before it says a word."""

SERVICE_UNAVAILABLE = 503
TRIES_WHILE_LOADING = 12
WAIT_WHILE_LOADING_SECONDS = 5.0
FIRST_ANSWER_SECONDS = 300.0
"""The first NVFP4 request tunes its kernels for one to three minutes (public reports)."""


class _Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Target(_Value, frozen=True, kw_only=True):
    """Where to ask and what the plan promised. `context` is None for a server whose limit is not ours to know."""

    port: int
    model: str
    context: int | None
    thinking_off: bool = False


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


class _Failure(Exception):
    """What a check found wrong."""


class _NotApplicable(Exception):
    """Why a check says nothing about this server."""


Why = Callable[[ServerAnswer], AnyProblem | None]
"""Says why an answer is not as it should be, from what it says and from the log of that moment."""


def run(
    target: Target,
    start: Start,
    server: Server,
    clock: Clock,
    key: str | None,
    cancel: Cancel,
    why: Why = lambda _: None,
) -> SmokeReport:
    """Ask for health, models and one real completion; a failed check is a row of the report."""
    asked = _Asked(target, server, clock, key, cancel, why)
    checks: list[Check] = []
    for name, check in (("health", asked.health), ("models", asked.models), ("completion", asked.completion)):
        cancel.check()
        checks.append(_timed(name, check, clock, key))
    return SmokeReport(
        start=start,
        at=clock.now(),
        checks=tuple(checks),
        silent_seconds=asked.silent_seconds,
        cause=asked.cause,
        remarks=tuple(asked.remarks),
    )


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


def _timed(name: str, check: Callable[[], str], clock: Clock, key: str | None) -> Check:
    began = clock.monotonic()
    outcome: Outcome = "passed"
    figure = detail = ""
    try:
        figure = check()
    except _Failure as failure:
        outcome, detail = "failed", _without(key, str(failure))
    except _NotApplicable as reason:
        outcome, detail = "not_applicable", str(reason)
    return Check(name=name, outcome=outcome, seconds=round(clock.monotonic() - began, 3), figure=figure, detail=detail)


def _without(key: str | None, text: str) -> str:
    """Take secrets out of what a server said, also the bare key, which it may repeat when it refuses it."""
    return redacted(text.replace(key, "…") if key else text)


class _Asked:
    """The requests of one run, each returning its figure."""

    def __init__(self, target: Target, server: Server, clock: Clock, key: str | None, cancel: Cancel, why: Why) -> None:
        self.target = target
        self.server = server
        self.clock = clock
        self.key = key
        self.cancel = cancel
        self.why = why
        self.silent_seconds = 0.0
        self.cause: AnyProblem | None = None
        self.remarks: list[AnyProblem] = []

    def health(self) -> str:
        answer = self.server.get(self.target.port, "/health", QUICK_SECONDS, cancel=self.cancel)
        if answer.status != 200:
            raise _Failure(_status(answer))
        return _status(answer)

    def models(self) -> str:
        answer = self.server.get(self.target.port, "/v1/models", QUICK_SECONDS, self.key, self.cancel)
        entry = self._entry(answer)
        length = entry.get("max_model_len")
        if self.target.context is None or length is None:
            return str(entry["id"])
        if length != self.target.context:
            raise _Failure(f"max_model_len {length}, expected {self.target.context}")
        return f"{entry['id']}, {length}"

    def _entry(self, answer: ServerAnswer) -> dict[str, Any]:
        document = _document(answer)
        listed = document.get("data")
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        named = next((entry for entry in entries if entry.get("id") == self.target.model), None)
        if named is None:
            raise _Failure(f"{self.target.model} is not among {[entry.get('id') for entry in entries]}")
        return named

    def completion(self) -> str:
        """Ask one question; what is odd about a good answer is a remark and no failure."""
        answer = self._asked_patiently(TOKENS)
        seen = answers.of_completion(answers.document_of(answer.body)) if answer.status == 200 else None
        if isinstance(seen, AnswerCutShort):
            answer = self._asked_patiently(MORE_TOKENS)
            seen = answers.of_completion(answers.document_of(answer.body)) if answer.status == 200 else None
        if answer.status != 200:
            return self._without_chat(answer)
        if seen is not None and seen.advice:
            self.remarks.append(seen)
        if isinstance(seen, ReasoningOnly):
            return seen.field
        return _with_the_word(_content(_document(answer)))

    def _asked_patiently(self, tokens: int) -> ServerAnswer:
        """Ask, and ask again where the server says that it still loads."""
        answer = self._chat(tokens)
        for _ in range(TRIES_WHILE_LOADING):
            if answer.status != SERVICE_UNAVAILABLE:
                break
            self.clock.wait(WAIT_WHILE_LOADING_SECONDS, self.cancel)
            answer = self._chat(tokens)
        return answer

    def _chat(self, tokens: int) -> ServerAnswer:
        body: dict[str, object] = {
            "model": self.target.model,
            "messages": [{"role": "user", "content": PROMPT}],
            "temperature": 0,
            "max_tokens": tokens,
        }
        if self.target.thinking_off:
            body["chat_template_kwargs"] = {"enable_thinking": False}
        return self._post("/v1/chat/completions", body)

    def _without_chat(self, refused: ServerAnswer) -> str:
        """Prove a model without a form for conversations by plain text; every other refusal is a failure."""
        cause = self.why(refused)
        if not isinstance(cause, ChatTemplateMissing):
            self.cause = cause
            raise _Failure(_status(refused))
        self.remarks.append(cause)
        plain: dict[str, object] = {
            "model": self.target.model,
            "prompt": PROMPT,
            "temperature": 0,
            "max_tokens": TOKENS,
        }
        document = _document(self._post("/v1/completions", plain))
        choices = document.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        text = first.get("text") if isinstance(first, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise _Failure("empty text")
        return text.strip()[:80]

    def _post(self, path: str, body: dict[str, object]) -> ServerAnswer:
        answer = self.server.post(self.target.port, path, body, FIRST_ANSWER_SECONDS, self.key, self.cancel)
        if answer.status == 0:
            self.silent_seconds = answer.seconds
        return answer


def _with_the_word(content: str) -> str:
    if not re.search(rf"\b{EXPECTED_WORD}\b", content, re.IGNORECASE):
        raise _Failure(f"expected {EXPECTED_WORD!r}, got {content[:80]!r}")
    return content.strip()[:80]


def _document(answer: ServerAnswer) -> dict[str, Any]:
    if answer.status != 200:
        raise _Failure(_status(answer))
    try:
        document = msgspec.json.decode(answer.body)
    except NOT_OF_THAT_FORM as error:
        raise _Failure(f"not JSON: {answer.body[:80]!r}") from error
    if not isinstance(document, dict):
        raise _Failure(f"not an object: {answer.body[:80]!r}")
    return document


def _content(document: dict[str, Any]) -> str:
    try:
        choice = document["choices"][0]
        content = choice["message"].get("content")
        finish = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise _Failure("the answer has no message") from error
    if not isinstance(content, str) or not content.strip():
        raise _Failure(f"empty content, finish_reason {finish}")
    return content


def _status(answer: ServerAnswer) -> str:
    if answer.status == 0:
        return f"no answer in {answer.seconds:.0f} s"
    body = "" if answer.status == 200 else f": {answer.body[:200].decode(errors='replace')}"
    return f"HTTP {answer.status}{body}"

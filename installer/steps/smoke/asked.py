"""The requests of one run, and what its checks share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import msgspec

from installer.domain import answers
from installer.domain.problems import AnyProblem
from installer.domain.strict_json import NOT_OF_THAT_FORM
from installer.steps.cancel import Cancel
from installer.steps.ports import Clock, Server, ServerAnswer
from installer.steps.smoke.report import Target

QUICK_SECONDS = 10.0
TOKENS = 64
LEAST_TOKENS = 16
FIRST_ANSWER_SECONDS = 300.0
"""The first NVFP4 request tunes its kernels for one to three minutes (public reports)."""

SERVICE_UNAVAILABLE = 503
TRIES_WHILE_LOADING = 12
WAIT_WHILE_LOADING_SECONDS = 5.0

COMPLETIONS = "/v1/chat/completions"
SHOWN = 80
"""Characters of an answer in a figure or a detail."""

Why = Callable[[ServerAnswer], AnyProblem | None]
"""Says why an answer is not as it should be, from what it says and from the log of that moment."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known of a server beside its answers: its log so far, and the bytes in use on its card, None if unknown.

    `clip` offers the proof's video to it for a while, None puts that into the request. A server that is not ours has
    none of them.
    """

    log: Callable[[], str] = lambda: ""
    used_bytes: Callable[[], int | None] = lambda: None
    clip: Callable[[Asked], AbstractContextManager[str]] | None = None


class Failed(Exception):
    """What a check found wrong, in the server's words or figures."""


class NotApplicable(Exception):
    """Why a check says nothing about this server: the id of a sentence in installer/text/names.py."""


class Asked:
    """The requests of one run. Each check takes it, and returns its figure or raises Failed or NotApplicable.

    `hindrance` is why no check that needs an answer in words applies, the id of a sentence, once that is known.
    """

    def __init__(
        self,
        target: Target,
        server: Server,
        clock: Clock,
        key: str | None,
        cancel: Cancel,
        why: Why,
        evidence: Evidence,
    ) -> None:
        self.target = target
        self.server = server
        self.clock = clock
        self.key = key
        self.cancel = cancel
        self.why = why
        self.evidence = evidence
        self.model = target.model
        self.context = target.context
        self.question_tokens: int | None = None
        self.tokens_a_word: float | None = None
        self.hindrance = ""
        self.silent_seconds = 0.0
        self.cause: AnyProblem | None = None
        self.remarks: list[AnyProblem] = []

    def get(self, path: str, key: str | None = None) -> ServerAnswer:
        """Ask for something that is there at once."""
        return self.server.get(self.target.base, path, QUICK_SECONDS, key, self.cancel)

    def post(self, path: str, body: dict[str, object]) -> ServerAnswer:
        """Ask for something that the model has to make; remember a silence."""
        answer = self.server.post(self.target.base, path, body, FIRST_ANSWER_SECONDS, self.key, self.cancel)
        if answer.status == 0:
            self.silent_seconds = answer.seconds
        return answer

    def chat(self, content: object, tokens: int = TOKENS, **more: object) -> ServerAnswer:
        """Ask one question, and ask again where the server says that it still loads."""
        body = self.body(content, tokens, **more)
        answer = self.post(COMPLETIONS, body)
        for _ in range(TRIES_WHILE_LOADING):
            if answer.status != SERVICE_UNAVAILABLE:
                break
            self.clock.wait(WAIT_WHILE_LOADING_SECONDS, self.cancel)
            answer = self.post(COMPLETIONS, body)
        return answer

    def good(self, answer: ServerAnswer) -> dict[str, Any]:
        """Return the JSON object of a good answer, or raise Failed and remember why it is none."""
        if answer.status != 200 and self.cause is None:
            self.cause = self.why(answer)
        return document(answer)

    def body(self, content: object, tokens: int = TOKENS, **more: object) -> dict[str, object]:
        """Return a chat request as the target wants it: the same answer every time, and thoughts only if asked for."""
        body: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "temperature": 0,
            "max_tokens": tokens if self.context is None else min(tokens, max(LEAST_TOKENS, self.context // 4)),
        }
        if self.target.thinking_off:
            body["chat_template_kwargs"] = {"enable_thinking": False}
        return body | more


def document(answer: ServerAnswer) -> dict[str, Any]:
    """Return the JSON object of a good answer, or raise Failed."""
    if answer.status != 200:
        raise Failed(status(answer))
    try:
        found = msgspec.json.decode(answer.body)
    except NOT_OF_THAT_FORM as error:
        raise Failed(f"not JSON: {answer.body[:SHOWN]!r}") from error
    if not isinstance(found, dict):
        raise Failed(f"not an object: {answer.body[:SHOWN]!r}")
    return found


def message(found: dict[str, Any]) -> dict[str, Any]:
    """Return the message of a completion, or raise Failed."""
    said = _choice(found).get("message")
    if not isinstance(said, dict):
        raise Failed("the answer has no message")
    return said


def finish(found: dict[str, Any]) -> str:
    """Return why a completion ended, "" where it does not say."""
    return str(_choice(found).get("finish_reason") or "")


def content(found: dict[str, Any]) -> str:
    """Return the text of a completion, or raise Failed where it has none."""
    said = message(found).get("content")
    if not isinstance(said, str) or not said.strip():
        raise Failed(f"empty content, finish_reason {finish(found) or None}")
    return said


def prompt_tokens(answer: ServerAnswer) -> int | None:
    """Return how many tokens the server counted of what it was asked, None where it does not say."""
    usage = answers.document_of(answer.body).get("usage")
    counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return counted if isinstance(counted, int) and counted > 0 else None


def figures(**known: float | None) -> str:
    """Return figures as text that a program can read and installer/text puts into words: `tokens=96 rate=71.2`."""
    return " ".join(f"{name}={value}" for name, value in known.items() if value is not None)


def status(answer: ServerAnswer) -> str:
    """Return a status with what the server said about it."""
    if answer.status == 0:
        return f"no answer in {answer.seconds:.0f} s"
    body = "" if answer.status == 200 else f": {answer.body[:200].decode(errors='replace')}"
    return f"HTTP {answer.status}{body}"


def _choice(found: dict[str, Any]) -> dict[str, Any]:
    choices = found.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}

"""Answers: what an HTTP answer means, of a hub, of an image registry, of the server that was installed.

A status alone is rarely a cause: 401 of the hub also means "no such repository", 500 of the server "read the log".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from installer.domain import addresses
from installer.domain.fingerprints import Situation, Table
from installer.domain.problems import (
    AccessNotGranted,
    AnswerCutShort,
    AnyProblem,
    CaptivePortal,
    DigestGone,
    ImageUnknown,
    NotReadyYet,
    ProxyRefused,
    RateLimited,
    ReasoningInAnswer,
    ReasoningOnly,
    RegistryDenied,
    RepoUnknown,
    ServerError,
    SmokeFailed,
    TokenNeeded,
)
from installer.domain.redaction import detail_of
from installer.domain.strict_json import NOT_OF_THAT_FORM

NETWORK_SIGN_IN = 511
PROXY_SIGN_IN = 407
GATED = "GatedRepo"
"""What the hub's `X-Error-Code` says of a repository whose terms an account has to agree to first."""

REASONING_FIELDS = ("reasoning", "reasoning_content")
"""vLLM's name for the thoughts beside an answer, and the one that it had before 0.12."""

REASONING_BEGINS = ("<think>", "Thinking Process:", "<|channel|>analysis")
"""How models begin to think aloud (Qwen3, Qwen3.5, gpt-oss) where nothing takes that out of the answer."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer. Names of headers are in small letters; `had_token` tells of the request."""

    status: int
    url: str = ""
    headers: dict[str, str] = {}
    body: bytes = b""
    had_token: bool = False
    retry_after_s: int | None = None

    @property
    def host(self) -> str:
        """Return host and port, without a name or password that stands before them."""
        return addresses.host_of(self.url)

    @property
    def address(self) -> str:
        """Return the URL as it may be shown: a signed address keeps its signature in the query."""
        return addresses.shown(self.url)

    @property
    def is_web_page(self) -> bool:
        """Say whether it announces HTML."""
        return self.headers.get("content-type", "").partition(";")[0].strip().casefold() == "text/html"


def of_anyone(answer: Answer) -> AnyProblem | None:
    """Return what is wrong with an answer by the statuses that mean the same everywhere, or None."""
    status = answer.status
    if status == NETWORK_SIGN_IN or (status == 200 and answer.is_web_page):
        return CaptivePortal(url=answer.address)
    if status == PROXY_SIGN_IN:
        return ProxyRefused(proxy=answer.headers.get("proxy-authenticate", ""), status=status)
    if status == 429:
        return RateLimited(host=answer.host, retry_after_s=answer.retry_after_s)
    if status >= 500:
        return ServerError(host=answer.host, status=status)
    return None


def of_hub(answer: Answer, endpoint_host: str, repo: str, revision: str, file: str = "") -> AnyProblem | None:
    """Return what is wrong with an answer of the hub, or of the host that it sent us on to; None for a good one."""
    problem = of_anyone(answer)
    status = answer.status
    if problem is not None or status in (200, 206, 416):
        return problem
    if answer.host != endpoint_host:
        return ServerError(host=answer.host, status=status)  # a signed address that ran out
    code = answer.headers.get("x-error-code", "")
    if status == 401:
        return TokenNeeded(repo=repo, had_token=answer.had_token, gated=code == GATED)
    if status == 403 and answer.is_web_page and not code:
        return CaptivePortal(url=answer.address)
    if status == 403:
        return AccessNotGranted(repo=repo, gated=code == GATED)
    if status == 404:
        return RepoUnknown(repo=repo, revision=revision, file=file)
    return ServerError(host=answer.host, status=status)


class _Errors(msgspec.Struct):
    class Error(msgspec.Struct):
        """One of the registry's errors."""

        code: str = ""

    errors: list[Error] = []


def of_registry(answer: Answer, repository: str, tag: str, digest: str | None) -> AnyProblem | None:
    """Return what is wrong with an answer of an image registry; None for a good one.

    `digest` is what was asked for, None where it was the tag. Codes are those of the OCI distribution protocol.
    """
    status = answer.status
    image = f"{repository}:{tag}" if tag else repository
    if status == 200:
        return None
    if status == 403 and answer.is_web_page:
        return CaptivePortal(url=answer.address)
    codes = _error_codes(answer.body)
    if "TOOMANYREQUESTS" in codes:
        return RateLimited(host=answer.host, retry_after_s=answer.retry_after_s)
    if status in (401, 403):
        return RegistryDenied(image=image)
    if status == 404 and digest and "NAME_UNKNOWN" not in codes:
        return DigestGone(image=repository, digest=digest, tag=tag)
    if status == 404:
        return ImageUnknown(image=image)
    return of_anyone(answer) or ServerError(host=answer.host, status=status)


def _error_codes(body: bytes) -> set[str]:
    try:
        return {error.code for error in msgspec.json.decode(body, type=_Errors).errors}
    except NOT_OF_THAT_FORM:
        return set()


def of_server(answer: Answer, log: str, table: Table, situation: Situation | None = None) -> AnyProblem | None:
    """Return what is wrong with an answer of the installed server; None for a good one. `log` may be empty."""
    if answer.status == 200:
        return of_completion(document_of(answer.body))
    cause = cause_behind(answer, log, table, situation)
    if cause is not None:
        return cause
    said = detail_of(message_of(answer.body))
    return SmokeFailed(checks=("completion",), details=(f"HTTP {answer.status}: {said}",))


def cause_behind(answer: Answer, log: str, table: Table, situation: Situation | None = None) -> AnyProblem | None:
    """Return why a server did not answer as it should, None where nobody knows.

    An error of its own says nothing: the log of that moment does, then its message.
    """
    situation = situation or Situation(origin="server")
    during = replace(situation, known=dict(situation.known) | {"phase": "request"})
    cause = table.cause(log, during) or table.cause(message_of(answer.body), during)
    if cause is None and answer.status == 503:
        return NotReadyYet(status=answer.status)
    return cause


def of_completion(document: Mapping[str, Any]) -> AnyProblem | None:
    """Say what is odd about a chat completion: no text but thoughts, or thoughts in its text; None for a good one.

    A document of another form has no choices and is none of this.
    """
    choice = _first_choice(document)
    if choice is None:
        return None
    message = choice.get("message")
    fields: Mapping[str, Any] = message if isinstance(message, dict) else {}
    content = fields.get("content")
    if isinstance(content, str) and content.strip():
        begins = next((word for word in REASONING_BEGINS if content.lstrip().startswith(word)), None)
        return ReasoningInAnswer(begins=begins) if begins else None
    if choice.get("finish_reason") == "length":
        usage = document.get("usage")
        tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
        return AnswerCutShort(tokens=tokens if isinstance(tokens, int) else None)
    thoughts = next((name for name in REASONING_FIELDS if fields.get(name)), None)
    return ReasoningOnly(field=thoughts) if thoughts else None


def _first_choice(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = document.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def document_of(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object in a body; an empty one where there is none."""
    try:
        document = msgspec.json.decode(body)
    except NOT_OF_THAT_FORM:
        return {}
    return document if isinstance(document, dict) else {}


def message_of(body: bytes) -> str:
    """Return the sentence in an error's body, or the body itself."""
    document = document_of(body)
    error = document.get("error", document)
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else body.decode(errors="replace")

"""Checks of what every server does: it is well, has the model that was asked for, and answers a question truly."""

from __future__ import annotations

import re
from typing import Any

from installer.domain import answers
from installer.domain.problems import AnswerCutShort, ChatTemplateMissing, ReasoningOnly
from installer.steps.ports import ServerAnswer
from installer.steps.smoke.asked import SHOWN, TOKENS, Asked, Failed, content, document, finish, prompt_tokens, status

EXPECTED_WORD = "alive"
PROMPT = f"Answer with exactly one word: {EXPECTED_WORD}"
SENTENCE = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich 🌱"
MORE_TOKENS = 1024
"""For a model that thinks before it says a word."""


def health(asked: Asked) -> str:
    """Ask how the server is."""
    answer = asked.get("/health")
    if answer.status != 200:
        raise Failed(status(answer))
    return status(answer)


def models(asked: Asked) -> str:
    """Ask which model it serves, and with which context."""
    entry = _entry(asked, document(asked.get("/v1/models", asked.key)))
    asked.model = str(entry["id"])
    length = entry.get("max_model_len")
    if not isinstance(length, int) or length <= 0:
        return asked.model
    if asked.target.context is None:
        asked.context = length
        return f"{asked.model}, {length}"
    if length != asked.target.context:
        raise Failed(f"max_model_len {length}, expected {asked.target.context}")
    return f"{asked.model}, {length}"


def _entry(asked: Asked, listing: dict[str, Any]) -> dict[str, Any]:
    """Return what the server says of the model; without a name, of the only one that it lists."""
    listed = listing.get("data")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    names = [entry.get("id") for entry in entries]
    if not asked.model and len(entries) == 1 and isinstance(names[0], str):
        return entries[0]
    named = next((entry for entry in entries if asked.model and entry.get("id") == asked.model), None)
    if named is None:
        raise Failed(f"{asked.model or 'one model'} is not among {names}")
    return named


def completion(asked: Asked) -> str:
    """Ask one question; what is odd about a good answer is a remark and no failure."""
    answer = asked.chat(PROMPT, TOKENS)
    seen = answers.of_completion(answers.document_of(answer.body)) if answer.status == 200 else None
    if isinstance(seen, AnswerCutShort):
        answer = asked.chat(PROMPT, MORE_TOKENS)
        seen = answers.of_completion(answers.document_of(answer.body)) if answer.status == 200 else None
    if answer.status != 200:
        return _without_chat(asked, answer)
    asked.question_tokens = prompt_tokens(answer)
    if seen is not None and seen.advice:
        asked.remarks.append(seen)
    if isinstance(seen, ReasoningOnly):
        asked.hindrance = "only_thoughts"
        return seen.field
    found = document(answer)
    said = _with_the_word(content(found))
    if finish(found) not in ("stop", ""):
        raise Failed(f"finish_reason {finish(found)} after {said!r}")
    return said


def umlauts(asked: Asked) -> str:
    """Let a German sentence with an emoji be repeated; it must come back byte by byte."""
    said = content(asked.good(asked.chat(f"Wiederhole genau diesen Satz: {SENTENCE}", MORE_TOKENS)))
    if SENTENCE not in said:
        raise Failed(f"expected {SENTENCE!r}, got {said[:SHOWN]!r}")
    return SENTENCE


def alive(asked: Asked) -> str:
    """Ask once more how the server is, after all that was asked of it."""
    return health(asked)


def _without_chat(asked: Asked, refused: ServerAnswer) -> str:
    """Prove a model without a form for conversations by plain text; every other refusal is a failure."""
    cause = asked.why(refused)
    if not isinstance(cause, ChatTemplateMissing):
        asked.cause = cause
        raise Failed(status(refused))
    asked.remarks.append(cause)
    asked.hindrance = "no_chat"
    plain: dict[str, object] = {"model": asked.model, "prompt": PROMPT, "temperature": 0, "max_tokens": TOKENS}
    found = document(asked.post("/v1/completions", plain))
    choices = found.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    text = first.get("text") if isinstance(first, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise Failed("empty text")
    return text.strip()[:SHOWN]


def _with_the_word(said: str) -> str:
    if not re.search(rf"\b{EXPECTED_WORD}\b", said, re.IGNORECASE):
        raise Failed(f"expected {EXPECTED_WORD!r}, got {said[:SHOWN]!r}")
    return said.strip()[:SHOWN]

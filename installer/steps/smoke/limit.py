"""Checks at the limit of the context: a long prompt is answered, and one that is too long is refused cleanly."""

from __future__ import annotations

import re

from installer.domain import answers
from installer.steps.smoke.asked import Asked, Failed, NotApplicable, figures, message, prompt_tokens, status
from installer.steps.smoke.text import PROMPT

LONG_TOKENS = 25_000
"""With prompts of this length a public 27B configuration ran out of memory that had started and answered before."""

LONG_SHARE = 0.6
"""Of a context that is smaller: half of it and some more, with room for the answer."""

SAMPLE_WORDS = 256
TOKENS = 16
COUNTED_SHARE = 0.8
"""A server that counts less of a prompt has cut it off without a word, as Ollama does."""

TOO_LONG_SHARE = 1.3
BAD_REQUEST = 400
WORD = "word "


def names_the_limit(status_code: int, detail: str, limit: int) -> bool:
    """Say whether a refusal means the context: it names the limit, while vLLM words it anew from time to time."""
    return status_code == BAD_REQUEST and re.search(rf"\b{limit}\b", detail) is not None


def long_prompt(asked: Asked) -> str:
    """Ask at the end of a long text; an answer must come, whatever it says."""
    if asked.context is None:
        raise NotApplicable("context_unknown")
    wanted = min(LONG_TOKENS, int(asked.context * LONG_SHARE))
    answer = asked.chat(_text_of(asked, wanted) + "\n" + PROMPT, TOKENS)
    found = asked.good(answer)
    said = message(found)
    if not any(said.get(name) for name in ("content", *answers.REASONING_FIELDS)):
        raise Failed("empty answer to a long prompt")
    counted = prompt_tokens(answer)
    if counted is not None and counted < wanted * COUNTED_SHARE:
        raise Failed(f"sent about {wanted} tokens, {counted} were read")
    return figures(prompt_tokens=counted if counted is not None else wanted)


def over_limit(asked: Asked) -> str:
    """Send more than the context: it must be refused with 400 in words that name the limit."""
    if asked.context is None:
        raise NotApplicable("context_unknown")
    answer = asked.chat(_text_of(asked, int(asked.context * TOO_LONG_SHARE)) + "\n" + PROMPT, TOKENS)
    if answer.status != BAD_REQUEST:
        raise Failed(f"{status(answer)}, expected {BAD_REQUEST}")
    detail = answers.message_of(answer.body)
    if asked.target.context is not None and not names_the_limit(answer.status, detail, asked.context):
        raise Failed(f"{status(answer)} does not name {asked.context}")
    return figures(status=answer.status, context=asked.context)


def _text_of(asked: Asked, tokens: int) -> str:
    """Return a text of about so many tokens of this model: what its template adds to every question is none of it."""
    if asked.tokens_a_word is None:
        counted = prompt_tokens(asked.chat(WORD * SAMPLE_WORDS + "\n" + PROMPT, 1))
        more = (counted or 0) - (asked.question_tokens or 0)
        asked.tokens_a_word = max(0.1, more / SAMPLE_WORDS) if more > 0 else 1.0
    return WORD * max(1, int(tokens / asked.tokens_a_word))

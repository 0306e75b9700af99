"""Hearing an answer that streams, and measuring it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator

import msgspec

from installer.steps.ports import Clock, Delta, Usage


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer with its figures; one that the server or the stream did not tell is None.

    `first_token_seconds` is until the first piece, thought or said. `tokens_per_second` counts all generated tokens,
    those of the thinking too, from the first piece to the last.
    """

    content: str
    reasoning: str
    finish: str
    seconds: float
    first_token_seconds: float | None
    tokens_per_second: float | None
    prompt_tokens: int | None
    generated_tokens: int | None


def heard(pieces: Generator[Delta], clock: Clock, told: Callable[[Delta], None] = lambda _: None) -> Answer:
    """Hear an answer to its end, tell each piece as it comes, and close the stream. Raises what the stream raises."""
    listening = _Listening(clock, told)
    with contextlib.closing(pieces):
        for piece in pieces:
            listening.hear(piece)
    return listening.answer()


class _Listening:
    """Hears the pieces of one answer and measures them."""

    def __init__(self, clock: Clock, told: Callable[[Delta], None]) -> None:
        self._clock = clock
        self._told = told
        self._began = clock.monotonic()
        self._first: float | None = None
        self._last = self._began
        self._pieces: list[Delta] = []
        self._usage: Usage | None = None

    def hear(self, piece: Delta) -> None:
        """Take a piece and tell it."""
        if piece.content or piece.reasoning:
            self._last = self._clock.monotonic()
            self._first = self._last if self._first is None else self._first
        self._usage = piece.usage or self._usage
        self._pieces.append(piece)
        self._told(piece)

    def answer(self) -> Answer:
        """Return the whole."""
        usage, first = self._usage, self._first
        return Answer(
            content="".join(piece.content for piece in self._pieces),
            reasoning="".join(piece.reasoning for piece in self._pieces),
            finish=next((piece.finish for piece in self._pieces if piece.finish), ""),
            seconds=round(self._clock.monotonic() - self._began, 3),
            first_token_seconds=None if first is None else round(first - self._began, 3),
            tokens_per_second=self._rate(),
            prompt_tokens=usage.prompt_tokens if usage else None,
            generated_tokens=usage.generated_tokens if usage else None,
        )

    def _rate(self) -> float | None:
        """Return tokens per second between the first and the last piece; the first token began that time."""
        if self._usage is None or self._first is None:
            return None
        tokens, seconds = self._usage.generated_tokens - 1, self._last - self._first
        return round(tokens / seconds, 1) if tokens > 0 and seconds > 0 else None

"""An answer that streams: server-sent events of OpenAI's API, from bytes to pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from installer.steps.ports import Delta, Usage

DONE = "[DONE]"
_SHOWN_OF_AN_ANSWER = 300


class RefusedError(Exception):
    """An error of the server's own instead of an answer, or in the middle of one."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(status)
        self.status = status
        self.detail = detail


class _Message(msgspec.Struct):
    """vLLM says `reasoning`, and said `reasoning_content` in earlier releases."""

    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Message = msgspec.field(default_factory=_Message)
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int | None = None


class _Error(msgspec.Struct):
    message: str = ""
    code: int | str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: _Error | str | None = None


class _Refusal(msgspec.Struct):
    error: _Error | str


def events(blocks: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event (WHATWG's event stream format); comments and other fields say nothing here."""
    data: list[str] = []
    for line in _lines(blocks):
        if not line and data:
            yield "\n".join(data)
            data = []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" ").decode(errors="replace"))


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines: a block may end in the middle of one, and of a character."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")


def delta_of(data: str) -> Delta:
    """Read one event. Raises RefusedError for an error that comes as one, msgspec.DecodeError for what is none."""
    chunk = msgspec.json.decode(data, type=_Chunk)
    if chunk.error is not None:
        raise _refused(chunk.error, status=500)
    choice = chunk.choices[0] if chunk.choices else _Choice()
    said = choice.delta
    return Delta(
        content=said.content or "",
        reasoning=said.reasoning or said.reasoning_content or "",
        finish=choice.finish_reason or "",
        usage=_counted(chunk.usage),
    )


def _counted(usage: _Usage | None) -> Usage | None:
    if usage is None or usage.completion_tokens is None:
        return None
    return Usage(prompt_tokens=usage.prompt_tokens, generated_tokens=usage.completion_tokens)


def refusal(status: int, body: bytes) -> RefusedError:
    """Return what an answer of a status other than 200 says."""
    try:
        return _refused(msgspec.json.decode(body, type=_Refusal).error, status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return RefusedError(status, body[:_SHOWN_OF_AN_ANSWER].decode(errors="replace"))


def _refused(error: _Error | str, status: int) -> RefusedError:
    if isinstance(error, str):
        return RefusedError(status, error)
    return RefusedError(error.code if isinstance(error.code, int) else status, error.message)

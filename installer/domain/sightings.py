"""Sightings: what a message tells beside its cause: a host, an image, a path, how far a start came, what was asked for.

A fingerprint names the fields of its Problem; those that its own pattern does not capture are looked for here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from installer.domain.figures import whole
from installer.domain.redaction import detail_of, redacted
from installer.domain.units import MIB

LINES_TO_SHOW = 12
LONGEST_PIECE = 2000
"""A pattern that tries every place of a line against every other takes hours for a line of a megabyte."""

OVERLAP = 500
"""No message that a pattern looks for is longer, so that it stands whole in one of two pieces."""

PHASES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("serving", re.compile(r"Application startup complete|Started server process")),
    ("graphs", re.compile(r"Captur\w+ (CUDA )?graph|Graph capturing", re.IGNORECASE)),
    ("kv_cache", re.compile(r"Available KV cache memory|GPU KV cache size|[Mm]emory profiling")),
    ("compile", re.compile(r"torch\.compile|Dynamo|Compiling a graph|autotun", re.IGNORECASE)),
    ("weights", re.compile(r"Loading safetensors|Loading weights|Starting to load model|Model loading took")),
)
"""How far a start came, last phase first, by words of vLLM's own log (0.19 to 0.33)."""

_WHERE_MEMORY_RAN_OUT = {"starting": "weights", "compile": "profiling", "kv_cache": "graphs", "serving": "request"}
_TELLING = re.compile(
    r"error|exception|fatal|denied|not found|killed|failed|refused|unable|cannot|no space|mismatch|invalid|timed out"
    r"|fehler|verweigert|nicht gefunden|unzulässig",
    re.IGNORECASE,
)
_NOT_TELLING = re.compile(r"^\s*(File \"|\^+\s*$|~+)|See root cause above|raise \w+\(|^Traceback", re.IGNORECASE)
_NO_ERROR = re.compile(r"^(?:\([^)]*\) )?(?:DEBUG|INFO|WARNING) \d\d-\d\d \d\d:\d\d:\d\d \[")
"""How vLLM's logger begins a line of which the server itself says that it goes on."""


def phase(log: str) -> str:
    """Return how far a start came: starting, weights, compile, kv_cache, graphs or serving."""
    return next((name for name, pattern in PHASES if pattern.search(log)), "starting")


def in_pieces(text: str) -> str:
    """Return a text for patterns to look at: a line without an end, such as a bar of progress, lies in several."""
    if len(text) <= LONGEST_PIECE:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line))


def _pieces(line: str) -> Iterator[str]:
    yield line[:LONGEST_PIECE]
    for start in range(LONGEST_PIECE - OVERLAP, len(line) - OVERLAP, LONGEST_PIECE - OVERLAP):
        yield line[start : start + LONGEST_PIECE]


def relevant_lines(log: str) -> tuple[str, ...]:
    """Return the lines that say most, without secrets: those with an error in them, else the last that are not empty.

    Frames of a traceback and its closing words say less than the error that they lead to.
    """
    lines = [line.rstrip() for line in redacted(log).splitlines() if line.strip()]
    telling = telling_lines(lines)
    return tuple(dict.fromkeys(telling[-LINES_TO_SHOW:])) if telling else tuple(lines[-LINES_TO_SHOW:])


def telling_lines(lines: list[str]) -> list[str]:
    """Return the lines of a log that name something gone wrong."""
    known = (line for line in lines if not _NO_ERROR.match(line) and not _NOT_TELLING.search(line))
    return [line for line in known if _TELLING.search(line)]


def _first(pattern: str) -> Callable[[str, str], str | None]:
    compiled = re.compile(pattern)

    def find(text: str, _: str) -> str | None:
        found = compiled.search(text)
        return redacted(found[1]) if found else None

    return find


def _phase(text: str, _: str) -> str:
    """Where the memory ran out; all of the log counts: two streams are mixed, and the error may stand too early."""
    reached = phase(text)
    return _WHERE_MEMORY_RAN_OUT.get(reached, reached)


def _host(text: str, _: str) -> str | None:
    proxy = re.search(r"proxyconnect tcp: dial tcp:? (?:lookup )?([^\s:]+(?::\d+)?)", text)
    if proxy:
        return proxy[1]
    address = re.search(r"https?://(?:[^/@\s\"']*@)?([^/\s\"':?]+(?::\d+)?)|\bhost='([^'\s]+)'", text)
    return address[1] or address[2] if address else None


def _image(text: str, _: str) -> str | None:
    named = re.search(
        r"(?i)(?:manifest for|access denied for|no such image:?|pulling) (?!linux/|windows/)([\w./:@-]+)", text
    )
    return named[1].rstrip(":,") if named else None


def _url(text: str, _: str) -> str | None:
    found = re.search(r"https?://[^\s\"'?]+", text)
    return redacted(found[0]) if found else None


def _shm(text: str, _: str) -> str | None:
    """Read what `df` says of /dev/shm."""
    found = re.search(r"^shm\s+(\d+)M\s", text, re.MULTILINE)
    mebibytes = whole(found[1]) if found else None
    return None if mebibytes is None else str(mebibytes * MIB)


def _port(text: str, _: str) -> str | None:
    forms = (
        r"Bind for \S*?:(\d+) failed",
        r"(?i)exposing port \w+ \S*?:(\d+) ->",
        r"(?i)bind (?:host )?port (?:for )?(?:\[[^\]]*\]|[\d.]+):(\d+)",
        r"listen (?:tcp|udp)\d? \S*?:(\d+): bind",
        r"(?:\d+\.\d+\.\d+\.\d+|\]):(\d+)",
        r"(?i)\bport[: ]+(\d{2,5})\b",
    )
    return next((hit[1] for form in forms if (hit := re.search(form, text))), None)


Find = Callable[[str, str], str | None]
"""Looks in the whole text, and in the lines that a pattern matched."""

FINDERS: dict[str, Find] = {
    "phase": _phase,
    "tried": _first(r"Tried to allocate ([\d.]+ [KMG]iB)"),
    "host": _host,
    "url": _url,
    "image": _image,
    "port": _port,
    "shm_bytes": _shm,
    "digest": _first(r"@(sha256:[0-9a-f]{64})"),
    "endpoint": _first(r"((?:unix|npipe|tcp)://[^\s\"']+?)[.:]?(?=[\s\"']|$)"),
    "platform": _first(r"\b((?:linux|windows)/\w+(?:/v\d+)?)"),
    "driver": _first(r"(?:Driver|KMD) Version:\s*(\d+\.\d+(?:\.\d+)?)"),
    "detail": lambda _, lines: detail_of(lines),
}

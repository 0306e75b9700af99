"""Words for what the checks of a proof measured."""

from __future__ import annotations

import re

from installer.domain.figures import decimal, whole
from installer.text.voice import Voice

_MEASURED = ("stream", "long_prompt", "over_limit", "memory", "video")
_FIGURE = re.compile(r"(\w+)=([\d.]+)")


def figures(name: str, figure: str, t: Voice) -> str:
    """Return the figure of a check that passed: measured ones in words, what was read in quotation marks."""
    if name not in _MEASURED:
        return t.quote(figure) if figure else ""
    known = dict(_FIGURE.findall(figure))
    if not known:
        return t.quote(figure) if figure else ""
    says = {
        "stream": _stream,
        "long_prompt": _long_prompt,
        "over_limit": _over_limit,
        "memory": _memory,
        "video": _video,
    }[name]
    return ", ".join(says(known, t))


def _stream(known: dict[str, str], t: Voice) -> list[str]:
    first, rate = whole(known.get("first_token_ms", "")), decimal(known.get("tokens_per_second", ""))
    words = []
    if first is not None:
        words.append(t.gettext("first token after {milliseconds} ms", milliseconds=t.number(first)))
    if rate is not None:
        words.append(t.gettext("{rate} tokens per second", rate=t.number(rate, 1)))
    return words


def _long_prompt(known: dict[str, str], t: Voice) -> list[str]:
    tokens = whole(known.get("prompt_tokens", ""))
    return [] if tokens is None else [t.tokens(tokens)]


def _over_limit(known: dict[str, str], t: Voice) -> list[str]:
    status, limit = whole(known.get("status", "")), whole(known.get("context", ""))
    if status is None or limit is None:
        return []
    return [t.gettext("HTTP {status}, the limit is {limit}", status=status, limit=t.tokens(limit))]


def _memory(known: dict[str, str], t: Voice) -> list[str]:
    used, predicted = whole(known.get("used_bytes", "")), whole(known.get("predicted_bytes", ""))
    cache = whole(known.get("cache_tokens", ""))
    words = []
    if predicted is not None:
        words.append(t.gettext("predicted for the server: {size}", size=t.gib(predicted)))
    if used is not None:
        words.append(t.gettext("in use on the card: {size}", size=t.gib(used)))
    if cache is not None:
        words.append(t.gettext("room for {tokens}", tokens=t.tokens(cache)))
    return words


def _video(known: dict[str, str], t: Voice) -> list[str]:
    few, many = whole(known.get("few", "")), whole(known.get("many", ""))
    if few is None or many is None:
        return []
    return [t.gettext("{few} tokens with 4 frames, {many} with 8", few=t.number(few), many=t.number(many))]

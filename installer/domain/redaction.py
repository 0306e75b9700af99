"""Redaction: no token, password or signed address stays in a text that may be shown, logged or sent.

Every pattern begins where a word begins, so that a line without an end costs no more than its length.
"""

from __future__ import annotations

import re

DETAIL_CHARACTERS = 600
_NAMES_OF_SECRETS = r"(?<![A-Z0-9_])[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)"
_FLAG = r"--[\w-]*(?:key|token|password|secret)"
_QUOTE = r"\\{0,9}[\"']?"
"""Quotes, also those of JSON inside JSON."""

_VALUE = r"\\{0,9}\"[^\"]*\"|\\{0,9}'[^']*'|[\[(]\s*(?:\\{0,9}\"[^\"]*\"|\\{0,9}'[^']*'|[^\s\"',;\])]+)|[^\s\"',;]+"
_SECRETS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"hf_[A-Za-z0-9]{6,}", "hf_…"),
        (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}", r"\1 …"),
        # also a list, as Python prints the arguments of vLLM: 'api_key': ['…']
        (rf"(?i)({_NAMES_OF_SECRETS}{_QUOTE}\s*[=:]\s*)({_VALUE})", r"\1…"),
        # also as two items of a YAML list, one below the other
        (rf"(?i)((?<![\w-]){_FLAG}{_QUOTE},?\s+(?:-\s+)?{_QUOTE})([^\s\"'-][^\s\"']*)", r"\1…"),
        (r"\bsk-[A-Za-z0-9_-]{8,}", "sk-…"),
        (r"(\w://)[^/@\s\"']+@", r"\1…@"),
    )
)
_ADDRESS = re.compile(r"https?://[^\s\"']+")


def redacted(text: str) -> str:
    """Return a text without anything that looks like a token, a password or a signed address."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return _ADDRESS.sub(_unsigned, text)


def _unsigned(address: re.Match[str]) -> str:
    """Take the query out: a registry hands out signed addresses of its store."""
    place, mark, _ = address[0].partition("?")
    return f"{place}?…" if mark else place


def detail_of(text: str) -> str:
    """Return a message on one line, redacted, and no longer than a person reads."""
    return redacted(" ".join(text.split()))[:DETAIL_CHARACTERS]

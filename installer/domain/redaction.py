"""Redaction: no token, password or signed address stays in a text that may be shown, logged or sent."""

from __future__ import annotations

import re

DETAIL_CHARACTERS = 600
_NAMES_OF_SECRETS = r"[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)"
_SECRETS = (
    (r"hf_[A-Za-z0-9]{6,}", "hf_…"),
    (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}", r"\1 …"),
    (rf"(?i)({_NAMES_OF_SECRETS}[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s\"',;]+)", r"\1…"),
    (r"(?i)(--[\w-]*(?:key|token|password|secret)[\"']?,?\s+[\"']?)([^\s\"'-][^\s\"']*)", r"\1…"),
    (r"\bsk-[A-Za-z0-9_-]{8,}", "sk-…"),
    (r"(\w://)[^/@\s\"']+@", r"\1…@"),
    # a registry hands out signed addresses of its store
    (r"(https?://[^\s\"'?]+)\?[^\s\"']+", r"\1?…"),
)


def redacted(text: str) -> str:
    """Return a text without anything that looks like a token, a password or a signed address."""
    for pattern, replacement in _SECRETS:
        text = re.sub(pattern, replacement, text)
    return text


def detail_of(text: str) -> str:
    """Return a message on one line, redacted, and no longer than a person reads."""
    return redacted(" ".join(text.split()))[:DETAIL_CHARACTERS]

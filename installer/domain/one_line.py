"""Texts of one line: what may be a name or a path, and how to show one that may not."""

from __future__ import annotations

import re

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HALF_LETTERS = re.compile(r"[\ud800-\udfff]")


def is_one_line(text: str) -> bool:
    """Say whether a text has no control characters, and no half of a surrogate pair, which no file can hold."""
    return not _CONTROLS.search(text) and not _HALF_LETTERS.search(text)


def printable(text: str) -> str:
    """Return a text as it can be shown, stored and sent: a blank for control characters, `?` for half a letter."""
    return without_halves(_CONTROLS.sub(" ", text))


def without_halves(text: str) -> str:
    """Return a text that UTF-8 can write; Python reads a name that is not in UTF-8 as halves of letters."""
    return _HALF_LETTERS.sub("?", text) if _HALF_LETTERS.search(text) else text

"""Figures in other people's texts and documents: a number that can be one, or None. Never raises."""

from __future__ import annotations

import math

from installer.domain.units import MOST

MOST_DIGITS = 15
"""More than any figure has; Python refuses some thousand of them, and takes those of every script."""


def whole(text: str, digits: int = MOST_DIGITS) -> int | None:
    """Return a whole number that is written in plain digits, no more of them than `digits`."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def decimal(text: str) -> float | None:
    """Return a number with or without decimals and a sign, below 2^53."""
    try:
        value = float(text) if text.isascii() else math.nan
    except ValueError:
        return None
    return value if abs(value) <= MOST else None


def natural(value: object) -> int | None:
    """Return a whole number of a document, from 0 to 2^53; true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST else None


def is_figure(value: object) -> bool:
    """Say whether a value, if it is a number, is one that a figure can have: finite, and not above 2^53."""
    return not isinstance(value, int | float) or abs(value) <= MOST

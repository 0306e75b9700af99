"""Units of memory and disk: graphics memory is counted in GiB, downloads in GB."""

from __future__ import annotations

from typing import Annotated

import msgspec

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
GB = 1000**3

MOST = 2**53
"""The largest whole number that every reader of JSON can hold: 8 PiB."""

Natural = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
"""Bytes, tokens, or how many of something, as they are read from a file or an answer."""

Balance = Annotated[int, msgspec.Meta(ge=-MOST, le=MOST)]
"""Bytes that may be less than nothing."""

Gib = Annotated[float, msgspec.Meta(ge=0, le=MOST / GIB)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


def gib(value: float) -> int:
    """Return a number of GiB as whole bytes."""
    return round(value * GIB)


def to_gib(value_bytes: int) -> float:
    """Return bytes as GiB, unrounded."""
    return value_bytes / GIB


def mib_up(value_bytes: int) -> int:
    """Return bytes as MiB, rounded up: what must be freed is never understated."""
    return -(-value_bytes // MIB)

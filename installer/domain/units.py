"""Units of memory and disk: graphics memory is counted in GiB, downloads in GB."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
GB = 1000**3


def gib(value: float) -> int:
    """Return a number of GiB as whole bytes."""
    return round(value * GIB)


def to_gib(value_bytes: int) -> float:
    """Return bytes as GiB, unrounded."""
    return value_bytes / GIB


def mib_up(value_bytes: int) -> int:
    """Return bytes as MiB, rounded up: what must be freed is never understated."""
    return -(-value_bytes // MIB)

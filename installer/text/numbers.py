"""Numbers as people read them: German and English marks, and a space before the unit that never breaks."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from installer.domain.units import GB, GIB, mib_up

Language = Literal["de", "en"]

NBSP = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
MB, KB = 1000**2, 1000

_GERMAN_MARKS = str.maketrans(",.", ".,")


def number(value: float, language: Language, decimals: int = 0) -> str:
    """Return a number with thousands marks, rounded to `decimals` places."""
    text = f"{abs(value):,.{decimals}f}"
    negative = value < 0 and text.strip("0.,") != ""
    return (MINUS if negative else "") + (text.translate(_GERMAN_MARKS) if language == "de" else text)


def gib(value_bytes: int, language: Language) -> str:
    """Return bytes in GiB, the unit of graphics memory, with two decimals."""
    return f"{number(value_bytes / GIB, language, 2)}{NBSP}GiB"


def mib(value_bytes: int, language: Language) -> str:
    """Return bytes in MiB, rounded up: what must be freed is never understated."""
    return f"{number(mib_up(value_bytes), language)}{NBSP}MiB"


def gb(value_bytes: int, language: Language) -> str:
    """Return bytes in GB, the unit of downloads and disks; below one GB in MB or kB."""
    size = abs(value_bytes)
    if size == 0:
        return f"0{NBSP}GB"
    if round(size / GB, 1) >= 1:
        return f"{number(value_bytes / GB, language, 1)}{NBSP}GB"
    if round(size / MB) >= 1:
        return f"{number(value_bytes / MB, language)}{NBSP}MB"
    return f"{number(value_bytes / KB, language, 1)}{NBSP}kB"


def percent(share: float, language: Language, decimals: int = 0) -> str:
    """Return a share, 1 being the whole, in per cent; English puts no space before the sign."""
    return f"{number(100 * share, language, decimals)}{NBSP if language == 'de' else ''}%"


def duration(seconds: float, language: Language) -> str:
    """Return a time in the two largest units that say something: 0.4 s, 45 s, 2 min 5 s, 1 h 3 min."""
    tenths = round(float(seconds), 1)
    if tenths < 10:
        return f"{number(tenths, language, 0 if tenths.is_integer() else 1)}{NBSP}s"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    if hours:
        return f"{number(hours, language)}{NBSP}h {minutes}{NBSP}min"
    return f"{minutes}{NBSP}min {rest}{NBSP}s" if minutes else f"{rest}{NBSP}s"


_MONTHS: dict[Language, tuple[str, ...]] = {
    "de": (
        "Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November",
        "Dezember",
    ),
    "en": (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    ),
}  # fmt: skip


def date(iso: str, language: Language) -> str:
    """Return the day of an ISO 8601 time in words; a text that is none comes back as it is."""
    try:
        day = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    dot = "." if language == "de" else ""
    return f"{day.day}{dot}{NBSP}{_MONTHS[language][day.month - 1]} {day.year}"

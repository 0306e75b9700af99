"""Bytes to text: what programs and files hold is in whatever encoding their system has, and some say so nowhere.

Windows' own tools write UTF-16 (wsl.exe), its editors a byte order mark, its older programs the ANSI code page.
"""

from __future__ import annotations

import codecs

import msgspec

ANSI = "cp1252"
"""The code page of western Windows: what bytes are taken for that are nothing else and name no page of their own."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 BOM"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16LE"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16BE"),
)
_SHARE_OF_ZEROS = 0.02
"""UTF-8 never has a zero byte; UTF-16 has one beside every digit, space and line end, also in Chinese text."""


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """A text and how it was written. `foreign` means that it was not plain UTF-8."""

    text: str
    encoding: str
    foreign: bool


def text_of(data: bytes, ansi: str = ANSI) -> Decoded:
    """Decode bytes as a person would read them; never fails. `ansi` is the code page of the system they are from."""
    for mark, codec, name in _MARKS:
        if data.startswith(mark):
            return Decoded(text=data[len(mark) :].decode(codec, "replace"), encoding=name, foreign=True)
    wide = _wide(data)
    if wide:
        return Decoded(text=data.decode(wide, "replace"), encoding=wide.upper().replace("-16-", "-16"), foreign=True)
    try:
        return Decoded(text=data.decode("utf-8"), encoding="UTF-8", foreign=False)
    except UnicodeDecodeError:
        return _in_code_page(data, ansi)


def plain(data: bytes, ansi: str = ANSI) -> str:
    """Return the text alone."""
    return text_of(data, ansi).text


def _wide(data: bytes) -> str | None:
    """Return the UTF-16 codec of bytes without a mark, by which half of their pairs is zero; None for others."""
    pairs = len(data) // 2
    if not pairs or len(data) % 2:
        return None
    low, high = data[0::2].count(0), data[1::2].count(0)
    if max(low, high) < _SHARE_OF_ZEROS * pairs or min(low, high) * 4 > max(low, high):
        return None
    return "utf-16-le" if high > low else "utf-16-be"


def _in_code_page(data: bytes, named: str) -> Decoded:
    """Decode with a page that Python knows for text; where it does not know it so, with the western one."""
    try:
        return Decoded(text=data.decode(named, "replace"), encoding=named, foreign=True)
    except (LookupError, ValueError):
        return Decoded(text=data.decode(ANSI, "replace"), encoding=ANSI, foreign=True)

"""What a file of a person's begins with, and so what kind of video it is. Never by its name."""

from __future__ import annotations

ENOUGH_BYTES = 64
_STILL_OR_SOUND = (b"heic", b"heix", b"mif1", b"msf1", b"avif", b"avis", b"M4A ", b"M4B ")
"""Brands of ISO files that are pictures or sound (ISO/IEC 14496-12, `ftyp`)."""


def video_type(beginning: bytes) -> str | None:
    """Return the MIME type of a video by its first bytes, None for what is none that vLLM reads."""
    if beginning[4:8] == b"ftyp" and beginning[8:12] not in _STILL_OR_SOUND:
        return "video/quicktime" if beginning[8:12] == b"qt  " else "video/mp4"
    if beginning.startswith(b"\x1a\x45\xdf\xa3"):
        return "video/webm" if b"webm" in beginning else "video/x-matroska"
    if beginning.startswith(b"RIFF") and beginning[8:12] == b"AVI ":
        return "video/x-msvideo"
    return None


def seconds_in_movie_header(payload: bytes) -> float | None:
    """Return a movie's length by the payload of its `mvhd` box, whose versions differ in the width of their fields."""
    wide = payload[:1] == b"\x01"
    at, width = (20, 8) if wide else (12, 4)
    scale = int.from_bytes(payload[at : at + 4], "big")
    units = int.from_bytes(payload[at + 4 : at + 4 + width], "big")
    if not scale or len(payload) < at + 4 + width or units == 2 ** (8 * width) - 1:
        return None
    return units / scale

"""Check of reading a picture: one that is made here, whose answer is known."""

from __future__ import annotations

import base64
import re
import struct
import zlib

from installer.steps.smoke.asked import SHOWN, Asked, Failed, NotApplicable, content

SIDE = 224
RADIUS = 80
BLUE, WHITE = b"\x10\x30\xe0", b"\xff\xff\xff"
PROMPT = "Which colour and which shape has the figure in this picture? Answer in two words, such as: red square."
COLOUR, SHAPE = "blue", "circle"
TOKENS = 64
MORE_TOKENS = 1024
"""For a model that thinks and cannot be told not to."""


def picture(asked: Asked) -> str:
    """Show a blue circle, as a data URI so that the server fetches nothing."""
    if asked.target.pictures is False:
        raise NotApplicable("no_pictures")
    url = "data:image/png;base64," + base64.b64encode(circle()).decode()
    shown = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": PROMPT}]
    answer = asked.chat(shown, TOKENS if asked.target.thinking_off else MORE_TOKENS)
    if answer.status not in (0, 200) and asked.target.pictures is None:
        raise NotApplicable("pictures_refused")
    said = content(asked.good(answer))
    if not all(re.search(rf"\b{word}\b", said, re.IGNORECASE) for word in (COLOUR, SHAPE)):
        if asked.target.pictures is None:  # some servers leave out what their model cannot read, and answer the rest
            raise NotApplicable("picture_unseen")
        raise Failed(f"expected '{COLOUR} {SHAPE}', got {said[:SHOWN]!r}")
    return said.strip()[:SHOWN]


def circle() -> bytes:
    """Return a PNG of a blue disc on white (RFC 2083: three chunks, each row with filter 0)."""
    rows = b"".join(_row(y - SIDE // 2) for y in range(SIDE))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _row(y: int) -> bytes:
    half = int(max(0, RADIUS**2 - y**2) ** 0.5)
    beside = WHITE * (SIDE // 2 - half)
    return b"\0" + beside + BLUE * (2 * half) + beside


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

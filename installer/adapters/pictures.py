"""Pictures: from a file's bytes to pixels, with Pillow, which comes with the window."""

from __future__ import annotations

import io

from installer.domain.pixels import Pixels
from installer.domain.problems import InstallerError, MalformedFile

_BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF")
_MODES = ("L", "LA", "RGB", "RGBA")
_MOST_PIXELS = 64_000_000
"""Larger than any that a server here makes; a bomb is larger still."""


def decoded(data: bytes, path: str) -> Pixels | None:
    """Decode PNG, JPEG or WebP; None for bytes that are none of them.

    Raises InstallerError(MalformedFile) for a picture that is damaged or too large, and without Pillow.
    """
    if not data.startswith(_BEGINNINGS):
        return None
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        reason = "the package Pillow is needed to look into a picture"
        raise InstallerError(MalformedFile(path=path, where="$", reason=reason)) from error
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise InstallerError(MalformedFile(path=path, where="$", reason=f"{image.width} x {image.height}"))
            mode = image.mode if image.mode in _MODES else "RGBA" if image.has_transparency_data else "RGB"
            plain = image.convert(mode)
            return Pixels(width=plain.width, height=plain.height, mode=mode, data=plain.tobytes())
    except (OSError, ValueError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise InstallerError(MalformedFile(path=path, where="$", reason=type(error).__name__)) from error

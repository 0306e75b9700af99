"""Picture files, with Pillow: made anew to be sent, so that nothing of the file goes along but its pixels, or judged.

The place and time that a camera writes into a photo do not reach the server.
"""

from __future__ import annotations

import io
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from installer.domain.pixels import Pixels
from installer.domain.problems import FileUnreadable, InstallerError, MalformedFile, PictureUnreadable
from installer.steps.ports import Picture

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
"""Those of photos and screenshots. Others stay out: for some of them Pillow starts another program."""

LARGEST_FILE_BYTES = 200_000_000
LARGEST_PIXELS = 100_000_000
_BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF")
_MODES = ("L", "LA", "RGB", "RGBA")
_FAST = 1
"""Compression is for the way, and the way is the loopback."""


class PictureFiles:
    """Implements `Pictures`."""

    def read(self, path: str, most_pixels: int) -> Picture:
        """Return a picture as PNG, upright, on white where it is transparent, and not larger than `most_pixels`."""
        from PIL import Image

        data = _bytes_of(path)
        warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)  # the size is judged below
        try:
            return _decoded(data, most_pixels)
        except _TooLargeError as error:
            raise InstallerError(PictureUnreadable(path=path, state="too_large")) from error
        except _UnknownFormatError as error:
            raise InstallerError(PictureUnreadable(path=path, state="unknown_format")) from error
        except Exception as error:
            # A decoder meets a damaged file with whatever it stumbles over: OSError, SyntaxError, struct.error ...
            raise InstallerError(PictureUnreadable(path=path, state="damaged")) from error


class _TooLargeError(Exception):
    """More pixels than are decoded: a small file may hold a huge picture."""


class _UnknownFormatError(Exception):
    """None of the formats."""


def _bytes_of(path: str) -> bytes:
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise InstallerError(PictureUnreadable(path=path, state="too_large"))
        if not file.is_file():
            raise InstallerError(FileUnreadable(path=path, reason="not a file"))
        return file.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InstallerError(FileUnreadable(path=path, reason=reason)) from error


def _decoded(data: bytes, most_pixels: int) -> Picture:
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        opened = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:
        raise _UnknownFormatError from error
    except Image.DecompressionBombError as error:
        raise _TooLargeError from error
    with opened:
        if opened.width * opened.height > LARGEST_PIXELS:
            raise _TooLargeError
        upright = ImageOps.exif_transpose(opened)
        original = upright.size
        shown = _on_white(_in_eight_bits(upright))
    shown.thumbnail(_fitting(original, most_pixels))
    out = io.BytesIO()
    shown.save(out, "PNG", compress_level=_FAST)
    scaled = shown.size != original
    return Picture(png=out.getvalue(), width=shown.width, height=shown.height, original=original if scaled else None)


def _fitting(size: tuple[int, int], most_pixels: int) -> tuple[int, int]:
    """Return the largest size of the same shape."""
    width, height = size
    factor = min(1.0, math.sqrt(most_pixels / (width * height)))
    return max(1, math.floor(width * factor)), max(1, math.floor(height * factor))


def _in_eight_bits(image: Image.Image) -> Image.Image:
    """Bring a picture with more than eight bits a channel down; Pillow's own conversion cuts what is above."""
    if not image.mode.startswith("I;16"):
        return image
    return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")


def _on_white(image: Image.Image) -> Image.Image:
    """Return a new picture without transparency and without what else the file told, as vLLM itself would make it."""
    from PIL import Image

    if image.has_transparency_data:
        seen = image.convert("RGBA")
        white = Image.new("RGBA", seen.size, "white")
        white.alpha_composite(seen)
        return white.convert("RGB")
    fresh = Image.new("RGB", image.size)
    fresh.paste(image.convert("RGB"))
    return fresh


def decoded(data: bytes, path: str) -> Pixels | None:
    """Decode PNG, JPEG or WebP as it is, to be judged; None for bytes that are none of them.

    Raises InstallerError(MalformedFile) for a picture that is damaged or too large.
    """
    if not data.startswith(_BEGINNINGS):
        return None
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > LARGEST_PIXELS:
                raise InstallerError(MalformedFile(path=path, where="$", reason=f"{image.width} x {image.height}"))
            mode = image.mode if image.mode in _MODES else "RGBA" if image.has_transparency_data else "RGB"
            plain = image.convert(mode)
            return Pixels(width=plain.width, height=plain.height, mode=mode, data=plain.tobytes())
    except (OSError, ValueError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise InstallerError(MalformedFile(path=path, where="$", reason=type(error).__name__)) from error

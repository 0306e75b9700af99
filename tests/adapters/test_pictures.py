"""Pictures are really decoded: damaged ones are noticed, and nothing but the pixels goes along."""

from __future__ import annotations

import io
import random
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from installer.adapters.pictures import PictureFiles
from installer.domain.problems import FileUnreadable, InstallerError, PictureUnreadable
from installer.steps.ports import Picture
from tests.adapters.engine_kit import problem_in

ROOMY = 10_000_000
READER = PictureFiles()


def decoded(picture: Picture) -> Image.Image:
    image = Image.open(io.BytesIO(picture.png))
    assert image.format == "PNG"
    assert image.mode == "RGB"
    assert image.size == (picture.width, picture.height)
    return image


def saved(folder: Path, image: Image.Image, name: str = "a.png", **how: object) -> str:
    image.save(folder / name, **how)  # type: ignore[arg-type]
    return str(folder / name)


def noise(width: int, height: int) -> Image.Image:
    return Image.frombytes("RGB", (width, height), random.Random(1).randbytes(3 * width * height))


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp", "a.gif", "a.bmp", "a.tiff", "named like nothing"])
def test_photos_and_screenshots_are_read_whatever_they_are_called(tmp_path: Path, name: str) -> None:
    kind = None if "." in name else "PNG"
    path = saved(tmp_path, Image.new("RGB", (40, 30), "red"), name, format=kind)
    seen = READER.read(path, ROOMY)
    assert (seen.width, seen.height, seen.original) == (40, 30, None)
    red, green, blue = decoded(seen).getpixel((20, 15))  # type: ignore[misc]
    assert red > 245
    assert max(green, blue) < 10


@pytest.mark.parametrize(("most", "width", "height"), [(1_000_000, 800, 400), (80_000, 400, 200), (2, 2, 1), (1, 1, 1)])
def test_a_picture_is_made_smaller_in_its_own_shape_and_says_so(
    tmp_path: Path, most: int, width: int, height: int
) -> None:
    seen = READER.read(saved(tmp_path, noise(800, 400)), most)
    assert (seen.width, seen.height) == (width, height)
    assert seen.original == (None if width == 800 else (800, 400))
    decoded(seen)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 40_000))
def test_no_picture_is_larger_than_the_limit(width: int, height: int, most: int) -> None:
    buffer = io.BytesIO()
    Image.new("1", (width, height)).save(buffer, "PNG")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("installer.adapters.pictures._bytes_of", lambda _: buffer.getvalue())
        seen = READER.read("a.png", most)
    assert seen.width * seen.height <= max(most, seen.width, seen.height)
    assert 1 <= seen.width <= width
    assert 1 <= seen.height <= height


def test_a_photo_is_turned_upright_and_its_place_and_time_stay_here(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    exif[0x010F] = "SecretCamera"
    path = saved(tmp_path, noise(60, 20), "a.jpg", exif=exif, comment=b"SecretPlace")
    seen = READER.read(path, ROOMY)
    assert (seen.width, seen.height, seen.original) == (20, 60, None)
    assert b"Secret" in Path(path).read_bytes()
    assert b"Secret" not in seen.png
    assert [chunk for chunk in (b"eXIf", b"iCCP", b"tEXt") if chunk in seen.png] == []


def test_what_is_transparent_is_white(tmp_path: Path) -> None:
    seen = READER.read(saved(tmp_path, Image.new("RGBA", (4, 4), (255, 0, 0, 0))), ROOMY)
    assert decoded(seen).getpixel((1, 1)) == (255, 255, 255)
    palette = Image.new("P", (4, 4), 3)
    seen = READER.read(saved(tmp_path, palette, "b.gif", transparency=3), ROOMY)
    assert decoded(seen).getpixel((1, 1)) == (255, 255, 255)


def test_sixteen_bits_a_channel_become_eight(tmp_path: Path) -> None:
    deep = Image.frombytes("I;16", (2, 1), struct.pack("<2H", 0x4000, 0xFFFF))
    seen = decoded(READER.read(saved(tmp_path, deep), ROOMY))
    assert [seen.getpixel((x, 0)) for x in (0, 1)] == [(64, 64, 64), (255, 255, 255)]


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def wrong_checksum(data: bytes) -> bytes:
    at = data.index(b"IDAT") + 10
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def huge(_: bytes) -> bytes:
    """A small PNG that says of itself to be of 30,000 × 30,000 pixels."""
    head = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 0, 0, 0, 0)
    sized = struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    return b"\x89PNG\r\n\x1a\n" + sized + struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))


BROKEN = {
    "cut short": (cut, "damaged"),
    "wrong bytes": (wrong_checksum, "damaged"),
    "too many pixels": (huge, "too_large"),
    "empty": (lambda _: b"", "unknown_format"),
    "text": (lambda _: b"just words", "unknown_format"),
    "a drawing": (lambda _: b'<svg xmlns="http://www.w3.org/2000/svg"/>', "unknown_format"),
    "PostScript": (lambda _: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "unknown_format"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_is_no_picture_is_told_by_what_is_wrong(tmp_path: Path, case: str) -> None:
    damage, state = BROKEN[case]
    path = saved(tmp_path, noise(64, 64))
    Path(path).write_bytes(damage(Path(path).read_bytes()))
    assert problem_in(lambda: READER.read(path, ROOMY)) == PictureUnreadable(path=path, state=state)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_damage_anywhere_is_a_problem_and_nothing_else(noise_bytes: bytes, at: int) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (9, 9), "blue").save(buffer, "PNG")
    damaged = buffer.getvalue()[:at] + noise_bytes + buffer.getvalue()[at + len(noise_bytes) :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("installer.adapters.pictures._bytes_of", lambda _: damaged)
        problem: object = None
        try:
            READER.read("a.png", ROOMY)
        except InstallerError as error:
            problem = error.problem
    assert problem is None or isinstance(problem, PictureUnreadable)


@pytest.mark.parametrize("name", ["missing.png", ".", "nul\0byte"])
def test_what_cannot_be_opened_is_told_by_its_name(tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/{name}"
    problem = problem_in(lambda: READER.read(path, ROOMY))
    assert isinstance(problem, FileUnreadable)
    assert problem.path == path

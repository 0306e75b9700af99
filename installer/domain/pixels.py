"""Pixels: is what an image server sent a picture at all? Pure: the decoded bytes come from an adapter.

HTTP 200 and the head of a PNG prove nothing: a VAE in fp16 gives black, a DiT in the wrong fp8 kernels gives an almost
transparent grey (`probe-2026-10-qwen-image`: 97 % transparent), a broken sampler gives noise.
"""

from __future__ import annotations

import math

import msgspec

from installer.domain.problems import ImageUnusable

LEAST_DEVIATION = 2.0
"""Of 255. A picture of one colour deviates by less; the plainest sky has more."""

MOST_OF_ONE_COLOUR = 0.99
LEAST_OPAQUE_SHARE = 0.5
OPAQUE_FROM = 128
NOISE_FROM = 0.75
"""How far a pixel differs from its right neighbour, over how far any two pixels differ: 1 is pure noise.

Photographs and renderings lie below 0.3; a picture that was never denoised lies above 0.9.
"""

LEAST_PSNR_DB = 15.0
"""`probe-2026-10-qwen-image`: broken pictures lay at 7 to 9 dB, right ones at 26 to 29."""

_SAMPLES = 65536
"""Enough pixels to judge by; a whole picture of a megapixel would take Python a second."""


class Pixels(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded picture: `data` are rows of interleaved channels, 8 bits each, as many as `mode` has letters."""

    width: int
    height: int
    mode: str
    data: bytes


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """What a picture is judged by. Mean and deviation are of 255; what was not measured is None.

    `psnr_db` is its likeness to a picture that the same request made elsewhere.
    """

    width: int
    height: int
    mean: float | None = None
    deviation: float | None = None
    opaque_share: float | None = None
    one_colour_share: float | None = None
    roughness: float | None = None
    psnr_db: float | None = None


def measured(pixels: Pixels) -> Statistics:
    """Measure a picture by an even sample of its pixels. Raises ValueError where the bytes are not of that size."""
    channels = len(pixels.mode)
    if len(pixels.data) != pixels.width * pixels.height * channels:
        raise ValueError(f"{len(pixels.data)} bytes for {pixels.width}x{pixels.height} in {pixels.mode}")
    colours = channels - 1 if pixels.mode.endswith("A") else channels
    if not pixels.data:
        return Statistics(width=pixels.width, height=pixels.height)
    chosen = _sample(pixels, channels)
    brightness = [sum(pixel[:colours]) / colours for pixel, _ in chosen]
    mean = sum(brightness) / len(brightness)
    variance = sum((value - mean) ** 2 for value in brightness) / len(brightness)
    counts: dict[bytes, int] = {}
    for pixel, _ in chosen:
        counts[pixel] = counts.get(pixel, 0) + 1
    return Statistics(
        width=pixels.width,
        height=pixels.height,
        mean=mean,
        deviation=variance**0.5,
        opaque_share=sum(pixel[-1] >= OPAQUE_FROM for pixel, _ in chosen) / len(chosen) if colours < channels else 1.0,
        one_colour_share=max(counts.values()) / len(chosen),
        roughness=_roughness(chosen, colours, variance),
    )


def _sample(pixels: Pixels, channels: int) -> list[tuple[bytes, bytes]]:
    """Return pixels with their right neighbours, evenly spread over the picture."""
    count = pixels.width * pixels.height
    step = max(1, count // _SAMPLES)
    if step > 1 and pixels.width % step == 0:
        step += 1  # not one column only
    places = [at for at in range(0, count, step) if (at + 1) % pixels.width or pixels.width == 1]

    def pixel(at: int) -> bytes:
        return pixels.data[at * channels : (at + 1) * channels]

    return [(pixel(at), pixel(at + 1) if pixels.width > 1 else pixel(at)) for at in places]


def _roughness(chosen: list[tuple[bytes, bytes]], colours: int, variance: float) -> float:
    """Return how far neighbours differ against how far any two pixels do; 0 for a picture of one colour."""
    if variance == 0:
        return 0.0
    squares = [(sum(one[:colours]) - sum(other[:colours])) ** 2 for one, other in chosen]
    return (sum(squares) / len(squares)) / (2 * variance * colours**2)


def flaw(seen: Statistics, wanted: tuple[int, int] | None = None) -> ImageUnusable | None:
    """Say why a picture is none, or None for one that is; what was not measured speaks for nobody.

    `wanted` is the width and height that were asked for.
    """
    found = _flaw(seen, wanted)
    if found is None:
        return None
    return ImageUnusable(
        flaw=found,
        width=seen.width,
        height=seen.height,
        mean=seen.mean,
        deviation=seen.deviation,
        opaque_share=seen.opaque_share,
    )


def _flaw(seen: Statistics, wanted: tuple[int, int] | None) -> str | None:
    if (wanted is not None and (seen.width, seen.height) != wanted) or not seen.width * seen.height:
        return "wrong_size"
    if seen.opaque_share is not None and seen.opaque_share < LEAST_OPAQUE_SHARE:
        return "transparent"
    plain = seen.deviation is not None and seen.deviation < LEAST_DEVIATION
    if plain or (seen.one_colour_share or 0.0) > MOST_OF_ONE_COLOUR:
        return "black" if seen.mean is not None and seen.mean < LEAST_DEVIATION else "one_colour"
    if seen.roughness is not None and seen.roughness > NOISE_FROM:
        return "noise"
    return "unlike" if seen.psnr_db is not None and seen.psnr_db < LEAST_PSNR_DB else None


def psnr_db(one: Pixels, other: Pixels) -> float:
    """Return how alike two pictures of one size and mode are, in decibels; endless for the same one.

    Raises ValueError where size or mode differ.
    """
    if (one.width, one.height, one.mode, len(one.data)) != (other.width, other.height, other.mode, len(other.data)):
        raise ValueError("pictures of different size or mode")
    squares = sum((a - b) ** 2 for a, b in zip(one.data, other.data, strict=True))
    return math.inf if squares == 0 else 10 * math.log10(255**2 * len(one.data) / squares)

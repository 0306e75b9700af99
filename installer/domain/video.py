"""Videos in requests: how many frames of one are read, and how a release is told so."""

from __future__ import annotations

import msgspec

from installer.domain.units import Natural

FRAME_TOKENS = 280
"""Measured in the first spike: 8 frames made a prompt of 2,304 tokens (Qwen3.6)."""

AROUND_TOKENS = 60
"""What the same prompt had beside its frames."""

ANSWER_TOKENS = 1_200
"""Kept free for question and answer."""

LONGEST_FOR_RATE = ((10.0, 3.0), (30.0, 2.0), (120.0, 1.0))
"""Seconds of a video up to which so many frames a second are taken."""

LONGEST_FOR_COUNT = ((300.0, 64),)
FRAMES_OF_LONG_ONES = 32
FEWEST_FRAMES = 4
"""Below this Qwen's processors refuse a video."""

FIRST_THAT_ASKS_FOR_TRUST = (0, 31)
TRUST_FLAG = "--trust-request-mm-kwargs"

Shape = dict[str, object]


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How many frames of a video are read, and how many its length would deserve."""

    frames: Natural
    wanted: Natural

    @property
    def cut(self) -> bool:
        """Say whether the context made it fewer."""
        return self.frames < self.wanted


def most_frames(context: int) -> int:
    """Return how many frames leave room for question and answer in a context of so many tokens; 0 for none."""
    return max(0, (context - AROUND_TOKENS - ANSWER_TOKENS) // FRAME_TOKENS)


def sampling(seconds: float | None, context: int) -> Sampling:
    """Return the frames for a video of a length, None where it is not known, cut to what the context has room for."""
    wanted = _wanted(seconds)
    return Sampling(frames=min(wanted, most_frames(context)), wanted=wanted)


def _wanted(seconds: float | None) -> int:
    if seconds is None:
        return FRAMES_OF_LONG_ONES
    for longest, rate in LONGEST_FOR_RATE:
        if seconds <= longest:
            return max(FEWEST_FRAMES, int(seconds * rate))
    return next((frames for longest, frames in LONGEST_FOR_COUNT if seconds <= longest), FRAMES_OF_LONG_ONES)


def needs_trust(release: str) -> bool:
    """Say whether a release of vLLM refuses settings for media in a request unless it was told to trust them."""
    major, _, rest = release.partition(".")
    minor = rest.partition(".")[0]
    return not (major.isdigit() and minor.isdigit()) or (int(major), int(minor)) >= FIRST_THAT_ASKS_FOR_TRUST


def may_choose_frames(release: str, flags: tuple[str, ...]) -> bool:
    """Say whether a request may say how many frames are read, by the release and the arguments of its server."""
    return TRUST_FLAG in flags or not needs_trust(release)


def shapes(frames: int) -> tuple[tuple[str, Shape], ...]:
    """Return the ways to ask for so many frames, by name, the likelier first.

    Which of them a server heeds hangs on the model's processor, and what it does not know it passes over: only the
    number of tokens tells. `media_io_kwargs` is for the frames that are decoded, `mm_processor_kwargs` for those that
    the processor takes of them.
    """
    nested = {"video": {"num_frames": frames}}
    decoded: Shape = {"media_io_kwargs": nested}
    return (
        ("flat", decoded | {"mm_processor_kwargs": {"num_frames": frames}}),
        ("nested", decoded | {"mm_processor_kwargs": {"videos_kwargs": {"num_frames": frames}}}),
        ("decoder", decoded),
    )

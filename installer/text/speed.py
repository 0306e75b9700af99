"""Words for how long a download will take."""

from __future__ import annotations

from installer.steps.speed import Estimate
from installer.text.voice import Voice


def estimate(value: Estimate, t: Voice) -> str:
    """Say how long what is missing takes at the measured speed; the first start comes on top of it."""
    return t.gettext(
        "{size} are still to come: about {time} at {speed} per second. The first start takes some minutes more.",
        size=t.gb(value.missing_bytes),
        time=roughly(value.seconds, t),
        speed=t.gb(round(value.bytes_per_second)),
    )


def roughly(seconds: float, t: Voice) -> str:
    """Return a time as an estimate has it: in minutes, from an hour on in hours and minutes."""
    minutes = max(1, round(seconds / 60))
    if minutes >= 60:
        return t.duration(60 * minutes)
    return t.ngettext("{count} minute", "{count} minutes", minutes)

"""Time, from the system."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from installer.steps.cancel import Cancel


class SystemClock:
    """The system's clock; implements `Clock`."""

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC, to the second."""
        return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        return time.monotonic()

    def wait(self, seconds: float, cancel: Cancel) -> None:
        """Wait, or raise Cancelled at once."""
        cancel.wait(seconds)

"""How long the download will take: measured on the line itself before the person says yes."""

from __future__ import annotations

import msgspec

from installer.domain.plan import Plan
from installer.steps.cancel import Cancel
from installer.steps.planning import present
from installer.steps.ports import Ports

LOOK_SECONDS = 2.0
"""Long enough for a line to get up to speed, short enough to wait for."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What has still to come over the line, and how fast it was when it was measured: bytes, and bytes per second.

    Image and weights share the line, so that one figure holds for both.
    """

    missing_bytes: int
    bytes_per_second: float

    @property
    def seconds(self) -> float:
        """Return how long that takes if the line stays as it is."""
        return self.missing_bytes / self.bytes_per_second


def estimate(plan: Plan, ports: Ports, cancel: Cancel) -> Estimate | None:
    """Measure the line to the hub for a moment; None where that told nothing, or where everything is here already."""
    missing = missing_bytes(plan, ports)
    speed = ports.hub.speed(plan.weights, LOOK_SECONDS, cancel) if missing else None
    return None if speed is None else Estimate(missing_bytes=missing, bytes_per_second=speed)


def missing_bytes(plan: Plan, ports: Ports) -> int:
    """Return how many bytes of image and weights an earlier run has not left here yet."""
    here = present(plan.image, plan.helper, plan.weights, plan.place, ports)
    image = 0 if here.image else plan.image.size_bytes
    return image + plan.weights.size_bytes - here.weights_bytes

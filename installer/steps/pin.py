"""Pinning: whether the compose file names an image by its digest or by its tag. No running server is touched by it."""

from __future__ import annotations

import msgspec

from installer.domain import compose
from installer.domain.plan import Plan
from installer.domain.problems import InstallerError, PinNotProved
from installer.steps import start
from installer.steps.home import StackHome
from installer.steps.job import Job


def pin(job: Job, *, unproved: bool = False) -> Plan:
    """Start from exactly the installed image from now on, whatever its publisher does with the tag.

    Returns the plan as it is then. Raises InstallerError(NotInstalled, EditedByHand), and PinNotProved for an image
    with which no proof has passed, unless `unproved` says that it is known.
    """
    plan = job.home.installed()
    if not unproved and not proved(plan, job.home):
        raise InstallerError(PinNotProved(image=plan.image.by_digest))
    return _with_pin(plan, plan.image.index_digest, job)


def unpin(job: Job) -> Plan:
    """Let the tag say which image it is. The one that is here keeps the tag's name until it is pulled anew.

    Returns the plan as it is then. Raises InstallerError(NotInstalled, EditedByHand, ImageUnknown, EngineFailed).
    """
    plan = job.home.installed()
    job.ports.engine.tag(plan.image)
    return _with_pin(plan, "", job)


def proved(plan: Plan, home: StackHome) -> bool:
    """Say whether the last proof that passed was one of this very plan."""
    proof = home.proof()
    return proof is not None and proof.start.fingerprint == compose.fingerprint(plan)


def _with_pin(plan: Plan, digest: str, job: Job) -> Plan:
    choices = msgspec.structs.replace(plan.choices, docker_image_pin_digest=digest)
    changed = msgspec.structs.replace(plan, choices=choices, pinned=digest != "")
    start.write_files(changed, job)
    return changed

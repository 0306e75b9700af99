"""Showing a video to a server in a container: over this computer if the container gets here, else in the request."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from installer import resources
from installer.domain.problems import AnyProblem, HostNotReached, InstallerError, VideoUnreadable
from installer.resources import PROOF_CLIP
from installer.steps.cancel import Cancel
from installer.steps.ports import Clip, Media


@contextlib.contextmanager
def shown(
    clip: Clip, container_id: str, media: Media, cancel: Cancel, remark: Callable[[AnyProblem], object]
) -> Iterator[str]:
    """Yield the address for a request; where the container was seen not to reach this computer, that is remarked.

    Raises InstallerError(HostNotReached) for a video that is too large to go in the request, FileUnreadable.
    """
    with contextlib.ExitStack() as held:
        try:
            url = held.enter_context(media.offered(clip, container_id, cancel))
        except InstallerError as error:
            if not isinstance(error.problem, HostNotReached):
                raise
            url = _inline(clip, media, error)
            if error.problem.tried:  # a container without python3 tells nothing that a person could act on
                remark(error.problem)
        yield url


def _inline(clip: Clip, media: Media, unreached: InstallerError) -> str:
    try:
        return media.inline(clip)
    except InstallerError as error:
        if isinstance(error.problem, VideoUnreadable):
            raise unreached from error
        raise


def proof_clip(media: Media) -> Clip:
    """Return the clip that comes with Slipway, whose content is known."""
    return media.read(str(resources.file("assets", *PROOF_CLIP)))

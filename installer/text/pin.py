"""Words for a pin: which image every start uses."""

from __future__ import annotations

from installer.domain.plan import Plan
from installer.text.voice import Voice


def state(plan: Plan, t: Voice) -> str:
    """Say which image the next start uses."""
    if plan.pinned:
        return t.gettext(
            "Pinned: every start uses exactly this image until you update it: {image}", image=plan.image.by_digest
        )
    return t.gettext(
        "Not pinned: {tag} decides which image it is. The one that is here stays until the tag is pulled anew.",
        tag=plan.image.by_tag,
    )


def meaning(t: Voice) -> str:
    """Say what it means to pin."""
    return t.gettext(
        "Pinned, the server always starts from exactly this image, also when its publisher moves the tag. It "
        "changes only when you update. Not pinned, the tag decides, and it may be another image tomorrow."
    )

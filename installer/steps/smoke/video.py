"""Check of reading a video: the clip that comes with Slipway, and the number of frames that a request asks for."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterator

from installer import resources
from installer.domain import answers
from installer.domain.video import FEWEST_FRAMES, Shape, most_frames, shapes
from installer.resources import PROOF_CLIP
from installer.steps.ports import ServerAnswer
from installer.steps.smoke.asked import SHOWN, Asked, Failed, NotApplicable, content, figures
from installer.steps.smoke.picture import MORE_TOKENS, TOKENS

PROMPT = (
    "Which colour and which shape has the figure that moves in this video? Answer in two words, such as: blue circle."
)
COLOUR, SHAPE = "red", "square"
FEW, MANY = 4, 8


def video(asked: Asked) -> str:
    """Show a red square that moves, then ask for 4 and for 8 frames: only the number of tokens proves their reading."""
    if asked.target.video is False:
        raise NotApplicable("no_videos")
    if asked.context is not None and most_frames(asked.context) < FEWEST_FRAMES:
        raise NotApplicable("context_without_video")
    with (asked.evidence.clip or _inline)(asked) as url:
        _recognised(asked, url)
        return _frames_counted(asked, url)


def _recognised(asked: Asked, url: str) -> None:
    answer = asked.chat(_shown(url), TOKENS if asked.target.thinking_off else MORE_TOKENS)
    if answer.status not in (0, 200) and asked.target.video is None:
        raise NotApplicable("videos_refused")
    said = content(asked.good(answer))
    if not all(re.search(rf"\b{word}\b", said, re.IGNORECASE) for word in (COLOUR, SHAPE)):
        if asked.target.video is None:
            raise NotApplicable("video_unseen")
        raise Failed(f"expected '{COLOUR} {SHAPE}', got {said[:SHOWN]!r}")


def _frames_counted(asked: Asked, url: str) -> str:
    """Return the tokens of the first way of asking that the server heeds."""
    if asked.target.chooses_frames is False:
        return f"{COLOUR} {SHAPE}"
    seen: list[str] = []
    for (name, few), (_, many) in zip(shapes(FEW), shapes(MANY), strict=True):
        answers_to = [_asked_for(asked, url, shape) for shape in (few, many)]
        counted = [_counted(answer) for answer in answers_to]
        if all(counted) and counted[0] < counted[1]:
            return figures(few=counted[0], many=counted[1])
        seen.append(f"{name}: {' and '.join(_told(answer) for answer in answers_to)}")
    if asked.target.chooses_frames is None:
        return f"{COLOUR} {SHAPE}"
    raise Failed(f"prompt_tokens for {FEW} and {MANY} frames: {'; '.join(seen)}")


def _asked_for(asked: Asked, url: str, shape: Shape) -> ServerAnswer:
    return asked.chat(_shown(url), 1, **shape)


def _counted(answer: ServerAnswer) -> int:
    """Return how many tokens the prompt had; 0 where that was not told."""
    usage = answers.document_of(answer.body).get("usage") if answer.status == 200 else None
    counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return counted if isinstance(counted, int) else 0


def _told(answer: ServerAnswer) -> str:
    return str(_counted(answer)) if answer.status == 200 else f"HTTP {answer.status}"


def _shown(url: str) -> list[dict[str, object]]:
    return [{"type": "video_url", "video_url": {"url": url}}, {"type": "text", "text": PROMPT}]


@contextlib.contextmanager
def _inline(_: Asked) -> Iterator[str]:
    """Yield the clip as a data URI: a server that is not ours need not reach this computer."""
    yield "data:video/mp4;base64," + base64.b64encode(resources.file("assets", *PROOF_CLIP).read_bytes()).decode()

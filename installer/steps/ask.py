"""Asking the server that was installed: one question, a picture if the profile reads any, an answer that streams."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator

from installer.domain import compose
from installer.domain import video as videos
from installer.domain.plan import Plan
from installer.domain.problems import (
    AnswerRefused,
    AnyProblem,
    BadChoice,
    BeyondContext,
    InstallerError,
    PicturesNotRead,
    ServerNotRunning,
    ServerStarting,
    VideosNotRead,
    VideoTooLongForContext,
)
from installer.domain.video import Sampling
from installer.steps import showing
from installer.steps.cancel import Cancel
from installer.steps.home import StackHome, read_bytes
from installer.steps.lifecycle import STOPPED_BY_US
from installer.steps.listening import Answer, heard
from installer.steps.ports import Clip, Delta, Picture, Ports
from installer.steps.smoke.asked import COMPLETIONS, FIRST_ANSWER_SECONDS, QUICK_SECONDS
from installer.steps.smoke.limit import names_the_limit

PIXELS_A_TOKEN = 28 * 28
"""Of the models here those with the smallest patches make one token of so many pixels (Qwen2.5-VL's processor)."""

MOST_PIXELS = 4096 * 4096
"""Above this Qwen3-VL's own processor makes a picture smaller (`longest_edge` in its preprocessor_config.json)."""

__all__ = ["COMPLETIONS", "Answer", "ask", "body", "most_pixels", "picture", "sampling", "video"]


def picture(path: str, home: StackHome, ports: Ports) -> Picture:
    """Read a picture for the installed profile, not larger than its server takes.

    Raises InstallerError(NotInstalled, PicturesNotRead, FileUnreadable, PictureUnreadable).
    """
    plan = home.installed()
    if not plan.settings.reads_media:
        raise InstallerError(PicturesNotRead(profile=plan.profile))
    return ports.pictures.read(path, most_pixels(plan.settings.context))


def most_pixels(context: int) -> int:
    """Return how large a picture may be to leave half of a context, in tokens, to question and answer."""
    return min(MOST_PIXELS, context // 2 * PIXELS_A_TOKEN)


def ask(
    question: str,
    home: StackHome,
    ports: Ports,
    cancel: Cancel,
    told: Callable[[Delta], None],
    shown: Picture | None = None,
    clip: Clip | None = None,
    remark: Callable[[AnyProblem], object] = lambda _: None,
) -> Answer:
    """Ask and tell each piece as it comes. `cancel` ends it at once with Cancelled.

    `remark` is told of what is odd about the way of a video and stops nothing.
    Raises InstallerError(NotInstalled, BadChoice, ServerNotRunning, ServerStarting, BeyondContext, NotAnswering,
    AnswerRefused, AnswerBroken), and what keeps Docker from telling how a silent server does.
    """
    plan = home.installed()
    if plan.task == "image":
        raise InstallerError(BadChoice(field="stack", value=plan.stack, limit="chat"))
    if ports.server.get(plan.base, "/health", QUICK_SECONDS, cancel=cancel).status != 200:
        raise InstallerError(_why_silent(plan, ports))
    with contextlib.ExitStack() as held:
        url = held.enter_context(_offered(clip, plan, ports, cancel, remark)) if clip else None
        request = body(plan, question, shown, url) | (_frames(plan, clip) if clip else {})
        pieces = ports.server.stream(plan.base, COMPLETIONS, request, FIRST_ANSWER_SECONDS, _key(plan, home), cancel)
        try:
            return heard(pieces, ports.clock, told)
        except InstallerError as error:
            raise InstallerError(_explained(error.problem, plan)) from error


@contextlib.contextmanager
def video(named: str, home: StackHome, ports: Ports, cancel: Cancel) -> Iterator[Clip]:
    """Yield a video by its file or its address, which Slipway fetches itself: the server asks no stranger.

    Raises InstallerError(NotInstalled, VideosNotRead, VideoTooLongForContext), and the problems of `Media`.
    """
    plan = home.installed()
    if not plan.takes_video:
        raise InstallerError(VideosNotRead(profile=plan.profile))
    frames = videos.most_frames(plan.settings.context)
    if frames < videos.FEWEST_FRAMES:
        raise InstallerError(VideoTooLongForContext(context=plan.settings.context, frames=frames))
    if "://" in named:
        with ports.media.fetched(named, cancel) as clip:
            yield clip
    else:
        yield ports.media.read(named)


def sampling(clip: Clip, plan: Plan) -> Sampling | None:
    """Return how many frames of a video are asked for; None where the server alone decides."""
    flags = tuple(flag.flag for flag in plan.arguments)
    if not videos.may_choose_frames(plan.settings.release, flags):
        return None
    return videos.sampling(clip.seconds, plan.settings.context)


def _frames(plan: Plan, clip: Clip) -> dict[str, object]:
    """Return what a request says of the frames: only how many are decoded, which every processor follows."""
    asked = sampling(clip, plan)
    return dict(videos.shapes(asked.frames))["decoder"] if asked else {}


def _offered(
    clip: Clip, plan: Plan, ports: Ports, cancel: Cancel, remark: Callable[[AnyProblem], object]
) -> contextlib.AbstractContextManager[str]:
    running = next(iter(ports.engine.containers(plan.project)), None)
    return showing.shown(clip, running.id if running else "", ports.media, cancel, remark)


def body(plan: Plan, question: str, shown: Picture | None, clip_url: str | None = None) -> dict[str, object]:
    """Return the request; a picture goes as a data URI, so that the server fetches nothing."""
    parts: list[dict[str, object]] = []
    if shown is not None:
        url = "data:image/png;base64," + base64.b64encode(shown.png).decode()
        parts.append({"type": "image_url", "image_url": {"url": url}})
    if clip_url is not None:
        parts.append({"type": "video_url", "video_url": {"url": clip_url}})
    content: object = [*parts, {"type": "text", "text": question}] if parts else question
    return {
        "model": plan.profile,
        "messages": [{"role": "user", "content": content}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _why_silent(plan: Plan, ports: Ports) -> AnyProblem:
    """Tell a server that was stopped from one that still loads and one that ended by itself."""
    container = next(iter(ports.engine.containers(plan.project)), None)
    if container is not None and container.status == "running":
        return ServerStarting(stack=plan.stack, port=plan.port)
    told_to = container is None or (container.exit_code in STOPPED_BY_US and not container.out_of_memory)
    code = None if container is None or told_to else container.exit_code
    return ServerNotRunning(stack=plan.stack, port=plan.port, ended_with=code)


def _key(plan: Plan, home: StackHome) -> str | None:
    text = read_bytes(home.path(compose.env_name(plan.stack)))
    return compose.key_from_env(text.decode(errors="replace")) if text else None


def _explained(problem: AnyProblem, plan: Plan) -> AnyProblem:
    """Turn a refusal that names this very context into what the limit means; vLLM words it anew from time to time."""
    limit = plan.settings.context
    if not isinstance(problem, AnswerRefused) or not names_the_limit(problem.status, problem.detail, limit):
        return problem
    return BeyondContext(
        limit_tokens=limit,
        native_tokens=plan.native_context,
        reads_media=plan.settings.reads_media,
        graphics_card=plan.gpu is not None,
    )

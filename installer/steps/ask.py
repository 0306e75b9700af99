"""Asking the server that was installed: one question, a picture if the profile reads any, an answer that streams."""

from __future__ import annotations

import base64
from collections.abc import Callable

from installer.domain import compose
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
)
from installer.steps.cancel import Cancel
from installer.steps.home import StackHome, read_bytes
from installer.steps.lifecycle import STOPPED_BY_US
from installer.steps.listening import Answer, heard
from installer.steps.ports import Delta, Picture, Ports
from installer.steps.smoke.asked import COMPLETIONS, FIRST_ANSWER_SECONDS, QUICK_SECONDS
from installer.steps.smoke.limit import names_the_limit

PIXELS_A_TOKEN = 28 * 28
"""Of the models here those with the smallest patches make one token of so many pixels (Qwen2.5-VL's processor)."""

MOST_PIXELS = 4096 * 4096
"""Above this Qwen3-VL's own processor makes a picture smaller (`longest_edge` in its preprocessor_config.json)."""

__all__ = ["COMPLETIONS", "Answer", "ask", "body", "most_pixels", "picture"]


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
) -> Answer:
    """Ask and tell each piece as it comes. `cancel` ends it at once with Cancelled.

    Raises InstallerError(NotInstalled, BadChoice, ServerNotRunning, ServerStarting, BeyondContext, NotAnswering,
    AnswerRefused, AnswerBroken), and what keeps Docker from telling how a silent server does.
    """
    plan = home.installed()
    if plan.task == "image":
        raise InstallerError(BadChoice(field="stack", value=plan.stack, limit="chat"))
    if ports.server.get(plan.base, "/health", QUICK_SECONDS, cancel=cancel).status != 200:
        raise InstallerError(_why_silent(plan, ports))
    pieces = ports.server.stream(
        plan.base, COMPLETIONS, body(plan, question, shown), FIRST_ANSWER_SECONDS, _key(plan, home), cancel
    )
    try:
        return heard(pieces, ports.clock, told)
    except InstallerError as error:
        raise InstallerError(_explained(error.problem, plan)) from error


def body(plan: Plan, question: str, shown: Picture | None) -> dict[str, object]:
    """Return the request; a picture goes as a data URI, so that the server fetches nothing."""
    content: object = question
    if shown is not None:
        url = "data:image/png;base64," + base64.b64encode(shown.png).decode()
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": question}]
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

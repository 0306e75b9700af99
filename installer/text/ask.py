"""Words for asking the server: what cannot be asked, what came instead of an answer, and an answer's figures."""

from __future__ import annotations

from installer.domain import problems as p
from installer.steps.ask import Answer
from installer.steps.ports import Picture
from installer.text import context
from installer.text.numbers import NBSP
from installer.text.voice import ProblemText, Voice


def server_not_running(problem: p.ServerNotRunning, t: Voice) -> ProblemText:
    """Return the words for a server that is installed and was stopped, or ended by itself."""
    if problem.ended_with is not None:
        return ProblemText(
            t.gettext("Server ended by itself"),
            t.gettext("The server stopped with the exit code {code}.", code=problem.ended_with),
            t.gettext("Look at its log (slipway logs), then start it with the command shown."),
        )
    return ProblemText(
        t.gettext("Server is not running"),
        t.gettext("The server was stopped: nothing answers at 127.0.0.1:{port}.", port=problem.port),
        t.gettext("Start it with the command shown and ask again. A start can take minutes."),
    )


def server_starting(problem: p.ServerStarting, t: Voice) -> ProblemText:
    """Return the words for a server that does not answer yet."""
    return ProblemText(
        t.gettext("Server is still starting"),
        t.gettext("The server at 127.0.0.1:{port} is still loading the model.", port=problem.port),
        t.gettext("Ask again in some minutes; the first start takes longest. The command shown says when it serves."),
    )


def pictures_not_read(problem: p.PicturesNotRead, t: Voice) -> ProblemText:
    """Return the words for a picture that nobody will look at."""
    return ProblemText(
        t.gettext("Profile reads no pictures"),
        t.gettext("The profile {profile} takes text only.", profile=t.quote(problem.profile)),
        t.gettext("Ask without the picture, or install a profile that reads pictures."),
    )


def picture_unreadable(problem: p.PictureUnreadable, t: Voice) -> ProblemText:
    """Return the words for a file that is no picture for us."""
    file = t.quote(problem.path)
    if problem.state == "too_large":
        return ProblemText(
            t.gettext("Picture too large"),
            t.gettext("The picture {file} has more pixels than Slipway opens.", file=file),
            t.gettext("Make it smaller with a picture program and try again."),
        )
    remedy = t.gettext("Open it with a picture program, save it as PNG or JPEG, and try again.")
    if problem.state == "damaged":
        return ProblemText(
            t.gettext("Picture damaged"),
            t.gettext("The picture {file} cannot be read to its end.", file=file),
            remedy,
        )
    return ProblemText(
        t.gettext("Not a picture"),
        t.gettext(
            "The file {file} is not a picture of a kind that Slipway opens (PNG, JPEG, WebP, GIF, BMP, TIFF).",
            file=file,
        ),
        remedy,
    )


def beyond_context(problem: p.BeyondContext, t: Voice) -> ProblemText:
    """Return the words for a request that is too long: those of the context limit, with its cause."""
    cause = context.cause(problem.limit_tokens, problem.native_tokens, t, graphics_card=problem.graphics_card)
    return ProblemText(
        t.gettext("Request longer than the context"),
        f"{cause} {context.shared(t, reads_media=problem.reads_media)}",
        context.helps(t, reads_media=problem.reads_media),
    )


def answer_refused(problem: p.AnswerRefused, t: Voice) -> ProblemText:
    """Return the words for an error of the server's own."""
    if problem.status in (401, 403):
        return ProblemText(
            t.gettext("API key not accepted"),
            t.gettext(
                "The server does not accept the API key in Slipway's file (HTTP {status}).", status=problem.status
            ),
            t.gettext("Stop the server and start it again, so that it takes the key from the file."),
        )
    return ProblemText(
        t.gettext("Request refused"),
        t.gettext("The server refused the request (HTTP {status}).", status=problem.status),
        t.gettext("Look at the technical details and at the server's log, then ask again."),
    )


def answer_broken(t: Voice) -> ProblemText:
    """Return the words for an answer without an end."""
    return ProblemText(
        t.gettext("Answer broke off"),
        t.gettext("The server's answer ended before its end."),
        t.gettext("Ask again. If it happens again, look at the server's log."),
    )


def figures(answer: Answer, t: Voice) -> str:
    """Say in one line what was measured; what the server did not tell is left out, "" where it told nothing."""
    said: list[str] = []
    if answer.first_token_seconds is not None:
        wait = f"{t.number(1000 * answer.first_token_seconds)}{NBSP}ms"
        said.append(t.gettext("First token after {time}", time=wait))
    if answer.generated_tokens is not None:
        said.append(t.tokens(answer.generated_tokens))
    if answer.tokens_per_second is not None:
        said.append(t.gettext("{number} tokens per second", number=t.number(answer.tokens_per_second, 1)))
    return ", ".join(said)


def ended(answer: Answer, t: Voice) -> str:
    """Say that an answer did not end by itself; "" where it did."""
    return t.gettext("The answer reached the end of the context and was cut off.") if answer.finish == "length" else ""


def scaled(picture: Picture, t: Voice) -> str:
    """Say that a picture is sent smaller than it is; "" where it is not."""
    if picture.original is None:
        return ""
    return t.gettext(
        "The picture has {original} pixels and is sent with {sent}: it shares the context with question and answer.",
        original=_size(*picture.original, t),
        sent=_size(picture.width, picture.height, t),
    )


def _size(width: int, height: int, t: Voice) -> str:
    return f"{t.number(width)}{NBSP}×{NBSP}{t.number(height)}"

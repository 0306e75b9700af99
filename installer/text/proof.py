"""Words for what a proof found: answers that are none, pictures that are none, media that cannot be fetched."""

from __future__ import annotations

from installer.domain import problems as p
from installer.text.voice import ProblemText, Voice


def not_ready_yet(problem: p.NotReadyYet, t: Voice) -> ProblemText:
    """Return the words for a server that still loads."""
    return ProblemText(
        t.gettext("Server still loading"),
        t.gettext("The server answers, but is not ready yet (HTTP {status}).", status=problem.status),
        t.gettext("Wait some minutes and prove it again. A first start can take half an hour."),
    )


def reasoning_only(problem: p.ReasoningOnly, t: Voice) -> ProblemText:
    """Return the words for an answer that is all thoughts."""
    return ProblemText(
        t.gettext("Answer only among the thoughts"),
        t.gettext(
            "The server works, but puts the whole answer among the model's thoughts ({field}) and leaves the answer "
            "itself empty.",
            field=t.quote(problem.field),
        ),
        t.gettext(
            "Programs that read only the answer see nothing. Choose another profile, or turn thinking off in the "
            "request (enable_thinking: false)."
        ),
    )


def reasoning_in_answer(problem: p.ReasoningInAnswer, t: Voice) -> ProblemText:
    """Return the words for thoughts that stand in the answer."""
    return ProblemText(
        t.gettext("Thoughts in the answer"),
        t.gettext(
            "The server works, but the model's thoughts stand in its answer. It begins with {begins}.",
            begins=t.quote(problem.begins),
        ),
        t.gettext("If that disturbs, turn thinking off in the request (enable_thinking: false)."),
    )


def answer_cut_short(problem: p.AnswerCutShort, t: Voice) -> ProblemText:
    """Return the words for an answer that ended before its first word."""
    sentence = t.gettext("The model was still thinking when its limit was reached; no answer came.")
    if problem.tokens is not None:
        sentence = t.gettext(
            "The model was still thinking after {tokens}, its limit; no answer came.", tokens=t.tokens(problem.tokens)
        )
    return ProblemText(
        t.gettext("Answer cut short"),
        sentence,
        t.gettext("Slipway asks again with more room. In your own requests, raise max_tokens."),
    )


def chat_template_missing(t: Voice) -> ProblemText:
    """Return the words for a model without a form for conversations."""
    return ProblemText(
        t.gettext("Model has no chat template"),
        t.gettext("This model brings no template for conversations, so that the chat interface refuses requests."),
        t.gettext(
            "Slipway proves it with plain text. To chat, choose a model with “Instruct” or “it” in its name, or give "
            "the server a template (--chat-template)."
        ),
    )


def slow_kernel(problem: p.SlowKernel, t: Voice) -> ProblemText:
    """Return the words for weights that are unpacked before they are computed with."""
    return ProblemText(
        t.gettext("Slower than it could be"),
        t.gettext(
            "The server works, but does not compute with NVFP4 itself: it unpacks the weights first (kernel {kernel}).",
            kernel=problem.kernel,
        ),
        t.gettext("The answers are right. On a card with NVFP4 (Blackwell), a newer release of vLLM makes it faster."),
    )


def media_not_fetched(problem: p.MediaNotFetched, t: Voice) -> ProblemText:
    """Return the words for a picture that the server could not fetch."""
    sentence = t.gettext("The server could not fetch {url}.", url=t.quote(problem.url))
    if problem.status is not None:
        sentence = t.gettext(
            "The server could not fetch {url} (HTTP {status}).", url=t.quote(problem.url), status=problem.status
        )
    return ProblemText(
        t.gettext("Media not publicly available"),
        sentence,
        t.gettext(
            "This says nothing of the model. Send the picture itself in the request (a data URL), as Slipway's own "
            "proof does."
        ),
    )


def media_refused(problem: p.MediaRefused, t: Voice) -> ProblemText:
    """Return the words for media that the server does not take."""
    if problem.limit is not None:
        sentence = t.ngettext(
            "The server takes {count} picture or video of a kind per request.",
            "The server takes {count} pictures or videos of a kind per request.",
            problem.limit,
        )
    else:
        sentence = t.gettext("The server does not take the media in this request as they are.")
    return ProblemText(
        t.gettext("Media refused"),
        sentence,
        t.gettext(
            "Send fewer, in a usual format (PNG, JPEG, MP4), and leave settings for them to the server. The technical "
            "details show its words."
        ),
    )


def video_frames_missing(problem: p.VideoFramesMissing, t: Voice) -> ProblemText:
    """Return the words for a video that is shorter than it says."""
    return ProblemText(
        t.gettext("Video is shorter than it says"),
        t.gettext(
            "The video should have {expected} frames; {loaded} could be read.",
            expected=t.number(problem.expected),
            loaded=t.number(problem.loaded),
        ),
        t.gettext(
            "This is a matter of this file: convert it anew, or let the server choose the frames. The model works."
        ),
    )


def image_unusable(problem: p.ImageUnusable, t: Voice) -> ProblemText:
    """Return the words for a picture that is none, by what is wrong with it."""
    flaws = {
        "black": t.gettext("The picture is black."),
        "one_colour": t.gettext("The picture has one colour only."),
        "transparent": t.gettext("The picture is almost wholly transparent."),
        "noise": t.gettext("The picture is nothing but noise."),
        "wrong_size": t.gettext("The picture has another size than was asked for."),
        "unlike": t.gettext("The picture is not the one that this request makes elsewhere."),
    }
    sentence = flaws.get(problem.flaw, t.gettext("The picture cannot be used."))
    figures = _figures(problem, t)
    return ProblemText(
        t.gettext("Picture is none"),
        f"{sentence} {figures}".strip(),
        t.gettext(
            "The server computes wrongly on this card, most often for its number format (FP16 or FP8 in the wrong "
            "place). Choose another profile; waiting or trying again changes nothing."
        ),
    )


def _figures(problem: p.ImageUnusable, t: Voice) -> str:
    """Say what was measured; nothing where nothing was."""
    parts = []
    if problem.width and problem.height:
        size = f"{problem.width} × {problem.height}"
        parts.append(t.gettext("size {size}", size=size))
    if problem.mean is not None:
        parts.append(t.gettext("brightness {mean}", mean=t.number(problem.mean, 1)))
    if problem.deviation is not None:
        parts.append(t.gettext("deviation {deviation}", deviation=t.number(problem.deviation, 1)))
    if problem.opaque_share is not None:
        parts.append(t.gettext("opaque {share}", share=t.percent(problem.opaque_share)))
    return t.gettext("Measured: {figures}.", figures=", ".join(parts)) if parts else ""

"""Words for the context limit of a profile: where it comes from, what shares it, and what helps."""

from __future__ import annotations

from installer.text.voice import Voice


def context_copy(
    limit_tokens: int, native_tokens: int, t: Voice, *, reads_media: bool = True, graphics_card: bool = True
) -> str:
    """Say what the context limit of the chosen profile means, where it comes from, and what helps."""
    why = cause(limit_tokens, native_tokens, t, graphics_card=graphics_card)
    beyond = t.gettext("A request that is longer is refused (HTTP 400).")
    return f"{why} {shared(t, reads_media=reads_media)} {beyond} {helps(t, reads_media=reads_media)}"


def cause(limit_tokens: int, native_tokens: int, t: Voice, *, graphics_card: bool) -> str:
    """Say how much a request may be, beside what the model itself can take, and what the limit is due to."""
    limit, native = t.tokens(limit_tokens), t.tokens(native_tokens)
    if limit_tokens >= native_tokens:
        return t.gettext("This profile takes up to {limit} per request, as many as the model can.", limit=limit)
    if graphics_card:
        return t.gettext(
            "This profile takes up to {limit} per request. The model itself can take {native}; the limit is due to the "
            "memory of this graphics card and to the profile's settings, not to the model.",
            limit=limit,
            native=native,
        )
    return t.gettext(
        "This profile takes up to {limit} per request. The model itself can take {native}; the limit is due to "
        "main memory and to the profile's settings, not to the model.",
        limit=limit,
        native=native,
    )


def shared(t: Voice, *, reads_media: bool) -> str:
    """Say what the limit is shared by."""
    if reads_media:
        return t.gettext("Input, answer, images and video frames share it.")
    return t.gettext("Input and answer share it.")


def helps(t: Voice, *, reads_media: bool) -> str:
    """Say what to do about a request that is too long."""
    if reads_media:
        return t.gettext("What helps: a shorter input, fewer video frames, or another profile.")
    return t.gettext("What helps: a shorter input or another profile.")

"""Words for videos: what is none, what cannot be fetched, and how many frames of one are read."""

from __future__ import annotations

from installer.domain import problems as p
from installer.domain.video import Sampling
from installer.text.voice import ProblemText, Voice


def videos_not_read(problem: p.VideosNotRead, t: Voice) -> ProblemText:
    """Return the words for a video that nobody will look at."""
    return ProblemText(
        t.gettext("Profile reads no videos"),
        t.gettext("The profile {profile} takes no videos.", profile=t.quote(problem.profile)),
        t.gettext("Ask without the video, or install a profile that reads videos."),
    )


def video_unreadable(problem: p.VideoUnreadable, t: Voice) -> ProblemText:
    """Return the words for a file that is no video for us."""
    file = t.quote(problem.path)
    if problem.state == "too_large":
        return ProblemText(
            t.gettext("Video too large"),
            t.gettext(
                "The video {file} is larger than {limit}; the server takes no more.",
                file=file,
                limit=t.gb(problem.limit_bytes),
            ),
            t.gettext("Cut it or convert it to a smaller size, then try again."),
        )
    return ProblemText(
        t.gettext("Not a video"),
        t.gettext("The file {file} is not a video of a kind that is read (MP4, MOV, WebM, MKV, AVI).", file=file),
        t.gettext("Convert it to MP4 and try again."),
    )


def video_too_long_for_context(problem: p.VideoTooLongForContext, t: Voice) -> ProblemText:
    """Return the words for a context without room for a video."""
    return ProblemText(
        t.gettext("Context too small for a video"),
        t.ngettext(
            "In the context of {context} there is room for {count} frame of a video; a video needs more.",
            "In the context of {context} there is room for {count} frames of a video; a video needs more.",
            problem.frames,
            context=t.tokens(problem.context),
        ),
        t.gettext("Install a profile with a larger context, or send single pictures."),
    )


def url_not_public(problem: p.UrlNotPublic, t: Voice) -> ProblemText:
    """Return the words for an address that wants a sign-in."""
    return ProblemText(
        t.gettext("This URL is not publicly accessible"),
        t.gettext(
            "The server at {url} refuses access (HTTP {status}).", url=t.quote(problem.url), status=problem.status
        ),
        t.gettext("Download the video in your browser and upload the file instead of the URL."),
    )


def url_not_found(problem: p.UrlNotFound, t: Voice) -> ProblemText:
    """Return the words for an address without anything."""
    return ProblemText(
        t.gettext("Nothing at this URL"),
        t.gettext("There is no file at {url} (HTTP {status}).", url=t.quote(problem.url), status=problem.status),
        t.gettext("Check the URL, or upload the file instead."),
    )


def url_timed_out(problem: p.UrlTimedOut, t: Voice) -> ProblemText:
    """Return the words for an address that gives nothing."""
    return ProblemText(
        t.gettext("URL does not answer in time"),
        t.gettext("Nothing came from {url} for {time}.", url=t.quote(problem.url), time=t.duration(problem.seconds)),
        t.gettext("Try again later, or upload the file instead of the URL."),
    )


def url_host_unknown(problem: p.UrlHostUnknown, t: Voice) -> ProblemText:
    """Return the words for a name that leads nowhere."""
    return ProblemText(
        t.gettext("Address of the URL unknown"),
        t.gettext("No computer is known by the name {host}.", host=t.quote(problem.host)),
        t.gettext("Check how the URL is written, and the internet connection."),
    )


def url_too_large(problem: p.UrlTooLarge, t: Voice) -> ProblemText:
    """Return the words for a file that no server takes."""
    if problem.size_bytes is not None:
        sentence = t.gettext(
            "The file at {url} has {size}; the server takes {limit} at most.",
            url=t.quote(problem.url),
            size=t.gb(problem.size_bytes),
            limit=t.gb(problem.limit_bytes),
        )
    else:
        sentence = t.gettext(
            "The file at {url} is larger than {limit}; the server takes no more.",
            url=t.quote(problem.url),
            limit=t.gb(problem.limit_bytes),
        )
    return ProblemText(
        t.gettext("Video at this URL too large"), sentence, t.gettext("Choose a shorter video, or cut this one.")
    )


def url_not_video(problem: p.UrlNotVideo, t: Voice) -> ProblemText:
    """Return the words for an address of something else."""
    sentence = t.gettext("What is at {url} is not a video file.", url=t.quote(problem.url))
    if problem.found:
        sentence = t.gettext(
            "What is at {url} is not a video file, but {found}.", url=t.quote(problem.url), found=t.quote(problem.found)
        )
    return ProblemText(
        t.gettext("No video at this URL"),
        sentence,
        t.gettext("The page that shows a video is not the video itself: download the video and upload the file."),
    )


def host_not_reached(problem: p.HostNotReached, t: Voice) -> ProblemText:
    """Return the words for a container that does not get to this computer."""
    if not problem.tried:
        sentence = t.gettext("Whether the server's container reaches this computer could not be tried from inside it.")
    elif problem.address:
        sentence = t.gettext(
            "The server's container does not reach this computer at {address}: a firewall stands in between.",
            address=t.quote(problem.address),
        )
    else:
        sentence = t.gettext("This Docker does not let the server's container reach this computer.")
    return ProblemText(
        t.gettext("Container does not reach this computer"),
        sentence,
        t.gettext(
            "The video goes inside the request instead, which works for small files. For large ones, allow connections "
            "from Docker's network in the firewall."
        ),
    )


def sampled(sampling: Sampling, t: Voice) -> str:
    """Say that the context has room for fewer frames than a video of this length deserves; "" where it has."""
    if not sampling.cut:
        return ""
    return t.ngettext(
        "Of the video {count} frame is read instead of {wanted}: the context has no room for more.",
        "Of the video {count} frames are read instead of {wanted}: the context has no room for more.",
        sampling.frames,
        wanted=t.number(sampling.wanted),
    )

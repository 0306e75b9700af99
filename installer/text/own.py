"""Words for disks, for the proof, and for Slipway itself."""

from __future__ import annotations

from installer.domain import problems as p
from installer.text import names
from installer.text.voice import ProblemText, Voice


def disk_full(problem: p.DiskFull, t: Voice) -> ProblemText:
    """Return the words for a disk that has no room; Docker's own disk is often another than the one a person sees."""
    place = t.gettext("Docker's disk") if problem.engine else t.gettext("The disk")
    if problem.where:
        place = f"{place} ({problem.where})"
    if problem.needed_bytes is None or problem.free_bytes is None:
        sentence = t.gettext("{place} is full.", place=place)
    else:
        sentence = t.gettext(
            "{place} has {free} free. {needed} are needed, so {short} are missing.",
            place=place,
            free=t.gb(problem.free_bytes),
            needed=t.gb(problem.needed_bytes),
            short=t.gb(max(0, problem.needed_bytes - problem.free_bytes)),
        )
    if problem.engine:
        remedy = t.gettext(
            "Remove images that you no longer need (docker image ls shows them). In Docker Desktop you can also make "
            "the disk larger in the settings under Resources."
        )
    else:
        remedy = t.gettext("Make room, or choose another folder for the models. What is loaded already stays.")
    return ProblemText(t.gettext("Not enough disk space"), sentence, remedy)


def not_writable(problem: p.NotWritable, t: Voice) -> ProblemText:
    """Return the words for a place where this user may not write."""
    return ProblemText(
        t.gettext("No right to write"),
        t.gettext("{path} cannot be written with your user account.", path=t.quote(problem.path)),
        t.gettext("Choose another folder, or give your account the right to write there."),
    )


def symlink_refused(problem: p.SymlinkRefused, t: Voice) -> ProblemText:
    """Return the words for links that Windows does not allow."""
    return ProblemText(
        t.gettext("No links in this folder"),
        t.gettext("Windows does not let your user account make symbolic links: {path}.", path=t.quote(problem.path)),
        t.gettext(
            "Slipway downloads without links. For other programs, set HF_HUB_DISABLE_SYMLINKS=1; neither "
            "administrator rights nor the developer mode are needed."
        ),
    )


def slow_disk(problem: p.SlowDisk, t: Voice) -> ProblemText:
    """Return the words for a folder that is read slowly."""
    sentence = t.gettext("{path} lies on the disk of Windows and is read slowly from WSL.", path=t.quote(problem.path))
    if problem.bytes_per_second is not None:
        sentence = t.gettext(
            "{path} lies on the disk of Windows and is read slowly from WSL ({speed} per second).",
            path=t.quote(problem.path),
            speed=t.gb(problem.bytes_per_second),
        )
    return ProblemText(
        t.gettext("Slow folder for weights"),
        sentence,
        t.gettext("With Docker Desktop, Slipway keeps the weights in a volume of Docker, which is fast."),
    )


def smoke_failed(problem: p.SmokeFailed, t: Voice) -> ProblemText:
    """Return the words for a server that does not do what it is there for."""
    failed = [names.check(name, t) for name in problem.checks]
    sentence = t.gettext("The server is running, but the proof failed.")
    if failed:
        sentence = t.ngettext(
            "The server is running, but {count} check failed: {checks}.",
            "The server is running, but {count} checks failed: {checks}.",
            len(failed),
            checks=t.listed(failed),
        )
    return ProblemText(
        t.gettext("Proof failed"),
        sentence,
        t.gettext("Prove it again. If it fails again, look at the technical details and the server's log."),
    )


def not_answering(problem: p.NotAnswering, t: Voice) -> ProblemText:
    """Return the words for a server that calls itself healthy and answers nothing."""
    return ProblemText(
        t.gettext("Ready, but no answer"),
        t.gettext(
            "The server says that it is ready, but a request got no answer for {time}.",
            time=t.duration(problem.seconds),
        ),
        t.gettext(
            "Stop the server and start it again. If it happens again, choose another profile, under WSL2 one without "
            "weights in main memory."
        ),
    )


def interrupted(t: Voice) -> ProblemText:
    """Return the words for a run that the person stopped."""
    return ProblemText(
        t.gettext("Cancelled"),
        t.gettext("You have stopped the run."),
        t.gettext("Start again whenever you like. What is loaded already stays."),
    )


def bug(problem: p.Bug, t: Voice) -> ProblemText:
    """Return the words for a fault of Slipway's own."""
    return ProblemText(
        t.gettext("Fault in Slipway"),
        t.gettext("Slipway has made a mistake ({error}). It is not your doing.", error=problem.error),
        t.gettext("Please report it with the technical details. Then try again."),
    )

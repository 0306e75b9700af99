"""Words for what was asked for and cannot be taken as it is."""

from __future__ import annotations

import re

from installer.domain import problems as p
from installer.text.names import choice_name, value_of
from installer.text.voice import ProblemText, Voice

SECRET_FIELDS = ("api_key", "hf_token")
"""A value of one of these is never shown, whatever the Problem holds."""


def bad_arguments(problem: p.BadArguments, t: Voice) -> ProblemText:
    """Return the words for a command line that cannot be read: the flags are named, the parser's English is not."""
    flags = list(dict.fromkeys(re.findall(r"(?<![\w-])--?[a-z][\w-]*", problem.detail)))
    sentence = t.gettext("The command line cannot be read.")
    if flags:
        sentence = t.gettext("The command line cannot be read. It is about: {flags}.", flags=t.listed(flags))
    return ProblemText(
        t.gettext("Command not understood"),
        sentence,
        t.gettext("Correct the command. With --help it shows what is possible."),
    )


def malformed_file(problem: p.MalformedFile, t: Voice) -> ProblemText:
    """Return the words for a file with an error inside."""
    return ProblemText(
        t.gettext("Error in a file"),
        t.gettext(
            "{file} has an error at {where}: {reason}.",
            file=_file(problem.path, t),
            where=t.quote(problem.where),
            reason=problem.reason.rstrip(".") or t.gettext("unknown"),
        ),
        t.gettext("Correct this place and try again. If Slipway wrote the file itself, rename it and install again."),
    )


def file_unreadable(problem: p.FileUnreadable, t: Voice) -> ProblemText:
    """Return the words for a file that cannot be opened."""
    return ProblemText(
        t.gettext("File cannot be opened"),
        t.gettext("{file} cannot be opened.", file=_file(problem.path, t)),
        t.gettext("Check that the file is there and that your user account may read it."),
    )


def _file(path: str, t: Voice) -> str:
    """Return a file to begin a sentence with; `-` is how a person names the standard input."""
    if path in ("", "-"):
        return t.gettext("The standard input")
    return t.gettext("The file {path}", path=t.quote(path))


def unknown_name(problem: p.UnknownName, t: Voice) -> ProblemText:
    """Return the words for a name that nothing has."""
    # `context` is Docker's here; the length of a conversation is a number and never looked up by name.
    label = t.gettext("Docker context") if problem.field == "context" else choice_name(problem.field, t)
    remedy = t.gettext("Check the spelling.")
    if problem.known:
        remedy = t.gettext("Choose one of these: {known}.", known=t.listed(problem.known))
    return ProblemText(
        t.gettext("Name not found"),
        t.gettext("{label}: {value} does not exist here.", label=label, value=t.quote(problem.value)),
        remedy,
    )


def bad_choice(problem: p.BadChoice, t: Voice) -> ProblemText:
    """Return the words for a value outside its limits; a secret is never shown."""
    label = choice_name(problem.field, t)
    if problem.field in SECRET_FIELDS:
        sentence = t.gettext("{label}: this value cannot be taken.", label=label)
    else:
        sentence = t.gettext("{label}: {value} cannot be taken.", label=label, value=t.quote(problem.value))
    return ProblemText(
        t.gettext("Value not possible"), sentence, t.gettext("Possible: {limit}.", limit=_limit(problem, t))
    )


def _limit(problem: p.BadChoice, t: Voice) -> str:
    """Return a limit in words: a range, a bound, or the form that the field has."""
    bound = re.fullmatch(r"(<=|>=|>) ?(\d+)", problem.limit)
    span = re.fullmatch(r"(\d+)\.\.(\d+)", problem.limit)
    if span:
        low, high = (value_of(problem.field, end, t) for end in span.groups())
        return t.gettext("{low} to {high}", low=low, high=high)
    if bound:
        words = {
            "<=": t.gettext("{value} at most"),
            ">=": t.gettext("{value} at least"),
            ">": t.gettext("above {value}"),
        }
        return words[bound[1]].format(value=value_of(problem.field, bound[2], t))
    forms = {
        "folder": t.gettext("a path such as ~/models, without control characters"),
        "gpu_uuid": t.gettext("a card's UUID, which begins with GPU-"),
        "docker_image_pin_digest": t.gettext("“current”, a digest of the form sha256:…, or nothing"),
        "vram_budget_gib": t.gettext("only for profiles that make images"),
        "api_key": t.gettext("8 to 512 ASCII characters without spaces and apostrophes"),
    }
    return forms.get(problem.field) or t.quote(problem.limit)


def window_not_available(t: Voice) -> ProblemText:
    """Return the words for a computer on which no window can be opened."""
    return ProblemText(
        t.gettext("The window cannot be opened"),
        t.gettext("The window needs an additional package or a library of the desktop that is not installed here."),
        t.gettext("Install it with the command shown, or use the commands of the terminal: slipway --help lists them."),
    )


def licence_not_accepted(problem: p.LicenceNotAccepted, t: Voice) -> ProblemText:
    """Return the words for a licence that waits for consent."""
    remedy = t.gettext(
        "Read the licence and agree to it (accept_licenses: {licence}). --yes alone does not.", licence=problem.licence
    )
    if problem.url:
        remedy = t.gettext(
            "Read the licence at {url} and agree to it (accept_licenses: {licence}). --yes alone does not.",
            url=problem.url,
            licence=problem.licence,
        )
    return ProblemText(
        t.gettext("Licence not accepted"),
        t.gettext(
            "The model of the profile {profile} is under the licence {licence}, which asks for your consent.",
            profile=t.quote(problem.profile),
            licence=t.quote(problem.licence),
        ),
        remedy,
    )


def edited_by_hand(problem: p.EditedByHand, t: Voice) -> ProblemText:
    """Return the words for a file of ours that a person changed."""
    return ProblemText(
        t.gettext("File changed by hand"),
        t.gettext(
            "The file {path} was changed since Slipway wrote it. The changes would be lost.", path=t.quote(problem.path)
        ),
        t.gettext("Look at the differences. If the file may be replaced, agree to it: a copy stays beside it."),
    )


def consent_needed(problem: p.ConsentNeeded, t: Voice) -> ProblemText:
    """Return the words for a question with nobody to answer it."""
    return ProblemText(
        t.gettext("Consent needed"),
        t.gettext(
            "The change to the stack {stack} needs a yes, and nobody can be asked here.", stack=t.quote(problem.stack)
        ),
        t.gettext("Run the command again with --yes."),
    )


def pin_not_proved(problem: p.PinNotProved, t: Voice) -> ProblemText:
    """Return the words for an image that is to be pinned and was never proved."""
    return ProblemText(
        t.gettext("This image is not proved"),
        t.gettext(
            "No test has passed yet with {image} as it is installed now, so that pinning it might pin a fault.",
            image=t.quote(problem.image),
        ),
        t.gettext(
            "Test it first with the command shown. Whoever knows why the test fails can pin the image all the same, "
            "with --unproved."
        ),
    )


def not_installed(problem: p.NotInstalled, t: Voice) -> ProblemText:
    """Return the words for a stack that is not there."""
    return ProblemText(
        t.gettext("Not installed"),
        t.gettext(
            "The stack {stack} is not installed in {home}.", stack=t.quote(problem.stack), home=t.quote(problem.home)
        ),
        t.gettext("Install it first, or name another folder with --home."),
    )


def already_running(problem: p.AlreadyRunning, t: Voice) -> ProblemText:
    """Return the words for a second Slipway in one home."""
    home = t.quote(problem.home)
    sentence = t.gettext("Another Slipway is working in {home}.", home=home)
    if problem.pid is not None:
        sentence = t.gettext("Another Slipway (process {pid}) is working in {home}.", pid=problem.pid, home=home)
    return ProblemText(
        t.gettext("Slipway is running already"),
        sentence,
        t.gettext("Wait until it is done, or close it. Then try again."),
    )


def card_held_by_stack(problem: p.CardHeldByStack, t: Voice) -> ProblemText:
    """Return the words for a card that the other stack holds."""
    return ProblemText(
        t.gettext("Card in use by the other stack"),
        t.gettext(
            "The stack {other} holds the graphics card. It has room for one of the two at a time, "
            "so {stack} cannot start.",
            other=t.quote(problem.other),
            stack=t.quote(problem.stack),
        ),
        t.gettext("Stop {other} with the command shown, then try again.", other=t.quote(problem.other)),
    )


def no_token_store(problem: p.NoTokenStore, t: Voice) -> ProblemText:
    """Return the words for a token that cannot be kept."""
    if problem.state == "not_installed":
        sentence = t.gettext("Slipway needs the package keyring to use the system's store, and it is not installed.")
        remedy = t.gettext(
            "Install it with the command shown. Without it the token can stand in the variable HF_TOKEN or in a file "
            "(--hf-token-file)."
        )
    elif problem.state == "refused":
        sentence = t.gettext("The system's store for secrets did not take the token or did not give it out.")
        remedy = t.gettext("Unlock the store and try again. The token can also be given as a file (--hf-token-file).")
    else:
        sentence = t.gettext("This session has no store for secrets.")
        remedy = t.gettext(
            "On Linux, install a keyring such as GNOME Keyring or KWallet and sign in at the screen. The token can "
            "also be given as a file (--hf-token-file)."
        )
    return ProblemText(t.gettext("Token cannot be kept"), sentence, remedy)

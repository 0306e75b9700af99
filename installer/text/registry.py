"""Words for the registry: what it holds that cannot be served or trusted."""

from __future__ import annotations

from installer.domain import problems as p
from installer.text.voice import ProblemText, Voice


def not_served_yet(problem: p.NotServedYet, t: Voice) -> ProblemText:
    """Return the words for a profile that a later version will serve."""
    profile = t.quote(problem.profile)
    if problem.backend == "tensor_parallel":
        sentence = t.gettext(
            "The profile {profile} spreads one model over several cards. This version of Slipway cannot do that yet.",
            profile=profile,
        )
    else:
        sentence = t.gettext(
            "The profile {profile} runs on {backend}. This version of Slipway cannot start that yet.",
            profile=profile,
            backend=problem.backend,
        )
    return ProblemText(
        t.gettext("Not possible with this version"), sentence, t.gettext("Choose another profile, or a later version.")
    )


def evidence_not_reproduced(problem: p.EvidenceNotReproduced, t: Voice) -> ProblemText:
    """Return the words for a measurement that the memory accounting contradicts."""
    return ProblemText(
        t.gettext("Measurement not reproduced"),
        t.gettext(
            "The profile {profile} was seen to run on {card} (source: {source}). By calculation it needs {needed} "
            "there, and {available} can be had.",
            profile=t.quote(problem.profile),
            card=t.quote(problem.card),
            source=problem.source.rstrip(".") or t.gettext("unknown"),
            needed=t.gib(problem.needed_bytes),
            available=t.gib(problem.available_bytes),
        ),
        t.gettext("Correct the profile's figures in the registry, or the measurement."),
    )


def licence_tag_missing(problem: p.LicenceTagMissing, t: Voice) -> ProblemText:
    """Return the words for checkpoints without a licence."""
    return ProblemText(
        t.gettext("Licence not named"),
        t.gettext("The hub names no licence for: {repos}.", repos=t.listed(problem.repos) or t.gettext("(unknown)")),
        t.gettext("Take these models out of the registry, or ask their publisher to name the licence."),
    )


def signature_invalid(problem: p.SignatureInvalid, t: Voice) -> ProblemText:
    """Return the words for a registry that is not from whom it should be; nothing of it was read."""
    return ProblemText(
        t.gettext("Signature is not valid"),
        t.gettext(
            "The registry from {path} was not signed with this key, or was changed since. It was not taken over.",
            path=t.quote(problem.path),
        ),
        t.gettext("Get the registry and the public key anew from their publisher. Do not use this file."),
    )


def registry_expired(problem: p.RegistryExpired, t: Voice) -> ProblemText:
    """Return the words for a registry past its date."""
    return ProblemText(
        t.gettext("Registry has expired"),
        t.gettext(
            "The registry {revision} from {path} was valid until {date}. It was not taken over.",
            revision=t.quote(problem.revision),
            path=t.quote(problem.path),
            date=t.date(problem.expired),
        ),
        t.gettext("Fetch a newer one, and check that the date of this computer is right."),
    )


def registry_recalled(problem: p.RegistryRecalled, t: Voice) -> ProblemText:
    """Return the words for a registry that its publisher took back."""
    figures = {"revision": t.quote(problem.revision), "newer": t.quote(problem.recalled_by)}
    if problem.path:
        sentence = t.gettext(
            "The registry {revision} from {path} was recalled or replaced by {newer}. It was not taken over.",
            path=t.quote(problem.path),
            **figures,
        )
    else:
        sentence = t.gettext(
            "The registry {revision} that comes with Slipway was recalled by {newer}, which has expired itself.",
            **figures,
        )
    return ProblemText(
        t.gettext("Registry was recalled"), sentence, t.gettext("Fetch the newest one from its publisher.")
    )


def signing_not_installed(t: Voice) -> ProblemText:
    """Return the words for the optional package that is not there."""
    return ProblemText(
        t.gettext("Signatures cannot be checked"),
        t.gettext("Checking a signed registry needs an additional package that is not installed here."),
        t.gettext("Install it with the command shown, in the environment of Slipway."),
    )

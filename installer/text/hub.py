"""Words for what image registries and Hugging Face do not hand out."""

from __future__ import annotations

from installer.domain import problems as p
from installer.text.network import short_hash
from installer.text.voice import ProblemText, Voice


def image_unknown(problem: p.ImageUnknown, t: Voice) -> ProblemText:
    """Return the words for an image that the registry does not show."""
    return ProblemText(
        t.gettext("Image not found"),
        t.gettext(
            "The registry does not know the image {image}, or does not show it without a sign-in.",
            image=t.quote(problem.image),
        ),
        t.gettext("Choose a profile with another image. Behind a mirror, check that it has this image."),
    )


def digest_gone(problem: p.DigestGone, t: Voice) -> ProblemText:
    """Return the words for a pinned image that its publisher removed."""
    if problem.tag:
        remedy = t.gettext(
            "Pin anew: Slipway then takes the image that the tag {tag} leads to now, and proves it. If another "
            "computer still has the old one, docker save and docker load carry it over.",
            tag=t.quote(problem.tag),
        )
    else:
        remedy = t.gettext(
            "Pin another image. If another computer still has the old one, docker save and docker load carry it over."
        )
    return ProblemText(
        t.gettext("Pinned image is gone"),
        t.gettext(
            "The registry no longer has the image {image} with the digest {digest}.",
            image=t.quote(problem.image),
            digest=short_hash(problem.digest),
        ),
        remedy,
    )


def registry_denied(problem: p.RegistryDenied, t: Voice) -> ProblemText:
    """Return the words for a registry that wants a sign-in."""
    return ProblemText(
        t.gettext("Registry wants a sign-in"),
        t.gettext("The registry hands out the image {image} only after a sign-in.", image=t.quote(problem.image)),
        t.gettext(
            "Sign in with docker login. If you are signed in already, the sign-in has expired: docker logout, then "
            "docker login."
        ),
    )


def token_needed(problem: p.TokenNeeded, t: Voice) -> ProblemText:
    """Return the words for the hub's 401, which also means that a repository does not exist."""
    repo = t.quote(problem.repo)
    if problem.had_token:
        return ProblemText(
            t.gettext("Token refused"),
            t.gettext(
                "Hugging Face does not accept the token for {repo}. It may have expired, or the repository does not "
                "exist.",
                repo=repo,
            ),
            t.gettext(
                "Check the name. Then make a new token of the type Read at huggingface.co/settings/tokens and enter it."
            ),
        )
    if problem.gated:
        return ProblemText(
            t.gettext("Sign-in needed"),
            t.gettext("Hugging Face gives {repo} only to accounts that have agreed to its licence.", repo=repo),
            t.gettext(
                "Agree to the licence at huggingface.co/{name}. Then make a token of the type Read at "
                "huggingface.co/settings/tokens and enter it.",
                name=problem.repo,
            ),
        )
    return ProblemText(
        t.gettext("Sign-in needed"),
        t.gettext(
            "Hugging Face shows {repo} only with a token. It gives the same answer if the repository does not exist.",
            repo=repo,
        ),
        t.gettext("Check the name. Then make a token of the type Read at huggingface.co/settings/tokens and enter it."),
    )


def access_not_granted(problem: p.AccessNotGranted, t: Voice) -> ProblemText:
    """Return the words for the hub's 403: the licence, or what the token may do."""
    repo = t.quote(problem.repo)
    if problem.gated:
        return ProblemText(
            t.gettext("Licence not accepted at Hugging Face"),
            t.gettext("Hugging Face gives {repo} only to accounts that have agreed to its licence.", repo=repo),
            t.gettext(
                "Open huggingface.co/{name} with this account, agree to the licence, and try again. If you have agreed "
                "already, the token lacks the right to read public gated repositories.",
                name=problem.repo,
            ),
        )
    return ProblemText(
        t.gettext("Token has too few rights"),
        t.gettext("Hugging Face knows the token, but it may not read {repo}.", repo=repo),
        t.gettext(
            "At huggingface.co/settings/tokens, make a token of the type Read, or let yours read public gated "
            "repositories."
        ),
    )


def repo_unknown(problem: p.RepoUnknown, t: Voice) -> ProblemText:
    """Return the words for a repository, a revision or a file that is not there."""
    repo, revision = t.quote(problem.repo), t.quote(problem.revision)
    if problem.file:
        sentence = t.gettext(
            "At Hugging Face, {repo} has no file {file} at the revision {revision}.",
            repo=repo,
            file=t.quote(problem.file),
            revision=revision,
        )
    else:
        sentence = t.gettext(
            "Hugging Face does not know {repo} at the revision {revision}.", repo=repo, revision=revision
        )
    return ProblemText(
        t.gettext("Model not found"),
        sentence,
        t.gettext("Its publisher may have moved or removed it. Choose another profile."),
    )


def bad_token(problem: p.BadToken, t: Voice) -> ProblemText:
    """Return the words for a token that cannot be one; the token itself is never shown."""
    return ProblemText(
        t.gettext("Token not valid"),
        t.gettext("The Hugging Face token has characters that no token has, such as a space or a line break."),
        t.gettext("Copy it once more. It looks like this: {form}.", form=t.quote(problem.form)),
    )

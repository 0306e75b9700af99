"""The verb `token`: the Hugging Face token in the system's store for secrets."""

from __future__ import annotations

from installer import doors
from installer.cli.session import Session


def token(session: Session) -> int:
    """Do what stands after `token`."""
    return store(session) if session.arguments.action == "store" else forget(session)


def store(session: Session) -> int:
    """Keep the token that a file or standard input holds; it is never shown."""
    doors.store_token(session.secrets.hf_token or "")
    _say(session, session.text.gettext("The token is kept. It is used when a model asks for one."), stored=True)
    return 0


def forget(session: Session) -> int:
    """Remove the token."""
    was_there = doors.forget_token()
    _ = session.text.gettext
    _say(session, _("The token was removed.") if was_there else _("No token was kept."), stored=False)
    return 0


def _say(session: Session, sentence: str, *, stored: bool) -> None:
    if session.output.as_json:
        session.output.json({"stored": stored})
    session.output.line(sentence)

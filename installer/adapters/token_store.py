"""The system's store for secrets: where the Hugging Face token lies if the person wants it kept.

`keyring` is optional. What it raises tells which store there is or is not; its messages may hold anything and are not
repeated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType

from installer.domain.hub_token import clean_token
from installer.domain.problems import BadChoice, InstallerError, NoTokenStore

_SERVICE, _NAME = "slipway", "hf_token"


def read() -> str | None:
    """Return the token that is kept, None where there is none or no store to ask."""
    try:
        with _asking() as store:
            return store.get_password(_SERVICE, _NAME) or None
    except InstallerError:
        return None


def keep(token: str) -> None:
    """Keep a token in place of an earlier one. Raises InstallerError(BadToken, BadChoice, NoTokenStore)."""
    clean = clean_token(token)
    if clean is None:
        raise InstallerError(BadChoice(field="hf_token", value="", limit="hf_…"))
    with _asking() as store:
        store.set_password(_SERVICE, _NAME, clean)
        kept = store.get_password(_SERVICE, _NAME) == clean
    if not kept:  # keyring's null store takes everything and keeps nothing
        raise InstallerError(NoTokenStore(state="none"))


def forget() -> bool:
    """Remove the token; say whether there was one. Raises InstallerError(NoTokenStore)."""
    with _asking() as store:
        if store.get_password(_SERVICE, _NAME) is None:
            return False
        store.delete_password(_SERVICE, _NAME)
    return True


@contextlib.contextmanager
def _asking() -> Iterator[ModuleType]:
    try:
        import keyring
        from keyring.errors import InitError, NoKeyringError
    except ImportError as error:
        raise InstallerError(NoTokenStore(state="not_installed")) from error
    try:
        yield keyring
    except (NoKeyringError, InitError) as error:
        raise InstallerError(NoTokenStore(state="none")) from error
    except Exception as error:
        # KeyringError, or whatever the store behind it raises of its own.
        raise InstallerError(NoTokenStore(state="refused")) from error

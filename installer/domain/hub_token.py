"""The token for the hub: which text can be one."""

from __future__ import annotations

import re

from installer.domain.problems import BadToken, InstallerError

_TOKEN = re.compile(r"[\x21-\x7e]+")


def clean_token(text: str | None) -> str | None:
    """Return a token without the blanks that came with pasting it, None where there is none.

    Raises BadToken for characters that no token has. The token is in no message.
    """
    token = (text or "").strip()
    if not token:
        return None
    if not _TOKEN.fullmatch(token):
        raise InstallerError(BadToken())
    return token

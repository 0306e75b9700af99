"""The wizard's pages, and where a person was among them: kept so that a crash or a reboot loses nothing."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from installer.domain.choices import Choices


class Page(StrEnum):
    """The pages in the order in which a person meets them."""

    WELCOME = "welcome"
    CARD = "card"
    DOCKER = "docker"
    MODEL = "model"
    VERSION = "version"
    OPTIONS = "options"
    SUMMARY = "summary"
    INSTALLATION = "installation"
    DONE = "done"


PAGES = tuple(Page)


class Bookmark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page on which a person was, and all that had been chosen."""

    page: Page
    choices: Choices

"""The languages of the window, each by the name that its speakers give it."""

from __future__ import annotations

from installer.text import Language

LANGUAGES: tuple[tuple[Language, str], ...] = (("de", "Deutsch"), ("en", "English"))

"""Which language: what was asked for, else what the system speaks."""

from __future__ import annotations

import locale
import sys
from collections.abc import Mapping

from installer.text.numbers import Language

VARIABLE = "SLIPWAY_LANGUAGE"
_POSIX_ORDER = ("LC_ALL", "LC_MESSAGES", "LANG")


def choose_language(argument: str | None, environ: Mapping[str, str], system_locale: str | None = None) -> Language:
    """Return the first that is known of `--language`, SLIPWAY_LANGUAGE, the locale variables and the system's own.

    Of the locale variables the first that is set counts, as POSIX has it, whatever it names. `system_locale` is read
    where it is not given. The rest is English.
    """
    for wish in (argument, environ.get(VARIABLE)):
        named = _spoken(wish)
        if named:
            return named
    name = next((environ[variable] for variable in _POSIX_ORDER if environ.get(variable)), None)
    return _spoken(name or system_locale or language_of_the_system()) or "en"


def _spoken(name: str | None) -> Language | None:
    """Read de, de_AT.UTF-8, de-CH and Windows' German_Germany.1252."""
    word = (name or "").strip().casefold().replace("-", "_").split("_")[0].split(".")[0].split("@")[0]
    if word in ("de", "german", "deutsch"):
        return "de"
    return "en" if word in ("en", "english") else None


def language_of_the_system() -> str | None:
    """Return the language of the system's own windows, where the environment does not tell it (Windows)."""
    if sys.platform == "win32":
        import ctypes

        return locale.windows_locale.get(ctypes.windll.kernel32.GetUserDefaultUILanguage())
    return None

"""The voice: one language's catalogue and numbers, and the small words that all sentences share.

English texts are the keys of the catalogue. `{fields}` are filled in after the translation, so that a language may
order them as it likes.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from installer import resources
from installer.domain.one_line import printable
from installer.text import numbers
from installer.text.numbers import Language

DOMAIN = "slipway"
LONGEST_QUOTE = 120
LONGEST_FIELD = 1500
"""More than any sentence of ours; what is longer came from another program."""

MOST_LISTED = 8


@dataclass(frozen=True)
class ProblemText:
    """A Problem in words: a title of few words, what is wrong, and what to do.

    Where the Problem has a `command`, the remedy speaks of it; the front end shows it below.
    """

    title: str
    sentence: str
    remedy: str


@cache
def _catalogue(language: Language) -> gettext.NullTranslations:
    if language == "en":
        return gettext.NullTranslations()
    with resources.file("i18n", language, "LC_MESSAGES", f"{DOMAIN}.mo").open("rb") as file:
        return gettext.GNUTranslations(file)


def _on_one_line(fields: dict[str, object]) -> dict[str, object]:
    """Take line breaks and other control characters out: names come from other programs, and a terminal obeys them."""
    return {name: _shortened(printable(text)) if isinstance(text, str) else text for name, text in fields.items()}


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_FIELD else f"{text[: LONGEST_FIELD - 1]}…"


class Voice:
    """One language. Raises resources.ResourceMissing where its catalogue is not there."""

    def __init__(self, language: Language) -> None:
        self.language: Language = language
        self._catalogue = _catalogue(language)

    def gettext(self, message: str, /, **fields: object) -> str:
        """Translate a message, then fill in its fields, if any are given."""
        translated = self._catalogue.gettext(message)
        return translated.format(**_on_one_line(fields)) if fields else translated

    def ngettext(self, one: str, many: str, count: int, /, **fields: object) -> str:
        """Translate a message that counts; `{count}` and the other fields are filled in."""
        translated = self._catalogue.ngettext(one, many, count)
        return translated.format(**({"count": self.number(count)} | _on_one_line(fields)))

    def number(self, value: float, decimals: int = 0) -> str:
        """Return a number with this language's marks."""
        return numbers.number(value, self.language, decimals)

    def gib(self, value_bytes: int) -> str:
        """Return bytes in GiB: graphics memory and main memory."""
        return numbers.gib(value_bytes, self.language)

    def mib(self, value_bytes: int) -> str:
        """Return bytes in MiB, rounded up."""
        return numbers.mib(value_bytes, self.language)

    def gb(self, value_bytes: int) -> str:
        """Return bytes in GB: downloads and disks."""
        return numbers.gb(value_bytes, self.language)

    def percent(self, share: float, decimals: int = 0) -> str:
        """Return a share, 1 being the whole, in per cent."""
        return numbers.percent(share, self.language, decimals)

    def duration(self, seconds: float) -> str:
        """Return a time span."""
        return numbers.duration(seconds, self.language)

    def date(self, iso: str) -> str:
        """Return the day of an ISO 8601 time in words."""
        return numbers.date(iso, self.language)

    def tokens(self, count: int) -> str:
        """Return a number of tokens."""
        return self.ngettext("{count}\N{NO-BREAK SPACE}token", "{count}\N{NO-BREAK SPACE}tokens", count)

    def figure(self, text: str) -> str:
        """Return a figure with its unit, such as PyTorch's `2.00 GiB`, in this language; other texts as they are."""
        found = re.fullmatch(r"(\d+)(?:\.(\d+))? ([KMGT]?i?B)", text)
        if not found:
            return text
        whole, decimals, unit = found.groups(default="")
        return f"{self.number(float(f'{whole}.{decimals or 0}'), len(decimals))}{numbers.NBSP}{unit}"

    def quote(self, value: str) -> str:
        """Return a name in quotation marks, on one line and not too long; one that is empty is called unknown."""
        line = " ".join(printable(value).split())
        if not line:
            return self.gettext("(unknown)")
        shown = line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 1] + "…"
        return f"„{shown}“" if self.language == "de" else f"“{shown}”"

    def listed(self, values: Sequence[str]) -> str:
        """Return names as a list in one line; of many the first ones and how many more there are."""
        line = ", ".join(" ".join(printable(value).split()) for value in values[:MOST_LISTED])
        more = len(values) - MOST_LISTED
        return (
            line if more <= 0 else self.ngettext("{line} and {count} more", "{line} and {count} more", more, line=line)
        )

    def card(self, name: str) -> str:
        """Return a card's name to begin a sentence with."""
        return name or self.gettext("The graphics card")

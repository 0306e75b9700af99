#!/usr/bin/env python3
"""The table of known failures as pages that a person can search: docs/failures.md and docs/stoerungen.md.

Without arguments both are written; `--check` writes nothing and fails where something would change. Every row is what
Slipway itself says of that row's example line, so that pages and product cannot differ.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from installer.adapters import known_failures
from installer.domain.fingerprints import WHAT_ADAPTERS_KNOW, Fingerprint, Situation, Table
from installer.text import Language, Text

ROOT = Path(__file__).resolve().parents[1]
PAGES: dict[Language, Path] = {"en": ROOT / "docs" / "failures.md", "de": ROOT / "docs" / "stoerungen.md"}
LONGEST_EXAMPLE = 220

HEADS: dict[Language, tuple[str, str, tuple[str, str, str, str]]] = {
    "en": (
        "# Known failures",
        (
            "Search this page for the words of an error, or let Slipway do it: `slipway diagnose FILE`. Every row is "
            "one wording that Slipway recognises, and what it says of it; figures and names are those of the example."
        ),
        ("the words", "what they mean", "what to do", "how this is known"),
    ),
    "de": (
        "# Bekannte Störungen",
        (
            "Suchen Sie auf dieser Seite nach dem Wortlaut eines Fehlers, oder lassen Sie Slipway suchen: "
            "`slipway diagnose DATEI`. Jede Zeile ist ein Wortlaut, den Slipway erkennt, und was es dazu sagt; "
            "Zahlen und Namen sind die des Beispiels."
        ),
        ("der Wortlaut", "was er bedeutet", "was zu tun ist", "woher das bekannt ist"),
    ),
}
ORIGINS: dict[Language, dict[str, str]] = {
    "en": {
        "server": "The server's log",
        "engine": "Docker and Compose",
        "hub": "Registry and hub",
        "driver": "The graphics driver",
        "window": "The window",
        "system": "The system",
        "": "Lines that look bad and are harmless",
    },
    "de": {
        "server": "Das Protokoll des Servers",
        "engine": "Docker und Compose",
        "hub": "Registry und Hub",
        "driver": "Der Grafiktreiber",
        "window": "Das Fenster",
        "system": "Das System",
        "": "Zeilen, die schlimm aussehen und harmlos sind",
    },
}


def main(argv: list[str]) -> int:
    if argv not in ([], ["--check"]):
        print("usage: tools/failures_page.py [--check]", file=sys.stderr)
        return 2
    fresh = {path: page(language) for language, path in PAGES.items()}
    stale = [path for path, text in fresh.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        print(f"{'stale' if argv else 'wrote'}: {path.relative_to(ROOT)}")
        if not argv:
            path.write_text(fresh[path], "utf-8", newline="\n")
    return 1 if argv and stale else 0


def page(language: Language) -> str:
    """Return a page in Markdown: one table for each place that such words come from."""
    title, lead, columns = HEADS[language]
    table, text = known_failures.table(), Text(language)
    parts = [title, "", lead, ""]
    for origin, heading in ORIGINS[language].items():
        rows = list(_rows(table, origin, text))
        if rows:
            shown = columns if origin else (columns[0], columns[3])
            parts += [f"## {heading}", "", _line(shown), _line(["---"] * len(shown)), *map(_line, rows), ""]
    return "\n".join(parts)


def _rows(table: Table, origin: str, text: Text) -> Iterator[list[str]]:
    for row in sorted(table.rows.values(), key=lambda row: row.example.casefold()):
        if (row.origin if row.problem else "") != origin:
            continue
        yield [_example(row), *(_meaning(table, row, text) if row.problem else ()), _cell(row.source)]


def _meaning(table: Table, row: Fingerprint, text: Text) -> tuple[str, str]:
    found = table.all(row.example, Situation(origin=row.origin, known=WHAT_ADAPTERS_KNOW))
    problem = next(one.problem for one in found if one.row is row and one.problem)
    said = text.problem(problem)
    return f"**{_cell(said.title)}.** {_cell(said.sentence)}", _cell(said.remedy)


def _example(row: Fingerprint) -> str:
    line = " ".join(row.example.split())
    shown = line if len(line) <= LONGEST_EXAMPLE else line[: LONGEST_EXAMPLE - 1].rstrip() + "…"
    return f"`{re.sub(r'[|`]', '/', shown)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

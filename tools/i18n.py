#!/usr/bin/env python3
"""The catalogues: extract every message, bring each language's file up to date, compile it.

Without arguments all of it is written; `--check` writes nothing and fails where something would change. A message that
is new stays empty in the .po file until somebody translates it; one that is gone goes from there too.
"""

import io
import sys
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
I18N = ROOT / "i18n"
TEMPLATE = I18N / "slipway.pot"
LANGUAGES = ("de",)
KEYWORDS = {"gettext": None, "_": None, "ngettext": (1, 2)}
# A fixed date, so that a file changes only when a message does.
MADE = datetime(2026, 12, 1, tzinfo=UTC)
COMMENT = "# The messages of Slipway. `make i18n` keeps this file in step with the source."


def main(argv: list[str]) -> int:
    if argv not in ([], ["--check"]):
        print("usage: tools/i18n.py [--check]", file=sys.stderr)
        return 2
    stale = {path: content for path, content in wanted().items() if not same(path, content)}
    for path, content in stale.items():
        print(f"{'stale' if argv else 'wrote'}: {path.relative_to(ROOT)}")
        if not argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return 1 if argv and stale else 0


def same(path: Path, content: bytes) -> bool:
    return path.exists() and path.read_bytes() == content


def wanted() -> dict[Path, bytes]:
    """Return every file of the catalogues with the content that it should have."""
    template = extracted()
    files = {TEMPLATE: as_po(template)}
    for language in LANGUAGES:
        catalogue = updated(language, template)
        files[po_path(language)] = as_po(catalogue)
        files[mo_path(language)] = compiled(catalogue)
    return files


def po_path(language: str) -> Path:
    return I18N / language / "LC_MESSAGES" / "slipway.po"


def mo_path(language: str) -> Path:
    return po_path(language).with_suffix(".mo")


def extracted() -> Catalog:
    """Return every message of the package; the messages of one file stay together."""
    template = empty(None)
    rows = extract_from_dir(ROOT / "installer", method_map=[("**.py", "python")], keywords=KEYWORDS)
    for name, _, message, _, context in sorted(rows, key=lambda row: (row[0], row[1])):
        template.add(message, locations=[(f"installer/{name}", 0)], context=context)
    return template


def empty(language: str | None) -> Catalog:
    return Catalog(
        locale=language,
        project="slipway",
        msgid_bugs_address="none",
        version="1",
        header_comment=COMMENT,
        creation_date=MADE,
        revision_date=MADE,
        copyright_holder="The Slipway authors",
        last_translator="The Slipway authors",
        language_team="none",
        fuzzy=False,
    )


def updated(language: str, template: Catalog) -> Catalog:
    """Return the language's catalogue with the messages of the template, and nothing guessed."""
    old = empty(language)
    if po_path(language).exists():
        with po_path(language).open("rb") as file:
            old = read_po(file, locale=language)
    new = empty(language)
    for message in template:
        if message.id:
            known = old.get(message.id)
            new.add(message.id, known.string if known else None, locations=message.locations)
    return new


def as_po(catalogue: Catalog) -> bytes:
    buffer = io.BytesIO()
    write_po(buffer, catalogue, width=120, include_lineno=False, sort_output=False)
    return buffer.getvalue()


def compiled(catalogue: Catalog) -> bytes:
    buffer = io.BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""What `slipway offers --machine` prints for every recorded machine, in German and English, under `tests/golden`.

Without arguments all of it is written; `--check` writes nothing and fails where something would change. Read the change
before it is committed: it is what a person with that card is told.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

from installer import resources
from installer.cli.arguments import parse
from installer.cli.look import show_offers
from installer.cli.output import Output
from installer.cli.session import Session
from installer.domain.registry import Registry
from installer.domain.registry import parse as parse_registry
from installer.steps.kept_registry import InForce
from installer.text import Language, Text

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
LANGUAGES: tuple[Language, ...] = ("de", "en")
WIDTH = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def main(argv: list[str]) -> int:
    if argv not in ([], ["--check"]):
        print("usage: tools/offers_golden.py [--check]", file=sys.stderr)
        return 2
    fresh = tables()
    stale = [path for path, text in fresh.items() if not path.exists() or path.read_text("utf-8") != text]
    left_over = [path for path in GOLDEN.rglob("*.txt") if path not in fresh]
    for path in (*stale, *left_over):
        print(f"{'stale' if argv else 'wrote' if path in fresh else 'removed'}: {path.relative_to(ROOT)}")
        if argv:
            continue
        if path in fresh:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fresh[path], "utf-8", newline="\n")
        else:
            path.unlink()
    return 1 if argv and (stale or left_over) else 0


def tables() -> dict[Path, str]:
    """Return every table by the file that it belongs into."""
    registry = parse_registry(resources.registry_texts())
    return {
        GOLDEN / language / f"{machine}.txt": table(machine, language, registry)
        for machine in resources.recorded_machines()
        for language in LANGUAGES
    }


def table(machine: str, language: Language, registry: Registry) -> str:
    """Return what the command prints for one machine, with nothing but the registry that comes with Slipway."""
    text, out = Text(language), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with mock.patch.dict(os.environ, WIDTH), redirect_stdout(out):
        session = Session(parse(["offers", "--machine", machine], text), Output(text, as_json=False))
        vars(session)["registry_in_force"] = InForce(registry=registry)
        show_offers(session)
        out.flush()
        return out.buffer.getvalue().decode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Try a file of field cases: `python -m tests.field.run [FILE]`. One line per failing case, last how many passed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.field.doors import look
from tests.field.judge import shortfall

CASES = Path(__file__).with_name("cases.jsonl")


def main(argv: list[str]) -> int:
    path = Path(argv[0]) if argv else CASES
    failed = total = 0
    for case in read(path):
        total += 1
        reason = tried(case)
        if reason:
            failed += 1
            print(f"{case['id']}: {reason}")
    print(f"field: passed {total - failed}/{total}")
    return 1 if failed else 0


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the cases of a file, one JSON object per line."""
    with path.open(encoding="utf-8-sig") as file:
        yield from (json.loads(line) for line in file if line.strip())


def tried(case: Mapping[str, Any]) -> str:
    """Return why a case is not passed, or ""; a fault of the product or of the translation is one more reason."""
    try:
        return shortfall(case, look(case["input"]))
    except Exception as error:  # noqa: BLE001 - one case that breaks something must not hide the others
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

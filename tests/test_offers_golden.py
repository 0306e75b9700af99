"""What every recorded machine is told, in both languages: a change is read before it is committed."""

from __future__ import annotations

import re

import pytest

from installer import resources
from tools import offers_golden

FRESH = offers_golden.tables()


def test_every_recorded_machine_has_a_table_in_both_languages_and_no_other_has() -> None:
    names = {f"{language}/{machine}.txt" for machine in resources.recorded_machines() for language in ("de", "en")}
    assert {path.relative_to(offers_golden.GOLDEN).as_posix() for path in FRESH} == names
    assert set(offers_golden.GOLDEN.rglob("*.txt")) == set(FRESH)


@pytest.mark.parametrize("path", FRESH, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_is_told_is_what_was_read_last(path) -> None:
    assert FRESH[path] == path.read_text("utf-8"), "read the change, then run tools/offers_golden.py"


@pytest.mark.parametrize("path", FRESH, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_at_most_one_line_is_starred_and_every_profile_is_there(path) -> None:
    lines = FRESH[path].splitlines()
    assert sum(line.startswith("★") for line in lines) <= 1
    assert not re.search(r"(?<![\d.,])0\stoken", FRESH[path])

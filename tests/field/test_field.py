"""Failures of the field through the product's own doors, and the table that knows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from installer.adapters import known_failures
from installer.domain import pasted
from installer.domain.fingerprints import WHAT_ADAPTERS_KNOW, Situation
from installer.domain.problems import CauseUnknown
from tests.field import run
from tools import failures_page

HERE = Path(__file__).parent
TABLE = known_failures.table()
CASES = [*run.read(run.CASES), *run.read(HERE / "more.jsonl")]
STARTS = sorted((HERE / "starts").glob("*.log"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_failure_of_the_field_gets_its_verdict_family_and_figures(case: Mapping[str, Any]) -> None:
    assert run.tried(case) == ""


def test_the_last_line_counts_and_a_failing_case_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = next(case for case in CASES if case["expected"]["verdict"] == "block")
    wrong = known | {"id": "wrong", "expected": known["expected"] | {"verdict": "ok"}}
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{json.dumps(known)}\n\n{json.dumps(wrong)}\n")
    assert run.main([str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[0].startswith("wrong: block in place of ok")
    assert run.main([str(run.CASES)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "field: passed 65/65"


@pytest.mark.parametrize("name", TABLE.rows)
def test_an_example_is_told_by_its_own_row_and_by_no_other_of_its_rank(name: str) -> None:
    row = TABLE.rows[name]
    found = TABLE.all(row.example, Situation(origin=row.origin, known=WHAT_ADAPTERS_KNOW))
    rivals = [one.name for one in found if one.row.priority >= row.priority and one.name != name]
    assert rivals == []
    assert row.problem is None or found[0].name == name


@pytest.mark.parametrize("name", [name for name, row in TABLE.rows.items() if row.problem is None])
def test_a_harmless_example_is_no_failure(name: str) -> None:
    example = TABLE.rows[name].example
    assert TABLE.find(example) is None
    assert not TABLE.unexplained(example)


@pytest.mark.parametrize("path", STARTS, ids=lambda path: path.stem)
def test_a_start_that_went_well_is_no_failure(path: Path) -> None:
    """Not as a whole, and not line by line, wherever its last lines happen to end."""
    log = path.read_bytes()
    assert pasted.read(log, TABLE).problems == ()
    found = [found for line in log.decode().splitlines() if (found := TABLE.find(line))]
    assert found == []


def test_every_start_names_its_release() -> None:
    told = {path.stem.rpartition("-")[2] for path in STARTS if path.stem.startswith("vllm-")}
    assert {"0.19.1", "0.24.0", "0.33.0"} <= told


def test_what_nobody_knows_is_said_to_be_unknown_with_the_lines_that_tell() -> None:
    log = "\n".join(
        [
            *[f"INFO 12-01 09:00:00 [loggers.py:1] Engine 000: {number} tokens/s" for number in range(40)],
            "ERROR 12-01 09:00:01 [core.py:1] The flux capacitor failed to align with the manifold",
            *[f'  File "/usr/lib/python3/module.py", line {number}, in run' for number in range(40)],
        ]
    )
    reading = pasted.read(log.encode(), TABLE)
    (problem,) = reading.problems
    assert isinstance(problem, CauseUnknown)
    assert (reading.unknown, reading.fingerprint) == (True, "")
    assert [line for line in problem.technical if "flux capacitor" in line]
    assert not [line for line in problem.technical if "module.py" in line]


def test_the_searchable_pages_say_what_the_product_says() -> None:
    assert failures_page.main(["--check"]) == 0, "run: tools/failures_page.py"

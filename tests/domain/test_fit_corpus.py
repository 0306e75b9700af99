"""The oracle on the public runs: never *fits* where vLLM aborts, and no figure of the outcome reaches it."""

from __future__ import annotations

import json
import re

import pytest

from bench import fit, peers, runs
from installer.domain.memory import Verdict

ROWS = runs.read(runs.DATA / "vram-runs.jsonl")
JUDGED, LEFT_OUT = fit.judged_rows(ROWS)
GRADES = [each.grade for each in JUDGED]


def test_every_run_is_judged_or_left_out_with_a_reason():
    assert len(JUDGED) + len(LEFT_OUT) == len(ROWS) == 72
    assert len(JUDGED) >= 38
    assert all(reason for _, reason in LEFT_OUT)


def test_nothing_is_promised_that_aborted():
    assert [each.run.id for each in JUDGED if each.grade == "false fit"] == []


def test_at_least_95_percent_of_the_answers_are_right_and_few_are_tight():
    assert GRADES.count("tight") <= 0.10 * len(GRADES)
    assert GRADES.count("right") >= 0.95 * (len(GRADES) - GRADES.count("tight"))


def test_the_last_line_reads_as_agreed(capsys):
    assert fit.main([]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"fit: judged \d+ right \d+ false_fits \d+ false_refusals \d+ tight \d+", last)
    assert sum(int(n) for n in re.findall(r"\d+", last)[1:]) == len(JUDGED)


def test_the_oracle_is_right_more_often_than_every_rule_of_thumb():
    ours = GRADES.count("right") / len(GRADES)
    for name, rule in peers.RULES.items():
        answers = [rule(q) is each.ready for each in JUDGED if (q := fit.question_of(each))]
        assert ours > sum(answers) / len(answers), name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_what_became_of_a_run_is_taken_off(row: dict):
    told = {"outcome", "quote", "notes", "max_concurrency", "est_max_len"}
    left = runs.stripped(row)
    assert not told & set(left)
    assert not [key for key in left if re.match(r"kv_|needed|act|consumed|nontorch|cudagraph", key)]


def test_the_answers_do_not_depend_on_what_is_taken_off():
    turned = [
        row | {"outcome": "ready", "kv_avail_gib": 99, "kv_tokens": 1, "quote": "x", "notes": "y"} for row in ROWS
    ]
    answers = {each.run.id: each.verdict for each in fit.judged_rows(turned)[0]}
    assert all(answers[each.run.id] is each.verdict for each in JUDGED)


def test_a_file_of_that_shape_from_elsewhere_is_taken(tmp_path, capsys):
    row = {"id": "x1", "gpu": "RTX 5090", "vram_total_gib": 31.84, "vram_free_gib": 30.12, "vllm": "0.30.0"}
    row |= {"model": "Some/Unknown-Model-13B", "quant": "fp8", "flags": {"gpu_memory_utilization": 0.95}}
    row |= {"model_load_gib": None, "platform": "wsl2", "outcome": "fail:free_check"}
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(row) + "\n\n" + json.dumps(row | {"id": "x2", "vram_total_gib": None}) + "\n")
    assert fit.main([str(path)]) == 0
    assert capsys.readouterr().out.endswith("fit: judged 1 right 1 false_fits 0 false_refusals 0 tight 0\n")


def test_kv_tokens_are_exact_where_geometry_and_release_are_known():
    exact = [error for name, error in fit.kv_token_errors(ROWS) if error == 0]
    assert len(exact) >= 16


def test_a_model_that_is_not_known_gets_no_promise():
    assert all(each.verdict is not Verdict.FITS for each in JUDGED if each.fit is None)

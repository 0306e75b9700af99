"""Every check of the proof, by real requests to the stand-in: a good server passes, each fault is told by its name."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from installer.adapters.clock import SystemClock
from installer.adapters.server import HttpServer
from installer.cli import main as cli
from installer.domain.problems import NotAnswering, SlowKernel, SmokeFailed
from installer.domain.video import FRAME_TOKENS, TRUST_FLAG
from installer.steps import smoke
from installer.steps.cancel import Cancel
from installer.steps.smoke import Check, Evidence, SmokeReport, Target
from installer.steps.smoke import asked as requests_of_a_run
from installer.text import Text
from tests.rig.standin import MODEL, Standin, standin

pytestmark = pytest.mark.skipif(not shutil.which("gcc") and os.environ.get("CI") != "true", reason="gcc is missing")

CONTEXT = 8192
EVERYTHING = (
    "--reasoning-parser",
    "qwen3",
    "--enable-auto-tool-choice",
    "--tool-call-parser",
    "qwen3_coder",
    TRUST_FLAG,
)
CLAIMED = Target(
    base="",
    model=MODEL,
    context=CONTEXT,
    thinking_off=True,
    reasoning=True,
    tools=True,
    pictures=True,
    video=True,
    chooses_frames=True,
    predicted_bytes=30 << 30,
)
NAMES = [name for name, _ in smoke.CHECKS]


def prove(
    served: Standin, target: Target = CLAIMED, key: str | None = None, used: int | None = 29 << 30
) -> SmokeReport:
    evidence = Evidence(log=served.log, used_bytes=lambda: used)
    there = msgspec.structs.replace(target, base=served.base)
    return smoke.run(there, smoke.Start(), HttpServer(), SystemClock(), key, Cancel(), evidence=evidence)


def by_outcome(report: SmokeReport, outcome: str) -> list[str]:
    return [check.name for check in report.checks if check.outcome == outcome]


def named(report: SmokeReport, name: str) -> Check:
    return next(check for check in report.checks if check.name == name)


def test_a_good_server_passes_all_and_each_check_has_its_figure(tmp_path: Path) -> None:
    with standin(tmp_path, *EVERYTHING, fail="nvfp4", context=CONTEXT, key="the-key") as served:
        report = prove(served, key="the-key")
    assert by_outcome(report, "passed") == NAMES
    assert all(check.figure for check in report.checks)
    assert (report.remarks, smoke.problem(report)) == ((), None)
    assert named(report, "kernel").figure == "FlashInferCutlassNvFp4LinearKernel"
    figures = dict(part.split("=") for name in ("stream", "long_prompt") for part in named(report, name).figure.split())
    assert float(figures["tokens_per_second"]) > 0
    assert int(figures["prompt_tokens"]) > CONTEXT / 2
    few, many = (int(part.partition("=")[2]) for part in named(report, "video").figure.split())
    assert many - few == 4 * FRAME_TOKENS


FAULTS = {
    "sick": "health",
    "wrong_length": "models",
    "wrong_name": "models",
    "wrong_word": "completion",
    "empty_content": "completion",
    "aborted": "completion",
    "http_500": "completion",
    "stream_cut": "stream",
    "mojibake": "umlauts",
    "thoughts_in_answer": "reasoning",
    "tool_as_text": "tools",
    "blind": "picture",
    "blind_to_video": "video",
    "same_frames": "video",
    "long_500": "long_prompt",
    "cuts_prompt": "long_prompt",
    "no_limit": "over_limit",
    "limit_500": "over_limit",
    "small_cache": "memory",
    "sick_later": "alive",
}
"""What the stand-in is told to do wrong, and the check that finds it."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_the_check_of_its_name_and_by_no_other(tmp_path: Path, fault: str) -> None:
    with standin(tmp_path, *EVERYTHING, fail=fault, context=CONTEXT) as served:
        report = prove(served)
    also = ["alive"] if fault == "sick" else []
    assert by_outcome(report, "failed") == [FAULTS[fault], *also]
    assert named(report, FAULTS[fault]).detail
    problem = smoke.problem(report)
    assert isinstance(problem, SmokeFailed)
    assert problem.checks == tuple(by_outcome(report, "failed"))


def test_every_check_has_a_fault_that_it_finds() -> None:
    assert {*FAULTS.values(), "kernel"} == set(NAMES)


def test_a_release_that_takes_no_settings_from_requests_is_shown_the_video_only(tmp_path: Path) -> None:
    with standin(tmp_path, context=CONTEXT) as served:
        report = prove(served, msgspec.structs.replace(CLAIMED, chooses_frames=False), used=None)
        refused = prove(served, CLAIMED, used=None)
    assert (named(report, "video").outcome, named(report, "video").figure) == ("passed", "red square")
    assert named(refused, "video").outcome == "failed"
    assert "HTTP 400" in named(refused, "video").detail


def test_a_context_without_room_for_frames_is_asked_for_none(tmp_path: Path) -> None:
    with standin(tmp_path, *EVERYTHING, context=2048) as served:
        report = prove(served, msgspec.structs.replace(CLAIMED, context=2048), used=None)
    assert named(report, "video").detail == "context_without_video"


def test_a_server_that_falls_back_to_marlin_passes_with_a_remark(tmp_path: Path) -> None:
    with standin(tmp_path, *EVERYTHING, fail="marlin", context=CONTEXT) as served:
        report = prove(served)
    assert by_outcome(report, "failed") == []
    assert named(report, "kernel").figure == "Marlin"
    assert report.remarks == (SlowKernel(kernel="Marlin"),)


def test_a_long_text_is_as_long_behind_a_template_that_brings_much_itself(tmp_path: Path) -> None:
    with standin(tmp_path, *EVERYTHING, context=CONTEXT, template_bytes=4 * 600) as served:
        report = prove(served)
    assert by_outcome(report, "failed") == []


def test_a_silent_server_is_waited_for_once_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_of_a_run, "FIRST_ANSWER_SECONDS", 0.2)
    with standin(tmp_path, *EVERYTHING, fail="hang", context=CONTEXT) as served:
        report = prove(served)
    assert by_outcome(report, "failed") == ["completion"]
    assert named(report, "alive").outcome == "passed"
    assert {named(report, name).detail for name in ("stream", "picture", "over_limit")} == {"silent"}
    assert isinstance(smoke.problem(report), NotAnswering)


def test_what_a_profile_does_not_claim_does_not_apply_and_says_why(tmp_path: Path) -> None:
    plain = msgspec.structs.replace(CLAIMED, reasoning=False, tools=False, pictures=False, video=False)
    with standin(tmp_path, context=CONTEXT) as served:
        report = prove(served, plain, used=None)
    reasons = {name: named(report, name).detail for name in by_outcome(report, "not_applicable")}
    assert reasons == {
        "reasoning": "no_reasoning_parser",
        "tools": "no_tools",
        "picture": "no_pictures",
        "video": "no_videos",
        "kernel": "no_fp4",
    }
    for language in ("de", "en"):
        said = [Text(language).check(check) for check in report.checks]
        assert not any(reason in line for reason in reasons.values() for line in said)


def test_a_server_that_is_not_ours_is_asked_what_it_can(tmp_path: Path) -> None:
    with standin(tmp_path, context=CONTEXT) as served:
        stranger = Target(base=served.base)
        report = smoke.run(stranger, smoke.Start(), HttpServer(), SystemClock(), None, Cancel())
    assert by_outcome(report, "failed") == []
    assert named(report, "models").figure == f"{MODEL}, {CONTEXT}"
    assert {name: named(report, name).detail for name in by_outcome(report, "not_applicable")} == {
        "reasoning": "no_thoughts",
        "tools": "tools_refused",
        "memory": "memory_unknown",
        "kernel": "no_log",
    }


@pytest.mark.parametrize(("fault", "check"), [("blind", "picture"), ("blind_to_video", "video")])
def test_a_stranger_that_leaves_out_what_it_cannot_read_has_broken_no_promise(
    tmp_path: Path, fault: str, check: str
) -> None:
    """So does transformers serve with a model for text (seen with 5.17 on an H200)."""
    with standin(tmp_path, fail=fault, context=CONTEXT) as served:
        report = smoke.run(Target(base=served.base), smoke.Start(), HttpServer(), SystemClock(), None, Cancel())
    assert by_outcome(report, "failed") == []
    assert named(report, check).detail == f"{check}_unseen"


def test_the_command_line_proves_any_server_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key_file = tmp_path / "key"
    key_file.write_text("the-key\n", "utf-8")
    flags = ["--json", "--home", str(tmp_path / "home"), "--key-file", str(key_file)]
    with standin(tmp_path, context=CONTEXT, key="the-key") as served:
        assert cli.run(["smoke", "--endpoint", f"{served.base}/v1/", *flags]) == 0
        (proved,) = [event for event in events(capsys) if event["event"] == "proved"]
        assert [check["name"] for check in proved["report"]["checks"]] == NAMES
        assert "failed" not in {check["outcome"] for check in proved["report"]["checks"]}
        assert cli.run(["smoke", "--endpoint", served.base, *flags[:3], "--language", "de"]) == 60
        *_, settled, _ = events(capsys)
        assert settled["problem"]["checks"] == ["models", "completion"]
    assert not (tmp_path / "home").exists()
    assert cli.run(["smoke", "--endpoint", "ftp://name:secret@host", *flags]) == 2
    assert "secret" not in capsys.readouterr().out


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

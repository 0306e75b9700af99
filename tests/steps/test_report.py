"""The report: everything that proves an installation, and nothing that a stranger must not see."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from installer.domain import compose
from installer.domain.facts import GpuProcess, Proxy
from installer.domain.problems import NotWritable
from installer.domain.units import GIB
from installer.steps import report
from installer.text import Language, Text, machine, names, notes
from tests.adapters.engine_kit import problem_in
from tests.builders import recorded
from tests.steps.kit import LARGE_PROFILE, Rehearsal, rehearsal

NOW = "2026-12-01T08:00:00Z"


@pytest.fixture
def stage(tmp_path: Path) -> Rehearsal:
    installed = rehearsal(tmp_path, card="rtx-5090-linux", profile=LARGE_PROFILE, context=32768)
    installed.install()
    return installed


def written(stage: Rehearsal, language: Language = "en") -> str:
    return Text(language).report(report.of(stage.home.stack("chat"), NOW, stage.facts()))


def cells(text: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


@pytest.mark.parametrize("language", ["de", "en"])
def test_it_tells_model_image_proof_memory_and_every_argument(stage: Rehearsal, language: Language) -> None:
    text, plan = written(stage, language), stage.home.stack("chat").installed()
    rows = {row[0]: row for row in cells(text)}
    t = Text(language)
    assert plan.weights.commit in text
    assert plan.image.index_digest in text
    assert t.tokens_of(32768, plan.native_context) in text
    assert t.context_copy(32768, plan.native_context) in text
    for check in report.of(stage.home.stack("chat"), NOW, stage.facts()).proof.checks:
        assert notes.found(check, t) in rows[names.check(check.name, t)]
    figures = stage.home.stack("chat").figures()
    assert figures is not None
    for _, seen, said in t.compared(figures):
        assert any(seen in row and said in row for row in rows.values())
    for flag in plan.arguments:
        assert rows[f"`{flag.flag}`"][2] == t.flag_reason(flag.reason)
    assert rows["`--limit-mm-per-prompt`"][1] == '{"image":4,"video":1}'


def test_no_secret_no_folder_and_no_serial_number_is_in_it(stage: Rehearsal) -> None:
    key = compose.key_from_env(stage.file("vllm.env").read_text())
    plan = stage.home.stack("chat").installed()
    assert key
    assert plan.gpu
    for language in ("de", "en"):
        text = written(stage, language)
        for hidden in (key, str(stage.folder), "/home", plan.gpu.uuid, stage.container().id):
            assert hidden not in text


def test_it_tells_the_computer_and_nothing_that_tells_whose_it_is(stage: Rehearsal) -> None:
    proxy = Proxy(https="http://proxy.secret-company.example:3128")
    seen = stage.facts()
    (gpu,) = seen.nvidia.gpus
    process = GpuProcess(pid=4711, name="/home/jane/secret-program", used_bytes=1 << 30)
    nvidia = msgspec.structs.replace(seen.nvidia, gpus=(msgspec.structs.replace(gpu, processes=(process,)),))
    engine = msgspec.structs.replace(seen.engine, endpoint="unix:///home/jane/docker.sock", proxy=proxy)
    host = msgspec.structs.replace(seen.host, release="6.8.0-janes-own", proxy=proxy)
    facts = msgspec.structs.replace(seen, nvidia=nvidia, engine=engine, host=host)
    text = Text("en").report(report.of(stage.home.stack("chat"), NOW, facts))
    assert seen.nvidia.driver_version
    for told in (gpu.name, seen.nvidia.driver_version, seen.engine.version, seen.compose.version, "Linux"):
        assert any(told in row[1] for row in cells(text) if len(row) > 1)
    for hidden in ("jane", "secret", "4711", gpu.uuid, seen.engine.data_root, seen.weights_folder.path):
        assert hidden not in text


@pytest.mark.parametrize("name", ["engine-down", "no-nvidia-card", "gb10", "rtx-5090-wsl2"])
@pytest.mark.parametrize("language", ["de", "en"])
def test_any_computer_can_be_told(name: str, language: Language) -> None:
    rows = machine.rows(recorded(name), Text(language))
    assert all(name and value for name, value in rows)
    assert ("WSL2" in rows[0][1]) == (name == "rtx-5090-wsl2")


def test_a_plan_that_was_not_proved_says_so_and_what_it_reckons_with(stage: Rehearsal) -> None:
    home = stage.home.stack("chat")
    plan = home.installed()
    home.save_plan(msgspec.structs.replace(plan, port=8123))
    text = written(stage)
    assert "has not been proved yet" in text
    assert plan.fit
    assert f"{plan.fit.estimate.high_bytes / GIB:.2f}" in text


def test_a_bar_or_a_line_break_in_an_answer_does_not_break_the_table(stage: Rehearsal) -> None:
    home = stage.home.stack("chat")
    proof = home.proof()
    assert proof is not None
    odd = msgspec.structs.replace(proof.checks[0], figure="a | b\n\x1b[31m# c")
    home.save_proof(msgspec.structs.replace(proof, checks=(odd, *proof.checks[1:])))
    assert ["Server is ready", "passed", "“a \\| b [31m# c”", "0\N{NO-BREAK SPACE}s"] in cells(written(stage))


def test_it_is_written_where_the_person_wants_it(stage: Rehearsal, tmp_path: Path) -> None:
    file = report.save(str(tmp_path / "new" / "report.md"), "# Grün\n")
    assert file.read_text("utf-8") == "# Grün\n"
    (tmp_path / "a file").write_text("")
    problem = problem_in(lambda: report.save(str(tmp_path / "a file" / "report.md"), "x"))
    assert isinstance(problem, NotWritable)

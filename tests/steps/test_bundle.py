"""The bundle: everything about a failure, and nothing that a stranger must not see."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from installer.domain.problems import NotWritable
from installer.steps import bundle
from installer.steps.home import FAILED_START_LOG
from tests.adapters.engine_kit import problem_in
from tests.steps.kit import Rehearsal, rehearsal

NOW = "2026-12-01T08:00:00Z"
TOKEN = "hf_abcdefghijklmnop"


def packed(stage: Rehearsal, tmp_path: Path, log: bytes = b"") -> dict[str, str]:
    path = bundle.save(str(tmp_path / "Bündel.zip"), bundle.files(stage.home, stage.facts(), NOW, log))
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_a_failed_start_leaves_its_log_its_events_and_its_plan(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path / "home", fail="start:container_exited")
    problem = stage.fails()
    assert stage.container() is None
    held = packed(stage, tmp_path)
    assert {f"chat/{name}" for name in ("plan.json", "events.jsonl", FAILED_START_LOG)} <= set(held)
    assert problem.kind in held["chat/events.jsonl"]
    assert problem.technical[-1] in held[f"chat/{FAILED_START_LOG}"]
    about = json.loads(held["about.json"])
    assert (about["made_at"], set(about["holds"])) == (NOW, set(held) - {"about.json"})


def test_nothing_in_it_tells_a_secret_or_whose_computer_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    stage = rehearsal(tmp_path / "home")
    stage.install()
    key = stage.file("vllm.env").read_text().partition("=")[2].strip()
    held = packed(stage, tmp_path, f"Authorization: Bearer {TOKEN}\nVLLM_API_KEY={key}\n".encode())
    everything = "\n".join(held.values())
    assert key
    for secret in (key, TOKEN, str(tmp_path), stage.facts().nvidia.gpus[0].uuid):
        assert secret not in everything
    assert "chat/vllm.env" not in held
    assert json.loads(held["machine.json"])["nvidia"]["gpus"][0]["name"]


def test_where_nothing_is_installed_the_machine_alone_is_packed(tmp_path: Path) -> None:
    assert set(packed(rehearsal(tmp_path / "home"), tmp_path)) == {"about.json", "machine.json"}


def test_a_place_where_nothing_can_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert isinstance(problem_in(lambda: bundle.save(str(tmp_path / "file" / "b.zip"), {})), NotWritable)

"""What a person may get wrong: every file and flag is refused with its place and reason, and nothing is written."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import pytest
from filelock import FileLock

from installer.cli.main import run
from installer.domain import plan as plans
from tests.builders import ROOT, planned
from tests.e2e.world import ANSWERS, Ended, parse, slipway, start, tree, words

SECRET = "hf_neverSayThis0123456789"
RECORDED = ROOT / "tests" / "machines" / "rtx-5090-linux.json"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "Jürgen Müller" / "slipway"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def environment(tmp_path: Path, home: Path) -> dict[str, str]:
    """A machine without an engine: whoever gets as far as asking for one is told so."""
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(tmp_path),
        "SLIPWAY_HOME": str(home),
        "DOCKER_HOST": f"unix://{tmp_path}/none",
        "DOCKER_CONFIG": str(tmp_path / "docker"),
        "SLIPWAY_DEBUG": "1",
    }


def refused(ended: Ended, kind: str) -> Mapping[str, object]:
    """The problem of a run that was refused as what was asked for, with words in both languages."""
    assert (ended.code, ended.problem["kind"]) == (2, kind), (ended.stdout, ended.stderr)
    assert all(words(ended.problem))
    assert flat(ended.problem["sentence"]) in flat(ended.stderr)
    assert "Traceback" not in ended.stderr
    return ended.problem


def here(arguments: Iterable[str], environment: Mapping[str, str]) -> Ended:
    """Run the command line in this process: a process for each of many files would take a minute."""
    out, err = io.BytesIO(), io.BytesIO()
    spoken, complained = (io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in (out, err))
    with mock.patch.dict(os.environ, environment, clear=True), redirect_stdout(spoken), redirect_stderr(complained):
        code = run(list(arguments))
    said = out.getvalue().decode()
    return Ended(code, parse(said), err.getvalue().decode(), stdout=said)


def flat(words: str) -> str:
    """Words without the line breaks of a narrow terminal."""
    return "".join(words.split())


def install(environment: Mapping[str, str], *arguments: str) -> Ended:
    return here(("install", "--yes", "--json", *arguments), environment)


# --- files -----------------------------------------------------------------------------------------------------------


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        file = folder / name
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), "utf-8")

    return damage


def removed(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


REGISTRIES = {
    "no YAML": (replaced("images.yaml", "images:", "images: ]"), "images.yaml", "line"),
    "a key that nobody knows": (replaced("images.yaml", "auth: key", "autth: key"), "images.yaml", "$.images."),
    "a wrong type": (replaced("profiles.yaml", "quality: ", "quality: very "), "profiles.yaml", "$.profiles."),
    "a key that stands twice": (replaced("models.yaml", "models:", "models: {}\nmodels:"), "models.yaml", "line"),
    "a model that is not defined": (replaced("profiles.yaml", "model: ", "model: no-"), "profiles.yaml", "$.profiles."),
    "a flag that the release has not": (
        replaced("profiles.yaml", "flag: --", "flag: --no-such-"),
        "profiles.yaml",
        "flags[0].flag",
    ),
    "a file that is missing": (removed("licences.yaml"), "", "$"),
}


@pytest.mark.parametrize("case", REGISTRIES)
def test_a_malformed_registry(case: str, environment: dict[str, str], home: Path, tmp_path: Path) -> None:
    damage, file, where = REGISTRIES[case]
    folder = tmp_path / "registry"
    shutil.copytree(ROOT / "installer" / "registry", folder)
    damage(folder)
    problem = refused(install(environment, "--answers", str(ANSWERS), "--registry", str(folder)), "malformed_file")
    assert str(problem["path"]).endswith(file)
    assert where in str(problem["where"])
    assert problem["reason"]
    assert tree(home) == {}


ANSWERED = {
    "no YAML": (b"profile: [", "line 2, column 1"),
    "a key that nobody knows": (b"profil: x", "$"),
    "a secret": (f"hf_token: {SECRET}".encode(), "$"),
    "a wrong type": (b"context: many", "$.context"),
    "a list": (b"- profile", "$"),
    "a date that no calendar has": (b"port: 2026-13-45", "$"),
    "a control character": (b"profile: \x00", "$"),
    "no end of brackets": (b"[" * 100_000, "line 1, column 1001"),
    "a name that is a number": (b"1: 2", "line 1, column 1"),
}


@pytest.mark.parametrize("case", ANSWERED)
def test_malformed_answers(case: str, environment: dict[str, str], home: Path, tmp_path: Path) -> None:
    content, where = ANSWERED[case]
    file = tmp_path / "answers.yaml"
    file.write_bytes(content)
    ended = install(environment, "--answers", str(file))
    problem = refused(ended, "malformed_file")
    assert (problem["path"], problem["where"]) == (str(file), where)
    assert problem["reason"]
    assert SECRET not in ended.stdout + ended.stderr
    assert tree(home) == {}


@pytest.mark.parametrize("line", ["port: 80", "context: 1", "gpu_uuid: 0", "docker_image_pin_digest: latest"])
def test_an_answer_outside_its_limits_names_the_field_and_what_is_possible(
    line: str, environment: dict[str, str], home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "answers.yaml"
    file.write_text(line.replace(": 0", ": '0'"))
    problem = refused(install(environment, "--answers", str(file)), "bad_choice")
    assert problem["field"] == line.partition(":")[0]
    assert problem["limit"]
    assert tree(home) == {}


@pytest.mark.parametrize("flag", ["--answers", "--registry", "--machine", "--hf-token-file"])
def test_a_file_that_is_not_there(flag: str, environment: dict[str, str], home: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    problem = refused(install(environment, flag, missing), "file_unreadable")
    assert problem["path"] == missing
    assert tree(home) == {}


@pytest.mark.parametrize("flag", ["--answers", "--machine"])
def test_a_file_that_is_no_text_or_a_folder(flag: str, environment: dict[str, str], home: Path, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00\x81")
    for path in (binary, tmp_path):
        assert refused(install(environment, flag, str(path)), "file_unreadable")["path"] == str(path)
    assert tree(home) == {}


MACHINES = {
    "empty": (lambda _: "", "$"),
    "no JSON": (lambda text: text[:-5], "$"),
    "a wrong type": (lambda text: text.replace('"gpus": [', '"gpus": [7, ', 1), "$.nvidia.gpus[0]"),
    "a list": (lambda _: "[]", "$"),
}


@pytest.mark.parametrize(("verb", "case"), [*(("install", case) for case in MACHINES), ("offers", "empty")])
def test_a_malformed_machine(case: str, verb: str, environment: dict[str, str], home: Path, tmp_path: Path) -> None:
    damage, where = MACHINES[case]
    file = tmp_path / "machine.json"
    file.write_text(damage(RECORDED.read_text("utf-8")), "utf-8")
    more = ("--dry-run", "--yes", "--home", str(home)) if verb == "install" else ()
    problem = refused(here((verb, "--json", "--machine", str(file), *more), environment), "malformed_file")
    assert (problem["path"], problem["where"]) == (str(file), where)
    assert problem["reason"]
    assert tree(home) == {}


OF_THE_HOME = {
    "cut short": ("chat/plan.json", lambda text: text[: len(text) // 2], "$"),
    "empty": ("chat/plan.json", lambda _: "", "$"),
    "a wrong type": ("chat/plan.json", lambda text: text.replace('"port": 8000', '"port": "x"'), "$.port"),
    "a key that nobody knows": ("chat/plan.json", lambda text: text.replace("{", '{"more": 1,', 1), "$"),
    "of a later Slipway": ("chat/plan.json", lambda text: text.replace('"schema": 1', '"schema": 99'), "$.schema"),
}


@pytest.mark.parametrize(
    ("verb", "case"),
    [*(("install", case) for case in OF_THE_HOME), *((verb, "cut short") for verb in ("status", "start", "uninstall"))],
)
def test_a_damaged_plan_is_named_and_left_as_it_is(
    case: str, verb: str, environment: dict[str, str], home: Path
) -> None:
    name, damage, where = OF_THE_HOME[case]
    whole = plans.to_json(planned()).decode()
    (home / "chat").mkdir()
    (home / name).write_text(damage(whole), "utf-8")
    before = tree(home)
    more = {"install": ("--answers", str(ANSWERS), "--yes"), "uninstall": ("--yes",)}.get(verb, ())
    ask = slipway if verb == "status" else here  # docker-py leaves a socket open where there is no engine
    problem = refused(ask((verb, "--json", *more), environment), "malformed_file")
    assert (problem["path"], problem["where"]) == (str(home / name), where)
    assert problem["reason"]
    assert tree(home) == before


# --- flags -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("--hf-token", SECRET),
        (f"--hf-token={SECRET}",),
        (f"--api-key={SECRET}",),
        ("--api-key", SECRET),
        ("--context", SECRET),
        (SECRET,),
    ],
)
def test_a_secret_on_the_command_line_is_refused_and_never_repeated(
    arguments: tuple[str, ...], environment: dict[str, str], home: Path
) -> None:
    ended = slipway(("install", "--yes", "--json", *arguments), environment)
    assert SECRET not in ended.stdout + ended.stderr
    assert refused(ended, "bad_arguments")
    assert tree(home) == {}


def test_a_token_that_was_given_for_a_file_is_never_repeated(environment: dict[str, str], home: Path) -> None:
    for flag in ("--hf-token-file", "--api-key-file"):
        ended = install(environment, flag, SECRET)
        assert ended.code == 2
        assert SECRET not in ended.stdout + ended.stderr
    assert tree(home) == {}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("instal",), ""), (("install", "--no-such-flag"), "--no-such-flag"), (("plan",), "--out"), (("--jsn",), "--jsn")],
)
def test_an_unknown_verb_or_flag(
    arguments: tuple[str, ...], named: str, environment: dict[str, str], home: Path
) -> None:
    ended = here((*arguments, "--json"), environment)
    assert named in str(refused(ended, "bad_arguments"))
    assert tree(home) == {}


def test_the_sentences_are_in_the_language_that_was_asked_for_also_without_a_locale(
    environment: dict[str, str], tmp_path: Path
) -> None:
    bare = {name: value for name, value in environment.items() if name != "LANG"} | {"LC_ALL": "C"}
    missing = tmp_path / "Straße"
    arguments = ("offers", "--json", "--machine", str(missing))
    english = slipway((*arguments, "--language", "en"), bare)
    german = slipway((*arguments, "--language=de"), bare)
    assert f"“{missing}”" in english.problem["sentence"]
    assert f"Datei „{missing}“" in german.problem["sentence"]
    assert flat(german.problem["sentence"]) in flat(german.stderr)
    assert (german.problem["kind"], german.problem["path"]) == (english.problem["kind"], english.problem["path"])
    assert slipway(arguments, bare | {"SLIPWAY_LANGUAGE": "de"}).problem == german.problem
    for_a_person = slipway(("offers", "--language", "de", "--machine", str(RECORDED)), bare)
    assert for_a_person.code == 0
    assert any(letter in for_a_person.stdout for letter in "äöüÄÖÜß")


# --- a run that cannot begin -----------------------------------------------------------------------------------------


def test_without_a_yes_and_without_a_person_nothing_is_installed(environment: dict[str, str], home: Path) -> None:
    ended = slipway(
        ("install", "--json", "--dry-run", "--machine", str(RECORDED), "--answers", str(ANSWERS), "--home", str(home)),
        environment,
    )
    assert refused(ended, "consent_needed")["stack"] == "chat"
    assert ended.named("started") == []


@pytest.mark.parametrize("verb", ["install", "stop", "uninstall"])
def test_a_home_that_another_slipway_holds(verb: str, environment: dict[str, str], home: Path) -> None:
    (home / "chat").mkdir()
    (home / "chat" / "plan.json").write_bytes(plans.to_json(planned()))
    with FileLock(home / "lock"):
        (home / "lock.pid").write_text(f"{os.getpid()}\n")
        before = tree(home)
        more = ("--answers", str(ANSWERS), "--yes") if verb == "install" else ()
        ended = here((verb, "--json", *more), environment)
        problem = refused(ended, "already_running")
        assert (problem["pid"], problem["home"]) == (os.getpid(), str(home))
        assert str(os.getpid()) in str(problem["sentence"])
        assert tree(home) == before


def test_two_real_runs_do_not_share_a_home(environment: dict[str, str], home: Path) -> None:
    arguments = ("install", "--yes", "--json", "--dry-run", "--machine", str(RECORDED), "--home", str(home))
    first = start((*arguments, "--answers", str(ANSWERS), "--dry-run-speed", "0.01"), environment)
    try:
        assert first.stdout is not None
        first.stdout.readline()
        second = slipway((*arguments, "--answers", str(ANSWERS)), environment)
        assert refused(second, "already_running")["pid"] == first.pid
    finally:
        first.kill()
        first.communicate()
    third = slipway((*arguments, "--answers", str(ANSWERS), "--dry-run-speed", "10000"), environment)
    assert third.code == 0, third.stderr


# --- without what a part of Slipway needs ----------------------------------------------------------------------------


@pytest.fixture
def without_window(tmp_path: Path, environment: dict[str, str]) -> dict[str, str]:
    """An environment in which PySide6 is not there."""
    for name in ("PySide6", "shiboken6"):
        (tmp_path / "blocked" / name).mkdir(parents=True)
        (tmp_path / "blocked" / name / "__init__.py").write_text("raise ImportError('not here')\n")
    return environment | {"PYTHONPATH": str(tmp_path / "blocked")}


def test_detect_and_version_work_without_a_toolkit_for_windows(without_window: dict[str, str]) -> None:
    assert slipway(("--version",), without_window).stdout.startswith("slipway ")
    seen = slipway(("detect", "--json"), without_window)
    assert seen.code == 0, seen.stderr
    assert seen.events[0]["engine"]["state"] in ("down", "not_installed")
    assert seen.events[0]["nvidia"]["state"]


def test_version_imports_neither_docker_nor_qt(environment: dict[str, str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "installer", "--version"]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=60)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in ended.stderr.splitlines()}
    assert "installer" in imported
    assert imported.isdisjoint({"docker", "PySide6", "requests", "msgspec", "yaml", "rich"})

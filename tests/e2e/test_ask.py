"""The verbs that need a home and no engine: ask, report, token, and what is said before anything was installed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import keyring
import msgspec
import pytest
from filelock import FileLock
from keyring.backends import null
from PIL import Image

from installer import doors
from installer.adapters.machine import LocalMachine
from installer.cli.main import run
from installer.domain import compose
from installer.domain import plan as plans
from installer.steps import read
from tests.builders import ROOT, planned
from tests.e2e.world import KEY, Ended, parse, slipway, tree
from tests.rig.process import wait_for

TOKEN = "hf_neverSayThis0123456789"


@dataclass
class Answering:
    """A server that streams these words, slowly if asked to, and keeps what it was asked."""

    words: tuple[str, ...] = ("Grün", " und", " \x1b[31mrot")
    pause_s: float = 0.0
    status: int = 200
    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Answering]:
    script = Answering()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._begin(200)

        def do_POST(self) -> None:
            script.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            script.keys.append(self.headers["Authorization"])
            self._begin(script.status)
            if script.status != 200:
                self.wfile.write(json.dumps({"error": {"message": "limit of 65536", "code": script.status}}).encode())
                return
            self._say({"delta": {"reasoning": "Let me think."}})
            for word in script.words:
                self._say({"delta": {"content": word}})
                time.sleep(script.pause_s)
            self._say({"delta": {}, "finish_reason": "stop"})
            self._event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9}})
            self.wfile.write(b"data: [DONE]\n\n")

        def _begin(self, status: int) -> None:
            self.send_response(status)
            self.end_headers()

        def _say(self, choice: dict[str, Any]) -> None:
            self._event({"choices": [{"index": 0, **choice}]})

        def _event(self, value: object) -> None:
            self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().handle()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        script.port = listening.server_address[1]
        yield script
        listening.shutdown()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "Jürgen Müller" / "slipway"


@pytest.fixture
def environment(tmp_path: Path, home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(tmp_path),
        "SLIPWAY_HOME": str(home),
        "DOCKER_HOST": f"unix://{tmp_path}/none",
        "SLIPWAY_DEBUG": "1",
    }


@pytest.fixture
def installed(home: Path, server: Answering) -> Path:
    """A home in which a plan is installed whose server is the one that answers."""
    plan = msgspec.structs.replace(planned(), port=server.port)
    (home / "chat").mkdir(parents=True)
    (home / "chat" / "plan.json").write_bytes(plans.to_json(plan))
    (home / "chat" / "vllm.env").write_text(compose.env_text(KEY))
    return home


def here(environment: Mapping[str, str], *arguments: str) -> Ended:
    out, err = io.BytesIO(), io.BytesIO()
    spoken, complained = (io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in (out, err))
    with mock.patch.dict(os.environ, environment, clear=True), redirect_stdout(spoken), redirect_stderr(complained):
        code = run(list(arguments))
    said = out.getvalue().decode()
    return Ended(code, parse(said), err.getvalue().decode(), stdout=said)


# --- ask -------------------------------------------------------------------------------------------------------------


def test_the_answer_alone_is_on_standard_output(
    installed: Path, server: Answering, environment: dict[str, str]
) -> None:
    ended = here(environment, "ask", "Which colour?", "--language", "de")
    assert ended.code == 0
    assert ended.stdout == "Grün und [31mrot\n"
    assert "Let me think." in ended.stderr
    assert "Token pro Sekunde" in ended.stderr
    assert server.asked[0]["messages"] == [{"role": "user", "content": "Which colour?"}]
    assert server.keys == [f"Bearer {KEY}"]


def test_as_json_every_piece_is_a_line_and_the_last_has_the_figures(
    installed: Path, server: Answering, environment: dict[str, str]
) -> None:
    ended = here(environment, "ask", "Which colour?", "--json")
    *pieces, last = ended.events
    assert [piece["event"] for piece in pieces] == ["delta"] * 4
    assert "".join(piece["content"] for piece in pieces) == last["content"] == "Grün und \x1b[31mrot"
    assert (last["event"], last["finish"], last["reasoning"]) == ("answered", "stop", "Let me think.")
    assert (last["prompt_tokens"], last["generated_tokens"]) == (5, 9)
    assert last["first_token_seconds"] >= 0
    assert KEY not in ended.stdout + ended.stderr


def test_a_picture_goes_along_and_it_is_said_where_it_is_made_smaller(
    installed: Path, server: Answering, environment: dict[str, str], tmp_path: Path
) -> None:
    Image.new("1", (5000, 4000)).save(tmp_path / "large.png")
    ended = here(environment, "ask", "What?", "--picture", str(tmp_path / "large.png"), "--language", "de")
    assert ended.code == 0
    assert "5.000\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}4.000" in ended.stderr
    assert server.asked[0]["messages"][0]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")
    told = here(environment, "ask", "What?", "--json", "--picture", str(tmp_path / "large.png")).events[-1]
    assert told["picture"]["original"] == [5000, 4000]
    broken = here(environment, "ask", "What?", "--json", "--image", str(ROOT / "README.md"))
    assert (broken.code, broken.problem["kind"], broken.problem["state"]) == (2, "picture_unreadable", "unknown_format")


def test_a_question_beyond_the_context_gets_the_words_of_the_context_copy(
    installed: Path, server: Answering, environment: dict[str, str]
) -> None:
    server.status = 400
    ended = here(environment, "ask", "too long", "--json")
    assert (ended.code, ended.problem["kind"]) == (2, "beyond_context")
    assert "65,536" in ended.problem["sentence"]
    server.status = 401
    refused = here(environment, "ask", "no", "--json")
    assert (refused.code, refused.problem["kind"], refused.problem["status"]) == (60, "answer_refused", 401)
    assert KEY not in refused.stdout + refused.stderr


def test_where_neither_server_nor_docker_answers_docker_is_the_cause(
    installed: Path, server: Answering, environment: dict[str, str]
) -> None:
    plan = msgspec.structs.replace(planned(), port=LocalMachine().free_ports(20000, 1)[0])
    (installed / "chat" / "plan.json").write_bytes(plans.to_json(plan))
    ended = slipway(("ask", "Hello?", "--json"), environment)
    assert (ended.code, ended.problem["kind"]) == (20, "engine_down")


def test_ctrl_c_ends_an_answer_at_once(installed: Path, server: Answering, environment: dict[str, str]) -> None:
    server.words, server.pause_s = ("on and on ",) * 1000, 0.05
    process = subprocess.Popen(
        [sys.executable, "-m", "installer", "ask", "-", "--json"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("Wie spät ist es?".encode())
    process.stdin.close()
    try:
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        pressed = time.monotonic()
        assert process.wait(10) == 130
        assert time.monotonic() - pressed < 2
    finally:
        process.kill()
        process.stdout.close()
        assert process.stderr is not None
        process.stderr.close()
    assert server.asked[0]["messages"][0]["content"] == "Wie spät ist es?"


# --- report ----------------------------------------------------------------------------------------------------------


def test_a_report_goes_into_a_file_or_to_standard_output(
    installed: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "report.md"
    ended = slipway(("report", str(file), "--json", "--language", "de"), environment)
    assert (ended.code, ended.events[0]["file"]) == (0, str(file))
    assert file.read_text("utf-8").startswith("# Slipway: qwen")
    assert "noch nicht geprüft" in file.read_text("utf-8")
    shown = slipway(("report", "-", "--language", "de"), environment).stdout
    assert shown.startswith("# Slipway: qwen")
    assert "| Arbeitsspeicher |" in shown
    assert KEY not in file.read_text("utf-8")


# --- token -----------------------------------------------------------------------------------------------------------


def test_a_token_is_taken_from_a_file_and_never_shown(environment: dict[str, str], tmp_path: Path) -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(null.Keyring())
    file = tmp_path / "token"
    file.write_text(TOKEN)
    try:
        ended = here(environment, "token", "store", "--hf-token-file", str(file), "--json")
        assert (ended.code, ended.problem["kind"], ended.problem["state"]) == (2, "no_token_store", "none")
        assert TOKEN not in ended.stdout + ended.stderr
        assert here(environment, "token", "forget", "--json").events == [{"stored": False}]
        assert here(environment, "token", "--json").problem["kind"] == "bad_arguments"
    finally:
        keyring.set_keyring(before)


# --- before anything is installed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [("status",), ("logs",), ("stop",), ("ask", "x"), ("report", "-"), ("smoke",)])
def test_what_is_not_installed_is_said_before_the_machine_is_read(
    verb: tuple[str, ...], environment: dict[str, str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reads(*_: object, **__: object) -> None:
        raise AssertionError("the machine was read")

    monkeypatch.setattr(read, "facts", reads)
    ended = here(environment, *verb, "--json")
    assert (ended.code, ended.problem["kind"]) == (2, "not_installed")
    assert not home.exists()


@pytest.mark.parametrize("verb", [("status",), ("stop",), ("start",), ("ask", "x"), ("uninstall", "--yes")])
def test_while_the_first_installation_runs_that_is_what_is_said(
    verb: tuple[str, ...], environment: dict[str, str], home: Path
) -> None:
    home.mkdir(parents=True)
    with FileLock(home / "lock"):
        (home / "lock.pid").write_text("4711\n")
        before = tree(home)
        ended = here(environment, *verb, "--json")
        assert (ended.problem["kind"], ended.problem["pid"]) == ("already_running", 4711)
        assert tree(home) == before
    assert here(environment, *verb, "--json").problem["kind"] == "not_installed"


def test_a_real_first_installation_is_told_to_who_wants_to_stop_it(environment: dict[str, str], home: Path) -> None:
    machine = str(ROOT / "tests" / "machines" / "rtx-5090-linux.json")
    arguments = ("install", "--dry-run", "--dry-run-speed", "0.01", "--machine", machine, "--yes", "--home", str(home))
    process = subprocess.Popen(
        [sys.executable, "-m", "installer", *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        wait_for((home / "lock.pid").exists, 20, "the installation")
        ended = here(environment, "stop", "--json")
        assert (ended.code, ended.problem["kind"], ended.problem["pid"]) == (2, "already_running", process.pid)
    finally:
        process.kill()
        process.wait()


def test_before_a_yes_it_is_said_how_long_the_download_will_take(environment: dict[str, str], home: Path) -> None:
    typed = io.StringIO("n\n")
    typed.isatty = lambda: True  # type: ignore[method-assign]
    machine = str(ROOT / "tests" / "machines" / "rtx-5090-linux.json")
    with mock.patch("sys.stdin", typed):
        ended = here(environment, "install", "--dry-run", "--dry-run-speed", "1000", "--machine", machine)
    assert ended.code == 130
    assert "about 5 minutes at 100\N{NO-BREAK SPACE}MB per second" in " ".join(ended.stdout.split("\n  "))


def test_the_failures_that_a_dry_run_can_show_are_listed_in_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["install", "--help", "--language", "de"])
    listed = "".join(capsys.readouterr().out.split())
    assert [kind for kind in doors.dry_run_failures() if kind not in listed] == []

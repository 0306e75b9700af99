"""The client for the served model: over the loopback, in time, and never by way of somebody else."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from installer.adapters.clock import SystemClock
from installer.adapters.server import HttpServer
from installer.domain.addresses import own_server
from installer.domain.problems import Cancelled
from installer.steps import smoke
from installer.steps.cancel import Cancel
from tests.fuzz.wire import Spoiled, wire
from tests.rig.process import AT_ONCE_S

SERVER = HttpServer()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/models")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path == "/drip":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            for _ in range(600):
                self.wfile.write(b".")
                time.sleep(0.05)
            return
        self._say(
            200, {"path": self.path, "authorization": self.headers["Authorization"], "host": self.headers["Host"]}
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._say(400 if body.get("bad") else 200, {"echo": body})

    def _say(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            super().handle()


@pytest.fixture
def base() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield own_server(server.server_address[1])
        server.shutdown()


def test_the_key_and_the_body_reach_the_server_and_its_answer_comes_back_whole(base: str) -> None:
    seen = SERVER.get(base, "/v1/models?x=1", 5, key="k-9_x")
    assert (seen.status, json.loads(seen.body)["authorization"]) == (200, "Bearer k-9_x")
    assert json.loads(SERVER.get(base, "/health", 5).body)["authorization"] is None
    answer = SERVER.post(base, "/v1/chat/completions", {"messages": ["grün"]}, 5)
    assert json.loads(answer.body) == {"echo": {"messages": ["grün"]}}
    assert SERVER.post(base, "/", {"bad": True}, 5).status == 400


def test_no_proxy_of_the_environment_is_asked(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    assert SERVER.get(base, "/health", 5).status == 200


def test_a_server_elsewhere_is_asked_below_its_path_and_a_netrc_says_nothing(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine far.example login somebody password secret\n", "utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", base)
    monkeypatch.setenv("no_proxy", "")
    seen = json.loads(SERVER.get("http://far.example/llm", "/v1/models", 5, key="k-9_x").body)
    assert (seen["path"], seen["authorization"]) == ("http://far.example/llm/v1/models", "Bearer k-9_x")
    assert json.loads(SERVER.get("http://far.example", "/health", 5).body)["authorization"] is None


@pytest.mark.parametrize("base", ["http://[", "nothing", "http://127.0.0.1:99999999", "http://\x00/"])
def test_an_address_that_is_none_is_no_answer(base: str) -> None:
    assert SERVER.get(base, "/health", 1).status == 0


def test_a_redirect_is_an_answer_and_not_followed(base: str) -> None:
    assert SERVER.get(base, "/moved", 5).status == 302


def closed(listener: socket.socket) -> None:
    listener.close()


def silent(listener: socket.socket) -> None:
    pass


def hanging_up(listener: socket.socket) -> None:
    def accept() -> None:
        connection, _ = listener.accept()
        connection.recv(100)
        connection.close()

    threading.Thread(target=accept, daemon=True).start()


def no_http(listener: socket.socket) -> None:
    def accept() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(100)
            connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")

    threading.Thread(target=accept, daemon=True).start()


@pytest.mark.parametrize("behave", [closed, silent, hanging_up, no_http])
def test_whatever_is_on_the_port_no_answer_is_status_zero_in_time(behave: Callable[[socket.socket], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        base = own_server(listener.getsockname()[1])
        behave(listener)
        answer = SERVER.get(base, "/health", 0.3)
    assert (answer.status, answer.body) == (0, b"")
    assert answer.seconds < AT_ONCE_S


def test_the_limit_is_for_the_whole_answer_and_not_for_each_read(base: str) -> None:
    answer = SERVER.get(base, "/drip", 0.4)
    assert answer.status == 0
    assert 0.3 < answer.seconds < AT_ONCE_S


@pytest.mark.parametrize(
    "ask",
    [
        lambda base, cancel: SERVER.get(base, "/v1/models", 60, cancel=cancel),
        lambda base, cancel: SERVER.post(base, "/v1/chat/completions", {}, 60, cancel=cancel),
    ],
    ids=["get", "post"],
)
def test_a_person_who_stops_is_not_kept_waiting_by_a_server_that_never_answers(
    ask: Callable[[str, Cancel], object],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cancel = Cancel()
        threading.Timer(0.2, cancel.set).start()
        began = time.monotonic()
        with pytest.raises(Cancelled):
            ask(own_server(silent.getsockname()[1]), cancel)
        assert time.monotonic() - began < AT_ONCE_S


def test_a_server_that_repeats_the_key_when_it_refuses_it_is_quoted_without_it() -> None:
    key = "the-key-of-the-test-42"
    wire().script = lambda _: Spoiled().around(f"no access with {key}".encode(), "401 x")
    target = smoke.Target(base=f"http://{wire().address}", model="m")
    report = smoke.run(target, smoke.Start(), HttpServer(), SystemClock(), key, Cancel())
    failed = [check for check in report.checks if check.outcome == "failed"]
    assert [check.name for check in failed] == ["health", "models", "completion", "alive"]
    assert all("no access with" in check.detail for check in failed)
    assert key not in repr((report, smoke.problem(report)))

"""An answer that streams: read as it comes, ended at once, and every way in which it can go wrong."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installer.adapters.server import HttpServer
from installer.adapters.streaming import events
from installer.domain.addresses import own_server
from installer.domain.problems import AnswerBroken, AnswerRefused, Cancelled, NotAnswering
from installer.steps.cancel import Cancel
from installer.steps.ports import Delta, Usage
from tests.adapters.engine_kit import problem_in

SERVER = HttpServer()
Write = Callable[[bytes], None]


def chunk(**delta: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}, ensure_ascii=False).encode() + b"\n\n"


END = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


@dataclass
class Script:
    """What the server does with the next request, and what it saw."""

    status: int = 200
    say: Callable[[Write], None] = lambda _: None
    body: dict[str, Any] = field(default_factory=dict)
    key: str | None = None
    gone: threading.Event = field(default_factory=threading.Event)
    base: str = ""


@pytest.fixture
def server() -> Iterator[Script]:
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            script.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.key = self.headers["Authorization"]
            self.send_response(script.status)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            try:
                script.say(self._write)
            except OSError:
                script.gone.set()

        def _write(self, data: bytes) -> None:
            self.wfile.write(data)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().handle()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        script.base = own_server(listening.server_address[1])
        yield script
        listening.shutdown()


def ask(server: Script, quiet_s: float = 5, cancel: Cancel | None = None, key: str | None = None) -> list[Delta]:
    return list(SERVER.stream(server.base, "/v1/chat/completions", {"stream": True}, quiet_s, key, cancel or Cancel()))


def saying(*pieces: bytes) -> Callable[[Write], None]:
    def say(write: Write) -> None:
        for piece in pieces:
            write(piece)

    return say


def test_pieces_come_with_what_was_thought_why_it_ended_and_what_was_counted(server: Script) -> None:
    usage = b'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}\n\n'
    server.say = saying(
        chunk(role="assistant", content=""),
        chunk(reasoning="hm"),
        chunk(reasoning_content="…", content=None),
        b": keep-alive\n\n",
        chunk(content="Grün 🌱"),
        END,
        usage,
        DONE,
    )
    assert ask(server, key="k-9_x") == [
        Delta(),
        Delta(reasoning="hm"),
        Delta(reasoning="…"),
        Delta(content="Grün 🌱"),
        Delta(finish="stop"),
        Delta(usage=Usage(prompt_tokens=7, generated_tokens=3)),
    ]
    assert (server.body, server.key) == ({"stream": True}, "Bearer k-9_x")


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), max_size=5), st.data())
def test_events_are_the_same_wherever_the_bytes_are_cut(texts: list[str], data: st.DataObject) -> None:
    ending = data.draw(st.sampled_from(["\n", "\r\n"]))
    whole = "".join(f"event: x{ending}data: {text}{ending}{ending}" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    blocks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert list(events(blocks)) == texts


def test_lines_of_one_event_belong_together() -> None:
    assert list(events([b"data: one\ndata:two\n\ndata: cut off"])) == ["one\ntwo"]


def test_a_piece_is_there_before_the_next_is_sent(server: Script) -> None:
    may_go_on = threading.Event()

    def say(write: Write) -> None:
        write(chunk(content="first"))
        assert may_go_on.wait(5)
        write(chunk(content="second") + END + DONE)

    server.say = say
    pieces = SERVER.stream(server.base, "/", {}, 5, None, Cancel())
    assert next(pieces).content == "first"
    may_go_on.set()
    assert [piece.content for piece in pieces] == ["second", ""]


def test_the_person_stops_at_once_and_the_server_notices(server: Script) -> None:
    def say(write: Write) -> None:
        write(chunk(content="on and on"))
        while True:
            time.sleep(0.02)
            write(b": still there\n\n")

    server.say = say
    cancel, came = Cancel(), list[Delta]()
    pieces = SERVER.stream(server.base, "/", {}, 60, None, cancel)
    came.append(next(pieces))
    threading.Timer(0.1, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        came.extend(pieces)
    assert time.monotonic() - began < 2
    assert server.gone.wait(5)
    assert came == [Delta(content="on and on")]


def test_a_stop_before_any_answer_is_not_kept_waiting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cancel = Cancel()
        threading.Timer(0.1, cancel.set).start()
        began = time.monotonic()
        with pytest.raises(Cancelled):
            list(SERVER.stream(own_server(silent.getsockname()[1]), "/", {}, 60, None, cancel))
        assert time.monotonic() - began < 2


def test_closing_ends_the_request(server: Script) -> None:
    def say(write: Write) -> None:
        while True:
            write(chunk(content="more"))
            time.sleep(0.02)

    server.say = say
    pieces = SERVER.stream(server.base, "/", {}, 5, None, Cancel())
    next(pieces)
    pieces.close()
    assert server.gone.wait(5)


BEYOND = {"error": {"message": "maximum context length is 4096 tokens", "param": "input_tokens", "code": 400}}
REFUSALS = {
    "vLLM's form": (400, json.dumps(BEYOND), AnswerRefused(status=400, detail="maximum context length is 4096 tokens")),
    "a word": (401, '{"error": "Unauthorized"}', AnswerRefused(status=401, detail="Unauthorized")),
    "another form": (404, '{"detail": "Not Found"}', AnswerRefused(status=404, detail='{"detail": "Not Found"}')),
    "a page": (502, "<html>", AnswerRefused(status=502, detail="<html>")),
    "a redirect": (302, "", AnswerRefused(status=302)),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_keeps_its_status_and_its_words(server: Script, case: str) -> None:
    server.status, body, expected = REFUSALS[case]
    server.say = saying(body.encode())
    assert problem_in(lambda: ask(server)) == expected


IN_THE_MIDDLE = {
    "an error as an event": (b'data: {"error": {"message": "died", "code": 500}}\n\n', AnswerRefused),
    "an error of no code": (b'data: {"error": {"message": "died", "code": "x"}}\n\n', AnswerRefused),
    "no JSON": (b"data: {oops\n\n", AnswerBroken),
    "another shape": (b'data: {"choices": [{"delta": {"content": 7}}]}\n\n', AnswerBroken),
    "an end without an end": (b"", AnswerBroken),
}


@pytest.mark.parametrize("case", IN_THE_MIDDLE)
def test_what_goes_wrong_in_the_middle_is_told_after_what_came(server: Script, case: str) -> None:
    data, kind = IN_THE_MIDDLE[case]
    server.say = saying(chunk(content="so far"), data)
    came: list[Delta] = []

    def listen() -> None:
        for piece in SERVER.stream(server.base, "/", {}, 5, None, Cancel()):
            came.append(piece)  # noqa: PERF402 - what came before the failure counts

    assert isinstance(problem_in(listen), kind)
    assert came == [Delta(content="so far")]


def test_an_answer_that_ended_needs_no_last_word(server: Script) -> None:
    server.say = saying(chunk(content="all"), END)
    assert [piece.content for piece in ask(server)] == ["all", ""]


def test_a_server_that_falls_silent_is_not_waited_for(server: Script) -> None:
    released = threading.Event()

    def say(write: Write) -> None:
        write(chunk(content="and"))
        released.wait(10)

    server.say = say
    assert problem_in(lambda: ask(server, quiet_s=0.3)) == NotAnswering(seconds=0.3)
    released.set()


def test_where_nobody_listens_the_answer_is_broken() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        base = own_server(free.getsockname()[1])
    assert isinstance(problem_in(lambda: list(SERVER.stream(base, "/", {}, 5, None, Cancel()))), AnswerBroken)


def test_no_proxy_of_the_environment_is_asked(server: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    server.say = saying(chunk(content="direct"), END, DONE)
    assert ask(server)[0].content == "direct"

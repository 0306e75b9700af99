"""A server on 127.0.0.1 that says exactly what it is told to, byte for byte, and answers that are not quite right."""

from __future__ import annotations

import contextlib
import gzip
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest import mock

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.fuzz.broken import TEXTS
from tests.fuzz.kit import KEY, TOKEN


@dataclass(frozen=True)
class Request:
    """What was asked: verb, path with query, and headers with lower-case names."""

    method: str
    path: str
    headers: Mapping[str, str]


Script = Callable[[Request], bytes]


class Wire(socketserver.ThreadingTCPServer):
    """Answers each connection with what the script makes of its request, and closes it."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self) -> None:
        self.script: Script = lambda _: b""
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True, name="wire").start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has heard enough hangs up."""


class _Handler(socketserver.StreamRequestHandler):
    timeout = 10
    server: Wire

    def handle(self) -> None:
        first = self.rfile.readline().decode("latin-1").split()
        headers = {}
        while (line := self.rfile.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        self.rfile.read(int(headers.get("content-length", 0)))
        if len(first) >= 2:
            with contextlib.suppress(OSError):
                self.wfile.write(self.server.script(Request(first[0], first[1], headers)))


@cache
def wire() -> Wire:
    """Return the one server of this process."""
    return Wire()


@contextlib.contextmanager
def nobody_else() -> Iterator[None]:
    """Let no name be looked up and no other computer be asked, whatever an address that was made up says."""
    look_up = socket.getaddrinfo

    def here(host: Any, *rest: Any, **more: Any) -> Any:
        if host != "127.0.0.1":
            raise socket.gaierror(socket.EAI_NONAME, "only this computer")
        return look_up(host, *rest, **more)

    with mock.patch.object(socket, "getaddrinfo", here):
        yield


JSON = "application/json"


@dataclass(frozen=True)
class Spoiled:
    """What is not right about an answer: everything that is None or empty is as it should be."""

    status: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: str | None = None
    chunked: bytes | None = None
    cut: int | None = None
    body: bytes | None = None
    packed: bool = False

    def around(self, body: bytes, status: str = "200 OK", **headers: str) -> bytes:
        """Put an answer together."""
        body = self.body if self.body is not None else body
        if self.packed:
            body = gzip.compress(body)
        named = {"Content-Type": JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.chunked is None:
            named["Content-Length"] = str(len(body)) if self.length is None else self.length
        else:
            named["Transfer-Encoding"], body = "chunked", self.chunked + body
        named |= {"Content-Encoding": "gzip"} if self.packed else {}
        lines = [
            f"HTTP/1.1 {self.status or status}",
            *(f"{name}: {value}" for name, value in {**named, **self.headers}.items()),
        ]
        whole = "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n\r\n" + body
        return whole if self.cut is None else whole[: self.cut]


FINE = Spoiled()
STATUSES = (
    *(
        "200 OK",
        "201 Created",
        "204 No Content",
        "206 Partial Content",
        "301 Moved",
        "302 Found",
        "304 Not Modified",
        "307 x",
    ),
    *(
        "400 Bad",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "407 x",
        "410 Gone",
        "416 x",
        "418 x",
        "429 Too Many",
    ),
    *(
        "451 x",
        "500 x",
        "502 x",
        "503 x",
        "511 x",
        "599 x",
        "600 x",
        "999 x",
        "000 x",
        "99999 x",
        "abc",
        "",
        "-1 x",
        "2OO OK",
    ),
)
WAITS = (
    "0",
    "5",
    "-1",
    "9" * 30,
    "9" * 5000,
    "1.5",
    "soon",
    "²",
    "Wed, 21 Oct 2015 07:28:00 GMT",
    "Wed, 21 Oct 99999 07:28:00 GMT",
)
MORE_WAITS = (
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Wed, 21 Oct 2015 07:28:00 -0000",
    "Wed, 99 Foo 0000 99:99:99 +9999",
    "\x00",
)
PLACES = (
    *(
        "",
        "/",
        "//",
        "?",
        "#",
        "/x",
        "http://[",
        "http://[::1",
        "//[",
        "http:",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
    ),
    *(
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:x/",
        "http://127.0.0.1:1/",
        f"http://me:{TOKEN}@127.0.0.1:1/?s={KEY}",
    ),
    *(
        "http://a\u2100b/",
        "http:///",
        "http://127.0.0.1:1/" + "x" * 5000,
        "data:,x",
        "javascript:x",
        "\\\\host\\share",
        "é",
    ),
)
CHALLENGES = (
    *(
        "",
        "Bearer",
        'Bearer realm=""',
        "Basic realm=x",
        'Bearer realm="http://["',
        'Bearer realm="x",service="',
        "Negotiate",
    ),
    *(
        'Bearer realm="http://127.0.0.1:1/",scope="a b"',
        'Bearer realm="file:///etc/passwd"',
        'bearer realm="é",service="é"',
    ),
    *('Bearer realm="{own}/token",service="s",scope="repository:x:pull"',) * 4,
)
HEADERS: dict[str, SearchStrategy[str]] = {
    "Content-Type": st.sampled_from(
        ("text/html", "text/html; charset=x", "TEXT/HTML;", "", "application/json; charset=utf-16")
    ),
    "Retry-After": st.sampled_from((*WAITS, *MORE_WAITS)),
    "RateLimit": st.sampled_from(('"api";r=0;t=55', "t=" + "9" * 5000, '"x";t=' + "9" * 5000, ";t=-1", "; t=", ";t=²")),
    "Location": st.sampled_from(PLACES),
    "WWW-Authenticate": st.sampled_from(CHALLENGES),
    "Docker-Content-Digest": st.sampled_from(("", "sha256:", "sha256:" + "0" * 64, "md5:x", "x" * 5000, "é")),
    "X-Error-Code": st.sampled_from(("GatedRepo", "RepoNotFound", "", TOKEN)),
    "Content-Range": st.sampled_from(
        ("bytes 0-1/2", "bytes 5-", "bytes " + "9" * 5000 + "-", "bytes -1-2/3", "bytes */9", "x")
    ),
    "Content-Encoding": st.sampled_from(("gzip", "deflate", "br", "zstd", "identity", "x", "gzip, gzip")),
    "Content-Length": st.sampled_from(("0", "-1", "x", "9" * 30, "5, 5", "1e3", "²")),
    "Transfer-Encoding": st.sampled_from(("chunked", "gzip", "x")),
    "Set-Cookie": st.sampled_from(("a=b", "=", "a=b; Expires=x; Max-Age=" + "9" * 5000, "\x00")),
    "Connection": st.sampled_from(("keep-alive", "close", "upgrade")),
    " bad": st.just("x"),
    "X-Long": st.just("x" * 70_000),
}
BODIES = (
    *(
        b"",
        b" ",
        b"<html>Sign in</html>",
        b" \n<!doctype html>",
        b"null",
        b"[]",
        b"{}",
        b'"x"',
        b"0",
        b"NaN",
        b"{",
        b"\xff\xfe",
    ),
    *(
        b"[" * 50_000,
        b'{"x":' * 50_000,
        b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b"9" * 5000,
        b'{"x":' + b"9" * 5000 + b"}",
    ),
    *(
        b'{"errors":[{"code":"TOOMANYREQUESTS"}]}',
        b'{"errors":{}}',
        b'{"errors":[1]}',
        b'{"errors":[{"code":"NAME_UNKNOWN"}]}',
    ),
    *(
        f'{{"error":"{TOKEN} {KEY}"}}'.encode(),
        b'{"token":"t"}',
        b'{"access_token":5}',
        '{"token":"é\\n"}'.encode(),
        b"\x1f\x8b\x08",
    ),
)


@st.composite
def spoiled(draw: DrawFn) -> Spoiled:
    """An answer that is fine as often as not, and otherwise wrong in one or two ways."""
    wrong = draw(
        st.lists(st.sampled_from(("status", "headers", "length", "chunked", "cut", "body", "packed")), max_size=2)
    )
    if draw(st.booleans()):
        wrong = []
    changes: dict[str, Any] = {}
    for what in wrong:
        match what:
            case "status":
                changes["status"] = draw(st.sampled_from(STATUSES))
            case "headers":
                names = draw(st.lists(st.sampled_from(sorted(HEADERS)), min_size=1, max_size=2))
                changes["headers"] = {name: draw(HEADERS[name]) for name in names}
            case "length":
                changes["length"] = draw(st.sampled_from(("0", "1", "99999", "-1", "x", "")))
            case "chunked":
                changes["chunked"] = draw(
                    st.sampled_from((b"", b"5\r\n", b"zz\r\n", b"0\r\n\r\n", b"-1\r\n", b"ffffffffffffffff\r\n"))
                )
            case "cut":
                changes["cut"] = draw(st.integers(0, 400))
            case "body":
                changes["body"] = draw(st.one_of(st.sampled_from(BODIES), st.sampled_from(TEXTS[:-1]).map(str.encode)))
            case _:
                changes["packed"] = True
    return Spoiled(**changes)


def in_turn(spoils: list[Spoiled]) -> Callable[[], Spoiled]:
    """Give out one after the other; what comes after the last is fine."""
    left = iter(spoils)
    return lambda: next(left, FINE)

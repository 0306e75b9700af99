"""Videos are looked at, fetched and offered over real sockets; each refusal of an address has its own Problem."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from installer import resources
from installer.adapters import container_way, media
from installer.adapters.media import VideoFiles
from installer.domain.problems import (
    BadChoice,
    Cancelled,
    FileUnreadable,
    HostNotReached,
    InstallerError,
    ServerError,
    Unreachable,
    UrlHostUnknown,
    UrlNotFound,
    UrlNotPublic,
    UrlNotVideo,
    UrlTimedOut,
    UrlTooLarge,
    VideoUnreadable,
)
from installer.resources import PROOF_CLIP
from installer.steps.cancel import Cancel
from installer.steps.ports import Clip
from tests.adapters.engine_kit import problem_in

CLIP = resources.file("assets", *PROOF_CLIP)
CONTENT = CLIP.read_bytes()
VIDEO = {"Content-Type": "video/mp4"}
LARGEST = 100_000
QUIET_S = 0.5

ANSWERS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/video": (200, VIDEO, CONTENT),
    "/nameless": (200, {"Content-Type": "application/octet-stream"}, CONTENT),
    "/moved": (302, {"Location": "/video"}, b""),
    "/private": (401, {}, b""),
    "/forbidden": (403, {}, b""),
    "/gone": (404, {}, b""),
    "/fault": (500, {}, b""),
    "/page": (200, {"Content-Type": "text/html"}, b"<html>"),
    "/lie": (200, VIDEO, b"<html>" + b" " * 100),
    "/empty": (200, VIDEO, b""),
    "/large": (200, VIDEO, CONTENT + bytes(LARGEST)),
    "/endless": (200, VIDEO | {"Content-Length": ""}, CONTENT + bytes(LARGEST)),
    "/circle": (302, {"Location": "/circle"}, b""),
}


class _Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/silent":
            threading.Event().wait(3)
            return
        status, headers, body = ANSWERS[self.path]
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def fetched(url: str, cancel: Cancel | None = None) -> tuple[Clip, bytes]:
    with VideoFiles(quiet_s=QUIET_S, largest_bytes=LARGEST).fetched(url, cancel or Cancel()) as clip:
        found = clip, Path(clip.path).read_bytes()
    assert not Path(clip.path).exists()
    return found


@pytest.mark.parametrize("path", ["/video", "/nameless", "/moved"])
def test_a_public_video_is_fetched_and_gone_afterwards(base: str, path: str) -> None:
    clip, content = fetched(base + path)
    assert (clip.mime, clip.size_bytes, clip.seconds) == ("video/mp4", len(CONTENT), 4.0)
    assert content == CONTENT


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/private", UrlNotPublic),
        ("/forbidden", UrlNotPublic),
        ("/gone", UrlNotFound),
        ("/fault", ServerError),
        ("/page", UrlNotVideo),
        ("/lie", UrlNotVideo),
        ("/empty", UrlNotVideo),
        ("/large", UrlTooLarge),
        ("/endless", UrlTooLarge),
        ("/silent", UrlTimedOut),
        ("/circle", Unreachable),
    ],
)
def test_each_refusal_has_its_own_problem(base: str, path: str, problem: type) -> None:
    found = problem_in(lambda: fetched(base + path))
    assert type(found) is problem


def test_what_was_announced_is_named_and_a_signature_in_the_address_is_not(base: str) -> None:
    ANSWERS["/private?signature=secret"] = ANSWERS["/private"]
    assert problem_in(lambda: fetched(base + "/large")) == UrlTooLarge(
        url=f"{base}/large", limit_bytes=LARGEST, size_bytes=len(CONTENT) + LARGEST
    )
    assert problem_in(lambda: fetched(f"{base}/private?signature=secret")) == UrlNotPublic(
        url=f"{base}/private", status=401
    )


def test_a_name_that_leads_nowhere_is_told_from_a_host_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert isinstance(problem_in(lambda: fetched(f"http://127.0.0.1:{port}/a.mp4")), Unreachable)

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    found = problem_in(lambda: fetched("http://nowhere.invalid/a.mp4"))
    assert found == UrlHostUnknown(host="nowhere.invalid")


@pytest.mark.parametrize("url", ["ftp://host/a.mp4", "file:///etc/passwd", "http://", "nonsense"])
def test_only_addresses_of_the_web_are_fetched(url: str) -> None:
    assert isinstance(problem_in(lambda: fetched(url)), BadChoice)


def test_a_person_who_waits_can_stop(base: str) -> None:
    cancel = Cancel()
    threading.Timer(0.1, cancel.set).start()
    with pytest.raises(Cancelled):
        fetched(base + "/silent", cancel)


def test_a_file_is_judged_by_what_it_is_and_not_by_its_name(tmp_path: Path) -> None:
    reader = VideoFiles(largest_bytes=LARGEST)
    (tmp_path / "a.mp4").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (tmp_path / "b.mp4").write_bytes(b"\0\0\0\x20ftypheic" + bytes(100))
    (tmp_path / "large.mp4").write_bytes(CONTENT + bytes(LARGEST))
    (tmp_path / "words").write_bytes(CONTENT)
    for name in ("a.mp4", "b.mp4"):
        path = str(tmp_path / name)
        assert problem_in(partial(reader.read, path)) == VideoUnreadable(path=path, state="unknown_format")
    large = problem_in(lambda: reader.read(str(tmp_path / "large.mp4")))
    assert large == VideoUnreadable(path=str(tmp_path / "large.mp4"), state="too_large", limit_bytes=LARGEST)
    assert isinstance(problem_in(lambda: reader.read(str(tmp_path / "none"))), FileUnreadable)
    assert isinstance(problem_in(lambda: reader.read(str(tmp_path))), FileUnreadable)
    assert reader.read(str(tmp_path / "words")).seconds == 4.0


@pytest.mark.parametrize("cut", [20, 40, 60, 500])
def test_a_file_that_was_cut_short_has_no_length_and_no_crash(tmp_path: Path, cut: int) -> None:
    (tmp_path / "a.mp4").write_bytes(CONTENT[:cut])
    assert VideoFiles().read(str(tmp_path / "a.mp4")).seconds in (None, 4.0)


def test_a_video_goes_into_a_request_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    clip = VideoFiles().read(str(CLIP))
    head, _, data = VideoFiles().inline(clip).partition(",")
    assert (head, base64.b64decode(data)) == ("data:video/mp4;base64", CONTENT)
    monkeypatch.setattr(media, "LARGEST_INLINE_BYTES", 1000)
    assert isinstance(problem_in(lambda: VideoFiles().inline(clip)), VideoUnreadable)


def test_without_an_address_for_containers_nothing_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    files = VideoFiles()
    clip = files.read(str(CLIP))
    for address in (None, "192.0.2.1"):
        monkeypatch.setattr(container_way, "host_address", lambda _, address=address: address)
        with pytest.raises(InstallerError) as raised, files.offered(clip, "nobody", Cancel()):
            pass
        assert isinstance(raised.value.problem, HostNotReached)
        assert raised.value.problem.address == (address or "")

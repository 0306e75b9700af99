"""The server of one file, over real sockets: parts of it, nothing beside it, and nothing of it afterwards."""

from __future__ import annotations

import contextlib
import http.client
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from installer import resources
from installer.adapters.one_file import Serving, served

CONTENT = bytes(range(256)) * 4096
SIZE = len(CONTENT)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    file = tmp_path / "a.mp4"
    file.write_bytes(CONTENT)
    with served(file, "video/mp4", "127.0.0.1") as found:
        yield found


def asked(
    serving: Serving, path: str | None = None, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=5)
    with contextlib.closing(connection):
        connection.request(method, path or serving.path, headers=headers)
        response = connection.getresponse()
        return response, response.read()


def test_the_file_comes_whole_with_its_kind(serving: Serving) -> None:
    response, body = asked(serving)
    assert (response.status, response.getheader("Content-Type")) == (200, "video/mp4")
    assert response.getheader("Accept-Ranges") == "bytes"
    assert body == CONTENT


def test_head_tells_the_size_and_sends_nothing(serving: Serving) -> None:
    response, body = asked(serving, method="HEAD")
    assert (response.status, response.getheader("Content-Length"), body) == (200, str(SIZE), b"")


@pytest.mark.parametrize(
    ("wanted", "first", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=100-199", 100, 200),
        ("bytes=1000000-", 1_000_000, SIZE),
        ("bytes=-500", SIZE - 500, SIZE),
        ("bytes=-99999999", 0, SIZE),
        (f"bytes=5-{SIZE * 2}", 5, SIZE),
    ],
)
def test_a_part_comes_as_it_was_asked_for(serving: Serving, wanted: str, first: int, end: int) -> None:
    response, body = asked(serving, Range=wanted)
    assert response.status == 206
    assert response.getheader("Content-Range") == f"bytes {first}-{end - 1}/{SIZE}"
    assert body == CONTENT[first:end]


@pytest.mark.parametrize("wanted", [f"bytes={SIZE}-", f"bytes={SIZE * 9}-{SIZE * 10}", "bytes=-0"])
def test_a_part_beyond_the_end_is_refused_with_the_size(serving: Serving, wanted: str) -> None:
    response, body = asked(serving, Range=wanted)
    assert (response.status, response.getheader("Content-Range"), body) == (416, f"bytes */{SIZE}", b"")


@pytest.mark.parametrize("wanted", ["bytes=9-5", "bytes=-", "lines=1-2", "bytes=0-1,5-9", "bytes=\xb2-\xb3"])
def test_what_is_no_range_is_passed_over(serving: Serving, wanted: str) -> None:
    response, body = asked(serving, Range=wanted)
    assert (response.status, len(body)) == (200, SIZE)


def test_no_other_path_gives_anything(serving: Serving) -> None:
    folder, name = serving.path.rsplit("/", 1)
    for path in ("/", folder, folder + "/", f"/{name}", serving.path + "/", serving.path + "?x", "/../etc/passwd"):
        response, body = asked(serving, path)
        assert (response.status, body) == (404, b""), path
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert asked(serving, method=method)[0].status == 501


def test_two_servers_share_no_address(serving: Serving, tmp_path: Path) -> None:
    with served(tmp_path / "a.mp4", "video/mp4", "127.0.0.1") as other:
        assert other.path != serving.path
        assert asked(other, serving.path)[0].status == 404


def test_several_parts_over_one_connection(serving: Serving) -> None:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", serving.port, timeout=5)) as connection:
        for first in (0, 5000, 70_000):
            connection.request("GET", serving.path, headers={"Range": f"bytes={first}-{first + 9}"})
            assert connection.getresponse().read() == CONTENT[first : first + 10]


def test_nothing_listens_afterwards_and_an_open_reader_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "big.mp4"
    with file.open("wb") as out:
        out.truncate(200_000_000)
    with served(file, "video/mp4", "127.0.0.1") as serving:
        reader = socket.create_connection(("127.0.0.1", serving.port), timeout=5)
        reader.sendall(f"GET {serving.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert reader.recv(1000)
    with contextlib.closing(reader), contextlib.suppress(ConnectionError):
        left = 0
        while block := reader.recv(1_000_000):
            left += len(block)
        assert left < 200_000_000
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", serving.port), timeout=5)


def test_a_file_or_an_address_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), served(tmp_path / "none.mp4", "video/mp4", "127.0.0.1"):
        pass
    (tmp_path / "a.mp4").write_bytes(b"x")
    with pytest.raises(OSError, match="assign"), served(tmp_path / "a.mp4", "video/mp4", "192.0.2.1"):
        pass


@pytest.mark.skipif(shutil.which("ffprobe") is None, reason="needs Debian's ffmpeg")
def test_ffprobe_reads_the_shipped_clip_over_it() -> None:
    with served(resources.file("assets", "video", "red-square.mp4"), "video/mp4", "127.0.0.1") as serving:
        url = f"http://127.0.0.1:{serving.port}{serving.path}"
        entries = "stream=codec_name,nb_frames:format=duration"
        command = ["ffprobe", "-v", "error", "-show_entries", entries, "-of", "csv=p=0", url]
        seen = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.split()
    assert seen == ["h264,32", "4.000000"]

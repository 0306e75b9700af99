"""A web server of one file: under an address that nobody guesses, for as long as it is asked for, and nothing else."""

from __future__ import annotations

import contextlib
import hmac
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOKEN_BYTES = 24
QUIET_S = 30.0
_BLOCK = 256 * 1024
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Where the file is: the port, and its path with the token in it."""

    port: int
    path: str


@contextlib.contextmanager
def served(file: Path, mime: str, address: str, *, delay_s: float = 0.0) -> Iterator[Serving]:
    """Serve a file at one address of this computer; on leaving, open connections end, too.

    `delay_s` is waited before every answer, to measure how a reader takes a slow way. Raises OSError where the address
    is not this computer's, or the file cannot be read.
    """
    with file.open("rb"):
        path = f"/{secrets.token_urlsafe(TOKEN_BYTES)}/video{file.suffix if file.suffix.isascii() else ''}"
    server = _OneFile((address, 0), file, mime, path, delay_s)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield Serving(port=server.server_address[1], path=path)
    finally:
        server.shutdown()
        server.server_close()
        server.end_connections()
        thread.join()


class _OneFile(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], file: Path, mime: str, path: str, delay_s: float) -> None:
        self.file, self.mime, self.path, self.delay_s = file, mime, path, delay_s
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own asks the DNS for this computer's name, which can take seconds.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a reader that leaves early, as every reader of an index does, is no error."""

    def end_connections(self) -> None:
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _OneFile
    protocol_version = "HTTP/1.1"
    server_version = "slipway"
    sys_version = ""
    timeout = QUIET_S

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's signature
        """Log nothing: the path is a secret."""

    def _answer(self, *, with_body: bool) -> None:
        if self.server.delay_s:
            time.sleep(self.server.delay_s)
        if not hmac.compare_digest(self.path.encode(), self.server.path.encode()):
            self._head(HTTPStatus.NOT_FOUND, 0)
            return
        with self.server.file.open("rb") as file:
            size = file.seek(0, 2)
            wanted = _range(self.headers.get("Range"), size)
            if wanted is None:
                self._head(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, 0, f"bytes */{size}")
                return
            first, end, partly = wanted
            if partly:
                self._head(HTTPStatus.PARTIAL_CONTENT, end - first, f"bytes {first}-{end - 1}/{size}")
            else:
                self._head(HTTPStatus.OK, size)
            if with_body:
                self._send(file, first, end)

    def _head(self, status: HTTPStatus, length: int, content_range: str | None = None) -> None:
        self.send_response(status)
        if status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
            self.send_header("Content-Type", self.server.mime)
            self.send_header("Accept-Ranges", "bytes")
        if content_range is not None:
            self.send_header("Content-Range", content_range)
        self.send_header("Content-Length", str(length))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()

    def _send(self, file: Any, first: int, end: int) -> None:
        file.seek(first)
        while first < end and (block := file.read(min(_BLOCK, end - first))):
            self.wfile.write(block)
            first += len(block)
        self.close_connection = self.close_connection or first < end  # the file was cut short meanwhile


def _range(header: str | None, size: int) -> tuple[int, int, bool] | None:
    """Return first byte, end and whether that is a part; None for a part that the file does not have.

    What is no range of bytes, or more than one, is passed over, as RFC 9110, 14.2 allows.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or match.groups() == ("", ""):
        return 0, size, False
    first, last = match.groups()
    if not first:
        tail = min(int(last), size)
        return (size - tail, size, True) if tail else None
    begin, end = int(first), int(last) + 1 if last else size
    if last and end <= begin:
        return 0, size, False
    return (begin, min(end, size), True) if begin < size else None

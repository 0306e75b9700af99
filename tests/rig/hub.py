"""A hub on 127.0.0.1: serves repositories made in the test, large files from a second host, misbehaves on order."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

from .checkpoint import tiny_checkpoint

__all__ = ["Asked", "Fault", "LocalHub", "tiny_checkpoint"]

LFS_FROM = 1000
"""Files larger than this carry a sha256 and come from the second host, as large files do on the real hub."""

_PORTAL = b"<!DOCTYPE html><html><title>Sign in to the network</title></html>"
_PIECE = 16 * 1024
_RANGE = re.compile(r"bytes=(\d+)-")


@dataclass
class Fault:
    """What goes wrong with requests for one path (or for every path), `times` times or always.

    ``after`` counts body bytes; ``drop`` resets the connection there, ``cut`` ends it in good order, ``stall`` goes
    silent with the connection open.  ``on`` says which host it is: the hub, the one it sends on to, or the API.
    """

    times: int | None = None
    on: str = "content"
    status: int | None = None
    retry_after: str | None = None
    error_code: str | None = None
    drop: int | None = None
    cut: int | None = None
    stall: int | None = None
    bytes_per_s: int | None = None
    ignore_range: bool = False
    wrong_bytes: bool = False
    portal: bool = False
    slow_header_s: float = 0

    def take(self) -> bool:
        """Use it up once; say whether it still applied."""
        if self.times is None:
            return True
        self.times -= 1
        return self.times >= 0


@dataclass(frozen=True)
class Asked:
    """A request as it came: which host, verb, path without query, and headers with lower-case names."""

    host: str
    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def first_byte(self) -> int:
        """The offset that a Range asked for, 0 without one."""
        found = _RANGE.match(self.headers.get("range", ""))
        return int(found[1]) if found else 0


@dataclass
class _Repo:
    files: dict[str, bytes]
    revisions: dict[str, str]
    token: str | None = None
    gated: bool = False
    card: Mapping[str, object] | None = None


@dataclass
class _Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    fault: Fault | None = None


class LocalHub:
    """``with LocalHub() as hub: hub.add("org/model", files)``; ``hub.endpoint`` is what HF_ENDPOINT names."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        self._repos: dict[str, _Repo] = {}
        self._blobs: dict[str, tuple[str, bytes]] = {}
        self._faults: list[tuple[str | None, Fault]] = []
        self._closing = threading.Event()
        self._hub = _listen(self, "hub")
        self._cdn = _listen(self, "cdn")

    @property
    def endpoint(self) -> str:
        """The hub's address."""
        return f"http://127.0.0.1:{self._hub.server_address[1]}"

    @property
    def cdn(self) -> str:
        """The address of the host that large files come from."""
        return f"http://127.0.0.1:{self._cdn.server_address[1]}"

    def add(
        self,
        repo: str,
        files: Mapping[str, bytes],
        *,
        tags: tuple[str, ...] = (),
        token: str | None = None,
        gated: bool = False,
        card: Mapping[str, object] | None = None,
    ) -> str:
        """Serve a repository, or its next commit; return the commit. With a token, only whoever sends it is let in.

        The files of a gated one are listed for everybody, as on the real hub (huggingface.js, issue 945).
        ``card`` is the head of the model's card, such as ``{"license": "mit"}``; without one the hub names no licence.
        """
        commit = _commit(files)
        before = self._repos.get(repo)
        revisions = {**(before.revisions if before else {}), "main": commit, commit: commit}
        self._repos[repo] = _Repo(dict(files), revisions | dict.fromkeys(tags, commit), token, gated, card)
        for path, content in files.items():
            self._blobs[hashlib.sha256(content).hexdigest()] = (path, content)
        return commit

    def fault(self, path: str | None = None, /, **what: object) -> Fault:
        """Let requests for a path (None: for all) go wrong; see Fault."""
        made = Fault(**what)  # type: ignore[arg-type]
        self._faults.append((path, made))
        return made

    def heal(self) -> None:
        """Behave from now on."""
        self._faults.clear()

    def content_requests(self, path: str, host: str | None = None) -> list[Asked]:
        """Requests for a file's content at the host that serves it (or the one named), in order."""
        with self._lock:
            found = [asked for asked in self.asked if asked.path.endswith(f"/{path}") and asked.method == "GET"]
        at = host or ("cdn" if any(asked.host == "cdn" for asked in found) else "hub")
        return [asked for asked in found if asked.host == at]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        for server in (self._hub, self._cdn):
            server.shutdown()
            server.server_close()

    def _answer(self, host: str, asked: Asked, query: dict[str, list[str]]) -> _Answer:
        with self._lock:
            self.asked.append(asked)
        if host == "cdn":
            path, content = self._blobs[asked.path.split("/")[2]]
            return self._content(asked, path, content, f'"{hashlib.md5(content).hexdigest()}"', "content")  # noqa: S324
        api = re.fullmatch(r"/api/models/(?P<repo>[^/]+(/[^/]+)?)(/revision/(?P<revision>[^/]+))?", asked.path)
        if api:
            return self._model(asked, api["repo"], unquote(api["revision"] or "main"), "blobs" in query)
        file = re.fullmatch(r"/(?P<repo>[^/]+(/[^/]+)?)/resolve/(?P<revision>[^/]+)/(?P<path>.+)", asked.path)
        if file:
            return self._file(asked, file["repo"], unquote(file["revision"]), unquote(file["path"]))
        return _Answer(404)

    def _model(self, asked: Asked, repo: str, revision: str, blobs: bool) -> _Answer:
        fault = self._fault_for(None, "api")
        gated = repo in self._repos and self._repos[repo].gated
        refusal = _broken(fault) or (None if gated else self._refusal(asked, repo, revision))
        if refusal:
            return refusal
        found = self._repos[repo]
        siblings = [_sibling(path, content, blobs) for path, content in sorted(found.files.items())]
        model = {
            "_id": "0" * 24, "id": repo, "modelId": repo, "sha": found.revisions[revision], "private": False,
            "gated": "manual" if found.gated else False, "disabled": False, "downloads": 0, "likes": 0, "tags": [],
            "siblings": siblings,
        }  # fmt: skip
        if found.card is not None:
            model["cardData"] = found.card
        return _Answer(200, json.dumps(model).encode(), {"Content-Type": "application/json; charset=utf-8"}, fault)

    def _file(self, asked: Asked, repo: str, revision: str, path: str) -> _Answer:
        fault = self._fault_for(path, "hub")
        refusal = _broken(fault) or self._refusal(asked, repo, revision)
        if refusal:
            return refusal
        found = self._repos[repo]
        if path not in found.files:
            return _Answer(404, b"Entry not found", {"X-Error-Code": "EntryNotFound"})
        content = found.files[path]
        named = {"X-Repo-Commit": found.revisions[revision], "X-Linked-Size": str(len(content))}
        if len(content) <= LFS_FROM:
            answer = self._content(asked, path, content, f'"{_blob_id(content)}"', "content")
            answer.headers |= named
            return answer
        digest = hashlib.sha256(content).hexdigest()
        place = f"{self.cdn}/blobs/{digest}/{quote(path)}?signature=not-for-logs"
        return _Answer(302, b"", {"Location": place, "X-Linked-Etag": f'"{digest}"', **named})

    def _refusal(self, asked: Asked, repo: str, revision: str) -> _Answer | None:
        found = self._repos.get(repo)
        sent = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if found is None:
            return _Answer(401, b"Invalid username or password.", {"X-Error-Code": "RepoNotFound"})
        if found.token and not sent:
            code = "GatedRepo" if found.gated else "RepoNotFound"
            return _Answer(401, b"Access to the model is restricted.", {"X-Error-Code": code})
        if found.token and sent != found.token:
            return _Answer(403, b"", {"X-Error-Code": "GatedRepo"} if found.gated else {})
        if revision not in found.revisions:
            return _Answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
        return None

    def _content(self, asked: Asked, path: str, content: bytes, etag: str, on: str) -> _Answer:
        fault = self._fault_for(path, on) if asked.method == "GET" else None
        refusal = _broken(fault)
        if refusal:
            return refusal
        headers = {"ETag": etag, "Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"}
        if fault and fault.wrong_bytes:
            content = bytes(byte ^ 0xFF for byte in content)
        start = 0 if fault and fault.ignore_range else asked.first_byte
        if start and start >= len(content):
            return _Answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        if not start:
            return _Answer(200, content, headers, fault)
        headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return _Answer(206, content[start:], headers, fault)

    def _fault_for(self, path: str | None, on: str) -> Fault | None:
        with self._lock:
            for where, fault in self._faults:
                if fault.on == on and where in (None, path) and fault.take():
                    return fault
        return None


def _broken(fault: Fault | None) -> _Answer | None:
    """The answer of a fault that never gets to the content."""
    if fault is None:
        return None
    if fault.portal:
        return _Answer(200, _PORTAL, {"Content-Type": "text/html; charset=utf-8"}, fault)
    if fault.status is None:
        return None
    headers = {"Retry-After": fault.retry_after, "X-Error-Code": fault.error_code}
    return _Answer(fault.status, b"", {name: value for name, value in headers.items() if value}, fault)


def _commit(files: Mapping[str, bytes]) -> str:
    whole = hashlib.sha256()
    for path, content in sorted(files.items()):
        whole.update(path.encode() + b"\0" + hashlib.sha256(content).digest())
    return whole.hexdigest()[:40]


def _blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _sibling(path: str, content: bytes, blobs: bool) -> dict[str, object]:
    if not blobs:
        return {"rfilename": path}
    if len(content) <= LFS_FROM:
        return {"rfilename": path, "size": len(content), "blobId": _blob_id(content)}
    digest = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n".encode()
    lfs = {"sha256": digest, "size": len(content), "pointerSize": len(pointer)}
    return {"rfilename": path, "size": len(content), "blobId": _blob_id(pointer), "lfs": lfs}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what many of these tests are about."""


def _listen(hub: LocalHub, host: str) -> _Server:
    class Handler(_Handler):
        pass

    Handler.hub, Handler.host = hub, host
    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True, name=f"local {host}").start()
    return server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LocalHub
    host: str

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.host, self.command, unquote(parts.path), headers)
        self._send(self.hub._answer(self.host, asked, parse_qs(parts.query)))

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """The log is `LocalHub.asked`."""

    def _send(self, answer: _Answer) -> None:
        fault = answer.fault or Fault()
        if fault.slow_header_s:
            self.hub._closing.wait(fault.slow_header_s)
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self._send_body(answer.body, fault)

    def _send_body(self, body: bytes, fault: Fault) -> None:
        limits = [limit for limit in (fault.drop, fault.cut, fault.stall) if limit is not None]
        end = min([len(body), *limits])
        piece = min(_PIECE, max(1, fault.bytes_per_s // 20)) if fault.bytes_per_s else len(body) or 1
        for start in range(0, end, piece):
            self.wfile.write(body[start : min(start + piece, end)])
            if fault.bytes_per_s:
                time.sleep(piece / fault.bytes_per_s)
        self.wfile.flush()
        if not limits:
            return
        self.close_connection = True
        if fault.stall is not None:
            self.hub._closing.wait()
        elif fault.drop is not None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

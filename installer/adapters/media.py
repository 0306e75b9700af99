"""Videos: looked at, fetched from a public address, and offered to a container over a server of one file."""

from __future__ import annotations

import base64
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import requests

from installer.adapters import container_way, http
from installer.adapters.interruptible import Opened, QuietError, interruptible
from installer.adapters.one_file import served
from installer.domain.addresses import HOST_IN_CONTAINER, host_of, shown, split
from installer.domain.problems import (
    AnyProblem,
    BadChoice,
    FileUnreadable,
    HostNotReached,
    InstallerError,
    UrlHostUnknown,
    UrlNotFound,
    UrlNotPublic,
    UrlNotVideo,
    UrlTimedOut,
    UrlTooLarge,
    VideoUnreadable,
)
from installer.domain.video_kinds import ENOUGH_BYTES, seconds_in_movie_header, video_type
from installer.steps.cancel import Cancel
from installer.steps.ports import Clip

LARGEST_BYTES = 256 * 1024 * 1024
"""vLLM fetches no more (VLLM_MAX_MEDIA_DOWNLOAD_SIZE_MB)."""

LARGEST_INLINE_BYTES = 32 * 1024 * 1024
"""In a request a file takes a third more and lies in memory several times."""

QUIET_S = 30.0
MOST_REDIRECTS = 5
_BLOCK = 256 * 1024
_NOT_PUBLIC, _GONE = (401, 403), (404, 410)


class VideoFiles:
    """Implements `Media` for the engine of a context; `quiet_s` is how long an address may give nothing."""

    def __init__(
        self, context: str | None = None, *, quiet_s: float = QUIET_S, largest_bytes: int = LARGEST_BYTES
    ) -> None:
        self._context = context
        self._quiet_s = quiet_s
        self._largest_bytes = largest_bytes

    def read(self, path: str) -> Clip:
        """Look at a file: its kind by its first bytes, its length where an MP4 tells it."""
        with _opened(path) as file:
            size = file.seek(0, 2)
            if size > self._largest_bytes:
                raise InstallerError(VideoUnreadable(path=path, state="too_large", limit_bytes=self._largest_bytes))
            file.seek(0)
            mime = video_type(file.read(ENOUGH_BYTES))
            if mime is None:
                raise InstallerError(VideoUnreadable(path=path, state="unknown_format"))
            return Clip(path=path, mime=mime, size_bytes=size, seconds=_seconds(file, size))

    @contextlib.contextmanager
    def fetched(self, url: str, cancel: Cancel) -> Iterator[Clip]:
        """Fetch a video into a folder that is gone on leaving."""
        if split(url).scheme.lower() not in ("http", "https") or not split(url).hostname:
            raise InstallerError(BadChoice(field="video", value=shown(url), limit="http://, https://"))
        with tempfile.TemporaryDirectory(prefix="slipway-video-", ignore_cleanup_errors=True) as folder:
            file = Path(folder, "video")
            self._fetch(url, file, cancel)
            yield self.read(str(file))

    @contextlib.contextmanager
    def offered(self, clip: Clip, container_id: str, cancel: Cancel) -> Iterator[str]:
        """Serve a video where the container reaches this computer, and let the container itself try it first."""
        address = container_way.host_address(self._context)
        if address is None:
            raise InstallerError(HostNotReached())
        with contextlib.ExitStack() as held:
            try:
                serving = held.enter_context(served(Path(clip.path), clip.mime, address))
            except OSError as error:
                raise InstallerError(HostNotReached(address=address, detail=str(error.strerror or error))) from error
            url = f"http://{HOST_IN_CONTAINER}:{serving.port}{serving.path}"
            container_way.try_out(self._context, container_id, url, f"{address}:{serving.port}", cancel)
            yield url

    def inline(self, clip: Clip) -> str:
        """Return a video as a data URI."""
        if clip.size_bytes > LARGEST_INLINE_BYTES:
            raise InstallerError(VideoUnreadable(path=clip.path, state="too_large", limit_bytes=LARGEST_INLINE_BYTES))
        with _opened(clip.path) as file:
            return f"data:{clip.mime};base64,{base64.b64encode(file.read()).decode()}"

    def _fetch(self, url: str, file: Path, cancel: Cancel) -> None:
        blocks = interruptible(lambda: self._opened_url(url), cancel, self._quiet_s)
        try:
            with file.open("wb") as out, contextlib.closing(blocks):
                done = 0
                for block in blocks:
                    if not done and video_type(block[:ENOUGH_BYTES]) is None:
                        raise InstallerError(UrlNotVideo(url=shown(url)))
                    done += len(block)
                    if done > self._largest_bytes:
                        raise InstallerError(UrlTooLarge(url=shown(url), limit_bytes=self._largest_bytes))
                    out.write(block)
            if not done:
                raise InstallerError(UrlNotVideo(url=shown(url)))
        except QuietError as error:
            raise InstallerError(UrlTimedOut(url=shown(url), seconds=self._quiet_s)) from error
        except http.FAILURES as error:
            raise InstallerError(self._problem_behind(error, url)) from error

    def _opened_url(self, url: str) -> Opened[bytes]:
        with contextlib.ExitStack() as held:
            session = held.enter_context(http.new_session(url))
            session.max_redirects = MOST_REDIRECTS
            response = held.enter_context(
                session.get(url, timeout=(http.CONNECT_TIMEOUT_S, self._quiet_s), stream=True)
            )
            problem = self._refusal(response, url)
            if problem is not None:
                raise InstallerError(problem)
            blocks = iter(lambda: response.raw.read(_BLOCK, decode_content=True), b"")
            return Opened(blocks, lambda: http.shut_down(response), held.pop_all().close)

    def _refusal(self, response: requests.Response, url: str) -> AnyProblem | None:
        """Say what an answer means before anything of its body is read."""
        where, status = shown(url), response.status_code
        if status in _NOT_PUBLIC:
            return UrlNotPublic(url=where, status=status)
        if status in _GONE:
            return UrlNotFound(url=where, status=status)
        announced = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if status != 200:
            return http.status_problem(response) or UrlNotVideo(url=where)
        if announced.startswith(("text/", "image/", "audio/")) or announced.endswith("json"):
            return UrlNotVideo(url=where, found=announced)
        size = response.headers.get("Content-Length", "")
        if size.isascii() and size.isdigit() and int(size[:18]) > self._largest_bytes:
            return UrlTooLarge(url=where, limit_bytes=self._largest_bytes, size_bytes=int(size[:18]))
        return None

    def _problem_behind(self, error: Exception, url: str) -> AnyProblem:
        if http.name_unknown(error):
            return UrlHostUnknown(host=host_of(url))
        if http.timed_out(error):
            return UrlTimedOut(url=shown(url), seconds=self._quiet_s)
        return http.problem_of(error, url)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    try:
        with Path(path).open("rb") as file:
            yield file
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InstallerError(FileUnreadable(path=path, reason=reason)) from error


def _seconds(file: BinaryIO, size: int) -> float | None:
    """Return the length of an MP4 by walking its boxes to the movie header, wherever that stands; None for others."""
    at, end, inside = 0, size, False
    for _ in range(1000):
        if at + 16 > end:
            return None
        file.seek(at)
        head = file.read(16)
        length, kind, header = int.from_bytes(head[:4], "big"), head[4:8], 8
        if length == 1:
            length, header = int.from_bytes(head[8:16], "big"), 16
        length = length or end - at
        if length < header:
            return None
        if inside and kind == b"mvhd":
            file.seek(at + header)
            return seconds_in_movie_header(file.read(32))
        if kind == b"moov" and not inside:
            at, end, inside = at + header, min(end, at + length), True
        else:
            at += length
    return None

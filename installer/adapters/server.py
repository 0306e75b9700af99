"""A server with OpenAI's API, asked with requests: the one that was installed, or one that a person names."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import requests

from installer.adapters.http import FAILURES, Bearer, new_session, shut_down, timed_out
from installer.adapters.interruptible import Opened, QuietError, interruptible, waited_for
from installer.adapters.streaming import DONE, RefusedError, delta_of, events, refusal
from installer.domain.problems import AnswerBroken, AnswerRefused, InstallerError, NotAnswering
from installer.domain.strict_json import NOT_OF_THAT_FORM
from installer.steps.cancel import Cancel
from installer.steps.ports import Delta, ServerAnswer

_CHUNK_BYTES = 64 * 1024
_CONNECT_S = 5.0


class HttpServer:
    """Implements `Server`.

    Towards this computer never a proxy of the environment: a company's proxy would be asked for the loopback address.
    Never a .netrc, and never a redirect: the server has none, so that one comes from something else.
    """

    def get(
        self, base: str, path: str, timeout_s: float, key: str | None = None, cancel: Cancel | None = None
    ) -> ServerAnswer:
        """Ask; no answer within `timeout_s` seconds, body included, is status 0."""
        return _stoppable(lambda: self._ask("GET", base, path, timeout_s, key), cancel)

    def post(
        self,
        base: str,
        path: str,
        body: dict[str, object],
        timeout_s: float,
        key: str | None = None,
        cancel: Cancel | None = None,
    ) -> ServerAnswer:
        """Send JSON; no answer within `timeout_s` seconds, body included, is status 0."""
        return _stoppable(lambda: self._ask("POST", base, path, timeout_s, key, json=body), cancel)

    def stream(
        self, base: str, path: str, body: dict[str, object], quiet_s: float, key: str | None, cancel: Cancel
    ) -> Generator[Delta]:
        """Send JSON and yield the answer piece by piece; closing the iterator closes the connection."""
        blocks = interruptible(lambda: _opened(base, path, body, quiet_s, key), cancel, quiet_s)
        try:
            with contextlib.closing(blocks):
                yield from _pieces(blocks)
        except RefusedError as error:
            detail = error.detail.replace(key, "…") if key else error.detail
            raise InstallerError(AnswerRefused(status=error.status, detail=detail)) from error
        except QuietError as error:
            raise InstallerError(NotAnswering(seconds=quiet_s)) from error
        except NOT_OF_THAT_FORM as error:
            raise InstallerError(AnswerBroken(detail=str(error))) from error
        except FAILURES as error:
            broken = NotAnswering(seconds=quiet_s) if timed_out(error) else AnswerBroken(detail=type(error).__name__)
            raise InstallerError(broken) from error

    def _ask(
        self, method: str, base: str, path: str, timeout_s: float, key: str | None, **content: Any
    ) -> ServerAnswer:
        began = time.monotonic()
        with new_session(base) as session:
            try:
                response = session.request(
                    method,
                    base + path,
                    auth=Bearer(key),
                    timeout=timeout_s,
                    allow_redirects=False,
                    stream=True,
                    **content,
                )
                status, body = response.status_code, _whole_body(response, began + timeout_s)
            except FAILURES:
                status, body = 0, b""
        return ServerAnswer(status=status, body=body, seconds=time.monotonic() - began)


def _stoppable(ask: Callable[[], ServerAnswer], cancel: Cancel | None) -> ServerAnswer:
    return waited_for(ask, cancel) if cancel else ask()


def _opened(base: str, path: str, body: dict[str, object], quiet_s: float, key: str | None) -> Opened[bytes]:
    """Ask for a stream; its items are blocks of bytes as they come. Raises RefusedError for any status but 200."""
    with contextlib.ExitStack() as held:
        session = held.enter_context(new_session(base))
        response = session.post(
            base + path,
            json=body,
            auth=Bearer(key),
            timeout=(_CONNECT_S, quiet_s),
            allow_redirects=False,
            stream=True,
        )
        held.enter_context(response)
        if response.status_code != 200:
            raise refusal(response.status_code, response.content)
        blocks = iter(lambda: response.raw.read1(_CHUNK_BYTES, decode_content=True), b"")
        return Opened(blocks, lambda: shut_down(response), held.pop_all().close)


def _pieces(blocks: Iterator[bytes]) -> Iterator[Delta]:
    """Yield pieces until the server says that all is said. Raises InstallerError(AnswerBroken) where it never does."""
    ended = False
    for data in events(blocks):
        if data == DONE:
            return
        piece = delta_of(data)
        ended = ended or bool(piece.finish)
        yield piece
    if not ended:
        raise InstallerError(AnswerBroken())


def _whole_body(response: requests.Response, deadline: float) -> bytes:
    """Read to the end, or raise TimeoutError: requests' own limit is for each read, which a trickle never meets."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # the body may just have ended
            response.raw.shutdown()

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), give_up)
    timer.daemon = True
    timer.start()
    try:
        body = b"".join(response.iter_content(_CHUNK_BYTES))
    finally:
        timer.cancel()
        response.close()
    if late.is_set():
        raise TimeoutError
    return body

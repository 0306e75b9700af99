"""The server that was installed, asked over 127.0.0.1 with requests."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import requests
import urllib3

from installer.adapters.interruptible import waited_for
from installer.steps.cancel import Cancel
from installer.steps.ports import ServerAnswer

_CHUNK_BYTES = 64 * 1024


class LoopbackServer:
    """Implements `Server`.

    Always 127.0.0.1: `localhost` may be ::1, where nothing is published. Never a proxy or a .netrc of the environment:
    a company's proxy would be asked for the loopback address. Never a redirect: the server has none, so that one
    comes from something else.
    """

    def get(
        self, port: int, path: str, timeout_s: float, key: str | None = None, cancel: Cancel | None = None
    ) -> ServerAnswer:
        """Ask; no answer within `timeout_s` seconds, body included, is status 0."""
        return _stoppable(lambda: self._ask("GET", port, path, timeout_s, key), cancel)

    def post(
        self,
        port: int,
        path: str,
        body: dict[str, object],
        timeout_s: float,
        key: str | None = None,
        cancel: Cancel | None = None,
    ) -> ServerAnswer:
        """Send JSON; no answer within `timeout_s` seconds, body included, is status 0."""
        return _stoppable(lambda: self._ask("POST", port, path, timeout_s, key, json=body), cancel)

    def _ask(
        self, method: str, port: int, path: str, timeout_s: float, key: str | None, **content: Any
    ) -> ServerAnswer:
        began = time.monotonic()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        with requests.Session() as session:
            session.trust_env = False
            try:
                response = session.request(
                    method,
                    f"http://127.0.0.1:{port}{path}",
                    headers=headers,
                    timeout=timeout_s,
                    allow_redirects=False,
                    stream=True,
                    **content,
                )
                status, body = response.status_code, _whole_body(response, began + timeout_s)
            except (requests.RequestException, urllib3.exceptions.HTTPError, TimeoutError):
                status, body = 0, b""
        return ServerAnswer(status=status, body=body, seconds=time.monotonic() - began)


def _stoppable(ask: Callable[[], ServerAnswer], cancel: Cancel | None) -> ServerAnswer:
    return waited_for(ask, cancel) if cancel else ask()


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

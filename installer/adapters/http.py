"""What the registry and the hub share: sessions, and what a failed exchange means as a Problem."""

from __future__ import annotations

import contextlib
import email.utils
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import requests
import requests.adapters
import urllib3.exceptions

from installer import __version__
from installer.domain import answers
from installer.domain.addresses import host_name, host_of, seconds_in, shown
from installer.domain.answers import Answer
from installer.domain.problems import (
    AnyProblem,
    CaptivePortal,
    InstallerError,
    ProxyRefused,
    ServerError,
    TlsNotTrusted,
    Treatment,
    Unreachable,
)
from installer.domain.strict_json import NOT_OF_THAT_FORM

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0

# What an exchange can raise: also urllib3's own kinds and the socket's, and ValueError for an address that is none or a
# TLS socket that another thread shut down.
FAILURES = (urllib3.exceptions.HTTPError, requests.RequestException, OSError, ValueError)

_RATE_LIMIT = re.compile(r";\s*t=(\d+)")


class Bearer(requests.auth.AuthBase):
    """Sends a token, or nothing at all: without an own answer here, requests would send what a `.netrc` holds."""

    def __init__(self, token: str | None = None) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Put the token into a request. It is not kept on a redirect to another host."""
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def new_session(base_url: str, connections: int = 1) -> requests.Session:
    """Return a session for one host and what it redirects to; close it when done.

    Proxies and certificates come from the environment, except towards this computer itself.
    """
    session = requests.Session()
    adapter = requests.adapters.HTTPAdapter(pool_maxsize=connections)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    session.headers.update({"User-Agent": f"slipway/{__version__}", "Accept-Encoding": "identity"})
    session.auth = Bearer()
    session.trust_env = not is_loopback(host_of(base_url))
    return session


def is_loopback(host: str) -> bool:
    """Say whether a host (with or without its port) is this computer."""
    name = host_name(f"//{host}")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def problem_of(error: Exception, url: str) -> AnyProblem:
    """Translate an error that came instead of an answer."""
    request = getattr(error, "request", None)
    host = host_of(getattr(request, "url", None) or url) or url
    chain = _chain(error)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in chain):
        return TlsNotTrusted(host=host)
    if any(isinstance(cause, urllib3.exceptions.ProxyError | requests.exceptions.ProxyError) for cause in chain):
        return ProxyRefused(proxy=_proxy_for(url), status=_status_in(chain))
    return Unreachable(host=host, detail=_short(chain[-1]))


def _proxy_for(url: str) -> str:
    """Return the proxy that the environment names for a URL, without its password."""
    proxies = requests.utils.get_environ_proxies(url)
    proxy = requests.utils.select_proxy(url, proxies) or ""
    return host_of(proxy if "//" in proxy else f"//{proxy}")


def _status_in(chain: list[BaseException]) -> int | None:
    """Return the status with which a proxy refused a tunnel: http.client writes it into the text of an OSError."""
    found = next((hit for cause in chain if (hit := re.search(r"Tunnel connection failed: (\d{3})", str(cause)))), None)
    return int(found[1]) if found else None


def timed_out(error: Exception) -> bool:
    """Say whether a read ended because no byte came in time."""
    kinds = (urllib3.exceptions.ReadTimeoutError, requests.ReadTimeout, TimeoutError)
    return any(isinstance(cause, kinds) for cause in _chain(error))


def name_unknown(error: Exception) -> bool:
    """Say whether an exchange ended because the DNS has no address for the host."""
    return any(isinstance(cause, socket.gaierror) for cause in _chain(error))


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error and what caused it, outermost first; urllib3 keeps the cause in `reason` or among `args`."""
    chain = [error]
    while True:
        last = chain[-1]
        kept = (getattr(last, "reason", None), *last.args, last.__cause__, last.__context__)
        inner = next((cause for cause in kept if isinstance(cause, BaseException) and cause not in chain), None)
        if inner is None:
            return chain
        chain.append(inner)


def _short(error: BaseException) -> str:
    """Name an error by type and number: its text is in the system's language and may hold a proxy's password."""
    number = getattr(error, "errno", None)
    return type(error).__name__ if number is None else f"{type(error).__name__} {number}"


def answer_of(response: requests.Response) -> Answer:
    """Return what counts of an answer; its body is left where it is, for it may be gigabytes."""
    return Answer(
        status=response.status_code,
        url=response.url or "",
        headers={name.lower(): value for name, value in response.headers.items()},
        had_token="Authorization" in getattr(response.request, "headers", {}),
        retry_after_s=retry_after(response),
    )


def status_problem(response: requests.Response) -> AnyProblem | None:
    """Return what is wrong with an answer by the statuses that mean the same everywhere, or None."""
    return answers.of_anyone(answer_of(response))


def is_web_page(response: requests.Response) -> bool:
    """Say whether an answer announces HTML."""
    return answer_of(response).is_web_page


def retry_after(response: requests.Response) -> int | None:
    """Return for how many seconds the host asks to wait: `Retry-After` (seconds or a date), else `RateLimit`'s `t`."""
    named = response.headers.get("Retry-After", "").strip()
    if named.isdigit():
        return seconds_in(named)
    with contextlib.suppress(ValueError, TypeError):
        wait = email.utils.parsedate_to_datetime(named) - datetime.now(UTC)
        return max(0, round(wait.total_seconds()))
    window = _RATE_LIMIT.search(response.headers.get("RateLimit", ""))
    return seconds_in(window[1]) if window else None


def json_of(response: requests.Response) -> Any:
    """Return the JSON of a good answer.

    Raises CaptivePortal where a web page came instead, ServerError where it is neither.
    """
    if is_web_page(response) or response.content.lstrip()[:1] == b"<":
        raise InstallerError(CaptivePortal(url=shown(response.url)))
    try:
        return msgspec.json.decode(response.content)
    except NOT_OF_THAT_FORM as error:
        raise InstallerError(ServerError(host=host_of(response.url), status=response.status_code)) from error


def shut_down(response: requests.Response) -> None:
    """End a read that blocks in another thread; nothing happens where the answer has ended already."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        response.raw.shutdown()


def is_passing(problem: AnyProblem) -> bool:
    """Say whether trying again may help without anybody's doing."""
    return problem.treatment is Treatment.RETRY


def ask(
    session: requests.Session,
    url: str,
    *,
    headers: dict[str, str] | None = None,
    params: dict[str, str] | None = None,
    auth: Bearer | None = None,
    tries: int = 3,
    first_wait_s: float = 0.5,
    wait: Callable[[float], None] = time.sleep,
) -> requests.Response:
    """GET a small document; broken connections and errors of the server are tried again, briefly.

    Any status below 500 but 429 comes back as it is. Raises Unreachable, TlsNotTrusted, ServerError, RateLimited,
    CaptivePortal.
    """
    for attempt in range(tries):
        problem, cause = None, None
        try:
            response = session.get(
                url, headers=headers, params=params, auth=auth, timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
            )
            problem = status_problem(response)
            if problem is None:
                return response
        except FAILURES as error:
            problem, cause = problem_of(error, url), error
        if attempt + 1 == tries or not isinstance(problem, Unreachable | ServerError):
            raise InstallerError(problem) from cause
        wait(first_wait_s * 2**attempt)
    raise AssertionError("tries must be 1 at least")

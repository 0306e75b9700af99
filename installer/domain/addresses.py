"""Addresses of the network: what of one may be shown, and figures of headers. What is no address has no host."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from installer.domain.figures import whole

HOST_IN_CONTAINER = "host.docker.internal"
"""What this computer is called inside a container; Docker Desktop knows it, elsewhere the compose file says it."""

LONGEST_WAIT_DIGITS = 9
"""Of a number of seconds: thirty years."""


def split(url: str) -> SplitResult:
    """Split a URL; one that cannot be split, such as `http://[`, has no parts."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def host_of(url: str) -> str:
    """Return host and port of a URL, without a name or password that stands before them."""
    return split(url).netloc.rpartition("@")[2]


def host_name(url: str) -> str:
    """Return the host alone, in small letters and without the brackets of IPv6."""
    try:
        return split(url).hostname or ""
    except ValueError:
        return ""


def shown(url: str) -> str:
    """Return a URL as it may be shown: a signed address keeps its signature in the query."""
    parts = split(url)
    return f"{parts.scheme}://{host_of(url)}{parts.path}"


def own_server(port: int) -> str:
    """Return the address of a server of ours: 127.0.0.1, for `localhost` may be ::1, where nothing is published."""
    return f"http://127.0.0.1:{port}"


def port_of(base: str) -> int | None:
    """Return the port that an address names, or None."""
    try:
        return split(base).port
    except ValueError:
        return None


def seconds_in(text: str) -> int | None:
    """Return a whole number of seconds, or None for what is none or has more digits than anybody waits for."""
    return whole(text, LONGEST_WAIT_DIGITS)

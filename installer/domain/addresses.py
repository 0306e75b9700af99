"""Addresses of the network: what of one may be shown, and figures of headers. What is no address has no host."""

from __future__ import annotations

import re
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


def base_of(url: str) -> str | None:
    """Return the address of a server that a person names, as it is asked; None for what is none.

    "/v1" at the end may stand or not, and `localhost` is 127.0.0.1. A name or password in it is none of ours.
    """
    parts, host = split(url.strip()), host_name(url.strip())
    plain = not (parts.query or parts.fragment or "@" in parts.netloc or re.search(r"[\s\x00-\x1f]", parts.netloc))
    wrong_port = port_of(url) is None and not re.fullmatch(r"(\[[^]]*\]|[^:]*)", parts.netloc)
    if parts.scheme not in ("http", "https") or not host or not plain or wrong_port:
        return None
    netloc = re.sub(r"(?i)^localhost(?=:|$)", "127.0.0.1", parts.netloc)
    return f"{parts.scheme}://{netloc}{parts.path.rstrip('/').removesuffix('/v1').rstrip('/')}"


def port_of(base: str) -> int | None:
    """Return the port that an address names, or None."""
    try:
        return split(base).port
    except ValueError:
        return None


def seconds_in(text: str) -> int | None:
    """Return a whole number of seconds, or None for what is none or has more digits than anybody waits for."""
    return whole(text, LONGEST_WAIT_DIGITS)

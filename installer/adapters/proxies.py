"""The proxies of this user's programs, as requests finds them: environment, or the settings of Windows and macOS."""

from __future__ import annotations

from urllib.request import getproxies

from requests.utils import get_environ_proxies, select_proxy, should_bypass_proxies

from installer.domain.facts import Proxy
from installer.domain.proxy import without_credentials

_OUTSIDE = "huggingface.co"
"""Where the weights come from: a host that the exceptions name has no proxy, whatever is set for the rest."""

_LOOPBACK = "http://127.0.0.1:8000/"


def ours() -> Proxy:
    """Return what is in force for this user now, without name and password."""
    found = getproxies()
    no_proxy = str(found.get("no") or "")
    through_proxy = not should_bypass_proxies(_LOOPBACK, no_proxy=no_proxy or None)
    return Proxy(
        http=_in_force(f"http://{_OUTSIDE}/"),
        https=_in_force(f"https://{_OUTSIDE}/"),
        no_proxy=no_proxy,
        reaches_loopback=through_proxy and bool(select_proxy(_LOOPBACK, found)),
    )


def _in_force(url: str) -> str:
    return without_credentials(select_proxy(url, get_environ_proxies(url)) or "")

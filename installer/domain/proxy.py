"""Proxies: what may be shown of one, and what should be said when the two sides differ."""

from __future__ import annotations

import re

from installer.domain.facts import EngineState, Facts
from installer.domain.problems import AnyProblem, EngineWithoutProxy, LoopbackThroughProxy, ProxyInEngineOnly

DESKTOPS_OWN = "docker.internal"
"""Docker Desktop lists a forwarder of its own under this domain, whether or not a proxy is set behind it."""


def without_credentials(url: str) -> str:
    """Return a proxy's address without name and password, and without anything behind the host and port.

    A password may hold any character, also `@` and `/`: all up to the last `@` goes.
    """
    scheme, separator, rest = url.strip().rpartition("://")
    host = re.split(r"[/?#]", rest.rpartition("@")[2], maxsplit=1)[0]
    scheme = scheme if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) else ""
    return f"{scheme}{separator}{host}" if scheme else host


def advice(facts: Facts) -> tuple[AnyProblem, ...]:
    """Say that only one of Docker and this computer has a proxy, or that 127.0.0.1 would go through one."""
    here, there = facts.host.proxy, facts.engine.proxy
    said: list[AnyProblem] = []
    if facts.engine.state is EngineState.RUNNING and DESKTOPS_OWN not in there.shown:
        if here.shown and not there.shown:
            said.append(EngineWithoutProxy(proxy=here.shown, docker_desktop=facts.engine.docker_desktop))
        if there.shown and not here.shown:
            said.append(ProxyInEngineOnly(proxy=there.shown))
    if here.shown and here.reaches_loopback:
        said.append(LoopbackThroughProxy(proxy=here.http or here.https, no_proxy=here.no_proxy))
    return tuple(said)

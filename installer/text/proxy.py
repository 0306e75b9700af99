"""Words for proxies that are set on one side only."""

from __future__ import annotations

from installer.domain import problems as p
from installer.text.voice import ProblemText, Voice


def engine_without_proxy(problem: p.EngineWithoutProxy, t: Voice) -> ProblemText:
    """Return the words for a Docker that knows nothing of the proxy."""
    if problem.docker_desktop:
        remedy = t.gettext(
            "If this network needs the proxy: enter it in Docker Desktop under Settings, Resources, Proxies."
        )
    else:
        remedy = t.gettext(
            "If this network needs the proxy: enter it in /etc/docker/daemon.json under proxies (http-proxy, "
            "https-proxy, no-proxy) and restart Docker."
        )
    return ProblemText(
        t.gettext("Docker has no proxy"),
        t.gettext(
            "Programs on this computer go through the proxy {proxy}. Docker, which downloads the image, has none.",
            proxy=t.quote(problem.proxy),
        ),
        remedy,
    )


def proxy_in_engine_only(problem: p.ProxyInEngineOnly, t: Voice) -> ProblemText:
    """Return the words for a proxy that only Docker has."""
    return ProblemText(
        t.gettext("Only Docker has a proxy"),
        t.gettext(
            "Docker goes through the proxy {proxy}. Slipway, which downloads the weights, has none.",
            proxy=t.quote(problem.proxy),
        ),
        t.gettext(
            "If this network needs the proxy: set it in the system's settings or in the variable HTTPS_PROXY, "
            "then start Slipway again."
        ),
    )


def loopback_through_proxy(problem: p.LoopbackThroughProxy, t: Voice) -> ProblemText:
    """Return the words for a proxy that would be asked for this computer itself."""
    return ProblemText(
        t.gettext("127.0.0.1 goes through the proxy"),
        t.gettext(
            "Other programs would send requests to your server at 127.0.0.1 through the proxy {proxy}, which "
            "does not reach it. Slipway itself does not.",
            proxy=t.quote(problem.proxy),
        ),
        t.gettext("Add 127.0.0.1 and localhost to the proxy's exceptions (the variable NO_PROXY)."),
    )

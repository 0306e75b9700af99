"""Words for proxies that are set on one side only."""

from __future__ import annotations

from installer.domain import problems as p
from installer.domain.facts import Facts
from installer.text.voice import ProblemText, Voice


def in_force(facts: Facts, t: Voice) -> tuple[tuple[str, str], ...]:
    """Return what each side goes through, and in the next line where a person changes a proxy that is there."""
    ours, dockers, none = facts.host.proxy.shown, facts.engine.proxy.shown, t.gettext("none")
    return (
        (t.gettext("For the model, from this computer"), f"{ours}\n{_where_ours_is(facts, t)}" if ours else none),
        (t.gettext("For the image, from Docker"), f"{dockers}\n{_where_dockers_is(facts, t)}" if dockers else none),
    )


def _where_ours_is(facts: Facts, t: Voice) -> str:
    if facts.host.system == "Windows":
        return t.gettext("To change it: Windows' settings under Network, Proxy, or the variable HTTPS_PROXY.")
    return t.gettext("To change it: the variables HTTPS_PROXY and NO_PROXY.")


def _where_dockers_is(facts: Facts, t: Voice) -> str:
    if facts.engine.docker_desktop:
        return t.gettext("To change it: Docker Desktop under Settings, Resources, Proxies.")
    return t.gettext("To change it: /etc/docker/daemon.json under proxies, or the environment of Docker's service.")


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

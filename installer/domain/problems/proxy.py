"""Proxies that are set for one side only: Slipway asks hub and registry itself, Docker pulls the image by its own way.

None of them blocks: whether the network needs a proxy is not known until somebody tries.
"""

from __future__ import annotations

from installer.domain.problems.base import Action
from installer.domain.problems.network import NetworkProblem


class EngineWithoutProxy(NetworkProblem, frozen=True, kw_only=True):
    """A proxy is set for this computer's programs and none for Docker, which pulls the image."""

    advice = True
    action = Action.CHECK_AGAIN
    proxy: str
    docker_desktop: bool = False


class ProxyInEngineOnly(NetworkProblem, frozen=True, kw_only=True):
    """A proxy is set for Docker and none for this computer's programs: the weights come past it."""

    advice = True
    action = Action.CHECK_AGAIN
    proxy: str


class LoopbackThroughProxy(NetworkProblem, frozen=True, kw_only=True):
    """Programs on this computer would ask the proxy for 127.0.0.1, where the server is. Slipway itself does not."""

    advice = True
    action = Action.CHECK_AGAIN
    proxy: str
    no_proxy: str = ""

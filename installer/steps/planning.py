"""From facts and choices to a plan, with what the network knows: the read and decide phases in one call."""

from __future__ import annotations

from installer import __version__
from installer.domain import plan as plans
from installer.domain.choices import Choices
from installer.domain.facts import Facts
from installer.domain.plan import Plan, Present, Refusal
from installer.domain.registry import Registry
from installer.domain.sources import FolderWeights, ImageSource, WeightsPlace, WeightsSource
from installer.steps import read
from installer.steps.home import Home
from installer.steps.ports import Ports


def planned(facts: Facts, registry: Registry, choices: Choices, ports: Ports, home: Home) -> Plan | Refusal:
    """Choose the profile, resolve its sources and decide.

    What the machine refuses is said before the network is asked. Raises the problems of `read.sources`.
    """
    chosen = plans.choose_profile(facts, registry, choices)
    if isinstance(chosen, Refusal):
        return chosen
    refused = plans.refusal_of(chosen, registry, choices)
    if refused:
        return refused
    sources = read.sources(facts, registry, chosen.profile, choices, ports, home)
    there = present(sources.image, sources.helper, sources.weights, plans.place_of(facts, sources), ports)
    return plans.decide(facts, registry, sources, choices, slipway=__version__, present=there)


def present(
    image: ImageSource, helper: ImageSource, weights: WeightsSource, place: WeightsPlace, ports: Ports
) -> Present:
    """Say what an earlier run left here already, so that it needs no room any more.

    Only the helper image can look into a volume, and it may not be there yet.
    """
    can_look = isinstance(place, FolderWeights) or ports.engine.has_image(helper)
    missing = ports.hub.missing_bytes(weights, place) if can_look else weights.size_bytes
    return Present(image=ports.engine.has_image(image), weights_bytes=weights.size_bytes - missing)


def resumable(old: Plan | None, registry: Registry, choices: Choices) -> bool:
    """Say whether an earlier plan answers the same choices, so that running again is going on with it."""
    return (
        old is not None
        and old.choices == choices
        and old.registry_revision == registry.revision
        and old.slipway == __version__
    )

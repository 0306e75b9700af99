"""Asking the network about one profile for the wizard: the answer carries the question that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from installer.domain import plan as plans
from installer.domain.choices import Choices, pinned_digest
from installer.domain.facts import Facts
from installer.domain.plan import Present
from installer.domain.registry import Registry
from installer.domain.sources import Sources, WeightsPlace
from installer.steps import planning, read
from installer.steps.home import Home
from installer.steps.ports import Ports


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the network knows of a profile, and what an earlier run left at the place where its weights will lie.

    `pin` is the digest that was asked for, None where the tag was.
    """

    sources: Sources
    pin: str | None
    place: WeightsPlace
    present: Present


def ask(facts: Facts, registry: Registry, profile: str, choices: Choices, ports: Ports, home: Home) -> Answer:
    """Ask registry and hub, then look what is here already. Raises the problems of `read.sources`."""
    sources = read.sources(facts, registry, profile, choices, ports, home)
    place = plans.place_of(facts, sources)
    return Answer(
        sources=sources,
        pin=pinned_digest(choices),
        place=place,
        present=planning.present(sources.image, sources.helper, sources.weights, place, ports),
    )

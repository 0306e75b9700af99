"""A job: one use case with everything that it needs at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from installer.domain.facts import Facts
from installer.domain.problems import RelaxRefused
from installer.domain.registry import Registry
from installer.steps.home import StackHome
from installer.steps.ports import Ports
from installer.steps.run import Run


@dataclass(frozen=True, kw_only=True, repr=False)
class Secrets:
    """What must reach no log, event, plan or compose file; it has no text form on purpose."""

    api_key: str | None = None
    hf_token: str | None = None


def _refuses(_: RelaxRefused) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a use case works with.

    `agrees` asks whether a value below the chosen one may be taken, `overwrite` replaces a file edited by hand,
    `patience_s` maps a phase of the start to the seconds in which nothing may move.
    """

    ports: Ports
    run: Run
    home: StackHome
    registry: Registry
    facts: Facts
    secrets: Secrets = field(default_factory=Secrets)
    agrees: Callable[[RelaxRefused], bool] = _refuses
    overwrite: bool = False
    patience_s: Mapping[str, float] = field(default_factory=dict)

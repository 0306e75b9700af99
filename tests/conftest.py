"""Session fixtures: the private engine, the registry and the images, each started once and only when a test asks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

import hypothesis
import pytest

from tests.rig.engine import PrivateEngine
from tests.rig.images import build_and_push
from tests.rig.process import RigError
from tests.rig.registry import LocalRegistry
from tests.rig.rig import Rig, missing

_RIG_FIXTURES = {"private_engine", "registry", "rig"}
_Part = TypeVar("_Part", PrivateEngine, LocalRegistry)


# How long an example takes says something about the machine's other work, not about the code.
hypothesis.settings.register_profile("gate", deadline=None)
hypothesis.settings.load_profile("gate")


def pytest_configure(config: pytest.Config) -> None:
    """A terminated run ends like an interrupted one, so that what it started is stopped."""
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated", 143))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever uses the rig is an engine test; the longest files come first, so that no worker is left with one."""
    items.sort(key=lambda item: "/e2e/" not in item.nodeid)
    for item in items:
        if _RIG_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def needs_root() -> None:
    """The rule for every engine test: where the rig cannot run it is skipped, under CI=true it fails."""
    if reason := missing():
        _cannot(reason)


@pytest.fixture(scope="session")
def private_engine(needs_root: None) -> Iterator[PrivateEngine]:
    """A Docker Engine of our own, that takes GPU requests."""
    engine = _started(PrivateEngine)
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def registry(needs_root: None) -> Iterator[LocalRegistry]:
    """An empty image registry on 127.0.0.1."""
    server = _started(LocalRegistry)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def rig(private_engine: PrivateEngine, registry: LocalRegistry) -> Rig:
    """Engine and registry, with the default images pushed and not yet pulled by anyone."""
    try:
        return Rig(private_engine, registry, build_and_push(registry))
    except RigError as error:
        _cannot(str(error))


def _started(make: Callable[[], _Part]) -> _Part:
    part = make()
    try:
        return part.start()
    except RigError as error:
        part.stop()
        _cannot(str(error))


def _cannot(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"an engine test may not skip under CI=true: {reason}", pytrace=False)
    pytest.skip(reason)

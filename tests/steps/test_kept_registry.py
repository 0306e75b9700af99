"""A fetched registry: what may be taken over, how long it is used, and what is used after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from installer import resources
from installer.domain.problems import InstallerError, MalformedFile, Problem, RegistryExpired, RegistryRecalled
from installer.domain.registry import Registry
from installer.steps import kept_registry
from installer.steps.home import Home
from installer.steps.kept_registry import InForce, Payload, Signed
from tests.builders import shipped_registry

NOW = "2027-01-15T12:00:00Z"
LATER = "2027-03-02T00:00:00Z"
REVISION = "2027.1.1"
BUILT_IN = shipped_registry()


def texts(revision: str) -> dict[str, str]:
    found = resources.registry_texts()
    found["images.yaml"] = found["images.yaml"].replace(f"revision: {BUILT_IN.revision}", f"revision: {revision}")
    return found


FILES = {revision: texts(revision) for revision in (REVISION, "2027.1.2")}


def signed(revision: str = REVISION, key: str = "sha256:a", **changes: object) -> Signed:
    values: dict[str, object] = {
        "revision": revision,
        "issued": "2027-01-01T00:00:00Z",
        "expires": "2027-03-01T00:00:00+00:00",
        "files": FILES[revision],
    }
    return Signed(payload=Payload(**(values | changes)), key=key)  # type: ignore[arg-type]


def refused(new: Signed, kept: Signed | None = None, now: str = NOW) -> Problem:
    with pytest.raises(InstallerError) as caught:
        kept_registry.accepted(new, kept, now, "x.json")
    return caught.value.problem


def in_force(home: Home, now: str = NOW, built_in: Registry = BUILT_IN) -> InForce:
    return kept_registry.in_force(home, lambda: built_in, now)


def test_a_good_one_is_used_until_it_expires_and_then_the_built_in_one_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert in_force(home) == InForce(registry=BUILT_IN)
    assert kept_registry.accepted(signed(), None, NOW, "x.json").revision == REVISION
    kept_registry.save(home, signed())
    found = in_force(home)
    assert (found.registry.revision, found.expired) == (REVISION, False)
    found = in_force(home, LATER)
    assert (found.registry, found.expired) == (BUILT_IN, True)


@pytest.mark.parametrize("now", ["2027-03-01T00:00:00Z", LATER])
def test_past_its_date_it_is_refused(now: str) -> None:
    problem = refused(signed(), now=now)
    assert isinstance(problem, RegistryExpired)
    assert (problem.revision, problem.exit_code) == (REVISION, 2)


def test_one_that_recalls_itself_is_refused() -> None:
    assert isinstance(refused(signed(recalled=(REVISION,))), RegistryRecalled)


def test_what_the_kept_one_recalls_or_is_newer_than_is_refused() -> None:
    recalling = signed("2027.1.2", recalled=(REVISION,))
    newer = signed("2027.1.2", issued="2027-01-02T00:00:00Z")
    for kept in (recalling, newer):
        assert refused(signed(), kept) == RegistryRecalled(path="x.json", revision=REVISION, recalled_by="2027.1.2")
    assert kept_registry.accepted(newer, signed(), NOW, "").revision == "2027.1.2"
    assert kept_registry.accepted(signed(), signed(), NOW, "").revision == REVISION


def test_another_publisher_s_list_does_not_count() -> None:
    other = signed("2027.1.2", key="sha256:b", recalled=(REVISION,), issued="2027-01-09T00:00:00Z")
    assert kept_registry.accepted(signed(), other, NOW, "").revision == REVISION


def test_a_built_in_one_that_was_recalled_is_not_fallen_back_to(tmp_path: Path) -> None:
    home = Home(tmp_path)
    kept_registry.save(home, signed(recalled=(BUILT_IN.revision,)))
    assert in_force(home).registry.revision == REVISION
    with pytest.raises(InstallerError) as caught:
        in_force(home, LATER)
    assert isinstance(caught.value.problem, RegistryRecalled)
    assert in_force(home, LATER, msgspec.structs.replace(BUILT_IN, revision="2028.1.1")).expired


@pytest.mark.parametrize(
    "changes",
    [
        {"expires": "soon"},
        {"expires": "2027-03-01"},
        {"issued": ""},
        {"files": {}},
        {"files": {"models.yaml": "models: {"}},
        {"files": FILES["2027.1.2"]},
    ],
)
def test_one_that_is_signed_and_wrong_is_malformed(changes: dict[str, Any]) -> None:
    assert isinstance(refused(signed(**changes)), MalformedFile)


def test_a_kept_one_that_was_damaged_is_said(tmp_path: Path) -> None:
    (tmp_path / kept_registry.FILE).write_text("{")
    with pytest.raises(InstallerError) as caught:
        in_force(Home(tmp_path))
    assert isinstance(caught.value.problem, MalformedFile)
    assert caught.value.problem.path.endswith(kept_registry.FILE)

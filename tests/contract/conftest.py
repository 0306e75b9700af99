"""Every test of the contract runs once over a dry run and once over the real doors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from installer.domain.compose import file_name
from installer.domain.problems import InstallerError
from tests.contract.subjects import Subject, real, rehearsed

Build = Callable[..., Subject]


@pytest.fixture(params=["dry run", pytest.param("real", marks=pytest.mark.engine)])
def build(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Build]:
    """Make a subject; `slow` gives it a slow line, `loses_digests` a registry from which a digest is gone."""
    with contextlib.ExitStack() as stack:

        def make(*, slow: bool = False, loses_digests: bool = False) -> Subject:
            if request.param == "dry run":
                fail = "image:digest_gone" if loses_digests else None
                return stack.enter_context(rehearsed(tmp_path, slow=slow, fail=fail))
            rig = request.getfixturevalue("rig")
            made = stack.enter_context(real(tmp_path, rig, monkeypatch, slow=slow))
            stack.callback(_take_down, made)
            return made

        yield make


@pytest.fixture
def subject(build: Build) -> Subject:
    return build()


def _take_down(subject: Subject) -> None:
    for file in subject.folder.glob(f"*/{file_name('chat')}"):
        with contextlib.suppress(InstallerError):
            subject.ports.stack.down(str(file), volumes=True)

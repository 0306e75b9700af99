"""What every container engine does."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest

from installer.domain.facts import EngineState
from installer.domain.problems import Cancelled, DigestGone, EngineFailed, ImageUnknown
from installer.steps.cancel import Cancel
from tests.adapters.engine_kit import Reports, problem_in
from tests.contract.conftest import Build
from tests.contract.subjects import NOBODY, Subject
from tests.rig.process import AT_ONCE_S


def test_it_says_that_it_runs_and_what_it_is(subject: Subject) -> None:
    seen = subject.ports.engine.facts()
    assert (seen.state, seen.os_type) == (EngineState.RUNNING, "linux")
    assert seen.version
    assert seen.api_version.count(".") == 1
    assert seen.data_root


def test_a_pull_reports_from_nothing_to_all_and_never_back_and_the_image_is_there(subject: Subject) -> None:
    engine, image, reports = subject.ports.engine, subject.image(), Reports()
    assert not engine.has_image(image)
    engine.pull(image, reports, Cancel())
    assert engine.has_image(image)
    assert reports.seen[0] == (0, image.size_bytes)
    assert reports.seen[-1] == (image.size_bytes, image.size_bytes)
    assert {total for _, total in reports.seen} == {image.size_bytes}
    assert all(earlier[0] <= later[0] for earlier, later in pairwise(reports.seen))


def test_pulling_again_ends_full(subject: Subject) -> None:
    engine, image, reports = subject.ports.engine, subject.image(), Reports()
    engine.pull(image, NOBODY, Cancel())
    engine.pull(image, reports, Cancel())
    assert reports.seen[-1] == (image.size_bytes, image.size_bytes)


def test_a_pull_is_cancelled_at_once_and_can_be_done_again(build: Build) -> None:
    subject = build(slow=True)
    engine, image, cancel = subject.ports.engine, subject.image(), Cancel()
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        threading.Thread(target=cancel.set).start()

    with pytest.raises(Cancelled):
        engine.pull(image, Reports(mark=1, passed=press), cancel)
    assert time.monotonic() - pressed[0] < AT_ONCE_S
    assert not engine.has_image(image)


def test_nothing_is_pulled_once_the_person_cancelled(subject: Subject) -> None:
    cancel = Cancel()
    cancel.set()
    image = subject.image()
    with pytest.raises(Cancelled):
        subject.ports.engine.pull(image, NOBODY, cancel)
    with pytest.raises(Cancelled):
        subject.ports.engine.probe(subject.helper(), subject.gpu_uuid, cancel)
    assert not subject.ports.engine.has_image(image)


def test_a_digest_that_is_gone_is_named_with_its_tag(build: Build) -> None:
    subject = build(loses_digests=True)
    image = subject.image()
    subject.lose(image)
    problem = problem_in(lambda: subject.ports.engine.pull(image, NOBODY, Cancel()))
    assert problem == DigestGone(image=image.repository, digest=image.index_digest, tag=image.tag)


def test_removing_says_what_it_freed_and_twice_is_no_failure(subject: Subject) -> None:
    engine, image = subject.ports.engine, subject.image()
    engine.pull(image, NOBODY, Cancel())
    assert engine.remove_image(image) >= image.size_bytes // 2
    assert not engine.has_image(image)
    assert engine.remove_image(image) == 0


def test_only_an_image_that_is_there_gets_its_tag(subject: Subject) -> None:
    engine, image = subject.ports.engine, subject.image()
    assert problem_in(lambda: engine.tag(image)) == ImageUnknown(image=image.by_digest)
    engine.pull(image, NOBODY, Cancel())
    engine.tag(image)
    assert engine.has_image(image)


def test_the_probe_fetches_its_image_and_reads_card_and_disk(subject: Subject) -> None:
    helper = subject.helper()
    reading = subject.ports.engine.probe(helper, subject.gpu_uuid, Cancel())
    assert reading.cuda is not None
    assert 0 < reading.cuda.free_bytes <= reading.cuda.total_bytes
    assert reading.data_root_free_bytes > 0
    assert subject.ports.engine.has_image(helper)


def test_without_a_card_the_probe_reads_the_disk_alone(subject: Subject) -> None:
    reading = subject.ports.engine.probe(subject.helper(), None, Cancel())
    assert reading.cuda is None
    assert reading.data_root_free_bytes > 0


def test_nobody_has_containers_in_a_project_that_is_not_there(subject: Subject) -> None:
    assert subject.ports.engine.containers("slipway-nothing-here") == ()


def test_a_container_that_is_not_there_has_no_log(subject: Subject) -> None:
    problem = problem_in(lambda: subject.ports.engine.logs("0" * 64))
    assert isinstance(problem, EngineFailed)
    assert problem.operation == "logs"

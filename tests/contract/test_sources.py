"""What every image registry and every hub does."""

from __future__ import annotations

import re
import threading
import time
from itertools import pairwise

import msgspec
import pytest

from installer.domain.problems import Cancelled, ImageUnknown, RepoUnknown, TokenNeeded
from installer.domain.sources import FolderWeights
from installer.steps.cancel import Cancel
from tests.adapters.engine_kit import Reports, problem_in
from tests.contract.conftest import Build
from tests.contract.subjects import NOBODY, PLATFORM, Subject
from tests.rig.process import AT_ONCE_S

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


# --- images ----------------------------------------------------------------------------------------------------------


def test_a_tag_has_digests_layers_and_a_configuration(subject: Subject) -> None:
    image = subject.image()
    assert image.tag == subject.release.tag
    assert image.repository.endswith(subject.release.repo)
    assert image.platform == PLATFORM
    assert image.entrypoint == subject.release.entrypoint
    assert image.requires_cuda.startswith("cuda>=")
    for digest in (image.index_digest, image.platform_digest, *(layer.digest for layer in image.layers)):
        assert DIGEST.fullmatch(digest)
    assert image.index_digest != image.platform_digest
    assert image.size_bytes == sum(layer.size_bytes for layer in image.layers) > 0


def test_the_same_tag_is_the_same_image(subject: Subject) -> None:
    assert subject.image() == subject.image()


def test_a_pinned_digest_is_what_is_resolved(subject: Subject) -> None:
    image = subject.image()
    pinned = subject.ports.images.resolve(subject.release, PLATFORM, image.index_digest)
    assert pinned.index_digest == image.index_digest
    assert pinned.layers == image.layers


def test_a_tag_that_is_not_there_is_unknown(subject: Subject) -> None:
    release = msgspec.structs.replace(subject.release, tag="v0.0.0-never")
    problem = problem_in(lambda: subject.ports.images.resolve(release, PLATFORM))
    assert isinstance(problem, ImageUnknown)
    assert problem.image.endswith(":v0.0.0-never")


def test_the_helper_is_small(subject: Subject) -> None:
    assert 0 < subject.helper().size_bytes < 200_000_000


# --- weights ---------------------------------------------------------------------------------------------------------


def test_a_revision_has_a_commit_and_files_with_checksums(subject: Subject) -> None:
    weights = subject.weights()
    assert re.fullmatch(r"[0-9a-f]{40}", weights.commit)
    assert len({file.path for file in weights.files}) == len(weights.files)
    assert all(file.sha256 or file.git_blob_id for file in weights.files)
    large = [file for file in weights.files if file.path.endswith(".safetensors")]
    assert large
    assert all(file.sha256 and re.fullmatch(r"[0-9a-f]{64}", file.sha256) for file in large)
    assert "config.json" in {file.path for file in weights.files}
    assert 0 < weights.checkpoint_bytes < weights.size_bytes


def test_the_commit_can_be_asked_for_itself(subject: Subject) -> None:
    weights = subject.weights()
    assert subject.ports.hub.resolve(weights.repo, weights.commit) == weights


def test_a_repository_that_is_not_there_is_refused(subject: Subject) -> None:
    problem = problem_in(lambda: subject.ports.hub.resolve("nobody/nothing", "main"))
    assert isinstance(problem, RepoUnknown | TokenNeeded)  # a hub hides what a stranger may not see
    assert problem.repo == "nobody/nothing"


def test_fetching_reports_from_nothing_to_all_and_nothing_is_missing_then(subject: Subject) -> None:
    hub, weights, reports = subject.ports.hub, subject.weights(), Reports()
    assert hub.missing_bytes(weights, subject.place) == weights.size_bytes
    hub.fetch(weights, subject.place, reports, Cancel())
    assert hub.missing_bytes(weights, subject.place) == 0
    assert reports.seen[0] == (0, weights.size_bytes)
    assert reports.seen[-1] == (weights.size_bytes, weights.size_bytes)
    assert all(earlier[0] <= later[0] for earlier, later in pairwise(reports.seen))


def test_what_is_there_is_not_fetched_again(subject: Subject) -> None:
    hub, weights, reports = subject.ports.hub, subject.weights(), Reports()
    hub.fetch(weights, subject.place, NOBODY, Cancel())
    hub.fetch(weights, subject.place, reports, Cancel())
    assert set(reports.seen) == {(weights.size_bytes, weights.size_bytes)}


def test_a_fetch_is_cancelled_at_once_and_goes_on_where_it_was(build: Build) -> None:
    subject = build(slow=True)
    hub, weights, cancel = subject.ports.hub, subject.weights(), Cancel()
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        threading.Thread(target=cancel.set).start()

    with pytest.raises(Cancelled):
        hub.fetch(weights, subject.place, Reports(mark=1, passed=press), cancel)
    assert time.monotonic() - pressed[0] < AT_ONCE_S
    missing = hub.missing_bytes(weights, subject.place)
    assert 0 < missing < weights.size_bytes
    stop = Cancel()
    again = Reports(mark=1, passed=lambda: threading.Thread(target=stop.set).start())
    with pytest.raises(Cancelled):
        hub.fetch(weights, subject.place, again, stop)
    assert again.seen[0][0] >= weights.size_bytes - missing


def test_nothing_is_fetched_once_the_person_cancelled(subject: Subject) -> None:
    cancel = Cancel()
    cancel.set()
    weights = subject.weights()
    with pytest.raises(Cancelled):
        subject.ports.hub.fetch(weights, subject.place, NOBODY, cancel)
    assert subject.ports.hub.missing_bytes(weights, subject.place) == weights.size_bytes


def test_removing_says_what_it_freed_and_twice_is_no_failure(subject: Subject) -> None:
    hub, weights = subject.ports.hub, subject.weights()
    hub.fetch(weights, subject.place, NOBODY, Cancel())
    assert hub.remove(weights, subject.place) >= weights.size_bytes
    assert hub.missing_bytes(weights, subject.place) == weights.size_bytes
    assert hub.remove(weights, subject.place) == 0


def test_weights_lie_in_one_place_and_not_in_another(subject: Subject) -> None:
    hub, weights = subject.ports.hub, subject.weights()
    hub.fetch(weights, subject.place, NOBODY, Cancel())
    elsewhere = FolderWeights(folder=f"{subject.place.folder}-elsewhere")
    assert hub.missing_bytes(weights, elsewhere) == weights.size_bytes


def test_the_speed_of_the_line_is_positive_or_unknown_and_nothing_is_kept(subject: Subject) -> None:
    hub, weights = subject.ports.hub, subject.weights()
    figure = hub.speed(weights, 0.2, Cancel())
    assert figure is None or figure > 0
    assert hub.missing_bytes(weights, subject.place) == weights.size_bytes
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Cancelled):
        hub.speed(weights, 0.2, cancel)

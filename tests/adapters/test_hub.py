"""The hub against a real server on 127.0.0.1: what is listed, who is let in, and what is never said."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from huggingface_hub import HfApi

from installer.adapters.hub import HuggingFaceHub
from installer.domain.problems import (
    AccessNotGranted,
    BadToken,
    CaptivePortal,
    InstallerError,
    MalformedFile,
    Problem,
    RateLimited,
    RepoUnknown,
    ServerError,
    TokenNeeded,
)
from installer.domain.sources import FolderWeights
from tests.adapters.hub_kit import (
    BIG,
    FILES,
    REPO,
    SECRET,
    fetch,
    hub_of,
    place_fixture,
    refusal,
    server_fixture,
)
from tests.fuzz.wire import Spoiled, wire
from tests.rig.hub import LocalHub

__all__ = ["place_fixture", "server_fixture"]

# --- what is listed


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ({"license": "apache-2.0"}, "apache-2.0"),
        ({"license": ["mit"]}, "mit"),
        ({"license": "other", "license_name": "qwen-research", "license_link": "LICENSE"}, "qwen-research"),
        ({"license": ["mit", "apache-2.0"]}, ""),
        ({"license": "other"}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_licence_is_the_one_that_the_card_names(
    server: LocalHub, card: dict[str, object] | None, licence: str
) -> None:
    server.add("org/carded", FILES, card=card)
    assert hub_of(server).licence("org/carded", "main") == licence
    theirs = HfApi(endpoint=server.endpoint).model_info("org/carded", token=False).card_data
    if theirs is not None and isinstance(theirs.license, str) and theirs.license != "other":
        assert theirs.license == licence


def test_the_licence_of_a_repository_that_is_not_there_is_a_problem_too(server: LocalHub) -> None:
    with refusal() as problems:
        hub_of(server).licence("org/none", "main")
    assert isinstance(problems[0], TokenNeeded)


def test_the_listing_is_the_one_that_the_hubs_own_library_reads(server: LocalHub) -> None:
    weights = hub_of(server).resolve(REPO, "v1")

    theirs = HfApi(endpoint=server.endpoint).model_info(REPO, revision="v1", files_metadata=True, token=False)
    assert weights.commit == theirs.sha
    assert theirs.siblings is not None
    listed = {
        sibling.rfilename: (sibling.size, sibling.lfs.sha256 if sibling.lfs else None, sibling.blob_id)
        for sibling in theirs.siblings
    }
    for file in weights.files:
        size, sha256, blob_id = listed[file.path]
        assert (file.size_bytes, file.sha256) == (size, sha256)
        assert file.git_blob_id == (None if sha256 else blob_id)
    assert set(listed) - {file.path for file in weights.files} == {"README.md", ".gitattributes"}
    assert weights.checkpoint_bytes == sum(len(FILES[path]) for path in FILES if path.endswith(".safetensors"))


@pytest.mark.parametrize("name", ["../../outside.json", "C:\\outside.json", "a\n.json"])
def test_a_listing_with_a_name_that_leaves_the_folder_is_refused(server: LocalHub, name: str) -> None:
    server.add("org/evil", {**FILES, name: b"{}"})
    with refusal() as problems:
        hub_of(server).resolve("org/evil", "main")
    assert isinstance(problems[0], MalformedFile)
    assert "rfilename" in problems[0].where


@pytest.mark.parametrize("size", [-1, 2**64, None, "5"])
def test_a_listing_with_a_size_that_no_file_has_is_refused(size: object) -> None:
    sibling = {"rfilename": "config.json", "size": size, "blobId": "0" * 40}
    listing = json.dumps({"sha": "0" * 40, "siblings": [sibling]}).encode()
    wire().script = lambda _: Spoiled().around(listing)
    with refusal() as problems:
        HuggingFaceHub(f"http://{wire().address}").resolve("org/model", "main")
    assert isinstance(problems[0], MalformedFile)
    assert problems[0].where == "$.siblings[0].size"


def test_a_plan_with_a_name_that_leaves_the_folder_writes_nothing(
    server: LocalHub, place: FolderWeights, tmp_path: Path
) -> None:
    weights = hub_of(server).resolve(REPO, "main")
    file = msgspec.structs.replace(weights.files[0], path="../../../outside.json")
    with refusal() as problems:
        fetch(hub_of(server), msgspec.structs.replace(weights, files=(file,)), place)
    assert isinstance(problems[0], MalformedFile)
    assert not list(tmp_path.rglob("outside*"))


# --- who may read


@pytest.mark.parametrize(
    ("token", "gated", "expected"),
    [
        (None, True, TokenNeeded(repo="org/closed", had_token=False, gated=True)),
        (None, False, TokenNeeded(repo="org/closed", had_token=False)),
        ("hf_other", True, AccessNotGranted(repo="org/closed", gated=True)),
        ("hf_other", False, AccessNotGranted(repo="org/closed", gated=False)),
    ],
)
def test_the_ways_to_be_kept_out(
    server: LocalHub, place: FolderWeights, token: str | None, gated: bool, expected: Problem
) -> None:
    server.add("org/closed", FILES, token=SECRET, gated=gated)
    hub = hub_of(server, token)
    with refusal() as problems:
        fetch(hub, hub.resolve("org/closed", "main"), place)
    assert problems == [expected]


def test_the_list_of_files_says_whether_they_are_gated(server: LocalHub, place: FolderWeights) -> None:
    server.add("org/closed", FILES, token=SECRET, gated=True)
    assert not hub_of(server).resolve(REPO, "main").gated
    weights = hub_of(server).resolve("org/closed", "main")
    assert weights.gated
    fetch(hub_of(server, SECRET), weights, place)
    assert hub_of(server).missing_bytes(weights, place) == 0


def test_a_repository_that_is_not_there_looks_like_a_private_one(server: LocalHub) -> None:
    with refusal() as problems:
        hub_of(server, SECRET).resolve("org/nothing", "main")
    assert problems == [TokenNeeded(repo="org/nothing", had_token=True)]


@pytest.mark.parametrize(("repo", "revision"), [(REPO, "v9"), ("../api", "main"), ("a/b/c", "main")])
def test_an_unknown_revision_or_an_impossible_name(server: LocalHub, repo: str, revision: str) -> None:
    with refusal() as problems:
        hub_of(server).resolve(repo, revision)
    assert problems == [RepoUnknown(repo=repo, revision=revision)]


def test_the_token_goes_to_the_hub_and_not_to_the_host_that_it_sends_us_on_to(
    server: LocalHub, place: FolderWeights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login someone password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server.add("org/closed", FILES, token=SECRET)
    hub = hub_of(server, f"  {SECRET}\r\n")
    weights = hub.resolve("org/closed", "main")
    fetch(hub, weights, place)
    assert {asked.headers.get("authorization") for asked in server.asked if asked.host == "hub"} == {f"Bearer {SECRET}"}
    assert {asked.headers.get("authorization") for asked in server.asked if asked.host == "cdn"} == {None}


def test_the_token_is_in_no_error_no_file_and_no_output(
    server: LocalHub, place: FolderWeights, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    server.add("org/closed", FILES, token=SECRET)
    hub = hub_of(server, SECRET)
    weights = hub.resolve("org/closed", "main")
    server.fault(BIG, status=500)
    with pytest.raises(InstallerError) as raised:
        fetch(hub, weights, place)
    said = [repr(raised.value), repr(raised.value.problem), repr(hub), caplog.text, *capfd.readouterr()]
    written = [path.read_bytes() for path in Path(place.folder).rglob("*") if path.is_file()]
    assert not any(SECRET in text for text in said)
    assert not any(SECRET.encode() in content for content in written)


@pytest.mark.parametrize("token", ["hf_a b", "hf_ä", "hf_a\nhf_b", "hf_\x7f", "“hf_a”"])
def test_a_token_that_cannot_be_one_is_refused_without_repeating_it(server: LocalHub, token: str) -> None:
    with refusal() as problems:
        hub_of(server, token).resolve(REPO, "main")
    assert problems == [BadToken()]
    assert token not in repr(problems[0])
    assert not server.asked


@pytest.mark.parametrize("text", [None, "", " \r\n"])
def test_no_token_is_no_header(server: LocalHub, text: str | None) -> None:
    hub_of(server, text).resolve(REPO, "main")
    assert "authorization" not in server.asked[0].headers


# --- a network that answers with something else


def test_a_sign_in_page_instead_of_the_listing(server: LocalHub) -> None:
    server.fault(on="api", portal=True)
    with refusal() as problems:
        hub_of(server).resolve(REPO, "main")
    assert isinstance(problems[0], CaptivePortal)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"status": 502}, ServerError),
        ({"status": 429, "retry_after": "7"}, RateLimited),
        ({"status": 511}, CaptivePortal),
    ],
    ids=str,
)
def test_a_listing_that_is_refused(server: LocalHub, fault: dict[str, object], kind: type[Problem]) -> None:
    server.fault(on="api", **fault)
    with refusal() as problems:
        hub_of(server).resolve(REPO, "main")
    assert isinstance(problems[0], kind)
    if isinstance(problems[0], RateLimited):
        assert problems[0].retry_after_s == 7


def test_one_server_error_before_the_listing_is_forgiven(server: LocalHub) -> None:
    server.fault(on="api", status=503, times=1)
    assert hub_of(server).resolve(REPO, "main").files

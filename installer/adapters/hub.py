"""The Hugging Face hub, or a mirror that speaks like it: which files a commit has, and fetching them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

import msgspec
import requests

from installer.adapters import download, http, line_speed
from installer.adapters.download import Patience
from installer.adapters.hub_files import needed
from installer.adapters.sinks import FolderSink, Sink, Volumes
from installer.adapters.store import PART, UnsafeName, safe_parts
from installer.adapters.weights import MEMORY, Memory, survey
from installer.domain import answers
from installer.domain.addresses import host_of
from installer.domain.hub_token import clean_token
from installer.domain.problems import (
    AnyProblem,
    InstallerError,
    MalformedFile,
    RepoUnknown,
    Stalled,
)
from installer.domain.sources import FolderWeights, WeightFile, WeightsPlace, WeightsSource
from installer.domain.strict_json import decoded
from installer.domain.units import Natural
from installer.steps.cancel import Cancel
from installer.steps.ports import Report

DEFAULT_ENDPOINT: Final = "https://huggingface.co"

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")


class _Lfs(msgspec.Struct):
    sha256: str
    size: Natural


class _Sibling(msgspec.Struct):
    rfilename: str
    size: Natural
    blob_id: str | None = msgspec.field(name="blobId", default=None)
    lfs: _Lfs | None = None


class _Card(msgspec.Struct):
    """The head of a model's card; a licence that the hub has no id for is `other`, with a name of its own."""

    license: str | list[str] | None = None
    license_name: str | None = None

    @property
    def licence(self) -> str:
        """Return the one licence that is named, or nothing."""
        named = self.license if isinstance(self.license, list) else [self.license or ""]
        tag = named[0].strip() if len(named) == 1 else ""
        return (self.license_name or "").strip() if tag == "other" else tag


class _Model(msgspec.Struct):
    """`gated` is false, or says who lets an account in: "auto" or "manual"."""

    sha: str
    siblings: list[_Sibling]
    gated: bool | str | None = None


class _Carded(msgspec.Struct):
    card: _Card | None = msgspec.field(name="cardData", default=None)


class HuggingFaceHub:
    """Implements the port `Hub`. The token is looked at when it is first needed and leaves by one header only.

    Files of a commit lie in `weights.folder` below the place's folder, or below the volume's top.
    """

    def __init__(
        self,
        endpoint: str = DEFAULT_ENDPOINT,
        token: str | None = None,
        *,
        volumes: Volumes | None = None,
        patience: Patience = Patience(),  # noqa: B008 - frozen
        workers: int = 4,
    ) -> None:
        self._endpoint = (endpoint.strip() or DEFAULT_ENDPOINT).rstrip("/")
        self._token = token
        self._volumes = volumes
        self._patience = patience
        self._workers = workers

    def resolve(self, repo: str, revision: str) -> WeightsSource:
        """Ask for the commit behind a revision and for the files of it that a server needs.

        Raises TokenNeeded, AccessNotGranted, RepoUnknown, BadToken, RateLimited, ServerError, Unreachable,
        TlsNotTrusted, CaptivePortal; MalformedFile for an answer with an unsafe name or of another form.
        """
        url, answer = self._model(repo, revision)
        return _weights(repo, url, answer)

    def licence(self, repo: str, revision: str) -> str:
        """Return the id of the licence that the model's card names, "" where it names none or more than one.

        Raises the problems of `resolve`.
        """
        url, answer = self._model(repo, revision)
        card = decoded(answer, _Carded, url).card
        return card.licence if card else ""

    def _model(self, repo: str, revision: str) -> tuple[str, bytes]:
        """Return what the hub says of a model, and the address that said it."""
        if not _REPO.fullmatch(repo):
            raise InstallerError(RepoUnknown(repo=repo, revision=revision))
        url = f"{self._endpoint}/api/models/{repo}/revision/{quote(revision, safe='')}"
        bearer = self._bearer()
        with http.new_session(self._endpoint) as session:
            wait_s = min(0.5, self._patience.first_wait_s)
            response = http.ask(session, url, params={"blobs": "true"}, auth=bearer, first_wait_s=wait_s)
            problem = self._refusal(response, repo, revision)
            if problem is not None:
                raise InstallerError(problem)
            http.json_of(response)
        return url, response.content

    def missing_bytes(self, weights: WeightsSource, place: WeightsPlace) -> int:
        """Return how many bytes have still to be fetched; a file that nobody remembers is read once and checked."""
        with self._open(weights, place, Cancel(), make=False) as sink:
            if sink is None:
                return weights.size_bytes
            memory = Memory(sink)
            found = survey(weights, sink, memory, lambda: None)
            if found.checked_now:
                with contextlib.suppress(InstallerError):  # a folder that can only be read is no worse to serve from
                    memory.save()
            return found.missing_bytes

    def fetch(self, weights: WeightsSource, place: WeightsPlace, report: Report, cancel: Cancel) -> None:
        """Fetch what is missing, resuming parts, and check every file before it gets its name.

        Raises the problems of `resolve`, WrongContent, Truncated, Stalled, DiskFull, NotWritable; for a volume also
        EngineLost, EngineFailed.
        """
        bearer = self._bearer()
        cancel.check()
        with (
            http.new_session(self._endpoint, connections=self._workers) as session,
            self._open(weights, place, cancel) as sink,
        ):
            assert sink is not None

            def ask(file: WeightFile, offset: int) -> requests.Response:
                return self._ask(session, bearer, weights, file, offset)

            download.fetch(weights, sink, ask, report, cancel, self._patience, self._workers)

    def speed(self, weights: WeightsSource, seconds: float, cancel: Cancel) -> float | None:
        """Read the largest file for so many seconds at most, keep nothing of it, and return the bytes per second."""
        largest = max(weights.files, key=lambda file: file.size_bytes, default=None)
        if largest is None:
            return None
        with http.new_session(self._endpoint) as session:
            return line_speed.measured(lambda: self._ask(session, self._bearer(), weights, largest, 0), seconds, cancel)

    def remove(self, weights: WeightsSource, place: WeightsPlace) -> int:
        """Remove the files of one commit, their parts and our notes; what else lies there stays."""
        with self._open(weights, place, Cancel(), make=False) as sink:
            if sink is None:
                return 0
            names = [name for file in weights.files for name in (file.path, file.path + PART)]
            return sum(sink.remove(name) for name in (*names, MEMORY + PART, MEMORY))

    def _bearer(self) -> http.Bearer:
        return http.Bearer(clean_token(self._token))

    @contextlib.contextmanager
    def _open(
        self, weights: WeightsSource, place: WeightsPlace, cancel: Cancel, *, make: bool = True
    ) -> Iterator[Sink | None]:
        """Hold the sink of a place; None where the volume is not there and shall not be made."""
        if isinstance(place, FolderWeights):
            with FolderSink(place.folder, weights.folder) as sink:
                yield sink
            return
        if self._volumes is None:
            raise RuntimeError("weights in a volume need the engine")
        if not make and not self._volumes.exists(place.volume):
            yield None
            return
        with self._volumes.open(place, weights.folder, cancel) as sink:
            yield sink

    def _ask(
        self, session: requests.Session, bearer: http.Bearer, weights: WeightsSource, file: WeightFile, offset: int
    ) -> requests.Response:
        """Ask for a file from an offset on. The answer is of status 200, 206 or 416 and must be closed."""
        url = f"{self._endpoint}/{weights.repo}/resolve/{weights.commit}/{quote(file.path)}"
        headers = {"Range": f"bytes={offset}-"} if offset else None
        timeouts = (self._patience.connect_s, self._patience.stall_s)
        try:
            response = session.get(url, headers=headers, auth=bearer, stream=True, timeout=timeouts)
        except requests.ReadTimeout as error:
            raise InstallerError(Stalled(what=file.path, seconds=self._patience.stall_s)) from error
        except http.FAILURES as error:
            raise InstallerError(http.problem_of(error, url)) from error
        problem = self._refusal(response, weights.repo, weights.commit, file.path)
        if problem is not None:
            response.close()
            raise InstallerError(problem)
        return response

    def _refusal(self, response: requests.Response, repo: str, revision: str, file: str = "") -> AnyProblem | None:
        """Return what is wrong with an answer of the hub, or of the host that it sent us on to."""
        return answers.of_hub(http.answer_of(response), host_of(self._endpoint), repo, revision, file)


def _weights(repo: str, url: str, answer: bytes) -> WeightsSource:
    model = decoded(answer, _Model, url)
    if not _COMMIT.fullmatch(model.sha):
        raise InstallerError(MalformedFile(path=url, where="$.sha", reason="expected 40 hexadecimal digits"))
    for index, sibling in enumerate(model.siblings):
        try:
            safe_parts(sibling.rfilename)
        except UnsafeName as error:
            where = f"$.siblings[{index}].rfilename"
            raise InstallerError(MalformedFile(path=url, where=where, reason="unsafe name")) from error
    chosen = set(needed(sibling.rfilename for sibling in model.siblings))
    files = [_file(sibling) for sibling in model.siblings if sibling.rfilename in chosen]
    files.sort(key=lambda file: file.path)
    return WeightsSource(repo=repo, commit=model.sha, files=tuple(files), gated=bool(model.gated))


def _file(sibling: _Sibling) -> WeightFile:
    if sibling.lfs is not None:
        return WeightFile(path=sibling.rfilename, size_bytes=sibling.lfs.size, sha256=sibling.lfs.sha256)
    return WeightFile(path=sibling.rfilename, size_bytes=sibling.size, git_blob_id=sibling.blob_id)

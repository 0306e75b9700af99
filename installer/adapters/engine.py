"""Docker Engine over its API, through docker-py, which is imported only when an engine is asked."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from installer.adapters import engine_facts, engine_probe
from installer.adapters.engine_endpoint import NOT_DOCKERS, endpoint_of, transport_errors
from installer.adapters.engine_errors import Asked, detail_of, problem_of, state_of, unanswered
from installer.adapters.engine_images import anchor, error_in, inspected, layer_bytes, names_of, open_pull
from installer.adapters.interruptible import Opened, QuietError, interruptible, waited_for
from installer.domain import inspection
from installer.domain.facts import Engine, EngineState
from installer.domain.problems import (
    AnyProblem,
    DiskFull,
    EngineFailed,
    EngineLost,
    EngineTimedOut,
    InstallerError,
    NvidiaToolkitMissing,
    Stalled,
)
from installer.domain.progress import PullProgress
from installer.domain.sources import ImageSource
from installer.steps.cancel import Cancel
from installer.steps.ports import ContainerState, ProbeReading, Report

if TYPE_CHECKING:
    from docker import APIClient

_LABEL_PROFILE = "app.slipway.profile"
_LABEL_REVISION = "app.slipway.registry-revision"
_LABEL_DIGEST = "app.slipway.image-digest"
_LABEL_FINGERPRINT = "app.slipway.fingerprint"
_LABEL_PROJECT = "com.docker.compose.project"
# The engine answers all but pulls, logs and waits at once; removing an image of many layers takes a while.
_OPERATION_S = 120.0


class DockerEngine:
    """Implements `ContainerEngine` for the engine of a context, or of the one in force where none is named.

    `timeout_s` is how long facts may take to answer, `stall_s` how long a pull may say nothing, `probe_s` how long
    the helper container may run.
    """

    def __init__(
        self, context: str | None = None, *, timeout_s: float = 10.0, stall_s: float = 300.0, probe_s: float = 120.0
    ) -> None:
        self._context = context
        self._timeout_s = timeout_s
        self._stall_s = stall_s
        self._probe_s = probe_s

    def facts(self) -> Engine:
        """Read the engine; its state is part of the answer."""
        return engine_facts.read(self._context, self._timeout_s)

    def has_image(self, image: ImageSource) -> bool:
        """Say whether an image with this index digest is there, by RepoDigests: the Id is another digest."""
        with self._client(Asked(operation="inspect", image=image)) as client:
            return inspected(client, image) is not None

    def pull(self, image: ImageSource, report: Report, cancel: Cancel) -> None:
        """Pull by index digest, report bytes over all layers, and anchor the image with a local tag."""
        progress = PullProgress.of(image.layers)
        report(progress.done, progress.total)
        with self._client(Asked(operation="pull", image=image)) as client:
            for event in self._pull_events(client, image, cancel):
                before, progress = progress, progress.after(event)
                if (progress.done, progress.total) != (before.done, before.total):
                    report(progress.done, progress.total)
            found = inspected(client, image)
            if found is None:
                detail = f"no image with {image.index_digest} after the pull"
                raise InstallerError(EngineFailed(operation="pull", detail=detail))
            anchor(client, image, found["Id"])
        progress = progress.finished()
        report(progress.done, progress.total)

    def probe(self, helper: ImageSource, gpu_uuid: str | None, cancel: Cancel) -> ProbeReading:
        """Read CUDA's memory and the engine's disk in a container of the helper image, which is pulled if missing."""
        cancel.check()
        if not self.has_image(helper):
            self.pull(helper, _unreported, cancel)
        asked = Asked(operation=engine_probe.OPERATION, image=helper, gpu=gpu_uuid or "")
        with (
            self._client(asked) as client,
            engine_probe.container(client, helper, gpu_uuid, lambda: self._client(asked)) as container,
        ):
            try:
                ended = waited_for(lambda: engine_probe.run(client, container), cancel, self._probe_s)
            except QuietError as error:
                raise InstallerError(self._probe_too_slow()) from error
        return engine_probe.reading_of(*ended, gpu_uuid)

    def tag(self, image: ImageSource) -> None:
        """Give an image that is there its publisher's tag, as a pull by tag would."""
        with self._client(Asked(operation="tag", image=image)) as client:
            client.tag(image.by_digest, image.repository, image.tag)

    def remove_image(self, image: ImageSource) -> int:
        """Remove an image with its anchor and its publisher's tag; return how many bytes that freed."""
        from docker.errors import NotFound

        with self._client(Asked(operation="remove", image=image)) as client:
            before = layer_bytes(client)
            for name in names_of(client, image):
                with contextlib.suppress(NotFound):  # the last tag of a repository takes its digest along
                    client.remove_image(name)
            return max(0, before - layer_bytes(client))

    def containers(self, project: str) -> tuple[ContainerState, ...]:
        """Return the containers of a Compose project, whatever their state."""
        from docker.errors import NotFound

        states: list[ContainerState] = []
        with self._client(Asked(operation="inspect")) as client:
            for listed in client.containers(all=True, filters={"label": f"{_LABEL_PROJECT}={project}"}):
                with contextlib.suppress(NotFound):  # it may go between list and inspection
                    seen = client.inspect_container(listed["Id"])
                    states.append(_container_state(seen, _exit_code(client, seen)))
        return tuple(sorted(states, key=lambda state: state.name))

    def logs(self, container_id: str, tail: int | None = None) -> bytes:
        """Return a container's output so far."""
        with self._client(Asked(operation="logs")) as client:
            output: bytes = client.logs(container_id, tail="all" if tail is None else tail)
            return output

    def follow_logs(self, container_id: str, cancel: Cancel) -> Iterator[bytes]:
        """Yield a container's output, line by line, until it ends or the person cancels."""
        with self._client(Asked(operation="logs")) as client:

            def follow() -> Opened[bytes]:
                stream = client.logs(container_id, stream=True, follow=True)
                return Opened(stream, stream.close, stream.close)

            with contextlib.closing(interruptible(follow, cancel)) as chunks:
                yield from _lines(chunks)

    def _probe_too_slow(self) -> AnyProblem:
        return EngineTimedOut(endpoint=endpoint_of(self._context).url, seconds=self._probe_s)

    def _pull_events(self, client: APIClient, image: ImageSource, cancel: Cancel) -> Iterator[dict[str, Any]]:
        asked = Asked(operation="pull", image=image)
        try:
            with contextlib.closing(interruptible(lambda: open_pull(client, image), cancel, self._stall_s)) as events:
                for event in events:
                    message = error_in(event)
                    if message is not None:
                        raise InstallerError(self._completed(problem_of(message, asked), client))
                    yield event
        except QuietError as error:
            raise InstallerError(Stalled(what=image.repository, seconds=self._stall_s)) from error

    @contextlib.contextmanager
    def _client(self, asked: Asked) -> Iterator[APIClient]:
        """Open a client of its own for one operation: clients are not made for several threads."""
        failures = transport_errors()
        endpoint = endpoint_of(self._context)
        began = time.monotonic()
        try:
            client = endpoint.connect(_OPERATION_S)
        except failures as error:
            state = engine_facts.state_without_answer(error)
            waited_s = time.monotonic() - began
            raise InstallerError(unanswered(state, endpoint.url, str(error), waited_s)) from error
        except NOT_DOCKERS as error:
            raise InstallerError(_strange(error, asked)) from error
        try:
            yield client
        except failures as error:
            raise InstallerError(self._completed(_problem_behind(error, asked, endpoint.url), client)) from error
        except NOT_DOCKERS as error:
            raise InstallerError(_strange(error, asked)) from error
        finally:
            client.close()

    def _completed(self, problem: AnyProblem, client: APIClient) -> AnyProblem:
        """Add what only the engine knows; an engine that has no answer to that either is lost."""
        if not isinstance(problem, DiskFull | NvidiaToolkitMissing | EngineFailed):
            return problem
        try:
            info: dict[str, Any] = client.info()
        except NOT_DOCKERS:
            return problem
        except transport_errors() as error:
            if isinstance(problem, EngineFailed):
                return EngineLost(operation=problem.operation, detail=detail_of(str(error)))
            return problem
        match problem:
            case DiskFull():
                free = engine_facts.local_free_bytes(endpoint_of(self._context).url, info)
                return msgspec.structs.replace(problem, where=str(info.get("DockerRootDir") or ""), free_bytes=free)
            case NvidiaToolkitMissing():
                runtimes, desktop = inspection.runtimes_of(info), inspection.is_desktop(info)
                return msgspec.structs.replace(problem, runtimes=runtimes, docker_desktop=desktop)
            case EngineFailed():
                return problem


def _strange(error: Exception, asked: Asked) -> AnyProblem:
    """Return the Problem of an answer that no engine gives; its words may be anything and are not repeated."""
    return EngineFailed(operation=asked.operation, detail=f"an answer that is not Docker's: {type(error).__name__}")


def _problem_behind(error: Exception, asked: Asked, endpoint: str) -> AnyProblem:
    from docker.errors import APIError, DockerException

    if isinstance(error, APIError):
        return problem_of(str(error.explanation or error), asked)
    if isinstance(error, DockerException):
        return EngineFailed(operation=asked.operation, detail=detail_of(str(error)))
    if state_of(error) is EngineState.TIMED_OUT:
        return EngineTimedOut(endpoint=endpoint, seconds=_OPERATION_S)
    return EngineLost(operation=asked.operation, detail=detail_of(str(error)))


def _exit_code(client: APIClient, seen: dict[str, Any]) -> int:
    """Return a container's last exit code; one that was started anew has forgotten it, the engine's events have not."""
    state = seen["State"]
    if not seen.get("RestartCount") or state["Status"] != "running":
        return inspection.exit_code_in(state)
    ends = client.events(
        since=0, until=int(time.time()) + 1, filters={"container": seen["Id"], "event": "die"}, decode=True
    )
    codes = [event.get("Actor", {}).get("Attributes", {}).get("exitCode", "0") for event in ends]
    return int(codes[-1]) if codes else 0


def _container_state(seen: dict[str, Any], exit_code: int) -> ContainerState:
    container, config = inspection.container_of(seen), seen["Config"]
    labels: dict[str, str] = config.get("Labels") or {}
    health: Any = container.health.status
    return ContainerState(
        id=seen["Id"],
        name=seen["Name"].removeprefix("/"),
        image=config.get("Image") or "",
        status=seen["State"]["Status"],
        health=health,
        exit_code=exit_code,
        out_of_memory=container.out_of_memory,
        restart_count=int(seen.get("RestartCount") or 0),
        started_at=seen["State"].get("StartedAt") or "",
        error=container.error,
        missing_health_program=container.health.missing_program,
        profile=labels.get(_LABEL_PROFILE, ""),
        registry_revision=labels.get(_LABEL_REVISION, ""),
        image_digest=labels.get(_LABEL_DIGEST, ""),
        fingerprint=labels.get(_LABEL_FINGERPRINT, ""),
    )


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _unreported(_done: int, _total: int) -> None:
    """Take the progress of a helper image, which is small."""

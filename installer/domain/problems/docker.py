"""The engine, its toolkit and Compose."""

from __future__ import annotations

from installer.domain.problems.base import Action, Problem


class DockerProblem(Problem, frozen=True, kw_only=True):
    """The container engine, Compose, or the way from the engine to the card."""

    family = "docker"
    exit_code = 20
    action = Action.CHECK_AGAIN


class EngineNotInstalled(DockerProblem, frozen=True, kw_only=True):
    """No Docker on this machine."""

    action = Action.INSTALL
    system: str


class EngineDown(DockerProblem, frozen=True, kw_only=True):
    """Docker is installed and does not answer at its endpoint."""

    action = Action.START
    endpoint: str
    detail: str = ""


class EngineNoPermission(DockerProblem, frozen=True, kw_only=True):
    """The engine's socket refuses this user."""

    endpoint: str

    @property
    def command(self) -> str | None:
        """Return the command that lets this user in; on Windows that is done in the computer management."""
        return None if self.endpoint.startswith("npipe") else 'sudo usermod -aG docker "$USER"'


class EngineTimedOut(DockerProblem, frozen=True, kw_only=True):
    """The engine took the connection and did not answer in time."""

    endpoint: str
    seconds: float


class EngineIsPodman(DockerProblem, frozen=True, kw_only=True):
    """Podman answers: it takes a GPU request over Docker's interface and ignores it."""

    endpoint: str
    version: str


class EngineNotLinux(DockerProblem, frozen=True, kw_only=True):
    """The engine runs Windows containers."""

    os_type: str


class EngineFailed(DockerProblem, frozen=True, kw_only=True):
    """The engine refused with an error that has no kind of its own."""

    action = Action.REPORT
    operation: str
    detail: str


class EngineLost(DockerProblem, frozen=True, kw_only=True):
    """The engine went away in the middle of a step."""

    action = Action.START
    operation: str
    detail: str = ""


class NvidiaToolkitMissing(DockerProblem, frozen=True, kw_only=True):
    """The engine knows no way to hand an NVIDIA card to a container."""

    action = Action.INSTALL
    runtimes: tuple[str, ...]
    docker_desktop: bool = False

    @property
    def command(self) -> str | None:
        """Return the command that tells Docker about NVIDIA's runtime, where that is the way."""
        if self.docker_desktop:
            return None
        return "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"


class ComposeMissing(DockerProblem, frozen=True, kw_only=True):
    """Compose v2 is not there."""

    action = Action.INSTALL
    detail: str = ""


class ComposeTooOld(DockerProblem, frozen=True, kw_only=True):
    """Compose is older than the file needs."""

    action = Action.INSTALL
    version: str
    needed: str


class NoSuchPlatform(DockerProblem, frozen=True, kw_only=True):
    """The image exists, but not for this processor."""

    action = Action.CHOOSE_ANOTHER
    image: str
    platform: str
    platforms: tuple[str, ...]

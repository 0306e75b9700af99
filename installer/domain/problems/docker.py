"""The engine, its toolkit and Compose."""

from __future__ import annotations

from typing import Literal

from installer.domain.problems.base import Action, Problem, Treatment


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


class DesktopWithoutGpu(DockerProblem, frozen=True, kw_only=True):
    """Docker Desktop on Linux runs in a virtual machine that has no graphics card; `other` is a context that may."""

    context: str
    other: str = ""

    @property
    def command(self) -> str | None:
        """Return the command that turns to the engine of the computer itself, where there is one."""
        return f"docker context use {self.other}" if self.other else None


class WslIntegrationOff(DockerProblem, frozen=True, kw_only=True):
    """Inside WSL the docker program is only a stub, because Docker Desktop does not serve this distribution."""

    action = Action.START
    detail: str = ""


class CdiDeviceUnknown(DockerProblem, frozen=True, kw_only=True):
    """A container asks for its card by CDI, and the engine has no such device; Slipway asks by driver and UUID."""

    treated = Treatment.ADAPT
    device: str

    @property
    def command(self) -> str:
        """Return the command that writes down the computer's CDI devices, for files that need them."""
        return "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"


class CredentialHelperMissing(DockerProblem, frozen=True, kw_only=True):
    """Docker's settings name a program for passwords that is not there; public images need none."""

    treated = Treatment.ADAPT
    helper: str


class ContainerNameTaken(DockerProblem, frozen=True, kw_only=True):
    """A container of that name exists already; Slipway gives none a fixed name and makes its own anew."""

    treated = Treatment.ADAPT
    name: str


class HealthProgramMissing(DockerProblem, frozen=True, kw_only=True):
    """The health check's program is not in the image, so "unhealthy" says nothing; Slipway asks from outside."""

    treated = Treatment.ADAPT
    program: str
    failures: int | None = None


class ProgramNotInImage(DockerProblem, frozen=True, kw_only=True):
    """What the container was to run is not there: command and entrypoint belong to another image."""

    treated = Treatment.ADAPT
    program: str


class OtherDigest(DockerProblem, frozen=True, kw_only=True):
    """A digest that is not the one to pin: an image's Id, or that of one platform. Slipway compares RepoDigests."""

    advice = True
    treated = Treatment.ADAPT
    wrong: str
    right: str


FileFlaw = Literal[
    "interpolated",
    "not_split",
    "not_json",
    "program_repeated",
    "program_missing",
    "short_volume",
    "exclusive_keys",
    "not_text",
    "line_ends",
    "no_patience",
]


class ComposeFlaw(DockerProblem, frozen=True, kw_only=True):
    """Something in a compose file or an argument that Slipway writes otherwise. `value` holds no secret."""

    treated = Treatment.ADAPT
    flaw: str
    place: str
    value: str = ""

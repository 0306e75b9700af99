"""Words for the container engine, Compose, and the way from the engine to the card."""

from __future__ import annotations

from installer.domain import problems as p
from installer.text.names import operation
from installer.text.voice import ProblemText, Voice


def engine_not_installed(problem: p.EngineNotInstalled, t: Voice) -> ProblemText:
    """Return the words for a machine without Docker."""
    if problem.system == "Windows":
        remedy = t.gettext(
            "Install Docker Desktop (docs.docker.com/desktop), keep WSL 2 ticked, and start it once. Then check again."
        )
    elif problem.system == "Linux":
        remedy = t.gettext(
            "Install Docker Engine (docs.docker.com/engine/install). Inside WSL, turn on the integration of this "
            "distribution in Docker Desktop's settings instead. Then check again."
        )
    else:
        remedy = t.gettext("Install Docker (docs.docker.com/get-started/get-docker) and start it. Then check again.")
    return ProblemText(t.gettext("Docker is missing"), t.gettext("No Docker was found on this computer."), remedy)


def engine_down(problem: p.EngineDown, t: Voice) -> ProblemText:
    """Return the words for an engine that is not running."""
    sentence = t.gettext("Docker is installed, but does not answer.")
    if problem.endpoint:
        sentence = t.gettext("Docker is installed, but does not answer at {endpoint}.", endpoint=problem.endpoint)
    return ProblemText(
        t.gettext("Docker is not running"),
        sentence,
        t.gettext(
            "Start Docker Desktop and wait until it is ready, or on Linux run sudo systemctl start docker. "
            "Then check again."
        ),
    )


def engine_no_permission(problem: p.EngineNoPermission, t: Voice) -> ProblemText:
    """Return the words for a socket that refuses this user."""
    sentence = t.gettext("Docker is running, but does not let your user account in.")
    if problem.endpoint:
        sentence = t.gettext(
            "Docker is running, but does not let your user account in at {endpoint}.", endpoint=problem.endpoint
        )
    return ProblemText(
        t.gettext("No access to Docker"),
        sentence,
        t.gettext(
            "Add your account to the group docker with the command shown, sign out and in again, then check again. "
            "Whoever is in this group has full rights on this computer. On Windows the group is docker-users."
        ),
    )


def engine_timed_out(problem: p.EngineTimedOut, t: Voice) -> ProblemText:
    """Return the words for an engine that hangs."""
    sentence = t.gettext("Docker takes the connection and does not answer.")
    if problem.seconds > 0:
        sentence = t.gettext("Docker gave no answer within {time}.", time=t.duration(problem.seconds))
    return ProblemText(
        t.gettext("Docker does not answer"),
        sentence,
        t.gettext("Restart Docker and check again. Right after the computer starts it can take some minutes."),
    )


def engine_is_podman(problem: p.EngineIsPodman, t: Voice) -> ProblemText:
    """Return the words for Podman behind Docker's name."""
    podman = f"Podman {problem.version}".strip()
    return ProblemText(
        t.gettext("Podman instead of Docker"),
        t.gettext(
            "{podman} answers in Docker's place. It accepts a request for a graphics card and ignores it.",
            podman=podman,
        ),
        t.gettext(
            "Install and start Docker Engine, then choose it with docker context use default. "
            "DOCKER_HOST must not point to Podman."
        ),
    )


def engine_not_linux(problem: p.EngineNotLinux, t: Voice) -> ProblemText:
    """Return the words for an engine that runs containers of another system."""
    return ProblemText(
        t.gettext("Docker runs other containers"),
        t.gettext(
            "Docker is set to containers of the system {system}. vLLM needs Linux containers.",
            system=t.quote(problem.os_type),
        ),
        t.gettext("Choose “Switch to Linux containers…” in the menu of Docker Desktop, then check again."),
    )


def engine_failed(problem: p.EngineFailed, t: Voice) -> ProblemText:
    """Return the words for an error of the engine that has no kind of its own."""
    return ProblemText(
        t.gettext("Docker reports an error"),
        t.gettext(
            "Docker answered with an error that Slipway does not know. Step: {operation}.",
            operation=operation(problem.operation, t),
        ),
        t.gettext("Try again. If it stays that way, please report it with the technical details."),
    )


def engine_lost(problem: p.EngineLost, t: Voice) -> ProblemText:
    """Return the words for an engine that went away."""
    return ProblemText(
        t.gettext("Connection to Docker lost"),
        t.gettext(
            "Docker was gone in the middle of a step. Step: {operation}.", operation=operation(problem.operation, t)
        ),
        t.gettext("Start Docker again, then try again. What is loaded already stays."),
    )


def nvidia_toolkit_missing(problem: p.NvidiaToolkitMissing, t: Voice) -> ProblemText:
    """Return the words for an engine that cannot hand a card to a container."""
    if problem.docker_desktop:
        return ProblemText(
            t.gettext("Docker has no access to the card"),
            t.gettext("Docker Desktop cannot give a container an NVIDIA card as it is set up."),
            t.gettext(
                "On Windows, tick “Use the WSL 2 based engine” in Docker Desktop's settings and update it. On Linux, "
                "Docker Desktop cannot do it: install Docker Engine and choose it with docker context use default."
            ),
        )
    return ProblemText(
        t.gettext("Docker has no access to the card"),
        t.gettext("Docker knows no way to give a container an NVIDIA card."),
        t.gettext(
            "Install the NVIDIA Container Toolkit "
            "(docs.nvidia.com/datacenter/cloud-native/container-toolkit), then run the command shown."
        ),
    )


def compose_missing(t: Voice) -> ProblemText:
    """Return the words for a Docker without Compose."""
    return ProblemText(
        t.gettext("Docker Compose is missing"),
        t.gettext("The command docker compose does not work on this computer."),
        t.gettext(
            "Docker Desktop brings Compose along: update it. On Linux, install the package docker-compose-plugin."
        ),
    )


def compose_too_old(problem: p.ComposeTooOld, t: Voice) -> ProblemText:
    """Return the words for a Compose that does not know the file's keys."""
    has = f"Docker Compose {problem.version}".strip()
    return ProblemText(
        t.gettext("Docker Compose too old"),
        t.gettext("{compose} is installed. Version {needed} or later is needed.", compose=has, needed=problem.needed),
        t.gettext("Update Docker Desktop, or on Linux the package docker-compose-plugin. Then check again."),
    )


def no_such_platform(problem: p.NoSuchPlatform, t: Voice) -> ProblemText:
    """Return the words for an image that does not exist for this processor."""
    sentence = t.gettext(
        "The image {image} does not exist for this processor ({platform}).",
        image=t.quote(problem.image),
        platform=problem.platform or t.gettext("unknown"),
    )
    if problem.platforms:
        there = t.gettext("It exists for: {platforms}.", platforms=t.listed(problem.platforms))
        sentence = f"{sentence} {there}"
    return ProblemText(
        t.gettext("No image for this processor"), sentence, t.gettext("Choose a profile with another image.")
    )

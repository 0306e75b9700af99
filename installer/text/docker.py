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


def desktop_without_gpu(problem: p.DesktopWithoutGpu, t: Voice) -> ProblemText:
    """Return the words for Docker Desktop on Linux."""
    sentence = t.gettext("Docker Desktop on Linux runs in a virtual machine that has no graphics card.")
    if problem.context:
        sentence = t.gettext(
            "Docker Desktop on Linux (context {context}) runs in a virtual machine that has no graphics card.",
            context=t.quote(problem.context),
        )
    if problem.other:
        remedy = t.gettext(
            "Another Docker seems to be on this computer: turn to it with the command shown, then check again. The "
            "NVIDIA Container Toolkit need not be installed again."
        )
    else:
        remedy = t.gettext(
            "Install Docker Engine beside it (docs.docker.com/engine/install) and choose it with docker context use "
            "default. The NVIDIA Container Toolkit need not be installed again."
        )
    return ProblemText(t.gettext("Docker Desktop has no card on Linux"), sentence, remedy)


def wsl_integration_off(t: Voice) -> ProblemText:
    """Return the words for a distribution that Docker Desktop does not serve."""
    return ProblemText(
        t.gettext("Docker is off in this distribution"),
        t.gettext("In this WSL distribution docker is only a notice: Docker Desktop does not serve it."),
        t.gettext(
            "In Docker Desktop, open Settings, Resources, WSL integration and turn this distribution on, or start "
            "Slipway in Windows. Do not install another Docker beside it."
        ),
    )


def cdi_device_unknown(problem: p.CdiDeviceUnknown, t: Voice) -> ProblemText:
    """Return the words for a CDI device that the engine does not know."""
    return ProblemText(
        t.gettext("Card asked for in another way"),
        t.gettext(
            "A container asks for the card as CDI device {device}, which Docker does not know here.",
            device=t.quote(problem.device),
        ),
        t.gettext(
            "Slipway's own file asks by driver and UUID and does without. A file that needs CDI gets its list of "
            "devices with the command shown."
        ),
    )


def credential_helper_missing(problem: p.CredentialHelperMissing, t: Voice) -> ProblemText:
    """Return the words for a password program that is not there."""
    return ProblemText(
        t.gettext("Docker's password program missing"),
        t.gettext(
            "Docker's settings name the program {helper} for passwords, which is not there.",
            helper=t.quote(problem.helper),
        ),
        t.gettext(
            "Slipway downloads public images without it and leaves your settings alone. For docker pull, take the line "
            "credsStore out of ~/.docker/config.json."
        ),
    )


def container_name_taken(problem: p.ContainerNameTaken, t: Voice) -> ProblemText:
    """Return the words for a name that a container has already."""
    return ProblemText(
        t.gettext("Container name taken"),
        t.gettext("A container with the name {name} exists already.", name=t.quote(problem.name)),
        t.gettext(
            "Slipway's containers have no fixed name; one of its own is made anew. Another program's stays: give "
            "yours another name."
        ),
    )


def health_program_missing(problem: p.HealthProgramMissing, t: Voice) -> ProblemText:
    """Return the words for a health check that cannot run."""
    sentence = t.gettext(
        "The health check calls {program}, which is not in the image: “unhealthy” says nothing then.",
        program=t.quote(problem.program),
    )
    if problem.failures is not None:
        sentence = t.ngettext(
            "The health check has failed {count} time, for it calls {program}, which is not in the image.",
            "The health check has failed {count} times, for it calls {program}, which is not in the image.",
            problem.failures,
            program=t.quote(problem.program),
        )
    return ProblemText(
        t.gettext("Health check cannot run"),
        sentence,
        t.gettext(
            "Slipway asks the server itself from outside. In a file of your own, take a program that the image has, "
            "such as python3 -c."
        ),
    )


def program_not_in_image(problem: p.ProgramNotInImage, t: Voice) -> ProblemText:
    """Return the words for a command that belongs to another image."""
    return ProblemText(
        t.gettext("Command does not suit the image"),
        t.gettext("The container was to run {program}, which is not in the image.", program=t.quote(problem.program)),
        t.gettext(
            "Slipway's own file names the program that belongs to its image. In a file of your own, compare entrypoint "
            "and command with docker image inspect."
        ),
    )


def other_digest(problem: p.OtherDigest, t: Voice) -> ProblemText:
    """Return the words for a digest that is not the one to pin."""
    return ProblemText(
        t.gettext("Not the digest to pin"),
        t.gettext(
            "{wrong} is not the digest that this image is downloaded by. That one is {right}.",
            wrong=t.quote(problem.wrong),
            right=t.quote(problem.right),
        ),
        t.gettext("Slipway compares and pins the digest under RepoDigests; take that one, not the image's Id."),
    )


def compose_flaw(problem: p.ComposeFlaw, t: Voice) -> ProblemText:
    """Return the words for something in a file that Slipway writes otherwise."""
    place, value = t.quote(problem.place), t.quote(problem.value)
    sentences = {
        "interpolated": t.gettext(
            "{place}: Compose takes what stands behind a dollar sign for a variable.", place=place
        ),
        "not_split": t.gettext("{place}: {value} is one argument, but should be two.", place=place, value=value),
        "not_json": t.gettext("{place}: {value} should be JSON and is none.", place=place, value=value),
        "program_repeated": t.gettext(
            "{place}: the image starts its program by itself; {value} is one word too many.", place=place, value=value
        ),
        "program_missing": t.gettext(
            "{place}: the image starts no program by itself, and {value} is none.", place=place, value=value
        ),
        "short_volume": t.gettext(
            "{place}: the colon of a Windows drive is taken for the end of the path.", place=place
        ),
        "exclusive_keys": t.gettext("{place}: only one of {value} may stand there.", place=place, value=value),
        "not_text": t.gettext("{place}: a text must stand there, in quotation marks.", place=place),
        "line_ends": t.gettext("{place} has the line ends of Windows, which become part of its values.", place=place),
        "no_patience": t.gettext(
            "{place}: the check begins before the server has loaded and calls it unhealthy.", place=place
        ),
    }
    remedies = {
        "interpolated": t.gettext("Double every dollar sign that is meant as such ($$), also in JSON."),
        "not_split": t.gettext("Write each argument and each value as an item of its own."),
        "not_json": t.gettext("Write the JSON as one item, without further quotation marks or backslashes in it."),
        "program_repeated": t.gettext("Begin command with the model."),
        "program_missing": t.gettext("Set entrypoint, for example to vllm serve --omni as three items."),
        "short_volume": t.gettext("Use the long form (type, source, target) or a named volume."),
        "exclusive_keys": t.gettext("Keep device_ids with the card's UUID."),
        "not_text": t.gettext("Put the value in quotation marks."),
        "line_ends": t.gettext("Save the file with the line ends of Linux (LF)."),
        "no_patience": t.gettext("Set start_period to 30m."),
    }
    own = t.gettext("Slipway's own file has it right.")
    other = t.gettext("{place}: Compose does not take this as it is meant.", place=place)
    remedy = remedies.get(problem.flaw, t.gettext("Compare it with Compose's own description of the file."))
    return ProblemText(t.gettext("Does not do what it says"), sentences.get(problem.flaw, other), f"{remedy} {own}")

"""Words for the NVIDIA driver and for cards that it does not show."""

from __future__ import annotations

from installer.domain import problems as p
from installer.text.voice import ProblemText, Voice


def no_nvidia_driver(problem: p.NoNvidiaDriver, t: Voice) -> ProblemText:
    """Return the words for a missing driver; inside WSL2 the driver is the one of Windows."""
    if problem.wsl2:
        return ProblemText(
            t.gettext("No NVIDIA driver"),
            t.gettext("WSL2 shows no NVIDIA driver. It gets it from Windows."),
            t.gettext(
                "Install the current NVIDIA driver in Windows, then run wsl --shutdown there and open WSL again. "
                "Install no driver inside WSL."
            ),
        )
    return ProblemText(
        t.gettext("No NVIDIA driver"),
        t.gettext("No NVIDIA driver was found on this computer."),
        t.gettext(
            "If there is an NVIDIA card in it, install the current driver (nvidia.com/drivers, on Linux best from your "
            "distribution) and restart the computer. Without such a card only profiles for the processor run."
        ),
    )


def driver_not_loaded(t: Voice) -> ProblemText:
    """Return the words for a driver that is installed and does not answer."""
    return ProblemText(
        t.gettext("NVIDIA driver not loaded"),
        t.gettext("The NVIDIA driver is installed, but its kernel module does not answer."),
        t.gettext(
            "Restart the computer. If that does not help, install the driver anew. With Secure Boot its module must "
            "be signed."
        ),
    )


def driver_library_mismatch(t: Voice) -> ProblemText:
    """Return the words for a driver that was updated while it was in use."""
    return ProblemText(
        t.gettext("Driver updated, restart missing"),
        t.gettext(
            "The NVIDIA driver in use and its library have different versions, as after an update without a restart."
        ),
        t.gettext("Restart the computer, then check again."),
    )


def nvidia_no_permission(t: Voice) -> ProblemText:
    """Return the words for a driver that refuses this user."""
    return ProblemText(
        t.gettext("No access to the graphics card"),
        t.gettext("The NVIDIA driver refuses your user account access to the graphics card."),
        t.gettext(
            "Add your account to the group that owns /dev/nvidia0 (often video or render), then sign out and in again."
        ),
    )


def gpu_read_timed_out(problem: p.GpuReadTimedOut, t: Voice) -> ProblemText:
    """Return the words for a driver that hangs."""
    return ProblemText(
        t.gettext("NVIDIA driver does not answer"),
        t.gettext("The NVIDIA driver gave no answer within {time}.", time=t.duration(problem.seconds)),
        t.gettext(
            "Restart the computer. If it happens again, install the current driver, and check that the card sits "
            "firmly and has power."
        ),
    )


def gpu_lost(t: Voice) -> ProblemText:
    """Return the words for a card that fell off the bus."""
    return ProblemText(
        t.gettext("Connection to the card lost"),
        t.gettext("The graphics card no longer answers."),
        t.gettext(
            "Switch the computer off and on again. If it happens again, check the card's power cable, seat and "
            "temperature."
        ),
    )


def gpu_read_failed(t: Voice) -> ProblemText:
    """Return the words for an error of the driver that has no kind of its own."""
    return ProblemText(
        t.gettext("Card could not be read"),
        t.gettext("The NVIDIA driver answered with an error that Slipway does not know."),
        t.gettext("Check again. If it stays that way, please report it with the technical details."),
    )


def no_gpu(t: Voice) -> ProblemText:
    """Return the words for a driver that lists no card."""
    return ProblemText(
        t.gettext("No NVIDIA card found"),
        t.gettext("The NVIDIA driver is there, but it shows no graphics card."),
        t.gettext(
            "Check that the card sits firmly, has power and is switched on in the system. On a laptop, turn off the "
            "mode that saves power by turning off the NVIDIA card. Then check again."
        ),
    )


def driver_too_old(problem: p.DriverTooOld, t: Voice) -> ProblemText:
    """Return the words for an image that is too new for the driver."""
    return ProblemText(t.gettext("NVIDIA driver too old"), _too_old(problem, t), _newer_driver(problem, t))


def _too_old(problem: p.DriverTooOld, t: Voice) -> str:
    image = t.quote(problem.image)
    if not problem.driver_cuda:
        return t.gettext(
            "The image {image} needs CUDA {needed}, which the installed driver cannot run.",
            image=image,
            needed=problem.image_cuda,
        )
    driver = t.gettext("Your driver {version}", version=problem.driver) if problem.driver else t.gettext("Your driver")
    return t.gettext(
        "The image {image} needs CUDA {needed}. {driver} runs CUDA {has} at most.",
        image=image,
        needed=problem.image_cuda,
        driver=driver,
        has=problem.driver_cuda,
    )


def _newer_driver(problem: p.DriverTooOld, t: Voice) -> str:
    if problem.wsl2:
        return t.gettext(
            "Update the NVIDIA driver in Windows to {version}, then run wsl --shutdown there. "
            "Install no driver inside WSL.",
            version=_version(problem, t),
        )
    return t.gettext(
        "Update the NVIDIA driver to {version} (nvidia.com/drivers, on Linux best from your distribution) and restart "
        "the computer.",
        version=_version(problem, t),
    )


def _version(problem: p.DriverTooOld, t: Voice) -> str:
    """Return which driver it must be at least, by its own number where that is known."""
    if problem.needed_driver:
        return t.gettext(
            "version {driver} (CUDA {cuda}) or later", driver=problem.needed_driver, cuda=problem.image_cuda
        )
    return t.gettext("one with CUDA {cuda} or later", cuda=problem.image_cuda)

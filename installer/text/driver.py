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
    if not problem.image_cuda:
        if problem.driver:
            return t.gettext("The image needs a newer CUDA than your driver {version} can run.", version=problem.driver)
        if problem.driver_cuda:
            return t.gettext(
                "The image needs a newer CUDA than your driver can run (CUDA {has} at most).", has=problem.driver_cuda
            )
        return t.gettext("The image needs a newer CUDA than your driver can run.")
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
    if not problem.image_cuda:
        return t.gettext(
            "Update the NVIDIA driver (nvidia.com/drivers; with WSL2 and Docker Desktop the one of Windows), or choose "
            "a profile whose image needs an older CUDA. The card itself is in order."
        )
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


def driver_combination(problem: p.DriverCombination, t: Voice) -> ProblemText:
    """Return the words for libraries of driver and image that are mixed up."""
    sentence = t.gettext(
        "In the container, libraries of the image and of the driver are mixed up (CUDA error {code}).",
        code=problem.cuda_error,
    )
    if problem.driver:
        sentence = t.gettext(
            "In the container, libraries of the image and of the driver {driver} are mixed up (CUDA error {code}).",
            driver=problem.driver,
            code=problem.cuda_error,
        )
    return ProblemText(
        t.gettext("Driver and image mixed up"),
        sentence,
        t.gettext(
            "Slipway tries once more with the driver's libraries first. In a file of your own, ask for the card by "
            "deploy.resources, not by runtime: nvidia. The driver's age is not the cause."
        ),
    )


def kernel_missing(problem: p.KernelMissing, t: Voice) -> ProblemText:
    """Return the words for an image that was not built for this card."""
    sentence = t.gettext("The image has no program code for this card.")
    if problem.capability:
        sentence = t.gettext(
            "The image has no program code for cards with the capability {capability}.", capability=problem.capability
        )
    if problem.needed:
        needed = t.gettext("It asks for: {needed}.", needed=t.quote(problem.needed))
        sentence = f"{sentence} {needed}"
    return ProblemText(
        t.gettext("Image not made for this card"),
        sentence,
        t.gettext(
            "Choose a profile that is meant for this card, or a newer image. More or less memory changes nothing."
        ),
    )


def fp8_not_supported(problem: p.Fp8NotSupported, t: Voice) -> ProblemText:
    """Return the words for a card that cannot read an FP8 cache."""
    return ProblemText(
        t.gettext("Card cannot do this number format"),
        t.gettext("This card cannot compute with the number format {dtype}.", dtype=t.quote(problem.dtype)),
        t.gettext(
            "Slipway tries once more with the KV cache in 16 bits. In a file of your own, leave out --kv-cache-dtype; "
            "FP8 needs a card with compute capability 8.9 or more."
        ),
    )


def uva_not_available(problem: p.UvaNotAvailable, t: Voice) -> ProblemText:
    """Return the words for releases that do not run under WSL2."""
    release = f"vLLM {problem.release}".strip()
    return ProblemText(
        t.gettext("Image does not run under WSL2"),
        t.gettext("{release} needs pinned memory (UVA), which WSL2 does not give.", release=release),
        t.gettext("Choose a profile with vLLM 0.30 or later. The card is not the cause."),
    )


def not_resident(problem: p.NotResident, t: Voice) -> ProblemText:
    """Return the words for memory that WSL2 cannot keep on the card."""
    sentence = t.gettext("WSL2 could not keep memory on the card, although enough of it is free.")
    if problem.code is not None:
        sentence = t.gettext(
            "WSL2 could not keep memory on the card, although enough of it is free (error {code}).", code=problem.code
        )
    return ProblemText(
        t.gettext("WSL2 does not keep the memory"),
        sentence,
        t.gettext(
            "Slipway tries again with expandable_segments:False, then with a smaller share of the card. If neither "
            "helps, update the NVIDIA driver in Windows and run wsl --update."
        ),
    )


def no_adapter_in_wsl(t: Voice) -> ProblemText:
    """Return the words for a WSL without a card."""
    return ProblemText(
        t.gettext("WSL shows no graphics card"),
        t.gettext("Inside WSL there is no graphics card, so that no container gets one."),
        t.gettext(
            "Update the NVIDIA driver in Windows, run wsl --update and wsl --shutdown, and check with wsl -l -v that "
            "the distribution has version 2. Install no driver inside WSL."
        ),
    )


def _version(problem: p.DriverTooOld, t: Voice) -> str:
    """Return which driver it must be at least, by its own number where that is known."""
    if problem.needed_driver:
        return t.gettext(
            "version {driver} (CUDA {cuda}) or later", driver=problem.needed_driver, cuda=problem.image_cuda
        )
    return t.gettext("one with CUDA {cuda} or later", cuda=problem.image_cuda)

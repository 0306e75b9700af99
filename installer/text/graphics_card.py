"""Words for one graphics card: what it can do, what its memory holds, and who else uses it."""

from __future__ import annotations

from installer.domain import problems as p
from installer.domain.facts import Missing
from installer.domain.memory import Limit
from installer.text.voice import ProblemText, Voice

FORWARD_COMPATIBILITY = 804
"""CUDA's error for a newer CUDA in the image than a GeForce driver can run."""


def capability_too_low(problem: p.CapabilityTooLow, t: Voice) -> ProblemText:
    """Return the words for a card that lacks a profile's kernels; a newer one than they know lacks them too."""
    bound = problem.needed.removeprefix("<= ")
    if bound != problem.needed:
        needs = t.gettext(
            "The profile {profile} runs on cards with compute capability {bound} at most.",
            profile=t.quote(problem.profile),
            bound=bound,
        )
    else:
        needs = t.gettext(
            "The profile {profile} needs a card with compute capability {bound} at least.",
            profile=t.quote(problem.profile),
            bound=bound,
        )
    if problem.capability in set(Missing):
        has = t.gettext("This card does not tell which it has.")
    else:
        has = t.gettext("This card has {capability}.", capability=problem.capability)
    return ProblemText(t.gettext("Profile does not suit this card"), f"{needs} {has}", _another_profile(t))


def gpu_memory_unknown(problem: p.GpuMemoryUnknown, t: Voice) -> ProblemText:
    """Return the words for memory that cannot be read: each of the three states has its own."""
    card = t.card(problem.gpu)
    if problem.state == Missing.NOT_SUPPORTED:
        sentence = t.gettext("{card}: the driver does not tell how much graphics memory there is.", card=card)
        remedy = t.gettext(
            "This is usual in some virtual machines. Update the driver, or choose another card: without this figure "
            "nothing can be promised."
        )
    elif problem.state == Missing.NO_PERMISSION:
        sentence = t.gettext("{card}: your user account may not read the graphics memory.", card=card)
        remedy = t.gettext(
            "Ask the administrator of this computer for access to the whole card. A card that is split (MIG) shows "
            "its memory only to some."
        )
    else:
        sentence = t.gettext("{card}: no figure came for the graphics memory.", card=card)
        remedy = t.gettext("Check again. If it stays that way, restart the computer.")
    return ProblemText(t.gettext("Graphics memory unknown"), sentence, remedy)


def mig_not_served(problem: p.MigNotServed, t: Voice) -> ProblemText:
    """Return the words for a card that is split."""
    return ProblemText(
        t.gettext("Card is split"),
        t.gettext(
            "{card} is split into several instances (MIG). Slipway works with whole cards only.",
            card=t.card(problem.gpu),
        ),
        t.gettext(
            "Choose another card, or have MIG turned off (sudo nvidia-smi -mig 0) once nobody uses the instances."
        ),
    )


def does_not_fit(problem: p.DoesNotFit, t: Voice) -> ProblemText:
    """Return the words for a profile that is too large, by the term that is short."""
    figures = {
        "profile": t.quote(problem.profile),
        "needed": t.gib(problem.needed_bytes),
        "available": t.gib(problem.available_bytes),
    }
    if problem.limit == Limit.FREE_MEMORY or not problem.gpu:
        return ProblemText(
            t.gettext("Not enough memory"),
            t.gettext("The profile {profile} needs {needed} of main memory. Docker has {available}.", **figures),
            t.gettext("Choose a smaller profile, or give Docker more memory in Docker Desktop's settings."),
        )
    sentence = t.gettext(
        "The profile {profile} needs at least {needed}. {card} can give it {available}.",
        card=problem.gpu,
        **figures,
    )
    short = {
        Limit.WEIGHTS: t.gettext("The weights alone are too large."),
        Limit.KV_CACHE: t.gettext("The weights fit, the context (KV cache) does not."),
        Limit.OVERHEAD: t.gettext("The weights fit, the working memory beside them does not."),
        Limit.SEQUENCES: t.gettext("There is no room for as many requests at once as it asks for."),
        Limit.GRAPHS: t.gettext("Beside the server's share there is no room for the CUDA graphs."),
    }
    reason = next((words for limit, words in short.items() if limit == problem.limit), "")
    remedy = _another_profile(t)
    if problem.limit == Limit.KV_CACHE:
        remedy = t.gettext("Choose a shorter context or a smaller profile.")
    elif problem.limit == Limit.WEIGHTS:
        remedy = t.gettext("Choose a smaller profile, or one whose weights are compressed more.")
    return ProblemText(t.gettext("Does not fit on this card"), f"{sentence} {reason}".strip(), remedy)


def not_enough_free_memory(problem: p.NotEnoughFreeMemory, t: Voice) -> ProblemText:
    """Return the words for a card that others use, with the exact amount to free."""
    sentence = t.gettext(
        "{card}: {free} of {total} are free, {needed} are needed. {short} must be freed.",
        card=t.card(problem.gpu),
        free=t.gib(problem.free_bytes),
        total=t.gib(problem.total_bytes),
        needed=t.gib(problem.needed_bytes),
        short=t.mib(problem.short_bytes),
    )
    if problem.holders:
        remedy = t.gettext(
            "Close programs that use the card, then check again. They hold memory now: {holders}.",
            holders=t.listed(problem.holders),
        )
    else:
        remedy = t.gettext(
            "Close programs that use the card, such as games, browsers and other AI programs. Then check again."
        )
    return ProblemText(t.gettext("Not enough free graphics memory"), sentence, remedy)


def not_enough_host_memory(problem: p.NotEnoughHostMemory, t: Voice) -> ProblemText:
    """Return the words for main memory that loading may exhaust."""
    figures = {"has": t.gib(problem.memory_bytes), "needed": t.gib(problem.needed_bytes)}
    if problem.wsl2:
        return ProblemText(
            t.gettext("Little main memory"),
            t.gettext("WSL2 has {has} of main memory. Loading this model takes about {needed}.", **figures),
            t.gettext(
                "If loading fails: set memory= to a higher value under [wsl2] in the file .wslconfig in your Windows "
                "user folder, run wsl --shutdown, and start Docker again."
            ),
        )
    return ProblemText(
        t.gettext("Little main memory"),
        t.gettext("Docker has {has} of main memory. Loading this model takes about {needed}.", **figures),
        t.gettext("If loading fails: close other programs, or choose a profile with smaller weights."),
    )


def memory_hidden_by_wsl2(problem: p.MemoryHiddenByWsl2, t: Voice) -> ProblemText:
    """Return the words for memory that is there and cannot be used."""
    return ProblemText(
        t.gettext("WSL2 keeps graphics memory"),
        t.gettext(
            "{card}: WSL2 keeps about {hidden} that the driver in Windows shows as free.",
            card=t.card(problem.gpu),
            hidden=t.gib(problem.hidden_bytes),
        ),
        t.gettext("You need not do anything. Slipway has taken it into account."),
    )


def gpu_not_in_container(problem: p.GpuNotInContainer, t: Voice) -> ProblemText:
    """Return the words for a card that does not reach a container."""
    sentence = t.gettext("A container was started, and CUDA did not find the graphics card in it.")
    if problem.cuda_error is not None:
        sentence = t.gettext(
            "A container was started, and CUDA did not find the graphics card in it (CUDA error {code}).",
            code=problem.cuda_error,
        )
    if problem.cuda_error == FORWARD_COMPATIBILITY:
        remedy = t.gettext(
            "The driver is too old for this image. Update the NVIDIA driver (under WSL2 the one in Windows) and "
            "restart the computer."
        )
    else:
        remedy = t.gettext(
            "Restart Docker and check again. On Windows, update Docker Desktop and run wsl --update. On Linux, update "
            "the NVIDIA Container Toolkit, and use Docker Engine rather than Docker Desktop."
        )
    return ProblemText(t.gettext("Card does not reach the container"), sentence, remedy)


def profile_blocked(problem: p.ProfileBlocked, t: Voice) -> ProblemText:
    """Return the words for a failure that somebody measured."""
    return ProblemText(
        t.gettext("Known not to work on this card"),
        t.gettext(
            "The profile {profile} was seen to fail on this class of card. {reason} Source: {source}.",
            profile=t.quote(problem.profile),
            reason=block_reason(problem.reason, t),
            source=problem.source.rstrip(".") or t.gettext("unknown"),
        ),
        _another_profile(t),
    )


def block_reason(reason: str, t: Voice) -> str:
    """Return the sentence behind the registry's reason for a block; an unknown one is quoted."""
    known = {
        "fp8_output_broken": t.gettext("With FP8 its images come out empty or without colour."),
        "init_out_of_memory": t.gettext("It runs out of graphics memory while starting."),
        "no_kernel": t.gettext("Its kernels do not exist for this card."),
        "offload_hangs": t.gettext("With weights in main memory it hangs at the first request."),
        "fp4_cache_crashes": t.gettext("With a context kept in 4 bits the server crashes on this card."),
        "no_room_for_context": t.gettext("Its weights fill the card, and no room is left for the context."),
    }
    return known.get(reason) or t.gettext("Reason: {reason}.", reason=t.quote(reason))


def cache_not_laid_out(problem: p.CacheNotLaidOut, t: Voice) -> ProblemText:
    """Return the words for a model whose layers this release of vLLM cannot serve together."""
    return ProblemText(
        t.gettext("Model and release do not go together"),
        t.gettext(
            "vLLM {release} cannot lay out the KV cache of {profile}.",
            release=problem.release,
            profile=t.quote(problem.profile),
        ),
        _another_profile(t),
    )


def nothing_fits(problem: p.NothingFits, t: Voice) -> ProblemText:
    """Return the words for a machine on which nothing is sure to run now."""
    return ProblemText(
        t.gettext("No profile fits"),
        t.gettext("{card}: no profile is sure to run on it as it is now.", card=t.card(problem.gpu)),
        t.gettext(
            "Close programs that use the card and check again. The list shows for each profile what it lacks; one "
            "that is tight can be chosen by hand."
        ),
    )


def _another_profile(t: Voice) -> str:
    return t.gettext("Choose another profile.")

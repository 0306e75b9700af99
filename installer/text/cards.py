"""Words for what a reading of the cards means: what their names hide, how they differ, who still sits on them."""

from __future__ import annotations

from installer.domain import problems as p
from installer.text.voice import ProblemText, Voice


def cards_differ(problem: p.CardsDiffer, t: Voice) -> ProblemText:
    """Return the words for cards that are not alike."""
    figures = {
        "cards": t.listed(problem.cards) or t.gettext("(unknown)"),
        "small": t.gib(problem.smallest_bytes),
        "large": t.gib(problem.largest_bytes),
    }
    if problem.free:
        sentence = t.gettext(
            "The cards have different amounts of free memory, from {small} to {large}: {cards}.", **figures
        )
    else:
        sentence = t.gettext("The cards are of different sizes, from {small} to {large}: {cards}.", **figures)
    return ProblemText(
        t.gettext("Cards are not alike"),
        sentence,
        t.gettext(
            "Nothing has to be done. Slipway judges each card by itself and names the chosen one by its UUID, since "
            "programs number cards in different ways."
        ),
    )


def card_variant(problem: p.CardVariant, t: Voice) -> ProblemText:
    """Return the words for a card with the name of a larger one."""
    return ProblemText(
        t.gettext("Card has a larger namesake"),
        t.gettext("{card} has {total}.", card=t.card(problem.gpu), total=t.gib(problem.total_bytes)),
        t.gettext(
            "Nothing has to be done. Slipway goes by memory and compute capability, not by the name: a desktop card of "
            "the same name may have more."
        ),
    )


def card_name_unknown(problem: p.CardNameUnknown, t: Voice) -> ProblemText:
    """Return the words for a card that its driver has no name for."""
    driver = t.gettext("The driver {version}", version=problem.driver) if problem.driver else t.gettext("The driver")
    sentence = t.gettext("{driver} has no name for this card: {name}.", driver=driver, name=t.quote(problem.gpu))
    if problem.total_bytes is not None:
        has = t.gettext("It has {total}.", total=t.gib(problem.total_bytes))
        sentence = f"{sentence} {has}"
    return ProblemText(
        t.gettext("Driver does not know the card"),
        sentence,
        t.gettext(
            "The driver is probably older than the card: update it when you can. Slipway plans by memory and compute "
            "capability meanwhile."
        ),
    )


def virtual_gpu(problem: p.VirtualGpu, t: Voice) -> ProblemText:
    """Return the words for a share of a card in a virtual machine."""
    sentence = t.gettext("{card} is a share of a card in a virtual machine.", card=t.card(problem.gpu))
    if problem.total_bytes is not None:
        has = t.gettext("It has {total}.", total=t.gib(problem.total_bytes))
        sentence = f"{sentence} {has}"
    return ProblemText(
        t.gettext("Share of a graphics card"),
        sentence,
        t.gettext(
            "Slipway plans with the share's own memory. Without a licence for virtual cards it becomes slow after some "
            "minutes; ask the administrator of the virtual machine."
        ),
    )


def uses_host_memory(problem: p.UsesHostMemory, t: Voice) -> ProblemText:
    """Return the words for a card that shares the computer's memory."""
    sentence = t.gettext("{card} has no memory of its own.", card=t.card(problem.gpu))
    if problem.memory_bytes is not None:
        sentence = t.gettext(
            "{card} has no memory of its own; it shares the {memory} of this computer.",
            card=t.card(problem.gpu),
            memory=t.gib(problem.memory_bytes),
        )
    return ProblemText(
        t.gettext("Card shares main memory"),
        sentence,
        t.gettext(
            "Nothing has to be done. Slipway plans with the main memory that is free. Other programs take from the "
            "same memory: close large ones before the start."
        ),
    )


def board_not_served(problem: p.BoardNotServed, t: Voice) -> ProblemText:
    """Return the words for a Jetson."""
    return ProblemText(
        t.gettext("Jetson boards are not served"),
        t.gettext("{card} belongs to a Jetson board. It needs images of its own.", card=t.card(problem.gpu)),
        t.gettext(
            "Slipway cannot install anything here. NVIDIA's project jetson-containers has images for these boards."
        ),
    )


def card_asleep(problem: p.CardAsleep, t: Voice) -> ProblemText:
    """Return the words for a laptop's card that sleeps."""
    return ProblemText(
        t.gettext("Card is asleep"),
        t.gettext("The NVIDIA card {card} sleeps to save power.", card=t.quote(problem.gpu)),
        t.gettext("Nothing has to be done. It wakes when it is used; on battery it is slower."),
    )


def card_switched_off(problem: p.CardSwitchedOff, t: Voice) -> ProblemText:
    """Return the words for a laptop's card that is switched off."""
    return ProblemText(
        t.gettext("NVIDIA card switched off"),
        t.gettext("The NVIDIA card is switched off on this laptop (mode {mode}).", mode=t.quote(problem.mode)),
        t.gettext(
            "Switch to the mode with the NVIDIA card (prime-select nvidia, supergfxctl -m Hybrid, or the laptop's own "
            "program) and restart the computer."
        ),
    )


def leftover_workers(problem: p.LeftoverWorkers, t: Voice) -> ProblemText:
    """Return the words for workers of a server that is gone."""
    return ProblemText(
        t.gettext("Workers left over on the card"),
        t.gettext(
            "{card}: processes of a model server hold {used}, and no server of Slipway is running: {holders}.",
            card=t.card(problem.gpu),
            used=t.gib(problem.used_bytes),
            holders=t.listed(problem.holders) or t.gettext("(unknown)"),
        ),
        t.gettext(
            "If you do not use them, end these processes by the numbers in brackets (kill on Linux, the task manager "
            "on Windows) or restart the computer. Then try again."
        ),
    )


def host_memory_below_card(problem: p.HostMemoryBelowCard, t: Voice) -> ProblemText:
    """Return the words for a computer with less main memory than graphics memory."""
    return ProblemText(
        t.gettext("Less main memory than graphics memory"),
        t.gettext(
            "Docker has {memory} of main memory, the card {card} of its own. Under WSL2 this can fail when the card is "
            "filled.",
            memory=t.gib(problem.memory_bytes),
            card=t.gib(problem.card_bytes),
        ),
        t.gettext(
            "If a start fails for no clear reason: set memory= to a higher value under [wsl2] in the file .wslconfig "
            "in your Windows user folder and run wsl --shutdown."
        ),
    )

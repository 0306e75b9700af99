"""Words for what the window draws: graphics cards, what Docker needs, what the summary counts up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from installer.steps.views import DiskUse, GpuCard, Holder, Requirement, Summary
from installer.text.voice import Voice


def card_notes(card: GpuCard, wanted: str, t: Voice) -> Iterator[str]:
    """Say what is special about a card, and what has to be freed on it for the model that is named."""
    if card.shares_main_memory:
        yield t.gettext("This card shares the computer's main memory.")
    if card.ours:
        yield t.gettext(
            "Slipway's server is running on this card. What it holds counts as free: it is stopped before another "
            "model starts."
        )
    if card.asleep:
        yield t.gettext("The card was asleep to save power. It is not read again by itself, so that it can sleep on.")
    if card.to_free_bytes:
        yield t.gettext(
            "If {size} more become free, {model} fits. Close programs that use the card, then check again.",
            size=t.mib(card.to_free_bytes),
            model=wanted,
        )


def holders(card: GpuCard, t: Voice) -> str:
    """Name the programs that hold a card's memory, "" where there are none."""
    if card.holders is None:
        return t.gettext("The driver does not tell which programs hold graphics memory.")
    if not card.holders:
        return ""
    return t.gettext("Memory held by: {programs}", programs=t.listed([_holder(each, t) for each in card.holders]))


def _holder(holder: Holder, t: Voice) -> str:
    """Name a program as far as the driver tells; of a path the last part."""
    name = re.split(r"[\\/]", holder.name or "")[-1] or t.gettext("unknown program")
    if holder.used_bytes is None:
        return t.gettext("{program} (process {pid})", program=name, pid=holder.pid)
    return t.gettext("{program} (process {pid}, {size})", program=name, pid=holder.pid, size=t.mib(holder.used_bytes))


def requirements_lead(rows: tuple[Requirement, ...], t: Voice) -> str:
    """Say how much of what is required is missing."""
    missing = sum(row.weight == "required" and row.state == "problem" for row in rows)
    if missing:
        return t.ngettext(
            "The models run in containers. {count} thing that they need is missing.",
            "The models run in containers. {count} things that they need are missing.",
            missing,
        )
    if any(row.state == "unknown" for row in rows):
        return t.gettext("The models run in containers. Nothing is missing so far; what is not known yet shows later.")
    return t.gettext("The models run in containers. All that they need is there.")


def requirement_name(row: Requirement, t: Voice) -> str:
    """Return what is needed."""
    return {
        "engine": t.gettext("Container engine"),
        "compose": t.gettext("Docker Compose"),
        "driver": t.gettext("Graphics driver"),
        "toolkit": t.gettext("Containers reach the graphics card"),
        "memory": t.gettext("Main memory for Docker"),
        "image_disk": t.gettext("Room for the image"),
        "model_disk": t.gettext("Room for the model"),
        "proxy": t.gettext("Proxy"),
    }[row.name]


def requirement_state(row: Requirement, t: Voice) -> str:
    """Return how it stands, in a word or two."""
    if row.state == "problem":
        return t.gettext("Required") if row.weight == "required" else t.gettext("Advice")
    return {"ok": t.gettext("In order"), "unknown": t.gettext("Cannot be told")}[row.state]


def requirement_sentence(row: Requirement, t: Voice) -> str:
    """Say what was seen where there is no problem; a problem has words of its own."""
    return _unknown(row, t) if row.state == "unknown" else _in_order(row, t)


def _in_order(row: Requirement, t: Voice) -> str:
    if row.there_bytes is None or row.needed_bytes is None:
        return row.figure or t.gettext("It is there.")
    if row.name == "memory":
        there, needed = t.gib(row.there_bytes), t.gib(row.needed_bytes)
    else:
        there, needed = t.gb(row.there_bytes), t.gb(row.needed_bytes)
    if not row.needed_bytes:
        return t.gettext("{free} free", free=there)
    return t.gettext("{there} are there, {needed} are needed.", there=there, needed=needed)


def _unknown(row: Requirement, t: Voice) -> str:
    match row.name:
        case "toolkit":
            return t.gettext("That shows only in a container. One tries it before anything large is downloaded.")
        case "memory":
            return t.gettext("Docker does not tell how much main memory it has.")
        case "image_disk":
            return t.gettext("Docker does not tell how much room it has. A container measures it before the download.")
        case "model_disk":
            return t.gettext("The room in this folder cannot be read.")
        case _:
            return t.gettext("Its version cannot be told from {version}.", version=t.quote(row.figure))


def downloads(summary: Summary, t: Voice) -> str:
    """Say what goes over the line, and how much of it is what."""
    if not summary.download_bytes:
        return t.gettext("nothing, all of it is here")
    return t.gettext(
        "{all}: image {image}, model {model}",
        all=t.gb(summary.download_bytes),
        image=t.gb(summary.image_bytes),
        model=t.gb(summary.weights_bytes),
    )


def left_on(disk: DiskUse, t: Voice) -> str:
    """Say what a disk has left afterwards."""
    place = t.gettext("Docker's disk") if disk.engine else disk.where
    if disk.after_bytes is None:
        return t.gettext(
            "{place}: {needed} are needed; how much is free is measured before the download",
            place=place,
            needed=t.gb(disk.needed_bytes),
        )
    return t.gettext("{place}: {left} left", place=place, left=t.gb(max(0, disk.after_bytes)))


def file_change(summary: Summary, t: Voice) -> str:
    """Say what will happen to the compose file."""
    if not summary.on_disk:
        return t.gettext("{file} is written anew.", file=summary.compose_name)
    if not summary.changes:
        return t.gettext("{file} is there already and stays as it is.", file=summary.compose_name)
    return t.gettext(
        "{file} is there already. What changes in it is marked: + is added, − is taken out.", file=summary.compose_name
    )

"""NVIDIA cards on the bus, as Linux lists them in /sys: also those that no driver of NVIDIA's answers for."""

from __future__ import annotations

from pathlib import Path

from installer.domain.facts import PciCard

_DEVICES = Path("/sys/bus/pci/devices")
_NVIDIA = "0x10de"
_DISPLAY_CLASSES = ("0x0300", "0x0302")


def nvidia_cards(devices: Path = _DEVICES) -> tuple[PciCard, ...]:
    """Return the cards; none where there is no /sys, as inside WSL. Reading wakes none that sleeps."""
    try:
        places = sorted(devices.iterdir())
    except OSError:
        return ()
    return tuple(card for place in places if (card := _card(place)) is not None)


def _card(place: Path) -> PciCard | None:
    if _read(place / "vendor") != _NVIDIA or not _read(place / "class").startswith(_DISPLAY_CLASSES):
        return None
    return PciCard(address=place.name, driver=_driver(place), power=_read(place / "power" / "runtime_status"))


def _driver(place: Path) -> str:
    try:
        return (place / "driver").readlink().name
    except OSError:
        return ""


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""

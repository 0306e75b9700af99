"""Colours: one table for light and one for dark, by what a colour is for. Contrast is held to WCAG 2.2 AA by tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Palette:
    """One theme's colours as #RRGGBB. `control` is the border of what can be operated, `line` that of what cannot."""

    window: str
    surface: str
    line: str
    control: str
    text: str
    muted: str
    accent: str
    on_accent: str
    selected: str
    good: str
    warn: str
    bad: str
    weights: str
    kv: str
    overhead: str
    hidden: str
    new_line: str
    gone_line: str


LIGHT = Palette(
    window="#F6F7F9",
    surface="#FFFFFF",
    line="#D9DDE3",
    control="#7C8594",
    text="#1A1D23",
    muted="#596170",
    accent="#1F5FD0",
    on_accent="#FFFFFF",
    selected="#EEF3FC",
    good="#1B7A43",
    warn="#8A5A00",
    bad="#B3261E",
    weights="#1F5FD0",
    kv="#5B8DEF",
    overhead="#9DB8EA",
    hidden="#7F8796",
    new_line="#E4F3E8",
    gone_line="#FBEAE8",
)

DARK = Palette(
    window="#16181D",
    surface="#1E2128",
    line="#343944",
    control="#7A8494",
    text="#ECEEF2",
    muted="#A6AEBB",
    accent="#7FB0FF",
    on_accent="#0D1526",
    selected="#242C3B",
    good="#6FD39B",
    warn="#F0BE5C",
    bad="#FF8F87",
    weights="#7FB0FF",
    kv="#5D86C9",
    overhead="#43608F",
    hidden="#6C7482",
    new_line="#1C3326",
    gone_line="#41262A",
)


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio")."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

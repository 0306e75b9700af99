"""How large a person has all text made by the system, as a factor of its usual size."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from PySide6.QtGui import QFontDatabase, QGuiApplication

SMALLEST, LARGEST = 1.0, 2.0
"""Below the first our smallest text would be unreadable; up to the second every page is tested (WCAG 2.2, 1.4.4)."""

USUAL_POINTS = {"GNOME": 11.0, "KDE": 10.0}
"""The sizes of the font that these desktops bring; Windows and Qt itself have 9 points."""

LONGEST_ANSWER_SECONDS = 1.0


def of_the_system() -> float:
    """Return the factor, from 1 to 2. To be asked before the application gets a font of ours.

    Windows' "Text size" and a larger font of the desktop come with the system's font. GNOME has a factor beside it,
    which reaches programs under X11 with the size of the screen's dots, and under Wayland not at all.
    """
    points = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).pointSizeF()
    desktop = "" if sys.platform == "win32" else os.environ.get("XDG_CURRENT_DESKTOP", "")
    on_wayland = QGuiApplication.platformName().startswith("wayland")
    return factor(points, desktop, _gnomes_factor() if on_wayland and "GNOME" in desktop else "1")


def factor(points: float, desktop: str, gnomes: str) -> float:
    """Work it out from the system font's size in points, XDG_CURRENT_DESKTOP, and GNOME's own factor as it says it."""
    usual = next((size for name, size in USUAL_POINTS.items() if name in desktop.split(":")), 9.0)
    try:
        beside = float(gnomes)
    except ValueError:
        beside = 1.0
    return min(LARGEST, max(SMALLEST, points / usual * beside))


def _gnomes_factor() -> str:
    asked = ("gsettings", "get", "org.gnome.desktop.interface", "text-scaling-factor")
    if shutil.which(asked[0]) is None:
        return ""
    try:
        run = subprocess.run(asked, capture_output=True, text=True, timeout=LONGEST_ANSWER_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip()

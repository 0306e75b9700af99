"""Resources: the data that travels with the program, found in a checkout, a wheel and a frozen tree alike."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

Folder = Literal["assets", "compose", "i18n", "machines"]

PACKAGE = Path(__file__).resolve().parent


PROOF_CLIP = ("video", "red-square.mp4")
"""The clip among the assets that proves a server sees videos."""


class ResourceMissing(FileNotFoundError):
    """A folder or file of the program itself is not there: the installation is damaged, or was built without it."""

    def __init__(self, name: str, places: Iterable[Path]) -> None:
        looked = ", ".join(str(place) for place in places)
        super().__init__(f"Slipway's own {name} is missing. Looked in: {looked}")
        self.name = name


def folder(name: Folder) -> Path:
    """Return one of the data folders. Raises ResourceMissing."""
    places = _places(name)
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        raise ResourceMissing(name, places)
    return found


def _places(name: Folder) -> tuple[Path, ...]:
    """List where a folder can be: PyInstaller's tree, then the wheel's, then the checkout's."""
    frozen = getattr(sys, "_MEIPASS", None)
    unpacked = (Path(frozen) / name,) if frozen else ()
    in_checkout = PACKAGE.parent / ("tests/machines" if name == "machines" else name)
    return (*unpacked, PACKAGE / "_data" / name, in_checkout)


def file(name: Folder, *parts: str) -> Path:
    """Return a file below one of the data folders. Raises ResourceMissing."""
    path = folder(name).joinpath(*parts)
    if not path.is_file():
        raise ResourceMissing(f"{name}/{'/'.join(parts)}", (path,))
    return path


def recorded_machines() -> dict[str, Path]:
    """Return the recorded machines that a dry run can be made over, by name. Raises ResourceMissing."""
    return {path.stem: path for path in sorted(folder("machines").glob("*.json"))}


def registry_texts() -> dict[str, str]:
    """Return the registry's YAML files, by their path inside the registry. Raises ResourceMissing.

    The registry lies inside the package, so that it is in the same place everywhere.
    """
    root = PACKAGE / "registry"
    texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in sorted(root.rglob("*.yaml"))}
    if not texts:
        raise ResourceMissing("registry", (root,))
    return texts

"""Folders for examples: one for the process, emptied before each use and removed at its end."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def _root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="slw-fuzz-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


def fresh(name: str) -> Path:
    """Return an empty folder of this name."""
    folder = _root() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder

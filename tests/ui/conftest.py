"""The window's tests need no screen."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import sys
from collections.abc import Iterator

import pytest

from installer.ui import theme


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Take back what a window changes for the whole process."""
    hook = sys.excepthook
    yield
    sys.excepthook = hook
    theme.set_text_scale(1.0)

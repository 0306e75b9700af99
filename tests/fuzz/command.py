"""The command line in this process: a process for each example would take a second."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock

from installer.cli.main import run
from tests.fuzz.kit import SECRETS, limited

EXIT_CODES = {0, 2, 10, 20, 30, 40, 50, 60, 130}
"""1 is a fault of ours."""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def slipway(arguments: Sequence[str], environment: Mapping[str, str] | None = None, given: bytes = b"") -> Ended:
    """Run one command; whatever was wrong with what it was given has an exit code and words, and no traceback."""
    out, err = io.BytesIO(), io.BytesIO()
    spoken, complained = (io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in (out, err))
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    around = {**inherited, "LANG": "C.UTF-8", "SLIPWAY_DEBUG": "1", **(environment or {})}
    with (
        limited(),
        mock.patch.dict(os.environ, around, clear=True),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given))),
        redirect_stdout(spoken),
        redirect_stderr(complained),
    ):
        code = run(list(arguments))
    ended = Ended(code, out.getvalue().decode(), err.getvalue().decode())
    assert ended.code in EXIT_CODES, ended
    assert ended.code == 0 or (ended.out + ended.err).strip()
    assert "Traceback" not in ended.err
    assert "\x1b" not in ended.out + ended.err, "a terminal is told what to do"
    for secret in SECRETS:
        assert secret not in ended.out + ended.err, "a secret is repeated"
    if "--json" in arguments:
        is_json(ended.out)
    return ended


def is_json(out: str) -> None:
    """One document, or one in each line."""
    try:
        [json.loads(line) for line in out.splitlines() if line.strip()]
    except ValueError:
        json.loads(out)

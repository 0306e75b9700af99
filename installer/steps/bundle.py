"""The bundle: what somebody needs who looks into a failure, in one archive that can be handed on.

Slipway sends nothing anywhere. What goes in is text without secrets, without the person's own folder and without the
cards' serial numbers.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

from installer import __version__
from installer.domain import decoding
from installer.domain.facts import Facts, to_json
from installer.domain.redaction import redacted
from installer.steps.home import FAILED_START_LOG, Home, StackHome, read_bytes, write_atomically

KEPT = (
    "events.jsonl",
    "events.previous.jsonl",
    "plan.json",
    "docker-compose.vllm.yml",
    "smoke.json",
    "figures.json",
    FAILED_START_LOG,
)
"""Files of a stack that tell what was decided, done and said; the one with the key is not among them."""

STACKS = ("chat", "image")
_SERIAL_NUMBER = re.compile(r"\b(GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)


def files(home: Home, facts: Facts, made_at: str, server_log: bytes = b"") -> dict[str, str]:
    """Return what goes into the bundle, by its name inside it."""
    found = {"machine.json": json.dumps(to_json(facts), indent=2, ensure_ascii=False)}
    found |= {name: text for stack in STACKS for name, text in _of_stack(home.stack(stack)).items()}
    if server_log:
        found["server.log"] = decoding.plain(server_log)
    shared = {name: anonymous(text) for name, text in found.items()}
    about = {"slipway": __version__, "made_at": made_at, "holds": sorted(shared)}
    return {"about.json": json.dumps(about, indent=2), **shared}


def _of_stack(stack: StackHome) -> dict[str, str]:
    there = {name: read_bytes(stack.path(name)) for name in KEPT}
    return {f"{stack.name}/{name}": decoding.plain(data) for name, data in there.items() if data is not None}


def anonymous(text: str) -> str:
    """Return a text without secrets, the person's own folder and the cards' serial numbers."""
    own = str(Path.home())
    for written in (own, json.dumps(own)[1:-1]):
        text = text.replace(written, "~") if len(written) > 1 else text
    return _SERIAL_NUMBER.sub(r"\1-…", "\n".join(redacted(line) for line in text.split("\n")))


def save(path: str, texts: dict[str, str]) -> Path:
    """Write the archive (ZIP) where the person wants it; return it. Raises InstallerError(NotWritable, DiskFull)."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    file = Path(path).expanduser().absolute()
    write_atomically(file, packed.getvalue())
    return file

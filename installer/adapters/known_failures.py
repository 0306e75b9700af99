"""The table of known failures that comes with Slipway, for adapters: they are made before a registry is chosen."""

from __future__ import annotations

from functools import cache

import msgspec

from installer import resources
from installer.domain import fingerprints, strict_yaml
from installer.domain.fingerprints import Fingerprint, Table

FILE = "fingerprints.yaml"


@cache
def table() -> Table:
    """Return the table, read when the first failure asks for it."""
    document = strict_yaml.mapping(FILE, resources.registry_texts()[FILE])
    rows = msgspec.convert(document["fingerprints"], type=dict[str, Fingerprint])
    return fingerprints.Table(rows)

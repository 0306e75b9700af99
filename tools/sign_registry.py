#!/usr/bin/env python3
"""Sign a registry for `slipway registry fetch`.

Usage: `python tools/sign_registry.py --key PRIVATE.pem --expires 2027-03-01 --out registry.json [--recall REVISION]`.
A key is made with `openssl genpkey -algorithm ed25519`, its public half with `openssl pkey -pubout`. Neither belongs
into this repository.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime, time
from pathlib import Path

from installer.adapters.signed_registry import pack
from installer.domain.registry import parse
from installer.doors import registry_texts
from installer.steps.kept_registry import Payload
from installer.steps.registry_tools import check


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Sign a registry.")
    parser.add_argument("--key", required=True, metavar="FILE", help="private key, Ed25519 in PEM without a password")
    parser.add_argument("--expires", required=True, metavar="DATE", help="the day from which it is not used any more")
    parser.add_argument(
        "--recall", action="append", default=[], metavar="REVISION", help="nobody should use it any more"
    )
    parser.add_argument("--registry", metavar="FOLDER", help="another registry than the built-in one")
    parser.add_argument("--out", required=True, metavar="FILE")
    given = parser.parse_args(argv)
    texts = registry_texts(given.registry)
    registry = parse(texts)
    wrong = check(registry)
    if wrong:
        print(f"not signed, `slipway registry check` finds {len(wrong)} problems", file=sys.stderr)
        return 1
    payload = Payload(
        revision=registry.revision,
        issued=datetime.now(UTC).isoformat(timespec="seconds"),
        expires=datetime.combine(datetime.fromisoformat(given.expires), time(), UTC).isoformat(),
        recalled=tuple(given.recall),
        files=texts,
    )
    Path(given.out).write_bytes(pack(payload, Path(given.key).read_bytes()))
    print(f"{given.out}: {registry.revision}, until {payload.expires}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

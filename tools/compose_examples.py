"""Write the golden compose files under compose/examples, one per machine and profile, from made-up digests.

`--check` writes nothing and fails where a file differs: a change of the renderer is then seen as a diff in review.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from installer.domain import compose
from installer.domain.choices import Choices
from tests.builders import ROOT, planned

FOLDER = ROOT / "compose" / "examples"
EXAMPLES = {
    "rtx-5090-linux.yml": ("rtx-5090-linux", "qwen3.6-27b-nvfp4-64k", Choices()),
    "rtx-5090-wsl2-spike.yml": ("rtx-5090-wsl2", "qwen3.6-27b-nvfp4-spike", Choices()),
    "rtx-4090-rolling-tag.yml": ("rtx-4090", "qwen3.8-27b-int4-24gb", Choices(docker_image_pin_digest="")),
    "no-nvidia-card.yml": ("no-nvidia-card", "cpu-trial", Choices()),
}


def rendered(name: str) -> str:
    """Return one golden file as the renderer writes it today."""
    machine, profile, choices = EXAMPLES[name]
    return compose.render(planned(machine, profile, choices)).text


def main() -> int:
    """Write or check the golden files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = [name for name in EXAMPLES if not _same(name)]
    for name in stale:
        print(f"{'stale' if check else 'wrote'}: compose/examples/{name}")
        if not check:
            (FOLDER / name).write_text(rendered(name), encoding="utf-8", newline="\n")
    return 1 if check and stale else 0


def _same(name: str) -> bool:
    file = FOLDER / name
    return file.is_file() and file.read_bytes() == rendered(name).encode()


if __name__ == "__main__":
    sys.exit(main())

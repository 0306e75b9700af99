"""The proof on a real NVIDIA card: `transformers serve` with a model of random numbers, and `slipway smoke` at it.

`python -m tests.proof.gpu FILE` writes what was seen as JSON. It needs no network. All that is missing is said at once,
before anything starts: the driver, torch that sees the card, packages (a wheel of each will do). A model that learnt
nothing has no right answer, so what counts is that the right checks fail, on a card that is really in use.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PACKAGES = {
    "what serves": (
        "torch",
        "transformers",
        "fastapi",
        "uvicorn",
        "openai",
        "pydantic",
        "accelerate",
        "rich",
        "requests",
    ),
    "Slipway": ("msgspec", "docker", "filelock", "nvidia-ml-py", "packaging", "platformdirs", "pyyaml", "requests"),
    "the rig": ("filelock", "requests"),
}
EXPECTED_TO_FAIL = {"completion"}
"""Of a model that learnt nothing; what needs an answer in words is then not asked."""


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("file", type=Path, help="where to write what was seen")
    given.add_argument("--taught", action="store_true", help="teach the model first: then every check must pass")
    wanted = given.parse_args()
    lacking = missing()
    if lacking:
        print("Missing here, so nothing was started:", *lacking, sep="\n- ")
        return 1
    seen = proved_here(taught=wanted.taught)
    wanted.file.write_text(json.dumps(seen, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(seen, indent=2, ensure_ascii=False))
    failed = {check["name"] for check in seen["checks"] if check["outcome"] == "failed"}
    return 0 if failed == (set() if wanted.taught else EXPECTED_TO_FAIL) and seen["used_by_server_mib"] else 1


def missing() -> list[str]:
    """Every thing that this computer lacks, in words; empty if the proof can run."""
    lacking = [] if shutil.which("nvidia-smi") else ["nvidia-smi, which comes with NVIDIA's driver"]
    for purpose, names in PACKAGES.items():
        lacking += [f"the package {name}, for {purpose}" for name in names if not installed(name)]
    if installed("torch"):
        lacking += card_missing_for_torch()
    return list(dict.fromkeys(lacking))


def installed(package: str) -> str | None:
    """The version of a package, None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def card_missing_for_torch() -> list[str]:
    """Ask torch in a process of its own, which may crash, and which leaves no memory of the card in use."""
    script = "import torch; assert torch.cuda.is_available(), f'{torch.__version__} sees no card'"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"a torch that sees the card: {done.stderr.strip().splitlines()[-1]}"]


def proved_here(*, taught: bool) -> dict[str, Any]:
    """Serve the model on the card and prove it; return what was seen, with the versions that it was seen with."""
    from tests.proof import serving  # what it imports may be missing, which `missing` says first

    python = Path(sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        model = serving.tiny_model(python, Path(folder) / "model", taught=taught)
        before = used_mib()
        with serving.transformers_serve(python, model, Path(folder) / "home", device="cuda:0") as served:
            proof = serving.proof_of(served.base)
            by_server = used_by(serving.owner_of(served.port))
            during = used_mib()
    return {
        "card": asked_card("name,driver_version,memory.total,compute_cap"),
        "versions": {name: installed(name) for name in ("torch", "transformers", "accelerate")},
        "python": platform.python_version(),
        "taught": taught,
        "used_before_mib": before,
        "used_during_mib": during,
        "used_by_server_mib": by_server or during - before,
        "exit_code": proof.code,
        "checks": list(proof.checks.values()),
    }


def asked_card(fields: str) -> str:
    """What the driver says of the first card."""
    command = ["nvidia-smi", "--id=0", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def used_mib() -> int:
    """The memory in use on the first card."""
    return int(asked_card("memory.used"))


def used_by(process: int) -> int:
    """The card's memory that the driver counts for this process; 0 in a container, where it knows other numbers."""
    command = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sum(int(used) for pid, used in (row.split(", ") for row in rows) if pid == str(process) and used.isdigit())


if __name__ == "__main__":
    sys.exit(main())

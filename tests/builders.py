"""The shipped registry, the recorded machines and made-up sources, for any test that needs a plan."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from installer.domain import facts as fact_files
from installer.domain import registry as registries
from installer.domain.choices import Choices
from installer.domain.facts import Facts
from installer.domain.plan import Plan, Refusal, decide
from installer.domain.registry import Registry
from installer.domain.sources import ImageSource, Layer, Sources, WeightFile, WeightsSource

ROOT = Path(__file__).parent.parent
MACHINES = sorted(path.stem for path in (ROOT / "tests" / "machines").glob("*.json"))
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@cache
def shipped_registry() -> Registry:
    folder = ROOT / "installer" / "registry"
    return registries.parse({str(path): path.read_text("utf-8") for path in sorted(folder.rglob("*.yaml"))})


@cache
def recorded(name: str) -> Facts:
    path = ROOT / "tests" / "machines" / f"{name}.json"
    return fact_files.from_json(path.read_bytes(), str(path))


def digest_of(name: str) -> str:
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()


def image(repository: str = "vllm/vllm-openai", tag: str = "v0.33.0", **changes: object) -> ImageSource:
    values: dict[str, object] = {
        "repository": repository,
        "tag": tag,
        "index_digest": digest_of(f"{repository}:{tag}"),
        "platform_digest": digest_of(f"{repository}:{tag}/amd64"),
        "platform": "linux/amd64",
        "layers": (
            Layer(digest=digest_of("a"), size_bytes=6_000_000),
            Layer(digest=digest_of("b"), size_bytes=4_000_000),
        ),
        "entrypoint": ("vllm", "serve"),
        "requires_cuda": "cuda>=13.0",
    }
    return ImageSource(**(values | changes))  # type: ignore[arg-type]


def sources(profile: str, registry: Registry | None = None, **changes: object) -> Sources:
    registry = registry or shipped_registry()
    release = registry.image_of(registry.profile(profile))
    model = registry.model_of(registry.profile(profile))
    files = (
        WeightFile(path="config.json", size_bytes=700, git_blob_id="0" * 40),
        WeightFile(path="model-00001-of-00001.safetensors", size_bytes=5_000_000, sha256="1" * 64),
    )
    values: dict[str, object] = {
        "profile": profile,
        "image": image(release.repo, release.tag),
        "helper": image("python", "3-slim", entrypoint=(), requires_cuda=""),
        "weights": WeightsSource(repo=model.repo, commit=COMMIT, files=files),
        "resolved_at": "2026-12-01T00:00:00Z",
    }
    return Sources(**(values | changes))  # type: ignore[arg-type]


def decided(machine: str, profile: str, choices: Choices | None = None, **changes: object) -> Plan | Refusal:
    choices = choices or Choices(folder="/home/user/models")
    known = sources(profile, None, **changes)
    return decide(recorded(machine), shipped_registry(), known, choices, slipway="0.1.0")


def planned(
    machine: str = "rtx-5090-linux", profile: str = "qwen3.6-27b-nvfp4-64k", choices: Choices | None = None
) -> Plan:
    plan = decided(machine, profile, choices)
    assert isinstance(plan, Plan), plan
    return plan

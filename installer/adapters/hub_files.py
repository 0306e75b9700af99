"""Which files of a repository on the hub a server needs, decided by their names alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

# Weights in other formats, and exports of the same weights for other programs.
_OTHER_FOLDERS = frozenset(("original", "metal", "onnx", "openvino", "coreml", "gguf", "mlx"))
_WEIGHTS = ".safetensors"
# Configuration, vocabulary, chat template; `.py` is code that only runs where a profile allows it.
_BESIDES = (".json", ".model", ".txt", ".jinja", ".tiktoken", ".py")
_NEVER = (".bin", ".pt", ".pth", ".ckpt", ".gguf", ".onnx", ".h5", ".msgpack", ".md", ".png", ".jpg")
_PIPELINE = "model_index.json"


def needed(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files to fetch, sorted.

    Weights are fetched once: Mistral's own `consolidated*` only where it is the only copy, and beside a Diffusers
    pipeline not the single-file copies at the top.
    """
    kept = [path for path in sorted(paths) if _serves(PurePosixPath(path))]
    weights = [path for path in kept if path.endswith(_WEIGHTS)]
    doubled = {path for path in weights if _is_consolidated(path)}
    if doubled == set(weights):
        doubled = set()
    if _PIPELINE in kept:
        doubled |= {path for path in weights if "/" not in path}
    return tuple(path for path in kept if path not in doubled and not _indexes_doubled(path, doubled))


def _serves(path: PurePosixPath) -> bool:
    hidden = any(part.startswith(".") for part in path.parts)
    other = any(part.casefold() in _OTHER_FOLDERS for part in path.parts[:-1])
    suffix = path.suffix.casefold()
    if hidden or other or suffix in _NEVER:
        return False
    return suffix == _WEIGHTS or suffix in _BESIDES or path.name.startswith("tokenizer")


def _is_consolidated(path: str) -> bool:
    return PurePosixPath(path).name.startswith("consolidated")


def _indexes_doubled(path: str, doubled: set[str]) -> bool:
    """Say whether this is the index of weights that are left out."""
    return bool(doubled) and _is_consolidated(path) and path.endswith(".index.json")

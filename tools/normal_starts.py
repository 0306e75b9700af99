"""Compose the log of a normal start from the format strings of a vLLM release: `tools/normal_starts.py RELEASE FOLDER`.

FOLDER holds that release's `vllm` package (its wheel or sdist, unpacked). What is written to `tests/field/starts` is
what a server says that comes up well, with its warnings: the table of known failures must find no fault in it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

STARTS = Path(__file__).parents[1] / "tests/field/starts"
TIME = "12-01 09:00:00"

SAID = (
    "vLLM API server version",
    "version %s",
    "non-default args",
    "Using 'pin_memory=False' as WSL is detected. This may slow",
    "Failed to import from vllm._C",
    "Resolved architecture",
    "Using max model len",
    "Chunked prefill is enabled",
    "Asynchronous scheduling is enabled",
    "Using fp8 data type to store kv cache",
    "Setting attention block size to %d tokens to ensure that attention page size is >=",
    "Padding mamba page size by",
    "Mamba cache mode is set to",
    "Enforce eager set",
    "Cudagraph is disabled under eager mode",
    "Initializing a V1 LLM engine",
    "Available KV cache memory",
    "Starting to load model",
    "Using %s attention backend",
    "Using %s backend",
    "Using %s for",
    "Your GPU does not have native support for FP4 computation",
    "Your GPU does not have native support for FP8 computation",
    "Using default MoE config. Performance might be sub-optimal! Config file not found at",
    "Using default W8A8 Block FP8 kernel config",
    "Loading weights took",
    "Model loading took",
    "Encoder cache will be initialized with a budget",
    "%sDynamo bytecode transform time",
    "Dynamo bytecode transform time",
    "torch.compile takes",
    "torch.compile took",
    "Using FlashInfer for top-p",
    "FlashInfer top-p/top-k sampling unavailable",
    "FlashInfer is available, but",
    "GPU KV cache size",
    "%s KV cache size",
    "Maximum concurrency for",
    "Add %d padding layers",
    "Graph capturing finished",
    "init engine (profile, create kv cache, warmup model) took %.2f s",
    "Default vLLM sampling parameters have been overridden",
    "Default sampling parameters have been overridden",
    "Supported tasks",
    "Supported_tasks",
    "Detected the chat template content format",
    "Starting vLLM server on",
    "Starting vLLM API server",
    "Available routes are",
    "Route: %s, Methods",
    "Shutting down",
)
"""How the lines begin that a start says, in their order; what a release does not say is left out."""

VALUES = (
    (r"vLLM API server version|version %s", ("0.0.0",)),
    (r"args", ("{'model': 'nvidia/Qwen3.6-27B-NVFP4', 'max_model_len': 65536, 'gpu_memory_utilization': 0.85}",)),
    (r"Failed to import", ("ModuleNotFoundError(\"No module named 'vllm._C'\")",)),
    (r"Config file not found|config", ("/usr/local/lib/python3.12/dist-packages/vllm/configs/E=128,N=768.json",)),
    (r"unavailable", ("compute capability 12.0 has no kernel",)),
    (r"Route", ("/v1/chat/completions", "POST")),
    (r"KV cache size: %s tokens, Max", ("GPU", "135,926", "65,536", 2.07)),
    (r"Maximum concurrency", ("65,536", 2.07)),
    (r"memory|tokens", ("5.39", "135,926")),
)
"""What is put into a line, by words in it; whatever else it asks for is a count, a figure or a name."""


class Said(NamedTuple):
    """One message in the source: its level, file, line and format."""

    level: str
    file: str
    line: int
    form: str


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print(__doc__)
        return 2
    release, folder = argv
    known = list(said_in(Path(folder)))
    lines = [line_of(message) for start in SAID for message in first(known, start)]
    STARTS.mkdir(parents=True, exist_ok=True)
    path = STARTS / f"vllm-{release}.log"
    path.write_text("\n".join([f"# vLLM {release}: composed from its own format strings", *lines]) + "\n", "utf-8")
    print(f"wrote {len(lines)} lines of vLLM {release}")
    return 0


def said_in(folder: Path) -> Iterator[Said]:
    """Yield every message of the package that is written as one string."""
    for path in sorted((folder / "vllm").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            form = node.args[0]
            if ast.unparse(node.func.value) == "logger" and isinstance(form, ast.Constant):
                yield Said(node.func.attr.partition("_")[0].upper(), path.name, node.lineno, str(form.value))


def first(known: list[Said], start: str) -> list[Said]:
    """Return the first message that begins so, from what a server's start passes through."""
    return [message for message in known if message.form.startswith(start) and message.level in ("INFO", "WARNING")][:1]


def line_of(message: Said) -> str:
    """Return a message as vLLM's log writes it."""
    return f"{message.level} {TIME} [{message.file}:{message.line}] {filled(message.form)}"


def filled(form: str) -> str:
    values = list(next((given for words, given in VALUES if re.search(words, form)), ()))

    def value(place: re.Match[str]) -> str:
        if place[0] == "%%":
            return "%"
        given = values.pop(0) if values else None
        if place[0].endswith(("d", "f")):
            return place[0] % (given if isinstance(given, int | float) else 12)
        return str(given or "FLASH_ATTN")

    return re.sub(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?[sdrfx])", value, form)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

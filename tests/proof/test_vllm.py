"""The proof against vLLM itself, of the build for the processor, and what vLLM says where it refuses."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import requests

from tests.proof.serving import (
    VLLM,
    Proof,
    Served,
    command_of,
    environment,
    libraries_of,
    owner_of,
    proof_of,
    started,
    taught_model,
    tiny_model,
)
from tests.rig.process import free_port

PYTHON = environment(".venv-vllm")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="no .venv-vllm: `make proof` builds it")

KEY = "a-key-of-the-proof"
CONTEXT = 2048
NAME = "tiny"
MORE = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")


def vllm(model: Path, log: Path, *more: str) -> AbstractContextManager[Served]:
    port = free_port()
    command = [
        str(PYTHON), "-m", VLLM, "--model", str(model), "--served-model-name", NAME, "--host", "127.0.0.1",
        "--port", str(port), "--max-model-len", str(CONTEXT), "--max-num-seqs", "2", "--enforce-eager", *more,
    ]  # fmt: skip
    return started(command, port, log, {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_API_KEY": KEY, "HF_HUB_OFFLINE": "1"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("vllm")
    (made / "key").write_text(KEY)
    return made


@pytest.fixture(scope="module")
def taught(folder: Path) -> Iterator[Served]:
    assert PYTHON is not None
    with vllm(taught_model(PYTHON), folder / "taught.log", *MORE) as served:
        yield served


@pytest.fixture(scope="module")
def proved(taught: Served, folder: Path) -> Proof:
    return proof_of(taught.base, "--key-file", str(folder / "key"))


def test_it_is_vllm_that_answers(taught: Served) -> None:
    assert PYTHON is not None
    owner = owner_of(taught.port)
    assert owner == taught.process
    assert command_of(owner)[:3] == [str(PYTHON), "-m", VLLM]
    assert any(str(PYTHON.parents[1].resolve()) in library and "torch" in library for library in libraries_of(owner))
    told = requests.get(f"{taught.base}/version", timeout=10).json()["version"]
    program = "import importlib.metadata; print(importlib.metadata.version('vllm-cpu'))"
    asked = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, check=True)
    assert asked.stdout.split("+")[0].strip() == told.split("+")[0]


def test_the_whole_proof_passes_on_a_model_that_was_taught(proved: Proof) -> None:
    assert proved.failed == {}
    assert proved.code == 0
    assert proved.checks["models"]["figure"] == f"{NAME}, {CONTEXT}"
    applies = ("completion", "stream", "umlauts", "tools", "long_prompt", "over_limit", "alive")
    assert {name: proved.checks[name]["outcome"] for name in applies} == dict.fromkeys(applies, "passed")


@pytest.mark.parametrize("key", [None, "another-key"])
def test_without_its_key_it_refuses_and_the_proof_says_where(taught: Served, tmp_path: Path, key: str | None) -> None:
    (tmp_path / "key").write_text(key or "")
    refused = proof_of(taught.base, *(("--key-file", str(tmp_path / "key")) if key else ()))
    assert refused.code != 0
    assert refused.checks["health"]["outcome"] == "passed"
    assert "401" in refused.failed["models"]


def test_over_its_context_it_refuses_with_400_and_names_the_limit(taught: Served) -> None:
    answer = asked(taught, "word " * 2 * CONTEXT)
    assert answer.status_code == 400
    assert str(CONTEXT) in answer.text


def test_what_a_picture_s_processor_is_told_needs_the_flag(taught: Served) -> None:
    answer = asked(taught, "Hello", mm_processor_kwargs={"fps": 1})
    assert answer.status_code == 400
    assert "--trust-request-mm-kwargs" in answer.text


def test_the_twin_that_learnt_nothing_fails_the_expected_word_alone(folder: Path) -> None:
    assert PYTHON is not None
    model = tiny_model(PYTHON, folder / "untaught", taught=False)
    with vllm(model, folder / "untaught.log", "--trust-request-mm-kwargs") as served:
        assert asked(served, "Hello", mm_processor_kwargs={"fps": 1}).status_code == 200
        proof = proof_of(served.base, "--key-file", str(folder / "key"))
    assert set(proof.failed) == {"completion"}


def asked(served: Served, question: str, **more: object) -> requests.Response:
    body = {"model": NAME, "messages": [{"role": "user", "content": question}], "max_tokens": 8} | more
    headers = {"Authorization": f"Bearer {KEY}"}
    return requests.post(f"{served.base}/v1/chat/completions", json=body, headers=headers, timeout=120)

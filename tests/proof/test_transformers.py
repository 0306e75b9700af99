"""The proof against `transformers serve`: it shares no code with vLLM, asks for no key and tells no context."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
import requests

from tests.proof.serving import (
    MODEL,
    TRANSFORMERS,
    Proof,
    Served,
    command_of,
    environment,
    libraries_of,
    owner_of,
    proof_of,
    taught_model,
    transformers_serve,
)

PYTHON = environment(".venv-transformers")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="no .venv-transformers: `make proof` builds it")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    assert PYTHON is not None
    folder = tmp_path_factory.mktemp("transformers")
    with transformers_serve(PYTHON, taught_model(PYTHON), folder / "home") as served:
        yield served


@pytest.fixture(scope="module")
def proved(server: Served) -> Proof:
    return proof_of(server.base)


def test_it_is_transformers_that_answers(server: Served) -> None:
    assert PYTHON is not None
    owner = owner_of(server.port)
    assert owner == server.process
    assert command_of(owner)[:4] == [str(PYTHON), "-m", TRANSFORMERS, "serve"]
    assert any(str(PYTHON.parents[1].resolve()) in library and "torch" in library for library in libraries_of(owner))
    paths = requests.get(f"{server.base}/openapi.json", timeout=10).json()["paths"]
    assert "/load_model" in paths
    assert "/version" not in paths
    assert subprocess.run([PYTHON, "-c", "import vllm"], capture_output=True, check=False).returncode == 1


def test_a_server_without_key_and_context_passes_what_applies_to_it(proved: Proof) -> None:
    assert proved.failed == {}
    assert proved.code == 0
    assert proved.checks["models"]["figure"] == MODEL
    for name in ("long_prompt", "over_limit"):
        check = proved.checks[name]
        assert (check["outcome"], check["detail"]) == ("not_applicable", "context_unknown")

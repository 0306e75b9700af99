"""Secrets as they stand in logs, messages, environments and documents: a reader could tell that they are some."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.kit import KEY, TOKEN

LINES = (
    *(f"HF_TOKEN={TOKEN}", f"export HUGGING_FACE_HUB_TOKEN='{TOKEN}'", f"ERROR: the token {TOKEN} is not valid"),
    *(f"VLLM_API_KEY='{KEY}'", f'$env:VLLM_API_KEY = "{KEY}"', f"set SLIPWAY_API_KEY={KEY}", f"error: api key: {KEY}"),
    *(
        f"< Authorization: Bearer {KEY}",
        f"error: 401 {{'Authorization': 'Bearer {KEY}'}}",
        f"Proxy-Authorization: Basic {KEY}",
    ),
    *(f"vllm serve m --api-key {KEY} failed", f"error: ['serve', '--api-key', '{KEY}']", f"error --api-key={KEY}"),
    f"INFO [utils.py:325] error in non-default args: {{'api_key': ['{KEY}'], 'model': '/models/m'}}",
    f"Namespace(host=None, api_key=['{KEY}'], error=1)",
    f"Namespace(host=None, api_key='{KEY}', error=1)",
    f'error: {{"api_key": "{KEY}", "hf_token": "{TOKEN}"}}',
    f'error: {{"api_key": ["{KEY}"]}}',
    f"proxyconnect tcp: dial tcp: lookup http://me:{KEY}@proxy.example:3128: no such host, failed",
    f"failed to fetch https://x.s3.example/blob?X-Amz-Signature={KEY}&X-Amz-Date=1",
    f'Error response from daemon: Get "https://me:{KEY}@registry.example/v2/": denied',
    f"docker login failed: password={KEY}",
    f"  api_key: {KEY}",
    f"client_secret = {KEY} # error",
    f"error:\n    - --api-key\n    - {KEY}\n",
    f'fatal: password: "{KEY}" denied',
    f"X-Api-Key: {KEY} invalid",
)
VALUES: tuple[Any, ...] = (
    *(f"HF_TOKEN={TOKEN}", f"VLLM_API_KEY={KEY}", f"Bearer {KEY}", TOKEN, f"http://me:{KEY}@proxy.example:3128"),
    *([f"HF_TOKEN={TOKEN}", "A=b"], ["--api-key", KEY], [f"--api-key={KEY}"], [f"--api-key {KEY}"]),
    *({"HF_TOKEN": TOKEN}, {"VLLM_API_KEY": KEY}, {"Authorization": f"Bearer {KEY}"}),
)


@st.composite
def into(draw: st.DrawFn, documents: st.SearchStrategy[Any]) -> Any:
    """A document with a secret in one of its mappings or lists."""
    document = copy.deepcopy(draw(documents))
    inner = list(holders(document))
    place = draw(st.sampled_from(inner)) if inner else None
    if isinstance(place, dict):
        place[draw(st.sampled_from(("Env", "Cmd", "Args", "Error", "error", "message", "command")))] = draw(values())
    elif isinstance(place, list):
        place.insert(0, draw(values()))
    return document


def holders(document: Any) -> Iterator[Any]:
    """Every mapping and list of a document."""
    if isinstance(document, dict | list):
        yield document
        for inner in document.values() if isinstance(document, dict) else document:
            yield from holders(inner)


def values() -> st.SearchStrategy[Any]:
    """A value of a document with a secret in it."""
    return st.sampled_from(VALUES)


def lines() -> st.SearchStrategy[str]:
    """A line of a log or of a file with a secret in it."""
    return st.sampled_from(LINES)

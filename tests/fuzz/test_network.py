"""What comes over the line: image registry, hub, the served model, a signed registry."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import strategies as st

from installer import resources
from installer.adapters import signed_registry
from installer.adapters.clock import SystemClock
from installer.adapters.download import Patience
from installer.adapters.hub import HuggingFaceHub
from installer.adapters.oci import OciRegistry
from installer.adapters.server import HttpServer
from installer.domain.registry import HelperImage
from installer.domain.sources import FolderWeights, WeightsSource
from installer.steps import kept_registry, smoke
from installer.steps.cancel import Cancel
from installer.steps.kept_registry import Payload
from tests.fuzz.broken import TEXTS, as_json, broken_json, cut_up, mutated
from tests.fuzz.kit import KEY, LANGUAGES, TOKEN, shown, survives, target, told, written
from tests.fuzz.scratch import fresh
from tests.fuzz.wire import Request, Spoiled, in_turn, nobody_else, spoiled, wire

SPOILS = st.lists(spoiled(), max_size=5)
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


# --- the image registry ----------------------------------------------------------------------------------------------

CONFIG: dict[str, Any] = {
    "architecture": "amd64",
    "os": "linux",
    "created": "2026-11-02T09:00:00Z",
    "config": {
        "Entrypoint": ["vllm", "serve"],
        "Env": ["PATH=/usr/bin", "NVIDIA_REQUIRE_CUDA=cuda>=13.0 brand=x"],
        "Labels": {"org.opencontainers.image.version": "v0.33.0"},
    },
}


@st.composite
def image_documents(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """Index, manifest and configuration, each broken by itself and then named by its digest in the one before."""
    config = draw(cut_up(mutated(st.just(CONFIG), 2).map(as_json)))
    layers = [{"mediaType": "x", "digest": f"sha256:{n:064x}", "size": n * 1000} for n in (1, 2)]
    about_config = {"mediaType": "x", "digest": digest_of(config), "size": len(config)}
    whole = {"schemaVersion": 2, "mediaType": MANIFEST, "config": about_config, "layers": layers}
    manifest = draw(cut_up(mutated(st.just(whole), 2).map(as_json)))
    entries = [
        {"digest": digest_of(manifest), "size": len(manifest), "platform": {"os": "linux", "architecture": "amd64"}},
        {"digest": "sha256:0", "size": 1, "platform": {"os": "linux", "architecture": "arm64", "variant": "v8"}},
        {"digest": "sha256:1", "size": 1, "annotations": {"vnd.docker.reference.type": "attestation-manifest"}},
    ]
    index = draw(
        cut_up(mutated(st.just({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}), 2).map(as_json))
    )
    return index, manifest, config


NAMES = st.one_of(st.just("vllm/vllm-openai"), st.sampled_from(TEXTS))


@target(
    80,
    documents=image_documents(),
    spoils=SPOILS,
    pinned=st.booleans(),
    tag=st.one_of(st.just("v1"), st.sampled_from(TEXTS)),
)
def test_an_image_registry(
    documents: tuple[bytes, bytes, bytes], spoils: list[Spoiled], pinned: bool, tag: str
) -> None:
    index, manifest, config = documents
    next_spoil = in_turn(spoils)

    def script(request: Request) -> bytes:
        body = config if "/blobs/" in request.path else manifest if "sha256:" in request.path else index
        own = f"http://{wire().address}"
        return (
            next_spoil()
            .around(body if "/token" not in request.path else b'{"token":"t"}')
            .replace(b"{own}", own.encode())
        )

    wire().script = script
    registry = OciRegistry(f"{wire().address}/ns", first_wait_s=0)
    helper = HelperImage(repo="vllm/vllm-openai", tag=tag, digest=digest_of(index) if pinned else None)
    found = survives(lambda: registry.resolve(helper, "linux/amd64"))
    if found is not None:
        written(found)
        assert found.size_bytes >= 0


@target(40, repository=NAMES, mirror=st.one_of(st.none(), st.sampled_from(TEXTS)))
def test_names_of_images(repository: str, mirror: str | None) -> None:
    wire().script = lambda _: b"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n"
    helper, other = HelperImage(repo=f"127.0.0.1:1/{repository}", tag="v1"), HelperImage(repo="a/b", tag="v1")
    with nobody_else():
        survives(lambda: OciRegistry(mirror, first_wait_s=0).resolve(helper, "linux/amd64"))
        if mirror is not None:
            beside = f"{wire().address}/{mirror}"
            survives(lambda: OciRegistry(beside, first_wait_s=0).resolve(other, "linux/amd64"))


# --- the hub ---------------------------------------------------------------------------------------------------------

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONTENT = {"config.json": b"{}", "tokenizer.json": b'{"a": 1}', "model.safetensors": bytes(range(256)) * 20}
MODEL: dict[str, Any] = {
    "id": "org/model",
    "sha": COMMIT,
    "siblings": [
        {
            "rfilename": name,
            "size": len(body),
            "blobId": "0" * 40,
            **({"lfs": {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body)}} if len(body) > 100 else {}),
        }
        for name, body in CONTENT.items()
    ],
    "cardData": {"license": "other", "license_name": "my-licence"},
}
EAGER = Patience(
    tries=2, stalls=1, first_wait_s=0.001, longest_wait_s=0.001, stall_s=2, connect_s=2, longest_rate_limit_s=0.001
)


REVISIONS = st.one_of(st.just("main"), st.sampled_from(TEXTS[:-1]))


@target(100, document=broken_json((MODEL,)), spoils=SPOILS, revision=REVISIONS)
def test_a_hub_tells_of_a_model(document: bytes, spoils: list[Spoiled], revision: str) -> None:
    next_spoil = in_turn(spoils)
    wire().script = lambda _: next_spoil().around(document)
    hub = HuggingFaceHub(f"http://{wire().address}", TOKEN, patience=EAGER)
    survives(lambda: hub.licence("org/model", revision))
    found = survives(lambda: hub.resolve("org/model", revision))
    if found is not None:
        written(found)
        assert found.size_bytes >= 0


@target(40, document=broken_json((MODEL,)), spoils=SPOILS)
def test_a_hub_sends_files(document: bytes, spoils: list[Spoiled]) -> None:
    folder = fresh("weights")
    wire().script = lambda _: Spoiled().around(document)
    hub = HuggingFaceHub(f"http://{wire().address}", TOKEN, patience=EAGER, workers=2)
    weights = survives(lambda: hub.resolve("org/model", "main"))
    if weights is None:
        return
    next_spoil = in_turn(spoils)

    def script(request: Request) -> bytes:
        body = CONTENT.get(request.path.rpartition("/")[2], b"")
        start = int(request.headers.get("range", "bytes=0-")[6:-1])
        if not start:
            return next_spoil().around(body)
        return next_spoil().around(body[start:], "206 x", Content_Range=f"bytes {start}-{len(body) - 1}/{len(body)}")

    wire().script = script
    _fetched(hub, weights, folder)
    assert {path.name for path in folder.parent.iterdir()} >= {"weights"}


def _fetched(hub: HuggingFaceHub, weights: WeightsSource, folder: Path) -> None:
    place = FolderWeights(folder=str(folder / "models"))
    survives(lambda: hub.fetch(weights, place, lambda _, __: None, Cancel()))
    missing = survives(lambda: hub.missing_bytes(weights, place))
    assert missing is None or missing >= 0
    survives(lambda: hub.remove(weights, place))


@target(30, endpoint=st.one_of(st.sampled_from(TEXTS), st.sampled_from(TEXTS).map(lambda text: f"http://{text}")))
def test_addresses_of_a_hub(endpoint: str) -> None:
    hub = HuggingFaceHub(endpoint, TOKEN, patience=EAGER)
    with nobody_else():
        survives(lambda: hub.resolve("org/model", "main"))


@target(30, token=st.one_of(st.sampled_from(TEXTS), st.text(max_size=10)).map(lambda text: f"{TOKEN}{text}"))
def test_tokens(token: str) -> None:
    wire().script = lambda _: Spoiled().around(b"{}", "401 x")
    hub = HuggingFaceHub(f"http://{wire().address}", token, patience=EAGER)
    survives(lambda: hub.resolve("org/model", "main"))


# --- the served model ------------------------------------------------------------------------------------------------

MODELS: dict[str, Any] = {"object": "list", "data": [{"id": "m", "max_model_len": 4096, "root": "/models"}]}
COMPLETION: dict[str, Any] = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "alive"}, "finish_reason": "stop"}],
    "usage": {"completion_tokens": 1},
}
TARGET = smoke.Target(base="http://127.0.0.1:0", model="m", context=4096)


@target(50, models=broken_json((MODELS,)), completion=broken_json((COMPLETION,)), spoils=SPOILS, echoes=st.booleans())
def test_a_server_is_proved(models: bytes, completion: bytes, spoils: list[Spoiled], echoes: bool) -> None:
    next_spoil = in_turn(spoils)
    bodies = {"/health": b"", "/v1/models": models, "/v1/chat/completions": completion}

    def script(request: Request) -> bytes:
        if echoes and "authorization" in request.headers:
            return next_spoil().around(request.headers["authorization"].encode() + f" {KEY} {TOKEN}".encode(), "401 x")
        return next_spoil().around(bodies.get(request.path, b""))

    wire().script = script
    there = smoke.Target(base=f"http://{wire().address}", model="m", context=4096)

    def prove() -> smoke.SmokeReport:
        return smoke.run(there, smoke.Start(), HttpServer(), SystemClock(), KEY, Cancel())

    report = survives(prove)
    assert report is not None
    written(report)
    for text in LANGUAGES:
        for check in report.checks:
            shown(text.check(check))
    problem = smoke.problem(report)
    if problem is not None:
        told(problem)


PIECE: dict[str, Any] = {"choices": [{"index": 0, "delta": {"content": "alive"}, "finish_reason": None}]}
LAST: dict[str, Any] = {
    "choices": [{"index": 0, "delta": {"reasoning": "hm"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
}
REFUSED: dict[str, Any] = {"error": {"message": f"no access with {KEY}", "code": 401}}
STREAMED = st.lists(st.one_of(broken_json((PIECE, LAST, REFUSED), 2), st.just(as_json(LAST))), max_size=5)


@target(50, events=STREAMED, spoil=spoiled(), ends=st.sampled_from((b"[DONE]", b"", b"[DONE", b"\xff")))
def test_an_answer_that_streams(events: list[bytes], spoil: Spoiled, ends: bytes) -> None:
    body = b"".join(b"data: " + event + b"\n\n" for event in (*events, ends))
    wire().script = lambda _: spoil.around(body, Content_Type="text/event-stream")
    base = f"http://{wire().address}"
    for piece in survives(lambda: list(HttpServer().stream(base, "/v1/x", {}, 3, KEY, Cancel()))) or ():
        written(piece)


# --- a registry that somebody signed ---------------------------------------------------------------------------------


@cache
def keys() -> tuple[bytes, str]:
    """A publisher's private key, and the file with the public one."""
    key = Ed25519PrivateKey.generate()
    file = fresh("keys") / "public.pem"
    file.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), str(file)


PAYLOAD: dict[str, Any] = {
    "revision": "2026.12.1",
    "issued": "2026-12-01T00:00:00+00:00",
    "expires": "2099-01-01T00:00:00+00:00",
    "recalled": ["2025.1.1"],
    "files": {name: text for name, text in resources.registry_texts().items() if not name.startswith("flags")},
}
EMPTY = Payload(revision="r", issued="", expires="", files={})
NOW = "2026-12-02T00:00:00+00:00"


def signed(payload: bytes) -> dict[str, Any]:
    """An envelope with these very bytes, rightly signed."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(keys()[0], password=None)
    assert isinstance(key, Ed25519PrivateKey)
    return {
        "format": 1,
        "payload": base64.b64encode(payload).decode(),
        "signature": base64.b64encode(key.sign(payload)).decode(),
    }


@target(15, payload=broken_json((PAYLOAD,)), spoil=spoiled())
def test_a_signed_registry(payload: bytes, spoil: Spoiled) -> None:
    envelope = json.dumps(signed(payload)).encode()
    wire().script = lambda _: spoil.around(envelope)
    source = f"http://{wire().address}/registry.json"
    data = survives(lambda: signed_registry.read(source))
    if data is None:
        return
    found = survives(lambda: signed_registry.unpack(data, keys()[1], source))
    if found is not None:
        survives(lambda: kept_registry.accepted(found, None, NOW, source))


@target(40, data=broken_json((signed(json.dumps(PAYLOAD).encode()),)))
def test_an_envelope(data: bytes) -> None:
    survives(lambda: signed_registry.unpack(data, keys()[1], "registry.json"))

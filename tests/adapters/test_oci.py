"""Images as a registry describes them: a real registry for the documents, a small one of our own for its refusals."""

from __future__ import annotations

import contextlib
import hashlib
import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from installer.adapters import http
from installer.adapters.oci import Name, OciRegistry, locate
from installer.domain.problems import (
    CaptivePortal,
    DigestGone,
    ImageUnknown,
    InstallerError,
    NoSuchPlatform,
    Problem,
    RateLimited,
    RegistryDenied,
    ServerError,
    TlsNotTrusted,
    Unreachable,
    WrongContent,
)
from installer.domain.registry import HelperImage
from tests.rig.images import Pushed, push_standin
from tests.rig.process import free_port
from tests.rig.registry import LocalRegistry

INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
GONE = "sha256:" + "a" * 64


def helper(repo: str, tag: str = "v1", digest: str | None = None) -> HelperImage:
    return HelperImage(repo=repo, tag=tag, digest=digest)


@contextlib.contextmanager
def refusal() -> Iterator[list[Problem]]:
    caught: list[Problem] = []
    with pytest.raises(InstallerError) as raised:
        yield caught
    caught.append(raised.value.problem)


def digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


# --- names


@pytest.mark.parametrize(
    ("repository", "mirror", "expected"),
    [
        ("vllm/vllm-openai", None, Name("vllm/vllm-openai", "registry-1.docker.io", "vllm/vllm-openai")),
        ("docker.io/vllm/vllm-openai", None, Name("vllm/vllm-openai", "registry-1.docker.io", "vllm/vllm-openai")),
        ("python", None, Name("python", "registry-1.docker.io", "library/python")),
        ("library/python", None, Name("python", "registry-1.docker.io", "library/python")),
        ("python", "10.0.0.1:5000", Name("10.0.0.1:5000/library/python", "10.0.0.1:5000", "library/python")),
        ("docker.io/a/b", "host:5000/hub/", Name("host:5000/hub/a/b", "host:5000", "hub/a/b")),
        ("ghcr.io/a/b", "host:5000", Name("ghcr.io/a/b", "ghcr.io", "a/b")),
        ("127.0.0.1:5000/a", "host:5000", Name("127.0.0.1:5000/a", "127.0.0.1:5000", "a")),
    ],
)
def test_a_mirror_stands_for_docker_hub_alone(repository: str, mirror: str | None, expected: Name) -> None:
    assert locate(repository, mirror) == expected


# --- against a real registry


@pytest.fixture(name="image", scope="module")
def _image(registry: LocalRegistry) -> Pushed:
    return push_standin(
        registry, namespace="oci", ballast=(4096, 2048), labels={"org.opencontainers.image.version": "9.9"}
    )


def resolve_standin(registry: LocalRegistry, namespace: str = "oci", **more: Any) -> Any:
    release = helper("vllm/vllm-openai", "v0.33.0")
    return OciRegistry(f"{registry.address}/{namespace}").resolve(release, more.pop("platform", native()), **more)


def native() -> str:
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()
    return {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}[machine]


def test_what_the_registry_knows_of_an_image(registry: LocalRegistry, image: Pushed) -> None:
    source = resolve_standin(registry)

    assert source.repository == f"{registry.address}/{image.repository}"
    assert source.by_digest == image.pinned
    assert source.by_tag == image.reference
    assert (source.index_digest, source.platform_digest) == (image.digest, image.platform_digest)
    assert source.index_digest != source.platform_digest
    assert {layer.digest for layer in source.layers} == set(image.layers)
    assert source.size_bytes == image.layer_bytes
    assert source.entrypoint == ("vllm", "serve")
    assert source.requires_cuda == "cuda>=13.0"
    assert source.version_label == "9.9"
    assert source.created.startswith("2026-")


def test_no_layer_is_pulled(registry: LocalRegistry, image: Pushed) -> None:
    registry.clear_log()
    source = resolve_standin(registry)
    assert not {layer.digest for layer in source.layers}.intersection(registry.blob_requests(image.repository))


def test_a_pinned_digest_stays_when_the_tag_has_moved_on(registry: LocalRegistry) -> None:
    first = push_standin(registry, namespace="moved", salt="1", ballast=(64,))
    second = push_standin(registry, namespace="moved", salt="2", ballast=(64,))
    assert resolve_standin(registry, "moved").index_digest == second.digest
    assert resolve_standin(registry, "moved", digest=first.digest).index_digest == first.digest


def test_a_tag_without_an_index_has_one_digest(registry: LocalRegistry) -> None:
    image = push_standin(registry, namespace="plain", ballast=(64,), index=False)
    source = resolve_standin(registry, "plain")
    assert source.index_digest == source.platform_digest == image.digest


@pytest.mark.parametrize("index", [True, False])
def test_an_image_for_other_processors_only(registry: LocalRegistry, index: bool) -> None:
    push_standin(registry, namespace=f"alone-{index}".lower(), ballast=(64,), index=index)
    with refusal() as problems:
        resolve_standin(registry, f"alone-{index}".lower(), platform="linux/riscv64")
    assert isinstance(problems[0], NoSuchPlatform)
    assert native() in problems[0].platforms
    assert not any("unknown" in platform for platform in problems[0].platforms)


def test_a_digest_that_was_removed(registry: LocalRegistry) -> None:
    image = push_standin(registry, namespace="gone", ballast=(64,))
    registry.delete_manifest(image.repository, image.digest)
    with refusal() as problems:
        resolve_standin(registry, "gone", digest=image.digest)
    assert problems == [DigestGone(image=f"{registry.address}/{image.repository}", digest=image.digest, tag="v0.33.0")]


def test_a_tag_that_is_not_there(registry: LocalRegistry, image: Pushed) -> None:
    with refusal() as problems:
        resolve_standin(registry, "no-such-namespace")
    assert problems == [ImageUnknown(image=f"{registry.address}/no-such-namespace/vllm/vllm-openai:v0.33.0")]


# --- against a registry of our own: platforms, tokens, refusals


@dataclass
class FakeRegistry:
    """Answers from a table: path -> (status, headers, body), or a function of the request's headers."""

    address: str = ""
    table: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def add_image(self, *platforms: dict[str, str], repo: str = "a/b", media_type: str = INDEX) -> dict[str, str]:
        """Serve an index with an image for each platform and an attestation; return platform digests by text."""
        found, entries = {}, []
        for platform in platforms:
            config = json.dumps({**platform, "config": {}}).encode()
            manifest = json.dumps({"config": {"digest": digest_of(config)}, "layers": []}).encode()
            self.table[f"/v2/{repo}/blobs/{digest_of(config)}"] = (200, {}, config)
            self.table[f"/v2/{repo}/manifests/{digest_of(manifest)}"] = (200, {"Content-Type": MANIFEST}, manifest)
            entries.append({"digest": digest_of(manifest), "platform": platform})
            found["/".join(platform.values())] = digest_of(manifest)
        entries.insert(0, {
            "digest": GONE, "platform": {"os": "unknown", "architecture": "unknown"},
            "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
        })  # fmt: skip
        index = json.dumps({"schemaVersion": 2, "mediaType": media_type, "manifests": entries}).encode()
        self.table[f"/v2/{repo}/manifests/v1"] = (200, {"Content-Type": media_type}, index)
        return found

    def resolve(self, platform: str = "linux/amd64", repo: str = "a/b", **more: Any) -> Any:
        return OciRegistry(first_wait_s=0.01).resolve(helper(f"{self.address}/{repo}"), platform, **more)


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeRegistry]:
    fake = FakeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            headers = {name.lower(): value for name, value in self.headers.items()}
            fake.asked.append((self.path, headers))
            answer = fake.table.get(path, (404, {}, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}'))
            status, more, body = answer(headers) if callable(answer) else answer
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.address = f"127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield fake
    server.shutdown()
    server.server_close()


AMD64 = {"os": "linux", "architecture": "amd64"}
AMD64_V3 = {"os": "linux", "architecture": "amd64", "variant": "v3"}
ARM64 = {"os": "linux", "architecture": "arm64"}
ARM64_V8 = {"os": "linux", "architecture": "arm64", "variant": "v8"}
ARM_V7 = {"os": "linux", "architecture": "arm", "variant": "v7"}


@pytest.mark.parametrize("media_type", [INDEX, DOCKER_LIST])
@pytest.mark.parametrize(
    ("there", "asked", "chosen"),
    [
        ([ARM64_V8, AMD64], "linux/amd64", "linux/amd64"),
        ([AMD64_V3, AMD64], "linux/amd64", "linux/amd64"),
        ([AMD64, ARM64_V8], "linux/arm64", "linux/arm64/v8"),
        ([AMD64, ARM64], "linux/arm64/v8", "linux/arm64"),
        ([ARM_V7, AMD64], "linux/arm/v7", "linux/arm/v7"),
    ],
)
def test_the_image_for_this_processor(
    fake: FakeRegistry, media_type: str, there: list[dict[str, str]], asked: str, chosen: str
) -> None:
    digests = fake.add_image(*there, media_type=media_type)
    assert fake.resolve(asked).platform_digest == digests[chosen]


def test_an_attestation_is_no_platform(fake: FakeRegistry) -> None:
    fake.add_image(AMD64, ARM64)
    with refusal() as problems:
        fake.resolve("linux/s390x")
    assert isinstance(problems[0], NoSuchPlatform)
    assert problems[0].platforms == ("linux/amd64", "linux/arm64")


def guarded(fake: FakeRegistry, token: tuple[int, dict[str, str], bytes], accepts: str = "Bearer anonymous") -> None:
    """Put a token in front of everything that the registry has."""
    challenge = f'Bearer realm="http://{fake.address}/token",service="registry",scope="repository:a/b:pull"'

    def behind(answer: Any) -> Callable[[dict[str, str]], Any]:
        denied = (401, {"WWW-Authenticate": challenge}, b'{"errors": [{"code": "UNAUTHORIZED"}]}')
        return lambda headers: answer if headers.get("authorization") == accepts else denied

    fake.table = {path: behind(answer) for path, answer in fake.table.items()}
    fake.table["/token"] = token


def test_an_anonymous_token_is_fetched_once_and_used(fake: FakeRegistry) -> None:
    fake.add_image(AMD64)
    guarded(fake, (200, {"Content-Type": "application/json"}, b'{"token": "anonymous"}'))
    assert fake.resolve().layers == ()
    tokens = [path for path, _ in fake.asked if path.startswith("/token")]
    assert len(tokens) == 1
    assert "scope=repository%3Aa%2Fb%3Apull" in tokens[0]
    assert "service=registry" in tokens[0]


@pytest.mark.parametrize(
    "token",
    [
        (200, {}, b'{"access_token": "of another"}'),
        (401, {}, b"{}"),
        (403, {}, b'{"errors": [{"code": "DENIED"}]}'),
        (200, {}, b"{}"),
    ],
    ids=["not accepted", "401", "403", "none"],
)
def test_a_registry_that_wants_a_sign_in(fake: FakeRegistry, token: tuple[int, dict[str, str], bytes]) -> None:
    fake.add_image(AMD64)
    guarded(fake, token)
    with refusal() as problems:
        fake.resolve()
    assert problems == [RegistryDenied(image=f"{fake.address}/a/b:v1")]


HTML = {"Content-Type": "text/html; charset=utf-8"}
PAGE = b"<!DOCTYPE html><html>Sign in</html>"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((403, {}, b"{}"), RegistryDenied),
        ((429, {"Retry-After": "21600"}, b'{"errors": [{"code": "TOOMANYREQUESTS"}]}'), RateLimited),
        ((403, {}, b'{"errors": [{"code": "TOOMANYREQUESTS"}]}'), RateLimited),
        ((503, {}, b""), ServerError),
        ((404, {}, b'{"errors": [{"code": "NAME_UNKNOWN"}]}'), ImageUnknown),
        ((404, {}, b"not JSON"), ImageUnknown),
        ((200, HTML, PAGE), CaptivePortal),
        ((200, {}, PAGE), CaptivePortal),
        ((403, HTML, PAGE), CaptivePortal),
        ((511, HTML, PAGE), CaptivePortal),
        ((200, {}, b'{"manifests": "many"}'), ServerError),
        ((200, {}, b"neither"), ServerError),
        ((200, {"Docker-Content-Digest": GONE}, b'{"manifests": []}'), WrongContent),
    ],
)
def test_refusals_are_told_apart(fake: FakeRegistry, answer: Any, expected: type[Problem]) -> None:
    fake.table["/v2/a/b/manifests/v1"] = answer
    with refusal() as problems:
        fake.resolve()
    assert isinstance(problems[0], expected)
    if "Retry-After" in answer[1]:
        assert problems == [RateLimited(host=fake.address, retry_after_s=21600)]


def test_bytes_that_are_not_those_of_the_pin(fake: FakeRegistry) -> None:
    fake.table[f"/v2/a/b/manifests/{GONE}"] = (200, {"Docker-Content-Digest": GONE}, b'{"manifests": []}')
    with refusal() as problems:
        fake.resolve(digest=GONE)
    assert isinstance(problems[0], WrongContent)
    assert problems[0].expected == GONE


def test_a_configuration_that_was_tampered_with(fake: FakeRegistry) -> None:
    fake.add_image(AMD64)
    blob = next(path for path in fake.table if "/blobs/" in path)
    fake.table[blob] = (200, {}, b'{"os": "linux", "architecture": "amd64", "config": {"Entrypoint": ["sh"]}}')
    with refusal() as problems:
        fake.resolve()
    assert isinstance(problems[0], WrongContent)


def test_the_helper_images_own_pin_is_used(fake: FakeRegistry) -> None:
    with refusal() as problems:
        OciRegistry().resolve(helper(f"{fake.address}/a/b", digest=GONE), "linux/amd64")
    assert problems == [DigestGone(image=f"{fake.address}/a/b", digest=GONE, tag="v1")]


def test_a_server_error_is_tried_again(fake: FakeRegistry) -> None:
    fake.add_image(AMD64)
    path = "/v2/a/b/manifests/v1"
    good, left = fake.table[path], [1]
    fake.table[path] = lambda _: (502, {}, b"") if left and left.pop() else good
    assert fake.resolve().index_digest


def test_a_registry_that_is_not_there() -> None:
    host = f"127.0.0.1:{free_port()}"
    with refusal() as problems:
        OciRegistry(first_wait_s=0.01).resolve(helper(f"{host}/a/b"), "linux/amd64")
    assert isinstance(problems[0], Unreachable)
    assert problems[0].host == host


def test_a_certificate_that_nobody_vouches_for(tmp_path: Path) -> None:
    if which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    certificate = tmp_path / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", certificate, "-out", tmp_path / "certificate.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    certificate.write_bytes(certificate.read_bytes() + (tmp_path / "certificate.pem").read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    host = f"127.0.0.1:{server.server_address[1]}"
    try:
        with http.new_session(f"https://{host}") as session, refusal() as problems:
            http.ask(session, f"https://{host}/v2/")
    finally:
        server.shutdown()
        server.server_close()
    assert problems == [TlsNotTrusted(host=host)]

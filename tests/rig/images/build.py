"""Manifests, configurations and indexes of the rig's two images, pushed to a LocalRegistry."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.rig.registry import LocalRegistry

from .layers import Layer, architecture, helper_layers, standin_layers

STANDIN_TAG = "v0.33.0"
HELPER_TAG = "3-slim"
BALLAST = (5 << 20, 3 << 20, 2 << 20, 1 << 20)

_OCI = "application/vnd.oci.image"
_DOCKER = "application/vnd.docker"
_CREATED = "2026-11-02T09:00:00Z"


@dataclass(frozen=True)
class Pushed:
    """An image in the registry."""

    address: str
    """The registry it is in, ``127.0.0.1:PORT``."""
    repository: str
    """With the namespace: ``ns/vllm/vllm-openai``."""
    tag: str
    digest: str
    """What the tag points to: the index's digest where there is an index."""
    platform_digest: str
    """The digest of this machine's manifest; equal to ``digest`` without an index."""
    layers: tuple[str, ...]
    layer_bytes: int

    @property
    def reference(self) -> str:
        """``127.0.0.1:PORT/ns/vllm/vllm-openai:v0.33.0``."""
        return f"{self.address}/{self.repository}:{self.tag}"

    @property
    def pinned(self) -> str:
        """``127.0.0.1:PORT/ns/vllm/vllm-openai@sha256:...``."""
        return f"{self.address}/{self.repository}@{self.digest}"


@dataclass(frozen=True)
class Images:
    """Both images of one namespace."""

    standin: Pushed
    helper: Pushed


def build_and_push(
    registry: LocalRegistry,
    *,
    namespace: str = "",
    standin_env: Mapping[str, str] | None = None,
    helper_env: Mapping[str, str] | None = None,
    salt: str = "",
    index: bool = True,
) -> Images:
    """Push the stand-in for vLLM and the helper image under ``namespace``, with these overrides baked in."""
    return Images(
        push_standin(registry, namespace=namespace, env=standin_env, salt=salt, index=index),
        push_helper(registry, namespace=namespace, env=helper_env, index=index),
    )


def push_standin(
    registry: LocalRegistry,
    *,
    namespace: str = "",
    repository: str = "vllm/vllm-openai",
    tag: str = STANDIN_TAG,
    env: Mapping[str, str] | None = None,
    salt: str = "",
    ballast: tuple[int, ...] = BALLAST,
    labels: Mapping[str, str] | None = None,
    index: bool = True,
    oci: bool = True,
) -> Pushed:
    """Push the stand-in.

    ``env`` selects a failure (``STANDIN_FAIL``) or a load time.  Another ``salt`` means other layers: an engine that
    has the default image pulls them anew.  ``ballast`` gives the bytes of each random layer.
    """
    config = {
        "Entrypoint": ["vllm", "serve"],
        "WorkingDir": "/vllm-workspace",
        "Env": _environment(
            {
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "NVIDIA_REQUIRE_CUDA": "cuda>=13.0",
                "NVIDIA_VISIBLE_DEVICES": "all",
                "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            },
            env,
        ),
        "Labels": {
            "org.opencontainers.image.version": tag,
            "ai.vllm.build.commit": hashlib.sha256(tag.encode()).hexdigest()[:40],
            "ai.vllm.image.tag": tag,
            **(labels or {}),
        },
    }
    layers = standin_layers(salt, ballast)
    return _push(registry, _within(namespace, repository), tag, config, layers, index, oci)


def push_helper(
    registry: LocalRegistry,
    *,
    namespace: str = "",
    repository: str = "library/python",
    tag: str = HELPER_TAG,
    env: Mapping[str, str] | None = None,
    index: bool = True,
    oci: bool = True,
) -> Pushed:
    """Push the helper image; ``env`` sets what its stub libcuda reports (``STUB_CUDA_FREE_BYTES`` ...)."""
    path = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    config = {"Cmd": ["python3"], "Env": _environment({"PATH": path, "LANG": "C.UTF-8"}, env)}
    return _push(registry, _within(namespace, repository), tag, config, helper_layers(), index, oci)


def _environment(base: Mapping[str, str], changes: Mapping[str, str] | None) -> list[str]:
    return [f"{name}={value}" for name, value in {**base, **(changes or {})}.items()]


def _within(namespace: str, repository: str) -> str:
    return f"{namespace}/{repository}" if namespace else repository


def _push(
    registry: LocalRegistry,
    repository: str,
    tag: str,
    config: Mapping[str, Any],
    layers: tuple[Layer, ...],
    index: bool,
    oci: bool,
) -> Pushed:
    for layer in layers:
        registry.put_blob(repository, layer.digest, layer.file)
    here = architecture()
    media, body = _manifest(registry, repository, config, layers, here, oci)
    platform_digest = digest = _digest(body)
    registry.put_manifest(repository, digest if index else tag, media, body)
    if index:
        entries = [_entry(media, body, here), _other_platform(registry, repository, config, layers, here, oci)]
        entries.append(_attestation(registry, repository, platform_digest))
        kind = f"{_OCI}.index.v1+json" if oci else f"{_DOCKER}.distribution.manifest.list.v2+json"
        listing = _json({"schemaVersion": 2, "mediaType": kind, "manifests": entries})
        digest = registry.put_manifest(repository, tag, kind, listing)
    return Pushed(
        registry.address, repository, tag, digest, platform_digest,
        tuple(layer.digest for layer in layers), sum(layer.size for layer in layers),
    )  # fmt: skip


def _manifest(
    registry: LocalRegistry,
    repository: str,
    config: Mapping[str, Any],
    layers: tuple[Layer, ...],
    platform: str,
    oci: bool,
) -> tuple[str, bytes]:
    image = _json(
        {
            "architecture": platform,
            "os": "linux",
            "created": _CREATED,
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
            "history": [{"created": _CREATED, "created_by": f"layer {number}"} for number in range(len(layers))],
        }
    )
    registry.put_blob(repository, _digest(image), image)
    media = f"{_OCI}.manifest.v1+json" if oci else f"{_DOCKER}.distribution.manifest.v2+json"
    config_type = f"{_OCI}.config.v1+json" if oci else f"{_DOCKER}.container.image.v1+json"
    layer_type = f"{_OCI}.layer.v1.tar+gzip" if oci else f"{_DOCKER}.image.rootfs.diff.tar.gzip"
    body = {
        "schemaVersion": 2,
        "mediaType": media,
        "config": {"mediaType": config_type, "size": len(image), "digest": _digest(image)},
        "layers": [{"mediaType": layer_type, "size": layer.size, "digest": layer.digest} for layer in layers],
    }
    return media, _json(body)


def _other_platform(
    registry: LocalRegistry,
    repository: str,
    config: Mapping[str, Any],
    layers: tuple[Layer, ...],
    here: str,
    oci: bool,
) -> dict[str, Any]:
    """A dummy of the other architecture: the registry takes no index whose entries it does not hold."""
    other = "arm64" if here != "arm64" else "amd64"
    media, body = _manifest(registry, repository, config, layers[-1:], other, oci)
    registry.put_manifest(repository, _digest(body), media, body)
    return _entry(media, body, other)


def _attestation(registry: LocalRegistry, repository: str, subject: str) -> dict[str, Any]:
    """What BuildKit adds to every release: an entry for the platform unknown/unknown that no one can run."""
    statement = _json({"_type": "https://in-toto.io/Statement/v0.1", "subject": []})
    nothing = {"type": "layers", "diff_ids": []}
    image = _json({"architecture": "unknown", "os": "unknown", "config": {}, "rootfs": nothing})
    for blob in (statement, image):
        registry.put_blob(repository, _digest(blob), blob)
    media = f"{_OCI}.manifest.v1+json"
    body = _json(
        {
            "schemaVersion": 2,
            "mediaType": media,
            "config": {"mediaType": f"{_OCI}.config.v1+json", "size": len(image), "digest": _digest(image)},
            "layers": [
                {"mediaType": "application/vnd.in-toto+json", "size": len(statement), "digest": _digest(statement)}
            ],
        }
    )
    registry.put_manifest(repository, _digest(body), media, body)
    notes = {"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": subject}
    return {**_entry(media, body, "unknown", "unknown"), "annotations": notes}


def _entry(media: str, body: bytes, platform: str, system: str = "linux") -> dict[str, Any]:
    return {
        "mediaType": media,
        "size": len(body),
        "digest": _digest(body),
        "platform": {"architecture": platform, "os": system},
    }


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"

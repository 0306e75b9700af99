"""An image registry over the OCI distribution protocol: digests, layer sizes, configuration; nothing is pulled.

Sources: OCI distribution-spec (pull), OCI image-spec (index, manifest, configuration), and for the token exchange
distribution's "Token Authentication Specification". Always anonymous: what needs a sign-in is RegistryDenied.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Self, TypeVar

import msgspec
import requests

from installer.adapters import http
from installer.domain import answers
from installer.domain.problems import (
    AnyProblem,
    ImageUnknown,
    InstallerError,
    NoSuchPlatform,
    RegistryDenied,
    ServerError,
    WrongContent,
)
from installer.domain.registry import HelperImage, ImageRelease
from installer.domain.sources import ImageSource, Layer
from installer.domain.strict_json import NOT_OF_THAT_FORM
from installer.domain.units import Natural

DOCKER_HUB: Final = "docker.io"

_DOCKER_HUB_API = "registry-1.docker.io"
_DOCKER_HUB_NAMES = (DOCKER_HUB, "index.docker.io", _DOCKER_HUB_API)
_OFFICIAL = "library/"
_INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_ACCEPT = ", ".join((*_INDEX_TYPES, *_MANIFEST_TYPES))
_REFERENCE_TYPE = "vnd.docker.reference.type"
_UNKNOWN = "unknown"
_CUDA = "NVIDIA_REQUIRE_CUDA="
_VERSION = "org.opencontainers.image.version"
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')
_SAME_AS_NONE = {"arm64": "v8", "amd64": "v1"}

_Document = TypeVar("_Document")


class _Platform(msgspec.Struct):
    os: str = _UNKNOWN
    architecture: str = _UNKNOWN
    variant: str = ""

    @property
    def text(self) -> str:
        """Return it as Docker writes it."""
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


class _Descriptor(msgspec.Struct):
    digest: str
    size: Natural = 0
    platform: _Platform = msgspec.field(default_factory=_Platform)
    annotations: dict[str, str] | None = None


class _Manifest(msgspec.Struct):
    """An index or a manifest: one has `manifests`, the other `config` and `layers`."""

    manifests: list[_Descriptor] | None = None
    config: _Descriptor | None = None
    layers: list[_Descriptor] = []


class _Run(msgspec.Struct):
    entrypoint: list[str] | None = msgspec.field(name="Entrypoint", default=None)
    env: list[str] | None = msgspec.field(name="Env", default=None)
    labels: dict[str, str] | None = msgspec.field(name="Labels", default=None)


class _Config(_Platform):
    created: str | None = None
    config: _Run | None = None


@dataclass(frozen=True)
class Name:
    """Where an image is: `pull` is the name for the engine, `host` and `path` are the place in the protocol."""

    pull: str
    host: str
    path: str


def locate(repository: str, mirror: str | None = None) -> Name:
    """Return where a repository is. A mirror (`host:port[/prefix]`) stands for Docker Hub and for nothing else."""
    first, slash, rest = repository.partition("/")
    has_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    host, path = (first, rest) if has_host else (DOCKER_HUB, repository)
    if host not in _DOCKER_HUB_NAMES:
        return Name(repository, host, path)
    full = path if "/" in path else f"{_OFFICIAL}{path}"
    if mirror:
        place = f"{mirror.strip().strip('/')}/{full}"
        mirror_host, _, mirror_path = place.partition("/")
        return Name(place, mirror_host, mirror_path)
    return Name(full.removeprefix(_OFFICIAL), _DOCKER_HUB_API, full)


class OciRegistry:
    """Implements the port `ImageRegistry`."""

    def __init__(self, mirror: str | None = None, *, first_wait_s: float = 0.5) -> None:
        self._mirror = mirror
        self._first_wait_s = first_wait_s

    def resolve(self, release: ImageRelease | HelperImage, platform: str, digest: str | None = None) -> ImageSource:
        """Ask for digests, layer sizes and the image's configuration.

        `digest` asks for a pinned index rather than for the tag; a helper image may bring its own.
        Raises ImageUnknown, DigestGone, RegistryDenied, RateLimited, ServerError, Unreachable, TlsNotTrusted,
        NoSuchPlatform, CaptivePortal; WrongContent where the bytes are not those of their digest.
        """
        pinned = digest or (release.digest if isinstance(release, HelperImage) else None)
        name = locate(release.repo, self._mirror)
        with _Repository(name, release.tag, self._first_wait_s) as repository:
            return repository.resolve(platform, pinned)


class _Repository:
    """One repository of one registry, asked for one image."""

    def __init__(self, name: Name, tag: str, first_wait_s: float) -> None:
        scheme = "http" if http.is_loopback(name.host) else "https"
        self._base = f"{scheme}://{name.host}/v2/{name.path}"
        self._name = name
        self._tag = tag
        self._image = f"{name.pull}:{tag}"
        self._first_wait_s = first_wait_s
        self._bearer = http.Bearer()
        self._session = http.new_session(self._base)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def resolve(self, platform: str, pinned: str | None) -> ImageSource:
        body, index_digest = self._manifest(pinned)
        manifest, platform_digest = self._parsed(body, _Manifest), index_digest
        is_index = manifest.manifests is not None
        if manifest.manifests is not None:
            platform_digest = _choose(manifest.manifests, platform, self._image)
            body, _ = self._manifest(platform_digest)
            manifest = self._parsed(body, _Manifest)
        if manifest.config is None:
            raise InstallerError(ImageUnknown(image=self._image))
        config = self._config(manifest.config.digest)
        if not is_index and not _runs_on(config, platform):
            raise _no_platform(self._image, platform, [config])
        run = config.config or _Run()
        return ImageSource(
            repository=self._name.pull,
            tag=self._tag,
            index_digest=index_digest,
            platform_digest=platform_digest,
            platform=platform,
            layers=tuple(Layer(digest=layer.digest, size_bytes=layer.size) for layer in manifest.layers),
            entrypoint=tuple(run.entrypoint or ()),
            requires_cuda=next((item.removeprefix(_CUDA) for item in run.env or () if item.startswith(_CUDA)), ""),
            created=config.created or "",
            version_label=(run.labels or {}).get(_VERSION, ""),
        )

    def _manifest(self, digest: str | None) -> tuple[bytes, str]:
        """Return a manifest or index and its digest, by digest or by the tag."""
        response = self._get(f"/manifests/{digest or self._tag}", digest, {"Accept": _ACCEPT})
        http.json_of(response)
        announced = digest or response.headers.get("Docker-Content-Digest")
        return response.content, self._checked(response.content, announced)

    def _config(self, digest: str) -> _Config:
        response = self._get(f"/blobs/{digest}", digest)
        http.json_of(response)
        self._checked(response.content, digest)
        return self._parsed(response.content, _Config)

    def _checked(self, body: bytes, announced: str | None) -> str:
        """Return the digest of a body. Raises WrongContent where another was announced."""
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        if announced not in (None, digest):
            raise InstallerError(WrongContent(file=self._image, expected=str(announced), got=digest))
        return digest

    def _parsed(self, body: bytes, kind: type[_Document]) -> _Document:
        try:
            return msgspec.json.decode(body, type=kind)
        except NOT_OF_THAT_FORM as error:
            raise InstallerError(ServerError(host=self._name.host, status=200)) from error

    def _get(self, path: str, digest: str | None, headers: dict[str, str] | None = None) -> requests.Response:
        response = self._ask(path, headers)
        if response.status_code == 401:
            self._bearer = http.Bearer(self._token(response))
            response = self._ask(path, headers)
        problem = self._refusal(response, digest)
        if problem is not None:
            raise InstallerError(problem)
        return response

    def _ask(self, path: str, headers: dict[str, str] | None) -> requests.Response:
        url = f"{self._base}{path}"
        return http.ask(self._session, url, headers=headers, auth=self._bearer, first_wait_s=self._first_wait_s)

    def _token(self, refused: requests.Response) -> str:
        """Fetch the anonymous token that a refusal asks for."""
        scheme, _, rest = refused.headers.get("WWW-Authenticate", "").partition(" ")
        asked = dict(_PARAMETER.findall(rest))
        realm = asked.get("realm")
        if scheme.casefold() != "bearer" or not realm:
            raise InstallerError(RegistryDenied(image=self._image))
        params = {key: value for key in ("service", "scope") if (value := asked.get(key))}
        response = http.ask(self._session, realm, params=params, first_wait_s=self._first_wait_s)
        if response.status_code >= 400:
            raise InstallerError(RegistryDenied(image=self._image))
        answer = http.json_of(response)
        token = (answer.get("token") or answer.get("access_token")) if isinstance(answer, dict) else None
        if not isinstance(token, str):
            raise InstallerError(RegistryDenied(image=self._image))
        return token

    def _refusal(self, response: requests.Response, digest: str | None) -> AnyProblem | None:
        """Return what is wrong with an answer, or None; the statuses that mean the same everywhere are dealt with."""
        answer = msgspec.structs.replace(http.answer_of(response), body=response.content)
        return answers.of_registry(answer, self._name.pull, self._tag, digest)


def choose(index: bytes, platform: str, image: str) -> str:
    """Return the digest that an index names for a platform. Raises InstallerError(NoSuchPlatform)."""
    return _choose(msgspec.json.decode(index, type=_Manifest).manifests or [], platform, image)


def _choose(listed: list[_Descriptor], platform: str, image: str) -> str:
    images = [entry for entry in listed if _is_image(entry)]
    fitting = [entry for entry in images if _runs_on(entry.platform, platform)]
    if not fitting:
        raise _no_platform(image, platform, [entry.platform for entry in images])
    return min(fitting, key=lambda entry: _distance(entry.platform, platform)).digest


def _no_platform(image: str, platform: str, there: list[_Platform] | list[_Config]) -> InstallerError:
    known = tuple(dict.fromkeys(one.text for one in there))
    return InstallerError(NoSuchPlatform(image=image, platform=platform, platforms=known))


def _is_image(entry: _Descriptor) -> bool:
    """Say whether an entry of an index is an image: BuildKit adds attestations, for the platform unknown/unknown."""
    return _REFERENCE_TYPE not in (entry.annotations or {}) and _UNKNOWN not in (
        entry.platform.os,
        entry.platform.architecture,
    )


def _wanted(platform: str) -> _Platform:
    system, _, rest = platform.partition("/")
    architecture, _, variant = rest.partition("/")
    return _Platform(os=system, architecture=architecture, variant=variant)


def _runs_on(there: _Platform, platform: str) -> bool:
    """Say whether an image is for a platform; a variant counts only where it is asked for."""
    wanted = _wanted(platform)
    same = (there.os, there.architecture) == (wanted.os, wanted.architecture)
    return same and (not wanted.variant or _variant(there) == _variant(wanted))


def _distance(there: _Platform, platform: str) -> int:
    """Rank the images for a platform: the plain variant first (amd64/v3 may not run on an older processor)."""
    wanted = _wanted(platform)
    return 0 if _variant(there) == _variant(wanted) else 1


def _variant(platform: _Platform) -> str:
    return platform.variant or _SAME_AS_NONE.get(platform.architecture, "")

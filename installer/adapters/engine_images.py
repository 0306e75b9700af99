"""Images of an engine: the request that pulls one, the tag that holds it, and what they take on the disk."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from installer.adapters.interruptible import Opened
from installer.domain.progress import short_id
from installer.domain.sources import ImageSource

if TYPE_CHECKING:
    import requests
    from docker import APIClient

_ANCHOR_HOST = "slipway.local"
_TAG_CHARACTERS = 100


def anchor_of(image: ImageSource) -> str:
    """Return the local tag that holds a pulled image: what is pulled by digest has none, and a prune would take it."""
    host, slash, rest = image.repository.partition("/")
    name = rest if slash and (set(".:") & set(host) or host == "localhost") else image.repository
    tag = (image.tag or "pinned")[:_TAG_CHARACTERS]
    return f"{_ANCHOR_HOST}/{name}:{tag}-{short_id(image.index_digest)}"


def anchor(client: APIClient, image: ImageSource, image_id: str) -> None:
    """Give an image the local tag that holds it."""
    repository, _, tag = anchor_of(image).rpartition(":")
    client.tag(image_id, repository, tag)


def inspected(client: APIClient, image: ImageSource) -> dict[str, Any] | None:
    """Return what the engine knows of an image, if it has the one with this index digest."""
    from docker.errors import NotFound

    try:
        found: dict[str, Any] = client.inspect_image(image.by_digest)  # type: ignore[no-untyped-call]
    except NotFound:
        return None
    digests = {name.rpartition("@")[2] for name in found.get("RepoDigests") or ()}
    return found if image.index_digest in digests else None


def names_of(client: APIClient, image: ImageSource) -> list[str]:
    """Return the names of ours that an image has: a publisher's tag that moved on to another image is not one."""
    from docker.errors import NotFound

    names: dict[str, str] = {}
    for name in (anchor_of(image), image.by_tag, image.by_digest):
        try:
            names[name] = client.inspect_image(name)["Id"]  # type: ignore[no-untyped-call]
        except NotFound:
            continue
    wanted = names.get(image.by_digest) or names.get(anchor_of(image))
    return [name for name, image_id in names.items() if image_id == wanted]


def open_pull(client: APIClient, image: ImageSource) -> Opened[dict[str, Any]]:
    """Start a pull and keep hold of its answer, whose items are the engine's events.

    docker-py's own pull() hides the answer in a generator, which another thread can neither wake nor close; its client
    is a requests.Session, so the request is made on that.
    """
    response = client.post(
        _url(client, "/images/create"),
        params={"fromImage": image.repository, "tag": image.index_digest, "platform": image.platform},
        headers=_credentials(client, image.repository),
        stream=True,
        timeout=None,
    )
    _check(response)
    return Opened(_events(response), response.raw.shutdown, response.close)


def error_in(event: dict[str, Any]) -> str | None:
    """Return the message of an event that is an error: they come as items and not as a status."""
    if "error" not in event:
        return None
    detail = event.get("errorDetail")
    message = detail.get("message") if isinstance(detail, dict) else None
    return str(message or event["error"])


def layer_bytes(client: APIClient) -> int:
    """Return what all images together hold on the disk: layers that two images share count once."""
    answer = client.get(_url(client, "/system/df"), params={"type": "image"}, timeout=client.timeout)
    _check(answer)
    usage: dict[str, Any] = answer.json()
    return int(usage.get("LayersSize") or (usage.get("ImageUsage") or {}).get("TotalSize") or 0)


def _url(client: APIClient, path: str) -> str:
    return f"{client.base_url}/v{client.api_version}{path}"


def _check(response: requests.Response) -> None:
    import requests
    from docker.errors import create_api_error_from_http_exception

    try:
        response.raise_for_status()
    except requests.HTTPError as error:
        create_api_error_from_http_exception(error)


def _events(response: requests.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        event = json.loads(line) if line.strip() else None
        if isinstance(event, dict):
            yield event


def _credentials(client: APIClient, repository: str) -> dict[str, str]:
    """Return what `docker login` stored for this registry.

    A credential helper that is not there (WSL without Docker Desktop's integration) must not stop the pull of an
    image that everybody may have.
    """
    from docker import auth
    from docker.errors import DockerException

    registry, _ = auth.resolve_repository_name(repository)
    try:
        with warnings.catch_warnings(action="ignore"):
            header = auth.get_config_header(client, registry)
    except (DockerException, OSError):
        return {}
    return {"X-Registry-Auth": header.decode()} if header else {}

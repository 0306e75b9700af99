"""Which engine is meant: the same rules as Docker's own command line, and the same engine for Compose."""

from __future__ import annotations

import os
import shutil
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from installer.adapters.engine_errors import detail_of
from installer.domain.problems import EngineFailed, InstallerError, UnknownName

if TYPE_CHECKING:
    from docker import APIClient, DockerClient

_DEFAULT = "default"
_OF_THE_HOST = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """An engine's address. `tls` is docker-py's TLSConfig, or None."""

    context: str
    url: str
    tls: Any = None

    def connect(self, timeout_s: float) -> APIClient:
        """Return a client after the engine told its version; close it. `timeout_s` is the limit of one read."""
        import docker

        return docker.APIClient(base_url=self.url, version="auto", timeout=timeout_s, tls=self.tls or False)  # type: ignore[arg-type]


def endpoint_of(context: str | None) -> Endpoint:
    """Resolve a context: the one that is named, or DOCKER_HOST, DOCKER_CONTEXT, the current context, in this order.

    The client's own base URL reads `http+docker://localhost` and says nothing.
    Raises InstallerError(UnknownName), or EngineFailed for a context that cannot be read.
    """
    try:
        return _resolved(context)
    except InstallerError:
        raise
    except Exception as error:  # docker-py raises bare exceptions for broken files of a context
        raise InstallerError(EngineFailed(operation="context", detail=detail_of(str(error)))) from error


def _resolved(context: str | None) -> Endpoint:
    from docker.context import ContextAPI
    from docker.utils import kwargs_from_env

    if os.environ.get("DOCKER_HOST") and context in (None, "", _DEFAULT):
        asked = kwargs_from_env()
        return Endpoint(context=_DEFAULT, url=asked["base_url"], tls=asked.get("tls"))
    name = context or os.environ.get("DOCKER_CONTEXT")
    found: Any = ContextAPI.get_context(name)
    if found is None:
        known = tuple(str(one.Name) for one in ContextAPI.contexts())
        raise InstallerError(UnknownName(field="context", value=name or "currentContext", known=known))
    return Endpoint(context=str(found.Name), url=str(found.Host), tls=found.TLSConfig)


def environment_for(context: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the docker program and Compose talk to the engine of this context.

    DOCKER_HOST would win over DOCKER_CONTEXT, so that a context that was named takes it out; the default context is
    where DOCKER_HOST applies.
    """
    if not context:
        return dict(environment)
    dropped = () if context == _DEFAULT else _OF_THE_HOST
    return {key: value for key, value in environment.items() if key not in dropped} | {"DOCKER_CONTEXT": context}


def docker_program() -> str | None:
    """Return where the docker program is, or None."""
    return shutil.which("docker")


def transport_errors() -> tuple[type[Exception], ...]:
    """Return what a call of docker-py raises when something fails: its own errors and those of what it stands on."""
    import requests
    import urllib3
    from docker.errors import DockerException

    common = (DockerException, requests.RequestException, urllib3.exceptions.HTTPError, OSError)
    if sys.platform == "win32":
        import pywintypes  # a named pipe's errors come through as they are

        return (*common, pywintypes.error)
    return common


NOT_DOCKERS = (LookupError, TypeError, AttributeError, ValueError, RecursionError, struct.error)
"""What docker-py, and the reading of its answers, raises where something else than an engine answers at an address."""


def docker_client(context: str | None = None) -> DockerClient:
    """Return a client of docker-py's higher level for a context; close it."""
    import docker

    endpoint = endpoint_of(context)
    return docker.DockerClient(base_url=endpoint.url, tls=endpoint.tls or False)

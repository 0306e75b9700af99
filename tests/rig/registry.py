"""A real image registry on 127.0.0.1: Debian's docker-registry over a temporary folder."""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import requests

from .process import RigError, end, free_port, require, short_temp_dir, tail, wait_for

_CONFIG = """\
version: 0.1
log:
  level: info
  accesslog:
    disabled: false
storage:
  filesystem:
    rootdirectory: {root}
  delete:
    enabled: true
http:
  addr: 127.0.0.1:{port}
"""
_GET_BLOB = re.compile(r'"GET /v2/(?P<repository>\S+)/blobs/(?P<digest>sha256:[0-9a-f]{64})\S* HTTP')
_MANIFEST_TYPES = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"
)


class LocalRegistry:
    """One docker-registry with deletion enabled, whose access log tells a test what was asked for."""

    def __init__(self) -> None:
        self._root = short_temp_dir("reg")
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._blobs: dict[str, str] = {}
        self._session = requests.Session()
        self._session.trust_env = False
        self.log = self._root / "registry.log"

    @property
    def address(self) -> str:
        """``127.0.0.1:PORT``, the first part of every image name kept here."""
        return f"127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        """The port alone, for a Throttle in front."""
        return self._port

    def start(self) -> Self:
        """Start the registry and wait until it answers."""
        atexit.register(self.stop)
        config = self._root / "config.yml"
        config.write_text(_CONFIG.format(root=self._root / "data", port=self._port))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [require("docker-registry", "docker-registry"), "serve", str(config)],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        try:
            wait_for(self._answers, 15, "docker-registry", lambda: self.running)
        except RigError as error:
            raise RigError(f"{error}\n{tail(self.log)}") from None
        return self

    @property
    def running(self) -> bool:
        """Whether the registry is alive."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the registry and drop what it stored.  May be called twice."""
        atexit.unregister(self.stop)
        end(self._process)
        shutil.rmtree(self._root, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def blob_requests(self, repository: str) -> list[str]:
        """Digests of the blobs of ``repository`` (``ns/vllm/vllm-openai``) that were fetched, in order."""
        found = _GET_BLOB.finditer(self.log.read_text(errors="replace"))
        return [hit["digest"] for hit in found if hit["repository"] == repository]

    def clear_log(self) -> None:
        """Forget the requests so far."""
        with self.log.open("r+b") as log:
            log.truncate(0)

    def digest(self, repository: str, reference: str) -> str:
        """The digest that a tag (or digest) has now."""
        answer = self._call("HEAD", f"{repository}/manifests/{reference}", headers={"Accept": _MANIFEST_TYPES})
        return answer.headers["Docker-Content-Digest"]

    def manifest(self, repository: str, reference: str) -> tuple[str, bytes]:
        """Media type and bytes of a manifest or index."""
        answer = self._call("GET", f"{repository}/manifests/{reference}", headers={"Accept": _MANIFEST_TYPES})
        return answer.headers["Content-Type"], answer.content

    def put_manifest(self, repository: str, reference: str, media_type: str, body: bytes) -> str:
        """Store a manifest or index under a tag or digest; its digest."""
        answer = self._call("PUT", f"{repository}/manifests/{reference}", body, {"Content-Type": media_type})
        return answer.headers["Docker-Content-Digest"]

    def put_blob(self, repository: str, digest: str, body: bytes | Path) -> None:
        """Store a blob; one that another repository here has is mounted from it, not sent again."""
        known = self._blobs.setdefault(digest, repository)
        if known != repository:
            self._call("POST", f"{repository}/blobs/uploads/?mount={digest}&from={known}")
            return
        place = self._call("POST", f"{repository}/blobs/uploads/").headers["Location"]
        data = body.read_bytes() if isinstance(body, Path) else body
        address = place if place.startswith("http") else f"http://{self.address}{place}"
        joint = "&" if "?" in address else "?"
        headers = {"Content-Type": "application/octet-stream"}
        _checked(self._session.put(f"{address}{joint}digest={digest}", data=data, headers=headers, timeout=30))

    def delete_manifest(self, repository: str, digest: str) -> None:
        """Delete a manifest or index by digest, with every tag on it."""
        self._call("DELETE", f"{repository}/manifests/{digest}")

    def _answers(self) -> bool:
        try:
            return self._session.get(f"http://{self.address}/v2/", timeout=2).status_code == 200
        except requests.RequestException:
            return False

    def _call(
        self, verb: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> requests.Response:
        address = f"http://{self.address}/v2/{path}"
        return _checked(self._session.request(verb, address, data=body, headers=headers, timeout=30))


def _checked(answer: requests.Response) -> requests.Response:
    if not answer.ok:
        raise RigError(f"{answer.request.method} {answer.url}: {answer.status_code} {answer.text[:200]}")
    return answer

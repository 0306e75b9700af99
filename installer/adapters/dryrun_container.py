"""A container of a dry run: made from the compose file that was really written, living in memory by the clock."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from installer.adapters.dryrun_log import Asked, Script
from installer.domain.compose import LABEL_PREFIX, SERVICE
from installer.steps.ports import ContainerState

HEALTH_CHECK_SECONDS = 2.0
CREATED_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Service:
    """What a compose file says of our one service."""

    project: str
    image: str
    port: int
    gpu_uuid: str | None
    labels: Mapping[str, str]
    has_health_check: bool
    key: str | None
    asked: Asked


@dataclass(kw_only=True)
class SimulatedContainer:
    """One container. Times are the clock's own seconds."""

    service: Service
    number: int
    script: Script = field(default_factory=Script)
    began: float | None = None
    started_at: str = ""
    stopped: bool = False

    @property
    def id(self) -> str:
        """Return an id as Docker makes them."""
        return hashlib.sha256(f"{self.service.project} {self.number}".encode()).hexdigest()

    @property
    def port(self) -> int:
        """Return the port on the host."""
        return self.service.port

    @property
    def gpu_uuid(self) -> str | None:
        """Return the card that it was given."""
        return self.service.gpu_uuid

    @property
    def utilisation(self) -> float:
        """Return the share of the card that it takes."""
        return self.service.asked.utilisation

    def start(self, script: Script, now: float, started_at: str) -> None:
        """Start, or start again."""
        self.script, self.began, self.started_at, self.stopped = script, now, started_at, False

    def status(self, now: float) -> Literal["created", "running", "exited"]:
        """Return Docker's word for the state."""
        if self.began is None:
            return "created"
        age = now - self.began
        if self.stopped or (self.script.ends_at is not None and age >= self.script.ends_at):
            return "exited"
        return "running" if age >= CREATED_SECONDS else "created"

    def serves(self, now: float) -> bool:
        """Say whether the server inside answers."""
        return self.status(now) == "running" and self._past(self.script.serves_at, now)

    def _past(self, mark: float | None, now: float) -> bool:
        return self.began is not None and mark is not None and now - self.began >= mark

    def log(self, now: float) -> list[bytes]:
        """Return the lines so far."""
        if self.began is None:
            return []
        return [line.encode() for at, line in self.script.lines if now - self.began >= at]

    def state(self, now: float) -> ContainerState:
        """Return the container as an engine describes it."""
        status, labels = self.status(now), self.service.labels
        ended_itself = status == "exited" and not self.stopped
        return ContainerState(
            id=self.id,
            name=f"{self.service.project}-{SERVICE}-1",
            image=self.service.image,
            status=status,
            health=self._health(status, now),
            exit_code=self.script.exit_code if ended_itself else 0,
            out_of_memory=ended_itself and self.script.out_of_memory,
            restart_count=0,
            started_at=self.started_at,
            profile=labels.get(f"{LABEL_PREFIX}.profile", ""),
            registry_revision=labels.get(f"{LABEL_PREFIX}.registry-revision", ""),
            image_digest=labels.get(f"{LABEL_PREFIX}.image-digest", ""),
            fingerprint=labels.get(f"{LABEL_PREFIX}.fingerprint", ""),
        )

    def _health(self, status: str, now: float) -> Literal["", "starting", "healthy", "unhealthy"]:
        if not self.service.has_health_check:
            return ""
        if status != "running":
            return "unhealthy" if status == "exited" else "starting"
        serves_at = self.script.serves_at
        checked = None if serves_at is None else serves_at + HEALTH_CHECK_SECONDS
        return "healthy" if self._past(checked, now) else "starting"


def text_of(value: Any) -> str:
    """Return a value of a compose file as Compose takes it: `$$` stands for one `$`."""
    return str(value).replace("$$", "$")

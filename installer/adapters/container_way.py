"""The way from a container to this computer: where to wait for it, and whether it really gets here."""

from __future__ import annotations

from typing import Any

from installer.adapters.engine_endpoint import NOT_DOCKERS, endpoint_of, transport_errors
from installer.adapters.interruptible import QuietError, waited_for
from installer.domain.inspection import is_desktop
from installer.domain.problems import HostNotReached, InstallerError
from installer.steps.cancel import Cancel

LIMIT_S = 20.0
_ANSWER_S = 10.0
_NAME_UNKNOWN, _NO_PROGRAM = 3, (126, 127)
_TRY = """
import socket, sys, urllib.request
try:
    urllib.request.urlopen(urllib.request.Request(sys.argv[1], method="HEAD"), timeout=5)
except Exception as error:
    cause = getattr(error, "reason", error)
    print(type(cause).__name__)
    sys.exit(3 if isinstance(cause, socket.gaierror) else 2)
"""
"""Asks as vLLM itself would, with the container's own proxy settings; every image of vLLM has python3."""


def host_address(context: str | None) -> str | None:
    """Return where this computer can be reached from containers; None where the engine lets no container do that.

    Docker Desktop leads `host.docker.internal` to this computer's loopback. Elsewhere `host-gateway` is the address of
    the default bridge, which a container of any network gets to.
    """
    failures: tuple[type[Exception], ...] = (*transport_errors(), *NOT_DOCKERS, InstallerError)
    try:
        with endpoint_of(context).connect(_ANSWER_S) as client:
            info: dict[str, Any] = client.info()
            if is_desktop(info):
                return "127.0.0.1"
            if any("rootless" in str(option) for option in info.get("SecurityOptions") or ()):
                return None
            bridge = client.inspect_network("bridge")
            gateways = [config.get("Gateway") for config in bridge["IPAM"]["Config"] or ()]
            return next((gateway for gateway in gateways if gateway and "." in gateway), None)
    except failures:
        return None


def try_out(context: str | None, container_id: str, url: str, address: str, cancel: Cancel) -> None:
    """Let a container ask for an address. Raises InstallerError(HostNotReached) where nothing comes back to it."""
    failures: tuple[type[Exception], ...] = (*transport_errors(), *NOT_DOCKERS)
    try:
        code, said = waited_for(lambda: _asked(context, container_id, url), cancel, LIMIT_S)
    except QuietError as error:
        raise InstallerError(HostNotReached(address=address, detail=f"{LIMIT_S:.0f} s")) from error
    except failures as error:
        raise InstallerError(HostNotReached(tried=False, detail=type(error).__name__)) from error
    if code in _NO_PROGRAM:
        raise InstallerError(HostNotReached(tried=False, detail=f"python3: exit code {code}"))
    if code:
        where = "" if code == _NAME_UNKNOWN else address
        raise InstallerError(HostNotReached(address=where, detail=f"exit code {code}: {said}"))


def _asked(context: str | None, container_id: str, url: str) -> tuple[int, str]:
    with endpoint_of(context).connect(LIMIT_S) as client:
        made = client.exec_create(container_id, ["python3", "-c", _TRY, url])
        said = client.exec_start(made["Id"])
        return int(client.exec_inspect(made["Id"])["ExitCode"]), said.decode(errors="replace").strip()[-200:]

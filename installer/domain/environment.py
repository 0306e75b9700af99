"""The environment: variables that mislead other programs, and what Slipway makes of each. No value leaves this file."""

from __future__ import annotations

from collections.abc import Mapping

from installer.domain import addresses
from installer.domain.problems import VariableFlaw

TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "VLLM_API_KEY", "SLIPWAY_API_KEY")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
FOLDERS = ("APPDATA", "LOCALAPPDATA", "USERPROFILE", "HOME", "HF_HOME", "TEMP", "TMP", "SLIPWAY_HOME")
LOOPBACK = ("localhost", "127.0.0.1", "::1", "*")


def flaws(environment: Mapping[str, str]) -> tuple[VariableFlaw, ...]:
    """Return what is odd about an environment; names count in capitals and small letters alike."""
    known = {name.upper(): value for name, value in environment.items()}
    return (*_tokens(known), *_proxies(known), *_folders(known))


def _tokens(known: Mapping[str, str]) -> list[VariableFlaw]:
    """Find tokens that break a request: an empty one makes an empty header, a pasted line end none at all."""
    found: list[VariableFlaw] = []
    for name in TOKENS:
        value = known.get(name)
        if value is not None and not value.strip():
            found.append(VariableFlaw(variable=name, flaw="empty"))
        elif value is not None and value != value.strip():
            found.append(VariableFlaw(variable=name, flaw="blanks"))
    return found


def _proxies(known: Mapping[str, str]) -> list[VariableFlaw]:
    """Find a proxy that would be asked for 127.0.0.1, too, and answer in the server's place."""
    spared = {_host(entry) for entry in known.get("NO_PROXY", "").split(",")}
    if spared.intersection(LOOPBACK):
        return []
    name = next((name for name in PROXIES if known.get(name)), None)
    return [VariableFlaw(variable=name, flaw="loopback_through_proxy")] if name else []


def _host(entry: str) -> str:
    text = entry.strip().strip("[]")
    return addresses.host_name(f"//{text}") or text if text.count(":") == 1 else text


def _folders(known: Mapping[str, str]) -> list[VariableFlaw]:
    """Find folders whose name is outside the code page; Slipway asks Windows itself for its folders."""
    broken = (name for name in FOLDERS if "?" in known.get(name, "") or "\ufffd" in known.get(name, ""))
    return [VariableFlaw(variable=name, flaw="undecodable") for name in broken]

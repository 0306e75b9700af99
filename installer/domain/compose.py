"""The compose file: rendered as data, never from text templates.

Every scalar is quoted where YAML could take it for something else, `$` is doubled against Compose's interpolation,
lines end in LF, and no secret is in it: the API key stands in an env file beside it.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import msgspec
import yaml

from installer.domain.addresses import HOST_IN_CONTAINER
from installer.domain.plan import Plan
from installer.domain.problems import BadChoice, InstallerError
from installer.domain.registry import Flag
from installer.domain.sources import FolderWeights, VolumeWeights

SERVICE = "server"
CONTAINER_CACHE = "/root/.cache"
LABEL_PREFIX = "app.slipway"
MEDIA_PROFILES_NEED = {"VLLM_MEDIA_URL_ALLOW_REDIRECTS": "0"}
SHARED_MEMORY = "8gb"
"""One card needs little, but PyTorch's 64 MB default ends in a bus error; `ipc: host` would give away more."""

START_PERIOD = "30m"
"""A first start compiles for up to half an hour; until then a failed health check does not count."""

HEADER = """\
# Written by Slipway, which shows the difference before it replaces a file that you changed.
# The API key is not in here: it stands in the env file beside this one.
"""

KEY_VARIABLE = "VLLM_API_KEY"
_KEY = re.compile(r"[\x21-\x26\x28-\x7e]{8,512}")


class ComposeFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file's name and text, and the name of the env file that it refers to."""

    name: str
    text: str
    env_name: str


def file_name(stack: str) -> str:
    """Return the name of a stack's compose file."""
    return "docker-compose.vllm.yml" if stack == "chat" else f"docker-compose.{stack}.yml"


def env_name(stack: str) -> str:
    """Return the name of the env file that holds a stack's key."""
    return "vllm.env" if stack == "chat" else f"{stack}.env"


def render(plan: Plan) -> ComposeFile:
    """Render a plan. The same plan gives the same bytes."""
    document = _document(plan)
    text = yaml.dump(
        _doubled(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000, line_break="\n"
    )
    return ComposeFile(name=file_name(plan.stack), text=HEADER + text, env_name=env_name(plan.stack))


def env_text(key: str) -> str:
    """Return the env file for an API key, single-quoted so that Compose takes it as it is.

    Raises InstallerError(BadChoice), without the key, for one that holds a quote, a space or a control character.
    """
    if not _KEY.fullmatch(key):
        raise InstallerError(BadChoice(field="api_key", value="…", limit="8..512 printable ASCII, no space, no '"))
    return f"{KEY_VARIABLE}='{key}'\n"


def key_from_env(text: str) -> str | None:
    """Return the key that `env_text` wrote, or None."""
    match = re.search(rf"^{KEY_VARIABLE}='([^'\n]+)'$", text, re.MULTILINE)
    return match.group(1) if match else None


def fingerprint(plan: Plan) -> str:
    """Return a short hash of what the container is made from; equal means that it need not be made anew.

    An image is the same whether it is named by its digest or by its tag.
    """
    by_digest = msgspec.structs.replace(plan, pinned=True)
    return hashlib.sha256(yaml.dump(_document(by_digest, with_fingerprint=False)).encode()).hexdigest()[:16]


def _document(plan: Plan, *, with_fingerprint: bool = True) -> dict[str, Any]:
    document: dict[str, Any] = {"name": plan.project, "services": {SERVICE: _service(plan)}}
    if with_fingerprint:
        document["services"][SERVICE]["labels"][f"{LABEL_PREFIX}.fingerprint"] = fingerprint(plan)
    volumes: dict[str, Any] = {"cache": {"labels": {f"{LABEL_PREFIX}.stack": plan.stack}}}
    if isinstance(plan.place, VolumeWeights):
        volumes["models"] = {"name": plan.place.volume, "external": True}
    return document | {"volumes": volumes}


def _service(plan: Plan) -> dict[str, Any]:
    service: dict[str, Any] = {
        "image": plan.image_reference,
        "pull_policy": "missing",
        "entrypoint": list(plan.entrypoint),
        "command": [plan.model_path, *_tokens(plan.arguments)],
        "ports": [f"127.0.0.1:{plan.port}:{plan.container_port}"],
        "environment": _environment(plan),
    }
    if plan.needs_key:
        service["env_file"] = [env_name(plan.stack)]
    if plan.settings.reads_media:
        service["extra_hosts"] = [f"{HOST_IN_CONTAINER}:host-gateway"]
    service["volumes"] = [_weights_mount(plan), {"type": "volume", "source": "cache", "target": CONTAINER_CACHE}]
    service |= {
        "shm_size": SHARED_MEMORY,
        "restart": "on-failure:3",
        "stop_grace_period": "60s",
        "security_opt": ["no-new-privileges:true"],
        "labels": _labels(plan),
    }
    if plan.health is not None:
        service["healthcheck"] = _health_check(plan, plan.health)
    if plan.gpu is not None:
        device = {"driver": "nvidia", "device_ids": [plan.gpu.uuid], "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return service


def _tokens(arguments: tuple[Flag, ...]) -> list[str]:
    """Return one list item per argument, as the program's argv will have it."""
    tokens: list[str] = []
    for argument in arguments:
        match argument.value:
            case True:
                tokens.append(argument.flag)
            case False:
                tokens.append("--no-" + argument.flag.removeprefix("--"))
            case dict() as value:
                tokens += [argument.flag, json.dumps(value, separators=(",", ":"), ensure_ascii=False)]
            case str() as value if argument.flag == "--cudagraph-capture-sizes":
                tokens += [argument.flag, *value.split()]
            case value:
                tokens += [argument.flag, str(value)]
    return tokens


def _environment(plan: Plan) -> dict[str, str]:
    always = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    media = MEDIA_PROFILES_NEED if plan.settings.reads_media else {}
    # On WSL2 the reservation by UUID may be passed over; CUDA itself keeps to this.
    card = {"CUDA_VISIBLE_DEVICES": plan.gpu.uuid} if plan.gpu else {}
    return {name: value for name, value in (always | media | card | plan.environment).items() if value != ""}


def _weights_mount(plan: Plan) -> dict[str, Any]:
    match plan.place:
        case FolderWeights(folder=folder):
            source = f"{folder.rstrip('/')}/{plan.weights.folder}"
            return {
                "type": "bind",
                "source": source,
                "target": plan.model_path,
                "read_only": True,
                "bind": {"create_host_path": False},
            }
        case VolumeWeights():
            return {"type": "volume", "source": "models", "target": "/models", "read_only": True}


def _labels(plan: Plan) -> dict[str, str]:
    return {
        f"{LABEL_PREFIX}.stack": plan.stack,
        f"{LABEL_PREFIX}.profile": plan.profile,
        f"{LABEL_PREFIX}.registry-revision": plan.registry_revision,
        f"{LABEL_PREFIX}.image-tag": plan.image.tag,
        f"{LABEL_PREFIX}.image-digest": plan.image.index_digest,
        f"{LABEL_PREFIX}.version": plan.slipway,
    }


def _health_check(plan: Plan, argv: tuple[str, ...]) -> dict[str, Any]:
    check: dict[str, Any] = {
        "test": ["CMD", *argv],
        "interval": "30s" if plan.knows_start_interval else "5s",
        "timeout": "5s",
        "retries": 3,
        "start_period": START_PERIOD,
    }
    if plan.knows_start_interval:
        check["start_interval"] = "2s"
    return check


def _doubled(value: Any) -> Any:
    """Double every `$`, which Compose would otherwise take for a variable."""
    match value:
        case str():
            return value.replace("$", "$$")
        case list():
            return [_doubled(item) for item in value]
        case dict():
            return {key: _doubled(item) for key, item in value.items()}
        case _:
            return value


class _Dumper(yaml.SafeDumper):
    """Quotes every string value, so that no YAML reader takes `on`, `1e3`, `12:30` or `null` for something else."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's own
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's own signature
        return True


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS_WITH_MEANING = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"}


def _represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) is not None and text.casefold() not in _WORDS_WITH_MEANING
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_str)

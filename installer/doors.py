"""The composition root of both front ends: which adapters stand behind the ports."""

from __future__ import annotations

import getpass
import locale
import os
import sys
from pathlib import Path

import msgspec
import platformdirs

from installer import resources
from installer.domain import pasted, pixels
from installer.domain import registry as registries
from installer.domain.decoding import ANSI
from installer.domain.facts import Facts, from_json
from installer.domain.pasted import Reading
from installer.domain.problems import FileUnreadable, InstallerError
from installer.domain.registry import Registry
from installer.steps import kept_registry
from installer.steps.home import Home
from installer.steps.job import Secrets
from installer.steps.kept_registry import InForce, Signed
from installer.steps.ports import Ports


def home(argument: str | None) -> Home:
    """Return the home: `--home`, then SLIPWAY_HOME, then the user's data folder."""
    named = argument or os.environ.get("SLIPWAY_HOME")
    return Home(Path(named).absolute() if named else Path(platformdirs.user_data_dir("slipway", appauthor=False)))


def registry(argument: str | None, home: Home) -> InForce:
    """Return the registry in a folder, or the fetched one until it expires, or the built-in one.

    Raises InstallerError(MalformedFile, FileUnreadable, RegistryRecalled).
    """
    if argument is not None:
        texts = registry_texts(argument)
        own = registries.parse({str(Path(argument, name)): text for name, text in texts.items()})
        return InForce(registry=_with_fingerprints(own))
    found = kept_registry.in_force(home, _built_in, now())
    return msgspec.structs.replace(found, registry=_with_fingerprints(found.registry))


def _built_in() -> Registry:
    return registries.parse(resources.registry_texts())


def _with_fingerprints(registry: Registry) -> Registry:
    """Give a registry that brings no table of known failures the one that comes with Slipway."""
    if registry.fingerprints:
        return registry
    return msgspec.structs.replace(registry, fingerprints=_built_in().fingerprints)


def registry_texts(argument: str | None) -> dict[str, str]:
    """Return the files of the registry in a folder, or of the built-in one, by their names inside it."""
    if argument is None:
        return resources.registry_texts()
    root = Path(argument)
    files = sorted(root.rglob("*.yaml"))
    if not files:
        raise InstallerError(FileUnreadable(path=argument, reason="no .yaml file"))
    return {file.relative_to(root).as_posix(): read_text(str(file)) for file in files}


def now() -> str:
    """Return the time as ISO 8601 in UTC."""
    from installer.adapters.clock import SystemClock

    return SystemClock().now()


def signed_registry(source: str, key_file: str) -> Signed:
    """Fetch a signed registry and check its signature. Raises the problems of `adapters.signed_registry`."""
    from installer.adapters import signed_registry as adapter

    return adapter.unpack(adapter.read(source), key_file, source)


def machine(path: str) -> Facts:
    """Return a recorded machine, by its file or by the name of one that comes with Slipway.

    Raises InstallerError(MalformedFile, FileUnreadable).
    """
    shipped = resources.recorded_machines().get(path)
    return from_json(read_text(str(shipped or path)), path)


def read_text(path: str) -> str:
    """Return a text file that a person named; `-` is standard input. Raises InstallerError(FileUnreadable)."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InstallerError(FileUnreadable(path=path, reason=f"not UTF-8 at byte {error.start}")) from error


def read_bytes(path: str) -> bytes:
    """Return a file that a person named, as it is; `-` is standard input. Raises InstallerError(FileUnreadable)."""
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InstallerError(FileUnreadable(path=path, reason=error.strerror or type(error).__name__)) from error


def diagnosed(data: bytes, name: str, registry: Registry) -> Reading:
    """Say what a paste, a file or a picture tells of a failure. Raises InstallerError(MalformedFile) for a torn one."""
    from installer.adapters.pictures import decoded

    picture = decoded(data, name)
    if picture is None:
        return pasted.read(data, registry.known_failures(), name=name, ansi=_code_page())
    flaw = pixels.flaw(pixels.measured(picture))
    return Reading(problems=(flaw,) if flaw else ())


def _code_page() -> str:
    """Return the code page of this system's older programs; the western one where the system itself speaks UTF-8."""
    named = locale.getencoding()
    return ANSI if named.casefold().replace("-", "") == "utf8" else named


def secrets(hf_token_file: str | None, api_key_file: str | None, *, ask_store: bool) -> Secrets:
    """Gather secrets from files, standard input, the environment and the OS store; empty ones are none.

    The store is slow to load and may ask the person to unlock it: not for a call that has no use for the token.
    """
    token = _read_secret("--hf-token-file", hf_token_file) if hf_token_file else os.environ.get("HF_TOKEN")
    if not token and ask_store:
        token = _stored_token()
    key = _read_secret("--api-key-file", api_key_file) if api_key_file else os.environ.get("SLIPWAY_API_KEY")
    return Secrets(api_key=(key or "").strip() or None, hf_token=(token or "").strip() or None)


def secret_in(flag: str, path: str | None) -> str | None:
    """Read a secret from the file that a flag names; an empty one, or no flag, is none. Raises FileUnreadable."""
    return (_read_secret(flag, path).strip() or None) if path else None


def _read_secret(flag: str, path: str) -> str:
    """Read a file with a secret. A name that is no path may be the secret itself: the flag is named in its place.

    What a person types at a terminal does not show there.
    """
    if path == "-" and sys.stdin.isatty():
        return getpass.getpass(f"{flag}: ")
    try:
        return read_text(path)
    except InstallerError as error:
        if isinstance(error.problem, FileUnreadable) and not set("/\\.") & set(path):
            raise InstallerError(FileUnreadable(path=flag, reason=error.problem.reason)) from None
        raise


def store_token(token: str) -> None:
    """Keep the Hugging Face token in the system's own store.

    Raises InstallerError(BadToken, BadChoice, NoTokenStore).
    """
    from installer.adapters import token_store

    token_store.keep(token)


def forget_token() -> bool:
    """Remove the token from the system's own store; say whether there was one. Raises InstallerError(NoTokenStore)."""
    from installer.adapters import token_store

    return token_store.forget()


def _stored_token() -> str | None:
    """Ask the system's store, where the optional package is installed and a store is there."""
    from installer.adapters import token_store

    return token_store.read()


def real(secrets: Secrets) -> Ports:
    """Return the doors to this machine."""
    from installer.adapters.autostart import SessionAutostart
    from installer.adapters.awake import SystemAwake
    from installer.adapters.clock import SystemClock
    from installer.adapters.engine import DockerEngine
    from installer.adapters.engine_endpoint import docker_client
    from installer.adapters.hub import DEFAULT_ENDPOINT, HuggingFaceHub
    from installer.adapters.machine import LocalMachine
    from installer.adapters.media import VideoFiles
    from installer.adapters.nvml import NvmlGpus
    from installer.adapters.oci import OciRegistry
    from installer.adapters.pictures import PictureFiles
    from installer.adapters.server import HttpServer
    from installer.adapters.sinks import Volumes
    from installer.adapters.stack import ComposeStack

    return Ports(
        gpus=NvmlGpus(),
        machine=LocalMachine(),
        engine=DockerEngine(),
        images=OciRegistry(mirror=os.environ.get("SLIPWAY_REGISTRY_MIRROR") or None),
        hub=HuggingFaceHub(
            os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT, secrets.hf_token, volumes=Volumes(client=docker_client)
        ),
        stack=ComposeStack(),
        server=HttpServer(),
        clock=SystemClock(),
        autostart=SessionAutostart(),
        awake=SystemAwake(),
        pictures=PictureFiles(),
        media=VideoFiles(),
    )


def dry_run(recorded: Facts, registry: Registry, speed: float, fail: str | None) -> Ports:
    """Return doors that lead nowhere: the same steps over a recorded machine."""
    from installer.adapters.dryrun import dry_run_ports

    return dry_run_ports(recorded, registry, speed=speed, fail=fail)


def dry_run_failures() -> tuple[str, ...]:
    """Return every failure that a dry run can be asked for, as STEP:KIND."""
    from installer.adapters.dryrun_failures import known

    return known()


def nvml_child() -> int:
    """Be the child that asks the graphics driver: a frozen Slipway has no other program to start for it."""
    from installer.adapters.nvml_child import main

    return main()

"""Messages of daemons, Compose and NVIDIA's hook become Problems by what does not change in them."""

from __future__ import annotations

import errno

import pytest
import requests
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from installer.adapters.engine_errors import Asked, problem_of, redacted, state_of
from installer.domain.facts import EngineState
from installer.domain.problems import (
    AnyProblem,
    CaptivePortal,
    CdiDeviceUnknown,
    ContainerNameTaken,
    DigestGone,
    DiskFull,
    DriverLibraryMismatch,
    DriverTooOld,
    EngineDown,
    EngineFailed,
    EngineLost,
    EngineNoPermission,
    GpuNotInContainer,
    ImageUnknown,
    NoAdapterInWsl,
    NoSuchPlatform,
    NvidiaToolkitMissing,
    PortTaken,
    RateLimited,
    RegistryDenied,
    ServerError,
    TlsNotTrusted,
    Truncated,
    Unreachable,
    WrongContent,
    WslIntegrationOff,
)
from installer.domain.sources import ImageSource

DIGEST = "sha256:" + "a" * 64
IMAGE = ImageSource(
    repository="vllm/vllm-openai",
    tag="v0.33.0",
    index_digest=DIGEST,
    platform_digest=DIGEST,
    platform="linux/arm64",
    layers=(),
)
PULL = Asked(operation="pull", image=IMAGE)
UP = Asked(operation="up")
NAME = "vllm/vllm-openai:v0.33.0"
HUB = "registry-1.docker.io"
OCI = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: error during container init: error running prestart hook #0: exit status 1, "
    "stdout: , stderr: Auto-detected mode as 'legacy'\n"
)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (
            f"manifest for vllm/vllm-openai@{DIGEST} not found: manifest unknown: manifest unknown",
            DigestGone(image="vllm/vllm-openai", digest=DIGEST, tag="v0.33.0"),
        ),
        (
            f'failed to resolve reference "docker.io/x/y@{DIGEST}": docker.io/x/y@{DIGEST}: not found',
            DigestGone(image="vllm/vllm-openai", digest=DIGEST, tag="v0.33.0"),
        ),
        ("name unknown: repository name not known to registry", ImageUnknown(image=NAME)),
        (
            (
                "pull access denied for x/y, repository does not exist or may require 'docker login': denied: "
                "requested access to the resource is denied"
            ),
            RegistryDenied(image=NAME),
        ),
        ('Head "https://ghcr.io/v2/x/manifests/1": unauthorized: authentication required', RegistryDenied(image=NAME)),
        ("toomanyrequests: You have reached your pull rate limit.", RateLimited(host=HUB)),
        (
            'Get "https://ghcr.io/v2/x/blobs/y": unexpected status: 429 Too Many Requests, retry-after: 37s',
            RateLimited(host="ghcr.io", retry_after_s=37),
        ),
        (
            'Get "https://registry-1.docker.io/v2/": x509: certificate signed by unknown authority',
            TlsNotTrusted(host=HUB, by_engine=True),
        ),
        (
            'Get "https://ghcr.io/v2/": tls: failed to verify certificate: x509: certificate has expired',
            TlsNotTrusted(host="ghcr.io", by_engine=True),
        ),
        (
            "no matching manifest for linux/arm64/v8 in the manifest list entries: no match for platform: not found",
            NoSuchPlatform(image=NAME, platform="linux/arm64", platforms=()),
        ),
        ("received unexpected HTTP status: 503 Service Unavailable", ServerError(host=HUB, status=503)),
        (
            "filesystem layer verification failed for digest sha256:beef",
            WrongContent(file=NAME, expected="sha256:beef", got=""),
        ),
        (
            "short read: expected 520 bytes but got 12: unexpected EOF",
            Truncated(file=NAME, expected_bytes=520, got_bytes=12),
        ),
        (
            "error parsing HTTP 200 response body: invalid character '<' looking for beginning of value: \"<html>\"",
            CaptivePortal(url=HUB),
        ),
    ],
)
def test_what_a_pull_says(message: str, problem: AnyProblem) -> None:
    assert problem_of(message, PULL) == problem


@pytest.mark.parametrize(
    ("message", "host"),
    [
        (
            'Get "https://auth.docker.io/token?s=x": dial tcp: lookup auth.docker.io: no such host',
            "auth.docker.io",
        ),
        ('Get "https://registry-1.docker.io/v2/": net/http: TLS handshake timeout', HUB),
        (
            'Get "https://registry-1.docker.io/v2/": proxyconnect tcp: dial tcp 10.0.0.1:3128: i/o timeout',
            "10.0.0.1:3128",
        ),
        ('Get "http://127.0.0.1:5000/v2/": dial tcp 127.0.0.1:5000: connect: connection refused', "127.0.0.1:5000"),
        ("net/http: request canceled (Client.Timeout exceeded while awaiting headers)", HUB),
    ],
)
def test_a_registry_that_cannot_be_reached_is_named(message: str, host: str) -> None:
    problem = problem_of(message, PULL)
    assert isinstance(problem, Unreachable)
    assert problem.host == host


@pytest.mark.parametrize(
    ("message", "where"),
    [
        (
            (
                'failed to extract layer (application/vnd.oci.image.layer sha256:00) to overlayfs as "extract-1": '
                "write /var/lib/desktop-containerd/fs/x: no space left on device"
            ),
            "/var/lib/desktop-containerd/fs/x",
        ),
        ("failed to register layer: no space left on device", ""),
    ],
)
def test_a_full_disk_is_the_engines_own(message: str, where: str) -> None:
    assert problem_of(message, PULL) == DiskFull(where=where, needed_bytes=None, free_bytes=None, engine=True)


@pytest.mark.parametrize(
    "message",
    [
        (
            "driver failed programming connectivity on endpoint vllm (0f): Bind for 0.0.0.0:8000 failed: port is "
            "already allocated"
        ),
        (
            "driver failed programming connectivity on endpoint vllm (0f): Error starting userland proxy: listen tcp4 "
            "127.0.0.1:8000: bind: address already in use"
        ),
        (
            "driver failed programming connectivity on endpoint vllm (0f): failed "
            "to bind host port for 127.0.0.1:8000:172.18.0.2:8001/tcp: address already in use"
        ),
        (
            "Ports are not available: exposing port TCP 127.0.0.1:8000 -> 0.0.0.0:0: listen tcp: bind: Der "
            "Zugriff auf einen Socket war aufgrund der Zugriffsrechte des Sockets unzulässig. (10013)"
        ),
        "failed to bind host port [::1]:8000/tcp: address already in use",
    ],
)
def test_a_port_that_is_taken_is_named(message: str) -> None:
    assert problem_of(message, UP) == PortTaken(port=8000)


@pytest.mark.parametrize(
    "message",
    [
        'could not select device driver "nvidia" with capabilities: [[gpu]]',
        'could not select device driver "" with capabilities: [[gpu]]',
        "AMD CDI spec not found",
        "unknown or invalid runtime name: nvidia",
    ],
)
def test_an_engine_without_nvidias_toolkit(message: str) -> None:
    assert problem_of(message, UP) == NvidiaToolkitMissing(runtimes=())


def test_what_nvidias_hook_says() -> None:
    asked = Asked(operation="up", image=IMAGE, gpu="GPU-1")
    old = OCI + "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update your driver"
    assert problem_of(old, asked) == DriverTooOld(driver="", driver_cuda="", image=NAME, image_cuda="13.0")
    wsl = (
        OCI + "nvidia-container-cli: initialization error: WSL environment detected but no adapters were found: unknown"
    )
    seen = problem_of(wsl, asked)
    assert isinstance(seen, NoAdapterInWsl)
    assert "no adapters" in seen.detail
    other = problem_of(OCI + "nvidia-container-cli: mount error: failed to add device rules", asked)
    assert isinstance(other, GpuNotInContainer)
    assert (other.gpu, "device rules" in other.detail) == ("GPU-1", True)
    cdi = "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all"
    assert problem_of(cdi, asked) == CdiDeviceUnknown(device="nvidia.com/gpu=all")
    mixed = OCI + "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown"
    assert isinstance(problem_of(mixed, asked), DriverLibraryMismatch)


def test_a_name_that_somebody_else_has() -> None:
    message = 'Conflict. The container name "/slipway-chat" is already in use by container "00". You have to remove it'
    assert problem_of(message, UP) == ContainerNameTaken(name="slipway-chat")


def test_an_engine_that_cannot_be_asked() -> None:
    down = "Cannot connect to the Docker daemon at unix:///run/user/7/docker.sock. Is the docker daemon running?"
    seen = problem_of(down, UP)
    assert isinstance(seen, EngineDown)
    assert seen.endpoint == "unix:///run/user/7/docker.sock"
    windows = "open //./pipe/dockerDesktopLinuxEngine: Das System kann die angegebene Datei nicht finden."
    assert isinstance(problem_of(f"error during connect: Get http://x/v1.51/version: {windows}", UP), EngineDown)
    wsl = "The command 'docker' could not be found in this WSL 2 distro."
    assert isinstance(problem_of(wsl, UP), WslIntegrationOff)
    refused = (
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial"
    )
    assert problem_of(refused, UP) == EngineNoPermission(endpoint="unix:///var/run/docker.sock")
    lost = "error during connect: Post http://%2Frun%2Fx.sock/v1.51/containers/0/start: EOF"
    assert isinstance(problem_of(lost, UP), EngineLost)


@given(st.text())
def test_any_text_at_all_is_a_problem(message: str) -> None:
    for asked in (PULL, UP):
        assert problem_of(message, asked).kind


def test_what_no_rule_knows_keeps_its_words_on_one_line() -> None:
    assert problem_of("the cat\n  sat on it", UP) == EngineFailed(operation="up", detail="the cat sat on it")


SECRET = "s3cr3tValue99"


@pytest.mark.parametrize(
    "text",
    [
        "token hf_abcDEF123456",
        "Authorization: Bearer s3cr3tValue99",
        f"VLLM_API_KEY={SECRET}",
        f"HF_TOKEN: '{SECRET}'",
        f'unexpected character near "HF_TOKEN={SECRET}"',
        f'{{"password": "{SECRET}"}}',
        f"https://user:{SECRET}@host/v2/",
        f'Get "https://cdn.example/blob?X-Amz-Signature={SECRET}": EOF',
        f"WEBUI_SECRET_KEY = {SECRET}",
    ],
)
def test_no_secret_stays_in_a_message(text: str) -> None:
    for shown in (redacted(text), str(problem_of(text, UP)), str(problem_of(text, PULL))):
        assert SECRET not in shown
        assert "abcDEF123456" not in shown


def test_ordinary_words_are_not_taken_for_secrets() -> None:
    line = 'service "vllm" refers to undefined volume models: invalid compose project'
    assert redacted(line) == line
    assert "127.0.0.1:8000" in redacted("listen tcp 127.0.0.1:8000: bind: address already in use")


class WindowsError2(Exception):
    """As pywintypes.error: its own class, a number, a text in the system's language."""

    winerror = 2


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (PermissionError(errno.EACCES, "Keine Berechtigung"), EngineState.NO_PERMISSION),
        (FileNotFoundError(errno.ENOENT, "Datei oder Verzeichnis nicht gefunden"), EngineState.DOWN),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Verbindungsaufbau abgelehnt"), EngineState.DOWN),
        (WindowsError2("Das System kann die angegebene Datei nicht finden."), EngineState.DOWN),
        (requests.ReadTimeout(), EngineState.TIMED_OUT),
        (TimeoutError(), EngineState.TIMED_OUT),
        (ValueError("anything"), EngineState.FAILED),
    ],
)
def test_the_state_comes_from_numbers_however_deep_they_lie(error: Exception, state: EngineState) -> None:
    wrapped = requests.ConnectionError(urllib3.exceptions.ProtocolError("Connection aborted.", error))
    assert state_of(error) is state
    assert state_of(wrapped) is state

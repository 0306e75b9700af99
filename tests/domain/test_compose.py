"""The compose file: what a person and Docker read must be what the plan says, whatever the values are."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from installer.domain import compose
from installer.domain.choices import Choices
from installer.domain.problems import InstallerError
from installer.domain.registry import Flag
from installer.domain.sources import FolderWeights
from tests.builders import planned
from tools.compose_examples import EXAMPLES, FOLDER, rendered


def service_of(text: str) -> dict:
    return yaml.safe_load(text)["services"]["server"]


def undoubled(value):
    """What Compose makes of a value: `$$` is a `$`; any other `$` would be a variable."""
    assert "$" not in value.replace("$$", "")
    return value.replace("$$", "$")


def test_a_pinned_plan_names_the_index_digest_and_never_the_tag():
    plan = planned()
    service = service_of(compose.render(plan).text)
    assert service["image"] == f"vllm/vllm-openai@{plan.image.index_digest}"


def test_a_plan_without_a_pin_names_the_tag_and_keeps_the_digest_as_a_label():
    plan = planned(choices=Choices(folder="/m", docker_image_pin_digest=""))
    service = service_of(compose.render(plan).text)
    assert service["image"] == "vllm/vllm-openai:v0.33.0"
    assert service["labels"]["app.slipway.image-digest"] == plan.image.index_digest


def test_it_listens_on_loopback_only_and_takes_the_card_by_uuid():
    plan = planned()
    service = service_of(compose.render(plan).text)
    assert service["ports"] == [f"127.0.0.1:{plan.port}:8000"]
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "device_ids": [plan.gpu.uuid], "capabilities": ["gpu"]}
    assert all(isinstance(uuid, str) for uuid in device["device_ids"])


def test_the_command_is_the_profile_s_with_one_argument_per_item():
    plan = planned()
    command = service_of(compose.render(plan).text)["command"]
    assert command[0] == plan.model_path
    assert all(isinstance(item, str) for item in command)
    at = command.index("--max-model-len")
    assert command[at + 1] == "65536"
    assert command[command.index("--kv-cache-dtype") + 1] == "fp8"
    assert json.loads(command[command.index("--limit-mm-per-prompt") + 1]) == {"image": 4, "video": 1}


def test_the_first_source_document_s_profile_has_its_exact_flags():
    command = service_of(compose.render(planned("rtx-5090-wsl2", "qwen3.6-27b-nvfp4-spike")).text)["command"]
    text = " ".join(command)
    for expected in (
        "--max-model-len 16384",
        "--gpu-memory-utilization 0.94",
        "--max-num-seqs 2",
        "--max-num-batched-tokens 2048",
        "--cpu-offload-gb 4",
        "--enforce-eager",
        "--reasoning-parser qwen3",
        "--trust-remote-code",
        '--media-io-kwargs {"video":{"num_frames":-1}}',
    ):
        assert expected in text


def test_no_container_name_no_host_ipc_no_always_restart_and_no_new_privileges():
    document = yaml.safe_load(compose.render(planned()).text)
    service = document["services"]["server"]
    assert document["name"] == "slipway-chat"
    assert "container_name" not in service
    assert "ipc" not in service
    assert service["restart"] == "on-failure:3"
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["shm_size"] == "8gb"


def test_start_interval_only_where_the_engine_knows_it():
    plan = planned()
    new = service_of(compose.render(msgspec.structs.replace(plan, knows_start_interval=True)).text)
    old = service_of(compose.render(msgspec.structs.replace(plan, knows_start_interval=False)).text)
    assert "start_interval" in new["healthcheck"]
    assert "start_interval" not in old["healthcheck"]


def test_an_image_without_a_health_program_gets_no_health_check():
    plan = msgspec.structs.replace(planned(), health=None)
    assert "healthcheck" not in service_of(compose.render(plan).text)


def test_docker_desktop_reads_weights_from_a_volume_and_linux_from_a_read_only_folder():
    linux = service_of(compose.render(planned()).text)["volumes"][0]
    assert (linux["type"], linux["read_only"]) == ("bind", True)
    desktop = service_of(compose.render(planned("rtx-5090-wsl2")).text)["volumes"][0]
    assert (desktop["type"], desktop["read_only"]) == ("volume", True)


def test_wsl2_gets_whole_segments_and_linux_does_not():
    assert "PYTORCH_CUDA_ALLOC_CONF" in service_of(compose.render(planned("rtx-5090-wsl2")).text)["environment"]
    assert "PYTORCH_CUDA_ALLOC_CONF" not in service_of(compose.render(planned()).text)["environment"]


def test_empty_variables_are_left_out():
    plan = msgspec.structs.replace(planned(), environment={"HF_TOKEN": "", "KEPT": "1"})
    environment = service_of(compose.render(plan).text)["environment"]
    assert "HF_TOKEN" not in environment
    assert environment["KEPT"] == "1"


def test_the_bytes_are_lf_utf8_without_bom_and_the_same_each_time():
    data = compose.render(planned()).text.encode()
    assert b"\r" not in data
    assert not data.startswith(b"\xef\xbb\xbf")
    assert data == compose.render(planned()).text.encode()


NASTY = st.one_of(
    st.sampled_from(
        ["on", "null", "~", "1e3", "12:30", "0x1F", "010", "$HOME", "${A:-b}", "$$", "#c", "- a", "a: b", "é ü"]
    ),
    st.text(
        st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\x85\u2028\u2029\ufeff"), max_size=40
    ),
)


@given(NASTY, st.dictionaries(st.text("abc", min_size=1, max_size=3), NASTY, max_size=3))
def test_whatever_a_flag_s_value_is_the_program_gets_it_unchanged(value: str, mapping: dict[str, str]):
    flags = (Flag(flag="--text", value=value, reason="r"), Flag(flag="--json", value=mapping, reason="r"))
    plan = msgspec.structs.replace(planned(), flags=flags, environment={"VALUE": value})
    service = service_of(compose.render(plan).text)
    command = service["command"]
    assert all(isinstance(item, str) for item in command)
    assert undoubled(command[command.index("--text") + 1]) == value
    assert json.loads(undoubled(command[command.index("--json") + 1])) == mapping
    if value:
        assert undoubled(service["environment"]["VALUE"]) == value


@given(st.text("äöü ÄÖÜß'\"$:#abc", min_size=1, max_size=30))
def test_any_folder_name_survives(name: str):
    plan = msgspec.structs.replace(planned(), place=FolderWeights(folder=f"/home/{name}/models"))
    mount = service_of(compose.render(plan).text)["volumes"][0]
    assert undoubled(mount["source"]) == f"/home/{name}/models/{plan.weights.folder}"


def test_a_changed_setting_changes_the_fingerprint_and_the_same_plan_keeps_it():
    plan = planned()
    other = msgspec.structs.replace(plan, settings=msgspec.structs.replace(plan.settings, context=4096))
    assert compose.fingerprint(plan) == compose.fingerprint(planned())
    assert compose.fingerprint(plan) != compose.fingerprint(other)


class TestKey:
    def test_a_key_is_written_single_quoted_and_read_back(self):
        for key in ("abcdefgh", "A$B{c}d#e", 'with"double'):
            assert compose.key_from_env(compose.env_text(key)) == key

    @pytest.mark.parametrize("key", ["", "short", "with space in it", "quote'inside1", "line\nbreak12", "umlautä123"])
    def test_a_key_that_an_env_file_cannot_hold_is_refused_without_repeating_it(self, key: str):
        with pytest.raises(InstallerError) as caught:
            compose.env_text(key)
        assert caught.value.problem.kind == "bad_choice"
        assert not key or key not in str(msgspec.to_builtins(caught.value.problem))

    def test_no_key_and_no_token_is_in_the_compose_file(self):
        text = compose.render(planned()).text
        assert not re.search(r"VLLM_API_KEY|HF_TOKEN", text)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_golden_files_are_what_is_rendered_today(name: str):
    assert (FOLDER / name).read_text("utf-8") == rendered(name), "run tools/compose_examples.py and read the diff"

"""Which files of a repository are fetched, and which names are refused."""

from __future__ import annotations

import pytest

from installer.adapters.hub_files import needed
from installer.adapters.store import UnsafeName, safe_parts


def test_a_checkpoint_with_its_tokenizer_and_without_its_other_formats() -> None:
    wanted = {
        "config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
        "model.safetensors.index.json", "tokenizer.json", "merges.txt", "tokenizer.model", "chat_template.jinja",
        "configuration_custom.py", "qwen.tiktoken",
    }  # fmt: skip
    besides = {
        ".gitattributes", "README.md", "pytorch_model.bin", "model.gguf", "onnx/model.onnx", "onnx/config.json",
        "original/params.json", "original/consolidated.00.pth", "metal/model.bin", "assets/qr.png", "tf_model.h5",
        "flax_model.msgpack", "LICENSE",
    }  # fmt: skip
    assert set(needed(wanted | besides)) == wanted


def test_mistrals_own_copy_is_left_out_beside_another() -> None:
    own = {"consolidated.safetensors", "consolidated.safetensors.index.json"}
    other = {"model-00001-of-00001.safetensors", "model.safetensors.index.json"}
    shared = {"params.json", "tekken.json", "config.json"}
    assert set(needed(own | other | shared)) == other | shared


def test_mistrals_own_copy_is_fetched_where_it_is_the_only_one() -> None:
    files = {"consolidated.safetensors", "params.json", "tekken.json"}
    assert set(needed(files)) == files


def test_a_pipeline_is_fetched_by_its_parts_and_not_once_more_as_a_single_file() -> None:
    parts = {
        "model_index.json", "transformer/diffusion_pytorch_model-00001-of-00002.safetensors", "vae/config.json",
        "tokenizer/vocab.json", "scheduler/scheduler_config.json",
    }  # fmt: skip
    assert set(needed(parts | {"flux1-dev.safetensors"})) == parts


@pytest.mark.parametrize(
    "name",
    [
        "../up.json", "a/../../up.json", "/etc/passwd.json", "a//b.json", "./a.json", "", "a/", "a\\b.json",
        "C:/a.json", "a:stream.json", "line\nbreak.json", "nul\0.json", "..",
    ],
)  # fmt: skip
def test_names_that_could_leave_the_folder_are_refused(name: str) -> None:
    with pytest.raises(UnsafeName):
        safe_parts(name)


def test_ordinary_names_are_taken() -> None:
    assert safe_parts("text_encoder/model-00001-of-00002.safetensors") == [
        "text_encoder",
        "model-00001-of-00002.safetensors",
    ]

"""Answers files: each bad one says where and why, and holds nothing secret."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from installer.domain import choices
from installer.domain.choices import Choices
from installer.domain.problems import BadChoice, InstallerError, MalformedFile


def test_json_and_yaml_answers_are_the_same():
    expected = Choices(profile="p", context=4096, accept_licenses=("qwen",))
    assert choices.from_text('{"profile": "p", "context": 4096, "accept_licenses": ["qwen"]}', "a.json") == expected
    assert choices.from_text("profile: p\ncontext: 4096\naccept_licenses: [qwen]\n", "a.yaml") == expected


def test_an_empty_file_leaves_every_decision_to_slipway():
    assert choices.from_text("", "a.yaml") == Choices()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("{", "line 2, column 1"),
        ("[1, 2]", "$"),
        ("profile: [1]", "$.profile"),
        ("contxt: 4096", "$"),
        ("port: '8000'", "$.port"),
        ("accept_licenses: [1]", "$.accept_licenses[0]"),
        ("stack: video", "$.stack"),
        ("api_key: secret", "$"),
        ("hf_token: hf_secret", "$"),
        ("a: b: c", "line 1, column 5"),
    ],
)
def test_a_malformed_file_is_named_with_place_and_reason(text: str, where: str):
    with pytest.raises(InstallerError) as caught:
        choices.from_text(text, "answers.yaml")
    problem = caught.value.problem
    assert isinstance(problem, MalformedFile)
    assert (problem.path, problem.exit_code) == ("answers.yaml", 2)
    assert problem.where == where
    assert problem.reason


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("port", 80),
        ("port", 70000),
        ("context", 0),
        ("references", 5),
        ("vram_budget_gib", 0),
        ("gpu_uuid", "0"),
        ("docker_image_pin_digest", "latest"),
        ("docker_image_pin_digest", "sha256:abc"),
        ("docker_image_pin_digest", "sha256:" + "g" * 64),
    ],
)
def test_a_value_outside_its_limits_is_refused_with_them(field: str, value: object):
    with pytest.raises(InstallerError) as caught:
        choices.check(msgspec.structs.replace(Choices(), **{field: value}))
    problem = caught.value.problem
    assert isinstance(problem, BadChoice)
    assert (problem.field, problem.value) == (field, str(value))
    assert problem.limit


@given(st.binary(max_size=200))
def test_any_bytes_give_choices_or_a_problem(data: bytes):
    with contextlib.suppress(InstallerError):
        assert isinstance(choices.from_text(data, "x"), Choices)


def test_choices_hold_no_secret():
    names = {field.name for field in msgspec.structs.fields(Choices)}
    assert not {name for name in names if "token" in name or "key" in name or "secret" in name}

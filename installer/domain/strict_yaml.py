"""YAML as we write it: one mapping per file, whose keys are texts that stand once."""

from __future__ import annotations

from typing import Any

import yaml

from installer.domain.problems import InstallerError, MalformedFile


def mapping(path: str, text: str) -> dict[str, Any]:
    """Read one file. Raises InstallerError(MalformedFile) with line and column where YAML tells them."""
    try:
        value = yaml.load(text, Loader=_StrictKeys)  # noqa: S506 - a SafeLoader that is strict about keys
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "$"
        raise InstallerError(MalformedFile(path=path, where=where, reason=error.problem or "not YAML")) from error
    except yaml.YAMLError as error:
        raise InstallerError(MalformedFile(path=path, where="$", reason=str(error).splitlines()[0])) from error
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        # PyYAML's constructors let these through: a date that no calendar has, `!!bool perhaps`, endless nesting.
        raise InstallerError(MalformedFile(path=path, where="$", reason=f"not YAML: {error}")) from error
    if not isinstance(value, dict):
        raise InstallerError(MalformedFile(path=path, where="$", reason="expected a mapping with names as keys"))
    return value


_TAGS_OF_KEYS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's loader over libyaml where its wheel has that: 0.04 s for the whole registry in place of 0.4 s."""


class _StrictKeys(_Loader):  # type: ignore[misc]
    """YAML lets a key stand twice, and be a number; in a registry either is a mistake."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(getattr(key_node, "value", ""))
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag not in _TAGS_OF_KEYS:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key} is no text without quotes", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping

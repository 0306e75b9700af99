"""YAML as people write it for us: keys are texts that stand once, and no value of the file is in an error's words."""

from __future__ import annotations

import re
from typing import Any

import yaml

from installer.domain.problems import InstallerError, MalformedFile


def mapping(path: str, text: str) -> dict[str, Any]:
    """Read a file that is one mapping. Raises InstallerError(MalformedFile) as `value` does."""
    found = value(path, text)
    if not isinstance(found, dict):
        raise InstallerError(MalformedFile(path=path, where="$", reason="expected a mapping with names as keys"))
    return found


def value(path: str, text: str | bytes) -> Any:
    """Read a file, None where it is empty.

    Raises InstallerError(MalformedFile) with line and column where YAML tells them. The line itself is not shown, nor
    what stands there: it may be a secret that somebody put into the wrong file.
    """
    try:
        return yaml.load(text, Loader=_StrictKeys)  # noqa: S506 - a SafeLoader that is strict about keys
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "$"
        reason = error.problem if isinstance(error, _BadKey) else _QUOTED.sub("…", error.problem or "not YAML")
        raise InstallerError(MalformedFile(path=path, where=where, reason=f"{reason}")) from error
    except yaml.YAMLError as error:
        raise InstallerError(MalformedFile(path=path, where="$", reason=str(error).splitlines()[0])) from error
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        # PyYAML's constructors let these through: a date that no calendar has, `!!bool perhaps`, endless nesting.
        reason = f"not YAML: a value that is none ({type(error).__name__})"
        raise InstallerError(MalformedFile(path=path, where="$", reason=reason)) from error


_QUOTED = re.compile(r"'[^' ]{4,}'|\"[^\" ]{4,}\"")
"""What a parser quotes of a file; shorter are the signs that it expected."""

_TAGS_OF_KEYS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


class _BadKey(yaml.constructor.ConstructorError):
    """A key that is no text, or that stands twice."""


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's loader over libyaml where its wheel has that: 0.04 s for the whole registry in place of 0.4 s."""


class _StrictKeys(_Loader):  # type: ignore[misc]
    """YAML lets a key stand twice, and be a number; in a registry either is a mistake."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(getattr(key_node, "value", ""))
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag not in _TAGS_OF_KEYS:
                raise _BadKey(None, None, f"the key {key} is no text without quotes", key_node.start_mark)
            if key in seen:
                raise _BadKey(None, None, f"the key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping

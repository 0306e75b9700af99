"""Write which arguments `vllm serve` knows: one file per release under `installer/registry/flags`.

Usage: `python tools/flags.py 0.33.0 0.32.0`; with `--check` nothing is written, and a list that differs is an error.
Without a release all those that are there already are meant. Only pip fetches (the release's wheel, into a folder that
is deleted again), and the source inside is read, never run: an AST walk over the two places that build the parser.

- the engine's arguments: `add_argument("--x", "-x", **kwargs["field"])` in `vllm/engine/arg_utils.py`;
- the frontend's: one per field of `FrontendArgs` and its bases, in the file that defines `make_arg_parser`.

A boolean field has a `--no-x` twin, as `get_kwargs` hands it to `argparse.BooleanOptionalAction`.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

FLAGS_FOLDER = Path(__file__).resolve().parent.parent / "installer" / "registry" / "flags"
ENGINE_ARGUMENTS = "vllm/engine/arg_utils.py"
FRONTEND_ARGUMENTS = (
    "vllm/entrypoints/launchers/cli_args.py",
    "vllm/entrypoints/common/cli_args.py",
    "vllm/entrypoints/openai/cli_args.py",
)
PARSER_SOURCE = "vllm/utils/argparse_utils.py"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_31_x86_64", "manylinux_2_34_x86_64", "manylinux1_x86_64")

Fields = dict[str, str]
"""A config class's fields with their annotations as text."""


def main() -> int:
    """Write (or check) the list of every release named on the command line."""
    parser = argparse.ArgumentParser(description="List the arguments of vllm serve, release by release.")
    parser.add_argument("releases", nargs="*", metavar="RELEASE")
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a list would change")
    arguments = parser.parse_args()
    stale = 0
    for release in arguments.releases or sorted(path.stem for path in FLAGS_FOLDER.glob("*.yaml")):
        flags = flags_of(modules_of(release))
        target, text = FLAGS_FOLDER / f"{release}.yaml", as_yaml(release, flags)
        same = target.exists() and target.read_text("utf-8") == text
        stale += not same
        print(f"{target.name}: {len(flags)}{'' if same else ', stale' if arguments.check else ', written'}")
        if not same and not arguments.check:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
    return 1 if arguments.check and stale else 0


def modules_of(release: str) -> dict[str, ast.Module]:
    """Fetch a release's wheel and parse its Python files. Raises CalledProcessError where pip finds none."""
    with tempfile.TemporaryDirectory() as folder:
        only_the_wheel = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet", "--dest", folder]
        platforms = [f"--platform={name}" for name in PLATFORMS]
        subprocess.run(
            [sys.executable, "-m", "pip", "download", *only_the_wheel, *platforms, f"vllm=={release}"], check=True
        )
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            wanted = (name for name in archive.namelist() if _is_read(name))
            return {name: ast.parse(archive.read(name)) for name in wanted}


def _is_read(name: str) -> bool:
    named = name in (ENGINE_ARGUMENTS, PARSER_SOURCE, *FRONTEND_ARGUMENTS)
    return named or (name.startswith("vllm/config/") and name.endswith(".py"))


def flags_of(modules: dict[str, ast.Module]) -> list[str]:
    """Return every argument of the parser that the modules build, sorted."""
    frontend = next(modules[name] for name in FRONTEND_ARGUMENTS if name in modules)
    configs = {
        node.name: node
        for name, module in modules.items()
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef) and name != ENGINE_ARGUMENTS
    }
    engine = modules[ENGINE_ARGUMENTS]
    engine_flags = _engine_flags(engine, configs)
    frontend_flags = _frontend_flags(frontend, configs)
    missing = {"--model", "--max-model-len", "--port", "--reasoning-parser"} - engine_flags - frontend_flags
    if missing:
        raise ValueError(f"vLLM builds its parser in a way this script does not know: {sorted(missing)} not found")
    return sorted(engine_flags | frontend_flags | _optimisation_shorthand(modules))


def as_yaml(release: str, flags: Iterable[str]) -> str:
    """Return the registry file for a release."""
    lines = "".join(f'    - "{flag}"\n' for flag in flags)
    return f'# Written by tools/flags.py from the source of vllm {release}.\nflags:\n  "{release}":\n{lines}'


def _engine_flags(engine: ast.Module, configs: dict[str, ast.ClassDef]) -> set[str]:
    found: set[str] = set()
    for name in ("EngineArgs", "AsyncEngineArgs"):
        (owner,) = (node for node in engine.body if isinstance(node, ast.ClassDef) and node.name == name)
        found |= _added_arguments(owner, configs)
    return found


def _frontend_flags(frontend: ast.Module, configs: dict[str, ast.ClassDef]) -> set[str]:
    (builder,) = (
        node for node in frontend.body if isinstance(node, ast.FunctionDef) and node.name == "make_arg_parser"
    )
    found = _added_arguments(builder, configs)
    for field, annotation in _fields("FrontendArgs", configs).items():
        found |= _with_negation(f"--{field.replace('_', '-')}", negated=_is_switch(annotation))
    return found


def _added_arguments(owner: ast.AST, configs: dict[str, ast.ClassDef]) -> set[str]:
    """Return the option strings of every `add_argument` call inside a class or function."""
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(owner)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    found: set[str] = set()
    for call in ast.walk(owner):
        if not (isinstance(call, ast.Call) and _called(call) == "add_argument"):
            continue
        annotations = (_fields(name, configs).get(field, "") for name, field in _unpacked_fields(call, assigned))
        negated = _is_boolean_action(call) or any(map(_is_switch, annotations))
        for option in map(_text, call.args):
            if option.startswith("-"):
                found |= _with_negation(option, negated=negated)
    return found


def _unpacked_fields(call: ast.Call, assigned: dict[str, ast.expr]) -> Iterator[tuple[str, str]]:
    """Yield class and field of every `**kwargs["field"]`, where `kwargs` was assigned `get_kwargs(Class)`."""
    for keyword in call.keywords:
        if keyword.arg is not None:
            continue
        for node in ast.walk(_resolved(keyword.value, assigned)):
            if not isinstance(node, ast.Subscript):
                continue
            holder = _resolved(node.value, assigned)
            if isinstance(holder, ast.Call) and _called(holder) == "get_kwargs":
                yield ast.unparse(holder.args[0]), _text(node.slice)


def _resolved(node: ast.expr, assigned: dict[str, ast.expr]) -> ast.expr:
    return assigned.get(node.id, node) if isinstance(node, ast.Name) else node


def _fields(name: str, configs: dict[str, ast.ClassDef]) -> Fields:
    """Return a class's fields, those of its bases first."""
    node = configs.get(name)
    if node is None:
        return {}
    fields: Fields = {}
    for base in node.bases:
        fields |= _fields(ast.unparse(base), configs)
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            annotation = ast.unparse(statement.annotation)
            if not annotation.startswith(("ClassVar", "InitVar")):
                fields[statement.target.id] = annotation
    return fields


def _is_switch(annotation: str) -> bool:
    """Say whether a field becomes a switch: it may be a bool, and is not one with an optional value."""
    parts = {part.strip() for part in annotation.split("|")}
    return "bool" in parts and parts != {"bool", "str", "None"}


def _is_boolean_action(call: ast.Call) -> bool:
    return any(
        keyword.arg == "action" and ast.unparse(keyword.value).endswith("BooleanOptionalAction")
        for keyword in call.keywords
    )


def _with_negation(option: str, *, negated: bool) -> set[str]:
    if negated and option.startswith("--"):
        return {option, "--no-" + option.removeprefix("--")}
    return {option}


def _optimisation_shorthand(modules: dict[str, ast.Module]) -> set[str]:
    """Return `-O`, which the parser rewrites to `--optimization-level` before it looks for options."""
    constants = (node.value for node in ast.walk(modules[PARSER_SOURCE]) if isinstance(node, ast.Constant))
    return {"-O"} if any(isinstance(value, str) and value.startswith("-O") for value in constants) else set()


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


if __name__ == "__main__":
    sys.exit(main())

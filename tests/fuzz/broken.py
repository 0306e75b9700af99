"""Ways to break a document so that it still goes deep: right in most places, wrong in one or two."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Path = tuple[str | int, ...]

NUMBERS = (
    *(0, 1, -1, 2, 255, 65535, 65536, 99999, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63)),
    *(10**30, 10**400, 0.5, -0.5, 1e-300, 1e300, 1e308, float("inf"), float("nan")),
)
TEXTS = (
    *("", " ", "\0", "a\nb", "a\tb", "\x1b[31mred", "\x7f", "\x85", "\u2028", "\ufeff", "\N{ZERO WIDTH SPACE}"),
    *(
        "[/b]",
        "[bold]",
        "[link=x]",
        "{field}",
        "{0}",
        "%s",
        "${HOME}",
        "$$",
        "$(id)",
        "`id`",
        "'",
        '"',
        "\\",
        "#",
        ": ",
    ),
    *(
        "../../etc/passwd",
        "/",
        "//",
        ".",
        "..",
        "C:\\x",
        "a/b",
        "~",
        "~nobody-here/x",
        "-",
        "--flag",
        "=",
        "con",
        "x" * 300,
    ),
    *(
        "null",
        "true",
        "on",
        "1e3",
        "0x1f",
        "0o7",
        "12:30",
        "2026-13-45",
        "2026-12-01",
        "1_000",
        ".inf",
        "<<",
        "!!int x",
    ),
    *("é", "Jürgen Müller", "日本", "😀", "e\N{COMBINING ACUTE ACCENT}", "²", "٣", "１", "½", "8.²", "９.０"),
    *("0", "-1", "007", "9" * 30, "9" * 5000, "1.2.3", "1e999", "NaN", "sha256:" + "0" * 64, "sha256:", "GPU-x"),
    *("http://[", "http://[::1", "http://a:b", "http://\u2100", "//", "host:99999999999", "127.0.0.1:0", "a@b", "x y"),
    "\ud800",
)
ENDS = (
    "[" * 100_000,
    '{"a":' * 50_000,
    "]" * 10,
    "}",
    ",",
    '"',
    "\0",
    "\x00\xff",
    "\ufeff",
    "\\ud800",
    "9" * 5000,
    "1e999",
)


def junk() -> SearchStrategy[Any]:
    """A value that stands in the place of another."""
    plain = st.one_of(
        st.sampled_from(TEXTS), st.sampled_from(NUMBERS), st.none(), st.booleans(), st.text(max_size=12), st.integers()
    )
    return st.one_of(
        plain,
        st.lists(plain, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(TEXTS), st.text(max_size=6)), plain, max_size=3),
    )


def paths(document: Any, prefix: Path = ()) -> Iterator[Path]:
    """Every place in a document but its top."""
    inside: Any = ()
    if isinstance(document, dict):
        inside = document.items()
    elif isinstance(document, list):
        inside = enumerate(document)
    for key, value in inside:
        yield (*prefix, key)
        yield from paths(value, (*prefix, key))


@st.composite
def mutated(draw: DrawFn, documents: SearchStrategy[Any], most: int = 3) -> Any:
    """A document in which a few places are something else, twice there, gone, or called otherwise.

    In every other one only figures and texts are others, so that it is read and what it says goes deep.
    """
    document = copy.deepcopy(draw(documents))
    only_values = draw(st.booleans())
    for _ in range(draw(st.integers(1 if only_values else 0, most))):
        places = [place for place in paths(document) if not only_values or _is_value(_at(document, place))]
        if not places:
            break
        *above, key = draw(st.sampled_from(places))
        holder = _at(document, above)
        if only_values:
            holder[key] = draw(_alike(holder[key]))
        else:
            _change(draw, holder, key)
    return document


def _at(document: Any, place: Sequence[str | int]) -> Any:
    for step in place:
        document = document[step]
    return document


def _is_value(value: Any) -> bool:
    return value is not None and not isinstance(value, dict | list)


def _alike(value: Any) -> SearchStrategy[Any]:
    """Another value of the same type: one that a parser takes and a reader stumbles over."""
    match value:
        case bool():
            return st.just(not value)
        case int():
            near = (value + 1, value - 1, -value, value * 1000, value // 1000, value << 40)
            return st.one_of(st.sampled_from(near), st.sampled_from([n for n in NUMBERS if isinstance(n, int)]))
        case float():
            near_by = (-value, value * 1e9, value / 1e9)
            return st.one_of(st.sampled_from(near_by), st.sampled_from([n for n in NUMBERS if isinstance(n, float)]))
        case str():
            around = (value + " ", " " + value, value.upper(), value[::-1], value[: len(value) // 2], value * 2)
            texts = st.sampled_from(TEXTS)
            joined = texts.flatmap(lambda text: st.sampled_from((value + text, text + value)))
            return st.one_of(texts, st.sampled_from(around), joined)
        case _:
            return junk()


def _change(draw: DrawFn, holder: Any, key: Any) -> None:
    value = holder[key]
    match draw(st.sampled_from(("junk", "junk", "near", "near", "gone", "wrapped", "twin", "named"))):
        case "junk":
            holder[key] = draw(junk())
        case "near":
            holder[key] = draw(_near(value))
        case "gone":
            del holder[key]
        case "wrapped":
            holder[key] = draw(st.sampled_from(([value], {"value": value}, [value, value], {})))
        case "twin" if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(value))
        case "twin":
            holder[draw(st.sampled_from(TEXTS[:-1]))] = copy.deepcopy(value)
        case "named" if isinstance(holder, dict):
            holder[draw(st.sampled_from((*TEXTS[:-1], str(key).upper(), f"{key} ")))] = holder.pop(key)
        case _:
            del holder[key]


def _near(value: Any) -> SearchStrategy[Any]:
    """A value that is alike, or the same thing written as another type."""
    match value:
        case bool():
            return st.sampled_from((not value, int(value), str(value)))
        case int() | float():
            return st.one_of(_alike(value), st.just(f"{value}"), st.sampled_from(NUMBERS))
        case str():
            return _alike(value)
        case list():
            return st.sampled_from((value[:1], value * 2, value[::-1], []))
        case _:
            return st.one_of(st.just({}), st.none(), junk())


def as_json(document: Any) -> bytes:
    """Write a document as JSON, also what no JSON may be: NaN, half a surrogate pair, numbers without end."""
    return json.dumps(document).encode()


@st.composite
def cut_up(draw: DrawFn, texts: SearchStrategy[bytes]) -> bytes:
    """Bytes that are mostly whole, and else cut short, doubled, interrupted, or in another encoding."""
    text = draw(texts)
    at = draw(st.integers(0, max(1, len(text))))
    to = draw(st.integers(0, 64))
    match draw(st.sampled_from(("whole",) * 6 + ("short", "without", "twice", "with", "wide", "marked"))):
        case "short":
            return text[:at]
        case "without":
            return text[:at] + text[at + to :]
        case "twice":
            return text[: at + to] + text[at:]
        case "with":
            end = draw(
                st.one_of(st.sampled_from(ENDS).map(lambda e: e.encode("utf-8", "replace")), st.binary(max_size=8))
            )
            return text[:at] + end + text[at:]
        case "wide":
            return text.decode("utf-8", "replace").encode(draw(st.sampled_from(("utf-16", "utf-16-le", "utf-32"))))
        case "marked":
            return b"\xef\xbb\xbf" + text
        case _:
            return text


def broken_json(documents: Sequence[Any], most: int = 3) -> SearchStrategy[bytes]:
    """JSON that began as one of these documents."""
    return cut_up(mutated(st.sampled_from(documents), most).map(as_json))


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_yaml(document: Any) -> str:
    """Write a document as YAML, whose scalars may stand for something else once they are read again."""
    return yaml.dump(document, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1000)


LINES = (
    *(
        "<<: *a",
        "a: &a {b: 1}",
        "? x",
        "- y",
        "\tz: 1",
        "x: !!python/object:os.system y",
        "x: !!binary aGk=",
        "x: !!set {a}",
    ),
    *(
        "x: 2026-13-45",
        "x: 2026-12-01",
        "x: !!int many",
        "x: !!bool perhaps",
        "x: !!float y",
        "x: !!timestamp z",
        "--- ",
        "...",
    ),
    *(
        "%YAML 1.2",
        "x: |",
        "x: 'a",
        'x: "\\ud800"',
        "x: *nothing",
        "x: &x [*x]",
        "x: {y: 1, y: 2}",
        "\0",
        "x: \x07",
        "x: 0o9",
    ),
    *(
        "? [a, b]\n: c",
        "1: 2",
        "null: 3",
        "true: 4",
        "~",
        "[]",
        "{}",
        '"',
        "x: !<tag:yaml.org,2002:str> 1",
        "x: .nan",
        "x: .inf",
    ),
)


@st.composite
def relined(draw: DrawFn, texts: SearchStrategy[str]) -> str:
    """A text in which a few lines were taken out, put in, moved, indented otherwise, or given another value."""
    lines = draw(texts).splitlines()
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(0, len(lines) - 1)))
        line = lines[at] if lines else ""
        indent = line[: len(line) - len(line.lstrip())]
        match draw(st.sampled_from(("gone", "twice", "new", "deeper", "flat", "value", "value", "swapped"))):
            case "gone":
                del lines[at : at + 1]
            case "twice":
                lines.insert(at, line)
            case "new":
                lines.insert(at, indent + draw(st.sampled_from(LINES)))
            case "deeper":
                lines[at : at + 1] = ["  " + line]
            case "flat":
                lines[at : at + 1] = [line.lstrip()]
            case "value" if ":" in line:
                value = draw(
                    st.one_of(st.sampled_from(LINES).map(lambda t: t.partition(": ")[2]), st.sampled_from(TEXTS))
                )
                lines[at] = f"{line.partition(':')[0]}: {value}"
            case "swapped" if len(lines) > at + 1:
                lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return "\n".join(lines)


def broken_yaml(documents: Sequence[str]) -> SearchStrategy[str]:
    """YAML that began as one of these texts: some of its values are others, or some of its lines."""
    whole = st.sampled_from(documents)
    rewritten = mutated(st.sampled_from([yaml.safe_load(text) for text in documents])).map(as_yaml)
    return st.one_of(rewritten, relined(whole), relined(rewritten))

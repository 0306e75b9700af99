"""What the server of a dry run says: it tells what arrived, and that no model was asked."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterator
from typing import Any

from installer.adapters.dryrun_log import Asked

CHARACTERS_A_TOKEN = 4
PIXELS_A_TOKEN = 32 * 32
THOUGHT = "In a dry run there is nothing to think about. In einem Probelauf gibt es nichts zu bedenken."
_ONE_WORD = "exactly one word:"
_SHAPE = "Which colour and which shape"
_SHAPE_SHOWN = "blue circle"
"""The question of the proof and its answer: no model looks at the picture here."""

_MOVING = "the figure that moves"
_MOVING_SHOWN = "red square"
FRAME_TOKENS = 280
FRAMES = 32
"""What vLLM takes of a video unless told otherwise."""

_SHOWN = 200
_PNG = re.compile(r"data:image/png;base64,(.+)", re.DOTALL)


def reply(body: dict[str, object]) -> str:
    """Return the answer to the last message: the word that it asks for, or what arrived, in both languages."""
    text, sizes = _last_message(body)
    _, asked_for_one, word = text.partition(_ONE_WORD)
    if asked_for_one:
        return word.strip()
    if _MOVING in text:
        return _MOVING_SHOWN
    if sizes and _SHAPE in text:
        return _SHAPE_SHOWN
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    english, german = [f"You asked: “{shown}”."], [f"Sie haben gefragt: „{shown}“."]
    for width, height in sizes:
        english.append(f"A picture of {width} × {height} pixels came with it.")
        german.append(f"Ein Bild mit {width} × {height} Pixeln kam mit.")
    frames = _frames(body)
    if frames:
        english.append(f"A video came with it, of which {frames} frames are read.")
        german.append(f"Ein Video kam mit, von dem {frames} Einzelbilder gelesen werden.")
    english.append("This is a dry run: no model was asked.")
    german.append("Das ist ein Probelauf: Es wurde kein Modell gefragt.")
    return "\n\n".join(" ".join(said) for said in (english, german))


def thought(asked: Asked) -> str:
    """Return what is thought before the answer, where the server was told to keep the two apart."""
    return THOUGHT if asked.value("--reasoning-parser") else ""


def message(body: dict[str, object], content: str, asked: Asked) -> dict[str, Any]:
    """Return an answer with what the server was told to take apart: thoughts that were asked for, a call of a tool."""
    said: dict[str, Any] = {"role": "assistant", "content": content}
    template = body.get("chat_template_kwargs")
    if isinstance(template, dict) and template.get("enable_thinking") and asked.value("--reasoning-parser"):
        said["reasoning"] = THOUGHT
    name = _tool(body)
    if name and asked.value("--tool-call-parser"):
        call = {"name": name, "arguments": '{"city": "Berlin"}'}
        said |= {"content": None, "tool_calls": [{"id": "call-dry-run", "type": "function", "function": call}]}
    return said


def _tool(body: dict[str, object]) -> str:
    """Return the name of the first tool that is offered, "" where none is."""
    tools = body.get("tools")
    first = tools[0] if isinstance(tools, list) and tools else None
    function = first.get("function") if isinstance(first, dict) else None
    return str(function.get("name", "")) if isinstance(function, dict) else ""


def pieces(text: str) -> Iterator[str]:
    """Yield a text word by word; together they are the text again."""
    yield from re.findall(r"\S+\s*|\s+", text)


def tokens(text: str) -> int:
    """Return about how many tokens a text is, one at least."""
    return max(1, -(-len(text) // CHARACTERS_A_TOKEN))


def prompt_tokens(body: dict[str, object]) -> int:
    """Return about how many tokens the last message is, pictures included."""
    text, sizes = _last_message(body)
    pictures = sum(width * height // PIXELS_A_TOKEN for width, height in sizes)
    return tokens(text) + pictures + FRAME_TOKENS * _frames(body)


def too_long(body: dict[str, object], asked: Asked) -> str | None:
    """Return vLLM's answer to a request that is longer than the context, or None."""
    counted = prompt_tokens(body)
    if counted < asked.context:
        return None
    return (
        f"This model's maximum context length is {asked.context} tokens. However, your prompt contains {counted} input "
        f"tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value={counted})"
    )


def _last_message(body: dict[str, object]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of the last message and the sizes of its pictures."""
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    content = last.get("content") if isinstance(last, dict) else ""
    if not isinstance(content, list):
        return str(content or ""), []
    text = " ".join(str(part["text"]) for part in content if part.get("type") == "text")
    return text, [_size(part["image_url"]["url"]) for part in content if part.get("type") == "image_url"]


def _frames(body: dict[str, object]) -> int:
    """Return how many frames of a video in the last message are read: as many as the request says."""
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    parts = last.get("content") if isinstance(last, dict) else None
    if not isinstance(parts, list) or not any(part.get("type") == "video_url" for part in parts):
        return 0
    decoded = body.get("media_io_kwargs")
    asked = decoded.get("video") if isinstance(decoded, dict) else None
    frames = asked.get("num_frames") if isinstance(asked, dict) else None
    return frames if isinstance(frames, int) else FRAMES


def _size(url: Any) -> tuple[int, int]:
    """Read width and height where every PNG has them."""
    found = _PNG.match(str(url))
    try:
        head = base64.b64decode(found[1][:64]) if found else b""
        width, height = struct.unpack(">II", head[16:24])
    except (binascii.Error, struct.error):
        return 0, 0
    return int(width), int(height)

"""Checks of what a server takes apart for programs: thoughts beside the answer, and calls of tools."""

from __future__ import annotations

from typing import Any

import msgspec

from installer.domain import answers
from installer.domain.strict_json import NOT_OF_THAT_FORM
from installer.steps.smoke.asked import SHOWN, Asked, Failed, NotApplicable, finish, message

THINKING_TOKENS = 1024
THINKING_PROMPT = "How much is 17 plus 25? Think first, then answer with the number."

TOOL_PROMPT = "What is the weather in Berlin now? Use the tool."
TOOL: dict[str, object] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TOOL_TOKENS = 512
CITY = "berlin"


def reasoning(asked: Asked) -> str:
    """Let it think, and look whether the thoughts are beside the answer and not in it."""
    if asked.target.reasoning is False:
        raise NotApplicable("no_reasoning_parser")
    switch = {"enable_thinking": True} if asked.target.thinking_off else {}
    answer = asked.chat(THINKING_PROMPT, THINKING_TOKENS, **({"chat_template_kwargs": switch} if switch else {}))
    said = message(asked.good(answer))
    thoughts = next((str(said[name]) for name in answers.REASONING_FIELDS if said.get(name)), "")
    text = said.get("content")
    begins = text.lstrip() if isinstance(text, str) else ""
    if begins.startswith(answers.REASONING_BEGINS) and asked.target.reasoning:
        raise Failed(f"thoughts in the answer: {begins[:SHOWN]!r}")
    if not thoughts:
        raise NotApplicable("no_thoughts")
    return thoughts.strip()[:SHOWN]


def tool_call(asked: Asked) -> str:
    """Offer a tool whose use the question asks for, and look whether a call comes out with its argument."""
    if asked.target.tools is False:
        raise NotApplicable("no_tools")
    answer = asked.chat(TOOL_PROMPT, TOOL_TOKENS, tools=[TOOL], tool_choice="auto")
    if answer.status != 200 and asked.target.tools is None:
        raise NotApplicable("tools_refused")
    found = asked.good(answer)
    call = _first_call(message(found))
    if call is None and asked.target.tools is None:
        raise NotApplicable("tools_unused")
    if call is None:
        said = message(found).get("content")
        raise Failed(f"no tool call, finish_reason {finish(found) or None}, content {str(said)[:SHOWN]!r}")
    city = _arguments(call).get("city")
    if call.get("name") != "get_weather" or not isinstance(city, str) or CITY not in city.casefold():
        raise Failed(f"asked for Berlin's weather, called {str(call)[:SHOWN]}")
    return f"get_weather({city})"


def _first_call(said: dict[str, Any]) -> dict[str, Any] | None:
    calls = said.get("tool_calls")
    first = calls[0] if isinstance(calls, list) and calls else None
    function = first.get("function") if isinstance(first, dict) else None
    return function if isinstance(function, dict) else None


def _arguments(call: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, which are JSON inside of JSON; none where they are not."""
    try:
        found = msgspec.json.decode(str(call.get("arguments")))
    except NOT_OF_THAT_FORM:
        return {}
    return found if isinstance(found, dict) else {}

"""The server of a dry run: it answers where a simulated container serves, as that container was told to."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

from installer.adapters import dryrun_chat as chat
from installer.adapters.dryrun_container import SimulatedContainer
from installer.adapters.dryrun_world import World
from installer.adapters.streaming import refusal
from installer.domain import addresses
from installer.domain.problems import AnswerBroken, AnswerRefused, InstallerError
from installer.steps.cancel import Cancel
from installer.steps.ports import Delta, ServerAnswer, Usage

QUICK_SECONDS = 0.02
COMPLETION_SECONDS = 1.5
FIRST_PIECE_SECONDS = 0.4
PIECE_SECONDS = 0.03


class SimulatedServer:
    """Implements `Server`. Nothing listens on any real port."""

    def __init__(self, world: World) -> None:
        self._world = world

    def get(
        self, base: str, path: str, timeout_s: float, key: str | None = None, cancel: Cancel | None = None
    ) -> ServerAnswer:
        """Answer /health and /v1/models."""
        container = self._world.serving_at(addresses.port_of(base) or 0)
        if container is None:
            return _silence(0.0)
        self._world.pause(min(QUICK_SECONDS, timeout_s), cancel)
        if path == "/health":
            return _answer(200, b"", QUICK_SECONDS)
        refused = _refused(container, key)
        if refused:
            return refused
        return _json(200, self._models(container)) if path == "/v1/models" else _error(404, "Not Found")

    def post(
        self,
        base: str,
        path: str,
        body: dict[str, object],
        timeout_s: float,
        key: str | None = None,
        cancel: Cancel | None = None,
    ) -> ServerAnswer:
        """Answer /v1/chat/completions."""
        container = self._world.serving_at(addresses.port_of(base) or 0)
        if container is None:
            return _silence(0.0)
        refused = _not_taken(container, path, body, key)
        if refused:
            return refused
        if self._world.failure.take("smoke", "not_answering"):
            return _silence(timeout_s)
        if self._world.failure.take("smoke", "server_error"):
            return _error(500, "EngineCore encountered an issue.")
        self._world.pause(min(COMPLETION_SECONDS, timeout_s), cancel)
        said = chat.message(body, self._content(body), container.service.asked)
        return _json(200, _completion(_alias(container), said, chat.prompt_tokens(body)), COMPLETION_SECONDS)

    def stream(
        self, base: str, path: str, body: dict[str, object], quiet_s: float, key: str | None, cancel: Cancel
    ) -> Generator[Delta]:
        """Answer /v1/chat/completions word by word, after a thought where the server keeps the two apart."""
        cancel.check()
        container = self._world.serving_at(addresses.port_of(base) or 0)
        if container is None:
            raise InstallerError(AnswerBroken(detail=ConnectionError.__name__))
        refused = _not_taken(container, path, body, key)
        if refused:
            said = refusal(refused.status, refused.body)
            raise InstallerError(AnswerRefused(status=said.status, detail=said.detail))
        thought, content = chat.thought(container.service.asked), chat.reply(body)
        self._world.pause(min(FIRST_PIECE_SECONDS, quiet_s), cancel)
        for piece in chat.pieces(thought):
            yield Delta(reasoning=piece)
            self._world.pause(PIECE_SECONDS, cancel)
        for piece in chat.pieces(content):
            yield Delta(content=piece)
            self._world.pause(PIECE_SECONDS, cancel)
        generated = chat.tokens(thought) + chat.tokens(content) if thought else chat.tokens(content)
        yield Delta(finish="stop")
        yield Delta(usage=Usage(prompt_tokens=chat.prompt_tokens(body), generated_tokens=generated))

    def _models(self, container: SimulatedContainer) -> dict[str, Any]:
        failure, context = self._world.failure, container.service.asked.context
        name = "another-model" if failure.take("smoke", "wrong_model") else _alias(container)
        length = context // 2 if failure.take("smoke", "wrong_context") else context
        return {"object": "list", "data": [{"id": name, "object": "model", "max_model_len": length}]}

    def _content(self, body: dict[str, object]) -> str:
        if self._world.failure.take("smoke", "wrong_word"):
            return "!!!!!!!!"
        if self._world.failure.take("smoke", "empty_answer"):
            return ""
        return chat.reply(body)


def _alias(container: SimulatedContainer) -> str:
    asked = container.service.asked
    return asked.value("--served-model-name", asked.model)


def _refused(container: SimulatedContainer, key: str | None) -> ServerAnswer | None:
    """Return vLLM's answer to a wrong key, or None."""
    expected = container.service.key
    return _json(401, {"error": "Unauthorized"}) if expected is not None and key != expected else None


def _not_taken(
    container: SimulatedContainer, path: str, body: dict[str, object], key: str | None
) -> ServerAnswer | None:
    """Return vLLM's answer to a request that it does not take, or None."""
    refused = _refused(container, key)
    if refused:
        return refused
    if path != "/v1/chat/completions":
        return _error(404, "Not Found")
    if body.get("model") != _alias(container):
        return _error(404, f"The model `{body.get('model')}` does not exist.")
    beyond = chat.too_long(body, container.service.asked)
    return _error(400, beyond) if beyond else None


def _completion(model: str, said: dict[str, Any], prompt_tokens: int) -> dict[str, Any]:
    generated = chat.tokens(said["content"] or "")
    finish = "tool_calls" if "tool_calls" in said else "stop"
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": generated,
            "total_tokens": prompt_tokens + generated,
        },
    }


def _error(status: int, message: str) -> ServerAnswer:
    return _json(status, {"error": {"message": message, "code": status}})


def _json(status: int, document: dict[str, Any], seconds: float = QUICK_SECONDS) -> ServerAnswer:
    return _answer(status, msgspec.json.encode(document), seconds)


def _answer(status: int, body: bytes, seconds: float) -> ServerAnswer:
    return ServerAnswer(status=status, body=body, seconds=seconds)


def _silence(seconds: float) -> ServerAnswer:
    return ServerAnswer(status=0, body=b"", seconds=seconds)

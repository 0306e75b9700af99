"""What every Compose does with a file of ours, and how the server behind it answers."""

from __future__ import annotations

import json
import threading
from collections import deque
from pathlib import Path

import pytest

from installer.domain import compose
from installer.domain.addresses import own_server
from installer.domain.facts import ComposeState
from installer.domain.problems import (
    AnswerBroken,
    AnswerRefused,
    Cancelled,
    ImageUnknown,
    MalformedFile,
    PortTaken,
)
from installer.steps import install, smoke
from installer.steps.ask import COMPLETIONS
from installer.steps.cancel import Cancel
from tests.adapters.engine_kit import problem_in
from tests.contract.subjects import KEY, NOBODY, Subject
from tests.rig.process import free_port, wait_for

PATIENCE_S = 30.0


def serving(subject: Subject, port: int) -> None:
    wait_for(lambda: subject.ports.server.get(own_server(port), "/health", 2).status == 200, PATIENCE_S, "the server")


def test_it_is_ready_and_knows_how_it_is_called(subject: Subject) -> None:
    seen = subject.ports.stack.compose()
    assert seen.state is ComposeState.READY
    assert seen.command
    assert seen.version[0].isdigit()


def test_our_file_is_taken_and_another_is_refused(subject: Subject, tmp_path: Path) -> None:
    subject.ports.stack.check(subject.file_of(subject.plan(), "chat"))
    broken = tmp_path / "broken.yml"
    for text in ("services: [", "services: 7\n"):
        broken.write_text(text)
        problem = problem_in(lambda: subject.ports.stack.check(str(broken)))
        assert isinstance(problem, MalformedFile)
        assert problem.path == str(broken)


def test_a_container_comes_up_with_our_labels_serves_stops_starts_again_and_goes(subject: Subject) -> None:
    plan, file = subject.ready_to_start()
    engine, stack = subject.ports.engine, subject.ports.stack
    stack.up(file, Cancel())
    serving(subject, plan.port)
    (seen,) = engine.containers(plan.project)
    assert (seen.status, seen.exit_code, seen.restart_count, seen.out_of_memory) == ("running", 0, 0, False)
    assert seen.image == plan.image.by_digest
    assert (seen.profile, seen.registry_revision) == (plan.profile, plan.registry_revision)
    assert (seen.image_digest, seen.fingerprint) == (plan.image.index_digest, compose.fingerprint(plan))
    wait_for(lambda: engine.containers(plan.project)[0].health == "healthy", PATIENCE_S, "its health")

    stack.up(file, Cancel())
    assert engine.containers(plan.project)[0].id == seen.id, "the same file makes no other container"

    stack.stop(file)
    (stopped,) = engine.containers(plan.project)
    assert (stopped.id, stopped.status) == (seen.id, "exited")
    assert subject.ports.server.get(plan.base, "/health", 2).status == 0

    stack.up(file, Cancel())
    serving(subject, plan.port)
    (again,) = engine.containers(plan.project)
    assert again.id == seen.id
    assert again.started_at != seen.started_at

    stack.down(file)
    assert engine.containers(plan.project) == ()
    stack.down(file)


def test_another_plan_makes_another_container(subject: Subject) -> None:
    plan, file = subject.ready_to_start()
    subject.ports.stack.up(file, Cancel())
    (first,) = subject.ports.engine.containers(plan.project)
    other = subject.plan(free_port())
    subject.ports.stack.up(subject.file_of(other, "chat"), Cancel())
    (second,) = subject.ports.engine.containers(plan.project)
    assert second.id != first.id
    assert second.fingerprint == compose.fingerprint(other)


def test_nothing_is_started_once_the_person_cancelled(subject: Subject) -> None:
    plan, file = subject.ready_to_start()
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Cancelled):
        subject.ports.stack.up(file, cancel)
    assert subject.ports.engine.containers(plan.project) == ()


def test_nothing_is_pulled_to_start(subject: Subject) -> None:
    plan = subject.plan()
    subject.ports.hub.fetch(plan.weights, plan.place, NOBODY, Cancel())
    problem = problem_in(lambda: subject.ports.stack.up(subject.file_of(plan, "chat"), Cancel()))
    assert isinstance(problem, ImageUnknown)
    assert not subject.ports.engine.has_image(plan.image)


def test_a_port_of_another_container_is_taken(subject: Subject) -> None:
    plan, file = subject.ready_to_start()
    subject.ports.stack.up(file, Cancel())
    serving(subject, plan.port)
    text = Path(file).read_text("utf-8").replace("name: slipway-chat", "name: slipway-other")
    other = Path(file).parents[1] / "other" / Path(file).name
    other.parent.mkdir()
    other.write_text(text, "utf-8")
    (other.parent / "vllm.env").write_text(compose.env_text(KEY))
    assert problem_in(lambda: subject.ports.stack.up(str(other), Cancel())) == PortTaken(port=plan.port)
    assert subject.ports.machine.port_owner(plan.port) is not None
    subject.ports.stack.down(str(other))


def test_the_log_grows_and_can_be_followed_until_the_person_stops(subject: Subject) -> None:
    plan, file = subject.ready_to_start()
    engine = subject.ports.engine
    subject.ports.stack.up(file, Cancel())
    serving(subject, plan.port)
    (container,) = engine.containers(plan.project)
    log = engine.logs(container.id)
    assert b"model" in log.lower()
    assert log.endswith(b"\n")
    assert engine.logs(container.id, tail=2).count(b"\n") == 2
    assert log.endswith(engine.logs(container.id, tail=1))

    cancel, lines = Cancel(), deque[bytes]()
    threading.Timer(0.5, cancel.set).start()
    with pytest.raises(Cancelled):
        lines.extend(engine.follow_logs(container.id, cancel))
    assert list(lines)[:3] == log.split(b"\n")[:3]


def test_following_ends_with_the_container(subject: Subject) -> None:
    plan, file = subject.ready_to_start()
    subject.ports.stack.up(file, Cancel())
    serving(subject, plan.port)
    (container,) = subject.ports.engine.containers(plan.project)
    threading.Timer(0.2, subject.ports.stack.stop, (file,)).start()
    assert len(list(subject.ports.engine.follow_logs(container.id, Cancel()))) > 3


def test_the_server_proves_itself_to_who_has_the_key(subject: Subject) -> None:
    plan, file = subject.ready_to_start()
    subject.ports.stack.up(file, Cancel())
    serving(subject, plan.port)
    server, clock = subject.ports.server, subject.ports.clock
    report = smoke.run(install.target_of(plan), smoke.Start(), server, clock, KEY, Cancel())
    outcomes = {check.name: check.outcome for check in report.checks}
    assert [outcomes[name] for name in (*smoke.BASIC, "stream", "umlauts", "long_prompt", "over_limit")] == [
        "passed"
    ] * 7
    assert smoke.problem(report) is None
    (entry,) = json.loads(server.get(plan.base, "/v1/models", 5, KEY).body)["data"]
    assert (entry["id"], entry["max_model_len"]) == (plan.profile, plan.settings.context)
    assert server.get(plan.base, "/v1/models", 5).status == 401
    assert server.get(plan.base, "/v1/models", 5, "another-key").status == 401
    body: dict[str, object] = {"model": "nobody", "messages": [{"role": "user", "content": "hello"}]}
    assert server.post(plan.base, "/v1/chat/completions", body, 5, KEY).status == 404
    assert server.get(plan.base, "/nothing-here", 5, KEY).status == 404


def test_an_answer_streams_ends_and_is_counted(subject: Subject) -> None:
    plan, file = subject.ready_to_start()
    subject.ports.stack.up(file, Cancel())
    serving(subject, plan.port)
    server, question = subject.ports.server, "Why is the sky blue, and why is grass green 🌱?"
    body: dict[str, object] = {
        "model": plan.profile,
        "messages": [{"role": "user", "content": question}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    pieces = list(server.stream(plan.base, COMPLETIONS, body, 10, KEY, Cancel()))
    assert question in "".join(piece.content for piece in pieces)
    assert sum(bool(piece.content) for piece in pieces) > 3
    assert [piece.finish for piece in pieces if piece.finish] == ["stop"]
    (usage,) = [piece.usage for piece in pieces if piece.usage]
    assert usage.prompt_tokens > 0
    assert usage.generated_tokens > 0

    cancel = Cancel()
    asked_again = server.stream(plan.base, COMPLETIONS, body, 10, KEY, cancel)
    next(asked_again)
    cancel.set()
    with pytest.raises(Cancelled):
        next(asked_again)

    def refusal_of(key: str | None = KEY, **changes: object) -> AnswerRefused:
        asked = server.stream(plan.base, COMPLETIONS, body | changes, 10, key, Cancel())
        problem = problem_in(lambda: list(asked))
        assert isinstance(problem, AnswerRefused)
        return problem

    assert refusal_of(key="another-key").status == 401
    assert refusal_of(model="nobody").status == 404
    beyond = refusal_of(messages=[{"role": "user", "content": "word " * plan.settings.context}])
    assert beyond.status == 400
    assert str(plan.settings.context) in beyond.detail


def test_where_nobody_listens_there_is_no_answer(subject: Subject) -> None:
    port = free_port()
    base = own_server(port)
    answer = subject.ports.server.get(base, "/health", 2)
    assert (answer.status, answer.body) == (0, b"")
    assert subject.ports.server.post(base, "/v1/chat/completions", {}, 2).status == 0
    assert subject.ports.machine.port_owner(port) is None
    asked = subject.ports.server.stream(base, COMPLETIONS, {}, 2, None, Cancel())
    assert isinstance(problem_in(lambda: list(asked)), AnswerBroken)

"""Asking what was installed: over a dry run that answers, and a server that answers what a test wants."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import io
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from installer import resources
from installer.adapters import media
from installer.adapters.media import VideoFiles
from installer.domain import compose
from installer.domain.problems import (
    AnswerRefused,
    AnyProblem,
    BadChoice,
    BeyondContext,
    Cancelled,
    EngineDown,
    FileUnreadable,
    HostNotReached,
    InstallerError,
    NotInstalled,
    PicturesNotRead,
    ServerNotRunning,
    ServerStarting,
    VideosNotRead,
)
from installer.resources import PROOF_CLIP
from installer.steps import ask as asking
from installer.steps import lifecycle
from installer.steps.ask import Answer
from installer.steps.cancel import Cancel
from installer.steps.ports import ContainerState, Delta, Media, Picture, ServerAnswer, Usage
from installer.text import Text
from tests.steps.kit import LARGE_PROFILE, JumpingClock, Rehearsal, rehearsal

TEXT_ONLY = "gpt-oss-20b-16gb"


@pytest.fixture
def stage(tmp_path: Path) -> Rehearsal:
    installed = rehearsal(tmp_path, card="rtx-5090-linux", profile=LARGE_PROFILE)
    installed.install()
    return installed


def ask(stage: Rehearsal, question: str = "How are you?", shown: Picture | None = None) -> tuple[Answer, list[Delta]]:
    told: list[Delta] = []
    home = stage.home.stack("chat")
    return asking.ask(question, home, stage.ports, stage.cancel, told.append, shown), told


def a_picture(folder: Path, width: int = 64, height: int = 48) -> str:
    Image.new("RGB", (width, height), "red").save(folder / "red.png")
    return str(folder / "red.png")


# --- over the dry run ------------------------------------------------------------------------------------------------


def test_the_answer_is_told_piece_by_piece_and_returned_whole(stage: Rehearsal) -> None:
    answer, told = ask(stage)
    assert len(told) > 5
    assert answer.content == "".join(piece.content for piece in told)
    assert "“How are you?”" in answer.content
    assert "no model was asked" in answer.content
    assert answer.reasoning
    assert answer.finish == "stop"


def test_its_figures_are_those_of_the_clock_and_of_the_servers_count(stage: Rehearsal) -> None:
    answer, told = ask(stage)
    said = [piece for piece in told if piece.content or piece.reasoning]
    assert answer.first_token_seconds == pytest.approx(0.4)
    assert answer.generated_tokens is not None
    assert answer.tokens_per_second == pytest.approx((answer.generated_tokens - 1) / (0.03 * (len(said) - 1)), rel=0.05)
    figures = Text("de").answer_figures(answer)
    assert "400\N{NO-BREAK SPACE}ms" in figures
    assert "Token pro Sekunde" in figures


def test_a_picture_arrives_as_png_in_the_request(stage: Rehearsal, tmp_path: Path) -> None:
    home = stage.home.stack("chat")
    shown = asking.picture(a_picture(tmp_path), home, stage.ports)
    answer, _ = ask(stage, "What is this?", shown)
    assert "64 × 48" in answer.content
    request: Any = asking.body(home.installed(), "What is this?", shown)
    url = request["messages"][0]["content"][0]["image_url"]["url"]
    kind, _, data = url.partition(",")
    assert kind == "data:image/png;base64"
    assert Image.open(io.BytesIO(base64.b64decode(data))).getpixel((9, 9)) == (255, 0, 0)


def test_a_picture_leaves_half_of_the_context_and_says_that_it_was_made_smaller(
    stage: Rehearsal, tmp_path: Path
) -> None:
    assert asking.most_pixels(1_000_000) == asking.MOST_PIXELS
    home = stage.home.stack("chat")
    plan = home.installed()
    shown = asking.picture(a_picture(tmp_path, 5000, 4000), home, stage.ports)
    assert shown.original == (5000, 4000)
    tokens = shown.width * shown.height / asking.PIXELS_A_TOKEN
    assert tokens <= plan.settings.context / 2
    assert "5.000\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}4.000" in Text("de").picture_scaled(shown)
    assert Text("de").picture_scaled(asking.picture(a_picture(tmp_path), home, stage.ports)) == ""


def test_a_profile_without_eyes_refuses_before_the_file_is_opened(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, card="rtx-5090-linux", profile=TEXT_ONLY)
    stage.install()
    problem = stage.fails(lambda: asking.picture("/nowhere.png", stage.home.stack("chat"), stage.ports))
    assert problem == PicturesNotRead(profile=TEXT_ONLY)


CLIP = str(resources.file("assets", *PROOF_CLIP))


def ask_with_video(stage: Rehearsal, named: str, media: Media | None = None) -> tuple[Answer, list[AnyProblem]]:
    remarks: list[AnyProblem] = []
    ports = dataclasses.replace(stage.ports, media=media or stage.ports.media)
    home = stage.home.stack("chat")
    with asking.video(named, home, ports, stage.cancel) as clip:
        answer = asking.ask("What moves?", home, ports, stage.cancel, lambda _: None, None, clip, remarks.append)
    return answer, remarks


@pytest.mark.parametrize("named", [CLIP, "https://example.org/red-square.mp4"])
def test_a_video_goes_along_by_file_or_address_with_the_frames_that_its_length_deserves(
    stage: Rehearsal, named: str
) -> None:
    answer, remarks = ask_with_video(stage, named)
    assert "A video came with it, of which 12 frames are read." in answer.content
    assert remarks == []


class NotReached(VideoFiles):
    """A firewall stands between container and computer."""

    @contextlib.contextmanager
    def offered(self, *_: object) -> Iterator[str]:
        raise InstallerError(HostNotReached(address="172.17.0.1:50000"))
        yield ""


def test_behind_a_firewall_the_video_goes_in_the_request_and_that_is_said(
    stage: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, remarks = ask_with_video(stage, CLIP, NotReached())
    assert "A video came with it" in answer.content
    assert remarks == [HostNotReached(address="172.17.0.1:50000")]
    monkeypatch.setattr(media, "LARGEST_INLINE_BYTES", 1000)
    problem = stage.fails(lambda: ask_with_video(stage, CLIP, NotReached()))
    assert problem == HostNotReached(address="172.17.0.1:50000")


def test_a_profile_without_videos_refuses_before_anything_is_fetched(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, card="rtx-5090-linux", profile=TEXT_ONLY)
    stage.install()
    problem = stage.fails(lambda: ask_with_video(stage, "https://example.org/a.mp4"))
    assert problem == VideosNotRead(profile=TEXT_ONLY)


def test_a_picture_that_is_not_there_is_named(stage: Rehearsal) -> None:
    problem = stage.fails(lambda: asking.picture("/nowhere.png", stage.home.stack("chat"), stage.ports))
    assert isinstance(problem, FileUnreadable)


def test_a_question_longer_than_the_context_is_explained_as_the_context_copy_does(stage: Rehearsal) -> None:
    plan = stage.home.stack("chat").installed()
    problem = stage.fails(lambda: ask(stage, "word " * plan.settings.context))
    limit, native = plan.settings.context, plan.native_context
    assert problem == BeyondContext(limit_tokens=limit, native_tokens=native, reads_media=True, graphics_card=True)
    for language in ("de", "en"):
        text = Text(language)
        said, copy = text.problem(problem), text.context_copy(limit, native)
        assert said.sentence.split(". ")[0] in copy
        assert said.remedy in copy


def test_nothing_is_asked_of_what_is_not_installed_or_does_not_run(stage: Rehearsal, tmp_path: Path) -> None:
    nothing = rehearsal(tmp_path / "other")
    assert isinstance(nothing.fails(lambda: ask(nothing)), NotInstalled)
    stage.run(lifecycle.stop)
    problem = stage.fails(lambda: ask(stage))
    assert problem == ServerNotRunning(stack="chat", port=8000)
    assert problem.command == "slipway start"
    assert ServerNotRunning(stack="images", port=8000).command == "slipway start --stack images"


def test_a_stack_that_makes_images_takes_no_questions(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, card="rtx-5090-linux", profile=LARGE_PROFILE)
    home = stage.home.stack("chat")
    stage.install()
    plan = home.installed()
    home.save_plan(msgspec.structs.replace(plan, task="image"))
    assert stage.fails(lambda: ask(stage)) == BadChoice(field="stack", value="chat", limit="chat")


def test_it_can_be_stopped_between_two_pieces(stage: Rehearsal) -> None:
    told: list[Delta] = []

    def tell(piece: Delta) -> None:
        told.append(piece)
        stage.cancel.set()

    with pytest.raises(Cancelled):
        asking.ask("on", stage.home.stack("chat"), stage.ports, stage.cancel, tell)
    assert len(told) == 1


# --- over a server that does as it is told ---------------------------------------------------------------------------


class Told:
    """A server that yields these pieces, or fails, and keeps what it was asked; a clock goes on between the pieces."""

    health = 200

    def __init__(self, clock: JumpingClock, *pieces: Delta | Exception) -> None:
        self.clock = clock
        self.pieces = pieces
        self.asked: list[tuple[str, dict[str, object], str | None]] = []

    def get(self, *_: object, **__: object) -> ServerAnswer:
        return ServerAnswer(status=self.health, body=b"", seconds=0.0)

    post = get

    def stream(
        self, base: str, path: str, body: dict[str, object], quiet_s: float, key: str | None, cancel: Cancel
    ) -> Generator[Delta]:
        self.asked.append((path, body, key))
        for piece in self.pieces:
            self.clock.wait(0.5, cancel)
            if isinstance(piece, Exception):
                raise piece
            yield piece


def served(stage: Rehearsal, *pieces: Delta | Exception) -> tuple[Rehearsal, Told]:
    clock = JumpingClock()
    server = Told(clock, *pieces)
    return dataclasses.replace(stage, ports=dataclasses.replace(stage.ports, server=server, clock=clock)), server


class Containers:
    """An engine that shows these containers, or fails."""

    def __init__(self, *shown: ContainerState, problem: AnyProblem | None = None) -> None:
        self.shown = shown
        self.problem = problem

    def containers(self, _: str) -> tuple[ContainerState, ...]:
        if self.problem is not None:
            raise InstallerError(self.problem)
        return self.shown


SILENT: dict[str, tuple[dict[str, Any] | None, AnyProblem]] = {
    "loads": ({"status": "running"}, ServerStarting(stack="chat", port=8000)),
    "was stopped": ({"status": "exited", "exit_code": 143}, ServerNotRunning(stack="chat", port=8000)),
    "ended by itself": ({"status": "exited", "exit_code": 1}, ServerNotRunning(stack="chat", port=8000, ended_with=1)),
    "was killed for want of memory": (
        {"status": "exited", "exit_code": 137, "out_of_memory": True},
        ServerNotRunning(stack="chat", port=8000, ended_with=137),
    ),
    "was removed": (None, ServerNotRunning(stack="chat", port=8000)),
}


@pytest.mark.parametrize("status", [0, 503])
@pytest.mark.parametrize("case", SILENT)
def test_a_silent_server_is_told_by_what_its_container_does(stage: Rehearsal, case: str, status: int) -> None:
    changes, expected = SILENT[case]
    shown = () if changes is None else (msgspec.structs.replace(stage.container(), **changes),)
    other, server = served(stage)
    server.health = status
    engine: Any = Containers(*shown)
    other = dataclasses.replace(other, ports=dataclasses.replace(other.ports, engine=engine))
    assert other.fails(lambda: ask(other)) == expected
    said = Text("de").problem(expected)
    assert said.title != Text("en").problem(expected).title


def test_where_docker_itself_is_down_that_is_the_cause(stage: Rehearsal) -> None:
    down = EngineDown(endpoint="npipe")
    other, server = served(stage)
    server.health = 0
    engine: Any = Containers(problem=down)
    other = dataclasses.replace(other, ports=dataclasses.replace(other.ports, engine=engine))
    assert other.fails(lambda: ask(other)) == down


def test_the_key_of_the_env_file_goes_with_the_question_and_is_in_no_answer(stage: Rehearsal) -> None:
    key = compose.key_from_env(stage.file("vllm.env").read_text())
    assert key
    other, server = served(stage, Delta(content="yes"), Delta(finish="stop"))
    answer, told = ask(other)
    ((path, body, used),) = server.asked
    assert (path, used) == ("/v1/chat/completions", key)
    assert body["model"] == LARGE_PROFILE
    assert body["stream_options"] == {"include_usage": True}
    assert key not in repr((answer, told, body))
    stage.file("vllm.env").unlink()
    ask(other)
    assert server.asked[-1][2] is None


def test_a_server_that_counts_nothing_has_no_figures_and_none_are_made_up(stage: Rehearsal) -> None:
    other, _ = served(stage, Delta(content="a b"), Delta(content="c"), Delta(finish="stop"))
    answer, _ = ask(other)
    assert (answer.generated_tokens, answer.prompt_tokens, answer.tokens_per_second) == (None, None, None)
    assert answer.first_token_seconds == 0.5
    assert "Token pro" not in Text("de").answer_figures(answer)
    other, _ = served(stage, Delta(finish="stop"))
    assert Text("en").answer_figures(ask(other)[0]) == ""


def test_speed_counts_what_was_thought_too(stage: Rehearsal) -> None:
    usage = Delta(usage=Usage(prompt_tokens=3, generated_tokens=21))
    other, _ = served(stage, Delta(), Delta(reasoning="h"), Delta(content="x"), Delta(finish="length"), usage)
    answer, _ = ask(other)
    assert (answer.first_token_seconds, answer.tokens_per_second) == (1.0, 40.0)
    assert Text("de").answer_ended(answer)


REFUSED = {
    "the limit by its number": (
        400,
        "The decoder prompt (length 70000) is longer than the maximum model length of 65536.",
        True,
    ),
    "another number": (400, "max_tokens must be at least 1, got -5.", False),
    "a number that holds it": (400, "value 165536 is out of range", False),
    "not a refusal of this kind": (500, "65536", False),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_about_the_context_only_if_it_names_it(stage: Rehearsal, case: str) -> None:
    status, detail, beyond = REFUSED[case]
    refusal = AnswerRefused(status=status, detail=detail)
    other, _ = served(stage, InstallerError(refusal))
    problem = other.fails(lambda: ask(other))
    assert isinstance(problem, BeyondContext) if beyond else problem == refusal

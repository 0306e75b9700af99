"""Try it: a question, a picture or a video if the model reads any, and the answer as it streams."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QPixmap
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit, QPlainTextEdit

from installer.domain.problems import AnyProblem
from installer.steps.ask import Answer
from installer.steps.ports import Delta, Picture
from installer.text import Text
from installer.ui.asking import Asking
from installer.ui.pages.base import problem_words
from installer.ui.widgets.basics import Button, Label, add, row
from installer.ui.widgets.cards import Card, ProblemCard
from installer.ui.widgets.wrapping import wrapping
from installer.ui.workroom import Workroom

VIDEO_ENDINGS = (".mp4", ".m4v", ".mov", ".webm", ".mkv", ".avi")
THUMBNAIL = QSize(160, 120)


class TryIt(Card):
    """A card for a page of something that runs. A picture can be dropped anywhere on it."""

    def __init__(self, room: Workroom) -> None:
        super().__init__()
        self._room = room
        self.asking = Asking(room)
        self._picture: Picture | None = None
        self._thinks = False
        self._heading = Label("heading")
        self.question = QLineEdit()
        self.question.setProperty("part", "question")
        self.question.textChanged.connect(self._show_buttons)
        self.question.returnPressed.connect(self.ask)
        self._ask = Button("", "message-square", on_click=self.ask)
        self._stop = Button("", "square", on_click=self.asking.stop)
        self._choose = Button("", "image", on_click=self._choose_picture)
        self.video = QLineEdit()
        self.video.setClearButtonEnabled(True)
        self._choose_clip = Button("", "image", on_click=self._choose_video)
        self._without = Button("quiet", "x", on_click=self._drop_picture)
        self._thumbnail = QLabel()
        self._scaled, self._remark, self._state = Label("caption"), Label("caption"), Label("caption")
        self.answer = QPlainTextEdit()
        self.answer.setProperty("part", "prose")
        self.answer.setReadOnly(True)
        self.answer.setMinimumHeight(140)
        self.answer.hide()
        self._figures = Label("caption")
        self._problem_card = ProblemCard(self.ask)
        self._problem_card.hide()
        self._problem: AnyProblem | None = None
        shown = row(self._thumbnail, self._without)
        shown.addStretch(1)
        add(self.box, self._heading, self.question)
        self.box.addWidget(wrapping(self._ask, self._stop, self._choose, self._choose_clip))
        self.box.addWidget(self.video)
        self.box.addLayout(shown)
        add(self.box, self._scaled, self._remark, self._state, self.answer, self._figures, self._problem_card)
        self.setAcceptDrops(True)
        self.asking.told.connect(self._hear)
        self.asking.answered.connect(self._take_answer)
        self.asking.stopped.connect(self._take_stop)
        self.asking.failed.connect(self._take_problem)
        self.asking.pictured.connect(self._take_picture)
        self.asking.remarked.connect(self._take_remark)
        self._drop_picture()
        self._figures.hide()
        self._remark.hide()
        self._state.hide()

    def say(self, text: Text) -> None:
        """Say everything in a language."""
        _ = text.gettext
        self._heading.setText(_("Try it"))
        self.question.setAccessibleName(_("Question"))
        self.question.setPlaceholderText(_("What can you do?"))
        self._ask.say(_("Ask"))
        self._stop.say(_("Stop answering"))
        self._choose.say(_("Add a picture …"))
        self._choose_clip.say(_("Add a video …"))
        self.video.setAccessibleName(_("Video"))
        self.video.setPlaceholderText(_("File or address (URL) of a video"))
        self._without.say(_("Without the picture"))
        self.answer.setAccessibleName(_("Answer"))
        self._thumbnail.setAccessibleName(_("The picture that goes along"))
        self._scaled.say(text.picture_scaled(self._picture) if self._picture else "")
        self._show_state()
        if self._problem is not None:
            self._show_problem(self._problem)

    def show_buttons(self) -> None:
        """Offer what can be done now."""
        self._show_buttons()

    def _show_buttons(self) -> None:
        running = self.asking.running
        self._ask.setEnabled(bool(self.question.text().strip()) and not running)
        self._stop.setVisible(running)
        self._choose.setVisible(self.asking.reads_pictures)
        self._choose.setEnabled(not running)
        self._without.setEnabled(not running)
        for widget in (self._choose_clip, self.video):
            widget.setVisible(self.asking.reads_videos)
            widget.setEnabled(not running)

    def ask(self) -> None:
        """Ask what was typed."""
        question = self.question.text().strip()
        if not question or self.asking.running:
            return
        self._problem = None
        self._problem_card.hide()
        self._figures.say("")
        self._remark.say("")
        self.answer.clear()
        self.answer.show()
        self._thinks = False
        self.asking.ask(question, self._picture, self.video.text().strip() if self.asking.reads_videos else "")
        self._show_state()
        self._show_buttons()

    def _hear(self, piece: Delta) -> None:
        if piece.reasoning and not self.answer.toPlainText():
            self._thinks = True
        if piece.content:
            self._thinks = False
            bar = self.answer.verticalScrollBar()
            at_end = bar.value() == bar.maximum()
            cursor = self.answer.textCursor()
            cursor.movePosition(cursor.MoveOperation.End)
            cursor.insertText(piece.content)
            if at_end:
                bar.setValue(bar.maximum())
        self._show_state()

    def _take_remark(self, said: str) -> None:
        self._remark.say(said)

    def _show_state(self) -> None:
        """Say that the model reads or thinks, as long as nothing of its answer is there."""
        _ = self._room.text.gettext
        waits = self.asking.running and not self.answer.toPlainText()
        thinks = _("The model is thinking …") if self._thinks else _("The model is reading …")
        self._state.say(thinks if waits else "")

    def _take_answer(self, answer: Answer) -> None:
        text = self._room.text
        said = (text.answer_ended(answer), text.answer_figures(answer))
        self._figures.say(" ".join(sentence for sentence in said if sentence))
        self._ended()

    def _take_stop(self) -> None:
        self._figures.say(self._room.text.gettext("Stopped."))
        self._ended()

    def _take_problem(self, problem: AnyProblem) -> None:
        self._problem = problem
        self._show_problem(problem)
        self.answer.setVisible(bool(self.answer.toPlainText()))
        self._ended()

    def _ended(self) -> None:
        self._show_state()
        self._show_buttons()

    def _show_problem(self, problem: AnyProblem) -> None:
        text = self._room.text
        words = problem_words(text, "")
        said = text.problem(problem)
        self._problem_card.show_problem(said, words, problem.command, problem.technical, advice=problem.advice)
        self._problem_card.show()

    # A picture or a video

    def _choose_video(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, self._choose_clip.accessibleName())
        if path:
            self.video.setText(path)

    def _choose_picture(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, self._choose.accessibleName())
        if path:
            self.asking.look_at(path)

    def _take_picture(self, picture: Picture) -> None:
        self._picture = picture
        drawn = QPixmap()
        drawn.loadFromData(picture.png)
        fitted = drawn.scaled(THUMBNAIL, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation)
        self._thumbnail.setPixmap(fitted)
        self._thumbnail.show()
        self._without.show()
        self._problem_card.hide()
        self._scaled.say(self._room.text.picture_scaled(picture))

    def _drop_picture(self) -> None:
        self._picture = None
        for widget in (self._thumbnail, self._without, self._scaled):
            widget.hide()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take a file, where the model reads pictures."""
        if self.asking.reads_pictures and self._dropped(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Read the file that was let go."""
        self._take_file(self._dropped(event))
        event.acceptProposedAction()

    def _take_file(self, path: str) -> None:
        """Take a picture or a video, by the end of the file's name; what it really is shows when it is read."""
        if self.asking.reads_videos and path.lower().endswith(VIDEO_ENDINGS):
            self.video.setText(path)
        else:
            self.asking.look_at(path)

    def _dropped(self, event: QDropEvent) -> str:
        return next((url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()), "")

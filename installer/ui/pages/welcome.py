"""Welcome: the language, what will happen, and that nothing changes yet."""

from __future__ import annotations

from PySide6.QtWidgets import QButtonGroup, QRadioButton

from installer.steps.bookmark import Page
from installer.text import Language
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.widgets.basics import Button, Icon, Label, row
from installer.ui.widgets.cards import Card
from installer.ui.widgets.wrapping import wrapping

LANGUAGES: tuple[tuple[Language, str], ...] = (("de", "Deutsch"), ("en", "English"))


class WelcomePage(PageWidget):
    """The first page."""

    page = Page.WELCOME

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._languages = Card()
        self._language_heading = Label("heading")
        self._languages.box.addWidget(self._language_heading)
        self._group = QButtonGroup(self)
        self._radios: dict[Language, QRadioButton] = {}
        for code, name in LANGUAGES:
            radio = QRadioButton(name)
            radio.setAccessibleName(name)
            radio.clicked.connect(lambda _=False, code=code: conductor.set_language(code))
            self._group.addButton(radio)
            self._radios[code] = radio
        self._languages.box.addWidget(wrapping(*self._radios.values()))
        self._story = Card()
        self._story_heading = Label("heading")
        self._story.box.addWidget(self._story_heading)
        self._lines = []
        for icon in ("gpu", "list-checks", "download", "package-check"):
            line = Label()
            box = row(Icon(icon, "accent"), line, spacing=12)
            box.setStretch(1, 1)
            self._story.box.addLayout(box)
            self._lines.append(line)
        self._promise = Label("caption")
        self.body.addWidget(self._languages)
        self.body.addWidget(self._story)
        self.body.addWidget(self._promise)
        self._look_up = Button("quiet", "search", on_click=self.lookup_wanted.emit)
        self.body.addWidget(wrapping(self._look_up))

    @property
    def valid(self) -> bool:
        """Let a person go on at once; what the next page needs is being read meanwhile."""
        return True

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Welcome"))
        self.lead.setText(_("Slipway sets up AI on your own computer: models that answer, read pictures or make them."))
        self._language_heading.setText(_("Language"))
        self._radios[self.text.language].setChecked(True)
        self._story_heading.setText(_("What will happen"))
        story = (
            _("Slipway looks at your graphics card and at how much of its memory is free."),
            _("You choose a model. Only what will really run on this card is offered, and the others say why not."),
            _("Slipway downloads a container image and the model, pins both to their exact version and starts them."),
            _("Real requests prove that it answers. Only then is it called installed."),
        )
        for label, sentence in zip(self._lines, story, strict=True):
            label.setText(sentence)
        self._look_up.say(_("Look up an error"))
        self._promise.setText(_("Nothing is downloaded or changed before you press Install. Nothing is sent anywhere."))

"""Options: folder, port, keys, start at sign-in. What is left alone, Slipway decides."""

from __future__ import annotations

from PySide6.QtGui import QIntValidator
from PySide6.QtWidgets import QFileDialog, QLineEdit

from installer.domain.problems import AnyProblem, PortTaken
from installer.steps.bookmark import Page
from installer.steps.flow import Flow, token_lacking
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.pages.proxy_card import ProxyCard
from installer.ui.pages.token_card import TokenCard
from installer.ui.widgets.basics import Button, Label, add, row
from installer.ui.widgets.cards import Card
from installer.ui.widgets.choices import CheckLine


class OptionsPage(PageWidget):
    """The sixth page. There is no switch for the network: the server listens on 127.0.0.1 only."""

    page = Page.OPTIONS

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._folder_card, self._folder_name, self._folder_words = Card(), Label("heading"), Label("caption")
        self._folder = QLineEdit()
        self._folder.editingFinished.connect(self._chose_folder)
        self._browse = Button("", "folder", on_click=self._pick_folder)
        line = row(self._folder, self._browse)
        line.setStretch(0, 1)
        self._folder_card.box.addWidget(self._folder_name)
        self._folder_card.box.addLayout(line)
        self._folder_card.box.addWidget(self._folder_words)

        self._port_card, self._port_name, self._port_words = Card(), Label("heading"), Label("caption")
        self._port = QLineEdit()
        self._port.setMaximumWidth(140)
        self._shown_port = ""
        self._port.setValidator(QIntValidator(1, 65535, self))
        self._port.editingFinished.connect(self._chose_port)
        self._port_card.box.addWidget(self._port_name)
        self._port_card.box.addWidget(self._port)
        self._port_card.box.addWidget(self._port_words)

        self._key_card, self._key_name, self._key_words = Card(), Label("heading"), Label("caption")
        self._key = QLineEdit()
        self._key.setEchoMode(QLineEdit.EchoMode.Password)
        self._key.editingFinished.connect(lambda: conductor.use_api_key(self._key.text()))
        add(self._key_card.box, self._key_name, self._key, self._key_words)
        self.token_card = TokenCard(conductor)

        self._start_card = Card()
        self._autostart = CheckLine(lambda on: conductor.choose(autostart=on))
        self._start_card.box.addWidget(self._autostart)
        self._proxies = ProxyCard()
        add(self.body, self.token_card, self._folder_card, self._port_card, self._key_card)
        add(self.body, self._start_card, self._proxies)

    def look_again(self) -> None:
        """Look at the port again where that is what is wrong, else at the computer."""
        if isinstance(self.error, PortTaken):
            self.conductor.look_at_port()
        else:
            super().look_again()

    def again_label(self, problem: AnyProblem) -> str:
        """Offer to look again at a port: the program that had it may be closed by now."""
        return self.text.gettext("Check again") if isinstance(problem, PortTaken) else super().again_label(problem)

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Options"))
        self._folder_name.setText(self.text.choice_name("folder"))
        self._folder.setAccessibleName(self._folder_name.text())
        self._browse.say(_("Browse"), _("Browse for a folder for the models"))
        self._port_name.setText(self.text.choice_name("port"))
        self._port.setAccessibleName(self._port_name.text())
        self._port_words.setText(
            _("The server listens at 127.0.0.1 only: other computers in the network do not reach it.")
        )
        self._key_name.setText(self.text.choice_name("api_key"))
        self._key.setAccessibleName(self._key_name.text())
        self._key.setPlaceholderText(_("a new one is made"))
        self._key_words.setText(_("Programs that use the server need it. It is kept in a file that only you can read."))
        self._autostart.say(_("Start when I sign in"))

    def show_flow(self) -> None:
        flow = self.flow
        if flow is None or flow.facts is None:
            return
        engine = flow.facts.engine
        self.token_card.show_flow()
        self._show_lead(flow)
        self._folder.setEnabled(not engine.docker_desktop)
        self._browse.setVisible(not engine.docker_desktop)
        if not self._folder.hasFocus():
            self._folder.setText(flow.choices.folder or flow.facts.weights_folder.path)
        self._folder_words.setText(self._room(engine.docker_desktop, flow.facts.weights_folder.free_bytes))
        if not self._port.hasFocus():
            port = flow.choices.port or (flow.plan.port if flow.plan else next(iter(flow.facts.ports.free), 8000))
            self._shown_port = str(port)
            self._port.setText(self._shown_port)
        self._autostart.box.setChecked(flow.choices.autostart)
        self._proxies.show_facts(flow.facts, self.text)

    def _show_lead(self, flow: Flow) -> None:
        _ = self.text.gettext
        if token_lacking(flow) is None:
            self.lead.setText(_("All of this may stay as it is."))
        else:
            self.lead.setText(_("Only a token is missing. The rest may stay as it is."))

    def _room(self, docker_desktop: bool, free_bytes: int | None) -> str:
        _ = self.text.gettext
        if docker_desktop:
            return _(
                "Docker Desktop keeps models on its own disk, which reads them much faster. Docker Desktop's settings, "
                "Resources, say where that disk lies and move it."
            )
        return "" if free_bytes is None else _("{free} free", free=self.text.gb(free_bytes))

    def _chose_folder(self) -> None:
        folder = self._folder.text().strip() or None
        known = self.flow.facts.weights_folder.path if self.flow and self.flow.facts else None
        if folder != known:
            self.conductor.choose(folder=folder)

    def _pick_folder(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, self._folder_name.text(), self._folder.text())
        if folder:
            self._folder.setText(folder)
            self._chose_folder()

    def _chose_port(self) -> None:
        """Take a port that was typed: one that was only shown stays Slipway's to change."""
        if self._port.text() == self._shown_port:
            return
        self.conductor.choose(port=int(self._port.text()) if self._port.text() else None)

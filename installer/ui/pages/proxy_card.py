"""The proxies in force: what each side goes through, where that is set, and what to do where the two differ."""

from __future__ import annotations

from installer.domain import proxy
from installer.domain.facts import Facts
from installer.text import Text
from installer.ui.widgets.basics import Label, Rule, add, breakable, clear, column
from installer.ui.widgets.cards import Card
from installer.ui.widgets.figures import Figures


class ProxyCard(Card):
    """Hidden where neither this computer nor Docker has a proxy."""

    def __init__(self) -> None:
        super().__init__()
        self._name, self._figures, self._advice = Label("heading"), Figures(), column(6)
        add(self.box, self._name, self._figures)
        self.box.addLayout(self._advice)
        self._shown: tuple[object, ...] = ()

    def show_facts(self, facts: Facts, text: Text) -> None:
        """Show the proxies of a machine."""
        self.setVisible(bool(facts.host.proxy.shown or facts.engine.proxy.shown))
        self._name.setText(text.gettext("Proxies in force"))
        self._figures.show_rows(text.proxies(facts))
        said = tuple(text.problem(problem) for problem in proxy.advice(facts))
        if said == self._shown:
            return
        self._shown = said
        clear(self._advice)
        for each in said:
            sentences = (Label("", breakable(words)) for words in (each.sentence, each.remedy))
            add(self._advice, Rule(), Label("strong", each.title), *sentences)

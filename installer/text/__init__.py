"""Every sentence that both front ends say, in German and English.

A front end holds one `Text`; another language is another `Text`. Facts and Problems carry no sentences of their own.
"""

from __future__ import annotations

from installer.domain.calibration import StartFigures
from installer.domain.facts import Facts, Missing
from installer.domain.memory import Limit, Verdict
from installer.domain.offers import Offer, Reason
from installer.domain.plan import Plan
from installer.domain.problems import AnyProblem, Treatment
from installer.domain.registry import Evidence, EvidenceKind
from installer.domain.video import Sampling
from installer.steps.ask import Answer
from installer.steps.events import Note, Step
from installer.steps.ports import Picture
from installer.steps.report import Report
from installer.steps.smoke import Check
from installer.steps.speed import Estimate
from installer.text import ask, context, flags, media, memory, names, notes, pin, proxy, report, speed
from installer.text.language import choose_language
from installer.text.notes import StepText
from installer.text.numbers import Language
from installer.text.problems import words_for
from installer.text.voice import ProblemText, Voice

__all__ = ["Language", "ProblemText", "StepText", "Text", "choose_language"]


class Text(Voice):
    """All sentences, in one language. Raises resources.ResourceMissing where its catalogue is not there."""

    def problem(self, problem: AnyProblem) -> ProblemText:
        """Return a Problem's title, what is wrong, and what to do."""
        return words_for(problem, self)

    def reason(self, reason: Reason) -> str:
        """Say why an offer fits, is tight, or is not possible."""
        return notes.reason(reason, self)

    def levers(self, offer: Offer) -> str:
        """Say what would help an offer that is tight or does not fit; "" where no single change does."""
        return memory.levers(offer, self)

    def own_starts(self, offer: Offer) -> str:
        """Say that an offer counts what this machine's own starts taught; "" where there was none."""
        return memory.recalibrated(offer.starts, self) if offer.starts else ""

    def compared(self, figures: StartFigures) -> tuple[tuple[str, str, str], ...]:
        """Return what a start told of its memory: name, what was seen, what was predicted."""
        return memory.comparison(figures.predicted, figures.logged, self)

    def verdict(self, verdict: Verdict) -> str:
        """Return a verdict in a word or two."""
        return names.verdict(verdict, self)

    def treatment(self, treatment: Treatment) -> str:
        """Say what Slipway does about a Problem by itself."""
        return names.treatment(treatment, self)

    def limit(self, limit: Limit) -> str:
        """Return the term that is short."""
        return names.limit(limit, self)

    def term(self, name: str) -> str:
        """Return a part of the card's memory: weights, kv, overhead, hidden, free, or the name of a Term."""
        return names.term(name, self)

    def evidence(self, kind: EvidenceKind, *, untested: bool) -> str:
        """Say in a few words how sure an offer is."""
        return notes.evidence(kind, self, untested=untested)

    def evidence_of(self, row: Evidence) -> str:
        """Return one row of a profile's evidence."""
        return notes.evidence_of(row, self)

    def step(self, step: Step) -> StepText:
        """Return a step's name, and what to say while it runs and when it is done."""
        return notes.step(step, self)

    def skipped(self, step: Step) -> str:
        """Say that a step's result was there already."""
        return notes.step(step, self).skipped

    def note(self, note: Note) -> str:
        """Return the sentence of a note."""
        return notes.note(note, self)

    def phase(self, name: str) -> str:
        """Say how far the server's start is."""
        return names.phase(name, self)

    def check(self, check: Check) -> str:
        """Return one line about a check of the proof."""
        return notes.check(check, self)

    def check_name(self, check: Check) -> str:
        """Return what a check of the proof is called."""
        return names.check(check.name, self)

    def check_found(self, check: Check) -> str:
        """Return what a check found and how long it took; one that did not pass says so."""
        return notes.found_or_not(check, self)

    def state(self, name: str) -> str:
        """Return how an installed stack does."""
        return names.state(name, self)

    def missing(self, missing: Missing) -> str:
        """Say why a figure is not there."""
        return names.missing(missing, self)

    def choice(self, field: str) -> str:
        """Return one line about a field of Choices."""
        return names.choice_help(field, self)

    def choice_name(self, field: str) -> str:
        """Return the label of a field of Choices, or of a server setting."""
        return names.choice_name(field, self)

    def flag_reason(self, reason_id: str) -> str:
        """Say why an argument of the server has its value; an unknown id comes back as it is."""
        return flags.flag_reasons(self).get(reason_id, reason_id)

    def extent(self, offer: Offer) -> str:
        """Return how far an offer goes: its context, or its reference images where it makes pictures."""
        if offer.context:
            return self.tokens(offer.context)
        return self.ngettext("{count} reference image", "{count} reference images", offer.references)

    def tokens_of(self, limit_tokens: int, native_tokens: int) -> str:
        """Return a context beside the longest that the model can take."""
        return self.gettext("{limit} of {native}", limit=self.number(limit_tokens), native=self.tokens(native_tokens))

    def context_of(self, plan: Plan) -> str:
        """Say what the context limit of a plan means, with the plan's own figures."""
        return self.context_copy(
            plan.settings.context,
            plan.native_context,
            reads_media=plan.settings.reads_media,
            graphics_card=plan.gpu is not None,
        )

    def context_copy(
        self, limit_tokens: int, native_tokens: int, *, reads_media: bool = True, graphics_card: bool = True
    ) -> str:
        """Say what the context limit of the chosen profile means, where it comes from, and what helps."""
        return context.context_copy(
            limit_tokens, native_tokens, self, reads_media=reads_media, graphics_card=graphics_card
        )

    def answer_figures(self, answer: Answer) -> str:
        """Return what was measured of an answer in one line; "" where nothing was told."""
        return ask.figures(answer, self)

    def answer_ended(self, answer: Answer) -> str:
        """Say that an answer was cut off; "" where it ended by itself."""
        return ask.ended(answer, self)

    def picture_scaled(self, picture: Picture) -> str:
        """Say that a picture is sent smaller than it is; "" where it is not."""
        return ask.scaled(picture, self)

    def pin_of(self, plan: Plan) -> str:
        """Say which image the next start uses."""
        return pin.state(plan, self)

    def pin_meaning(self) -> str:
        """Say what it means to pin."""
        return pin.meaning(self)

    def video_sampled(self, sampling: Sampling) -> str:
        """Say that fewer frames of a video are read than its length deserves; "" where it is not so."""
        return media.sampled(sampling, self)

    def proxies(self, facts: Facts) -> tuple[tuple[str, str], ...]:
        """Return what this computer and Docker go through, and where a person changes that."""
        return proxy.in_force(facts, self)

    def estimate(self, estimate: Estimate) -> str:
        """Say how long the download will take at the measured speed."""
        return speed.estimate(estimate, self)

    def report(self, made: Report) -> str:
        """Return the report of an installation as Markdown."""
        return report.markdown(made, self)

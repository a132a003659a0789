"""The grounding metric: correct, supported by what it cites, and refused when it should be."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from trustassay.capabilities import Entailment, Models
from trustassay.metric import (
    Assessment,
    Figure,
    Inventory,
    Metric,
    Summary,
    UnknownNameError,
    did_you_mean,
)
from trustassay.metrics.grounding.assessing import Assessing
from trustassay.metrics.grounding.keys import FIGURES
from trustassay.metrics.grounding.refusal import Detector, detector
from trustassay.metrics.grounding.rules import PROFILES, Rules
from trustassay.metrics.grounding.sentences import Splitter, splitter
from trustassay.metrics.grounding.summary import summarise
from trustassay.sample import Problem, Sample

__all__ = ["Grounding"]

Correctness = Literal["auto", "em", "em5", "cm", "none"]


@dataclass(frozen=True)
class Grounding(Metric):
    """Is a cited answer correct, supported by its citations, and refused when it should be?

    Args:
        profile: ``default``, or ``paper`` for the numbers of trust_eval 0.1.6, oddities included.
        correctness: ``em`` (short gold answers stand in the response), ``em5`` (the response is a
            list), ``cm`` (gold claims that the response entails), ``none``; ``auto`` takes ``cm``
            where samples bring claims or their answers are whole sentences, else ``em``.
        splitter: sentence splitter by name (``sentencex``, ``punkt``, ``lines``; a language may
            follow, as in ``sentencex:de``) or a function; ``None``: the profile's.
        refusal: refusal detector by name (``phrases``, ``paper``) or a function of the response.
        threshold: probability of entailment from which a premise entails.
        at_most_citations: citations of a statement that count; ``None``: all.
        others: see :class:`~trustassay.metrics.grounding.rules.Rules`; ``None``: the profile's.
    """

    name: ClassVar[str] = "grounding"
    title: ClassVar[str] = "Grounding of cited answers (Trust-Eval)"
    needs: ClassVar[frozenset[str]] = frozenset({"entailer"})
    verdicts: ClassVar[tuple[str, ...]] = ("answered", "refused")
    figures: ClassVar[dict[str, Figure]] = FIGURES

    profile: str = "default"
    correctness: Correctness = "auto"
    splitter: str | Splitter | None = None
    refusal: str | Callable[[str], object] | None = None
    threshold: float = 0.5
    at_most_citations: int | None = 3
    one_text: bool | None = None
    lists: bool | None = None
    trailing: bool | None = None
    lines: bool | None = None
    zero: Literal["invalid", "last"] | None = None
    invalid: Literal["void", "imprecise"] | None = None
    duplicates: Literal["once", "each"] | None = None
    precision: Literal["paper", "alce"] | None = None
    words: bool | None = None
    lists_split: bool | None = None
    blank: Literal["zero", "skip"] | None = None

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise UnknownNameError(did_you_mean("profile", self.profile, PROFILES))
        for option, allowed in _CHOICES.items():
            value = getattr(self, option)
            if value is not None and value not in allowed:
                raise UnknownNameError(did_you_mean(f"value of {option}", str(value), allowed))
        if self.at_most_citations is not None and self.at_most_citations < 1:
            raise ValueError("at_most_citations: expected 1 or more, or none")
        if not self.rules.lists and (self.trailing or self.lines):
            raise ValueError("trailing and lines need lists=yes: the paper's reading has neither")
        if not 0 < self.threshold < 1:
            raise ValueError("threshold: expected a probability between 0 and 1")
        _ = self.split, self.refusal_words  # an unknown name is to fail here

    @cached_property
    def rules(self) -> Rules:
        """The rules of the profile with this metric's own options put in."""
        own = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(Rules)
            if hasattr(self, f.name)
        }
        named = {k: v for k, v in own.items() if v is not None and not callable(v)}
        return dataclasses.replace(PROFILES[self.profile], **named)

    @cached_property
    def split(self) -> Splitter:
        """The sentence splitter of this metric."""
        return splitter(self.splitter if callable(self.splitter) else self.rules.splitter)

    @cached_property
    def refusal_words(self) -> Detector:
        """The refusal detector of this metric."""
        return detector(self.refusal if callable(self.refusal) else self.rules.refusal)

    def settings(self) -> dict[str, Any]:
        """Return the options with every default filled in by the profile."""
        options = super().settings()
        rules = dataclasses.asdict(self.rules)
        return {k: rules.get(k) if v is None and k in rules else v for k, v in options.items()}

    def resolved(self, inventory: Inventory) -> Grounding:
        """Settle ``correctness=auto`` by what the samples bring."""
        if self.correctness != "auto":
            return self
        chosen: Correctness = "none"
        if inventory.claims or inventory.sentence_answers * 2 > inventory.answers > 0:
            chosen = "cm"
        elif inventory.answers:
            chosen = "em"
        return dataclasses.replace(self, correctness=chosen)

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response, and documents (an empty list says there were none)."""
        found = []
        if sample.response is None:
            found.append(Problem("response", "is missing (expected the text to assess)"))
        if sample.documents is None:
            found.append(Problem("documents", "is missing (expected the passages shown)"))
        flags = {len(document.supports or ()) for document in sample.documents or ()}
        if len(flags) > 1 and not self.golds(sample):
            found.append(Problem("documents", "have lists of supports that differ in length"))
        return found

    def golds(self, sample: Sample) -> list[tuple[str, ...]]:
        """Return what the response is held against: for each gold answer or claim its aliases."""
        if self.correctness == "cm":
            return [(claim,) for claim in sample.claims] or [a[:1] for a in sample.answers]
        return list(sample.answers)

    async def assess(self, sample: Sample, models: Models) -> Assessment:
        """Score one answer; the trace of every decision stands in the evidence."""
        return await Assessing(self, sample, models).result()

    def entails(self, judgement: Entailment) -> bool:
        """Whether a judgement counts as entailed."""
        return judgement.entailment >= self.threshold

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return every figure of Trust-Eval, with intervals over answers; nothing is drawn."""
        return summarise(self, assessments)


_CHOICES: dict[str, tuple[str, ...]] = {
    "correctness": ("auto", "em", "em5", "cm", "none"),
    "zero": ("invalid", "last"),
    "invalid": ("void", "imprecise"),
    "duplicates": ("once", "each"),
    "precision": ("paper", "alce"),
    "blank": ("zero", "skip"),
}

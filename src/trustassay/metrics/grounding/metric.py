"""The grounding metric: correct, supported by what it cites, and refused when it should be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trustassay.metric import Assessment, Context, Figure, Need, Summary, directions
from trustassay.metrics.grounding.assessing import Assessing
from trustassay.metrics.grounding.keys import FIGURES
from trustassay.metrics.grounding.options import GroundingOptions
from trustassay.metrics.grounding.summary import summarise
from trustassay.metrics.grounding.text import cites
from trustassay.metrics.grounding.view import problem_in, view_of
from trustassay.metrics.grounding.weighted import WeightedAnswers
from trustassay.sample import Problem, Sample
from trustassay.texts import TextWork
from trustassay.views import View

__all__ = ["Grounding"]


@dataclass(frozen=True)
class Grounding(GroundingOptions):
    """Is a cited answer correct, supported by its citations, and refused when it should be?

    Args:
        profile: ``default``, or ``paper`` for the numbers of trust_eval 0.1.6, with its errors.
        correctness: ``em`` (short gold answers are in the response), ``em5`` (the response is a
            list), ``cm`` (gold claims that the response entails), ``none``; ``auto`` takes ``cm``
            if samples have claims or their answers are whole sentences, else ``em``.
        splitter: sentence splitter by name (``sentencex``, ``punkt``, ``lines``; a language may
            follow, as in ``sentencex:de``) or a function; ``None``: the profile's.
        refusal: refusal detector by name (``phrases``, ``paper``) or a function of the response.
        threshold: probability from which a pair counts as entailed.
        at_most_citations: citations of a statement that count; ``None``: all.
        cited_only: an answer that cites none of its documents has no score.
        others: see :class:`~trustassay.metrics.grounding.rules.Rules`; ``None``: the profile's.
    """

    title: ClassVar[str] = "Grounding of cited answers (Trust-Eval)"
    part_directions = directions(
        neither="answered answered_stripped words blank answerable golds hits supported "
        "supported_hits elements precise_elements supported_elements wrong_in_documents statements "
        "supported_statements citations precise_citations invalid_citations"
    )
    fills: ClassVar[tuple[str, ...]] = ("documents",)
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    verdicts: ClassVar[tuple[str, ...]] = ("answered", "refused")
    figures: ClassVar[dict[str, Figure]] = FIGURES

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response and documents (which may be an empty list)."""
        found = []
        if sample.response is None:
            found.append(Problem("response", "is missing (expected the text to assess)"))
        if sample.documents is None:
            found.append(Problem("documents", "is missing (expected the passages shown)"))
        flags = {len(document.supports or ()) for document in sample.documents or ()}
        if len(flags) > 1 and not self.golds(sample):
            found.append(Problem("documents", "have lists of supports that differ in length"))
        return found

    def needs(self) -> Sequence[Need]:
        """An entailer; and a retriever for samples without documents, if there is one."""
        return (Need("entail"), Need("search", optional=True))

    async def assess(self, context: Context) -> Assessment:
        """Score one answer; the trace of every decision is in the evidence."""
        sample = context.sample
        if self.cited_only and not cites(sample.response or "", len(sample.documents or ())):
            return Assessment(sample.id, self.name, None, reason="cites no document")
        work = TextWork.on(sample)
        answer = await work(Assessing, self, context)
        return await answer.result()

    @property
    def line(self) -> str:
        """A sentence or citation that does not hold, or a wrong refusal."""
        return (
            "the passages cited by one of its sentences do not entail it (probability below "
            f"{self.threshold:g}, threshold), a citation is not needed or incorrect, it is blank, "
            "or it refuses what the passages answer"
        )

    def problem(self, assessment: Assessment) -> str | None:
        """Return what is wrong with an answer: a wrong refusal, or what its sentences lack."""
        return problem_in(assessment, self.score_range[0])

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the sentences with their citations, the gold answers, and notes on passages."""
        return view_of(sample, assessment, self.score_range[0])

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return every figure of Trust-Eval, with intervals over answers; nothing is random."""
        return summarise(self, assessments)

    def weighted(self, assessments: Iterable[Assessment]) -> WeightedAnswers:
        """Return every figure, the Trust-Score with all that it is made of, over resamples."""
        return WeightedAnswers.of(self, assessments)

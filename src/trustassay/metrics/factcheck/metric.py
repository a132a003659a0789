"""The metric ``factcheck``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trustassay.errors import AssessmentError
from trustassay.metric import Assessment, Context, Figure, Mean, Need, Share, Total, directions
from trustassay.metrics.factcheck.checking import NO_EVIDENCE, Evidence, checked, evidence_for
from trustassay.metrics.factcheck.maths import SCORES
from trustassay.metrics.factcheck.options import FactCheckOptions
from trustassay.metrics.factcheck.view import problem_in, view_of
from trustassay.metrics.grounding.declining import NO_ANSWER, no_answer
from trustassay.metrics.grounding.text import without_citations
from trustassay.sample import Problem, Sample, is_blank
from trustassay.texts import TextWork
from trustassay.verdicts import VERDICTS
from trustassay.views import View

__all__ = ["FactCheck"]


@dataclass(frozen=True)
class FactCheck(FactCheckOptions):
    """Do passages found for an answer support it, contradict it, or leave it open?

    Trust_FC of Zheng et al. 2024 (sections 2.2 and A.5.2): a statement that the answer is correct
    is the query, and what the best passages say of question and answer is the verdict. The score
    is 1 for support, 0.5 for neutral, 0 for contradict; the paper gives it no number by itself. A
    run without a retriever takes the sample's own documents for the passages; a sample that has
    none either is not assessable. Marks of citations are no part of the answer.

    Args:
        k: passages that are retrieved, 10 as in the paper. A sample's own documents count all.
        by: the run's ``entailer``, which judges each passage by itself, or a ``model``, the judge,
            which is shown all of them.
        threshold: probability from which a passage entails, or contradicts.
        rule: where one passage supports and another contradicts: ``support``, or the ``stronger``.
        statement: file of a template of the query, with ``question`` and ``answer``.
        hypothesis: file of a template of what the entailer judges, with the same.
        prompt: file of a template for the judge, with ``passages``, ``question`` and ``answer``.
        max_tokens: of the judge's reply.
    """

    name: ClassVar[str] = "factcheck"
    title: ClassVar[str] = "Fact check (Trust_FC)"
    part_directions = directions(
        higher="entailment", lower="contradiction", neither="assessable passages unparsed"
    )
    verdicts: ClassVar[Sequence[str]] = VERDICTS
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    figures: ClassVar[Mapping[str, Figure]] = {
        figure.key: figure
        for figure in (
            Figure("mean", "mean score, Trust_FC", "", headline=True, statistic=Mean()),
            Figure(
                "support",
                "answers that the evidence supports",
                headline=True,
                statistic=Share("support"),
            ),
            Figure("neutral", "answers that the evidence leaves open", statistic=Share("neutral")),
            Figure(
                "contradict",
                "answers that the evidence contradicts",
                headline=True,
                statistic=Share("contradict"),
            ),
            Figure(
                "assessable",
                "share of answers with evidence to check them against",
                "",
                statistic=Mean("assessable", (0.0, 1.0)),
            ),
            Figure("passages", "passages for each answer", "", statistic=Mean("passages")),
            Figure(
                "unparsed",
                "passages whose judgement named no verdict",
                "",
                statistic=Total("unparsed"),
            ),
        )
    }

    def needs(self) -> Sequence[Need]:
        """Who judges, and a retriever where the samples' own documents are not to serve."""
        judge = Need("entail") if self.by == "entailer" else Need("chat", "judge")
        return (judge, Need("search", optional=True, field="documents"))

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response."""
        if sample.response is None:
            return [Problem("response", "is missing (expected the answer to check)")]
        return []

    async def assess(self, context: Context) -> Assessment:
        """Find evidence, have it judged, and keep both."""
        return await self.judged(context, await self.evidence(context))

    async def evidence(self, context: Context) -> Evidence | None:
        """Return what the answer is checked against; ``None`` where there is nothing.

        Raises:
            AssessmentError: the response is blank.
            BackendError: the retriever failed.
        """
        sample = context.sample
        bare = await TextWork.on(sample)(without_citations, sample.response or "")
        answer = bare.strip()
        if is_blank(answer):
            raise AssessmentError("the response is blank", "empty")
        if no_answer(answer):
            return None
        return await evidence_for(self, sample, answer, context.models)

    async def judged(self, context: Context, evidence: Evidence | None) -> Assessment:
        """Have the evidence judged; without any the answer is not assessable.

        Raises:
            BackendError: who judges failed, or named no verdict.
        """
        sample = context.sample
        if evidence is None:
            parts = {"assessable": 0.0}
            reason = NO_ANSWER if no_answer(sample.response or "") else NO_EVIDENCE
            return Assessment(sample.id, self.name, None, reason=reason, parts=parts)
        found = await checked(self, evidence, context.models)
        return Assessment(
            sample.id,
            self.name,
            SCORES[found.verdict],
            verdict=found.verdict,
            reason=found.reason,
            parts={"assessable": 1.0, **found.parts},
            evidence=found.rows,
        )

    @property
    def line(self) -> str:
        """The rule of :meth:`problem`."""
        return "the evidence contradicts it, or there is none to check it against"

    def problem(self, assessment: Assessment) -> str | None:
        """Say where the evidence contradicts an answer."""
        return problem_in(assessment)

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the statement and the passages with what each says of it."""
        return view_of(sample, assessment)

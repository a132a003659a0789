"""The metric ``faithfulness``, its options, which ``rag`` and ``tool_use`` share, and its view."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from trustassay.core.event_loop import gather_all
from trustassay.core.evidence import (
    EvidenceLink,
    EvidenceRows,
    JudgedPiece,
    PassageNote,
    View,
)
from trustassay.core.metric import (
    Assessment,
    Context,
    Figure,
    Mean,
    Metric,
    Need,
    Share,
    Total,
    directions,
    index_figures,
)
from trustassay.core.prompts import prompt_property
from trustassay.core.sample import Document, Problem, Sample, find_missing
from trustassay.errors import UsageError, check_choices, check_least
from trustassay.judging import verdict as judging
from trustassay.judging.claims import Claim, build_claims, parse_claim_list
from trustassay.judging.evidence import ClaimVerdict, JudgedClaim
from trustassay.judging.refusal import Detector, drop_asides, find_refusal, load_detector
from trustassay.judging.second_reader import PART_READ_BY_SECOND, ROLE, read_deciding_statements
from trustassay.judging.verdict import ClaimVerifier, VerdictOptions, find_inner_names
from trustassay.metrics.grounding.evidence import Refusal
from trustassay.text.limits import TextWork
from trustassay.text.numbers import amount
from trustassay.text.refusals import is_no_answer_placeholder
from trustassay.text.sentences import Splitter, load_splitter

ClaimsFrom = Literal["sentences", "model"]


@dataclass(frozen=True)
class FaithfulnessOptions(Metric):
    """The options, which ``rag`` and ``tool_use`` share; see :class:`Faithfulness`."""

    claims: ClaimsFrom = "sentences"
    threshold: float = 0.5
    contradiction: float = 0.5
    near: float = 0.5
    splitter: str = "sentencex"
    refusal: str = "phrases"
    prompt: str | None = None
    max_tokens: int = 1024

    def __post_init__(self) -> None:
        check_least(self, max_tokens=1)
        check_choices(self, claims=ClaimsFrom)
        for option in ("threshold", "contradiction"):
            if not 0 < getattr(self, option) <= 1:
                raise UsageError(f"{option}: expected a number above 0 and up to 1")
        if not 0 <= self.near <= 1:
            raise UsageError("near: expected a number from 0 to 1")
        # Build these now: an unknown name or a faulty file must fail before a run starts.
        _ = self.split, self.refuses, self.claims_prompt

    @cached_property
    def split(self) -> Splitter:
        """The splitter of sentences."""
        return load_splitter(self.splitter)

    @cached_property
    def refuses(self) -> Detector:
        """The detector of refusals."""
        return load_detector(self.refusal)

    claims_prompt = prompt_property(
        "trustassay.metrics.faithfulness", "claims", variables="question answer"
    )
    """The template by which a model is asked for an answer's claims."""

    async def claims_of(self, context: Context, text: str) -> Sequence[Claim]:
        """Return the claims of an answer to the sample's question: its sentences by rules, or the
        list that the judge writes.
        """
        sample = context.sample
        if self.claims == "sentences":
            return await TextWork.for_sample(sample)(self._split_by_rules, context, text)
        prompt = self.claims_prompt
        reply = await context.models.chat(
            prompt.fill(question=sample.question, answer=text),
            role="judge",
            max_tokens=self.max_tokens,
            prompt=prompt.name,
        )
        return parse_claim_list(reply.text, text)

    def _split_by_rules(self, context: Context, text: str) -> list[Claim]:
        sample = context.sample
        # Capitalised words inside the passages' sentences are names; a heading or list lead that
        # holds one belongs to the claims below it.
        names = {
            name for document in sample.documents or () for name in find_inner_names(document.text)
        }
        return build_claims(sample.question, text, self.split, names=names)

    def refusal_in(self, response: str, claims: Sequence[Claim]) -> str | None:
        """Return the words by which a response declines as a whole; ``None`` if it answers."""
        # The default detector works on claims, which tell a refusal of the whole question from one
        # of a detail. Other detectors see the text alone.
        rules = self.refusal == "phrases" and self.claims == "sentences"
        return find_refusal(claims) if rules else self.refuses(response)

    def verifier(self, context: Context, documents: Sequence[Document]) -> ClaimVerifier:
        """Build the verifier that judges claims by these passages.

        Raises:
            AssessmentError: the passages are too long to assess.
        """
        options = VerdictOptions(self.threshold, self.contradiction, self.near)
        question = context.sample.question
        result = ClaimVerifier(
            options, context.models, question, documents, self.split, context.second
        )
        context.limits.check_count("sentences of its passages", result.sentence_count)
        return result


NO_PASSAGES = "no passages to judge the answer by"
ANSWER_VERDICTS = ("supported", "not found", "contradicted", "no claim", "refused")
"""Verdicts on whole answers."""


def worst_verdict(verdicts: Sequence[str]) -> ClaimVerdict:
    """Return the verdict on an answer: contradicted if any statement is, else not found, ..."""
    order: Sequence[ClaimVerdict] = ("contradicted", "not found", "supported")
    return next((verdict for verdict in order if verdict in verdicts), "no claim")


class FaithfulnessTrace(NamedTuple):
    """All evidence of one assessment, sorted by kind."""

    statements: Sequence[JudgedClaim]
    """The sentences or claims that were judged, in the order of the answer."""
    refusal: str
    """The words by which the answer was taken for a refusal; empty if it was not."""
    other_items: Sequence[Mapping[str, Any]]
    """Evidence of any other kind, as it is stored."""

    @classmethod
    def read(cls, evidence: Iterable[Any], documents: int = 0) -> "FaithfulnessTrace":
        """Sort the evidence of a sample.

        Args:
            evidence: the stored rows.
            documents: number of documents of the sample; passages with a higher number are dropped.
        """
        rows = EvidenceRows(evidence, JudgedClaim, Refusal)
        statements = [
            # Evidence comes from a file, so a number may point at a passage that the sample lacks.
            replace(row, passages=[n for n in row.passages or () if 1 <= n <= documents])
            for row in rows.select(JudgedClaim)
        ]
        # At most one row of this kind is written; of several in an edited file the last one
        # counts.
        refusals = [row.text for row in rows.select(Refusal)]
        return cls(statements, "".join(refusals[-1:]), rows.other_items)


@dataclass(frozen=True)
class Faithfulness(FaithfulnessOptions):
    """Do the passages support every sentence of an answer?

    Each sentence is supported, contradicted or not found. The score, 0 to 1, is the share of
    supported sentences among those that claim something. The verdict on the answer is that of its
    worst sentence. The metric needs no citations and no gold answers. A refusal has no score,
    and neither has an answer without passages.

    A sentence is read against the part of the passages that has most of its words, and against
    sentences from all passages that have them together; the mean of both readings' log-odds counts.
    It is contradicted if that part contradicts it and is about the same subject.

    Args:
        claims: what is judged: the ``sentences``, or the claims that the judge lists (``model``).
        threshold: probability from which a passage supports.
        contradiction: probability from which a passage contradicts.
        near: share of a sentence's content words that two neighbouring sentences of a passage must
            contain before the passage can contradict the sentence.
        splitter: name of a sentence splitter, as for ``grounding``.
        refusal: name of a refusal detector, as for ``grounding``.
        prompt: file with a template for ``claims=model``, with ``question`` and ``answer``.
        max_tokens: limit of the judge's reply.
    """

    name: ClassVar[str] = "faithfulness"
    title: ClassVar[str] = "Faithfulness to the passages"
    part_directions = directions(
        higher="support weakest order", neither="statements supported contradicted no_passages"
    )
    fills: ClassVar[tuple[str, ...]] = ("documents",)
    ordered_by: ClassVar[str] = "order"
    verdicts: ClassVar[Sequence[str]] = ANSWER_VERDICTS
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    figures: ClassVar[Mapping[str, Figure]] = index_figures(
        Figure("mean", "mean share of sentences that the passages support", "",
            headline=True, statistic=Mean()),
        Figure("supported", "answers whose sentences are all supported", headline=True,
            statistic=Share("supported")),
        Figure("not_found", "answers whose worst sentence is in no passage",
            headline=True, statistic=Share("not found"), better="lower"),
        Figure("contradicted", "answers with a sentence that a passage contradicts", headline=True,
            statistic=Share("contradicted"), better="lower"),
        Figure("refused", "answers that refuse", statistic=Share("refused")),
        Figure("no_claim", "answers that claim nothing", statistic=Share("no claim"),
            better="lower"),
        Figure("no_passages", "answers without passages", "", statistic=Total("no_passages")),
        Figure("statements", "sentences judged", "", statistic=Total("statements")),
        Figure("support", "mean probability that a sentence is supported", "",
            statistic=Mean("support", (0.0, 1.0))),
    )  # fmt: skip

    def needs(self) -> Sequence[Need]:
        """An entailer; a retriever and a second reader, if there are; for claims=model a judge."""
        needs: tuple[Need, ...] = (Need("entail"), Need("search", optional=True))
        needs = (*needs, Need("entail", ROLE, optional=True))
        return (*needs, Need("chat", "judge")) if self.claims == "model" else needs

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response and documents (which may be an empty list)."""
        return find_missing(sample, response="the text to assess", documents="the passages shown")

    async def assess(self, context: Context) -> Assessment:
        """Judge every sentence; the evidence holds each one with the passage that decides."""
        sample, response = context.sample, context.response()
        # "No answer found" and the like is a refusal of its own: it needs no claims and no reader.
        claims = (
            [] if is_no_answer_placeholder(response) else await self.claims_of(context, response)
        )
        refusal = (
            response if is_no_answer_placeholder(response) else self.refusal_in(response, claims)
        )
        # A claim with a topic says that the passages do not speak of it. That can be wrong, so
        # such a refusal is judged like an answer.
        if refusal and not any(claim.topic for claim in claims):
            rows = [Refusal(refusal, self.refusal)]
            message = "refuses to answer"
            return self.build_assessment(sample, None, rows, verdict="refused", reason=message)
        # Also true of an empty list: nothing was retrieved, and there is nothing to judge by.
        if all(document.blank for document in sample.documents or ()):
            return self.build_assessment(
                sample, None, reason=NO_PASSAGES, parts={"no_passages": 1.0}
            )
        # In a refusal that is judged, polite offers around the refusing words are no claims.
        claims = drop_asides(claims) if refusal else claims
        context.limits.check_count("statements", len(claims))
        work = TextWork.for_sample(sample)
        judge = await work(self.verifier, context, sample.documents or ())
        judged = await gather_all(map(judge.judge, claims))
        if context.second is None:
            return self._build_assessment(sample, judged)
        # Only what the first reader read can be read a second time; a second reader confirms or
        # lifts doubts and is not asked about supported claims.
        claiming = [place for place, finding in enumerate(judged) if finding.entailment is not None]
        judged, times_read = await read_deciding_statements(
            judged,
            claiming,
            lambda finding: finding.row.verdict != "supported",
            lambda place: judge.judge_again(claims[place], judged[place]),
        )
        result = self._build_assessment(sample, judged)
        return replace(result, parts={**result.parts, PART_READ_BY_SECOND: float(times_read)})

    def _build_assessment(
        self, sample: Sample, judged: Sequence[judging.ClaimFinding]
    ) -> Assessment:
        rows = [finding.row for finding in judged]
        # Sentences without a claim stay in the evidence and count in no figure.
        verdicts = [finding.verdict for finding in rows]
        supports = [finding.entailment for finding in judged if finding.entailment is not None]
        verdict = worst_verdict(verdicts)
        if not supports:
            message = "not answered: no sentence claims anything"
            return self.build_assessment(sample, None, rows, verdict=verdict, reason=message)
        counts = {name: float(verdicts.count(name)) for name in ("supported", "contradicted")}
        return self.build_assessment(
            sample,
            counts["supported"] / len(supports),
            rows,
            verdict=verdict,
            reason=_build_reason(rows, len(supports)),
            parts={
                "statements": float(len(supports)),
                **counts,
                "support": float(np.mean(supports)),
                "weakest": min(supports),
                # Answers are sorted by their weakest sentence, like the verdict.
                "order": min(
                    finding.standing for finding in judged if finding.standing is not None
                ),
            },
        )

    passed_word: ClassVar[str] = "supported"
    failed_word: ClassVar[str] = "not supported"

    @property
    def line(self) -> str:
        """A sentence that no passage supports."""
        return (
            "a passage contradicts one of its sentences, or no passage entails it with a "
            f"probability of {self.threshold:g} or more (threshold)"
        )

    def in_doubt(self, assessment: Assessment) -> bool:
        """Whether the weakest sentence is supported, and near the line."""
        weakest = assessment.parts.get("weakest")
        return weakest is not None and judging.is_borderline(weakest, self.threshold)

    def problem(self, assessment: Assessment) -> str | None:
        """Return what is wrong with an answer, in one sentence."""
        if assessment.verdict == "no claim":
            return "not answered: it claims nothing"
        if assessment.verdict not in ("contradicted", "not found"):
            return None
        parts = assessment.parts
        sentences, supported, contradicted = (
            int(parts.get(name, 0)) for name in ("statements", "supported", "contradicted")
        )
        counts = {
            "contradicted by a passage": contradicted,
            "not found in the passages": sentences - supported - contradicted,
        }
        total = amount(sentences, "sentence")
        phrases = [
            f"{count} of {total} {description}" for description, count in counts.items() if count
        ]
        return "; ".join(phrases) or assessment.verdict

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the sentences, each with its verdict and the passage that decides."""
        documents = sample.documents or ()
        trace = FaithfulnessTrace.read(assessment.evidence, len(documents))
        # "fair" marks are borderline sentences: supported, but near the threshold.
        near = [statement.mark for statement in trace.statements if statement.mark.tone == "fair"]
        ties: dict[int, list[EvidenceLink]] = {
            number: [] for number in range(1, len(documents) + 1)
        }
        for place, statement in enumerate(trace.statements, 1):
            for number in statement.passages or ():
                # Of a sentence that is not found the passages are only the nearest ones, and
                # decide nothing.
                if statement.verdict != "not found":
                    label = f"sentence {place}: {statement.mark.word}"
                    ties[number].append(EvidenceLink(f"s{place}", label, statement.mark))
        return View(
            data=trace,
            judged=[
                JudgedPiece(
                    statement.text, statement.mark, _explain_verdict(statement), statement.verdict
                )
                for statement in trace.statements
            ],
            passages={
                number: PassageNote(
                    citing=ties_of_passage if trace.statements else None, tied_by="used by"
                )
                for number, ties_of_passage in ties.items()
            },
            mark=min(near, key=lambda mark: mark.word)
            if near and assessment.verdict == "supported"
            else None,
        )


def _build_reason(rows: Sequence[JudgedClaim], judged: int) -> str:
    """Say what became of the sentences: the first that is contradicted, not found or borderline."""
    for verdict in ("contradicted", "not found"):
        if result := [row for row in rows if row.verdict == verdict]:
            return f"{len(result)} of {amount(judged, 'sentence')} {verdict}: {result[0].why}"
    message = f"all {judged} sentences are supported"
    message = message if judged != 1 else "the passages support the answer"
    near = [row for row in rows if row.borderline]
    return f"{message}; borderline: {near[0].why}" if near else message


def _explain_verdict(statement: JudgedClaim) -> str:
    """Return what decides: the words of the passage that contradicts, or those that are missing,
    with the closest sentence."""
    if not (statement.quote and statement.passages):
        return statement.why
    passage = f"passage [{statement.passages[0]}]"
    if statement.verdict == "contradicted":
        return f"{passage} says: “{statement.quote}”"
    if statement.verdict == "not found":
        return f"{statement.why}; closest is {passage}: “{statement.quote}”"
    return statement.why

"""The metric ``trustscore``, and its evidence: two parts, of the whole answer or of each claim."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, cast

from trustassay.core.event_loop import gather_all
from trustassay.core.evidence import EvidenceRow, EvidenceRows, Mark, View
from trustassay.core.metric import (
    Assessment,
    Context,
    Direction,
    Figure,
    Mean,
    Metric,
    Need,
    Pool,
    Share,
    Total,
    directions,
    index_figures,
)
from trustassay.core.sample import Problem, Sample
from trustassay.errors import AssessmentError, UsageError
from trustassay.judging.claims import build_claims
from trustassay.judging.second_reader import PART_READ_BY_SECOND
from trustassay.metrics.consistency import Consistency
from trustassay.metrics.consistency.checks import ConsistencyOptions
from trustassay.metrics.factcheck import FactCheck
from trustassay.metrics.factcheck.metric import Rule
from trustassay.text.limits import TextWork
from trustassay.text.sentences import load_splitter
from trustassay.text.verdict_replies import EntailmentLabel

TABLE: Mapping[tuple[EntailmentLabel, bool], float] = {
    ("support", True): 1.0,
    ("support", False): 0.8,
    ("neutral", True): 0.6,
    ("neutral", False): 0.4,
    ("contradict", True): 0.2,
    ("contradict", False): 0.0,
}
"""Zheng et al. 2024, Table 3: the score by the verdict of the facts, and by whether the model is
consistent."""


def trust_ov(verdict: EntailmentLabel, *, consistent: bool) -> float:
    """Return Trust_OV, 0 to 1, of an answer (Zheng et al. 2024, Table 3)."""
    return TABLE[verdict, consistent]


def mean(scores: Sequence[float]) -> float | None:
    """Return the mean of the claims' scores, each with the same weight; ``None`` if there are none.

    The paper excludes answers of several claims (A.1); the mean is this package's choice: it is the
    expected score of a claim drawn from the answer, and an answer of one claim keeps its score.
    """
    return sum(scores) / len(scores) if scores else None


def find_weakest(scores: Sequence[float | None]) -> int | None:
    """Return the index of the lowest score, the first of equal ones; ``None`` if there is none."""
    scores_and_places = [(score, place) for place, score in enumerate(scores) if score is not None]
    return min(scores_and_places)[1] if scores_and_places else None


_MARKS = {
    "support": Mark("good", "✓", "the facts support it"),
    "neutral": Mark("none", "○", "the facts leave it open"),
    "contradict": Mark("bad", "✕", "the facts contradict it"),
    "consistent": Mark("good", "✓", "the model chooses its own answer again"),
    "inconsistent": Mark("bad", "✕", "the model does not choose its own answer again"),
}
_ABSENT = Mark("none", "○", "not assessed")


@dataclass(frozen=True, slots=True)
class PartRow(EvidenceRow):
    """The assessment of one of the two metrics, as stored in the evidence."""

    score: float | None
    """Its score."""
    verdict: str | None
    """Its verdict."""
    reason: str
    """Its reason."""
    parts: Any
    """Its parts."""
    evidence: Sequence[Any]
    """Its evidence."""

    @classmethod
    def of(cls, part: Assessment) -> "PartRow":
        """Return the part of an assessment that is stored."""
        return cls(part.score, part.verdict, part.reason, dict(part.parts), list(part.evidence))


@dataclass(frozen=True, slots=True)
class TrustRow(EvidenceRow, required=("kind", "text")):
    """The answer, or one of its claims, with both parts."""

    kind: Literal["claim", "answer"]
    """Whether it is a claim or the whole answer."""
    text: str
    """Its text."""
    score: float | None
    """Trust_OV; ``None`` if it is not assessable."""
    factcheck: PartRow | None
    """The assessment by facts."""
    consistency: PartRow | None
    """The assessment by the model; ``None`` if it was not asked."""
    bounds: Sequence[float] | None = None
    """Smallest and largest score that it may have; ``None`` if not known."""
    verdict: str | None = None
    """The verdicts of both parts."""
    reason: str = field(kw_only=True)
    """Why the score is as it is."""
    weakest: bool = False
    """Whether it is the weakest of all claims."""


class PartView(NamedTuple):
    """One part as the report shows it."""

    title: str
    """The metric's title."""
    mark: Mark
    """The judgement."""
    reason: str
    """The reason."""
    data: Any
    """The view for the metric's own template."""

    @classmethod
    def of(cls, metric: Metric, sample: Sample, row: PartRow | None) -> "PartView":
        """Return a part with the view of its own metric."""
        evidence = row.evidence if row else ()
        part = Assessment(sample.id, metric.name, None, evidence=evidence)
        mark = _MARKS.get((row and row.verdict) or "", _ABSENT)
        return cls(metric.title, mark, row.reason if row else "", metric.view(sample, part).data)


class ClaimView(NamedTuple):
    """The answer, or one of its claims, as the report shows it."""

    row: TrustRow
    """The stored row."""
    factcheck: PartView
    """The assessment by facts."""
    consistency: PartView
    """The assessment by the model."""

    @property
    def tone(self) -> str:
        """The worse of the two marks."""
        tones = {self.factcheck.mark.tone, self.consistency.mark.tone}
        return next(tone for tone in ("bad", "none", "good") if tone in tones)


class TrustEvidence(NamedTuple):
    """All evidence of an assessment, for the report."""

    claims: Sequence[ClaimView]
    """The claims, or the answer as the only one."""
    by_claim: bool
    """Whether the answer was divided into claims."""
    other_items: Sequence[Mapping[str, Any]]
    """Evidence of any other kind."""

    @classmethod
    def read(
        cls, factcheck: Metric, consistency: Metric, sample: Sample, evidence: Iterable[Any]
    ) -> "TrustEvidence":
        """Sort the evidence; each of both metrics makes the view of its part."""
        result = EvidenceRows(evidence, TrustRow)
        claims = [
            ClaimView(
                row,
                PartView.of(factcheck, sample, row.factcheck),
                PartView.of(consistency, sample, row.consistency),
            )
            for row in result.select(TrustRow)
        ]
        return cls(claims, any(claim.row.kind == "claim" for claim in claims), result.other_items)


_BOUND_PARTS = ("lowest", "highest", "open")
"""Parts that the whole score has as well."""
_CONSISTENCY_WORDS = {True: "consistent", False: "inconsistent"}
MAX_QUOTED_CHARS = 120
_OF_CLAIMS = frozenset({"weakest", "claims", "claims_assessable"})
"""Figures that exist only for answers divided into claims."""


def _join_verdicts(verdict: str, consistent: bool) -> str:
    """Return a verdict of the metric, for example ``support, consistent``."""
    return f"{verdict}, {_CONSISTENCY_WORDS[consistent]}"


FIGURES: Mapping[str, Figure] = index_figures(
    Figure("mean", "mean score, Trust_OV", "", headline=True, statistic=Mean()),
    Figure("trust_bc", "mean score of consistency, Trust_BC", "", headline=True,
        statistic=Mean("trust_bc", (0.0, 1.0))),
    Figure("trust_fc", "mean score of the fact check, Trust_FC", "", headline=True,
        statistic=Mean("trust_fc", (0.0, 1.0))),
    Figure("mean_low", "mean score if every open answer had its lowest possible score", "",
        statistic=Mean("lowest", (0.0, 1.0))),
    Figure("mean_high", "mean score if every open answer had its highest possible score", "",
        statistic=Mean("highest", (0.0, 1.0))),
    Figure("open", "answers left open because replies cannot be read", "", statistic=Total("open")),
    Figure("assessable", "share of answers for which both parts could be assessed", "",
        headline=True, statistic=Mean("assessable", (0.0, 1.0))),
    Figure("unparsed", "mean share of an answer's choices whose reply names no option", "",
        headline=True, statistic=Mean("unparsed", (0.0, 1.0))),
    Figure("written", "mean share of the distractors that a generator wrote", "",
        statistic=Mean("consistency_written", (0.0, 1.0))),
    Figure("weakest", "mean score of each answer's weakest claim", "", headline=True,
        statistic=Mean("weakest", (0.0, 1.0))),
    Figure("claims", "claims per answer", "", statistic=Mean("claims")),
    Figure("claims_assessable", "claims per answer for which both parts could be assessed", "",
        statistic=Mean("claims_assessable")),
) | index_figures(
    *(
        Figure(f"{support}_{choice}", f"answers that the facts {verb}, and the model {chooses}",
            statistic=Share(f"{support}, {choice}"))
        for support, verb in (
            ("support", "support"), ("neutral", "leave open"), ("contradict", "contradict"),
        )
        for choice, chooses in (
            ("consistent", "chooses again"), ("inconsistent", "does not choose again"),
        )
    ),
    group="verdicts",
)  # fmt: skip


@dataclass(frozen=True)
class TrustScore(ConsistencyOptions):
    """Does the model choose its own answer again, and do the facts support it?

    Trust_OV of Zheng et al. 2024 (section 2.2 and Table 3), from the verdicts of ``consistency``
    and ``factcheck``, which are each run once. If one part is not assessable, the whole is not.

    Args:
        fact_by, k, threshold, rule, statement, hypothesis, fact_prompt, fact_max_tokens: options of
            :class:`~trustassay.metrics.factcheck.metric.FactCheck`, where the first, and the last
            two, are called ``by``, ``prompt`` and ``max_tokens``.
        claims: divide the answer into its sentences, assess each as an answer of its own, and
            take the mean; this is not in the paper.
        splitter: name of a sentence splitter, as for ``grounding``.
        others: options of :class:`~trustassay.metrics.consistency.metric.Consistency`.
    """

    name: ClassVar[str] = "trustscore"
    part_directions: ClassVar[Mapping[str, Direction]] = {
        **directions(
            higher="trust_bc trust_fc weakest",
            neither="assessable claims claims_assessable unparsed lowest highest open",
        ),
        **{
            f"{metric.name}_{part}": direction
            for metric in (FactCheck, Consistency)
            for part, direction in metric.part_directions.items()
        },
    }
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    passed_word: ClassVar[str] = "trusted"
    failed_word: ClassVar[str] = "not trusted"
    line: ClassVar[str] = (
        "the facts contradict it, the model does not choose it again, or one of the two could not "
        "be assessed (Table 3 of the paper)"
    )
    verdicts: ClassVar[Sequence[str]] = tuple(_join_verdicts(*key) for key in TABLE)

    fact_by: Literal["entailer", "model"] = "entailer"
    k: int = 10
    threshold: float = 0.5
    rule: Rule = "support"
    statement: str | None = None
    hypothesis: str | None = None
    fact_prompt: str | None = None
    fact_max_tokens: int = 256
    claims: bool = False
    splitter: str = "sentencex"

    def __post_init__(self) -> None:
        super().__post_init__()
        # Raises for an unknown name now, before a run starts.
        load_splitter(self.splitter)
        try:
            # Building the parts checks their options; the error says which part they are of.
            _ = self.consistency, self.factcheck
        except UsageError as error:
            raise type(error)(f"fact check: {error}") from None
        if self.claims and self.uses_source("given"):
            raise UsageError(
                "sources: given does not work with claims=yes, because it has no distractors of "
                "single claims"
            )

    @property
    def title(self) -> str:  # type: ignore[override]
        """Its title; the score of an answer that is divided into claims is not the paper's."""
        return "TrustScore by claim (mean Trust_OV)" if self.claims else "TrustScore (Trust_OV)"

    @cached_property
    def consistency(self) -> Consistency:
        """The metric that asks the model."""
        options = dataclasses.fields(ConsistencyOptions)
        return Consistency(**{f.name: getattr(self, f.name) for f in options})

    @cached_property
    def factcheck(self) -> FactCheck:
        """The metric that reads evidence."""
        # Options that both parts have are called fact_... here.
        return FactCheck(
            k=self.k,
            by=self.fact_by,
            threshold=self.threshold,
            rule=self.rule,
            statement=self.statement,
            hypothesis=self.hypothesis,
            prompt=self.fact_prompt,
            max_tokens=self.fact_max_tokens,
        )

    @property
    def pool(self) -> bool:  # type: ignore[override]
        """Whether other samples are read."""
        return self.consistency.pool

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The mean, and the shares of the six verdicts; with claims also those of the weakest
        claim."""
        result = self.select_applicable_figures(FIGURES)
        if not self.claims:
            return {key: figure for key, figure in result.items() if key not in _OF_CLAIMS}
        suffix_of_group = {"verdicts": ", by its weakest claim"}
        return {
            key: replace(
                figure, explanation=figure.explanation + suffix_of_group.get(figure.group, "")
            )
            for key, figure in result.items()
        }

    def needs(self) -> Sequence[Need]:
        """The needs of both parts."""
        # Both may need the same, such as an entailer.
        return list(dict.fromkeys([*self.factcheck.needs(), *self.consistency.needs()]))

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs what both parts need."""
        result = [*self.factcheck.problems(sample), *self.consistency.problems(sample)]
        # Both parts need a response, which is reported once.
        return list({problem.field: problem for problem in result}.values())

    async def prepare(self, pool: Pool, models: Any) -> Any:
        """Return what ``consistency`` prepares."""
        return await self.consistency.prepare(pool, models)

    async def assess(self, context: Context) -> Assessment:
        """Assess both parts of the answer, or of each of its claims."""
        context.response()  # raises where it is blank
        sample = context.sample
        answers = [sample]
        if self.claims:
            answers = await TextWork.for_sample(sample)(self._split_claims, sample)
            context.limits.check_count("statements", len(answers))
        rows = [await self._assess_parts(replace(context, sample=answer)) for answer in answers]
        return (
            self._build_by_claim(sample, rows)
            if self.claims
            else self._build_single(sample, rows[0])
        )

    def _split_claims(self, sample: Sample) -> list[Sample]:
        """Return a sample for each claim of the response."""
        response = sample.response or ""
        claims = build_claims(sample.question, response, load_splitter(self.splitter))
        result = [claim.hypothesis for claim in claims if claim.hypothesis]
        if not result:
            raise AssessmentError("the response claims nothing")
        return [
            replace(sample, id=f"{sample.id}#{number}", response=text)
            for number, text in enumerate(result, 1)
        ]

    async def _assess_parts(self, context: Context) -> TrustRow:
        """Return the row of an answer or a claim; without evidence the model is not asked."""
        evidence = await self.factcheck.evidence(context)
        # Without evidence the score is open whatever the model says, so those calls are saved.
        work = [self.factcheck.judge_evidence(context, evidence)]
        if evidence is not None:
            work.append(self.consistency.assess(context))
        facts, *consistency_results = await gather_all(work)
        consistency = consistency_results[0] if consistency_results else None
        row = TrustRow(
            "claim" if self.claims else "answer",
            context.sample.response or "",
            None,
            PartRow.of(facts),
            PartRow.of(consistency) if consistency else None,
            reason="",
        )
        verdict = cast("EntailmentLabel | None", facts.verdict)
        # The first part without a verdict decides why the whole is not assessable.
        for part in (facts, consistency):
            if part is not None and part.verdict is None:
                # With a verdict of the facts and an open consistency the score is one of two in the
                # table.
                is_open = verdict and consistency is not None and consistency.parts.get("checks")
                bounds = [TABLE[verdict, x] for x in (False, True)] if verdict and is_open else None
                part_reason = part.reason.removeprefix("not assessable: ")
                return replace(
                    row, bounds=bounds, reason=f"{part.metric} is not assessable: {part_reason}"
                )
        assert consistency is not None and verdict is not None
        consistent = consistency.verdict == "consistent"
        score = trust_ov(verdict, consistent=consistent)
        return replace(
            row,
            score=score,
            bounds=[score, score],
            verdict=_join_verdicts(verdict, consistent),
            reason=f"{facts.reason}; {consistency.reason}",
        )

    def _build_single(self, sample: Sample, row: TrustRow) -> Assessment:
        """Return the assessment of a whole answer."""
        parts = {"assessable": float(row.score is not None), **_compute_counts([row])}
        for name, part in (("factcheck", row.factcheck), ("consistency", row.consistency)):
            part_values = part.parts if part else {}
            # The whole has bounds and a count of second readings of its own.
            left_out = (*_BOUND_PARTS, PART_READ_BY_SECOND)
            parts |= {f"{name}_{k}": v for k, v in part_values.items() if k not in left_out}
        verdict, reason = row.verdict, row.reason
        return self.build_assessment(
            sample, row.score, [row], verdict=verdict, reason=reason, parts=parts
        )

    def _build_by_claim(self, sample: Sample, rows: Sequence[TrustRow]) -> Assessment:
        """Return the assessment of an answer from the rows of its claims: the mean of their
        scores."""
        scores = [row.score for row in rows]
        assessable = [score for score in scores if score is not None]
        weakest_index = find_weakest(scores)
        parts = {
            "assessable": float(bool(assessable)),
            "claims": float(len(rows)),
            "claims_assessable": float(len(assessable)),
            **_compute_counts(rows),
        }
        verdict, reason = None, f"not assessable: no claim of {len(rows)} is; {rows[0].reason}"
        if weakest_index is not None:
            # The verdict is that of the weakest claim: it is what a reader has to look at.
            weakest_row = rows[weakest_index]
            parts["weakest"], verdict = weakest_row.score or 0.0, weakest_row.verdict
            reason = f"mean of {len(assessable)} of {len(rows)} claims"
            reason += f"; weakest: claim {weakest_index + 1} ({weakest_row.reason})"
        marked_rows = [
            replace(row, weakest=number == weakest_index) for number, row in enumerate(rows)
        ]
        score = mean(assessable)
        return self.build_assessment(
            sample, score, marked_rows, verdict=verdict, reason=reason, parts=parts
        )

    def problem(self, assessment: Assessment) -> str | None:
        """Say what facts and model hold against an answer or its weakest claim."""
        if assessment.error is not None:
            return None
        if assessment.score is None:
            return assessment.reason
        verdict, _, consistency = (assessment.verdict or "").partition(", ")
        problems = ["the facts contradict it"] * (verdict == "contradict")
        problems += ["the model does not choose its own answer again"] * (
            consistency == "inconsistent"
        )
        if not problems:
            return None
        if not self.claims:
            return "; ".join(problems)
        rows = [
            row
            for row in EvidenceRows(assessment.evidence, TrustRow).select(TrustRow)
            if row.weakest
        ]
        text = rows[0].text if rows else ""
        text = text if len(text) <= MAX_QUOTED_CHARS else text[:MAX_QUOTED_CHARS] + "..."
        return f"weakest claim, {text!r}: {'; '.join(problems)}"

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return both parts of the answer or of each claim."""
        return View(
            data=TrustEvidence.read(self.factcheck, self.consistency, sample, assessment.evidence)
        )


def _compute_counts(rows: Sequence[TrustRow]) -> dict[str, float]:
    """Return numbers over the rows of an answer: both parts' scores, bounds, unreadable choices,
    second readings.

    ``trust_bc`` and ``trust_fc`` are the means over the rows that have them. Bounds are the
    smallest and largest score that the answer may have; the share of unreadable choices is only
    present if any choice was made.
    """
    fact_parts = [row.factcheck.parts for row in rows if row.factcheck]
    second_readings = sum(parts.get(PART_READ_BY_SECOND, 0) for parts in fact_parts)
    result: dict[str, float] = {PART_READ_BY_SECOND: second_readings} if second_readings else {}
    for name, part_rows in (
        ("trust_bc", [row.consistency for row in rows]),
        ("trust_fc", [row.factcheck for row in rows]),
    ):
        part_mean = mean([part.score for part in part_rows if part and part.score is not None])
        if part_mean is not None:
            result[name] = part_mean
    # The mean of the claims' bounds, as the score is the mean of their scores.
    if bounds := [row.bounds for row in rows if row.bounds is not None]:
        low, high = (sum(column) / len(bounds) for column in zip(*bounds, strict=True))
        is_open = any(row.score is None for row in rows if row.bounds is not None)
        result |= {"lowest": low, "highest": high, "open": float(is_open)}
    choice_parts = [row.consistency.parts for row in rows if row.consistency]
    if checks := sum(parts.get("checks", 0) for parts in choice_parts):
        result["unparsed"] = sum(parts.get("unparsed", 0) for parts in choice_parts) / checks
    return result

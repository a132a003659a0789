"""The metric ``reference``: options, assessment, evidence and figures."""

import asyncio
import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import cache, cached_property
from itertools import starmap, zip_longest
from typing import Any, ClassVar, NamedTuple, Self

from trustassay.core.evidence import EvidenceRow, EvidenceRows, Mark, View
from trustassay.core.metric import (
    BLANK_PART,
    Assessment,
    Context,
    Figure,
    Inventory,
    Mean,
    Metric,
    Need,
    Summary,
    directions,
)
from trustassay.core.sample import Problem, Sample, find_missing
from trustassay.errors import (
    BackendError,
    UnknownNameError,
    UsageError,
    check_choices,
    check_least,
    did_you_mean,
)
from trustassay.metrics.reference import measures
from trustassay.metrics.reference.measures import PARTS, Aggregate, ReferencePart
from trustassay.text.limits import TextWork

HEADLINE = "token_recall"
"""The part that agrees best with people where answers are sentences and gold answers phrases."""
AUTO = "auto"


@cache
def gold_row(part: str) -> Any:
    """Return the class of a row of evidence: a gold answer, and its value of a part."""
    # The key of the value is the part's name, so the class depends on it.
    fields: list[Any] = [("gold", str), (part, float | None, None)]
    required = {"required": ("gold",)}
    return make_dataclass("GoldRow", fields, bases=(EvidenceRow,), namespace=required)


class GoldLikeness(NamedTuple):
    """A gold answer, as the report shows it."""

    text: str
    """The gold answer."""
    value: float | None
    """The value against it; ``None`` where it has none of its own."""
    mark: Mark | None
    """The mark of the value."""


class ReferenceTrace(NamedTuple):
    """All evidence of one assessment, sorted by kind."""

    part: str
    """The part that is the score."""
    golds: Sequence[GoldLikeness]
    """The gold answers, the nearest first."""
    other_items: Sequence[Mapping[str, Any]]
    """Evidence of any other kind, as it is stored."""


def mark_of(value: float | None, part: ReferencePart) -> Mark | None:
    """Return the mark of a value from 0 to 1; values on other scales have none."""
    if value is None or part.bounds != (0.0, 1.0):
        return None
    if value >= 1:
        return Mark("good", "✓", "all of it")
    return Mark("fair", "≈", "in part") if value > 0 else Mark("bad", "✕", "nothing")


@dataclass(frozen=True)
class Reference(Metric):
    """How similar is the answer to the gold answers, by the usual measures of the field?

    Args:
        parts: parts to compute, joined by ``+``: names of parts (``em``) or of groups
            (``rouge_l``, ``bartscore``, ``lexical``); ``auto`` takes the lexical ones whose
            libraries are installed, and the summary names the others.
        without: parts to leave out of these.
        score: the part that is the score; default: ``token_recall``, or else the first one. For a
            mean log-probability the score is its exponential, the (geometric) mean probability of
            a token.
        aggregate: of the values against each gold answer, the ``best``, the ``first``, or their
            ``mean``.
        recipe: ``trustscore-paper`` computes ``em``, ``bleu_1``, ``bleu_4``, ``rouge_l`` and
            ``meteor`` as for Table 1 of Zheng et al. 2024.
        passages: largest number of documents that the evidence forms show.
        prompts: folder of prompts for GPTScore to use instead of the shipped ones:
            ``gptscore-ref.jinja``, ``gptscore-src.jinja``, ``gptscore-evid.jinja``, with ``text``,
            ``question`` and ``passages``.

    The gold answers are all aliases of all ``answers`` of a sample. If it has none, they are its
    claims.
    """

    name: ClassVar[str] = "reference"
    title: ClassVar[str] = "Similarity to the gold answers"
    part_directions = directions(higher=" ".join(PARTS))
    counts_outcomes: ClassVar[bool] = False
    """Likeness is a degree: an answer in other words may be right with a score of 0."""
    evidence_template: ClassVar[str] = "evidence.html.jinja"

    parts: str = AUTO
    without: str = ""
    score: str | None = None
    aggregate: Aggregate = "best"
    recipe: measures.Recipe = "default"
    passages: int = 10
    prompts: str | None = None

    def __post_init__(self) -> None:
        check_choices(self, aggregate=Aggregate, recipe=measures.Recipe)
        check_least(self, passages=1)
        if self.score is not None and self.score not in PARTS:
            raise UnknownNameError(did_you_mean("part of reference", self.score, PARTS))
        if self.score in self.left_out:
            raise UsageError(f"score: {self.score} is left out (without={self.without})")
        if not self.chosen:
            raise UsageError("parts: no part is left; name another part, or fewer in without")
        if self.prompts is not None:
            # A missing or faulty file must fail before a run starts.
            for form in measures.FORMS:
                measures.prompt_of(form, self.prompts)

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """The parts named by ``without``."""
        return measures.select_parts(self.without)

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """The parts that are computed, with ``auto`` resolved; the score's part is one of them."""
        names = measures.LEXICAL if self.parts == AUTO else measures.select_parts(self.parts)
        score_parts = {self.score} if self.score else set()
        return tuple(n for n in PARTS if n in {*names, *score_parts} and n not in self.left_out)

    @property
    def scored(self) -> ReferencePart:
        """The part that is the score."""
        return PARTS[self.score or (HEADLINE if HEADLINE in self.chosen else self.chosen[0])]

    def _parts_of_families(self, *families: str) -> list[ReferencePart]:
        return [PARTS[name] for name in self.chosen if PARTS[name].family in families]

    @property
    def _reads_passages(self) -> bool:
        return any(PARTS[name].form == "evid" for name in self.chosen)

    @property
    def fills(self) -> tuple[str, ...]:
        """Documents, where passages are read."""
        return ("documents",) if self._reads_passages else ()

    @property
    def score_range(self) -> tuple[float, float]:
        """The bounds of the part that is the score."""
        # Without bounds the score is the exponential of a mean log-probability.
        return self.scored.bounds or (0.0, 1.0)

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The mean of every part; parts that are left out have a figure without a mean."""
        # Headlines: the score, the two figures that papers report, and what is left out, with the
        # reason.
        main = {self.scored.name, "em", "token_f1"}
        return {
            name: Figure(
                name,
                part.explanation,
                "",
                headline=name in main or name in self.left_out,
                statistic=Mean(name, part.bounds) if name in self.chosen else None,
            )
            for name, part in PARTS.items()
            if name in self.chosen or name in self.left_out
        }

    def resolve(self, inventory: Inventory) -> Self:  # noqa: ARG002
        """Resolve ``auto`` by the libraries that are installed."""
        if self.parts != AUTO:
            return dataclasses.replace(self, score=self.scored.name)
        absent = [name for name in self.chosen if measures.explain_missing(name, self.recipe)]
        without = "+".join(name for name in measures.LEXICAL if name in {*absent, *self.left_out})
        # First without a score: which part it is depends on the parts that remain.
        options = dataclasses.replace(self, parts="lexical", without=without)
        return dataclasses.replace(options, score=options.scored.name)

    def needs(self) -> Sequence[Need]:
        """Token vectors for BERTScore and judges for likelihoods, both on this machine.

        Raises BackendError if a part that the user names needs a package or data that is missing.
        """
        # With "auto" a missing library only removes its parts.
        for part in self.chosen if self.parts != AUTO else filter(None, [self.score]):
            if advice := measures.explain_missing(part, self.recipe):
                raise BackendError(f"{self.name}: {advice}")
        result = []
        if self._parts_of_families("bertscore"):
            result.append(Need("token_vectors"))
        if self._parts_of_families("bartscore", "gptscore"):
            result.append(Need("likelihood", measures.JUDGE, many=True))
        if self._reads_passages:
            result.append(Need("search", optional=True))
        return result

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response, and gold answers or passages for the parts that read them."""
        result = find_missing(sample, response="the text to assess")
        if not golds_of(sample) and any(PARTS[name].needs_gold for name in self.chosen):
            result.append(Problem("answers", "is missing (expected gold answers to compare with)"))
        if not sample.documents and self._reads_passages:
            result.append(Problem("documents", "is missing (expected passages to read)"))
        return result

    async def assess(self, context: Context) -> Assessment:
        """Compute the parts; the evidence is the score's value against each gold answer."""
        sample, models = context.sample, context.models
        answer, golds = sample.response or "", golds_of(sample)
        pairs = len(answer.split()) * sum(len(gold.split()) for gold in golds)
        context.limits.check_count("pairs of words of an answer and a gold answer", pairs)
        # Models first: their calls run while other samples compute.
        by_models = await self._measure_by_models(sample, models, golds)
        work = TextWork.for_sample(sample)
        comparison = measures.GoldComparison(
            answer, golds, sample.question, self.aggregate, self.recipe
        )
        result = await work(measures.lexical_parts, self.chosen, comparison)
        result |= {
            name: measures.aggregate_values(values, self.aggregate)
            for name, values in by_models.items()
        }
        parts = {name: result[name] for name in self.chosen}
        # A blank answer has a score of 0, but its outcome is "blank".
        if not sample.answered:
            parts[BLANK_PART] = 1.0
        part = self.scored
        value = parts[part.name]
        score = value if part.bounds else math.exp(value)
        rows = by_models.get(part.name)
        if not rows:
            rows = (await work(measures.per_gold, [part.name], comparison)).get(part.name, ())
        # zip_longest below pads with None: with aggregate=first only the first has a value.
        values_of_golds = rows if part.needs_gold else ()  # the first alone may have one
        evidence = starmap(gold_row(part.name), zip_longest(golds, values_of_golds))
        reason = _build_reason(part, value, self.aggregate, len(golds))
        return self.build_assessment(sample, score, evidence, reason=reason, parts=parts)

    async def _measure_by_models(
        self, sample: Sample, models: Any, golds: Sequence[str]
    ) -> dict[str, Sequence[float]]:
        """Return, for each chosen part that needs a model, its values against the gold answers."""
        answer = sample.response or ""
        calls = (
            [measures.bertscore(models, answer, golds)]
            if self._parts_of_families("bertscore")
            else []
        )
        likelihoods = self._parts_of_families("bartscore", "gptscore")
        # One call a family and form gives its precision, recall and mean.
        for family, form in dict.fromkeys((p.family, p.form) for p in likelihoods if p.form):
            likelihoods_of_answer = measures.Likelihoods(
                family, models, sample, answer, self.passages, self.prompts
            )
            calls.append(likelihoods_of_answer.parts(form, golds))
        result: dict[str, Sequence[float]] = {}
        for columns in await asyncio.gather(*calls):
            result |= {name: values for name, values in columns.items() if name in self.chosen}
        return result

    @property
    def line(self) -> str:
        """The rule of :meth:`problem`."""
        if self.scored.bounds != (0.0, 1.0):
            return ""
        return f"it has nothing in common with any gold answer ({self.scored.name} is 0)"

    def problem(self, assessment: Assessment) -> str | None:
        """Return a sentence if an answer has nothing in common with the gold answers."""
        if self.scored.bounds != (0.0, 1.0) or assessment.score != 0:
            return None
        return f"it has nothing in common with any gold answer ({self.scored.name} is 0)"

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return the gold answers, each with the value against it."""
        part = self.scored
        kind = gold_row(part.name)
        rows = EvidenceRows(assessment.evidence, kind)
        values = [(row.gold, getattr(row, part.name)) for row in rows.select(kind)]
        golds = [GoldLikeness(text, value, mark_of(value, part)) for text, value in values]
        # Those without a value of their own come last.
        golds.sort(key=lambda gold: -(gold.value if gold.value is not None else float("-inf")))
        return View(
            data=ReferenceTrace(part.name, golds, rows.other_items), shows_golds=bool(golds)
        )

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:
        """Return the mean of every part, with intervals, and why a part is missing."""
        result = super().summarise(assessments, seed=seed)
        absent = {
            name: measures.explain_missing(name, self.recipe) or "left out (without=)"
            for name in self.left_out
        }
        return dataclasses.replace(
            result,
            values={**result.values, **dict.fromkeys(absent)},
            not_applicable={**result.not_applicable, **absent},
        )


def golds_of(sample: Sample) -> list[str]:
    """Return all aliases of all gold answers; the claims of a sample without gold answers."""
    aliases = [alias for group in sample.answers for alias in group]
    return list(dict.fromkeys(aliases or sample.claims))


def _build_reason(part: ReferencePart, value: float, aggregate: Aggregate, golds: int) -> str:
    message = f"{part.name} {value:.2f}"
    if not part.needs_gold or golds < 2:
        return message
    how = {"best": "against the best of", "first": "against the first of", "mean": "as mean over"}
    return f"{message} {how[aggregate]} {golds} gold answers"

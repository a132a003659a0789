"""The metric ``fewl``, its evidence, and its figures: the score and the baselines beside it."""

from __future__ import annotations

import asyncio
import json
import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.core.absences import ABSENT, Absence, Absences
from trustassay.core.asked import FAILURE_KINDS, UNREADABLE
from trustassay.core.assessment import REMARKS, compute_summary
from trustassay.core.capabilities import Models
from trustassay.core.evidence import EvidenceRow, EvidenceRows, View
from trustassay.core.labels import read_single_label
from trustassay.core.metric import (
    Assessment,
    Context,
    Figure,
    Mean,
    Pool,
    Summary,
    directions,
    index_figures,
)
from trustassay.core.sample import Problem, Sample, find_missing
from trustassay.errors import AssessmentError
from trustassay.metrics.fewl import maths
from trustassay.metrics.fewl.options import FewlOptions
from trustassay.metrics.fewl.references import (
    DECLINED,
    AbsentReference,
    Neighbour,
    Neighbours,
    QuestionPool,
    ReferenceAnswer,
    ask_whether_same,
    build_question_pool,
    find_failed_calls,
    group_questions,
    split_references,
)
from trustassay.statistics.auroc import auroc_interval
from trustassay.statistics.correlation import auroc
from trustassay.statistics.intervals import count_units
from trustassay.text.numbers import amount

_ADVICE = (
    "run the same command to ask again; fewl:allow_missing_references=yes scores the answer by the "
    "other references"
)
CHANCE_AUROC = 50.0  # AUROC in percent of a score that says nothing
MIN_AGREEMENT = 0.2
"""Weighted similarity below which the references do not agree with the answer (our bound)."""
_BASELINE_PARTS = {
    "auroc": "score",
    "auroc_no_penalty": "no_penalty",
    "auroc_agreement": "agreement",
    "auroc_length": "brevity",
}
"""The number that is compared with the label, by the name of the figure."""


def _collect_labelled(
    assessments: Iterable[Assessment], columns: Mapping[str, array[float]]
) -> Iterator[Assessment]:
    """Pass assessments on, and append the numbers of labelled ones to ``columns``."""
    for assessment in assessments:
        if (
            assessment.error is None
            and assessment.score is not None
            and "label" in assessment.parts
        ):
            numbers = {**assessment.parts, "score": assessment.score}
            # -1 stands for an answer that is a unit of its own.
            numbers["unit"] = -1 if assessment.unit is None else assessment.unit
            # A trivial baseline: shorter answers as better ones.
            numbers["brevity"] = -numbers.get("characters", 0.0)
            for name, column in columns.items():
                column.append(numbers.get(name, 0.0))
        yield assessment


def _read_absences(assessment: Assessment) -> Iterator[Absence]:
    """Yield the references that a score lacks; the model under assessment is none of them."""
    for row in EvidenceRows(assessment.evidence, AbsentReference).select(AbsentReference):
        if row.kind:
            yield Absence(row.absent, row.kind)


class _FewerQuestions:
    """Counts the penalties that failed calls left with fewer neighbouring questions."""

    def __init__(self) -> None:
        self._missing: list[int] = []

    def collect(self, assessments: Iterable[Assessment]) -> Iterator[Assessment]:
        """Pass assessments on, and count what the scored ones lack."""
        for assessment in assessments:
            missing = assessment.parts.get("unanswered_neighbours")
            if assessment.score is not None and missing:
                self._missing.append(int(missing))
            yield assessment

    def describe(self, scored: int) -> list[str]:
        """Return a sentence, or none if no penalty lacks a question."""
        if not self._missing:
            return []
        return [
            f"{len(self._missing):,} of {scored:,} penalties are means over fewer questions "
            f"({amount(sum(self._missing), 'reference answer')} missing); trustassay rescore RUN "
            "computes them again"
        ]


@dataclass(frozen=True, slots=True)
class Weighting(EvidenceRow, required=("form", "weights")):
    """The formula and the weights by which the score was computed."""

    form: str
    weights: str


@dataclass(frozen=True, slots=True)
class ReferenceRow(EvidenceRow, required=("reference", "answer")):
    """One reference that counts."""

    reference: str
    """Its name, as people read it."""
    answer: str
    """Its answer to the question."""
    similarity: float | None
    """Similarity of the assessed answer to it."""
    expertise: float | None
    """The number that its weight is computed from."""
    weight: float | None
    """0 to 1; the weights of an answer's references sum to 1."""
    penalty: float | None = None
    """Mean similarity of the assessed answer to its answers to other questions."""
    neighbours: int | None = None
    """The number of those other questions."""


@dataclass(frozen=True, slots=True)
class NearQuestion(EvidenceRow, required=("neighbour",)):
    """A neighbour of the question."""

    neighbour: str
    """The neighbouring question."""
    likeness: float | None
    """Cosine of both questions."""


class FewlTrace(NamedTuple):
    """All evidence of one assessment, sorted by kind."""

    weights: str
    """The name of the weights in use; empty where it is not known."""
    rows: Sequence[ReferenceRow]
    """The references that count, the heaviest first."""
    absent: Sequence[AbsentReference]
    """The references that do not count, with the reason."""
    neighbours: Sequence[NearQuestion]
    """The questions behind the penalty, the nearest first."""
    other_items: Sequence[Mapping[str, Any]]
    """Evidence of any other kind, as it is stored."""

    @classmethod
    def read(cls, evidence: Iterable[Any]) -> FewlTrace:
        """Sort the evidence; references by weight, the heaviest first."""
        rows = EvidenceRows(evidence, Weighting, ReferenceRow, AbsentReference, NearQuestion)
        weights = [weighting.weights for weighting in rows.select(Weighting)]
        by_weight = sorted(rows.select(ReferenceRow), key=lambda row: -(row.weight or 0.0))
        absent, near = rows.select(AbsentReference), rows.select(NearQuestion)
        return cls("".join(weights[-1:]), by_weight, absent, near, rows.other_items)

    @property
    def penalised(self) -> bool:
        """Whether any reference has a penalty."""
        return any(row.penalty is not None for row in self.rows)


_FORMS = {
    "eq1": "equation 1 of the paper",
    "theory": "section 3.1 of the paper",
    "agreement": "a form of this project, not of FEWL",
}


@dataclass(frozen=True)
class Fewl(FewlOptions):
    """How far do reference answers agree with the answer, weighted by what each reference knows?

    The score rises with the similarity of the answer to each reference's answer to the question,
    and falls with its similarity to their answers to other questions (Wei et al. 2024). Higher
    means less hallucinated. Gold answers are read only for the weights ``ideal``.

    A sample fails if a call to a reference failed, unless ``allow_missing_references`` is set: then
    the weight of that reference goes to the others of the sample. The same holds for a reference
    whose answer is blank or missing in the input, and with ``declined=drop`` for one that refused.
    The summary counts them all. Without any reference there is no score. All similarities of an
    answer without words are 0.

    ``parts`` hold the score without the penalty, the mean penalty, the weighted similarity, the
    numbers of references, neighbours and pairs behind it, the length of the answer, and its label,
    if any.

    The options are those of :class:`~trustassay.metrics.fewl.options.FewlOptions`.
    """

    name: ClassVar[str] = "fewl"
    pool: ClassVar[bool] = True
    part_directions = directions(
        higher="no_penalty agreement",
        lower="penalty",
        neither="references neighbours pairs characters label absent unanswered_neighbours",
    )
    figures: ClassVar[Mapping[str, Figure]] = index_figures(
        Figure("mean", "mean score; higher means less hallucinated", "", headline=True,
            statistic=Mean()),
        Figure("no_penalty", "mean score without the penalty", "", headline=True,
            statistic=Mean("no_penalty")),
        Figure("auroc", "AUROC: how often a right answer outscores a wrong one",
            headline=True),
        Figure("auroc_no_penalty", "AUROC of the score without the penalty", headline=True),
        Figure("auroc_agreement", "AUROC of the weighted similarity alone"),
        Figure("auroc_length", "AUROC of a simple rule: the shorter answer is right",
            headline=True),
        Figure("chance", "AUROC of chance", headline=True),
        Figure("penalty", "mean similarity to reference answers to other questions", "",
            statistic=Mean("penalty")),
        Figure("references", "mean number of references behind a score", "",
            statistic=Mean("references")),
        Figure("neighbours", "mean number of other questions behind a penalty", "",
            statistic=Mean("neighbours")),
        Figure("pairs", "mean number of wrong and corrected answers behind the weights", "",
            statistic=Mean("pairs")),
        Figure("characters", "mean length of an answer, in characters", "",
            statistic=Mean("characters")),
    )  # fmt: skip
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    counts_outcomes: ClassVar[bool] = False
    """Its bound is ours, and was not measured against labels."""
    line: ClassVar[str] = (
        f"its weighted similarity to the references is below {MIN_AGREEMENT:g} (a bound of this "
        "project, the paper has none), or not above that to their answers to other questions"
    )

    @property
    def title(self) -> str:  # type: ignore[override]
        """The title with every setting that must be equal for scores to be comparable."""
        ours = self.form == "agreement"
        settings = [_FORMS[self.form], f"weights {self.weighting}"]
        settings += [] if ours else [f"divergence {self.divergence}"]
        if "similarity" in self.backend_names:
            settings.append(f"similarity {self.backend_names['similarity']}")
        settings += [] if self.penalising == "nearest" else [f"penalty {self.penalising}"]
        if not ours and self.declining == "drop":
            settings.append("without references that decline")
        return f"{'Agreement with references' if ours else 'FEWL'} ({'; '.join(settings)})"

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs references: in the file, or models to ask."""
        wanted = {
            "response": "the answer to assess",
            "references": "answers by model name, or --reference models to ask",
        }
        if self.wants_pairs:
            pairs = ("wrong_answers", "corrected_answers")
            wanted |= dict.fromkeys(pairs, "answers, --backend generator=URI, or weights=uniform")
        if self.weighting == "ideal":
            golds = ("answers", "incorrect_answers")
            wanted |= dict.fromkeys(golds, "labelled answers, for weights=ideal")
        return find_missing(sample, **wanted)

    def rejects(self, sample: Sample) -> bool:
        """Whether a call to a reference of a filled sample failed, and that is not allowed."""
        failed = find_failed_calls(sample).keys() - {sample.model}
        return bool(failed) and not self.allow_missing_references

    async def prepare(self, pool: Pool, models: Models) -> QuestionPool:
        """Read all questions and, for the weights ``agreement``, all answers."""
        return await build_question_pool(pool, self, models)

    def pack(self, prepared: QuestionPool) -> Mapping[str, NDArray[Any]]:
        """Return the neighbours of all questions, and the abilities."""
        # JSON has no tuples as keys: a rater (name, number) and its ability become one list of
        # three.
        ability = [[*rater, value] for rater, value in prepared.ability.items()]
        header = json.dumps({"names": sorted(prepared.names), "ability": ability}).encode()
        arrays: dict[str, NDArray[Any]] = {"told": np.frombuffer(header, dtype=np.uint8)}
        if self.penalising == "nearest":
            # Neighbours instead of vectors: a worker then needs no embedder and no pool-wide
            # product.
            arrays |= prepared.nearest_of(range(len(prepared.vectors)), self)._asdict()
        elif self.penalising == "random":
            # Random neighbours depend on the seed of the run, so they are drawn later, from
            # vectors.
            arrays["vectors"] = prepared.vectors
        return arrays

    def unpack(self, arrays: Mapping[str, NDArray[Any]], pool: Pool) -> QuestionPool:
        """Return what :meth:`prepare` returned; without vectors where neighbours are known."""
        header = json.loads(arrays["told"].tobytes())
        result = group_questions(pool, header["names"])
        result.ability = {(name, number): value for name, number, value in header["ability"]}
        if "places" in arrays:
            # With the neighbours known the vectors are not needed, and were not packed.
            result.all_neighbours = Neighbours(arrays["places"], arrays["similarities"])
        result.vectors = arrays.get("vectors", result.vectors)
        return result

    async def assess(self, context: Context) -> Assessment:
        """Compare, weigh and subtract; the evidence holds every reference."""
        sample, questions = context.sample, context.prepared
        # Without reference models the names are those that any sample of the pool has.
        asked = context.models.names("references")
        drop = self.declining == "drop"
        present, absent = split_references(sample, asked or questions.names, asked, drop=drop)
        self._check_absent(absent)
        if not present:
            return self._build_unscored(sample, absent)
        if self.wants_pairs and not (sample.wrong_answers and sample.corrected_answers):
            raise AssessmentError(
                "has no wrong and corrected answers from which to compute the weights of references"
            )
        comparer = _SampleComparer(self, sample, context.models)
        neighbours: Sequence[Neighbour] = ()
        if self.penalising != "none":
            neighbours = await questions.neighbours(sample, self, context.models, context.seed)
        # For each reference its answers to the neighbouring questions that it answered.
        texts_elsewhere = [
            [near.answers[reference.key] for near in neighbours if reference.key in near.answers]
            for reference in present
        ]
        self._check_neighbours(present, texts_elsewhere, neighbours)
        agreement, expertise, likeness = await asyncio.gather(
            comparer.compare_answer([reference.text for reference in present]),
            self._compute_expertise(present, comparer, questions),
            asyncio.gather(*map(comparer.compare_answer, texts_elsewhere)),
        )
        columns = list(zip(present, agreement, expertise, likeness, strict=True))
        # No expertise: by expertise=ask, none of its replies about right, or about wrong, answers
        # could be read. Its weight goes to the others.
        reason = "answered neither yes nor no"
        absent += [
            AbsentReference(reference.label, reason, UNREADABLE)
            for reference, _, knows, _ in columns
            if knows is None
        ]
        rows = [
            (reference, near, knows, far)
            for reference, near, knows, far in columns
            if knows is not None
        ]
        if not rows:
            return self._build_unscored(sample, absent)
        return self._build_assessment(sample, rows, absent, neighbours)

    def _check_absent(self, absent: Sequence[AbsentReference]) -> None:
        """Raise AssessmentError if a call to a reference failed, and that is not allowed."""
        failed = [reference for reference in absent if reference.has_failed]
        if failed and not self.allow_missing_references:
            phrases = "; ".join(f"reference {one.absent} {one.why}" for one in failed)
            raise AssessmentError(f"{phrases}; {_ADVICE}", failed[0].kind)

    def _check_neighbours(
        self,
        present: Sequence[ReferenceAnswer],
        texts_elsewhere: Sequence[Sequence[str]],
        neighbours: Sequence[Neighbour],
    ) -> None:
        """Raise AssessmentError if failed calls leave a reference without any penalty.

        With some of the answers to the neighbours the mean in the penalty is over fewer questions,
        which is counted; without any, a term of equation 1 is missing.
        """
        for reference, texts in zip(present, texts_elsewhere, strict=True):
            kinds = [
                near.failed[reference.name] for near in neighbours if reference.name in near.failed
            ]
            if kinds and not texts and not self.allow_missing_references:
                raise AssessmentError(
                    f"reference {reference.label} gave no answer to any neighbouring question "
                    f"({FAILURE_KINDS.get(kinds[0], kinds[0])}); {_ADVICE}",
                    kinds[0],
                )

    def _build_unscored(self, sample: Sample, absent: Sequence[AbsentReference]) -> Assessment:
        reason = "no reference answered: " + "; ".join(f"{a.absent} {a.why}" for a in absent)
        return self.build_assessment(sample, None, absent, reason=reason)

    async def _compute_expertise(
        self, present: Sequence[ReferenceAnswer], comparer: _SampleComparer, questions: QuestionPool
    ) -> Sequence[float | None]:
        """Return the number that each reference's weight is made of; ``None`` if it is unknown."""
        if self.weighting == "agreement":
            return [questions.ability_of(reference.key) for reference in present]
        if self.weighting == "uniform":
            # Equal values give equal weights in the softmax.
            return [0.0] * len(present)
        return await asyncio.gather(
            *(comparer.compute_expertise(reference) for reference in present)
        )

    def _build_assessment(
        self,
        sample: Sample,
        compared: Sequence[tuple[ReferenceAnswer, float, float, Sequence[float]]],
        absent: Sequence[AbsentReference],
        neighbours: Sequence[Neighbour],
    ) -> Assessment:
        present, agreement, expertise, likeness = zip(*compared, strict=True)
        weights, counting = self._compute_weights(np.array(expertise))
        has_penalty = np.array([bool(values) for values in likeness])
        # The 0.0 is a place holder that has_penalty masks: no penalty is not a penalty at 0.
        penalties = np.array([float(np.mean(values)) if values else 0.0 for values in likeness])
        score = partial(
            maths.score,
            agreement,
            weights,
            divergence=self.divergence,
            form=self.form,
            present=counting,
            has_penalty=has_penalty,
        )
        # Also computed where a penalty is taken, as a baseline beside the score.
        plain = float(score(None)[0])
        parts = {
            "no_penalty": plain,
            "agreement": float(weights @ np.array(agreement)),
            "references": int(counting.sum()),
            "characters": len(sample.response or ""),
        }
        # Left out where none is absent, so that a table of a complete run has no such column.
        names = {reference.name for reference in present}
        missing = {
            ABSENT: sum(bool(reference.kind) for reference in absent),
            "unanswered_neighbours": sum(len(names & near.failed.keys()) for near in neighbours),
        }
        parts |= {name: number for name, number in missing.items() if number}
        if self.penalising != "none":
            parts["neighbours"] = len(neighbours)
            if (has_penalty & counting).any():
                parts["penalty"] = float(penalties[has_penalty & counting].mean())
        if self.wants_pairs:
            pairs_of_sample = len(sample.wrong_answers), len(sample.corrected_answers)
            parts["pairs"] = min(self.pairs, *pairs_of_sample)
        if (label := read_single_label(sample.label)) is not None:
            parts["label"] = label
        rows = []
        for (item, near, knows, elsewhere), weight in zip(compared, weights.tolist(), strict=True):
            penalty = float(np.mean(elsewhere)) if elsewhere else None
            count = len(elsewhere) or None
            rows.append(ReferenceRow(item.label, item.text, near, knows, weight, penalty, count))
        nearest = [NearQuestion(item.question, item.similarity) for item in neighbours]
        return self.build_assessment(
            sample,
            float(score(penalties)[0]) if self.penalising != "none" else plain,
            (Weighting(self.form, self.weighting), *rows, *absent, *nearest),
            reason=self._build_reason(present, absent, has_penalty | ~counting, neighbours),
            parts=parts,
        )

    def _compute_weights(self, expertise: Any) -> tuple[Any, Any]:
        """Return the weights, and which references count: all, or the best alone."""
        everyone = np.ones(len(expertise), dtype=bool)
        if self.weighting == "agreement":
            return maths.ability_weights(expertise), everyone
        if self.weighting == "single-best":
            best = maths.find_best_reference(expertise)
            return best.astype(float), best
        return maths.softmax_weights(expertise, self.temperature), everyone

    def _build_reason(
        self,
        present: Sequence[ReferenceAnswer],
        absent: Sequence[AbsentReference],
        has_penalty: Any,
        neighbours: Sequence[Neighbour],
    ) -> str:
        phrases = [amount(len(present), "reference")]
        if self.weighting == "single-best" and len(present) > 1:
            phrases = [f"the best of {len(present)} references"]
        phrases += [
            f"{reference.absent} {reference.why}, so its weight went to the others"
            for reference in absent
        ]
        if self.penalising != "none":
            if not neighbours:
                phrases.append("no penalty, because no other question is similar enough")
            elif not has_penalty.all():
                pairs = zip(present, has_penalty, strict=True)
                without = ", ".join(
                    reference.label for reference, answered in pairs if not answered
                )
                phrases.append(f"no penalty from {without}, which answered no similar question")
        return "; ".join(phrases)

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return the mean of the score beside its baselines.

        Figures that need labels take answers with a label of 0 or less for wrong and all others for
        right, and have intervals over units.
        """
        columns = {name: array("d") for name in ("unit", "label", *_BASELINE_PARTS.values())}
        absences = Absences("reference", _read_absences, by_rule=(DECLINED,))
        fewer_questions = _FewerQuestions()
        # The assessments may be a stream from a file: one pass fills the summary, the columns and
        # the absences.
        result = compute_summary(
            self.statistics,
            _collect_labelled(fewer_questions.collect(absences.collect(assessments)), columns),
            self.score_range,
        )
        details = absences.details()
        if sentences := fewer_questions.describe(absences.scored):
            details[REMARKS] = [*details.get(REMARKS, ()), *sentences]
        result = replace(result, details={**result.details, **details})
        labels, units = np.array(columns["label"]), np.array(columns["unit"], dtype=np.int64)
        reason = "all labels are the same" if len(labels) else "no scored sample has a label"
        for key, part in _BASELINE_PARTS.items():
            scores = np.array(columns[part])
            value = auroc(scores, labels)
            if value is None:
                # AUROC needs right and wrong labels.
                result.add_figure(key, None, len(labels), reason=reason)
                continue
            interval = auroc_interval(scores, labels, units)
            if not isinstance(interval, str):
                # A string is the reason why there is no interval, and is stored as such.
                interval = (100 * interval[0], 100 * interval[1])
            result.add_figure(key, 100 * value, len(labels), interval, units=count_units(units))
        has_auroc = result.values["auroc"] is not None
        result.add_figure("chance", CHANCE_AUROC if has_auroc else None, len(labels), reason=reason)
        return result.with_settings(self.settings(), self.figures)

    def problem(self, assessment: Assessment) -> str | None:
        """Return what is wrong where the references do not agree with this answer in particular."""
        parts = assessment.parts
        if assessment.score is None or "agreement" not in parts:
            return None
        if parts["agreement"] <= parts.get("penalty", -math.inf):
            return "the references' answers to other questions are as similar to it"
        return "the references give another answer" if parts["agreement"] < MIN_AGREEMENT else None

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return the references with their weights and similarities."""
        return View(data=FewlTrace.read(assessment.evidence))


@dataclass(frozen=True)
class _SampleComparer:
    """Requests the similarities that one sample needs."""

    options: FewlOptions
    sample: Sample
    models: Models

    async def compare_answer(self, texts: Sequence[str]) -> list[float]:
        """Return the similarity of the answer to each text; 0 for a blank answer."""
        if not self.sample.answered:
            return [0.0] * len(texts)
        return await self._compare_all(self.sample.response or "", texts)

    async def compute_expertise(self, reference: ReferenceAnswer) -> float | None:
        """Return how much more similar a reference is to right answers than to wrong ones.

        ``None`` where it was asked, and no reply about right, or wrong, answers could be read.
        """
        sample, pairs = self.sample, self.options.pairs
        right: Sequence[str] = sample.corrected_answers[:pairs]
        wrong = sample.wrong_answers[:pairs]
        if self.options.weighting == "ideal":
            # "ideal" is the paper's upper bound: it reads the labels that FEWL does without.
            right = [alias for aliases in sample.answers for alias in aliases]
            wrong = sample.incorrect_answers
        if self.options.expertise == "ask" and self.options.weighting != "ideal":
            ask = sample.question, self.models
            to_right, to_wrong = await asyncio.gather(
                ask_whether_same(reference, right, *ask), ask_whether_same(reference, wrong, *ask)
            )
            # An empty side would count as 0 and so look like an opinion of the reference.
            if (right and not to_right) or (wrong and not to_wrong):
                return None
        else:
            to_right, to_wrong = await asyncio.gather(
                self._compare_all(reference.text, right), self._compare_all(reference.text, wrong)
            )
        return maths.expertise(to_right, to_wrong)

    async def _compare_all(self, text: str, references: Sequence[str]) -> list[float]:
        compare, question = self.models.compare, self.sample.question
        return await asyncio.gather(*(compare(text, other, question) for other in references))

"""The metric ``fewl``, its evidence, and its figures: the score beside what it is compared with."""

from __future__ import annotations

import asyncio
import json
import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.assessment import summarised
from trustassay.capabilities import Models
from trustassay.errors import AssessmentError
from trustassay.metric import Assessment, Context, Figure, Pool, Summary, directions, read_figures
from trustassay.metrics.fewl import maths
from trustassay.metrics.fewl.options import FewlOptions
from trustassay.metrics.fewl.references import (
    Absent,
    Neighbour,
    Neighbours,
    QuestionPool,
    Reference,
    counted,
    prepared,
    questions_of,
    says_same,
)
from trustassay.sample import Problem, Sample, missing
from trustassay.statistics.auroc import auroc_interval
from trustassay.statistics.correlation import auroc
from trustassay.statistics.intervals import units_in
from trustassay.text.words import amount
from trustassay.views import EvidenceRow, Rows, View

CHANCE = 50.0
DISAGREES = 0.2
"""Weighted similarity below which the references do not agree with the answer."""
_COMPARED = {
    "auroc": "score",
    "auroc_no_penalty": "no_penalty",
    "auroc_agreement": "agreement",
    "auroc_length": "brevity",
}
"""What is compared with the label, by the figure."""


def _noting(
    assessments: Collection[Assessment], columns: Mapping[str, array[float]]
) -> Iterator[Assessment]:
    """Pass assessments on, and note what is compared with labels."""
    for one in assessments:
        if one.error is None and one.score is not None and "label" in one.parts:
            numbers = {**one.parts, "score": one.score}
            numbers["unit"] = -1 if one.unit is None else one.unit
            numbers["brevity"] = -numbers.get("characters", 0.0)
            for name, column in columns.items():
                column.append(numbers.get(name, 0.0))
        yield one


@dataclass(frozen=True, slots=True)
class Weighting(EvidenceRow, told_by=("form", "weights")):
    """By which formula the score was computed, and by which weights."""

    form: str
    weights: str


@dataclass(frozen=True, slots=True)
class Row(EvidenceRow, told_by=("reference", "answer")):
    """One reference, by its name.

    penalty: its mean likeness to its answers to so many other questions, the ``neighbours``.
    """

    reference: str
    answer: str
    similarity: float | None
    expertise: float | None
    weight: float | None
    penalty: float | None = None
    neighbours: int | None = None


@dataclass(frozen=True, slots=True)
class NearQuestion(EvidenceRow, told_by=("neighbour",)):
    """A neighbour of the question."""

    neighbour: str
    likeness: float | None


class Weighed(NamedTuple):
    """What the evidence of one answer says; ``rest`` is evidence of any other kind."""

    weights: str
    rows: Sequence[Row]
    absent: Sequence[Absent]
    neighbours: Sequence[NearQuestion]
    rest: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, evidence: Iterable[Any]) -> Weighed:
        """Sort the evidence; references by weight, the heaviest first."""
        rows = Rows(evidence, Weighting, Row, Absent, NearQuestion)
        weights = [one.weights for one in rows.of(Weighting)]
        by_weight = sorted(rows.of(Row), key=lambda row: -(row.weight or 0.0))
        absent, near = rows.of(Absent), rows.of(NearQuestion)
        return cls("".join(weights[-1:]), by_weight, absent, near, rows.rest)

    @property
    def penalised(self) -> bool:
        """Whether any reference has a penalty."""
        return any(row.penalty is not None for row in self.rows)


_FORMS = {
    "eq1": "equation 1 of the paper",
    "theory": "section 3.1 of the paper",
    "agreement": "form of this project, not FEWL's",
}


@dataclass(frozen=True)
class Fewl(FewlOptions):
    """How much do the references agree with the answer, weighted by what they know?

    The score rises with the likeness of the answer to each reference's answer to the question,
    and falls with its likeness to their answers to other questions (Wei et al. 2024). Higher is
    less hallucinated. No gold answer is read, except by the weights ``ideal``.

    A reference that failed or said nothing gives its weight to the others of that sample, and with
    ``declined=drop`` so does one that refused; where none is left there is no score. An answer
    without words is like nothing: all its similarities are 0.

    ``parts`` hold the score without the penalty, the mean penalty, the weighted similarity, how
    many references, neighbours and pairs stand behind it, the length of the answer, and its label
    where it has one.

    The options are those of :class:`~trustassay.metrics.fewl.options.FewlOptions`.
    """

    name: ClassVar[str] = "fewl"
    pool: ClassVar[bool] = True
    part_directions = directions(
        higher="no_penalty agreement",
        lower="penalty",
        neither="references neighbours pairs characters label",
    )
    figures: ClassVar[Mapping[str, Figure]] = read_figures(__package__)
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    counts_outcomes: ClassVar[bool] = False
    """Its bound is ours, and was not measured against labels."""
    line: ClassVar[str] = (
        f"the references agree with it by less than {DISAGREES:g} (our bound, none is in the "
        "paper), or no more than with what they say of other questions"
    )

    @property
    def title(self) -> str:  # type: ignore[override]
        """What it is called, with all that scores can be compared by."""
        ours = self.form == "agreement"
        told = [_FORMS[self.form], f"weights {self.weighting}"]
        told += [] if ours else [f"divergence {self.divergence}"]
        if "similarity" in self.backend_names:
            told.append(f"similarity {self.backend_names['similarity']}")
        told += [] if self.penalising == "nearest" else [f"penalty {self.penalising}"]
        if not ours and self.declining == "drop":
            told.append("references that decline dropped")
        return f"{'Agreement with references' if ours else 'FEWL'} ({'; '.join(told)})"

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs references: in the file, or models to ask."""
        wanted = {
            "response": "the answer to assess",
            "references": "answers by model name, or --reference models to ask",
        }
        if self.wants_pairs:
            pairs = ("wrong_answers", "corrected_answers")
            wanted |= dict.fromkeys(pairs, "answers, --generator, or weights=uniform")
        if self.weighting == "ideal":
            golds = ("answers", "incorrect_answers")
            wanted |= dict.fromkeys(golds, "labelled answers, for weights=ideal")
        return missing(sample, **wanted)

    async def prepare(self, pool: Pool, models: Models) -> QuestionPool:
        """Look at all questions and, for the weights ``agreement``, at all answers."""
        return await prepared(pool, self, models)

    def pack(self, prepared: QuestionPool) -> Mapping[str, NDArray[Any]]:
        """Return the neighbours of all questions, and the abilities."""
        ability = [[*rater, value] for rater, value in prepared.ability.items()]
        told = json.dumps({"names": sorted(prepared.names), "ability": ability}).encode()
        arrays: dict[str, NDArray[Any]] = {"told": np.frombuffer(told, dtype=np.uint8)}
        if self.penalising == "nearest":
            arrays |= prepared.nearest_of(range(len(prepared.vectors)), self)._asdict()
        elif self.penalising == "random":
            arrays["vectors"] = prepared.vectors
        return arrays

    def unpack(self, arrays: Mapping[str, NDArray[Any]], pool: Pool) -> QuestionPool:
        """Return what :meth:`prepare` returned; without vectors where neighbours are known."""
        told = json.loads(arrays["told"].tobytes())
        result = questions_of(pool, told["names"])
        result.ability = {(name, number): value for name, number, value in told["ability"]}
        if "places" in arrays:
            result.known = Neighbours(arrays["places"], arrays["similarities"])
        result.vectors = arrays.get("vectors", result.vectors)
        return result

    async def assess(self, context: Context) -> Assessment:
        """Compare, weigh, subtract; every reference stands in the evidence."""
        sample, questions = context.sample, context.prepared
        expected = context.models.names("references") or questions.names
        present, absent = counted(sample, expected, drop=self.declining == "drop")
        if not present:
            return self._not_assessable(sample, absent)
        if self.wants_pairs and not (sample.wrong_answers and sample.corrected_answers):
            raise AssessmentError("has no wrong and corrected answers to weigh references by")
        comparing = _Comparing(self, sample, context.models)
        neighbours: Sequence[Neighbour] = ()
        if self.penalising != "none":
            neighbours = await questions.neighbours(sample, self, context.models, context.seed)
        elsewhere = [
            [near.answers[one.key] for near in neighbours if one.key in near.answers]
            for one in present
        ]
        agreement, expertise, likeness = await asyncio.gather(
            comparing.answer_with([one.text for one in present]),
            self._expertise(present, comparing, questions),
            asyncio.gather(*map(comparing.answer_with, elsewhere)),
        )
        columns = list(zip(present, agreement, expertise, likeness, strict=True))
        why = "said neither yes nor no about the answers it was asked about"
        absent += [Absent(one.shown, why) for one, _, knows, _ in columns if knows is None]
        rows = [(one, near, knows, far) for one, near, knows, far in columns if knows is not None]
        if not rows:
            return self._not_assessable(sample, absent)
        return self._assessed(sample, rows, absent, neighbours)

    def _not_assessable(self, sample: Sample, absent: Sequence[Absent]) -> Assessment:
        reason = "no reference answered: " + "; ".join(f"{a.absent} {a.why}" for a in absent)
        return self.assessed(sample, None, absent, reason=reason)

    async def _expertise(
        self, present: Sequence[Reference], comparing: _Comparing, questions: QuestionPool
    ) -> Sequence[float | None]:
        """Return what the weights are made of, for each reference; ``None`` if it cannot be had."""
        if self.weighting == "agreement":
            return [questions.ability_of(one.key) for one in present]
        if self.weighting == "uniform":
            return [0.0] * len(present)
        return await asyncio.gather(*(comparing.expertise(one) for one in present))

    def _assessed(
        self,
        sample: Sample,
        compared: Sequence[tuple[Reference, float, float, Sequence[float]]],
        absent: Sequence[Absent],
        neighbours: Sequence[Neighbour],
    ) -> Assessment:
        present, agreement, expertise, likeness = zip(*compared, strict=True)
        weights, counting = self._weights(np.array(expertise))
        has_penalty = np.array([bool(values) for values in likeness])
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
        plain = float(score(None)[0])
        parts = {
            "no_penalty": plain,
            "agreement": float(weights @ np.array(agreement)),
            "references": int(counting.sum()),
            "characters": len(sample.response or ""),
        }
        if self.penalising != "none":
            parts["neighbours"] = len(neighbours)
            if (has_penalty & counting).any():
                parts["penalty"] = float(penalties[has_penalty & counting].mean())
        if self.wants_pairs:
            given = len(sample.wrong_answers), len(sample.corrected_answers)
            parts["pairs"] = min(self.pairs, *given)
        if sample.label is not None:
            parts["label"] = sample.label
        rows = []
        for (one, near, knows, elsewhere), weight in zip(compared, weights.tolist(), strict=True):
            penalty = float(np.mean(elsewhere)) if elsewhere else None
            behind = len(elsewhere) or None
            rows.append(Row(one.shown, one.text, near, knows, weight, penalty, behind))
        nearest = [NearQuestion(one.question, one.similarity) for one in neighbours]
        return self.assessed(
            sample,
            float(score(penalties)[0]) if self.penalising != "none" else plain,
            (Weighting(self.form, self.weighting), *rows, *absent, *nearest),
            reason=self._reason(present, absent, has_penalty | ~counting, neighbours),
            parts=parts,
        )

    def _weights(self, expertise: Any) -> tuple[Any, Any]:
        """Return the weights, and which references count: all, or the best alone."""
        everyone = np.ones(len(expertise), dtype=bool)
        if self.weighting == "agreement":
            return maths.ability_weights(expertise), everyone
        if self.weighting == "single-best":
            best = maths.best_alone(expertise)
            return best.astype(float), best
        return maths.softmax_weights(expertise, self.temperature), everyone

    def _reason(
        self,
        present: Sequence[Reference],
        absent: Sequence[Absent],
        has_penalty: Any,
        neighbours: Sequence[Neighbour],
    ) -> str:
        words = [amount(len(present), "reference")]
        if self.weighting == "single-best" and len(present) > 1:
            words = [f"the best of {len(present)} references"]
        words += [f"{one.absent} {one.why}: its weight went to the others" for one in absent]
        if self.penalising != "none":
            if not neighbours:
                words.append("no question is near enough for a penalty, so there is none")
            elif not has_penalty.all():
                pairs = zip(present, has_penalty, strict=True)
                without = ", ".join(one.shown for one, has in pairs if not has)
                words.append(f"no penalty of {without}: answered no neighbour")
        return "; ".join(words)

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return the mean beside what it is to be compared with.

        Figures that need labels take answers with a label of 0 or less for wrong and all others for
        right, and have intervals over units.
        """
        columns = {name: array("d") for name in ("unit", "label", *_COMPARED.values())}
        result = summarised(self.statistics, _noting(assessments, columns), self.score_range)
        labels, units = np.array(columns["label"]), np.array(columns["unit"], dtype=np.int64)
        why = "all labels say the same" if len(labels) else "no scored sample has a label"
        for key, of in _COMPARED.items():
            scores = np.array(columns[of])
            value = auroc(scores, labels)
            if value is None:
                result.put(key, None, len(labels), why=why)
                continue
            interval = auroc_interval(scores, labels, units)
            if not isinstance(interval, str):
                interval = (100 * interval[0], 100 * interval[1])
            result.put(key, 100 * value, len(labels), interval, units=units_in(units))
        known = result.values["auroc"] is not None
        result.put("chance", CHANCE if known else None, len(labels), why=why)
        return result.with_settings(self.settings(), self.figures)

    def problem(self, assessment: Assessment) -> str | None:
        """Say where references agree with anything rather than with the answer."""
        parts = assessment.parts
        if assessment.score is None or "agreement" not in parts:
            return None
        if parts["agreement"] <= parts.get("penalty", -math.inf):
            return "the references say as much of it of other questions"
        return "the references say something else" if parts["agreement"] < DISAGREES else None

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return the references beside what they make of the answer."""
        return View(data=Weighed.read(assessment.evidence))


@dataclass(frozen=True)
class _Comparing:
    """Asks for the similarities of one sample."""

    options: FewlOptions
    sample: Sample
    models: Models

    async def answer_with(self, texts: Sequence[str]) -> list[float]:
        """Return how much the answer says the same as each text; 0 for an answer without words."""
        if not self.sample.answered:
            return [0.0] * len(texts)
        return await self._all(self.sample.response or "", texts)

    async def expertise(self, reference: Reference) -> float | None:
        """Return how much nearer a reference is to right answers than to wrong ones.

        ``None`` where it was asked, and no reply about right, or wrong, answers could be read.
        """
        sample, pairs = self.sample, self.options.pairs
        right: Sequence[str] = sample.corrected_answers[:pairs]
        wrong = sample.wrong_answers[:pairs]
        if self.options.weighting == "ideal":
            right = [alias for aliases in sample.answers for alias in aliases]
            wrong = sample.incorrect_answers
        if self.options.expertise == "ask" and self.options.weighting != "ideal":
            ask = sample.question, self.models
            to_right, to_wrong = await asyncio.gather(
                says_same(reference, right, *ask), says_same(reference, wrong, *ask)
            )
            if (right and not to_right) or (wrong and not to_wrong):
                return None
        else:
            to_right, to_wrong = await asyncio.gather(
                self._all(reference.text, right), self._all(reference.text, wrong)
            )
        return maths.expertise(to_right, to_wrong)

    async def _all(self, text: str, references: Sequence[str]) -> list[float]:
        compare, question = self.models.compare, self.sample.question
        return await asyncio.gather(*(compare(text, other, question) for other in references))

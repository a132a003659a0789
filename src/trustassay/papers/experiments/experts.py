"""How well references distinguish wrong from corrected answers, and which weights follow.

Wei et al. 2024, Figures 3 and 4 and appendix C.5: for each question and reference, the number of
the 25 wrong answers and of the corrected ones that it agrees with, and its share of the weight.
They are compared with people's ratings of the reference's own answer, or with right answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trustassay.core.event_loop import gather_all
from trustassay.core.metric import Assessment, Context, Metric, Need
from trustassay.core.sample import Problem, Sample
from trustassay.input.records import InputError
from trustassay.metrics.fewl import maths
from trustassay.metrics.fewl.references import answers_of
from trustassay.papers.experiments.answers import RecordSelection, read_distinct_questions
from trustassay.papers.experiments.fewl import truthfulqa_score
from trustassay.papers.experiments.measuring import FewlSetup, assess_questions, load_models
from trustassay.papers.experiments.results import (
    Cell,
    ExperimentResult,
    ExperimentRow,
    build_box_bar,
    build_chart,
    build_count_bar,
    note_left_out,
)
from trustassay.report.document import Chart
from trustassay.runs.folder import RunFolder
from trustassay.statistics.intervals import (
    MIN_UNITS,
    MIN_UNITS_FOR_MEANS,
    interval_within_bounds,
    unit_mean,
)
from trustassay.text.numbers import amount

RATINGS_FIELD = "reference_ratings"
"""Field of the input with people's ratings of each reference's answer, ``{name: number}``."""
COLUMNS = ("told apart", "agrees with wrong", "agrees with corrected", "expertise", "weight",
           "weight > 0.9", "weight < 0.1", "heaviest", "rating")  # fmt: skip
WEIGHT_BINS = 20


@dataclass(frozen=True)
class Experts(Metric):
    """Holds each reference's answer against every wrong and corrected answer of its question.

    The score is the share of pairs that the references distinguish: the corrected answer is nearer
    than the wrong one.

    Args:
        agrees: similarity from which a reference says the same as a wrong or corrected answer.
        pairs, answers: as of ``fewl``.
    """

    name: ClassVar[str] = "experts"
    title: ClassVar[str] = "What references know"
    reads_response: ClassVar[bool] = False

    agrees: float = 0.8
    pairs: int = 25
    answers: int = 1

    @property
    def fills(self) -> tuple[str, ...]:
        """As ``fewl``."""
        return ("references", "wrong_answers", "corrected_answers")

    @property
    def filling(self) -> Mapping[str, int]:
        """As ``fewl``."""
        return {"references": self.answers, "wrong_answers": self.pairs}

    def needs(self) -> Sequence[Need]:
        """A similarity, and the models that stages ask."""
        return [
            Need("compare"),
            Need("chat", "references", many=True, optional=True),
            Need("chat", "generator", optional=True),
        ]

    def problems(self, sample: Sample) -> list[Problem]:
        """Return problems of a question that has no references or pairs and gets none."""
        expected = {
            "references": "answers by model name, or --reference models to ask",
            "wrong_answers": "answers, or --backend generator=URI",
            "corrected_answers": "answers, or --backend generator=URI",
        }
        return [
            Problem(name, f"is missing (expected {message})")
            for name, message in expected.items()
            if not getattr(sample, name)
        ]

    async def assess(self, context: Context) -> Assessment:
        """Compare; the evidence has a row for each reference that answered."""
        sample = context.sample
        answers = [
            answer for answer in answers_of(sample.references, drop=False) if not answer.silence
        ]
        rows = await gather_all(
            self._compare_reference(sample, answer.label, answer.text, context)
            for answer in answers
        )
        if not rows:
            return Assessment(sample.id, self.name, None, reason="no reference answered")
        shares = [row["told_apart"] / row["pairs"] for row in rows if row["pairs"]]
        score = sum(shares) / len(shares) if shares else None
        return Assessment(sample.id, self.name, score, evidence=rows)

    async def _compare_reference(
        self, sample: Sample, name: str, text: str, context: Context
    ) -> Mapping[str, Any]:
        wrong, corrected = (
            texts[: self.pairs] for texts in (sample.wrong_answers, sample.corrected_answers)
        )
        gold = [alias for aliases in sample.answers for alias in aliases]
        # Compared in one gather over all four sides, so that similarities are batched.
        sides = (wrong, corrected, gold, sample.incorrect_answers)
        to_wrong, to_corrected, to_gold, to_false = await gather_all(
            gather_all(context.models.compare(text, other, sample.question) for other in side)
            for side in sides
        )
        row = {
            "reference": name,
            "answer": text,
            "pairs": min(len(wrong), len(corrected)),
            # Pairs by position; the longer list is cut.
            "told_apart": sum(b > a for a, b in zip(to_wrong, to_corrected, strict=False)),
            "agrees_with_wrong": sum(similarity >= self.agrees for similarity in to_wrong),
            "agrees_with_corrected": sum(similarity >= self.agrees for similarity in to_corrected),
            # As the metric computes it, so that the weights below are those of a run.
            "expertise": maths.expertise(to_corrected, to_wrong),
        }
        ratings = sample.metadata.get(RATINGS_FIELD)
        rating = ratings.get(name) if isinstance(ratings, Mapping) else None
        # `True` is an int in Python, but no rating.
        if isinstance(rating, int | float) and not isinstance(rating, bool):
            row["rating"] = float(rating)
        # Without ratings, TruthfulQA's metric says whether the answer is right.
        elif to_gold and to_false:
            row["nearer_to_right"] = float(truthfulqa_score(to_gold, to_false) > 0)
        return row


async def measure_experts(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection, agrees: float = 0.8
) -> ExperimentResult:
    """Measure how many pairs each reference distinguishes, and the distribution of its weight.

    Raises:
        BadInputError: questions lack references or pairs, and no models write them.
        InputError: no question could be compared.
    """
    questions = read_distinct_questions(source, records)
    references, generator = await load_models(setup.references, setup.generator)
    metric = Experts(agrees, setup.metric.pairs, setup.metric.answers)
    # Expertise depends on the similarity; a table for each would not fit the figure.
    similarity = setup.similarities[0]
    backends = {"references": references, "generator": generator, "similarity": similarity}
    assessments, left_out = await assess_questions(
        questions, records, metric, backends, RunFolder(out / "compared"), setup.options
    )
    rows = [
        assessment.evidence for assessment in assessments.values() if assessment.score is not None
    ]
    if not rows:
        raise InputError(
            f"no question could be compared; reason for the first: {next(iter(left_out.values()))}"
        )
    # Numbers are kept question by question, so that means, quartiles and bars share them.
    tables = _collect_tables(rows, setup.metric.temperature)
    notes = _build_notes(len(rows), tables, setup, agrees)
    notes += note_left_out(left_out, "question")
    return ExperimentResult(
        "fewl-experts",
        "Pairs of wrong and corrected answers that each reference distinguishes, and its weight",
        COLUMNS,
        [_build_row(name, table) for name, table in tables.items()],
        notes,
        left_out,
        {"similarity": similarity, "agrees": agrees, "temperature": setup.metric.temperature,
         "pairs": setup.metric.pairs, "answers": setup.metric.answers},
        _build_drawings(tables),
    )  # fmt: skip


def _collect_tables(
    rows: Sequence[Sequence[Mapping[str, Any]]], temperature: float
) -> dict[str, dict[str, list[float]]]:
    """Return the numbers of each reference, one for each question."""
    tables: dict[str, dict[str, list[float]]] = {}
    for question in rows:
        # Weights are relative to the references that answered this question.
        weights = maths.softmax_weights([row["expertise"] for row in question], temperature)
        for row, weight in zip(question, weights.tolist(), strict=True):
            table = tables.setdefault(row["reference"], {})
            numbers = {key: value for key, value in row.items() if isinstance(value, int | float)}
            # Ties count for each of the references.
            heaviest = float(weight == weights.max())
            for key, value in (numbers | {"weight": weight, "heaviest": heaviest}).items():
                table.setdefault(key, []).append(float(value))
    return tables


def _build_row(name: str, table: Mapping[str, Sequence[float]]) -> ExperimentRow:
    weights = np.array(table["weight"])
    # Questions may have different numbers of pairs.
    pairs = round(float(np.mean(table["pairs"])), 1)
    cells = [
        _spread_cell(table["told_apart"], f" of {pairs:g} {'pair' if pairs == 1 else 'pairs'}"),
        _spread_cell(table["agrees_with_wrong"]),
        _spread_cell(table["agrees_with_corrected"]),
        _spread_cell(table["expertise"]),
        _spread_cell(table["weight"]),
        _percent_cell(weights > 0.9),
        _percent_cell(weights < 0.1),
        _percent_cell(np.array(table["heaviest"]) > 0),
        _rating_cell(table),
    ]
    return ExperimentRow(name, cells, {"reference": name, "n": len(weights)})


def _spread_cell(values: Sequence[float], suffix: str = "") -> Cell:
    """Return a cell with mean and quartiles; ``suffix`` is put behind the mean."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    mean = float(np.mean(values))
    text = f"{mean:.2f}{suffix} ({low:.3g}, {middle:.3g}, {high:.3g})"
    return Cell(text, {"mean": mean, "quartiles": [low, middle, high]})


def _percent_cell(flags: NDArray[np.bool_]) -> Cell:
    share = 100 * float(flags.mean())
    return Cell(f"{share:.1f} %", {"value": share, "count": int(flags.sum())})


def _rating_cell(table: Mapping[str, Sequence[float]]) -> Cell:
    """Return the mean of people's ratings, or else how often an answer is nearer to a right one."""
    key = _rating_key(table)
    if key is None:
        return Cell("–", {"by": None})
    values = np.array(table[key])
    mean, n = float(values.mean()), len(values)
    # The scale of people's ratings is unknown.
    bounds = (0.0, 1.0) if key == "nearer_to_right" else None
    # Shares of yes and no need fewer questions for an interval than means.
    fewest = MIN_UNITS if bounds and np.isin(values, bounds).all() else MIN_UNITS_FOR_MEANS
    interval = interval_within_bounds(unit_mean(values), bounds) if n >= fewest else None
    interval_text = f" ({interval[0]:.2f} to {interval[1]:.2f})" if interval else ""
    return Cell(
        f"{mean:.2f}{interval_text}", {"by": key, "mean": mean, "interval": interval, "n": n}
    )


def _rating_key(table: Mapping[str, Sequence[float]]) -> str | None:
    return next((key for key in ("rating", "nearer_to_right") if table.get(key)), None)


def _build_notes(
    n: int, tables: Mapping[str, Mapping[str, Sequence[float]]], setup: FewlSetup, agrees: float
) -> list[str]:
    # A sign of -1 ranks low values first.
    def order(key: str, sign: int = 1) -> str:
        means = {name: sign * float(np.mean(table[key])) for name, table in tables.items()}
        return " > ".join(sorted(means, key=means.__getitem__, reverse=True))

    notes = [
        f"{amount(n, 'question')}; similarity: {setup.similarities[0]}. Each cell has the mean, "
        "with the quartiles in parentheses.",
        "Told apart: pairs in which the corrected answer is nearer to the reference than the "
        f"wrong one. A reference agrees with an answer if their similarity is at least {agrees:g}.",
        f"Order by expertise: {order('expertise')}.",
        f"Order by agreement with wrong answers, lowest first: {order('agrees_with_wrong', -1)}.",
    ]
    # Ratings and comparisons with right answers are on different scales and cannot be ranked
    # together.
    kinds = {_rating_key(table) for table in tables.values()}
    if len(kinds) == 1 and (key := kinds.pop()) is not None:
        ranked_by = (
            "people's ratings"
            if key == "rating"
            else "answers nearer to a right than to a wrong one"
        )
        notes.append(f"Order by {ranked_by}: {order(key)}.")
    else:
        notes.append(
            "No order by rating: not all references have ratings. Ratings need "
            f"`{RATINGS_FIELD}`, or `answers` and `incorrect_answers`."
        )
    reference_count, t = len(tables), setup.metric.temperature
    # Expertise lies between -1 and 1, so its exponentials differ by exp(2 / t) at most; a tiny
    # temperature would overflow.
    limit = math.exp(2 / t) / (math.exp(2 / t) + reference_count - 1) if t > 0.01 else 1.0
    if reference_count > 1:
        notes.append(
            f"With {reference_count} references and a temperature of {t:g}, no weight can exceed "
            f"{limit:.3f} if similarities lie between 0 and 1."
        )
    return notes


def _build_drawings(tables: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Chart]:
    """Draw the counts as boxes and the weights as bars (Figure 4, appendix C.5), and ratings."""
    # All boxes share one axis; 1 avoids an axis of length 0.
    max_pairs = max(1.0, *(max(table["pairs"]) for table in tables.values()))
    charts = [
        build_chart(
            title,
            "Distribution over questions. Line: smallest to largest value. Box: quartiles. Mark: "
            "median.",
            [build_box_bar(name, table[key], max_pairs) for name, table in tables.items()],
            ("0", f"{max_pairs:g}"),
        )
        for title, key in (
            ("Pairs in which the corrected answer is nearer than the wrong one", "told_apart"),
            ("Wrong answers that the reference agrees with", "agrees_with_wrong"),
            ("Corrected answers that the reference agrees with", "agrees_with_corrected"),
        )
    ]
    # Equal bins, so that bars of references can be compared.
    edges = np.linspace(0, 1, WEIGHT_BINS + 1)
    labels = [f"{low:.2f} to {high:.2f}" for low, high in pairwise(edges)]
    rows = []
    for name, table in tables.items():
        counts, _ = np.histogram(table["weight"], bins=edges)
        mean = f"mean {np.mean(table['weight']):.2f}"
        rows.append(build_count_bar(name, counts.tolist(), labels, mean))
    charts.append(
        build_chart("Weights", "Number of questions by weight of the reference.", rows, ("0", "1"))
    )
    key = _rating_key(next(iter(tables.values())))
    if key is not None and all(table.get(key) for table in tables.values()):
        # A bar for each rating that occurs: people may rate by stars or in percent.
        values = sorted({value for table in tables.values() for value in table[key]})
        if key == "nearer_to_right":
            values = [0.0, 1.0]
        elif len(values) == 1:
            # One bar over the whole width shows nothing; the table has the mean.
            return charts
        rows = []
        for name, table in tables.items():
            rating_counts = [table[key].count(value) for value in values]
            mean_text = f"mean {np.mean(table[key]):.2f}"
            rows.append(
                build_count_bar(name, rating_counts, [f"{value:g}" for value in values], mean_text)
            )
        ends = (f"{values[0]:g}", f"{values[-1]:g}")
        title = "Ratings" if key == "rating" else "Answers nearer to a right answer (1) or not (0)"
        charts.append(build_chart(title, "Number of questions by rating.", rows, ends))
    return charts

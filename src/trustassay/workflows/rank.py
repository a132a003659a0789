"""Models ranked by a metric's mean score over the same questions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from trustassay.errors import RunFolderError, UsageError, did_you_mean
from trustassay.metric import MetricInfo
from trustassay.runs.folder import RunFolder, metric_infos
from trustassay.runs.lines import hash64
from trustassay.show import document
from trustassay.show.text import number
from trustassay.statistics.intervals import FEWEST, too_few
from trustassay.statistics.ranking import (
    Agreement,
    PairDifference,
    RankedModels,
    ordered_alike,
    rank_models,
)
from trustassay.statistics.resampling import generator
from trustassay.workflows.json_form import JsonForm, as_json, fields_as_json
from trustassay.workflows.two_runs import finished_run

Floats = NDArray[np.float64]
MOST = 20
"""Pairs of models without a significant difference that are listed."""


@dataclass(frozen=True)
class PairsAlike(JsonForm):
    """How often two models' answers to a question are ordered by score as by ``truth``."""

    truth: str
    alike: int
    pairs: int


@dataclass(frozen=True)
class Ranking:
    """The models of a run, best first.

    questions: those that every model was scored for; left_out: the others. models: the names in
    the order of ``found``. unscored: of each model, how many of its answers have no score, by why:
    ``failed``, or the verdict. truth: what the models' accuracy is made of, if anything.
    """

    metric: MetricInfo
    questions: int
    left_out: int
    models: Sequence[str]
    found: RankedModels
    truth: str | None
    pairs: Sequence[PairsAlike]
    unscored: Sequence[Mapping[str, int]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        found = self.found
        models = []
        for place, name in enumerate(self.models):
            chances = found.probabilities
            one: dict[str, Any] = {
                "model": name,
                "mean": float(found.means[place]),
                "interval": as_json(found.intervals[place]),
                **({"without_interval": found.without} if found.without else {}),
                "rank_probabilities": None if chances is None else chances[place].tolist(),
                "unscored": dict(self.unscored[place]) if self.unscored else {},
            }
            if found.truth is not None:
                one["accuracy"] = float(found.truth[place])
            models.append(one)
        content: dict[str, Any] = {
            "metric": self.metric.name,
            "questions": self.questions,
            "left_out": self.left_out,
            "models": models,
            "differences": [
                {
                    "better": self.models[one.better],
                    "worse": self.models[one.worse],
                    "difference": one.value,
                    "interval": as_json(one.interval),
                    **({"without_interval": one.without} if one.without else {}),
                    "p": one.p,
                    "told_apart": one.apart,
                }
                for one in found.differences
            ],
            "pairs_ordered_alike": as_json(self.pairs),
        }
        if found.agreement is not None:
            content["agreement"] = fields_as_json(found.agreement, "kendall", "spearman")
        return content


def rank(path: Path, *, metric: str | None = None, seed: int = 0) -> Ranking:
    """Rank the models of a finished run.

    A model's answers to one question that it answered several times count by their mean. The
    accuracy is the share of answers with a label above 0, where all ranked answers have one.

    Raises:
        RunFolderError: no finished run, or not the metric, or fewer than two models share a
            question.
        ValueError: the run has several metrics, and none is named.
    """
    run, folder = finished_run(path), RunFolder(path)
    name = _metric(path, list(run["metrics"]), metric)
    info = metric_infos(folder, run)[name]
    answers = _Answers.read(folder, name)
    shared = answers.shared()
    if len(answers.models) < 2 or not shared:
        raise RunFolderError(
            f"{path}: {len(answers.models)} models and {len(shared)} questions that all of them "
            "answered; expected two models or more, identified by the samples' field `model`"
        )
    scores = answers.table(answers.scores, shared)
    labels = answers.table(answers.labels, shared)
    assert scores is not None
    found = rank_models(
        scores,
        generator(seed, "rank", name),
        lower_is_better=info.lower_is_better,
        truth=answers.table(answers.right(), shared),
        bounds=info.score_range if all(map(math.isfinite, info.score_range)) else None,
    )
    sign = -1.0 if info.lower_is_better else 1.0
    pairs = []
    if labels is not None:
        pairs.append(PairsAlike("label", *ordered_alike(sign * scores, labels)))
    return Ranking(
        info,
        len(shared),
        len(answers.questions) - len(shared),
        [answers.models[place] for place in found.order],
        found,
        "label" if labels is not None else None,
        pairs,
        [answers.unscored[place] for place in found.order],
    )


def _metric(path: Path, held: Sequence[str], wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in held:
            raise RunFolderError(f"{path}: {did_you_mean('metric of this run', wanted, held)}")
        return wanted
    if len(held) != 1:
        raise UsageError(f"{path}: the run has {' and '.join(held)}; name one with --metric")
    return held[0]


Place = tuple[int, int]
Values = dict[Place, list[float]]


@dataclass
class _Answers:
    """What is known of the answers, by the places of model and question."""

    models: list[str]
    questions: dict[int, int]
    places: dict[int, Place]
    """By the hash of a sample's id."""
    scores: Values
    labels: Values
    unscored: list[Counter[str]]
    """Of each model, the answers without a score, by why."""

    @classmethod
    def read(cls, folder: RunFolder, metric: str) -> _Answers:
        """Read the samples and their scores; samples without a model do not count."""
        models: dict[str, int] = {}
        found = cls([], {}, {}, {}, {}, [])
        labels: dict[int, float] = {}
        for sample in folder.samples():
            if sample.model is None:
                continue
            model = models.setdefault(sample.model, len(models))
            question = hash64(sample.question.strip())
            number = found.questions.setdefault(question, len(found.questions))
            known_as = hash64(sample.id)
            found.places[known_as] = (model, number)
            if sample.label is not None:
                labels[known_as] = sample.label
        found.models = list(models)
        found.unscored = [Counter() for _ in models]
        for assessment in folder.assessments(metric):
            known_as = hash64(assessment.id)
            place = found.places.get(known_as)
            if place is None:
                continue
            if assessment.score is None:
                why = "failed" if assessment.error is not None else assessment.verdict
                found.unscored[place[0]][why or "no score"] += 1
                continue
            found.scores.setdefault(place, []).append(assessment.score)
            if known_as in labels:
                found.labels.setdefault(place, []).append(labels[known_as])
        return found

    def right(self) -> Values:
        """Return 1 for every answer whose label is above 0, else 0."""
        return {
            place: [float(label > 0) for label in labels] for place, labels in self.labels.items()
        }

    def shared(self) -> list[int]:
        """Return the questions for which every model has a score."""
        counts = Counter(question for _, question in self.scores)
        return sorted(question for question, count in counts.items() if count == len(self.models))

    def table(self, values: Values, questions: Sequence[int]) -> Floats | None:
        """Return the means of values, shape (models, questions); ``None`` where one is missing."""
        wanted = [(model, one) for model in range(len(self.models)) for one in questions]
        if not all(place in values for place in wanted):
            return None
        means = [sum(values[place]) / len(values[place]) for place in wanted]
        return np.array(means).reshape(len(self.models), len(questions))


def statements(found: Ranking) -> list[str]:
    """Say which models do not differ significantly, and how far the order is the true one."""
    differences = found.found.differences
    unclear = [one for one in differences if not one.apart]
    corrected = f", corrected for {len(differences)} pairs" if len(differences) > 1 else ""
    if reason := too_few("questions that all models answered", found.questions, FEWEST):
        lines = [f"No models can be distinguished: {reason}."]
    elif not unclear:
        largest = _p(max(one.p for one in differences))
        lines = [f"All models differ significantly (largest p = {largest}{corrected})."]
    else:
        lines = [_unclear(found, one, corrected) for one in unclear[:MOST]]
        if len(unclear) > MOST:
            lines.append(f"Nor do {len(unclear) - MOST} more pairs; --json lists them.")
    if found.found.without:
        lines.append(f"No intervals: {found.found.without}.")
    for name, why in zip(found.models, found.unscored, strict=True):
        if why:
            counts = ", ".join(f"{count:,} {word}" for word, count in sorted(why.items()))
            lines.append(f"Answers of {name} without a score, in no mean: {counts}.")
    if found.found.agreement is not None:
        lines.append(_agreement(found, found.found.agreement))
    for pairs in found.pairs:
        if pairs.pairs:
            share = 100 * pairs.alike / pairs.pairs
            lines.append(
                f"Of {pairs.pairs:,} pairs of answers to a question that differ by "
                f"{pairs.truth}, the score orders {share:.1f} % alike; chance is 50 %."
            )
    return lines


def _unclear(found: Ranking, one: PairDifference, corrected: str) -> str:
    within = ""
    if one.interval:
        low, high = (f"{end:+.3f}".replace("-", "−") for end in one.interval)
        within = f" (95 % interval {low} to {high})"
    return (
        f"{found.models[one.better]} and {found.models[one.worse]} do not differ "
        f"significantly: difference {abs(one.value):.3f}{within}, p = {_p(one.p)}{corrected}."
    )


def _p(value: float) -> str:
    return f"{value:.2f}" if value >= 0.095 else f"{value:.2g}"


def _agreement(found: Ranking, agreement: Agreement) -> str:
    figures = {"Kendall's tau": agreement.kendall, "Spearman's rho": agreement.spearman}
    parts = [
        f"{name} is not defined" if value is None else f"{name} {value:.2f}"
        for name, value in figures.items()
    ]
    m = len(found.models)
    return (
        f"With true accuracy: {', '.join(parts)}. {m} models are in the true order by chance "
        f"once in {math.factorial(m):,} times."
    )


def table_of(found: Ranking) -> document.Table:
    """Return the table of the models: mean, interval, ranks, and true accuracy where known."""
    ranked = found.found
    columns, table = ["mean", "95 % interval"], []
    if ranked.probabilities is not None:
        columns += [f"rank {place}" for place in range(1, len(found.models) + 1)]
    if ranked.truth is not None:
        columns.append("true, %")
    for place, name in enumerate(found.models):
        interval = ranked.intervals[place]
        within = f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "too few"
        cells = [f"{ranked.means[place]:.3f}", within]
        if ranked.probabilities is not None:
            cells += [_percent(value) for value in ranked.probabilities[place].tolist()]
        if ranked.truth is not None:
            cells.append(f"{100 * ranked.truth[place]:.1f}")
        table.append(document.Row(name, cells))
    return document.Table("Model", columns, table, "In numbers")


def _percent(value: float) -> str:
    if 0 < value < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 < value < 1 else f"{100 * value:.0f} %"


def document_of(found: Ranking, sources: Sequence[Path]) -> document.Document:
    """Return the page of a ranking."""
    ranked = found.found
    first, *lines = statements(found)
    means = [
        (name, float(mean), interval)
        for name, mean, interval in zip(found.models, ranked.means, ranked.intervals, strict=True)
    ]
    note = Markup("Bar: 95 % interval over questions; {}mean.").format(document.MEAN)
    bars = document.interval_bars(means, lambda mean: number(mean, 3))
    parts: list[document.Block] = [
        *map(document.Text, lines),
        document.Chart("Mean score of each model", note, [bars]),
        table_of(found),
    ]
    return document.Document(
        "rank",
        f"{', '.join(source.name or str(source) for source in sources)}: models ranked",
        {
            "input": ", ".join(map(str, sources)),
            "questions": f"{found.questions:,}",
            "left out": f"{found.left_out:,}",
        },
        first.replace("95 %", "95\xa0%"),
        [],
        [document.Section(found.metric.title, parts)],
    )

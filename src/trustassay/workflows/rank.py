"""Models ranked by a metric's mean score over the same questions."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from trustassay.data.places import name_of
from trustassay.errors import RunFolderError
from trustassay.metric import MetricInfo
from trustassay.runs.folder import RunFolder, metric_infos
from trustassay.runs.lines import hash64
from trustassay.show import document
from trustassay.show.text import ends_text, number
from trustassay.statistics import Floats, ranking
from trustassay.statistics.intervals import FEWEST, too_few
from trustassay.statistics.resampling import generator
from trustassay.workflows.corrected import Corrected, LabelFiles, correct
from trustassay.workflows.json_form import as_json, fields_as_json
from trustassay.workflows.two_runs import common_metric, finished_run

MOST = 20
"""Pairs of models without a significant difference that are listed."""


@dataclass(frozen=True)
class Ranking:
    """The models of a run, best first.

    questions: those that every model was scored for; left_out: the others. models: the names in
    the order of ``found``. unscored: of each model, how many of its answers have no score, by why:
    ``failed``, or the verdict. alike: how many pairs of two models' answers to a question the
    scores order as the labels do, of how many with different labels; ``None`` without labels.
    corrected: the shares of right answers of each model, where some answers have labels of people.
    """

    metric: MetricInfo
    questions: int
    left_out: int
    models: Sequence[str]
    found: ranking.RankedModels
    unscored: Sequence[Mapping[str, int]]
    alike: tuple[int, int] | None = None
    corrected: Corrected | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        result = self.found
        models = []
        for place, name in enumerate(self.models):
            chances = result.probabilities
            one: dict[str, Any] = {
                "model": name,
                "mean": float(result.means[place]),
                "interval": as_json(result.intervals[place]),
                **({"without_interval": result.without} if result.without else {}),
                "rank_probabilities": None if chances is None else chances[place].tolist(),
                "unscored": dict(self.unscored[place]),
            }
            if result.truth is not None:
                one["accuracy"] = float(result.truth[place])
            models.append(one)
        alike = self.alike and dict(zip(("alike", "pairs"), self.alike, strict=True))
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
                for one in result.differences
            ],
            "pairs_ordered_alike": [{"truth": "label", **alike}] if alike else [],
        }
        if self.corrected:
            content["corrected"] = self.corrected.to_dict()
        if result.agreement is not None:
            content["agreement"] = fields_as_json(result.agreement, "kendall", "spearman")
        return content


def rank(
    path: Path, *, metric: str | None = None, labels: LabelFiles | None = None, seed: int = 0
) -> Ranking:
    """Rank the models of a finished run; with labels also by the share of right answers.

    A model's answers to one question that it answered several times count by their mean. The
    accuracy is the share of answers with a label above 0, where all ranked answers have one.

    Raises:
        RunFolderError: no finished run, or not the metric, or fewer than two models share a
            question.
        ValueError: the run has several metrics, and none is named.
    """
    run, folder = finished_run(path), RunFolder(path)
    name = common_metric([path], [run], metric)
    info = metric_infos(folder, run)[name]
    answers = _Answers.read(folder, name)
    shared = answers.shared()
    if len(answers.models) < 2 or not shared:
        raise RunFolderError(
            f"{path}: {len(answers.models)} models and {len(shared)} questions that all of them "
            "answered; expected two models or more, identified by the samples' field `model`"
        )
    scores = answers.table(answers.scores, shared)
    own_labels = answers.table(answers.labels, shared)
    right = {at: [float(label > 0) for label in own] for at, own in answers.labels.items()}
    assert scores is not None
    result = ranking.rank_models(
        scores,
        generator(seed, "rank", name),
        lower_is_better=info.lower_is_better,
        truth=answers.table(right, shared),
        bounds=info.score_range if all(map(math.isfinite, info.score_range)) else None,
    )
    sign = -1.0 if info.lower_is_better else 1.0
    return Ranking(
        info,
        len(shared),
        answers.questions - len(shared),
        [answers.models[place] for place in result.order],
        result,
        [answers.unscored[place] for place in result.order],
        None if own_labels is None else ranking.ordered_alike(sign * scores, own_labels),
        correct([path], labels, [name], by="model", seed=seed)[name] if labels else None,
    )


Place = tuple[int, int]
Values = dict[Place, list[float]]


@dataclass(frozen=True)
class _Answers:
    """Scores and labels of answers, by the places of model and question.

    questions: how many. unscored: of each model, the answers without a score, by why.
    """

    models: Sequence[str]
    questions: int
    scores: Values
    labels: Values
    unscored: Sequence[Counter[str]]

    @classmethod
    def read(cls, folder: RunFolder, metric: str) -> "_Answers":
        """Read the samples and their scores; samples without a model do not count."""
        models: dict[str, int] = {}
        questions: dict[int, int] = {}
        known: dict[int, tuple[Place, float | None]] = {}
        for sample in folder.samples():
            if sample.model is not None:
                model = models.setdefault(sample.model, len(models))
                question = hash64(sample.question.strip())
                place = model, questions.setdefault(question, len(questions))
                known[hash64(sample.id)] = place, sample.label
        result = cls(list(models), len(questions), {}, {}, [Counter() for _ in models])
        for assessment in folder.assessments(metric):
            if (there := known.get(hash64(assessment.id))) is None:
                continue
            place, label = there
            if assessment.score is None:
                why = "failed" if assessment.error is not None else assessment.verdict
                result.unscored[place[0]][why or "no score"] += 1
                continue
            result.scores.setdefault(place, []).append(assessment.score)
            if label is not None:
                result.labels.setdefault(place, []).append(label)
        return result

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
    alike, pairs = found.alike or (0, 0)
    if pairs:
        lines.append(
            f"Of {pairs:,} pairs of answers to a question that differ by label, the score orders "
            f"{100 * alike / pairs:.1f} % alike; chance is 50 %."
        )
    return [*lines, *(found.corrected.in_words() if found.corrected else ())]


def _unclear(found: Ranking, one: ranking.PairDifference, corrected: str) -> str:
    within = f" (95 % interval {ends_text(one.interval, '+')})" if one.interval else ""
    return (
        f"{found.models[one.better]} and {found.models[one.worse]} do not differ "
        f"significantly: difference {abs(one.value):.3f}{within}, p = {_p(one.p)}{corrected}."
    )


def _p(value: float) -> str:
    return f"{value:.2f}" if value >= 0.095 else f"{value:.2g}"


def _agreement(found: Ranking, agreement: ranking.Agreement) -> str:
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


def document_of(found: Ranking, sources: Sequence[str]) -> document.Document:
    """Return the page of a ranking."""
    ranked = found.found
    first, *lines = statements(found)
    means = zip(found.models, ranked.means.tolist(), ranked.intervals, strict=True)
    note = Markup("Bar: 95 % interval over questions; {}mean.").format(document.MEAN)
    bars = document.interval_bars(list(means), lambda mean: number(mean, 3))
    parts: list[document.Block] = [
        *map(document.Text, lines),
        document.Chart("Mean score of each model", note, [bars]),
        table_of(found),
    ]
    return document.Document(
        "rank",
        f"{', '.join(name_of(source) or source for source in sources)}: models ranked",
        {
            "input": ", ".join(sources),
            "questions": f"{found.questions:,}",
            "left out": f"{found.left_out:,}",
        },
        first.replace("95 %", "95\xa0%"),
        [],
        [document.Section(found.metric.title, parts)],
    )

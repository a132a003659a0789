"""``rank``: compares models by the outcomes of the same questions.

1. Take the questions that every model was asked, whatever their outcome.
2. Rank the models by the share of these questions that passed. Where the metric has no line, rank
   them by their mean score over the questions for which every model has a score.
3. Test the differences of all pairs of models together, paired by question.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from trustassay.compare.corrected import CorrectedShares, LabelFiles, correct
from trustassay.compare.pairing import read_keys
from trustassay.compare.run_scores import RunScores, choose_metric, read_finished_run, read_scores
from trustassay.core.json_form import as_json, fields_as_json
from trustassay.core.metric import MetricInfo
from trustassay.core.outcome import PASSED, WITH_LINE, WITHOUT_LINE, OutcomeKind
from trustassay.errors import RunFolderError
from trustassay.input.labels import read_labels
from trustassay.input.places import name_of
from trustassay.input.records import InputError
from trustassay.report import document
from trustassay.runs.folder import RunFolder
from trustassay.statistics import Floats
from trustassay.statistics.intervals import MIN_UNITS, reason_too_few
from trustassay.statistics.ranking import (
    OrderAgreement,
    PairDifference,
    RankedModels,
    count_concordant_pairs,
    rank_models,
)
from trustassay.statistics.resampling import generator
from trustassay.text.numbers import amount, ends_text, number, p_equation, percent_text

MAX_LISTED_PAIRS = 20
"""Longest list of pairs of models that do not differ significantly."""


@dataclass(frozen=True)
class Ranking:
    """The models of a run, best first."""

    metric: MetricInfo
    questions: int
    """Questions that every model was asked; without a line, those with a score of every model."""
    left_out: int
    """The number of other questions."""
    models: Sequence[str]
    """Their names, in the order of ``result``."""
    result: RankedModels
    by: str
    """What models are ranked by: the metric's word for a passed question, or ``mean score``."""
    shares: Sequence[Mapping[OutcomeKind, float]]
    """The share of each outcome among the questions of each model, in per cent."""
    reasons: Sequence[Mapping[str, int]]
    """For each model, the number of answers that were not judged, by reason."""
    words: Mapping[OutcomeKind, str]
    """The metric's own words for the outcomes."""
    ordered_alike: tuple[int, int] | None = None
    """The number of answer pairs that scores and labels order alike, and the number of pairs."""
    corrected: CorrectedShares | None = None
    """The corrected share of right answers of each model, where people labelled some answers."""
    label_note: str = ""
    """Which of the samples' own labels cannot be read, if any."""

    @property
    def by_share(self) -> bool:
        """Whether models are ranked by a share of all questions."""
        return PASSED in self.words

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        result, models = self.result, []
        for place, name in enumerate(self.models):
            # Probabilities of each rank are missing where there are too few questions.
            chances = result.probabilities
            entry: dict[str, Any] = {
                "model": name,
                "value": float(result.means[place]),
                "interval": as_json(result.intervals[place]),
                **({"without_interval": result.without} if result.without else {}),
                "rank_probabilities": None if chances is None else chances[place].tolist(),
                "outcomes": dict(self.shares[place]),
                "reasons": dict(self.reasons[place]),
            }
            if result.truth is not None:
                entry["accuracy"] = float(result.truth[place])
            models.append(entry)
        content: dict[str, Any] = {
            "metric": self.metric.name,
            "ranked_by": self.by,
            "questions": self.questions,
            "left_out": self.left_out,
            "models": models,
            "differences": [
                {
                    "better": self.models[pair.better],
                    "worse": self.models[pair.worse],
                    "difference": pair.value,
                    "interval": as_json(pair.interval),
                    **({"without_interval": pair.without} if pair.without else {}),
                    "p": pair.p,
                    "distinguished": pair.apart,
                }
                for pair in result.differences
            ],
        }
        if self.ordered_alike:
            alike = dict(zip(("alike", "pairs"), self.ordered_alike, strict=True))
            content["pairs_ordered_alike"] = [{"truth": "label", **alike}]
        if self.label_note:
            content["label_note"] = self.label_note
        if self.corrected:
            content["corrected"] = self.corrected.to_dict()
        if result.agreement is not None:
            content["agreement"] = fields_as_json(result.agreement, "kendall", "spearman")
        return content


def rank(
    path: Path, *, metric: str | None = None, labels: LabelFiles | None = None, seed: int = 0
) -> Ranking:
    """Rank the models of a finished run; with labels also by the share of right answers.

    Several answers of a model to one question count by their mean. The accuracy is the share of
    answers with a label above 0; it is given where all ranked answers have a label.

    Raises:
        RunFolderError: no finished run, or not the metric, or fewer than two models share a
            question.
        UsageError: the run has several metrics, and none is named.
    """
    run, folder = read_finished_run(path), RunFolder(path)
    name = choose_metric([path], [run], metric)
    scores = read_scores(path, run, name)
    answers = _AnswersByModel.read(folder, scores)
    with_line = PASSED in scores.outcomes.shares
    # With a line every question counts, since an unanswered one did not pass. Without a line only
    # scored answers can be averaged.
    ranked_values = answers.passed if with_line else answers.scores
    shared = answers.find_shared_questions(ranked_values)
    if len(answers.models) < 2 or not shared:
        raise RunFolderError(
            f"{path}: expected two or more models (the samples' field `model`) that answered the "
            f"same questions, got {amount(len(answers.models), 'model')} and "
            f"{amount(len(shared), 'question')} that all of them answered"
        )
    table = answers.table(ranked_values, shared)
    # Every model has a value for each shared question, so no cell can be empty.
    assert table is not None
    is_right = {at: [float(label > 0) for label in ones] for at, ones in answers.labels.items()}
    low, high = (0.0, 1.0) if with_line else scores.info.score_range
    # A share of passed questions is better when higher, whatever the direction of the score.
    lower_is_better = scores.info.lower_is_better and not with_line
    result = rank_models(
        table,
        generator(seed, "rank", name),
        lower_is_better=lower_is_better,
        truth=answers.table(is_right, shared),
        # Intervals can be kept within the bounds only where both are finite.
        bounds=(low, high) if all(map(math.isfinite, (low, high))) else None,
    )
    # Scores are turned so that higher is better, as with labels.
    sign = -1.0 if scores.info.lower_is_better else 1.0
    mean_scores, labels_of_shared = (
        answers.table(values, shared) for values in (answers.scores, answers.labels)
    )
    # Answers and labels are compared pair by pair, within each question.
    alike = None
    if mean_scores is not None and labels_of_shared is not None:
        alike = count_concordant_pairs(sign * mean_scores, labels_of_shared)
    words, corrected = scores.outcomes.words, None
    if labels:
        corrected = correct([path], labels, [name], group_field="model", seed=seed)[name]
    return Ranking(
        metric=scores.info,
        questions=len(shared),
        left_out=answers.questions - len(shared),
        models=[answers.models[place] for place in result.order],
        result=result,
        by=words[PASSED] if with_line else "mean score",
        # Of a metric with a line of the questions that are compared, so that the columns agree.
        shares=[answers.shares(place, shared if with_line else None) for place in result.order],
        # result.order sorts everything that is listed by model, the best first.
        reasons=[answers.reasons[place] for place in result.order],
        words=words,
        ordered_alike=alike,
        corrected=corrected,
        label_note=answers.label_note,
    )


ModelQuestion = tuple[int, int]
ValuesByModelQuestion = dict[ModelQuestion, list[float]]


@dataclass(frozen=True)
class _AnswersByModel:
    """The outcomes of answers, by the places of their model and question."""

    models: Sequence[str]
    questions: int
    """The number of different questions."""
    passed: ValuesByModelQuestion
    """1 or 0 for every answer."""
    scores: ValuesByModelQuestion
    """The scores of the answers that have one."""
    labels: ValuesByModelQuestion
    """The labels that the samples themselves carry."""
    kinds: Mapping[ModelQuestion, Sequence[OutcomeKind]]
    """The outcome of every answer."""
    reasons: Sequence[Counter[str]]
    """For each model, the reasons why answers were not judged."""
    label_note: str
    """Which labels cannot be read, if any."""

    @classmethod
    def read(cls, folder: RunFolder, scores: RunScores) -> "_AnswersByModel":
        """Read the samples of a run; samples without a model are left out."""
        models: dict[str, int] = {}
        questions: dict[int, int] = {}
        passed, values = ValuesByModelQuestion(), ValuesByModelQuestion()
        label_places: list[ModelQuestion] = []
        sample_labels: list[float | str | None] = []
        ids: list[str] = []
        kinds: dict[ModelQuestion, list[OutcomeKind]] = {}
        reasons: list[Counter[str]] = []
        # Only the hashes of the questions are needed, so no unit is passed.
        keys = read_keys(folder, {}).questions.tolist()
        for at, sample in enumerate(folder.samples()):
            if sample.model is None:
                continue
            if sample.model not in models:
                models[sample.model] = len(models)
                reasons.append(Counter())
            # Questions are identified by the hash of their normalised text, so that spelling of
            # case does not divide them.
            place = models[sample.model], questions.setdefault(keys[at], len(questions))
            kinds.setdefault(place, []).append(scores.kinds[at])
            passed.setdefault(place, []).append(float(scores.kinds[at] == PASSED))
            if not math.isnan(scores.scores[at]):
                values.setdefault(place, []).append(float(scores.scores[at]))
            if scores.reasons[at]:
                reasons[place[0]][scores.reasons[at]] += 1
            label_places.append(place)
            sample_labels.append(sample.label)
            ids.append(sample.id)
        labels, note = _read_labels_by_place(label_places, sample_labels, ids)
        return cls(list(models), len(questions), passed, values, labels, kinds, reasons, note)

    def find_shared_questions(self, values: ValuesByModelQuestion) -> list[int]:
        """Return the questions for which every model has a value."""
        counts = Counter(question for _, question in values)
        return sorted(question for question, count in counts.items() if count == len(self.models))

    def table(self, values: ValuesByModelQuestion, questions: Sequence[int]) -> Floats | None:
        """Build the table of mean values, shape (models, questions); ``None`` if a value is
        missing."""
        places = [(model, question) for model in range(len(self.models)) for question in questions]
        if not all(place in values for place in places):
            return None
        means = [sum(values[place]) / len(values[place]) for place in places]
        return np.array(means).reshape(len(self.models), len(questions))

    def shares(self, model: int, among: Sequence[int] | None) -> dict[OutcomeKind, float]:
        """Return the share of each outcome among the questions of a model, in per cent.

        Args:
            model: its place.
            among: the questions to count, of a metric with a line; ``None`` for all questions of
                the model, of a metric without a line.
        """
        questions = self.questions_of(model) if among is None else among
        by_question = [self.kinds[model, question] for question in questions]
        return {
            # Several answers to one question share its weight.
            kind: 100 * float(np.mean([kinds.count(kind) / len(kinds) for kinds in by_question]))
            for kind in (WITHOUT_LINE if among is None else WITH_LINE)
        }

    def questions_of(self, model: int) -> list[int]:
        """Return the questions that a model was asked."""
        return [question for model_of_answer, question in self.kinds if model_of_answer == model]


def _read_labels_by_place(
    places: Sequence[ModelQuestion], labels: Sequence[float | str | None], ids: Sequence[str]
) -> tuple[ValuesByModelQuestion, str]:
    """Return the labels of answers as numbers, and a note on those that cannot be read.

    Without any, or if most cannot be read, there are none: a ranking does not need them.
    """
    result: ValuesByModelQuestion = {}
    if all(label is None for label in labels):
        return result, ""
    try:
        read = read_labels("label", labels, ids=ids)
    except InputError as error:
        return result, f"Labels not used: {error}"
    for place, value in zip(places, read.values, strict=True):
        if not math.isnan(value):
            result.setdefault(place, []).append(value)
    return result, read.unread.describe("labels label") if read.unread else ""


def describe_ranking(ranking: Ranking) -> list[str]:
    """Describe which models differ significantly, and how far the ranking agrees with labels."""
    result = ranking.result
    differences = result.differences
    # Without enough questions no difference is tested; that is said in place of the list.
    unclear = [pair for pair in differences if not pair.apart]
    # One pair needs no correction, so the sentence does not mention it.
    corrected = f", corrected for {len(differences)} pairs" if len(differences) > 1 else ""
    if reason := reason_too_few("questions that all models answered", ranking.questions, MIN_UNITS):
        lines = [f"The models cannot be distinguished: {reason}."]
    elif not unclear:
        largest = p_equation(max(pair.p for pair in differences))
        lines = [f"All models differ significantly (largest {largest}{corrected})."]
    else:
        lines = [
            _describe_no_difference(ranking, pair, corrected) for pair in unclear[:MAX_LISTED_PAIRS]
        ]
        if len(unclear) > MAX_LISTED_PAIRS:
            lines.append(
                f"No significant difference in {len(unclear) - MAX_LISTED_PAIRS:,} more pairs "
                "(--json lists them)."
            )
    if result.without:
        lines.append(f"No intervals: {result.without}.")
    for name, reasons in zip(ranking.models, ranking.reasons, strict=True):
        if reasons:
            counts = ", ".join(f"{count:,} {word}" for word, count in sorted(reasons.items()))
            lines.append(f"Not judged for {name}: {counts}.")
    if ranking.label_note:
        lines.append(f"{ranking.label_note}.")
    if result.agreement is not None:
        lines.append(_describe_agreement(ranking, result.agreement))
    alike, pairs = ranking.ordered_alike or (0, 0)
    if pairs:
        lines.append(
            f"The score and the labels agree on the order of {100 * alike / pairs:.1f} % of "
            f"{pairs:,} pairs of answers to the same question; chance is 50 %."
        )
    by_labels = ranking.corrected
    return [*lines, *(by_labels.in_words() if by_labels else ())]


def _describe_no_difference(ranking: Ranking, pair: PairDifference, corrected: str) -> str:
    scale, unit = (100, " points") if ranking.by_share else (1, "")
    ends = pair.interval and (scale * pair.interval[0], scale * pair.interval[1])
    within = f" (95 % interval {ends_text(ends, '+', 1 if unit else 3)})" if ends else ""
    models = ranking.models
    # Holm's correction, or the sign-flip test, may need more than an interval that excludes 0.
    stricter = ends is not None and ends[0] * ends[1] > 0
    note = "; the test is stricter than the interval" if stricter else ""
    return (
        f"{models[pair.better]} and {models[pair.worse]} do not differ significantly: difference "
        f"{scale * abs(pair.value):.3g}{unit}{within}, {p_equation(pair.p)}{corrected}{note}."
    )


def _describe_agreement(ranking: Ranking, agreement: OrderAgreement) -> str:
    figures = {"Kendall's tau": agreement.kendall, "Spearman's rho": agreement.spearman}
    parts = [
        f"{name} is not defined" if value is None else f"{name} {value:.2f}"
        for name, value in figures.items()
    ]
    # With few models a perfect order is likely by chance, so the sentence says how likely.
    m = len(ranking.models)
    return (
        f"Agreement with the order by labels: {', '.join(parts)}. By chance, {m} models are in "
        f"that order once in {math.factorial(m):,} times."
    )


def build_table(ranking: Ranking) -> document.Table:
    """Build the table of the models: outcomes, interval, ranks, and accuracy where known."""
    result, words = ranking.result, ranking.words
    columns = [f"{words[kind]}, %" for kind in ranking.shares[0]]
    if not ranking.by_share:
        columns = ["mean", *columns]
    # The interval belongs to the first column, which is the ranked figure.
    columns.insert(1, "95 % interval")
    if result.probabilities is not None:
        columns += [f"P(rank {place})" for place in range(1, len(ranking.models) + 1)]
    if result.truth is not None:
        columns.append("right by labels, %")
    scale, digits = (100, 1) if ranking.by_share else (1, 3)
    rows = []
    for place, name in enumerate(ranking.models):
        interval = result.intervals[place]
        ends = [f"{scale * end:.{digits}f}" for end in interval or ()]
        cells = [f"{share:.1f}" for share in ranking.shares[place].values()]
        if not ranking.by_share:
            cells = [f"{result.means[place]:.3f}", *cells]
        cells.insert(1, " to ".join(ends) or "too few")
        if result.probabilities is not None:
            cells += [percent_text(value) for value in result.probabilities[place].tolist()]
        if result.truth is not None:
            cells.append(f"{100 * result.truth[place]:.1f}")
        rows.append(document.DocumentRow(name, cells))
    return document.Table("Model", columns, rows, "Table of the models")


def build_document(ranking: Ranking, sources: Sequence[str]) -> document.PageDocument:
    """Build the page of a ranking."""
    result = ranking.result
    first, *lines = describe_ranking(ranking)
    values = zip(ranking.models, result.means.tolist(), result.intervals, strict=True)
    by_share = ranking.by_share
    note = Markup("Bar: 95 % interval; {}{}.").format(
        document.MEAN, "share" if by_share else "mean"
    )
    bars = document.interval_bars(list(values), lambda value: number(value, 3))
    title = f"Share {ranking.by}" if by_share else "Mean score"
    parts: list[document.Block] = [
        *map(document.Text, lines),
        document.Chart(f"{title}, by model", note, [bars]),
        build_table(ranking),
    ]
    return document.PageDocument(
        "rank",
        f"{', '.join(name_of(source) or source for source in sources)}: ranking of models",
        {
            "input": ", ".join(sources),
            "ranked by": f"share {ranking.by}" if by_share else ranking.by,
            "questions": f"{ranking.questions:,}",
            "questions left out": f"{ranking.left_out:,}",
        },
        first.replace("95 %", "95\xa0%"),
        [],
        [document.Section(ranking.metric.title, parts)],
    )

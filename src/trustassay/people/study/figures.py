"""Figures of scores against one label, with intervals from resampled questions, and tests."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from trustassay.core.json_form import JsonForm
from trustassay.input.labels import LabelKind
from trustassay.people.study.answers import ScoreColumn, StudyAnswers
from trustassay.people.study.labels import Label
from trustassay.statistics import Floats, Places, correlation
from trustassay.statistics.auroc import auroc_difference, mean_auroc_interval
from trustassay.statistics.correlation import WeightedMeasure
from trustassay.statistics.intervals import Estimate, reason_too_few
from trustassay.statistics.resampling import (
    PairedTest,
    bootstrap_test,
    cluster_weights,
    holm,
    resample_interval,
)

HEADLINE_FIGURES: Mapping[LabelKind, str] = {
    "binary": "auroc",
    "ordinal": "kendall",
    "real": "kendall",
}
"""The figure by which scores are ordered and compared, by the kind of label."""
CEILING_ROW, CHANCE_ROW = "people", "chance"
"""Rows that are no columns."""
PROBABILITY_FIGURES = frozenset({"brier", "ece"})
CLASS_FIGURES = PROBABILITY_FIGURES | {"auroc", "auprc"}
CHANCE_VALUES = {
    "auroc": 0.5,
    "prr": 0.0,
    "kendall": 0.0,
    "spearman": 0.0,
    "pearson": 0.0,
    "ece": 0.0,
}
ASSOCIATIONS: Mapping[str, WeightedMeasure] = {
    name: correlation.WEIGHTED_MEASURES[name] for name in ("kendall", "spearman", "pearson")
}
"""The figures of covariates, which have no better direction."""
MIN_ANSWERS_OF_FIGURE = 10
"""With fewer answers no figure is given: a single answer would change it by a tenth."""


@dataclass(frozen=True, slots=True)
class ScoreTest(JsonForm):
    """Two scores compared by the same label on the same answers."""

    # Tells pytest that this class is no test case.
    __test__ = False

    first: str
    second: str
    figure: str
    """The name of the headline figure."""
    n: int
    """The number of answers that have both scores and the label."""
    difference: float | None = None
    """The figure of the first score minus that of the second."""
    interval: tuple[float, float] | None = None
    """The 95 % interval of ``difference``."""
    p: float | None = None
    """The two-sided p-value."""
    corrected: float | None = None
    """``p`` corrected for the number of tests of this label."""
    without: str = ""
    """Why there is no test."""


Key = TypeVar("Key")
FigureParts = Sequence[tuple[Places, correlation.WeightedFigure]]
"""The functions whose mean is a figure, each with the places of the answers that it is of."""


class Resampling(NamedTuple):
    """The generator and the number of resamples."""

    rng: np.random.Generator
    replicates: int


def estimate_figures(
    columns: Sequence[ScoreColumn],
    labels: Floats,
    kind: LabelKind,
    questions: Places,
    resampling: Resampling,
    measures: Mapping[str, WeightedMeasure] = correlation.WEIGHTED_MEASURES,
) -> dict[str, dict[str, Estimate]]:
    """Estimate figures of scores against a label, by column and name.

    Args:
        columns: scores of n answers.
        labels: shape (n,), NaN where there is none.
        kind: of the label.
        questions: the number of each answer's question, shape (n,).
        resampling: for the intervals.
        measures: the figures to estimate, by name.
    """
    rows = {column.name: [(column, labels)] for column in columns}
    return _estimate_means(rows, kind, questions, resampling, measures)


def _estimate_means(
    rows: Mapping[str, Sequence[tuple[ScoreColumn, Floats]]],
    kind: LabelKind,
    questions: Places,
    resampling: Resampling,
    measures: Mapping[str, WeightedMeasure] = correlation.WEIGHTED_MEASURES,
) -> dict[str, dict[str, Estimate]]:
    """Estimate the figures of each row as means over its pairs of a column and labels.

    Pairs for which a figure is not defined do not count in it.
    """
    result: dict[str, dict[str, Estimate]] = {row: {} for row in rows}
    figures: dict[tuple[str, str], FigureParts] = {}
    clusters, rarer = dict[tuple[str, str], int](), dict[tuple[str, str], int]()
    for (row, pairs), (name, measure) in itertools.product(rows.items(), measures.items()):
        samples, first_reason = [], ""
        for column, labels in pairs:
            # Each pair uses the answers that have both a score and a label.
            places = np.flatnonzero(~(np.isnan(column.values) | np.isnan(labels)))
            x, y = column.values[places], labels[places]
            reason = explain_undefined(name, column, x, y, kind)
            first_reason = first_reason or reason
            samples += [] if reason else [(places, x, y)]
        single, rated = len(pairs) == 1, {at for of, *_ in samples for at in of.tolist()}
        n = len(places) if single else len(rated)
        result[row][name] = Estimate(None, n, None, first_reason)
        # AUROC has an interval in closed form, so it needs no resamples.
        if samples and name == "auroc":
            value = float(np.mean([correlation.value_of(measure, x, y) for _, x, y in samples]))
            pairs_with_questions = [(x, y, questions[places]) for places, x, y in samples]
            result[row][name] = Estimate.of(value, n, mean_auroc_interval(pairs_with_questions))
        # Other figures are collected, so that all of them use the same draws.
        elif samples:
            figures[row, name] = [(places, measure(x, y)) for places, x, y in samples]
            clusters[row, name] = len(np.unique(questions[places] if single else questions))
            # These figures depend on the rarer class, so its size decides whether there is an
            # interval.
            if single and name in correlation.BY_CLASS and kind == "binary":
                rarer[row, name] = int(min(y.sum(), len(y) - y.sum()))
    # All resampled figures at once, so that they share the same draws.
    for key, drawn in _resample(figures, questions, resampling).items():
        row, name = key
        n = result[row][name].n
        result[row][name] = _estimate_figure(name, drawn, n, clusters[key], rarer.get(key))
    return result


def explain_undefined(name: str, column: ScoreColumn, x: Floats, y: Floats, kind: LabelKind) -> str:
    """Return why a measure is undefined for these scores and labels; empty where it is defined."""
    if not len(x):
        return "no answer has both a score and a label"
    # The first reason that applies is given; an empty key means that there are enough answers.
    reasons = {
        reason_too_few("answers", len(x), MIN_ANSWERS_OF_FIGURE): True,
        f"labels are {kind}, not of two classes": name in CLASS_FIGURES and kind != "binary",
        "the score is not a probability": name in PROBABILITY_FIGURES and not column.probability,
        f"all labels are the same ({y[0]:g})": (y == y[0]).all()
        and name not in PROBABILITY_FIGURES,
        f"all scores are the same ({x[0]:g})": (x == x[0]).all()
        and name not in PROBABILITY_FIGURES,
    }
    return next((reason for reason, applies in reasons.items() if reason and applies), "")


def find_p_value(row: str, figure: str, estimate: Estimate) -> float | None:
    """Return the p-value of Pearson's r, which takes answers as independent of each other.

    ``None`` for other figures, and for the rows ``people``, a mean over raters, and ``chance``.
    """
    if figure != "pearson" or estimate.value is None or row in (CEILING_ROW, CHANCE_ROW):
        return None
    return correlation.pearson_p_value(estimate.value, estimate.n)


def estimate_chance(labels: Floats, kind: LabelKind) -> dict[str, Estimate]:
    """Return the figures of a score without information: always the share of right answers."""
    known_labels = labels[~np.isnan(labels)]
    n = len(known_labels)
    result = {}
    for name in correlation.WEIGHTED_MEASURES:
        if name in CLASS_FIGURES and kind != "binary":
            result[name] = Estimate(None, n, None, f"labels are {kind}, not of two classes")
        elif not n or (known_labels == known_labels[0]).all():
            result[name] = Estimate(None, n, None, "all labels are the same")
        else:
            share = float(known_labels.mean())
            # AUPRC and Brier depend on the share of right answers; the others are constants.
            value = {"auprc": share, "brier": share * (1 - share)}.get(
                name, CHANCE_VALUES.get(name)
            )
            result[name] = Estimate(value, n, None, "by definition")
    return result


def run_paired_tests(
    columns: Sequence[ScoreColumn],
    labels: Floats,
    kind: LabelKind,
    questions: Places,
    resampling: Resampling,
) -> list[ScoreTest]:
    """Compare all pairs of scores, scores with baselines, and parts with their own score.

    Only the answers that have both count; covariates are left out. AUROCs are compared by their
    placement values, other figures by the same resampled questions. The p-values are corrected for
    their number (Holm).
    """
    headline = HEADLINE_FIGURES[kind]
    measure = correlation.WEIGHTED_MEASURES[headline]
    tests: list[ScoreTest] = []
    figures: dict[tuple[int, int], FigureParts] = {}
    for a, b in itertools.combinations(columns, 2):
        if not _is_comparable(a, b):
            continue
        missing = np.isnan(a.values) | np.isnan(b.values) | np.isnan(labels)
        places = np.flatnonzero(~missing)
        y = labels[places]
        sides = [column.values[places] for column in (a, b)]
        reasons = [
            explain_undefined(headline, column, column.values[places], y, kind) for column in (a, b)
        ]
        reason = reasons[0] or reasons[1]
        test = ScoreTest(a.name, b.name, headline, len(places), without=reason)
        if not reason and headline == "auroc":
            test = _complete_test(test, auroc_difference(sides[0], sides[1], y, questions[places]))
        elif not reason:
            for side, x in enumerate(sides):
                figures[len(tests), side] = [(places, measure(x, y))]
        tests.append(test)
    drawn = _resample(figures, questions, resampling)
    for place in dict.fromkeys(place for place, _ in drawn):
        (first, draws_of_first), (second, draws_of_second) = drawn[place, 0], drawn[place, 1]
        clusters = len(np.unique(questions[figures[place, 0][0][0]]))
        tests[place] = _complete_test(
            tests[place], bootstrap_test(first - second, draws_of_first - draws_of_second, clusters)
        )
    corrected = holm([test.p for test in tests])
    return [replace(test, corrected=p) for test, p in zip(tests, corrected, strict=True)]


def _complete_test(of: ScoreTest, result: PairedTest) -> ScoreTest:
    value, interval, p, without = result
    return replace(of, difference=value, interval=interval, p=p, without=without)


def _is_comparable(a: ScoreColumn, b: ScoreColumn) -> bool:
    if "covariate" in (a.kind, b.kind):
        return False
    # A part is compared with its own score only, or the number of tests would explode.
    if "part" in (a.kind, b.kind):
        are_related = a.of == b.name or b.of == a.name
        return are_related and not np.array_equal(a.values, b.values, equal_nan=True)
    return not a.kind == b.kind == "baseline"


def _resample(
    figures: Mapping[Key, FigureParts], questions: Places, resampling: Resampling
) -> dict[Key, tuple[float, Floats]]:
    """Return each figure and its resamples; all figures share the same resampled questions."""
    draws: dict[Key, list[Floats]] = {key: [] for key in figures}
    rng, replicates = resampling
    for weights in cluster_weights(questions, rng, replicates) if figures else ():
        for key, parts in figures.items():
            # Most figures use all answers; then the weights need no copy.
            covers_all = len(parts) == 1 and len(parts[0][0]) == weights.shape[1]
            values = [
                figure(weights if covers_all else weights[:, places]) for places, figure in parts
            ]
            draws[key].append(np.mean(values, axis=0))
    return {
        key: (
            float(np.mean([figure(np.ones((1, len(places))))[0] for places, figure in parts])),
            np.concatenate(draws[key]),
        )
        for key, parts in figures.items()
    }


def _estimate_figure(
    name: str, drawn: tuple[float, Floats], n: int, clusters: int, rarer: int | None = None
) -> Estimate:
    value, resamples = drawn
    if math.isnan(value):
        return Estimate(None, n, None, "undefined for these scores and labels")
    # Resampling increases some figures, such as a calibration error; the interval is corrected.
    biased = value if name in correlation.BIASED else None
    return Estimate.of(value, n, resample_interval(resamples, clusters, biased=biased, rarer=rarer))


LENGTH_COLUMN, SOURCE_COLUMN = "length", "source"
SOURCE_FIELDS = ("source", "model")
"""The fields that tell where an answer comes from."""
MIN_ANSWERS_OF_SOURCE = 20
"""Sources with fewer answers are counted together."""
OTHER_SOURCES = "others"


def build_length_columns(answers: StudyAnswers, labels: Floats) -> list[ScoreColumn]:
    """Build the baseline of the length of each response, in words; none without responses.

    The sign is turned where shorter answers have higher labels (by Kendall's tau-b). It is chosen
    on the labels themselves, so the baseline is slightly too strong where length carries no
    information.
    """
    words = np.array([float(row.words) for row in answers.rows])
    # A table of scores need not have the responses.
    if not words.any():
        return []
    has_label = ~np.isnan(labels)
    shorter = (correlation.kendall_tau_b(words[has_label], labels[has_label]) or 0.0) < 0
    name = f"{LENGTH_COLUMN} (shorter)" if shorter else f"{LENGTH_COLUMN} (longer)"
    about = f"words of the response; {'fewer' if shorter else 'more'} count as better"
    return [ScoreColumn(name, "baseline", -words if shorter else words, description=about)]


def read_group_values(answers: StudyAnswers, name: str) -> list[str]:
    """Return a field of all answers as text, empty if missing; ``model`` is the answer's model."""
    if name == "model":
        return [row.model for row in answers.rows]
    return [
        # 1.0 and 1 are the same group.
        "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        for value in answers.field(name)
    ]


def build_source_columns(
    answers: StudyAnswers, label: Label, fields: Sequence[str]
) -> list[ScoreColumn]:
    """Build the baseline of the mean label of all answers with the same source, model and
    ``fields``; none if these are the same for all answers.

    The mean includes the answer's own label. Without it, a right answer would lower the mean of its
    own group: in groups that do not differ at all, every right answer would get a lower mean than
    every wrong one, and the AUROC would be 0. Instead, groups of fewer than 20 answers are counted
    as one.
    """
    names = list(dict.fromkeys([*SOURCE_FIELDS, *fields]))
    groups = list(zip(*(read_group_values(answers, name) for name in names), strict=True))
    used = [
        name
        for name, column in zip(names, zip(*groups, strict=True), strict=True)
        if len(set(column)) > 1
    ]
    if not used:
        return []
    has_label = ~np.isnan(label.values)
    counts = Counter(group for group, labelled in zip(groups, has_label, strict=True) if labelled)
    # A group with few answers would reveal each answer's own label.
    of = [group if counts[group] >= MIN_ANSWERS_OF_SOURCE else (OTHER_SOURCES,) for group in groups]
    values = np.full(len(of), math.nan)
    # Groups without a labelled answer keep NaN.
    for group in set(of):
        in_group = np.array([group_of_answer == group for group_of_answer in of])
        if (in_group & has_label).any():
            values[in_group] = label.values[in_group & has_label].mean()
    about = f"mean label by {' and '.join(used)}"
    binary = label.kind == "binary"
    return [ScoreColumn(SOURCE_COLUMN, "baseline", values, binary, description=about)]


def estimate_ceiling(
    label: Label, questions: Places, resampling: Resampling
) -> dict[str, Estimate]:
    """Estimate how well one rater's ratings predict the label that the other raters make up.

    Each figure is a mean over raters; empty where there are fewer than two.
    """
    if len(label.raters) < 2:
        return {}
    pairs = [
        (ScoreColumn(name, "judge", values, label.kind == "binary"), label.without_rater[name])
        for name, values in label.raters.items()
    ]
    return _estimate_means({"people": pairs}, label.kind, questions, resampling)["people"]

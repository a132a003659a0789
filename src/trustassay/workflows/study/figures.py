"""Figures of scores against one label, with intervals from resampled questions, and tests."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from trustassay.data.labels import Kind
from trustassay.statistics import Floats, Places, correlation
from trustassay.statistics.auroc import auroc_difference, mean_auroc_interval
from trustassay.statistics.correlation import WeightedMeasure
from trustassay.statistics.intervals import Estimate, too_few
from trustassay.statistics.resampling import Tested, cluster_weights, holm, interval_of, paired_test
from trustassay.text.words import amount
from trustassay.workflows.json_form import JsonForm
from trustassay.workflows.study.answers import Answers, Column
from trustassay.workflows.study.labels import Label

HEADLINE: Mapping[Kind, str] = {"binary": "auroc", "ordinal": "kendall", "real": "kendall"}
"""The figure by which scores are ordered and compared, by the kind of label."""
OF_PROBABILITIES = frozenset({"brier", "ece", "log_loss"})
OF_CLASSES = OF_PROBABILITIES | {"auroc", "auprc"}
CHANCE = {"auroc": 0.5, "prr": 0.0, "kendall": 0.0, "spearman": 0.0, "pearson": 0.0, "ece": 0.0}
ASSOCIATIONS: Mapping[str, WeightedMeasure] = {
    name: correlation.WEIGHTED_MEASURES[name] for name in ("kendall", "spearman", "pearson")
}
"""The figures of covariates, which have no better direction."""
MIN_ANSWERS_OF_FIGURE = 10
"""With fewer answers no figure is given: a single answer would change it by a tenth."""


@dataclass(frozen=True, slots=True)
class Test(JsonForm):
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
Parts = Sequence[tuple[Places, correlation.Figure]]
"""The functions whose mean is a figure, each with the places of the answers that it is of."""


class Resampling(NamedTuple):
    """The generator and the number of resamples."""

    rng: np.random.Generator
    replicates: int


def estimates(
    columns: Sequence[Column],
    labels: Floats,
    kind: Kind,
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
    rows: Mapping[str, Sequence[tuple[Column, Floats]]],
    kind: Kind,
    questions: Places,
    resampling: Resampling,
    measures: Mapping[str, WeightedMeasure] = correlation.WEIGHTED_MEASURES,
) -> dict[str, dict[str, Estimate]]:
    """Estimate the figures of each row as means over its pairs of a column and labels.

    Pairs for which a figure is not defined do not count in it.
    """
    result: dict[str, dict[str, Estimate]] = {row: {} for row in rows}
    figures: dict[tuple[str, str], Parts] = {}
    clusters, rarer = dict[tuple[str, str], int](), dict[tuple[str, str], int]()
    for (row, pairs), (name, measure) in itertools.product(rows.items(), measures.items()):
        samples, first_reason = [], ""
        for column, labels in pairs:
            # Each pair uses the answers that have both a score and a label.
            places = np.flatnonzero(~(np.isnan(column.values) | np.isnan(labels)))
            x, y = column.values[places], labels[places]
            reason = why_undefined(name, column, x, y, kind)
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


def why_undefined(name: str, column: Column, x: Floats, y: Floats, kind: Kind) -> str:
    """Return why a measure is undefined for these scores and labels; empty where it is defined."""
    if not len(x):
        return "no answer has both a score and a label"
    # The log loss of a certain and wrong probability is infinite.
    sure = int((x == 1 - y).sum()) if name == "log_loss" else 0
    # The first reason that applies is given; an empty key means that there are enough answers.
    reasons = {
        too_few("answers", len(x), MIN_ANSWERS_OF_FIGURE): True,
        f"labels are {kind}, not of two classes": name in OF_CLASSES and kind != "binary",
        "the score is not a probability": name in OF_PROBABILITIES and not column.probability,
        f"it is infinite: {amount(sure, 'answer')} with the score 0 or 1, although the label is "
        "the other": sure > 0,
        f"all labels are the same ({y[0]:g})": (y == y[0]).all() and name not in OF_PROBABILITIES,
        f"all scores are the same ({x[0]:g})": (x == x[0]).all() and name not in OF_PROBABILITIES,
    }
    return next((reason for reason, applies in reasons.items() if reason and applies), "")


def chance(labels: Floats, kind: Kind) -> dict[str, Estimate]:
    """Return the figures of a score without information: always the share of right answers."""
    known_labels = labels[~np.isnan(labels)]
    n = len(known_labels)
    result = {}
    for name in correlation.WEIGHTED_MEASURES:
        if name in OF_CLASSES and kind != "binary":
            result[name] = Estimate(None, n, None, f"labels are {kind}, not of two classes")
        elif not n or (known_labels == known_labels[0]).all():
            result[name] = Estimate(None, n, None, "all labels are the same")
        else:
            share = float(known_labels.mean())
            # AUPRC and Brier depend on the share of right answers; the others are constants.
            value = {"auprc": share, "brier": share * (1 - share)}.get(name, CHANCE.get(name))
            result[name] = Estimate(value, n, None, "by definition")
    return result


def paired_tests(
    columns: Sequence[Column], labels: Floats, kind: Kind, questions: Places, resampling: Resampling
) -> list[Test]:
    """Compare all pairs of scores, scores with baselines, and parts with their own score.

    Only the answers that have both count; covariates are left out. AUROCs are compared by their
    placement values, other figures by the same resampled questions. The p-values are corrected for
    their number (Holm).
    """
    headline = HEADLINE[kind]
    measure = correlation.WEIGHTED_MEASURES[headline]
    tests: list[Test] = []
    figures: dict[tuple[int, int], Parts] = {}
    for a, b in itertools.combinations(columns, 2):
        if not _is_comparable(a, b):
            continue
        missing = np.isnan(a.values) | np.isnan(b.values) | np.isnan(labels)
        places = np.flatnonzero(~missing)
        y = labels[places]
        sides = [column.values[places] for column in (a, b)]
        reasons = [
            why_undefined(headline, column, column.values[places], y, kind) for column in (a, b)
        ]
        reason = reasons[0] or reasons[1]
        test = Test(a.name, b.name, headline, len(places), without=reason)
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
            tests[place], paired_test(first - second, draws_of_first - draws_of_second, clusters)
        )
    return _correct_p_values(tests)


def _complete_test(of: Test, result: Tested) -> Test:
    value, interval, p, without = result
    return replace(of, difference=value, interval=interval, p=p, without=without)


def _is_comparable(a: Column, b: Column) -> bool:
    if "covariate" in (a.kind, b.kind):
        return False
    # A part is compared with its own score only, or the number of tests would explode.
    if "part" in (a.kind, b.kind):
        are_related = a.of == b.name or b.of == a.name
        return are_related and not np.array_equal(a.values, b.values, equal_nan=True)
    return not a.kind == b.kind == "baseline"


def _correct_p_values(tests: Sequence[Test]) -> list[Test]:
    places = [place for place, test in enumerate(tests) if test.p is not None]
    # Tests without a p-value do not count in the correction.
    p_values = holm([p for test in tests if (p := test.p) is not None])
    result = list(tests)
    for place, corrected in zip(places, p_values, strict=True):
        result[place] = replace(tests[place], corrected=corrected)
    return result


def _resample(
    figures: Mapping[Key, Parts], questions: Places, resampling: Resampling
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
        return Estimate(None, n, None, "not defined for these scores and labels")
    # Resampling increases some figures, such as a calibration error; the interval is corrected.
    biased = value if name in correlation.BIASED else None
    return Estimate.of(value, n, interval_of(resamples, clusters, biased=biased, rarer=rarer))


LENGTH, SOURCE = "length", "source"
SOURCES = ("source", "model")
"""The fields that tell where an answer comes from."""
MIN_ANSWERS_OF_SOURCE = 20
"""Sources with fewer answers are counted together."""
OTHERS = "others"


def length_column(answers: Answers, labels: Floats) -> Column:
    """Build the baseline of the length of each response, in words.

    The sign is turned where shorter answers have higher labels (by Kendall's tau-b). It is chosen
    on the labels themselves, so the baseline is slightly too strong where length carries no
    information.
    """
    words = np.array([float(row.words) for row in answers.rows])
    has_label = ~np.isnan(labels)
    shorter = (correlation.kendall_tau_b(words[has_label], labels[has_label]) or 0.0) < 0
    name = f"{LENGTH} (shorter)" if shorter else f"{LENGTH} (longer)"
    about = f"words of the response; {'fewer' if shorter else 'more'} count as better"
    return Column(name, "baseline", -words if shorter else words, about=about)


def group_values(answers: Answers, name: str) -> list[str]:
    """Return a field of all answers as text, empty if missing; ``model`` is the answer's model."""
    if name == "model":
        return [row.model for row in answers.rows]
    return [
        # 1.0 and 1 are the same group.
        "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        for value in answers.field(name)
    ]


def source_column(answers: Answers, label: Label, fields: Sequence[str]) -> Column:
    """Build the baseline of the mean label of all answers with the same source, model and
    ``fields``.

    The mean includes the answer's own label. Without it, a right answer would lower the mean of its
    own group: in groups that do not differ at all, every right answer would get a lower mean than
    every wrong one, and the AUROC would be 0. Instead, groups of fewer than 20 answers are counted
    as one.
    """
    names = list(dict.fromkeys([*SOURCES, *fields]))
    groups = list(zip(*(group_values(answers, name) for name in names), strict=True))
    has_label = ~np.isnan(label.values)
    counts = Counter(group for group, labelled in zip(groups, has_label, strict=True) if labelled)
    # A group with few answers would reveal each answer's own label.
    of = [group if counts[group] >= MIN_ANSWERS_OF_SOURCE else (OTHERS,) for group in groups]
    values = np.full(len(of), math.nan)
    # Groups without a labelled answer keep NaN.
    for group in set(of):
        in_group = np.array([group_of_answer == group for group_of_answer in of])
        if (in_group & has_label).any():
            values[in_group] = label.values[in_group & has_label].mean()
    used = [
        name
        for name, column in zip(names, zip(*groups, strict=True), strict=True)
        if len(set(column)) > 1
    ]
    about = f"mean label by {' and '.join(used)}" if used else "all answers have the same source"
    return Column(SOURCE, "baseline", values, label.kind == "binary", about=about)


def ceiling(label: Label, questions: Places, resampling: Resampling) -> dict[str, Estimate]:
    """Estimate how well one rater's ratings predict the label that the other raters make up.

    Each figure is a mean over raters; empty where there are fewer than two.
    """
    if len(label.raters) < 2:
        return {}
    pairs = [
        (Column(name, "judge", values, label.kind == "binary"), label.others[name])
        for name, values in label.raters.items()
    ]
    return _estimate_means({"people": pairs}, label.kind, questions, resampling)["people"]

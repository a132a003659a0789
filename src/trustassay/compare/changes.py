"""What changed between two runs: outcomes, figures, and single answers.

1. The shares of all questions that passed, failed or got no answer. Questions are paired, not
   scores, so a question that one run refused counts as well. A rise of the unwanted outcomes,
   *failed* and *not answered*, is tested: in how many independent units did the share of such
   answers rise, in how many did it fall, and does chance explain the difference (exactly, McNemar
   1947; with a margin by Tango 1998)?
2. The metric's figures, over answers that count in both runs. A figure such as a mean leaves out
   answers that were refused or that failed, so the shares are always shown above the figures.
3. The answers that got worse or better, the largest change first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trustassay.compare.pairing import RunPairing
from trustassay.compare.run_scores import RunScores, find_better_direction
from trustassay.core.assessment import Direction, WeightedFigures
from trustassay.core.json_form import JsonForm, as_json, difference_as_json
from trustassay.core.metric import Figure, Mean, Share
from trustassay.core.outcome import FAILED, NOT_ANSWERED, NOT_SCORED, PASSED, SCORED, OutcomeKind
from trustassay.runs.folder import RunFolder
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.comparison import (
    Difference,
    difference_from_resamples,
    mean_of_differences,
    share_rise_p,
    widen_for_few_changes,
)
from trustassay.statistics.intervals import MIN_UNITS, MIN_UNITS_FOR_MEANS
from trustassay.statistics.resampling import draw_counts, generator
from trustassay.text.numbers import amount, ends_text, format_figure

UNWANTED_KINDS: Sequence[OutcomeKind] = (FAILED, NOT_ANSWERED, NOT_SCORED)
"""Outcomes whose rise is tested."""
ONE_SIDED_LEVEL = 0.025
"""The level of a one-sided test: that of one end of a 95 % interval."""
ROUNDING_ERROR = 1e-9
"""Changes up to this size are rounding errors."""


@dataclass(frozen=True)
class OutcomeChange:
    """The share of one outcome in two runs."""

    kind: OutcomeKind
    word: str
    """The metric's own word for the outcome."""
    first: float
    """Its share of the questions that both runs asked, in per cent; of all questions of the first
    run where the runs have none in common."""
    second: float
    """The same for the second run."""
    answers: tuple[int, int]
    """The number of answers with this outcome in each run."""
    change: Difference
    """The second share minus the first, in points."""
    risen: int
    """The number of independent units with more such answers in the second run."""
    fallen: int
    """The number of independent units with fewer such answers in the second run."""
    units: int
    """The number of independent units that were compared."""
    rise_p: float | None
    """One-sided p-value of the hypothesis that the share rose by no more than the margin; ``None``
    where a rise is welcome, or where nothing changed, so that no test could raise an alarm (Tarone
    1990)."""

    @property
    def is_unwanted(self) -> bool:
        """Whether more of it is worse."""
        return self.kind in UNWANTED_KINDS

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``no clear change``, by the interval of the change alone."""
        if self.change.interval is None:
            # With few questions there is no interval, but the exact test may still show a rise.
            if self.rise_p is not None and self.rise_p < ONE_SIDED_LEVEL:
                return "worse"
            return "unknown"
        low, high = self.change.interval
        if low <= 0 <= high:
            return "no clear change"
        return "worse" if (low > 0) == self.is_unwanted else "better"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "word": self.word,
            "first": self.first,
            "second": self.second,
            "answers": as_json(self.answers),
            **difference_as_json(self.change),
            "risen": self.risen,
            "fallen": self.fallen,
            "units": self.units,
            "rise_p": self.rise_p,
            "verdict": self.verdict,
        }


def compare_outcomes(
    first: RunScores, second: RunScores, pairing: RunPairing, margin: float = 0.0
) -> list[OutcomeChange]:
    """Compare the share of each outcome, in the order of the metric's shares.

    Args:
        first: the earlier run.
        second: the later run.
        pairing: which of their answers belong together.
        margin: points, 0 to below 100, by which an unwanted share may rise.
    """
    kinds = [kind for kind in second.outcomes.shares if kind in first.outcomes.shares]
    return [_compare_outcome(kind, first, second, pairing, margin) for kind in kinds]


def _compare_outcome(
    kind: OutcomeKind, first: RunScores, second: RunScores, pairing: RunPairing, margin: float
) -> OutcomeChange:
    shares_of_runs = first.outcomes.shares[kind], second.outcomes.shares[kind]
    # Fallback without common questions: the shares of each run by itself, and no change.
    before, after = shares_of_runs[0].percent, shares_of_runs[1].percent
    change, rise_p = Difference(0.0, None, "no question in common"), None
    risen = fallen = units = 0
    if len(pairing.first):
        sides = first.indicate(kind)[pairing.first], second.indicate(kind)[pairing.second]
        before, after = (
            100 * float(pairing.means_by_question(has_outcome).mean()) for has_outcome in sides
        )
        # Questions with many answers count once, not once an answer.
        by_question = pairing.means_by_question(sides[1] - sides[0])
        change = mean_of_differences(100 * by_question, 100.0, pairing.units, MIN_UNITS)
        # Only the sign is used below, so the sum over a unit does as well as its mean.
        by_unit = np.bincount(pairing.units, by_question)
        risen = int((by_unit > ROUNDING_ERROR).sum())
        fallen = int((by_unit < -ROUNDING_ERROR).sum())
        units = len(by_unit)
        # Discordant units alone carry information on a change (McNemar).
        if kind in UNWANTED_KINDS and risen + fallen:
            rise_p = share_rise_p(risen, fallen, units, margin / 100)
    return OutcomeChange(
        kind=kind,
        word=second.outcomes.words[kind],
        first=before,
        second=after,
        answers=(shares_of_runs[0].answers, shares_of_runs[1].answers),
        change=change,
        risen=risen,
        fallen=fallen,
        units=units,
        rise_p=rise_p,
    )


def describe_outcome_changes(changes: Sequence[OutcomeChange]) -> str:
    """Write the shares of both runs: ``supported 95 → 63 %, not supported 3 → 37 %``."""
    return ", ".join(
        f"{change.word} {change.first:.1f} → {change.second:.1f} %" for change in changes
    )


def describe_main_change(changes: Sequence[OutcomeChange], questions: int) -> str:
    """Return a sentence on the outcome that got worse, or better, among all questions."""
    # Separate shares of different questions say nothing about a change.
    if not questions:
        return "The runs have no question in common, so they cannot be compared."
    for change in changes:
        least = min(change.first, change.second)
        if change.kind in (NOT_ANSWERED, NOT_SCORED) and least > 100 - ROUNDING_ERROR:
            word = "answered" if change.kind == NOT_ANSWERED else "scored"
            return f"No question was {word} in either run, so there is nothing to compare."
    clear = [change for change in changes if change.verdict in ("worse", "better")]
    worse = [change for change in clear if change.verdict == "worse" and change.is_unwanted]
    # Bad news first, then good news about an unwanted outcome, then any other clear change.
    for change in worse or [change for change in clear if change.is_unwanted] or clear:
        return f"{change.verdict.capitalize()}: {_describe_change(change, questions)}."
    unknown = [change for change in changes if change.change.interval is None]
    if unknown:
        return f"Whether any outcome changed is unknown: {unknown[0].change.without}."
    return f"No clear change of any outcome over {questions:,} common questions."


def _describe_change(outcome: OutcomeChange, questions: int) -> str:
    ends = ends_text(outcome.change.interval, "+", 1)
    within = f" (95 % interval {ends})" if ends else ""
    change = f"{outcome.change.value:+.1f} points".replace("-", "−")
    return (
        f"{outcome.word} went from {outcome.first:.1f} to {outcome.second:.1f} % of all questions, "
        f"{change}{within} over {questions:,} common questions"
    )


@dataclass(frozen=True)
class FigureChange:
    """A figure of two runs, over the paired answers that count in it in both runs."""

    key: str
    """The figure's name within its metric."""
    figure: Figure
    better: Direction
    """Whether higher or lower values are better; "" where that is not known."""
    first: float
    second: float
    difference: Difference
    """The second value minus the first."""
    questions: int
    """The number of questions behind the pairs."""

    @property
    def verdict(self) -> Literal["better", "worse", "changed", "no clear change", "unknown"]:
        """What the interval of the change shows."""
        if self.difference.interval is None:
            return "unknown"
        low, high = self.difference.interval
        if low <= 0 <= high:
            return "no clear change"
        if not self.better:
            return "changed"
        return "better" if (low > 0) == (self.better == "higher") else "worse"

    def in_words(self) -> str:
        """Return one sentence on the change."""
        unit = self.figure.unit
        first, second = (format_figure(value, unit) for value in (self.first, self.second))
        of = f"over {self.questions:,} questions scored in both runs"
        change = f"{self.key} went from {first} to {second} {unit}".rstrip()
        if self.difference.interval is None:
            reason = self.difference.without
            return f"{change}, {of}; whether the change is significant is unknown ({reason})."
        ends = ends_text(self.difference.interval, "+")
        verdict = self.verdict.capitalize()
        return f"{verdict}: {change} (95 % interval of the change {ends}), {of}.".replace("-", "−")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "first": self.first,
            "second": self.second,
            **difference_as_json(self.difference),
            "questions": self.questions,
            "better": self.better or None,
            "verdict": self.verdict,
        }


def compare_figures(
    first: RunScores, second: RunScores, pairing: RunPairing, keys: Sequence[str], seed: int = 0
) -> dict[str, FigureChange]:
    """Return the changes of figures over the pairs that count in them in both runs.

    A pair counts in a figure if neither answer failed and the figure is computed from both: an
    answer that one run refused is in no mean score, otherwise refusing could seem to improve the
    rest. Units are drawn with replacement, with all their answers in both runs. A figure that
    cannot be resampled, or that has no value over these pairs, is left out.
    """
    # Failed answers are in no figure, in neither run.
    pairing = pairing.select(~(first.errors[pairing.first] | second.errors[pairing.second]))
    if not len(pairing.first):
        return {}
    before, after = first.weighted.at(pairing.first), second.weighted.at(pairing.second)
    # Group figures by the pairs behind them (bytes of the mask are hashable): they share draws.
    keys_by_pairs: dict[bytes, list[str]] = {}
    for key in keys:
        if key in second.figures and key in before.keys() & after.keys():
            behind_both = before.is_counted(key) & after.is_counted(key)
            keys_by_pairs.setdefault(behind_both.tobytes(), []).append(key)
    # The mask selects again from the pairs without failures.
    result: dict[str, FigureChange] = {}
    for mask, keys_of_pairs in keys_by_pairs.items():
        pairs_behind_figures = pairing.select(np.frombuffer(mask, dtype=np.bool_))
        if len(pairs_behind_figures.first):
            result |= _compare_over_pairs(first, second, pairs_behind_figures, keys_of_pairs, seed)
    # In the order in which the figures were asked for, not in the order of the groups.
    return {key: result[key] for key in keys if key in result}


def _compare_over_pairs(
    first: RunScores, second: RunScores, pairing: RunPairing, keys: Sequence[str], seed: int
) -> dict[str, FigureChange]:
    """Return the changes of figures over all of these pairs.

    Means and shares get the interval of a paired mean. Other figures get intervals from units drawn
    with replacement; they all share the same draws.
    """
    sides = [first.weighted.at(pairing.first), second.weighted.at(pairing.second)]
    all_figures = [side.figures(np.ones((1, len(pairing.first)))) for side in sides]
    values = {
        key: (float(all_figures[0][key][0]), float(all_figures[1][key][0]))
        for key in keys
        # Pairs may exist and the figure still be undefined, for instance a quantile of no values.
        if not any(np.isnan(figures_of_run[key][0]) for figures_of_run in all_figures)
    }
    rng = generator(seed, "paired", first.info.name)
    draws = _draw_differences(
        sides, pairing, [key for key in values if not _range_width(second, key)], rng
    )
    units, changes = pairing.units_of_pairs, {}
    for key, (before, after) in values.items():
        inputs = [side.inputs(key) for side in sides]
        # A unit counts as changed if any answer of it moved by more than rounding error.
        differ = ~np.isclose(inputs[0], inputs[1], rtol=0, atol=ROUNDING_ERROR, equal_nan=True).all(
            axis=1
        )
        changed = len(np.unique(units[differ]))
        figure = second.figures[key]
        # A mean of unbounded scores needs more questions than a share before its interval is
        # honest.
        fewest = MIN_UNITS_FOR_MEANS if isinstance(figure.statistic, Mean) else MIN_UNITS
        if width := _range_width(second, key):
            # The inputs of a share are 0 and 1; the figure itself is in per cent.
            scale = 100.0 if isinstance(figure.statistic, Share) else 1.0
            differences = scale * (inputs[1] - inputs[0])[:, 0]
            difference = mean_of_differences(differences, width, units, fewest)
            # With very few changed units the interval of a mean is too narrow, so it is withheld.
            difference = widen_for_few_changes(difference, changed)
        else:
            difference = difference_from_resamples(
                after - before, draws[key], int(units.max()) + 1, changed, fewest
            )
        better = find_better_direction(figure, second.info)
        count = pairing.question_count
        changes[key] = FigureChange(key, figure, better, before, after, difference, count)
    return changes


def _range_width(scores: RunScores, key: str) -> float:
    """Return the width of the range of the values that a figure averages; 0 if it is no mean."""
    figure = scores.figures[key]
    if not isinstance(figure.statistic, Mean | Share):
        return 0.0
    ends = figure.value_range(scores.info.score_range)
    return ends[1] - ends[0] if ends else 0.0


def _draw_differences(
    sides: Sequence[WeightedFigures],
    pairing: RunPairing,
    keys: Sequence[str],
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """Return the differences of figures over units drawn with replacement, shape (draws,) each."""
    units = pairing.units_of_pairs
    differences: dict[str, list[Floats]] = {key: [] for key in keys}
    for counts in draw_counts(int(units.max()) + 1, rng) if keys else ():
        weights = counts[:, units]
        before, after = (side.figures(weights) for side in sides)
        for key, draws in differences.items():
            draws.append(after[key] - before[key])
    return {key: np.concatenate(draws) for key, draws in differences.items()}


def explain_missing_figure(pairing: RunPairing, first: RunScores, second: RunScores) -> str:
    """Return why :func:`compare_figures` left out a figure that both summaries have."""
    if not len(pairing.first):
        return "the runs have no question in common"
    if (first.errors[pairing.first] | second.errors[pairing.second]).all():
        return "no pair was scored in both runs"
    return "the figure cannot be resampled, or has no value for these pairs"


MAX_LISTED_CHANGES = 500
"""How many changed answers of each kind are read and listed; all of them are counted."""


@dataclass(frozen=True)
class AnswerChange:
    """The assessments of one question in two runs; every pair holds the first run, then the
    second."""

    question: str
    ids: tuple[str, str]
    """The ids of the two samples; they differ where answers were paired by question."""
    responses: tuple[str, str]
    """The two answers; empty where a sample has none."""
    scores: tuple[float | None, float | None]
    """``None`` where a sample has no score."""
    verdicts: tuple[str, str]
    """Empty where a sample has no verdict."""
    reasons: tuple[str, str]
    """The error of a sample that failed, else the metric's reason."""

    def in_words(self) -> str:
        """Write the verdict and score before and after, without the question and the reason."""

        def side(place: int) -> str:
            score = self.scores[place]
            parts = [self.verdicts[place], "no score" if score is None else f"{score:.2f}"]
            return " ".join(filter(None, parts))

        return f"{side(0)} → {side(1)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        sides = [
            {"id": self.ids[i], "score": self.scores[i], "verdict": self.verdicts[i] or None}
            | {"reason": self.reasons[i]}
            for i in (0, 1)
        ]
        return {"question": self.question, "first": sides[0], "second": sides[1]}


@dataclass(frozen=True)
class AnswerChanges(JsonForm):
    """The answers whose outcome, score or verdict changed.

    The largest changes come first, in the order of :func:`~trustassay.core.metric.compute_badness`.
    Each list has at most :data:`MAX_LISTED_CHANGES` answers.
    """

    counts: Mapping[str, int]
    """The number of pairs of each kind: ``worse``, ``better``, ``other``, ``errors`` (one of the
    two answers could not be scored), ``errors_now`` (of these, only the second could not) and
    ``same`` (all other pairs)."""
    worse: Sequence[AnswerChange]
    """Answers with a worse outcome, or with the same outcome and a worse score."""
    better: Sequence[AnswerChange]
    """Answers with a better outcome, or with the same outcome and a better score."""
    other: Sequence[AnswerChange]
    """Answers with another verdict, and failed answers that became unanswered questions."""

    def in_words(self) -> str:
        """Say how many answers changed, and how."""
        counts = self.counts
        message = f"{amount(counts['worse'], 'answer')} got worse, {counts['better']:,} got "
        message += f"better, {counts['same']:,} stayed the same"
        if counts["other"]:
            message += f", {counts['other']:,} changed in another way"
        if counts["errors"]:
            message += f", {counts['errors']:,} could not be scored "
            message += f"({counts['errors_now']:,} of them only in the second run)"
        return message


_RANKS = {PASSED: 2, SCORED: 2, NOT_ANSWERED: 1, NOT_SCORED: 1, FAILED: 0}
"""A wrong answer is worse than none; none is worse than a right one."""


def classify_changes(
    first: RunScores, second: RunScores, pairing: RunPairing
) -> tuple[dict[str, Bools], Places]:
    """Classify the pairs by how they changed, and sort them by how much.

    Returns:
        A mask of the pairs for each kind, and the places of all pairs, the largest change first.
        ``unanswered`` marks questions that were answered in the first run only; these are also part
        of ``worse`` or ``other``. For the other kinds see :class:`AnswerChanges`.
    """
    errors = first.errors[pairing.first], second.errors[pairing.second]
    # A failure is not a score: a pair with one is neither worse nor better.
    no_error = ~(errors[0] | errors[1])
    # After this, a positive improvement is good for every metric.
    sign = -1.0 if first.info.lower_is_better else 1.0
    improvement = sign * (second.scores[pairing.second] - first.scores[pairing.first])
    sides = ((first, pairing.first), (second, pairing.second))
    before, after = (
        np.array([_RANKS[side.kinds[place]] for place in places.tolist()], dtype=np.int64)
        for side, places in sides
    )
    verdicts = [np.array(side.verdicts, dtype=np.str_)[places] for side, places in sides]
    same_outcome = before == after
    # Refusing instead of answering wrongly raises the rank, but it must not count as better: a
    # model that refuses everything would look improved.
    wrong_to_none = (before == 0) & (after == 1)
    kinds = {
        "worse": no_error & ((after < before) | (same_outcome & (improvement < -ROUNDING_ERROR))),
        "better": no_error
        & (((after > before) & ~wrong_to_none) | (same_outcome & (improvement > ROUNDING_ERROR))),
        # A failure in the first run still counts here; only the second side must be free of errors.
        "unanswered": (before != 1) & (after == 1) & ~errors[1],
        "errors_now": errors[1] & ~errors[0],
        "errors": ~no_error,
    }
    # "other" is what remains after worse and better, so that every pair is in one kind at most.
    changed = wrong_to_none | (verdicts[0] != verdicts[1])
    kinds["other"] = no_error & changed & ~kinds["worse"] & ~kinds["better"]
    badness_change = np.abs(second.badness[pairing.second] - first.badness[pairing.first])
    # The last key decides first: another outcome is the largest change.
    largest_first = (
        -np.abs(np.nan_to_num(improvement)),
        -np.nan_to_num(badness_change),
        same_outcome,
    )
    return kinds, np.lexsort(largest_first)


def find_answer_changes(first: RunScores, second: RunScores, pairing: RunPairing) -> AnswerChanges:
    """List the pairs whose outcome, score or verdict changed, the largest change first."""
    kinds, order = classify_changes(first, second, pairing)
    listed_kinds = ("worse", "better", "other")
    names = (*listed_kinds, "errors_now", "errors")
    # Count all pairs, then list only the largest changes.
    counts = {name: int(kinds[name].sum()) for name in names}
    # errors_now is part of errors, so it must not be subtracted a second time.
    counts["same"] = len(order) - sum(counts[name] for name in (*listed_kinds, "errors"))
    places_by_kind = {
        name: [place for place in order.tolist() if kinds[name][place]][:MAX_LISTED_CHANGES]
        for name in listed_kinds
    }
    # Read only the texts that will be listed: a run may have millions of samples.
    listed_places = [place for places in places_by_kind.values() for place in places]
    first_texts, second_texts = (
        read_texts(side, {int(places[place]) for place in listed_places})
        for side, places in ((first, pairing.first), (second, pairing.second))
    )

    def build_change(place: int) -> AnswerChange:
        before = first_texts[int(pairing.first[place])]
        after = second_texts[int(pairing.second[place])]
        questions, *sides = zip(before, after, strict=True)
        # Paired questions may differ in case and white space; show the wording of the second run.
        return AnswerChange(questions[1], *sides)

    lists = {
        name: [build_change(place) for place in places] for name, places in places_by_kind.items()
    }
    return AnswerChanges(counts, **lists)


def read_texts(side: RunScores, places: set[int]) -> dict[int, tuple[Any, ...]]:
    """Return question, id, response, score, verdict and reason of the samples at ``places``."""
    folder = RunFolder(side.path)
    assessments = folder.assessments(side.info.name)
    result = {}
    # Samples are streamed; only the assessments are read by place.
    for place, record in enumerate(folder.sample_records()):
        if place in places:
            assessment, response = assessments[place], str(record.get("response") or "")
            judged = (
                assessment.score,
                assessment.verdict or "",
                assessment.error or assessment.reason,
            )
            result[place] = (str(record["question"]), assessment.id, response, *judged)
    return result

"""Which answers got worse or better between two runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trustassay.compare.outcome_changes import SAME
from trustassay.compare.pairing import Pairing
from trustassay.compare.run_scores import RunScores
from trustassay.core.outcome import FAILED, NOT_ANSWERED, NOT_SCORED, PASSED, SCORED
from trustassay.runs.folder import RunFolder
from trustassay.statistics import Bools, Places
from trustassay.text.words import amount
from trustassay.workflows.json_form import JsonForm

LISTED = 500
"""Changed answers of a kind that are read and listed; all are counted."""


@dataclass(frozen=True)
class AnswerChange:
    """One question, and what a metric said of its answer in both runs."""

    question: str
    ids: tuple[str, str]
    responses: tuple[str, str]
    scores: tuple[float | None, float | None]
    verdicts: tuple[str, str]
    reasons: tuple[str, str]

    def in_words(self) -> str:
        """Say what was judged before and after, without the question and the reason."""

        def side(place: int) -> str:
            score = self.scores[place]
            words = [self.verdicts[place], "no score" if score is None else f"{score:.2f}"]
            return " ".join(filter(None, words))

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
    """The answers whose outcome, score or verdict changed, the largest changes first, by what the
    metric is ordered by (:func:`~trustassay.metric.badness_of`).

    Of each kind :data:`LISTED` are listed at most; the counts are of all. errors: pairs of which
    one could not be scored. errors_now: of these, in the second run alone. same: all other pairs.
    """

    counts: Mapping[str, int]
    worse: Sequence[AnswerChange]
    better: Sequence[AnswerChange]
    other: Sequence[AnswerChange]

    def in_words(self) -> str:
        """Say how many answers changed, and how."""
        counts = self.counts
        message = f"{amount(counts['worse'], 'answer')} got worse, {counts['better']:,} better, "
        message += f"{counts['same']:,} stayed the same"
        if counts["other"]:
            message += f", {counts['other']:,} changed in another way"
        if counts["errors"]:
            message += f", {counts['errors']:,} could not be scored in one of the runs"
            message += f" ({counts['errors_now']:,} in the second alone)"
        return message


_RANKS = {PASSED: 2, SCORED: 2, NOT_ANSWERED: 1, NOT_SCORED: 1, FAILED: 0}
"""A wrong answer is worse than none; none is worse than a right one."""


def kinds_of_changes(
    first: RunScores, second: RunScores, pairing: Pairing
) -> tuple[dict[str, Bools], Places]:
    """Return which pairs changed in which way, and all pairs, those that changed most first.

    worse, better: the outcome, or of equal outcomes the score. other: another verdict, or a wrong
    answer that became none. unanswered: answered in the first run, and not in the second (part of
    worse and other). errors, errors_now: see :class:`AnswerChanges`.
    """
    errors = first.errors[pairing.first], second.errors[pairing.second]
    no_error = ~(errors[0] | errors[1])
    sign = -1.0 if first.info.lower_is_better else 1.0
    rise = sign * (second.scores[pairing.second] - first.scores[pairing.first])
    sides = ((first, pairing.first), (second, pairing.second))
    before, after = (
        np.array([_RANKS[side.kinds[place]] for place in places.tolist()], dtype=np.int64)
        for side, places in sides
    )
    verdicts = [np.array(side.verdicts, dtype=np.str_)[places] for side, places in sides]
    same_outcome = before == after
    wrong_to_none = (before == 0) & (after == 1)
    kinds = {
        "worse": no_error & ((after < before) | (same_outcome & (rise < -SAME))),
        "better": no_error & (((after > before) & ~wrong_to_none) | (same_outcome & (rise > SAME))),
        "unanswered": (before != 1) & (after == 1) & ~errors[1],
        "errors_now": errors[1] & ~errors[0],
        "errors": ~no_error,
    }
    changed = wrong_to_none | (verdicts[0] != verdicts[1])
    kinds["other"] = no_error & changed & ~kinds["worse"] & ~kinds["better"]
    moved = np.abs(second.badness[pairing.second] - first.badness[pairing.first])
    # The last key decides first: another outcome is the largest change.
    largest_first = (-np.abs(np.nan_to_num(rise)), -np.nan_to_num(moved), same_outcome)
    return kinds, np.lexsort(largest_first)


def answer_changes(first: RunScores, second: RunScores, pairing: Pairing) -> AnswerChanges:
    """Return the pairs whose outcome, score or verdict changed, those that changed most first."""
    kinds, order = kinds_of_changes(first, second, pairing)
    listed_kinds = ("worse", "better", "other")
    names = (*listed_kinds, "errors_now", "errors")
    counts = {name: int(kinds[name].sum()) for name in names}
    counts["same"] = len(order) - sum(counts[name] for name in (*listed_kinds, "errors"))
    chosen = {
        name: [place for place in order.tolist() if kinds[name][place]][:LISTED]
        for name in listed_kinds
    }
    wanted = [place for places in chosen.values() for place in places]
    first_texts, second_texts = (
        read_texts(side, {int(places[place]) for place in wanted})
        for side, places in ((first, pairing.first), (second, pairing.second))
    )

    def change(place: int) -> AnswerChange:
        before = first_texts[int(pairing.first[place])]
        after = second_texts[int(pairing.second[place])]
        questions, *sides = zip(before, after, strict=True)
        return AnswerChange(questions[1], *sides)

    lists = {name: [change(place) for place in places] for name, places in chosen.items()}
    return AnswerChanges(counts, **lists)


def read_texts(side: RunScores, places: set[int]) -> dict[int, tuple[Any, ...]]:
    """Return question, id, response, score, verdict and reason of samples, by their places."""
    folder = RunFolder(side.path)
    assessments = folder.assessments(side.info.name)
    result = {}
    for place, record in enumerate(folder.sample_records()):
        if place in places:
            one, response = assessments[place], str(record.get("response") or "")
            judged = (one.score, one.verdict or "", one.error or one.reason)
            result[place] = (str(record["question"]), one.id, response, *judged)
    return result

"""Which answers got worse or better between two runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trustassay.compare.outcome_changes import ROUNDING_ERROR
from trustassay.compare.pairing import RunPairing
from trustassay.compare.run_scores import RunScores
from trustassay.core.json_form import JsonForm
from trustassay.core.outcome import FAILED, NOT_ANSWERED, NOT_SCORED, PASSED, SCORED
from trustassay.runs.folder import RunFolder
from trustassay.statistics import Bools, Places
from trustassay.text.words import amount

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

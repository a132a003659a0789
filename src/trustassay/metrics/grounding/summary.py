"""The figures of a data set: sums over answers, intervals, and what does not apply."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trustassay.languages import OTHER_LANGUAGE
from trustassay.metric import Assessment, Summary
from trustassay.metrics.grounding import maths
from trustassay.metrics.grounding.intervals import Intervals, figure_intervals
from trustassay.metrics.grounding.keys import FIGURES, LATER_NAMES
from trustassay.metrics.grounding.options import GroundingOptions
from trustassay.statistics.intervals import RowSums
from trustassay.summaries import units_of

__all__ = ["Answers", "is_scored", "summarise"]

Floats = NDArray[np.float64]
T = TypeVar("T")

CHUNK = 4096
COUNTS = {
    "answered_num": "answered_ratio",
    "answerable_num": "answerable_ratio",
    "overlapped_num": "overlapped_ratio",
}


class Answers:
    """What is kept of the answers of a data set: sums of terms and sizes of populations.

    An answer is a row of 2 K numbers: K terms, 0 where it is not in their population, and for each
    whether it is.
    """

    def __init__(self, metric: GroundingOptions) -> None:
        self.correctness = None if metric.correctness in ("none", "auto") else metric.correctness
        self._rules = metric.rules
        self._keys, self._members = _layout(self.correctness)
        self._unions = np.zeros(len(self._members), dtype=int)
        self._alone = np.zeros(len(self._members), dtype=int)
        self._sums = RowSums(2 * len(self._keys))

    def rows(self, table: Mapping[str, Floats]) -> Floats:
        """Return the rows of m answers from their parts, shape (m, 2 K)."""
        skip_blank = self._rules.blank == "skip"
        found = maths.terms(table, self.correctness, skip_blank=skip_blank)
        populations = np.array([found[key][1] for key in self._keys])
        terms = np.array([found[key][0] for key in self._keys])
        return np.concatenate([np.where(populations, terms, 0.0), populations]).T

    def add(self, rows: Floats, units: NDArray[np.int64] | None = None) -> None:
        """Count in more answers, with the number of each one's unit
        (:class:`~trustassay.statistics.intervals.RowSums`).
        """
        self._sums.add(rows, units)
        self._unions += self._behind(rows)
        self._alone += self._behind(rows if units is None else rows[units < 0])

    def _behind(self, rows: Floats) -> NDArray[np.int64]:
        """Return how many rows are behind each figure."""
        populations = rows[:, len(self._keys) :] > 0
        return np.array([populations[:, m].any(axis=1).sum() for m in self._members.values()])

    @property
    def width(self) -> int:
        """The length 2 K of a row."""
        return 2 * len(self._keys)

    def columns(self, key: str) -> list[int]:
        """Return the places in a row of what a figure is made of; all, where it is a count."""
        terms = self._members.get(key, range(len(self._keys)))
        return [*terms, *(len(self._keys) + place for place in terms)]

    @property
    def support(self) -> dict[str, int]:
        """The number of answers behind each figure."""
        return dict(zip(self._members, map(int, self._unions), strict=True))

    @property
    def units(self) -> dict[str, int]:
        """The number of units behind each figure."""
        found = self._alone + self._behind(self._sums.several)
        return dict(zip(self._members, map(int, found), strict=True))

    def figures(self, sums: Floats | None = None) -> dict[str, Floats]:
        """Return the figures, or those of other sums of shape (..., 2 K)."""
        sums = self._sums.total if sums is None else sums
        columns = np.moveaxis(sums, -1, 0)
        totals = dict(zip(self._keys, columns[: len(self._keys)], strict=True))
        sizes = dict(zip(self._keys, columns[len(self._keys) :], strict=True))
        zero = self._rules.undefined_f1_zero
        found = maths.figures(totals, sizes, self.correctness, undefined_f1_zero=zero)
        found |= {name: totals[key] for name, key in COUNTS.items()}
        found["unanswerable_num"] = sizes["answerable_ratio"] - totals["answerable_ratio"]
        found["num_samples"] = sizes["answered_ratio"]
        found["invalid_citations"] = totals["invalid_citations"]
        return found

    def intervals(self, keys: Iterable[str]) -> Intervals:
        """Return the intervals of figures that have a value, by their first names."""
        return figure_intervals(keys, self.figures, self._sums, self.units, self.correctness)


def summarise(metric: GroundingOptions, assessments: Collection[Assessment]) -> Summary:
    """Return every key of Trust-Eval over ``assessments``, read once and in order."""
    answers = Answers(metric)
    failed = 0
    for chunk in _chunks(assessments):
        failed += sum(a.error is not None for a in chunk)
        scored = [a for a in chunk if is_scored(a)]
        if scored:
            answers.add(answers.rows(maths.part_table([a.parts for a in scored])), units_of(scored))
    support, units = answers.support, answers.units
    values, reasons = _values(metric, answers.figures(), support)
    wanted = [key for key, value in values.items() if isinstance(value, float)]
    intervals = answers.intervals({_FIRST_NAMES.get(key, key) for key in wanted})
    return Summary(
        values=values,
        n=len(assessments),
        failed=failed,
        intervals=_by_key(wanted, intervals.found),
        without_interval=_by_key(wanted, intervals.absent),
        support={key: _support(key, support) for key in values},
        not_applicable=reasons,
        settings=metric.settings(),
        units={k: n for k in values if (n := _support(k, units)) < _support(k, support)},
    )


def is_scored(assessment: Assessment) -> bool:
    """Whether an answer counts: it did not fail, and the entailer reads its language."""
    return assessment.error is None and OTHER_LANGUAGE not in assessment.parts


def _layout(correctness: str | None) -> tuple[list[str], dict[str, list[int]]]:
    """Return the averaged keys, and for every figure which of them it is made of, by position."""
    keys = list(maths.terms(maths.part_table([{}]), correctness, skip_blank=False))
    members = {key: {i} for i, key in enumerate(keys)}
    for key, (inputs, _) in maths.COMPOSITES.items():
        if all(name in members for name in inputs):
            members[key] = set().union(*(members[name] for name in inputs))
    if correctness:
        inputs = (maths.CORRECTNESS_F1[correctness], "macro_f1", "answered_citation_f1")
        members["trust_score"] = set().union(*(members[name] for name in inputs))
    return keys, {key: sorted(positions) for key, positions in members.items()}


def _chunks(assessments: Collection[Assessment]) -> Iterator[Sequence[Assessment]]:
    iterator = iter(assessments)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


def _values(
    metric: GroundingOptions, point: Mapping[str, Floats], support: Mapping[str, int]
) -> tuple[dict[str, float | int | None], dict[str, str]]:
    """Return every figure, and the reason for each that has no value."""
    values: dict[str, float | int | None] = {}
    reasons: dict[str, str] = {}
    for key in FIGURES:
        source = _FIRST_NAMES.get(key, key)
        if source not in point:
            continue
        value = float(point[source])
        reason = _not_applicable(source, support, value)
        if reason:
            values[key], reasons[key] = None, reason
        elif key.endswith("_num") or key in ("num_samples", "invalid_citations"):
            values[key] = int(value)
        else:
            values[key] = round(value, 2) if key == "answered_ratio" else value
    if metric.correctness in ("none", "auto"):
        nothing = "correctness is none: there are no gold answers or claims to compare with"
        scored = support["answered_ratio"]
        reasons["trust_score"] = nothing if scored else "no sample was scored"
        values = {"trust_score": None, **values}
    return values, reasons


def _by_key(keys: Iterable[str], found: Mapping[str, T]) -> dict[str, T]:
    """Return what was found for each key under its first name."""
    first = {key: _FIRST_NAMES.get(key, key) for key in keys}
    return {key: found[name] for key, name in first.items() if name in found}


_FIRST_NAMES = {later: first for first, later in LATER_NAMES.items()}
_NEEDS_ANSWERABLE = frozenset(
    {"answerable_num", "unanswerable_num", "overlapped_num"}
    | {"reject_rec", "reject_prec", "reject_f1", "macro_avg", "macro_f1"}
    | {"answerable_rec", "answerable_prec", "answerable_f1", "trust_score"}
)


_COUNTS_OF_ALL = frozenset({"num_samples", "answered_num", "invalid_citations"})


def _not_applicable(key: str, support: Mapping[str, int], value: float) -> str | None:
    """Return why a figure has no value, in words, or ``None`` if it has one."""
    calibrated = key.startswith(("calib_", "parametric_", "qampari_"))
    if not support["answered_ratio"] and key not in _COUNTS_OF_ALL:
        return "no sample was scored"
    if (key in _NEEDS_ANSWERABLE or calibrated) and not support["answerable_ratio"]:
        return (
            "no sample says, by gold answers or by the documents' support flags, "
            "whether its documents contain an answer"
        )
    correct = next((k for k in support if k in _REGULAR), None)
    about_golds = calibrated or key == "trust_score" or key.endswith(_CORRECTNESS_ENDINGS)
    if about_golds and (correct is None or not support[correct]):
        return "no sample has gold answers or claims to compare with"
    if np.isnan(value):
        if key.startswith("qampari_"):
            return "no answer has a wrong list element"
        return "no response has a statement"
    return None


_REGULAR = ("regular_str_em", "regular_claims_nli", "regular_num_preds")
_CORRECTNESS_ENDINGS = ("_str_em", "_claims_nli", "_num_preds", *maths.LIST_KEYS)


def _support(key: str, support: Mapping[str, int]) -> int:
    """Return the number of samples that a figure is made of."""
    key = _FIRST_NAMES.get(key, key)
    if key in COUNTS or key == "unanswerable_num":
        return support[COUNTS.get(key, "answerable_ratio")]
    return support.get(key, support["answered_ratio"])

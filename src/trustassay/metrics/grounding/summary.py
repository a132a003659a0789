"""The figures of a data set: sums over answers, intervals, resamples, and reasons for gaps.

Every figure is a smooth function of sums, so its variance follows from their covariance and from
its derivatives (delta method). The kind of interval depends on the figure: a mean, an F1 of two
populations that overlap, or a weighted sum of such figures.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from trustassay.core.assessment import collect_units, split_chunks
from trustassay.core.metric import Assessment, Figure, Summary, index_figures
from trustassay.metrics.grounding import maths
from trustassay.metrics.grounding.options import GroundingOptions
from trustassay.statistics import Bools, Floats, Places, intervals
from trustassay.statistics.intervals import Interval
from trustassay.text.language import OTHER_LANGUAGE

FIRST_NAMES = {f"refuse_{kind}": f"reject_{kind}" for kind in ("rec", "prec", "f1")}
"""The earlier name of each key that trust_eval 0.1.6 renamed; a summary has both."""
FIGURES: Mapping[str, Figure] = index_figures(
    Figure("trust_score",
        "Mean of calibrated correctness, macro_f1 and answered_citation_f1 (Trust-Score).",
        headline=True, better="higher", name="Trust-Score, overall"),
    group="Overall",
) | index_figures(
    Figure("num_samples", "Answers that were scored.", ""),
    Figure("answered_ratio", "Share of answers that are not refusals, to two decimals."),
    Figure("answered_num", "Answers that are not refusals.", ""),
    Figure("answerable_num", "Questions whose documents support a gold answer.", ""),
    Figure("unanswerable_num", "Questions whose documents support no gold answer.", ""),
    Figure("overlapped_num", "Answerable questions that were answered.", ""),
    Figure("regular_length",
        "Mean length of all responses, without citations; the default profile also leaves out "
        "emphasis, a list of references, and openers such as \"I'm sorry\".", "words"),
    Figure("answered_length", "Mean length of responses that are not refusals.", "words"),
    Figure("invalid_citations", "Citations of documents that do not exist, in total.", ""),
    group="Counts and lengths",
) | index_figures(
    Figure("reject_rec", "Share of unanswerable questions that were refused.", better="higher"),
    Figure("reject_prec", "Share of refusals that refuse an unanswerable question.",
        better="higher"),
    Figure("reject_f1", "F1 of reject_rec and reject_prec.", better="higher"),
    Figure("answerable_rec", "Share of answerable questions that were answered.", better="higher"),
    Figure("answerable_prec", "Share of answers that answer an answerable question.",
        better="higher"),
    Figure("answerable_f1", "F1 of answerable_rec and answerable_prec.", better="higher"),
    Figure("macro_avg", "Mean of reject_rec and answerable_rec."),
    Figure("macro_f1",
        "Mean of reject_f1 and answerable_f1 (the paper's F1_GR). At most 50 if all questions "
        "are answerable, or none is.", headline=True, better="higher",
        name="Answers and refuses as it should"),
    group="Refusals",
) | index_figures(
    Figure("regular_str_em", "Share of gold answers that are in the response."),
    Figure("answered_str_em", "regular_str_em over answers that are not refusals."),
    Figure("calib_answered_str_em",
        "Share of the gold answers supported by the documents that are in the response, over "
        "answered questions; 0 for an unanswerable one (the paper's EM_alpha)."),
    Figure("calib_answerable_str_em",
        "The same share over answerable questions; 0 for a refusal (EM_beta)."),
    Figure("calib_str_em_f1",
        "Calibrated correctness: harmonic mean of calib_answered_str_em and "
        "calib_answerable_str_em (the paper's F1_AC).", headline=True, better="higher",
        name="Correct answers"),
    Figure("parametric_str_em",
        "answered_str_em minus the part that the documents support, over all answered questions: "
        "what the model knew by itself."),
    group="Correctness: exact match",
) | index_figures(
    Figure("regular_claims_nli", "Share of gold claims that the response entails."),
    Figure("answered_claims_nli", "regular_claims_nli over answers that are not refusals."),
    Figure("calib_answered_claims_nli",
        "Share of the gold claims supported by the documents that the response entails, over "
        "answered questions; 0 for an unanswerable one."),
    Figure("calib_answerable_claims_nli",
        "The same share over answerable questions; 0 for a refusal."),
    Figure("calib_claims_nli_f1",
        "Calibrated correctness: harmonic mean of calib_answered_claims_nli and "
        "calib_answerable_claims_nli (F1_AC).", headline=True, better="higher",
        name="Correct answers"),
    Figure("parametric_answered_claims_nli",
        "answered_claims_nli minus the part that the documents support, over all answered "
        "questions."),
    group="Correctness: gold claims",
) | index_figures(
    *(
        Figure(f"{scope}_{measure}", f"Mean over {answers}: {meaning}.", unit)
        for scope, answers in (
            ("regular", "all responses"),
            ("answered", "answers that are not refusals"),
            ("calib_answered", "answered questions, only supported gold answers"),
            ("calib_answerable", "answerable questions, only supported gold answers"),
        )
        for measure, unit, meaning in (
            ("num_preds", "", "list elements in a response"),
            ("qampari_prec", "%", "share of the elements that are gold answers"),
            ("qampari_rec", "%", "share of the gold answers that are elements"),
            ("qampari_rec_top5", "%", "the same share, where five gold answers are enough"),
            ("qampari_f1", "%", "F1 of precision and recall, answer by answer"),
            ("qampari_f1_top5", "%", "F1 of precision and qampari_rec_top5"),
        )
    ),
    Figure("calib_qampari_em_f1",
        "Calibrated correctness: harmonic mean of the two calibrated qampari_f1_top5 (F1_AC).",
        headline=True, better="higher", name="Correct answers"),
    Figure("parametric_qampari_rec_top5",
        "answered_qampari_rec_top5 minus the part that the documents support, over all answered "
        "questions."),
    Figure("qampari_presence",
        "Share of the wrong elements of an answer that a document mentions."),
    Figure("qampari_absence",
        "Share of the wrong elements of an answer that no document mentions."),
    group="Correctness: lists",
) | index_figures(
    Figure("regular_citation_rec",
        "Share of statements that their cited passages together entail, over all responses.",
        better="higher"),
    Figure("regular_citation_prec",
        "Share of citations that support their statement alone or are needed, over all responses.",
        better="higher"),
    Figure("regular_citation_f1", "F1 of regular_citation_rec and regular_citation_prec.",
        better="higher"),
    Figure("answered_citation_rec", "Citation recall of answers that are not refusals.",
        better="higher"),
    Figure("answered_citation_prec", "Citation precision of answers that are not refusals.",
        better="higher"),
    Figure("answered_citation_f1",
        "F1 of the mean citation recall and precision of answers (the paper's F1_GC).",
        headline=True, better="higher", name="Supporting citations"),
    group="Citations",
) | index_figures(
    *(Figure(key, f"Another name of {first}.") for key, first in FIRST_NAMES.items()),
    group="Refusals",
)  # fmt: skip
"""Every key in the order in which it is shown."""

Figures = Callable[[Floats], Mapping[str, Floats]]

FEWEST_BEHIND = 3
"""Answers below which a mean or an F1 has no interval, and neither has a figure made of it."""
DERIVATIVE_STEP = 1e-4
"""The share of a population's size by which its sums are moved to find derivatives."""

OVERLAPPING = frozenset(
    {"reject_f1", "answerable_f1", "calib_str_em_f1", "calib_claims_nli_f1", "calib_qampari_em_f1"}
)
"""F1s whose precision and recall are means over two populations that overlap."""


def _weights_of_parts(key: str, correctness: str | None) -> dict[str, float]:
    """Return the figures, with their weights, whose weighted sum a figure is; or itself, with 1."""
    if key == "macro_avg":
        return {"reject_rec": 1 / 2, "answerable_rec": 1 / 2}
    if key == "macro_f1":
        return {"reject_f1": 1 / 2, "answerable_f1": 1 / 2}
    if key == "trust_score" and correctness:
        # macro_f1 is the third part, and itself the mean of two.
        thirds = {maths.CORRECTNESS_F1[correctness]: 1 / 3, "answered_citation_f1": 1 / 3}
        return thirds | {"reject_f1": 1 / 6, "answerable_f1": 1 / 6}
    return {key: 1.0}


def _explain_too_few(parts: Iterable[str], units: Mapping[str, int], noun: str) -> str | None:
    """Return why a figure made of these parts has no interval, or ``None`` if it has one."""
    reason = intervals.reason_too_few(
        f"scored {noun}", units["answered_ratio"], intervals.MIN_UNITS
    )
    for part in parts:
        reason = reason or intervals.reason_too_few(
            f"{noun} for {part}", units[part], FEWEST_BEHIND
        )
    return reason


def _estimate_derivatives(
    keys: Sequence[str], figures: Figures, total: Floats
) -> tuple[dict[str, float], Floats]:
    """Return figures and their derivatives by the sums, shape (figures, 2 K), by differences."""
    width = len(total)
    # The second half of the sums are the sizes of the populations: both sums and sizes are moved
    # by the same share of a size. An empty population is moved by a constant.
    sizes = np.tile(total[width // 2 :], 2)
    steps = DERIVATIVE_STEP * np.where(sizes > 0, sizes, 1.0)
    # All moved copies in one array: row 0 is the point, then each sum up, then each down.
    moved_sums = total + np.concatenate([np.zeros((1, width)), np.diag(steps), -np.diag(steps)])
    result = figures(moved_sums)
    point = {key: float(result[key][0]) for key in keys}
    ahead, behind = (
        np.array([result[key][i : i + width] for key in keys]).reshape(len(keys), width)
        for i in (1, 1 + width)
    )
    return point, (ahead - behind) / (2 * steps)


def _compute_interval(key: str, value: float, variance: float, n: int) -> Interval | None:
    """Return the interval of a mean or an F1."""
    if key.endswith(("_length", "num_preds")):
        # Lengths and counts have no upper end, so they are no share.
        interval = intervals.t_interval(value, variance, n)
        return interval and (max(interval[0], 0.0), interval[1])
    scale = 1.0 if key in maths.NOT_PERCENT else 100.0
    # Rounding may leave a mean just outside 0 to 1, which the interval of a share refuses.
    share, variance = min(max(value / scale, 0.0), 1.0), variance / scale**2
    if key in OVERLAPPING:
        low, high = _compute_overlap_f1_interval(share, variance, n)
    else:
        low, high = intervals.mean_interval(share, variance, n)
    return min(low, share) * scale, max(high, share) * scale


def _compute_overlap_f1_interval(f1: float, variance: float, n: int) -> Interval:
    """Return the interval of an F1 over n answers of either of two populations.

    F1 = 2 J / (1 + J), where J (Jaccard's index) is the share of the n answers that are in both
    and count: a share like others, exactly so where every answer counts whole or not at all.
    """
    # J as a function of F1, and its derivative for the variance.
    index = f1 / (2 - f1)
    slope = 2 / (2 - f1) ** 2
    low, high = intervals.mean_interval(index, variance * slope**2, n)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def _combine_intervals(
    weights: Mapping[str, float],
    point: Mapping[str, float],
    intervals_of_parts: Mapping[str, Interval | None],
    covariance: Floats,
) -> Interval | None:
    """Return the interval of a weighted sum of figures, from theirs and their covariance.

    Two figures of 0 or 100 % without variance may well lose it together, as both F1s of refusals
    do by one wrong refusal: their correlation is taken as 1.
    """
    # Without the interval of a part there is none of the sum.
    available = {
        key: interval for key in weights if (interval := intervals_of_parts[key]) is not None
    }
    if len(available) < len(weights):
        return None
    terms = [intervals.Term(point[key], available[key], weight) for key, weight in weights.items()]
    if len(terms) == 1:
        return terms[0].interval
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    # A figure at 0 or 100 % has no measured variance, and so no measured correlation.
    flat = errors < 1e-6
    certain = np.outer(flat, flat) | np.eye(len(terms), dtype=bool)
    error_products = np.outer(errors, errors)
    # np.divide fills in only these; flat pairs keep 1 and a flat with another one 0.
    measured = ~(flat[:, None] | flat)
    correlation = np.divide(
        covariance, error_products, out=certain.astype(np.float64), where=measured
    )
    np.fill_diagonal(correlation, 1.0)
    return intervals.sum_interval(terms, np.clip(correlation, -1.0, 1.0))


T = TypeVar("T")

COUNTS = {
    "answered_num": "answered_ratio",
    "answerable_num": "answerable_ratio",
    "overlapped_num": "overlapped_ratio",
}


class GroundingSums:
    """Sums over the answers of a data set: of terms, and of sizes of populations.

    An answer is a row of 2 K numbers: K terms, each 0 where the answer is not in its population,
    and K flags of whether it is.
    """

    def __init__(self, metric: GroundingOptions) -> None:
        self.correctness = None if metric.correctness in ("none", "auto") else metric.correctness
        self._rules = metric.rules
        self._keys, self._members = _build_layout(self.correctness)
        self._row_counts = np.zeros(len(self._members), dtype=int)
        self._single_counts = np.zeros(len(self._members), dtype=int)
        self._sums = intervals.RowSums(2 * len(self._keys))

    def rows(self, table: Mapping[str, Floats]) -> Floats:
        """Return the rows of m answers from their parts, shape (m, 2 K)."""
        result = maths.terms(table, self.correctness, skip_blank=self._rules.blank == "skip")
        # NaN terms are outside of their population and must not spoil the sums: they become 0.
        populations = np.array([result[key][1] for key in self._keys])
        terms = np.array([result[key][0] for key in self._keys])
        return np.concatenate([np.where(populations, terms, 0.0), populations]).T

    def add(self, rows: Floats, units: Places | None = None) -> None:
        """Add more answers.

        Args:
            rows: from :meth:`rows`, shape (m, 2 K).
            units: the unit of each answer, -1 for one that is a unit of its own, shape (m,); see
                :class:`~trustassay.statistics.intervals.RowSums`.
        """
        self._sums.add(rows, units)
        self._row_counts += self._count_behind(rows)
        # Answers that are units of their own are counted at once; the others once per unit, later.
        self._single_counts += self._count_behind(rows if units is None else rows[units < 0])

    def _count_behind(self, rows: Floats) -> Places:
        """Count the rows behind each figure: those in the population of any of its terms."""
        populations = rows[:, len(self._keys) :] > 0
        return np.array([populations[:, m].any(axis=1).sum() for m in self._members.values()])

    @property
    def width(self) -> int:
        """The length 2 K of a row."""
        return 2 * len(self._keys)

    def columns(self, key: str) -> list[int]:
        """Return the places in a row of a figure's terms and flags; all, where it is a count."""
        terms = self._members.get(key, range(len(self._keys)))
        return [*terms, *(len(self._keys) + place for place in terms)]

    @property
    def support(self) -> dict[str, int]:
        """The number of answers behind each figure."""
        return dict(zip(self._members, self._row_counts.tolist(), strict=True))

    @property
    def units(self) -> dict[str, int]:
        """The number of units behind each figure."""
        result = self._single_counts + self._count_behind(self._sums.several)
        return dict(zip(self._members, result.tolist(), strict=True))

    def figures(self, sums: Floats | None = None) -> dict[str, Floats]:
        """Return the figures, or those of other sums of shape (..., 2 K)."""
        columns = np.moveaxis(self._sums.total if sums is None else sums, -1, 0)
        k = len(self._keys)
        totals = dict(zip(self._keys, columns[:k], strict=True))
        sizes = dict(zip(self._keys, columns[k:], strict=True))
        zero = self._rules.undefined_f1_zero
        result = maths.figures(totals, sizes, self.correctness, undefined_f1_zero=zero)
        result |= {name: totals[key] for name, key in COUNTS.items()}
        result["unanswerable_num"] = sizes["answerable_ratio"] - totals["answerable_ratio"]
        result["num_samples"] = sizes["answered_ratio"]
        result["invalid_citations"] = totals["invalid_citations"]
        return result

    def intervals(self, wanted: Iterable[str]) -> tuple[dict[str, Interval], dict[str, str]]:
        """Return the intervals of figures, and the reason for each that has none.

        ``wanted`` holds figures that have a value, by their first names.
        """
        parts_of_figure = {key: _weights_of_parts(key, self.correctness) for key in wanted}
        units, sums = self.units, self._sums
        noun = "answers" if sums.units == sums.n else "units"
        reasons = {
            key: _explain_too_few(parts, units, noun) for key, parts in parts_of_figure.items()
        }
        absent = {key: reason for key, reason in reasons.items() if reason}
        parts_of_figure = {
            key: parts for key, parts in parts_of_figure.items() if key not in absent
        }
        # Intervals are computed for the simple figures once, and combined for the weighted sums.
        simple = sorted({part for parts in parts_of_figure.values() for part in parts})
        point, slopes = _estimate_derivatives(simple, self.figures, sums.total)
        covariance = sums.covariance(slopes)
        simple_intervals = {
            key: _compute_interval(key, point[key], float(covariance[i, i]), units[key])
            for i, key in enumerate(simple)
        }
        result = {}
        for key, parts in parts_of_figure.items():
            places = [simple.index(part) for part in parts]
            interval = _combine_intervals(
                parts, point, simple_intervals, covariance[np.ix_(places, places)]
            )
            if interval:
                result[key] = interval
            else:
                absent[key] = "all answers have the same value, so the variance is unknown"
        return result, absent


def summarise(metric: GroundingOptions, assessments: Collection[Assessment]) -> Summary:
    """Return every key of Trust-Eval over the assessments, which are read once and in order."""
    answers = GroundingSums(metric)
    failed = 0
    # In chunks: the assessments may be a file that does not fit in memory.
    for chunk in split_chunks(assessments):
        failed += sum(a.error is not None for a in chunk)
        if scored := [a for a in chunk if is_scored(a)]:
            answers.add(
                answers.rows(maths.part_table([a.parts for a in scored])), collect_units(scored)
            )
    support, units = answers.support, answers.units
    values, reasons = _build_values(metric, answers.figures(), support)
    wanted = [key for key, value in values.items() if isinstance(value, float)]
    figure_intervals, without_interval = answers.intervals(
        {FIRST_NAMES.get(key, key) for key in wanted}
    )
    return Summary(
        values=values,
        n=len(assessments),
        failed=failed,
        intervals=_select_by_key(wanted, figure_intervals),
        without_interval=_select_by_key(wanted, without_interval),
        support={key: _count_support(key, support) for key in values},
        not_applicable=reasons,
        settings=metric.settings(),
        # The number of units is stored only where several answers share one.
        units={
            k: n for k in values if (n := _count_support(k, units)) < _count_support(k, support)
        },
    )


def is_scored(assessment: Assessment) -> bool:
    """Whether an answer counts: it did not fail, and the entailer reads its language."""
    return assessment.error is None and OTHER_LANGUAGE not in assessment.parts


def _build_layout(correctness: str | None) -> tuple[list[str], dict[str, list[int]]]:
    """Return the averaged keys, and for every figure the positions of those it is made of."""
    # The keys of one answer without parts: the terms do not depend on the data.
    keys = list(maths.terms(maths.part_table([{}]), correctness, skip_blank=False))
    members = {key: {i} for i, key in enumerate(keys)}
    for key, (inputs, _) in maths.COMPOSITES.items():
        if all(name in members for name in inputs):
            members[key] = set().union(*(members[name] for name in inputs))
    if correctness:
        inputs = (maths.CORRECTNESS_F1[correctness], "macro_f1", "answered_citation_f1")
        members["trust_score"] = set().union(*(members[name] for name in inputs))
    return keys, {key: sorted(positions) for key, positions in members.items()}


def _build_values(
    metric: GroundingOptions, point: Mapping[str, Floats], support: Mapping[str, int]
) -> tuple[dict[str, float | int | None], dict[str, str]]:
    """Return every figure, and the reason for each that has no value."""
    values: dict[str, float | int | None] = {}
    reasons: dict[str, str] = {}
    for key in FIGURES:
        source = FIRST_NAMES.get(key, key)
        if source not in point:
            continue
        value = float(point[source])
        if reason := _explain_not_applicable(source, support, value):
            values[key], reasons[key] = None, reason
        elif key.endswith("_num") or key in ("num_samples", "invalid_citations"):
            values[key] = int(value)
        else:
            # trust_eval rounds this one figure.
            values[key] = round(value, 2) if key == "answered_ratio" else value
    if metric.correctness in ("none", "auto"):
        nothing = "correctness is none: there are no gold answers or claims to compare with"
        scored = support["answered_ratio"]
        reasons["trust_score"] = nothing if scored else "no sample was scored"
        values = {"trust_score": None, **values}
    return values, reasons


def _select_by_key(keys: Iterable[str], values: Mapping[str, T]) -> dict[str, T]:
    """Return ``values`` under the keys' own names; they are stored by first names."""
    firsts = {key: FIRST_NAMES.get(key, key) for key in keys}
    return {key: values[first] for key, first in firsts.items() if first in values}


_NEEDS_ANSWERABLE = frozenset(
    {"answerable_num", "unanswerable_num", "overlapped_num"}
    | {"reject_rec", "reject_prec", "reject_f1", "macro_avg", "macro_f1"}
    | {"answerable_rec", "answerable_prec", "answerable_f1", "trust_score"}
)


_COUNTS_OF_ALL = frozenset({"num_samples", "answered_num", "invalid_citations"})


def _explain_not_applicable(key: str, support: Mapping[str, int], value: float) -> str | None:
    """Return why a figure has no value, in words, or ``None`` if it has one."""
    calibrated = key.startswith(("calib_", "parametric_", "qampari_"))
    if not support["answered_ratio"] and key not in _COUNTS_OF_ALL:
        return "no sample was scored"
    if (key in _NEEDS_ANSWERABLE or calibrated) and not support["answerable_ratio"]:
        return (
            "no sample has gold answers, or documents with `supports`, that tell whether its "
            "question is answerable"
        )
    # The figure whose support is the number of answers with gold answers, whatever the
    # correctness.
    correct = next((k for k in support if k in _REGULAR), None)
    about_golds = calibrated or key == "trust_score" or key.endswith(_CORRECTNESS_ENDINGS)
    if about_golds and (correct is None or not support[correct]):
        return "no sample has gold answers or claims to compare with"
    if not np.isnan(value):
        return None
    # What is left is NaN by UNDEFINED_WHERE_EMPTY.
    listed = key.startswith("qampari_")
    return "no answer has a wrong list element" if listed else "no response has a statement"


_REGULAR = ("regular_str_em", "regular_claims_nli", "regular_num_preds")
_CORRECTNESS_ENDINGS = ("_str_em", "_claims_nli", "_num_preds", *maths.LIST_KEYS)


def _count_support(key: str, support: Mapping[str, int]) -> int:
    """Return the number of samples that a figure is computed from."""
    key = FIRST_NAMES.get(key, key)
    if key in COUNTS or key == "unanswerable_num":
        return support[COUNTS.get(key, "answerable_ratio")]
    return support.get(key, support["answered_ratio"])


@dataclass(frozen=True)
class WeightedAnswers:
    """The rows of n answers, from which figures of resampled data sets are computed."""

    answers: GroundingSums
    """The layout of the rows."""
    rows: Floats
    """Rows as of :meth:`GroundingSums.rows`, shape (n, 2 K); 0 where an answer failed."""

    @classmethod
    def of(cls, metric: GroundingOptions, assessments: Iterable[Assessment]) -> "WeightedAnswers":
        """Build the rows of assessments, which are read once."""
        answers = GroundingSums(metric)
        result = [np.zeros((0, answers.width))]
        for chunk in split_chunks(assessments):
            # Failed answers keep a row of zeros: the rows of two runs have to line up in a
            # comparison.
            rows = np.zeros((len(chunk), answers.width))
            scored = [is_scored(assessment) for assessment in chunk]
            if parts := [assessment.parts for assessment in chunk if is_scored(assessment)]:
                rows[scored] = answers.rows(maths.part_table(parts))
            result.append(rows)
        return cls(answers, np.concatenate(result))

    def at(self, places: Places) -> "WeightedAnswers":
        """Return the rows of the answers at these places."""
        return WeightedAnswers(self.answers, self.rows[places])

    def figures(self, weights: Floats) -> dict[str, Floats]:
        """Return the figures of b data sets, shape (b,) each; ``weights`` has shape (b, n)."""
        return _select_by_key(FIGURES, self.answers.figures(weights @ self.rows))

    def keys(self) -> Set[str]:
        """Return the keys of the figures."""
        return self.figures(np.zeros((1, len(self.rows)))).keys()

    def is_counted(self, key: str) -> Bools:
        """Return whether each answer counts for a figure, shape (n,).

        Figures of answered questions alone (``answered_...``) are means over answers that are not
        refused; all others either do not depend on that, or say how answers are refused.
        """
        name = FIRST_NAMES.get(key, key)
        if not name.startswith("answered_") or name == "answered_ratio":
            return np.ones(len(self.rows), dtype=np.bool_)
        terms = self.answers.columns(name)
        populations = self.rows[:, terms[len(terms) // 2 :]]
        return np.asarray((populations > 0).any(axis=1))

    def inputs(self, key: str) -> Floats:
        """Return the terms and populations of each answer that a figure is made of."""
        return self.rows[:, self.answers.columns(FIRST_NAMES.get(key, key))]

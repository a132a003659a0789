"""What changed between two runs that answered the same questions: figures, single answers, and
settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trustassay.assessment import Direction, Weighted
from trustassay.calls.backends import MODEL
from trustassay.metric import Figure, Mean, Share
from trustassay.runs.folder import ABOUT, ENDED, STARTED, RunFolder
from trustassay.statistics import Bools, Floats, Places, comparison
from trustassay.statistics.intervals import FEWEST, FEWEST_FOR_MEANS
from trustassay.statistics.resampling import drawn_counts, generator
from trustassay.text.words import amount
from trustassay.workflows.json_form import JsonForm, fields_as_json
from trustassay.workflows.two_runs import Pairing, Scored, better_of

LISTED = 500
"""Changed answers of a kind that are read and listed; all are counted."""
SAME = 1e-9
"""A change of a score that is rounding."""
ONE_SIDED = 0.025
"""The level of a one-sided test, which is that of one end of a 95 % interval."""


@dataclass(frozen=True)
class VerdictChange:
    """In how many of the questions more answers became bad than good, and the reverse.

    of: what is bad: an answer that has, or lacks, the verdict that a share counts; else one that
    needs a look; where the metric draws no line, a lower score.
    """

    worse: int
    better: int
    questions: int
    of: Literal["share", "look", "score"]

    def worse_p(self, margin: float = 0.0) -> float:
        """Return the one-sided p-value that not more of the questions got worse than better, by
        more than a margin, from 0 to 1 (:func:`~trustassay.statistics.comparison.share_rise_p`).
        """
        return comparison.share_rise_p(self.worse, self.better, self.questions, margin)

    def kept_p(self, margin: float = 0.0) -> float:
        """Return the one-sided p-value that it is as bad as the margin, or worse."""
        return comparison.share_rise_p(self.better, self.worse, self.questions, -margin)

    def can_decide(self, margin: float = 0.0) -> bool:
        """Whether so many questions could show anything, were all of them worse."""
        return comparison.share_rise_p(self.questions, 0, self.questions, margin) < ONE_SIDED

    def in_words(self) -> str:
        """Say what changed."""
        what = {
            "share": "are counted otherwise",
            "look": "need a look",
            "score": "have a lower score",
        }[self.of]
        return (
            f"{self.worse:,} of {self.questions:,} questions got worse and {self.better:,} better "
            f"(answers that {what})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return fields_as_json(self) | {"p_worse": self.worse_p()}


@dataclass(frozen=True)
class FigureChange:
    """A figure of two runs over the answers that are paired and behind it in both.

    better: whether more of it is better, "" where that is not said. difference: second less first.
    verdicts: what the verdicts say, for an exact test where the difference has no interval;
    ``None`` where no side is better.
    """

    key: str
    figure: Figure
    better: Direction
    first: float
    second: float
    difference: comparison.Difference
    verdicts: VerdictChange | None = None

    @property
    def verdict(self) -> Literal["better", "worse", "changed", "no clear change", "unknown"]:
        """What the interval says of the change; without one, the test of the verdicts."""
        if self.difference.interval is None:
            if self.verdicts and self.verdicts.worse_p() < ONE_SIDED:
                return "worse"
            if self.verdicts and self.verdicts.kept_p() < ONE_SIDED:
                return "better"
            return "unknown"
        low, high = self.difference.interval
        if low <= 0 <= high:
            return "no clear change"
        if not self.better:
            return "changed"
        return "better" if (low > 0) == (self.better == "higher") else "worse"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "first": self.first,
            "second": self.second,
            **difference_as_json(self.difference),
            **({"verdicts": self.verdicts.to_dict()} if self.verdicts else {}),
            "better": self.better or None,
            "verdict": self.verdict,
        }


def difference_as_json(one: comparison.Difference) -> dict[str, Any]:
    """Return a change, its interval, and why it has none."""
    interval = None if one.interval is None else list(one.interval)
    without = {} if interval else {"without_interval": one.without}
    return {"change": one.value, "interval": interval, **without}


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
    """The answers whose score or verdict changed, the largest changes first, by what the metric is
    ordered by (:func:`~trustassay.metric.badness_of`).

    Of each kind :data:`LISTED` are held at most; the counts are those of all. other: another
    verdict, and no score in one of the runs. failed_now: scored in the first run, and failed in the
    second; failed: in either. same: all other pairs.
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
            message += (
                f", {counts['other']:,} have another verdict, and no score in one of the runs"
            )
        if counts["failed"]:
            message += f", {counts['failed']:,} failed in one of the runs"
            message += f" ({counts['failed_now']:,} in the second alone)"
        return message


def figure_changes(
    first: Scored, second: Scored, pairing: Pairing, keys: Sequence[str], seed: int = 0
) -> dict[str, FigureChange]:
    """Return the changes of figures over the pairs that are behind them in both runs.

    A pair counts for a figure if neither answer failed and both are among those that the figure is
    made of: an answer that was refused in one run is no part of a mean score, or it could look as
    if refusing made the others better. Questions are drawn with replacement, with all their answers
    in both runs. A key that cannot be resampled, or has no value over these pairs, is left out.
    """
    pairing = pairing.only(~(first.failed[pairing.first] | second.failed[pairing.second]))
    if not len(pairing.first):
        return {}
    both = (first.weighted.at(pairing.first), second.weighted.at(pairing.second))
    together: dict[bytes, list[str]] = {}
    for key in keys:
        if key in second.figures and key in both[0].keys() & both[1].keys():
            behind = both[0].counted(key) & both[1].counted(key)
            together.setdefault(behind.tobytes(), []).append(key)
    result: dict[str, FigureChange] = {}
    for mask, own in together.items():
        kept = pairing.only(np.frombuffer(mask, dtype=np.bool_))
        if len(kept.first):
            result |= _changes(first, second, kept, own, seed)
    return {key: result[key] for key in keys if key in result}


def _changes(
    first: Scored, second: Scored, pairing: Pairing, keys: Sequence[str], seed: int
) -> dict[str, FigureChange]:
    """Return the changes of figures over all of these pairs: of means and shares with the interval
    of a paired mean, of others from questions drawn with replacement, the same for all.
    """
    sides = [first.weighted.at(pairing.first), second.weighted.at(pairing.second)]
    whole = [side.figures(np.ones((1, len(pairing.first)))) for side in sides]
    point = {
        key: (float(whole[0][key][0]), float(whole[1][key][0]))
        for key in keys
        if not any(np.isnan(one[key][0]) for one in whole)
    }
    rng = generator(seed, "paired", first.info.name)
    drawn = _drawn(sides, pairing, [k for k in point if not _averaged(second, k)], rng)
    changes = {}
    for key, (before, after) in point.items():
        inputs = [side.inputs(key) for side in sides]
        differ = ~np.isclose(inputs[0], inputs[1], rtol=0, atol=SAME, equal_nan=True).all(axis=1)
        changed = len(np.unique(pairing.units[differ]))
        figure = second.figures[key]
        fewest = FEWEST_FOR_MEANS if isinstance(figure.statistic, Mean) else FEWEST
        if width := _averaged(second, key):
            scale = 100.0 if isinstance(figure.statistic, Share) else 1.0
            moved = scale * (inputs[1] - inputs[0])[:, 0]
            difference = comparison.mean_of_differences(moved, width, pairing.units, fewest)
            difference = comparison.with_few_changes(difference, changed)
        else:
            difference = comparison.paired_difference(
                after - before, drawn[key], pairing.questions, changed, fewest
            )
        better = better_of(figure, second.info)
        verdicts = _verdict_change(first, second, pairing, figure, better)
        changes[key] = FigureChange(key, figure, better, before, after, difference, verdicts)
    return changes


def _averaged(scored: Scored, key: str) -> float:
    """Return how far the values apart can lie that a figure is a plain mean of; 0 if it is none."""
    figure = scored.figures[key]
    if not isinstance(figure.statistic, Mean | Share):
        return 0.0
    ends = figure.within(scored.info.score_range)
    return ends[1] - ends[0] if ends else 0.0


def _drawn(
    sides: Sequence[Weighted], pairing: Pairing, keys: Sequence[str], rng: np.random.Generator
) -> dict[str, Floats]:
    """Return the differences of figures over questions drawn with replacement, shape (B,) each."""
    result: dict[str, list[Floats]] = {key: [] for key in keys}
    for counts in drawn_counts(pairing.questions, rng) if keys else ():
        weights = counts[:, pairing.units]
        ones, others = (side.figures(weights) for side in sides)
        for key, draws in result.items():
            draws.append(others[key] - ones[key])
    return {key: np.concatenate(draws) for key, draws in result.items()}


def _verdict_change(
    first: Scored, second: Scored, pairing: Pairing, figure: Figure, better: Direction
) -> VerdictChange | None:
    """Return what the verdicts of a figure's pairs say of its change."""
    of: Literal["share", "look", "score"]
    if not better:
        return None
    if isinstance(figure.statistic, Share):
        of, wanted = "share", figure.statistic.verdict
        sign = 1.0 if better == "lower" else -1.0
        before, after = (
            np.array([sign * (run.verdicts[place] == wanted) for place in places.tolist()])
            for run, places in ((first, pairing.first), (second, pairing.second))
        )
    elif first.flagged is not None and second.flagged is not None:
        of, before, after = "look", first.flagged[pairing.first], second.flagged[pairing.second]
    else:
        of, sign = "score", 1.0 if second.info.lower_is_better else -1.0
        before, after = sign * first.scores[pairing.first], sign * second.scores[pairing.second]
    moved = np.nan_to_num(after - before)
    change = np.bincount(pairing.units, np.where(np.abs(moved) < SAME, 0.0, moved))
    return VerdictChange(int((change > 0).sum()), int((change < 0).sum()), len(change), of)


def why_not_resampled(pairing: Pairing, first: Scored, second: Scored) -> str:
    """Return why :func:`figure_changes` left a figure out that both summaries have."""
    if not len(pairing.first):
        return "the runs have no question in common"
    if (first.failed[pairing.first] | second.failed[pairing.second]).all():
        return "no pair was scored in both runs"
    return "it cannot be resampled, or has no value over the pairs"


def kinds_of(first: Scored, second: Scored, pairing: Pairing) -> tuple[dict[str, Bools], Places]:
    """Return which pairs changed in which way, and all pairs, those that changed most first.

    The ways are those of :class:`AnswerChanges`, and ``refused``: scored in the first run, and
    neither scored nor failed in the second.
    """
    before, after = first.scores[pairing.first], second.scores[pairing.second]
    failed = (first.failed[pairing.first], second.failed[pairing.second])
    sign = -1.0 if first.info.lower_is_better else 1.0
    rise = sign * (after - before)
    scored = ~np.isnan(rise)
    said = [np.array(one.verdicts, dtype=np.str_) for one in (first, second)]
    verdicts = said[0][pairing.first] != said[1][pairing.second]
    kinds = {
        "worse": scored & (rise < -SAME),
        "better": scored & (rise > SAME),
        "other": ~scored & verdicts & ~failed[0] & ~failed[1],
        "refused": ~np.isnan(before) & np.isnan(after) & ~failed[1],
        "failed_now": failed[1] & ~failed[0],
        "failed": failed[0] | failed[1],
    }
    moved = np.abs(second.badness[pairing.second] - first.badness[pairing.first])
    order = np.lexsort((-np.abs(np.nan_to_num(rise)), -np.nan_to_num(moved)))
    return kinds, order


def answer_changes(first: Scored, second: Scored, pairing: Pairing) -> AnswerChanges:
    """Return the pairs whose score or verdict changed, those that changed most first."""
    found, order = kinds_of(first, second, pairing)
    kinds = {name: found[name] for name in ("worse", "better", "other")}
    counts = {name: int(where.sum()) for name, where in kinds.items()}
    counts |= {name: int(found[name].sum()) for name in ("failed_now", "failed")}
    counts["same"] = len(order) - sum(counts[name] for name in (*kinds, "failed"))
    chosen = {
        name: [place for place in order.tolist() if where[place]][:LISTED]
        for name, where in kinds.items()
    }
    wanted = [place for places in chosen.values() for place in places]
    told = [
        told_of(side, {int(places[place]) for place in wanted})
        for side, places in ((first, pairing.first), (second, pairing.second))
    ]

    def change(place: int) -> AnswerChange:
        both = told[0][int(pairing.first[place])], told[1][int(pairing.second[place])]
        questions, *sides = zip(*both, strict=True)
        return AnswerChange(questions[1], *sides)

    lists = {name: [change(place) for place in places] for name, places in chosen.items()}
    return AnswerChanges(counts, **lists)


def told_of(side: Scored, places: set[int]) -> dict[int, tuple[Any, ...]]:
    """Return question, id, response, score, verdict and reason of samples, by their places."""
    folder = RunFolder(side.path)
    assessments = folder.assessments(side.info.name)
    result = {}
    for place, record in enumerate(folder.sample_records()):
        if place in places:
            one, response = assessments[place], str(record.get("response") or "")
            judged = (one.score, one.verdict or "", one.reason)
            result[place] = (str(record["question"]), one.id, response, *judged)
    return result


_OF_INPUT = {"input", "samples", "skipped", "metrics", "backends", "command", ABOUT, STARTED, ENDED}
"""What run.json says of its input, when the run was, or what is compared by itself."""


def other_judges(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """Say which options of metrics but seeds, and which models that judge, two runs differ in."""
    result = []
    for name in names:
        options = [run["metrics"][name] for run in (first, second)]
        for option in dict.fromkeys([*options[0], *options[1]]):
            values = [one.get(option) for one in options]
            if values[0] != values[1] and option != "seed":
                result.append(f"{name}: {option} was {values[0]}, then {values[1]}")
    names = sorted({*first["backends"], *second["backends"]} - {MODEL})
    return result + _changed(first["backends"], second["backends"], names, "the ")


def differing_settings(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """Say which settings of two runs differ; the seeds of the metrics do not count."""
    return [
        *other_judges(first, second, names),
        *_changed(first["backends"], second["backends"], [MODEL], "the "),
        *_changed(first, second, sorted({*first, *second} - _OF_INPUT)),
    ]


def _changed(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str], article: str = ""
) -> list[str]:
    return [
        f"{article}{name} was {_words(first.get(name))}, then {_words(second.get(name))}"
        for name in names
        if first.get(name) != second.get(name)
    ]


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={one}" for key, one in value.items())
    return "not set" if value is None else str(value)

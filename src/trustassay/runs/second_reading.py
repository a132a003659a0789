"""The second reader of a run: the answers that it reads, and what it changes.

1. The first reader has scored all answers.
2. The second one reads a random part of them, then the answers that matter most: those nearest to
   the line between good and bad ones first, until the budget is spent.
3. From the random part, the share of answers that need a look by both readers is estimated, with an
   interval, although only the first one read most answers.

``second.json`` holds the findings of the first reader for each metric and answer. All choices
follow from it, so that a stopped run continues with the same ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import BackendKey, Backends
from trustassay.core.metric import Metric
from trustassay.errors import UsageError
from trustassay.judging.second_reader import PART_READ_BY_SECOND, ROLE, SecondReaderOptions
from trustassay.report.review import problem_of
from trustassay.runs.folder import RunFolder
from trustassay.runs.units import UNIT, read_units
from trustassay.statistics.intervals import (
    MIN_UNITS,
    Interval,
    binomial_interval,
    reason_too_few,
    unit_mean,
)
from trustassay.statistics.resampling import generator

SECOND_FILE = "second"
"""The name of the file in the run's folder, and of the setting in ``run.json``."""
OTHER_LANGUAGE_KEY = "beside"
"""Key in the file: answers in languages that the first reader does not read, by metric."""
TIMED_AT_ONCE = 4
"""Answers in progress at once with a budget in seconds; more would overrun it."""


class FirstFinding(NamedTuple):
    """The finding of the first reader for an answer that it scored."""

    place: int
    """The answer's place in the input, from 0."""
    flagged: bool
    """Whether it needs a look."""
    in_doubt: bool
    """Whether it nearly needs one."""
    badness: float
    """From 0 to 1, 1 the worst."""


@dataclass(frozen=True)
class ReadingChoice:
    """The answers that the second reader reads, by their places in the input."""

    drawn: Sequence[int]
    """Drawn at random from the others; with a budget in seconds, from all."""
    by_worth: Sequence[int]
    """In the order in which reading them is worth most, as many as the budget allows; with a budget
    in seconds, all that are scored."""

    @property
    def every(self) -> list[int]:
        """All places, each once, in reading order."""
        return list(dict.fromkeys((*self.drawn, *self.by_worth)))


def choose_answers(
    rows: Sequence[FirstFinding],
    total: int,
    units: NDArray[np.int64] | None,
    options: SecondReaderOptions,
    metric: Metric,
    seed: int,
    unread_by_first: int = 0,
) -> ReadingChoice:
    """Choose the answers that the second reader reads.

    Whole units are drawn at random.

    Args:
        rows: the findings for the answers that are scored.
        total: the number of all answers.
        units: of all answers, as :func:`~trustassay.runs.units.read_units` returns them.
        unread_by_first: the number of answers in languages that only the second reader may read;
            they use up a part of the budget.
    """
    units_or_single = np.full(total, -1) if units is None else units
    # An answer that is a unit by itself gets a negative key of its own.
    keys = np.where(units_or_single < 0, -1 - np.arange(total), units_or_single)
    order = generator(seed, "second reader", metric.name).permutation(np.unique(keys))
    rank = dict(zip(order.tolist(), range(len(order)), strict=True))
    # At least FEWEST, since fewer answers give no useful interval.
    wanted_draws = (
        max(MIN_UNITS, round(options.second_share * len(rows))) if options.second_share else 0
    )
    rows_by_worth = _sort_by_worth(rows)
    most = options.max_answers(len(rows), unread_by_first)
    # Without a budget only answers are read whose verdict may change.
    if options.second_budget is None:
        rows_by_worth = [row for row in rows_by_worth if row.flagged or row.in_doubt]
    elif most is not None:
        rows_by_worth = rows_by_worth[: max(0, most - wanted_draws)]
    by_worth = [row.place for row in rows_by_worth]
    # With a budget in seconds it is not known how far the reading gets, so the random part must not
    # depend on the order of worth.
    places_by_worth = set() if options.seconds else set(by_worth)
    drawn_places: list[int] = []
    for row in sorted(rows, key=lambda row: rank[int(keys[row.place])]):
        # The last unit is completed: a part of a unit would be no draw of units.
        if len(drawn_places) >= wanted_draws and not (
            drawn_places and keys[row.place] == keys[drawn_places[-1]]
        ):
            break
        if row.place not in places_by_worth:
            drawn_places.append(row.place)
    return ReadingChoice(drawn_places if wanted_draws else [], by_worth)


def _sort_by_worth(rows: Sequence[FirstFinding]) -> list[FirstFinding]:
    """Return the answers in the order in which reading them again is worth most.

    Those nearest to the line come first. Answers far from it keep their place in the ranking
    whatever the second reader says.
    """
    badness = sorted((row.badness for row in rows), reverse=True)
    flagged = sum(row.flagged for row in rows)
    # The line lies between the last flagged answer and the first other one.
    around_line = badness[max(0, flagged - 1) : flagged + 1]
    line = sum(around_line) / len(around_line) if around_line else 0.0
    return sorted(rows, key=lambda row: (abs(row.badness - line), not row.flagged))


def list_second_read_metrics(metrics: Iterable[Metric], backends: Backends) -> list[Metric]:
    """Return the metrics of a run that use a second reader; none if the run has none."""
    if BackendKey("entail", ROLE) not in backends.by_key:
        return []
    return [m for m in metrics if any(need.role == ROLE for need in m.needs())]


def check_second(
    metrics: Iterable[Metric], backends: Backends, options: SecondReaderOptions, *, shard: bool
) -> None:
    """Check the options of a second reader.

    Raises:
        UsageError: the run has options of a second reader and none of its metrics uses one, or it
            has a second reader and scores a shard: what is read depends on all answers.
    """
    if shard and list_second_read_metrics(metrics, backends):
        message = "second: not for a shard, because its choice of answers depends on all answers"
        raise UsageError(f"{message}; score and merge without it, then rescore with it")
    if options != SecondReaderOptions() and not list_second_read_metrics(metrics, backends):
        raise UsageError("second_share, second_budget, second_alone: need a second reader (second)")


def summarise_second_pass(
    folder: RunFolder, metrics: Sequence[Metric], run: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Return the block of the second reader for ``summary.json``, by metric.

    The assessments must be sorted into input order.
    """
    if SECOND_FILE not in run:
        return {}
    content = folder.read_json(SECOND_FILE) or {}
    stored_findings = content.get("metrics", {})
    if not stored_findings:  # a run of samples that came one by one has no second pass
        return {}
    units = read_units(folder, run.get(UNIT))
    result = {}
    for metric in metrics:
        if metric.name not in stored_findings:
            continue
        rows = [FirstFinding(*row) for row in stored_findings[metric.name]]
        flagged, read_places, statements = list[bool](), set[int](), 0.0
        for place, assessment in enumerate(folder.assessments(metric.name, evidence_later=True)):
            flagged.append(problem_of(metric, assessment) is not None)
            if PART_READ_BY_SECOND in assessment.parts:
                read_places.add(place)
                statements += assessment.parts[PART_READ_BY_SECOND]
        flagged_now = {row.place: flagged[row.place] for row in rows}
        alone_count = len(read_places - flagged_now.keys())
        unread_by_first = content.get(OTHER_LANGUAGE_KEY, {}).get(metric.name, 0)
        options = SecondReaderOptions(**run[SECOND_FILE])
        # The same choice as in the pass itself, since it follows from the stored findings.
        choice = choose_answers(rows, len(flagged), units, options, metric, seed, unread_by_first)
        result[metric.name] = {
            "reader": run["backends"][ROLE],
            "answers": len(rows),
            "read": len(read_places & flagged_now.keys()),
            "statements": int(statements),
            "unread": len(set(choice.every) - read_places),
            "failed": content.get("failed", {}).get(metric.name, 0),
            "lifted": sum(row.flagged and not flagged_now[row.place] for row in rows),
            "set": sum(flagged_now[row.place] and not row.flagged for row in rows),
            **estimate_look_share(choice, flagged_now, read_places, units),
            **({"alone": alone_count} if alone_count else {}),
        }
    return {SECOND_FILE: result}


def estimate_look_share(
    choice: ReadingChoice,
    flagged_now: Mapping[int, bool],
    read_places: set[int],
    units: NDArray[np.int64] | None,
) -> dict[str, Any]:
    """Estimate the share of answers that would need a look if the second reader had read all.

    1. For the answers that were read for their worth the result is known, up to the last of them
       that was reached.
    2. The drawn answers are a random sample of all others. Their share stands for these, with the
       mid-P interval of its effective size.
    3. If no others are left, the share is known. With fewer than 10 drawn answers it has no
       interval.

    Args:
        flagged_now: by place, whether each scored answer needs a look after the second reading.
        read_places: the places of the answers that were read.
    """
    drawn_places = set(choice.drawn)
    # A drawn answer deep in the order was read for the draw: it does not tell how far the order
    # got.
    reached = [
        i
        for i, place in enumerate(choice.by_worth, 1)
        if place in read_places and place not in drawn_places
    ]
    known_places = set(choice.by_worth[: max(reached, default=0)])
    # Drawn answers that were also reached by worth are no part of the others.
    sample = [place for place in choice.drawn if place in read_places and place not in known_places]
    other_count, n = len(flagged_now) - len(known_places), len(flagged_now)
    bad = sum(flagged_now[place] for place in known_places)
    if not other_count or not sample:
        # All are known, or nothing is known of the others.
        value = bad / n if n and not other_count else None
        reason = "no answer of the random part was read"
        reason = reason if drawn_places else "no answer was drawn at random"
        if value is not None:
            return {"share": value, "interval": [value, value], "drawn": len(sample), "without": ""}
        return {"share": None, "interval": None, "drawn": len(sample), "without": reason}
    values = np.array([flagged_now[place] for place in sample], dtype=np.float64)
    units_of_sample = None if units is None else units[sample]
    mean, variance, _ = unit_mean(values, units_of_sample)
    value = (bad + other_count * mean) / n
    without = (
        reason_too_few("answers drawn at random", len(sample), min(MIN_UNITS // 2, other_count))
        or ""
    )
    interval = None
    if not without:
        low, high = _compute_interval(mean, variance, len(sample), other_count)
        interval = [round((bad + other_count * bound) / n, 6) for bound in (low, high)]
    estimate = {"share": round(value, 6), "interval": interval}
    return {**estimate, "drawn": len(sample), "without": without}


def _compute_interval(share: float, variance: float, n: int, total: int) -> Interval:
    """Return the mid-P interval of a share, for its effective number of independent draws.

    Args:
        share: among the drawn answers.
        variance: of the share, over units.
        n: the number of drawn answers.
        total: the number of answers from which they were drawn, without replacement.
    """
    if n >= total:
        return share, share
    simple_variance = share * (1 - share) / n
    # The design effect: answers of one unit are alike, so that they count for fewer.
    design = max(1.0, variance / simple_variance) if simple_variance else 1.0
    # The finite population correction: the more of all answers are drawn, the less is unknown.
    effective_n = n / design / (1 - n / total)
    return binomial_interval(share * effective_n, effective_n)

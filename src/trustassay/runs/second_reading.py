"""The second pass of a run, by the second reader: what it reads, and what it changes.

1. The first reader has scored all answers.
2. The second one reads a random part of them, then the answers that matter most: those nearest to
   the line between good and bad ones first, until the budget is spent (decisions 141 and 176).
3. From the random part, the share of answers that need a look by both readers is estimated, with an
   interval, although only the first one read most answers.

``second.json`` holds the findings of the first reader for each metric and answer. All choices
follow from it, so that a stopped run continues with the same ones.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import BackendKey, Backends
from trustassay.calls.client import Client
from trustassay.core.event_loop import TaskLimiter
from trustassay.core.metric import Assessment, Metric, MetricInfo, compute_badness
from trustassay.core.progress import Progress, tell
from trustassay.core.sample import Sample
from trustassay.errors import UsageError
from trustassay.judging.second_reader import (
    PART_READ_BY_SECOND,
    ROLE,
    SecondReader,
    SecondReaderOptions,
)
from trustassay.report.first_card import problem_of
from trustassay.runs.assess import assess_sample
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions
from trustassay.runs.prepare import Prepared, StoredPool
from trustassay.runs.units import UNIT, read_units
from trustassay.statistics.intervals import (
    MIN_UNITS,
    Interval,
    binomial_interval,
    reason_too_few,
    unit_mean,
)
from trustassay.statistics.resampling import generator
from trustassay.text.language import OTHER_LANGUAGE
from trustassay.text.words import amount

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
    whatever the second reader says (decision 176).
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
        message = "the input is a shard, and what a second reader reads depends on all answers"
        raise UsageError(f"{message}; score and merge without it, then rescore with it")
    if options != SecondReaderOptions() and not list_second_read_metrics(metrics, backends):
        raise UsageError("second_share, second_budget, second_alone: expected a second reader too")


async def assess_with_both(
    metric: Metric, sample: Sample, client: Client, options: RunOptions, folder: Path | None = None
) -> tuple[Assessment, bytes]:
    """Assess one sample of a run that has no second pass, such as a server's.

    The second reader, if there is one, reads the answer if it needs a look or nearly does. If that
    fails, the assessment of the first reader stays.
    """
    result, line = await assess_sample(metric, sample, client, options, folder)
    if not list_second_read_metrics([metric], client.backends) or result.error is not None:
        return result, line
    # An answer that the first reader cannot read always goes to the second one.
    is_other_language = OTHER_LANGUAGE in result.parts
    if not is_other_language and problem_of(metric, result) is None and not metric.in_doubt(result):
        return result, line
    reader = SecondReader(options.second.second_alone)
    second_result, second_line = await assess_sample(
        metric, sample, client, options, folder, None, reader
    )
    return (result, line) if second_result.error is not None else (second_result, second_line)


class SecondPass:
    """The second pass over the answers of a run."""

    def __init__(self, folder: RunFolder, metrics: Sequence[Metric], options: RunOptions) -> None:
        self._folder, self._metrics, self._options = folder, metrics, options

    @property
    def finished(self) -> bool:
        """Whether all chosen answers were read."""
        return bool((self._folder.read_json(SECOND_FILE) or {}).get("finished"))

    async def read(self, client: Client, prepared: Mapping[str, Prepared], at_once: int) -> None:
        """Let the second reader read the chosen answers that it has not read yet.

        An answer that it fails to read keeps the first assessment; the next start of the run tries
        it again.
        """
        run, options = self._folder.read_run() or {}, self._options
        stored_content = self._folder.read_json(SECOND_FILE) or {}
        began, spent = time.monotonic(), float(stored_content.get("seconds", 0.0))
        units = read_units(self._folder, run.get(UNIT))
        pool = StoredPool(self._folder.samples_path)
        content: dict[str, Any] = {"metrics": {}, "finished": False, "seconds": spent}
        content[OTHER_LANGUAGE_KEY] = {}
        todo: list[tuple[Metric, int]] = []
        for metric in self._metrics:
            # Findings of an earlier process stay: an answer that was read since has lost its first
            # assessment.
            known_rows = stored_content.get("metrics", {}).get(metric.name, ())
            rows, read_places, other_places = self._read_first_findings(metric, known_rows, pool)
            content["metrics"][metric.name] = [list(row) for row in rows]
            content[OTHER_LANGUAGE_KEY][metric.name] = n = len(other_places)
            choice = choose_answers(rows, len(pool), units, options.second, metric, options.seed, n)
            read_alone = other_places[: options.second.max_answers(n, len(rows))]
            # The random part first: an exhausted budget must not shorten it.
            places = (*choice.drawn, *read_alone, *choice.by_worth)
            todo += [(metric, place) for place in dict.fromkeys(places) if place not in read_places]
        self._folder.write_json(SECOND_FILE, content, indent=None)
        failures = await self._read_all(client, prepared, pool, todo, at_once, spent)
        if failures:
            answers_text = amount(len(failures), "answer")
            tell(f"the second reader could not read {answers_text}; the first: {failures[0][1]}")
        content["failed"] = Counter(name for name, _ in failures)
        content["seconds"] = round(spent + time.monotonic() - began, 1)
        content["finished"] = not failures
        self._folder.write_json(SECOND_FILE, content, indent=None)

    def _read_first_findings(
        self, metric: Metric, known_rows: Iterable[Sequence[Any]], pool: StoredPool
    ) -> tuple[list[FirstFinding], set[int], list[int]]:
        """Read the findings of the first reader from the assessments.

        Args:
            known_rows: findings of an earlier process, as they are stored.

        Returns:
            The findings for each answer with a score, the places of answers that the second reader
            has read, and the places of answers in languages that the first one does not read.
        """
        rows = {int(row[0]): FirstFinding(*row) for row in known_rows}
        info, read_places, other_places = MetricInfo.of(metric), set[int](), set[int]()
        for assessment in self._folder.assessments(metric.name):
            place = pool.index(assessment.id)
            assert place is not None
            # The second one read an answer of which there is no first finding: the first could not
            # read it.
            if OTHER_LANGUAGE in assessment.parts or (
                PART_READ_BY_SECOND in assessment.parts and place not in rows
            ):
                other_places.add(place)
            if PART_READ_BY_SECOND in assessment.parts:
                read_places.add(place)
            elif (bad := compute_badness(info, assessment)) is not None:
                flagged = problem_of(metric, assessment) is not None
                rows[place] = FirstFinding(place, flagged, metric.in_doubt(assessment), bad)
        return [rows[place] for place in sorted(rows)], read_places, sorted(other_places)

    async def _read_all(
        self,
        client: Client,
        prepared: Mapping[str, Prepared],
        pool: StoredPool,
        todo: Sequence[tuple[Metric, int]],
        at_once: int,
        spent: float,
    ) -> list[tuple[str, str]]:
        """Let the second reader read answers.

        Args:
            todo: metrics and places, in reading order.
            spent: seconds that earlier processes have used of the budget.

        Returns:
            Metric and reason for each answer that could not be read.
        """
        failures: list[tuple[str, str]] = []
        began, options = time.monotonic(), self._options
        most = options.second.seconds
        writer = self._folder.open_assessments()
        reader = SecondReader(options.second.second_alone)

        async def assess(metric: Metric, place: int) -> None:
            prepared_value, path = prepared[metric.name].value, self._folder.path
            result, line = await assess_sample(
                metric, pool[place], client, options, path, prepared_value, reader
            )
            if result.error is None:
                writer.append(line)
            else:
                failures.append((metric.name, result.error))
            progress.step()

        show_progress = options.progress
        with (
            closing(writer),
            Progress("reading again", len(todo), visible=show_progress) as progress,
        ):
            async with TaskLimiter(at_once if most is None else TIMED_AT_ONCE) as limiter:
                for metric, place in todo:
                    # Checked before each start: answers in progress are finished.
                    if most is not None and spent + time.monotonic() - began >= most:
                        break
                    await limiter.start(assess(metric, place))
        return failures


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
        reason = "none of the answers drawn at random was read"
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

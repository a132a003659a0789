"""The second pass of a run: which answers the second reader reads, and what it changes.

The first reader has scored all answers. The second one reads a random part of them, and those that
matter, what is nearest to the line between good and bad ones first, until the budget
is spent. So the share of answers that need a look by both readers has an interval, though most
were read by the first alone.

``second.json`` holds, for each metric, what the first reader found of each answer, by its place in
the input; all choices follow from it, so that a stopped run goes on with the same ones.
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

from trustassay.calls.backends import Backends, Place
from trustassay.calls.client import Client
from trustassay.errors import UsageError
from trustassay.event_loop import TaskLimiter
from trustassay.judging.second_reader import READ, ROLE, SecondOptions, SecondReader
from trustassay.metric import Assessment, Metric, MetricInfo, badness_of
from trustassay.progress import Progress, tell
from trustassay.runs.assess import assessed
from trustassay.runs.counts import UNIT, read_units
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions
from trustassay.runs.prepare import Prepared, StoredPool
from trustassay.sample import Sample
from trustassay.show.first_card import problem_of
from trustassay.statistics.intervals import FEWEST, Interval, binomial_interval, too_few, unit_mean
from trustassay.statistics.resampling import generator
from trustassay.text.language import OTHER_LANGUAGE
from trustassay.text.words import amount

FILE = "second"
"""The name of the file in the run's folder, and of the setting in ``run.json``."""
BESIDE = "beside"
"""The key of the file under which it counts answers in languages that the first does not read."""
SLOWLY = 4
"""Answers in progress at once where the seconds are counted."""


class First(NamedTuple):
    """What the first reader found of an answer that it scored; ``badness`` is from 0 to 1."""

    place: int
    flagged: bool
    in_doubt: bool
    badness: float


@dataclass(frozen=True)
class Choice:
    """The answers that the second reader reads, by their places in the input.

    by_worth: in the order of their worth, as many as may be read; where the seconds are counted,
    all that are scored. drawn: at random, of the others; where the seconds are counted, of all.
    """

    drawn: Sequence[int]
    by_worth: Sequence[int]

    @property
    def every(self) -> list[int]:
        """All of them, each once, in the order in which they are read."""
        return list(dict.fromkeys((*self.drawn, *self.by_worth)))


def choose(
    rows: Sequence[First],
    total: int,
    units: NDArray[np.int64] | None,
    options: SecondOptions,
    metric: Metric,
    seed: int,
    beside: int = 0,
) -> Choice:
    """Return what the second reader reads of a run of ``total`` answers, ``rows`` of them scored,
    and ``beside`` others in languages that it alone may read.

    Whole units are drawn. ``units`` are those of all answers, as
    :func:`~trustassay.runs.counts.read_units` gives them.
    """
    own = np.full(total, -1) if units is None else units
    keys = np.where(own < 0, -1 - np.arange(total), own)
    order = generator(seed, "second reader", metric.name).permutation(np.unique(keys))
    rank = dict(zip(order.tolist(), range(len(order)), strict=True))
    wanted = max(FEWEST, round(options.second_share * len(rows))) if options.second_share else 0
    worth = _by_worth(rows)
    most = options.most(len(rows), beside)
    if options.second_budget is None:
        worth = [row for row in worth if row.flagged or row.in_doubt]
    elif most is not None:
        worth = worth[: max(0, most - wanted)]
    by_worth = [row.place for row in worth]
    known = set() if options.seconds else set(by_worth)
    drawn: list[int] = []
    for row in sorted(rows, key=lambda row: rank[int(keys[row.place])]):
        if len(drawn) >= wanted and not (drawn and keys[row.place] == keys[drawn[-1]]):
            break
        if row.place not in known:
            drawn.append(row.place)
    return Choice(drawn if wanted else [], by_worth)


def _by_worth(rows: Sequence[First]) -> list[First]:
    """Return the answers in the order in which it is worth to read them again: those nearest to
    the line first. What is far beyond it stands first or last whatever is read (decision 176).
    """
    badness = sorted((row.badness for row in rows), reverse=True)
    flagged = sum(row.flagged for row in rows)
    beside = badness[max(0, flagged - 1) : flagged + 1]
    line = sum(beside) / len(beside) if beside else 0.0
    return sorted(rows, key=lambda row: (abs(row.badness - line), not row.flagged))


def readers_of(metrics: Iterable[Metric], backends: Backends) -> list[Metric]:
    """Return the metrics of a run that use its second reader."""
    if Place("entail", ROLE) not in backends.held:
        return []
    return [m for m in metrics if any(need.role == ROLE for need in m.needs())]


def check_second(
    metrics: Iterable[Metric], backends: Backends, options: SecondOptions, *, shard: bool
) -> None:
    """Raise :class:`UsageError` for options of a second reader in a run that has none, and for a
    second reader of a shard: what it reads depends on all answers."""
    if shard and readers_of(metrics, backends):
        message = "the input is a shard, and what a second reader reads depends on all answers"
        raise UsageError(f"{message}; score and merge without it, then rescore with it")
    if options != SecondOptions() and not readers_of(metrics, backends):
        raise UsageError("second_share, second_budget, second_alone: expected a second reader too")


async def assessed_by_both(
    metric: Metric, sample: Sample, client: Client, options: RunOptions, folder: Path | None = None
) -> tuple[Assessment, bytes]:
    """Assess one sample that comes alone; the second reader, if there is one, reads it where it
    needs a look or nearly does. What that fails to read keeps what the first reader found.
    """
    result, line = await assessed(metric, sample, client, options, folder)
    if not readers_of([metric], client.backends) or result.error is not None:
        return result, line
    other = OTHER_LANGUAGE in result.parts
    if not other and problem_of(metric, result) is None and not metric.in_doubt(result):
        return result, line
    second = SecondReader(options.second.second_alone)
    again, its_line = await assessed(metric, sample, client, options, folder, None, second)
    return (result, line) if again.error is not None else (again, its_line)


class SecondReading:
    """The second pass over the answers of a run."""

    def __init__(self, folder: RunFolder, metrics: Sequence[Metric], options: RunOptions) -> None:
        self._folder, self._metrics, self._options = folder, metrics, options

    @property
    def finished(self) -> bool:
        """Whether all was read that is to be read."""
        return bool((self._folder.read_json(FILE) or {}).get("finished"))

    async def read(self, client: Client, prepared: Mapping[str, Prepared], at_once: int) -> None:
        """Let the second reader read what is chosen and not read yet.

        An answer that it fails to read keeps what the first reader found; a run that is started
        again tries it again.
        """
        run, options = self._folder.read_run() or {}, self._options
        stored = self._folder.read_json(FILE) or {}
        began, spent = time.monotonic(), float(stored.get("seconds", 0.0))
        units = read_units(self._folder, run.get(UNIT))
        pool = StoredPool(self._folder.samples_path)
        content: dict[str, Any] = {"metrics": {}, "finished": False, "seconds": spent}
        content[BESIDE] = {}
        todo: list[tuple[Metric, int]] = []
        for metric in self._metrics:
            known = stored.get("metrics", {}).get(metric.name, ())
            rows, read, others = self._first(metric, known, pool)
            content["metrics"][metric.name] = [list(row) for row in rows]
            content[BESIDE][metric.name] = n = len(others)
            chosen = choose(rows, len(pool), units, options.second, metric, options.seed, n)
            alone = others[: options.second.most(n, len(rows))]
            places = (*chosen.drawn, *alone, *chosen.by_worth)
            todo += [(metric, place) for place in dict.fromkeys(places) if place not in read]
        self._folder.write_json(FILE, content, indent=None)
        failures = await self._read_all(client, prepared, pool, todo, at_once, spent)
        if failures:
            words = amount(len(failures), "answer")
            tell(f"the second reader could not read {words}; the first: {failures[0][1]}")
        content["failed"] = Counter(name for name, _ in failures)
        content["seconds"] = round(spent + time.monotonic() - began, 1)
        content["finished"] = not failures
        self._folder.write_json(FILE, content, indent=None)

    def _first(
        self, metric: Metric, known: Iterable[Sequence[Any]], pool: StoredPool
    ) -> tuple[list[First], set[int], list[int]]:
        """Return what the first reader found of each answer with a score, the places of those that
        the second one read already, and of those in languages that the first does not read."""
        rows = {int(row[0]): First(*row) for row in known}
        info, read, others = MetricInfo.of(metric), set[int](), set[int]()
        for one in self._folder.assessments(metric.name):
            place = pool.index(one.id)
            assert place is not None
            if OTHER_LANGUAGE in one.parts or (READ in one.parts and place not in rows):
                others.add(place)
            if READ in one.parts:
                read.add(place)
            elif (bad := badness_of(info, one)) is not None:
                flagged = problem_of(metric, one) is not None
                rows[place] = First(place, flagged, metric.in_doubt(one), bad)
        return [rows[place] for place in sorted(rows)], read, sorted(others)

    async def _read_all(
        self,
        client: Client,
        prepared: Mapping[str, Prepared],
        pool: StoredPool,
        todo: Sequence[tuple[Metric, int]],
        at_once: int,
        spent: float,
    ) -> list[tuple[str, str]]:
        """Read answers again; return the metric and the reason where one could not be read."""
        failures: list[tuple[str, str]] = []
        began, options = time.monotonic(), self._options
        most = options.second.seconds
        writer = self._folder.open_assessments()
        second = SecondReader(options.second.second_alone)

        async def assess(metric: Metric, place: int) -> None:
            own, path = prepared[metric.name].value, self._folder.path
            result, line = await assessed(metric, pool[place], client, options, path, own, second)
            if result.error is None:
                writer.append(line)
            else:
                failures.append((metric.name, result.error))
            progress.step()

        shown = options.progress
        with closing(writer), Progress("reading again", len(todo), shown=shown) as progress:
            async with TaskLimiter(at_once if most is None else SLOWLY) as limiter:
                for metric, place in todo:
                    if most is not None and spent + time.monotonic() - began >= most:
                        break
                    await limiter.start(assess(metric, place))
        return failures


def second_results(
    folder: RunFolder, metrics: Sequence[Metric], run: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Return what ``summary.json`` tells of the second reading, for each metric.

    The answers are sorted into input order by then.
    """
    if FILE not in run:
        return {}
    content = folder.read_json(FILE) or {}
    stored = content.get("metrics", {})
    if not stored:  # of samples that came one by one
        return {}
    units = read_units(folder, run.get(UNIT))
    result = {}
    for metric in metrics:
        if metric.name not in stored:
            continue
        rows = [First(*row) for row in stored[metric.name]]
        flagged, read, statements = list[bool](), set[int](), 0.0
        for place, one in enumerate(folder.assessments(metric.name, evidence_later=True)):
            flagged.append(problem_of(metric, one) is not None)
            if READ in one.parts:
                read.add(place)
                statements += one.parts[READ]
        now = {row.place: flagged[row.place] for row in rows}
        alone, beside = len(read - now.keys()), content.get(BESIDE, {}).get(metric.name, 0)
        options = SecondOptions(**run[FILE])
        chosen = choose(rows, len(flagged), units, options, metric, seed, beside)
        result[metric.name] = {
            "reader": run["backends"][ROLE],
            "answers": len(rows),
            "read": len(read & now.keys()),
            "statements": int(statements),
            "unread": len(set(chosen.every) - read),
            "failed": content.get("failed", {}).get(metric.name, 0),
            "lifted": sum(row.flagged and not now[row.place] for row in rows),
            "set": sum(now[row.place] and not row.flagged for row in rows),
            **share_to_look_at(chosen, now, read, units),
            **({"alone": alone} if alone else {}),
        }
    return {FILE: result}


def share_to_look_at(
    chosen: Choice, now: Mapping[int, bool], read: set[int], units: NDArray[np.int64] | None
) -> dict[str, Any]:
    """Return the share of the answers that would need a look if the second reader had read all.

    Those that were read for their worth are known, up to the last one that was reached. Of the
    others, those that were drawn are a random sample: their share, with the mid-P interval of its
    effective size, is put in for all. Without others the share is known. Of fewer than 10 drawn
    ones it has no interval.

    Args:
        now: whether each answer that is scored needs a look, by its place.
        read: the places of the answers that were read.
    """
    drawn = set(chosen.drawn)
    ends = [i for i, place in enumerate(chosen.by_worth, 1) if place in read and place not in drawn]
    known = set(chosen.by_worth[: max(ends, default=0)])
    sample = [place for place in chosen.drawn if place in read and place not in known]
    others, n = len(now) - len(known), len(now)
    bad = sum(now[place] for place in known)
    if not others or not sample:
        value = bad / n if n and not others else None
        words = "none of the answers drawn at random was read"
        words = words if drawn else "no answer was drawn at random"
        if value is not None:
            return {"share": value, "interval": [value, value], "drawn": len(sample), "without": ""}
        return {"share": None, "interval": None, "drawn": len(sample), "without": words}
    values = np.array([now[place] for place in sample], dtype=np.float64)
    own = None if units is None else units[sample]
    mean, variance, _ = unit_mean(values, own)
    value = (bad + others * mean) / n
    without = too_few("answers drawn at random", len(sample), min(FEWEST // 2, others)) or ""
    interval = None
    if not without:
        low, high = _interval(mean, variance, len(sample), others)
        interval = [round((bad + others * one) / n, 6) for one in (low, high)]
    told = {"share": round(value, 6), "interval": interval}
    return {**told, "drawn": len(sample), "without": without}


def _interval(share: float, variance: float, n: int, of: int) -> Interval:
    """Return the mid-P interval of a share of ``of`` answers, n of which were drawn: of as many
    independent draws as its variance over units is worth, and as draws without replacement save."""
    if n >= of:
        return share, share
    plain = share * (1 - share) / n
    design = max(1.0, variance / plain) if plain else 1.0
    worth = n / design / (1 - n / of)
    return binomial_interval(share * worth, worth)

"""The number of answers of each day, the groups that they are of, and the age of the last day.

Figures of quality say nothing about missing answers. So ``monitor`` also looks, each day, for fewer
answers than usual (:func:`compare_counts`), for a group that has vanished (:func:`find_absences`),
and for a last run that is too old (:func:`read_staleness`). A day is tested only against the days
before it, so its result never changes.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from statistics import fmean, median
from typing import Any, NamedTuple

from trustassay.statistics.distributions import incomplete_beta
from trustassay.text.numbers import amount

DAILY_LEVEL = 1e-4
"""The probability of a false alarm on one day, for the number of all answers and for each group."""
MIN_DAYS = 3
"""Days that are needed to know the usual number of answers."""
DAYS_FOR_WEEKDAYS = 14
"""Days from which each weekday has its own usual number, and its own level in a baseline."""
MIN_DAYS_OF_WEEKDAY = 2
"""Days of a weekday that are needed to know its own usual number."""
ASSUMED_SPREAD, ASSUMED_DAYS = 0.2, 8
"""The assumed variation of the number of answers from day to day beyond chance, as a share of the
mean; and the number of days that this assumption counts for. Measured with
``lab/benchmarks/volumes.py``: ``lab/results/volumes.json``."""
STALE_AFTER_GAPS = 3
"""The last run is stale after this multiple of the usual gap: a daily run may miss a weekend."""


ALARM_KINDS = (
    "undated",
    "left out",
    "copy",
    "several runs",
    "few answers",
    "vanished",
    "stale",
    "future",
)


class VolumeAlarm(NamedTuple):
    """An alarm about the number, the dates or the groups of answers."""

    kind: str
    """One of :data:`ALARM_KINDS`."""
    day: str
    """The day that it is about; empty where it holds until the folders change."""
    text: str
    """What is odd."""


class DayVolume(NamedTuple):
    """The number of answers of a day."""

    day: str
    """The date."""
    answers: int
    """The number of its answers."""
    runs: int
    """The number of its runs."""
    usual: float | None
    """The number expected from the days before it; ``None`` where these are too few."""
    chance: float | None
    """The probability of so few answers if nothing has changed; ``None`` as for ``usual``."""

    @property
    def is_low(self) -> bool:
        """Whether there are fewer answers than chance can explain."""
        return self.chance is not None and self.chance < DAILY_LEVEL


class Staleness(NamedTuple):
    """The age of the last run."""

    last: str
    """Its day; empty if there is no run."""
    age_days: int | None
    """Days from it until today; ``None`` if there is no run."""
    usual_gap_days: float | None
    """The median number of days between runs; ``None`` with fewer than two days of runs."""

    @property
    def is_in_future(self) -> bool:
        """Whether the last run is of a day after tomorrow; in some time zones it is tomorrow now.

        Such a run is an alarm: earlier runs would be left out, and none would be overdue until
        then.
        """
        return self.age_days is not None and self.age_days < -1

    @property
    def is_stale(self) -> bool:
        """Whether a run is overdue: :data:`STALE_AFTER_GAPS` usual gaps (or days) have passed."""
        usual = 1.0 if self.usual_gap_days is None else self.usual_gap_days
        return self.age_days is not None and self.age_days > STALE_AFTER_GAPS * usual

    def in_words(self) -> str:
        """Return a sentence with the day of the last run, and the usual gap."""
        if self.age_days is None:
            return "last run: unknown, since no run has a date"
        days = amount(abs(self.age_days), "day")
        age = f"{days} ago" if self.age_days >= 0 else f"{days} in the future"
        usual = ""
        if self.usual_gap_days is not None:
            gap = f"{self.usual_gap_days:g} day{'' if self.usual_gap_days == 1 else 's'}"
            usual = f"; usually {gap} between runs"
        return f"last run: {self.last}, {age}{usual}"


def count_answers(day: Mapping[str, Any]) -> Counter[str]:
    """Return the number of answers of each group, on a day of monitor's state.

    Each answer has one verdict per metric. With several metrics the largest count is the number of
    answers.
    """
    result = Counter[str]()
    for groups in day["said"].values():
        # `|=` of counters takes the maximum of each group
        result |= Counter({group: sum(verdicts.values()) for group, verdicts in groups.items()})
    return result


def compare_counts(
    counts: Sequence[int], weekdays: Sequence[int]
) -> list[tuple[float, float] | None]:
    """Return for each day the expected number of answers, and the probability of so few.

    Both come from the days before it; ``None`` where these are too few.

    y = 2 sqrt(n + 3/8) has a variance of 1 if n is a Poisson number (Anscombe 1948), and of
    1 + c^2 m if its mean m varies from day to day by the share c of itself. The variance is that of
    the days before, combined with c = :data:`ASSUMED_SPREAD` as if from :data:`ASSUMED_DAYS` days,
    and at least 1. The difference of a day from their mean is compared with Student's t. The
    probability is at least that of the exact test of Poisson numbers, because y is skewed where n
    is small. From :data:`DAYS_FOR_WEEKDAYS` days on the mean is that of the same weekday.

    Days with too few answers do not count as usual, so a lasting drop is an alarm on each of its
    days. The exception is a weekday that always was low.

    Args:
        counts: the number of answers of each day, in order.
        weekdays: the weekday of each day.
    """
    result = list[tuple[float, float] | None]()
    usual, low = list[tuple[int, int]](), list[tuple[int, int]]()
    for day, day_and_count in enumerate(zip(weekdays, counts, strict=True)):
        tested = None
        if day >= MIN_DAYS and usual:
            tested = _test_day(day_and_count, usual, low, by_weekday=day >= DAYS_FOR_WEEKDAYS)
        is_low = tested is not None and tested[1] < DAILY_LEVEL
        # Sorted at once: the next day is compared only with days that were not low.
        (low if is_low else usual).append(day_and_count)
        result.append(tested)
    return result


def _test_day(
    day: tuple[int, int],
    usual: Sequence[tuple[int, int]],
    low: Sequence[tuple[int, int]],
    *,
    by_weekday: bool,
) -> tuple[float, float]:
    """Return the usual number of answers, and the probability of as few as this day has.

    Args:
        day: the weekday and the number of answers.
        usual: the same of earlier days that were not low.
        low: the same of earlier days that were low.
        by_weekday: whether each weekday has its own usual number.
    """
    weekday, count = day
    groups = dict[int, list[int]]()
    for other, number in usual:
        groups.setdefault(other if by_weekday else 0, []).append(number)
    if by_weekday and len(groups.get(weekday, ())) < MIN_DAYS_OF_WEEKDAY:
        # A weekday without usual days, such as a Sunday that always was low, is compared with
        # itself.
        known_low = [number for other, number in low if other == weekday]
        groups[weekday] = groups.get(weekday, []) + known_low
        if len(groups[weekday]) < MIN_DAYS_OF_WEEKDAY:
            # still unknown: compare with all weekdays together
            by_weekday, groups = False, {0: [number for _, number in usual]}
    same = groups[weekday if by_weekday else 0]

    # step 2: the variance of the transformed numbers, shrunk towards the assumed variation
    means = {
        key: fmean(_stabilise(answers) for answers in values) for key, values in groups.items()
    }
    squares = sum(
        (_stabilise(answers) - means[key]) ** 2 for key in groups for answers in groups[key]
    )
    days = sum(len(values) for values in groups.values())
    freedom = ASSUMED_DAYS + days - len(groups)
    assumed = 1 + ASSUMED_SPREAD**2 * fmean(same)
    variance = max((ASSUMED_DAYS * assumed + squares) / freedom, 1.0)
    mean = means[weekday if by_weekday else 0]
    t = (mean - _stabilise(count)) / math.sqrt(variance * (1 + 1 / len(same)))
    # not fewer than usual
    if t <= 0:
        return fmean(same), 1.0
    # P(T > t) = I_x(v/2, 1/2) / 2 with x = v / (v + t^2)
    by_days = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    # Of Poisson numbers with one mean, the sum given, the last is binomial: P(X <= c) of
    # N = sum + c and p = 1 / (k + 1) is I_(1-p)(N - c, c + 1).
    share = len(same) / (len(same) + 1)
    by_chance = incomplete_beta(sum(same), count + 1, share) if sum(same) else 1.0
    return fmean(same), max(by_days, by_chance)


def _stabilise(count: int) -> float:
    return 2 * math.sqrt(count + 0.375)


def find_absences(days: Sequence[Mapping[str, int]], all_group: str) -> list[tuple[int, str, int]]:
    """Return the groups that have vanished.

    A group has vanished if it lacks answers for more days than ever before, and if so many answers
    without one of its own have a probability below :data:`DAILY_LEVEL`. Of the N answers from its
    first to its last day, x were its own. If nothing had changed, all x would be among the first N
    of N + n answers with the probability (N over x) / (N + n over x), as in Fisher's exact test.

    Args:
        days: the numbers of answers by group, of each day.
        all_group: the group of all answers.

    Returns:
        For each vanished group the day from which it is certain, the group, and the last day on
        which it had answers.
    """
    result = list[tuple[int, str, int]]()
    for group in sorted({name for day in days for name in day} - {all_group}):
        own_answers, until_last, since = 0, 0, 0
        last, longest, is_gone = -1, 0, False
        for place, day in enumerate(days):
            if count := day.get(group, 0):
                if last >= 0:
                    longest = max(longest, place - last - 1)
                own_answers, until_last, since = (
                    own_answers + count,
                    until_last + since + day[all_group],
                    0,
                )
                last, is_gone = place, False
                continue
            if last < 0:
                # the group has not appeared yet; answers before its first day do not count
                continue
            since += day[all_group]
            # A gap no longer than an earlier one is usual for this group.
            if is_gone or place - last <= longest:
                continue
            if _log_absence_chance(own_answers, until_last, since) < math.log(DAILY_LEVEL):
                is_gone = True
                result.append((place, group, last))
    return sorted(result)


def _log_absence_chance(own_answers: int, until_last: int, since: int) -> float:
    """Return the logarithm of (N over x) / (N + n over x)."""
    return (
        math.lgamma(until_last + 1)
        - math.lgamma(until_last - own_answers + 1)
        + math.lgamma(until_last + since - own_answers + 1)
        - math.lgamma(until_last + since + 1)
    )


def read_staleness(days: Sequence[str], today: date) -> Staleness:
    """Return the age of the last of some days, which are in order."""
    if not days:
        return Staleness("", None, None)
    dates = [date.fromisoformat(day) for day in days]
    gaps = [(dates[at] - dates[at - 1]).days for at in range(1, len(dates))]
    return Staleness(days[-1], (today - dates[-1]).days, float(median(gaps)) if gaps else None)


def read_volumes(days: Mapping[str, Mapping[str, Any]], all_group: str) -> list[DayVolume]:
    """Return the days of monitor's state, in order, with the number of answers of each."""
    counts = [count_answers(day)[all_group] for day in days.values()]
    weekdays = [date.fromisoformat(day).weekday() for day in days]
    return [
        DayVolume(name, count, len(day["runs"]), *(tested or (None, None)))
        for (name, day), count, tested in zip(
            days.items(), counts, compare_counts(counts, weekdays), strict=True
        )
    ]


def find_volume_alarms(
    days: Mapping[str, Mapping[str, Any]], volumes: Sequence[DayVolume], all_group: str
) -> Iterator[VolumeAlarm]:
    """Yield alarms about the answers of days, kind by kind, in the order of the days."""
    for entry in volumes:
        if entry.runs > 1:
            text = f"{entry.day} has {entry.runs} runs; all {entry.answers:,} answers count"
            yield VolumeAlarm("several runs", entry.day, text)
    for entry in volumes:
        if entry.is_low:
            text = (
                f"{entry.day} has {amount(entry.answers, 'answer')}; {entry.usual:,.0f} are usual"
            )
            yield VolumeAlarm("few answers", entry.day, text)
    groups = [count_answers(day) for day in days.values()]
    names = list(days)
    for place, group, last in find_absences(groups, all_group):
        # The number until the group vanished shows whether it matters.
        count = sum(day[group] for day in groups[: last + 1])
        text = f"{group} had {amount(count, 'answer')} until {names[last]}, and none since"
        yield VolumeAlarm("vanished", names[place], text)

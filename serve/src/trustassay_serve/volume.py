"""How many answers each day has, which groups they are of, and how old the last day is.

Figures of quality say nothing of answers that are missing. So ``monitor`` also looks, each day, for
fewer answers than usual (:func:`compare_counts`), for a group that has none any more
(:func:`find_absences`), and for a last run that is too old (:func:`read_staleness`). The tests know
the days before a day and nothing later, so that a day is judged once and for all.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from statistics import fmean, median
from typing import Any, NamedTuple

from trustassay.statistics.distributions import incomplete_beta
from trustassay.text.words import amount

DAILY_LEVEL = 1e-4
"""Probability of a false alarm of one day: of the number of all answers, and of each group."""
FEWEST_DAYS = 3
"""Days from which it is known how many answers are usual."""
WEEKS = 14
"""Days from which each weekday has a number of its own, and a baseline's weekdays their level."""
FEWEST_OF_WEEKDAY = 2
"""Days of a weekday from which its own number is known."""
ASSUMED_SPREAD, ASSUMED_DAYS = 0.2, 8
"""What numbers of answers are taken to differ by from day to day, beyond chance, as a share of
their mean; and the number of days as whose evidence this counts. Measured with
``benchmarks/volumes.py``: ``benchmarks/results/volumes.json``."""
STALE_AFTER = 3
"""Times the usual gap between two days of runs, after which the last run is stale: a daily run may
miss a weekend."""


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
    """Something about the number, the dates or the groups of answers that a person should look at.

    kind: one of :data:`ALARM_KINDS`. day: the day that it is about, empty where
    it holds until the folders change.
    """

    kind: str
    day: str
    text: str


class DayVolume(NamedTuple):
    """A day: the number of its answers and its runs.

    usual: the number of answers that the days before it let expect; ``None`` where these are too
    few. chance: the probability of so few answers if nothing changed.
    """

    day: str
    answers: int
    runs: int
    usual: float | None
    chance: float | None

    @property
    def is_low(self) -> bool:
        """Whether there are fewer answers than chance explains."""
        return self.chance is not None and self.chance < DAILY_LEVEL


class Staleness(NamedTuple):
    """How old the last run is. last: its day, empty without any. age_days: from it until today, and
    usual_gap_days: the median from one day of runs to the next; ``None`` where there is none."""

    last: str
    age_days: int | None
    usual_gap_days: float | None

    @property
    def is_in_future(self) -> bool:
        """Whether the last run is of a later day than tomorrow, which elsewhere has begun.

        Runs before it would be left out, and no run would be overdue until then.
        """
        return self.age_days is not None and self.age_days < -1

    @property
    def is_stale(self) -> bool:
        """Whether a run is overdue: :data:`STALE_AFTER` times the usual gap, or days, went by."""
        usual = 1.0 if self.usual_gap_days is None else self.usual_gap_days
        return self.age_days is not None and self.age_days > STALE_AFTER * usual

    def in_words(self) -> str:
        """Say when the last run was, and what is usual."""
        if self.age_days is None:
            return "last run: none has a date"
        days = amount(abs(self.age_days), "day")
        age = f"{days} ago" if self.age_days >= 0 else f"{days} from now"
        usual = ""
        if self.usual_gap_days is not None:
            gap = f"{self.usual_gap_days:g} day{'' if self.usual_gap_days == 1 else 's'}"
            usual = f"; the usual gap is {gap}"
        return f"last run: {self.last}, {age}{usual}"


def count_answers(day: Mapping[str, Any]) -> Counter[str]:
    """Return the number of answers of each group, of a day of monitor's state.

    Each answer has one verdict of each metric; with several metrics the largest count is that of
    the answers.
    """
    result = Counter[str]()
    for groups in day["said"].values():
        result |= Counter({group: sum(verdicts.values()) for group, verdicts in groups.items()})
    return result


def compare_counts(
    counts: Sequence[int], weekdays: Sequence[int]
) -> list[tuple[float, float] | None]:
    """Return for each day how many answers the days before it let expect, and the probability of as
    few as there are if nothing changed; ``None`` where the days before it are too few.

    y = 2 sqrt(n + 3/8) has a variance of 1 if n is a Poisson number (Anscombe 1948), and of
    1 + c^2 m if its mean m varies from day to day by the share c of itself. The variance is that of
    the days before, put together with c = :data:`ASSUMED_SPREAD` as of :data:`ASSUMED_DAYS` days,
    at least 1, and the difference of a day from their mean is compared with Student's t. The
    probability is not below that of the exact test of Poisson numbers, as y is skewed where n is
    small. From :data:`WEEKS` days on the mean is that of the same weekday.

    Days with too few answers are not among the usual ones, so what stays low is too low on each of
    its days; only a weekday that was never otherwise is known by them.
    """
    result = list[tuple[float, float] | None]()
    usual, low = list[tuple[int, int]](), list[tuple[int, int]]()
    for day, one in enumerate(zip(weekdays, counts, strict=True)):
        tested = None
        if day >= FEWEST_DAYS and usual:
            tested = _test_day(one, usual, low, by_weekday=day >= WEEKS)
        is_low = tested is not None and tested[1] < DAILY_LEVEL
        (low if is_low else usual).append(one)
        result.append(tested)
    return result


def _test_day(
    day: tuple[int, int],
    usual: Sequence[tuple[int, int]],
    low: Sequence[tuple[int, int]],
    *,
    by_weekday: bool,
) -> tuple[float, float]:
    """Return the usual number of answers and the probability of so few, of a day; days are pairs of
    weekday and number."""
    weekday, count = day
    groups = dict[int, list[int]]()
    for other, number in usual:
        groups.setdefault(other if by_weekday else 0, []).append(number)
    if by_weekday and len(groups.get(weekday, ())) < FEWEST_OF_WEEKDAY:
        known_low = [number for other, number in low if other == weekday]
        groups[weekday] = groups.get(weekday, []) + known_low
        if len(groups[weekday]) < FEWEST_OF_WEEKDAY:
            by_weekday, groups = False, {0: [number for _, number in usual]}
    same = groups[weekday if by_weekday else 0]

    means = {key: fmean(_root(one) for one in values) for key, values in groups.items()}
    squares = sum((_root(one) - means[key]) ** 2 for key in groups for one in groups[key])
    days = sum(len(values) for values in groups.values())
    freedom = ASSUMED_DAYS + days - len(groups)
    assumed = 1 + ASSUMED_SPREAD**2 * fmean(same)
    variance = max((ASSUMED_DAYS * assumed + squares) / freedom, 1.0)
    mean = means[weekday if by_weekday else 0]
    t = (mean - _root(count)) / math.sqrt(variance * (1 + 1 / len(same)))
    if t <= 0:
        return fmean(same), 1.0
    # P(T > t) = I_x(v/2, 1/2) / 2 with x = v / (v + t^2)
    by_days = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    # Of Poisson numbers with one mean, the sum given, the last is binomial: P(X <= c) of
    # N = sum + c and p = 1 / (k + 1) is I_(1-p)(N - c, c + 1).
    share = len(same) / (len(same) + 1)
    by_chance = incomplete_beta(sum(same), count + 1, share) if sum(same) else 1.0
    return fmean(same), max(by_days, by_chance)


def _root(count: int) -> float:
    return 2 * math.sqrt(count + 0.375)


def find_absences(days: Sequence[Mapping[str, int]], whole: str) -> list[tuple[int, str, int]]:
    """Return the groups that vanished: the day from which it is sure, the group, the last day on
    which it had answers.

    A group has vanished if it lacks answers for more days than ever before, and if as many answers
    without one of its own have a probability below :data:`DAILY_LEVEL`: of N answers from its first
    day to its last one x were its own. If it had not changed, all x would be among the first N of
    N + n answers by a chance of (N over x) / (N + n over x), as in Fisher's exact test.

    Args:
        days: the numbers of answers by group. whole: the group of all answers.
    """
    result = list[tuple[int, str, int]]()
    for group in sorted({name for day in days for name in day} - {whole}):
        own, until_last, since = 0, 0, 0
        last, longest, is_gone = -1, 0, False
        for place, day in enumerate(days):
            if count := day.get(group, 0):
                if last >= 0:
                    longest = max(longest, place - last - 1)
                own, until_last, since = own + count, until_last + since + day[whole], 0
                last, is_gone = place, False
                continue
            if last < 0:
                # a group is new on its first day; answers before say nothing of its share
                continue
            since += day[whole]
            if is_gone or place - last <= longest:
                continue
            if _log_chance(own, until_last, since) < math.log(DAILY_LEVEL):
                is_gone = True
                result.append((place, group, last))
    return sorted(result)


def _log_chance(own: int, until_last: int, since: int) -> float:
    """Return the logarithm of (N over x) / (N + n over x)."""
    return (
        math.lgamma(until_last + 1)
        - math.lgamma(until_last - own + 1)
        + math.lgamma(until_last + since - own + 1)
        - math.lgamma(until_last + since + 1)
    )


def read_staleness(days: Sequence[str], today: date) -> Staleness:
    """Return how old the last of some days is, given in their order."""
    if not days:
        return Staleness("", None, None)
    dates = [date.fromisoformat(day) for day in days]
    gaps = [(dates[at] - dates[at - 1]).days for at in range(1, len(dates))]
    return Staleness(days[-1], (today - dates[-1]).days, float(median(gaps)) if gaps else None)


def read_volumes(days: Mapping[str, Mapping[str, Any]], whole: str) -> list[DayVolume]:
    """Return the days of monitor's state, in their order, with the number of answers of each."""
    counts = [count_answers(day)[whole] for day in days.values()]
    weekdays = [date.fromisoformat(day).weekday() for day in days]
    return [
        DayVolume(name, count, len(day["runs"]), *(tested or (None, None)))
        for (name, day), count, tested in zip(
            days.items(), counts, compare_counts(counts, weekdays), strict=True
        )
    ]


def find_volume_alarms(
    days: Mapping[str, Mapping[str, Any]], volumes: Sequence[DayVolume], whole: str
) -> Iterator[VolumeAlarm]:
    """Yield what is odd about the answers of days, in the order of the days of each kind."""
    for one in volumes:
        if one.runs > 1:
            text = f"{one.day} has {one.runs} runs; all {one.answers:,} answers count"
            yield VolumeAlarm("several runs", one.day, text)
    for one in volumes:
        if one.is_low:
            text = f"{one.day} has {amount(one.answers, 'answer')}; {one.usual:,.0f} are usual"
            yield VolumeAlarm("few answers", one.day, text)
    groups = [count_answers(day) for day in days.values()]
    names = list(days)
    for place, group, last in find_absences(groups, whole):
        count = sum(day[group] for day in groups[: last + 1])
        text = f"{group} had {amount(count, 'answer')} until {names[last]}, and none since"
        yield VolumeAlarm("vanished", names[place], text)

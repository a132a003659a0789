"""How fast work goes and how long its rest takes, from the times at which steps were done.

Steps come in bursts (64 calls that return together), after a wait (a model that loads), and faster
and faster (connections that ramp up). So the rate is that of the later half of the steps, at most
of the last half minute; what was done before it, such as the wait, does not count. There is no
estimate before there is evidence, and none while the work still becomes faster.

Simulated in ``tests/core/test_remaining_time.py``: with a constant rate, a slow start, bursts, a
ramp and a resumed run the estimate is never more than three times the true rest.
"""

from bisect import bisect_right
from collections import deque
from typing import NamedTuple

WINDOW_S = 30.0
"""Seconds that the rate looks back at most, so that it follows an endpoint that slows down."""
MIN_RECORDS = 8
"""Records that it looks back at least: rounds of calls may take longer than the window."""
RECORD_S = 0.2
"""Seconds that one record covers. Calls that return together are one record: measured from the
first to the last of them, the rate would be that of the processor."""
MIN_EVIDENCE_S, MIN_STEPS = 2.0, 8
"""Seconds since the first step, and steps, without which there is no estimate."""
SLOW_EVIDENCE_S, MIN_SLOW_STEPS = 30.0, 3
"""The same for slow steps: after so many seconds a few steps are enough."""
SPEEDING_UP = 1.8
"""Growth of the rate, from the steps before the later half to these, with which the work is still
becoming faster: while connections ramp up, it doubles at least."""


class _Record(NamedTuple):
    """Steps that were done at about the same time."""

    first_at: float
    """When the first of them was done."""
    at: float
    """When the last of them was done."""
    done: int
    """Steps done by then."""


class RemainingTime:
    """Estimates the rate of steps, and the time that the rest of them takes.

    Args:
        now: the time at which the work begins; all times are of the same clock, in seconds.
        done: steps that were done before.
    """

    def __init__(self, now: float, done: int = 0) -> None:
        self._done_before = done
        self._records = deque([_Record(now, now, done)])
        self._first_step_at: float | None = None
        self._is_steady = False

    def record(self, done: int, now: float) -> None:
        """Record that ``done`` steps are done, those from before included."""
        last = self._records[-1]
        if done == last.done:
            return
        if self._first_step_at is None:
            self._first_step_at = now
        if len(self._records) > 1 and now - last.first_at < RECORD_S:
            self._records[-1] = _Record(last.first_at, now, done)
            return
        self._records.append(_Record(now, now, done))
        # What the rate cannot look back to any more.
        while len(self._records) > MIN_RECORDS + 1 and self._records[1].at <= now - WINDOW_S:
            self._records.popleft()

    def rate(self, now: float) -> float | None:
        """Return the steps per second; ``None`` before there is evidence."""
        # A copy, since a bar is drawn by another thread.
        records = tuple(self._records)
        new_steps = records[-1].done - self._done_before
        seconds = now - self._first_step_at if self._first_step_at is not None else 0.0
        is_known = seconds >= MIN_EVIDENCE_S and new_steps >= MIN_STEPS
        if not is_known and (seconds < SLOW_EVIDENCE_S or new_steps < MIN_SLOW_STEPS):
            return None
        base = records[_find_base(records, records[-1].done - new_steps / 2)]
        return (records[-1].done - base.done) / (now - base.at)

    def seconds_left(self, total: int, now: float) -> float | None:
        """Return the seconds until ``total`` steps are done; ``None`` where nobody can know."""
        rate = self.rate(now)
        # Once it was steady there is always an estimate: a line that comes and goes is no help.
        self._is_steady = self._is_steady or (rate is not None and not self._is_speeding_up(now))
        if not rate or not self._is_steady:
            return None
        return max(0, total - self._records[-1].done) / rate

    def _is_speeding_up(self, now: float) -> bool:
        """Whether the later half of the steps was much faster than those before it."""
        records = tuple(self._records)
        # Of calls that return together perhaps only the first have been counted yet.
        is_counting = now - records[-1].first_at < RECORD_S
        if is_counting:
            records = records[:-1]
        last, half = records[-1], (records[-1].done - self._done_before) / 2
        place = _find_base(records, last.done - half)
        if place == 0:
            return is_counting
        base = records[place]
        before = records[_find_base(records[:place], base.done - half / 2)]
        # Up to the last step, not up to now: a pause between two rounds is no slowdown. Multiplied
        # out, as the first step may be done at the time at which the work begins.
        steps, seconds = last.done - base.done, last.at - base.at
        steps_before, seconds_before = base.done - before.done, base.at - before.at
        return steps * seconds_before >= SPEEDING_UP * steps_before * seconds


def _find_base(records: tuple[_Record, ...], done: float) -> int:
    """Return the place of the last record with at most so many steps, or else of the first."""
    return max(0, bisect_right(records, done, key=lambda record: record.done) - 1)


def describe_rate(rate: float) -> str:
    """Return a rate in words; a slow one per minute, since 0.0/s says nothing."""
    return f"{rate:.1f}/s" if rate >= 0.1 else f"{60 * rate:.1f}/min"


def describe_seconds_left(seconds: float) -> str:
    """Return a remaining time in words, no more exact than it is known."""
    if seconds < 60:
        return "less than a minute left"
    minutes = max(1, round(seconds / 60))
    return f"about {minutes} min left" if minutes < 90 else f"about {round(minutes / 60)} h left"

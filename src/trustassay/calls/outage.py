"""Detects that an endpoint is down, as opposed to single calls that fail, and paces the probes."""

import math
from collections import Counter
from dataclasses import dataclass

from trustassay.errors import CallError

OUTAGE_FAILURES = 5
"""Failures without a reply between them that open an outage.

Also the number of different calls that must have failed in it before the endpoint counts as gone.
"""
SUSPECT_FAILURES = 2
"""Failures of a call, while others were answered, from which on the call itself may be at fault."""
PROBE_S, PROBE_RISE, PROBE_MAX_S = 0.2, 1.3, 2.0
"""Seconds until the first probe, their factor from probe to probe, and their maximum."""
OBEYED_RETRY_AFTER_S = 1.0
"""Seconds of a ``Retry-After`` from which on all calls obey it.

A shorter one is often the endpoint's rounding up to a second.
"""
UNSEEN_PATIENCE_S = 10.0
"""Seconds of patience with an address that has never answered: it is probably wrong."""
COMPLAINTS_PATIENCE_FACTOR = 2
"""Factor of the patience with complaints (429): many limits are for a minute."""


@dataclass(eq=False, slots=True)
class PendingCall:
    """The state of a call while it waits or is tried."""

    tokens: int
    """Estimated tokens."""
    tries: int = 0
    """Failed tries that count; those in an outage do not."""
    refused: int = 0
    """Complaints (429) that it received."""
    turn: int = 0
    """Its number among all calls that left."""
    row: int = -1
    """Number of the row of failures during which it last left."""

    @property
    def tried(self) -> bool:
        """Whether the call has left at least once."""
        return self.deadline < math.inf

    deadline: float = math.inf
    """When to stop trying, on :meth:`Outage.clock`."""
    began: float = 0.0
    """When its last try began."""


class Outage:
    """Failures without a reply between them: first a row of failures, from the fifth on an outage.

    During an outage one call at a time probes, and failures use up no tries; the tries of the row
    are given back. Another call makes the next probe, so that a call which always fails cannot keep
    the others waiting. A reply to a call that began in the outage ends it.

    A row opens no outage if all its calls had failed twice before while others were answered: they
    may be at fault themselves. Complaints (429) also form a row, except those of calls that were
    already in progress when the first complaint came. If there are only complaints, probes do not
    wait for each other, since a reply may take long.
    """

    def __init__(self, patience_s: float, deadline_s: float) -> None:
        """Start without failures.

        Args:
            patience_s: seconds for which an outage is waited out.
            deadline_s: seconds, in all, by which an outage may be longer because the endpoint asks
                for it.
        """
        self._patience_s, self._deadline_s = patience_s, deadline_s
        self._granted_delay_s = 0.0
        self._row: Counter[PendingCall] = Counter()
        self._failed: set[PendingCall] = set()
        self._failures_in_row = self._pending_in_row = self._row_number = 0
        self._began = self._first_at = 0.0
        self._opened_at: float | None = None
        self._last = self._last_before = 0
        self._interval_s = PROBE_S
        self._next = 0.0
        self._probe: PendingCall | None = None
        self.complaints_only = True
        """Whether the endpoint answers, but only with complaints."""
        self._past_s = 0.0
        self._has_answered = False

    @property
    def open(self) -> bool:
        """Whether there is an outage."""
        return self._opened_at is not None

    def clock(self, now: float) -> float:
        """Return the time without the time of outages."""
        running_s = 0.0 if self._opened_at is None else now - self._opened_at
        return now - self._past_s - running_s

    def wait_s(self, now: float) -> float:
        """Return the seconds until a call may leave; infinite while a probe is on its way."""
        if not self.open:
            return 0.0
        if self._probe and not self.complaints_only:
            return math.inf
        return max(0.0, self._next - now)

    def record_start(self, call: PendingCall, now: float) -> None:
        """Record that a call leaves."""
        call.row = self._row_number
        self._last = call.turn
        self._pending_in_row += 1
        if self.open:
            self._probe = call
            self._next = now + self._interval_s

    def record_end(self, call: PendingCall) -> None:
        """Record that a call has ended, with a reply or without."""
        if self._probe is call:
            self._probe = None
        # Only calls of this row count: one that left before it says nothing about it.
        self._pending_in_row -= call.row == self._row_number

    def record_reply(self, call: PendingCall, now: float) -> None:
        """Record a reply; one that refuses the request counts, too."""
        self._has_answered = True
        # A late reply to a call from before the outage does not end it. Complaints are different:
        # there the endpoint works.
        if self._opened_at is None or self._is_probe(call) or self.complaints_only:
            if self._opened_at is not None:
                self._past_s += now - self._opened_at
            self._opened_at = self._probe = None
            self._row.clear()
            self._failed.clear()
            self._failures_in_row = 0
        else:
            # It answered something, so patience starts anew.
            self._began = now

    def record_failure(self, call: PendingCall, error: CallError, now: float) -> None:
        """Record a temporary failure."""
        complaint = error.kind == "limited"
        # Any response shows that the address exists.
        self._has_answered |= error.kind not in ("connection", "timeout")
        # The first failure of a row.
        if not self._failed:
            self._began, self._first_at = call.began, now
            self.complaints_only = True
            self._row_number, self._pending_in_row = self._row_number + 1, 0
        self._failed.add(call)
        self.complaints_only &= complaint
        if self.open:
            if self._is_probe(call):
                self._interval_s = min(PROBE_MAX_S, self._interval_s * PROBE_RISE)
                self._delay_probe(error, now)
            return
        call.tries += 1
        self._row[call] += 1
        # Calls sent before the first complaint could not know of the limit.
        self._failures_in_row += not complaint or call.began >= self._first_at
        # With complaints only, most calls in progress may still succeed: wait for their results.
        waited_for = self._pending_in_row if self.complaints_only else 0
        # The row must outnumber the calls that may still be answered.
        in_a_row = self._failures_in_row >= max(OUTAGE_FAILURES, OUTAGE_FAILURES * (waited_for - 1))
        # Failures before this row: those in it may all be the endpoint's fault.
        suspects = all(
            member.tries - failed >= SUSPECT_FAILURES for member, failed in self._row.items()
        )
        if in_a_row and not suspects:
            self._start_outage(error, now)

    def is_patience_over(self, call: PendingCall, error: CallError, now: float) -> bool:
        """Whether patience with the outage ends with the failure of this call."""
        if not self._is_probe(call):
            return False
        return now - self._began >= self.patience_s(error)

    def patience_s(self, error: CallError) -> float:
        """Return for how many seconds failures of this kind are waited out."""
        if error.kind == "connection" and not self._has_answered:
            return min(self._patience_s, UNSEEN_PATIENCE_S)
        return self._patience_s * (COMPLAINTS_PATIENCE_FACTOR if self.complaints_only else 1)

    @property
    def is_shared_by_many(self) -> bool:
        """Whether so many calls have failed that none of them can be the cause."""
        return len(self._failed) >= OUTAGE_FAILURES

    def _is_probe(self, call: PendingCall) -> bool:
        """Whether a call left during the outage, and not before it."""
        return self.open and call.turn > self._last_before

    def _start_outage(self, error: CallError, now: float) -> None:
        """Start an outage; give back the tries that its row has cost."""
        self._opened_at, self._interval_s, self._granted_delay_s = now, PROBE_S, 0.0
        self._last_before = self._last
        for call, failed in self._row.items():
            call.tries -= failed
        # From here on failures cost no tries, see failed().
        self._row.clear()
        self._delay_probe(error, now)

    def _delay_probe(self, error: CallError, now: float) -> None:
        """Delay the next probe, for longer if the endpoint asks for it."""
        wait_s = self._interval_s
        after_s = error.retry_after_s or 0.0
        if after_s > OBEYED_RETRY_AFTER_S:
            wait_s = after_s
            asked_s = min(after_s, self._deadline_s - self._granted_delay_s)
            self._granted_delay_s += asked_s
            self._began += asked_s  # as it asks, so no time to be impatient about
        self._next = max(self._next, now + wait_s)

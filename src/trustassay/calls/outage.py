"""Tells an endpoint that is out from calls that fail by chance, and lets one call at a time ask."""

import math
from collections import Counter
from dataclasses import dataclass

from trustassay.errors import CallError

IN_A_ROW = 5
"""Failures without a reply between them that open an outage; and calls that must have failed in
it before an endpoint counts as gone."""
SUSPECT = 2
"""A call that failed so often while others were answered may be at fault itself."""
PROBE_S, PROBE_RISE, PROBE_MOST_S = 0.2, 1.3, 2.0
"""Seconds until the first probe; how they grow from probe to probe, and up to what."""
TAKEN_AT_ITS_WORD_S = 1.0
"""A longer ``Retry-After`` is kept by all. A shorter one is often rounded up to a second."""
UNSEEN_S = 10.0
"""Patience with an address that has never answered: it is probably wrong."""
COMPLAINTS_PATIENCE = 2
"""Complaints are waited out for so many times longer: limits are often for a minute."""


@dataclass(eq=False, slots=True)
class Call:
    """What is known of a call while it waits or is tried.

    tries: those that count. refused: its complaints. deadline: on :meth:`Outage.clock`.
    began: when its last try did. turn: its number among all that left. row: the number of the row
    of failures in which it left.
    """

    tokens: int
    tries: int = 0
    refused: int = 0
    turn: int = 0
    row: int = -1

    @property
    def tried(self) -> bool:
        """Whether it has left at least once."""
        return self.deadline < math.inf

    deadline: float = math.inf
    began: float = 0.0


class Outage:
    """Failures without a reply between them: first a row of them, from the fifth on an outage.

    While it lasts one call at a time probes, and failures use up no tries; those of the row are
    given back. Another call makes the next probe, so that one which always fails cannot
    keep the others waiting. A reply to a call that began in the outage ends it.

    A row that consists of calls that failed twice before, while others were answered, opens no
    outage: they may be at fault themselves. Complaints (429) are a row, too, save those of calls
    that were already in progress when the first one came. If there is nothing but complaints,
    probes go out without waiting for each other, since a reply may take long.
    """

    def __init__(self, patience_s: float, deadline_s: float) -> None:
        """``deadline_s``: so long in all an outage may go on because the endpoint asks for it."""
        self._patience_s, self._deadline_s = patience_s, deadline_s
        self._asked_s = 0.0
        self._row: Counter[Call] = Counter()
        self._failed: set[Call] = set()
        self._counted = self._pending = self._number = 0
        self._began = self._first_at = 0.0
        self._opened_at: float | None = None
        self._last = self._last_before = 0
        self._interval_s = PROBE_S
        self._next = 0.0
        self._probe: Call | None = None
        self.complaints_only = True
        """Whether the endpoint answers, but only with complaints."""
        self._past_s = 0.0
        self._seen = False

    @property
    def open(self) -> bool:
        """Whether there is an outage."""
        return self._opened_at is not None

    def clock(self, now: float) -> float:
        """Return the time without that of outages."""
        running_s = 0.0 if self._opened_at is None else now - self._opened_at
        return now - self._past_s - running_s

    def wait_s(self, now: float) -> float:
        """Return the seconds until a call may go out; infinite while a probe is awaited."""
        if not self.open:
            return 0.0
        if self._probe and not self.complaints_only:
            return math.inf
        return max(0.0, self._next - now)

    def let_out(self, call: Call, now: float) -> None:
        """Say that a call goes out."""
        call.row = self._number
        self._last = call.turn
        self._pending += 1
        if self.open:
            self._probe = call
            self._next = now + self._interval_s

    def left(self, call: Call) -> None:
        """Say that a call is over, however it ended."""
        if self._probe is call:
            self._probe = None
        self._pending -= call.row == self._number

    def replied(self, call: Call, now: float) -> None:
        """Take a reply into account, also one that refuses the request."""
        self._seen = True
        if self._opened_at is None or self._probing(call) or self.complaints_only:
            if self._opened_at is not None:
                self._past_s += now - self._opened_at
            self._opened_at = self._probe = None
            self._row.clear()
            self._failed.clear()
            self._counted = 0
        else:
            self._began = now

    def failed(self, call: Call, error: CallError, now: float) -> None:
        """Take a failure that may pass into account."""
        complaint = error.kind == "limited"
        self._seen |= error.kind not in ("connection", "timeout")
        if not self._failed:
            self._began, self._first_at = call.began, now
            self.complaints_only = True
            self._number, self._pending = self._number + 1, 0
        self._failed.add(call)
        self.complaints_only &= complaint
        if self.open:
            if self._probing(call):
                self._interval_s = min(PROBE_MOST_S, self._interval_s * PROBE_RISE)
                self._hold(error, now)
            return
        call.tries += 1
        self._row[call] += 1
        self._counted += not complaint or call.began >= self._first_at
        waited_for = self._pending if self.complaints_only else 0
        in_a_row = self._counted >= max(IN_A_ROW, IN_A_ROW * (waited_for - 1))
        suspects = all(one.tries - failed >= SUSPECT for one, failed in self._row.items())
        if in_a_row and not suspects:
            self._open(error, now)

    def over(self, call: Call, error: CallError, now: float) -> bool:
        """Whether patience with the outage has ended with the failure of this call."""
        if not self._probing(call):
            return False
        return now - self._began >= self.patience_s(error)

    def patience_s(self, error: CallError) -> float:
        """Return how long failures are waited out."""
        if error.kind == "connection" and not self._seen:
            return min(self._patience_s, UNSEEN_S)
        return self._patience_s * (COMPLAINTS_PATIENCE if self.complaints_only else 1)

    @property
    def of_many(self) -> bool:
        """Whether so many calls have failed that it is not the fault of one of them."""
        return len(self._failed) >= IN_A_ROW

    def _probing(self, call: Call) -> bool:
        """Whether a call left in the outage, and not before it."""
        return self.open and call.turn > self._last_before

    def _open(self, error: CallError, now: float) -> None:
        self._opened_at, self._interval_s, self._asked_s = now, PROBE_S, 0.0
        self._last_before = self._last
        for call, failed in self._row.items():
            call.tries -= failed
        self._row.clear()
        self._hold(error, now)

    def _hold(self, error: CallError, now: float) -> None:
        wait_s = self._interval_s
        after_s = error.retry_after_s or 0.0
        if after_s > TAKEN_AT_ITS_WORD_S:
            wait_s = after_s
            asked_s = min(after_s, self._deadline_s - self._asked_s)
            self._asked_s += asked_s
            self._began += asked_s  # as it asks, so no time to be impatient about
        self._next = max(self._next, now + wait_s)

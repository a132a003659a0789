"""How many calls a second and tokens a minute an endpoint takes.

A limit that is stated is kept by a :class:`Meter`, one that is not is learnt from complaints (429)
by a :class:`Pace`; several processes that call one endpoint keep its limits together by
:class:`~trustassay.calls.leases.Leases`.
"""

from dataclasses import dataclass


class Meter:
    """A rate per minute: a level that fills up and may be overdrawn by the last call.

    At most one second's worth is saved up, so that the first minute is as even as the others.
    """

    def __init__(self, per_minute: float, now: float) -> None:
        self.rate = per_minute / 60  # a second
        self._most = max(self.rate, 1.0)
        self._level, self._at = self._most, now

    def wait_s(self, now: float) -> float:
        """Return the seconds until the level is above zero."""
        self._fill(now)
        return 0.0 if self._level >= 1e-9 else (1e-9 - self._level) / self.rate

    def take(self, amount: float, now: float) -> None:
        """Take ``amount``; a negative one gives back."""
        self._fill(now)
        self._level = min(self._most, self._level - amount)

    def _fill(self, now: float) -> None:
        self._level = min(self._most, self._level + (now - self._at) * self.rate)
        self._at = now


ROUND = 40
"""The fewest replies and complaints whose share tells of a limit."""
TOO_MANY, TOO_MANY_FASTER, SURE = 0.15, 0.1, 0.2
"""Shares of complaints above the usual one that tell of a limit; the second at a faster rate. Up to
the third it takes two windows to believe them."""
FIRST_PART = 0.25
"""The part of a rate with which the search for a limit begins, where nearly all was refused."""
LATENCY_S, LATENCY_WEIGHT = 1.0, 1 / 16
"""The latency to expect before the first reply, and the weight of a new one in the mean."""
WINDOW_S, WINDOW = 0.5, 20
"""Seconds and calls that a window has at least."""
USED = 0.85
"""Only a window in which so much of its rate was used can tell that more is possible."""
KEPT = 3
"""Windows at one rate before a faster one is tried."""
FASTER_FIRST, FASTER = 2.0, 1.25
"""How much faster is tried, while the limit is searched for or in doubt, and else."""
WORTH_S = 1.0
"""A faster rate is tried while at least so many seconds' worth of calls wait."""
IN_VAIN, CALM = 4, 0.05
"""So many windows that slow down, with none between them whose share is as low as this above the
usual one, tell that the complaints that still come are usual."""
USUAL_WEIGHT, USUAL_MOST = 0.1, 0.5
"""The weight of a lower share in the usual one, and the most that this can be."""
SLOWEST = 0.02
"""The lowest rate, in calls a second."""
CATCH_UP_S = 0.05
"""Calls that are late by less than this may be made up for together."""
RUN_UP, RUN_UP_MOST = 2, 8
"""Distances to leave before a call that was refused three times; doubled from then on."""


@dataclass(slots=True)
class _Window:
    """Calls that started at one rate, ``faster`` than the one that is kept, and those refused."""

    first: int
    faster: float = 1.0
    sent: int = 0
    refused: int = 0
    began: float = 0.0
    ended: float | None = None
    before: "_Window | None" = None  # at the same rate, if its share was doubted

    @property
    def share(self) -> float:
        sent, refused = self.sent, self.refused
        if self.before:
            sent, refused = sent + self.before.sent, refused + self.before.refused
        return refused / max(1, sent)

    @property
    def rate(self) -> float:
        return self.sent / max(1e-9, (self.ended or self.began) - self.began)

    @property
    def full(self) -> bool:
        return self.refused >= WINDOW and self.share > 0.5

    def holds(self, turn: int) -> bool:
        return self.first < turn <= self.first + self.sent


class Pace:
    """Calls at full speed until complaints (429) tell of a limit, then about as fast as that.

    Complaints come from a limit, or by chance from a busy endpoint. At full speed nothing changes
    while their share is below 15 per cent: their own calls are tried again, and that is all. A
    higher share tells of a limit. From then on calls start at even distances, and the rate is
    learnt in windows of half a second, or of twenty calls where that takes longer. The first one
    is slow, and each that is let in is followed by one twice as fast. A window in which too many
    were refused tells the limit: as many calls as were let in. That rate is kept for three windows,
    then one is a quarter faster. If that is also accepted, its rate is kept, and an even faster one
    is tried at once, so that a rising limit is followed; if not, it shows the limit again.

    Where a kept rate is refused again, the limit is in doubt, and twice the rate is tried instead
    of a quarter more. Where four windows have slowed down and not one was calm, complaints have
    nothing to do with the rate: calls go at full speed again, and only complaints beyond that share
    count.

    A limit of tokens refuses the large calls first. So a call that was refused three times gets a
    longer distance from the one before it, in which the limit recovers.
    """

    def __init__(self, most: int, now: float) -> None:
        """``most``: calls in progress at once."""
        self._most = most
        self.rate: float | None = None  # calls a second; None is full speed
        self._latency_s, self._known = LATENCY_S, False
        self._refusal_s = 0.0
        self._next = self._started_at = now
        self._turns = self._waiting = 0
        self._round = self._replies = self._complaints = 0
        self._window = _Window(0)
        self._searching = False
        self._kept = 0
        self._usual = 0.0
        self._in_vain: list[_Window] = []

    def wait_s(self, refused: int, now: float) -> float:
        """Return the seconds until a call may start that was refused so many times."""
        if self.rate is None:
            return 0.0
        start = self._next
        if refused > 2:
            run_up = min(RUN_UP_MOST, RUN_UP ** (refused - 2))
            start = max(start, self._started_at + run_up / self.rate)
        return start - now

    def take(self, waiting: int, now: float) -> int:
        """Say that a call starts while so many others wait; return its number."""
        self._turns += 1
        self._started_at, self._waiting = now, waiting
        if self.rate is not None:
            self._close_window(now)
        if self.rate is not None:
            if self._window.ended is None:
                if self._window.sent == 0:
                    self._window.began, self._window.first = now, self._turns - 1
                self._window.sent += 1
            if not self._worth_trying:
                self._window.faster = 1.0
            distance_s = 1 / (self.rate * self._window.faster)
            self._next = max(self._next, now - max(CATCH_UP_S, distance_s)) + distance_s
        return self._turns

    def replied(self, turn: int, latency_s: float) -> None:
        """Take a reply into account."""
        weight = LATENCY_WEIGHT if self._known else 1.0
        self._latency_s += weight * (max(1e-6, latency_s) - self._latency_s)
        if self.rate is None:
            self._replies += turn > self._round
            self._end_round()
        elif not self._known:  # the search began without a latency
            self.rate = max(self.rate, self._first_rate)
        self._known = True

    def complained(self, turn: int, latency_s: float) -> None:
        """Take a complaint into account."""
        self._refusal_s = max(latency_s, 0.9 * self._refusal_s)
        if self.rate is None:
            self._complaints += turn > self._round
            self._end_round()
        elif self._window.holds(turn):
            self._window.refused += 1

    def stopped(self) -> None:
        """Say that all was refused for a while, which is over."""
        if self.rate is None:
            self._search(self._first_rate)
        elif self._window.refused:  # those refused before its first call say nothing of this rate
            self._search(self.rate / 2)

    @property
    def _first_rate(self) -> float:
        return self._most / self._latency_s * FIRST_PART

    @property
    def _faster(self) -> float:
        """How much faster to try: more where slowing down was in vain, and the limit uncertain."""
        return FASTER_FIRST if self._searching or self._in_vain else FASTER

    @property
    def _worth_trying(self) -> bool:
        return self.rate is not None and self._waiting > WORTH_S * self.rate

    def _end_round(self) -> None:
        """Begin to search for a limit where too many calls at full speed were refused."""
        least = max(ROUND, self._most)
        sent = max(least, self._turns - self._round)
        if self._complaints > (TOO_MANY + self._usual) * sent:
            self._search(self._first_rate)
        elif self._replies + self._complaints >= least:
            self._begin_round()

    def _begin_round(self) -> None:
        self._round, self._replies, self._complaints = self._turns, 0, 0

    def _search(self, rate: float) -> None:
        self.rate = max(SLOWEST, rate)
        self._searching = True
        self._begin_window(kept=1)

    def _begin_window(self, kept: int, faster: float = 1.0) -> None:
        self._window, self._kept = _Window(self._turns, faster), kept

    def _close_window(self, now: float) -> None:
        """End the window if it is long enough; learn from it when all its refusals have come."""
        window = self._window
        if window.ended is None:
            long_enough = window.sent >= WINDOW and now - window.began >= WINDOW_S
            window.ended = now if long_enough or window.full else None
        if window.ended is not None and now >= window.ended + self._refusal_s:
            too_many = TOO_MANY if window.faster == 1.0 else TOO_MANY_FASTER
            if window.share <= self._usual + too_many:
                self._keep_up(window)
            elif window.before or window.share > self._usual + SURE:
                self._slow_down(window)
            else:
                self._window = _Window(self._turns, window.faster, before=window)

    def _keep_up(self, window: _Window) -> None:
        """Keep the rate of a window that was let in, and see whether to try a faster one."""
        assert self.rate is not None
        if window.share <= self._usual + CALM:
            self._in_vain.clear()
        self._usual += USUAL_WEIGHT * min(0.0, window.share - self._usual)
        used = window.rate >= USED * self.rate * window.faster
        if used:
            self.rate *= window.faster
        faster = self._kept <= 1 or (window.faster > 1.0 and used)
        if faster and self._worth_trying:
            self._begin_window(KEPT, self._faster)
        else:
            self._begin_window(self._kept - 1)

    def _slow_down(self, window: _Window) -> None:
        """Go on as fast as calls were let in; or at full speed, where slowing down was in vain."""
        assert self.rate is not None
        if window.faster == 1.0:
            self._in_vain.append(window)
        if len(self._in_vain) == IN_VAIN:
            share = sum(window.share for window in self._in_vain) / IN_VAIN
            self._usual = min(USUAL_MOST, share)
            self._in_vain.clear()
            self.rate = None
            self._begin_round()
            return
        part = min(1.0, (1 - window.share) / (1 - self._usual))
        if part < FIRST_PART:  # too few were let in to tell how many could be
            self._search(FIRST_PART * self.rate)
            return
        more = part * window.faster
        self.rate = max(SLOWEST, more * self.rate)
        self._searching = False
        worth = self._in_vain and more > FASTER and self._worth_trying
        self._begin_window(KEPT, self._faster if worth else 1.0)

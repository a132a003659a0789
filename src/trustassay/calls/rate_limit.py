"""The rate of calls and of tokens that an endpoint accepts.

A :class:`RateMeter` keeps a limit that the user states. A :class:`Pace` learns an unstated limit
from complaints (429). Processes that call one endpoint keep its limits together by
:class:`~trustassay.calls.leases.Leases`.
"""

from dataclasses import dataclass

from trustassay.core.capabilities import EndpointLimits


class RateMeter:
    """A rate per minute: a level that fills up, and that the last call may overdraw.

    At most one second's worth is saved up, so that the first minute is as even as later ones.
    """

    def __init__(self, per_minute: float, now: float) -> None:
        self.rate = per_minute / 60  # a second
        self._max_at_once = max(self.rate, 1.0)
        self._level, self._at = self._max_at_once, now

    def wait_s(self, now: float) -> float:
        """Return the seconds until the level is above zero."""
        self._fill(now)
        # The tiny threshold keeps rounding from returning a wait of 0 for ever.
        return 0.0 if self._level >= 1e-9 else (1e-9 - self._level) / self.rate

    def take(self, amount: float, now: float) -> None:
        """Take an amount at the time ``now``; a negative amount is given back."""
        self._fill(now)
        self._level = min(self._max_at_once, self._level - amount)

    def _fill(self, now: float) -> None:
        self._level = min(self._max_at_once, self._level + (now - self._at) * self.rate)
        self._at = now


class RateMeters:
    """The rates that the user states for one endpoint: of requests and of tokens."""

    def __init__(self, limits: EndpointLimits, now: float) -> None:
        rates = (limits.requests_per_minute, limits.tokens_per_minute)
        self.requests, self.tokens = (RateMeter(rate, now) if rate else None for rate in rates)

    def wait_s(self, now: float) -> float:
        """Return the seconds until both levels are above zero."""
        meters = filter(None, (self.requests, self.tokens))
        return max((meter.wait_s(now) for meter in meters), default=0.0)

    def take_request(self, now: float) -> None:
        """Take one request."""
        if self.requests:
            self.requests.take(1, now)

    def take_tokens(self, tokens: float, now: float) -> None:
        """Take tokens; a negative number is given back."""
        if self.tokens:
            self.tokens.take(tokens, now)


MIN_ROUND_CALLS = 40
"""Fewest replies and complaints whose share of complaints can show a limit."""
TOO_MANY_SHARE, TOO_MANY_SHARE_FASTER, CERTAIN_SHARE = 0.15, 0.1, 0.2
"""Shares of complaints, above the usual share, that show a limit; the second at a faster rate.

Below the third, two windows in a row must show it.
"""
FIRST_RATE_FACTOR = 0.25
"""Factor of the rate with which the search for a limit begins, after nearly all was refused."""
LATENCY_S, LATENCY_WEIGHT = 1.0, 1 / 16
"""Seconds of latency to expect before the first reply; weight of a new latency in the mean."""
WINDOW_S, WINDOW_CALLS = 0.5, 20
"""Seconds, and calls, that a window lasts at least."""
MIN_USED_SHARE = 0.85
"""Share of its rate that a window must have used to show that a higher rate is possible."""
WINDOWS_BEFORE_FASTER = 3
"""Windows at one rate before a faster one is tried."""
SEARCH_FACTOR, TRIAL_FACTOR = 2.0, 1.25
"""Factors of the next rate to try: while the limit is searched for or in doubt, and otherwise."""
MIN_WAITING_S = 1.0
"""A faster rate is tried only if the waiting calls take at least so many seconds at this rate."""
WINDOWS_IN_VAIN, CALM_SHARE = 4, 0.05
"""Slowdowns without a calm window after which the remaining complaints count as usual.

A window whose share of complaints is at most the second number above the usual share is calm, and
starts the count again.
"""
USUAL_WEIGHT, USUAL_SHARE_MAX = 0.1, 0.5
"""Weight of a lower share of complaints in the usual share, and the maximum of the usual share."""
LOWEST_RATE = 0.02
"""The lowest rate, in calls a second."""
CATCH_UP_S = 0.05
"""Seconds by which calls may be late and still be made up for at once."""
RUN_UP_CALLS, RUN_UP_MAX_CALLS = 2, 8
"""Distance before a call that was refused three times, in calls, and its maximum.

It doubles with each further refusal.
"""


@dataclass(slots=True)
class _Window:
    """Calls that started at one rate, and how many of them were refused."""

    first: int
    """Number of the last call before the window."""
    faster: float = 1.0
    """Factor of the kept rate at which the calls started."""
    sent: int = 0
    """Calls that started."""
    refused: int = 0
    """Calls that were refused."""
    began: float = 0.0
    """When the first call started."""
    ended: float | None = None
    """When the window ended; ``None`` while it is open."""
    before: "_Window | None" = None  # at the same rate, if its share was doubted
    """The window before it at the same rate, if its share was in doubt."""

    @property
    def share(self) -> float:
        """Share of refused calls, together with the window before it."""
        sent, refused = self.sent, self.refused
        if self.before:
            sent, refused = sent + self.before.sent, refused + self.before.refused
        return refused / max(1, sent)

    @property
    def rate(self) -> float:
        """Calls a second that started."""
        return self.sent / max(1e-9, (self.ended or self.began) - self.began)

    @property
    def full(self) -> bool:
        """Whether so much was refused that the window can end early."""
        return self.refused >= WINDOW_CALLS and self.share > 0.5

    def holds(self, turn: int) -> bool:
        """Whether a call started in this window."""
        return self.first < turn <= self.first + self.sent


class Pace:
    """Starts calls at full speed until complaints (429) show a limit, then at about that limit.

    Complaints come from a limit, or by chance from a busy endpoint. At full speed nothing changes
    while their share is below 15 per cent: the refused calls are tried again, and that is all. A
    higher share shows a limit. From then on calls start at even distances, and the rate is learnt
    in windows of half a second, or of twenty calls if that takes longer:

    * The first window is slow, and each accepted one is followed by one twice as fast.
    * A window with too many refusals shows the limit: as many calls as were accepted.
    * That rate is kept for three windows, then one is a quarter faster. If it is accepted as well,
      its rate is kept, and an even faster one is tried at once, so that a rising limit is followed.
      If not, it shows the limit again.
    * If a kept rate is refused again, the limit is in doubt, and twice the rate is tried instead of
      a quarter more.
    * If four windows have slowed down and not one was calm, complaints do not depend on the rate.
      Calls go at full speed again, and only complaints beyond that share count.

    A limit of tokens refuses the large calls first. So a call that was refused three times gets a
    longer distance from the one before it, in which the limit recovers.
    """

    def __init__(self, max_at_once: int, now: float) -> None:
        """Start at full speed; ``max_at_once`` is the number of calls in progress at once."""
        self._max_at_once = max_at_once
        self.rate: float | None = None  # calls a second; None is full speed
        self._latency_s, self._latency_known = LATENCY_S, False
        self._refusal_s = 0.0
        self._next = self._started_at = now
        self._last_turn = self._waiting = 0
        self._round_start = self._replies = self._complaints = 0
        self._window = _Window(0)
        self._is_searching = False
        self._windows_left_at_rate = 0
        self._usual_share = 0.0
        self._in_vain: list[_Window] = []

    def wait_s(self, refused: int, now: float) -> float:
        """Return the seconds until a call may start that was refused ``refused`` times."""
        if self.rate is None:
            return 0.0
        start = self._next
        if refused > 2:
            run_up = min(RUN_UP_MAX_CALLS, RUN_UP_CALLS ** (refused - 2))
            start = max(start, self._started_at + run_up / self.rate)
        return start - now

    def take(self, waiting: int, now: float) -> int:
        """Record that a call starts while ``waiting`` others wait; return its number."""
        self._last_turn += 1
        self._started_at, self._waiting = now, waiting
        if self.rate is not None:
            self._close_window(now)
        # Closing the window may have returned to full speed, so test again.
        if self.rate is not None:
            if self._window.ended is None:
                if self._window.sent == 0:
                    self._window.began, self._window.first = now, self._last_turn - 1
                self._window.sent += 1
            # Few calls wait: a faster rate could not be filled, and would show nothing.
            if not self._is_faster_worth_trying:
                self._window.faster = 1.0
            distance_s = 1 / (self.rate * self._window.faster)
            # A call that is late moves the schedule, except for the little that can be caught up.
            self._next = max(self._next, now - max(CATCH_UP_S, distance_s)) + distance_s
        return self._last_turn

    def record_reply(self, turn: int, latency_s: float) -> None:
        """Record a reply to the call with the number ``turn``."""
        # The first latency replaces the assumed one.
        weight = LATENCY_WEIGHT if self._latency_known else 1.0
        self._latency_s += weight * (max(1e-6, latency_s) - self._latency_s)
        if self.rate is None:
            # Replies to calls from before this round are not counted in it.
            self._replies += turn > self._round_start
            self._end_round()
        elif not self._latency_known:  # the search began without a latency
            self.rate = max(self.rate, self._first_rate)
        self._latency_known = True

    def record_complaint(self, turn: int, latency_s: float) -> None:
        """Record a complaint about the call with the number ``turn``."""
        # The slowest refusal, slowly forgotten: a window waits so long for its own.
        self._refusal_s = max(latency_s, 0.9 * self._refusal_s)
        if self.rate is None:
            self._complaints += turn > self._round_start
            self._end_round()
        elif self._window.holds(turn):
            self._window.refused += 1

    def end_standstill(self) -> None:
        """Record that everything was refused for a while, and that this is over."""
        if self.rate is None:
            self._begin_search(self._first_rate)
        elif self._window.refused:  # those refused before its first call say nothing of this rate
            self._begin_search(self.rate / 2)

    @property
    def _first_rate(self) -> float:
        """The rate with which a search begins: a quarter of that at full speed."""
        return self._max_at_once / self._latency_s * FIRST_RATE_FACTOR

    @property
    def _next_factor(self) -> float:
        """Factor of the next rate: larger while searching, or if slowing down was in vain."""
        return SEARCH_FACTOR if self._is_searching or self._in_vain else TRIAL_FACTOR

    @property
    def _is_faster_worth_trying(self) -> bool:
        """Whether enough calls wait to notice a faster rate."""
        return self.rate is not None and self._waiting > MIN_WAITING_S * self.rate

    def _end_round(self) -> None:
        """Start to search for a limit if too many calls at full speed were refused."""
        # A round is at least as long as the number of calls at once, all of which may be refused.
        least = max(MIN_ROUND_CALLS, self._max_at_once)
        sent = max(least, self._last_turn - self._round_start)
        if self._complaints > (TOO_MANY_SHARE + self._usual_share) * sent:
            self._begin_search(self._first_rate)
        elif self._replies + self._complaints >= least:
            self._begin_round()

    def _begin_round(self) -> None:
        """Count replies and complaints at full speed anew."""
        self._round_start, self._replies, self._complaints = self._last_turn, 0, 0

    def _begin_search(self, rate: float) -> None:
        """Start to search for the limit at a rate."""
        self.rate = max(LOWEST_RATE, rate)
        self._is_searching = True
        self._begin_window(windows_at_rate=1)

    def _begin_window(self, windows_at_rate: int, faster: float = 1.0) -> None:
        """Open a window, the first of ``windows_at_rate`` windows at this rate."""
        self._window, self._windows_left_at_rate = _Window(self._last_turn, faster), windows_at_rate

    def _close_window(self, now: float) -> None:
        """End the window if it is long enough, and learn from it when its refusals have arrived."""
        window = self._window
        if window.ended is None:
            long_enough = window.sent >= WINDOW_CALLS and now - window.began >= WINDOW_S
            window.ended = now if long_enough or window.full else None
        if window.ended is not None and now >= window.ended + self._refusal_s:
            # A faster rate is only a trial, so it is given up sooner.
            too_many = TOO_MANY_SHARE if window.faster == 1.0 else TOO_MANY_SHARE_FASTER
            if window.share <= self._usual_share + too_many:
                self._keep_up(window)
            elif window.before or window.share > self._usual_share + CERTAIN_SHARE:
                self._slow_down(window)
            else:
                # In doubt: a second window at the same rate decides.
                self._window = _Window(self._last_turn, window.faster, before=window)

    def _keep_up(self, window: _Window) -> None:
        """Keep the rate of an accepted window, and decide whether to try a faster one."""
        assert self.rate is not None
        if window.share <= self._usual_share + CALM_SHARE:
            self._in_vain.clear()
        # The usual share only falls here; it rises in _slow_down().
        self._usual_share += USUAL_WEIGHT * min(0.0, window.share - self._usual_share)
        used = window.rate >= MIN_USED_SHARE * self.rate * window.faster
        # A trial that was not filled proves nothing about its rate.
        if used:
            self.rate *= window.faster
        faster = self._windows_left_at_rate <= 1 or (window.faster > 1.0 and used)
        if faster and self._is_faster_worth_trying:
            self._begin_window(WINDOWS_BEFORE_FASTER, self._next_factor)
        else:
            self._begin_window(self._windows_left_at_rate - 1)

    def _slow_down(self, window: _Window) -> None:
        """Continue at the accepted rate, or at full speed if slowing down was in vain."""
        assert self.rate is not None
        # A refused trial is expected. Only refusals at a kept rate question the limit.
        if window.faster == 1.0:
            self._in_vain.append(window)
        if len(self._in_vain) == WINDOWS_IN_VAIN:
            share = sum(window.share for window in self._in_vain) / WINDOWS_IN_VAIN
            self._usual_share = min(USUAL_SHARE_MAX, share)
            self._in_vain.clear()
            self.rate = None
            self._begin_round()
            return
        # Share of accepted calls, in proportion to the usual one.
        part = min(1.0, (1 - window.share) / (1 - self._usual_share))
        if part < FIRST_RATE_FACTOR:  # too few were let in to tell how many could be
            self._begin_search(FIRST_RATE_FACTOR * self.rate)
            return
        more = part * window.faster
        self.rate = max(LOWEST_RATE, more * self.rate)
        self._is_searching = False
        worth = self._in_vain and more > TRIAL_FACTOR and self._is_faster_worth_trying
        self._begin_window(WINDOWS_BEFORE_FASTER, self._next_factor if worth else 1.0)

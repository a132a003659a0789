"""How many calls to an endpoint may be in progress at once: few first, more while that helps.

64 calls at once to a server that answers two make each of them, and so the first one, take as long
as 32 pairs. What a server can do at once is seen in its latency: while it has room, more calls take
as long as few; when it has none, four times as many take four times as long, and nothing is gained.

The number grows in rounds. A round at a number ends when about as many calls that began in it are
answered. By Little's law the number, divided by their mean latency, is the calls a second.
The smallest number that brings nearly the most calls a second is kept; a larger one is tried as
long as none was in vain, and again from time to time.
"""

import math
from dataclasses import dataclass

FIRST_CALLS, FACTOR = 4, 4
"""Calls at once in the first round, and growth from round to round: 4, 16, 64. Four are bearable
for a server on a laptop, and a fast endpoint is at its limit after two rounds."""
MIN_FACTOR = 2
"""The least growth: a smaller one could not be told from chance. The step before it is larger."""
MIN_GAIN = 1.25
"""Calls a second, as a factor, that a larger number must bring to be kept. Where there is room four
times as many bring four times as much, so that latencies that scatter, as replies differ in length,
are seldom taken for a full server. A gain of less than the root of the growth is unclear."""
ROUND_SHARE = 0.75
"""Replies of a round, of its number of calls: of four times as many, a quarter began before it."""
MAX_WEIGHT = 32
"""Replies that a mean latency is of, about: older ones are forgotten."""
UNCLEAR_WAIT, FIRST_WAIT, MAX_WAIT = 4, 8, 64
"""Rounds until a larger number is tried: after an unclear gain; and after a number that was in
vain, doubled each time, up to the last."""


@dataclass(slots=True)
class _Latency:
    """How long calls took at one number of calls."""

    mean_s: float = 0.0
    replies: int = 0
    """Replies that the mean is of."""

    def add(self, latency_s: float) -> None:
        """Add a reply."""
        self.replies += 1
        self.mean_s += (latency_s - self.mean_s) / min(self.replies, MAX_WEIGHT)


class Ramp:
    """The number of calls that may be in progress at once: ``first``, and later up to ``most``."""

    def __init__(self, most: int, first: int = FIRST_CALLS) -> None:
        self.round = 0
        """Number of the round in which a call begins; the call is to remember it."""
        self._most = most
        self.restart(first)

    def restart(self, first: int) -> None:
        """Begin again with ``first`` calls: what the endpoint did before says nothing any more."""
        self.allowed = first if self._most >= MIN_FACTOR * first else self._most
        self.round += 1
        self._tried = {self.allowed: _Latency()}
        self._wait = FIRST_WAIT
        self._rounds_to_wait = self._replies = 0
        self._is_trial = False

    def record_reply(self, round_of_call: int, latency_s: float) -> None:
        """Record a reply that came while further calls waited for a place.

        Args:
            round_of_call: :attr:`round` when the call began.
            latency_s: how long it took.
        """
        # A call that began in an earlier round met another number of calls.
        if round_of_call != self.round:
            return
        self._tried[self.allowed].add(latency_s)
        self._replies += 1
        if self._replies >= ROUND_SHARE * self.allowed:
            self._end_round()

    def _end_round(self) -> None:
        """Choose the number of the next round."""
        rates = {n: n / max(latency.mean_s, 1e-9) for n, latency in self._tried.items()}
        enough = max(rates.values()) / MIN_GAIN
        best = min(number for number, rate in rates.items() if rate >= enough)
        smaller = max((number for number in rates if number < self.allowed), default=0)
        larger = FACTOR * self.allowed
        if self._most < MIN_FACTOR * larger:
            larger = self._most
        is_trial, self._is_trial = self._is_trial, False
        self._rounds_to_wait = max(0, self._rounds_to_wait - 1)
        if best < self.allowed:
            # In vain: wait for longer until a larger number is tried again.
            self.allowed, self._rounds_to_wait = best, self._wait
            self._wait = min(MAX_WAIT, 2 * self._wait)
        elif is_trial and rates[self.allowed] < math.sqrt(self.allowed / smaller) * rates[smaller]:
            # Unclear, as the smaller number was seen for a few calls only: see it for longer.
            self.allowed, self._rounds_to_wait = smaller, UNCLEAR_WAIT
        elif self._rounds_to_wait == 0 and best > self.allowed:
            self.allowed, self._rounds_to_wait = best, UNCLEAR_WAIT
        elif self._rounds_to_wait == 0 and larger > self.allowed:
            # What it was like earlier is forgotten, or nothing new could be learnt.
            self.allowed, self._tried[larger], self._is_trial = larger, _Latency(), True
        self.round += 1
        self._replies = 0

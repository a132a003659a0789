"""Rows in which the endpoint fails, and the commands run from beginning to end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from lab.benchmarks.reliability.contenders import (
    FOR_EVER,
    GENERATE,
    PLAIN,
    Contender,
    Work,
    ended,
    questions,
    start,
)
from lab.benchmarks.reliability.counting import Counts, Server
from lab.benchmarks.reliability.server import Behaviour

OUTAGES_S = (5, 12, 20, 30, 50)
OUTAGES = {
    "refused": "connections refused",
    "errors": "status 500",
    "hang": "accepts and answers nothing (5 s a try)",
}
AT_ONCE, LATENCY_S = 50, 0.1
REPLY_WORDS = 12


@dataclass(frozen=True)
class Outcome:
    """How one contender fared: answers that are missing at the end, and what the endpoint saw."""

    contender: str
    lost: int
    counts: Counts
    statuses: Sequence[int] = ()


@dataclass(frozen=True)
class Row:
    """One line of the table.

    least_s: what nobody can be faster than. together: the contenders run side by side, since the
    row is mostly waiting.
    """

    name: str
    title: str
    behaviour: Behaviour
    calls: int
    least_s: float
    timeout_s: float = 120.0
    words: tuple[int, int] = (8, 8)
    together: bool = False
    contenders: Sequence[Contender] = (GENERATE, PLAIN, FOR_EVER)

    def measure(self, folder: Path) -> list[Outcome]:
        """Run every contender against an endpoint of its own."""
        with ThreadPoolExecutor(len(self.contenders) if self.together else 1) as threads:
            places = [folder / str(i) for i in range(len(self.contenders))]
            return list(threads.map(self._measure_one, self.contenders, places))

    def _measure_one(self, contender: Contender, folder: Path) -> Outcome:
        with Server(self.behaviour) as server:
            work = Work(
                folder, server.base_url, self.calls, AT_ONCE, self.timeout_s, words=self.words
            )
            work.prepare()
            status = ended(start(contender.command(work), folder))
            lost = self.calls - contender.answered(work)
            return Outcome(contender.name, lost, server.counts(), [status])


def rows(quick: bool) -> list[Row]:
    """Return all rows; ``quick`` ones are small and say little."""
    share = 0.1 if quick else 1.0
    return [*_outages(share), _noise(share), *_limits(share)]


def _outages(share: float) -> list[Row]:
    calls = int(600 * share)
    found = []
    for kind, words in OUTAGES.items():
        for seconds in OUTAGES_S:
            outage_s = seconds * share
            behaviour = Behaviour(
                LATENCY_S, outage=kind, outage_s=outage_s, outage_after=calls // 2
            )
            found.append(
                Row(
                    f"{kind}-{seconds}",
                    f"{seconds} s: {words}",
                    behaviour,
                    calls,
                    outage_s + calls * LATENCY_S / AT_ONCE,
                    timeout_s=5.0 if kind == "hang" else 120.0,
                    together=True,
                )
            )
    return found


def _noise(share: float) -> Row:
    calls = int(2000 * share)
    behaviour = Behaviour(
        LATENCY_S, seed=5, share_429=0.05, share_500=0.02, share_malformed=0.01, share_dropped=0.01
    )
    title = "noise: 5 % 429, 2 % 500, 1 % malformed, 1 % dropped"
    return Row("noise", title, behaviour, calls, calls * LATENCY_S / AT_ONCE)


def _limits(share: float) -> list[Row]:
    calls = int(2000 * share)
    requests = Row(
        "limit-requests",
        "at most 100 requests a second",
        Behaviour(LATENCY_S, requests_per_second=100),
        calls,
        max(0, calls - 100) / 100,
    )
    words, rate = (2, 300), 20_000
    tokens = sum(_tokens(text) for text in questions(calls, words))
    sizes = Row(
        "limit-tokens",
        f"at most {60 * rate:,} tokens a minute by the second, calls of 20 to 550",
        Behaviour(LATENCY_S, tokens_per_second=rate),
        calls,
        max(0, tokens - rate) / rate,
        words=words,
    )
    halved = replace(
        requests,
        name="limit-halved",
        title="at most 200 requests a second, 100 from the middle on",
        behaviour=Behaviour(LATENCY_S, requests_per_second=200, halve_after=calls // 2),
        # Those under way when it is halved were let in before.
        least_s=max(0, calls / 2 - 200) / 200 + (calls / 2 - AT_ONCE) / 100,
    )
    return [requests, sizes, halved]


def _tokens(text: str) -> int:
    """Return what the endpoint counts for a call."""
    return len(json.dumps([{"role": "user", "content": text}])) // 4 + REPLY_WORDS

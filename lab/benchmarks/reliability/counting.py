"""The endpoint as a process, and what is made of its counters."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from lab.benchmarks.reliability.server import Answer, Behaviour, Call

ROOT = Path(__file__).parents[3]
GRACE_S = 0.1


class End(NamedTuple):
    """When a client was told to end, when it was gone, and the ports of answers left unread."""

    told: float
    gone: float
    unread: frozenset[int] = frozenset()

    def missed(self, answers: Sequence[Answer]) -> set[Answer]:
        """Return the answers that were written, but did not get into the client's hands.

        At a port that is the last one alone; those before it were read, for a port is used for one
        call at a time. What the client had just read it may not have stored, and that it has ended
        is seen a moment later: so an answer within 0.1 s of the end counts as missed, too.
        """
        start, end = self.told - GRACE_S, self.gone + GRACE_S
        found = {answer for answer in answers if start <= answer.at <= end}
        last = {answer.port: answer for answer in sorted(answers) if answer.at <= self.told}
        return found | {last[port] for port in self.unread if port in last}


@dataclass(frozen=True)
class Counts:
    """What the endpoint saw.

    calls: different ones. received: requests. asked_again: requests for calls whose answer had
    reached the client. seconds: from the first request to the last answer.
    """

    calls: int
    received: int
    asked_again: int
    seconds: float
    at_once: int
    outcomes: dict[str, int]

    @property
    def wasted(self) -> int:
        return self.received - self.calls


class Server:
    """Runs the endpoint as a process for as long as the context is open."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self.base_url = ""

    def __enter__(self) -> Self:
        settings = json.dumps(dataclasses.asdict(self._behaviour))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lab.benchmarks.reliability.server", settings],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        port, self._control = json.loads(self._process.stdout.readline())
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def received(self) -> int:
        """Return the number of requests so far."""
        return int(self._ask("received"))

    def unread(self) -> frozenset[int]:
        """Return the ports of clients at which answers lie that nobody has read."""
        return unread_ports(int(self.base_url.split(":")[2].split("/")[0]))

    def counts(self, ends: Sequence[End] = ()) -> Counts:
        """Return what was counted; ``ends`` are those of clients that did not live on."""
        found = self._ask("counts")
        calls = [
            Call(call["received"], [Answer(*answer) for answer in call["answered"]])
            for call in found["calls"].values()
        ]
        received = [at for call in calls for at in call.received]
        answers = [answer for call in calls for answer in call.answered]
        missed = set().union(*(end.missed(answers) for end in ends))
        again = 0
        for call in calls:
            held = [answer.at for answer in call.answered if answer not in missed]
            again += sum(at > min(held) for at in call.received) if held else 0
        seconds = max(answers).at - min(received) if answers else 0.0
        outcomes, at_once = found["outcomes"], found["at_once"]
        return Counts(len(calls), len(received), again, seconds, at_once, outcomes)

    def _ask(self, what: str) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self._control}/{what}", timeout=30) as response:
            return json.load(response)


def unread_ports(port: int) -> frozenset[int]:
    """Return the ports of this machine whose connections to ``port`` hold bytes to be read.

    By Linux's table of connections; without one none is known.
    """
    table = Path("/proc/net/tcp")
    found = set()
    for line in table.read_text().splitlines()[1:] if table.exists() else ():
        _, local, remote, _, queues, *_ = line.split()
        if int(remote.split(":")[1], 16) == port and int(queues.split(":")[1], 16):
            found.add(int(local.split(":")[1], 16))
    return frozenset(found)

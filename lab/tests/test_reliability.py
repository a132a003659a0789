"""The endpoint that counts, and a row of the table from end to end."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support import ROOT

from lab.benchmarks.reliability.__main__ import HEAD, all_rows, merged
from lab.benchmarks.reliability.counting import GRACE_S, Counts, End, Server
from lab.benchmarks.reliability.rows import Outcome
from lab.benchmarks.reliability.server import Behaviour

pytestmark = pytest.mark.slow

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(server: Server, text: str) -> str:
    """Return the answer; an error is raised as it comes."""
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(f"{server.base_url}/chat/completions", data=body)
    with OPENER.open(request, timeout=60) as response:
        return str(json.load(response)["choices"][0]["message"]["content"])


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def port_of(server: Server) -> int:
    return int(server.base_url.split(":")[2].split("/")[0])


def refuses(server: Server) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port_of(server))).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_refused_connection_is_one_and_the_endpoint_comes_back_at_its_port() -> None:
    behaviour = Behaviour(0, outage="refused", outage_s=2, outage_after=2)
    with Server(behaviour) as server:
        first = ask(server, "one")
        assert ask(server, "two") != first
        until(lambda: refuses(server))  # it closes when this answer is out
        until(lambda: not refuses(server))
        assert ask(server, "one") == first
        counts = server.counts()
    assert (counts.calls, counts.received, counts.wasted, counts.asked_again) == (2, 3, 1, 1)
    assert counts.seconds > 1


def test_answers_near_the_end_of_a_client_did_not_reach_it() -> None:
    with Server(Behaviour(0)) as server:
        ask(server, "one")
        (call,) = server._ask("counts")["calls"].values()
        told = call["answered"][0][0] + GRACE_S / 2
        ask(server, "one")
        assert server.counts([End(told, told)]).asked_again == 0
        assert server.counts([End(told - 60, told)]).asked_again == 0
        assert server.counts([End(told - 60, told - 60)]).asked_again == 1


def test_an_answer_that_lies_unread_did_not_reach_the_client() -> None:
    text = json.dumps({"messages": [{"role": "user", "content": "one"}]})
    with Server(Behaviour(0)) as server:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}"
        with socket.create_connection(("127.0.0.1", port_of(server))) as connection:
            connection.sendall(f"{head}\r\n\r\n{text}".encode())
            until(lambda: server.counts().outcomes.get("answered") and server.unread())
            time.sleep(2 * GRACE_S)
            told = time.time()
            end = End(told, told, server.unread())
            own = connection.getsockname()[1]
            assert end.unread == {own}
            ask(server, "one")
            assert server.counts([end]).asked_again == 0
            assert server.counts([End(told, told)]).asked_again == 1
            until(lambda: connection.recv(1 << 16) and not server.unread())


@pytest.mark.parametrize(
    "behaviour", [Behaviour(0, requests_per_second=3), Behaviour(0, tokens_per_second=3 * 24)]
)
def test_a_limit_is_kept_and_says_how_long_to_wait(behaviour: Behaviour) -> None:
    """A call of these takes 24 tokens: 12 of the prompt and 12 of the reply."""
    refused: list[tuple[int, str | None]] = []

    def one(i: int) -> None:
        try:
            ask(server, f"question {i:2d}")
        except urllib.error.HTTPError as error:
            refused.append((error.code, error.headers["Retry-After"]))

    with Server(behaviour) as server, ThreadPoolExecutor(20) as threads:
        began = time.monotonic()
        list(threads.map(one, range(20)))
        seconds = time.monotonic() - began
        assert set(refused) == {(429, "1")}
        assert 3 <= 20 - len(refused) <= 3 + 3 * seconds
        time.sleep(1)
        ask(server, "question 20")
        answered = 21 - len(refused)
        assert server.counts().outcomes == {"answered": answered, "429": len(refused)}


def test_repeats_give_the_best_seconds_and_the_worst_of_the_rest() -> None:
    quick = Outcome("x", 0, Counts(10, 19, 3, 1.0, 5, {}))
    slow = Outcome("x", 2, Counts(10, 12, 0, 9.0, 5, {}))
    both = merged([quick, slow])
    counts = both.counts
    assert (both.lost, counts.asked_again, counts.wasted, counts.seconds) == (2, 3, 9, 1.0)


def test_a_row_is_measured_from_end_to_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lab.benchmarks.reliability", "--quick", "ctrl-c"]
    done = subprocess.run(
        [*command, "--keep", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    head, _, line = done.stdout.splitlines()
    cells = dict(zip(head.split("|"), line.split("|"), strict=True))
    assert cells[" samples "] == " 100 "
    assert (cells[" lost "], cells[" loop: lost "]) == (" 0 ", " 0 ")
    assert "ended with 130 0" in done.stderr
    assert "of 100 questions." in (tmp_path / "ctrl-c/0/0/said.txt").read_text()


def test_every_row_stands_in_the_documentation_with_its_command() -> None:
    text = (ROOT / "lab/results/reliability.md").read_text(encoding="utf-8")
    assert HEAD in text
    found = re.findall(
        r"^\| (.+?) \|.*`python -m lab\.benchmarks\.reliability (.+?)` \|$", text, re.MULTILINE
    )
    assert found == [(row.title, row.name) for row in all_rows(quick=False)]

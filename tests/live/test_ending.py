"""Back-pressure, an end that loses nothing, and what a killed service left."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from tests.live.running import JSON, LEXICAL, Reply, Running, serving, waiting_entailer
from tests.live.upstream import Asked, Upstream, Write, chunk, says, streams_from
from tests.support import lines, record, records

IN_PROGRESS = "trustassay_samples_in_progress"


def test_what_is_beyond_the_capacity_is_told_to_come_again(tmp_path: Path) -> None:
    entailer = waiting_entailer(tmp_path)
    with (
        serving(tmp_path, *entailer, "--capacity", "3", "--per-caller", "3") as one,
        ThreadPoolExecutor() as threads,
    ):
        first = [threads.submit(one.score, record(i)) for i in range(2)]
        one.until(IN_PROGRESS, 2)
        both = one.score(records(2))
        assert both.status == 429
        assert int(both.headers["retry-after"]) >= 1
        assert "this caller has 2 samples in progress" in both.error["message"]
        last = threads.submit(one.score, [record(2)])
        one.until(IN_PROGRESS, 3)
        assert one.score(record(3)).status == 429
        assert one.score({"question": 1}).status == 422
        assert one.ask("GET", "/health").status == 200
        (tmp_path / "go").touch()
        assert [found.result().status for found in (*first, last)] == [200, 200, 200]
        assert one.score(record(3)).status == 200


def test_a_caller_with_a_full_share_does_not_keep_others_out(tmp_path: Path) -> None:
    entailer = waiting_entailer(tmp_path)
    options = ("--capacity", "4", "--per-caller", "2", "--caller-header", "X-User")
    with serving(tmp_path, *entailer, *options) as one, ThreadPoolExecutor() as threads:
        tasks = [threads.submit(one.score, records(2), **{"X-User": "a"})]
        one.until(IN_PROGRESS, 2)
        refused = one.score(record(5), **{"X-User": "a"})
        assert refused.status == 429
        assert "at most 2 are allowed per caller" in refused.error["message"]
        # another caller, and one without the header, who is known by the address
        tasks.append(threads.submit(one.score, record(6), **{"X-User": "b"}))
        tasks.append(threads.submit(one.score, record(7)))
        one.until(IN_PROGRESS, 4)
        full = one.score(record(8), **{"X-User": "c"})
        assert full.status == 429
        assert "all callers have" in full.error["message"]
        too_many = one.score(records(3), **{"X-User": "c"})
        assert (too_many.status, "has 3 samples; send 2 " in too_many.error["message"]) == (
            413,
            True,
        )
        (tmp_path / "go").touch()
        assert [task.result().status for task in tasks] == [200] * 3


def test_a_token_names_the_caller_whatever_the_header_says(tmp_path: Path) -> None:
    tokens = ["first-token-of-this-test", "second-token-of-this-test"]
    options = ("--per-caller", "1", "--caller-header", "X-User")
    with (
        serving(
            tmp_path,
            *waiting_entailer(tmp_path),
            *options,
            TRUSTASSAY_SERVE_TOKEN=",".join(tokens),
        ) as one,
        ThreadPoolExecutor() as threads,
    ):

        def score(token: str, user: str) -> Reply:
            return one.score(record(1), **{"X-Api-Key": token, "X-User": user})

        first = threads.submit(score, tokens[0], "a")
        deadline = time.monotonic() + 30
        while one.metric(IN_PROGRESS, **{"X-Api-Key": tokens[0]}) != 1:
            assert time.monotonic() < deadline
        assert score(tokens[0], "b").status == 429
        second = threads.submit(score, tokens[1], "a")
        (tmp_path / "go").touch()
        assert [task.result().status for task in (first, second)] == [200, 200]


def test_health_is_ready_only_when_the_models_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "loading.py").write_text(
        "import pathlib, time\n"
        "while not pathlib.Path('go').exists():\n    time.sleep(0.01)\n"
        "def entail(premise, hypothesis):\n    return (1.0, 0.0, 0.0)\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def ask(method: str, path: str, body: str | None = None) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        with closing(connection):
            connection.request(method, path, body, JSON)
            reply = connection.getresponse()
            return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()

    replies: list[tuple[int, dict[str, str], bytes]] = []

    def ask_until_ready() -> None:
        deadline = time.monotonic() + 30
        while not replies or replies[-1][0] != 200:
            assert time.monotonic() < deadline
            # refused until the process has bound its port
            with suppress(ConnectionError):
                replies.append(ask("GET", "/health"))
                if len(replies) == 1:
                    replies.append(ask("POST", "/v1/score", json.dumps(record(1))))
                    (tmp_path / "go").touch()
            time.sleep(0.02)

    asking = threading.Thread(target=ask_until_ready)
    asking.start()
    with serving(tmp_path, "--entailer", "python:loading:entail", port=port) as one:
        asking.join(30)
        assert one.score(record(1)).status == 200
    loading = [reply for reply in replies if reply[0] == 503]
    assert len(loading) >= 2
    assert all(body == b'{"status":"loading"}' for _, _, body in loading)
    assert all(headers["retry-after"] == "1" for _, headers, _ in loading)
    assert replies[-1][2] == b'{"status":"ready"}'


def test_a_client_that_goes_away_gives_its_sample_up(tmp_path: Path) -> None:
    with serving(tmp_path, *waiting_entailer(tmp_path)) as one:
        for content in (record(1), records(3)):
            body = json.dumps(content).encode()
            head = (
                f"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
                "Content-Type: application/json\r\n\r\n"
            )
            with one.connected() as client:
                client.sendall(head.encode() + body)
                one.until(IN_PROGRESS, len(content) if isinstance(content, list) else 1)
            one.until(IN_PROGRESS, 0)
        (tmp_path / "go").touch()
        assert one.score(record(5)).status == 200


def test_the_end_waits_for_what_was_accepted(tmp_path: Path) -> None:
    with (
        serving(tmp_path, *waiting_entailer(tmp_path), "--out", "run") as one,
        ThreadPoolExecutor() as threads,
    ):
        single = threads.submit(one.score, record(0))
        one.until(IN_PROGRESS, 1)
        many = threads.submit(one.score, [record(1), record(2)])
        one.until(IN_PROGRESS, 3)
        one.process.send_signal(signal.SIGTERM)
        until_closing(one)
        late = one.score(record(3))
        assert late.status == 503
        assert int(late.headers["retry-after"]) >= 1
        (tmp_path / "go").touch()
        assert single.result().json["id"] == "q0"
        assert {line["id"] for line in many.result().lines} == {"q1", "q2"}
        assert one.process.wait(30) == 0
    assert [row["id"] for row in lines(tmp_path / "run" / "samples.jsonl")] == ["q0", "q1", "q2"]
    assert (tmp_path / "run" / "report.html").exists()


def until_closing(one: Running) -> None:
    deadline = time.monotonic() + 60
    while (health := one.ask("GET", "/health")).status != 503:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert health.json == {"status": "closing"}


def test_a_second_signal_gives_up_and_the_next_start_scores_it(tmp_path: Path) -> None:
    entailer = waiting_entailer(tmp_path)
    with (
        serving(tmp_path, *entailer, "--out", "run") as one,
        ThreadPoolExecutor() as threads,
    ):
        waiting = threads.submit(one.score, record(0))
        one.until(IN_PROGRESS, 1)
        one.process.send_signal(signal.SIGINT)
        until_closing(one)
        one.process.send_signal(signal.SIGINT)
        with pytest.raises((TimeoutError, ConnectionError)):  # nobody is answered any more
            while True:
                one.ask("GET", "/health", timeout=1)
        (tmp_path / "go").touch()  # the batch that a model works on is waited for
        assert one.process.wait(30) == 130
        assert waiting.exception() or waiting.result().status == 503
        assert "run the same command again to score the accepted samples" in one.said
    with serving(tmp_path, *entailer, "--out", "run") as one:
        assert "scoring 1 sample accepted before" in one.said
        assert one.end() == 0
    (found,) = lines(tmp_path / "run" / "assessments.jsonl")
    assert (found["id"], found["error"]) == ("q0", None)


def test_after_the_grace_period_the_rest_waits_for_the_next_start(tmp_path: Path) -> None:
    entailer = waiting_entailer(tmp_path)
    with (
        serving(tmp_path, *entailer, "--out", "run", "--grace", "1") as one,
        ThreadPoolExecutor() as threads,
    ):
        waiting = threads.submit(one.score, record(0))
        one.until(IN_PROGRESS, 1)
        began = time.monotonic()
        # The judge never answers, and its thread cannot be cancelled.
        assert one.end() == 130
        assert time.monotonic() - began < 15
        assert waiting.result().status == 503
        assert (
            "stopped 1 s after the signal (--grace) with 1 sample and 1 request in progress"
            in one.said
        )
        assert "run the same command again to score the accepted samples" in one.said
    assert (tmp_path / "run" / "summary.json").exists()
    (tmp_path / "go").touch()
    with serving(tmp_path, *entailer, "--out", "run") as one:
        assert "scoring 1 sample accepted before" in one.said
        assert one.end() == 0
    [assessment] = lines(tmp_path / "run" / "assessments.jsonl")
    assert (assessment["id"], assessment["error"]) == ("q0", None)


def test_an_upstream_that_streams_for_ever_is_cut_off(tmp_path: Path) -> None:
    async def so_on() -> AsyncIterator[bytes]:
        while True:
            yield chunk({"content": "so "})

    chat = json.dumps({"messages": [{"role": "user", "content": "What?"}], "stream": True})
    with Upstream(streams_from(so_on, 0.02)) as upstream:
        options = ("--upstream", upstream.url, "--grace", "1")
        with serving(tmp_path, *LEXICAL, *options) as one, ThreadPoolExecutor() as threads:
            answer = threads.submit(one.ask, "POST", "/v1/chat/completions", chat, JSON)
            while not upstream.asked:
                time.sleep(0.01)
            began = time.monotonic()
            assert one.end() == 130
            assert time.monotonic() - began < 15
            assert (
                "0 samples and 1 request in progress; send requests without a reply again"
                in one.said
            )
            # A reply that was cut off is not taken for a complete one.
            assert isinstance(answer.exception(), HTTPException | OSError)


def test_a_chat_that_was_accepted_is_judged_before_the_end(tmp_path: Path) -> None:
    may_answer = threading.Event()

    async def late(asked: Asked, write: Write) -> None:
        while not may_answer.is_set():
            await asyncio.sleep(0.01)
        await says("So it is.")(asked, write)

    content = {"messages": [{"role": "user", "content": "What?"}], "documents": ["So it is."]}
    with (
        Upstream(late) as upstream,
        serving(tmp_path, *LEXICAL, "--upstream", upstream.url) as one,
        one.connected(),  # an idle connection does not delay the end
        ThreadPoolExecutor() as threads,
    ):
        chat = json.dumps(content)
        answer = threads.submit(one.ask, "POST", "/v1/chat/completions", chat, JSON)
        while not upstream.asked:
            time.sleep(0.01)
        one.process.send_signal(signal.SIGTERM)
        while "closing" not in one.said:
            time.sleep(0.01)
        may_answer.set()
        assert one.process.wait(10) == 0
        assert answer.result().json["trustassay"]["status"] == "scored"


@pytest.mark.slow
def test_killed_under_load_every_accepted_sample_is_scored(tmp_path: Path) -> None:
    """Clients send again what had no reply, as they are told; the process is killed meanwhile."""
    answered: dict[str, float] = {}
    ready = threading.Event()

    def client(mine: range) -> None:
        for i in mine:
            while True:
                ready.wait(60)
                try:
                    reply = service[0].ask("POST", "/v1/score", json.dumps(record(i)), JSON)
                except (OSError, HTTPException):  # no whole reply
                    time.sleep(0.05)
                    continue
                if reply.status == 200:
                    answered[reply.json["id"]] = reply.json["metrics"]["faithfulness"]["score"]
                    break
                assert reply.status in (429, 503)
                time.sleep(0.05)

    service: list[Running] = []
    options = (*LEXICAL, "--out", "run")
    threads = [threading.Thread(target=client, args=(range(i, 400, 8),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for most in (100, 200):
        with serving(tmp_path, *options) as one:
            service[:] = [one]
            ready.set()
            while len(answered) < most:
                time.sleep(0.005)
            ready.clear()
            one.process.kill()
    with serving(tmp_path, *options) as one:
        service[:] = [one]
        ready.set()
        for thread in threads:
            thread.join(120)
        assert one.end() == 0
    assert len(answered) == 400
    rows = [row["id"] for row in lines(tmp_path / "run" / "samples.jsonl")]
    assert sorted(rows) == sorted({f"q{i}" for i in range(400)})
    scored = {row["id"]: row["score"] for row in lines(tmp_path / "run" / "assessments.jsonl")}
    assert scored == answered


@pytest.mark.slow
def test_a_thousand_requests_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, *LEXICAL) as one, ThreadPoolExecutor(200) as threads:
        found: list[Reply] = list(threads.map(one.score, records(1000)))
        assert {reply.status for reply in found} == {200}
        assert [reply.json["id"] for reply in found] == [f"q{i}" for i in range(1000)]
        assert one.metric('trustassay_samples_total{outcome="scored"}') == 1000

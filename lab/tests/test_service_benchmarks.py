"""The benchmarks of the service: what their clients send, and their figures by hand."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.benchmarks import serving, sharing, soak
from lab.benchmarks.serving import COME_AGAIN, Clients, environment_of, medians_of
from lab.benchmarks.sharing import (
    CallerLog,
    ServiceReply,
    ask_once,
    ask_until,
    count_results,
    make_samples,
    summarise_batches,
    timed,
)
from lab.benchmarks.soak import RESOURCES, Reading, read_resources, requests_of, summarise
from lab.benchmarks.tables import sharing_tables, soak_tables
from trustassay.input.otlp import decode_messages
from trustassay.live.service import TOKEN_VARIABLE, read_tokens


def test_the_service_of_another_checkout_runs_with_its_own_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "a token of the terminal")
    environment = environment_of(tmp_path)
    assert environment["PYTHONPATH"] == str(tmp_path / "src")
    assert TOKEN_VARIABLE not in environment
    tokens = serving.tokens_of(3)
    assert read_tokens(environment_of(tmp_path, tokens)[TOKEN_VARIABLE]) == tuple(tokens)


def test_the_service_of_another_benchmark_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start() -> None:
        async with serving.serving("--entailer", "lexical"):
            raise AssertionError

    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(serving, "PORT", other.getsockname()[1])
        with pytest.raises(SystemExit, match="is in use"):
            asyncio.run(start())


def test_medians_of_rounds_keep_the_texts() -> None:
    rounds = [{"how": "1 client", "waits_ms_99": late} for late in (9.0, 1.0, 2.0)]
    assert medians_of(rounds) == {"how": "1 client", "waits_ms_99": 2.0}


def test_requests_a_second_are_those_that_were_answered() -> None:
    replies = Counter({"200": 10, "429": 5})
    row = serving.figures_of("8 clients", 10, (2.0, 1.0), [0.1, 0.3], replies)
    assert (row["requests_per_s"], row["waits_ms_median"]) == (5.0, 200.0)
    assert row["replies"] == "10 x 200, 5 x 429"


def test_each_client_has_the_next_token(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = []

    async def score(_self: Clients, _session: object, _one: object, sent: dict[str, str]) -> None:
        headers.append(sent["Authorization"])
        await asyncio.sleep(0)

    monkeypatch.setattr(Clients, "score", score)
    asyncio.run(Clients(["a", "b"]).send([{}] * 3, 3))
    assert headers == ["Bearer a", "Bearer b", "Bearer a"]


def test_samples_of_the_batch_are_long_and_all_different() -> None:
    batch = list(itertools.islice(make_samples((1, 2), sharing.SENTENCES), 5))
    assert batch == list(itertools.islice(make_samples((1, 2), sharing.SENTENCES), 5))
    sentences = [one for sample in batch for one in sample["response"].split(". ")]
    assert len(sentences) == 5 * sharing.SENTENCES
    assert len(set(sentences)) == len(sentences)
    for sample in batch:
        assert 4_500 < len(sample["response"]) < 6_500
        assert len(sample["documents"]) == 10


def replying(*statuses: int) -> sharing.Ask:
    replies = iter(statuses)

    async def ask() -> ServiceReply:
        status = next(replies)
        return ServiceReply(status, 0.01 if status in COME_AGAIN else 0, is_judged=True)

    return ask


def test_a_client_that_is_sent_away_comes_again_and_its_wait_counts() -> None:
    log = CallerLog()
    asyncio.run(ask_once(replying(429, 503, 200), log))
    figures = log.figures()
    assert (figures["count"], figures["unanswered"]) == (1, 0)
    assert figures["max_s"] >= 0.02
    assert figures["statuses"] == {"200": 1, "429": 1, "503": 1}
    assert figures["retry_after_s"] == {"0.01": 2}


def test_a_request_that_is_given_up_counts_with_its_wait() -> None:
    async def ask() -> ServiceReply:
        await asyncio.sleep(60)
        raise AssertionError

    log, stop = CallerLog(), asyncio.Event()
    assert asyncio.run(timed(ask_until(stop, ask, log, 0), 0.05)) is None
    figures = log.figures()
    assert (figures["count"], figures["unanswered"]) == (1, 1)
    assert figures["max_s"] >= 0.05


def test_a_client_stops_after_its_answer() -> None:
    log, stop = CallerLog(), asyncio.Event()

    async def ask() -> ServiceReply:
        if len(log.waits_s) == 2:
            stop.set()
        return ServiceReply(200, is_blocked=True)

    asyncio.run(ask_until(stop, ask, log, 0))
    figures = log.figures()
    assert (figures["count"], figures["blocked"], figures["not_judged"]) == (3, 3, 3)


def test_a_line_that_broke_off_is_no_result() -> None:
    lines = [b'{"judged": true}\n', b'{"error": {}}\n', b'{"judged": tr']
    assert count_results(lines) == {"results": 2, "not_judged": 1}


def test_batches_take_as_long_as_the_slowest_and_one_that_was_cut_off_has_no_seconds() -> None:
    one = {"results": 30, "not_judged": 1, "statuses": {"200": 1}, "retry_after_s": {}}
    late = {**one, "statuses": {"200": 1, "429": 2}, "retry_after_s": {"5": 2}}
    both = summarise_batches([{**one, "seconds": 3.0}, {**late, "seconds": 6.0}], 240)
    assert (both["seconds"], both["results_per_s"], both["not_judged"]) == (6.0, 10.0, 2)
    assert both["statuses"] == {"200": 2, "429": 2}
    assert both["retry_after_s"] == {"5": 2}
    cut = summarise_batches([{**one, "seconds": 3.0}, {**one, "seconds": None}], 240)
    assert (cut["seconds"], cut["results_per_s"]) == (None, 0.25)


def steady(seconds: float, growth_mb_a_minute: float) -> Iterator[Reading]:
    for at_s in range(0, int(seconds) + 1, 5):
        yield Reading(at_s, 100 + growth_mb_a_minute * at_s / 60, 12, 4)


def test_a_leak_has_a_slope() -> None:
    figures = summarise(list(steady(600, 3)), 10)
    assert figures["first_minute"] == {"rss_mb": 101.5, "open_files": 12, "threads": 4}
    assert figures["last_minute"]["rss_mb"] == 128.5
    for key in ("slope_a_minute", "slope_a_minute_second_half"):
        assert figures[key]["rss_mb"] == pytest.approx(3)
        assert figures[key]["threads"] == pytest.approx(0)
    assert figures["rss_mb_by_minute"][:2] == [101.4, 104.4]


def test_memory_that_fills_up_has_no_slope_at_the_end() -> None:
    readings = [one._replace(rss_mb=min(one.rss_mb, 109)) for one in steady(600, 3)]
    figures = summarise(readings, 10)
    assert figures["slope_a_minute"]["rss_mb"] > 0.4
    assert figures["slope_a_minute_second_half"]["rss_mb"] == pytest.approx(0)


def test_a_short_run_is_split_into_halves() -> None:
    figures = summarise(list(steady(30, 60)), 0.5)
    assert figures["first_minute"]["rss_mb"] == 107.5
    assert figures["last_minute"]["rss_mb"] == 122.5


def test_the_resources_of_a_process_are_read() -> None:
    reading = read_resources(os.getpid(), 7)
    assert reading.at_s == 7
    assert all(getattr(reading, name) > 0 for name in RESOURCES)


def test_callers_send_all_kinds_and_no_body_twice() -> None:
    kinds = Counter[str]()
    bodies = []
    for caller in range(soak.CALLERS):
        for kind, some in itertools.islice(requests_of(caller), 10):
            kinds[kind] += 1
            bodies += [one.body for one in some]
    assert set(kinds.values()) == {2 * soak.CALLERS}
    assert len(kinds) == 5
    assert len(set(bodies)) == len(bodies)


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_trace_is_one_that_the_service_reads(
    is_installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "PROTOBUF", is_installed)
    (request,) = soak.send_trace(make_samples((0,), 2), "0000000100000002")
    assert ("protobuf" in request.content_type) is is_installed
    content = (
        decode_messages(request.body, "trace")[0] if is_installed else json.loads(request.body)
    )
    spans = content["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [span["traceId"] for span in spans] == ["0000000100000002".rjust(32, "0")] * 2
    assert [bool(span.get("parentSpanId")) for span in spans] == [True, False]


def test_tables_name_callers_batches_and_resources() -> None:
    log = CallerLog()
    asyncio.run(ask_once(replying(429, 200), log))
    batch = {"seconds": None, "results": 9, "not_judged": 0, **log.replies()}
    figures = {
        "chat_during": log.figures(),
        "batch_during": summarise_batches([batch], 9),
    }
    callers, batches = sharing_tables({"new": figures})
    assert [row[:3] for row in callers[1]] == [["new", "chat_during", 1]]
    assert callers[1][0][-2:] == ["1 x 200, 1 x 429", "1 x 0.01"]
    assert [row[:4] for row in batches[1]] == [["new", "batch_during", None, 9]]
    measured = summarise(list(steady(600, 3)), 10)
    soaked = {"lexical": {"requests": 7, "minutes": 10, "other_replies": {"/ 500": 2}, **measured}}
    resources, requests = soak_tables(soaked)
    assert [row[1] for row in resources[1]] == list(RESOURCES)
    assert requests[1] == [["lexical", 10, 7, "2 x / 500"]]


@pytest.mark.slow
def test_the_benchmark_of_sharing_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "sharing --entailer lexical --samples 2 --alone 0.1 --dry".split()
    monkeypatch.setattr("sys.argv", arguments)
    sharing.main()
    printed = capsys.readouterr().out
    for name in ("chat_alone", "single_during", "batch_during"):
        assert name in printed

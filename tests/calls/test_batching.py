"""Single requests become batches: asked once, within limits, sorted, and failing alone."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import YES, Pair, Recorder
from trustassay.calls.backends import Backends
from trustassay.calls.batching import BATCHES_PER_ROUND, BatchingPolicy, batches
from trustassay.calls.client import CallOptions, Client, SampleModels
from trustassay.calls.prices import CHARACTERS_PER_TOKEN
from trustassay.calls.store import CallStore
from trustassay.core.capabilities import (
    BatchLimits,
    ChatRequest,
    EndpointLimits,
    Entailment,
    Probabilities,
    Reply,
)
from trustassay.core.fair_queue import CURRENT_FLOW, Flow
from trustassay.errors import BackendError


def ask(
    entailer: Any,
    *rounds: Sequence[Pair],
    store: CallStore | None = None,
    policy: BatchingPolicy | None = None,
) -> list[list[Entailment | BaseException]]:
    """Ask for the pairs of each round at once, one round after another."""

    async def work() -> list[list[Entailment | BaseException]]:
        gatherers = Client(
            Backends.of(entail=entailer),
            CallOptions(policy=policy or BatchingPolicy()),
            own_store=store,
        )
        models = SampleModels(gatherers)
        try:
            return [
                await asyncio.gather(*(models.entail(*p) for p in pairs), return_exceptions=True)
                for pairs in rounds
            ]
        finally:
            await gatherers.close()

    return asyncio.run(asyncio.wait_for(work(), 20))


def length(pair: Pair) -> int:
    return sum(map(len, pair)) // CHARACTERS_PER_TOKEN + 1


def pairs_of(lengths: Sequence[int]) -> list[Pair]:
    return [(f"{i:04d}" + "x" * 4 * n, "") for i, n in enumerate(lengths)]


# ---- asked once ----


def test_equal_requests_are_asked_once_at_the_same_time_and_later() -> None:
    recorder = Recorder(lambda premise, hypothesis: (0.25, 0.5, 0.25))
    pair = ("a", "b")
    first, second = ask(recorder, [pair, pair, ("b", "a"), pair], [pair, ("b", "a")])
    assert recorder.asked == {("a", "b"): 1, ("b", "a"): 1}
    assert set(first + second) == {Entailment(0.25, 0.5, 0.25)}


def test_requests_whose_texts_run_together_alike_are_different() -> None:
    recorder = Recorder()
    ask(recorder, [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"), ("a\x1fb", "c")])
    assert len(recorder.asked) == 5


def test_a_restart_does_not_ask_again(tmp_path: Path) -> None:
    pairs = pairs_of([1, 2, 3])
    replies = []
    recorders = [Recorder(lambda p, h: (1 / 3, 1 / 3, 1 / 3)) for _ in range(2)]
    for recorder in recorders:
        store = CallStore(tmp_path / "calls.sqlite")
        replies += ask(recorder, pairs, store=store)
        store.close()
    assert [len(r.asked) for r in recorders] == [3, 0]
    assert replies[0] == replies[1]  # rounding included


def test_another_backend_is_asked_itself(tmp_path: Path) -> None:
    first, second = Recorder(), Recorder()
    second.name = "another"
    store = CallStore(tmp_path / "calls.sqlite")
    ask(first, [("a", "b")], store=store)
    ask(second, [("a", "b")], store=store)
    store.close()
    assert len(first.asked) == len(second.asked) == 1


def test_a_backend_that_is_not_stored_leaves_no_calls(tmp_path: Path) -> None:
    store = CallStore(tmp_path / "calls.sqlite")
    ask(Recorder(stored=False), [("a", "b")], store=store)
    assert store.counts() == {}
    store.close()


def test_forgotten_replies_come_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trustassay.calls.batching.MAX_REMEMBERED_REPLIES", 2)
    recorder = Recorder()
    pairs = pairs_of([1] * 10)
    store = CallStore(tmp_path / "calls.sqlite")
    ask(recorder, pairs, pairs, pairs[::-1], store=store)
    store.close()
    assert set(recorder.asked.values()) == {1}


def test_each_policy_can_be_switched_off() -> None:
    twice, alone, unsorted = Recorder(), Recorder(), Recorder()
    ask(twice, [("a", "b")] * 3, policy=BatchingPolicy(deduplicate=False))
    ask(alone, pairs_of([1, 2, 3]), policy=BatchingPolicy(collect=False))
    ask(unsorted, pairs_of([3, 1, 2]), policy=BatchingPolicy(sort=False))
    assert twice.asked == {("a", "b"): 3}
    assert [len(b) for b in alone.batches] == [1, 1, 1]
    assert unsorted.batches == [pairs_of([3, 1, 2])]


# ---- batches ----


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=60),
    items=st.integers(1, 9),
    tokens=st.none() | st.integers(1, 90),
)
def test_batches_keep_to_the_limits_and_lose_nothing(
    lengths: list[int], items: int, tokens: int | None
) -> None:
    recorder = Recorder(limits=BatchLimits(items=items, tokens=tokens))
    pairs = pairs_of(lengths)
    ask(recorder, pairs)
    assert sorted(p for batch in recorder.batches for p in batch) == pairs
    in_order = [length(p) for batch in recorder.batches for p in batch]
    assert in_order == sorted(in_order)
    for batch in recorder.batches:
        assert 1 <= len(batch) <= items
        padded = max(map(length, batch)) * len(batch)
        assert tokens is None or padded <= tokens or len(batch) == 1


def test_batches_are_as_large_as_the_limits_allow() -> None:
    recorder = Recorder(limits=BatchLimits(items=4, tokens=None))
    ask(recorder, pairs_of([1] * 10))
    assert [len(b) for b in recorder.batches] == [4, 4, 2]
    assert not list(batches([], BatchLimits()))


def test_a_batch_holds_one_first_text_if_the_limits_want_it() -> None:
    recorder = Recorder(limits=BatchLimits(items=3, tokens=None, order="text", alike=True))
    pairs = [(f"premise {i % 2}", f"hypothesis {i}") for i in range(10)]
    ask(recorder, pairs)
    assert sorted(len(batch) for batch in recorder.batches) == [2, 2, 3, 3]
    assert all(len({premise for premise, _ in batch}) == 1 for batch in recorder.batches)
    assert sorted(p for batch in recorder.batches for p in batch) == sorted(pairs)


def test_requests_of_many_samples_meet_in_one_batch() -> None:
    recorder = Recorder()

    async def sample(models: SampleModels, i: int) -> None:
        await models.entail(f"first {i}", "x")
        await asyncio.sleep(0)
        await models.entail(f"second {i}", "x")

    async def work() -> None:
        gatherers = Client(Backends.of(entail=recorder))
        await asyncio.gather(*(sample(SampleModels(gatherers), i) for i in range(50)))
        await gatherers.close()

    asyncio.run(work())
    assert [len(b) for b in recorder.batches] == [50, 50]


def test_a_batch_waits_for_samples_that_are_about_to_ask() -> None:
    recorder = Recorder()

    async def sample(models: SampleModels, i: int) -> None:
        for _ in range(i):
            await asyncio.sleep(0)
        await models.entail(f"{i}", "x")

    async def work() -> None:
        gatherers = Client(Backends.of(entail=recorder))
        await asyncio.gather(*(sample(SampleModels(gatherers), i) for i in range(5)))
        await gatherers.close()

    asyncio.run(work())
    assert [len(b) for b in recorder.batches] == [5]


def test_what_the_size_of_a_batch_changes_in_the_last_digits_is_rounded_away() -> None:
    class Noisy:
        name = "noisy"

        def scores(self, pairs: Sequence[Pair]) -> Probabilities:
            noise = 1e-8 * len(pairs)
            return np.array([(0.25 + noise, 0.75 - noise, 0.0)] * len(pairs))

    pairs = pairs_of([1, 2, 3, 4])
    alone = ask(Noisy(), pairs, policy=BatchingPolicy(collect=False))
    assert ask(Noisy(), pairs) == alone == [[Entailment(0.25, 0.75, 0.0)] * 4]


def test_the_event_loop_goes_on_while_a_model_works() -> None:
    async def work() -> tuple[bool, bool]:
        ticked = asyncio.Event()
        loop = asyncio.get_running_loop()
        seen: list[bool] = []

        def judge(premise: str, hypothesis: str) -> Sequence[float]:
            future = asyncio.run_coroutine_threadsafe(tick(), loop)
            future.result(5)
            seen.append(True)
            return YES

        async def tick() -> None:
            ticked.set()

        gatherers = Client(Backends.of(entail=Recorder(judge)))
        await SampleModels(gatherers).entail("a", "b")
        await gatherers.close()
        return ticked.is_set(), bool(seen)

    assert asyncio.run(asyncio.wait_for(work(), 10)) == (True, True)


# ---- failures ----


def broken_for(premise_of_culprit: str, error: BaseException) -> Recorder:
    def judge(premise: str, hypothesis: str) -> Sequence[float]:
        if premise == premise_of_culprit:
            raise error
        return YES

    return Recorder(judge)


class Panic(BaseException):
    """What the Rust code under a tokenizer raises; it is no ``Exception``."""


@pytest.mark.parametrize(
    "error", [ValueError("no luck"), MemoryError(), Panic("at the disco"), SystemExit(3)]
)
def test_only_the_culprit_of_a_failing_batch_fails(error: BaseException) -> None:
    (replies,) = ask(broken_for("bad", error), [("good", "1"), ("bad", "2"), ("good", "3")])
    assert replies[0] == replies[2] == Entailment(*YES)
    assert isinstance(replies[1], BackendError)
    assert str(replies[1]).startswith(f"recorder failed: {type(error).__name__}")


def test_the_gatherer_works_on_after_a_failure_and_asks_a_failed_pair_again() -> None:
    recorder = Recorder(lambda premise, hypothesis: YES)
    failures = iter([True])

    def judge(premise: str, hypothesis: str) -> Sequence[float]:
        if next(failures, False):
            raise RuntimeError("not yet")
        return YES

    recorder.judge = judge
    first, second = ask(recorder, [("a", "b")], [("a", "b")])
    assert isinstance(first[0], BackendError)
    assert second == [Entailment(*YES)]


NAN = float("nan")


@pytest.mark.parametrize(
    "row", [(NAN, 0.5, 0.5), (1.5, -0.5, 0.0), (0.5, 0.5), (1.0,), (0.25, 0.25, 0.25, 0.25)]
)
def test_rows_that_are_no_probabilities_fail_alone(row: tuple[float, ...]) -> None:
    class Entailer:
        name = "odd"

        def scores(self, pairs: Sequence[Pair]) -> Any:
            rows = [row if premise == "bad" else YES for premise, _ in pairs]
            return np.array(rows) if len({len(r) for r in rows}) == 1 else rows

    (replies,) = ask(Entailer(), [("good", ""), ("bad", "")])
    assert replies[0] == Entailment(*YES)
    assert isinstance(replies[1], BackendError)
    assert "odd did not return three probabilities for each pair" in str(replies[1])


@pytest.mark.parametrize("found", [[], [YES, YES, YES], None, "yes", [[["a"]]]])
def test_replies_of_another_shape_are_an_error(found: Any) -> None:
    class Entailer:
        name = "odd"

        def scores(self, pairs: Sequence[Pair]) -> Probabilities:
            return found  # type: ignore[no-any-return]

    (replies,) = ask(Entailer(), [("a", ""), ("b", "")])
    assert all(isinstance(r, BackendError) and str(r).startswith("odd ") for r in replies)


def test_who_gives_up_waiting_takes_no_one_along() -> None:
    """Two samples wait for one request; the first one is cancelled."""
    recorder = Recorder()

    async def work() -> tuple[Entailment, bool]:
        gatherers = Client(Backends.of(entail=recorder))
        models = SampleModels(gatherers)
        impatient = asyncio.ensure_future(models.entail("a", "b"))
        patient = asyncio.ensure_future(models.entail("a", "b"))
        impatient.cancel()
        found = await patient
        await gatherers.close()
        return found, impatient.cancelled()

    assert asyncio.run(asyncio.wait_for(work(), 10)) == (Entailment(*YES), True)
    assert recorder.asked == {("a", "b"): 1}


def test_without_an_entailer_a_metric_is_told_so() -> None:
    async def work() -> None:
        gatherers = Client(Backends())
        with pytest.raises(BackendError, match="no entailer"):
            await SampleModels(gatherers).entail("a", "b")
        await gatherers.close()

    asyncio.run(work())


# ---- several callers ----


class GatedEntailer(Recorder):
    """Computes a batch when it may; notes the batches in their order."""

    def __init__(self) -> None:
        super().__init__(limits=BatchLimits(items=4, tokens=None))
        self.may_go = threading.Semaphore(0)

    def scores(self, pairs: Sequence[Pair]) -> Probabilities:
        assert self.may_go.acquire(timeout=10)
        return super().scores(pairs)


def serve_callers(
    entailer: GatedEntailer, come: Sequence[tuple[str, Sequence[str]]]
) -> list[list[Any]]:
    """Let each caller ask when the first batch of the one before is being computed."""

    async def ask_as(models: SampleModels, caller: str, premises: Sequence[str]) -> list[Any]:
        CURRENT_FLOW.set(Flow(caller))
        return await asyncio.gather(
            *(models.entail(premise, "") for premise in premises), return_exceptions=True
        )

    async def work() -> list[list[Any]]:
        client = Client(Backends.of(entail=entailer), CallOptions())
        models = SampleModels(client)
        try:
            asking = []
            for caller, premises in come:
                asking.append(asyncio.create_task(ask_as(models, caller, premises)))
                # until its requests are queued, or the first of them is being computed
                await asyncio.sleep(0.05)
            entailer.may_go.release(1000)
            return await asyncio.gather(*asking)
        finally:
            await client.close()

    return asyncio.run(asyncio.wait_for(work(), 20))


def test_a_newcomer_is_served_before_the_rest_of_a_long_list() -> None:
    entailer = GatedEntailer()
    long = [f"long {number:03d}" for number in range(100)]
    replies = serve_callers(entailer, [("a", long), ("b", ["short 1", "short 2"])])
    assert [len(part) for part in replies] == [100, 2]
    place = next(n for n, batch in enumerate(entailer.batches) if ("short 1", "") in batch)
    # the batch that was being computed, then a round of both callers
    assert place <= BATCHES_PER_ROUND
    assert sum(entailer.asked.values()) == 102


def test_a_request_that_is_last_of_a_list_is_answered_at_the_turn_of_who_asks_again() -> None:
    entailer = GatedEntailer()
    long = [f"long {number:03d}" for number in range(100)]
    replies = serve_callers(entailer, [("a", long), ("b", ["long 099"])])
    assert [len(part) for part in replies] == [100, 1]
    place = next(n for n, batch in enumerate(entailer.batches) if ("long 099", "") in batch)
    assert place <= BATCHES_PER_ROUND
    assert set(entailer.asked.values()) == {1}


def test_requests_whose_callers_have_gone_are_not_computed() -> None:
    entailer = GatedEntailer()

    async def work() -> None:
        client = Client(Backends.of(entail=entailer), CallOptions())
        models = SampleModels(client)
        try:
            staying = asyncio.ensure_future(models.entail("stays", ""))
            await asyncio.sleep(0.05)
            leaving = [
                asyncio.ensure_future(models.entail(f"leaves {number}", "")) for number in range(20)
            ]
            for future in leaving:
                future.cancel()
            entailer.may_go.release(100)
            await staying
            # the same again is a new request, and does not wait for the one that was dropped
            await models.entail("leaves 3", "")
        finally:
            await client.close()

    asyncio.run(asyncio.wait_for(work(), 20))
    assert dict(entailer.asked) == {("stays", ""): 1, ("leaves 3", ""): 1}


def test_calls_to_an_endpoint_wait_for_their_callers_turn() -> None:
    class SlowEndpoint:
        name = "slow"
        limits = EndpointLimits(concurrency=2)

        def __init__(self) -> None:
            self.order: list[str] = []

        async def reply(self, request: ChatRequest) -> Reply:
            self.order.append(str(request.messages[-1].content))
            await asyncio.sleep(0.002)
            return Reply("yes")

    endpoint = SlowEndpoint()

    async def ask_as(models: SampleModels, caller: str, texts: Sequence[str]) -> None:
        CURRENT_FLOW.set(Flow(caller))
        await asyncio.gather(*(models.chat(text) for text in texts))

    async def work() -> None:
        client = Client(Backends.of(chat={"model": endpoint}), CallOptions())
        models = SampleModels(client)
        try:
            long = asyncio.create_task(ask_as(models, "a", [f"long {n}" for n in range(300)]))
            await asyncio.sleep(0.05)
            await ask_as(models, "b", ["short 1", "short 2"])
            place = endpoint.order.index("short 2")
            await long
            assert place < 150, place
        finally:
            await client.close()

    asyncio.run(asyncio.wait_for(work(), 20))
    assert len(endpoint.order) == 302

"""The limits of the service, and how much work a record is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support import record
from trustassay import scorer
from trustassay.core.fair_queue import CURRENT_FLOW, Flow
from trustassay.core.sample import Sample
from trustassay.live.service import (
    MAX_MEASURED,
    PART_CHARACTERS,
    BusyError,
    Service,
    ServiceSettings,
    choose_text_work,
    measure_record,
)
from trustassay.text.limits import MAX_SHORT_PASSAGES_CHARACTERS

LONG = MAX_SHORT_PASSAGES_CHARACTERS


@pytest.mark.parametrize(
    "content",
    [
        {"question": "x" * LONG + "x"},
        # no text at all, and still much to look at
        {f"k{number}": 1 for number in range(LONG)},
        {"documents": [[]] * LONG},
        {"documents": [{}] * LONG},
        # texts far inside
        {"messages": [{"content": [{"type": "text", "text": {"value": "x" * LONG}}]}]},
        [[[["x" * LONG]]]],
    ],
)
def test_a_record_with_much_in_it_is_read_in_a_thread(content: Any) -> None:
    assert measure_record(content) > LONG
    assert choose_text_work(content)._long


def test_a_short_record_is_read_at_once_and_the_measure_is_bounded() -> None:
    assert measure_record({"question": "What?", "documents": ["a", "b"]}) == 7 + 4 * PART_CHARACTERS
    assert not choose_text_work(record(1))._long
    endless: list[Any] = []
    endless.append(endless)
    endless.append("x" * 100)
    assert measure_record(endless) == MAX_MEASURED
    assert measure_record({"question": "x" * 10 * MAX_MEASURED}) == MAX_MEASURED


@pytest.mark.parametrize(
    ("capacity", "per_caller", "share"),
    [(4096, None, 1024), (3, None, 1), (1, None, 1), (100, 60, 60), (100, 500, 100)],
)
def test_a_caller_has_a_share_of_the_capacity(
    capacity: int, per_caller: int | None, share: int
) -> None:
    assert ServiceSettings(capacity=capacity, per_caller=per_caller).share == share


@pytest.mark.parametrize("name", ["X User", "X-User:", "", "X\nUser", "Ä"])
def test_the_header_of_callers_must_be_a_name(name: str) -> None:
    if not name:
        assert ServiceSettings(caller_header=name).caller_header == ""
        return
    with pytest.raises(ValueError, match="--caller-header: expected"):
        ServiceSettings(caller_header=name)


def test_verdicts_have_a_share_of_their_own_beside_full_shares_of_samples() -> None:
    def judge(premise: str, hypothesis: str) -> tuple[float, float, float]:
        return (1.0, 0.0, 0.0)

    async def run() -> None:
        async with scorer(metrics="faithfulness", entailer=judge) as opened:
            service = Service(opened, ServiceSettings(capacity=4, per_caller=2))
            samples = [Sample.parse(record(number)) for number in range(8)]
            one = Flow("one", 1)
            CURRENT_FLOW.set(one)
            tasks = service.begin(samples[:2])
            with pytest.raises(BusyError, match="this caller has 2 samples") as caught:
                service.begin(samples[2:3])
            assert caught.value.retry_after_s >= 1
            # the same caller's verdicts
            CURRENT_FLOW.set(one.as_verdict())
            tasks += service.begin(samples[2:4])
            with pytest.raises(BusyError, match="this caller has"):
                service.begin(samples[4:5])
            # verdicts do not count: there is room for another caller's samples
            CURRENT_FLOW.set(Flow("two", 2))
            tasks += service.begin(samples[4:6])
            # all are in progress: a third one's samples wait, and his verdicts do not
            CURRENT_FLOW.set(Flow("three", 3))
            with pytest.raises(BusyError, match="all callers have 4 samples"):
                service.begin(samples[6:7])
            CURRENT_FLOW.set(Flow("three", 3).as_verdict())
            tasks += service.begin(samples[6:7])
            assert service.samples_in_progress == 4
            await asyncio.gather(*(task for task in tasks if isinstance(task, asyncio.Task)))
            await asyncio.sleep(0)
            assert service.samples_in_progress == 0
            CURRENT_FLOW.set(one)
            assert len(service.begin(samples[:2])) == 2

    asyncio.run(asyncio.wait_for(run(), 20))

"""Events of streamed completions, in whatever pieces they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.live.upstream import DONE, USAGE, chunk, chunks
from trustassay.live.upstream import (
    StreamedAnswers,
    StreamEvent,
    UpstreamError,
    has_text,
    read_events,
    without_choices,
)

STREAM = b": comment\n\n" + b"".join(chunks("One", " two.", usage=True))


def read(pieces: Sequence[bytes], most: int = 10**7) -> list[StreamEvent]:
    async def given_pieces() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def run() -> list[StreamEvent]:
        return [event async for event in read_events(given_pieces(), most)]

    return asyncio.run(run())


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = [0, *sorted(place % len(data) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(ends)]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 10**4), max_size=40), st.booleans())
def test_pieces_change_nothing(places: list[int], carriage_returns: bool) -> None:
    data = STREAM.replace(b"\n", b"\r\n") if carriage_returns else STREAM
    found = read(cut(data, places))
    assert b"".join(event.raw for event in found) == data
    assert [event.data is None for event in found] == [True] + [False] * 6
    answers = StreamedAnswers()
    for event in found:
        answers.add(event)
    answers.finish()
    assert (answers.texts(), answers.error) == ({0: "One two."}, None)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_passed_on(data: bytes) -> None:
    found = b"".join(event.raw for event in read([data]))
    assert found.startswith(data.rstrip(b"\r\n \t\v\f")) or b"[DONE]" in data


@pytest.mark.parametrize(
    "event",
    [
        b"\xef\xbb\xbf" + chunk({"content": "x"}),
        b": comment\r" + chunk({"content": "x"}),
        chunk({"content": "x"}).replace(b"\n\n", b"\r\r"),
        b"data\n\n",
        b"Data: x\n\n",
        b"garbage\n\n",
    ],
)
def test_an_event_that_others_might_read_is_told(event: bytes) -> None:
    answers = StreamedAnswers()
    for one in read([event]):
        answers.add(one)
    assert answers.error == "the stream has data that is not a JSON object"


def test_events_without_data_are_none() -> None:
    plain = b": waiting\n\nevent: ping\nid: 1\nretry: 5\n\n"
    assert [event.data for event in read([plain])] == [None, None]


def test_nothing_is_read_behind_the_end() -> None:
    assert [event.data for event in read([DONE + chunk({"content": "x"})])] == [b"[DONE]"]


def test_a_stream_and_its_events_are_bounded() -> None:
    with pytest.raises(UpstreamError, match="more than 100 bytes"):
        read([STREAM], most=100)
    with pytest.raises(UpstreamError, match="an event has"):
        read([b"data: " + b"x" * 1_100_000, b"x" * 1_100_000])


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ({"content": "x"}, True),
        ({"tool_calls": [{}]}, True),
        ({"reasoning_content": "x"}, True),
        ({"role": "assistant"}, False),
        ({"role": "assistant", "content": ""}, False),
        ({"content": None}, False),
        ({}, False),
        (None, False),
    ],
)
def test_what_a_client_waits_for(delta: dict[str, object] | None, expected: bool) -> None:
    (event,) = read([chunk(delta)])
    assert event.chunk is not None
    assert has_text(event.chunk) is expected


def test_choices_are_left_out() -> None:
    (first,) = read([chunk({"content": "x"}, 0)])
    (usage,) = read([chunk({"content": "x"}, 0, usage=USAGE)])
    assert without_choices(first, []) is first
    assert without_choices(first, [1]) is first
    assert without_choices(first, [0]) is None
    left = without_choices(usage, [0])
    assert left
    assert left.chunk
    assert (left.chunk["choices"], left.chunk["usage"]) == ([], USAGE)
    assert b'"x"' not in left.raw


def test_a_refusal_is_an_answer_and_a_call_of_tools_is_none() -> None:
    answers = StreamedAnswers()
    first = chunk({"role": "assistant", "content": ""}, 0)
    given_events = [first, chunk({"refusal": "No."}, 0), chunk({"tool_calls": []}, 1), DONE]
    for event in read(given_events):
        answers.add(event)
    assert answers.texts() == {0: "No.", 1: None}

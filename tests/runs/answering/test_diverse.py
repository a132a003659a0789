"""Several answers of one call: what is asked, and what is read from any reply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.sample import Sample
from trustassay.runs.answering import (
    Answering,
    build_diverse_request,
    load_diverse_prompt,
    parse_answers,
)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("1. One.\n2. Two.\n3. Three.", ("One.", "Two.", "Three.")),
        ("Here they are:\n1) One\n  goes on\n2) Two", ("One goes on", "Two")),
        ("**1.** One\n**2.** Two", ("One", "Two")),
        ("Answer 1: One\nAnswer 2: Two", ("One", "Two")),
        ("1. Same\n2. Same\n3. Other", ("Same", "Other")),
        ("1. \n2. Two", ("Two",)),
        ("1. a\n2. b\n3. c\n4. d\n5. e\n6. f", ("a", "b", "c", "d", "e")),
        ("I would rather not.", ()),
        ("", ()),
    ],
)
def test_numbered_answers_are_read(reply: str, expected: tuple[str, ...]) -> None:
    assert parse_answers(reply, 5) == expected


def test_one_answer_is_the_whole_reply() -> None:
    assert parse_answers(" 1. One\n2. Two ", 1) == ("1. One\n2. Two",)


@given(reply=st.text(alphabet=st.characters(), max_size=300), n=st.integers(1, 6))
def test_any_reply_gives_at_most_n_different_answers(reply: str, n: int) -> None:
    found = parse_answers(reply, n)
    assert len(found) <= n
    assert len(set(found)) == len(found)


def test_the_request_is_as_long_as_its_answers() -> None:
    answering = Answering(temperature=0.7, max_tokens=50)
    request = build_diverse_request(Sample("a", "Why so?"), 5, answering, load_diverse_prompt())
    assert request.max_tokens == 250
    assert request.temperature == 0.7
    assert request.prompt == "diverse-answers/1"
    text = request.messages[-1].content
    assert "Why so?" in text
    assert "5 times" in text

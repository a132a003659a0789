from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.prompts import load_prompt
from trustassay.core.sample import Sample
from trustassay.papers.dataset import (
    ClaimError,
    ask_claims,
    parse_claims,
    split_into_claims,
)

LONG = (
    "Leaves hold chlorophyll [1]. In autumn it breaks down.\n"
    "- Dr. Green saw it. In autumn it breaks down."
)


def sample(*answers: str) -> Sample:
    return Sample.parse({"id": "q", "question": "Why {{ yellow }}?", "answers": list(answers)})


def test_sentences_of_the_gold_answer_each_once_without_citations() -> None:
    assert split_into_claims(sample(LONG)) == (
        "Leaves hold chlorophyll.",
        "In autumn it breaks down.",
        "Dr. Green saw it.",
    )


@pytest.mark.parametrize(
    ("reply", "claims"),
    [
        ("1. One is so.\n2. Two is so.", ("One is so.", "Two is so.")),
        ("Here you are:\n\n1) One.\n 2) Two.\nHope it helps!", ("One.", "Two.")),
        ("Claim 1: One.\n**Fact 2:** Two.", ("One.", "Two.")),
        ("1. Same.\n2. Same.", ("Same.",)),
        ("1. In 1999 it had 3. parts", ("In 1999 it had 3. parts",)),
    ],
)
def test_numbered_lines_are_claims(reply: str, claims: tuple[str, ...]) -> None:
    assert parse_claims(reply) == claims


@given(st.text())
def test_every_reply_gives_claims_or_an_error_that_shows_it(reply: str) -> None:
    try:
        assert all(parse_claims(reply))
    except ClaimError as error:
        assert "has no numbered claims" in str(error)


def test_the_model_is_asked_once_for_each_answer() -> None:
    asked: list[str] = []

    async def ask(prompt: str) -> str:
        asked.append(prompt)
        return f"1. Claim {len(asked)}."

    claims = asyncio.run(ask_claims(sample("First answer.", "Second answer."), ask))
    assert claims == ("Claim 1.", "Claim 2.")
    assert "Answer: First answer.\nFacts:" in asked[0]
    assert asked[0].count("Question: ") == 2  # ours stands as written, the template is not run
    assert "Why {{ yellow }}?" in asked[0]


def test_the_prompt_has_a_version() -> None:
    assert load_prompt("trustassay.papers", "claims").name == "claims/1"

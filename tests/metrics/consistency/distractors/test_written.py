"""Wrong answers that a chat model wrote: what is read of a reply, and what is dropped."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.consistency.distractors.scripted import Scripted, names
from trustassay.core.capabilities import Models
from trustassay.metrics.consistency.distractors import (
    MAX_GENERATED_ANSWERS,
    find_distractors,
    read_reply,
)
from trustassay.metrics.consistency.slots import find_slots
from trustassay.metrics.consistency.tokens import Distractor

QUESTION, ANSWER = "who wrote it", "Jane wrote it."


def find(models: Scripted, question: str = QUESTION, answer: str = ANSWER, **options: Any) -> Any:
    options.setdefault("sources", ["llm"])
    return asyncio.run(find_distractors(question, answer, cast(Models, models), **options))


def texts(found: list[Distractor]) -> list[str]:
    return [one.text for one in found]


def written(question: str, answer: str, *lines: str) -> list[str]:
    """Return the wrong answers that are made of the lines of a reply."""
    reply = "\n".join(f"{n}. {line}" for n, line in enumerate(lines, 1))
    found = find(Scripted({}, reply=reply), question, answer)
    return texts([one for one in found if one.source == "llm"])


def test_a_model_is_asked_once_and_lines_of_one_replaced_part_are_read() -> None:
    reply = (
        "Sure, here they are:\n1. Emily wrote it.\n2) Jane wrote it.\n3. Anne sang it.\n"
        '4. "Kafka wrote it"\n- Jane painted it.\nAnd Proust wrote it.\n5. **Anne Lee**'
    )
    models = Scripted({}, reply=reply)
    found = find(models)
    assert [(one.source, one.level, one.text) for one in found] == [
        ("llm", 1, "Emily wrote it."),
        ("llm", 1, "Kafka wrote it."),
        ("llm", 1, "Anne Lee wrote it."),
    ]
    (prompt,) = models.prompts
    assert QUESTION in prompt and ANSWER in prompt and '"Jane"' in prompt


@pytest.mark.parametrize(
    ("question", "answer", "kept", "dropped"),
    [
        (
            "who invented it",
            "Adolphe Sax",
            ["Eric Satie", "Johann Sebastian Bach"],
            [
                "a Belgian",
                "1846",
                "the clarinet",
                "He was Charles Gounod",
                "Marie Curie, a chemist",
                "Carl Philipp Emanuel Bach Junior",
            ],
        ),
        ("what is it", "a chicken patty", ["a cheese sandwich"], ["Berlin", "chicken nuggets"]),
        (
            "what language",
            "He speaks Spanish",
            ["He speaks French"],
            ["He speaks quickly", "speaks Greek well"],
        ),
        (
            "where was it",
            "It was in Hispaniola, now Haiti",
            ["It was in Cuba, now Haiti"],
            ["Haiti"],
        ),
        ("what was he", "He was a painter", ["He was an actor"], ["He was born in Rome"]),
    ],
)
def test_the_kind_is_that_of_the_answer(
    question: str, answer: str, kept: list[str], dropped: list[str]
) -> None:
    assert written(question, answer, *kept) == kept
    assert written(question, answer, *dropped) == []


def test_capitals_and_articles_around_the_part_are_no_difference() -> None:
    assert written(
        "where was it", "The battle of issus was in Syria.", "The Battle of Issus was in Iraq"
    ) == ["The battle of issus was in Iraq."]
    assert written("what was he", "He was a painter", "he was an actor") == ["He was an actor"]


def test_words_alone_stand_for_the_part_that_tells_most() -> None:
    answer = "The song came out in Rome."
    assert written("where was it", answer, "Paris", "1985", "in Oslo") == [
        "The song came out in Paris."
    ]


@pytest.mark.parametrize("answer", ["1983", "12 million", "It was in March 1983.", "Of 12 men."])
def test_dates_and_numbers_are_drawn_and_not_asked_for(answer: str) -> None:
    """A small model writes those after it one by one, so that the least is the answer."""
    models = Scripted({}, reply="1. 1984\n2. 13\n3. March 1984")
    assert {one.source for one in find(models, "which", answer)} <= {"date", "number"}
    assert models.prompts == []
    assert written(QUESTION, "Jane wrote it in 1983.", "Jane wrote it in 1984", "Emily") == [
        "Emily wrote it in 1983."
    ]


def test_gold_answers_and_the_answer_itself_are_dropped() -> None:
    reply = "1. Jane\n2. JANE wrote it!\n3. Jane Austen wrote it\n4. Emily\n5. Emily\n6. Ann Lee"
    found = find(Scripted({}, reply=reply), aliases=["Ann Lee", "Ann"])
    assert texts(found) == ["Emily wrote it."]


def test_the_answer_in_other_words_and_two_that_say_the_same_are_dropped() -> None:
    """Both directions count: Kafka entails Jane here, and not the other way round."""
    same = [{"Jane", "Austen"}, {"Emily", "Bronte"}, {"Smith", "Ann"}]

    def entails(premise: str, hypothesis: str) -> bool:
        both = set("Jane Austen Emily Bronte Smith Ann Kafka".split())
        told = {name for name in both if name in premise or name in hypothesis}
        return told in same or (told == {"Jane", "Kafka"} and "Kafka" in premise)

    reply = "1. Austen wrote it.\n2. Emily wrote it.\n3. Bronte wrote it.\n4. Kafka\n5. Ann"
    models = Scripted({"pos": {"Jane": ["Bronte", "Proust"]}}, reply=reply, entails=entails)
    found = find(models, aliases=["Smith"], sources=["llm", "pos"])
    assert [(one.source, one.replacement) for one in found][:3] == [
        ("llm", "Emily"),
        ("llm", "Kafka"),
        ("pos", "Proust"),  # what was dropped is not taken from another source
    ]
    assert ("who wrote it Austen wrote it.", "who wrote it Jane wrote it.") in models.judged
    assert ("who wrote it Jane wrote it.", "who wrote it Austen wrote it.") in models.judged
    assert ("who wrote it Bronte wrote it.", "who wrote it Emily wrote it.") in models.judged
    without = find(Scripted({}, reply=reply), aliases=["Smith"])
    assert [one.replacement for one in without] == ["Austen", "Emily", "Bronte", "Kafka", "Ann"]


def test_other_sources_fill_up_to_ten_and_no_more() -> None:
    sources = {"embedding": {"Jane": names(40)}}
    found = find(Scripted(sources, reply="1. Emily\n2. Anne"), sources=["embedding", "llm"])
    assert [one.source for one in found] == ["llm"] * 2 + ["embedding"] * (
        MAX_GENERATED_ANSWERS - 2
    )
    assert len(find(Scripted(sources), sources=["embedding"])) == 40
    lines = "\n".join(f"{n}. {name}" for n, name in enumerate(names(30)))
    full = Scripted(sources, reply=lines)
    assert [one.source for one in find(full, sources=["embedding", "llm"])] == [
        "llm"
    ] * MAX_GENERATED_ANSWERS
    assert full.asked == []


def test_an_answer_without_words_is_not_asked_about() -> None:
    models = Scripted({}, reply="1. Emily")
    assert find(models, answer="...") == []
    assert models.prompts == []


@pytest.mark.parametrize("reply", ["1. x" + " " * 30_000 + "x\n" * 30_000, "1. Emily\n" * 9_000])
def test_a_long_reply_is_read_in_no_time(reply: str) -> None:
    began = time.process_time()
    assert len(find(Scripted({}, reply=reply))) <= 1
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "reply", ["", "no", "1.", "1. \n2. ", "1. Jane wrote it." * 3, "\x00\n1. x", "1. {{ n }}"]
)
def test_no_reply_of_a_chat_model_breaks_the_search(reply: str) -> None:
    assert find(Scripted({}, reply=reply)) == []


@given(st.text(), st.sampled_from([ANSWER, "Adolphe Sax", "12 million", "a dog.", "He is"]))
def test_any_reply_is_read(reply: str, answer: str) -> None:
    groups = find_slots(QUESTION, answer)
    for slot, replacement in read_reply(f"1. {reply}", answer, groups):
        assert answer[slot.start : slot.end] == slot.text
        assert replacement.strip()

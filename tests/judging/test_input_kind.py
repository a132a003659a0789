"""The kind of a file's answers: what decides it, and where the bounds were measured."""

from __future__ import annotations

from typing import Any

import pytest
from lab.results import read_result

from trustassay.judging import input_kind
from trustassay.judging.input_kind import MAX_ANSWERS_READ, InputKindCounter

PASSAGE = "The harbour bridge was opened on 4 May 1931. It is 412 metres long and has two towers."
COPY = "The harbour bridge was opened on 4 May 1931 and is 412 metres long."
REWORDING = "Traffic could cross there from that spring, over nearly half a kilometre."
HALF = "The harbour bridge carried traffic from 1931, over nearly half a kilometre."
TABLE = "| lamp | price |\n| --- | --- |\n| Aurora | 20 USD |\n| Boreal | 25 USD |"
CALL = {"tool": "search", "arguments": {}, "passages": [1]}


def kind_of(*samples: dict[str, Any]) -> str | None:
    counter = InputKindCounter(len(samples))
    for sample in samples:
        counter.add(sample)
    return counter.kind


def sample_of(response: str, passage: str = PASSAGE, **fields: Any) -> dict[str, Any]:
    row = {"question": "How long is it?", "response": response, "documents": [{"text": passage}]}
    return {**row, **fields}


@pytest.mark.parametrize(
    ("sample", "kind"),
    [
        (sample_of(COPY), "copied"),
        (sample_of(HALF), "partly reworded"),
        (sample_of(REWORDING), "reworded"),
        (sample_of("The Aurora lamp costs 20 USD.", TABLE), "data"),
        (sample_of("It costs 20 USD.", '[{"lamp": "Aurora", "price": 20}]'), "data"),
        (sample_of("The Aurora costs 20.", "lamp,price,stock\nAurora,20,4\nBoreal,25,0\n"), "data"),
        (sample_of(COPY, question="Summarise the article."), "summaries"),
        (sample_of(COPY, question="Write a short summary of it"), "summaries"),
        (sample_of(COPY, steps=[{"user": "Hello"}, {"assistant": "Hello."}]), "chats"),
        (sample_of(COPY, steps=[{"user": "How long?"}, CALL]), "tools"),
        (sample_of(COPY, steps=5), "copied"),
        (sample_of("It costs 20 USD.", TABLE, steps=[{"user": "How much?"}, CALL]), "tools"),
        (sample_of(f"{COPY} " * 8), "long answers"),
        (sample_of(COPY, f"{PASSAGE} " * 40), "long passages"),
        (sample_of(COPY, documents=[]), None),
        (sample_of(" "), None),
        (sample_of(COPY, documents=[{"text": " "}]), None),
    ],
)
def test_what_the_answers_and_passages_are_decides(
    sample: dict[str, Any], kind: str | None
) -> None:
    assert kind_of(sample, sample) == kind


def test_the_half_of_the_answers_decides() -> None:
    table = sample_of("The Aurora lamp costs 20 USD.", TABLE)
    assert kind_of(table, sample_of(COPY)) == "data"
    assert kind_of(table, sample_of(COPY), sample_of(COPY)) == "copied"
    # Blank answers say nothing about the others.
    assert kind_of(sample_of(""), sample_of(""), sample_of(REWORDING)) == "reworded"


def test_of_a_large_run_a_part_is_read_from_all_over_it() -> None:
    total = 10 * MAX_ANSWERS_READ
    counter = InputKindCounter(total)
    for number in range(total):
        counter.add(sample_of(COPY if number < 0.4 * total else REWORDING))
    assert len(counter._shares) == MAX_ANSWERS_READ
    assert counter.kind == "reworded"


def test_the_bounds_lie_between_the_quartiles_of_public_sets() -> None:
    """python -m lab.benchmarks.input_kinds measures them again."""
    sets = read_result("input-kinds")
    lower, median, upper = range(3)
    wice = sets["WiCE"]["shared_words"]
    assert sets["HealthVer"]["shared_words"][upper] < input_kind.MAX_REWORDED_SHARE < wice[lower]
    assert wice[upper] < input_kind.MIN_COPIED_SHARE
    assert sets["BEGIN"]["shared_words_supported"][lower] > input_kind.MIN_COPIED_SHARE
    longest = input_kind.MIN_LONG_ANSWER_WORDS
    assert sets["SummEdits"]["answer_words"][upper] < longest < sets["ExpertQA"]["answer_words"][0]
    passages = input_kind.MIN_LONG_PASSAGES_WORDS
    assert sets["ExpertQA"]["passage_words"][median] < passages
    assert passages < sets["WiCE, whole pages"]["passage_words"][lower]

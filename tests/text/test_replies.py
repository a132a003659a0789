"""Awkward replies of models: none is read as another value than a careful reader would take."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import repeats
from trustassay.calls.multiple_choice import find_letter
from trustassay.judging.claims import parse_claim_list
from trustassay.metrics.fewl.references import read_yes_or_no
from trustassay.metrics.judge.options import SHIPPED, read_rubric
from trustassay.metrics.judge.replies import read_reply
from trustassay.papers.dataset import ClaimError, parse_claims
from trustassay.runs.answering import parse_answers
from trustassay.text.replies import MAX_REPLY_CHARACTERS, find_numbered_lines
from trustassay.text.verdict_replies import find_verdict

RUBRICS = {name: read_rubric(name) for name in SHIPPED}
READERS: Mapping[str, Callable[[str], str | None]] = {
    **{
        name: partial(lambda rubric, text: read_reply(text, rubric).label, rubric)
        for name, rubric in RUBRICS.items()
    },
    "letters": partial(find_letter, letters="ABC"),
    "entailment": lambda text: found.verdict if (found := find_verdict(text)) else None,
    "yes-no": lambda text: {True: "yes", False: "no", None: None}[read_yes_or_no(text)],
}
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("replies.jsonl").read_text("utf-8").split("\n")
    if line
]
"""Each a reply, who reads it, what a careful reader takes from it (null: nothing, or it is not
clear), and whether it is asked for again though it is clear to a reader."""


def test_the_replies_are_many_and_of_many_kinds() -> None:
    assert len({(row["reader"], row["reply"]) for row in ROWS}) == len(ROWS) > 2000
    assert len({row["why"] for row in ROWS}) > 30


@pytest.mark.parametrize("reader", READERS)
def test_no_reply_is_misread(reader: str) -> None:
    read = READERS[reader]
    rows = [row for row in ROWS if row["reader"] == reader]
    found = {row["reply"]: read(row["reply"]) for row in rows}
    expected = {row["reply"]: None if row.get("asked_again") else row["means"] for row in rows}
    assert found == expected


def test_few_clear_replies_are_asked_for_again() -> None:
    clear = [row for row in ROWS if row["means"] is not None]
    assert sum(row.get("asked_again", False) for row in clear) / len(clear) < 0.12


def test_what_is_wrong_with_a_reply_is_told() -> None:
    rows = [row for row in ROWS if "fault" in row]
    found = {row["reply"]: read_reply(row["reply"], RUBRICS[row["reader"]]).fault for row in rows}
    assert found == {row["reply"]: row["fault"] for row in rows}
    assert set(found.values()) == {"none", "several", "outside"}


PLAIN = [
    row
    for row in ROWS
    if not set(row["reply"]) & set("*_`~<>|\\\n\r#-\"'") and row["reply"].strip()
]
AROUND = st.sampled_from(
    ["\n\n{} \n", "  {}\t", "**{}**", "*{}*", "_{}_", "***{}***", "`{}`", "__{}__"]
)


@given(st.sampled_from(PLAIN), AROUND)
@settings(max_examples=repeats(300), deadline=None)
def test_white_space_and_emphasis_around_a_reply_change_nothing(
    row: dict[str, Any], around: str
) -> None:
    read = READERS[row["reader"]]
    assert read(around.format(row["reply"])) == read(row["reply"])


LABELS = st.sampled_from(
    ["Score: ", "", "**Score:** ", "I give it a ", "Bewertung: ", "评分：", '{"score": "']
)
TWO = [
    "{} or {}",
    "{}-{}",
    "{}, {}",
    "{} (or {})",
    "{} (if the date is ignored, else {})",
    "{} to {}",
    "{}; rather {}",
    "{}, otherwise {}",
    "{}, maybe {}",
    "{} -> {}",
    "{}\nScore: {}",
    "{}? No, {}.",
]


@given(LABELS, st.sampled_from(TWO), st.permutations("12345"))
@settings(max_examples=repeats(200), deadline=None)
def test_of_two_values_none_is_taken(label: str, two: str, values: list[str]) -> None:
    reply = label + two.format(values[0], values[1])
    assert read_reply(reply, RUBRICS["truthfulness"]).label is None


PIECES = st.sampled_from(
    "A B C b (B) answer is Answer: choice not no yes Yes. if else or and than \n . , ( ) the it "
    'supports SUPPORTS contradicts neither Verdict: 2. 3 Score: ** ` " \\boxed{ } { <a> </a>'.split(
        " "
    )
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=14).map(" ".join)))
@settings(max_examples=repeats(300), deadline=None)
def test_every_reader_gives_a_value_on_offer_or_none(text: str) -> None:
    on_offer = {
        **{name: set(rubric.values) for name, rubric in RUBRICS.items()},
        "letters": set("ABC"),
        "entailment": {"support", "neutral", "contradict"},
        "yes-no": {"yes", "no"},
    }
    for name, read in READERS.items():
        assert read(text) in {None, *on_offer[name]}


HOSTILE = [
    *(
        "score ",
        "(",
        "4 or ",
        "4\n",
        "I give ",
        "score: 4, ",
        "so ",
        "and a ",
        "no, 4 but perhaps ",
    ),
    *(
        "\n",
        "reason:\n",
        "'a\": ",
        "~~",
        "**a",
        "<score ",
        "\\boxed{",
        "$1",
        "scale of ",
        "1-",
        "|",
    ),
    *("from 1 to ", '{"score": ', '{"a":[', "{", "score (", "the the ", "4 (", "4. ", "mostly "),
    *(
        "this answer is a ",
        "wait ",
        "は4",
        "…",
        "score: 4 (if), ",
        "A. ",
        "Answer: A or ",
        "not A ",
    ),
    *("ﷺ", "½", "&#9", "score:\n", "yes but ", "the gold it "),
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_replies_are_read_in_linear_time(piece: str) -> None:
    for size in (MAX_REPLY_CHARACTERS, 1_000_000):
        text = (piece * (size // len(piece) + 1))[:size]
        began = time.process_time()
        for name in ("truthfulness", "verdict", "letters"):
            READERS[name](text)
        assert time.process_time() - began < 6  # a tenth of it is used; a quadratic reader takes 16


def test_a_reply_longer_than_any_is_not_read() -> None:
    read = READERS["truthfulness"]
    assert read("Score: 4\n" + "x" * 30_000) == read("x " * 10_000 + "\nScore: 4") == "4"
    assert read("Score: 4\n" + "x" * MAX_REPLY_CHARACTERS) is None
    assert read("Score: 4" + "\u200b" * MAX_REPLY_CHARACTERS + "5") is None
    assert read(" " * 1_000_000 + "Score: 4") == "4"


# ------------------------------------------------------------------------------------------ lists


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("1. One\n2. Two", ["One", "Two"]),
        ("**1.** One\n- 2) Two\nAnswer 3: Three", ["One", "Two", "Three"]),
        ("1. One\n1. Two", ["One", "Two"]),
        ("2. Weltkrieg begann 1939.", []),
        ("5. Juni 1944", []),
        ("10:30 is the time", []),
        ("1:30 is the time", []),
        ("1. It began in\n1939. So it says.\n2. Two", ["It began in", "Two"]),
        ("3 eras", []),
        ("", []),
    ],
)
def test_a_list_counts_on_from_one(text: str, items: list[str]) -> None:
    assert [line["text"].strip("* ") for line in find_numbered_lines(text)] == items


def test_an_ordinal_is_no_item_of_a_list() -> None:
    assert parse_answers("2. Weltkrieg begann 1939.", 3) == ()
    assert parse_answers("1. Am\n5. Juni 1944.\n2. Nie.", 3) == ("Am 5. Juni 1944.", "Nie.")
    assert parse_claims("Here they are:\n1. One.\n2. Two.") == ("One.", "Two.")
    with pytest.raises(ClaimError, match="no numbered claims"):
        parse_claims("2. Weltkrieg begann 1939.")
    assert [claim.text for claim in parse_claim_list("1. One.\n- Two.\n-5 degrees\n* Three.")] == [
        "One.",
        "Two.",
        "Three.",
    ]

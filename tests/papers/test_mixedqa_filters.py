"""The filters of MixedQA: by examples of our own, and on the authors' set, which passed theirs."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from trustassay.core.sample import Sample
from trustassay.papers.mixedqa.filters import (
    QUESTION_FILTERS,
    REPLY_FILTERS,
    find_question_filter,
    find_reply_filter,
)

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")).resolve()
HOTPOT = SHARED / "data" / "halueval" / "qa_data_first1000.json"
CHECKED = SHARED / "data" / "trustscore" / "qa_human_check.json"


def of(question: str, *golds: str, **metadata: str) -> Sample:
    return Sample("q", question, answers=tuple((g,) for g in golds), metadata=metadata)


def reply(text: str, question: str = "Who wrote the long book?", *golds: str) -> str | None:
    return find_reply_filter(Sample("q", question, text, answers=tuple((g,) for g in golds)))


@pytest.mark.parametrize(
    ("question", "gold", "name"),
    [
        ("Who was born earlier, Ann Lee or Bo Yu?", "Bo Yu", "comparison"),
        ("Which paper was started first the Echo or Daily News?", "Echo", "comparison"),
        ("Which plant, ivy or the white oak, grows in the north?", "ivy", "comparison"),
        ("Which of these is a fruit: carrot or plum?", "plum", "comparison"),
        ("Between lead and tin, which is heavier?", "lead", "comparison"),
        ("is the nile or the rhine longer", "nile", "comparison"),
        ("Is tin a metal?", "yes", "yes-no"),
        ("is tin a metal", "Tin", "yes-no"),
        ("Isn't tin a metal?", "Yes.", "yes-no"),
        ("Tin is a metal, right?", "yes", "yes-no"),
        ("True or false: tin is a metal?", "true", "yes-no"),
        ("Who wrote it?", None, "no-gold"),
        # and questions that only look like those
        ("Will Ash was a member of which band?", "The Pots", None),
        ("May 5th is a holiday commemorating what?", "a battle", None),
        ("What is the name for a young hare or rabbit?", "leveret", None),
        ("Between 1990 and 1995, who ruled?", "Al", None),
        ("Which river is the longest?", "Nile", None),
        ("Who sang 'No'?", "Yes", "yes-no"),  # as its gold answer reads
        ("Who played Dr No?", "Dr No", None),
        ("or what?", "that", None),
        ("???", "that", None),
    ],
)
def test_questions(question: str, gold: str | None, name: str | None) -> None:
    assert find_question_filter(of(question, *([gold] if gold else []))) == name


def test_hotpotqa_says_itself_what_compares() -> None:
    assert (
        find_question_filter(of("What do both have?", "wings", type="comparison")) == "comparison"
    )
    assert find_question_filter(of("What do both have?", "wings", type="bridge")) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "blank"),
        (" \n\t", "blank"),
        ("...", "blank"),
        ("long long long long", "repeats-words"),
        ("He wrote it. He wrote it. He wrote it.", "repeats-words"),
        ("It was a sage, a sage, a sage", "repeats-words"),
        ("who wrote the long book", "repeats-question"),
        ("Who wrote the long book? Who wrote the long book?", "repeats-question"),
        ("Who wrote the long book? Who wrote the", "repeats-question"),
        ("wrote the long book.", "repeats-question"),
        ("I am not sure.", "not-sure"),
        ("I'm really not sure, but maybe Al.", "not-sure"),
        ("I don’t know who wrote it", "not-sure"),
        ("The author is not mentioned in the question.", "not-sure"),
        ("As an AI, I have no opinion.", "not-sure"),
        ("Unknown.", "not-sure"),
        ("More context is needed.", "not-sure"),
        ("I could not find an answer.", "not-sure"),
        # and answers
        ("Tora! Tora! Tora!", None),
        ("Duran Duran", None),
        ("1,000,000,000,000,000", None),
        ("long book", None),  # not more than half of the question
        ("Who wrote the long book? Al Berg did.", None),
        ("Al was not sure about the end, and wrote it twice.", None),
        ("The Unknown Soldier", None),
        ("7", None),
        ("李白", None),
    ],
)
def test_replies(text: str, name: str | None) -> None:
    assert reply(text) == name


def test_words_of_the_question_or_of_a_gold_answer_are_no_doubt() -> None:
    song = "I do not know"
    assert reply(f"It is {song}.") == "not-sure"
    assert reply(f"It is {song}.", "Which song is it?", "I Do Not Know") is None
    assert reply(f"Al sang {song}.", "Who sang 'I do not know'?", "Al") is None
    assert reply("Red and blue", "What flag is red and blue?", "red and blue") is None
    assert reply("Red and blue", "What is red and blue?", "a flag") == "repeats-question"
    assert reply("+", "Which sign adds?", "+") is None
    assert reply("+", "Which sign adds?", "plus") == "blank"


def test_long_replies_are_filtered_in_no_time() -> None:
    long = " ".join(str(number) for number in range(50_000))
    assert reply(long) is None
    assert reply("," + " " * 100_000) == "blank"
    assert find_question_filter(of("Which," + " " * 50_000 + "?", "x")) is None


@pytest.mark.skipif(not CHECKED.exists(), reason=f"no {CHECKED}; set TRUSTASSAY_SHARED")
def test_what_the_authors_kept_is_kept() -> None:
    """But for the replies that repeat the question, which the authors' script let through."""
    items = json.loads(CHECKED.read_bytes())
    questions: Counter[str | None] = Counter()
    replies: Counter[tuple[str, str | None]] = Counter()
    for item in items:
        questions[find_question_filter(of(item["question"], *item["answers"]))] += 1
        for system in ("flan", "llama", "gpt"):
            found = reply(item[system]["pred"], item["question"], *item["answers"])
            replies[system, found] += 1
    assert questions == {None: 1000}
    assert replies == {
        ("flan", None): 1000,
        ("gpt", None): 1000,
        ("llama", None): 984,
        ("llama", "repeats-question"): 16,
    }


@pytest.mark.skipif(not HOTPOT.exists(), reason=f"no {HOTPOT}; set TRUSTASSAY_SHARED")
def test_yes_no_questions_are_mostly_known_by_their_form_alone() -> None:
    """HaluEval's questions are HotpotQA's; 57 of the 59 that yes or no answers."""
    items = [json.loads(line) for line in HOTPOT.read_text("utf-8").splitlines()]
    yes_no = [x["question"] for x in items if x["right_answer"].lower() in ("yes", "no")]
    by_form = [find_question_filter(of(question, "something else")) for question in yes_no]
    assert (len(yes_no), by_form.count("yes-no")) == (59, 57)
    assert {find_question_filter(of(question, "yes")) for question in yes_no} <= {
        "yes-no",
        "comparison",
    }


def test_every_filter_is_explained() -> None:
    page = (Path(__file__).parents[2] / "docs/data.md").read_text(encoding="utf-8")
    for name in (*QUESTION_FILTERS, *REPLY_FILTERS, "duplicate", "no-reply"):
        assert f"\n* `{name}`: " in page

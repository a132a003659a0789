"""Choices from values, by hand and by properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.prompts import Prompt, PromptError
from trustassay.core.sample import Sample
from trustassay.papers import select


def question(text: str, *answers: tuple[str, float, float]) -> select.QuestionWithCandidates:
    return select.QuestionWithCandidates(
        text,
        [
            select.Candidate(Sample(f"{text}-{i}", text, answer), {"score": a, "single": b})
            for i, (answer, a, b) in enumerate(answers)
        ],
    )


SAME = question("same", ("x", 0.9, 0.9), ("y", 0.1, 0.1))
OTHER = question("other", ("x", 0.9, 0.1), ("y", 0.1, 0.9))
TIED = question("tied", ("x", 0.5, 0.2), ("y", 0.5, 0.3))
EQUAL = question("equal", ("z", 0.9, 0.1), (" z ", 0.1, 0.9))


def unit(*rows: tuple[float, ...]) -> Any:
    found = np.array(rows, dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_the_first_of_equal_values_is_the_best() -> None:
    assert select.choose_best(TIED, "score").text == "x"
    assert select.choose_best(OTHER, "score").text == "x"
    assert select.choose_best(OTHER, "single").text == "y"


def test_examples_are_questions_for_which_two_ways_choose_different_texts() -> None:
    found = select.choose_examples([SAME, OTHER, TIED, EQUAL], "score", "single")
    assert [(one.question, one.response) for one in found] == [("other", "x"), ("tied", "x")]
    everything = select.choose_examples([SAME, OTHER, TIED, EQUAL], "score", None)
    assert [one.question for one in everything] == ["same", "other", "tied", "equal"]


def test_the_nearest_examples_and_never_the_question_itself() -> None:
    examples = select.choose_examples([SAME, OTHER, TIED], "score", None)
    vectors = unit((1, 0), (1, 1), (0, 1))
    asked = ["  OTHER ", "new"]
    near = select.find_nearest_examples(asked, unit((1, 1), (1, 0.1)), examples, vectors, k=2)
    assert [[one.question for one in row] for row in near] == [["same", "tied"], ["same", "other"]]
    fewer = select.find_nearest_examples(["same"], unit((1, 0)), examples[:2], vectors[:2], k=5)
    assert [one.question for one in fewer[0]] == ["other"]


def test_examples_with_the_same_question_are_refused() -> None:
    twice = select.choose_examples([SAME, question("Same ", ("a", 1, 1))], "score", None)
    with pytest.raises(ValueError, match="same question"):
        select.find_nearest_examples(["x"], unit((1, 0)), twice, unit((1, 0), (0, 1)))


def test_the_prompt_shows_the_examples_and_ends_where_the_answer_begins() -> None:
    examples = select.choose_examples([SAME, OTHER], "score", None)
    text = select.fill_icl_prompt("Who {{ built }} it?", examples)
    assert text.index("same") < text.index("other") < text.index("Who {{ built }} it?")
    assert text.endswith("Answer:") and text.count("Answer:") == 3


def test_a_prompt_of_ones_own(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "mine.jinja").write_text("{{ examples | length }} {{ question }} {{ sample.id }}")
    mine = Prompt.read(tmp_path / "mine.jinja")
    assert select.fill_icl_prompt("q", [], mine, Sample("s1", "q")) == "0 q s1"
    (tmp_path / "bad.jinja").write_text("{{ nothing }}")
    with pytest.raises(PromptError, match="nothing"):
        select.fill_icl_prompt("q", [], Prompt.read(tmp_path / "bad.jinja"))


@given(st.permutations(range(25)), st.integers(0, 3))
def test_the_split_depends_on_questions_and_seed_alone(order: list[int], seed: int) -> None:
    made = [select.Example(f"question {i}", "a", Sample(str(i), "q")) for i in range(25)]
    train, test = select.split_train_test(made, 0.2, seed)
    assert (len(train), len(test)) == (20, 5)
    assert sorted(one.sample.id for one in train + test) == sorted(str(i) for i in range(25))
    _, shuffled = select.split_train_test([made[i] for i in order], 0.2, seed)
    assert {one.question for one in shuffled} == {one.question for one in test}


def test_another_seed_is_another_split() -> None:
    made = [select.Example(f"question {i}", "a", Sample(str(i), "q")) for i in range(50)]
    sides = {
        tuple(one.question for one in select.split_train_test(made, 0.2, seed)[1])
        for seed in range(4)
    }
    assert len(sides) == 4
    assert select.split_train_test(made, 0)[1] == []
    for share in (-0.1, 1.0):
        with pytest.raises(ValueError, match="test share"):
            select.split_train_test(made, share)


def test_a_training_line_is_a_chat_of_two_turns() -> None:
    (target,) = select.choose_targets([OTHER], "score")
    assert select.chat_record(target) == {
        "messages": [
            {"role": "user", "content": "other"},
            {"role": "assistant", "content": "x"},
        ]
    }

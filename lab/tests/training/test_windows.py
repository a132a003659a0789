import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.training.infer import Reading, cut_windows, softmax


def sentence(words: int, mark: str) -> str:
    return " ".join([mark] * words) + "."


def test_a_short_premise_is_one_window() -> None:
    premise = sentence(20, "a") + " " + sentence(20, "b")
    assert cut_windows(premise, 45, 30) == [premise]


def test_windows_hold_whole_sentences_and_overlap() -> None:
    parts = [sentence(20, mark) for mark in "abcde"]
    # 45 words are reached with the third sentence; 30 words on is the third sentence.
    assert cut_windows(" ".join(parts), 45, 30) == [
        " ".join(parts[0:3]),
        " ".join(parts[2:5]),
    ]


def test_a_title_stands_before_each_window() -> None:
    parts = " ".join(sentence(20, mark) for mark in "abcde")
    cut = cut_windows(f"Title: X\n{parts}", 45, 30)
    assert len(cut) == 2
    assert all(window.startswith("Title: X\n") for window in cut)


@given(st.lists(st.integers(1, 120), min_size=1, max_size=12))
def test_every_word_is_in_a_window(lengths: list[int]) -> None:
    premise = " ".join(sentence(n, f"w{i}") for i, n in enumerate(lengths))
    cut = cut_windows(premise, 45, 30)
    assert {w for window in cut for w in window.split()} == set(premise.split())
    assert all(len(window.split()) <= 45 + 75 for window in cut)


def test_the_best_window_is_the_one_most_in_favour() -> None:
    reading = Reading(np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 1.0]]))
    found = reading.inputs("Ann met Bob. They ate.", "Ann met Bob.")
    assert found["entailment"] == reading.odds() == pytest.approx(3 - np.log(1 + np.e))
    assert found["contradiction"] == pytest.approx(softmax(np.array([3.0, 0.0, 1.0]))[2])

"""Whether words have a finite verb, so that they state something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.errors import BackendError
from trustassay.text import grammar
from trustassay.text.grammar import (
    find_finite_verb,
    find_tag,
    find_words,
    is_common_word,
    is_imperative,
    is_statement,
)


def verb_of(text: str) -> str | None:
    words = find_words(text)
    place = find_finite_verb(words)
    return None if place is None else words[place]


def test_words_are_as_they_are_written() -> None:
    text = "It’s well-known: O'Neill paid €1,000 (-3.2%) at 12:30, naïve as he was."
    assert find_words(text) == (
        "It’s well-known O'Neill paid €1,000 -3.2% at 12:30 naïve as he was".split()
    )
    assert find_words("...!") == []


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("It is red.", "is"),
        ("The museum opened in 1902.", "opened"),
        ("The ship sank.", "sank"),
        ("Water boils at 100 degrees.", "boils"),
        ("Birds fly south.", "fly"),
        ("Members get free entry.", "get"),
        ("The permit costs 90 euros.", "costs"),
        ("Rates start at 5 euros.", "start"),
        ("He left.", "left"),
        ("It may rain.", "may"),
        ("You can.", "can"),
        ("A is larger than B.", "is"),
        ("It's free.", "It's"),
        ("They’re open.", "They’re"),
        ("Who built it?", "built"),
    ],
)
def test_the_finite_verb_is_found(text: str, verb: str) -> None:
    assert verb_of(text) == verb


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Paris",
        "30 days",
        "within 30 days of purchase",
        "the museum of Basso",
        "costs and fees",
        "the costs",
        "the rate of interest",
        "the can",
        "effects reported by patients",
        "a house built in 1902",
        "the book written by Anna",
        "Anna's hat",
        "open daily",
        "3 May",
        "May 5",
        "11 am",
        "at 11 am",
        "Not covered",
    ],
)
def test_fragments_have_no_finite_verb(text: str) -> None:
    assert verb_of(text) is None
    assert not is_statement(text)


@pytest.mark.parametrize("text", ["It is red.", "It's free", "Sales rose 5%", "A is larger than B"])
def test_a_sentence_with_subject_and_verb_states_something(text: str) -> None:
    assert is_statement(text)


@pytest.mark.parametrize(
    "text", ["Is it red?", "It is red?", "Who built it", "What it is", "Is red"]
)
def test_a_question_or_a_verb_without_a_subject_states_nothing(text: str) -> None:
    assert not is_statement(text)


@pytest.mark.parametrize("text", ["Hold the red button", "Press start", "Call the office"])
def test_an_imperative_begins_with_its_verb(text: str) -> None:
    assert is_imperative(find_words(text))


@pytest.mark.parametrize("text", ["Red button", "Paris", "Hold", "", "The office"])
def test_other_words_are_no_imperative(text: str) -> None:
    assert not is_imperative(find_words(text))


def test_common_words_are_known_in_small_letters_and_names_are_not() -> None:
    assert is_common_word("dog")
    assert is_common_word("Dog")
    assert not is_common_word("xyzzy")
    assert not is_common_word("Anna")
    assert find_tag("dog") == find_tag("DOG") == "NN"
    assert find_tag("xyzzy") == ""


def test_a_missing_lexicon_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "find_spec", lambda _: None)
    grammar._load_lexicon.cache_clear()
    try:
        with pytest.raises(BackendError, match=r"textblob.* is missing"):
            find_tag("dog")
    finally:
        grammar._load_lexicon.cache_clear()


WORDS = st.lists(st.sampled_from("it museum opened the a may 5 not who red Basso".split()))


@given(WORDS, WORDS)
def test_a_pronoun_with_its_auxiliary_has_a_finite_verb_whatever_stands_around_it(
    before: list[str], after: list[str]
) -> None:
    place = find_finite_verb([*before, "it", "is", *after])
    assert place is not None
    assert place <= len(before) + 1

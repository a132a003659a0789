"""Which sentences decline, what they deny, and what stands beside that; the paper's decision."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.text.refusals import (
    MAX_SENTENCE_CHARACTERS,
    begins_with_refusal,
    belongs_to_refusal,
    compute_flag_similarity,
    find_denied_topic,
    find_refusal_as_in_paper,
    find_refusal_words,
    is_no_answer_placeholder,
    split_refusal,
)

# Sentences that decline


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("I don't know.", "I don't know"),
        ("We could not find an answer.", "We could not find"),
        ("The documents do not say.", "documents do not say"),
        ("The context doesn’t contain this information.", "context doesn't contain"),
        ("Her age is not mentioned in the documents.", "is not mentioned in the documents"),
        ("Answer: not found.", "not found."),
    ],
)
def test_the_words_that_decline_are_named(sentence: str, words: str) -> None:
    assert find_refusal_words(sentence) == words


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "The documents mention the price.",
        "He did not mention his brother.",
        'The error "I don\'t know this host" means that its key is missing.',
        "The spokesman said there was no information to share.",
        "The judge ruled that there was not enough information in the warrant.",
        "There is no evidence that the vaccine causes harm.",
    ],
)
def test_a_sentence_that_answers_quotes_or_reports_does_not_decline(sentence: str) -> None:
    assert find_refusal_words(sentence) is None


def test_words_beyond_the_longest_sentence_are_not_looked_at() -> None:
    assert find_refusal_words("x" * (MAX_SENTENCE_CHARACTERS - 20) + " I don't know.")
    assert find_refusal_words("x" * MAX_SENTENCE_CHARACTERS + " I don't know.") is None


# What is denied


@pytest.mark.parametrize(
    ("sentence", "topic"),
    [
        ("The passages do not mention the price of a ticket.", "price of a ticket"),
        ("The context contains no information about refunds.", "refunds"),
        ("There is no information about refunds in the documents.", "refunds"),
        ("The text is silent on taxes.", "taxes"),
        ("His age is not stated in the text.", "His age"),
        ("No fee is mentioned.", "fee"),
        ("It is not stated who built it.", "who built it"),
        ("The opening hours are not in the documents.", "The opening hours"),
        ("Sorry, the price is missing from the passages.", "the price"),
        ("I could not find any mention of the mayor.", "the mayor"),
        ("The policy does not mention theft, fire or water.", "theft, fire or water"),
    ],
)
def test_the_topic_of_a_denial_is_named(sentence: str, topic: str) -> None:
    assert find_denied_topic(sentence) == topic


@pytest.mark.parametrize(
    "sentence",
    [
        "I don't know.",
        "The documents do not say.",
        "The documents do not provide an answer.",
        "The context doesn't contain this information.",
        "The documents mention the price.",
        "He did not mention his brother.",
        "The spokesman said there was no information about refunds.",
        "",
    ],
)
def test_other_sentences_deny_no_topic(sentence: str) -> None:
    assert find_denied_topic(sentence) is None


# The parts of a sentence that declines


def parts(sentence: str) -> list[tuple[str, bool]]:
    return [(sentence[start:end], refuses) for start, end, refuses in split_refusal(sentence)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The documents do not say.", [("The documents do not say.", True)]),
        (
            "The passages do not say who, but it was in 1889.",
            [("The passages do not say who", True), ("it was in 1889.", False)],
        ),
        (
            "It opened in 1889, but the passages do not say who built it.",
            [("It opened in 1889", False), ("the passages do not say who built it.", True)],
        ),
        (
            "While the passages do not say who, it was in 1889.",
            [("the passages do not say who", True), ("it was in 1889.", False)],
        ),
        (
            "Although the text does not mention the price, it says entry is free.",
            [("the text does not mention the price", True), ("it says entry is free.", False)],
        ),
        (
            "The text does not say; bicycles, however, travel free.",
            [("The text does not say", True), ("bicycles, however, travel free.", False)],
        ),
        # Two parts that decline are one, unless one says what the documents do not speak of.
        (
            "The text does not say, and I do not know.",
            [("The text does not say, and I do not know.", True)],
        ),
        (
            "The text does not say, and there is no information about refunds.",
            [
                ("The text does not say", True),
                ("there is no information about refunds.", True),
            ],
        ),
        (
            "It opened in 1889 and closed in 1900.",
            [("It opened in 1889 and closed in 1900.", False)],
        ),
    ],
)
def test_a_sentence_is_parted_into_what_declines_and_what_answers(
    sentence: str, expected: list[tuple[str, bool]]
) -> None:
    assert parts(sentence) == expected


CLAUSES = st.lists(
    st.sampled_from(
        [
            "the passages do not say",
            "it opened in 1889",
            ", but",
            ";",
            ", and the",
            "While",
            "however,",
            "I don't know",
            "bicycles",
            ".",
        ]
    ),
    max_size=12,
).map(" ".join)


@given(CLAUSES | st.text())
def test_parts_stand_in_order_and_take_turns(sentence: str) -> None:
    found = split_refusal(sentence)
    ends = [0, *(end for _, end, _ in found)]
    assert all(end <= start <= stop for end, (start, stop, _) in zip(ends, found, strict=False))
    assert ends[-1] == len(sentence)
    for (start, middle, refuses), (after, end, also) in itertools.pairwise(found):
        topics = find_denied_topic(sentence[start:middle]), find_denied_topic(sentence[after:end])
        assert refuses != also or any(topics)


# What stands beside a refusal


@pytest.mark.parametrize(
    "sentence",
    [
        "I'm sorry.",
        "I apologize for that.",
        "Unfortunately so.",
        "Please contact the office.",
        "You may want to ask the office.",
        "Perhaps another source knows.",
        "They discuss bees.",
        "The passages only discuss bees.",
        "Document 1: about bees",
    ],
)
def test_apologies_referrals_and_what_the_documents_are_about_belong_to_a_refusal(
    sentence: str,
) -> None:
    assert belongs_to_refusal(sentence)


@pytest.mark.parametrize("sentence", ["Bees make honey.", "It is red.", ""])
def test_an_answer_does_not_belong_to_a_refusal(sentence: str) -> None:
    assert not belongs_to_refusal(sentence)


def test_the_words_of_an_engine_without_passages_are_no_answer() -> None:
    assert is_no_answer_placeholder("Empty Response")
    assert is_no_answer_placeholder(" Empty response.\n")
    assert not is_no_answer_placeholder("")
    assert not is_no_answer_placeholder("An empty response means that the index has no node.")
    assert not is_no_answer_placeholder("Empty Response Theory was written in 1950 [1].")


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I cannot help with that.",
        "I can't answer that.",
        "I cannot",
        "I won't say who did it",
        "As an AI, I have no opinion.",
        "Sorry, there is no such thing.",
    ],
)
def test_how_a_refusal_begins(text: str) -> None:
    assert begins_with_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "We Can't Stop",
        "I Can't Help Myself",
        "Sorry Seems to Be the Hardest Word",
        "Sorry",
        "Paris. I cannot say more.",
        "",
    ],
)
def test_titles_and_answers_do_not_begin_as_refusals_do(text: str) -> None:
    assert not begins_with_refusal(text)


# The decision of Trust-Eval


@pytest.mark.parametrize(
    ("text", "similarity"),
    [
        ("In", 50),
        ("I apologize; I couldn't find an exact answer", 84),
        ("Find [1].", 83),
        ("Find.", 100),
        ("but", 100),
        ("I apologize", 100),
        ("", 0),
        ("I apologize, but I couldn't find an answer", 100),
    ],
)
def test_paper_similarity_is_that_of_fuzzywuzzy(text: str, similarity: int) -> None:
    """The figures were taken from fuzzywuzzy 0.18.0 with python-Levenshtein 0.26.1."""
    assert compute_flag_similarity(text) == similarity


def test_paper_detector_wants_more_than_85() -> None:
    assert find_refusal_as_in_paper("I apologize; I couldn't find an exact answer") is None
    assert find_refusal_as_in_paper("Yes. I apologize, but I couldn't find an answer. It is 7 [1].")

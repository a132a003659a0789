"""What is said around an answer: it is cut off or claims nothing, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.text.phrases import (
    REASON_QUESTION,
    content_stems,
    find_end_frame,
    find_frame_end,
    find_opener_end,
    find_reason_without_claim,
    find_tag_question_start,
)

# Openers

OPENERS = [
    "Sure, ",
    "Certainly! ",
    "Of course, ",
    "Great question! ",
    "Hello! ",
    "Thanks for asking. ",
    "Thank you for your question! ",
    "Good morning! ",
    "No problem! ",
    "Happy to help: ",
    "I'm sorry for the confusion. ",
    "Sorry - ",
    "Absolutely! ",
    "Dear team, ",
]
STATEMENTS = [
    "the permit costs 90 euros.",
    "The museum opened in 1902.",
    "Sure signs of rain are clouds.",
    "Great Britain is an island.",
    "Welcome to the Jungle was released in 1987.",
    "Good harvests are rare.",
    "No, it is closed.",
    "Yes, it is open.",
    "One day, it was red.",
    "Not all of them are open.",
    "In 1902, it burned.",
]


@given(st.lists(st.sampled_from(OPENERS), max_size=3), st.sampled_from(STATEMENTS))
def test_openers_and_nothing_else_are_cut_off(openers: list[str], statement: str) -> None:
    text = "".join([*openers, statement])
    assert text[find_opener_end(text) :] == statement


@pytest.mark.parametrize("opener", OPENERS)
def test_an_opener_alone_is_not_cut_off_but_claims_nothing(opener: str) -> None:
    text = opener.strip(" ,:-")
    assert find_opener_end(text) == 0
    assert find_reason_without_claim(text) is not None


# Frames

FRAMES = [
    "According to the passages, ",
    "Based on the provided context, ",
    "According to the given contexts, ",
    "As stated in the documents, ",
    "From the search results, ",
    "The documents state that ",
    "In summary, ",
    "However, ",
    "Additionally, ",
    "Note that ",
    "Please note that ",
    "Unfortunately, ",
    "Fortunately ",
    "I think ",
    "I believe that ",
    "I'm not sure, but ",
    "It is important to note that ",
    "It's worth mentioning that ",
    "It can be inferred that ",
    "We can see that ",
    "Final answer: ",
    "Did you know that ",
]
FRAMED = [
    "it is red.",
    "according to Smith, it is red.",
    "the 2019 report says so.",
    "in the report of 1902, it is red.",
    "the study reports 5 cases.",
]


@given(st.lists(st.sampled_from(FRAMES), max_size=3), st.sampled_from(FRAMED))
def test_frames_and_nothing_else_are_cut_off(frames: list[str], statement: str) -> None:
    text = "".join([*frames, statement])
    assert text[find_frame_end(text) :] == statement


def test_a_frame_alone_is_left() -> None:
    assert find_frame_end("In summary, ") == 0
    assert find_frame_end("However,") == 0
    assert find_reason_without_claim("In summary,") == "it says nothing by itself"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("It is red, according to the passages.", "It is red."),
        ("It is red according to the given context", "It is red"),
        ("It is red, based on these documents.", "It is red."),
        # these state something about a text
        ("It is based on these documents.", "It is based on these documents."),
        ("It is red, according to Smith.", "It is red, according to Smith."),
        ("According to the text it is red.", "According to the text it is red."),
    ],
)
def test_words_that_name_the_passages_at_the_end_are_cut_off(text: str, statement: str) -> None:
    start, end = find_end_frame(text)
    assert text[:start] + text[end:] == statement


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("It is red, right?", "It is red"),
        ("It is red, isn't it?", "It is red"),
        ("It is red, correct?", "It is red"),
        ("Is it red?", "Is it red?"),
        ("It is right.", "It is right."),
    ],
)
def test_a_tag_makes_a_question_of_a_statement(text: str, statement: str) -> None:
    assert text[: find_tag_question_start(text)] == statement


# Sentences that claim nothing


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Is it red?", REASON_QUESTION),
        ("Hello!", "a greeting or an offer"),
        ("You're welcome.", "a greeting or an offer"),
        ("I hope this helps!", "a greeting or an offer"),
        ("Have a nice day!", "a greeting or an offer"),
        ("Good luck!", "a greeting or an offer"),
        ("Let me know if you need anything else.", "a greeting or an offer"),
        ("If you'd like, I can also list the opening hours.", "a greeting or an offer"),
        ("Feel free to ask.", "a greeting or an offer"),
        ("I can help with that.", "a greeting or an offer"),
        ("This is not legal advice.", "a disclaimer"),
        ("I'm an AI language model.", "a disclaimer"),
        ("Prices may change.", "a disclaimer"),
        ("Please check the official website for details.", "a referral"),
        ("For more information, contact the support team.", "a referral"),
        ("Here is a short summary.", "it says nothing by itself"),
        ("Here are the details you asked for.", "it says nothing by itself"),
        ("It depends on your situation and the applicable terms.", "it says nothing by itself"),
        ("See above.", "it says nothing by itself"),
        ("...", "it says nothing by itself"),
    ],
)
def test_sentences_that_claim_nothing(sentence: str, why: str) -> None:
    assert find_reason_without_claim(sentence) == why


@pytest.mark.parametrize(
    "sentence",
    [
        "It is red.",
        "The permit costs 90 euros.",
        "Prices may change in 2025.",
        "Thanks for the 3 questions.",
        "I hope that the mayor resigns.",
        "I can explain that the bridge is red.",
        "A is larger than B.",
        "No fee applies.",
        "He hopes to help the poor.",
        "The results are subject to change.",
        "Here is Paris.",
        "You may bring a dog to the office.",
        "Is that so? It is red.",
        "Nobody came.",
        "Welcome to the Jungle was released in 1987.",
    ],
)
def test_sentences_that_claim_something(sentence: str) -> None:
    assert find_reason_without_claim(sentence) is None


TALK = st.lists(
    st.sampled_from(
        "sure thanks hello please let me know if you need help I can the answer details below "
        "this is not advice prices may change check website documents note that".split()
    ),
    max_size=12,
).map(" ".join)
NUMBERS = st.sampled_from(["90", "1902", "3.5", "€5", "two", "twelve", "5th"])


@given(TALK, NUMBERS, TALK)
def test_a_sentence_with_a_number_always_claims_something(
    before: str, number: str, after: str
) -> None:
    assert find_reason_without_claim(f"{before} {number} {after}.") is None


@given(TALK | st.text())
def test_what_is_cut_off_leaves_a_rest(text: str) -> None:
    for end in (find_opener_end(text), find_frame_end(text)):
        assert end == 0 or text[end:].strip()
    assert text[: find_tag_question_start(text)] == text or text.rstrip().endswith("?")


# Content


def test_the_content_of_a_text_is_what_it_says_of_a_subject() -> None:
    assert content_stems("The elephants lived in two houses.") == {"elephant", "liv", "2", "hous"}
    assert content_stems("A is larger than B.") == {"a", "larger", "b"}
    assert content_stems("Here are the details you asked for.") == set()
    assert content_stems("It is not so.") == set()

"""Words in which a claim and a sentence differ: marked in pairs by hand, and on whatever text."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.judging.differences import ComparedPiece, compare_claim
from trustassay.text.cleaning import fold_text


def spell(pieces: Iterable[ComparedPiece]) -> str:
    """Return a text with ``[other]`` and ``{absent}`` words."""
    forms = {"same": "{}", "other": "[{}]", "absent": "{{{}}}"}
    return "".join(forms[piece.difference].format(piece.text) for piece in pieces)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        # Numbers, names and words with what stands in their place.
        ("The mill was built in [1920] by [Anna] Keller.",
         "The mill was built in [1902] by [Ernst] Keller."),
        ("The mill is on the [left] bank of the river.",
         "The mill is on the [right] bank of the river."),
        ("About [1,200] people live there.", "About [902] people lived there."),
        ("Die Brücke wurde [1920] von [Anna] Keller gebaut.",
         "Die Brücke wurde [1902] von [Ernst] Keller gebaut."),
        # The value of a table row, although little else is alike.
        ("A day ticket costs [7.20] euros at the machine.", "The price of day is [7.90] euros."),
        # A number of the sentence is no counterpart of a name.
        ("The [Danish] king opened it with 40 guests.",
         "The [Swedish] king opened it in 1902 with 40 guests."),
        # Many words at the place of one are another phrase.
        ("The mill is on the [left] bank of the river.",
         "The mill is on the steep, wooded and sunny bank of the river."),
        # A negation in one of both; two are none.
        ("The museum is open on Mondays.", "The museum is [not] open on Mondays."),
        ("The museum [never] closes at noon.", "The museum closes at noon."),
        ("It is not true that it never rains.", "It is true that it rains."),
        # Other forms of the same word, number and time.
        ("It has 3 wheels.", "It had three wheels."),
        ("The shop closes at 3 pm.", "The shop closes at 15:00."),
        # All words alike: who did what is for the reader.
        ("Smith hired Jones.", "Jones hired Smith."),
        # Few words alike: only details are marked.
        ("The [Danish] shop is wonderful, friendly and quick.", "A family from Jutland runs it."),
    ],
)  # fmt: skip
def test_words_that_differ_are_marked_in_both_texts(claim: str, sentence: str) -> None:
    plain = [text.replace("[", "").replace("]", "") for text in (claim, sentence)]
    comparison = compare_claim(*plain)
    assert (spell(comparison.claim), spell(comparison.sentence)) == (claim, sentence)
    assert comparison.differs == ("[" in claim + sentence)


def test_words_of_no_passage_are_told_from_those_of_another_sentence() -> None:
    comparison = compare_claim(
        "The tram to Lindau costs 7 euros.", "The tram to Bregenz costs 7 francs.",
        absent=["Lindau"],
    )  # fmt: skip
    assert spell(comparison.claim) == "The tram to {Lindau} costs 7 [euros]."
    assert spell(comparison.sentence) == "The tram to [Bregenz] costs 7 [francs]."


def test_a_title_completes_the_sentence() -> None:
    claim, sentence = "The Keller mill has three wheels.", "It has three wheels."
    assert "[Keller mill]" in spell(compare_claim(claim, sentence).claim)
    assert spell(compare_claim(claim, sentence, "The Keller mill").claim) == claim


def test_the_share_of_common_words_is_of_the_claim() -> None:
    sentence = "The mill has wheels, and much else that no claim of this answer says."
    assert compare_claim("The mill has wheels.", sentence).shared == 1
    assert compare_claim("Cats like warm milk.", sentence).shared == 0


TEXTS = st.text(st.sampled_from("ab A1.,[]()*\\\u202e桥ß \n-'"), max_size=60)


@given(TEXTS, TEXTS, TEXTS)
def test_pieces_add_up_to_the_texts(claim: str, sentence: str, title: str) -> None:
    comparison = compare_claim(claim, sentence, title, claim.split())
    assert "".join(piece.text for piece in comparison.claim) == fold_text(claim)
    assert "".join(piece.text for piece in comparison.sentence) == fold_text(sentence)
    assert 0 <= comparison.shared <= 1


@pytest.mark.parametrize("text", ["word " * 40_000, "x" * 200_000, "1 " * 100_000, "[" * 50_000])
def test_long_texts_take_no_time(text: str) -> None:
    start = time.process_time()
    comparison = compare_claim(text, text[::-1], text[:100])
    assert "".join(piece.text for piece in comparison.claim).strip()
    assert time.process_time() - start < 5

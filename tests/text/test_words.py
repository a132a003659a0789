"""Words as they are compared; texts normalised."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.hostile import HOSTILE
from trustassay.text.words import (
    content_words,
    is_negation,
    normalise,
    normalise_squad,
    plain_words,
)


def test_words_are_folded_and_numbers_are_digits() -> None:
    assert list(plain_words("Two ELEPHANTS, 1,000 of them; 3.5 % don’t")) == [
        "2",
        "elephants",
        "1000",
        "of",
        "them",
        "3.5",
        "don't",
    ]
    assert list(plain_words("ﬁne Straße")) == ["fine", "strasse"]


def test_content_words_leave_out_what_says_nothing_by_itself() -> None:
    assert content_words("The elephants did not live in the houses of Rome") == (
        "elephant",
        "liv",
        "hous",
        "rom",
    )
    assert content_words("Anna's Anna") == ("anna",)
    assert content_words("the of and") == ()


def test_negations() -> None:
    assert all(map(is_negation, ("not", "never", "isn't")))
    assert not is_negation("rome")


# Normalisation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Nile", "nile"),
        ("  NEW-YORK, the  city! ", "new york city"),
        ("AC/DC", "ac dc"),
        ("Ｆｕｌｌ", "full"),
        ("Straße", "strasse"),
        ("“Don’t”", "dont"),
        ("A", "a"),
        ("The", "the"),
        ("C++", "c++"),
        ("...", ""),
        ("", ""),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("new-york", "newyork"), ("The Nile!", "nile"), ("“The”", "“ ”"), ("A", "")],
)
def test_normalise_as_in_squad(text: str, expected: str) -> None:
    assert normalise_squad(text) == expected


@pytest.mark.slow
@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)
    assert once == " ".join(once.split())
    assert normalise(once) in (
        once,
        " ".join(w for w in once.split() if w not in ("a", "an", "the")),
    )


@given(st.text(st.characters(codec=None)))
def test_normalising_as_in_squad_leaves_single_blanks_and_no_punctuation(text: str) -> None:
    result = normalise_squad(text)
    assert result == " ".join(result.split())
    assert not set(result) & set(".,;:!?'\"-")


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("read", [normalise, normalise_squad], ids=lambda f: f.__name__)
def test_hostile_text_is_normalised_fast(read: Callable[[str], object], kind: str) -> None:
    started = time.process_time()
    read(HOSTILE[kind])
    assert time.process_time() - started < 1.5

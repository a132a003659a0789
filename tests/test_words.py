"""Words as they are compared."""

from __future__ import annotations

from trustassay.texts import content_words, is_negation, plain_words


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

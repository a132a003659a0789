import pytest

from trustassay.metrics.consistency import tokens
from trustassay.metrics.consistency.tokens import contains_words, is_same_answer, normalise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Eiffel Tower!", "eiffel tower"),
        ("U.S.", "u s"),
        ("1997-1998", "1997 1998"),
        ("The", "the"),
        ("“A” ", "“a”"),
        ("Straße「x」 １２ ﬁ", "strasse x 12 fi"),
        ("«Rome» ¿no? 5€", "rome no 5€"),
    ],
)
def test_normalised(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_only_short_texts_are_kept() -> None:
    tokens._normalise_cached.cache_clear()
    normalise("x" * 5000)
    assert tokens._normalise_cached.cache_info().currsize == 0
    normalise("x")
    assert tokens._normalise_cached.cache_info().currsize == 1


def test_containment_is_by_whole_words() -> None:
    assert contains_words("new york city", "york city")
    assert not contains_words("10", "1")  # an earlier implementation dropped "10" beside "1"
    assert not contains_words("abc", "")


@pytest.mark.parametrize(
    ("text", "answer", "aliases", "same"),
    [
        ("The 1983", "1983.", [], True),
        ("1984", "1983", [], False),
        ("Solomon", "King Solomon", [], True),
        ("10 people", "1 people", [], False),
        ("Dhaka", "Chittagong", ["Dhaka, Bangladesh"], True),
        ("Dhaka is the capital", "Chittagong is the capital", ["Dhaka"], True),
        # the alias is in the answer, too: it says nothing of what was replaced
        ("Dhaka in Bangladesh", "Sylhet in Bangladesh", ["Bangladesh"], False),
        ("Bangladesh", "Paris", ["Bangladesh"], True),
    ],
)
def test_says_the_same(text: str, answer: str, aliases: list[str], same: bool) -> None:
    assert is_same_answer(text, answer, aliases) is same

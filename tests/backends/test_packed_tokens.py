"""Tokens as stores hold them: what goes in comes out, in few bytes, and older forms are read."""

from __future__ import annotations

import json
import math
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.benchmarks.token_logprobs import replies

from trustassay.backends.chat_text import OTHER_BYTES, OWN_BYTES, pack_logprobs, unpack_logprobs
from trustassay.core.capabilities import TokenLogprob

ERROR = 2**-23  # a half of the last bit, and of the last digit
TEXTS = st.text(st.sampled_from('ab\n\t\r\0"\\ \u2028é漢😀'), max_size=4)
NUMBERS = st.one_of(st.floats(-1e6, 0, width=32), st.sampled_from([-math.inf, -9999.0, -1e-30]))
OTHERS = st.lists(st.tuples(TEXTS, NUMBERS), max_size=3).map(tuple)
TOKENS = st.lists(st.builds(TokenLogprob, TEXTS, NUMBERS, OTHERS), min_size=1, max_size=5)
PARIS = (
    TokenLogprob("Paris", -0.2, (("Paris", -0.2), ("Rome", -1.712345))),
    TokenLogprob(".", -0.5),
)
CUT = pack_logprobs(PARIS, "Paris.")[:-8]
LONG = pack_logprobs(PARIS, "Paris.") + "00000"


def rounded(tokens: tuple[TokenLogprob, ...], like: tuple[TokenLogprob, ...]) -> bool:
    """Whether all is equal but for the last digits of numbers."""
    pairs = [
        pair
        for a, b in zip(tokens, like, strict=True)
        for pair in zip((a[:2], *a.alternatives), (b[:2], *b.alternatives), strict=True)
    ]
    return all(
        one[0] == other[0] and one[1] == pytest.approx(other[1], rel=ERROR, abs=1e-44)
        for one, other in pairs
    )


@given(TOKENS, TEXTS)
def test_tokens_come_back_as_they_were(tokens: list[TokenLogprob], text: str) -> None:
    for reply in ("".join(one.token for one in tokens), text):  # they are its pieces, or not
        read = unpack_logprobs(pack_logprobs(tokens, reply), reply)
        assert rounded(read, tuple(tokens))
        assert (
            unpack_logprobs(pack_logprobs(read, reply), reply) == read
        )  # a second time nothing is lost


def test_numbers_of_few_digits_are_exact() -> None:
    assert unpack_logprobs(pack_logprobs(PARIS, "Paris."), "Paris.") == PARIS


def test_halves_of_a_character_are_replaced_as_in_the_text() -> None:
    tokens = (TokenLogprob("\ud83d", -1, (("\ude00", -2),)), TokenLogprob("\ude00", -1))
    read = unpack_logprobs(pack_logprobs(tokens, "😀"), "😀")
    assert [one.token for one in read] == ["\ufffd", "\ufffd"]
    assert read[0].alternatives == (("\ufffd", -2),)


def test_what_a_reply_was_stored_as_before_is_read() -> None:
    value = json.loads(json.dumps(PARIS))
    assert unpack_logprobs(value, "Paris.") == PARIS
    assert unpack_logprobs([], "Paris.") == ()


@pytest.mark.parametrize("value", ["", "|", "漢", CUT, LONG, [["a", -1]], 3])
def test_damage_is_an_error(value: object) -> None:
    with pytest.raises((LookupError, TypeError, ValueError, zlib.error)):
        unpack_logprobs(value, "Paris.")


def test_tokens_of_recorded_replies_take_at_most_twice_the_replies_size() -> None:
    for most, worst in ((0, 1.5), (1, 2.3), (5, 10.5)):
        kept = replies(most)
        size = sum(len(pack_logprobs(tokens, text)) for text, tokens in kept)
        assert size < worst * sum(len(text.encode()) for text, _ in kept)
        if most != 1:  # the likeliest token is mostly the reply's own, which takes little
            told = sum(OWN_BYTES + most * OTHER_BYTES for _, tokens in kept for _ in tokens)
            assert told == pytest.approx(size, rel=0.1)

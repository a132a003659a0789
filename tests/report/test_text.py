"""Texts and numbers as the page writes them."""

from __future__ import annotations

from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.report.text import HIDDEN, cut, spell_out_hidden, split_long, visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a<b>&\"'", "a&lt;b&gt;&amp;&#34;&#39;"),
        ("line\nline\tend\r\nlast", "line\nline\tend\nlast"),
        (
            "a\u202eb",
            'a<span class="hidden-character" title="right-to-left override">U+202E</span>b',
        ),
        ("\x00\x00\x07", "U+0000 ×2 U+0007</span>"),
        ("\ufeff", "U+FEFF"),
        ("\udc80", "U+DC80"),
        ("\x9f", "U+009F"),
        ("\r", "U+000D"),
        ("\u2066", "U+2066"),
        ("\u200f", "U+200F"),
        ("\U000e0041", "U+E0041"),
        ("👩\u200d🚀 नमस्ते می\u200cشود", "👩\u200d🚀 नमस्ते می\u200cشود"),
    ],
)
def test_visible(text: str, expected: str) -> None:
    assert expected in visible(text)


def test_a_flood_of_hidden_characters_is_one_chip() -> None:
    assert len(visible("\u202e" * 100_000)) < 200


@given(st.text(st.characters(codec=None)))
def test_visible_is_total_and_leaves_nothing_hidden(text: str) -> None:
    shown = visible(text)
    assert not HIDDEN.search(shown)
    assert not HIDDEN.search(spell_out_hidden(text))
    assert shown.encode() is not None
    if not HIDDEN.search(text):
        assert unescape(shown) == text


@given(st.text(max_size=40).flatmap(lambda word: st.integers(0, 90).map(lambda n: word * n)))
def test_splitting_loses_nothing(text: str) -> None:
    head, rest = split_long(text)
    assert head + rest == text
    assert bool(rest) == (len(text) > 900)


def test_cut() -> None:
    assert cut("  a\n b ", 10) == "a b"
    assert cut("abcdefghij", 5) == "abcd…"

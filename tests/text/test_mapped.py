"""Texts that remember where their characters stood, through all that is done to them."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from trustassay.text.mapped import MappedText, Span, join_texts


def test_a_text_that_is_not_changed_has_the_offsets_of_its_characters() -> None:
    text = MappedText.of("red")
    assert (text.text, list(text.offsets), text.span) == ("red", [0, 1, 2], (0, 3))
    assert text


def test_an_empty_text_is_false_and_has_an_empty_span() -> None:
    assert not MappedText.of("")
    assert MappedText.of("").span == (0, 0)
    assert MappedText.of(" \n").strip().span == (0, 0)


def test_a_part_keeps_its_offsets() -> None:
    part = MappedText.of("a red rose")[2:5]
    assert (part.text, part.span) == ("red", (2, 5))


def test_stripping_cuts_both_ends() -> None:
    text = MappedText.of("  red  ").strip()
    assert (text.text, text.span) == ("red", (2, 5))
    text = MappedText.of("*red: *").strip("*: ")
    assert (text.text, text.span) == ("red", (1, 4))


def test_what_is_cut_out_lies_within_the_span() -> None:
    text = MappedText.of("red [1] rose").cut([(3, 7)])
    assert text.text == "red rose"
    assert list(text.offsets) == [0, 1, 2, 7, 8, 9, 10, 11]
    assert text.span == (0, 12)


def test_a_replacement_has_the_offsets_of_what_it_replaces() -> None:
    text = MappedText.of("3 ½ km").sub(re.compile("½"), "1/2")
    assert text.text == "3 1/2 km"
    assert list(text.offsets) == [0, 1, 2, 2, 2, 3, 4, 5]
    shorter = MappedText.of("a — b").sub(re.compile(" — "), "-")
    assert (shorter.text, list(shorter.offsets)) == ("a-b", [0, 1, 4])


def test_a_replacement_may_be_a_template_or_a_function() -> None:
    text = MappedText.of("**red** _rose_")
    assert text.sub(re.compile(r"\*\*(.+?)\*\*"), r"\1").text == "red _rose_"
    assert text.sub(re.compile("r"), lambda match: match[0].upper()).text == "**Red** _Rose_"


def test_a_text_without_a_match_is_the_same_text() -> None:
    text = MappedText.of("red")
    assert text.sub(re.compile("x"), "y") is text


def test_of_changes_that_overlap_the_first_counts() -> None:
    text = MappedText.of("abcd").replace([((0, 2), "x"), ((1, 3), "y"), ((3, 4), "z")])
    assert text.text == "xcz"


def test_what_is_inserted_where_nothing_stood_has_the_offset_of_what_follows() -> None:
    text = MappedText.of("ab").replace([((1, 1), "-")])
    assert (text.text, list(text.offsets)) == ("a-b", [0, 1, 1])


def test_texts_are_joined_without_the_empty_ones() -> None:
    source = MappedText.of("a red rose")
    text = join_texts([source[0:1], source[1:1], source[6:]], " + ")
    assert text.text == "a + rose"
    assert list(text.offsets) == [0, 0, 0, 0, 6, 7, 8, 9]
    assert join_texts([]).text == ""


# Any changes at all

TEXTS = st.text("ab1 \n[]*½é", max_size=30)


def spans_of(text: str) -> st.SearchStrategy[list[Span]]:
    places = st.lists(st.integers(0, len(text)), max_size=8).map(sorted)
    return places.map(lambda ends: list(zip(ends[::2], ends[1::2], strict=False)))


@given(st.data())
def test_characters_that_are_left_are_those_of_the_source_in_their_order(
    data: st.DataObject,
) -> None:
    source = data.draw(TEXTS)
    text = MappedText.of(source)
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from(["cut", "slice", "strip", "sub"]))
        if step == "cut":
            text = text.cut(data.draw(spans_of(text.text)))
        elif step == "slice":
            start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text.text))] * 2)))
            text = text[start:end]
        elif step == "strip":
            text = text.strip()
        else:
            text = text.sub(re.compile(r"\[[^\]]*\]|\*"), "")
    assert len(text.text) == len(text.offsets)
    assert text.text == "".join(source[offset] for offset in text.offsets)
    assert all(one < other for one, other in itertools.pairwise(text.offsets))


@given(st.data())
def test_replacements_point_into_what_they_replace(data: st.DataObject) -> None:
    source = data.draw(TEXTS)
    spans = [(start, end) for start, end in data.draw(spans_of(source)) if start < end]
    replacements = data.draw(
        st.lists(st.text("xyz", max_size=5), min_size=len(spans), max_size=len(spans))
    )
    text = MappedText.of(source).replace(zip(spans, replacements, strict=True))
    pieces: list[str] = []
    position = 0
    for (start, end), new in zip(spans, replacements, strict=True):
        pieces += [source[position:start], new]
        position = end
    assert text.text == "".join([*pieces, source[position:]])
    assert len(text.text) == len(text.offsets)
    for character, offset in zip(text.text, text.offsets, strict=True):
        if character in "xyz":
            assert any(start <= offset < end for start, end in spans)
        else:
            assert source[offset] == character


@given(TEXTS, TEXTS)
def test_changes_of_changes_point_to_the_first_source(before: str, after: str) -> None:
    source = f"{before}½{after}"
    text = MappedText.of(source).sub(re.compile("½"), "1/2").sub(re.compile(r"\*"), "").strip()
    for character, offset in zip(text.text, text.offsets, strict=True):
        assert source[offset] in (character, "½")

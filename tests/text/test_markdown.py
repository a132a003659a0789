"""The blocks of an answer in Markdown, and what each stands under."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.text.mapped import MappedText
from trustassay.text.markdown import (
    MAX_BLOCKS_ABOVE,
    MIN_WRAPPED_LINE_CHARACTERS,
    Block,
    parse_blocks,
)


def blocks_of(text: str) -> list[Block]:
    return parse_blocks(MappedText.of(text))


def kinds(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text.text) for block in blocks_of(text)]


def paths(text: str) -> dict[str, list[str]]:
    """Each block that is no heading, with what it stands under, the outermost first."""
    blocks = blocks_of(text)
    return {
        block.text.text: [blocks[place].text.text for place in block.above]
        for block in blocks
        if block.kind != "heading"
    }


# Kinds of blocks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\n", []),
        ("It is old.", [("paragraph", "It is old.")]),
        ("It is old.\n\nIt is big.", [("paragraph", "It is old."), ("paragraph", "It is big.")]),
        ("# Town #\nIt is old.", [("heading", "Town"), ("paragraph", "It is old.")]),
        ("Town\n====\nIt is old.", [("heading", "Town"), ("paragraph", "It is old.")]),
        ("**Town**\nIt is old.", [("heading", "**Town**"), ("paragraph", "It is old.")]),
        ("__Town__:\nIt is old.", [("heading", "__Town__:"), ("paragraph", "It is old.")]),
        (
            "It is old.\n\n***\n\nIt is big.",
            [("paragraph", "It is old."), ("paragraph", "It is big.")],
        ),
        (
            "> It is old.\n> > It is big.",
            [("paragraph", "It is old."), ("paragraph", "It is big.")],
        ),
        (
            "```python\nx = 1\n  y = 2\n```\nIt is old.",
            [("code", "x = 1\n  y = 2"), ("paragraph", "It is old.")],
        ),
        ("~~~\n# no heading\n~~~", [("code", "# no heading")]),
        ("```\nnever closed\n- x", [("code", "never closed\n- x")]),
        ("#hashtag", [("paragraph", "#hashtag")]),
        ("**Fee:** 5 euros", [("paragraph", "**Fee:** 5 euros")]),
        ("**A** and **B**", [("paragraph", "**A** and **B**")]),
    ],
)
def test_kinds_of_blocks(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    "bullet",
    ["-", "*", "+", "•", "◦", "–", "1.", "1)", "(1)", "12.", "a)", "(ii)", "- [x]", "- [ ]"],
)
def test_bullets_and_numbers_begin_items(bullet: str) -> None:
    assert kinds(f"{bullet} one\n{bullet} two") == [("item", "one"), ("item", "two")]


@pytest.mark.parametrize(
    "text",
    ["–5 is cold", "-5 is cold", "1986. A great year", "1.5 m", "3. ", r"\- one", "e.g. this"],
)
def test_a_number_or_a_sign_that_begins_a_line_is_no_bullet(text: str) -> None:
    assert kinds(text) == [("paragraph", text.strip())]


def test_a_negative_number_behind_a_bullet_keeps_its_sign() -> None:
    assert kinds("- -5 is cold") == [("item", "-5 is cold")]


# Lines that go on


def test_a_line_in_small_letters_goes_on_from_an_unfinished_one() -> None:
    assert kinds("The town\nis old.") == [("paragraph", "The town is old.")]
    assert kinds("The town.\nis old.") == [("paragraph", "The town."), ("paragraph", "is old.")]
    assert kinds("The town\n\nis old.") == [("paragraph", "The town"), ("paragraph", "is old.")]


def test_a_long_line_was_wrapped_and_a_short_one_was_not() -> None:
    long = "word " * (MIN_WRAPPED_LINE_CHARACTERS // 5)
    assert kinds(f"{long}x\nIt goes on") == [("paragraph", f"{long}x It goes on")]
    assert kinds("Short\nIt does not") == [("paragraph", "Short"), ("paragraph", "It does not")]


def test_a_line_that_is_further_in_than_its_bullet_belongs_to_the_item() -> None:
    assert kinds("- One\n  Two\n- Three") == [("item", "One Two"), ("item", "Three")]


def test_a_label_in_bold_begins_a_paragraph() -> None:
    assert kinds("**Fee:** five\n**Note:** six") == [
        ("paragraph", "**Fee:** five"),
        ("paragraph", "**Note:** six"),
    ]


# What a block stands under


def test_a_paragraph_stands_under_the_headings_of_all_levels() -> None:
    text = "# Town\nA.\n## Size\nB.\n### Area\nC.\n## Age\nD.\n# Other\nE."
    assert paths(text) == {
        "A.": ["Town"],
        "B.": ["Town", "Size"],
        "C.": ["Town", "Size", "Area"],
        "D.": ["Town", "Age"],
        "E.": ["Other"],
    }


def test_a_line_in_bold_is_a_heading_below_all_others() -> None:
    assert paths("## Town\n**Size**\nA.\n\n**Age**\nB.\n## Other\nC.") == {
        "A.": ["Town", "**Size**"],
        "B.": ["Town", "**Age**"],
        "C.": ["Other"],
    }


def test_what_follows_the_list_of_a_line_in_bold_does_not_stand_under_it() -> None:
    assert paths("**Fees**\n- A.\n\nB.") == {"A.": ["**Fees**"], "B.": []}


@pytest.mark.parametrize(
    "lead",
    ["Members get:", "Members get:\n", "Members get", "**Members get:**", "Members get:\n\n"],
)
def test_items_stand_under_their_lead_and_what_follows_them_does_not(lead: str) -> None:
    found = paths(f"{lead}\n- free entry\n- a bag\n\nAll may come.")
    assert [one.strip("*") for one in found["free entry"]] == [lead.strip("\n*")]
    assert found["a bag"] == found["free entry"]
    assert found["All may come."] == []


def test_a_finished_sentence_does_not_lead_on() -> None:
    assert paths("It is old.\n- free entry")["free entry"] == []
    # Nor does an unfinished line with a blank line below it.
    assert paths("Members get\n\n- free entry")["free entry"] == []


@pytest.mark.parametrize(
    "text",
    [
        "1. One\n   - inner\n   - second\n2. Two",
        "- One\n  - inner\n  - second\n- Two",
        "1. One\n- inner\n- second\n2. Two",  # a loose nesting that models write
        "- One\n\t- inner\n\t- second\n- Two",
    ],
)
def test_items_are_nested(text: str) -> None:
    assert paths(text) == {"One": [], "inner": ["One"], "second": ["One"], "Two": []}


def test_a_paragraph_within_an_item_stands_under_it() -> None:
    assert paths("- One\n\n  still one\n\nnot") == {"One": [], "still one": ["One"], "not": []}


def test_a_rule_ends_a_list() -> None:
    assert paths("Fees:\n- A\n\n***\n\n- B") == {"Fees:": [], "A": ["Fees:"], "B": []}


def test_only_the_innermost_are_kept_of_many() -> None:
    depth = MAX_BLOCKS_ABOVE + 3
    text = "\n".join(f"{'  ' * level}- level {level}" for level in range(depth))
    above = paths(text)[f"level {depth - 1}"]
    assert above == [f"level {level}" for level in range(depth - 1 - MAX_BLOCKS_ABOVE, depth - 1)]


# Tables


def cells(text: str) -> list[list[str]]:
    return [[cell.text for cell in block.cells] for block in blocks_of(text) if block.kind == "row"]


def test_a_table_has_a_rule_below_its_first_row() -> None:
    text = "| mill | built |\n| :-- | --: |\n| North | 1807 |\n| South | |"
    assert cells(text) == [["mill", "built"], ["North", "1807"], ["South", ""]]
    head, north, south = blocks_of(text)
    assert head.header == ()
    assert north.header == south.header == ("mill", "built")


def test_a_table_may_lack_its_outer_bars_or_its_rule() -> None:
    assert cells("mill | built\n--- | ---\nNorth | 1807") == [["mill", "built"], ["North", "1807"]]
    assert cells("a | b\n1 | 2\n3 | 4") == [["a", "b"], ["1", "2"], ["3", "4"]]


def test_an_escaped_bar_is_no_border() -> None:
    assert cells("| a | b |\n|---|---|\n| 1 \\| 2 | 3 |")[1] == [r"1 \| 2", "3"]


def test_a_bar_in_a_sentence_is_no_table() -> None:
    assert kinds("The sign | is a bar.") == [("paragraph", "The sign | is a bar.")]
    assert cells("a | b\n1 | 2") == []


def test_rows_stand_under_the_heading_of_their_table() -> None:
    assert paths("## Mills\n| a | b |\n|---|---|\n| 1 | 2 |")["| 1 | 2 |"] == ["Mills"]


def test_the_cells_of_a_row_keep_their_places() -> None:
    text = "| a | b |\n|---|---|\n| 1 | two |"
    cell = blocks_of(text)[1].cells[1]
    assert text[slice(*cell.span)] == "two"


# Any text at all

PIECES = [
    *("word", "Word.", "Lead:", " ", "  ", "\n", "\n\n", "\n- ", "\n  * ", "\n1. ", "\n   2) "),
    *("\n# ", "\n### ", "\n---\n", "\n***\n", "\n===\n", "\n> ", "**Bold**", "_", "|", "|---|"),
    *("| a | b |\n|---|---|\n| c | d |\n", "\n```\n", "\n~~~\n", "\t", "\r\n", "\u2028", "5", "é"),
]
ANSWERS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


def letters(text: str) -> list[str]:
    return [character for character in text if character.isalpha()]


@given(ANSWERS)
def test_no_letter_is_lost_or_read_twice(text: str) -> None:
    assert [one for block in blocks_of(text) for one in letters(block.text.text)] == letters(text)


@given(ANSWERS | st.text())
def test_blocks_stand_in_order_where_they_say(text: str) -> None:
    position = 0
    for place, block in enumerate(blocks_of(text)):
        pairs = list(zip(block.text.text, block.text.offsets, strict=True))
        assert all(text[offset] == one for one, offset in pairs if not one.isspace())
        assert [offset for _, offset in pairs] == sorted(offset for _, offset in pairs)
        if block.text.text:
            start, end = block.text.span
            assert start >= position
            position = end
        assert all(above < place for above in block.above)
        assert list(block.above) == sorted(block.above)
        assert len(block.above) <= MAX_BLOCKS_ABOVE
        for cell in block.cells:
            assert all(
                text[offset] == one for one, offset in zip(cell.text, cell.offsets, strict=True)
            )

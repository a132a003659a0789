"""Citation markers, brackets of code and lists of references; by hand, and on whatever text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.hostile import HOSTILE
from trustassay.text.citations import (
    MAX_RANGE_NUMBERS,
    cites_document,
    find_citations,
    find_citations_as_in_paper,
    find_references_start,
    is_reference_entry,
    mask_code_brackets,
    spell_superscripts,
    strip_citations,
    strip_citations_as_in_paper,
)
from trustassay.text.mapped import MappedText


def numbers(text: str) -> list[tuple[int, ...]]:
    return [marker.numbers for marker in find_citations(text)]


# Markers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1]", [(1,)]),
        ("[02]", [(2,)]),
        ("[1][2]", [(1,), (2,)]),
        ("[1, 2]", [(1, 2)]),
        ("[1,2;3]", [(1, 2, 3)]),
        ("[1 and 2]", [(1, 2)]),
        ("[1 & 2]", [(1, 2)]),
        ("[1, 2, and 3]", [(1, 2, 3)]),
        ("[1-3]", [(1, 2, 3)]),
        ("[1–3]", [(1, 2, 3)]),
        ("[1 — 2]", [(1, 2)]),
        ("[3-1]", [(3, 1)]),
        ("[2-2]", [(2,)]),
        ("[1-2, 5]", [(1, 2, 5)]),
        ("[Doc 2]", [(2,)]),
        ("[document 2]", [(2,)]),
        ("[Docs. 1, 3]", [(1, 3)]),
        ("[Doc 1, Doc 3]", [(1, 3)]),
        ("[Source: 1]", [(1,)]),
        ("[Passage 2]", [(2,)]),
        ("[Ref 1; Ref 2]", [(1, 2)]),
        ("[^1]", [(1,)]),
        ("[#1]", [(1,)]),
        ("【3】", [(3,)]),
        ("【1†source】", [(1,)]),
        ("【4:1†guide.pdf】", [(1,)]),
        ("[1†guide.pdf]", [(1,)]),
        ("[ 2 ]", [(2,)]),
        ("[[2]]", [(2,)]),
        (r"\[1\]", [(1,)]),
        ("[2](url)", [(2,)]),
        ("[2](https://example.org/b)", [(2,)]),
        ("[2](#note)", [(2,)]),
        ("<sup>1</sup>", [(1,)]),
        ("<sup>[1, 2]</sup>", [(1, 2)]),
        ("<cite>2</cite>", [(2,)]),
        ("^1^", [(1,)]),
        ("(Source: 1)", [(1,)]),
        ("(doc. 3)", [(3,)]),
        ("It opened in May (1).", [(1,)]),
        ("It opened in May {1}.", [(1,)]),
        ("It opened in May (1, 2), and closed", [(1, 2)]),
        ("[0]", [(0,)]),
        ("[999]", [(999,)]),
        ("[1], [2]", [(1, 2)]),
        ("[1];[2] , [3]", [(1, 2, 3)]),
        ("[1] [2]", [(1,), (2,)]),
        ("[1],\n[2]", [(1,), (2,)]),
        ("[1] and [2]", [(1,), (2,)]),
    ],
)
def test_markers(text: str, expected: list[tuple[int, ...]]) -> None:
    assert numbers(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[2023]",
        "[1, 2023]",
        "[note]",
        "[-2]",
        "[]",
        "[1",
        "1]",
        "(2)",
        "[1.5]",
        "[٣]",
        "[a1]",
        "[,1]",
        "a probability in [0, 1]",
        "see step [2]",
        "see Table [2]",
        "<sup>th</sup>",
        "<sup>1</cite>",
        "Halls (2) and (3) are open",  # in the middle of a clause a number in brackets counts
        "It opened in (2) and",
        "It opened in May (2020).",
        "f(1).",
    ],
)
def test_text_that_is_no_marker(text: str) -> None:
    assert numbers(text) == []
    assert strip_citations(text) == text


def test_a_range_too_long_to_be_meant_names_its_ends() -> None:
    longest = f"[1-{MAX_RANGE_NUMBERS}]"
    assert numbers(longest) == [tuple(range(1, MAX_RANGE_NUMBERS + 1))]
    assert numbers(f"[1-{MAX_RANGE_NUMBERS + 1}]") == [(1, MAX_RANGE_NUMBERS + 1)]
    assert numbers("[1-999]") == [(1, 999)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Paris is old [1].", "Paris is old."),
        ("Paris is old  [1][2].", "Paris is old."),
        ("Paris is old.[1]", "Paris is old."),
        ("[1] Paris is old.", " Paris is old."),
        ("Paris [1] is old [2, 3].", "Paris is old."),
        ("Paris is old [1], [2].", "Paris is old."),
        ("Paris [1], Rome [2].", "Paris, Rome."),
        ("Paris [2023] is [old].", "Paris [2023] is [old]."),
        ("One\n[1] two", "One\n two"),
        ("Paris is old<sup>1</sup>.", "Paris is old."),
        ("Paris is old [1](https://example.org/a).", "Paris is old."),
        ("Paris is old 【4:1†guide.pdf】.", "Paris is old."),
        ("Paris is old (source 2).", "Paris is old."),
    ],
)
def test_without_citations(text: str, expected: str) -> None:
    assert strip_citations(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It opened in 1902.¹ It burned.", "It opened in 1902. [1] It burned."),
        ("It opened¹.", "It opened [1]."),
        ("It opened ¹˒².", "It opened [1,2]."),
        ("It opened.¹,² It burned.", "It opened. [1,2] It burned."),
    ],
)
def test_raised_digits_that_cite_become_markers(text: str, expected: str) -> None:
    assert spell_superscripts(MappedText.of(text)).text == expected


@pytest.mark.parametrize("text", ["5 m² of land", "x² is 4", "10²", "a kg/m³ b"])
def test_raised_digits_of_units_and_powers_cite_nothing(text: str) -> None:
    assert spell_superscripts(MappedText.of(text)).text == text


@pytest.mark.parametrize(
    ("text", "expected", "cited"),
    [
        ("x [1, 2].", "x, 2.", (1,)),
        ("x [1-3].", "x-3.", (1,)),
        ("x [note].", "x [note.", ()),
        ("x  [1].", "x .", (1,)),
        ("x | y]", "x y", ()),
        ("x[[2]]", "x[", (2,)),
        ("[٣]", "", (3,)),
    ],
)
def test_the_paper_reads_otherwise(text: str, expected: str, cited: tuple[int, ...]) -> None:
    assert strip_citations_as_in_paper(text) == expected
    assert find_citations_as_in_paper(text) == cited


# Any text at all

ANY = st.text(st.characters(codec=None)) | st.lists(
    st.sampled_from(
        ["[", "]", "1", "9" * 30, ",", "-", " ", "\n", "and", "Doc", "【", "】", "^", "."]
    )
).map("".join)


@given(ANY)
def test_markers_stand_in_order_and_their_removal_leaves_the_rest(text: str) -> None:
    markers = find_citations(text)
    ends = [0, *(marker.end for marker in markers)]
    assert all(end <= m.start < m.end for end, m in zip(ends, markers, strict=False))
    assert all(0 <= n <= 999 for m in markers for n in m.numbers)
    kept = "".join(
        text[a:b].rstrip(" \t") for a, b in zip(ends, [m.start for m in markers], strict=False)
    )
    assert strip_citations(text) == kept + text[ends[-1] :]


@given(ANY)
def test_every_text_is_read_as_in_the_paper(text: str) -> None:
    cited = find_citations_as_in_paper(text)
    assert all(0 <= number < 10**18 for number in cited)
    assert "]" not in strip_citations_as_in_paper(text)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize(
    "read",
    [
        find_citations,
        strip_citations,
        find_citations_as_in_paper,
        strip_citations_as_in_paper,
        find_references_start,
    ],
    ids=lambda f: f.__name__,
)
def test_hostile_text_is_read_fast(read: Callable[[str], object], kind: str) -> None:
    started = time.process_time()
    read(HOSTILE[kind])
    assert time.process_time() - started < 1.5


# Brackets of code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is blue[1].", [1]),
        ("Vitamin C[2] is one.[3]", [2, 3]),
        ("By Lautaro Murúa[1], e.g[4]. of Mötley Crüe[2]", [1, 4, 2]),
        ("Take `items[1]`, as told [2].", [2]),
        ("Write\n```python\nfor a in rows[1]:\n```\nas told [2].", [2]),
        ("Write\n~~~\nrows[1]", []),
        ("Set a[1] or x[0][2] or row_names[3].", []),
        ("Then rows[1] = 2 and rows[2].sort() and n = [1, 2].", []),
        ("It is blue[1].eBay sells it [2] = yes.", [1, 2]),
    ],
)
def test_brackets_of_code_cite_nothing(text: str, expected: list[int]) -> None:
    assert [number for one in numbers(text) for number in one] == expected


@given(ANY)
def test_masking_changes_opening_brackets_alone(text: str) -> None:
    result = mask_code_brackets(text)
    assert len(result) == len(text)
    assert all(new == old or old in "[【" for new, old in zip(result, text, strict=True))


# Lists of references

BODY = "It is red [2].\n\nIt is big."


@pytest.mark.parametrize(
    "references",
    [
        "\n\nSources:\n[1] The colours\n[2] The sizes\n",
        "\n**References**\n\n1. [1] The colours\n2. [2] The sizes",
        "\n\nQuellen:\n- [2] Die Farben",
        "\n\n参考文献\n[1] 色",
        "\n\n[^1]: The colours\n[^2]: The sizes",
        "\n\n[1] https://example.org/a\n[2] https://example.org/b",
        "\n\n### Sources\n- [1]: see https://example.org/b.",
        '\n\nSources:\n[1] "The museum is closed"',
        "\n\nSources:\n[1] The Museum Is Closed on Mondays",
    ],
)
def test_a_list_of_references_is_found_and_cites_nothing(references: str) -> None:
    start = find_references_start(BODY + references)
    assert (BODY + references)[:start].rstrip() == BODY
    assert not cites_document("It is big." + references, 2)
    assert cites_document(BODY + references, 2)
    assert not cites_document(BODY + references, 1)


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        "[1] It is red.\n[2] It is big.",
        f"{BODY}\n\n[1] It is round.\n[3] It is old.",
        "Sources:\n[1] The colours",
        f"{BODY}\n\nSources:\n[1] The colours\n\nAsk me for more.",
        "",
        "Sources:",
    ],
)
def test_what_may_be_an_answer_is_no_list_of_references(text: str) -> None:
    assert find_references_start(text) == len(text)


@pytest.mark.parametrize(
    "references",
    [
        "\n\nSources:\n[1] The museum is closed on Mondays.",
        "\n\n[1]: The museum is closed on Mondays.",
        "\n\n[1] https://example.org/a says it is closed.",
    ],
)
def test_a_statement_hidden_among_references_is_kept(references: str) -> None:
    """It would not be judged otherwise."""
    text = BODY + references
    assert find_references_start(text) == len(text)


@pytest.mark.parametrize(
    ("text", "is_entry"),
    [
        (
            "Lamps. Wikipedia, [Online]. Available: https://a.example/l. [Accessed May 2, 2021].",
            True,
        ),
        ("Lamps of Turin. https://a.example/l. Retrieved 2 May 2021.", True),
        # an answer and its address, a date, a statement, a denial
        ("Ada Byron. https://a.example/l", False),
        ("Accessed May 2, 2021", False),
        ("The lamp is red. https://a.example/l. Retrieved 2 May 2021.", False),
        ("No lamps. https://a.example/l. Retrieved 2 May 2021.", False),
    ],
)
def test_an_entry_of_a_bibliography_has_an_address_and_states_nothing(
    text: str, is_entry: bool
) -> None:
    assert is_reference_entry(text) == is_entry


def test_the_entries_below_the_last_statement_are_references_still() -> None:
    text = f"{BODY}\n\n[1] The museum is closed on Mondays.\n[2]: The sizes"
    assert text[find_references_start(text) :] == "[2]: The sizes"

"""Text primitives: markers, normalisation, list elements; by hand, and on whatever text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.metrics.faithfulness.claims import sentences
from trustassay.metrics.grounding.options import Rules
from trustassay.metrics.grounding.sentences import splitter, statements
from trustassay.metrics.grounding.text import (
    LONGEST_RANGE,
    citation_markers,
    citations_as_in_paper,
    cites,
    list_elements,
    list_elements_as_in_paper,
    masked,
    normalise,
    normalise_squad,
    unmasked,
    without_citations,
    without_citations_as_in_paper,
    without_numbering,
    without_references,
)


def numbers(text: str) -> list[tuple[int, ...]]:
    return [marker.numbers for marker in citation_markers(text)]


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
        ("[^1]", [(1,)]),
        ("【3】", [(3,)]),
        ("[ 2 ]", [(2,)]),
        ("[[2]]", [(2,)]),
        ("[2](url)", [(2,)]),
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
    ],
)
def test_text_that_is_no_marker(text: str) -> None:
    assert numbers(text) == []
    assert without_citations(text) == text


def test_a_range_too_long_to_be_meant_names_its_ends() -> None:
    longest = f"[1-{LONGEST_RANGE}]"
    assert numbers(longest) == [tuple(range(1, LONGEST_RANGE + 1))]
    assert numbers(f"[1-{LONGEST_RANGE + 1}]") == [(1, LONGEST_RANGE + 1)]
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
    ],
)
def test_without_citations(text: str, expected: str) -> None:
    assert without_citations(text) == expected


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
    assert without_citations_as_in_paper(text) == expected
    assert citations_as_in_paper(text) == cited


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


def test_words_and_parts() -> None:
    assert Rules().contains("the river nile floods", "nile")
    assert not Rules().contains("juvenile birds", "nile")
    assert not Rules().contains("anything", "")
    assert Rules(words=False).contains("juvenile birds", "nile")
    assert Rules(words=False).contains("anything", "")


@pytest.mark.slow
@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)
    assert once == " ".join(once.split())
    assert normalise(once) in (
        once,
        " ".join(w for w in once.split() if w not in ("a", "an", "the")),
    )


# Lists


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Heat, Speed, Ran", ["Heat", "Speed", "Ran"]),
        ("Heat, Speed, and Ran.", ["Heat", "Speed", "Ran"]),
        ("Heat; Speed\nRan", ["Heat", "Speed", "Ran"]),
        ("1. Heat\n2. Speed", ["Heat", "Speed"]),
        ("1) Heat, 2) Speed", ["Heat", "Speed"]),
        ("- Heat\n- Speed", ["Heat", "Speed"]),
        ("• Heat\n* Speed", ["Heat", "Speed"]),
        ("Heat [1, 2], Speed [3]", ["Heat [1, 2]", "Speed [3]"]),
        ("Heat [1], [2], Speed [3].", ["Heat [1], [2]", "Speed [3]."]),
        ("Heat\n[1]\nSpeed", ["Heat [1]", "Speed"]),
        ("1,000 lakes, 300", ["1,000 lakes", "300"]),
        ("1,234,567, 8", ["1,234,567", "8"]),
        ("1999,2000", ["1999", "2000"]),
        ("Heat and Speed", ["Heat and Speed"]),
        ("Heat,, Speed,", ["Heat", "Speed"]),
        ("[1]", []),
        ("...", []),
        (" , ;\n", []),
        ("", []),
    ],
)
def test_list_elements(text: str, expected: list[str]) -> None:
    assert list_elements(text) == expected


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("Mai, the Psychic Girl, Heat", {"mai psychic girl"}, ["Mai, the Psychic Girl", "Heat"]),
        ("Mai, the Psychic Girl, Heat", (), ["Mai", "the Psychic Girl", "Heat"]),
        ("Crosby, Stills, and Nash", {"crosby stills and nash"}, ["Crosby, Stills, and Nash"]),
        ("And Then None, Heat", {"and then none"}, ["And Then None", "Heat"]),
        ("And Then None, Heat", (), ["Then None", "Heat"]),
        ("1. FC Union, Heat", {"1 fc union"}, ["1. FC Union", "Heat"]),
        ("1. Heat, 2. Mai, the Girl", {"mai girl"}, ["Heat", "Mai, the Girl"]),
        ("Heat, and Mai, the Girl [2]", {"mai girl"}, ["Heat", "Mai, the Girl [2]"]),
    ],
)
def test_list_elements_that_are_known(text: str, known: set[str], expected: list[str]) -> None:
    assert list_elements(text, known) == expected


def test_list_elements_as_in_paper() -> None:
    assert list_elements_as_in_paper("1. Heat, Mai, the Girl.") == ["1. Heat", "Mai", "the Girl"]
    assert list_elements_as_in_paper("") == [""]
    assert list_elements_as_in_paper("a,.") == ["a"]
    assert list_elements_as_in_paper("a.,") == ["a."]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- a", "a"),
        ("12. a", "a"),
        ("(1) a", "a"),
        ("## a", "a"),
        ("1.5 m", "1.5 m"),
        ("2020. a", "2020. a"),
    ],
)
def test_without_numbering(line: str, expected: str) -> None:
    assert without_numbering(line) == expected


# Any text at all

ANY = st.text(st.characters(codec=None)) | st.lists(
    st.sampled_from(
        ["[", "]", "1", "9" * 30, ",", "-", " ", "\n", "and", "Doc", "【", "】", "^", "."]
    )
).map("".join)


@given(ANY)
def test_markers_stand_in_order_and_their_removal_leaves_the_rest(text: str) -> None:
    markers = citation_markers(text)
    ends = [0, *(marker.end for marker in markers)]
    assert all(end <= m.start < m.end for end, m in zip(ends, markers, strict=False))
    assert all(0 <= n <= 999 for m in markers for n in m.numbers)
    kept = "".join(
        text[a:b].rstrip(" \t") for a, b in zip(ends, [m.start for m in markers], strict=False)
    )
    assert without_citations(text) == kept + text[ends[-1] :]


@given(ANY)
def test_every_text_is_read(text: str) -> None:
    citations_as_in_paper(text)
    without_citations_as_in_paper(text)
    list_elements_as_in_paper(text)
    normalise_squad(text)
    assert all(element.strip() for element in list_elements(text))


HOSTILE = {
    "open brackets": "[" * 50_000,
    "open numbers": "[1," * 20_000,
    "open blanks": "[1" + " " * 50_000,
    "blanks": "[" + " " * 50_000,
    "digits": "[" + "1" * 50_000,
    "markers": "[1]" * 17_000,
    "marker list": "[1], " * 10_000,
    "ranges": "[1-999]" * 7_000,
    "dashes": "a-" * 30_000,
    "elements": "a, " * 17_000,
    "cited lines": "- a [1]\n" * 6_000,
    "bullets": "- " * 25_000,
    "numbering": "1. " * 17_000,
    "letters": "x" * 50_000,
    "surrogates": "\ud800" * 50_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize(
    "read",
    [
        citation_markers,
        without_citations,
        citations_as_in_paper,
        without_citations_as_in_paper,
        normalise,
        normalise_squad,
        without_numbering,
        lambda text: list_elements(text, {"b", "c d e f g"}),
    ],
    ids=lambda f: f.__name__,
)
def test_hostile_text_is_read_fast(read: Callable[[str], object], kind: str) -> None:
    started = time.process_time()
    read(HOSTILE[kind])
    assert time.process_time() - started < 1.5


# Brackets of code, and lists of references --------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
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
def test_brackets_of_code_cite_nothing(text: str, numbers: list[int]) -> None:
    assert [n for marker in citation_markers(text) for n in marker.numbers] == numbers
    assert unmasked(masked(text)) == text


BODY = "It is red [2].\n\nIt is big."


@pytest.mark.parametrize(
    "listed",
    [
        "\n\nSources:\n[1] The colours\n[2] The sizes\n",
        "\n**References**\n\n1. [1] The colours\n2. [2] The sizes",
        "\n\nQuellen:\n- [2] Die Farben",
        "\n\n[^1]: The colours\n[^2]: The sizes",
        "\n\n[1] https://example.org/a\n[2] https://example.org/b",
    ],
)
def test_a_list_of_references_is_no_statement(listed: str) -> None:
    assert without_references(BODY + listed).rstrip() == BODY
    found = statements(BODY + listed, splitter("lines"), trailing=True, lines=True)
    assert [(one.hypothesis, one.numbers) for one in found] == [
        ("It is red.", (2,)),
        ("It is big.", ()),
    ]
    assert not cites("It is big." + listed, 2)


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        "[1] It is red.\n[2] It is big.",
        f"{BODY}\n\n[1] It is round.\n[3] It is old.",
        "Sources:\n[1] The colours",
        f"{BODY}\n\nSources:\n[1] The colours\n\nAsk me for more.",
    ],
)
def test_what_may_be_an_answer_is_kept(text: str) -> None:
    assert without_references(text) == text


def test_faithfulness_does_not_judge_a_list_of_references() -> None:
    found = sentences("", f"{BODY}\n\n## Sources\n[1] The colours\n", splitter("lines"))
    assert [one.hypothesis for one in found] == ["It is red.", "It is big."]

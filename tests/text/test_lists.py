"""Elements of list answers; by hand, and on whatever text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.hostile import HOSTILE
from trustassay.text.citations import strip_citations
from trustassay.text.lists import split_list, split_list_as_in_paper
from trustassay.text.markdown import strip_numbering


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
    assert split_list(text) == expected


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
    assert split_list(text, known) == expected


def test_list_elements_as_in_paper() -> None:
    assert split_list_as_in_paper("1. Heat, Mai, the Girl.") == ["1. Heat", "Mai", "the Girl"]
    assert split_list_as_in_paper("") == [""]
    assert split_list_as_in_paper("a,.") == ["a"]
    assert split_list_as_in_paper("a.,") == ["a."]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- a", "a"),
        ("12. a", "a"),
        ("(1) a", "a"),
        ("## a", "a"),
        ("- 1. a", "a"),
        ("1.5 m", "1.5 m"),
        ("2020. a", "2020. a"),
        ("-5 °C", "-5 °C"),
    ],
)
def test_without_numbering(line: str, expected: str) -> None:
    assert strip_numbering(line) == expected


ANY = st.text(st.characters(codec=None)) | st.lists(
    st.sampled_from(["Heat", "1. ", "- ", "[1]", " [2, 3]", ",", ";", "\n", " ", "and ", "."])
).map("".join)


@given(ANY)
def test_no_element_is_blank(text: str) -> None:
    assert all(strip_citations(element).strip() for element in split_list(text))


NAMES = st.sampled_from(["Heat", "The Third Man", "1,000 Lakes", "Ran"])
CITATIONS = st.sampled_from(["", " [1]", " [1, 2]", " [1], [2]", " [Doc 3]"])


@given(
    st.lists(st.builds("".join, st.tuples(NAMES, CITATIONS))),
    st.sampled_from([", ", "; ", "\n", "\n- ", ",\n"]),
)
def test_every_element_keeps_its_citations(elements: list[str], between: str) -> None:
    assert split_list(between.join(elements)) == elements


@given(ANY)
def test_every_text_has_an_element_as_in_the_paper(text: str) -> None:
    assert split_list_as_in_paper(text)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize(
    "read",
    [strip_numbering, lambda text: split_list(text, {"b", "c d e f g"})],
    ids=["without_numbering", "list_elements"],
)
def test_hostile_text_is_read_fast(read: Callable[[str], object], kind: str) -> None:
    started = time.process_time()
    read(HOSTILE[kind])
    assert time.process_time() - started < 1.5

"""Rows of evidence: what is written, and what is read of anything at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.evidence import EvidenceRow, EvidenceRows


@dataclass(frozen=True, slots=True)
class Inner(EvidenceRow):
    """A row within a row."""

    number: int


@dataclass(frozen=True, slots=True)
class Outer(EvidenceRow):
    """One field of each type."""

    row_kind = "outer"
    required = ("text",)

    text: str
    value: float | None
    flag: bool
    inner: Sequence[Inner]
    one: Inner | None = None
    choice: Literal["a", "b"] | None = None
    names: Sequence[str] | None = None
    anything: Any = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plain(EvidenceRow):
    """A row without a kind."""

    required = ("gold", "value")

    gold: str
    value: float


WHOLE = Outer("x", 0.5, True, [Inner(1)], Inner(2), "b", ["c"], {"d": [1]}, "e")
BARE = Outer("x", None, False, [])


def test_fields_without_a_default_are_written_and_others_where_they_differ() -> None:
    assert BARE.to_json() == {
        "kind": "outer",
        "text": "x",
        "value": None,
        "flag": False,
        "inner": [],
    }
    assert list(WHOLE.to_json()) == [
        "kind",
        *("text", "value", "flag", "inner", "one", "choice", "names", "anything", "note"),
    ]
    assert WHOLE.to_json()["inner"] == [{"number": 1}]


@pytest.mark.parametrize("row", [WHOLE, BARE])
def test_what_was_written_is_read(row: Outer) -> None:
    assert Outer.read(row.to_json()) == row


@pytest.mark.parametrize(
    "item",
    [None, 7, [], {}, {"text": "x"}, {"kind": "other", "text": "x"}, {"kind": "outer", "text": 7}],
)
def test_another_kind_is_none(item: Any) -> None:
    assert Outer.read(item) is None


def test_a_value_of_a_wrong_type_counts_as_absent() -> None:
    wrong = {"value": True, "flag": 1, "inner": ["x", {"number": True}, {"number": 3}], "one": 7}
    wrong |= {"choice": "c", "names": ["a", 1, None], "note": 3}
    found = Outer.read({"kind": "outer", "text": "x", **wrong})
    assert found == Outer("x", None, False, [Inner(0), Inner(3)], names=["a"])
    assert Plain.read({"gold": "x", "value": True}) is None
    assert Plain.read({"gold": "x", "value": 1}) == Plain("x", 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
NAMES = ("text", "value", "flag", "inner", "one", "choice", "names", "note", "gold")


@given(st.lists(JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(("kind", *NAMES), JSON))))
def test_every_item_is_a_row_or_the_rest(evidence: list[Any]) -> None:
    rows = EvidenceRows(evidence, Outer, Plain)
    assert len(rows.select(Outer)) + len(rows.select(Plain)) + len(rows.other_items) == len(
        evidence
    )
    assert all(isinstance(one, dict) for one in rows.other_items)

"""Numbers in brackets that cite nothing: in code, and in lists of references."""

import pytest

from trustassay.metrics.faithfulness.claims import sentences
from trustassay.metrics.grounding.sentences import splitter, statements
from trustassay.metrics.grounding.text import (
    citation_markers,
    cites,
    masked,
    unmasked,
    without_references,
)


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

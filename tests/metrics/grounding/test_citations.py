"""The verdict of each citation, why, and what is asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.grounding.helpers import Item, Knows, assessed, docs, item, trace, verdicts
from trustassay.metrics.grounding.maths import (
    VERDICT_REASONS,
    Judgement,
    build_citations,
    covers_same_gold,
    indices_without,
    judge_citations,
)
from trustassay.metrics.grounding.options import PROFILES, Rules

DEFAULT = PROFILES["default"]
Labels = dict[tuple[int, ...], bool]


# Which citations count


def resolved(
    numbers: list[int], documents: int = 3, limit: int | None = 3, **rules: object
) -> list[tuple[int, str | None]]:
    found = build_citations(numbers, documents, replace(DEFAULT, **rules), limit)  # type: ignore[arg-type]
    return [(c.index, c.verdict) for c in found]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (resolved([1, 3]), [(0, None), (2, None)]),
        (resolved([]), []),
        (resolved([0]), [(-1, "invalid")]),
        (resolved([4]), [(3, "invalid")]),
        (resolved([1], documents=0), [(0, "invalid")]),
        (resolved([0], zero="last"), [(-1, None)]),
        (resolved([0], documents=0, zero="last"), [(-1, "invalid")]),
        # void: the good citation falls with the bad one
        (resolved([1, 9]), [(0, "unsupported"), (8, "invalid")]),
        (resolved([1, 9], invalid="imprecise"), [(0, None), (8, "invalid")]),
        (resolved([2, 2]), [(1, None), (1, "duplicate")]),
        (resolved([2, 2], duplicates="each"), [(1, None), (1, None)]),
        # [0] and [3] are the same document of three
        (resolved([0, 3], zero="last"), [(-1, None), (2, "duplicate")]),
        (resolved([1, 2, 3], limit=2), [(0, None), (1, None), (2, "beyond limit")]),
        (resolved([1, 2, 3], limit=None), [(0, None), (1, None), (2, None)]),
        # A duplicate takes no place of the limit, nor does an invalid one.
        (resolved([1, 1, 2], limit=2), [(0, None), (0, "duplicate"), (1, None)]),
        (
            resolved([9, 1, 2], limit=2, invalid="imprecise"),
            [(8, "invalid"), (0, None), (1, None)],
        ),
        # The range check comes before the limit (B11).
        (resolved([1, 9], limit=1), [(0, "unsupported"), (8, "invalid")]),
    ],
)
def test_cited(found: list[tuple[int, str | None]], expected: list[tuple[int, str | None]]) -> None:
    assert found == expected


def test_rest_of_takes_the_first_of_equal_indices() -> None:
    assert indices_without([4, 2, 4], 0) == [2, 4]
    assert indices_without([4, 2, 4], 2) == [2, 4]
    assert indices_without([1], 0) == []


def test_covers_the_same() -> None:
    coverage = [[1, 0], [1, 1], [0, 0]]
    assert covers_same_gold(coverage, 0, [1])
    assert covers_same_gold(coverage, 1, [2, 0])
    assert not covers_same_gold(coverage, 0, [2])
    assert not covers_same_gold(coverage, 2, [0, 1])
    assert not covers_same_gold([], 0, [1])


# The trace, each verdict once, and the questions asked


def trace_of(
    response: str, facts: list[str], documents: int | list[Item] = 3, **options: object
) -> tuple[list[tuple[int, str]], list[str], Item, list[str]]:
    """Verdicts, whys, the statement's entry, and the premises asked, of the fact "A is."."""
    knows = Knows({"A is.": facts})
    assessment = assessed(item(response, documents), knows, **options)
    (statement,) = trace(assessment, "sentence")
    assert {hypothesis for _, hypothesis in knows.asked} <= {"A is."}
    premises = [premise.replace("\n", "+") for premise, _ in knows.asked]
    (found,) = verdicts(assessment)
    return found, [c["why"] for c in statement["citations"]], dict(statement), premises


def test_supports_alone() -> None:
    found, whys, statement, asked = trace_of("A is [1].", ["1"])
    assert found == [(1, "supports alone")]
    assert whys == ["this passage alone entails the statement"]
    assert statement["text"] == "A is [1]."
    assert statement["supported"] is True
    assert statement["why"] == "the cited passages entail the statement"
    assert statement["entailment"] == 1.0
    assert statement["citations"][0]["entailment"] == 1.0
    # One citation: the joint question is the single one.
    assert asked == ["d1"]


def test_both_support_alone() -> None:
    found, _, statement, asked = trace_of("A is [1][2].", ["1", "2"])
    assert found == [(1, "supports alone"), (2, "supports alone")]
    # The joint question first, then each alone; both hold, so no question about a rest.
    assert asked[0] == "d1+d2"
    assert sorted(asked[1:]) == ["d1", "d2"]
    assert [c["entailment"] for c in statement["citations"]] == [1.0, 1.0]


def test_needed() -> None:
    """Neither passage suffices alone. Without either, the rest is the other one: asked already."""
    found, whys, statement, asked = trace_of("A is [1][2].", ["12"])
    assert found == [(1, "needed"), (2, "needed")]
    assert whys == [VERDICT_REASONS["needed"]] * 2
    assert statement["entailment"] == 1.0
    assert [c["entailment"] for c in statement["citations"]] == [0.0, 0.0]
    assert asked[0] == "d1+d2"
    assert sorted(asked[1:]) == ["d1", "d2"]


def test_redundant() -> None:
    """1 and 2 are needed together; 3 fails alone, and without it the rest still entails."""
    found, whys, _, asked = trace_of("A is [1][2][3].", ["12"])
    assert found == [(1, "needed"), (2, "needed"), (3, "redundant")]
    assert whys[2] == "the other cited passages entail the statement without it"
    assert asked[0] == "d1+d2+d3"
    assert sorted(asked[1:4]) == ["d1", "d2", "d3"]
    assert sorted(asked[4:]) == ["d1+d2", "d1+d3", "d2+d3"]


def test_rest_is_asked_only_where_one_alone_fails() -> None:
    found, _, _, asked = trace_of("A is [1][2][3].", ["1"])
    assert found == [(1, "supports alone"), (2, "redundant"), (3, "redundant")]
    assert sorted(asked[4:]) == ["d1+d2", "d1+d3"]


def test_covered() -> None:
    """2 is superfluous, but supports gold answer 0, as 1 does: forgiven. 3 supports another."""
    documents = docs(3, [1, 0], [1, 0], [0, 1])
    knows = Knows({"A is.": ["1"]})
    answer = item("A is [1][2][3].", documents, answers=["x", "y"])
    assessment = assessed(answer, knows, correctness="em")
    assert verdicts(assessment) == [[(1, "supports alone"), (2, "covered"), (3, "redundant")]]
    (statement,) = trace(assessment, "sentence")
    assert statement["citations"][1]["why"] == VERDICT_REASONS["covered"]
    # 2 of 3 citations are precise; by ALCE's rule 1 of 3.
    assert assessment.parts["precise_citations"] == 2
    alce = assessed(answer, knows, correctness="em", precision="alce")
    assert verdicts(alce) == [[(1, "supports alone"), (2, "redundant"), (3, "redundant")]]
    assert alce.parts["precise_citations"] == 1


def test_unsupported() -> None:
    found, whys, statement, asked = trace_of("A is [1][2].", ["3"])
    assert found == [(1, "unsupported"), (2, "unsupported")]
    assert whys == ["the cited passages together do not entail the statement"] * 2
    assert statement["supported"] is False
    assert statement["why"] == "the cited passages together do not entail the statement"
    assert statement["entailment"] == 0.0
    # The joint question fails: nothing else is asked, and no probability is made up.
    assert asked == ["d1+d2"]
    assert [c["entailment"] for c in statement["citations"]] == [None, None]


def test_invalid_voids_its_statement() -> None:
    found, whys, statement, asked = trace_of("A is [1][9].", ["1"])
    assert found == [(1, "unsupported"), (9, "invalid")]
    assert whys == [
        "a citation next to it names a document that does not exist",
        "the document does not exist",
    ]
    assert statement["supported"] is False
    assert statement["why"] == "cites a document that does not exist"
    assert statement["entailment"] is None
    assert [c["entailment"] for c in statement["citations"]] == [None, None]
    assert asked == []


def test_invalid_may_be_imprecise_alone() -> None:
    found, _, statement, asked = trace_of("A is [1][9].", ["1"], invalid="imprecise")
    assert found == [(1, "supports alone"), (9, "invalid")]
    assert statement["supported"] is True
    assert asked == ["d1"]
    assert [c["entailment"] for c in statement["citations"]] == [1.0, None]


def test_beyond_limit() -> None:
    found, whys, statement, asked = trace_of("A is [1][2][3].", ["3"], at_most_citations=2)
    assert found == [(1, "unsupported"), (2, "unsupported"), (3, "beyond limit")]
    assert whys[2] == "only the first 2 citations of a statement count"
    assert asked == ["d1+d2"]
    assert statement["citations"][2]["entailment"] is None


def test_duplicate() -> None:
    found, whys, statement, asked = trace_of("A is [2][2].", ["2"])
    assert found == [(2, "supports alone"), (2, "duplicate")]
    assert whys[1] == "the same document is already cited in this statement"
    assert asked == ["d2"]
    assert [c["entailment"] for c in statement["citations"]] == [1.0, None]


def test_cites_nothing() -> None:
    found, _, statement, asked = trace_of("A is.", ["1"])
    assert found == []
    assert statement["why"] == "cites nothing"
    assert statement["supported"] is False
    assert statement["entailment"] is None
    assert asked == []


def test_equal_questions_of_two_statements_are_asked_once() -> None:
    knows = Knows({"A is.": ["1"]})
    assessment = assessed(item("A is [1]. A is [1]."), knows)
    assert len(knows.asked) == 1
    assert assessment.parts["supported_statements"] == 2


def test_passages_go_to_entailment_in_the_order_cited_with_their_titles() -> None:
    documents = [{"title": "T", "text": "one"}, {"text": "two"}, {"text": "x", "excerpt": "three"}]
    knows = Knows()
    assessed(item("A is [3][1]. B is [2].", documents), knows)
    assert sorted(knows.asked) == [("three\nTitle: T\none", "A is."), ("two", "B is.")]


def test_probabilities_are_those_of_the_entailer_to_two_decimals() -> None:
    assessment = assessed(item("A is [1]."), lambda p, h: 0.12345)
    (statement,) = trace(assessment, "sentence")
    assert statement["entailment"] == 0.12
    assert statement["supported"] is False


# Pure decisions, against a table of all labels


@given(
    numbers=st.lists(st.integers(0, 4), max_size=5),
    labels=st.dictionaries(st.frozensets(st.integers(-1, 3)), st.booleans()),
    coverage=st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=2), min_size=3, max_size=3),
    rules=st.builds(
        Rules,
        zero=st.sampled_from(["invalid", "last"]),
        invalid=st.sampled_from(["void", "imprecise"]),
        duplicates=st.sampled_from(["once", "each"]),
        precision=st.sampled_from(["paper", "alce"]),
    ),
    limit=st.sampled_from([1, 2, 3, None]),
)
def test_points_never_exceed_what_is_counted(
    numbers: list[int],
    labels: dict[frozenset[int], bool],
    coverage: list[list[int]],
    rules: Rules,
    limit: int | None,
) -> None:
    citations = build_citations(numbers, 3, rules, limit)
    assert [c.number for c in citations] == numbers
    indices = [c.index for c in citations if c.open]
    assert limit is None or len(indices) <= limit

    judgement: Judgement = judge_citations(
        citations, lambda some: labels.get(frozenset(some), True), coverage, rules
    )
    assert 0 <= judgement.points <= judgement.counted <= len(numbers)
    assert all(c.verdict in VERDICT_REASONS and c.reason for c in judgement.citations)
    assert judgement.supported or judgement.points == 0
    if not any(c.verdict in ("needed", "redundant", "covered") for c in judgement.citations):
        assert judgement.points in (0, len(indices))


def test_all_eight_cases_of_two_citations() -> None:
    """Of two citations each rest is the other one alone: needed iff the other fails."""
    for joint, first, second in product([False, True], repeat=3):
        citations = build_citations([1, 2], 2, DEFAULT, 3)
        labels = {(0, 1): joint, (0,): first, (1,): second}

        def entailed(some: Sequence[int], labels: Labels = labels) -> bool:
            return labels[tuple(some)]

        found = judge_citations(citations, entailed, [], DEFAULT)
        expected = 0 if not joint else 2 if first == second else 1
        assert (found.supported, found.points, found.counted) == (joint, expected, 2)

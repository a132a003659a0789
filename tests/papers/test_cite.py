"""Where a citation stands, and that the grounding metric reads it back."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trustassay.judging.claims import build_claims
from trustassay.papers.cite import find_uncited, insert_citations
from trustassay.text.citations import find_citations, strip_citations
from trustassay.text.sentences import load_splitter

SPLIT = load_splitter("sentencex")


def cited(text: str, number: int = 1) -> str:
    """Cite one document after the other, starting with ``number``."""
    sentences = find_uncited(text, SPLIT)
    return insert_citations(text, {s: number + i for i, s in enumerate(sentences)})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rains. It pours.", "It rains [1]. It pours [2]."),
        ("No full stop", "No full stop [1]"),
        ("It rains?! It pours...", "It rains [1]?! It pours [2]..."),
        ('He sang "Gloria." She left.', 'He sang "Gloria [1]." She left [2].'),
        ("It fell (in 1999).", "It fell (in 1999) [1]."),
        ("**It fell in 1999.**", "**It fell in 1999 [1].**"),
        ("- First point\n- Second point.\n", "- First point [1]\n- Second point [2].\n"),
        ("1. One is odd.\n2. Two is even.", "1. One is odd [1].\n2. Two is even [2]."),
        ("Spaces before . ", "Spaces before [1] . "),
        ("Already [3]. It snows.", "Already [3]. It snows [1]."),
        ("After the stop. [2] It snows.", "After the stop. [2] It snows [1]."),
        ("Rain. Rain [4]. Rain.", "Rain [1]. Rain [4]. Rain [2]."),
        ("A line\r\nthat wraps. End.", "A line\r\nthat wraps [1]. End [2]."),
        ("***\n\nIt rains.", "***\n\nIt rains [1]."),
        (
            "Sure! It rains. Let me know if you need more.",
            "Sure! It rains [1]. Let me know if you need more.",
        ),
        ("Does it rain? It pours.", "Does it rain? It pours [1]."),
        ("# Weather\n\nIt rains.", "# Weather\n\nIt rains [1]."),
        ("", ""),
        ("  \n", "  \n"),
        ("?!", "?!"),
    ],
)
def test_before_the_final_punctuation(text: str, expected: str) -> None:
    assert cited(text) == expected


def test_only_the_sentences_that_are_named_get_one() -> None:
    first, _, third = find_uncited("One. Two. Three.", SPLIT)
    assert insert_citations("One. Two. Three.", {third: 2, first: 5}) == "One [5]. Two. Three [2]."
    assert insert_citations("One.", {}) == "One."


WORDS = st.lists(
    st.sampled_from("rain falls over green hills and U.S. cities 1999 café".split()), min_size=1
)
SENTENCES = st.builds(
    lambda words, end: " ".join(words).capitalize() + end,
    WORDS,
    st.sampled_from([".", "!", "?", '."', ".)", " .", "…", "", ":"]),
)
ANSWERS = st.lists(SENTENCES, min_size=1, max_size=6).flatmap(
    lambda found: st.sampled_from([" ", "\n", "\n\n", "\n- ", "  "]).map(
        lambda sep: sep.join(found)
    )
)


@given(ANSWERS)
def test_the_metric_reads_back_what_was_placed(text: str) -> None:
    before = find_uncited(text, SPLIT)
    placed = insert_citations(text, {s: i % 9 + 1 for i, s in enumerate(before)})
    after = [claim for claim in build_claims("", placed, SPLIT) if claim.hypothesis is not None]
    assert [claim.citations for claim in after] == [(i % 9 + 1,) for i in range(len(before))]
    assert [claim.hypothesis for claim in after] == [sentence.hypothesis for sentence in before]
    assert find_uncited(placed, SPLIT) == []


@given(st.one_of(ANSWERS, st.text(max_size=80), st.text(alphabet="a. [1]\n-!", max_size=40)))
def test_without_its_citations_the_text_is_what_it_was(text: str) -> None:
    assume(not find_citations(text))
    assert strip_citations(cited(text)) == text


def test_code_that_ends_a_sentence_gets_no_citation() -> None:
    assert cited("x =") == "x ="
    assert cited("It rains. x =") == "It rains [1]. x ="


@given(st.text(alphabet="ab. [12],\n-!", max_size=60))
def test_citations_that_are_there_stay_in_their_order(text: str) -> None:
    sentences = find_uncited(text, SPLIT)
    placed = insert_citations(text, dict.fromkeys(sentences, 777))
    kept = [n for m in find_citations(placed) for n in m.numbers if n != 777]
    assert kept == [n for m in find_citations(text) for n in m.numbers]
    assert placed.replace(" [777]", "") == text

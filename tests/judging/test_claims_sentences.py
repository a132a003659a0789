"""Where the parts of an answer begin and end, and which citations belong to each."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metrics.grounding.helpers import Knows, run_of
from tests.metrics.grounding.helpers import item as grounding_item
from trustassay.judging.claims import (
    REASON_REFERENCES,
    build_claim_as_in_paper,
    build_claims,
    build_claims_as_in_paper,
)
from trustassay.text.citations import find_citations, spell_superscripts
from trustassay.text.mapped import MappedText
from trustassay.text.markdown import strip_numbering
from trustassay.text.sentences import load_splitter

Read = list[tuple[str | None, tuple[int, ...]]]


def read(text: str, *, trailing: bool = True, lines: bool = True) -> Read:
    """Hypotheses and citations, by the default splitter."""
    claims = build_claims("", text, load_splitter("sentencex"), trailing=trailing, lines=lines)
    return [(claim.hypothesis, claim.citations) for claim in claims]


# Sentences and their citations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A is [1]. B is [2].", [("A is.", (1,)), ("B is.", (2,))]),
        ("A is. [1] B is. [2]", [("A is.", (1,)), ("B is.", (2,))]),
        ("A is.[1] B is.[2]", [("A is.", (1,)), ("B is.", (2,))]),
        ("A is.[1]B is.[2]", [("A is.", (1,)), ("B is.", (2,))]),
        ("A is. [1][2] [3] B is.", [("A is.", (1, 2, 3)), ("B is.", ())]),
        ("A is. [1], [2] B is.", [("A is.", (1, 2)), ("B is.", ())]),
        ("A is [1]. [2] B is.", [("A is.", (1, 2)), ("B is.", ())]),
        ("[1] A is. [2] B is.", [("A is.", (1,)), ("B is.", (2,))]),
        ("- [1] A is. [2] B is.", [("A is.", (1,)), ("B is.", (2,))]),
        ("1. [1] A is. [2] B is.", [("A is.", (1,)), ("B is.", (2,))]),
        ("A is! [1] B is? [2]", [("A is!", (1,)), (None, (2,))]),
        ('She said "A is." [1] B is.', [('She said "A is."', (1,)), ("B is.", ())]),
        ('She said "A is. [1]" B is.', [('She said "A is."', (1,)), ("B is.", ())]),
        ("A is. ([1])", [("A is.", (1,))]),
        ("Dr. Ott met Mr. Lee [1]. He left.", [("Dr. Ott met Mr. Lee.", (1,)), ("He left.", ())]),
        ("It costs 3.5 euros [1].", [("It costs 3.5 euros.", (1,))]),
        ("A is.¹ B is.²", [("A is.", (1,)), ("B is.", (2,))]),
        ("A is<sup>1</sup>. B is 【2†source】.", [("A is.", (1,)), ("B is.", (2,))]),
    ],
)
def test_citations_belong_to_their_sentence(text: str, expected: Read) -> None:
    assert read(text) == expected


def test_without_trailing_a_citation_belongs_to_what_follows() -> None:
    assert read("A is. [1] B is [2].", trailing=False) == [("A is.", ()), ("B is.", (1, 2))]
    # Nothing follows: it stays with the last.
    assert read("A is. [1]", trailing=False) == [("A is.", (1,))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- pears [1]\n- plums [2]", [("Pears.", (1,)), ("Plums.", (2,))]),
        ("* pears\n* plums [2]", [("Pears.", ()), ("Plums.", (2,))]),
        ("• pears\n– plums", [("Pears.", ()), ("Plums.", ())]),
        ("1. A is [1].\n2. B is [2].", [("A is.", (1,)), ("B is.", (2,))]),
        ("1. A is [1]. 2. B is [2].", [("A is.", (1,)), ("B is.", (2,))]),
        ("(1) pears [1]\n(2) plums", [("Pears.", (1,)), ("Plums.", ())]),
        ("1) A is. [1]\n2) B is. [2]", [("A is.", (1,)), ("B is.", (2,))]),
        (
            "Two kinds:\n- pears [1]\n- plums",
            [(None, ()), ("Two kinds: pears.", (1,)), ("Two kinds: plums.", ())],
        ),
        ("The town\nis old [1].", [("The town is old.", (1,))]),
        ("The town\nis old [1]\nB is.", [("The town is old.", (1,)), ("B is.", ())]),
        ("The town\n\nB is.", [("The town.", ()), ("B is.", ())]),
        ("A is.\n[1]\nB is.", [("A is.", (1,)), ("B is.", ())]),
        ("A is.\n\n[1][2]", [("A is.", (1, 2))]),
        ("[1]\nA is.\nB is.", [("A is.", (1,)), ("B is.", ())]),
        ("# Town\n\nA is [1].", [(None, ()), ("A is.", (1,))]),
        ("**Town**\nA is [1].", [(None, ()), ("A is.", (1,))]),
        ("A is [1].\n## Town\n\nB is.", [("A is.", (1,)), (None, ()), ("B is.", ())]),
        ("A is [1].\n---\nB is.", [("A is.", (1,)), ("B is.", ())]),
        ("A is [1].\n\n---\n\nB is.", [("A is.", (1,)), ("B is.", ())]),
    ],
)
def test_lines(text: str, expected: Read) -> None:
    assert read(text) == expected


def test_without_lines_only_the_splitter_parts() -> None:
    def whole(text: str) -> list[str]:
        return [text]

    text = "- pears [1]\n- plums [2]"
    by_lines = build_claims("", text, whole)
    by_splitter = build_claims("", text, whole, lines=False)
    assert [(s.hypothesis, s.citations) for s in by_lines] == [("Pears.", (1,)), ("Plums.", (2,))]
    assert [(s.hypothesis, s.citations) for s in by_splitter] == [("Pears\n- plums.", (1, 2))]


@pytest.mark.parametrize("text", ["", " \n ", "...", "[1]", "[1][2].", "- \n* \n---", "([3])"])
def test_a_text_that_says_nothing_claims_nothing(text: str) -> None:
    assert [hypothesis for hypothesis, _ in read(text) if hypothesis is not None] == []


def test_a_number_that_answers_a_question_of_the_answer_itself_is_completed_by_it() -> None:
    assert read("How many hearts? 3.") == [(None, ()), ("3 hearts.", ())]


@pytest.mark.parametrize(
    "references",
    [
        "\n\nSources:\n[1] The colours\n[2] The sizes\n",
        "\n**References**\n\n1. [1] The colours\n2. [2] The sizes",
        "\n\n## Sources\n[1] The colours\n",
        "\n\n[^1]: The colours\n[^2]: The sizes",
    ],
)
def test_a_list_of_references_is_a_part_that_claims_and_cites_nothing(references: str) -> None:
    *claims, last = build_claims("", f"It is red [2].\n\nIt is big.{references}", str.splitlines)
    assert [(claim.hypothesis, claim.citations) for claim in claims] == [
        ("It is red.", (2,)),
        ("It is big.", ()),
    ]
    assert (last.hypothesis, last.reason, last.citations) == (None, REASON_REFERENCES, ())
    assert last.text == references.strip()


def test_an_entry_of_a_bibliography_claims_nothing() -> None:
    entry = "Lamps. Wikipedia, [Online]. Available: https://a.example/l. [Accessed May 2, 2021].[5]"
    (claim,) = build_claims("How old is the lamp?", entry, load_splitter("sentencex"))
    assert (claim.hypothesis, claim.reason, claim.citations) == (None, REASON_REFERENCES, (5,))


@pytest.mark.parametrize(
    "text",
    ["It is red. Reference: [1]", "It is red (Source: [1]).", "It is red. See ref: [1]"],
)
def test_the_label_of_a_citation_is_cut_with_it(text: str) -> None:
    assert ("It is red.", (1,)) in read(text)
    assert all(hypothesis in (None, "It is red.") for hypothesis, _ in read(text))


def test_a_source_that_is_no_label_of_a_citation_stays() -> None:
    assert read("Turin is the source [1].") == [("Turin is the source.", (1,))]


def test_words_that_name_the_passages_are_cut_at_both_ends() -> None:
    assert read("Based on the given contexts, it is red.") == [("It is red.", ())]
    assert read("It is red, according to the given contexts [1].") == [("It is red.", (1,))]


# The paper's reading


def test_one_sentence_in_both_readings() -> None:
    # The paper reads [1, 2] as 1, keeps ", 2" in the hypothesis, and keeps the numbering.
    text = " 2. A is [1, 2]. "
    (claim,) = build_claims("", text, str.splitlines)
    assert (claim.text, claim.hypothesis, claim.citations) == ("2. A is [1, 2].", "A is.", (1, 2))
    claim = build_claim_as_in_paper(text)
    assert (claim.text, claim.hypothesis, claim.citations) == (text.strip(), "2. A is, 2.", (1,))


def test_in_the_paper_only_the_splitter_parts_and_every_part_is_judged() -> None:
    claims = build_claims_as_in_paper("Sure! A is. [1]\n# B", str.splitlines)
    assert [(claim.hypothesis, claim.citations) for claim in claims] == [
        ("Sure! A is.", (1,)),
        ("# B", ()),
    ]


# Splitters


def test_a_splitter_that_makes_things_up_fails_its_sample_alone() -> None:
    def shouts(text: str) -> list[str]:
        return re.split(r"(?<=\.) ", text.upper() if "loud" in text else text)

    items = [grounding_item("A is. B is."), grounding_item("A loud. B loud.")]
    good, bad = run_of(items, Knows(), splitter=shouts).assessments
    assert good.error is None
    assert bad.error == "the sentence splitter returned text that is not in the response"
    assert bad.score is None


def test_a_splitter_that_finds_nothing_leaves_one_part() -> None:
    (claim,) = build_claims("", "A is. B is.", lambda _: [])
    assert claim.hypothesis == "A is. B is."


# Numbering


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- a", "a"),
        ("12. a", "a"),
        ("(1) a", "a"),
        ("## a", "a"),
        ("1.5 m", "1.5 m"),
        ("2020. a", "2020. a"),
        ("-5 °C", "-5 °C"),
    ],
)
def test_without_numbering(line: str, expected: str) -> None:
    assert strip_numbering(line) == expected


# Any text at all

PIECES = [
    *("A is", "b", ".", "!", "?", " ", "\n", "[1]", " [2]", "[1, 2]", "[9-3]", "b.¹ "),
    *("- ", "1. ", '"', "(", ")", "…", "Sure! ", "Does it?", "| "),
]
MARKS_OF_HEADINGS = ["# ", "---", "**", "```"]
ANSWERS = st.lists(st.sampled_from([*PIECES, *MARKS_OF_HEADINGS]), max_size=25).map("".join)
WITHOUT_HEADINGS = st.lists(st.sampled_from(PIECES[:-1]), max_size=25).map("".join)


@settings(deadline=None)
@given(text=ANSWERS | st.text(), trailing=st.booleans(), lines=st.booleans())
def test_no_claim_is_empty_and_all_parts_stand_in_the_answer(
    text: str, trailing: bool, lines: bool
) -> None:
    split = load_splitter("sentencex")
    position = 0
    for claim in build_claims("", text, split, trailing=trailing, lines=lines):
        assert claim.hypothesis is None or any(map(str.isalnum, claim.hypothesis))
        assert (claim.hypothesis is None) == bool(claim.reason)
        if claim.end > claim.start:
            assert claim.text == text[claim.start : claim.end]
            assert claim.start >= position
            position = claim.end


@settings(deadline=None)
@given(text=WITHOUT_HEADINGS, trailing=st.booleans(), lines=st.booleans())
def test_no_citation_is_lost(text: str, trailing: bool, lines: bool) -> None:
    claims = read(text, trailing=trailing, lines=lines)
    cited = [number for _, numbers in claims for number in numbers]
    spelled = spell_superscripts(MappedText.of(text)).text
    every = [number for marker in find_citations(spelled) for number in marker.numbers]
    assert cited == (every if claims else [])


HOSTILE = {
    "wrapped": "word\n" * 10_000,
    "lines": "x.\n" * 17_000,
    "sentences": "A is [1]. " * 5_000,
    "tight sentences": "A.[1] " * 8_000,
    "markers": "[1]" * 17_000,
    "marker lines": "[1]\n" * 12_000,
    "brackets": "[" * 50_000,
    "open": "[1," * 20_000,
    "bullets": "- a [1]\n" * 6_000,
    "numbering": "1. " * 17_000,
    "headings": "# " * 25_000,
    "blanks": " " * 50_000,
    "newlines": "\n" * 50_000,
    "stops": ". " * 25_000,
    "abbreviations": "Dr. " * 12_000,
    "dashes": "a-" * 30_000,
    "letters": "x" * 50_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_read_fast(kind: str) -> None:
    started = time.process_time()
    read(HOSTILE[kind])
    read(HOSTILE[kind], lines=False)
    assert time.process_time() - started < 6

"""Which gold answers a response gives, and which kind of correctness a run takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.metrics.grounding.helpers import (
    Item,
    Knows,
    assessed,
    docs,
    item,
    run_of,
    trace,
    values_of,
)
from trustassay.metrics.grounding.maths import (
    exact_hits,
    find_mention,
    list_match,
    split_plain_list,
    wrong_in_documents,
)
from trustassay.metrics.grounding.options import PROFILES

DEFAULT, PAPER = PROFILES["default"], PROFILES["paper"]


@pytest.mark.parametrize(
    ("shown", "gold", "words", "parts"),
    [
        ("It is the Nile.", ["Nile"], True, True),
        ("A juvenile bird.", ["Nile"], False, True),
        ("It is in New-York.", ["New York"], True, False),
        ("It is in New York.", ["new-york"], True, False),
        ("It is “Ｐａｒｉｓ”.", ["Paris"], True, False),
        ("Vitamin D.", ["x", "vitamin d"], True, True),
        ("It is so.", ["."], False, True),
        ("It is so.", ["The"], False, True),
        ("", ["Nile"], False, False),
        # An alias that is an article stands nowhere but in a text that is it.
        ("A", ["A"], True, True),
        ("Blood group A.", ["A"], False, True),
        ("A bird.", ["A"], False, True),
    ],
)
def test_exact_hits(shown: str, gold: list[str], words: bool, parts: bool) -> None:
    assert exact_hits(shown, [gold], DEFAULT) == [words]
    assert exact_hits(shown, [gold], replace(DEFAULT, words=False)) == [parts]


def test_list_match() -> None:
    # Elements: heat, speed, heat, ran; Heat (by an alias) and Ran are hit, three are precise.
    golds = [["Hitze", "Heat"], ["Ran"], ["Alien"]]
    predicted = split_plain_list("Heat [1], Speed [2], the heat, Ran.", golds, DEFAULT)
    assert predicted == ["Heat", "Speed", "the heat", "Ran"]
    found = list_match(predicted, golds, DEFAULT)
    assert found.elements == ("heat", "speed", "heat", "ran")
    assert found.precise == 3
    assert found.hits == (True, True, False)


def test_list_match_of_nothing() -> None:
    assert split_plain_list(" , [1]", [["Heat"]], DEFAULT) == []
    found = list_match(["!"], [["Heat"]], DEFAULT)
    assert (found.elements, found.precise, found.hits) == ((), 0, (False,))


def test_an_article_alone_can_be_a_list_element() -> None:
    assert list_match(["A", "C", "D"], [["A"], ["E"]], DEFAULT).hits == (True, False)


def test_wrong_in_documents() -> None:
    # Heat is right. Speed and Ran are wrong; a passage mentions Speed: 1 of 2.
    passages = ["A film called Speed.", "Orange trees."]
    elements = ["Heat", "Speed", "Ran"]
    share = wrong_in_documents(elements, [["Heat"]], passages, DEFAULT)
    assert share == 0.5
    # Parts of words count in the paper: "Ran" is in "Orange".
    share = wrong_in_documents(elements, [["Heat"]], passages, PAPER)
    assert share == 1.0
    assert wrong_in_documents(["Heat"], [["Heat"]], passages, DEFAULT) is None


def test_mentions_gives_the_alias_as_written() -> None:
    assert find_mention("The river nile.", ["Father", "The Nile"], DEFAULT) == "The Nile"
    assert find_mention("Juvenile birds.", ["Nile"], DEFAULT) is None
    assert find_mention("Juvenile birds.", ["Nile"], PAPER) == "Nile"


# Options in figures


def one(response: str, answers: list[Any], **options: Any) -> Any:
    flags = [1] * len(answers)
    answer = item(response, docs(1, flags), answers=answers)
    return values_of(answer, Knows(), **options)


def test_words_in_em() -> None:
    # Gold: Nile, New York. "Juvenile" and "new-york": whole words give the second alone (1/2),
    # the squad reading, which deletes hyphens, the first alone (1/2).
    text = "A juvenile bird in new-york [1]."
    golds = trace(
        assessed(
            item(text, docs(1, [1, 1]), answers=["Nile", "New York"]), Knows(), correctness="em"
        ),
        "gold",
    )
    assert [g["correct"] for g in golds] == [False, True]
    assert one("A juvenile bird.", ["Nile"], correctness="em")["regular_str_em"] == 0
    assert one("A juvenile bird.", ["Nile"], correctness="em", words=False)["regular_str_em"] == 100
    assert one("In new-york.", ["New York"], correctness="em")["regular_str_em"] == 100
    assert one("In new-york.", ["New York"], correctness="em", words=False)["regular_str_em"] == 0


@pytest.mark.parametrize(
    ("response", "answers", "careful", "plain"),
    [
        # numbering: 2 of 2 elements; else "1 heat" and "2 speed": none
        ("1. Heat, 2. Speed", ["Heat", "Speed"], 100, 0),
        # "and": 2 of 2; else "and speed" is wrong: 1 of 2
        ("Heat, and Speed", ["Heat", "Speed"], 100, 50),
        # a name with a comma: 2 of 2; else mai, psychic girl, heat: 1 of 3
        ("Mai, the Psychic Girl, Heat", ["Mai, the Psychic Girl", "Heat"], 100, 100 / 3),
        # thousands: 1 of 1; else "1" and "000 lakes"
        ("1,000 Lakes", ["1,000 Lakes"], 100, 0),
        # lines: 2 of 2; else one element "heat speed"
        ("Heat\nSpeed", ["Heat", "Speed"], 100, 0),
        # citations with a comma inside: 2 of 2; else "heat", "2", "speed": 2 of 3
        ("Heat [1, 2], Speed [3]", ["Heat", "Speed"], 100, 200 / 3),
        ("Heat [1], [2], Speed [3]", ["Heat", "Speed"], 100, 100),
    ],
)
def test_lists_split(response: str, answers: list[str], careful: float, plain: float) -> None:
    """Precision of list elements with and without care."""
    on = one(response, answers, correctness="em5")
    off = one(response, answers, correctness="em5", lists_split=False)
    assert on["regular_qampari_prec"] == pytest.approx(careful)
    assert off["regular_qampari_prec"] == pytest.approx(plain)


def test_em5_by_hand() -> None:
    """Seven gold answers, six supported; six elements, five of them gold.

    P = 5/6, R = 5/7, R5 = min(5, 5)/min(5, 7) = 1, F = 2*5/6*5/7/(5/6+5/7) = 10/13,
    F5 = 2*5/6/(11/6) = 10/11. Supported golds A..F: hits A B C D (G is not supported):
    P = 4/6, R = 4/6, R5 = 4/5, F = 2/3, F5 = 2*(2/3)(4/5)/(22/15) = 8/11.
    parametric: 100 (R5 - min(5, 4)/min(5, 7)) = 100 (1 - 4/5) = 20.
    Wrong for presence (no supported alias in it): G and X; the passage mentions G: 1/2.
    """
    golds = list("ABCDEFG")
    names = [f"{letter}{letter}" for letter in golds]
    document = {"text": "GG and others", "supports": [1, 1, 1, 1, 1, 1, 0]}
    answer = item("AA, BB, CC, DD, GG, XX", [document], answers=names)
    values = values_of(answer, Knows(), correctness="em5")
    expected = {
        "num_preds": (6, 6),
        "qampari_prec": (500 / 6, 400 / 6),
        "qampari_rec": (500 / 7, 400 / 6),
        "qampari_rec_top5": (100, 80),
        "qampari_f1": (1000 / 13, 200 / 3),
        "qampari_f1_top5": (1000 / 11, 800 / 11),
    }
    for key, (plain, supported) in expected.items():
        assert values[f"regular_{key}"] == pytest.approx(plain)
        assert values[f"answered_{key}"] == pytest.approx(plain)
        assert values[f"calib_answered_{key}"] == pytest.approx(supported)
        assert values[f"calib_answerable_{key}"] == pytest.approx(supported)
    assert values["calib_qampari_em_f1"] == pytest.approx(800 / 11)
    assert values["parametric_qampari_rec_top5"] == pytest.approx(20)
    assert values["qampari_presence"] == 50
    assert values["qampari_absence"] == 50


def test_a_name_with_a_comma_is_one_element_whatever_the_documents_support() -> None:
    """ "Mai, the Girl" is not supported, "Mai" is, and is not given: P, R of the supported 0."""
    answers = ["Mai, the Girl", "Mai"]
    answer = item("Mai, the Girl", docs(1, [0, 1]), answers=answers)
    values = values_of(answer, Knows(), correctness="em5")
    assert values["regular_qampari_prec"] == 100
    assert values["regular_qampari_rec"] == 50
    assert values["calib_answered_qampari_prec"] == 0
    assert values["calib_answered_qampari_rec"] == 0


def test_em5_cites_element_by_element() -> None:
    """The hypothesis is the question and the element; markers of the question are not cited."""
    knows = Knows({"Which [2]? Heat": ["1"]})
    answer = {**item("1. Heat [1]\n2. Ran [3]", 3, answers=["Heat"]), "question": "Which [2]?"}
    assessment = assessed(answer, knows, correctness="em5")
    statements = trace(assessment, "list item")
    assert [(s["text"], s["supported"]) for s in statements] == [
        ("Which [2]? Heat [1]", True),
        ("Which [2]? Ran [3]", False),
    ]
    assert [[c["document"] for c in s["citations"]] for s in statements] == [[1], [3]]


def test_em5_without_a_wrong_element_has_no_presence() -> None:
    run = run_of(item("Heat", docs(1, [1]), answers=["Heat"]), Knows(), correctness="em5")
    for key in ("qampari_presence", "qampari_absence"):
        assert run.summary["grounding"][key] is None
        reason = run.summaries["grounding"].not_applicable[key]
        assert reason == "no answer has a wrong list element"


def test_cm_takes_claims_or_else_the_first_alias() -> None:
    # Claims c1 (entailed), c2 (not): 1/2. Without claims the first aliases: a1 alone: 1/1.
    knows = Knows(others={("A is.", "c1"), ("A is.", "a1")})
    both = item("A is [1].", docs(1, [1, 1]), claims=["c1", "c2"], answers=["a1", "a2"])
    assert values_of(both, knows, correctness="cm")["regular_claims_nli"] == 50
    answers = item("A is [1].", docs(1, [1]), answers=[["a1", "b"]])
    assert values_of(answers, knows, correctness="cm")["regular_claims_nli"] == 100
    other_way = item("A is [1].", docs(1, [1]), answers=[["b", "a1"]])
    assert values_of(other_way, knows, correctness="cm")["regular_claims_nli"] == 0


def test_cm_reads_the_response_without_citations() -> None:
    knows = Knows()
    assessed(item("A is [1]. B is [1, 2].", docs(2, [1], [0]), claims=["c"]), knows)
    assert ("A is. B is.", "c") in knows.asked


# auto

SENTENCE = "The Nile is the longest river of Africa."


@pytest.mark.parametrize(
    ("golds", "taken"),
    [
        ([{"claims": ["c"]}], "cm"),
        ([{"answers": ["Nile"]}], "em"),
        ([{"answers": [SENTENCE]}], "cm"),
        ([{"answers": [["Nile", SENTENCE]]}], "em"),
        # The samples with answers that read as sentences must be the greater part.
        ([{"answers": [SENTENCE]}, {"answers": ["Nile"]}], "em"),
        ([{"answers": [SENTENCE]}, {"answers": [SENTENCE]}, {"answers": ["Nile"]}, {}], "cm"),
        ([{"answers": ["Nile"]}, {"claims": ["c"]}], "cm"),
        ([{}, {}], "none"),
    ],
)
def test_auto(golds: list[Item], taken: str) -> None:
    run = run_of([item("A is.", 1, **gold) for gold in golds], Knows())
    assert run.summaries["grounding"].settings["correctness"] == taken
    keys = {"cm": "regular_claims_nli", "em": "regular_str_em"}
    for kind, key in keys.items():
        assert (key in run.summary["grounding"]) == (kind == taken)


def test_a_file_in_which_some_samples_lack_gold_answers() -> None:
    """They count in lengths and citations, not in correctness nor answerability.

    1: gold Paris, supported, given: 100. 2: no gold. 3: gold Rome, supported, not given: 0.
    """
    asked = {"question": "Is it Paris, Oslo or Rome?"}
    items = [
        item("Paris is [1].", docs(1, [1]), answers=["Paris"]) | asked,
        item("Oslo is [1].", docs(1)) | asked,
        item("I do not know.", docs(1, [1]), answers=["Rome"]),
    ]
    run = run_of(items, Knows({"Paris is.": ["1"], "Oslo is.": ["1"]}))
    summary = run.summaries["grounding"]
    values = summary.values
    assert (values["num_samples"], values["answered_num"]) == (3, 2)
    assert (values["answerable_num"], values["unanswerable_num"]) == (2, 0)
    assert values["overlapped_num"] == 1
    assert values["regular_str_em"] == 50
    assert values["answered_str_em"] == 100
    assert values["calib_answered_str_em"] == 100
    assert values["calib_answerable_str_em"] == 50
    # hmean(100, 50) = 2*100*50/150
    assert values["calib_str_em_f1"] == pytest.approx(200 / 3)
    assert values["answerable_rec"] == 50
    assert values["answerable_prec"] == 100
    # Statements: 1/1, 1/1, 0/1; of answers alone 1, 1.
    assert values["regular_citation_rec"] == pytest.approx(200 / 3)
    assert values["answered_citation_rec"] == 100
    assert summary.support["regular_str_em"] == 2
    assert summary.support["answered_str_em"] == 1
    assert summary.support["regular_citation_rec"] == 3
    assert summary.not_applicable == {}

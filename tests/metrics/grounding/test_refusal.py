"""Refusal detectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.refusals import measured

from trustassay import score
from trustassay.errors import UnknownNameError
from trustassay.metrics import Grounding
from trustassay.metrics.grounding.refusal import (
    detector,
    paper_similarity,
    refuses_as_in_paper,
    refuses_in_words,
)

ROOT = Path(__file__).parents[3]
REFUSALS = [
    "I apologize, but I couldn't find an answer to your question in the search results.",
    "The provided documents do not say when the town charter was granted.",
    "The context doesn’t contain this information.",
    "None of the passages mentions his birthplace.",
    "There is not enough information to answer.",
    "I don't know.",
    "I have no comment.",
    "Sorry, I am unable to determine the year from these sources.",
    "We cannot answer this with the given texts.",
    "The question cannot be answered from the documents.",
    "Her age is not mentioned in the documents. I am sorry.",
    "It is not possible to determine who won.",
    "No answer was found.",
    "The search results do not provide any details about it [1][2].",
    "I could not find it. Perhaps another source knows.",
    "Empty Response",
    " Empty response.\n",
]
ANSWERS = [
    "",
    "Paris is the capital of France [1].",
    "There is no evidence that the vaccine causes harm [1].",
    "It could not provide enough oxygen, so the crew turned back [2].",
    "The king did not mention his brother [1].",
    "No document was signed that day [3].",
    "I couldn't find the year. The bridge was built by Roebling [2].",
    "The treaty ended the war; neither side gave up land [1].",
    "Scientists do not know why, but the effect is real [1].",
    "I'm not sure but thick woodlands covered the island until the Middle Ages.",
    "I did not know that. It was built in 1990.",
    'The error "I don\'t know this host" means that its key is missing.',
    "but",
    "could",
    "An empty response means that the index has no node.",
    "Empty Response Theory was written in 1950 [1].",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_wide_detector_sees_a_refusal(text: str) -> None:
    assert refuses_in_words(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_wide_detector_sees_an_answer(text: str) -> None:
    assert refuses_in_words(text) is None


@pytest.mark.parametrize(
    ("text", "similarity"),
    [
        ("In", 50),
        ("I apologize; I couldn't find an exact answer", 84),
        ("Find [1].", 83),
        ("Find.", 100),
        ("but", 100),
        ("I apologize", 100),
        ("", 0),
        ("I apologize, but I couldn't find an answer", 100),
    ],
)
def test_paper_similarity_is_that_of_fuzzywuzzy(text: str, similarity: int) -> None:
    """The figures were taken from fuzzywuzzy 0.18.0 with python-Levenshtein 0.26.1."""
    assert paper_similarity(text) == similarity


def test_paper_detector_wants_more_than_85() -> None:
    assert refuses_as_in_paper("I apologize; I couldn't find an exact answer") is None
    assert refuses_as_in_paper("Yes. I apologize, but I couldn't find an answer. It is 7 [1].")


@pytest.mark.parametrize("half", ["choice", "held out", "fresh"])
@pytest.mark.parametrize("name", ["phrases", "faithfulness"])
def test_precision_and_recall_on_labelled_responses(name: str, half: str) -> None:
    precision, recall, wrong = measured(name, half)
    assert precision >= 0.9, wrong
    assert recall >= 0.9, wrong


@pytest.mark.parametrize("name", ["phrases", "faithfulness"])
def test_unusual_words_are_mostly_not_seen_as_the_documentation_says(name: str) -> None:
    precision, recall, _ = measured(name, "last")
    page = (ROOT / "benchmarks/results/refusals.md").read_text(encoding="utf-8")
    row = f"| `last` | `{name}` | {precision:.2f} (4 of 5) | {recall:.2f} (4 of 20) |"
    assert row in page


@pytest.mark.parametrize(
    "text",
    [
        "The spokesman said there was no information to share.",
        "The brochure doesn't say so on the first page.",
        "The judge ruled that there was not enough information in the warrant.",
    ],
)
def test_what_somebody_else_said_is_no_refusal(text: str) -> None:
    assert refuses_in_words(text) is None


def test_detector_by_name_or_function() -> None:
    assert detector("paper") is refuses_as_in_paper
    assert detector(lambda text: "no" in text)("no") is not None
    assert detector(lambda text: "no" in text)("yes") is None
    with pytest.raises(UnknownNameError, match="did you mean phrases"):
        detector("phrase")


def says_pass(response: str) -> bool:
    return response == "Pass."


@pytest.mark.parametrize(
    ("refusal", "response", "name"),
    [
        (says_pass, "Pass.", f"{__name__}.says_pass"),
        ("paper", "I apologize, but I couldn't find an answer", "paper"),
        (None, "I don't know.", "phrases"),
    ],
)
def test_the_evidence_names_the_detector_that_decided(
    refusal: Any, response: str, name: str
) -> None:
    sample = {"question": "Q?", "response": response, "documents": []}
    run = score([sample], metrics=Grounding(refusal=refusal), entailer="lexical")
    assert run.assessments[0].verdict == "refused"
    assert run.assessments[0].evidence[0]["detector"] == name

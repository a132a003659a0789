"""Which answers are refusals: by the claims that they make, by detectors, and in the metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lab.benchmarks.refusals import measured

from trustassay import score
from trustassay.errors import UnknownNameError
from trustassay.judging.claims import REASON_DECLINES, Claim, build_claims
from trustassay.judging.refusal import (
    drop_asides,
    find_refusal,
    find_refusal_in_words,
    load_detector,
    refuses_outright,
)
from trustassay.metrics import Grounding
from trustassay.text.refusals import find_refusal_as_in_paper
from trustassay.text.sentences import load_splitter

ROOT = Path(__file__).parents[2]
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
    "I couldn't find the year. The bridge was built by Roebling.",
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
def test_a_refusal_is_seen_in_its_words(text: str) -> None:
    assert find_refusal_in_words(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_is_no_refusal(text: str) -> None:
    assert find_refusal_in_words(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "The spokesman said there was no information to share.",
        "The brochure doesn't say so on the first page.",
        "The judge ruled that there was not enough information in the warrant.",
    ],
)
def test_what_somebody_else_said_is_no_refusal(text: str) -> None:
    assert find_refusal_in_words(text) is None


# By the claims of an answer


def claims_of(text: str) -> list[Claim]:
    return build_claims("", text, load_splitter("sentencex"))


def test_an_answer_refuses_only_if_it_declines_as_a_whole() -> None:
    declining = Claim("I don't know.", None, REASON_DECLINES)
    denial = Claim("No fee is mentioned.", "No fee is mentioned.", topic="fee")
    answer = Claim("It is red.", "It is red.")
    referral = Claim("Please ask the office.", "Please ask the office.")
    greeting = Claim("Hello!", None, "a greeting or an offer")
    assert find_refusal([declining]) == "I don't know"
    assert find_refusal([greeting, denial, referral]) == "No fee is mentioned."
    assert find_refusal([denial, declining]) == "No fee is mentioned."
    assert find_refusal([declining, answer]) is None
    assert find_refusal([answer, denial]) is None
    assert find_refusal([greeting, referral]) is None
    assert find_refusal([]) is None


def test_a_denial_with_a_topic_is_judged_though_the_answer_refuses() -> None:
    """It may be false: the documents may speak of the topic."""
    (denial,) = claims_of("The passages do not mention the price of a ticket.")
    assert denial.hypothesis == "The passages do not mention the price of a ticket."
    assert denial.topic == "price of a ticket"
    assert denial.is_refusal


def test_of_a_refusal_only_its_denials_are_judged() -> None:
    claims = claims_of("No fee is mentioned. Please ask the office at the north gate.")
    judged = [one.hypothesis for one in drop_asides(claims) if one.hypothesis is not None]
    assert find_refusal(claims)
    assert judged == ["No fee is mentioned."]


def test_a_refusal_without_passages_may_be_seen_by_its_beginning() -> None:
    text = "I'm sorry, but I cannot help with that."
    assert refuses_outright(text)
    assert refuses_outright("I don't know.")
    assert not refuses_outright("I Can't Help Myself")


# Labelled responses


@pytest.mark.parametrize("half", ["choice", "held out", "fresh"])
@pytest.mark.parametrize("name", ["phrases", "faithfulness"])
def test_precision_and_recall_on_labelled_responses(name: str, half: str) -> None:
    result = measured(name, half)
    assert result.precision >= 0.9, result.wrong
    assert result.recall >= 0.9, result.wrong


@pytest.mark.parametrize("name", ["phrases", "faithfulness"])
def test_unusual_words_are_mostly_not_seen_as_the_documentation_says(name: str) -> None:
    page = (ROOT / "lab/results/refusals.md").read_text(encoding="utf-8")
    assert f"| `last` | `{name}` | {measured(name, 'last').figures} |" in page


# Detectors by name


def test_detector_by_name_or_function() -> None:
    assert load_detector("paper") is find_refusal_as_in_paper
    assert load_detector("phrases") is find_refusal_in_words
    assert load_detector(lambda text: "no" in text)("no") is not None
    assert load_detector(lambda text: "no" in text)("yes") is None
    with pytest.raises(UnknownNameError, match="did you mean phrases"):
        load_detector("phrase")


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

"""Replies that say nothing, each given to 60 real questions with their passages.

No passage can support a reply that says nothing, so every answer called supported is an error. The
questions are 20 each of three sets in which people asked them: experts about their field (ExpertQA,
with the passages that an answer cited), users of a search engine (HAGRID in AttributionBench, with
the passages retrieved), and crowd workers (HotpotQA in HaluEval, with the article's sentences).
Questions that ask for yes or no are left out: there "Yes." says something.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from lab.benchmarks.claims.labelled import choose_places, read_lines
from lab.benchmarks.which_metric.sets import shared

EMPTY_REPLIES = (
    "Here are the details you asked for.",
    "It depends on your situation and the applicable terms.",
    "Yes.",
    "No.",
    "As described below.",
    "Good question!",
    "That is a matter of circumstances.",
    "Thank you for reaching out to us.",
    "I have looked into this for you and summarised what I could learn.",
    "There are several things to consider here.",
    "lol ok so basically it's all in there",
    "In what follows, the issue is examined from more than one angle.",
    "Please refer to the relevant section for further information.",
    "Hope that helps, let me know if anything is unclear!",
)
QUESTIONS_PER_SOURCE = 20
_ASKS_YES_OR_NO = re.compile(
    r"(?:^|[.!?,]\s+)(?:and |or |but |so )?"
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might"
    r"|must)\b[^.?!]*\?",
    re.IGNORECASE,
)


class QuestionWithPassages(NamedTuple):
    """A real question, and the passages that an answer to it was made from."""

    question: str
    documents: list[str]


def asks_yes_or_no(question: str) -> bool:
    """Return whether a part of a question begins with an auxiliary: "Is it open on Sunday?".

    A question mark may be missing at its end, as in what is typed into a search engine.
    """
    return bool(_ASKS_YES_OR_NO.search(f"{question.strip().rstrip('?')}?"))


def read_expert_questions() -> Iterator[QuestionWithPassages]:
    """Yield the questions of ExpertQA."""
    for name in ("train", "dev", "test"):
        for row in read_lines(f"expertqa/samples_{name}"):
            passages = [document["text"] for document in row["documents"]]
            yield QuestionWithPassages(row["question"], passages)


def read_search_questions() -> Iterator[QuestionWithPassages]:
    """Yield the questions of HAGRID."""
    for row in read_lines("attributionbench/ood_dev"):
        if row["source"] == "HAGRID":
            yield QuestionWithPassages(row["question"], row["references"])


def read_crowd_questions() -> Iterator[QuestionWithPassages]:
    """Yield the questions of HaluEval's part of HotpotQA."""
    path = shared() / "halueval" / "qa_data_first1000.json"
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield QuestionWithPassages(row["question"], [row["knowledge"]])


QUESTION_SOURCES = {
    "expertqa": read_expert_questions,
    "hagrid": read_search_questions,
    "halueval": read_crowd_questions,
}


def read_empty_replies(seed: int) -> list[dict[str, Any]]:
    """Return every empty reply to every question, as they are scored and stored."""
    answers = []
    for source, read in QUESTION_SOURCES.items():
        first_of_question = {one.question: one for one in reversed(list(read()))}
        usable = [one for one in first_of_question.values() if not asks_yes_or_no(one.question)]
        for place in choose_places(len(usable), QUESTIONS_PER_SOURCE, seed, f"empty {source}"):
            question, documents = usable[place]
            answers += [
                {
                    "measure": "empty",
                    "set": source,
                    "id": f"{source}-{place}-{number}",
                    "cluster": f"{source}-{place}",
                    "reply": reply,
                    "question": question,
                    "response": reply,
                    "documents": documents,
                }
                for number, reply in enumerate(EMPTY_REPLIES)
            ]
    return answers

"""What the tests of the default profile share: documents of one word, an entailer that knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trustassay import Assessment, Run, score
from trustassay.metrics import Grounding

Item = dict[str, Any]
Pair = tuple[str, str]


class Knows:
    """An entailer that holds a fact entailed by certain documents, and notes what it is asked.

    ``Knows({"A is.": ["1", "23"]})``: "A is." follows from document 1, and from 2 and 3 together.
    A premise that is no set of documents d1, d2, ... (a response, say) entails what ``others`` has.
    """

    def __init__(
        self, facts: Mapping[str, Sequence[str]] | None = None, others: Iterable[Pair] = ()
    ) -> None:
        self.facts, self.others = facts or {}, set(others)
        self.asked: list[Pair] = []

    def __call__(self, premise: str, hypothesis: str) -> bool:
        self.asked.append((premise, hypothesis))
        shown = set(premise.split("\n"))
        enough = ({f"d{n}" for n in numbers} for numbers in self.facts.get(hypothesis, ()))
        return (premise, hypothesis) in self.others or any(some <= shown for some in enough)


def docs(number: int, *supports: Sequence[int]) -> list[Item]:
    """Documents d1, d2, ..., each with its flags where there are any."""
    found: list[Item] = [{"text": f"d{i + 1}"} for i in range(number)]
    for document, flags in zip(found, supports, strict=False):
        document["supports"] = list(flags)
    return found


def item(response: str, documents: int | list[Item] = 3, **others: Any) -> Item:
    if isinstance(documents, int):
        documents = docs(documents)
    return {"question": "Q?", "response": response, "documents": documents, **others}


def run_of(items: Item | Sequence[Item], entails: Any, *, seed: int = 0, **options: Any) -> Run:
    """Score by grounding, through the public door; equal questions are different ones here."""
    rows = [items] if isinstance(items, dict) else items
    metric = Grounding(**options)
    return score(rows, metrics=[metric], entailer=entails, seed=seed, unit="answer")


def values_of(
    items: Item | Sequence[Item], entails: Any, **options: Any
) -> Mapping[str, float | int | None]:
    return run_of(items, entails, **options).summary["grounding"]


def assessed(item_: Item, entails: Any, **options: Any) -> Assessment:
    run = run_of(item_, entails, **options)
    (assessment,) = run.assessments
    assert assessment.error is None, assessment.error
    return assessment


def trace(assessment: Assessment, kind: str) -> list[Mapping[str, Any]]:
    return [entry for entry in assessment.evidence if entry["kind"] == kind]


def verdicts(assessment: Assessment) -> list[list[tuple[int, str]]]:
    """The citations of each statement: number and verdict."""
    return [
        [(c["document"], c["verdict"]) for c in entry["citations"]]
        for entry in assessment.evidence
        if entry["kind"] in ("sentence", "list item")
    ]


def hypotheses(assessment: Assessment) -> list[str]:
    return [e["text"] for e in assessment.evidence if e["kind"] in ("sentence", "list item")]

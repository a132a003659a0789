"""What is chosen, from answers with their values: pure functions.

Wei et al. 2024 (FEWL), sections 5.1 and 5.2, appendices C.10 and C.11. Values are higher for better
answers, whatever the metric: :mod:`~trustassay.workflows.select.answers` sees to that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.errors import UsageError
from trustassay.metrics.fewl.pool import nearest
from trustassay.prompts import Prompt
from trustassay.sample import Sample, question_key

__all__ = [
    "Candidate",
    "Example",
    "Question",
    "best",
    "chat_record",
    "choose_examples",
    "choose_targets",
    "icl_prompt",
    "nearest_examples",
    "shipped_prompt",
    "split",
    "tied",
]

Vectors = NDArray[np.float32]
EXAMPLES = 5
"""Examples in a prompt (appendix C.11)."""
TEST_SHARE = 0.2
"""Share of the questions that nothing is trained on (section 5.2)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer to a question and its value by each way of choosing; higher is better."""

    sample: Sample
    values: Mapping[str, float]

    @property
    def text(self) -> str:
        """The answer itself."""
        return (self.sample.response or "").strip()


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its candidates, in input order; one or more."""

    text: str
    candidates: Sequence[Candidate]


@dataclass(frozen=True, slots=True)
class Example:
    """A question and the answer that was chosen for it."""

    question: str
    response: str
    sample: Sample

    @classmethod
    def of(cls, question: Question, chosen: Candidate) -> Example:
        """Return a question with a candidate of its own."""
        return cls(question.text, chosen.text, chosen.sample)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: the answer's id, question, response, and the model if known."""
        named = {"model": self.sample.model} if self.sample.model else {}
        return {
            "id": self.sample.id,
            "question": self.question,
            "response": self.response,
            **named,
        }


def best(question: Question, way: str) -> Candidate:
    """Return the candidate with the highest value, the first of equal ones."""
    return max(question.candidates, key=lambda one: one.values[way])


def tied(question: Question, way: str) -> bool:
    """Whether another candidate, with another text, has the highest value, too."""
    chosen = best(question, way)
    return any(
        one.values[way] == chosen.values[way] and one.text != chosen.text
        for one in question.candidates
    )


def choose_examples(questions: Sequence[Question], way: str, baseline: str | None) -> list[Example]:
    """Return the questions for which two ways choose different texts, with the answer of ``way``.

    Section 5.1: these show best what the one way adds to the other. ``baseline=None`` keeps all.
    """
    return [
        Example.of(question, best(question, way))
        for question in questions
        if baseline is None or best(question, way).text != best(question, baseline).text
    ]


def nearest_examples(
    asked: Sequence[str],
    asked_vectors: Vectors,
    examples: Sequence[Example],
    example_vectors: Vectors,
    k: int = EXAMPLES,
) -> list[list[Example]]:
    """Return the k examples nearest to each question that is asked, nearest first, by cosine.

    Never one whose question is the asked one, by :func:`~trustassay.sample.question_key`; so fewer
    than k where there are no more.

    Args:
        asked_vectors, example_vectors: unit vectors of the questions, shapes (n, d) and (m, d).
        examples: of different questions.
    """
    places = {question_key(one.question): place for place, one in enumerate(examples)}
    if len(places) < len(examples):
        raise UsageError("two examples have the same question")
    itself = [places.get(question_key(text), -1) for text in asked]
    found = nearest(asked_vectors, example_vectors, k, itself=itself)
    return [[examples[place] for place in row if place >= 0] for row in found.places.tolist()]


def icl_prompt(
    question: str,
    examples: Sequence[Example],
    template: Prompt | None = None,
    sample: Sample | None = None,
) -> str:
    """Return the prompt that shows the examples and asks the question.

    Raises:
        PromptError: the template uses a name other than ``question``, ``examples``, ``sample``.
    """
    found = template or shipped_prompt()
    return found.filled(question=question, examples=examples, sample=sample)


@cache
def shipped_prompt() -> Prompt:
    """Return the template of this package."""
    with as_file(files(__package__) / "prompts" / "icl.jinja") as path:
        return Prompt.read(path)


def choose_targets(questions: Sequence[Question], way: str) -> list[Example]:
    """Return each question with its best answer (section 5.2)."""
    return [Example.of(question, best(question, way)) for question in questions]


def split(
    examples: Sequence[Example], test_share: float = TEST_SHARE, seed: int = 0
) -> tuple[list[Example], list[Example]]:
    """Return the examples to train on, and those to test with, both in their order.

    A question's side depends on its text and the seed; only the number of questions and the share
    decide how many there are, rounded to the nearest.

    Raises:
        ValueError: a share below 0, or of 1 or more.
    """
    if not 0 <= test_share < 1:
        raise UsageError(f"test share: expected 0 to below 1, got {test_share}")
    order = sorted(range(len(examples)), key=lambda i: _drawn(examples[i].question, seed))
    test = set(order[: round(test_share * len(examples))])
    kept = [one for place, one in enumerate(examples) if place not in test]
    return kept, [examples[place] for place in sorted(test)]


def _drawn(question: str, seed: int) -> bytes:
    text = f"{seed}\x1f{question_key(question)}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def chat_record(example: Example) -> dict[str, Any]:
    """Return a line of a training file in the chat format, as TRL and the OpenAI API read it."""
    turns = (("user", example.question), ("assistant", example.response))
    return {"messages": [{"role": role, "content": text} for role, text in turns]}

"""Data sets of questions with right and wrong answers, as published: each answer is a sample.

CHALE (Wei et al. 2024), HaluEval (Li et al. 2023) and haltt4llm keep several answers in a record.
Their records are flattened here; what needs no more than other names is a layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["flattened"]

Record = Mapping[str, Any]

_NO_STATEMENT = frozenset({"none of the above", "i don't know"})


class _Shape(NamedTuple):
    """Keys that tell a record of a data set, and how it is flattened."""

    keys: frozenset[str]
    flatten: Callable[[Record], Sequence[Record]]


def flattened(record: Record, fields: Mapping[str, str]) -> Sequence[Record]:
    """Return the flat records of one record of a known data set; none where it is of no such set.

    ``fields`` are the names that the user gave; who names a field of a set reads it by himself.
    """
    named = {path.partition(".")[0] for path in fields.values()}
    for shape in _SHAPES:
        if shape.keys <= record.keys() and shape.keys.isdisjoint(named):
            return shape.flatten(record)
    return ()


def _rest(record: Record, *taken: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in taken}


def _chale(record: Record) -> Sequence[Record]:
    """Three answers: one without hallucination, one with half of it, one with nothing else."""
    keys = ("Question", "Short_ans", "Long_ans", "non-halu", "mid-halu", "halu")
    question, short, long, right, half, wrong = (record[key] for key in keys)
    common = _rest(record, *keys) | {
        "question": question,
        "answers": [short],
        "incorrect_answers": [half] if half == wrong else [half, wrong],
        "documents": [long],
    }
    return [
        {**common, "response": text, "label": label, "kind": kind}
        for kind, text, label in zip(keys[3:], (right, half, wrong), (1, 0, 0), strict=True)
    ]


def _halueval(record: Record) -> Sequence[Record]:
    """The right answer and the hallucinated one, with the knowledge as a passage."""
    keys = ("knowledge", "question", "right_answer", "hallucinated_answer")
    knowledge, question, right, wrong = (record[key] for key in keys)
    common = _rest(record, *keys) | {
        "question": question,
        "answers": [right],
        "incorrect_answers": [wrong],
        "documents": [knowledge],
    }
    return [
        {**common, "response": text, "label": label, "kind": kind}
        for kind, text, label in (("right", right, 1), ("hallucinated", wrong, 0))
    ]


def _haltt4llm(record: Record) -> Sequence[Record]:
    """One question with its choices; it is answered by whom is assessed."""
    choices = record["answers"]
    if not (
        isinstance(choices, list)
        and choices
        and all(isinstance(one, Mapping) and {"text", "correct"} <= one.keys() for one in choices)
    ):
        return ()
    shown = [(one["text"], bool(one["correct"])) for one in choices if str(one["text"]).strip()]
    right = [text for text, correct in shown if correct]
    return [
        {
            **_rest(record, "answers"),
            "answers": [right] if right else [],
            "incorrect_answers": [
                text
                for text, correct in shown
                if not correct and str(text).strip().casefold() not in _NO_STATEMENT
            ],
            "choices": [one["text"] for one in choices],
        }
    ]


_SHAPES = (
    _Shape(
        frozenset({"Question", "Short_ans", "Long_ans", "non-halu", "mid-halu", "halu"}), _chale
    ),
    _Shape(frozenset({"knowledge", "question", "right_answer", "hallucinated_answer"}), _halueval),
    _Shape(frozenset({"question", "answers"}), _haltt4llm),
)

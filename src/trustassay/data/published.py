"""Data sets of questions with right and wrong answers, as published: each answer is a sample.

CHALE (Wei et al. 2024), HaluEval (Li et al. 2023) and haltt4llm keep several answers in a record.
Their records are flattened here; what needs no more than other names is a layout.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from trustassay.data.recognising import ABSENT, reach

Record = Mapping[str, Any]

_NO_STATEMENT = frozenset({"none of the above", "i don't know"})


class _Shape(NamedTuple):
    """Keys that tell a record of a data set, and how it is flattened."""

    keys: frozenset[str]
    flatten: Callable[[Record], Sequence[Record]]


def is_published(keys: Collection[str]) -> bool:
    """Return whether a record of these keys may be one of a known data set."""
    return any(shape.keys.issubset(keys) for shape in _SHAPES)


def flattened(record: Record, fields: Mapping[str, str]) -> Sequence[Record]:
    """Return the flat records of one record of a known data set; none where it is of no such set.

    ``fields`` are the names that the user gave; who names a field of a set reads it by himself. A
    record with a response of its own, or under the name that the user gave, has no other answer.
    An id of the record is followed by the kind of answer where there are several, so who reads
    them must not take the id from another field.
    """
    named = {path.partition(".")[0] for name, path in fields.items() if name != "response"}
    for shape in _SHAPES:
        if shape.keys <= record.keys() and shape.keys.isdisjoint(named):
            found = shape.flatten(record)
            if len(found) > 1 and (record.get("response") is not None or "response" in fields):
                return [_with_own_response(record, found[0], fields)]
            return _known_by_kind(record, found, fields) if len(found) > 1 else found
    return ()


def _with_own_response(record: Record, flat: Record, fields: Mapping[str, str]) -> Record:
    own = (key for key in ("label", "kind", "response", _response_key(fields)) if key in record)
    return _rest(flat, "response", "label", "kind") | {key: record[key] for key in own}


def _response_key(fields: Mapping[str, str]) -> str:
    return fields.get("response", "response").partition(".")[0]


def _known_by_kind(
    record: Record, found: Sequence[Record], fields: Mapping[str, str]
) -> Sequence[Record]:
    known_as = reach(record, fields.get("id", "id"))
    if known_as is ABSENT or known_as is None:
        return found
    sound = isinstance(known_as, str | int) and not isinstance(known_as, bool)
    if not sound or not str(known_as).strip():
        return [{**one, "id": known_as} for one in found]  # the parser says what is wrong with it
    return [{**one, "id": f"{known_as}-{one['kind']}"} for one in found]


def _rest(record: Record, *taken: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in taken}


def _answers(
    record: Record, question: str, gold: str, passage: str, kinds: Mapping[str, tuple[str, int]]
) -> Sequence[Record]:
    """Return a record for each of several answers; ``kinds`` gives the field and label of each."""
    wrong = [record[field] for field, label in kinds.values() if not label]
    fields = (question, gold, passage, *(field for field, _ in kinds.values()))
    common = _rest(record, *fields) | {
        "question": record[question],
        "answers": [record[gold]],
        "incorrect_answers": [one for n, one in enumerate(wrong) if one not in wrong[:n]],
        "documents": [record[passage]],
    }
    return [
        {**common, "response": record[field], "label": label, "kind": kind}
        for kind, (field, label) in kinds.items()
    ]


def _chale(record: Record) -> Sequence[Record]:
    """Three answers: one without hallucination, one with half of it, one with nothing else."""
    kinds = {"non-halu": ("non-halu", 1), "mid-halu": ("mid-halu", 0), "halu": ("halu", 0)}
    return _answers(record, "Question", "Short_ans", "Long_ans", kinds)


def _halueval(record: Record) -> Sequence[Record]:
    """The right answer and the hallucinated one, with the knowledge as a passage."""
    kinds = {"right": ("right_answer", 1), "hallucinated": ("hallucinated_answer", 0)}
    return _answers(record, "question", "right_answer", "knowledge", kinds)


def _haltt4llm(record: Record) -> Sequence[Record]:
    """One question with its choices; it is answered by whom is assessed."""
    choices = record["answers"]
    if not (
        isinstance(choices, list)
        and choices
        and all(
            isinstance(one, Mapping) and "text" in one and isinstance(one.get("correct"), bool)
            for one in choices
        )
    ):
        return ()
    shown = [(one["text"], one["correct"]) for one in choices if str(one["text"]).strip()]
    right = [text for text, correct in shown if correct]
    marked = [place for place, one in enumerate(choices) if one["correct"]]
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
            **({"right_choice": marked[0]} if len(marked) == 1 else {}),
        }
    ]


_SHAPES = (
    _Shape(
        frozenset({"Question", "Short_ans", "Long_ans", "non-halu", "mid-halu", "halu"}), _chale
    ),
    _Shape(frozenset({"knowledge", "question", "right_answer", "hallucinated_answer"}), _halueval),
    _Shape(frozenset({"question", "answers"}), _haltt4llm),
)

"""The layouts of other tools, as tables: the keys that identify them and the names of fields.

A record is recognised by its keys (:mod:`trustassay.data.recognising`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from trustassay.data.values import is_nan
from trustassay.sample import Problem, SampleError

__all__ = [
    "AMBIGUOUS",
    "CANONICAL",
    "CONVERTERS",
    "LAYOUTS",
    "PROSE_NAMES",
    "SPELLINGS",
    "STRUCTURED_FIELDS",
    "TEXT_FIELDS",
    "Layout",
    "is_passage",
    "passages",
]

Converter = Callable[[Any], Any]

TEXT_FIELDS = ("id", "question", "response", "model")
STRUCTURED_FIELDS = (
    "answers",
    "claims",
    "documents",
    "references",
    "resamples",
    "wrong_answers",
    "corrected_answers",
    "incorrect_answers",
)
PROSE_NAMES = frozenset({"reference", "expected_output", "expectedOutput", "ground_truth", "ideal"})
"""Other tools' names of one text that may fill a list field here."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How one tool writes a record.

    Any key of ``telling`` tells the layout, where ``together`` only all of them do; one of
    ``telling_without_question`` does so in a record without ``question``. ``fields`` gives, for a
    canonical field, the tool's names for it, the preferred one first; ``documents`` the same for
    the fields of a document; ``converters`` turn the value of a tool's field into the canonical
    one, and raise ``SampleError`` (with an empty field name) where that cannot be done. Both are
    followed by :data:`SPELLINGS` and :data:`CONVERTERS`, which hold for every layout.
    """

    name: str
    telling: frozenset[str]
    fields: Mapping[str, tuple[str, ...]]
    documents: Mapping[str, str]
    converters: Mapping[str, Converter]
    telling_without_question: frozenset[str] = frozenset()
    together: bool = False

    def tells(self, keys: Collection[str]) -> bool:
        """Return whether ``keys`` tell the layout."""
        told = self.telling.intersection(keys)
        return told == self.telling if self.together else bool(told)


def _short_answers(pairs: Any) -> Any:
    """Turn ALCE's sub-questions, each with its short answers, into lists of aliases."""
    if isinstance(pairs, Mapping):  # columns, as `datasets` may store them
        return pairs.get("short_answers")
    if not isinstance(pairs, list | tuple):
        raise SampleError([Problem("", "expected a list of questions with short_answers")])
    return [p.get("short_answers") if isinstance(p, Mapping) else None for p in pairs]


def _one_question(value: Any) -> Any:
    """Refuse the messages of a conversation; the parser checks everything else."""
    if isinstance(value, list | tuple):
        message = "expected one question, got a list of messages (multi-turn is not supported)"
        raise SampleError([Problem("", message)])
    return value


def _unless_blank(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


def _in_list(value: Any) -> Any:
    """Split a list that is written with semicolons; a list stays as it is."""
    if not isinstance(value, str):
        return value
    return [text.strip() for text in value.split(";") if text.strip()]


def _one_of_list(value: Any) -> Any:
    """Return the same as the aliases of one answer: each is right by itself."""
    found = _in_list(value)
    return [found] if found and isinstance(found, list) else found


def _not_hallucinated(value: Any) -> Any:
    """Turn yes or true, there is a hallucination, into the label of a wrong answer."""
    if value is None or isinstance(value, bool):
        return None if value is None else int(not value)
    known = {"yes": 0, "no": 1}
    said = value.strip().casefold() if isinstance(value, str) else ""
    if said not in known:
        message = "expected yes, no, true or false (whether the response is hallucinated)"
        raise SampleError([Problem("", f"{message}, got {str(value)[:40]!r}")])
    return known[said]


def passages(value: Any) -> Any:
    """Read a text as one passage; a list with passages keeps its places. ``None`` for blanks."""
    if isinstance(value, list | tuple):
        texts = ["" if one is None or is_nan(one) else one for one in value]
        blank = all(isinstance(one, str) and not one.strip() for one in texts)
        return None if texts and blank else texts
    if isinstance(value, str):
        return [value] if value.strip() else None
    return value


def _barred(value: Any) -> Any:
    """Split the passages that DeepEval joins with bars where it writes a table."""
    return value.split("|") if isinstance(value, str) and value.strip() else value


def _any_of(value: Any) -> Any:
    """Read one right answer, or a list of which each is right by itself."""
    if isinstance(value, list | tuple):
        return [list(value)] if value else None
    return None if _unless_blank(value) is None else [value]


SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "question": ("user_input", "input", "query"),
    "response": ("actual_output", "output"),
    "documents": (
        "retrieved_contexts",
        "retrieval_context",
        "retrievalContext",
        "contexts",
        "context",
        "docs",
        "retrieved_documents",
        "source",
    ),
    "answers": ("ideal",),
    "claims": ("reference", "expected_output", "expectedOutput", "ground_truth", "ground_truths"),
}
"""Names of fields that need no other key beside them, after those of the record's layout."""
CONVERTERS: Mapping[str, Converter] = {
    **dict.fromkeys(SPELLINGS["claims"], _unless_blank),
    "ideal": _any_of,
}
"""What turns the values of these names into canonical ones."""


def is_passage(value: Any) -> bool:
    """Return whether a value is the text of passages, and no link, file name or title."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(is_passage, value))
    if not isinstance(value, str):
        return False
    text = value.strip()
    long = len(text.split()) >= _WORDS_OF_PASSAGE or text.endswith(("。", "！", "？"))
    return long or (len(text.split()) > 2 and text.endswith((".", "!", "?")))


_WORDS_OF_PASSAGE = 16
AMBIGUOUS = frozenset({"source"})
"""Names of documents that mostly hold a link or a title: they count where :func:`is_passage`."""

_LOG_FIELDS = {
    "response": ("answer",),
    "documents": ("contexts", "context", "retrieved_documents"),
    "claims": ("ground_truth", "ground_truths"),
}


def _log_of(*telling: str) -> Layout:
    """Return the layout of logs and spreadsheets, and of Ragas before 0.2, told by two keys."""
    return Layout("log", frozenset(telling), _LOG_FIELDS, {}, {}, together=True)


_TRUST_EVAL_DOCUMENTS = {"supports": "answers_found", "excerpt": "sent"}

# Its documents may bear Trust-Eval's names: flags must not get lost without a word.
CANONICAL = Layout("canonical", frozenset(), {}, _TRUST_EVAL_DOCUMENTS, {})

_DEEPEVAL_FIELDS = {
    "question": ("input",),
    "response": ("actual_output", "actualOutput", "output", "answer"),
    "documents": ("retrieval_context", "retrievalContext", "context"),
    "claims": ("expected_output", "expectedOutput"),
}

LAYOUTS = (
    Layout(  # as it writes tables
        "DeepEval",
        telling=frozenset({"input", "retrieval_context", "source_file"}),
        together=True,
        fields=_DEEPEVAL_FIELDS,
        documents={},
        converters={"retrieval_context": _barred, "context": _barred},
    ),
    Layout(
        "DeepEval",
        telling=frozenset(
            {
                "actual_output",
                "expected_output",
                "retrieval_context",
                "actualOutput",
                "expectedOutput",
                "retrievalContext",
            }
        ),
        telling_without_question=frozenset({"input"}),
        fields=_DEEPEVAL_FIELDS,
        documents={},
        converters={},
    ),
    Layout(
        "Ragas",
        telling=frozenset({"user_input", "retrieved_contexts"}),
        fields={
            "question": ("user_input",),
            "response": ("answer",),
            "documents": ("retrieved_contexts",),
            "claims": ("reference",),
        },
        documents={},
        converters={"user_input": _one_question},
    ),
    _log_of("answer", "contexts"),
    _log_of("answer", "context"),
    _log_of("answer", "documents"),
    _log_of("answer", "retrieved_documents"),
    _log_of("answer", "ground_truth"),
    _log_of("answer", "ground_truths"),
    _log_of("answer", "ideal"),
    Layout(
        "Trust-Eval",
        telling=frozenset({"output", "docs", "qa_pairs"}),
        fields={
            "response": ("output",),
            "documents": ("docs",),
            "answers": ("qa_pairs",),
        },
        documents=_TRUST_EVAL_DOCUMENTS,
        converters={"qa_pairs": _short_answers},
    ),
    Layout(
        "TruthfulQA",
        telling=frozenset({"Correct Answers", "Incorrect Answers"}),
        together=True,
        fields={
            "question": ("Question",),
            "answers": ("Correct Answers",),
            "incorrect_answers": ("Incorrect Answers",),
        },
        documents={},
        converters={"Correct Answers": _one_of_list, "Incorrect Answers": _in_list},
    ),
    Layout(
        "HaluEval",
        telling=frozenset({"chatgpt_response"}),
        fields={
            "id": ("ID",),
            "question": ("user_query",),
            "response": ("chatgpt_response",),
            "label": ("hallucination",),
        },
        documents={},
        converters={"ID": _unless_blank, "hallucination": _not_hallucinated},
    ),
    Layout(
        "TrustScore",
        telling=frozenset({"pred", "human_eval"}),
        together=True,
        fields={"response": ("pred",), "label": ("human_eval",)},
        documents={},
        converters={},
    ),
)

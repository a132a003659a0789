"""The layouts of other tools, as tables: the keys that identify them and the names of fields.

A record is recognised by its keys. A field's canonical name has precedence over another tool's
name for it, and a name given by the user has precedence over both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trustassay.sample import CANONICAL_FIELDS, Problem, SampleError, content_id

__all__ = [
    "ABSENT",
    "LAYOUTS",
    "PROSE_NAMES",
    "STRUCTURED_FIELDS",
    "TEXT_FIELDS",
    "Layout",
    "Recognised",
    "layout_of",
    "reach",
    "recognise",
    "sources_of",
    "systems_of",
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
PROSE_NAMES = frozenset({"reference", "expected_output", "expectedOutput", "ground_truth"})
"""Other tools' names of one long text that fills a list field here."""

ABSENT: Final = object()
"""What :func:`reach` returns where a record has no such field; ``None`` is a value."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How one tool writes a record.

    Any key of ``telling`` tells the layout, where ``together`` only all of them do; one of
    ``telling_without_question`` does so in a record without ``question``. ``fields`` gives, for a
    canonical field, the tool's names for it, the preferred one first; ``documents`` the same for
    the fields of a document; ``converters`` turn the value of a tool's field into the canonical
    one, and raise ``SampleError`` (with an empty field name) where that cannot be done.
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


@dataclass(frozen=True, slots=True)
class Recognised:
    """A record in canonical fields, and the way back to the names its author used."""

    record: Mapping[str, Any]
    problems: tuple[Problem, ...]
    layout: Layout
    sources: Mapping[str, str]
    raw: Mapping[str, Any]

    def in_own_words(self, problem: Problem) -> Problem:
        """Return ``problem`` with its field as the author of the record named it."""
        match = re.match(r"\w+", problem.field)
        root = match.group() if match else ""
        if root not in CANONICAL_FIELDS:
            return problem
        rest = problem.field[len(root) :]
        source = self._name_of(root)
        if root == "documents":
            rest = self._document_path(source, rest)
        elif source == "qa_pairs":
            rest = re.sub(r"^\[\d+\]", r"\g<0>.short_answers", rest)
        return Problem(source + rest, problem.message)

    def _name_of(self, canonical: str) -> str:
        if canonical in self.sources:
            return self.sources[canonical]
        if self.raw.get(canonical) is not None or canonical not in self.layout.fields:
            return canonical
        names = self.layout.fields[canonical]
        return next((name for name in names if name in self.raw), names[0])

    def _document_path(self, source: str, rest: str) -> str:
        match = re.fullmatch(r"(\[(\d+)\]\.)(\w+)(.*)", rest)
        theirs = match and self.layout.documents.get(match[3])
        if not match or not theirs:
            return rest
        documents = reach(self.raw, source)
        rows = [documents] if isinstance(documents, Mapping) else documents
        own = rows[min(int(match[2]), len(rows) - 1)]
        used_here = isinstance(own, Mapping) and own.get(match[3]) is not None
        used_at_all = any(isinstance(row, Mapping) and theirs in row for row in rows)
        return rest if used_here or not used_at_all else f"{match[1]}{theirs}{match[4]}"


def layout_of(record: Mapping[str, Any], fields: Mapping[str, str]) -> Layout:
    """Return the layout that the keys of ``record`` indicate, by default the canonical one."""
    for layout in LAYOUTS:
        if layout.tells(record):
            return layout
    if "question" not in record and "question" not in fields:
        for layout in LAYOUTS:
            if not layout.telling_without_question.isdisjoint(record):
                return layout
    return CANONICAL


def sources_of(
    record: Mapping[str, Any], layout: Layout, fields: Mapping[str, str]
) -> dict[str, str]:
    """Return where each canonical field comes from that has another name in ``record``.

    ``fields`` (canonical to theirs, dots reach into objects) are the user's own and always count.
    """
    sources = dict(fields)
    for canonical, candidates in layout.fields.items():
        if canonical in fields or record.get(canonical) is not None:
            continue
        for theirs in candidates:
            if record.get(theirs) is not None:
                sources[canonical] = theirs
                break
    return sources


def recognise(record: Mapping[str, Any], fields: Mapping[str, str]) -> Recognised:
    """Return ``record`` in canonical fields; fields without a canonical name are not changed."""
    layout = layout_of(record, fields)
    sources = sources_of(record, layout, fields)
    moved = set(sources.values())
    canonical = {k: v for k, v in record.items() if k not in moved and k not in sources}
    problems = []
    for name, theirs in sources.items():
        value = reach(record, theirs)
        if theirs in layout.converters and value is not ABSENT:
            try:
                value = layout.converters[theirs](value)
            except SampleError as error:
                problems += [Problem(theirs + p.field, p.message) for p in error.problems]
                continue
        if value is not None and value is not ABSENT:
            canonical[name] = value
    if canonical.get("documents") is not None:
        canonical["documents"] = _renamed_documents(canonical["documents"], layout.documents)
    return Recognised(canonical, tuple(problems), layout, sources, record)


def systems_of(
    record: Mapping[str, Any], fields: Mapping[str, str]
) -> Mapping[str, Mapping[str, Any]]:
    """Return a flat record for each system that ``record`` holds an answer of, by its name.

    TrustScore's file has one record a question, and in it, under each system's name, an object
    with the system's answer (``pred``) and a label (``human_eval``). All other keys are the
    question's. An id is made of them, so it stays the same whatever a system answers. Empty where
    the record has no such object, or the user names a field of one.
    """
    inside = {path.partition(".")[0] for path in fields.values() if "." in path}
    held = {
        name: value
        for name, value in record.items()
        if isinstance(value, Mapping) and {"pred", "human_eval"} <= set(value)
    }
    if not inside.isdisjoint(held):
        return {}
    common = {name: value for name, value in record.items() if name not in held}
    known_as = reach(record, fields.get("id", "id"))
    if known_as in (ABSENT, None):
        known_as = content_id(common)
    return {
        name: {**common, **value, "id": f"{known_as}-{name}", "model": name}
        for name, value in held.items()
    }


def reach(record: Mapping[str, Any], path: str) -> Any:
    """Return the value at ``path``, keys joined by dots; ``ABSENT`` where nothing is."""
    if path in record:
        return record[path]
    value: Any = record
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return ABSENT
        value = value[key]
    return value


def _renamed_documents(documents: Any, names: Mapping[str, str]) -> Any:
    if isinstance(documents, Mapping):
        return _renamed_document(documents, names)
    if isinstance(documents, list | tuple):
        return [_renamed_document(d, names) if isinstance(d, Mapping) else d for d in documents]
    return documents


def _renamed_document(document: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    renamed = dict(document)
    for canonical, theirs in names.items():
        if theirs in renamed and renamed.get(canonical) is None:
            renamed[canonical] = renamed.pop(theirs)
    return renamed


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


def _passages(value: Any) -> Any:
    """Read a text as one passage; a list stays as it is."""
    return [value] if isinstance(value, str) and value.strip() else value


_LOG_FIELDS = {
    "response": ("answer",),
    "documents": ("contexts", "context"),
    "claims": ("ground_truth", "ground_truths"),
}
_LOG_CONVERTERS: dict[str, Converter] = {
    "contexts": _passages,
    "context": _passages,
    "ground_truth": _unless_blank,
}


def _log_of(*telling: str) -> Layout:
    """Return the layout of logs and spreadsheets, and of Ragas before 0.2, told by two keys."""
    keys = frozenset(telling)
    return Layout("log", keys, _LOG_FIELDS, {}, _LOG_CONVERTERS, together=True)


_TRUST_EVAL_DOCUMENTS = {"supports": "answers_found", "excerpt": "sent"}

# Its documents may bear Trust-Eval's names: flags must not get lost without a word.
CANONICAL = Layout("canonical", frozenset(), {}, _TRUST_EVAL_DOCUMENTS, {})

LAYOUTS = (
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
        fields={
            "question": ("input",),
            "response": ("actual_output", "actualOutput"),
            "documents": ("retrieval_context", "retrievalContext", "context"),
            "claims": ("expected_output", "expectedOutput"),
        },
        documents={},
        converters={"expected_output": _unless_blank, "expectedOutput": _unless_blank},
    ),
    Layout(
        "Ragas",
        telling=frozenset({"user_input", "retrieved_contexts"}),
        fields={
            "question": ("user_input",),
            "documents": ("retrieved_contexts",),
            "claims": ("reference",),
        },
        documents={},
        converters={"user_input": _one_question, "reference": _unless_blank},
    ),
    _log_of("answer", "contexts"),
    _log_of("answer", "context"),
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

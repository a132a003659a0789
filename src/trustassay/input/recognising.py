"""Turns a record into canonical fields, whatever names its author used.

The canonical name of a field has precedence over another tool's name for it, and a name from the
user has precedence over both. The steps:

1. Other spellings of known names are replaced (:mod:`trustassay.input.layouts`).
2. Nested records are flattened (:mod:`trustassay.input.chats`).
3. The layout is recognised by the keys, and each canonical field gets its source.
4. Values are converted, and documents are read (:mod:`trustassay.input.passages`). If a record has
   none, they are looked for in its question (:mod:`trustassay.input.prompts`).

Records of CHALE (Wei et al. 2024), HaluEval (Li et al. 2023) and haltt4llm are flattened.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final, NamedTuple

from trustassay.core.sample import (
    CANONICAL_FIELDS,
    Problem,
    SampleError,
    columns_to_rows,
    compute_content_id,
)
from trustassay.input import layouts
from trustassay.input.chats import CHATS, PROMPT, flatten_record, may_be_nested
from trustassay.input.layouts import (
    AMBIGUOUS,
    LAYOUTS,
    SPELLINGS,
    TEXTS_ONLY,
    Layout,
    is_only_question,
)
from trustassay.input.messages import describe_ending, read_messages
from trustassay.input.numbered import ColumnSeries, find_column_series, join_numbered
from trustassay.input.passages import is_prose, read_document_rows, read_documents
from trustassay.input.printed import NO_LIST, begins_as_value, explain_unreadable
from trustassay.input.prompts import split_prompt
from trustassay.input.records import (
    RawRecord,
    decode_json,
    is_missing,
    parse_value,
    split_names,
)

ABSENT: Final = object()
"""The result of :func:`reach` where a record has no such field; ``None`` is a value."""
SPAN_KEYS = [frozenset(keys) for keys in layouts.NAMES["spans"]["telling"]]
"""Keys of a span that is a record by itself."""
_BRACKETS = ("[", "{")
_ANSWERS = frozenset({"answer", "completion", "prompt"})
"""Names of texts that are questions or responses in some layouts; JSON in them is not parsed."""
_LISTS = frozenset(layouts.STRUCTURED_FIELDS) - {"references"}
"""Fields with lists of texts; an object in such a text stays a text."""
_MAX_NAMES = 40
MAX_ERROR_CHARACTERS = 80
"""Characters of a record's error that a message shows."""


@dataclass(frozen=True, slots=True)
class RecognisedRecord:
    """A record in canonical fields, and the way back to the names that its author used."""

    record: Mapping[str, Any]
    """The record in canonical fields."""
    problems: tuple[Problem, ...]
    """Problems with its values; their fields have the author's names."""
    layout: Layout
    """The layout that was recognised."""
    sources: Mapping[str, str]
    """By canonical field, the name in ``raw`` that it came from, if that is another one."""
    raw: Mapping[str, Any]
    """The record after flattening and replacing other spellings."""
    names: Mapping[str, str]
    """By key of ``raw``, the original name or path, where it is another one."""
    original: Mapping[str, Any]
    """The record as it was read."""
    fields: Mapping[str, str]
    """The user's names, by canonical field."""
    candidates: Mapping[str, tuple[str, ...]]
    """By canonical field, the names that ``raw`` has for it, the preferred one first."""

    @property
    def lacks_last_answer(self) -> bool:
        """Whether it is a chat that ends with a message of the user, and has no answer to it."""
        return self._ending == "question"

    @property
    def lacks_answer_of_last_turn(self) -> bool:
        """Whether it is a chat whose last turn was not answered in a text.

        Besides :attr:`lacks_last_answer` these are chats that a call of a tool ends (an agent hands
        over to a person), or that were cut off behind one.
        """
        return self._ending in ("question", "tool call", "tool result")

    @property
    def _ending(self) -> str:
        """The last entry of a chat (:func:`describe_ending`); empty where the record has an
        answer, or is no chat."""
        if not self._chat or self._has_name_for("response"):
            return ""
        return describe_ending(decode_json(reach(self.original, self._chat)))

    def use_original_names(self, problem: Problem) -> Problem:
        """Return a problem with its field as the author of the record named it."""
        match = re.match(r"\w+", problem.field)
        root = match.group() if match else ""
        if root not in CANONICAL_FIELDS:
            return problem
        path_behind = problem.field[len(root) :]
        source = self._find_name(root)
        unread = ""
        if problem.message.startswith("is missing"):
            unread = self._explain_missing(root) or self._describe_unread(root, source)
        if unread:
            return Problem(root, problem.message.replace("is missing (", f"is missing ({unread}; "))
        # The index and the tool's own name of the document's field belong in the message.
        if root == "documents":
            path_behind = self._document_path(source, path_behind)
        elif source == "qa_pairs":
            path_behind = re.sub(r"^\[\d+\]", r"\g<0>.short_answers", path_behind)
        return Problem(self.names.get(source, source) + path_behind, problem.message)

    def _explain_missing(self, canonical: str) -> str:
        """Return why the record lacks a field, and what to do; empty if that is not known."""
        if canonical == "response" and self._chat:
            messages = decode_json(self.original.get(self._chat))
            return f"the chat in {self._chat} ends with a {describe_ending(messages)}"
        if canonical == "question" and (chat := self._find_chat_without_question()):
            return f"the chat in {chat} has no user message"
        return layouts.explain_missing(canonical, self.original)

    @property
    def _chat(self) -> str:
        """The name of the chat from which the question was read; empty if it was no chat."""
        name = self.names.get("question", "")
        return name if name in CHATS else ""

    def _find_chat_without_question(self) -> str:
        """Return the name of a list of messages where no question was read; else empty."""
        if "question" in self.record:
            return ""
        for name in CHATS:
            value = decode_json(self.original.get(name))
            if isinstance(value, list) and (not value or read_messages(value)):
                return name
        return ""

    def _describe_unread(self, canonical: str, source: str) -> str:
        """Return why a value that the record has does not count for a missing field."""
        error = self.original.get("error")
        # For instance a field "source" that holds a link, and so was not read as the passages.
        if source in AMBIGUOUS | TEXTS_ONLY and canonical not in self.sources:
            kind = "a link or a title" if source in AMBIGUOUS else "no text"
            return f"{self.names.get(source, source)} contains {kind}"
        if canonical == "response" and (rival := find_rival_answer(self.raw)):
            return f"next to {self.names.get(rival, rival)}, answer may be the gold answer"
        if canonical == "response" and isinstance(error, str) and error.strip():
            return f"error: {' '.join(error[:MAX_ERROR_CHARACTERS].split())}"
        return ""

    def lacks_name_for(self, canonical: str) -> bool:
        """Whether the record has no known name for a field."""
        if canonical == "response" and self._chat:
            return False
        if canonical == "question" and self._find_chat_without_question():
            return False
        return canonical in CANONICAL_FIELDS and not self._has_name_for(canonical)

    def _has_name_for(self, canonical: str) -> bool:
        """Whether the record has a field under a known name, or under one that the user gave."""
        if canonical in self.sources or canonical in self.raw:
            return True
        if canonical == "response" and find_rival_answer(self.raw):
            return False
        return not all(
            name in AMBIGUOUS or (name in TEXTS_ONLY and isinstance(self.raw[name], Mapping))
            for name in self.candidates.get(canonical, ())
        )

    def _find_name(self, canonical: str) -> str:
        if canonical in self.sources:
            return self.sources[canonical]
        if canonical in self.raw:
            return canonical
        layout_names = self.layout.fields.get(canonical, (canonical,))
        return (*self.candidates.get(canonical, ()), *layout_names)[0]

    def _document_path(self, source: str, path_behind: str) -> str:
        match = re.fullmatch(r"(\[(\d+)\]\.)(\w+)(.*)", path_behind)
        tool_name = match and self.layout.documents.get(match[3])
        if not match or not tool_name:
            return path_behind
        rows = read_document_rows(reach(self.raw, source))
        rows = columns_to_rows(rows) if isinstance(rows, Mapping) else rows
        document = rows[int(match[2])]
        # The tool's name of the field is reported only if the records use it.
        used_here = isinstance(document, Mapping) and document.get(match[3]) is not None
        used_at_all = any(isinstance(row, Mapping) and tool_name in row for row in rows)
        return path_behind if used_here or not used_at_all else f"{match[1]}{tool_name}{match[4]}"


def find_layout(record: Mapping[str, Any], fields: Mapping[str, str]) -> Layout:
    """Return the layout that the keys of a record indicate, by default the canonical one."""
    asks = "question" in record or "question" in fields
    matching = [
        layout
        for layout in LAYOUTS
        if any(record.keys() >= set(keys) for keys in layout.identifying_keys)
    ]
    # These keys are too common to decide in a record that has a question.
    if not matching and not asks:
        matching = [
            layout
            for layout in LAYOUTS
            if any(key in record for key in layout.keys_without_question)
        ]
    return matching[0] if matching else layouts.CANONICAL


def _find_sources(
    record: Mapping[str, Any],
    layout: Layout,
    fields: Mapping[str, str],
    candidates: Iterable[tuple[str, tuple[str, ...]]],
) -> dict[str, str]:
    """Return the source of each canonical field that has another name in a record.

    Args:
        record: the record.
        layout: its layout.
        fields: the user's names, which always count.
        candidates: by canonical field, the names that the record has for it.
    """
    sources = dict(fields)
    for canonical, names in candidates:
        # A name of the user, or a canonical field with a value, needs no other source.
        if canonical in fields or _has_value(record, canonical):
            continue
        if (
            canonical == "claims"
            and "claims" not in layout.fields
            and _has_value(record, "answers")
        ):
            continue  # beside gold answers, a reference stays under its own name
        for name in names:
            if canonical == "response" and name == "answer" and _is_gold_answer(record, names):
                continue
            is_read = name not in AMBIGUOUS or _is_text(record.get(name))
            is_read &= name not in TEXTS_ONLY or isinstance(record.get(name), str)
            if _has_value(record, name) and is_read:
                sources[canonical] = name
                break
    # With a prose "source" as documents, "answer" is the response and not a gold answer.
    answered = "response" in sources or _has_value(record, "response")
    if sources.get("documents") in AMBIGUOUS and not answered and _has_value(record, "answer"):
        names = dict(candidates).get("response", ())
        sources |= {} if _is_gold_answer(record, names) else {"response": "answer"}
    return sources


def _is_gold_answer(record: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Whether "answer" is the right answer of a record, and not that of the model.

    It is beside another name for the response, also where the model gave no answer.

    Args:
        record: the record.
        names: the names for the response that it has.
    """
    others = [record[name] for name in ("response", *names) if name != "answer" and name in record]
    return any(value is None or isinstance(value, str) for value in others) or bool(
        find_rival_answer(record)
    )


def find_rival_answer(record: Mapping[str, Any]) -> str:
    """Return the name of another text that may be the response, so that "answer" is not it.

    The result is empty where there is none.
    """
    answer = record.get("answer")
    if not isinstance(answer, str):
        return ""
    for name, text in record.items():
        # The raw output, of which the answer was taken, is no other answer.
        is_other = isinstance(text, str) and is_prose(text) and answer.strip() not in text
        if is_other and layouts.may_be_model_answer(name):
            return name
    return ""


def _find_candidates(
    keys: tuple[str, ...], layout: Layout
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return, for each canonical field, its names among some keys, the preferred one first."""
    result = []
    for canonical in dict.fromkeys((*layout.fields, *SPELLINGS)):
        names = (*layout.fields.get(canonical, ()), *SPELLINGS.get(canonical, ()))
        names_present = [name for name in dict.fromkeys(names) if name in keys]
        # A prompt beside something else that may be the question is mostly its frame.
        if PROMPT in names_present and not is_only_question(PROMPT, keys):
            names_present.remove(PROMPT)
        if names_present:
            result.append((canonical, tuple(names_present)))
    return tuple(result)


def _is_text(value: Any) -> bool:
    """Whether a value contains passages, and not a link or a title."""
    return is_prose(decode_json(value))


def _has_value(record: Mapping[str, Any], name: str) -> bool:
    return not is_missing(record.get(name))


class _KeyReading(NamedTuple):
    """How records with the same keys are read, as far as the values do not matter."""

    layout: Layout
    """Their layout."""
    candidates: tuple[tuple[str, tuple[str, ...]], ...]
    """By canonical field, the names that they have for it."""
    names: Mapping[str, str]
    """By known name, the other spelling that the records use."""
    numbered: Mapping[str, ColumnSeries]
    """By known name, the columns with numbers that together are its field."""
    known_names: frozenset[str]
    """All names that have a canonical field."""
    nested: bool
    """Whether their question may be inside an object."""

    def names_of(self, canonical: str) -> tuple[str, ...]:
        """Return the names for a canonical field, the preferred one first."""
        return dict(self.candidates).get(canonical, ())


# Cached, because most records of an input have the same keys.
@lru_cache(maxsize=1024)
def _plan_reading(keys: tuple[str, ...], fields: tuple[tuple[str, str], ...]) -> _KeyReading:
    layout = find_layout(dict.fromkeys(keys), dict(fields))
    names_to_keep = {name for names in layout.fields.values() for name in names}
    paths = [path for _, joined in fields for path in split_names(joined)]
    names_to_keep.update(paths, (path.partition(".")[0] for path in paths))
    # The user's names, and those of the layout, are never read as other spellings.
    names = layouts.find_respellings(keys, names_to_keep)
    # The layout may depend on names that were spelled differently.
    if names:
        old = {spelling: known_name for known_name, spelling in names.items()}
        keys = tuple(old.get(key, key) for key in keys)
        layout = find_layout(dict.fromkeys(keys), dict(fields))
    numbered = {
        known_name: series
        for known_name, series in find_column_series(keys, names_to_keep).items()
        if series.canonical not in dict(fields)
    }
    if numbered:
        columns = {column.name for series in numbered.values() for column in series.columns}
        keys = (*(key for key in keys if key not in columns), *numbered)
        layout = find_layout(dict.fromkeys(keys), dict(fields))
    candidates = _find_candidates(keys, layout)
    known_names = frozenset(CANONICAL_FIELDS).union(*(names for _, names in candidates))
    # A prompt that the user names is split later, where its other fields are known.
    has_prompt = ("question", PROMPT) not in fields
    nested = may_be_nested([key for key in keys if has_prompt or key != PROMPT])
    return _KeyReading(layout, candidates, names, numbered, known_names, nested)


def find_columns(keys: Iterable[str], fields: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Return, by canonical field, the columns that may contain it, the preferred one first."""
    return _find_columns(tuple(keys), tuple(fields.items()))


@lru_cache(maxsize=1024)
def _find_columns(
    keys: tuple[str, ...], fields: tuple[tuple[str, str], ...]
) -> Mapping[str, tuple[str, ...]]:
    reading = _plan_reading(keys, fields)
    result = {name: tuple(split_names(columns)) for name, columns in fields}
    for canonical in CANONICAL_FIELDS:
        is_column = canonical in {*keys, *reading.names, *reading.numbered}
        names = reading.names_of(canonical)
        names = (canonical, *names) if is_column else names
        # Beside another name for the response, "answer" is the right answer. A header has no values
        # by which _is_gold_answer decides for a record.
        if canonical == "response" and len(names) > 1:
            names = tuple(name for name in names if name != "answer")
        if names and canonical not in result:
            columns = (_list_columns(name, reading) for name in dict.fromkeys(names))
            result[canonical] = tuple(chain.from_iterable(columns))
    return result


def _list_columns(name: str, reading: _KeyReading) -> list[str]:
    """Return the columns that a known name stands for, as the record writes them."""
    series = reading.numbered.get(name)
    columns = [column.name for column in series.columns] if series else [name]
    return [reading.names.get(column, column) for column in columns]


def has_question(keys: Iterable[str], fields: Mapping[str, str]) -> bool:
    """Whether records with these keys may have a question, under any name."""
    keys = tuple(key for key in keys if key)
    if any(telling <= set(keys) for telling in SPAN_KEYS):
        return True  # a table of spans
    columns = find_columns(keys, fields)
    if "question" in columns:
        column = columns["question"][0]
        return column in keys or column.partition(".")[0] in keys
    return _plan_reading(keys, ()).nested


def parse_values(raw: RawRecord, fields: Mapping[str, str]) -> RawRecord:
    """Return a record in which lists and objects that are written as texts are parsed.

    Tables must write them so. Questions and answers are left out, because an answer may be ``[1]``,
    and passages too, because :mod:`trustassay.input.passages` reads them.
    """
    record = raw.record
    if not isinstance(record, Mapping):
        return raw
    written = [
        name for name, value in record.items() if isinstance(value, str) and begins_as_value(value)
    ]
    if not written:
        return raw
    columns = find_columns(record, fields)
    by_field = {name: field for field, names in columns.items() for name in names}
    numbered = _plan_reading(tuple(record), tuple(fields.items())).numbered.values()
    single_texts = {column.name for series in numbered for column in series.columns} | _ANSWERS
    values, problems = dict(record), list(raw.problems)
    for name in written:
        field = by_field.get(name, "")
        if field in layouts.TEXT_FIELDS or field == "documents" or name in single_texts:
            continue
        # Of fields that need no list, only texts in brackets are parsed.
        if field not in layouts.STRUCTURED_FIELDS and record[name][:1] not in _BRACKETS:
            continue
        value = parse_value(record[name])
        # An object in a list of texts stays a text: it may be the reference answer itself. SQuAD's
        # objects have the places of the answers beside them.
        is_text = field in _LISTS and isinstance(value, Mapping) and "answer_start" not in value
        if value is not None and not is_text:
            values[name] = value
        elif (
            field in layouts.STRUCTURED_FIELDS and not is_text and not _is_prose_name(name, fields)
        ):
            problems.append(Problem(name, explain_unreadable(record[name]) or NO_LIST))
    return raw._replace(record=values, problems=tuple(problems))


def _is_prose_name(name: str, fields: Mapping[str, str]) -> bool:
    known_name = (
        layouts.normalise_name(name) if name in fields.values() else layouts.translate_name(name)
    )
    return not layouts.PROSE_NAMES.isdisjoint((name, known_name))


def recognise(
    record: Mapping[str, Any], fields: Mapping[str, str], *, answered: bool = False
) -> RecognisedRecord:
    """Return a record in canonical fields; fields without a canonical name are not changed.

    Args:
        record: the record.
        fields: the user's names by canonical field.
        answered: as for :func:`~trustassay.input.chats.flatten_record`.
    """
    fields_key = tuple(fields.items())
    reading = _plan_reading(tuple(record), fields_key)
    raw, names = record, reading.names
    # 1. Other spellings become the known names.
    if names:
        known_names = {spelling: name for name, spelling in names.items()}
        raw = {known_names.get(key, key): value for key, value in record.items()}
    # 2. A flattened record has other keys, and so is read in another way.
    if reading.nested and (result := flatten_record(raw, answered=answered)):
        raw, paths = result
        # A flattened field is reported by its path in the original record.
        names = {**names, **{key: _original_path(path, names) for key, path in paths.items()}}
        reading = _plan_reading(tuple(raw), fields_key)
    # 3. Columns with numbers become one field.
    raw = join_numbered(raw, reading.numbered)
    # 4. Each canonical field gets its value from its source.
    sources = _find_sources(raw, reading.layout, fields, reading.candidates)
    moved = {name for source in sources.values() for name in split_names(source)}
    canonical = {k: v for k, v in raw.items() if k not in moved and k not in sources}
    problems = []
    for name, source in sources.items():
        if name == "documents":
            continue
        # The user's names refer to the record as it was written.
        value = reach(record if name in fields else raw, source)
        try:
            value = _convert(value, source, reading.layout)
        except SampleError as error:
            problems += [Problem(source + p.field, p.message) for p in error.problems]
            continue
        if value is not None and value is not ABSENT:
            canonical[name] = value
    if canonical.get("answers") is not None:
        gold_texts = layouts.read_gold_texts(canonical.pop("answers"))
        canonical |= {} if gold_texts is None else {"answers": gold_texts}
    # 5. Empty cells are left out.
    response_names = (sources.get("response", "response"), *reading.names_of("response"))
    _drop_missing(canonical, reading, [reach(raw, name) for name in response_names])
    # 6. The passages of all fields for them are read.
    document_names = split_names(sources.get("documents", "documents"))
    whole = record if "documents" in fields else raw
    values = {name: reach(whole, name) for name in document_names}
    # A question without documents of its own may be a whole prompt, which shows passages.
    question = canonical.get("question")
    if isinstance(question, str) and not _names_documents(raw, sources, reading):
        parts = split_prompt(question)
        if parts.question and parts.passages:
            canonical["question"], values = parts.question, {"documents": parts.passages}
    documents, document_problems = _read_all_documents(values, names, reading.layout)
    problems += document_problems
    canonical.pop("documents", None)
    if documents is not None:
        canonical["documents"] = documents
    elif canonical.get("response") is not None and _names_documents(raw, sources, reading):
        # An answer beside an empty field for passages was written without passages.
        canonical["documents"] = []
    # Several fields have no name in common.
    if len(document_names) > 1:
        del sources["documents"]
    return RecognisedRecord(
        canonical,
        tuple(problems),
        reading.layout,
        sources,
        raw,
        names,
        record,
        fields,
        dict(reading.candidates),
    )


def _convert(value: Any, source: str, layout: Layout) -> Any:
    """Return the canonical value of a source; the layout's converter wins over the general one."""
    convert = layout.converters.get(source) or layouts.CONVERTERS.get(source)
    return convert(value) if convert and value is not ABSENT else value


def _drop_missing(
    canonical: dict[str, Any], reading: _KeyReading, responses: Iterable[Any]
) -> None:
    """Remove fields whose value stands for an empty cell; such a response is a blank answer.

    Args:
        canonical: the record in canonical fields, which is changed.
        reading: how it was read.
        responses: the values under all names of the response.
    """
    for name in reading.known_names & canonical.keys():
        is_blank = canonical[name] == "" and name not in ("question", "response")
        if is_blank or is_missing(canonical[name]):
            del canonical[name]
    is_blank = any(value is not None and is_missing(value) for value in responses)
    if is_blank and "response" not in canonical:
        canonical["response"] = ""


def _read_all_documents(
    values: Mapping[str, Any], names: Mapping[str, str], layout: Layout
) -> tuple[Any, Sequence[Problem]]:
    """Return the documents in fields, added up, and the problems of reading them.

    Args:
        values: by name of a field, its value.
        names: the original names of fields.
        layout: the layout of the record.
    """
    documents: Any = None
    problems: list[Problem] = []
    for name, value in values.items():
        try:
            converted = _convert(value, name, layout)
            present = None if converted is ABSENT or is_missing(converted) else converted
            result = read_documents(present, layout.documents)
        except SampleError as error:
            problems += [
                Problem(names.get(name, name) + p.field, p.message) for p in error.problems
            ]
            continue
        if isinstance(result, list):
            documents = [*(documents or ()), *result]
        elif result is not None:
            return result, problems  # no list: the parser of samples reports it
    return documents, problems


def _original_path(path: str, names: Mapping[str, str]) -> str:
    root, dot, path_behind = path.partition(".")
    return names.get(root, root) + dot + path_behind


def _names_documents(
    raw: Mapping[str, Any], sources: Mapping[str, str], reading: _KeyReading
) -> bool:
    candidates = reading.names_of("documents")
    return not AMBIGUOUS.issuperset(candidates) or "documents" in raw or "documents" in sources


def list_names(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a record's first fields; those inside objects are written with dots."""
    result: list[str] = []
    for name, value in record.items():
        inside = value if isinstance(value, Mapping) else {}
        result += [f"{name}.{key}" for key in inside] or [name]
    return tuple(map(str, result[:_MAX_NAMES]))


def split_systems(
    record: Mapping[str, Any], fields: Mapping[str, str]
) -> Mapping[str, Mapping[str, Any]]:
    """Return, by name of a system, a flat record for each system's answer in a record.

    TrustScore's file has one record for each question. In it, under each system's name, is an
    object with the system's answer (``pred``) and a label (``human_eval``); all other keys belong
    to the question. An id is computed from these, so that it does not depend on the answers. The
    result is empty where the record has no such object, or the user names a field in one.
    """
    inside = {path.partition(".")[0] for path in fields.values() if "." in path}
    systems = {
        name: value
        for name, value in record.items()
        if isinstance(value, Mapping) and {"pred", "human_eval"} <= set(value)
    }
    if not inside.isdisjoint(systems):
        return {}
    # Fields of the question, which all systems share.
    common = {name: value for name, value in record.items() if name not in systems}
    known_as = reach(record, fields.get("id", "id"))
    if known_as in (ABSENT, None):
        known_as = compute_content_id(common)
    return {
        name: {**common, **value, "id": f"{known_as}-{name}", "model": name}
        for name, value in systems.items()
    }


def reach(record: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path of keys joined by dots, or ``ABSENT`` if there is none.

    Keys may have dots of their own, as names of models do (``references.gpt-4.1``).
    """
    if path in record:
        return record[path]
    for dot in (place for place, sign in enumerate(path) if sign == "."):
        inside = record.get(path[:dot])
        if isinstance(inside, Mapping):
            value = reach(inside, path[dot + 1 :])
            if value is not ABSENT:
                return value
    return ABSENT


Record = Mapping[str, Any]

_NO_STATEMENT = frozenset({"", "none of the above", "i don't know"})


class _PublishedSet(NamedTuple):
    """A published data set whose records have several answers."""

    keys: frozenset[str]
    """Keys that identify a record; all must be present."""
    flatten: Callable[[Record], Sequence[Record]]
    """Returns a flat record for each answer."""


def is_published_set(keys: Collection[str]) -> bool:
    """Whether a record with these keys may belong to a known data set."""
    return any(shape.keys.issubset(keys) for shape in _PUBLISHED_SETS)


def flatten_published(record: Record, fields: Mapping[str, str]) -> Sequence[Record]:
    """Return the flat records of a record of a known data set; empty for any other record.

    A record with a response of its own, or under the user's name for it, keeps only this answer.
    Where there are several answers, the id of the record is followed by the kind of the answer, so
    a reader must not take the id from another field.

    Args:
        record: the record.
        fields: the user's names by canonical field. A data set is not recognised if the user names
            one of its fields.
    """
    fields_of_user = {path.partition(".")[0] for name, path in fields.items() if name != "response"}
    for shape in _PUBLISHED_SETS:
        if shape.keys <= record.keys() and shape.keys.isdisjoint(fields_of_user):
            result = shape.flatten(record)
            if len(result) > 1 and (record.get("response") is not None or "response" in fields):
                return [_keep_own_response(record, result[0], fields)]
            return _add_kind_to_ids(record, result, fields) if len(result) > 1 else result
    return ()


def _keep_own_response(record: Record, flat: Record, fields: Mapping[str, str]) -> Record:
    response_field = fields.get("response", "response").partition(".")[0]
    own_keys = (key for key in ("label", "kind", "response", response_field) if key in record)
    return _drop_fields(flat, "response", "label", "kind") | {key: record[key] for key in own_keys}


def _add_kind_to_ids(
    record: Record, records: Sequence[Record], fields: Mapping[str, str]
) -> Sequence[Record]:
    known_as = reach(record, fields.get("id", "id"))
    # Without an id the parser computes one from the content.
    if known_as is ABSENT or known_as is None:
        return records
    sound = isinstance(known_as, str | int) and not isinstance(known_as, bool)
    if not sound or not str(known_as).strip():
        # The parser of samples reports what is wrong with the id.
        return [{**flat_record, "id": known_as} for flat_record in records]
    return [{**flat_record, "id": f"{known_as}-{flat_record['kind']}"} for flat_record in records]


def _drop_fields(record: Record, *names: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in names}


def _flatten_answers(
    record: Record, question: str, gold: str, passage: str, kinds: Mapping[str, tuple[str, int]]
) -> Sequence[Record]:
    """Return a record for each of several answers.

    Args:
        record: the record.
        question: the field of the question.
        gold: the field of the right answer.
        passage: the field of the passage.
        kinds: by kind of answer, its field and its label (1 right, 0 wrong).
    """
    wrong = [record[field] for field, label in kinds.values() if not label]
    fields = (question, gold, passage, *(field for field, _ in kinds.values()))
    common = _drop_fields(record, *fields) | {
        "question": record[question],
        "answers": [record[gold]],
        "incorrect_answers": [answer for n, answer in enumerate(wrong) if answer not in wrong[:n]],
        "documents": [record[passage]],
    }
    return [
        {**common, "response": record[field], "label": label, "kind": kind}
        for kind, (field, label) in kinds.items()
    ]


def _flatten_haltt4llm(record: Record) -> Sequence[Record]:
    """Return the record of a question with choices; the assessed model will answer it."""
    choices = record["answers"]
    # Gold answers of other data sets may have the same keys; any deviation means another set.
    if not isinstance(choices, list) or not choices:
        return ()
    for choice in choices:
        if not isinstance(choice, Mapping) or "text" not in choice:
            return ()
        if not isinstance(choice.get("correct"), bool):
            return ()
    texts = [choice["text"] for choice in choices]
    marked = [place for place, choice in enumerate(choices) if choice["correct"]]
    right = [texts[place] for place in marked if str(texts[place]).strip()]
    wrong = [choice["text"] for choice in choices if not choice["correct"]]
    flat = _drop_fields(record, "answers") | {
        "answers": [right] if right else [],
        "incorrect_answers": [
            text for text in wrong if str(text).strip().casefold() not in _NO_STATEMENT
        ],
        "choices": texts,
    }
    return [flat | {"right_choice": marked[0]} if len(marked) == 1 else flat]


def _flatten_squad(record: Record) -> Sequence[Record]:
    """Return a record for each question of an article."""
    result = []
    for paragraph in record["paragraphs"] if isinstance(record["paragraphs"], list) else ():
        questions = paragraph.get("qas") if isinstance(paragraph, Mapping) else None
        for question in questions if isinstance(questions, list) else ():
            if isinstance(question, Mapping):
                passage = {"title": record["title"], "text": paragraph.get("context")}
                result.append({**question, "documents": [passage]})
    return result


_PUBLISHED_SETS = (
    _PublishedSet(frozenset({"title", "paragraphs"}), _flatten_squad),
    # CHALE: without hallucination, with half of it, and with nothing else.
    _PublishedSet(
        frozenset({"Question", "Short_ans", "Long_ans", "non-halu", "mid-halu", "halu"}),
        partial(
            _flatten_answers,
            question="Question",
            gold="Short_ans",
            passage="Long_ans",
            kinds={
                "non-halu": ("non-halu", 1),
                "mid-halu": ("mid-halu", 0),
                "halu": ("halu", 0),
            },
        ),
    ),
    # HaluEval: the right answer and the hallucinated one, with the knowledge as a passage.
    _PublishedSet(
        frozenset({"question", "right_answer", "knowledge", "hallucinated_answer"}),
        partial(
            _flatten_answers,
            question="question",
            gold="right_answer",
            passage="knowledge",
            kinds={"right": ("right_answer", 1), "hallucinated": ("hallucinated_answer", 0)},
        ),
    ),
    _PublishedSet(frozenset({"question", "answers"}), _flatten_haltt4llm),
)

"""A record in canonical fields, whatever names its author used.

A field's canonical name has precedence over another tool's name for it, and a name given by the
user has precedence over both. Nested records are first unfolded
(:mod:`trustassay.data.conversations`), and other spellings respelled
(:mod:`trustassay.data.layouts`).

Records of CHALE (Wei et al. 2024), HaluEval (Li et al. 2023) and haltt4llm are flattened.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from trustassay.data import layouts
from trustassay.data.conversations import CHATS, may_be_nested, unfolded
from trustassay.data.layouts import AMBIGUOUS, LAYOUTS, SPELLINGS, Layout
from trustassay.data.messages import ending
from trustassay.data.passages import NO_LIST, document_rows, is_prose, read_documents
from trustassay.data.records import Raw, Untold, is_nan
from trustassay.data.values import decode_json, parse_value
from trustassay.sample import CANONICAL_FIELDS, Problem, SampleError, content_id

ABSENT: Final = object()
"""What :func:`reach` returns where a record has no such field; ``None`` is a value."""
_OPEN = ("[", "{")
_ANSWERS = frozenset({"answer", "completion", "prompt"})
"""Texts that no other key beside them makes a question or a response."""
_LISTS = frozenset(layouts.STRUCTURED_FIELDS) - {"references"}
"""Fields of texts: an object that is written in one is a text."""
_MOST_NAMES = 40
_WHOLE = ("question", "response", "documents")
"""What a record has that most metrics can score."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """A record in canonical fields, and the way back to the names its author used.

    original: as it was read; raw: unfolded and respelled, and ``names`` the original names of its
    keys that have others there.
    """

    record: Mapping[str, Any]
    problems: tuple[Problem, ...]
    layout: Layout
    sources: Mapping[str, str]
    raw: Mapping[str, Any]
    names: Mapping[str, str]
    original: Mapping[str, Any]

    def in_own_words(self, problem: Problem) -> Problem:
        """Return ``problem`` with its field as the author of the record named it."""
        match = re.match(r"\w+", problem.field)
        root = match.group() if match else ""
        if root not in CANONICAL_FIELDS:
            return problem
        rest = problem.field[len(root) :]
        source = self._name_of(root)
        unread = ""
        if source in AMBIGUOUS and root not in self.sources:
            unread = f"{self.names.get(source, source)} holds a link or a title"
        elif root == "response" and self._chat:
            unread = f"{self._chat} ends with a {ending(reach(self.original, self._chat))}"
        if unread:
            return Problem(root, problem.message.replace("is missing (", f"is missing ({unread}; "))
        if root == "documents":
            rest = self._document_path(source, rest)
        elif source == "qa_pairs":
            rest = re.sub(r"^\[\d+\]", r"\g<0>.short_answers", rest)
        return Problem(self.names.get(source, source) + rest, problem.message)

    def untold(self, problems: Iterable[Problem]) -> Untold | None:
        """Return what these problems miss because no name in the record is known for it, and which
        other fields may be named beside it.
        """
        missing = [one.field for one in problems if one.message.startswith("is missing")]
        asked = [name for name in missing if self._has_no(name)]
        if not asked:
            return None
        names = names_of(self.original)
        own = {name for name in self.record if name in CANONICAL_FIELDS and name in self.raw}
        taken = [self.names.get(name, name) for name in own | set(self.sources.values())]
        values = {name: reach(self.original, name) for name in names}
        taken += [name for name, value in values.items() if not _may_be_text(name, value)]
        result = {
            field: name
            for field, name in layouts.guesses(names, tuple(taken)).items()
            if field == "documents" or isinstance(values[name], str)
        }
        more = [name for name in result if self._has_no(name)]
        fields = {name: result.get(name, "") for name in dict.fromkeys(asked + more)}
        blank = [name for name in _WHOLE if name != "documents" and self.record.get(name) is None]
        whole = all(
            result.get(name) or not (name in blank or self._has_no(name)) for name in _WHOLE
        )
        return Untold(names, fields, len(asked) == len(missing) and all(fields.values()) and whole)

    @property
    def _chat(self) -> str:
        """The field of which the question was read as the last of a chat; empty if none is."""
        name = self.names.get("question", "")
        return name if name in CHATS else ""

    def _has_no(self, canonical: str) -> bool:
        if canonical == "response" and self._chat:
            return False
        known = (canonical, *self.layout.fields.get(canonical, ()), *SPELLINGS.get(canonical, ()))
        return (
            canonical in CANONICAL_FIELDS
            and canonical not in self.sources
            and not any(name in self.raw for name in known if name not in AMBIGUOUS)
        )

    def _name_of(self, canonical: str) -> str:
        if canonical in self.sources:
            return self.sources[canonical]
        if self.raw.get(canonical) is not None:
            return canonical
        own = self.layout.fields.get(canonical, ())
        there = (name for name in (*own, *SPELLINGS.get(canonical, ())) if name in self.raw)
        return next(there, own[0] if own else canonical)

    def _document_path(self, source: str, rest: str) -> str:
        match = re.fullmatch(r"(\[(\d+)\]\.)(\w+)(.*)", rest)
        theirs = match and self.layout.documents.get(match[3])
        if not match or not theirs:
            return rest
        rows = document_rows(reach(self.raw, source))
        own = rows[int(match[2])]
        used_here = isinstance(own, Mapping) and own.get(match[3]) is not None
        used_at_all = any(isinstance(row, Mapping) and theirs in row for row in rows)
        return rest if used_here or not used_at_all else f"{match[1]}{theirs}{match[4]}"


def layout_of(record: Mapping[str, Any], fields: Mapping[str, str]) -> Layout:
    """Return the layout that the keys of ``record`` indicate, by default the canonical one."""
    asks = "question" in record or "question" in fields
    told = [one for one in LAYOUTS if any(keys.issubset(record) for keys in one.telling)]
    if not told and not asks:
        told = [one for one in LAYOUTS if not one.telling_without_question.isdisjoint(record)]
    return told[0] if told else layouts.CANONICAL


def _sources(
    record: Mapping[str, Any],
    layout: Layout,
    fields: Mapping[str, str],
    candidates: Iterable[tuple[str, tuple[str, ...]]],
) -> dict[str, str]:
    """Return where each canonical field that has another name in ``record`` comes from; those of
    the user, ``fields``, always count."""
    sources = dict(fields)
    for canonical, names in candidates:
        if canonical in fields or _given(record, canonical):
            continue
        if canonical == "claims" and "claims" not in layout.fields and _given(record, "answers"):
            continue  # gold answers are there; a reference beside them stays what it is
        for theirs in names:
            if _given(record, theirs) and (theirs not in AMBIGUOUS or _is_text(record[theirs])):
                sources[canonical] = theirs
                break
    answered = "response" in sources or _given(record, "response")
    if sources.get("documents") in AMBIGUOUS and not answered:
        sources |= {"response": "answer"} if _given(record, "answer") else {}
    return sources


def _candidates(keys: tuple[str, ...], layout: Layout) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the names among ``keys`` of each canonical field, the preferred one first."""
    result = []
    for canonical in dict.fromkeys((*layout.fields, *SPELLINGS)):
        names = (*layout.fields.get(canonical, ()), *SPELLINGS.get(canonical, ()))
        if there := tuple(name for name in dict.fromkeys(names) if name in keys):
            result.append((canonical, there))
    return tuple(result)


def _is_text(value: Any) -> bool:
    """Return whether a value holds passages, and no link or title."""
    return is_prose(decode_json(value))


def _given(record: Mapping[str, Any], name: str) -> bool:
    value = record.get(name)
    return not (value is None or is_nan(value))


class _Reading(NamedTuple):
    """How records of the same keys are read: what can be known without their values."""

    layout: Layout
    candidates: tuple[tuple[str, tuple[str, ...]], ...]
    names: Mapping[str, str]
    nested: bool


@lru_cache(maxsize=1024)
def _reading(keys: tuple[str, ...], fields: tuple[tuple[str, str], ...]) -> _Reading:
    layout = layout_of(dict.fromkeys(keys), dict(fields))
    kept = {name for names in layout.fields.values() for name in names}
    kept |= {path for _, path in fields} | {path.partition(".")[0] for _, path in fields}
    names = layouts.respellings(keys, kept)
    if names:
        old = {theirs: known for known, theirs in names.items()}
        keys = tuple(old.get(key, key) for key in keys)
        layout = layout_of(dict.fromkeys(keys), dict(fields))
    return _Reading(layout, _candidates(keys, layout), names, may_be_nested(keys))


def columns_of(keys: Iterable[str], fields: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Return the columns of a table that may hold each canonical field, the preferred one first."""
    keys = tuple(keys)
    how = _reading(keys, tuple(fields.items()))
    result = {name: (theirs,) for name, theirs in fields.items()}
    for canonical in CANONICAL_FIELDS:
        own = (canonical,) if canonical in keys or canonical in how.names else ()
        names = (*own, *dict(how.candidates).get(canonical, ()))
        if names and canonical not in fields:
            result[canonical] = tuple(how.names.get(name, name) for name in names)
    return result


def tells_question(keys: Iterable[str], fields: Mapping[str, str]) -> bool:
    """Return whether records of these keys may hold a question, by any name."""
    keys = tuple(key for key in keys if key)
    known = columns_of(keys, fields)
    if "question" in known:
        theirs = known["question"][0]
        return theirs in keys or theirs.partition(".")[0] in keys
    return _reading(keys, ()).nested


def with_values(raw: Raw, fields: Mapping[str, str]) -> Raw:
    """Return a record whose lists and objects are read where they are written in texts, as tables
    have to write them. Not in questions and answers: an answer may be ``[1]`` alone; and not in
    passages, which :mod:`trustassay.data.passages` reads.
    """
    record = raw.record
    if not isinstance(record, Mapping):
        return raw
    written = [
        name for name, value in record.items() if isinstance(value, str) and value[:1] in _OPEN
    ]
    if not written:
        return raw
    columns = columns_of(record, fields)
    by_field = {name: field for field, names in columns.items() for name in names}
    values, problems = dict(record), list(raw.problems)
    for name in written:
        field = by_field.get(name, "")
        if field in layouts.TEXT_FIELDS or field == "documents" or name in _ANSWERS:
            continue
        value = parse_value(record[name])
        is_text = field in _LISTS and isinstance(value, Mapping)
        if value is not None and not is_text:
            values[name] = value
        elif (
            field in layouts.STRUCTURED_FIELDS and not is_text and not _is_prose_name(name, fields)
        ):
            problems.append(Problem(name, NO_LIST))
    return raw._replace(record=values, problems=tuple(problems))


def _is_prose_name(name: str, fields: Mapping[str, str]) -> bool:
    known = layouts.normal(name) if name in fields.values() else layouts.known_name(name)
    return not layouts.PROSE_NAMES.isdisjoint((name, known))


def recognise(record: Mapping[str, Any], fields: Mapping[str, str]) -> Recognised:
    """Return ``record`` in canonical fields; fields without a canonical name are not changed."""
    own = tuple(fields.items())
    how = _reading(tuple(record), own)
    raw, names = record, how.names
    if names:
        known = {theirs: name for name, theirs in names.items()}
        raw = {known.get(key, key): value for key, value in record.items()}
    if how.nested and (result := unfolded(raw)):
        raw, paths = result
        names = {**names, **{key: _own_path(path, names) for key, path in paths.items()}}
        how = _reading(tuple(raw), own)
    sources = _sources(raw, how.layout, fields, how.candidates)
    moved = set(sources.values())
    canonical = {k: v for k, v in raw.items() if k not in moved and k not in sources}
    problems = []
    for name, theirs in sources.items():
        value = reach(record if name in fields else raw, theirs)
        convert = how.layout.converters.get(theirs) or layouts.CONVERTERS.get(theirs)
        if convert and value is not ABSENT:
            try:
                value = convert(value)
            except SampleError as error:
                problems += [Problem(theirs + p.field, p.message) for p in error.problems]
                continue
        if value is not None and value is not ABSENT:
            canonical[name] = value
    given = canonical.pop("documents", None)
    try:
        documents = read_documents(given, how.layout.documents)
        if documents is not None:
            canonical["documents"] = documents
        elif canonical.get("response") is not None and _names_documents(raw, sources, how):
            canonical["documents"] = []  # an answer beside a blank field was given without any
    except SampleError as error:
        theirs = sources.get("documents", "documents")
        problems += [Problem(names.get(theirs, theirs), one.message) for one in error.problems]
    return Recognised(canonical, tuple(problems), how.layout, sources, raw, names, record)


def _may_be_text(name: str, value: Any) -> bool:
    """Whether a field may hold a text or passages."""
    if layouts.known_name(name) in AMBIGUOUS:
        return _is_text(value)
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, str) for one in value)
    return isinstance(value, str)


def _own_path(path: str, names: Mapping[str, str]) -> str:
    root, dot, rest = path.partition(".")
    return names.get(root, root) + dot + rest


def _names_documents(raw: Mapping[str, Any], sources: Mapping[str, str], how: _Reading) -> bool:
    known = dict(how.candidates).get("documents", ())
    return not AMBIGUOUS.issuperset(known) or "documents" in raw or "documents" in sources


def names_of(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a record's fields, those inside of objects with dots; the first ones."""
    result: list[str] = []
    for name, value in record.items():
        inside = value if isinstance(value, Mapping) else {}
        result += [f"{name}.{key}" for key in inside] or [name]
    return tuple(map(str, result[:_MOST_NAMES]))


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


Record = Mapping[str, Any]

_NO_STATEMENT = frozenset({"", "none of the above", "i don't know"})


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
            result = shape.flatten(record)
            if len(result) > 1 and (record.get("response") is not None or "response" in fields):
                return [_with_own_response(record, result[0], fields)]
            return _known_by_kind(record, result, fields) if len(result) > 1 else result
    return ()


def _with_own_response(record: Record, flat: Record, fields: Mapping[str, str]) -> Record:
    named = fields.get("response", "response").partition(".")[0]
    own = (key for key in ("label", "kind", "response", named) if key in record)
    return _rest(flat, "response", "label", "kind") | {key: record[key] for key in own}


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


def _haltt4llm(record: Record) -> Sequence[Record]:
    """One question with its choices; it is answered by whom is assessed."""
    choices = record["answers"]
    if not isinstance(choices, list) or not choices:
        return ()
    for one in choices:
        if not isinstance(one, Mapping) or "text" not in one:
            return ()
        if not isinstance(one.get("correct"), bool):
            return ()
    texts = [one["text"] for one in choices]
    marked = [place for place, one in enumerate(choices) if one["correct"]]
    right = [texts[place] for place in marked if str(texts[place]).strip()]
    wrong = [one["text"] for one in choices if not one["correct"]]
    flat = _rest(record, "answers") | {
        "answers": [right] if right else [],
        "incorrect_answers": [
            text for text in wrong if str(text).strip().casefold() not in _NO_STATEMENT
        ],
        "choices": texts,
    }
    return [flat | {"right_choice": marked[0]} if len(marked) == 1 else flat]


def _shape(row: Mapping[str, Any]) -> _Shape:
    fields = (field for field, _ in row["kinds"].values())
    keys = frozenset((row["question"], row["gold"], row["passage"], *fields))
    return _Shape(keys, partial(_answers, **row))


_SHAPES = (
    *map(_shape, layouts.NAMES["answers"]),
    _Shape(frozenset({"question", "answers"}), _haltt4llm),
)

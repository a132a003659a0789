"""What a value holds of passages: a result of a tool, ``documents`` of a record, a prompt.

1. A text that is JSON, JSON Lines or a printed Python value is read as that value.
2. In an object the list of passages is looked for by its name, also some objects deep, and in
   columns (:func:`_lists_in`).
3. Each element of a list is one passage: a text, or an object with a text, and maybe a title and an
   id (:class:`_JsonObject`). Scores and addresses are never text. What a tool returned is data, and
   stays one passage, where no object of the list has a text that reads as prose.
4. Any other text is split where it holds several passages (:mod:`~trustassay.data.passage_texts`).
   An element of a list is never split, because citations count its place.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from trustassay.data.layouts import NAMES, normal
from trustassay.data.passage_texts import Passage, context_in, split_text, split_title
from trustassay.data.records import is_nan
from trustassay.data.values import parse_value
from trustassay.sample import Problem, SampleError, rows_of_columns

DOCUMENTS = frozenset(NAMES["inside"]["documents"])
"""Names of passages inside of objects, in normal form."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    kind: tuple(words.split()) for kind, words in NAMES["passages"].items()
}
_TEXTS, _TITLES = (
    frozenset((*_NAMES[kind], *_NAMES[f"weak_{kind}"])) for kind in ("texts", "titles")
)
_KNOWN = frozenset(name for kind, names in _NAMES.items() if kind != "lists" for name in names)
_LISTS_OF_OTHERS = frozenset(_NAMES["lists"]) - {*_NAMES["texts"], "snippets"}
"""Lists of other passages than the object itself: an answer may have its sources beside it."""
_LISTS_OF_PASSAGES = DOCUMENTS | {"results", "hits", "matches"}
"""Names of lists that hold passages even if they are empty, or texts that are no sentences."""
_COLUMNS = {
    "title": ("titles", "title"),
    "metadata": ("metadatas", "metadata"),
    "id": ("ids", "id"),
}
"""Lists beside a list of texts, with one item for each text, as Chroma returns them."""
_FIELDS = ("id", "title", "text", "excerpt", "supports")
"""Canonical fields of a document."""
_DEEPEST = 6
"""Objects and lists around a list of passages; Weaviate has three."""
_DEEPEST_TEXT = 3
"""Objects around the text of a passage; Vertex AI has two."""
_MEDIA = re.compile(r"(?:input_|output_)?(?:image|audio|video|file)(?:_url)?")
"""Types of the parts of a message that have no text."""
NO_LIST = 'is not a list; write one in a cell as ["one", "two"]'
"""What is wrong with a text that begins as a list."""
_MEANT_AS_LIST = re.compile(r"""\[\s*["'{]|\{\s*["']""")
"""How a list of passages begins; a passage may begin with ``[1]``."""
_SPACE = re.compile(r"\s*")

_normal = lru_cache(maxsize=4096)(normal)


def read_passages(value: Any) -> list[Passage]:
    """Return the passages in what a tool returned: a text, a list or an object.

    Data that are no list of passages are one passage, as JSON. Blank passages are left out.
    """
    passages = _passages_in(value, _DEEPEST)
    passages = [_as_json(value)] if passages is None else passages
    return [one for one in passages if text_of(one).strip()]


def read_documents(value: Any, names: Mapping[str, str] | None = None) -> Any:
    """Return the documents of a record, ``None`` for blank ones; in a list each keeps its place.

    Args:
        value: what the record has as its passages. A value that holds none is returned as it is:
            the parser of samples says what is wrong with it.
        names: the layout's names of fields of a document, by the canonical ones.

    Raises:
        SampleError: a text begins as a list and is none.
    """
    rows = document_rows(value)
    if not isinstance(rows, list | tuple):
        return value
    texts = ["" if one is None or is_nan(one) else one for one in rows]
    blank = all(isinstance(one, str) and not one.strip() for one in texts)
    return None if texts and blank else [_document(one, names or {}) for one in texts]


def document_rows(value: Any) -> Any:
    """Return the documents of a record as they are written; raises as :func:`read_documents`."""
    rows = value
    if isinstance(value, str):
        values = _values_in(value)
        if values is None and _MEANT_AS_LIST.match(value):
            raise SampleError([Problem("", NO_LIST)])
        rows = split_text(value) if values is None else _declared_rows(values, _DEEPEST)
        rows = [value] if rows is None else rows
    elif isinstance(value, Mapping):
        rows = _declared_rows(value, _DEEPEST)
    return _unwrapped(rows) if isinstance(rows, list | tuple) else value


def read_prompt(text: str) -> list[Passage]:
    """Return the passages that an instruction shows: in tags, below a heading that names them, or
    from a line on that begins with ``[1]``."""
    return [passage for part in context_in(text) for passage in read_passages(part)]


def text_of(passage: Passage) -> str:
    """Return the text of a passage."""
    return passage if isinstance(passage, str) else str(passage["text"])


def is_prose(value: Any) -> bool:
    """Return whether a value is the text of passages, and no link, file name or title."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(is_prose, value))
    if not isinstance(value, str):
        return False
    text, words = value.strip(), len(value.split())
    long = words >= 16 or text.endswith(("。", "！", "？"))
    return long or (words > 2 and text.endswith((".", "!", "?")))


# ---------------------------------------------------------------------------- lists and objects


def _values_in(text: str) -> Any:
    """Return the list or object that a text is; of JSON Lines a list; ``None`` of other texts."""
    text = text.strip()
    if (value := parse_value(text)) is not None or not text.startswith(("[", "{")):
        return value
    decoder, values, place = json.JSONDecoder(), list[Any](), 0
    with suppress(ValueError, RecursionError):
        while place < len(text):
            value, place = decoder.raw_decode(text, place)
            values.append(value)
            place = _SPACE.match(text, place).end()  # type: ignore[union-attr] # matches nothing
    return values if place == len(text) else None


def _passages_in(value: Any, left: int) -> list[Passage] | None:
    """Return the passages in a value, ``None`` where it is data; ``left`` is how deep to look."""
    if isinstance(value, str):
        values = _values_in(value) if left else None
        if values is None:
            return split_text(value, left)
        inside = _passages_in(values, left - 1)
        return [value] if inside is None else inside
    if isinstance(value, list | tuple):
        return _passages_of_list(_unwrapped(value), left)
    return _passages_of_object(_JsonObject(value), left) if isinstance(value, Mapping) else None


def _passages_of_object(one: "_JsonObject", left: int) -> list[Passage] | None:
    """Return the passages of an object that is no element of a list."""
    passage = one.passage(one.any_text) if one.is_one and one.is_known else None
    if passage is not None:
        return [passage] if "title" in passage else _passages_in(passage["text"], left)
    inside = (_passages_in(inner, left - 1) for inner in (_lists_in(one) if left else ()))
    return next((passages for passages in inside if passages is not None), None)


def _passages_of_list(rows: Sequence[Any], left: int) -> list[Passage] | None:
    """Return the passages of a list; what has no text beside ones that have stays as JSON."""
    if not all(one is None or isinstance(one, str | list | tuple | Mapping) for one in rows):
        return None  # numbers: these are data
    rows = [_JsonObject(one) if isinstance(one, Mapping) else one for one in rows]
    prose = any(is_prose(one.text) for one in rows if isinstance(one, _JsonObject))
    parts = [_passages_of(one, left, prose=prose) for one in rows]
    if rows and not any(parts):
        return None
    return [
        passage
        for one, passages in zip(rows, parts, strict=True)
        for passage in ([_as_json(one)] if passages is None else passages)
    ]


def _passages_of(one: Any, left: int, *, prose: bool) -> list[Passage] | None:
    """Return the passages of an element of a list: mostly one; ``None`` where it is data.

    ``prose``: an object of the list has a text that reads so, whatever else the objects have.
    """
    if one is None:
        return []
    if isinstance(one, list | tuple):
        # LangChain returns pairs of a document and its score.
        with_score = len(one) == 2 and isinstance(one[1], float) and not isinstance(one[0], float)
        rows = one[:1] if with_score else _unwrapped(one)
        return _passages_of_list(rows, left - 1) if left else None
    if isinstance(one, str):
        passage: Passage | None = split_title(one)
    else:
        passage = one.passage(one.any_text if one.is_known else one.text if prose else "")
        if one.is_media or (passage is None and one.is_known and one.is_blank):
            return []
    if passage is None:
        return _passages_of_object(one, left)
    # A part of a message, or of a result by MCP, may have a passage or a list of them as JSON.
    values = None if "title" in passage or not left else _values_in(text_of(passage))
    inside = None if values is None else _passages_in(values, left - 1)
    return [passage] if inside is None else inside


def _declared_rows(value: Any, left: int) -> Sequence[Any] | None:
    """Return the elements that a record's documents have, ``None`` where no list is found."""
    if isinstance(value, list | tuple):
        return value
    if not isinstance(value, Mapping) or not left:
        return None
    one = _JsonObject(value)
    is_passage = one.is_one and (one.text or one.is_known)
    for inner in () if is_passage else _lists_in(one):
        rows = split_text(inner) if isinstance(inner, str) else _declared_rows(inner, left - 1)
        if rows is not None and all(isinstance(row, str | Mapping | None) for row in rows):
            return rows
    return [value] if one.any_text else None


def _lists_in(one: "_JsonObject") -> Iterator[Any]:
    """Yield what may hold the passages of an object, the likeliest first: its columns, what has a
    known name, and its only list."""
    if any(_is_texts(one.fields.get(name)) for name in _NAMES["texts"]):
        rows = rows_of_columns(one.value)
        yield from [rows] if rows is not one.value else ()
    for name in _NAMES["lists"]:
        inner = one.fields.get(name)
        if isinstance(inner, list | tuple):
            rows = _with_columns(_unwrapped(inner), one.fields)
            if name in _LISTS_OF_PASSAGES or not _is_texts(rows) or any(map(is_prose, rows)):
                yield rows
        elif isinstance(inner, Mapping) or (isinstance(inner, str) and name in _LISTS_OF_PASSAGES):
            yield inner
    lists = [inner for inner in one.fields.values() if isinstance(inner, list | Mapping)]
    if len(lists) == 1 and isinstance(lists[0], list) and lists[0]:
        objects = [_JsonObject(row) for row in lists[0] if isinstance(row, Mapping)]
        known = len(objects) == len(lists[0]) and all(row.is_known for row in objects)
        yield from lists if known or is_prose(lists[0]) else ()


def _with_columns(rows: Sequence[Any], fields: Mapping[str, Any]) -> Sequence[Any]:
    """Return texts as objects where lists beside them have their titles, metadata or ids."""
    columns: dict[str, Sequence[Any]] = {"text": rows}
    for field, names in _COLUMNS.items():
        lists = (fields[name] for name in names if isinstance(fields.get(name), list))
        column = next(map(_unwrapped, lists), ())
        columns |= {field: column} if len(column) == len(rows) else {}
    if len(columns) == 1 or not _is_texts(rows):
        return rows
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _unwrapped(rows: Sequence[Any]) -> Sequence[Any]:
    """Return a list that stands alone in another, as a vector store returns that of one query."""
    alone = len(rows) == 1 and isinstance(rows[0], list | tuple)
    return rows[0] if alone else rows


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _as_json(value: Any) -> str:
    value = value.value if isinstance(value, _JsonObject) else value
    return json.dumps(value, ensure_ascii=False, default=str)


# ---------------------------------------------------------------------------------- one passage


class _JsonObject:
    """An object that may be a passage, or hold some."""

    def __init__(self, value: Mapping[Any, Any], left: int = _DEEPEST_TEXT) -> None:
        self.value, self._left = value, left
        self.fields = {_normal(str(name)): value[name] for name in reversed(list(value))}
        """By their names in normal form; of two with one name the first."""

    @cached_property
    def _inside(self) -> dict[str, "_JsonObject"]:
        """The objects in which the text may be, or what stands beside it."""
        names = [name for name in _NAMES["wrappers"] if name in self.fields and self._left]
        inner = {name: self.fields[name] for name in names}
        return {
            k: _JsonObject(one, self._left - 1)
            for k, one in inner.items()
            if isinstance(one, Mapping)
        }

    @cached_property
    def is_known(self) -> bool:
        """Whether it has nothing but a passage: then no data get lost with the rest."""
        inner = (one for name, one in self._inside.items() if not name.startswith("meta"))
        lists = (self.fields[name] for name in _LISTS_OF_OTHERS & self.fields.keys())
        return (
            self.fields.keys() <= _KNOWN
            and all(one.is_known for one in inner)
            and all(_is_texts(one) for one in lists if isinstance(one, list | tuple))
        )

    @property
    def is_one(self) -> bool:
        """Whether it has a text of its own, or a title beside the parts of a text."""
        names = (_TEXTS | _TITLES) & self.fields.keys()
        return any(isinstance(self.fields[name], str) for name in names) and bool(self.any_text)

    @property
    def is_blank(self) -> bool:
        """Whether it has a text that is empty."""
        texts = (self.fields[name] for name in _TEXTS & self.fields.keys())
        return any(isinstance(text, str) and not text.strip() for text in texts)

    @property
    def is_media(self) -> bool:
        """Whether it is a part of a message that has no text, as a picture."""
        return bool(_MEDIA.fullmatch(str(self.fields.get("type"))))

    @cached_property
    def text(self) -> str:
        """Its text by a name that says so; empty without one."""
        return self._find("texts")

    @cached_property
    def any_text(self) -> str:
        """Its text by any name that may say so."""
        return self.text or self._find("weak_texts")

    @property
    def title(self) -> str:
        """Its title, empty without one."""
        return self._find("titles") or self._find("weak_titles")

    @property
    def id(self) -> str | int | None:
        """Its id, if it has one."""
        values = (self.fields.get(name) for name in _NAMES["ids"])
        inner = (one.id for one in self._inside.values())
        known = (one for one in chain(values, inner) if isinstance(one, str | int))
        return next((one for one in known if not isinstance(one, bool)), None)

    def passage(self, text: str) -> dict[str, Any] | None:
        """Return it as a passage with this text, which is one of its own; ``None`` for a blank."""
        parts = {"title": self.title, "id": self.id, "text": text}
        return {k: v for k, v in parts.items() if v not in ("", None)} if text.strip() else None

    def _find(self, kind: str) -> str:
        """Return the first text that has a name of a kind, its own or one inside."""
        values = (self._as_text(self.fields[k]) for k in _NAMES[kind] if k in self.fields)
        inner = (one._find(kind) for one in self._inside.values())
        return next(filter(None, chain(values, inner)), "")

    def _as_text(self, value: Any) -> str:
        """Return a text, also one in parts, or in an object."""
        if isinstance(value, Mapping) and self._left:
            return _JsonObject(value, self._left - 1).any_text
        if isinstance(value, list | tuple) and self._left:
            return "\n".join(filter(None, map(self._as_text, value)))
        return value if isinstance(value, str) else ""


def _document(one: Any, names: Mapping[str, str]) -> Any:
    """Return a document in canonical fields; a value that has none as it is."""
    if isinstance(one, str):
        return split_title(one)
    if not isinstance(one, Mapping):
        return one
    known = _JsonObject(one)
    document = {name: one[theirs] for name, theirs in names.items() if theirs in one}
    document |= {name: one[name] for name in _FIELDS if one.get(name) is not None}
    if not isinstance(document.get("text"), str) and (known.any_text or known.is_blank):
        document["text"] = known.any_text
    document |= {"title": known.title} if known.title else {}
    if "id" not in document and known.id is not None:
        document["id"] = known.id
    return document

"""Reads passages from a value: a result of a tool, ``documents`` of a record, a prompt.

1. A text that is JSON, JSON Lines or a printed Python value is read as that value.
2. In an object the list of passages is found by its name, also inside some levels of objects, and
   in columns (:func:`_find_lists`).
3. Each element of a list is one passage: a text, or an object with a text and perhaps a title and
   an id (:class:`_JsonObject`). Scores and addresses are never text. A tool's result is data, and
   stays a single passage, where no object of the list has a text that reads as prose.
4. Any other text is split if it contains several passages (:mod:`~trustassay.input.passage_texts`).
   An element of a list is never split, because citations refer to its position.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from trustassay.core.sample import Problem, SampleError, columns_to_rows
from trustassay.input.layouts import NAMES, normalise_name
from trustassay.input.passage_texts import RawPassage, find_contexts, split_passages, split_title
from trustassay.input.records import is_nan
from trustassay.input.values import parse_value

DOCUMENTS = frozenset(NAMES["inside"]["documents"])
"""Names of passages inside objects, in normal form."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    kind: tuple(words.split()) for kind, words in NAMES["passages"].items()
}
_TEXTS, _TITLES = (
    frozenset((*_NAMES[kind], *_NAMES[f"weak_{kind}"])) for kind in ("texts", "titles")
)
_KNOWN = frozenset(name for kind, names in _NAMES.items() if kind != "lists" for name in names)
_LISTS_OF_OTHERS = frozenset(_NAMES["lists"]) - {*_NAMES["texts"], "snippets"}
"""Names of lists beside a text whose elements are other passages: an answer with its sources."""
_LISTS_OF_PASSAGES = DOCUMENTS | {"results", "hits", "matches"}
"""Names of lists that contain passages even if they are empty or their texts are no sentences."""
_COLUMNS = {
    "title": ("titles", "title"),
    "metadata": ("metadatas", "metadata"),
    "id": ("ids", "id"),
}
"""Lists parallel to a list of texts, as Chroma returns them."""
_FIELDS = ("id", "title", "text", "excerpt", "supports")
"""Canonical fields of a document."""
_MAX_LIST_DEPTH = 6
"""Objects and lists around a list of passages; Weaviate has three."""
_MAX_TEXT_DEPTH = 3
"""Objects around the text of a passage; Vertex AI has two."""
_MEDIA = re.compile(r"(?:input_|output_)?(?:image|audio|video|file)(?:_url)?")
"""Types of the parts of a message that have no text."""
NO_LIST = 'is not a list; write one in a cell as ["one", "two"]'
"""The problem of a text that begins as a list and is not one."""
_MEANT_AS_LIST = re.compile(r"""\[\s*["'{]|\{\s*["']""")
"""The beginning of a list of passages; a single passage may begin with ``[1]``."""
_SPACE = re.compile(r"\s*")

_normal = lru_cache(maxsize=4096)(normalise_name)


def read_passages(value: Any) -> list[RawPassage]:
    """Return the passages in the result of a tool: a text, a list or an object.

    Data that are not a list of passages become one passage, as JSON. Blank passages are left out.
    """
    passages = _read_value(value, _MAX_LIST_DEPTH)
    passages = [_as_json(value)] if passages is None else passages
    return [passage for passage in passages if text_of(passage).strip()]


def read_documents(value: Any, names: Mapping[str, str] | None = None) -> Any:
    """Return the documents of a record; ``None`` if all are blank. Positions in a list are kept.

    Args:
        value: the record's passages. A value without any is returned as it is, and the parser of
            samples reports the problem.
        names: the layout's names of a document's fields, by canonical field.

    Raises:
        SampleError: a text begins as a list and is not one.
    """
    rows = read_document_rows(value)
    if not isinstance(rows, list | tuple):
        return value
    # Empty elements stay as blank documents, so that citations keep their numbers.
    texts = ["" if element is None or is_nan(element) else element for element in rows]
    blank = all(isinstance(element, str) and not element.strip() for element in texts)
    return None if texts and blank else [_build_document(element, names or {}) for element in texts]


def read_document_rows(value: Any) -> Any:
    """Return the documents of a record as they are written; raises as :func:`read_documents`."""
    rows = value
    if isinstance(value, str):
        values = _parse_values(value)
        if values is None and _MEANT_AS_LIST.match(value):
            raise SampleError([Problem("", NO_LIST)])
        # A text that is no list is split; data that are no list of passages stay one document.
        rows = (
            split_passages(value)
            if values is None
            else _find_declared_rows(values, _MAX_LIST_DEPTH)
        )
        rows = [value] if rows is None else rows
    elif isinstance(value, Mapping):
        rows = _find_declared_rows(value, _MAX_LIST_DEPTH)
    return _unwrap_single_list(rows) if isinstance(rows, list | tuple) else value


def read_prompt(text: str) -> list[RawPassage]:
    """Return the passages in an instruction: in tags, below a heading such as "Context:", or from a
    line that begins with ``[1]``."""
    return [passage for part in find_contexts(text) for passage in read_passages(part)]


def text_of(passage: RawPassage) -> str:
    """Return the text of a passage."""
    return passage if isinstance(passage, str) else str(passage["text"])


def is_prose(value: Any) -> bool:
    """Whether a value is the text of passages, and not a link, a file name or a title."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(is_prose, value))
    if not isinstance(value, str):
        return False
    text, words = value.strip(), len(value.split())
    # Texts in Chinese and Japanese have no spaces, so they are recognised by their full stops.
    long = words >= 16 or text.endswith(("。", "！", "？"))
    return long or (words > 2 and text.endswith((".", "!", "?")))


# ---------------------------------------------------------------------------- lists and objects


def _parse_values(text: str) -> Any:
    """Return a text as a list or object, JSON Lines as a list; ``None`` for other texts."""
    text = text.strip()
    if (value := parse_value(text)) is not None or not text.startswith(("[", "{")):
        return value
    # JSON Lines, or JSON values one after another without line ends.
    decoder, values, place = json.JSONDecoder(), list[Any](), 0
    with suppress(ValueError, RecursionError):
        while place < len(text):
            value, place = decoder.raw_decode(text, place)
            values.append(value)
            place = _SPACE.match(text, place).end()  # type: ignore[union-attr] # matches nothing
    return values if place == len(text) else None


def _read_value(value: Any, levels_left: int) -> list[RawPassage] | None:
    """Return the passages in a value, or ``None`` where it is data.

    Args:
        value: the value.
        levels_left: levels of objects and lists that may still be searched.
    """
    if isinstance(value, str):
        values = _parse_values(value) if levels_left else None
        if values is None:
            return split_passages(value, levels_left)
        inside = _read_value(values, levels_left - 1)
        return [value] if inside is None else inside
    if isinstance(value, list | tuple):
        return _read_list(_unwrap_single_list(value), levels_left)
    return _read_object(_JsonObject(value), levels_left) if isinstance(value, Mapping) else None


def _read_object(json_object: "_JsonObject", levels_left: int) -> list[RawPassage] | None:
    """Return the passages of an object that is not an element of a list."""
    passage = (
        json_object.passage(json_object.any_text)
        if json_object.is_one and json_object.is_known
        else None
    )
    if passage is not None:
        # A text without a title may itself contain several passages, or JSON.
        return [passage] if "title" in passage else _read_value(passage["text"], levels_left)
    inside = (
        _read_value(inner, levels_left - 1)
        for inner in (_find_lists(json_object) if levels_left else ())
    )
    return next((passages for passages in inside if passages is not None), None)


def _read_list(rows: Sequence[Any], levels_left: int) -> list[RawPassage] | None:
    """Return the passages of a list; elements without a text become JSON if others have one."""
    if not all(
        element is None or isinstance(element, str | list | tuple | Mapping) for element in rows
    ):
        return None  # a list with numbers is data
    rows = [_JsonObject(element) if isinstance(element, Mapping) else element for element in rows]
    prose = any(is_prose(element.text) for element in rows if isinstance(element, _JsonObject))
    parts = [_read_element(element, levels_left, prose=prose) for element in rows]
    if rows and not any(parts):
        return None
    return [
        passage
        for element, passages in zip(rows, parts, strict=True)
        for passage in ([_as_json(element)] if passages is None else passages)
    ]


def _read_element(element: Any, levels_left: int, *, prose: bool) -> list[RawPassage] | None:
    """Return the passages of an element of a list, mostly one; ``None`` where it is data.

    Args:
        element: the element.
        levels_left: levels of objects and lists that may still be searched.
        prose: whether any object of the list has a text that reads as prose. Then the texts of all
            its objects count, whatever else these have.
    """
    if element is None:
        return []
    if isinstance(element, list | tuple):
        # LangChain returns pairs of a document and its score.
        with_score = (
            len(element) == 2
            and isinstance(element[1], float)
            and not isinstance(element[0], float)
        )
        rows = element[:1] if with_score else _unwrap_single_list(element)
        return _read_list(rows, levels_left - 1) if levels_left else None
    if isinstance(element, str):
        passage: RawPassage | None = split_title(element)
    else:
        passage = element.passage(
            element.any_text if element.is_known else element.text if prose else ""
        )
        if element.is_media or (passage is None and element.is_known and element.is_blank):
            return []
    if passage is None:
        return _read_object(element, levels_left)
    # A part of a message, or of a result by MCP, may have a passage or a list of them as JSON.
    values = None if "title" in passage or not levels_left else _parse_values(text_of(passage))
    inside = None if values is None else _read_value(values, levels_left - 1)
    return [passage] if inside is None else inside


def _find_declared_rows(value: Any, levels_left: int) -> Sequence[Any] | None:
    """Return the elements of a record's documents, or ``None`` where there is no list."""
    if isinstance(value, list | tuple):
        return value
    if not isinstance(value, Mapping) or not levels_left:
        return None
    json_object = _JsonObject(value)
    is_passage = json_object.is_one and (json_object.text or json_object.is_known)
    for inner in () if is_passage else _find_lists(json_object):
        rows = (
            split_passages(inner)
            if isinstance(inner, str)
            else _find_declared_rows(inner, levels_left - 1)
        )
        if rows is not None and all(isinstance(row, str | Mapping | None) for row in rows):
            return rows
    return [value] if json_object.any_text else None


def _find_lists(json_object: "_JsonObject") -> Iterator[Any]:
    """Yield values of an object that may contain its passages, the likeliest first.

    These are its columns, fields with a known name, and its only list.
    """
    if any(_is_list_of_texts(json_object.fields.get(name)) for name in _NAMES["texts"]):
        rows = columns_to_rows(json_object.value)
        yield from [rows] if rows is not json_object.value else ()
    # In the order of ``names.toml``: the most certain name first.
    for name in _NAMES["lists"]:
        inner = json_object.fields.get(name)
        if isinstance(inner, list | tuple):
            rows = _join_columns(_unwrap_single_list(inner), json_object.fields)
            if (
                name in _LISTS_OF_PASSAGES
                or not _is_list_of_texts(rows)
                or any(map(is_prose, rows))
            ):
                yield rows
        elif isinstance(inner, Mapping) or (isinstance(inner, str) and name in _LISTS_OF_PASSAGES):
            yield inner
    lists = [inner for inner in json_object.fields.values() if isinstance(inner, list | Mapping)]
    if len(lists) == 1 and isinstance(lists[0], list) and lists[0]:
        objects = [_JsonObject(row) for row in lists[0] if isinstance(row, Mapping)]
        # A list with an unknown name counts only if its elements are clearly passages.
        are_known = len(objects) == len(lists[0]) and all(row.is_known for row in objects)
        yield from lists if are_known or is_prose(lists[0]) else ()


def _join_columns(rows: Sequence[Any], fields: Mapping[str, Any]) -> Sequence[Any]:
    """Return texts as objects if parallel lists have their titles, metadata or ids."""
    columns: dict[str, Sequence[Any]] = {"text": rows}
    for field, names in _COLUMNS.items():
        lists = (fields[name] for name in names if isinstance(fields.get(name), list))
        column = next(map(_unwrap_single_list, lists), ())
        columns |= {field: column} if len(column) == len(rows) else {}
    if len(columns) == 1 or not _is_list_of_texts(rows):
        return rows
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _unwrap_single_list(rows: Sequence[Any]) -> Sequence[Any]:
    """Return the inner list of a list with one list: vector stores return one list per query."""
    is_nested = len(rows) == 1 and isinstance(rows[0], list | tuple)
    return rows[0] if is_nested else rows


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)


def _as_json(value: Any) -> str:
    value = value.value if isinstance(value, _JsonObject) else value
    return json.dumps(value, ensure_ascii=False, default=str)


# ---------------------------------------------------------------------------------- one passage


class _JsonObject:
    """An object that may be a passage, or contain passages."""

    def __init__(self, value: Mapping[Any, Any], levels_left: int = _MAX_TEXT_DEPTH) -> None:
        self.value, self._levels_left = value, levels_left
        self.fields = {_normal(str(name)): value[name] for name in reversed(list(value))}
        """Values by name in normal form; of two names with the same form the first counts."""

    @cached_property
    def _inside(self) -> dict[str, "_JsonObject"]:
        """Inner objects, by name, that may contain the text or its title and id."""
        names = [name for name in _NAMES["wrappers"] if name in self.fields and self._levels_left]
        inner = {name: self.fields[name] for name in names}
        return {
            k: _JsonObject(inner_value, self._levels_left - 1)
            for k, inner_value in inner.items()
            if isinstance(inner_value, Mapping)
        }

    @cached_property
    def is_known(self) -> bool:
        """Whether it has only fields of a passage, so that no data are lost with the others."""
        inner = (
            inner_value for name, inner_value in self._inside.items() if not name.startswith("meta")
        )
        lists = (self.fields[name] for name in _LISTS_OF_OTHERS & self.fields.keys())
        return (
            self.fields.keys() <= _KNOWN
            and all(inner_value.is_known for inner_value in inner)
            and all(
                _is_list_of_texts(inner_value)
                for inner_value in lists
                if isinstance(inner_value, list | tuple)
            )
        )

    @property
    def is_one(self) -> bool:
        """Whether it is a passage itself: it has a text, or a title beside the parts of a text."""
        names = (_TEXTS | _TITLES) & self.fields.keys()
        return any(isinstance(self.fields[name], str) for name in names) and bool(self.any_text)

    @property
    def is_blank(self) -> bool:
        """Whether it has a text that is empty."""
        texts = (self.fields[name] for name in _TEXTS & self.fields.keys())
        return any(isinstance(text, str) and not text.strip() for text in texts)

    @property
    def is_media(self) -> bool:
        """Whether it is a part of a message without a text, such as an image."""
        return bool(_MEDIA.fullmatch(str(self.fields.get("type"))))

    @cached_property
    def text(self) -> str:
        """Its text under a name that clearly means a text; empty without one."""
        return self._find("texts")

    @cached_property
    def any_text(self) -> str:
        """Its text under any name that may mean a text."""
        return self.text or self._find("weak_texts")

    @property
    def title(self) -> str:
        """Its title, empty without one."""
        return self._find("titles") or self._find("weak_titles")

    @property
    def id(self) -> str | int | None:
        """Its id, if it has one."""
        values = (self.fields.get(name) for name in _NAMES["ids"])
        inner = (value.id for value in self._inside.values())
        candidates = (value for value in chain(values, inner) if isinstance(value, str | int))
        # ``True`` is an ``int`` in Python, and no id.
        return next((value for value in candidates if not isinstance(value, bool)), None)

    def passage(self, text: str) -> dict[str, Any] | None:
        """Return it as a passage with one of its texts; ``None`` if that is blank."""
        parts = {"title": self.title, "id": self.id, "text": text}
        return {k: v for k, v in parts.items() if v not in ("", None)} if text.strip() else None

    def _find(self, kind: str) -> str:
        """Return the first text under a name of a kind, its own or that of an inner object."""
        values = (self._as_text(self.fields[k]) for k in _NAMES[kind] if k in self.fields)
        inner = (inner_object._find(kind) for inner_object in self._inside.values())
        return next(filter(None, chain(values, inner)), "")

    def _as_text(self, value: Any) -> str:
        """Return a text, also one in parts or inside an object; empty for other values."""
        if isinstance(value, Mapping) and self._levels_left:
            return _JsonObject(value, self._levels_left - 1).any_text
        if isinstance(value, list | tuple) and self._levels_left:
            return "\n".join(filter(None, map(self._as_text, value)))
        return value if isinstance(value, str) else ""


def _build_document(value: Any, names: Mapping[str, str]) -> Any:
    """Return a document in canonical fields; other values are returned as they are."""
    if isinstance(value, str):
        return split_title(value)
    if not isinstance(value, Mapping):
        return value
    json_object = _JsonObject(value)
    document = {name: value[theirs] for name, theirs in names.items() if theirs in value}
    # Canonical names win over the layout's; all other names are only used where no text was found.
    document |= {name: value[name] for name in _FIELDS if value.get(name) is not None}
    if not isinstance(document.get("text"), str) and (json_object.any_text or json_object.is_blank):
        # A text under a name of another tool.
        document["text"] = json_object.any_text
    document |= {"title": json_object.title} if json_object.title else {}
    if "id" not in document and json_object.id is not None:
        document["id"] = json_object.id
    return document

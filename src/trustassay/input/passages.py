"""Reads passages from a value: a result of a tool, ``documents`` of a record, a prompt.

1. A text that is JSON, JSON Lines or a printed Python value is read as that value.
2. In an object the list of passages is found by its name, also inside some levels of objects, and
   in columns (:func:`_find_lists`).
3. Each element of a list is one passage: a text, or an object with a text and perhaps a title and
   an id (:class:`_JsonObject`). Scores and addresses are never text. A tool's result is data, and
   stays a single passage, where no object of the list has a text that reads as prose.
4. Any other text is split if it contains several passages (:func:`split_passages`). An element of a
   list is never split, because citations refer to its position.

The first of these forms of a text with several passages that fits is used:

1. elements in tags,
2. numbered passages,
3. passages that each begin with the same header, "Title: ...",
4. parts between lines of dashes, or else between blank lines.

Lines that belong together stay together: a heading and its paragraph, a list and its lead, a table,
code, and the halves of a sentence.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, pairwise, takewhile
from typing import Any, NamedTuple

from trustassay.core.sample import Problem, SampleError, columns_to_rows
from trustassay.input.layouts import NAMES, normalise_name
from trustassay.input.printed import begins_as_value, explain_unreadable
from trustassay.input.records import is_missing, parse_value

RawPassage = str | dict[str, Any]
"""A text, or an object with ``text``, and ``title`` and ``id`` where these are known."""
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
_SPACE = re.compile(r"\s*")
_JSON_BLOCK = re.compile(r"```(?:json)?\s*([\[{][^`]*[\]}])\s*```", re.IGNORECASE)
"""A whole text that is a Markdown block of JSON."""


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
        SampleError: a text begins as a list or an object and cannot be read.
    """
    rows = read_document_rows(value)
    if not isinstance(rows, list | tuple):
        return value
    present = [place for place, element in enumerate(rows) if not is_missing(element)]
    last = present[-1] if present else len(rows) - 1
    # Empty elements stay as blank documents, so that citations keep their numbers; those at the end
    # are not cited, and left out.
    texts = ["" if is_missing(element) else element for element in rows[: last + 1]]
    if texts and all(isinstance(element, str) and not element.strip() for element in texts):
        return None
    return [_build_document(element, names or {}, place) for place, element in enumerate(texts)]


def read_document_rows(value: Any) -> Any:
    """Return the documents of a record as they are written; raises as :func:`read_documents`."""
    rows = value
    if isinstance(value, str):
        values = _parse_values(value)
        if values is None and (message := explain_unreadable(value)):
            raise SampleError([Problem("", message)])
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
    if block := _JSON_BLOCK.fullmatch(text):
        text = block[1]
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
        rows = element[:1] if _is_pair_with_score(element) else _unwrap_single_list(element)
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


def _is_pair_with_score(element: Any) -> bool:
    """Whether it is a document with its score, of which LangChain returns lists."""
    is_pair = isinstance(element, list | tuple) and len(element) == 2
    # A score that is no number, such as nan, was read as an empty one.
    return is_pair and isinstance(element[1], float | None) and not isinstance(element[0], float)


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

    These are its columns, fields with a known name, numbered texts, and its only list.
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
    if json_object.value and all(str(key).isdecimal() for key in json_object.value):
        # A list with its places as keys, as data frames write it.
        rows = list(json_object.value.values())
        yield from [rows] if all(map(is_prose, rows)) else ()
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
        self.fields = {normalise_name(str(name)): value[name] for name in reversed(list(value))}
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


def _build_document(value: Any, names: Mapping[str, str], place: int) -> Any:
    """Return a document in canonical fields; other values are returned as they are.

    Args:
        value: an element of a list of documents.
        names: the layout's names of a document's fields, by canonical field.
        place: its place in the list, for messages.

    Raises:
        SampleError: it was printed in a form that cannot be read.
    """
    if _is_pair_with_score(value):
        value = value[0]
    if isinstance(value, str) and not begins_as_value(value):
        return split_title(value)
    if isinstance(value, str):
        parsed = parse_value(value)
        if not isinstance(parsed, Mapping) or not _JsonObject(parsed).text:
            # A text may begin with a bracket, but with nothing else that Python prints.
            message = "" if value.startswith(("[", "{")) else explain_unreadable(value)
            if message:
                raise SampleError([Problem(f"[{place}]", message)])
            return split_title(value)
        value = parsed
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


# ------------------------------------------------------------------- texts with several passages

MAX_TAG_DEPTH = 4
"""Levels of elements around passages: ``<context><documents><document>`` are three."""
_UNIT = (
    r"(?:contexts?|documents?|doc|passages?|sources?|excerpts?|chunk|snippet|(?:search )?results?)"
)
_NUMBERED = re.compile(  # "[1] ...", "Document [2](Title: ...): ...", "**Source 3** (title)"
    r"[ \t#*=-]{0,12}(?:\[(?P<mark>\d{1,3})\]"
    rf"|\[?{_UNIT}[ \t]*#?[\[(]?(?P<number>\d{{1,3}})(?=[ \t]*(?:[\])(:.*=–-]|$))"
    r"(?:[ \t]*:[ \t]*(?P<named>[^\[\]\n]{1,200})\]|[\])]{0,2})[ \t]*\*{0,2}[ \t]*"
    r"(?:\((?:title[ \t]*:)?(?P<title>[^()\n]{1,200})\))?)[ \t]*(?:[*=–-]{1,6}|[:.)])?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_ADDRESS = re.compile(r"\w+://\S+|www\.\S+|[\w./\\-]*\.\w{2,5}|(?:\w+ ?[:=] ?)?-?[\d.,]+ ?%?")
"""An address, a file name or a score: text in brackets that is not a title."""
# "Title: City Guide" in the first line, with a text below it.
_TITLE = re.compile(r"\s*title:[ \t]*(\S[^\n]*)\n\s*(?=\S)(.+)", re.IGNORECASE | re.DOTALL)
# A line "Name: value", also with marks of Markdown: "**Source:** guide.pdf".
_HEADER = re.compile(r"[#*_\s-]{0,6}([A-Za-z][A-Za-z _]{0,23}?)[*_]{0,2}:[*_]{0,2}(?:[ \t]+(.*)|)")
_TITLE_KEYS = frozenset({"title", "heading", "headline", "document_title", "page_title"})
_ADDRESS_KEYS = frozenset("source url link uri file file_path filename page page_label".split())
_SCORE_KEYS = frozenset({"score", "relevance", "similarity", "distance", "rank", "id", "doc_id"})
_EDGES = re.compile(r"\A[ \t]*[-=*_]{3,}[ \t]*\n|\n[ \t]*[-=*_]{3,}[ \t]*\Z")
"""Lines of dashes at the ends of a passage."""
_LINK = re.compile(r"\((?:https?://|www\.)[^()\s]*\)")
_TEXT_KEYS = frozenset({"description", "body", "summary", *_NAMES["texts"]})
# A line of dashes, equals signs, stars or underscores between passages.
_SEPARATOR = re.compile(r"[ \t]*(?:-{3,}|={3,}|\*{3,}|_{3,})[ \t]*")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_RULE = re.compile(r"[ \t|]*:?-{2,}:?[ \t]*\|[ \t|:-]*")
"""The line below the header of a table in Markdown."""
_BULLET = re.compile(r"[ \t]*(?:[-*+•‣◦–]|\(?\d{1,3}[.)]|\(?[a-z][.)])[ \t]+\S")
_MARKED = re.compile(
    r"(?:#{1,6}[ \t]+(\S[^\n]{0,199}?)[ \t#]{0,9}|(?:\*\*|__)([^*_\n]{1,200})(?:\*\*|__):?)[ \t]*"
)
"""A heading in Markdown: "## Prices", or a line in bold type."""
# A line that may be a heading by its form: a capital or digit first, none of ",;|=" in it, no full
# stop at its end.
_UNMARKED = re.compile(r"[^\W_a-z][^\n,;|={}<>\t\"]*[\w)]")
MAX_HEADING_WORDS, MAX_HEADING_CHARACTERS = 8, 60
"""Limits for a heading without marks; longer lines are mostly the first line of a paragraph."""
MAX_HEADINGS = 3
"""Headings above one paragraph that become its title."""
MAX_HEADERS = 6
"""Lines at the start of a block that are searched for headers."""
MIN_CUT_WORDS, MAX_LEAD_WORDS = 6, 40
"""Words of a paragraph that leads to the next one, or is the first half of a sentence. Longer ones
are mostly chunks of a retriever, which may end anywhere (measured by
``lab/benchmarks/shapes.py``)."""
REGION = re.compile(
    r".*s|(?:\w+[_-])?context|kontext|dokumente|quellen|knowledge(?:[_ ]base)?", re.IGNORECASE
)
"""Names of tags around several passages; all other tags enclose a single passage."""


class TaggedElement(NamedTuple):
    """An element that may contain passages, ``<document title="...">...</document>``."""

    name: str
    attributes: str
    inner: str
    """The text between its tags."""
    start: int
    """The place of its opening tag in the text."""
    end: int
    """The place behind its closing tag."""


_TAG = re.compile(
    r"<(/?)((?:(?:retrieved|relevant|provided|background|reference|search)[_ -])?"
    r"(?:documents?|docs?|passages?|sources?|contexts?|chunks?|snippets?|excerpts?|results?)"
    r"|references?|knowledge(?:[_ ]base)?|kontext|dokumente?|quellen?)\b([^<>\n]{0,500})>",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"\b(?:title|name)\s*=\s*(?:\"([^\"\n]+)\"|'([^'\n]+)')", re.IGNORECASE)


def split_title(text: str) -> RawPassage:
    """Return a text with its title apart, if its first line is "Title: ..."."""
    match = _TITLE.match(text)
    return {"title": match[1].strip(), "text": match[2].strip()} if match else text


def split_passages(text: str, levels_left: int = MAX_TAG_DEPTH) -> list[RawPassage]:
    """Return the passages of a text, by the first form of the module's docstring that fits.

    A text of a single passage is returned as it is.

    Args:
        text: the text.
        levels_left: levels of tags around passages that may still be opened.
    """
    if "\n" not in text and "<" not in text:
        return [text]
    unix = text.replace("\r\n", "\n").strip()
    # Tags count only where nothing but a lead stands around them: else they are part of the text.
    elements = find_elements(unix)
    if elements and levels_left and _is_around_nothing(unix, elements):
        return [
            part for element in elements for part in _read_tagged_element(element, levels_left - 1)
        ]
    blocks = (
        _split_numbered(unix)
        or _split_at_headers(unix)
        or list(map(_read_block, _split_paragraphs(unix)))
    )
    # A single passage keeps its original white space and line ends.
    return [text] if blocks in ([], [unix]) else blocks


def find_elements(text: str) -> list[TaggedElement]:
    """Return the outermost elements of a text that may contain passages."""
    pairs: list[tuple[re.Match[str], re.Match[str]]] = []
    waiting: dict[str, list[re.Match[str]]] = {}
    # A closing tag belongs to the last open one of its name; tags without a partner are text.
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if not tag[1]:
            waiting.setdefault(name, []).append(tag)
        elif waiting.get(name):
            pairs.append((waiting[name].pop(), tag))
    elements: list[TaggedElement] = []
    for opening, closing in sorted(pairs, key=lambda pair: pair[0].start()):
        if not elements or opening.start() >= elements[-1].end:
            inner = text[opening.end() : closing.start()]
            elements.append(
                TaggedElement(opening[2], opening[3], inner, opening.start(), closing.end())
            )
    return elements


def _is_around_nothing(text: str, elements: Sequence[TaggedElement]) -> bool:
    """Whether nothing but a line that ends with a colon stands around the elements of a text."""
    starts = [element.start for element in elements] + [len(text)]
    ends = [0, *(element.end for element in elements)]
    around = "".join(text[end:start] for end, start in zip(ends, starts, strict=True)).strip()
    return not around or (around.endswith(":") and "\n" not in around)


def _read_tagged_element(element: TaggedElement, levels_left: int) -> list[RawPassage]:
    """Return the passages in an element: a single one, or several by its name."""
    inner = element.inner
    if REGION.fullmatch(element.name):
        return split_passages(strip_mark(inner.strip()), levels_left)
    match, own_title = _ATTRIBUTE.search(element.attributes), _inner_text(inner, "title")
    title = own_title or (match[1] or match[2] if match else "")
    texts = filter(None, (_inner_text(inner, name_of_text) for name_of_text in _NAMES["texts"]))
    text = next(texts, inner.replace(f"<title>{own_title}</title>", "")).strip()
    return [{"title": title.strip(), "text": text} if title else text]


def _inner_text(text: str, name: str) -> str:
    """Return the inner text of the first element with a name; empty without one."""
    inner, closing, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return inner if closing else ""


def strip_mark(text: str) -> str:
    """Return a text without the mark "[1]" of its only passage."""
    mark = _NUMBERED.match(text)
    return text[mark.end() :] if mark and not _split_numbered(text) else text


def _split_numbered(text: str) -> list[RawPassage]:
    """Return passages that are numbered from 0 or 1 in their first lines; none if not several.

    Text above the first one is a passage as well, unless it is a single line that leads to them.
    """
    starts: list[re.Match[str]] = []
    place, number = 0, 0
    while place < len(text):
        match = _NUMBERED.match(text, place)
        value = int(match["mark"] or match["number"]) if match else -1
        # Numbers must be consecutive, so that other numbered lines inside a passage do not split
        # it.
        if match and (value == number or (value == 1 and not starts)):
            starts.append(match)
            number = value + 1
        place = text.find("\n", place) + 1 or len(text)
    if len(starts) < 2:
        return []
    above = text[: starts[0].start()].strip()
    leads = "\n" not in above and (above.endswith(":") or not _ends_sentence(above))
    parts = [] if leads else _split_paragraphs(above)
    ends = [match.start() for match in starts[1:]] + [len(text)]
    numbered = [
        _read_numbered_passage(start, text[start.end() : end])
        for start, end in zip(starts, ends, strict=True)
    ]
    return [*map(_read_block, parts), *numbered]


def _read_numbered_passage(match: re.Match[str], text: str) -> RawPassage:
    """Return the passage behind a mark that may contain its title: "Document 1 (title): ..."."""
    title = (match["title"] or match["named"] or "").strip()
    text = text.replace("**\n", "\n", 1) if match[0].lstrip().startswith("**") else text
    if title and not _ADDRESS.fullmatch(title):
        return {"title": title, "text": _EDGES.sub("", text.strip())}
    return _read_block(text.strip())


def _split_at_headers(text: str) -> list[RawPassage]:
    """Return passages that each begin with the same header, "Title: ..." or "Source: ..."; none if
    not several."""
    lines = text.split("\n")
    keys = [_parse_header(line)[0] for line in lines]
    # The header that repeats is the first one with a title or an address.
    first = next((key for key in keys[:3] if key in _TITLE_KEYS | _ADDRESS_KEYS), None)
    starts = [place for place, key in enumerate(keys) if key == first]
    above = "".join(lines[: starts[0]] if starts else ()).strip()
    if len(starts) < 2 or (above and not above.endswith(":")):
        return []
    ends = [*starts[1:], len(lines)]
    return [_read_block("\n".join(lines[a:b]).strip()) for a, b in zip(starts, ends, strict=True)]


def _parse_header(line: str) -> tuple[str, str]:
    """Return the name and the value of a header "Name: value"; both empty for other lines."""
    match = _HEADER.fullmatch(line)
    return (normalise_name(match[1]), (match[2] or "").strip()) if match else ("", "")


def _split_paragraphs(text: str) -> list[str]:
    """Return the parts of a text between lines of dashes, or else between blank lines."""
    blocks, sections, in_code = [list[str]()], [list[str]()], False
    for line in text.split("\n"):
        # Blank lines and dashes inside a fence of code separate nothing.
        in_code ^= bool(_FENCE.match(line))
        if not in_code and _SEPARATOR.fullmatch(line):
            blocks.append([])
            sections.append([])
            continue
        sections[-1].append(line)
        if in_code or line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    is_parted = len(sections) > 1
    parts = ["\n".join(lines).rstrip().strip("\n") for lines in (sections if is_parted else blocks)]
    parts = list(filter(None, parts))
    together = [parts[:1]] if parts else []
    for before, after in pairwise(parts):
        # Headers above a blank line belong to the part below it.
        is_header = all(_is_passage_header(_parse_header(line)) for line in before.split("\n"))
        if is_header or (not is_parted and _continues(before, after)):
            together[-1].append(after)
        else:
            together.append([after])
    return ["\n\n".join(group) for group in together]


def _is_passage_header(header: tuple[str, str]) -> bool:
    """Whether a header has the title, the address or the score of a passage."""
    return header[0] in _TITLE_KEYS or _is_address(header)


def _is_address(header: tuple[str, str]) -> bool:
    """Whether a header has an address or a score; "Distance: 3 km" is part of a text."""
    key, value = header
    return key in _ADDRESS_KEYS or (key in _SCORE_KEYS and " " not in value)


def _continues(before: str, after: str) -> bool:
    """Whether a block continues the block before it."""
    last, lines, words = before.rstrip(), before.split("\n"), len(before.split())
    if len(lines) == 1 and _is_heading(before, after):
        return True
    is_open = not _ends_sentence(last)
    item, row = bool(_BULLET.match(after)), after.startswith("|")
    # A short lead belongs to whatever follows; behind a long paragraph only a list, table or code
    # does.
    if last.endswith((":", "：")):
        return words <= MAX_LEAD_WORDS or item or row or bool(_FENCE.match(after))
    if _BULLET.match(before) and (item or after[0] in " \t"):
        return True
    if row and lines[-1].startswith("|"):
        # A rule below its first line begins another table.
        return not any(map(_RULE.fullmatch, after.split("\n")[1:2]))
    is_cut = MIN_CUT_WORDS <= words <= MAX_LEAD_WORDS and after[0].islower()
    return is_open and (item or is_cut)


def _ends_sentence(text: str) -> bool:
    return text.rstrip(" \"'”’)]*_").endswith((".", "!", "?", "…", "。", "！", "？"))


def _is_heading(line: str, below: str) -> bool:
    """Whether a line is a heading, by its marks, or by its form and the text below it.

    Args:
        line: the line.
        below: the text below it: prose, a list or a table; empty where that is not known.
    """
    line, below = line.strip(), below.lstrip()
    if _MARKED.fullmatch(line):
        return True
    if _BULLET.match(line):
        return False
    short = len(line) <= MAX_HEADING_CHARACTERS and len(line.split()) <= MAX_HEADING_WORDS
    if not short or not _UNMARKED.fullmatch(line) or _parse_header(line)[0]:
        return False
    # A paragraph may be wrapped at a short width; then its lines have about the same length.
    longer = len(line) < 40 or len(below.partition("\n")[0]) > 1.5 * len(line)
    goes_on = below[:1].islower() or not (longer or not below)
    listed = bool(_BULLET.match(below)) or below.startswith("|")
    return not goes_on and (listed or not below or _ends_sentence(below))


def _read_block(text: str) -> RawPassage:
    """Return the single passage of a text, with its title apart if a header or heading has one."""
    text = _EDGES.sub("", text)
    title, body = _read_headers(text)
    if body is text:
        titles = list[str]()
        # Headings one below the other become one title, "Prices: Members"; only the first of them
        # may be without marks.
        for _ in range(MAX_HEADINGS):
            line, _, below = body.strip().partition("\n")
            match = _MARKED.fullmatch(line)
            if not below.strip() or not _is_heading(line, below) or (titles and not match):
                break
            titles.append((match[1] or match[2] if match else line).strip())
            body = below
        title = ": ".join(titles)
    title = _LINK.sub("", title).strip()
    return {"title": title, "text": body.strip()} if title and body.strip() else body


def _read_headers(text: str) -> tuple[str, str]:
    """Return the title and the text of a block with headers such as "Title: ..." and "URL: ...".

    Headers stand above or below the text; addresses and scores are dropped. Without headers the
    title is empty and the text is the block itself.
    """
    lines = text.split("\n")
    headers = list(map(_parse_header, lines[:MAX_HEADERS]))
    if not any(key in _TITLE_KEYS | _ADDRESS_KEYS for key, _ in headers):
        return "", text
    # Any header may stand above "Content: ...", but only known ones above a text without a name.
    above = list(takewhile(lambda header: header[0] and header[0] not in _TEXT_KEYS, headers))
    start, body = len(above), list[str]()
    if start < len(headers) and headers[start][0] in _TEXT_KEYS:
        body = [headers[start][1], *lines[start + 1 :]]
    else:
        above = list(takewhile(_is_passage_header, headers))
        body = lines[len(above) :]
    other_lines = [
        line
        for line, line_header in zip(lines, above, strict=False)
        if not _is_passage_header(line_header)
    ]
    # Addresses may also stand at the end of a block.
    below = list(takewhile(_is_address, map(_parse_header, reversed(body))))
    body = body[: len(body) - len(below)]
    titles = [value for key, value in above if key in _TITLE_KEYS]
    titles += [v for k, v in above + below if k in _ADDRESS_KEYS and not _ADDRESS.fullmatch(v)]
    if not any(map(str.strip, body)):
        return "", text  # a block of headers alone stays as it is
    return next(iter(titles), ""), "\n".join((*other_lines, *body)).strip()

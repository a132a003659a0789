"""Data in passages as sentences: JSON, tables in Markdown, CSV and TSV.

A reader of prose does not see which value belongs to which row. Each value becomes a sentence that
names its row and its column: "The price of Aurora lamp is 20 USD." What stands around the data
stays as it is, and a passage without data is not changed.
"""

import csv
import io
import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, NamedTuple

from trustassay.text.words import content_words

LONGEST = 200_000
"""Characters; longer passages are left as they are."""
REMEMBERED = 64
"""Passages whose data are kept; one with 5,000 values takes about 3 MB."""
MOST_VALUES = 5_000
"""Values of one passage; with more it is left as it is."""
DEEPEST = 12
"""Levels of objects and lists in JSON."""
MOST_ROWS = 8
"""Rows that are equally near to a statement; of more, all are given."""
LABELS = (
    *("name", "title", "label", "full_name", "product", "item", "company", "country", "city"),
    *("state", "person", "team", "model", "id", "date", "year", "month"),
)
"""Names of columns that may say what a row is about, the best first."""
TIMES = ("date", "year", "quarter", "month", "week", "day", "hour", "time", "season", "version")
"""Last words of names of columns that tell rows of one name apart before others do."""
UNITS: Mapping[str, str] = {
    **{one: one.upper() for one in ("usd", "eur", "gbp", "chf", "jpy", "cad", "aud", "inr")},
    **{one: one for one in ("kg", "km", "cm", "mm", "km2", "ml", "kwh", "mph")},
    **{one: one.upper() for one in ("mb", "gb", "tb", "kb", "mhz", "ghz")},
    **{
        f"{one}s": f"{one}s"
        for one in ("day", "hour", "minute", "second", "month", "year", "meter")
    },
    **{f"{one}s": f"{one}s" for one in ("mile", "gram", "pound", "liter", "ton", "degree", "euro")},
    **{"dollars": "dollars", "celsius": "degrees Celsius", "fahrenheit": "degrees Fahrenheit"},
    **{"percent": "percent", "pct": "percent", "percentage": "percent", "ms": "milliseconds"},
    **{"sec": "seconds", "sqkm": "square kilometres", "feet": "feet", "%": "percent"},
}
"""Last words of names of columns that are the unit of their numbers."""
DEGREES = {"c": "degrees Celsius", "f": "degrees Fahrenheit"}
"""The same of temperatures alone."""
PROSE = 12
"""Words from which a value is taken for prose."""
_LINKS = ("http:", "https:", "www.")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*|[A-Z]+|\d+|%|[^\W\d_]+")
_FENCE = re.compile(r"^```\w*[ \t]*$\n?", re.MULTILINE)
_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)+\|?\s*$")
_OPENING = re.compile(r"(?:^|(?<=[\s:]))(?=[\[{])")
_COMPARED = re.compile(r"\b(?:than|both|while|whereas|unlike|versus|vs)\b")
_SPOKEN = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"[-+]?\d[\d,. ]*")
_TRIES = 3
"""Places at which the next JSON of a passage may begin that are tried."""


class Row(NamedTuple):
    """A row of a table, or an object: what it is about, and its sentences.

    names: what names it among the rows of its table, each as :func:`_spoken` gives it. label: the
    content words of its name. words: those of all of its texts, numbers left out. table: what it is
    a row of, by name; rows of one table may be taken for each other. prose: one of its values is
    prose, and may say anything.
    """

    names: tuple[str, ...]
    label: frozenset[str]
    words: frozenset[str]
    sentences: tuple[str, ...]
    table: str
    prose: bool


class Data(NamedTuple):
    """What a passage holds: pieces of prose and rows in their order, and sentences that count its
    lists."""

    pieces: tuple[str | Row, ...]
    counts: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        """The rows alone."""
        return [one for one in self.pieces if isinstance(one, Row)]


def as_prose(passage: str, statement: str | None = None) -> str:
    """Return a passage with its data as sentences; of tables, where there is a statement, the rows
    that it is about (:func:`about`). A passage without data is returned as it is.
    """
    data = read(passage)
    if data is None:
        return passage
    kept = set(map(id, data.rows if statement is None else about(data.rows, statement)))
    lines = [
        one if isinstance(one, str) else " ".join(one.sentences)
        for one in data.pieces
        if isinstance(one, str) or id(one) in kept
    ]
    return "\n".join([*lines, *data.counts])


def holds_data(passage: str) -> bool:
    """Return whether a passage holds data that are read as sentences."""
    return read(passage) is not None


def about(rows: Sequence[Row], statement: str) -> list[Row]:
    """Return the rows that a statement is about: of each table those that it names, or else those
    whose texts hold most of its words, all where that cannot be told of any table. Rows with prose,
    and what is alone in its table, cannot be taken for others and are always among them.

    A row is named by its whole name, word for word ("Lamp 3a" is not "Lamp 3b"); of a comparison
    the other row also by most of its words.
    """
    said = frozenset(content_words(statement))
    tables: dict[str, list[Row]] = {}
    for row in rows:
        tables.setdefault("" if row.prose else row.table, []).append(row)
    always = tables.pop("", []) + [own.pop() for own in tables.values() if len(own) == 1]
    chosen = [
        row
        for own in tables.values()
        for row in (_named(own, statement, said) or _nearest(own, said))
    ]
    return always + (chosen or [row for own in tables.values() for row in own])


def _named(rows: Sequence[Row], statement: str, said: frozenset[str]) -> list[Row]:
    """Return the rows of a table whose names stand in a statement, none where none does. A name
    inside of a longer one is not said by it."""
    alike: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        alike.setdefault(row.names, []).append(row)
    written = _spoken(statement)
    folded = written.casefold()
    chosen: list[Row] = []
    for names in sorted(alike, key=lambda names: -sum(map(len, names))):
        if names and all(one in (folded if one == one.casefold() else written) for one in names):
            folded = folded.replace(names[0], " | ")
            chosen += _nearest(alike[names], said) or alike[names]
    known = frozenset(word for row in chosen for word in row.label)
    if (
        chosen
        and _COMPARED.search(folded)
        and (new := frozenset(word for word in said - known if word.isalpha()))
    ):
        kept = set(map(id, chosen))
        chosen += _nearest([row for row in rows if row.label & new and id(row) not in kept], new)
    return chosen


def _spoken(text: str) -> str:
    """Return the words of a text between spaces, digits and letters together."""
    return f" {' '.join(_SPOKEN.findall(text))} "


def _nearest(rows: Sequence[Row], said: frozenset[str]) -> Sequence[Row]:
    """Return the rows of a table that hold most of some words, none where that cannot be told.

    A word counts the less the more rows of the table have it, and twice in a row's name. Numbers do
    not count: a number is what may be wrong.
    """
    often = Counter(word for row in rows for word in row.words & said)
    worth = [
        sum((1 + (word in row.label)) / often[word] for word in row.words & said) for row in rows
    ]
    best = max(worth, default=0.0)
    chosen = [row for row, value in zip(rows, worth, strict=True) if value >= best - 1e-9]
    return chosen if best and len(chosen) <= MOST_ROWS else ()


@lru_cache(maxsize=REMEMBERED)
def read(passage: str) -> Data | None:
    """Return the data in a passage, ``None`` where it holds none or too much."""
    if len(passage) > LONGEST or not any(one in passage for one in "{[|\t,;"):
        return None
    title, body = "", passage
    if passage.startswith("Title: ") and "\n" in passage:
        title, body = passage.split("\n", 1)
    pieces: list[str | Row] = [title] if title else []
    counts: list[str] = []
    values = 0
    try:
        for text, found in _parts(body):
            pieces += [text.strip()] if text.strip() else []
            pieces += found.rows
            counts += found.counts
            values += sum(len(row.sentences) for row in found.rows)
            if values > MOST_VALUES:
                return None
    except _TooMuchError:
        return None
    data = Data(tuple(pieces), tuple(counts))
    return data if data.rows else None


# ----------------------------------------------------------------- where data are in a passage


class _TooMuchError(Exception):
    """There are more values than are read, or deeper ones."""


class _Found(NamedTuple):
    """Rows of one piece of data after another, and what counts its lists."""

    rows: list[Row]
    counts: list[str]


def _parts(passage: str) -> Iterator[tuple[str, _Found]]:
    """Yield what stands before each piece of data, and its rows; at last what is left."""
    pieces = _FENCE.split(passage)
    for place, piece in enumerate(pieces):
        closed = place % 2 and place + 1 < len(pieces)
        if closed and (found := _json(piece) or _table(piece)):
            yield "", found
        else:
            yield from _parts_of_text(piece)


def _parts_of_text(rest: str) -> Iterator[tuple[str, _Found]]:
    while (within := _json_within(rest)) is not None:
        before, found, rest = within
        yield before, found
    others: list[str] = []
    for barred, group in groupby(rest.splitlines(), lambda line: "|" in line):
        lines = list(group)
        if barred and (rows := _barred(lines)):
            yield "\n".join(others), rows
            others = []
        else:
            others += lines
    rest = "\n".join(others)
    table = _table(rest)
    yield ("", table) if table else (rest, _Found([], []))


def _barred(lines: Sequence[str]) -> _Found | None:
    """Return the rows of lines with bars: a table of Markdown, or three lines of as many cells."""
    header, *rows = map(_cells, lines)
    if len(lines) > 2 and _RULE.match(lines[1]):
        del rows[0]
    elif len(lines) < 3 or len({len(one) for one in (header, *rows)}) > 1 or len(header) < 2:
        return None
    return _rows_of(_objects(header, rows), header[0])


def _json_within(text: str) -> tuple[str, _Found, str] | None:
    """Return what stands before the first JSON of a text, its rows, and what stands behind it."""
    decoder = json.JSONDecoder()
    for place in islice(_OPENING.finditer(text), _TRIES):
        with suppress(ValueError, RecursionError):
            value, end = decoder.raw_decode(text, place.start())
            if found := _rows_of(value):
                return text[: place.start()], found, text[end:]
    return None


def _json(text: str) -> _Found | None:
    with suppress(ValueError, RecursionError):
        return _rows_of(json.loads(text))
    return None


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    cells = (re.sub(r"[*`]", "", one) for one in re.split(r"(?<!\\)\|", inner))
    return [one.replace("\\|", "|").strip() for one in cells]


def _table(text: str) -> _Found | None:
    """Return the rows of a text that is CSV or TSV from its first to its last line."""
    lines = [line for line in text.splitlines() if line.strip()]
    for mark in "\t;," if len(lines) > 1 else "":
        if mark not in lines[0]:
            continue
        with suppress(csv.Error):
            header, *rows = csv.reader(io.StringIO("\n".join(lines)), delimiter=mark)
            names = [one.strip() for one in header]
            sound = len(names) == len(set(names)) >= (2 if mark == "\t" else 3)
            sound &= all(0 < len(one) <= 40 and one[-1] not in ".?!" for one in names)
            cells = [cell for row in rows for cell in row]
            sound &= any(_NUMBER.fullmatch(cell.strip()) for cell in cells) or (
                len(rows) > 1 and not any(cell.startswith(" ") for cell in cells)  # as prose has
            )
            if sound and all(len(row) == len(names) for row in rows):
                return _rows_of(_objects(names, rows), names[0])
    return None


# ------------------------------------------------------------------------------- from data to rows


def _objects(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Return the rows of a table as objects; an empty cell is no field."""
    pairs = (zip(header, row, strict=False) for row in rows)
    return [{name: cell.strip() for name, cell in row if name and cell.strip()} for row in pairs]


class _Part(NamedTuple):
    """An object or a list on its way to rows. name: its field's. about: what it belongs to. table:
    the names of the fields that lead to it. listed: it is one of a list. beside: its fields that
    tell it from others of its name."""

    value: Any
    name: str = ""
    about: str = ""
    table: str = "rows"
    listed: bool = False
    beside: Sequence[str] = ()
    depth: int = 0


def _rows_of(value: Any, first: str = "") -> _Found | None:
    """Return the rows of a value of JSON; ``None`` where it holds no object.

    An object inside of another is a part of it; one in a list is a row. ``first`` names the column
    that says what a row is about, where no name tells it.
    """
    found, left = _Found([], []), MOST_VALUES
    waiting = deque([_Part(value)])
    while waiting:
        part = waiting.popleft()
        if part.depth > DEEPEST:
            raise _TooMuchError
        if isinstance(part.value, list):
            objects = [one for one in part.value if isinstance(one, Mapping)]
            if len(objects) > 1:
                field = " ".join(_words(part.name)[0]) or "rows"
                found.counts.append(f"There are {len(objects)} {field}.")
            beside = _told_apart(objects, [_label(one, first, True)[1] for one in objects])
            below = part._replace(listed=True, beside=beside, depth=part.depth + 1)
            waiting += [below._replace(value=one) for one in objects]
        if not isinstance(part.value, Mapping):
            continue
        key, label = _label(part.value, first, part.listed)
        names = [*filter(None, [label, *(str(part.value[one]) for one in part.beside)])]
        label = ", ".join(names)
        about = f"{label} ({part.about})" if label and part.about else label or part.about
        sentences, texts, prose = [], [about], False
        fields = deque((str(name), cell, part.depth) for name, cell in part.value.items())
        while fields:
            name, cell, depth = fields.popleft()
            left -= 1
            if left < 0 or depth > DEEPEST:
                raise _TooMuchError
            if isinstance(cell, Mapping):
                fields += [(f"{name} {inner}", one, depth + 1) for inner, one in cell.items()]
            elif isinstance(cell, list) and any(isinstance(one, Mapping) for one in cell):
                table = f"{part.table} {name}"
                waiting.append(_Part(cell, name, about, table, depth=depth + 1))
            elif said := _sentence(name, cell, "" if name in (key, *part.beside) else about):
                sentences.append(said)
                texts += [name] if isinstance(cell, bool) else []
                texts += [cell] if isinstance(cell, str) and not _NUMBER.fullmatch(cell) else []
                prose |= isinstance(cell, str) and len(cell.split()) > PROSE
        if sentences:
            own, words = (frozenset(content_words(one)) for one in (about, " ".join(texts)))
            spoken = tuple(filter(None, map(_as_said, names)))
            found.rows.append(Row(spoken, own, words, tuple(sentences), part.table, prose))
    return found if found.rows else None


def _label(row: Mapping[Any, Any], first: str, listed: bool) -> tuple[str, str]:
    """Return the name of the field that says what a row is about, and what it says: by its name,
    or, of one of a list, the first text."""
    texts = {
        name: value
        for name, value in row.items()
        if isinstance(value, str) and 0 < len(value) <= 80 and not value.startswith(_LINKS)
    }
    by_name = {"_".join(_words(str(name))[0]).lower(): name for name in reversed(texts)}
    known = [by_name[one] for one in LABELS if one in by_name]
    known += [first] if first in texts else []
    known += [by_name[n] for one in LABELS for n in by_name if n.endswith(f"_{one}")]
    name = next(iter([*known, *(texts if listed else ())]), "")
    return name, texts.get(name, "")


def _told_apart(rows: Sequence[Mapping[Any, Any]], names: Sequence[str]) -> list[str]:
    """Return at most three fields that tell rows of one name apart: times first, then texts. Other
    numbers are left out, since they are what rows say."""

    def last(field: str) -> str:
        words, unit = _words(field)
        return words[-1].lower() if words and not unit else ""

    def tells(field: Any) -> bool:
        values = [one.get(field) for one in rows]
        texts = [one for one in values if isinstance(one, str) and 0 < len(one) <= 40]
        if last(str(field)) in TIMES:
            return all(isinstance(one, str | int) for one in values)
        return len(texts) == len(values) and not any(map(_NUMBER.fullmatch, texts))

    told, chosen = list(names), list[str]()
    if len(set(told)) == len(told):
        return []
    fields = sorted(filter(tells, rows[0]), key=lambda field: last(str(field)) not in TIMES)
    for field in fields:
        more = [f"{name}\n{row[field]}" for name, row in zip(told, rows, strict=True)]
        if len(set(more)) > len(set(told)):
            told, chosen = more, [*chosen, field]
        if len(set(told)) == len(told) or len(chosen) == 3:
            break
    return chosen


def _as_said(name: str) -> str:
    """Return a name as it is looked for in statements: a common word ("A", "IN") only as it is
    written, and none that has no capital."""
    said = _spoken(name)
    if content_words(name) or any(one.isdigit() for one in name):
        return said.casefold()
    return said if said != said.casefold() else ""


def _words(name: str) -> tuple[list[str], str]:
    """Return the words of a name of a field, and the unit of its numbers."""
    words = [one if one.isupper() and len(one) > 1 else one.lower() for one in _WORD.findall(name)]
    last = words[-1].lower() if words else ""
    unit = UNITS.get(last, "")
    if last in DEGREES and any(one.startswith("temp") for one in words):
        unit = DEGREES[last]
    return (words[:-1], unit) if unit and len(words) > 1 else (words, "")


def _sentence(name: str, value: Any, about: str) -> str:
    """Return what a value of a row says; empty where it says nothing."""
    words, unit = _words(name)
    field, of = " ".join(words), f" of {about}" if about else ""
    if isinstance(value, bool):
        bare = " ".join(words[words[:1] in (["is"], ["has"]) :]) or field
        yes, no = ("has", "does not have") if words[:1] == ["has"] else ("is", "is not")
        return f"{about or 'It'} {yes if value else no} {bare}."
    values = value if isinstance(value, list) else [value]
    texts = [" ".join(str(one).split()) for one in values if isinstance(one, str | int | float)]
    text = " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))
    if not text or not field:
        return ""
    if unit and _NUMBER.fullmatch(text):
        text = f"{text} {unit}"
    if len(text.split()) > PROSE:
        return f"{field}{of}: {text.rstrip('.')}."
    return f"The {field}{of} {'are' if len(texts) > 1 else 'is'} {text.rstrip('.')}."

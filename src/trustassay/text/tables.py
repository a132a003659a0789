"""Turns data in passages (JSON, Python literals, tables in Markdown, CSV and TSV) into sentences.

An entailment model is trained on prose and does not see which value belongs to which row. So each
value becomes a sentence that names its row and its column: "The price of Aurora lamp is 20 USD."
The text around the data stays as it is, and a passage without data is not changed.

1. :func:`read_data` finds the data in a passage and parses them.
2. Objects and rows become :class:`DataRow`, each with a name and its sentences.
3. :func:`select_rows` chooses the rows that a statement is about.
"""

import ast
import csv
import datetime
import io
import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, NamedTuple

from trustassay.text.quantities import WEEKDAYS, read_values
from trustassay.text.words import content_words

MAX_PASSAGE_CHARACTERS = 200_000
"""Characters; longer passages are left as they are."""
CACHED_PASSAGES = 64
"""Passages whose data are cached; one with 5,000 values takes about 3 MB."""
MAX_VALUES = 5_000
"""Values of one passage; with more it is left as it is."""
MAX_CAPTION_CHARACTERS = 1_000
"""Characters before a table that may be its caption."""
MIN_INLINE_CHARACTERS = 200
"""Characters of a Python literal from which it is data although its line goes on behind it."""
MAX_DEPTH = 12
"""Levels of objects and lists in JSON."""
MAX_NEAREST_ROWS = 8
"""Rows of a table that may be equally near to a statement; with more, none of them is chosen."""
LABELS = (
    *("name", "title", "label", "full_name", "product", "item", "company", "country", "city"),
    *("state", "person", "team", "model", "id", "date", "year", "month"),
)
"""Names of columns that may name a row, the best first."""
TIMES = ("date", "year", "quarter", "month", "week", "day", "hour", "time", "season", "version")
"""Last words of column names. These columns are tried first to tell rows of the same name apart."""
UNITS: Mapping[str, str] = {
    **{unit: unit.upper() for unit in ("usd", "eur", "gbp", "chf", "jpy", "cad", "aud", "inr")},
    **{unit: unit for unit in ("kg", "km", "cm", "mm", "km2", "ml", "kwh", "mph")},
    **{unit: unit.upper() for unit in ("mb", "gb", "tb", "kb", "mhz", "ghz")},
    **{unit: unit for unit in ("days", "hours", "minutes", "seconds", "months", "years", "meters")},
    **{unit: unit for unit in ("miles", "grams", "pounds", "liters", "tons", "degrees", "euros")},
    **{"dollars": "dollars", "celsius": "degrees Celsius", "fahrenheit": "degrees Fahrenheit"},
    **{"percent": "percent", "pct": "percent", "percentage": "percent", "ms": "milliseconds"},
    **{"sec": "seconds", "sqkm": "square kilometres", "feet": "feet", "%": "percent"},
}
"""Last words of column names that are the unit of the column's numbers: "price_usd"."""
SCALES = frozenset(("thousand", "million", "billion", "trillion"))
"""Words before a unit, or in its place, that belong to the column's numbers."""
DEGREES = {"c": "degrees Celsius", "f": "degrees Fahrenheit"}
"""The same for temperatures only, since "c" and "f" may be anything else."""
MAX_DATE_CHARACTERS = 40
"""Characters of a value up to which it may be a date."""
MAX_VALUE_WORDS = 12
"""Words; a longer value is taken for prose."""
_LINKS = ("http:", "https:", "www.")
# Words of a column name in any style: "unitPrice", "unit_price", "GDPGrowth2020", "share %". Digits
# behind a long word are a word of their own ("period3"), not so "km2", "2G" and "3.5mm".
_WORD = re.compile(
    r"\d+(?:\.\d+)?[A-Za-z]{1,2}(?![A-Za-z])|[A-Z]+(?:\d{1,2}(?!\d))?(?![a-z])|[A-Z]?[a-z]{4,}|[A-Z]?[a-z]{1,3}\d*"
    r"|[A-Z]+|\d+(?:\.\d+)?|%|[^\W\d_]+"
)
_FENCE = re.compile(r"^```\w*[ \t]*$\n?", re.MULTILINE)
# The line below a Markdown table's header: "|---|:--:|".
_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)+\|?\s*$")
_COMMENTS = re.compile(r"\A(?:\s*#.*\n)+")
# A bracket that may begin JSON: at the start, or behind a space or a colon.
_OPENING = re.compile(r"(?:^|(?<=[\s:]))(?=[\[{])")
# Words of a comparison, which is about two rows.
_COMPARISON = re.compile(r"\b(?:than|both|while|whereas|unlike|versus|vs)\b")
_YEAR = re.compile(r"[12]\d{3}")
# A year by itself, behind a word that is said of times: "2024 hours" is none.
_BARE_YEAR = re.compile(
    r"\b(?:in|by|since|from|to|until|till|of|and|through|during|between|after|before|early|late)"
    r"[ -](?P<year>(?:1[89]|20)\d\d)(?![\w%]|[.,]\d)",
    re.IGNORECASE,
)
# Words between two dates that make them the first and the last one of a period.
_UNTIL = re.compile(r"\s*(?:,?\s*(?:to|and|until|till|through)|-)\s*(?:the\s*)?", re.IGNORECASE)
_SPOKEN = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"[-+]?\d[\d,. ]*")
_TRIES = 3
"""Brackets of a text at which reading JSON is tried; most brackets of prose begin none."""
# A text in quotes as Python prints it, with its few escapes; outside of such texts a bracket, or a
# number that is no literal.
_PRINTED = re.compile(
    r"""'(?:[^'\\\n]|\\(?:['"\\nrt]|x[\da-f]{2}|u[\da-f]{4}|U[\da-f]{8}))*'"""
    r"""|"(?:[^"\\\n]|\\(?:['"\\nrt]|x[\da-f]{2}|u[\da-f]{4}|U[\da-f]{8}))*"|[\[\](){}]"""
    r"|\bnan\b|-?\binf\b"
)
_NAMES_OF_PAIRS = ("name", "key", "label", "field", "property", "attribute")
"""Names of the field that names the field "value" beside it."""


class DataRow(NamedTuple):
    """A row of a table, or a JSON object."""

    names: tuple[str, ...]
    """The names that identify it in its table, each in the form of :func:`_join_words`."""
    label: frozenset[str]
    """Content words of its name."""
    words: frozenset[str]
    """Content words of all of its texts, without numbers."""
    sentences: tuple[str, ...]
    """One sentence for each of its values."""
    table: str
    """The name of its table. Rows of the same table may be mistaken for each other."""
    prose: bool
    """Whether one of its values is prose, which may state anything."""
    cells: tuple[tuple[str, str], ...] = ()
    """Its columns with their values as texts."""
    dates: tuple[tuple[float, ...], ...] = ()
    """The dates of its name and its columns of times: year, month and day, 0 for those missing."""


class TableGrid(NamedTuple):
    """The cells of a table, or of a list of JSON objects."""

    header: tuple[str, ...]
    """The names of its columns."""
    rows: tuple[tuple[str, ...], ...]
    """Its cells as written, as many in each row as there are columns."""
    caption: str = ""
    """The text before it."""


class PassageData(NamedTuple):
    """The contents of a passage with data."""

    pieces: tuple[str | DataRow, ...]
    """Prose and rows in their order."""
    counts: tuple[str, ...]
    """Sentences that say how many elements its lists have: "There are 3 products."."""
    grids: tuple[TableGrid, ...] = ()
    """Its tables."""

    @property
    def rows(self) -> list[DataRow]:
        """The pieces that are rows."""
        return [piece for piece in self.pieces if isinstance(piece, DataRow)]


def spell_data(passage: str, statement: str | None = None, *, by_name: bool = False) -> str:
    """Return a passage with its data as sentences; without data it is returned as it is.

    Args:
        passage: the text of the passage.
        statement: where given, only the rows that it is about (:func:`select_rows`) are included.
        by_name: of each table only the rows that it names, or all of them where it names none.
    """
    data = read_data(passage)
    if data is None:
        return passage
    rows = data.rows if statement is None else select_rows(data.rows, statement, by_name=by_name)
    selected = set(map(id, rows))
    lines = [
        piece if isinstance(piece, str) else " ".join(piece.sentences)
        for piece in data.pieces
        if isinstance(piece, str) or id(piece) in selected
    ]
    return "\n".join([*lines, *data.counts])


def holds_data(passage: str) -> bool:
    """Whether a passage contains data that can be written as sentences."""
    return read_data(passage) is not None


def select_rows(rows: Sequence[DataRow], statement: str, *, by_name: bool = False) -> list[DataRow]:
    """Return the rows that a statement is about.

    1. Rows with prose, and single rows of a table, are always included: they cannot be mistaken
       for others.
    2. Of each other table, the rows that the statement names are chosen, or else those of its
       dates, or else those that share most words with it; with ``by_name`` all of them instead,
       because shared words are no proof that it is about a row.
    3. Where this chooses no row of any table, all rows are included.

    A row is named by its full name, word for word ("Lamp 3a" is not "Lamp 3b"); the other row of a
    comparison also by most of its words.
    """
    words_of_statement = frozenset(content_words(statement))
    tables: dict[str, list[DataRow]] = {}
    for row in rows:
        # The key "" collects the rows with prose, of all tables.
        tables.setdefault("" if row.prose else row.table, []).append(row)
    always = tables.pop("", []) + [
        table_rows.pop() for table_rows in tables.values() if len(table_rows) == 1
    ]
    chosen = [
        row
        for table_rows in tables.values()
        for row in (
            _find_named_rows(table_rows, statement, words_of_statement)
            or find_dated_rows(table_rows, statement)
            or (table_rows if by_name else _find_nearest_rows(table_rows, words_of_statement))
        )
    ]
    return always + (chosen or [row for table_rows in tables.values() for row in table_rows])


def _find_named_rows(
    rows: Sequence[DataRow], statement: str, words_of_statement: frozenset[str]
) -> list[DataRow]:
    """Return the rows of a table whose names occur in a statement.

    A name inside a longer name does not count: "Aurora" is not named by "Aurora Plus".
    """
    alike: dict[tuple[str, ...], list[DataRow]] = {}
    for row in rows:
        alike.setdefault(row.names, []).append(row)
    written = _join_words(statement)
    folded = written.casefold()
    chosen: list[DataRow] = []
    # Longest names first. A name that was used is replaced by a bar, so that a shorter name inside
    # it is not used again.
    for names in sorted(alike, key=lambda names: -sum(map(len, names))):
        if names and all(_has_name(name, written, folded) for name in names):
            # Of several names the last one: rows may share the first ones, as the day of a journey.
            folded = folded.replace(names[-1], " | ")
            # Several rows of one name: the statement's other words choose among them.
            chosen += _find_nearest_rows(alike[names], words_of_statement) or alike[names]
    # A comparison is about a second row, whose words are those that the named rows do not explain.
    words_of_chosen = frozenset(word for row in chosen for word in row.label)
    if (
        chosen
        and _COMPARISON.search(folded)
        and (
            new := frozenset(
                word for word in words_of_statement - words_of_chosen if word.isalpha()
            )
        )
    ):
        chosen_ids = set(map(id, chosen))
        chosen += _find_nearest_rows(
            [row for row in rows if row.label & new and id(row) not in chosen_ids], new
        )
    return chosen


def _has_name(name: str, written: str, folded: str) -> bool:
    """Whether a statement has a name: with capitals as written, else without regard to case."""
    return name in (folded if name == name.casefold() else written)


def _join_words(text: str) -> str:
    """Return the words of a text between single spaces, with a space at both ends.

    A name in this form is found in a statement in this form only at the borders of words.
    """
    return f" {' '.join(_SPOKEN.findall(text))} "


def find_dated_rows(rows: Sequence[DataRow], statement: str) -> list[DataRow]:
    """Return the rows of the dates and days of the week that a statement names.

    "From May to July 2021" names all rows between; "May 3" those of any year. Of rows with other
    names, too, as of several shops, only those that the statement names. The result is empty where
    the rows have no dates, or none of the statement's.
    """
    if not any(row.dates for row in rows):
        return []
    periods = _find_periods(statement)
    weekdays = {place for place, day in enumerate(WEEKDAYS) if day.title() in statement}
    dated = [
        row
        for row in rows
        if any(
            _find_weekday(date) in weekdays
            or any(_is_within(date, first, last) for first, last in periods)
            for date in row.dates
        )
    ]
    written = _join_words(statement)
    folded = written.casefold()
    mentioned = [row for row in dated if any(_has_name(n, written, folded) for n in row.names)]
    return mentioned or dated


def _find_periods(statement: str) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Return the first and the last date of each period that a statement names."""
    dates = [
        (value.start, value.end, value.numbers)
        for value in read_values(statement)
        if value.kind == "date"
    ]
    in_date = {place for start, end, _ in dates for place in range(start, end)}
    dates += [
        (*match.span("year"), (float(match["year"]), 0.0, 0.0))
        for match in _BARE_YEAR.finditer(statement)
        if match.start("year") not in in_date
    ]
    periods: list[tuple[tuple[float, ...], tuple[float, ...]]] = []
    end_before = -1
    for start, end, numbers in sorted(dates):
        if end_before >= 0 and _UNTIL.fullmatch(statement[end_before:start]):
            first, _ = periods.pop()
            # "From May to July 2021": the year stands only once.
            periods.append(((first[0] or numbers[0], *first[1:]), numbers))
        else:
            periods.append((numbers, numbers))
        end_before = end
    return periods


def _is_within(date: tuple[float, ...], first: tuple[float, ...], last: tuple[float, ...]) -> bool:
    """Whether a date lies in a period; parts that either lacks are not compared."""
    parts = [place for place in range(3) if date[place] and first[place] and last[place]]
    # Without a year in common, "May" is no more than a month of any year.
    values, lowest, highest = ([one[place] for place in parts] for one in (date, first, last))
    return bool(parts) and lowest <= values <= highest


def _find_weekday(date: tuple[float, ...]) -> int:
    """Return the day of the week of a full date, 0 for Monday; -1 for others."""
    with suppress(ValueError):
        return datetime.date(*map(int, date)).weekday()
    return -1


def _find_nearest_rows(
    rows: Sequence[DataRow], words_of_statement: frozenset[str]
) -> Sequence[DataRow]:
    """Return the rows of a table that share most words with a statement; none if that is unclear.

    A word counts less the more rows of the table have it, and twice in a row's name. Numbers do not
    count, because the number may be what is wrong in the statement.
    """
    often = Counter(word for row in rows for word in row.words & words_of_statement)
    worth = [
        sum((1 + (word in row.label)) / often[word] for word in row.words & words_of_statement)
        for row in rows
    ]
    best = max(worth, default=0.0)
    chosen = [row for row, value in zip(rows, worth, strict=True) if value >= best - 1e-9]
    # Too many equally near rows: the words do not identify any.
    return chosen if best and len(chosen) <= MAX_NEAREST_ROWS else ()


@lru_cache(maxsize=CACHED_PASSAGES)
def read_data(passage: str) -> PassageData | None:
    """Return the data in a passage, or ``None`` where it has none or too much."""
    # No data can be without one of these characters; most passages end here.
    if len(passage) > MAX_PASSAGE_CHARACTERS or not any(
        character in passage for character in "{[|\t,;"
    ):
        return None
    title, body = "", passage
    # The title that was put before the passage must not become the header of a table.
    if passage.startswith("Title: ") and "\n" in passage:
        title, body = passage.split("\n", 1)
    pieces: list[str | DataRow] = [title] if title else []
    counts: list[str] = []
    grids: list[TableGrid] = []
    values = 0
    try:
        for text, parsed in _split_data(body):
            pieces += [text.strip()] if text.strip() else []
            pieces += parsed.rows
            counts += parsed.counts
            caption = "\n".join([title, text.strip()[-MAX_CAPTION_CHARACTERS:]]).strip()
            grids += [grid._replace(caption=caption) for grid in parsed.grids]
            values += sum(len(row.sentences) for row in parsed.rows)
            if values > MAX_VALUES:
                return None
    except _TooMuchError:
        return None
    data = PassageData(tuple(pieces), tuple(counts), tuple(grids))
    return data if data.rows else None


# ----------------------------------------------------------------- where data are in a passage


class _TooMuchError(Exception):
    """The data have too many values, or are nested too deeply."""


class _ParsedRows(NamedTuple):
    """The rows of one piece of data."""

    rows: list[DataRow]
    """Its rows in order."""
    counts: list[str]
    """Sentences that say how many elements its lists have."""
    grids: list[TableGrid]
    """Its lists of objects as tables, without captions."""


def _split_data(passage: str) -> Iterator[tuple[str, _ParsedRows]]:
    """Yield each piece of data with the text before it, and at last the remaining text."""
    pieces = _FENCE.split(passage)
    for place, piece in enumerate(pieces):
        # Pieces between two fences have odd indices; the last one may lack its closing fence.
        closed = place % 2 and place + 1 < len(pieces)
        if closed and (parsed := _read_json(piece) or _read_csv(piece)):
            yield "", parsed
        else:
            yield from _split_data_of_text(piece)


def _split_data_of_text(text: str) -> Iterator[tuple[str, _ParsedRows]]:
    # JSON first, since its lines may contain bars and commas; then lines with bars; at last a table
    # of CSV, which must fill the remaining text.
    while (within := _find_json(text)) is not None:
        before, parsed, text = within
        yield before, parsed
    lines_before: list[str] = []
    for barred, group in groupby(text.splitlines(), lambda line: "|" in line):
        lines = list(group)
        # A line of prose with a bar may stand directly above the header: "P(a|b) by model".
        header = next((n for n, line in enumerate(lines[1:4]) if _RULE.match(line)), 0)
        lines_before, lines = lines_before + lines[:header], lines[header:]
        if barred and (rows := _read_bar_table(lines)):
            yield "\n".join(lines_before), rows
            lines_before = []
        else:
            lines_before += lines
    text = "\n".join(lines_before)
    # Lines of comment before a table: "# unit: people".
    body = _COMMENTS.sub("", text) or text
    table = _read_csv(body)
    yield (text.removesuffix(body), table) if table else (text, _ParsedRows([], [], []))


def _read_bar_table(lines: Sequence[str]) -> _ParsedRows | None:
    """Return the rows of lines with bars: of a Markdown table, or of three lines or more with the
    same number of cells."""
    header, *rows = map(_split_cells, lines)
    if len(lines) > 2 and _RULE.match(lines[1]):
        del rows[0]
    elif len(lines) < 3 or len({len(row) for row in (header, *rows)}) > 1 or len(header) < 2:
        return None
    return _build_rows(_build_objects(header, rows), header[0])


def _find_json(text: str) -> tuple[str, _ParsedRows, str] | None:
    """Return the text before the first JSON, the rows of the JSON, and the text behind it."""
    for place in islice(_OPENING.finditer(text), _TRIES):
        for decode in (json.JSONDecoder().raw_decode, _decode_printed):
            # A text without any end of its brackets is a syntax error for both.
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value, end = decode(text, place.start())
                if parsed := _build_rows(value):
                    return text[: place.start()], parsed, text[end:]
    return None


def _decode_printed(text: str, start: int) -> tuple[Any, int]:
    """Return the list or object that begins at a bracket, as Python prints it, and its end.

    Raises:
        ValueError, SyntaxError: no such list or object begins there.
    """
    depth = 0
    for match in _PRINTED.finditer(text, start):
        depth += (match[0] in "[({") - (match[0] in "])}")
        if not depth:
            literal = _PRINTED.sub(
                lambda part: "None" if part[0][-3:] in ("nan", "inf") else part[0],
                text[start : match.end()],
            )
            behind = text[match.end() :].partition("\n")[0]
            # "Pass {'name': 'Ada'} to the function" is prose about code.
            if behind.strip() and match.end() - start < MIN_INLINE_CHARACTERS:
                break
            return ast.literal_eval(literal), match.end()
    raise ValueError("its brackets are not closed, or it is a part of a sentence")


def _read_json(text: str) -> _ParsedRows | None:
    parts = _find_json(text.strip())
    return parts[1] if parts and not parts[0] and not parts[2] else None


def _split_cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    cells = (re.sub(r"[*`]", "", cell) for cell in re.split(r"(?<!\\)\|", inner))
    return [cell.replace("\\|", "|").strip() for cell in cells]


def _read_csv(text: str) -> _ParsedRows | None:
    """Return the rows of a text that is CSV or TSV from its first line to its last one."""
    lines = [line for line in text.splitlines() if line.strip()]
    # The rarest separator in prose first.
    for mark in "\t;," if len(lines) > 1 else "":
        if mark not in lines[0]:
            continue
        with suppress(csv.Error):
            header, *rows = csv.reader(io.StringIO("\n".join(lines)), delimiter=mark)
            names = [name.strip() for name in header]
            # Prose may have a comma in each line, so a table of commas or semicolons needs three
            # columns, or numbers alone in the second of two, short distinct names, and numbers, or
            # cells that no space begins.
            numeric = len(rows) > 1 and all(
                map(_NUMBER.fullmatch, (row[-1] for row in rows if row))
            )
            sound = len(names) == len(set(names)) >= (2 if mark == "\t" or numeric else 3)
            sound &= all(0 < len(name) <= 40 and name[-1] not in ".?!" for name in names)
            cells = [cell for row in rows for cell in row]
            sound &= any(_NUMBER.fullmatch(cell.strip()) for cell in cells) or (
                len(rows) > 1 and not any(cell.startswith(" ") for cell in cells)
            )
            if sound and all(len(row) == len(names) for row in rows):
                return _build_rows(_build_objects(names, rows), names[0])
    return None


# ------------------------------------------------------------------------------- from data to rows


def _build_objects(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Return the rows of a table as objects; empty cells are left out.

    A first column without a name holds the names of the rows: "| | Price | Stock |".
    """
    header, rows = _join_merged_header(header, rows)
    if header and not header[0] and "name" not in header:
        header = ["name", *header[1:]]
    pairs = (zip(header, row, strict=False) for row in rows)
    return [{name: cell.strip() for name, cell in row if name and cell.strip()} for row in pairs]


def _join_merged_header(
    header: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return a header whose names are repeated with the row below it, if that tells them apart.

    "| | 2022 | 2022 |" above "| Shop | Sales | Returns |" is "| Shop | 2022 Sales | 2022 Returns |"
    """
    names = [name for name in header if name]
    if len(rows) < 2 or len(set(names)) == len(names) or len(rows[0]) != len(header):
        return header, rows
    joined = [f"{above} {below}".strip() for above, below in zip(header, rows[0], strict=True)]
    is_header = not any(map(_NUMBER.fullmatch, rows[0])) and len(set(joined)) == len(joined)
    return (joined, rows[1:]) if is_header else (header, rows)


class _PendingPart(NamedTuple):
    """An object or a list that is still to be turned into rows."""

    value: Any
    """The object or list itself."""
    name: str = ""
    """The name of its field."""
    about: str = ""
    """The name of the object that it belongs to."""
    table: str = "rows"
    """The names of the fields that lead to it."""
    in_list: bool = False
    """Whether it is an element of a list."""
    distinguishing: Sequence[str] = ()
    """Fields that distinguish it from elements of the same name."""
    depth: int = 0
    """Levels of nesting above it."""


def _build_rows(value: Any, first: str = "") -> _ParsedRows | None:
    """Return the rows of a JSON value; ``None`` where it contains no object.

    An object inside another one is part of it; an object in a list is a row.

    Args:
        value: the parsed JSON.
        first: the column that names a row where no column has one of the usual names.
    """
    parsed, values_left = _ParsedRows([], [], []), MAX_VALUES
    # Breadth first and without recursion: the input decides the depth.
    waiting = deque([_PendingPart(value)])
    while waiting:
        part = waiting.popleft()
        if part.depth > MAX_DEPTH:
            raise _TooMuchError
        if isinstance(part.value, list | tuple):
            # A list of lists, as of the legs of several journeys, is one table.
            inner = [element for element in part.value if isinstance(element, list | tuple)]
            if inner and len(inner) == len(part.value):
                joined = [element for values in inner for element in values]
                waiting.append(part._replace(value=joined, depth=part.depth + 1))
                continue
            objects = [element for element in part.value if isinstance(element, Mapping)]
            # Step 1: the elements of a list of objects wait as rows, and the list is counted.
            if len(objects) > 1:
                field = " ".join(split_field_name(part.name)[0]) or "rows"
                parsed.counts.append(f"There are {len(objects)} {field}.")
            parsed.grids.extend(_build_grid(objects))
            distinguishing = _choose_distinguishing_fields(
                objects, [_find_label(element, first, True)[1] for element in objects]
            )
            below = part._replace(in_list=True, distinguishing=distinguishing, depth=part.depth + 1)
            waiting += [below._replace(value=element) for element in objects]
        if not isinstance(part.value, Mapping):
            continue
        # Step 2: the name of the object, with the fields that distinguish it: "Aurora lamp, 2020".
        key, label = _find_label(part.value, first, part.in_list)
        names = [
            *filter(None, [label, *(str(part.value[element]) for element in part.distinguishing)])
        ]
        label = ", ".join(names)
        about = f"{label} ({part.about})" if label and part.about else label or part.about
        sentences, texts, prose = [], [about], False
        cells: list[tuple[str, str]] = []
        # Step 3: a sentence for each value; lists of objects become tables of their own.
        for name, cell, depth in _list_fields(part):
            values_left -= 1
            if values_left < 0:
                raise _TooMuchError
            if isinstance(cell, list | tuple) and any(
                isinstance(element, Mapping) for element in cell
            ):
                table = f"{part.table} {name}"
                waiting.append(_PendingPart(cell, name, about, table, depth=depth + 1))
            # The sentence of the name itself does not repeat it: "The name is Aurora lamp."
            elif sentence := _build_sentence(
                name, cell, "" if name in (key, *part.distinguishing) else about
            ):
                sentences.append(sentence)
                values = cell if isinstance(cell, list | tuple) else [cell]
                cells += [(name, str(element)) for element in values]
                # "The lamp is dimmable": of a truth value the column's name is what a statement
                # mentions.
                texts += [name] if isinstance(cell, bool) else []
                texts += [cell] if isinstance(cell, str) and not _NUMBER.fullmatch(cell) else []
                prose |= isinstance(cell, str) and len(cell.split()) > MAX_VALUE_WORDS
        if sentences:
            # Step 4: the row with its words, which select it for a statement.
            label_words, words = (
                frozenset(content_words(element)) for element in (about, " ".join(texts))
            )
            spoken = tuple(filter(None, map(_make_searchable, names)))
            # In the order of the fields of DataRow.
            known = spoken, label_words, words, tuple(sentences), part.table, prose
            parsed.rows.append(DataRow(*known, tuple(cells), _find_dates_of_row(names, cells)))
    return parsed if parsed.rows else None


def _build_grid(objects: Sequence[Mapping[Any, Any]]) -> Iterator[TableGrid]:
    """Yield a list of objects as a table; lists and objects inside them are left out."""
    names = list(dict.fromkeys(name for element in objects for name in element))
    # Objects that have no fields in common are no table, and would give too many empty cells.
    if not objects or len(names) * len(objects) > MAX_VALUES:
        return
    rows = (tuple(_spell_scalar(element.get(name)) for name in names) for element in objects)
    yield TableGrid(tuple(map(str, names)), tuple(rows))


def _spell_scalar(value: Any) -> str:
    """Return a text or a number as it is written; empty for anything else."""
    is_scalar = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if is_scalar else ""


def _list_fields(part: _PendingPart) -> Iterator[tuple[str, Any, int]]:
    """Yield the fields of an object with their values and depths, level by level.

    The fields of inner objects follow under both names ("price amount"). Lists stay as they are.
    """
    fields = deque(("", str(name), cell, part.depth) for name, cell in part.value.items())
    while fields:
        within, inner_name, cell, depth = fields.popleft()
        if depth > MAX_DEPTH:
            raise _TooMuchError
        name = f"{within} {inner_name}".strip()
        sections = _join_sections(cell)
        value = _join_pairs(cell)
        # A list of one object in a row is part of the row, as an object is.
        if part.in_list and isinstance(value, list) and len(value) == 1:
            value = value[0] if isinstance(value[0], Mapping) else value
        if sections is not None:
            # The names of the sections say more than that of their list ("sections").
            fields += [(within, title, inner, depth + 1) for title, inner in sections.items()]
        elif isinstance(value, Mapping):
            fields += [(name, str(inner), element, depth + 1) for inner, element in value.items()]
        else:
            yield name, value, depth


def _find_dates_of_row(
    names: Sequence[str], cells: Sequence[tuple[str, str]]
) -> tuple[tuple[float, ...], ...]:
    """Return the dates of a row's name and of its columns of times."""
    times = [text for name, text in cells if _find_last_word(name) in TIMES]
    return tuple(date for text in (*names, *times) for date in _read_dates(text))


def _join_pairs(value: Any) -> Any:
    """Return a list of names and values as one object; any other value is returned as it is.

    ``[{"name": "Weight", "value": "205 g"}]`` is ``{"Weight": "205 g"}``. A value without a name
    continues the one before it.
    """
    if not isinstance(value, list) or not value:
        return value
    joined: dict[str, Any] = {}
    before = ""
    for pair in value:
        if not isinstance(pair, Mapping) or len(pair) != 2 or "value" not in pair:
            return value
        key = next(name for name in pair if name != "value")
        if key not in _NAMES_OF_PAIRS or not isinstance(pair[key], str):
            return value
        name = pair[key].strip() or before
        # Names that occur twice are no fields of one object, but rows.
        if name in joined and name != before:
            return value
        joined[name] = [*joined[name], pair["value"]] if name in joined else [pair["value"]]
        before = name
    return joined


def _join_sections(value: Any) -> dict[str, Any] | None:
    """Return a list of titled lists of names and values as one object; ``None`` for other values.

    ``[{"group": "Body", "items": [{"name": "Weight", "value": "205 g"}]}, ...]`` is
    ``{"Body": {"Weight": "205 g"}, ...}``: these are parts of one thing and no rows of a table,
    which may be mistaken for each other.
    """
    if not isinstance(value, list):
        return None
    sections: dict[str, Any] = {}
    for element in value:
        if not isinstance(element, Mapping) or len(element) != 2:
            return None
        # In either order.
        title, inner = sorted(element.values(), key=lambda field: not isinstance(field, str))
        inner = _join_pairs(inner)
        if not isinstance(title, str) or not isinstance(inner, Mapping) or title in sections:
            return None
        sections[title] = inner
    return sections or None


def _find_label(row: Mapping[Any, Any], first: str, in_list: bool) -> tuple[str, str]:
    """Return the field that names a row, and its value; both empty if there is none.

    The field is chosen by its own name (:data:`LABELS`); for an element of a list it is else the
    first short text.
    """
    texts = {
        name: value
        for name, value in row.items()
        if isinstance(value, str) and 0 < len(value) <= 80 and not value.startswith(_LINKS)
    }
    by_name = {"_".join(split_field_name(str(name))[0]).lower(): name for name in reversed(texts)}
    # The best label first: an exact name, then the first column of a table, then "product_name".
    candidates = [by_name[usual_name] for usual_name in LABELS if usual_name in by_name]
    candidates += [first] if first in texts else []
    candidates += [
        by_name[n] for usual_name in LABELS for n in by_name if n.endswith(f"_{usual_name}")
    ]
    name = next(iter([*candidates, *(texts if in_list else ())]), "")
    return name, texts.get(name, "")


def _choose_distinguishing_fields(
    rows: Sequence[Mapping[Any, Any]], names: Sequence[str]
) -> list[str]:
    """Return at most three fields that distinguish rows of the same name, times first, then texts.

    Other numbers are left out, because they are the values that rows state.
    """

    def tells(field: Any) -> bool:
        values = [row.get(field) for row in rows]
        texts = [value for value in values if isinstance(value, str) and 0 < len(value) <= 40]
        if _find_last_word(str(field)) in TIMES:
            return all(isinstance(value, str | int) for value in values)
        return len(texts) == len(values) and not any(map(_NUMBER.fullmatch, texts))

    identifiers, chosen = list(names), list[str]()
    if len(set(identifiers)) == len(identifiers):
        return []
    fields = sorted(
        filter(tells, rows[0]), key=lambda field: _find_last_word(str(field)) not in TIMES
    )
    for field in fields:
        # Keep a field only if it distinguishes more rows than those before it.
        longer_identifiers = [
            f"{name}\n{row[field]}" for name, row in zip(identifiers, rows, strict=True)
        ]
        if len(set(longer_identifiers)) > len(set(identifiers)):
            identifiers, chosen = longer_identifiers, [*chosen, field]
        if len(set(identifiers)) == len(identifiers) or len(chosen) == 3:
            break
    return chosen


def _find_last_word(field: str) -> str:
    """Return the last word of a field's name in small letters; empty for a unit."""
    words, unit = split_field_name(field)
    return words[-1].lower() if words and not unit else ""


def _read_dates(text: str) -> list[tuple[float, ...]]:
    """Return the dates that a short text has; a mere year is one."""
    if not any(map(str.isdigit, text[:MAX_DATE_CHARACTERS])) or len(text) > MAX_DATE_CHARACTERS:
        return []
    if _YEAR.fullmatch(text.strip()):
        return [(float(text), 0.0, 0.0)]
    return [value.numbers for value in read_values(text) if value.kind == "date"]


def _make_searchable(name: str) -> str:
    """Return a name in the form that is searched for in statements.

    A name of content words or digits is searched without regard to case; a common word ("A", "IN")
    only as it is written, and not at all without a capital.
    """
    spoken_name = _join_words(name)
    if content_words(name) or any(character.isdigit() for character in name):
        return spoken_name.casefold()
    return spoken_name if spoken_name != spoken_name.casefold() else ""


def split_field_name(name: str) -> tuple[list[str], str]:
    """Return the words of a field's name, and the unit of its numbers (empty without one).

    A scale is a part of the unit: "million euros" of "Revenue (million euros)".
    """
    words = [
        word if word.isupper() and len(word) > 1 else word.lower() for word in _WORD.findall(name)
    ]
    of_temperature = any(word.startswith("temp") for word in words)
    units = {**UNITS, **DEGREES} if of_temperature else UNITS
    unit = scale = ""
    # A name that is nothing but a unit ("percent") stays the name. Either may be last:
    # "revenue_usd_millions".
    while len(words) > 1:
        last = words[-1].lower()
        if not unit and last in units:
            unit = units[last]
        elif not scale and last.removesuffix("s") in SCALES:
            scale = last.removesuffix("s")
        elif not (last == "in" and (unit or scale)):
            break
        words = words[:-1]
    return words, f"{scale} {unit}".strip()


def _build_sentence(name: str, value: Any, about: str) -> str:
    """Return the sentence for a value of a row; empty where it states nothing."""
    words, unit = split_field_name(name)
    field, of = " ".join(words), f" of {about}" if about else ""
    if isinstance(value, bool):
        # "is_dimmable" gives "The lamp is dimmable.", "has_timer" gives "The lamp has timer."
        bare = " ".join(words[words[:1] in (["is"], ["has"]) :]) or field
        yes, no = ("has", "does not have") if words[:1] == ["has"] else ("is", "is not")
        return f"{about or 'It'} {yes if value else no} {bare}."
    values = value if isinstance(value, list | tuple) else [value]
    texts = [
        " ".join(str(element).split())
        for element in values
        if isinstance(element, str | int | float)
    ]
    text = " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))
    if not text or not field:
        return ""
    if unit and _NUMBER.fullmatch(text):
        text = f"{text} {unit}"
    # Prose stays as it is: "The ... is ..." around whole sentences would confuse a reader.
    if len(text.split()) > MAX_VALUE_WORDS:
        return f"{field}{of}: {text.rstrip('.')}."
    return f"The {field}{of} {'are' if len(texts) > 1 else 'is'} {text.rstrip('.')}."

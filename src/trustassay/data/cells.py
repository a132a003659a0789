"""Headers and cells of tables that people and tools write: CSV and spreadsheets."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from trustassay.data.faults import Untold, UntoldError
from trustassay.data.guessing import guesses
from trustassay.data.layouts import (
    AMBIGUOUS,
    PROSE_NAMES,
    SPELLINGS,
    STRUCTURED_FIELDS,
    TEXT_FIELDS,
)
from trustassay.data.raw import InputError, Raw, missing_source
from trustassay.data.recognising import columns_of, tells_question
from trustassay.data.spelling import known_name, normal
from trustassay.sample import Problem

__all__ = [
    "MOST_ABOVE",
    "check_columns",
    "checked_header",
    "header_place",
    "table_record",
    "with_lists",
]

MOST_ABOVE = 20
"""Rows of a table among which its header is looked for."""

_MEANT_AS_LIST = re.compile(r"""\[\s*["'{]|\{\s*["']""")
"""How a list of passages begins; a passage may begin with ``[1]``."""


def header_place(
    rows: Sequence[Sequence[str]], known: Callable[[Sequence[str]], bool]
) -> int | None:
    """Return the place of the first ``known`` header that has more cells with text than each row
    above it, which are titles; ``None`` where there is none.
    """
    most = 0
    for place, row in enumerate(rows):
        filled = sum(map(bool, row))
        if filled > most and known(row):
            return place
        most = max(most, filled)
    return None


def checked_header(
    header: Sequence[str], name: str, fields: Mapping[str, str], parted_by: str
) -> list[str]:
    """Return the names of columns; a cell without text names none.

    Raises:
        UntoldError: no column is known to hold the question. InputError: as of `check_columns`.
    """
    present = [cell for cell in header if cell]
    if not tells_question(present, fields):
        raise UntoldError(
            f"{name}: the first line is not a header with a question column; expected question "
            f"or --field question=COLUMN, columns separated by {parted_by}; it reads "
            f"{', '.join(present)[:80]!r}",
            _untold(present, fields),
        )
    check_columns(present, name, fields)
    return list(header)


def _untold(header: Sequence[str], fields: Mapping[str, str]) -> Untold:
    columns = columns_of(header, fields)
    known = {k: v for k, v in columns.items() if not AMBIGUOUS.issuperset(map(known_name, v))}
    taken = tuple(column for names in known.values() for column in names)
    guessed = {k: v for k, v in guesses(tuple(header), taken).items() if k not in known}
    whole = {"question", "response", "documents"} <= {*guessed, *known}
    return Untold(tuple(header), {"question": ""} | guessed, whole)


def check_columns(columns: Sequence[str], name: str, fields: Mapping[str, str]) -> None:
    """Refuse columns of one name, and names of ``--field`` that no column has."""
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise InputError(f"{name}: the header names {', '.join(twice)} more than once")
    for canonical, theirs in fields.items():
        if theirs not in columns and theirs.partition(".")[0] not in columns:
            raise missing_source(name, canonical, theirs, columns)


def table_record(cells: dict[str, Any], where: str, fields: Mapping[str, str]) -> Raw:
    """Return the record of a row whose empty cells may be blank texts or missing ones.

    An empty cell of the response is a blank response, as JSON's ``""`` is; in a table without such
    a column the response is missing.
    """
    names = columns_of(tuple(cells), fields).get("response", ())
    there = [name for name in names if name in cells]
    if there and not any(cells[name] for name in there):
        cells[there[0]] = ""
    return with_lists(cells, where, fields)


def with_lists(cells: dict[str, Any], where: str, fields: Mapping[str, str]) -> Raw:
    """Return the record of a row; cells that look like lists are read, except those of texts: an
    answer may be ``[1]`` alone.
    """
    if not any(isinstance(cell, str) and _like_json(cell) for cell in cells.values()):
        return Raw(where, cells, of_table=True)
    known = columns_of(tuple(cells), fields)
    texts = {column for field in TEXT_FIELDS for column in known.get(field, ())}
    named = fields.values()
    structured = {column for field in STRUCTURED_FIELDS for column in known.get(field, ())}
    record: dict[str, Any] = {}
    problems = []
    for column, cell in cells.items():
        record[column] = cell
        if isinstance(cell, str) and _like_json(cell) and column not in texts:
            read = _value_of(cell)
            if read is not None:
                record[column] = read
            elif column in structured and not _is_text(column, cell, named):
                message = 'is not a list; write one in a cell as ["one", "two"]'
                problems.append(Problem(column, message))
    return Raw(where, record, tuple(problems), of_table=True)


def _is_text(column: str, cell: str, named: Collection[str]) -> bool:
    known = normal(column) if column in named else known_name(column)
    if column in PROSE_NAMES or known in PROSE_NAMES:
        return True
    return known in SPELLINGS["documents"] and not _MEANT_AS_LIST.match(cell)


def _like_json(cell: str) -> bool:
    return cell.startswith(("[", "{"))


def _value_of(cell: str) -> Any:
    """Return the list or object of a cell, as JSON or as Python writes it; ``None`` if neither.

    Nothing is run: Python's form is read as literals alone.
    """
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        pass
    try:
        found = json.loads(json.dumps(ast.literal_eval(cell)))  # a set, say, has no place here
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    return _elements(cell) if found and isinstance(found, list) else found


def _elements(cell: str) -> list[Any]:
    """Return the elements of a list, also where an array of NumPy was written, without commas:
    Python would join its texts.
    """
    texts = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(cell).readline)
        if token.type == tokenize.STRING
    ]
    found: list[Any] = ast.literal_eval(cell)
    if len(texts) > len(found) and all(isinstance(one, str) for one in found):
        return [ast.literal_eval(text) for text in texts]
    return found

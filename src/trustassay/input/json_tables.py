"""Reads the rows of tables that are written as one JSON value, in each form of pandas.

1. An object of columns: lists, or objects by the label of the row (``orient="columns"``).
2. The names of the columns beside lists of cells (``"split"``, ``"tight"``).
3. Rows beside a schema (``"table"``).
4. An object of rows by their labels (``"index"``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trustassay.input.recognising import find_columns, has_question, is_published_set

Rows = Sequence[Any]


def read_rows(content: Mapping[str, Any], fields: Mapping[str, str]) -> Rows | None:
    """Return the rows of a table as records, in their order; ``None`` for any other object.

    Args:
        content: the object.
        fields: the user's names of fields, by canonical field.
    """
    names, rows = content.get("columns"), content.get("data")
    if isinstance(names, list) and isinstance(rows, list):
        return _name_cells(names, rows)
    schema = content.get("schema")
    if isinstance(schema, Mapping) and isinstance(rows, list):
        return _drop_index(rows, schema.get("primaryKey"))
    columns = list(content.values())
    if columns and all(isinstance(column, list) for column in columns):
        is_even = len({len(column) for column in columns}) == 1
        return _join_columns(content, columns) if is_even and _asks(content, fields) else None
    if not columns or not all(isinstance(column, Mapping) for column in columns):
        return None
    labels = list(columns[0])
    # Every column has the label of every row. The usual labels are the numbers of the rows.
    is_even = all(column.keys() == columns[0].keys() for column in columns)
    is_numbered = labels == [str(number) for number in range(len(labels))]
    if is_even and labels and (is_numbered or _asks(content, fields)):
        return _join_columns(content, [[column[key] for key in labels] for column in columns])
    return _add_labels(content) if all(_asks(row, fields) for row in columns) else None


def _asks(row: Mapping[str, Any], fields: Mapping[str, str]) -> bool:
    """Whether a row with these names has a question or a response, as not every object has."""
    is_known = has_question(row, fields) or "response" in find_columns(row, fields)
    return is_known or is_published_set(row.keys())


def _join_columns(names: Mapping[str, Any], columns: Sequence[Sequence[Any]]) -> Rows:
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _name_cells(names: Sequence[Any], rows: Sequence[Any]) -> Rows:
    """Return rows as objects; one with another number of cells stays a list, which is a fault."""
    return [
        dict(zip(map(str, names), row, strict=True))
        if isinstance(row, list) and len(row) == len(names)
        else row
        for row in rows
    ]


def _drop_index(rows: Sequence[Any], index: Any) -> Rows:
    """Return rows without the numbers that pandas gave them."""
    if index != ["index"]:
        return rows
    return [
        {name: value for name, value in row.items() if name != "index"}
        if isinstance(row, Mapping)
        else row
        for row in rows
    ]


def _add_labels(rows: Mapping[str, Mapping[str, Any]]) -> Rows:
    """Return rows with their labels as ids, if they have none and the labels are no numbers."""
    is_named = not all(label.isdecimal() for label in rows)
    return [{"id": label, **row} if is_named else row for label, row in rows.items()]

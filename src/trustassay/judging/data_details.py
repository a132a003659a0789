"""Finds the values of a claim that data have, but not in the rows or columns that it is about.

Rows are checked only where they have dates: a date says reliably which rows a claim is about, while
a name may be a common word ("the display").
"""

from collections.abc import Sequence
from functools import cached_property

from trustassay.judging.details import KnownDetails
from trustassay.text.quantities import read_values
from trustassay.text.tables import DataRow, find_dated_rows, read_data, split_field_name
from trustassay.text.words import content_words

MIN_ROWS = 3
"""Rows of a table with dates from which its values are checked; fewer are hardly mistaken."""


class DataDetails:
    """The data of some passages whose rows have dates."""

    def __init__(self, texts: Sequence[str], titles: Sequence[str], question: str) -> None:
        """
        Args:
            texts: the texts of the passages, folded.
            titles: their titles, folded.
            question: the question, folded.
        """
        self._titles, self._question = titles, question
        data_of_texts = [(text, read_data(text)) for text in texts]
        self._passages = [data for _, data in data_of_texts if data is not None]
        self._prose = [text for text, data in data_of_texts if data is None]

    @cached_property
    def _tables(self) -> list[list[DataRow]]:
        tables: dict[tuple[int, str], list[DataRow]] = {}
        for number, data in enumerate(self._passages):
            for row in data.rows:
                if row.dates:
                    tables.setdefault((number, row.table), []).append(row)
        return [rows for rows in tables.values() if len(rows) >= MIN_ROWS]

    def find_misplaced(self, claim: str) -> list[str]:
        """Return the values of a folded claim, as written, that the rows of its dates do not have.

        All that stands outside of these tables stays known, and so do the means of the columns.
        """
        dated = [row for rows in self._tables for row in find_dated_rows(rows, claim)]
        if not dated:
            return []
        in_tables = {id(row) for rows in self._tables for row in rows}
        left_out = in_tables - set(map(id, dated))
        texts = [
            piece if isinstance(piece, str) else " ".join(piece.sentences)
            for data in self._passages
            for piece in (*data.pieces, *data.counts)
            if id(piece) not in left_out
        ]
        means = " ".join(map(str, _compute_means(dated)))
        known = KnownDetails([*texts, *self._prose, means], self._titles, self._question)
        return known.find_missing_values(claim)


def _compute_means(rows: Sequence[DataRow]) -> list[float]:
    """Return the mean of each column of numbers."""
    columns: dict[str, list[float]] = {}
    for row in rows:
        for name, text in row.cells:
            values = [value.numbers[0] for value in read_values(text) if value.kind == "number"]
            if len(values) == 1:
                columns.setdefault(name, []).append(values[0])
    return [round(sum(column) / len(column), 4) for column in columns.values()]


def has_swapped_numbers(claim: str, rows: Sequence[DataRow]) -> bool:
    """Whether a claim names a column of these rows, but has the number of another one.

    "The price of Aurora is 20" does where its price is 35 and its stock 20.
    """
    words, numbers = frozenset(content_words(claim)), _read_numbers(claim)
    columns: dict[str, set[tuple[float, ...]]] = {}
    for row in rows:
        for name, text in row.cells:
            columns.setdefault(name, set()).update(_read_numbers(text))
    lacks_number = False
    of_mentioned, of_others = set[tuple[float, ...]](), set[tuple[float, ...]]()
    for name, values in columns.items():
        words_of_name = frozenset(content_words(" ".join(split_field_name(name)[0])))
        (of_mentioned if words & words_of_name else of_others).update(values)
        is_named = bool(words_of_name) and words_of_name <= words
        lacks_number |= is_named and bool(values) and not values & numbers
    return lacks_number and bool(numbers & of_others - of_mentioned)


def _read_numbers(text: str) -> set[tuple[float, ...]]:
    return {value.numbers for value in read_values(text)}

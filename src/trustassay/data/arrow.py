"""Batches of Arrow as raw records, of files and of tables in memory alike."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol, cast, runtime_checkable

from trustassay.data.records import Fault, InputError, Raw, from_arrow, is_nan, plain
from trustassay.data.tables import check_columns, table_record
from trustassay.data.traces import is_trace
from trustassay.sample import Problem

MOST_ROWS = 1024
"""Rows of an Arrow batch, or of a frame, that are turned into Python objects at a time."""


def batch_records(batches: Iterable[Any], name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    """Return the rows of batches that have the same columns."""
    number = 0
    for batch in batches:
        columns = batch.column_names
        if number == 0:
            check_columns(columns, name, fields)
        for row in zip(*map(_cells, batch.columns), strict=True):
            number += 1
            cells = dict(zip(columns, row, strict=True))
            yield _arrow_record(cells, f"{name}: row {number}")


def in_slices(batches: Iterable[Any]) -> Iterator[Any]:
    """Return batches in slices of no more than :data:`MOST_ROWS` rows."""
    for batch in batches:
        for start in range(0, batch.num_rows, MOST_ROWS):
            yield batch.slice(start, min(MOST_ROWS, batch.num_rows - start))


def of_arrow(error: BaseException) -> bool:
    """Return whether arro3 raised it: its panics are no ``Exception``, and known by name alone."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _cells(column: Any) -> list[Any]:
    try:
        return cast("list[Any]", column.to_pylist())
    except BaseException as error:  # one value that Python cannot hold, as a date in 148108
        if not of_arrow(error):
            raise
        return [_cell(scalar) for scalar in column]


def _cell(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except BaseException as error:
        if not of_arrow(error):
            raise
        return Problem("", f"cannot be read ({error})")


def _arrow_record(cells: Mapping[str, Any], where: str) -> Raw:
    record: dict[str, Any] = {}
    problems = []
    for column, value in cells.items():
        if isinstance(value, Problem):
            record[column] = None
            problems.append(value._replace(field=column))
        else:
            record[column] = None if is_nan(value) else from_arrow(value)
    return Raw(where, record, tuple(problems), of_table=True)


FRAME = "the table"


@runtime_checkable
class ArrowStream(Protocol):
    """A table of any library that speaks Arrow's interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as a stream of batches."""


class Columns:
    """Columns of one length by name: lists, arrays of numpy or Arrow, as Ray Data gives them."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Raises :class:`InputError` if they differ in length."""
        self.columns = list(map(str, given))
        self._lists = [
            one.to_pylist() if hasattr(one, "to_pylist") else one for one in given.values()
        ]
        lengths = list(map(len, self._lists))
        if len(set(lengths)) > 1:
            told = ", ".join(f"{k} {n:,}" for k, n in zip(self.columns, lengths, strict=True))
            raise InputError(f"{FRAME}: expected columns of one length, got the lengths {told}")
        self._length = max(lengths, default=0)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._length

    def iter_rows(self) -> Iterator[tuple[Any, ...]]:
        """Return the rows."""
        return zip(*self._lists, strict=True)


def frame_records(source: Any, fields: Mapping[str, str]) -> Iterator[Raw] | None:
    """Return the rows of a table in memory; ``None`` where ``source`` is none.

    Cells that are NaN, NaT or NA are empty. An empty cell of the response is a blank one in frames,
    as in CSV, and a missing one in Arrow tables and datasets, as in Parquet.

    Raises:
        InputError: it holds several splits, or can be read only once; while iterating: columns of
            one name, or one of ``fields`` that no column has.
    """
    kind = type(source)
    library = kind.__module__.partition(".")[0]
    if library == "pandas" and kind.__name__ == "DataFrame":
        return _rows(list(map(str, source.columns)), _pandas_rows(source), fields)
    if kind is Columns or (library == "polars" and kind.__name__ == "DataFrame"):
        return _rows(list(source.columns), source.iter_rows(), fields)
    if kind.__name__ == "LazyFrame":
        raise InputError("expected a table, got a LazyFrame; collect() it first")
    if library == "datasets" and kind.__name__.endswith("DatasetDict"):
        if len(source) != 1:
            shown = ", ".join(map(str, source)) or "(none)"
            raise InputError(f"expected one split, got the splits {shown}; give one of them")
        return frame_records(next(iter(source.values())), fields)
    if library == "datasets" and kind.__name__ in {"Dataset", "IterableDataset"}:
        return _dataset_rows(source)
    if not isinstance(source, ArrowStream):
        return None
    if isinstance(source, Iterator):
        raise InputError(f"expected a table, got a {kind.__name__}; read_all() it first")
    from arro3.core import RecordBatchReader

    return batch_records(in_slices(RecordBatchReader.from_stream(source)), FRAME, fields)


def frame_index(source: Any, left_out: Collection[Fault], limit: int | None = None) -> Any:
    """Return the index of a pandas frame without the faulty rows; ``None`` of all else.

    ``limit`` is the number of rows that were read, ``None`` for all.
    """
    kind = type(source)
    is_frame = kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"
    if not is_frame or is_trace(dict.fromkeys(source.columns)):  # several rows are one sample
        return None
    rows = [int(one.where.rpartition(" ")[2]) - 1 for one in left_out]
    return source.index[:limit].delete(rows)


def _rows(
    columns: list[str], rows: Iterator[tuple[Any, ...]], fields: Mapping[str, str]
) -> Iterator[Raw]:
    check_columns(columns, FRAME, fields)
    for number, row in enumerate(rows, 1):
        cells = {name: _plain_cell(value) for name, value in zip(columns, row, strict=True)}
        yield table_record(cells, f"{FRAME}: row {number}", fields)


def _pandas_rows(frame: Any) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(frame), MOST_ROWS):
        part = frame.iloc[start : start + MOST_ROWS]
        there = part.notna()
        yield from part.astype(object).where(there, None).itertuples(index=False, name=None)


def _dataset_rows(dataset: Any) -> Iterator[Raw]:
    for number, row in enumerate(dataset, 1):
        cells = {name: _plain_cell(value) for name, value in row.items()}
        yield Raw(f"{FRAME}: row {number}", cells, of_table=True)


def _plain_cell(value: Any) -> Any:
    result = from_arrow(plain(value))
    return None if is_nan(result) else result

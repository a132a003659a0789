"""Reads batches of Arrow as raw records, from files and from tables in memory."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol, cast, runtime_checkable

from trustassay.core.sample import LONGEST_LINE_MIB, Problem
from trustassay.input.bounds import MIB_BYTES, find_long_cells
from trustassay.input.recognising import find_columns
from trustassay.input.records import (
    InputError,
    InputFault,
    RawRecord,
    arrow_to_json_types,
    is_nan,
    to_json_types,
)
from trustassay.input.tables import build_table_record, check_columns, write_numbers
from trustassay.input.traces import is_trace

MAX_SLICE_ROWS = 1024
"""Rows of an Arrow batch, or of a frame, that are turned into Python objects at a time."""


def read_batches(
    batches: Iterable[Any],
    name: str,
    fields: Mapping[str, str],
    longest_line: int = LONGEST_LINE_MIB,
) -> Iterator[RawRecord]:
    """Yield the rows of batches as raw records.

    Args:
        batches: batches of Arrow that have the same columns.
        name: the name of the input, for messages.
        fields: names of columns by canonical field; each column must exist.
        longest_line: MiB of the longest cell.
    """
    number = 0
    for batch in batches:
        columns = batch.column_names
        # Checked once, with the first batch, before any row is read.
        if number == 0:
            check_columns(columns, name, fields)
            question_columns = find_columns(columns, fields).get("question", ())
        has_long_cells = batch.nbytes > longest_line * MIB_BYTES
        for row in zip(*map(_read_cells, batch.columns), strict=True):
            number += 1
            cells = dict(zip(columns, row, strict=True))
            if has_long_cells:
                cells |= find_long_cells(cells, longest_line)
            yield _build_record(cells, question_columns, f"{name}: row {number}")


def slice_batches(batches: Iterable[Any], longest_line: int = LONGEST_LINE_MIB) -> Iterator[Any]:
    """Yield batches in slices of at most :data:`MAX_SLICE_ROWS` rows, to bound the memory.

    Slices have fewer rows if these would have more than ``longest_line`` MiB in the mean.
    """
    for batch in batches:
        # Of the batch, as the size of a slice counts the texts before it.
        mean_bytes = batch.nbytes / max(batch.num_rows, 1)
        most_rows = int(longest_line * MIB_BYTES / max(mean_bytes, 1))
        most_rows = max(1, min(MAX_SLICE_ROWS, most_rows))
        for start in range(0, batch.num_rows, most_rows):
            yield batch.slice(start, min(most_rows, batch.num_rows - start))


def is_arrow_error(error: BaseException) -> bool:
    """Whether arro3 may have raised an error.

    A panic of its Rust code derives from ``BaseException``, and its class is not exported, so it is
    recognised by its name.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _read_cells(column: Any) -> list[Any]:
    try:
        return cast("list[Any]", column.to_pylist())
    except BaseException as error:
        # A single value that Python cannot represent, such as a date in the year 148108, makes the
        # whole column fail. Cell by cell only this value is lost.
        if not is_arrow_error(error):
            raise
        return [_read_cell(scalar) for scalar in column]


def _read_cell(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except BaseException as error:
        if not is_arrow_error(error):
            raise
        return Problem("", f"cannot be read ({error})")


def _build_record(
    cells: Mapping[str, Any], question_columns: Iterable[str], where: str
) -> RawRecord:
    record: dict[str, Any] = {}
    problems = []
    for column, value in cells.items():
        if isinstance(value, Problem):
            record[column] = None
            problems.append(value._replace(field=column))
        else:
            record[column] = None if is_nan(value) else arrow_to_json_types(value)
    write_numbers(record, question_columns)
    return RawRecord(where, record, tuple(problems), of_table=True)


FRAME = "the table"


@runtime_checkable
class ArrowStream(Protocol):
    """A table of any library that implements Arrow's C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as a stream of batches."""


class Columns:
    """Columns of the same length by name: lists, NumPy arrays or Arrow arrays, as from Ray Data."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        """Raise :class:`InputError` if the columns differ in length."""
        self.columns = list(map(str, columns))
        self._lists = [
            column.to_pylist() if hasattr(column, "to_pylist") else column
            for column in columns.values()
        ]
        lengths = list(map(len, self._lists))
        if len(set(lengths)) > 1:
            lengths_by_name = ", ".join(
                f"{k} {n:,}" for k, n in zip(self.columns, lengths, strict=True)
            )
            raise InputError(f"{FRAME}: expected columns of the same length, got {lengths_by_name}")
        self._length = max(lengths, default=0)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._length

    def iter_rows(self) -> Iterator[tuple[Any, ...]]:
        """Return the rows."""
        return zip(*self._lists, strict=True)


def read_frame(source: Any, fields: Mapping[str, str]) -> Iterator[RawRecord] | None:
    """Return the rows of a table in memory; ``None`` where ``source`` is not a table.

    Cells that are NaN, NaT or NA are empty. An empty response is a blank answer in frames, as in
    CSV, and a missing answer in Arrow tables and datasets, as in Parquet.

    Args:
        source: a frame of pandas or polars, an Arrow table, a dataset of ``datasets``, or
            :class:`Columns`.
        fields: names of columns by canonical field.

    Raises:
        InputError: the table has several splits, or can be read only once. While iterating: two
            columns have the same name, or a column of ``fields`` is missing.
    """
    # The libraries are recognised by name, so that none of them has to be imported, or installed.
    kind = type(source)
    library = kind.__module__.partition(".")[0]
    if library == "pandas" and kind.__name__ == "DataFrame":
        return _read_rows(list(map(str, source.columns)), _read_pandas_rows(source), fields)
    if kind is Columns or (library == "polars" and kind.__name__ == "DataFrame"):
        return _read_rows(list(source.columns), source.iter_rows(), fields)
    if kind.__name__ == "LazyFrame":
        raise InputError("expected a table, got a LazyFrame; collect() it first")
    if library == "datasets" and kind.__name__.endswith("DatasetDict"):
        if len(source) != 1:
            split_names = ", ".join(map(str, source)) or "(none)"
            raise InputError(f"expected one split, got the splits {split_names}; pass one of them")
        return read_frame(next(iter(source.values())), fields)
    if library == "datasets" and kind.__name__ in {"Dataset", "IterableDataset"}:
        return _read_dataset_rows(source, fields)
    if not isinstance(source, ArrowStream):
        return None
    # An input is read more than once, which a stream does not allow.
    if isinstance(source, Iterator):
        raise InputError(f"expected a table, got a {kind.__name__}; read_all() it first")
    from arro3.core import RecordBatchReader

    return read_batches(slice_batches(RecordBatchReader.from_stream(source)), FRAME, fields)


def find_frame_index(
    source: Any, left_out: Collection[InputFault], limit: int | None = None
) -> Any:
    """Return the index of a pandas frame without the faulty rows; ``None`` for other sources.

    Args:
        source: the source of the samples.
        left_out: the faulty rows.
        limit: the number of rows that were read; ``None`` for all.
    """
    kind = type(source)
    is_frame = kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"
    # Several rows of a trace make one sample, so the index of the frame does not fit the samples.
    if not is_frame or is_trace(dict.fromkeys(source.columns)):
        return None
    # The place of a fault ends with its row number: "the table: row 12".
    rows = [int(fault.where.rpartition(" ")[2]) - 1 for fault in left_out]
    return source.index[:limit].delete(rows)


def _read_rows(
    columns: list[str], rows: Iterator[tuple[Any, ...]], fields: Mapping[str, str]
) -> Iterator[RawRecord]:
    check_columns(columns, FRAME, fields)
    for number, row in enumerate(rows, 1):
        cells = {name: _convert_cell(value) for name, value in zip(columns, row, strict=True)}
        yield build_table_record(cells, f"{FRAME}: row {number}", fields)


def _read_pandas_rows(frame: Any) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(frame), MAX_SLICE_ROWS):
        # In parts, since ``astype(object)`` copies all cells.
        part = frame.iloc[start : start + MAX_SLICE_ROWS]
        is_present = part.notna()
        yield from part.astype(object).where(is_present, None).itertuples(index=False, name=None)


def _read_dataset_rows(dataset: Any, fields: Mapping[str, str]) -> Iterator[RawRecord]:
    for number, row in enumerate(dataset, 1):
        cells = {name: _convert_cell(value) for name, value in row.items()}
        write_numbers(cells, find_columns(cells, fields).get("question", ()))
        yield RawRecord(f"{FRAME}: row {number}", cells, of_table=True)


def _convert_cell(value: Any) -> Any:
    result = arrow_to_json_types(to_json_types(value))
    return None if is_nan(result) else result

"""Inputs that are tables: SQL queries with DuckDB, and tables of Delta Lake and Apache Iceberg.

trustassay finds each function by an entry point. They yield batches of Arrow, so that only a part
of a table is in memory at a time. The libraries are imported on first use.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from typing import Any

import fsspec

from trustassay.input.arrow import MAX_SLICE_ROWS, is_arrow_error
from trustassay.input.places import PACKAGES_OF_SCHEMES, InputPlace
from trustassay.input.records import InputError
from trustassay.input.urls import describe_error, file_system, refuse_secret

# The start of a statement, as `SELECT ...` or `(SELECT ...)`; anything else before the first "?"
# is the path of a database.
_QUERY = re.compile(r"\s*(select|from|with|values|table)\b|\s*\(", re.IGNORECASE)
# A scheme in a query: `s3` in `FROM 's3://bucket/*.parquet'`.
_SCHEMES = re.compile(r"\b([a-z][a-z0-9+.-]*)://")
NATIVE_SCHEMES = {"http", "https", "file"}
"""Schemes of URLs that DuckDB reads without fsspec."""
MAX_SOURCE_CHARS = 80
"""Characters of a source that a message shows."""
OpenBatches = Callable[[], Iterator[Any]]


def _import_library(name: str, scheme: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f"{scheme}: {error}; pip install {PACKAGES_OF_SCHEMES[scheme]}") from error


def _read_error(source: str, error: BaseException, rows: int = 0) -> InputError:
    position = f" after row {rows:,}" if rows else ""
    return InputError(
        f"{source:.{MAX_SOURCE_CHARS}}: cannot be read{position}: {describe_error(error)}"
    )


def _make_place(
    source: str, state: Callable[[], Sequence[str]], read_batches: OpenBatches
) -> InputPlace:
    """Return the place of a table; errors name the source and the last row that was read."""

    def batches() -> Iterator[Any]:
        rows = 0
        try:
            for batch in read_batches():
                yield batch
                rows += batch.num_rows
        except InputError:
            raise
        except BaseException as error:
            # Errors of our own code, and Ctrl-C, are not faults of the table.
            if not is_arrow_error(error):
                raise
            raise _read_error(source, error, rows) from error

    return InputPlace(state, {}, batches)


# DuckDB


def duckdb(source: str) -> InputPlace:
    """Return the rows of a query: ``duckdb:SELECT ...``, of a file ``duckdb:FILE?SELECT ...``.

    Raises:
        InputError: not a single SELECT, DuckDB is not installed, or the file cannot be opened.
    """
    refuse_secret(source)
    library = _import_library("duckdb", "duckdb")
    # DuckDB hands over Arrow data through pyarrow.
    _import_library("pyarrow", "duckdb")
    text = source.partition(":")[2]
    file, query = ("", text) if _QUERY.match(text) else text.partition("?")[::2]
    try:
        statements = library.extract_statements(query)
    except library.Error as error:
        raise _read_error(source, error) from None
    # Nothing else may run: an input must not write, attach or load anything.
    if len(statements) != 1 or statements[0].type != library.StatementType.SELECT:
        raise InputError(
            f"{source:.{MAX_SOURCE_CHARS}}: expected one SELECT, for example duckdb:SELECT * FROM "
            "'logs/*.parquet', or with a database file duckdb:FILE?SELECT ..."
        )
    sql = query.strip().rstrip(";")

    def open_database() -> Any:
        try:
            # A database in memory cannot be opened read-only.
            result = library.connect(file or ":memory:", read_only=bool(file))
        except library.Error as error:
            raise _read_error(source, error) from None
        _add_file_systems(result, query)
        return result

    def state() -> list[str]:
        # A query has no version: number and hash of its rows tell whether the input changed.
        count_query = f"SELECT count(*), sum(hash(rows)) FROM (\n{sql}\n) AS rows"
        try:
            with closing(open_database()) as database:
                return [str(value) for value in database.execute(count_query).fetchone()]
        except library.Error as error:
            raise _read_error(source, error) from None

    def read_batches() -> Iterator[Any]:
        from arro3.core import RecordBatchReader

        with closing(open_database()) as database:
            reader = database.sql(sql).to_arrow_reader(MAX_SLICE_ROWS)
            yield from RecordBatchReader.from_stream(reader)

    return _make_place(source, state, read_batches)


def _add_file_systems(database: Any, query: str) -> None:
    """Let DuckDB read cloud storage through fsspec, with the environment's credentials."""
    schemes = set(_SCHEMES.findall(query)) - NATIVE_SCHEMES
    for scheme in sorted(schemes.intersection(fsspec.available_protocols())):
        database.register_filesystem(file_system(f"{scheme}://")[0])


# Delta Lake


def delta(source: str) -> InputPlace:
    """Return the rows of a Delta Lake table: ``delta:PATH`` or ``delta:URL``.

    ``?version=3`` reads an older version.

    Raises:
        InputError: deltalake is not installed, or there is no such table or version.
    """
    refuse_secret(source)
    library = _import_library("deltalake", "delta")
    path, version = _parse_path(source, "version")
    try:
        table = library.DeltaTable(path, version=version)
        state_values = [str(table.metadata().id), str(table.version())]
    except Exception as error:  # of storage, of the log, of Arrow: they have no common class
        raise _read_error(source, error) from error

    def read_batches() -> Iterator[Any]:
        # Several partitions at once would read ahead into memory and mix up the order of rows.
        one_after_another = {
            "datafusion.execution.batch_size": str(MAX_SLICE_ROWS),
            "datafusion.execution.target_partitions": "1",
        }
        query = library.QueryBuilder(one_after_another).register("samples", table)
        yield from query.execute("SELECT * FROM samples")

    return _make_place(source, lambda: state_values, read_batches)


# Iceberg


def iceberg(source: str) -> InputPlace:
    """Return the rows of an Iceberg table: ``iceberg:CATALOG/NAMESPACE.TABLE``.

    The catalog is one of pyiceberg's settings. A path to a file of metadata also works, and
    ``?snapshot=ID`` reads an older state.

    One data file is in memory at a time.

    Raises:
        InputError: pyiceberg is not installed, or there is no such table or snapshot.
    """
    refuse_secret(source)
    _import_library("pyiceberg", "iceberg")
    arrow = _import_library("pyiceberg.io.pyarrow", "iceberg")
    path, snapshot = _parse_path(source, "snapshot")
    table: Any
    try:
        if path.endswith(".metadata.json"):
            from pyiceberg.table import StaticTable

            table = StaticTable.from_metadata(path)
        else:
            from pyiceberg.catalog import load_catalog

            catalog, _, name = path.partition("/")
            table = load_catalog(catalog).load_table(name)
        scan = table.scan(snapshot_id=snapshot)
        current = scan.snapshot()
        # pyiceberg plans in parallel, in any order; the same table must give the same order of
        # samples.
        tasks = sorted(scan.plan_files(), key=lambda scan_task: str(scan_task.file.file_path))
    except Exception as error:  # of the catalog, of storage, of values
        raise _read_error(source, error) from error
    state_values = [str(table.metadata.table_uuid), str(current and current.snapshot_id)]

    def read_batches() -> Iterator[Any]:
        from arro3.core import RecordBatch

        reader = arrow.ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
        for task in tasks:  # all at once would be read ahead into memory
            yield from map(RecordBatch.from_arrow, reader.to_record_batches([task]))

    return _make_place(source, lambda: state_values, read_batches)


def _parse_path(source: str, option: str) -> tuple[str, int | None]:
    """Return the path of a table, and the number behind ``?option=``, if there is one."""
    path, _, query = source.partition(":")[2].partition("?")
    if not query:
        return path, None
    name, _, value = query.partition("=")
    if name != option or not value.isdecimal():
        raise InputError(f"{source}: expected ?{option}=NUMBER, got ?{query}")
    return path, int(value)

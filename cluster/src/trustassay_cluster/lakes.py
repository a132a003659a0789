"""Inputs that are tables: SQL by DuckDB, and tables of Delta Lake and Apache Iceberg.

Each is found by an entry point of trustassay, and gives batches of Arrow, so that a table of any
size needs the memory of a part. Their libraries are loaded when they are used.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from typing import Any

import fsspec

from trustassay.data.arrow import MOST_ROWS, of_arrow
from trustassay.data.places import NEEDED, Place
from trustassay.data.records import InputError
from trustassay_cluster.urls import file_system, reason, refuse_secret

_QUERY = re.compile(r"\s*(select|from|with|values|table)\b|\s*\(", re.IGNORECASE)
_SCHEMES = re.compile(r"\b([a-z][a-z0-9+.-]*)://")
OWN_SCHEMES = {"http", "https", "file"}
"""What DuckDB reads by itself."""
LONGEST = 80
Open = Callable[[], Iterator[Any]]


def _library(name: str, scheme: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f"{scheme}: {error}; pip install {NEEDED[scheme]}") from error


def _told(source: str, error: BaseException, rows: int = 0) -> InputError:
    place = f" after row {rows:,}" if rows else ""
    return InputError(f"{source:.{LONGEST}}: cannot be read{place}: {reason(error)}")


def _table(source: str, state: Callable[[], Sequence[str]], opened: Open) -> Place:
    """Return the place of a table; an error names the source and the last row that was read."""

    def batches() -> Iterator[Any]:
        rows = 0
        try:
            for batch in opened():
                yield batch
                rows += batch.num_rows
        except InputError:
            raise
        except BaseException as error:
            if not of_arrow(error):
                raise
            raise _told(source, error, rows) from error

    return Place(state, {}, batches)


# DuckDB


def duckdb(source: str) -> Place:
    """Return the rows of a query: ``duckdb:SELECT ...``, of a file ``duckdb:FILE?SELECT ...``.

    Raises:
        InputError: it is not one SELECT, DuckDB is not installed, or the file cannot be opened.
    """
    refuse_secret(source)
    library = _library("duckdb", "duckdb")
    _library("pyarrow", "duckdb")
    text = source.partition(":")[2]
    file, query = ("", text) if _QUERY.match(text) else text.partition("?")[::2]
    try:
        statements = library.extract_statements(query)
    except library.Error as error:
        raise _told(source, error) from None
    if len(statements) != 1 or statements[0].type != library.StatementType.SELECT:
        raise InputError(
            f"{source:.{LONGEST}}: expected one SELECT, as in duckdb:SELECT * FROM 'logs/*.parquet'"
            ", or with a database duckdb:FILE?SELECT ..."
        )
    sql = query.strip().rstrip(";")

    def connected() -> Any:
        try:
            result = library.connect(file or ":memory:", read_only=bool(file))
        except library.Error as error:
            raise _told(source, error) from None
        _add_file_systems(result, query)
        return result

    def state() -> list[str]:
        counted = f"SELECT count(*), sum(hash(rows)) FROM (\n{sql}\n) AS rows"
        try:
            with closing(connected()) as database:
                return [str(one) for one in database.execute(counted).fetchone()]
        except library.Error as error:
            raise _told(source, error) from None

    def opened() -> Iterator[Any]:
        from arro3.core import RecordBatchReader

        with closing(connected()) as database:
            reader = database.sql(sql).to_arrow_reader(MOST_ROWS)
            yield from RecordBatchReader.from_stream(reader)

    return _table(source, state, opened)


def _add_file_systems(database: Any, query: str) -> None:
    """Let DuckDB read by fsspec what needs credentials, which come from the environment then."""
    schemes = set(_SCHEMES.findall(query)) - OWN_SCHEMES
    for scheme in sorted(schemes.intersection(fsspec.available_protocols())):
        database.register_filesystem(file_system(f"{scheme}://")[0])


# Delta Lake


def delta(source: str) -> Place:
    """Return the rows of a table of Delta Lake: ``delta:PATH`` or a URL; ``?version=3`` an older
    version.

    Raises:
        InputError: deltalake is not installed, or there is no such table or version.
    """
    refuse_secret(source)
    library = _library("deltalake", "delta")
    path, version = _at(source, "version")
    try:
        table = library.DeltaTable(path, version=version)
        told = [str(table.metadata().id), str(table.version())]
    except Exception as error:  # of storage, of the log, of Arrow: they have no common class
        raise _told(source, error) from error

    def opened() -> Iterator[Any]:
        one_after_another = {
            "datafusion.execution.batch_size": str(MOST_ROWS),
            "datafusion.execution.target_partitions": "1",
        }
        query = library.QueryBuilder(one_after_another).register("samples", table)
        yield from query.execute("SELECT * FROM samples")

    return _table(source, lambda: told, opened)


# Iceberg


def iceberg(source: str) -> Place:
    """Return the rows of a table of Iceberg: ``iceberg:CATALOG/NAMESPACE.TABLE``, with a catalog of
    pyiceberg's settings, or its file of metadata; ``?snapshot=ID`` an older state.

    One data file is in memory at a time.

    Raises:
        InputError: pyiceberg is not installed, or there is no such table or snapshot.
    """
    refuse_secret(source)
    _library("pyiceberg", "iceberg")
    arrow = _library("pyiceberg.io.pyarrow", "iceberg")
    path, snapshot = _at(source, "snapshot")
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
        tasks = sorted(scan.plan_files(), key=lambda one: str(one.file.file_path))
    except Exception as error:  # of the catalog, of storage, of values
        raise _told(source, error) from error
    told = [str(table.metadata.table_uuid), str(current and current.snapshot_id)]

    def opened() -> Iterator[Any]:
        from arro3.core import RecordBatch

        reader = arrow.ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
        for task in tasks:  # all at once would be read ahead into memory
            yield from map(RecordBatch.from_arrow, reader.to_record_batches([task]))

    return _table(source, lambda: told, opened)


def _at(source: str, option: str) -> tuple[str, int | None]:
    """Return the path of a table, and the number of its only option."""
    path, _, query = source.partition(":")[2].partition("?")
    if not query:
        return path, None
    name, _, value = query.partition("=")
    if name != option or not value.isdecimal():
        raise InputError(f"{source}: expected ?{option}=NUMBER, got ?{query}")
    return path, int(value)

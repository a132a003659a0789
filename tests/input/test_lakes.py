"""Inputs that are tables: SQL by DuckDB, Delta Lake, Iceberg."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.lazily import needed
from tests.support import Recorder, jsonl, lines, record
from trustassay import score
from trustassay.errors import RunFolderError
from trustassay.input import InputError, InputFault, lakes, read_samples
from trustassay.input.reading import LocatedSample
from trustassay.runs.intake import default_folder

duckdb = needed("duckdb")
deltalake = needed("deltalake")
pyarrow = needed("pyarrow")
catalogs = needed("pyiceberg.catalog.sql")


def ids(source: str) -> list[str]:
    result = list(read_samples(source))
    assert not [str(one) for one in result if isinstance(one, InputFault)]
    return [one.sample.id for one in result if isinstance(one, LocatedSample)]


def table(n: int, start: int = 0) -> Any:
    return pyarrow.Table.from_pylist([record(i, day=i % 2) for i in range(start, n)])


def scored(source: str, out: Path, **options: Any) -> Recorder:
    recorder = Recorder()
    score(source, metrics="grounding", entailer=recorder, out=out, **options)
    return recorder


# ---- DuckDB ----


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """Return a folder with two days of two records each."""
    for day in (1, 2):
        folder = tmp_path / f"logs/day={day}"
        folder.mkdir(parents=True)
        jsonl(folder / "a.jsonl", [record(i) for i in range(2 * day - 2, 2 * day)])
    return tmp_path / "logs"


def query(days: Path, more: str = "") -> str:
    return f"duckdb:SELECT * FROM read_json('{days}/*/*.jsonl', hive_partitioning=true) {more}"


def test_the_rows_of_a_query_are_the_input(days: Path) -> None:
    assert ids(query(days)) == ["q0", "q1", "q2", "q3"]
    assert ids(query(days, "WHERE day = 2 ;")) == ["q2", "q3"]
    assert ids(query(days, "ORDER BY id DESC LIMIT 1 -- the last")) == ["q3"]
    [sample] = [
        one for one in read_samples(query(days, "LIMIT 1")) if isinstance(one, LocatedSample)
    ]
    assert sample.sample.metadata["day"] == 1
    assert [one.text for one in sample.sample.documents or ()] == record(0)["documents"]


def test_a_database_is_opened_for_reading_alone(tmp_path: Path, days: Path) -> None:
    file = tmp_path / "a.db"
    with duckdb.connect(str(file)) as database:
        database.execute(f"CREATE TABLE log AS {query(days).partition(':')[2]}")
    content = file.read_bytes()
    assert ids(f"duckdb:{file}?FROM log WHERE question LIKE '%3?'") == ["q3"]
    assert default_folder(f"duckdb:{file}?FROM log").name.startswith("duckdb-")
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("COPY (SELECT 1) TO 'written'", "expected one SELECT"),
        ("SELECT 1; SELECT 2", "expected one SELECT"),
        ("", "expected one SELECT"),
        ("SELECT * FROM 'none.parquet'", "No files found"),
        ("SELECT 1 AS", "syntax error"),
        ("none.db?SELECT 1", "database does not exist"),
    ],
)
def test_what_is_no_query_that_can_be_read_is_said(
    sql: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^duckdb:") as error:
        list(read_samples(f"duckdb:{sql}"))
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


def test_an_error_amid_the_rows_says_after_which() -> None:
    source = (
        "duckdb:SELECT 'Q' || i AS question, 'A.' AS response, 'P.' AS context, "
        "if(i = 300000, error('bad row'), i) AS n FROM range(310000) rows(i)"
    )
    with pytest.raises(InputError, match=r"after row [1-9][\d,]*: .*bad row"):
        for _ in lakes.duckdb(source).table():  # type: ignore[misc]
            pass


def test_a_fault_names_the_query_and_the_row(days: Path) -> None:
    source = "duckdb:SELECT 'Q?' AS question, 'A.' AS response, [{'text': 3}] AS documents"
    [fault] = [one for one in read_samples(source) if isinstance(one, InputFault)]
    assert fault.where == f"{source[:80]}: row 1"


def test_a_query_reads_by_fsspec_what_duckdb_does_not(days: Path) -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    files.pipe_file("/lake/a.jsonl", json.dumps(record(7)).encode())
    assert ids("duckdb:SELECT * FROM read_json('memory://lake/a.jsonl')") == ["q7"]


def test_a_run_of_a_query_goes_on_and_grows(tmp_path: Path, days: Path) -> None:
    run = tmp_path / "run"
    assert len(scored(query(days), run, append=True).asked) == 16
    assert not scored(query(days), run).asked
    shuffled = query(days, "ORDER BY id DESC")
    assert not scored(shuffled, run, append=True).asked, "of what grows rows are known by id"
    jsonl(days / "day=2/b.jsonl", [record(4)])
    assert len(scored(query(days), run, append=True).asked) == 4
    with pytest.raises(RunFolderError, match="Different: the input"):
        scored(query(days, "ORDER BY id DESC"), run)


def test_the_default_folder_follows_from_the_query_and_its_rows(days: Path) -> None:
    first = default_folder(query(days))
    assert default_folder(query(days)) == first
    assert default_folder(query(days, "LIMIT 3")) != first
    jsonl(days / "day=2/b.jsonl", [record(4)])
    assert default_folder(query(days)) != first


def test_a_query_on_the_command_line(cli: Cli, days: Path) -> None:
    said = cli("score", query(days), "--entailer", "lexical", "--sample", "50%")
    assert said.status == 0, said.err
    [run] = Path("trustassay-runs").iterdir()
    assert run.name.startswith("duckdb-")
    assert json.loads((run / "run.json").read_text())["input"] == query(days)
    assert "<title>duckdb" in (run / "report.html").read_text()


def test_rows_come_in_small_batches(tmp_path: Path) -> None:
    """Of 100,000 rows of 10 kB, 1 GB, a small part is read before the first sample is there."""
    source = (
        "duckdb:SELECT 'Q' || i AS question, 'A.' AS response, repeat('x', 10000) || i AS context "
        "FROM range(100000) rows(i)"
    )
    read = read_samples(source)
    first = next(read)
    assert isinstance(first, LocatedSample)
    assert pyarrow.total_allocated_bytes() < 100_000_000
    read.close()  # type: ignore[attr-defined]


# ---- Delta Lake ----


def test_a_delta_table_is_read_at_one_version(tmp_path: Path) -> None:
    place = str(tmp_path / "delta")
    deltalake.write_deltalake(place, table(4), partition_by=["day"])
    first = default_folder(f"delta:{place}")
    assert sorted(ids(f"delta:{place}")) == ["q0", "q1", "q2", "q3"]
    assert len(scored(f"delta:{place}", tmp_path / "run", append=True).asked) == 16
    deltalake.write_deltalake(place, table(5, 4), mode="append")
    assert sorted(ids(f"delta:{place}")) == ["q0", "q1", "q2", "q3", "q4"]
    assert sorted(ids(f"delta:{place}?version=0")) == ["q0", "q1", "q2", "q3"]
    assert default_folder(f"delta:{place}") != first
    assert len(scored(f"delta:{place}", tmp_path / "run", append=True).asked) == 4
    kept = {one["id"]: one["day"] for one in lines(tmp_path / "run/samples.jsonl")}
    assert kept == {"q0": 0, "q1": 1, "q2": 0, "q3": 1, "q4": 0}


@pytest.mark.parametrize("end", ["/none", "?version=9", "?version=x", "?other=1"])
def test_a_delta_table_that_is_not_there_is_said(tmp_path: Path, end: str) -> None:
    deltalake.write_deltalake(str(tmp_path / "delta"), table(1))
    with pytest.raises(InputError, match=r"^delta:"):
        list(read_samples(f"delta:{tmp_path / 'delta'}{end}"))


# ---- Iceberg ----


def test_an_iceberg_table_is_read_at_one_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": f"file://{tmp_path}/lake"}
    for name, value in {"TYPE": "sql", **place}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name}", value)
    catalog = catalogs.SqlCatalog("lake", uri=place["URI"], warehouse=place["WAREHOUSE"])
    catalog.create_tables()
    catalog.create_namespace("logs")
    made = catalog.create_table("logs.answers", schema=table(1).schema)
    made.append(table(2))
    source, old = "iceberg:lake/logs.answers", made.current_snapshot().snapshot_id
    first = default_folder(source)
    assert len(scored(source, tmp_path / "run", append=True).asked) == 8
    made.append(table(4, 2))
    assert sorted(ids(source)) == ["q0", "q1", "q2", "q3"]
    assert sorted(ids(f"{source}?snapshot={old}")) == ["q0", "q1"]
    assert sorted(ids(f"iceberg:{made.metadata_location}")) == ["q0", "q1", "q2", "q3"]
    assert default_folder(source) != first
    assert len(scored(source, tmp_path / "run", append=True).asked) == 8
    with pytest.raises(InputError, match=r"^iceberg:lake/logs\.none: cannot be read"):
        list(read_samples("iceberg:lake/logs.none"))
    with pytest.raises(InputError, match=r"^iceberg:none/logs\.answers: cannot be read"):
        list(read_samples("iceberg:none/logs.answers"))


def test_the_order_of_records_is_that_of_the_query(days: Path) -> None:
    assert ids(query(days, "ORDER BY id DESC")) == [f"q{i}" for i in (3, 2, 1, 0)]

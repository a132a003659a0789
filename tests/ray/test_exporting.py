"""The table of a run in folders: the same rows, by the folders of the input, again as it grows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from arro3.io import read_parquet

from tests.cli.conftest import Cli
from tests.support import Recorder, jsonl, record
from trustassay import score
from trustassay.errors import RunFolderError, UsageError
from trustassay.input.places import read_folder_keys
from trustassay.ray import export as exporting
from trustassay.ray.export import LIST_FILE, export

METRICS = ["grounding", "faithfulness"]


@pytest.fixture
def memory() -> Iterator[Any]:
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def scored(folder: Path, days: int, source: Any = None, **options: Any) -> Path:
    """Score two answers a day, by two metrics, and return the run's folder."""
    for day in range(days):
        (folder / f"logs/day={day}").mkdir(parents=True, exist_ok=True)
        rows = [record(2 * day, model="m0", town="a/b %"), record(2 * day + 1, model="m1")]
        jsonl(folder / f"logs/day={day}/a.jsonl", rows)
    given = {"metrics": METRICS, "entailer": Recorder(), "out": folder / "run", **options}
    run = score(source or folder / "logs", **given)
    return run.path


def rows_of(content: Any) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for batch in read_parquet(content):
        cells = [column.to_pylist() for column in batch.columns]
        result += [
            dict(zip(batch.column_names, row, strict=True)) for row in zip(*cells, strict=True)
        ]
    return result


def exported(place: Path) -> list[dict[str, Any]]:
    """Return all rows below a folder, each with what its folders say."""
    files = sorted(place.rglob("*.parquet"))
    assert {str(one.relative_to(place)) for one in files} == {
        *json.loads((place / LIST_FILE).read_text())["files"]
    }
    found = [
        (read_folder_keys(str(one.relative_to(place))), row)
        for one in files
        for row in rows_of(one)
    ]
    assert not any(keys.keys() & row.keys() for keys, row in found)
    return [keys | row for keys, row in found]


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["id"], row["metric"]))


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in names} for row in rows]


def test_the_folders_are_those_of_the_input(tmp_path: Path) -> None:
    run = scored(tmp_path, 3)
    result = export(run, str(tmp_path / "scores"))
    assert (result.by, result.files, result.rows) == (["day"], 3, 12)
    rows = exported(tmp_path / "scores")
    assert {(row["id"], row["day"]) for row in rows} == {(f"q{i}", str(i // 2)) for i in range(6)}
    table = rows_of(run / "assessments.parquet")
    assert by_id(without(rows, "day")) == by_id(table)


@pytest.mark.parametrize(
    ("by", "folders"),
    [
        ("none", {""}),
        ("model", {"model=m0", "model=m1"}),
        ("metric, day", {f"metric={m}/day={d}" for m in METRICS for d in (0, 1)}),
        ("town", {"town=a%2Fb%20%25", "town=__HIVE_DEFAULT_PARTITION__"}),
    ],
)
def test_fields_and_columns_name_folders(tmp_path: Path, by: str, folders: set[str]) -> None:
    run = scored(tmp_path, 2)
    export(run, str(tmp_path / "scores"), by)
    rows = exported(tmp_path / "scores")
    assert len(rows) == len(rows_of(run / "assessments.parquet"))
    files = (tmp_path / "scores").rglob("*.parquet")
    assert {str(one.parent.relative_to(tmp_path / "scores")).strip(".") for one in files} == folders


def test_an_input_at_a_url_and_a_place_at_one(tmp_path: Path, memory: Any) -> None:
    scored(tmp_path, 2)
    memory.put(str(tmp_path / "logs"), "/lake", recursive=True)
    run = scored(tmp_path, 2, "memory://lake", out=tmp_path / "far")
    assert export(run, "memory://scores/today").by == ["day"]
    names = sorted(name for name in memory.find("/scores/today") if name.endswith("parquet"))
    assert [name.split("/")[3] for name in names] == ["day=0", "day=1"]
    (tmp_path / "copy").mkdir()
    for name in names:
        memory.get(name, str(tmp_path / "copy" / name.split("/")[3]))
    rows = [row for one in sorted((tmp_path / "copy").iterdir()) for row in rows_of(one)]
    assert by_id(rows) == by_id(rows_of(run / "assessments.parquet"))


def test_what_has_grown_replaces_the_earlier_export(tmp_path: Path) -> None:
    place = tmp_path / "scores"
    export(scored(tmp_path, 2, append=True), str(place))
    before = exported(place)
    run = scored(tmp_path, 3, append=True)
    export(run, str(place))
    assert len(exported(place)) == 12 > len(before)
    export(run, str(place), "none")
    assert len(exported(place)) == 12
    kept = {one: one.read_bytes() for one in place.rglob("*") if one.is_file()}
    export(run, str(place), "none")
    assert {one: one.read_bytes() for one in place.rglob("*") if one.is_file()} == kept


def test_an_export_that_was_killed_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, place = scored(tmp_path, 3, append=True), tmp_path / "scores"
    with monkeypatch.context() as patch:
        patch.setattr(exporting._PartWriter, "close", lambda self: self._flush(("day=0",)) or 1 / 0)
        patch.setattr(exporting._ExportTarget, "undo", lambda self, files: None)  # as of kill -9
        with pytest.raises(ZeroDivisionError):
            export(run, str(place))
    assert json.loads((place / LIST_FILE).read_text())["complete"] is False
    assert len(list(place.rglob("*.parquet"))) == 1
    export(scored(tmp_path, 4, append=True), str(place))
    assert len(exported(place)) == 16, "the file of the killed one is gone"


def test_an_export_that_fails_leaves_the_earlier_one(tmp_path: Path) -> None:
    run, place = scored(tmp_path, 2), tmp_path / "scores"
    with pytest.raises(UsageError, match="no sample has the field"):
        export(run, str(place), "day,none_such")
    assert not list(place.rglob("*.*"))
    export(run, str(place))
    kept = {one: one.read_bytes() for one in place.rglob("*") if one.is_file()}
    with pytest.raises(UsageError, match="no sample has the field"):
        export(run, str(place), "none_such")
    assert {one: one.read_bytes() for one in place.rglob("*") if one.is_file()} == kept


def test_rows_wait_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = scored(tmp_path, 8)
    table = by_id(rows_of(run / "assessments.parquet"))
    monkeypatch.setattr(exporting, "MAX_WAITING_BYTES", 1)
    export(run, str(tmp_path / "small"), "model")
    assert by_id(without(exported(tmp_path / "small"), "model")) == table
    monkeypatch.setattr(exporting, "MAX_WAITING_BYTES", 2**30)
    monkeypatch.setattr(exporting, "MAX_FILE_ROWS", 1)
    assert export(run, str(tmp_path / "rows"), "day").files == 8


def test_files_of_others_are_never_touched(tmp_path: Path) -> None:
    run, place = scored(tmp_path, 1), tmp_path / "scores"
    jsonl(place.parent / "own.jsonl", [])
    place.mkdir()
    own = place / "part-0.parquet"
    own.write_bytes(b"own")
    with pytest.raises(UsageError, match=r"has other files, for example 'part-0\.parquet'"):
        export(run, str(place))
    own.rename(tmp_path / "part-0.parquet")
    export(run, str(place))
    own.write_bytes(b"own")
    export(run, str(place), "none")
    assert own.read_bytes() == b"own"


@pytest.mark.parametrize(
    ("to", "by", "message"),
    [
        ("scores", "no_such", r"--by: no sample has the field 'no_such'"),
        ("scores", "response", "response has a value of"),
        ("nosuch://x", None, "cannot be opened: Protocol not known"),
        ("s3://user:SECRET@b/x", None, "the run would store; use the environment"),
        ("file.txt/x", None, "cannot be written"),
    ],
)
def test_what_cannot_be_exported_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, by: str | None, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [record(1, response="x" * 300)]
    jsonl(tmp_path / "a.jsonl", rows)
    Path("file.txt").touch()
    run = score("a.jsonl", metrics="grounding", entailer=Recorder(), out="run").path
    with pytest.raises(UsageError, match=message) as error:
        export(run, to, by)
    assert "SECRET" not in str(error.value)


def test_without_its_input_the_folders_must_be_named(tmp_path: Path) -> None:
    run = scored(tmp_path, 1)
    (tmp_path / "logs").rename(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="the input was moved, or consists of several"):
        export(run, str(tmp_path / "scores"))
    assert export(run, str(tmp_path / "scores"), "day").by == ["day"]


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError):
        export(tmp_path, str(tmp_path / "scores"))


def test_the_command_says_what_it_wrote(cli: Cli, tmp_path: Path) -> None:
    scored(tmp_path, 2)
    said = cli("export", "run", "--to", "scores")
    assert said.status == 0, said.err
    assert "8 rows in 2 files, in folders by day: scores" in said.err
    assert cli("export", "none", "--to", "other").status == 2

"""Inputs that are no path: patterns of paths, and schemes that packages add."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.input.test_formats import table
from tests.support import jsonl, lines, record, records
from trustassay.input import InputError, InputFault, LocatedSample, read_samples
from trustassay.input.places import InputPlace, name_of, scheme_of
from trustassay.runs.intake import default_folder


def ids(source: str, **options: Any) -> list[str]:
    result = list(read_samples(source, **options))
    assert not [str(one) for one in result if isinstance(one, InputFault)]
    return [one.sample.id for one in result if isinstance(one, LocatedSample)]


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with two days of logs."""
    for day in (1, 2):
        (tmp_path / f"logs/day={day}").mkdir(parents=True)
        jsonl(tmp_path / f"logs/day={day}/a.jsonl", [record(2 * day), record(2 * day + 1)])
    jsonl(tmp_path / "logs/day=2/_old.jsonl", [record(9)])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("logs/*/*.jsonl", "q2 q3 q4 q5"),
        ("logs/day=[12]", "q2 q3 q4 q5"),
        ("logs/**/a.jsonl", "q2 q3 q4 q5"),
        ("l?gs/day=2/*", "q4 q5"),
        ("{}/logs/day=1/*.jsonl", "q2 q3"),
    ],
)
def test_a_pattern_is_one_input(logs: Path, pattern: str, expected: str) -> None:
    assert ids(pattern.format(logs)) == expected.split()


def test_folders_from_the_first_of_a_pattern_on_are_fields(logs: Path) -> None:
    def days(pattern: str) -> list[Any]:
        found = read_samples(pattern)
        return [one.sample.metadata.get("day") for one in found if isinstance(one, LocatedSample)]

    assert days("logs/*/a.jsonl") == ["1", "1", "2", "2"]
    assert days("logs/day=1/*.jsonl") == [None, None], "a path before the pattern says nothing"


def test_the_places_of_a_pattern_are_those_of_its_files(logs: Path) -> None:
    (logs / "logs/day=1/b.jsonl").write_text("{\n")
    [fault] = [one for one in read_samples("logs/*/b.jsonl") if isinstance(one, InputFault)]
    assert fault.where == "logs/day=1/b.jsonl:1"
    jsonl(logs / "logs/day=1/b.jsonl", [record(2)])
    assert ids("logs/day=1/*.jsonl") == ["q2", "q3", "q2"], "the run refuses what is twice"


def test_a_file_may_have_a_name_like_a_pattern(logs: Path) -> None:
    jsonl(logs / "a[1].jsonl", records(1))
    assert ids("a[1].jsonl") == ["q0"]


def test_a_pattern_without_files_is_refused(logs: Path) -> None:
    with pytest.raises(InputError, match=r"logs/\*\.csv: no such file, and no file matches"):
        read_samples("logs/*.csv")


def test_the_default_folder_of_a_pattern_follows_its_files(logs: Path) -> None:
    first = default_folder("logs/*/*.jsonl", seed=0)
    assert default_folder("logs/*/*.jsonl", seed=0) == first
    assert default_folder("logs/*/*.jsonl", seed=1) != first
    jsonl(logs / "logs/day=1/a.jsonl", records(5))
    assert default_folder("logs/*/*.jsonl", seed=0) != first


def test_a_pattern_on_the_command_line(cli: Cli, logs: Path) -> None:
    said = cli("score", "logs/*/*.jsonl", "--entailer", "lexical", "--out", "run")
    assert said.status == 0, said.err
    assert len(lines(Path("run/samples.jsonl"))) == 4


@pytest.mark.parametrize(
    ("source", "scheme", "name"),
    [
        ("logs/a.jsonl", "", "a.jsonl"),
        ("logs/10:30.jsonl", "", "10:30.jsonl"),
        ("duckdb.jsonl", "", "duckdb.jsonl"),
        ("S3://bucket/a.jsonl", "s3", "a.jsonl"),
        ("DuckDB:SELECT 1 / 2", "duckdb", "duckdb"),
        ("hf://datasets/x/y", "hf", "y"),
    ],
)
def test_the_scheme_and_the_name_of_a_source(source: str, scheme: str, name: str) -> None:
    assert (scheme_of(source), name_of(source)) == (scheme, name)


# ---- schemes of packages ----


class Entry:
    """An entry point of a package."""

    def __init__(self, name: str, place: InputPlace) -> None:
        self.name, self.place = name, place

    def load(self) -> Any:
        return lambda source: self.place


def added(monkeypatch: pytest.MonkeyPatch, *entries: Entry) -> None:
    monkeypatch.setattr("trustassay.input.places.entry_points", lambda **_: entries)


@pytest.mark.parametrize(
    "source", ["s3://bucket/a.jsonl", "duckdb:SELECT 1", "delta:table", "iceberg:c/n.t"]
)
def test_a_scheme_without_a_reader_is_refused(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    added(monkeypatch)
    with pytest.raises(InputError, match="no installed package reads this scheme") as error:
        read_samples(source)
    assert str(error.value).startswith(source.partition(":")[0] + ":")


def test_a_package_may_give_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def batches() -> Iterator[Any]:
        for i in range(2):
            yield from table([{"question": f"Q{i}?", "response": "A.", "context": "P."}])

    added(monkeypatch, Entry("mydb", InputPlace(lambda: ["3"], {}, batches)))
    found = [one for one in read_samples("mydb://any") if isinstance(one, LocatedSample)]
    assert [one.where for one in found] == ["mydb://any: row 1", "mydb://any: row 2"]
    assert [one.sample.question for one in found] == ["Q0?", "Q1?"]


def test_a_package_may_give_files_and_its_own_scheme_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = jsonl(tmp_path / "a.jsonl", records(2)), jsonl(tmp_path / "b.jsonl", [record(7)])
    added(
        monkeypatch,
        Entry("url", InputPlace(list, {"day=1/b.jsonl": other})),
        Entry("mine", InputPlace(list, {"": own})),
    )
    assert ids("mine://x.jsonl") == ["q0", "q1"]
    assert ids("other://x.jsonl") == ["q7"]

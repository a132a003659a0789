"""The table of runs: made of two files a run, kept up to date, made anew at no loss."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.view.conftest import Visited
from trustassay.calls.store import CallStore
from trustassay.input.records import InputError
from trustassay.view.index import Index, index_path


def changed(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def index(root: Path, tmp_path: Path) -> Index:
    made = Index(root, tmp_path / "index.sqlite")
    made.refresh()
    return made


def test_a_run_has_its_figures_with_intervals_and_who_needs_a_look(
    index: Index, root: Path
) -> None:
    summary = json.loads((root / "one" / "summary.json").read_text())
    run = index.run("one")
    assert run is not None
    assert (run.state, run.samples, run.metrics) == ("finished", 19, "faithfulness")
    assert run.flagged == summary["looked"]["flagged"] > 0
    assert run.outcome_lines[0][0].startswith("faithfulness: ")
    assert run.outcome_lines[0][0].endswith(" not answered of 19 questions")
    assert run.judge.startswith("lexical")
    assert "ant" in run.model and "bee" in run.model
    told = summary["metrics"]["faithfulness"]
    figures = {one.figure: one for one in index.figures("one")}
    values = {name: value for name, value in told["values"].items() if value is not None}
    assert figures.keys() == values.keys()
    for name, value in values.items():
        assert figures[name].value == value
        assert [figures[name].low, figures[name].high] == told["intervals"].get(name, [None, None])
    assert {one.grp for one in index.figures("one", None)} >= {"", "ant", "bee"}


def test_only_the_two_files_of_a_run_are_read(root: Path, tmp_path: Path) -> None:
    for name in ("samples.jsonl", "assessments.jsonl"):
        (root / "one" / name).unlink()
    index = Index(root, tmp_path / "index.sqlite")
    index.refresh()
    run = index.run("one")
    assert run is not None and run.state == "finished"


def test_a_run_is_of_the_time_that_it_says_and_never_of_a_file(index: Index, root: Path) -> None:
    shutil.copytree(root / "one", root / "copy")
    os.utime(root / "copy" / "run.json", (1e9, 1e9))
    shutil.copytree(root / "one", root / "older")
    run = json.loads((root / "one" / "run.json").read_text())
    start = datetime.fromisoformat(run.pop("started")).timestamp()
    (root / "older" / "run.json").write_text(json.dumps(run))
    for number, text in enumerate([7, "soon", "0001-01-01T00:00:00+14:00"]):
        shutil.copytree(root / "older", root / f"odd-{number}")
        changed(root / f"odd-{number}" / "run.json", started=text)
    index.refresh()
    times = dict(index.ask("SELECT key, made FROM runs"))
    assert times.pop("one") == times.pop("copy") == start
    assert set(times.values()) == {None} and len(times) == 4


def test_a_run_of_an_earlier_version_is_shown_without_outcomes(root: Path, tmp_path: Path) -> None:
    path = root / "one" / "summary.json"
    summary = json.loads(path.read_text())
    del summary["outcomes"]
    path.write_text(json.dumps(summary))
    index = Index(root, tmp_path / "index.sqlite")
    index.refresh()
    run = index.run("one")
    assert run is not None and run.state == "finished" and run.outcome_lines == []


def test_what_is_new_changed_or_gone_is_found(index: Index, root: Path) -> None:
    assert not index.refresh()
    shutil.copytree(root / "one", root / "deep" / "two")
    assert index.refresh()
    assert index.run("deep/two") is not None
    changed(root / "one" / "summary.json", looked={"answers": 19, "flagged": 3, "failed": 0})
    assert index.refresh()
    run = index.run("one")
    assert run is not None and run.flagged == 3
    # None flagged is no finding where none was judged.
    changed(root / "one" / "summary.json", looked={"answers": 19, "flagged": 0, "judged": 0})
    assert index.refresh()
    run = index.run("one")
    assert run is not None and run.flagged is None
    shutil.rmtree(root / "deep")
    assert index.refresh()
    assert index.run("deep/two") is None and not index.figures("deep/two", None)


def test_a_damaged_run_is_named_and_the_others_stay(index: Index, root: Path) -> None:
    for name in ("two", "three", "four"):
        shutil.copytree(root / "one", root / name)
    (root / "two" / "run.json").write_text("{")
    changed(root / "three" / "summary.json", metrics={"faithfulness": 7})
    changed(root / "four" / "run.json", samples={"samples": "many"})
    index.refresh()
    for name in ("two", "three", "four"):
        run = index.run(name)
        assert run is not None and run.state == "damaged"
        assert name in run.fault and "damaged" in run.fault
    run = index.run("one")
    assert run is not None and run.state == "finished"


def test_a_run_under_way_says_how_many_are_scored(index: Index, root: Path) -> None:
    (root / "one" / "summary.json").unlink()
    path = root / "one" / "assessments.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    index.refresh()
    run = index.run("one")
    assert run is not None and (run.state, run.scored) == ("not finished", 5)


@pytest.mark.parametrize("content", [b"", b"not a database" * 99])
def test_a_file_that_cannot_be_read_is_made_anew(
    index: Index, root: Path, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "index.sqlite"
    before = index.ask("SELECT * FROM figures")
    path.write_bytes(content)
    again = Index(root, path)
    again.refresh()
    assert again.ask("SELECT * FROM figures") == before
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_folder_itself_may_be_a_run(root: Path, tmp_path: Path) -> None:
    index = Index(root / "one", tmp_path / "index.sqlite")
    index.refresh()
    run = index.run(".")
    assert run is not None and run.title == "one"
    assert index.folder(run).samples_path.exists()
    assert index.run("../one") is None


def test_the_table_lies_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert index_path(Path("a")).is_relative_to(tmp_path)
    assert index_path(Path("a")) == index_path(Path("b/../a"))
    assert index_path(Path("a")) != index_path(Path("b"))


def test_a_table_in_use_is_not_removed(
    index: Index, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(_: Index) -> int:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(Index, "_read_layout", locked)
    with pytest.raises(InputError, match=r"index.sqlite: .*locked.*XDG_CACHE_HOME"):
        Index(root, tmp_path / "index.sqlite")
    assert index.run("one") is not None


ODD_NAMES = [
    "q?mode=rwc#x",
    "100%25",
    "a b",
    "o'clock\"",
    "new\nline",
    "é",
    "\udcff",
    "%FF",
    "a&b=c",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_run_is_shown_whatever_its_folder_is_called_and_nothing_is_made(
    visit: Callable[[Path], Visited], root: Path, name: str
) -> None:
    shutil.copytree(root / "one", root / "more" / name)
    CallStore(root / "more" / name / "calls.sqlite").close()
    before = sorted(root.rglob("*"))
    visited = visit(root)
    keys = [key for (key,) in visited.index.ask("SELECT key FROM runs WHERE key != 'one'")]
    assert len(keys) == 1
    row = visited.index.run(keys[0])
    assert row is not None and row.state == "finished"
    assert visited.index.folder(row).path == root / "more" / name
    for page in ("run", "answer", "elsewhere", "calls", "gate", "state"):
        visited.page(page, run=keys[0], at=0)
    visited.page("")
    visited.page("compare", first="one", second=keys[0])
    assert sorted(root.rglob("*")) == before


def test_a_served_run_whose_name_is_no_text_is_shown(
    visit: Callable[[Path], Visited], root: Path
) -> None:
    visited = visit((root / "one").rename(root / "\udcff"))
    assert "The hall of town 3" in visited.page("run", run=".", q="town 3")
    visited.page("")


def test_links_out_of_the_served_folder_are_not_followed(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "one", tmp_path / "elsewhere" / "two")
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / "disk").symlink_to("/")
    index = Index(root, tmp_path / "index.sqlite")
    index.refresh()
    assert [key for (key,) in index.ask("SELECT key FROM runs")] == ["one"]
    # The folder that a user names may be a link.
    named = Index(root / "link", tmp_path / "named.sqlite")
    named.refresh()
    assert [key for (key,) in named.ask("SELECT key FROM runs")] == ["two"]


@pytest.mark.parametrize(
    "name", ["run.json", "samples.jsonl", "summary.json", "calls.sqlite", "ratings-x.jsonl"]
)
def test_a_run_with_a_link_out_of_its_folder_is_named_and_not_read(
    visit: Callable[[Path], Visited], root: Path, tmp_path: Path, name: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("BEGIN PRIVATE KEY\n")
    path = root / "one" / name
    content = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    path.symlink_to(os.path.relpath(secret, path.parent))
    visited = visit(root)
    row = visited.index.run("one")
    assert row is not None and row.state == "damaged"
    assert f"one/{name}: a link that points outside the run's folder is not followed" in row.fault
    for page in ("run", "answer", "calls", "elsewhere", "gate", "study", "next"):
        shown = visited.page(page, 409, run="one", at=0)
        assert "is not followed" in shown and "PRIVATE" not in shown
    assert "PRIVATE" not in visited.page("")
    # A file in its place is read, although nothing that the index watches has changed.
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    if name != "run.json":
        assert visited.index.refresh()
        repaired = visited.index.run("one")
        assert repaired is not None and repaired.state == "finished"


def test_a_link_within_a_run_is_followed(visit: Callable[[Path], Visited], root: Path) -> None:
    path = root / "one" / "samples.jsonl"
    path.rename(root / "one" / "input.jsonl")
    path.symlink_to("input.jsonl")
    assert "The hall of town 3" in visit(root).page("run", run="one", q="town 3")


@pytest.mark.parametrize("name", ["run.json", "samples.jsonl", "ratings-x.jsonl"])
def test_a_pipe_in_place_of_a_file_keeps_no_page_waiting(
    visit: Callable[[Path], Visited], root: Path, name: str
) -> None:
    (root / "one" / name).unlink(missing_ok=True)
    os.mkfifo(root / "one" / name)
    visited = visit(root)
    assert "neither a file nor a folder" in visited.page("run", 409, run="one")


def test_only_its_owner_reads_the_table(root: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Index(root, tmp_path / "cache" / "view" / "index.sqlite").refresh()
    finally:
        os.umask(before)
    for path in (tmp_path / "cache").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700

"""Files of a run that hold something else: named, with what to do; nothing ends in a traceback."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl, records, results

SCORE = ("score", "a.jsonl", "--entailer", "embedded", "--out")
FILES = ["summary.json", "run.json", "samples.jsonl", "assessments.jsonl", "calls.sqlite"]
COMMANDS = [
    (*SCORE, "run"),
    ("report", "run"),
    ("compare", "run", "whole"),
    ("rescore", "run", "--metric", "grounding", "--out", "new"),
]


def garbage(path: Path) -> None:
    path.write_text("garbage\n")


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 8)


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def deep(path: Path) -> None:
    """The first line begins as it should, and goes wrong later."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0][:-3] + b"\n", *lines[1:]]))


DAMAGES = [garbage, binary, cut, folder, deep]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import trustassay

    path = tmp_path_factory.mktemp("whole")
    jsonl(path / "a.jsonl", records(3))
    trustassay.score(path / "a.jsonl", metrics="grounding", out=path / "whole", cache=None)
    return path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_or_not_needed(
    cli: Cli, whole: Path, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    for arguments in COMMANDS:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        shutil.copytree(tmp_path / "whole", tmp_path / "run")
        damage(tmp_path / "run" / name)
        said = cli(*arguments)
        assert said.status in (0, 2), said.err
        if said.status == 2:
            *_, last = [line for line in said.err.splitlines() if "nothing was started" not in line]
            assert f"run/{name}" in last, said.err


REPAIRS = [
    (
        "summary.json",
        garbage,
        ("report", "run"),
        "to write it again, run the command of this run",
    ),
    ("run.json", garbage, ("report", "run"), "restore it, or choose another --out"),
    ("samples.jsonl", deep, ("report", "run"), "samples.jsonl:1: damaged (is not JSON: "),
    ("samples.jsonl", garbage, (*SCORE, "run"), "expected 3 lines, got 1"),
    ("assessments.jsonl", garbage, (*SCORE, "run"), "assessments.jsonl:1: damaged; delete this"),
    ("assessments.jsonl", deep, ("report", "run"), "assessments.jsonl:1: damaged; delete this"),
]


@pytest.mark.parametrize(("name", "damage", "arguments", "words"), REPAIRS)
def test_what_to_do_is_said(
    cli: Cli,
    whole: Path,
    tmp_path: Path,
    name: str,
    damage: Callable[[Path], None],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    shutil.copytree(tmp_path / "whole", tmp_path / "run")
    damage(tmp_path / "run" / name)
    said = cli(*arguments)
    assert said.status == 2
    assert words in said.err


def test_what_is_said_helps(cli: Cli, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    wanted = results(tmp_path / "whole")

    garbage(tmp_path / "whole" / "summary.json")
    assert cli(*SCORE, "whole").status == 0
    assert results(tmp_path / "whole") == wanted

    garbage(tmp_path / "whole" / "samples.jsonl")
    for name in ("samples.jsonl", "assessments.jsonl"):
        (tmp_path / "whole" / name).unlink()
    assert cli(*SCORE, "whole").status == 0
    assert results(tmp_path / "whole") == wanted
    assert cli("report", "whole").status == 0

    shutil.copyfile(tmp_path / "whole" / "calls.sqlite", tmp_path / "calls.sqlite")
    (tmp_path / "whole" / "assessments.jsonl").unlink()
    garbage(tmp_path / "whole" / "calls.sqlite")
    said = cli(*SCORE, "whole")
    assert said.status == 2
    assert "calls.sqlite: is not a store of model calls" in said.err
    assert "remove it, and its calls are made again" in said.err
    (tmp_path / "whole" / "calls.sqlite").unlink()
    assert cli(*SCORE, "whole").status == 0
    with sqlite3.connect(tmp_path / "whole" / "calls.sqlite") as stored:
        assert stored.execute("SELECT COUNT(*) FROM calls").fetchone()[0] > 0
    assert json.loads((tmp_path / "whole" / "summary.json").read_text())["metrics"]

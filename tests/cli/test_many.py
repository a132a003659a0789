"""``compare``, and the groups of a run on the terminal."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.many import HashedWords, many
from tests.support import jsonl
from trustassay import score
from trustassay.backends import resolve

HOSTILE = "<script>window.hacked = 1</script>\n\x1b[31m\u202e"


@pytest.fixture(autouse=True)
def hashed_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "embedder", lambda choice: HashedWords())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")
    for name, shift in (("before", 1.0), ("after", 1.6)):
        rows = list(many(each=5, shift=shift))
        score(rows, metrics="harmonicity", embedder=HashedWords(), out=home / name)
    return home


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def test_two_runs(cli: Cli, runs: Path) -> None:
    said = cli("compare", "before", "after", "--json", "--out", "page.html")
    assert said.status == 0
    for words in ("Worse: mean went from", "stable_share", "60 by id and question", "not scored"):
        assert words in said.err
    content = json.loads(said.out)
    assert content["figures"]["mean"]["change"] > 0
    assert content["pairing"]["questions"] == 60
    page = (runs / "page.html").read_text(encoding="utf-8")
    assert "before → after" in page
    assert ": outcomes</bdi></h2>" in page
    assert "<script" not in page


def test_of_few_samples_no_change_is_claimed(cli: Cli, runs: Path) -> None:
    for name, shift in (("few", 1.0), ("worse", 9.0)):
        rows = list(many(each=2, shift=shift))[:19]
        score(rows, metrics="harmonicity", embedder=HashedWords(), out=runs / name)
    said = cli("compare", "few", "worse", "--out", "page.html")
    assert said.status == 0
    assert "is unknown (too few pairs: 19; at least 40 are needed)" in said.out
    assert said.out.count("too few") == 7  # four figures, two outcomes, the sentence
    assert "too few" in (runs / "page.html").read_text(encoding="utf-8")


def test_the_way_back_is_better(cli: Cli, runs: Path) -> None:
    assert cli("compare", "after", "before").out.startswith("Better: mean went from")
    assert cli("compare", "after", "after").out.startswith("No clear change: mean went from")


def test_what_belongs_together_is_not_broken(
    cli: Cli, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    said = cli("compare", runs / "before", runs / "after", "--out", "change.html").out
    assert "\nnot scored " in said
    assert "…" not in said
    page = (tmp_path / "change.html").read_text(encoding="utf-8")
    assert "(95\xa0% interval of the change" in page


def test_errors_are_for_people(cli: Cli, runs: Path) -> None:
    for arguments, words in (
        (("compare", "before", "nowhere"), "nowhere: holds no run"),
        (("compare", "before", "after", "--metric", "gamma"), "unknown metric of this run 'gamma'"),
    ):
        said = cli(*arguments)
        assert said.status == 2
        assert words in said.err
        assert said.err.count("\n") == 1


def test_groups_on_the_terminal(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row | {"model": HOSTILE if row["id"] == "q0" else row["model"]} for row in many(each=2)]
    jsonl(tmp_path / "in.jsonl", rows)
    said = cli("score", "in.jsonl", "--metric", "harmonicity", "--out", "run")
    assert said.status == 0
    for words in ("maple-mini", "programming", "score < 0.18", "all"):
        assert words in said.err
    assert "\x1b" not in said.err
    assert "\u202e" not in said.err
    monkeypatch.setenv("COLUMNS", "64")
    narrow = cli("rescore", "run", "--metric", "harmonicity", "--out", "narrow").err
    assert "stable below 0.18): means by model" in narrow
    assert "stable_share" in narrow
    assert re.search(r"angle_degrees +[\d.]+ °", narrow)
    assert "…" not in narrow  # what is cut is no number any more
    again = cli("report", "run", "--domain", "nothing")
    assert again.status == 0
    assert "Scores by model<" in (tmp_path / "run" / "report.html").read_text()

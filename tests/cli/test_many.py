"""``compare`` and ``isotropy``, and the groups of a run on the terminal."""

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
from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.metrics.harmonicity.perturbations import FAMILIES

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
    for words in ("paired difference", "stable share", "60 by id and question", "is worse"):
        assert words in said.err
    found = json.loads(said.out)
    assert found["mean"]["change"] > 0
    assert found["pairs"] == 60
    page = (runs / "page.html").read_text(encoding="utf-8")
    assert "before → after" in page
    assert "Kolmogorov-Smirnov" in page
    assert "<script" not in page


def test_of_few_samples_no_change_is_claimed(cli: Cli, runs: Path) -> None:
    for name, shift in (("few", 1.0), ("worse", 9.0)):
        rows = list(many(each=2, shift=shift))[:19]
        score(rows, metrics="harmonicity", embedder=HashedWords(), out=runs / name)
    said = cli("compare", "few", "worse", "--out", "page.html")
    assert said.status == 0
    assert "is unknown (too few pairs: 19; at least 40 are needed)" in said.err
    assert said.err.count("too few") == 9  # four figures of pairs, four of runs, the sentence
    assert "too few" in (runs / "page.html").read_text(encoding="utf-8")


def test_the_way_back_is_better(cli: Cli, runs: Path) -> None:
    assert "is better" in cli("compare", "after", "before").err
    assert "no clear change" in cli("compare", "after", "after").err


def test_what_belongs_together_is_not_broken(
    cli: Cli, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    said = cli("compare", runs / "before", runs / "after", "--out", "change.html").err
    assert "\npaired difference\n" in said
    assert "…" not in said
    page = (tmp_path / "change.html").read_text(encoding="utf-8")
    assert re.search(r"\(95\xa0% interval .*\(p\xa0=\xa0[0-9.]+\)", page)


def test_errors_are_for_people(cli: Cli, runs: Path) -> None:
    for arguments, words in (
        (("compare", "before", "nowhere"), "nowhere: holds no run"),
        (("compare", "before", "after", "--metric", "gamma"), "unknown metric of this run 'gamma'"),
        (("probe", "isotropy", "nowhere.jsonl"), "nowhere.jsonl"),
        (
            ("probe", "isotropy", "q.jsonl", "--perturbation", "paraphrase"),
            "paraphrases need a model",
        ),
        (("probe", "isotropy", "q.jsonl", "--perturbation", "typos"), "did you mean typo"),
        (
            ("probe", "isotropy", "q.jsonl", "--perturbation", "typo", "--range", "99"),
            "applies to the pert",
        ),
    ):
        said = cli(*arguments)
        assert said.status == 2
        assert words in said.err
        assert said.err.count("\n") == 1


def test_isotropy_of_questions(cli: Cli, tmp_path: Path) -> None:
    rows = [{"question": f"Where does river number {i} begin and end?"} for i in range(12)]
    jsonl(tmp_path / "q.jsonl", rows)
    said = cli("probe", "isotropy", "q.jsonl", "--perturbation", "typo", "--draw", "10",
               "--perturbations", "4", "--json", "--out", "page.html")  # fmt: skip
    assert said.status == 0
    assert "10 texts, 4 perturbed versions of each" in said.err
    assert "the authors: .9824 ± .0005" in said.err
    found = json.loads(said.out)
    (typo,) = found["families"]
    assert (typo["perturbation"], typo["texts"], found["drawn"]) == ("typo", 10, 10)
    assert typo["displacements"]["dimensions"]["value"] > 1
    cosines = typo["cosines"]
    assert 0 < cosines["mean"]["value"] < cosines["of_mean"]["value"] < 1
    assert cosines["below"]["value"] == pytest.approx(
        cosines["of_mean"]["value"] - cosines["mean"]["value"]
    )
    assert cosines["error"] > 0
    assert f"{cosines['mean']['value']:.4f}" in said.err
    assert f"{cosines['deviation']['value']:.4f}" in said.err
    assert found["warnings"] == []
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Isotropy of typo" in page
    assert "an isotropic cloud of the same size" in page
    assert ".9824 ± .0005" in page


def test_by_default_each_perturbation_has_a_row_and_what_is_not_seen_is_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "embedder", lambda choice: EmbeddedEmbedder())
    rows = [{"question": f"What is the big road near city number {i}?"} for i in range(9)]
    jsonl(tmp_path / "q.jsonl", rows)
    said = cli("probe", "isotropy", "q.jsonl", "--draw", "4", "--perturbations", "3", "--json",
               "--out", "p.html")  # fmt: skip
    assert said.status == 0
    assert (
        "embedded sees typo, synonym; sees that unicode changed something, but not what; "
        "does not see control, codes, whitespace." in said.err
    )
    assert "note: control, codes, whitespace: Every perturbed text has the same vector" in said.err
    for name, seen in (("control", "no"), ("typo", "yes"), ("unicode", "not what")):
        assert re.search(rf"^{name} +{seen} ", said.err, re.MULTILINE)
    found = json.loads(said.out)
    unchanged = {one["perturbation"]: one["unchanged"]["value"] for one in found["families"]}
    assert list(unchanged) == list(FAMILIES)
    assert unchanged["control"] == unchanged["codes"] == unchanged["whitespace"] == 1
    assert unchanged["typo"] == unchanged["synonym"] == 0
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "What the embedder sees of each perturbation" in page
    assert page.count("Angle to the original text, in degrees") == 3  # of those that it sees


def test_a_perturbation_that_fits_no_question_is_told_beside_the_others(
    cli: Cli, tmp_path: Path
) -> None:
    jsonl(tmp_path / "q.jsonl", [{"question": f"{i} + {i}?"} for i in range(4)])
    said = cli("probe", "isotropy", "q.jsonl", "--json")
    assert said.status == 0
    assert "synonym: cannot be applied to any of the questions" in said.err
    names = [one["perturbation"] for one in json.loads(said.out)["families"]]
    assert names == ["control", "codes", "unicode", "whitespace"]
    said = cli("probe", "isotropy", "q.jsonl", "--perturbation", "typo")
    assert (said.status, said.out) == (2, "")
    assert "cannot be applied to any text" in said.err


def test_length_and_range_of_the_isotropy_command(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "q.jsonl", [{"question": f"Where is {i}?"} for i in range(4)])
    said = cli("probe", "isotropy", "q.jsonl", "--perturbation", "codes", "--range", "4095",
               "--length", "1", "--json")  # fmt: skip
    assert said.status == 0
    (codes,) = json.loads(said.out)["families"]
    assert codes["unchanged"]["value"] < 0.2  # the hashed words see every character but spaces


def test_an_embedder_that_sees_nothing_is_told_of(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "q.jsonl", [{"question": f"Where is {i}?"} for i in range(4)])
    said = cli(
        "probe", "isotropy", "q.jsonl", "--perturbation", "whitespace", "--json", "--out", "p.html"
    )
    assert said.status == 0
    assert "the tokenizer of embedded drops such characters" in said.err
    assert json.loads(said.out)["families"][0]["displacements"] is None
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "No perturbed text moved" in page


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
    assert "stable below 0.18): means\n" in narrow
    assert "stable_share" in narrow
    assert re.search(r"angle_degrees +[\d.]+ °", narrow)
    assert "…" not in narrow  # what is cut is no number any more
    again = cli("report", "run", "--domain", "nothing")
    assert again.status == 0
    assert "Scores by model<" in (tmp_path / "run" / "report.html").read_text()

"""``trustassay papers isotropy`` through the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.many import HashedWords
from tests.support import jsonl
from trustassay.backends import resolve
from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.metrics.harmonicity.perturbations import FAMILIES


@pytest.fixture(autouse=True)
def hashed_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "embedder", lambda choice: HashedWords())


def test_errors_are_for_people(cli: Cli) -> None:
    for arguments, words in (
        (("nowhere.jsonl",), "nowhere.jsonl"),
        (("q.jsonl", "--perturbation", "paraphrase"), "paraphrases need a model"),
        (("q.jsonl", "--perturbation", "embeddings"), "embeddings need a model"),
        (("q.jsonl", "--perturbation", "typos"), "did you mean typo"),
        (("q.jsonl", "--perturbation", "typo", "--range", "99"), "applies to the pert"),
    ):
        said = cli("papers", "isotropy", *arguments)
        assert said.status == 2
        assert words in said.err
        assert said.err.count("\n") == 1


def test_isotropy_of_questions(cli: Cli, tmp_path: Path) -> None:
    rows = [{"question": f"Where does river number {i} begin and end?"} for i in range(12)]
    jsonl(tmp_path / "q.jsonl", rows)
    said = cli("papers", "isotropy", "q.jsonl", "--perturbation", "typo", "--draw", "10",
               "--perturbations", "4", "--json", "--out", "page.html")  # fmt: skip
    assert said.status == 0
    assert "10 texts, each with 4 perturbed versions" in said.err
    assert ".9824 ± .0005 in the paper" in said.err
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
    said = cli("papers", "isotropy", "q.jsonl", "--draw", "4", "--perturbations", "3", "--json",
               "--out", "p.html")  # fmt: skip
    assert said.status == 0
    assert (
        "embedded sees typo, synonym; gives all versions by unicode the same vector; does not see "
        "control, codes, whitespace." in said.err
    )
    assert "note: control, codes, whitespace: Every perturbed text has the same vector" in said.err
    for name, seen in (("control", "no"), ("typo", "yes"), ("unicode", "one vector")):
        assert re.search(rf"^{name} +{seen} ", said.err, re.MULTILINE)
    found = json.loads(said.out)
    unchanged = {one["perturbation"]: one["unchanged"]["value"] for one in found["families"]}
    assert list(unchanged) == list(FAMILIES)
    assert unchanged["control"] == unchanged["codes"] == unchanged["whitespace"] == 1
    assert unchanged["typo"] == unchanged["synonym"] == 0
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "How much of each perturbation the embedder sees" in page
    assert page.count("Angle to the original text, in degrees") == 3  # of those that it sees


def test_a_perturbation_that_fits_no_question_is_told_beside_the_others(
    cli: Cli, tmp_path: Path
) -> None:
    jsonl(tmp_path / "q.jsonl", [{"question": f"{i} + {i}?"} for i in range(4)])
    said = cli("papers", "isotropy", "q.jsonl", "--json")
    assert said.status == 0
    assert "synonym: cannot be applied to any of the questions" in said.err
    names = [one["perturbation"] for one in json.loads(said.out)["families"]]
    assert names == ["control", "codes", "unicode", "whitespace"]
    said = cli("papers", "isotropy", "q.jsonl", "--perturbation", "typo")
    assert (said.status, said.out) == (2, "")
    assert "cannot be applied to any text" in said.err


def test_length_and_range_of_the_isotropy_command(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "q.jsonl", [{"question": f"Where is {i}?"} for i in range(4)])
    said = cli("papers", "isotropy", "q.jsonl", "--perturbation", "codes", "--range", "4095",
               "--length", "1", "--json")  # fmt: skip
    assert said.status == 0
    (codes,) = json.loads(said.out)["families"]
    assert codes["unchanged"]["value"] < 0.2  # the hashed words see every character but spaces


def test_an_embedder_that_sees_nothing_is_told_of(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "q.jsonl", [{"question": f"Where is {i}?"} for i in range(4)])
    said = cli(
        "papers", "isotropy", "q.jsonl", "--perturbation", "whitespace", "--json", "--out", "p.html"
    )
    assert said.status == 0
    assert "the tokenizer of embedded drops such characters" in said.err
    assert json.loads(said.out)["families"][0]["displacements"] is None
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "No vector changed" in page

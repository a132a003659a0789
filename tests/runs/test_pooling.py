"""Several runs on one page: what is pooled, what is said, what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.many import DOMAINS, HashedWords, many
from trustassay import score
from trustassay.errors import RunFolderError
from trustassay.runs.report import MAX_QUESTIONS_SHOWN, write_pooled
from trustassay.statistics.resampling import generator


def run_of(folder: Path, seed: int = 0, metric: str = "harmonicity", **fields: object) -> Path:
    rows = [{**row, **fields} for row in many(each=2, seed=seed)]
    score(rows, metrics=metric, embedder=HashedWords(), out=folder)
    return folder


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return runs of three models in three domains, without names of models in the samples."""
    home = tmp_path_factory.mktemp("pooled")
    return [run_of(home / f"m{n}", seed=n, model=None) for n in range(3)]


@pytest.mark.slow
def test_all_models_and_domains_are_shown_with_their_margins(
    paths: list[Path], tmp_path: Path
) -> None:
    """A run without a model counts under the name of its folder."""
    more = [run_of(tmp_path / f"m{n}", seed=n, model=None) for n in range(3, 10)]
    *first_lines, said = write_pooled([*paths, *more], tmp_path / "page.html")
    assert len(first_lines) == 10
    assert re.match(r"m0: harmonicity: 100 % scored \(95 % interval \d+ to 100\)", first_lines[0])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    found = re.match(r"(\d+) of 240 answers need a look\. 10 models in 3 domains; ", said)
    assert found, said
    assert page.count('class="ridge"') == 11 * (len(DOMAINS) + 1)
    assert page.count('class="ratings"') == 1 + 11 * (len(DOMAINS) + 1)
    for name in DOMAINS:
        assert f"<h4><bdi>{name}</bdi></h4>" in page
    assert page.count("<h4>all domains</h4>") == 2
    assert "not shown" not in page


def test_a_model_is_the_best_only_if_a_test_tells_it_from_all_others(tmp_path: Path) -> None:
    """Gammas of two models are drawn alike; a third one's answers never move."""
    rng = generator(0, "pooled models")

    def made(name: str, moves: float) -> Path:
        rows = [
            {
                "id": f"{name}-{i}",
                "model": name,
                "question": f"What is {i}?",
                "response": "one two three",
                "resamples": ["four five" if rng.random() < moves else "one two three"] * 2,
            }
            for i in range(60)
        ]
        score(rows, metrics="harmonicity", embedder=HashedWords(), out=tmp_path / name)
        return tmp_path / name

    first, second, third = made("a", 0.5), made("b", 0.5), made("c", 0.0)
    *_, said = write_pooled([first, second], tmp_path / "page.html")
    assert "the best" not in said
    assert re.search(
        r"[ab] does not differ significantly from 1 other model, so there is no clear best", said
    )
    *_, said = write_pooled([first, second, third], tmp_path / "page.html")
    assert "3 models; the best is c with 0.000(0), the worst " in said


def test_the_outcomes_of_each_run_come_first(paths: list[Path], tmp_path: Path) -> None:
    lines = write_pooled(paths, tmp_path / "page.html")
    assert [line.partition(" scored")[0] for line in lines[:3]] == [
        f"m{n}: harmonicity: 100 %" for n in range(3)
    ]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    first, last = (page.index(f"<bdi>m{n}</bdi>: <bdi>harmonicity: 100\u00a0%") for n in (0, 2))
    assert first < last < page.index('<p class="headline')


def test_answers_to_one_question_stand_side_by_side(paths: list[Path], tmp_path: Path) -> None:
    write_pooled(paths, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    asked = page.split('<details class="asked"')[1:]
    assert len(asked) == MAX_QUESTIONS_SHOWN
    assert asked[0].count("<li class=") == 3
    scores = [float(one) for one in re.findall(r"score ([\d.]+)", asked[0])]
    assert scores == sorted(scores)  # lower is better: the best first
    spreads = [
        round(float(high) - float(low), 2)
        for low, high in re.findall(r"3 models, ([\d.]+) to ([\d.]+)", page)
    ]
    assert spreads == sorted(spreads, reverse=True)


def test_what_is_not_comparable_is_said(paths: list[Path], tmp_path: Path) -> None:
    other = run_of(tmp_path / "m0b", metric="harmonicity:stable_below=0.2", model="m0")
    write_pooled([paths[0], other], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "harmonicity has different options in these runs" in page
    assert "24 answers are counted twice" in page


def test_runs_that_a_second_reader_read_in_part_are_told_apart(tmp_path: Path) -> None:
    sample = {"question": "Is it red?", "response": "It is red.", "documents": ["It is red."]}

    def first(_: str, __: str) -> float:
        return 0.9

    def second(_: str, __: str) -> float:
        return 0.9

    given: dict[str, Any] = {"metrics": "faithfulness", "entailer": first}
    score([{**sample, "model": "a"}], out=tmp_path / "a", **given)
    score([{**sample, "model": "b"}], out=tmp_path / "b", second=second, **given)
    write_pooled([tmp_path / "a", tmp_path / "b"], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "the runs use different backends as second: " in page
    assert "different backends as entailer" not in page


def test_what_cannot_be_pooled_is_refused(paths: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with pytest.raises(RunFolderError, match="given twice"):
        write_pooled([paths[0], paths[0] / ".." / paths[0].name], page)
    with pytest.raises(RunFolderError, match="holds no finished run"):
        write_pooled([paths[0], tmp_path], page)
    rows = [{"question": "Q?", "response": "A.", "answers": [["A"]]}]
    score(rows, metrics="reference:parts=tokens", out=tmp_path / "other")
    with pytest.raises(RunFolderError, match="no metric in common"):
        write_pooled([paths[0], tmp_path / "other"], page)
    assert not page.exists()

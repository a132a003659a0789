"""What ``lab.benchmarks.which_metric`` computes by itself, and its one command on a few answers."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lab.benchmarks.which_metric.__main__ import IMAGE, PAGE, filled
from lab.benchmarks.which_metric.baselines import Cosine, Words
from lab.benchmarks.which_metric.combining import (
    Difference,
    Scores,
    best_column,
    compared,
    left_out_gain,
    out_of_fold_gain,
    within_folds,
    wrong_together,
)
from lab.benchmarks.which_metric.sets import SETS, Row, drawn, renumbered, shared
from lab.benchmarks.which_metric.studying import column_name
from lab.benchmarks.which_metric.tables import adjusted, figure_table, markdown, spread, turned
from trustassay import score
from trustassay.statistics.correlation import auroc

ROOT = Path(__file__).parents[2]
with_sets = pytest.mark.skipif(not shared().is_dir(), reason="TRUSTASSAY_SHARED is not there")


def row(cluster: str, question: str, response: str) -> Row:
    return Row(cluster, question, response, 1, {"documents": ["a"], "model": None})


def made(name: str, seed: int, *, apart: tuple[float, ...], questions: int = 200) -> Scores:
    """Return two answers to each question; each column holds the label and noise of its own."""
    rng = np.random.default_rng([seed])
    labels = rng.integers(0, 2, 2 * questions).astype(float)
    table = np.stack([d * labels + rng.normal(size=len(labels)) for d in apart], axis=1)
    columns = [f"c{number}" for number in range(len(apart))]
    return Scores(name, columns, table, labels, np.repeat(np.arange(questions), 2))


def test_a_sample_has_one_question_of_each_piece_and_no_question_twice() -> None:
    rows = [
        row("one", "Who?", "a"),
        row("one", "When?", "b"),
        row("one", "Who?", "c"),
        row("two", "Who?", "d"),
        row("three", "Where?", "e"),
    ]
    found = drawn(rows, 10, "any")
    assert sorted(one["response"] for one in found) == ["a", "c", "d", "e"]
    asked = {one["response"]: one["question"] for one in found}
    assert asked["a"] == asked["c"] != asked["d"]
    assert len({one["id"] for one in found}) == 4
    assert all("model" not in one for one in found)
    assert found == drawn(rows, 10, "any")
    fewer = drawn(rows, 2, "any")
    assert fewer == found[: len(fewer)] and len(fewer) in (2, 3)


def test_citations_name_the_places_of_the_documents() -> None:
    documents = [{"upstream_number": "4"}, {"upstream_number": "2"}]
    given = {"documents": documents, "response": "Yes [2]. No [4, 2][7]. A [note]."}
    assert renumbered(given) == "Yes [2]. No [1][2]. A [note]."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("words", "words"),
        ("judge", "judge-entailer"),
        ("faithfulness (faithfulness-lexical)", "faithfulness-lexical"),
        ("faithfulness.support (faithfulness)", "faithfulness.support"),
        ("fewl.no_penalty (fewl-eq1)", "fewl-eq1.no_penalty"),
        ("length (shorter)", "length"),
    ],
)
def test_columns_are_called_after_their_run(name: str, expected: str) -> None:
    assert column_name(name) == expected


def test_the_baselines_take_the_nearest_passage() -> None:
    sample = {
        "question": "What burned?",
        "response": "The old mill burned.",
        "documents": ["A church stood there.", "The mill, old and dry, burned in May."],
    }
    words, cosine = (
        one.score for one in score([sample], metrics=[Words(), Cosine()], report=False).assessments
    )
    assert words == 1.0
    assert cosine is not None and 0.5 < cosine < 1.0


def test_the_best_column_is_that_of_the_largest_auroc() -> None:
    labels = np.array([0.0, 1.0, 0.0, 1.0])
    table = np.array([[3.0, 1.0], [1.0, 2.0], [4.0, 1.5], [2.0, 3.0]])
    assert best_column(table, labels) == 1


def test_pairs_across_folds_do_not_count() -> None:
    rng = np.random.default_rng(3)
    scores, labels = rng.normal(size=40), rng.integers(0, 2, 40).astype(float)
    folds = rng.integers(0, 3, 40)
    wins = pairs = 0.0
    for i, j in itertools.product(range(40), repeat=2):
        if folds[i] == folds[j] and labels[i] > labels[j]:
            pairs += 1
            wins += float(scores[i] > scores[j])
    found = within_folds(scores, labels, folds)(np.ones((1, 40)))[0]
    assert found == pytest.approx(wins / pairs)


def test_two_columns_are_compared_on_the_answers_that_have_both() -> None:
    scores = made("set", 1, apart=(2.0, 0.5))
    scores.table[:7, 0] = np.nan
    found = compared(scores, "c0", "c1", 300)
    assert found.n == len(scores.labels) - 7
    assert found.first == pytest.approx(auroc(scores.table[7:, 0], scores.labels[7:]))
    assert found.second == pytest.approx(auroc(scores.table[7:, 1], scores.labels[7:]))
    assert found.interval is not None and found.interval[0] > 0


def test_independent_scores_gain_together_and_the_same_score_twice_does_not() -> None:
    gained = out_of_fold_gain(made("set", 2, apart=(1.0, 1.0, 1.0)), 300)
    assert gained.interval is not None and gained.interval[0] > 0
    assert sum(gained.chosen.values()) == 25
    one = made("set", 2, apart=(1.0,))
    twice = one._replace(columns=["c0", "c1"], table=np.repeat(one.table, 2, axis=1))
    assert out_of_fold_gain(twice, 300).value == pytest.approx(0.0, abs=1e-12)


def test_noise_that_is_combined_is_not_a_gain() -> None:
    found = out_of_fold_gain(made("set", 5, apart=(1.5, *[0.0] * 8), questions=40), 300)
    assert found.value < 0


def test_the_best_column_of_other_sets_is_the_rival_on_a_set_left_out() -> None:
    others = [made(f"other {seed}", seed, apart=(0.4, 1.5)) for seed in (1, 2)]
    here = made("here", 9, apart=(1.5, 0.4))
    found = left_out_gain(here, others, 300)
    assert found.chosen == {"c1": 1}
    assert found.second == pytest.approx(auroc(here.table[:, 1], here.labels))


def test_wrong_together_counts_what_all_accept_and_none_accepts() -> None:
    labels = np.array([1.0, 1.0, 0.0, 0.0])
    table = np.array([[0.9, 0.8], [0.1, 0.2], [0.8, 0.9], [0.2, 0.1]])
    scores = Scores("set", ["a", "b"], table, labels, np.arange(4))
    assert wrong_together(scores) == (1, 1)


def test_p_values_are_corrected_for_all_of_the_table() -> None:
    def told(p: float | None) -> Difference:
        return Difference(9, 0.6, 0.5, 0.1, None, p, {})

    assert adjusted([told(0.03), told(None), told(0.02), told(0.00001)]) == [
        "0.04",
        "–",
        "0.04",
        "< 0.0001",
    ]


def test_tables_are_markdown_and_turn_round() -> None:
    rows = [["a", "b"], ["1", "2"]]
    assert markdown(rows) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert turned(rows) == [["a", "1"], ["b", "2"]]
    assert spread([3.0, 1.0, 20.0]) == "3 (1 to 20)"
    assert figure_table([], {"words": "words"}, "auroc") == [["set", "words"]]


def test_a_page_without_a_place_for_a_table_is_refused() -> None:
    page = "before\n<!-- table one -->\nold\n<!-- end -->\nafter"
    assert filled(page, {"one": "| new \\1 |"}) == (
        "before\n<!-- table one -->\n\n| new \\1 |\n\n<!-- end -->\nafter"
    )
    with pytest.raises(ValueError, match="expected one place for the table two, found 0"):
        filled(page, {"two": ""})


def test_the_page_shows_the_picture() -> None:
    assert f"images/{IMAGE.name}" in PAGE.read_text(encoding="utf-8")
    assert IMAGE.read_text(encoding="utf-8").startswith("<svg")


@with_sets
@pytest.mark.parametrize("public", SETS, ids=lambda public: public.name)
def test_every_set_has_right_and_wrong_answers_with_what_its_metrics_need(public) -> None:  # type: ignore[no-untyped-def]
    rows = list(public.rows())
    assert {row.label for row in rows} == {0, 1}
    needed = ("answers", "references") if "reference" in public.columns else ("documents",)
    assert all(row.fields.get(name) for row in rows for name in needed)
    assert all(row.question.strip() and row.response.strip() for row in rows)


@pytest.mark.slow
@with_sets
def test_the_command_prints_every_table_of_the_page_and_asks_nothing_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lab.benchmarks.which_metric", "--out", str(tmp_path)]
    command += ["--answers", "60", "--only", "trustscore", "--resamples", "100"]
    first = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("calls.sqlite")}
    assert len(stored) == 4
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert second.stdout == first.stdout
    assert {path: path.stat().st_mtime_ns for path in stored} == stored
    tables = dict(part.split("\n\n", 1) for part in first.stdout.split("\n## ")[1:])
    filled(PAGE.read_text(encoding="utf-8"), tables)
    assert tables["gold"].count("TrustScore's systems") == 2
    taken = json.loads((tmp_path / "60" / "trustscore" / "reference" / "seconds.json").read_text())
    assert taken["answers"] >= 60 and taken["cpu_s"] > 0

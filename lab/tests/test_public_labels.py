"""The comparison with labels of others: rows, figures and the page."""

from pathlib import Path

import numpy as np
import pytest

from lab.benchmarks.public_labels import rows, scoring, tables
from lab.benchmarks.public_labels.figures import (
    LabelledScores,
    fewer_unsupported,
    lowest_score,
    measure_auroc,
    measure_line,
    measure_share,
    measure_spans,
    name_faulty_step,
)
from lab.benchmarks.public_labels.rows import LabelledRow, read_rows, share_of_words
from lab.benchmarks.public_labels.scoring import ScoredAnswer, ScoredRow
from lab.benchmarks.which_metric.sets import shared

needs_data = pytest.mark.skipif(
    not (shared() / "quintd").is_dir(), reason="public sets are absent; set TRUSTASSAY_SHARED"
)


def build_row(number: int, label: str = "right", **fields: object) -> LabelledRow:
    record = {"question": "What?", "response": "x" * 10, "documents": ["y"]}
    return LabelledRow(f"row-{number}", f"c{number}", record, label, {}, **fields)  # type: ignore[arg-type]


def build_answer(score: float | None, sample: str = "", **parts: float) -> ScoredAnswer:
    return ScoredAnswer(sample, "faithfulness", score, score is None, parts, [])


def test_rows_of_a_cluster_are_in_one_part() -> None:
    first, second = build_row(1), build_row(2)._replace(cluster="c1")
    assert first.part == second.part
    parts = {build_row(number).part for number in range(20)}
    assert parts == {"choose", "report"}


def test_share_of_words_counts_content_words_of_all_passages() -> None:
    assert share_of_words("The red house burned", ["a red barn", "a house"]) == pytest.approx(2 / 3)


def test_a_row_without_a_score_stands_in_the_middle_of_an_auroc() -> None:
    right = np.array([True] * 20 + [False] * 20)
    scores = np.concatenate([np.full(20, 0.9), np.full(20, 0.1)])
    # Of 39 scores 20 are .1: the middle is .1 here, and the right row ties with all wrong ones.
    scores[0] = np.nan
    data = LabelledScores(scores, right, np.arange(40))
    measured = measure_auroc(data, rule=np.zeros(40))
    assert measured is not None
    assert (measured["value"], measured["judged"], measured["rows"]) == (0.975, 39, 40)
    assert measured["beyond the rule"]["value"] == 0.475


def test_an_auroc_of_too_few_scores_is_none() -> None:
    scores = np.full(40, np.nan)
    scores[:3] = (0.1, 0.2, 0.3)
    data = LabelledScores(scores, np.array([True, False] * 20), np.arange(40))
    assert measure_auroc(data) is None


def test_the_line_counts_false_alarms_of_right_rows_and_caught_wrong_ones() -> None:
    right = np.array([True] * 40 + [False] * 40)
    flagged = np.array([True] * 10 + [False] * 30 + [True] * 30 + [False] * 10)
    measured = measure_line(flagged, right, np.arange(80))
    assert measured["false_alarms"]["value"] == 0.25
    assert measured["caught"]["value"] == 0.75
    assert measured["balanced_accuracy"]["value"] == 0.75
    low, high = measured["caught"]["interval"]
    assert low < 0.75 < high


def test_spans_are_measured_over_all_characters() -> None:
    labelled = [
        build_row(1, spans=[(0, 4)]),
        build_row(2, spans=[(0, 2)]),
    ]
    measured = measure_spans(labelled, {"row-1": [(0, 2), (1, 3)], "row-2": [(5, 8)]})
    assert measured["precision"]["value"] == 0.5
    assert measured["recall"]["value"] == 0.5


def test_a_share_has_an_interval_only_with_enough_clusters() -> None:
    measured = measure_share([True, False], ["a", "b"])
    assert measured["value"] == 0.5
    assert isinstance(measured["interval"], str)


def test_the_named_step_is_the_least_supported_one_whichever_steps_were_scored() -> None:
    answers = [
        build_answer(1.0, "log-1", support=0.9),
        build_answer(0.0, "log-3", support=0.1),
        build_answer(None, "log-4"),
    ]
    assert name_faulty_step(ScoredRow("log", answers)) == 3
    assert name_faulty_step(ScoredRow("log", [])) == 0


def test_scores_of_several_answers_are_the_worst_and_counts_add_up() -> None:
    answers = [
        build_answer(1.0, statements=2, supported=2),
        build_answer(0.5, statements=4, supported=1),
        build_answer(None),
    ]
    assert lowest_score(answers) == 0.5
    assert fewer_unsupported(answers) == -3
    assert fewer_unsupported([build_answer(None)]) is None


def test_the_page_shows_the_figure_before_in_brackets() -> None:
    title = tables.COMPARISONS[0].title

    def part(value: float) -> dict[str, object]:
        measured = {
            "value": value,
            "interval": [0.5, 0.75],
            "judged": 9,
            "rows": 10,
            "beyond the rule": {"value": 0.125, "interval": "too few"},
        }
        shares = {"balanced_accuracy": 0.875, "false_alarms": 0.25, "caught": 1.0}
        line = {name: {"value": share} for name, share in shares.items()}
        return {
            "rows": {"right": 4, "wrong": 6},
            "rules": {"words": measured},
            "embedded": {"faithfulness": {"line": line, "score": measured}},
        }

    figures = {"now": {title: {"report": part(0.625), "all": part(0.5)}}}
    figures["before"] = {title: {"report": part(0.5)}}
    page = tables.build_page(figures)
    assert "| rule | words | .62 (.50 to .75) [.50] |  | .50 (.50 to .75) |" in page
    assert "| embedded | faithfulness score | .62 (.50 to .75) [.50] | .12 |" in page
    assert "| .88 | .25 | 1.00 | 9 of 10 |" in page


def test_scoring_continues_and_rows_that_cannot_be_scored_stay_without_a_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank = build_row(2)
    blank.record["response"] = ""
    monkeypatch.setattr(scoring, "read_rows", lambda *_: [build_row(1), blank])
    for _ in range(2):
        scoring.score_set("scitab", "lexical", tmp_path)
    lines = scoring.scores_path(tmp_path, "scitab", "lexical").read_text().splitlines()
    assert len(lines) == 2
    scores = scoring.read_scores(tmp_path, "scitab", "lexical")
    assert len(scores["row-1"].of_metric("faithfulness")) == 1
    assert [answer.score for answer in scores["row-2"].answers] == [None, None]


@needs_data
def test_every_set_is_read_with_labels_and_rules() -> None:
    for name in rows.READERS:
        some = read_rows(name)
        assert len({row.id for row in some}) == len(some)
        assert len({row.label for row in some}) > 1
        assert all(set(row.trivial) == set(some[0].trivial) for row in some)
    assert not any("[CONTINUE]" in row.record["response"] for row in read_rows("scitab"))


@needs_data
def test_our_labels_of_agents_are_of_conversations_of_the_set() -> None:
    labels = tables.read_agent_labels()
    assert set(labels) <= {row.id for row in read_rows("tau-bench")}
    assert {"false_claim", "clean"} <= set(labels.values())

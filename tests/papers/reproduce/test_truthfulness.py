"""WillowTree's experiment: the judge beside people, its spread, raters, and faulty input."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.metrics.judge.eras.scripted_judge import HERE
from tests.support import jsonl
from trustassay.errors import UsageError
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import RecordSelection
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.papers.reproduce.tables import ReproducedTable, Reproduction
from trustassay.papers.reproduce.truthfulness import BUNDLED_ANSWERS, reproduce
from trustassay.runs.intake import build_run_options

SCRIPTED = "python:tests.metrics.judge.eras.scripted_judge:rate"
OPTIONS = build_run_options(cache=None, report=False)


def build_setup(tmp_path: Path, **options: Any) -> ReproductionSetup:
    return ReproductionSetup(tmp_path / "out", options=OPTIONS, **options)


def write_answers(folder: Path, expected: Sequence[Mapping[str, int]]) -> Path:
    rows = [
        {
            "id": f"a{n}",
            "question": "Which eras?",
            "response": f"answer {n}",
            "answers": [["three"]],
            "expected": levels,
        }
        for n, levels in enumerate(expected)
    ]
    folder.mkdir(exist_ok=True)
    return jsonl(folder / "answers.jsonl", rows)


def vote_by_table(votes: Sequence[Sequence[int | str]]) -> Any:
    """Return a judge that votes on answer ``n`` in round ``m`` as ``votes[n][m]``."""

    def judge(request: Any) -> str:
        (number,) = re.findall(r"answer (\d+)", request.messages[0].content)
        return f"Score: {votes[int(number)][request.repeat]}\nReason: so."

    return judge


def figure(table: ReproducedTable, row: str, column: str) -> Any:
    (cells,) = (one.cells for one in table.rows if one.name == row)
    return cells[list(table.columns).index(column)].values


def find_table(result: Reproduction, title: str) -> ReproducedTable:
    (table,) = (one for one in result.tables if title in one.heading)
    return table


VOTES: Sequence[Sequence[int | str]] = [
    [3, 3, 3],
    [2, 4, 4],
    [5, 5, 4],
    [1, 2, 3],
]
EXPECTED = [{"truthfulness": level} for level in (3, 4, 4, 2)]


def test_counts_against_people_are_those_worked_by_hand(tmp_path: Path) -> None:
    data = write_answers(tmp_path / "data", EXPECTED).parent
    judge: Any = vote_by_table(VOTES)
    result = reproduce(build_setup(tmp_path, data=data, judge=judge, repeats=3))
    table = find_table(result, "expected")
    # Round 1 gives 3, 2, 5, 1 to answers that people gave 3, 4, 4, 2.
    counts = [
        figure(table, "truthfulness, first run", name)["value"]
        for name in ("matched", "lower", "higher")
    ]
    assert counts == [1, 2, 1]
    # Majorities are 3, 4, 5, and of 1, 2 and 3, once each, the lowest.
    row = "truthfulness, majority of 3 runs"
    counts = [figure(table, row, name)["value"] for name in ("matched", "lower", "higher")]
    assert counts == [2, 1, 1]
    matched = figure(table, "truthfulness, mean of all runs", "matched")
    # Rounds 2 and 3: 3, 4, 5, 2 match three times, 3, 4, 4, 3 three times.
    assert matched["by_run"] == [1, 3, 3]
    assert matched["value"] == pytest.approx(7 / 3)


def test_the_spread_is_the_sample_standard_deviation_of_the_votes(tmp_path: Path) -> None:
    data = write_answers(tmp_path / "data", EXPECTED).parent
    judge: Any = vote_by_table(VOTES)
    result = reproduce(build_setup(tmp_path, data=data, judge=judge, repeats=3))
    table = find_table(result, "spread")
    deviations = [np.std(votes, ddof=1) for votes in ([3, 3, 3], [2, 4, 4], [5, 5, 4], [1, 2, 3])]
    spread = figure(table, "truthfulness", "mean standard deviation")
    assert spread["value"] == pytest.approx(np.mean(deviations))
    assert figure(table, "truthfulness", "variance 0")["value"] == 1
    assert figure(table, "truthfulness", "inconsistent")["value"] == 3
    of_answer = find_table(result, "of each answer")
    assert figure(of_answer, "a1", "variance")["value"] == pytest.approx(np.var([2, 4, 4], ddof=1))


def test_a_reply_without_a_level_is_left_out_and_counted(tmp_path: Path) -> None:
    data = write_answers(tmp_path / "data", EXPECTED[:2]).parent
    judge: Any = vote_by_table([["none of them", 4, 4], [4, 4, 4]])
    result = reproduce(build_setup(tmp_path, data=data, judge=judge, repeats=3))
    assert figure(find_table(result, "spread"), "truthfulness", "replies not read")["value"] == 1
    table = find_table(result, "expected")
    # Only one answer has a vote in the first round.
    assert figure(table, "truthfulness, first run", "answers")["value"] == 1
    assert figure(table, "truthfulness, majority of 3 runs", "answers")["value"] == 2


def test_votes_of_a_known_judge_give_the_figures_of_the_article(tmp_path: Path) -> None:
    result = reproduce(build_setup(tmp_path, judge=SCRIPTED, repeats=30))
    table, spread = find_table(result, "expected"), find_table(result, "spread")
    for rubric, counts, deviation, steady in (
        ("truthfulness", [16, 4, 1], 0.06, 19),
        ("informativeness", [17, 3, 1], 0.16, 16),
    ):
        row = f"{rubric}, majority of 30 runs"
        printed_counts = [
            figure(table, row, name)["value"] for name in ("matched", "lower", "higher")
        ]
        assert printed_counts == counts
        mean = figure(spread, rubric, "mean standard deviation")["value"]
        assert round(mean, 2) == deviation
        assert figure(spread, rubric, "variance 0")["value"] == steady
    # The answers are not the article's, so its figures stand nowhere.
    assert all("not comparable" in one.list_notes()[0].lower() for one in (table, spread))
    assert not any(one.has_printed_figures for one in result.tables)
    result.write(tmp_path / "page")
    page = (tmp_path / "page" / "reproduction.html").read_text(encoding="utf-8")
    # Each answer has its name and its levels in both drawings.
    assert page.count('<svg class="ridge"') == 2 * 21
    assert "two-of-three: expected 3, judged 2" in page
    assert "expected 3, judge 2" in page


def test_raters_are_compared_with_the_judge_each_other_and_themselves(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "answers.jsonl").write_bytes(BUNDLED_ANSWERS.read_bytes())
    (data / "ratings-truthfulness.csv").write_bytes((HERE / "ratings.csv").read_bytes())
    result = reproduce(build_setup(tmp_path, data=data, judge=SCRIPTED, repeats=5))
    table = find_table(result, "would people agree")
    rows = [row.name for row in table.rows]
    assert rows[-1] == "raters among themselves"
    assert {"anna and the judge", "anna, asked again"} <= set(rows)
    # anna rated all 21 answers twice, 16 times with the same level.
    assert figure(table, "anna, asked again", "equal, %")["value"] == pytest.approx(1600 / 21)
    assert figure(table, rows[-1], "alpha, ordinal")["value"] == pytest.approx(0.760, abs=5e-4)
    assert "Agreement of people" not in result.missing


def test_one_rater_has_no_agreement_and_the_note_says_so(tmp_path: Path) -> None:
    data = write_answers(tmp_path / "data", EXPECTED).parent
    lines = ["item,rater,rating", *(f"a{n},anna,{n + 1}" for n in range(4))]
    (data / "ratings-truthfulness.csv").write_text("\n".join(lines))
    judge: Any = vote_by_table(VOTES)
    result = reproduce(build_setup(tmp_path, data=data, judge=judge, repeats=3))
    table = find_table(result, "would people agree")
    assert [cell.text for cell in table.rows[-1].cells] == ["–"] * 4
    assert any("Ratings by one rater (anna)" in note for note in table.notes)
    assert figure(table, "anna and the judge", "answers")["value"] == 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ratings.csv", "item,rater,rating\na0,anna,3\n", "does not name its rubric"),
        ("ratings-truthfulness.csv", "item,rater,rating\nother,anna,3\n", "no item is the id"),
        ("ratings-truthfulness.csv", "item,rater,rating\na0,anna,9\n", "9"),
    ],
)
def test_faulty_ratings_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    data = write_answers(tmp_path / "data", EXPECTED).parent
    (data / name).write_text(content)
    judge: Any = vote_by_table(VOTES)
    with pytest.raises(InputError, match=message):
        reproduce(build_setup(tmp_path, data=data, judge=judge, repeats=3))


def test_answers_without_expected_levels_are_refused(tmp_path: Path) -> None:
    data = write_answers(tmp_path / "data", [{}, {}]).parent
    with pytest.raises(InputError, match=r"expected\.truthfulness"):
        reproduce(build_setup(tmp_path, data=data, judge="python:math:sqrt"))


def test_an_empty_folder_names_the_files_that_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(InputError, match=r"answers\.jsonl"):
        reproduce(build_setup(tmp_path, data=tmp_path / "data", judge="python:math:sqrt"))


def test_a_limit_counts_answers_and_others_are_not_judged(tmp_path: Path) -> None:
    data = write_answers(tmp_path / "data", EXPECTED).parent
    asked: list[str] = []

    def judge(request: Any) -> str:
        asked.append(request.messages[0].content)
        return "Score: 3\nReason: so."

    scripted: Any = judge
    selection = RecordSelection(limit=2)
    setup = build_setup(tmp_path, data=data, judge=scripted, repeats=1, selection=selection)
    result = reproduce(setup)
    assert result.data.startswith("2 answers to 1 question")
    assert len(asked) == 2
    assert not any("answer 2" in prompt or "answer 3" in prompt for prompt in asked)
    assert [row.name for row in find_table(result, "of each answer").rows] == ["a0", "a1"]


def test_one_vote_has_no_variance_and_the_note_says_so(tmp_path: Path) -> None:
    data = write_answers(tmp_path / "data", EXPECTED).parent
    judge: Any = vote_by_table(VOTES)
    result = reproduce(build_setup(tmp_path, data=data, judge=judge, repeats=1))
    table = find_table(result, "spread")
    for column in ("mean standard deviation", "variance 0"):
        assert figure(table, "truthfulness", column)["reason"] == "one vote has no variance"


def test_replies_without_a_level_are_the_reason_where_there_are_no_others(tmp_path: Path) -> None:
    data = write_answers(tmp_path / "data", EXPECTED[:2]).parent
    judge: Any = vote_by_table([["none", "none"], ["none", "none"]])
    result = reproduce(build_setup(tmp_path, data=data, judge=judge, repeats=2))
    row = "truthfulness, first run"
    reason = figure(find_table(result, "expected"), row, "matched")["reason"]
    assert reason == "no reply could be read"
    reason = figure(find_table(result, "spread"), "truthfulness", "variance 0")["reason"]
    assert reason == "no answer has two readable votes"


def test_a_missing_path_is_named_before_a_missing_judge(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        reproduce(build_setup(tmp_path, data=tmp_path / "absent"))


def test_own_answers_need_a_judge_and_recorded_ones_have_a_number_of_rounds(
    tmp_path: Path,
) -> None:
    data = write_answers(tmp_path / "data", EXPECTED).parent
    with pytest.raises(UsageError, match="--judge"):
        reproduce(build_setup(tmp_path, data=data))
    with pytest.raises(UsageError, match="rounds"):
        reproduce(build_setup(tmp_path, repeats=1000))
    with pytest.raises(UsageError, match="--model"):
        reproduce(build_setup(tmp_path, models=["python:math:sqrt"]))
    with pytest.raises(UsageError, match="--backend"):
        reproduce(build_setup(tmp_path, backends={"entailer": "lexical"}))


@pytest.mark.slow
def test_the_bundled_votes_are_real_and_reproduce_without_a_model(tmp_path: Path) -> None:
    result = reproduce(build_setup(tmp_path))
    table = find_table(result, "spread")
    for rubric in ("truthfulness", "informativeness"):
        assert figure(table, rubric, "answers")["value"] == 21
    # A continued reproduction asks nothing anew and gives the same.
    assert json.dumps(reproduce(build_setup(tmp_path)).to_dict()) == json.dumps(result.to_dict())

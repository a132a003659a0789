"""Two runs compared, by hand and through the Python function."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.compare.made_runs import made_run, rows, shuffled
from tests.many import HashedWords, many
from tests.support import Probe, record
from trustassay import Sample, score
from trustassay.compare.run_scores import describe_changed_settings
from trustassay.compare.two_runs import compare
from trustassay.core.capabilities import Models
from trustassay.core.outcome import FAILED, NOT_ANSWERED, NOT_SCORED, PASSED, SCORED
from trustassay.errors import RunFolderError


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of runs of a metric without a line: ``before``, ``after`` and ``others``."""
    home = tmp_path_factory.mktemp("runs")
    for name, shift, seed in (("before", 1.0, 0), ("after", 1.5, 0), ("others", 1.0, 9)):
        samples: list[dict[str, Any]] = list(many(each=10, shift=shift, seed=seed))
        if name == "others":
            samples = [row | {"id": "o" + row["id"]} for row in samples]
        score(samples, metrics="harmonicity", embedder=HashedWords(), out=home / name, report=False)
    score([record(1)], metrics="grounding", entailer="lexical", out=home / "grounding")
    return home


def test_refusals_that_became_inventions_are_worse(tmp_path: Path) -> None:
    """Row 1 of the false figures: all means over scored answers stay as they were."""
    letters = "n" * 30 + "p" * 57 + "f" * 3
    before = made_run(tmp_path / "before", rows(letters))
    after = made_run(tmp_path / "after", rows("f" * 30 + letters[30:]))
    comparison = compare(before, after)
    assert comparison.headline.startswith(
        "Worse: not supported went from 3.3 to 36.7 % of all questions, +33.3 points"
    )
    changes = {one.kind: one for one in comparison.outcomes}
    assert (changes[FAILED].risen, changes[FAILED].fallen, changes[FAILED].units) == (30, 0, 90)
    assert changes[FAILED].verdict == "worse"
    assert changes[NOT_ANSWERED].verdict == "better"
    assert changes[PASSED].verdict == "no clear change"
    assert comparison.figures["mean"].difference.value == 0
    assert comparison.answers.counts["worse"] == 30


def test_what_was_asked_in_one_run_alone_changes_no_share_of_the_pairs(tmp_path: Path) -> None:
    letters = shuffled(1, p=40, f=20)
    before = made_run(tmp_path / "before", rows(letters))
    after = made_run(tmp_path / "after", rows(letters + "f" * 20))
    comparison = compare(before, after)
    (failed,) = (one for one in comparison.outcomes if one.kind == FAILED)
    assert failed.first == failed.second == pytest.approx(100 / 3)
    assert comparison.scores[1].outcomes.shares[FAILED].percent == pytest.approx(50)
    assert failed.change.value == 0
    assert comparison.headline.startswith("No clear change")


def test_a_metric_without_a_line_has_scored_and_not_scored(runs: Path) -> None:
    comparison = compare(runs / "before", runs / "after")
    assert [one.kind for one in comparison.outcomes] == [SCORED, NOT_SCORED]
    assert comparison.pairing.question_count == 120
    assert comparison.figures["mean"].verdict == "worse"
    assert comparison.headline.startswith("Worse: mean went from 0.")
    assert "over 120 questions scored in both runs" in comparison.headline
    assert comparison.notes == []


def test_a_run_beside_itself(runs: Path) -> None:
    comparison = compare(runs / "before", runs / "before")
    assert {one.difference.value for one in comparison.figures.values()} == {0.0}
    assert comparison.answers.counts["same"] == 120
    assert comparison.headline.startswith("No clear change: mean went from 0.")


def test_runs_of_different_ids_are_paired_by_question(runs: Path) -> None:
    pairing = compare(runs / "before", runs / "others").pairing
    assert (pairing.by_id, pairing.by_question, pairing.question_count) == (0, 120, 120)


def test_runs_of_different_questions_are_not_tested(runs: Path, tmp_path: Path) -> None:
    samples: list[dict[str, Any]] = [
        row | {"question": f"Another: {row['question']}"} for row in many(each=10)
    ]
    folder = tmp_path / "run"
    score(samples, metrics="harmonicity", embedder=HashedWords(), out=folder, report=False)
    comparison = compare(runs / "before", folder)
    assert comparison.pairing.other_question == 120
    assert comparison.figures == {}
    assert set(comparison.not_compared.values()) == {"the runs have no question in common"}
    assert comparison.headline.startswith("The runs have no question in common")
    assert {one.rise_p for one in comparison.outcomes} == {None}


def test_headline_figures_have_intervals_of_the_paired_difference(runs: Path) -> None:
    figures = compare(runs / "before", runs / "after").figures
    assert list(figures) == ["mean", "median", "stable_share", "angle_degrees"]
    assert figures["mean"].verdict == figures["angle_degrees"].verdict == "worse"
    assert "better" not in {one.verdict for one in figures.values()}
    assert {key: one.better for key, one in figures.items()} == {
        "mean": "lower",
        "median": "lower",
        "stable_share": "higher",
        "angle_degrees": "lower",
    }
    for key, one in figures.items():
        summary = json.loads((runs / "after" / "summary.json").read_bytes())
        assert one.second == pytest.approx(summary["metrics"]["harmonicity"]["values"][key])
        assert one.difference.interval
        assert one.difference.interval[0] < one.difference.value < one.difference.interval[1]


def test_answers_that_got_worse_come_first(runs: Path) -> None:
    answers = compare(runs / "before", runs / "after").answers
    falls = [b - a for a, b in (one.scores for one in answers.worse) if a is not None and b]
    assert len(falls) == answers.counts["worse"] > 20
    assert falls == sorted(falls, reverse=True)
    assert min(falls) > 0
    kinds = ("worse", "better", "other", "errors", "same")
    assert sum(answers.counts[kind] for kind in kinds) == 120
    first = answers.worse[0]
    assert first.question.startswith("What is told of place")
    assert first.reasons[1]


def test_each_change_of_an_answer_has_its_kind(tmp_path: Path) -> None:
    before = made_run(tmp_path / "before", rows("ppnnffp"))
    after = made_run(tmp_path / "after", rows("fnpfpnp"))
    answers = compare(before, after).answers
    assert sorted(one.ids[1] for one in answers.worse) == ["q0", "q1", "q3"]
    assert sorted(one.ids[1] for one in answers.better) == ["q2", "q4"]
    assert [one.ids[1] for one in answers.other] == ["q5"]  # wrong, then refused
    assert answers.counts["same"] == 1


def test_the_same_seed_gives_the_same_numbers(runs: Path) -> None:
    first, again = (compare(runs / "before", runs / "after", seed=3).to_dict() for _ in range(2))
    assert first == again
    assert first != compare(runs / "before", runs / "after", seed=4).to_dict()
    json.dumps(first, allow_nan=False)


def test_other_settings_are_noted(runs: Path, tmp_path: Path) -> None:
    class Other(HashedWords):
        name = "other-words"

    metric = "harmonicity:stable_below=0.1,seed=5"
    score(list(many(each=10)), metrics=metric, embedder=Other(), out=tmp_path / "run")
    assert compare(runs / "before", tmp_path / "run").notes == [
        "harmonicity: stable_below changed: not set → 0.1",
        "embedder changed: hashed-words → other-words",
    ]


def test_answers_that_could_not_be_scored_are_not_scored(tmp_path: Path) -> None:
    async def by_number(sample: Sample, models: Models) -> float:
        if sample.id == failing:
            raise RuntimeError("no")
        return int(sample.id[1:]) / 100

    for failing in ("q3", "q5"):
        samples = [record(i) for i in range(20)]
        score(samples, metrics=[Probe(by_number)], entailer="lexical", out=tmp_path / failing)
    comparison = compare(tmp_path / "q3", tmp_path / "q5")
    shares = {one.kind: (one.first, one.second) for one in comparison.outcomes}
    assert shares == {SCORED: (95.0, 95.0), NOT_SCORED: (5.0, 5.0)}
    assert comparison.figures["mean"].questions == 18
    counts = comparison.answers.counts
    assert (counts["errors"], counts["errors_now"]) == (2, 1)


def test_what_cannot_be_compared(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="holds no run"):
        compare(runs / "before", tmp_path)
    with pytest.raises(RunFolderError, match="no metric in common"):
        compare(runs / "before", runs / "grounding")
    with pytest.raises(RunFolderError, match="did you mean harmonicity"):
        compare(runs / "before", runs / "after", metric="harmonicty")
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "run.json").write_bytes((runs / "before" / "run.json").read_bytes())
    with pytest.raises(RunFolderError, match="not finished"):
        compare(runs / "before", unfinished)


def test_of_several_metrics_one_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        score(
            list(many(each=1)),
            metrics=["harmonicity", "semantic_harmonicity"],
            embedder=HashedWords(),
            entailer="lexical",
            out=tmp_path / name,
        )
    with pytest.raises(ValueError, match="choose one with --metric"):
        compare(tmp_path / "a", tmp_path / "b")
    comparison = compare(tmp_path / "a", tmp_path / "b", metric="semantic_harmonicity")
    assert comparison.metric.name == "semantic_harmonicity"


def test_a_metric_that_is_not_installed_counts_scored_answers(tmp_path: Path) -> None:
    for name in ("a", "b"):
        made_run(tmp_path / name, rows("ppff"))
        for file in ("run.json", "assessments.jsonl", "summary.json"):
            path = tmp_path / name / file
            path.write_text(path.read_text().replace('"faithfulness"', '"gone"'))
        summary = tmp_path / name / "summary.json"
        content = json.loads(summary.read_bytes())
        del content["outcomes"]  # as of a version that counted none
        summary.write_text(json.dumps(content))
    comparison = compare(tmp_path / "a", tmp_path / "b")
    assert (comparison.metric.name, comparison.pairing.question_count) == ("gone", 4)
    assert {one.kind: one.second for one in comparison.outcomes} == {SCORED: 100, NOT_SCORED: 0}


def test_a_run_of_a_version_that_counted_no_outcomes_is_counted_now(tmp_path: Path) -> None:
    before = made_run(tmp_path / "before", rows("pppnf"))
    summary = before / "summary.json"
    content = json.loads(summary.read_bytes())
    del content["outcomes"]
    summary.write_text(json.dumps(content))
    after = made_run(tmp_path / "after", rows("pppnf"))
    shares = {one.kind: (one.first, one.second) for one in compare(before, after).outcomes}
    assert shares == {PASSED: (60, 60), FAILED: (20, 20), NOT_ANSWERED: (20, 20)}


def test_the_words_of_the_command_and_the_times_are_no_setting() -> None:
    shared = {"metrics": {}, "backends": {}, "seed": 0}
    first = shared | {"command": "trustassay score a", "started": "2026-01-01T00:00:00Z"}
    assert describe_changed_settings(first, shared | {"seed": 1}, ()) == ["seed changed: 0 → 1"]

"""Two runs compared: through the Python function, against scipy and by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lazily import needed
from tests.many import HashedWords, many
from tests.support import Probe, record
from trustassay import Sample, score
from trustassay.capabilities import Models
from trustassay.errors import RunFolderError
from trustassay.workflows.changes import differing_settings
from trustassay.workflows.compare import compare

stats = needed("scipy.stats")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of ``before`` and ``after``, of the same samples, and of ``others``."""
    home = tmp_path_factory.mktemp("runs")
    for name, shift, seed in (("before", 1.0, 0), ("after", 1.5, 0), ("others", 1.0, 9)):
        rows: list[dict[str, Any]] = list(many(each=10, shift=shift, seed=seed))
        if name == "others":
            rows = [row | {"id": "o" + row["id"]} for row in rows]
        score(rows, metrics="harmonicity", embedder=HashedWords(), out=home / name, report=False)
    score([record(1)], metrics="grounding", entailer="lexical", out=home / "grounding")
    return home


def test_runs_of_the_same_samples(runs: Path) -> None:
    found = compare(runs / "before", runs / "after")
    a, b = found.first.scores, found.second.scores
    assert found.metric.name == "harmonicity"
    assert found.mean.value == pytest.approx(b.mean() - a.mean())
    assert found.median.value == pytest.approx(np.median(b) - np.median(a))
    assert found.stable
    assert found.stable.value == pytest.approx(100 * ((b < 0.05).mean() - (a < 0.05).mean()))
    assert found.distribution.statistic == pytest.approx(stats.ks_2samp(a, b).statistic)
    assert found.pairs == 120
    assert found.paired
    assert found.paired.value == pytest.approx(found.mean.value)
    assert found.paired.interval
    assert found.mean.interval
    assert found.paired.interval[1] - found.paired.interval[0] < (
        found.mean.interval[1] - found.mean.interval[0]
    )
    assert found.paired_p is not None
    assert found.paired_p < 0.01
    assert found.warnings == []
    assert found.groups.whole.n == 240


def test_a_run_beside_itself(runs: Path) -> None:
    found = compare(runs / "before", runs / "before")
    assert found.mean.value == found.median.value == found.distribution.statistic == 0.0
    assert (found.distribution.p, found.paired_p) == (1.0, 1.0)
    assert len(found.groups.cells) == 2


def test_runs_of_different_ids_are_paired_by_question(runs: Path) -> None:
    found = compare(runs / "before", runs / "others")
    assert (found.pairing.by_id, found.pairing.by_question, found.pairs) == (0, 120, 120)
    assert found.distribution.p is not None
    assert found.distribution.p > 0.01
    assert found.warnings == []


def test_runs_of_different_questions_are_compared_as_independent(
    runs: Path, tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = [
        row | {"question": f"Another: {row['question']}"} for row in many(each=10)
    ]
    score(rows, metrics="harmonicity", embedder=HashedWords(), out=tmp_path / "run", report=False)
    found = compare(runs / "before", tmp_path / "run")
    assert (found.pairs, found.paired, found.paired_p) == (0, None, None)
    assert found.pairing.other_question == 120
    assert found.figures == {}
    assert set(found.not_compared.values()) == {"the runs have no question in common"}
    assert found.mean.value == 0.0


def test_headline_figures_have_intervals_of_the_paired_difference(runs: Path) -> None:
    found = compare(runs / "before", runs / "after").figures
    assert list(found) == ["mean", "median", "stable_share", "angle_degrees"]
    assert found["mean"].verdict == found["angle_degrees"].verdict == "worse"
    assert "better" not in {one.verdict for one in found.values()}
    assert {key: one.better for key, one in found.items()} == {
        "mean": "lower",
        "median": "lower",
        "stable_share": "higher",
        "angle_degrees": "lower",
    }
    for key, one in found.items():
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
    kinds = ("worse", "better", "other", "failed", "same")
    assert sum(answers.counts[kind] for kind in kinds) == 120
    first = answers.worse[0]
    assert first.question.startswith("What is told of place")
    assert first.reasons[1]


def test_the_same_seed_gives_the_same_numbers(runs: Path) -> None:
    first, again = (compare(runs / "before", runs / "after", seed=3).to_dict() for _ in range(2))
    assert first == again
    assert first != compare(runs / "before", runs / "after", seed=4).to_dict()
    json.dumps(first, allow_nan=False)


def test_other_settings_are_said(runs: Path, tmp_path: Path) -> None:
    class Other(HashedWords):
        name = "other-words"

    rows = list(many(each=10))
    metric = "harmonicity:stable_below=0.1,seed=5"
    score(rows, metrics=metric, embedder=Other(), out=tmp_path / "run")
    found = compare(runs / "before", tmp_path / "run")
    assert found.warnings == [
        "harmonicity: stable_below was None, then 0.1",
        "the embedder was hashed-words, then other-words",
    ]
    assert found.stable is None


def test_samples_without_a_score_are_left_out_of_the_pairs(tmp_path: Path) -> None:
    async def by_number(sample: Sample, models: Models) -> float:
        if sample.id == failing:
            raise RuntimeError("no")
        return int(sample.id[1:]) / 100

    for failing in ("q3", "q5"):
        rows = [record(i) for i in range(20)]
        score(rows, metrics=[Probe(by_number)], entailer="lexical", out=tmp_path / failing)
    found = compare(tmp_path / "q3", tmp_path / "q5")
    assert found.pairs == 18
    assert found.paired == (0.0, None, "too few pairs: 18; at least 40 are needed")
    told = found.to_dict()["paired"]
    assert told["interval"] is None
    assert told["without_interval"] == "too few pairs: 18; at least 40 are needed"
    assert any("q3: 1 sample without a score" in warning for warning in found.warnings)


def test_what_cannot_be_compared(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="holds no run"):
        compare(runs / "before", tmp_path)
    with pytest.raises(RunFolderError, match="no metric in common"):
        compare(runs / "before", runs / "grounding")
    with pytest.raises(RunFolderError, match="did you mean harmonicity"):
        compare(runs / "before", runs / "after", metric="harmonicty")
    single = next(many(each=1))
    score([single], metrics="harmonicity", embedder=HashedWords(), out=tmp_path / "one")
    with pytest.raises(RunFolderError, match="only one sample has a score"):
        compare(runs / "before", tmp_path / "one")
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "run.json").write_bytes((runs / "before" / "run.json").read_bytes())
    with pytest.raises(RunFolderError, match="not finished"):
        compare(runs / "before", unfinished)


def test_of_several_metrics_one_is_named(runs: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        score(
            list(many(each=1)),
            metrics=["harmonicity", "semantic_harmonicity"],
            embedder=HashedWords(),
            entailer="lexical",
            out=tmp_path / name,
        )
    with pytest.raises(ValueError, match="name one with --metric"):
        compare(tmp_path / "a", tmp_path / "b")
    found = compare(tmp_path / "a", tmp_path / "b", metric="semantic_harmonicity")
    assert found.stable_below == 0.5


def test_a_metric_that_is_not_installed(runs: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        score(
            list(many(each=1)), metrics="harmonicity", embedder=HashedWords(), out=tmp_path / name
        )
        for file in ("run.json", "assessments.jsonl"):
            path = tmp_path / name / file
            path.write_text(path.read_text().replace('"harmonicity"', '"gone"'))
    found = compare(tmp_path / "a", tmp_path / "b")
    assert (found.metric.name, found.pairs) == ("gone", len(list(many(each=1))))


def test_the_words_of_the_command_and_the_times_of_a_run_are_no_settings() -> None:
    shared = {"metrics": {}, "backends": {}, "seed": 0}
    times = {"started": "2026-11-29T01:34:50Z", "ended": "2026-11-29T02:00:00Z"}
    first, second = shared | {"command": "trustassay score a"} | times, shared | {"seed": 1}
    assert differing_settings(first, second, ()) == ["seed was 0, then 1"]

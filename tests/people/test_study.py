"""What ``study`` says of scores of known character."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.support import jsonl
from trustassay import score, study
from trustassay.core import registry
from trustassay.core.metric import Assessment, Context, Figure, Mean, Metric, directions
from trustassay.errors import RunFolderError
from trustassay.input.records import InputError
from trustassay.people.study.command import accept_as_many
from trustassay.people.study.outputs import build_document, headline, write_figures
from trustassay.statistics.correlation import auroc, pearson_p_value

RESAMPLES = 200


@dataclass(frozen=True)
class Good(Metric):
    """Gives the score that the sample holds under ``good``."""

    name: ClassVar[str] = "good"
    title: ClassVar[str] = "A score"
    strict: bool = False

    def needs(self) -> list[Any]:
        return []

    async def assess(self, context: Context) -> Assessment:
        value = context.sample.metadata[self.name]
        if value == "fails":
            raise ValueError("no score today")
        return Assessment(context.sample.id, self.name, value)


@dataclass(frozen=True)
class Bad(Good):
    """The same under ``bad``; low is good."""

    name: ClassVar[str] = "bad"
    title: ClassVar[str] = "A score of errors"

    @property
    def score_range(self) -> tuple[float, float]:
        return 0.0, 2.0

    @property
    def lower_is_better(self) -> bool:
        return True


def samples(n: int = 60, **others: Any) -> list[dict[str, Any]]:
    """Two answers to a question: ``good`` tells right from wrong, ``bad`` hardly."""
    rng = np.random.default_rng(5)
    rows = []
    for i in range(n):
        right = int(rng.random() < 0.5)
        rows.append(
            {
                "id": f"a{i}",
                "question": f"Question {i // 2}?",
                "response": "word " * int(rng.integers(1, 9)),
                "model": f"m{i % 2}",
                "source": "books" if i % 3 else "web",
                "labels": {"correct": right, "grade": right + int(rng.integers(0, 3))},
                "said": ("no", "yes")[right],
                "good": float(np.clip(0.5 * right + 0.6 * rng.random(), 0, 1)),
                "bad": float(2 * rng.random()),
                **others,
            }
        )
    return rows


def run(path: Path, rows: list[dict[str, Any]], *metrics: Metric) -> Path:
    score(rows, metrics=list(metrics) or [Good(), Bad()], out=path, report=False, seed=0)
    return path


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("study") / "one", samples())


def test_figures_of_every_score_and_baseline(one: Path) -> None:
    found = study(one, labels="labels.correct", by=["source", "model"], resamples=RESAMPLES)
    assert (found.answers, found.questions) == (60, 30)
    (label,) = found.labels
    rows = samples()
    truth = [row["labels"]["correct"] for row in rows]
    good = label.figures["good"]["auroc"]
    assert good.value == pytest.approx(auroc([row["good"] for row in rows], truth))
    assert good.interval is not None
    assert good.interval[0] < (good.value or 0) < good.interval[1]
    assert label.figures["bad"]["auroc"].value == pytest.approx(
        auroc([-row["bad"] for row in rows], truth)
    )
    assert "bad: lower is better; reversed here, so that higher is better" in found.notes
    assert label.figures["good"]["brier"].value == pytest.approx(
        np.mean([(row["good"] - right) ** 2 for row, right in zip(rows, truth, strict=True)])
    )
    assert label.figures["bad"]["brier"].without == "the score is not a probability"
    assert label.figures["good"]["ece"].interval is None
    assert {"source", "chance"} <= set(label.figures)
    (length,) = (name for name in label.figures if name.startswith("length"))
    assert (label.figures[length]["auroc"].value or 0) >= 0.5
    assert label.figures["chance"]["auprc"].value == pytest.approx(np.mean(truth))
    assert set(label.groups["source"]) == {"books", "web"}
    assert label.groups["model"]["m1"]["good"]["auroc"].n == 30
    assert label.groups["source"]["web"]["good"]["auroc"].n == 20


def test_tests_are_paired_and_corrected(one: Path) -> None:
    (label,) = study(one, labels="said", resamples=RESAMPLES).labels
    names = {(test.first, test.second) for test in label.tests}
    assert ("good", "bad") in names
    assert len(names) == 5  # each with the other, and both with two baselines
    test = next(test for test in label.tests if (test.first, test.second) == ("good", "bad"))
    good, bad = (label.figures[name]["auroc"].value for name in ("good", "bad"))
    assert test.difference == pytest.approx((good or 0) - (bad or 0))
    assert test.p is not None
    assert test.corrected is not None
    assert test.p <= test.corrected < 0.01


def test_the_same_seed_gives_the_same_study(one: Path) -> None:
    first, again, other = (
        study(one, labels="said", resamples=RESAMPLES, seed=seed).to_dict() for seed in (1, 1, 2)
    )
    assert json.dumps(first, allow_nan=False) == json.dumps(again)
    assert json.dumps(first) != json.dumps(other)


def test_graded_labels_have_no_figures_of_two_classes(one: Path) -> None:
    (label,) = study(one, labels="labels.grade", resamples=RESAMPLES).labels
    assert (label.label.kind, label.headline) == ("ordinal", "kendall")
    assert label.figures["good"]["auroc"].value is None
    assert label.figures["good"]["auroc"].without == "labels are ordinal, not of two classes"
    assert label.figures["good"]["kendall"].value is not None
    assert label.parting == ()


def test_several_runs_hold_several_scores_of_the_same_answers(one: Path, tmp_path: Path) -> None:
    rows = samples()
    again = run(tmp_path / "again", rows, Good(strict=True))
    other = run(tmp_path / "other", samples(40, response="another answer"), Good())
    found = study([one, again, other], labels="said", resamples=RESAMPLES)
    assert found.answers == 60 + 40
    names = [column.name for column in found.labels[0].columns if column.kind == "metric"]
    # `other` holds the same settings of other answers, so it is one column with those of `one`
    assert names == ["good (one)", "good (again)", "bad"]
    assert found.labels[0].figures["good (one)"]["auroc"].n == 100
    assert found.labels[0].figures["good (again)"]["auroc"].n == 60


def test_the_field_label_is_the_label_where_none_is_named(tmp_path: Path) -> None:
    rows = [{**row, "label": row["said"]} for row in samples()]
    result = study(run(tmp_path / "run", rows), resamples=RESAMPLES).labels[0].label
    assert (result.name, result.kind, result.n) == ("label", "binary", 60)
    assert result.values.tolist() == [row["labels"]["correct"] for row in rows]


def test_fields_that_say_what_is_right_are_proposed_as_options(tmp_path: Path) -> None:
    rows = samples()
    for place, row in enumerate(rows):
        right = row["labels"]["correct"]
        row |= {
            "user": {"thumbs": "👍" if right else "👎"},
            "Daumen oben": "ja" if right else "nein",
            "hallucination": not right,
            "seldom": "yes" if place else "unclear",
            "always": 1,
            "turns": place % 4,
        }
    with pytest.raises(InputError) as caught:
        study(run(tmp_path / "run", rows))
    options = str(caught.value).partition("Fields that say right or wrong: ")[2].partition(". ")[0]
    assert options.split(", ") == [
        "--label 'Daumen oben'",
        "--label hallucination --positive no",
        "--label labels.correct",
        "--label said",
        "--label user.thumbs",
    ]
    for name, positive in (("hallucination", ["no"]), ("user.thumbs", [])):
        result = study(tmp_path / "run", labels=name, positive=positive, resamples=RESAMPLES)
        (label,) = result.labels
        assert label.label.values.tolist() == [row["labels"]["correct"] for row in rows]


def test_labels_that_cannot_be_read_are_counted_and_named(tmp_path: Path) -> None:
    rows = samples()
    rows[3]["said"] = rows[7]["said"] = "hard to say"
    result = study(run(tmp_path / "run", rows), labels="said", resamples=RESAMPLES)
    (note,) = (note for note in result.notes if note.startswith("labels said: "))
    assert "2 of 60 cannot be read and are left out, the first at 'a3': 'hard to say' (2)" in note
    written = result.to_dict()["labels"][0]
    assert (written["n"], written["missing"]) == (58, 2)
    words = {"hard to say": 2}
    assert written["unread"] == {
        "count": 2,
        "labels": 60,
        "words": words,
        "first": "a3",
        "undecided": 0,
    }
    assert study(tmp_path / "run", labels="labels.correct").to_dict()["labels"][0]["unread"] is None


def test_labels_that_mean_the_opposite_are_suspected_only_where_no_metric_fits(
    tmp_path: Path,
) -> None:
    rows = [{**row, "label": ("yes", "no")[row["labels"]["correct"]]} for row in samples()]

    def suspicions(path: Path, **options: Any) -> list[str]:
        result = study(path, resamples=RESAMPLES, **options)
        return [note for note in result.notes if "may mean the opposite" in note]

    path = run(tmp_path / "run", rows, Good())
    (note,) = suspicions(path)
    assert note.startswith(
        "label label: good gives right answers lower scores than wrong ones (AUROC 0."
    )
    assert note.endswith("or the labels may mean the opposite (then add --positive no)")
    assert not suspicions(path, positive="no")
    # A second metric that agrees with the labels: then the first one is bad.
    both = [{**row, "bad": float(row["label"] == "no")} for row in rows]
    assert not suspicions(run(tmp_path / "both", both))


def test_a_missing_label_names_the_fields_there_are(one: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        study(one, labels="labels.corect")
    assert f"{one}: no answer has the label labels.corect" in str(caught.value)
    assert "labels.correct, labels.grade" in str(caught.value)
    assert "did you mean labels.correct or " in str(caught.value)
    with pytest.raises(InputError, match=r"no answer has the label label; use --label FIELD"):
        study(one)
    with pytest.raises(InputError, match=r"--positive y: no answer has this value \(labels.gr"):
        study(one, labels="labels.grade", positive="y")
    with pytest.raises(InputError, match="--by nothing: no sample has this field"):
        study(one, labels="said", by="nothing")
    with pytest.raises(RunFolderError, match="holds no run"):
        study(tmp_path, labels="said")
    with pytest.raises(InputError, match=r"answers.jsonl: contains no records"):
        study(jsonl(tmp_path / "answers.jsonl", []), labels="said")
    with pytest.raises(RunFolderError, match="named twice"):
        study([one, one], labels="said")


def test_what_cannot_be_told_is_absent_with_its_reason(tmp_path: Path) -> None:
    rows = samples(48)
    for i, row in enumerate(rows):
        row |= {"good": 0.5, "one_class": 1, "few": 1 if i < 9 else None}
        row["bad"] = None if i % 2 else row["bad"]
    rows[0]["bad"] = "fails"
    path = run(tmp_path / "run", rows)
    found = study(path, labels=["said", "one_class", "few"], resamples=RESAMPLES)
    said, one_class, few = found.labels
    good = said.figures["good"]
    assert good["auroc"].value is None
    assert good["auroc"].without == "all scores are the same (0.5)"
    assert good["brier"].value == 0.25
    assert one_class.figures["bad"]["auroc"].without == "all labels are the same (1)"
    assert few.figures["good"]["brier"].without == "too few answers: 9; at least 10 are needed"
    assert said.figures["bad"]["auroc"].n == 23
    assert "bad: 1 answer failed" in found.notes
    assert "bad: 24 answers without a score" in found.notes
    assert {test.without for test in said.tests if "good" in (test.first, test.second)} == {
        "all scores are the same (0.5)"
    }
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert "NaN" not in text


def test_few_questions_have_figures_without_intervals(tmp_path: Path) -> None:
    path = run(tmp_path / "run", samples(30))
    (label,) = study(path, labels="said", resamples=RESAMPLES).labels
    found = label.figures["good"]["auprc"]
    assert found.value is not None
    assert found.interval is None
    assert found.without == "too few questions: 15; at least 20 are needed"
    assert label.figures["good"]["auroc"].interval is not None  # it needs 5 of either kind


def test_an_auroc_of_four_right_answers_has_no_interval(tmp_path: Path) -> None:
    rows = samples(30)
    for i, row in enumerate(rows):
        row["said"] = "yes" if i < 8 else "no"  # two answers to each of four questions
    (label,) = study(run(tmp_path / "run", rows), labels="said", resamples=RESAMPLES).labels
    words = "too few independent answers of one kind: 4; at least 5 are needed"
    assert label.figures["good"]["auroc"].without == words
    assert {test.without for test in label.tests if test.second != "source"} == {words}


def ratings(path: Path, header: str, rows: list[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_ratings_of_people_are_pooled_and_give_the_ceiling(one: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for row in samples():
        right = row["labels"]["correct"]
        for rater in ("ann", "bob", "cy", "robot"):
            said = right if rng.random() < 0.9 else 1 - right
            lines.append(f"{row['id']},{rater},{('wrong', 'right')[said]}")
    file = ratings(tmp_path / "r.csv", "item,rater,rating", lines)
    found = study(one, ratings=file, machines=["robot"], resamples=RESAMPLES)
    (label,) = found.labels
    assert (label.label.name, label.label.kind) == ("rating", "binary")
    assert list(label.label.raters) == ["ann", "bob", "cy"]
    people = label.figures["people"]["auroc"]
    assert 0.75 < (people.value or 0) < 0.99
    assert people.interval is not None
    assert (label.figures["judge robot"]["auroc"].value or 0) > 0.7
    assert ("good", "judge robot") in {(test.first, test.second) for test in label.tests}
    assert label.figures["good"]["auroc"].n == label.label.n == 60
    with pytest.raises(InputError, match="unknown rater 'robo'; did you mean robot"):
        study(one, ratings=file, machines=["robo"])


def test_raters_who_are_divided_leave_an_answer_out(one: Path, tmp_path: Path) -> None:
    rows = [f"a{i},{i % 2},{i % 2 if i else 1}" for i in range(60)]
    file = ratings(tmp_path / "r.csv", "item,ann,bob", rows)
    found = study(one, ratings=file, resamples=RESAMPLES)
    assert found.labels[0].label.n == 59
    assert "rating: left out, because raters are split evenly: 1 answer" in found.notes


def test_a_table_keyed_by_id_holds_labels(one: Path, tmp_path: Path) -> None:
    rows = [
        f"{row['id']},{'grounded' if row['labels']['correct'] else 'made up'}" for row in samples()
    ]
    file = ratings(tmp_path / "gold.csv", "key,verdict", rows[:50])
    fields = {"item": "key"}
    with pytest.raises(InputError, match=r"'made up' .* --positive WORD"):
        study(one, labels="verdict", ratings=file, fields=fields)
    (label,) = study(
        one, labels="verdict", ratings=file, fields=fields, positive="grounded", resamples=RESAMPLES
    ).labels
    assert (label.label.name, label.label.n) == ("verdict", 50)
    strange = ratings(tmp_path / "other.csv", "id,verdict", ["x1,yes", "x2,no"])
    with pytest.raises(InputError, match="the first ids are 'x1' here and 'a0' in the answers"):
        study(one, labels="verdict", ratings=strange)
    twice = ratings(tmp_path / "twice.csv", "id,verdict", ["a1,yes", "a1,no"])
    with pytest.raises(InputError, match="'a1' has another verdict in an earlier row"):
        study(one, labels="verdict", ratings=twice)


def test_the_source_baseline_does_not_read_an_answers_own_label_back(tmp_path: Path) -> None:
    """Left out of the mean of its own group, each label would turn it the wrong way: AUROC 0."""
    rows = samples(80)
    for i, row in enumerate(rows):
        row |= {"model": "m", "source": ("a", "b")[i % 2], "said": ("no", "yes")[i // 2 % 2]}
    (label,) = study(run(tmp_path / "run", rows), labels="said", resamples=RESAMPLES).labels
    assert label.figures["source"]["auroc"].without == "all scores are the same (0.5)"
    for i, row in enumerate(rows):
        row |= {"said": "yes" if (i % 2) == (i // 2 % 4 > 0) else "no"}
    (label,) = study(run(tmp_path / "tells", rows), labels="said", resamples=RESAMPLES).labels
    assert label.figures["source"]["auroc"].value == pytest.approx(0.75)


def test_parts_are_told_where_they_are_declared(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"a{i}",
            "question": f"Question {i}?",
            "response": ("a red car of mine", "the blue house", "the blue boat")[i % 3],
            "answers": ["the blue house"],
            "label": i % 2,
        }
        for i in range(24)
    ]
    path = tmp_path / "run"
    score(rows, metrics="reference:parts=em+token_f1", out=path, report=False)
    (label,) = study(path, labels="label", resamples=RESAMPLES).labels
    kinds = {column.name: column.kind for column in label.columns}
    assert kinds["reference"] == "metric"
    assert kinds["reference.token_f1"] == "part"
    of_parts = {(test.first, test.second) for test in label.tests if "." in test.second}
    assert of_parts == {("reference", "reference.token_f1")}  # `em` is the score itself


@dataclass(frozen=True)
class Parted(Bad):
    """Errors, low is good, with a part of each direction."""

    name: ClassVar[str] = "parted"
    figures: ClassVar[dict[str, Figure]] = {
        part: Figure(part, "a part", statistic=Mean(part, bounds))
        for part, bounds in (("angle", (0.0, 180.0)), ("sure", None), ("pairs", None))
    }
    part_directions = directions(higher="sure", lower="angle", neither="pairs")

    async def assess(self, context: Context) -> Assessment:
        fields = context.sample.metadata
        errors = 2 - 2 * fields["good"]
        parts = {"angle": 90 * errors, "sure": fields["bad"], "pairs": 60 - 30 * errors}
        return Assessment(context.sample.id, self.name, errors, parts=parts)


def test_parts_are_turned_by_their_own_direction_and_covariates_not_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._read_entry_points(), "parted", lambda: Parted)
    path = run(tmp_path / "run", samples(), Parted())
    found = study(path, labels="said", resamples=RESAMPLES)
    (label,) = found.labels
    kinds = {column.name: column.kind for column in label.columns}
    assert kinds["parted.angle"] == kinds["parted.sure"] == "part"
    assert kinds["parted.pairs"] == "covariate"
    score_, angle = (label.figures[name]["auroc"].value for name in ("parted", "parted.angle"))
    assert angle == pytest.approx(score_)
    (test,) = (t for t in label.tests if (t.first, t.second) == ("parted", "parted.angle"))
    assert (test.difference, test.p) == (0, 1)
    assert not any("parted.pairs" in (t.first, t.second) for t in label.tests)
    assert "parted.pairs" not in label.figures
    assert set(label.covariates["parted.pairs"]) == {"kendall", "spearman", "pearson"}
    assert label.covariates["parted.pairs"]["kendall"].interval is not None
    write_figures(found, tmp_path / "all.csv")
    with (tmp_path / "all.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["score"] == "parted.pairs"]
    assert {(row["kind"], row["figure"]) for row in rows} == {
        ("covariate", "tau-b"), ("covariate", "Spearman"), ("covariate", "Pearson")
    }  # fmt: skip
    assert rows[-1]["figure"] == "Pearson" and 0 < float(rows[-1]["p"]) <= 1
    build_document(found, tmp_path).write(tmp_path / "page.html")
    assert "p of Pearson" in (tmp_path / "page.html").read_text()
    assert "Covariates" in (tmp_path / "page.html").read_text()


def test_the_last_line_names_the_highest_of_the_table(one: Path, tmp_path: Path) -> None:
    (label,) = study(one, labels="said", resamples=RESAMPLES).labels
    assert headline(label).startswith("Highest AUROC: good 0.9")
    rows = samples()
    for row in rows:
        row["response"] = "word " * (30 if row["said"] == "yes" else 3)
    (label,) = study(run(tmp_path / "run", rows), labels="said", resamples=RESAMPLES).labels
    words = headline(label)
    assert words.startswith("Highest AUROC: length (longer) 1.000 (")
    assert ", which is not a score; among the scores, good 0.9" in words


def test_as_many_are_accepted_as_are_right() -> None:
    scores, labels = np.array([0.9, 0.8, 0.8, 0.1]), np.array([1.0, 1.0, 0.0, 0.0])
    # one or three can be accepted: as near to two, and the higher threshold counts
    assert accept_as_many(scores, labels).tolist() == [True, False, False, False]
    assert accept_as_many(scores, np.array([1.0, 1.0, 1.0, 0.0])).tolist() == [
        True,
        True,
        True,
        False,
    ]


def test_which_score_is_right_where_another_is_wrong(one: Path) -> None:
    (label,) = study(one, labels="said", resamples=RESAMPLES).labels
    by_pair = {(each.first, each.second): each for each in label.parting}
    found = by_pair["good", "bad"]
    rows = {row["id"]: row for row in samples()}
    assert 0 < found.count <= found.wrong < found.n == 60
    assert found.count - by_pair["bad", "good"].count == found.wrong - by_pair["bad", "good"].wrong
    for case in found.cases:
        assert case.label == rows[case.id]["labels"]["correct"]
        assert case.first == rows[case.id]["good"]


def test_costs_are_those_of_a_sample(one: Path) -> None:
    found = study(one, labels="said", resamples=RESAMPLES)
    assert [(cost.metric, cost.samples, cost.calls) for cost in found.costs] == [
        ("good", 60, 0.0),
        ("bad", 60, 0.0),
    ]
    from trustassay.people.study.answers import _average_cost

    used: Mapping[str, Any] = {
        "m": {"calls": 6, "prompt_tokens": 30, "reply_tokens": 10, "usd": 0.5},
        "k": {"calls": 2, "prompt_tokens": 10, "reply_tokens": 10, "usd": 0.5},
    }
    from collections import Counter

    cost = _average_cost("run", "judge", 4, Counter({"chat": 8}), used)
    assert (cost.calls, cost.tokens, cost.usd, cost.requests) == (2, 15, 0.25, {"chat": 2})
    used["k"]["usd"] = None
    assert _average_cost("run", "judge", 4, Counter(), used).usd is None


def test_the_table_holds_every_figure_and_no_formula(tmp_path: Path) -> None:
    rows = samples(40)
    for i, row in enumerate(rows):
        row["source"] = "=HYPERLINK(1)|<b>" if i % 2 else "plain"
    path = run(tmp_path / "run", rows)
    found = study(path, labels="said", by="source", resamples=RESAMPLES)
    write_figures(found, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    first = table[0]
    assert (first["label"], first["score"], first["figure"]) == ("said", "good", "AUROC")
    assert float(first["value"]) == found.labels[0].figures["good"]["auroc"].value
    assert "'=HYPERLINK(1)|<b>" in {row["group"] for row in table}
    (label,) = found.to_dict()["labels"]
    figures_of_score = {row["name"]: row["figures"] for row in label["scores"]}
    for row in table:
        is_r = row["figure"] == "Pearson" and row["value"] and row["score"] != "chance"
        assert bool(row["p"]) == bool(is_r)
        if is_r and not row["by"]:
            p = figures_of_score[row["score"]]["pearson"]["p"]
            assert p == pytest.approx(pearson_p_value(float(row["value"]), int(row["n"])))
            assert float(row["p"]) == pytest.approx(p)
    write_figures(found, tmp_path / "t.md")
    text = (tmp_path / "t.md").read_text()
    assert "=HYPERLINK(1)\\|&lt;b>" in text
    with pytest.raises(ValueError, match=r"ends with \.csv, \.tsv or \.md"):
        write_figures(found, tmp_path / "t.xls")


def test_the_page_escapes_what_is_hostile_and_draws_all_pictures(tmp_path: Path) -> None:
    rows = samples(200)
    for i, row in enumerate(rows):
        row["id"] = f"<script>alert({i})</script>"
        row["source"] = "<img src=x onerror=alert(1)>" if i % 2 else "b"
    path = run(tmp_path / "javascript:alert(1)", rows)
    found = study(path, labels="said", by="source", resamples=RESAMPLES)
    build_document(found, tmp_path).write(tmp_path / "study.html")
    page = (tmp_path / "study.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(" in page
    assert 'href="javascript:' not in page
    for words in ("ROC", "Score by label", "right (1)"):
        assert words in page
    # Reliability, and errors by accepted share, are drawn by calibrate.
    assert page.count('class="xy"') == 1
    assert 'class="heat"' in page
    assert "http" not in page.replace("http-equiv", "")


def test_answers_link_into_the_report_of_their_run(tmp_path: Path) -> None:
    score(samples(), metrics=[Good(), Bad()], out=tmp_path / "run")
    found = study(tmp_path / "run", labels="said", resamples=RESAMPLES)
    build_document(found, tmp_path / "pages").write(tmp_path / "pages" / "study.html")
    case = found.labels[0].parting[0].cases[0]
    number = int(case.id.removeprefix("a")) + 1
    assert case.link == f"{tmp_path / 'run' / 'report.html'}#a{number}"
    page = (tmp_path / "pages" / "study.html").read_text()
    assert f'href="./../run/report.html#a{number}"' in page
    assert f'id="a{number}"' in (tmp_path / "run" / "report.html").read_text()


def test_a_journal_of_annotate_is_read(one: Path, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"action": "start", "levels": ["poor", "fair", "good"]}]
    for row in samples():
        grade = ("poor", "fair", "good")[min(2, row["labels"]["grade"])]
        rows.append({"rater": "ann", "item": row["id"], "model": "", "repeat": 0, "rating": grade})
    file = jsonl(tmp_path / "ratings.jsonl", rows)
    (label,) = study(one, ratings=file, resamples=RESAMPLES).labels
    assert (label.label.kind, label.label.n) == ("ordinal", 60)
    assert "people" not in label.figures

"""From labels to a calibrator, onto other answers; what is refused, and by what words."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.lazily import needed
from trustassay import calibrate, rescore, score
from trustassay.core import registry
from trustassay.core.metric import Assessment, Context, Figure, Mean, Metric, directions
from trustassay.errors import UnknownNameError, UsageError
from trustassay.input.records import InputError
from trustassay.people.calibrate.apply import apply_to_table
from trustassay.people.calibrate.screen import build_document
from trustassay.runs.calibrator import (
    AuditStatus,
    Calibrator,
    calibrate_run,
    describe_calibration,
    read_calibrator,
    write_calibrator,
)
from trustassay.runs.folder import RunFolder
from trustassay.runs.report import write_report
from trustassay.runs.results import apply_calibrator
from trustassay.statistics.regression import sigmoid
from trustassay.statistics.warranty import compute_boundary

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Good(Metric):
    """Gives what the sample holds under ``good``, and a part of it."""

    name: ClassVar[str] = "good"
    title: ClassVar[str] = "A score"
    figures: ClassVar[dict[str, Figure]] = {
        "other": Figure("other", "a part", statistic=Mean("other", (0.0, 1.0)))
    }
    part_directions = directions(higher="other")
    strict: bool = False

    def needs(self) -> list[Any]:
        return []

    async def assess(self, context: Context) -> Assessment:
        value = context.sample.metadata[self.name]
        if value == "fails":
            raise ValueError("no score today")
        parts = {"other": context.sample.metadata["other"]}
        return Assessment(context.sample.id, self.name, value, parts=parts)


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


def samples(n: int = 400, seed: int = 1, shift: float = 0.0, answers: int = 1) -> Rows:
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        x = rng.normal() + shift
        right = int(rng.random() < sigmoid(4 * x + 2))
        rows.append(
            {
                "id": f"a{i}",
                "question": f"Question {i // answers}?",
                "response": "some words",
                "correct": right,
                "good": float(sigmoid(x)),
                "bad": float(2 - 2 * sigmoid(x + rng.normal())),
                "other": float(rng.random()),
            }
        )
    return rows


def run(path: Path, rows: Rows, *metrics: Metric, **options: Any) -> Path:
    score(rows, metrics=list(metrics) or [Good()], out=path, report=False, **options)
    return path


@pytest.fixture(scope="module", autouse=True)
def installed() -> Iterator[None]:
    """As if a package had brought both metrics: the parts of others are not known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry._read_entry_points(), "good", lambda: Good)
        patch.setitem(registry._read_entry_points(), "bad", lambda: Bad)
        yield


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("calibrate") / "labelled", samples(), Good(), Bad())


@pytest.fixture(scope="module")
def made(labelled: Path) -> Path:
    result = calibrate(labelled, label="correct", score="good")
    return result.write(labelled.parent / "calibrator.json")


def table(path: Path, rows: Rows) -> Path:
    """Write rows as CSV."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(str(row.get(name, "")) for name in names) for row in rows]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")
    return path


def scored(n: int = 200, wrong: int = 4) -> Rows:
    """Answers of which those with the lowest scores are wrong."""
    return [
        {"jev": round(1 - at / n, 4), "human": "bad" if at >= n - wrong else "good"}
        for at in range(n)
    ]


# the promise


def test_a_promise_from_a_table_of_two_columns(tmp_path: Path) -> None:
    rows = scored(200, 40)
    result = calibrate(table(tmp_path / "s.csv", rows), score="jev", label="human")
    tolerated = compute_boundary(200, 0.1, 0.05).at_each(200)
    longest = max(k for k in range(1, 201) if max(0, k - 160) <= tolerated[k - 1])
    assert result.promise is not None
    assert (result.promise.accepted, result.promise.wrong) == (longest, longest - 160)
    assert result.above == rows[longest]["jev"]
    assert result.share == pytest.approx(longest / 200)
    assert result.accept(rows[0]["jev"]) and not result.accept(rows[longest]["jev"])
    assert result.probability(0.99) > 0.9 and result.probability(0.05) < 0.2
    assert result.text.splitlines()[:3] == [
        f"Accept answers with jev > {rows[longest]['jev']:.4g}: {longest / 2:.0f} % of 200 need "
        "no check by a person;",
        "at most 10 % of the accepted answers are wrong according to the human labels "
        "(confidence 95 %).",
        f"  from 200 labels (all answers): {longest} accepted, {longest - 160} of them wrong",
    ]
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_good_system_is_accepted_as_a_whole(tmp_path: Path) -> None:
    for wrong, at_most in ((0, 0.02), (5, 0.08)):
        path = table(tmp_path / f"{wrong}.csv", scored(150, wrong))
        result = calibrate(path, score="jev", label="human", at_most=at_most)
        assert result.share == 1 and result.above == -math.inf
        assert result.text.startswith("Accept all answers: 100 % of 150")
        assert result.accept(0.0) and not result.accept(math.nan)
    rows = [*scored(150, 0), {"jev": "", "human": "good"}]
    part = calibrate(table(tmp_path / "part.csv", rows), score="jev", label="human")
    assert part.text.startswith("Accept all answers that have a score: 99 % of 151")


def test_a_frame_and_records_mean_the_same_as_the_file(tmp_path: Path) -> None:
    import pandas as pd

    rows = scored()
    path = table(tmp_path / "s.csv", rows)
    sources = [path, str(path), rows, pd.DataFrame(rows)]
    results = [calibrate(source, score="jev", label="human").calibrator for source in sources]
    assert all(result == results[0] for result in results)


def test_a_run_and_its_only_metric(tmp_path: Path) -> None:
    path = run(tmp_path / "run", samples())
    result = calibrate(path, label="correct", at_most=[0.1, 0.2])
    source = result.calibrator.score.source
    assert (source.kind, source.metric, source.options) == ("run", "good", {"strict": False})
    rows = samples()
    good = np.array([row["good"] for row in rows])
    wrong = 1 - np.array([row["correct"] for row in rows])
    for promise in result.calibrator.promises:
        accepted = promise.accepts(good)
        assert (int(accepted.sum()), int(wrong[accepted].sum())) == (
            promise.accepted,
            promise.wrong,
        )
        assert promise.wrong / promise.accepted <= promise.at_most
    x = np.linspace(-1.5, 1.5, 7)
    chances = result.calibrator.probabilities(sigmoid(x))
    assert chances == pytest.approx(sigmoid(4 * x + 2), abs=0.15)


def test_a_score_of_which_lower_is_better(labelled: Path, tmp_path: Path) -> None:
    of_metric = calibrate(labelled, label="correct", score="bad").calibrator
    chances = of_metric.probabilities([0.1, 1.0, 1.9])
    assert of_metric.score.sign == -1 and chances[0] > chances[1] > chances[2]
    rows = [{"jev": 1 - row["jev"], "human": row["human"]} for row in scored(200, 40)]
    path = table(tmp_path / "s.csv", rows)
    with pytest.raises(
        InputError, match=r"jev: answers with higher scores are wrong.*AUROC 0.00.*add --lower"
    ):
        calibrate(path, score="jev", label="human")
    result = calibrate(path, score="jev", label="human", lower=True)
    assert "Accept answers with jev < 0." in result.text
    assert result.above is not None and result.accept(result.above - 0.01)
    assert not result.accept(result.above + 0.01)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{**row, "jev": 0.5} for row in scored(60)],
            r"jev is 0.5 in every labelled row \(60 in all\)",
        ),
        (scored(60, 60), "label human: none of the 60 answers is right"),
        ([{**row, "human": ""} for row in scored(60)], "no answer has the label human"),
        (
            [{**row, "jev": ""} for row in scored(60)],
            "no answer has both a label and the score jev",
        ),
    ],
)
def test_a_score_that_says_nothing_is_refused(tmp_path: Path, rows: Rows, message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibrate(table(tmp_path / "s.csv", rows), score="jev", label="human")


@pytest.mark.parametrize(
    ("rows", "at_most", "reason"),
    [
        (scored(30), 0.05, r"too few labels: 30; 5 % needs at least 59, even if none is wrong"),
        (
            scored(60, 20),
            0.05,
            r"too few labels: 60; about [\d,]+ are needed at this share of errors",
        ),
        (
            [{"jev": at / 90, "human": "bad" if at % 7 == 0 else "good"} for at in range(90)],
            0.1,
            r"\d+ % of the \d+ answers with the best scores .*; more labels will (not|hardly) help",
        ),
    ],
)
def test_without_a_threshold_the_reason_takes_its_place(
    tmp_path: Path, rows: Rows, at_most: float, reason: str
) -> None:
    path = table(tmp_path / "s.csv", rows)
    result = calibrate(path, score="jev", label="human", at_most=at_most)
    assert result.promise is None and result.above is None and result.share == 0
    assert not result.accept(1.0)
    (promise,) = result.calibrator.promises
    assert re.fullmatch(reason, promise.without), promise.without
    assert f"No threshold for at most {100 * at_most:g} % wrong: {promise.without}" in result.text
    assert "Share of right answers: " in result.text


def test_several_answers_to_a_question_are_one_unit(tmp_path: Path) -> None:
    rows = samples(answers=4)
    path = run(tmp_path / "run", rows)
    result = calibrate(path, label="correct", at_most=0.2)
    assert result.calibrator.labels.group == "question"
    assert result.promise is not None and not result.promise.exact
    assert "(confidence about 95 %)" in result.text
    assert result.calibrator.spread.size == 100
    alone = calibrate(path, label="correct", at_most=0.2, group="none")
    assert alone.calibrator.labels.group == "" and "(confidence 95 %)" in alone.text
    with pytest.raises(
        UsageError, match=r"with several answers per question at most 0.95 .* --exact allows more"
    ):
        calibrate(path, label="correct", confidence=0.99)
    drawn = calibrate(path, label="correct", at_most=0.2, exact=True)
    exact = drawn.calibrator.promises[0]
    assert exact.exact and exact.accepted <= 100


def test_rows_with_one_id_are_one_unit(tmp_path: Path) -> None:
    rows = [{"id": f"a{at}", **row} for at, row in enumerate(scored(200, 60))]
    once = calibrate(table(tmp_path / "s.csv", rows), score="jev", label="human")
    assert once.calibrator.labels.group == "" and once.promise is not None
    result = calibrate(table(tmp_path / "d.csv", rows * 5), score="jev", label="human")
    assert result.calibrator.labels.group == "question"
    assert result.share <= once.share + 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": "thema"}, "--group thema: no answer has this field"),
        ({"by": "langage"}, "--by langage: no answer has this field"),
        ({"judge": "model"}, "--judge model: no answer has this field"),
    ],
)
def test_a_field_that_no_answer_has_is_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    path = table(tmp_path / "s.csv", scored())
    with pytest.raises(InputError, match=message):
        calibrate(path, score="jev", label="human", **options)


def test_nothing_is_promised_for_blank_values_of_by(tmp_path: Path) -> None:
    rows = [{**row, "language": "de" if at % 2 else ""} for at, row in enumerate(scored(400, 60))]
    rows[0]["other"], rows[0]["human"] = "x", ""
    path = table(tmp_path / "s.csv", rows)
    result = calibrate(path, score="jev", label="human", by="language")
    assert [promise.of for promise in result.calibrator.promises] == ["de"]
    assert not result.accept(0.99, "") and "200 answers without language" in result.notes[-1]
    assert "Of 1,000 answers of language de" in result.text
    with pytest.raises(InputError, match="the field is empty in all labelled answers"):
        calibrate(path, score="jev", label="human", by="other")


def test_promises_by_language_share_the_error(tmp_path: Path) -> None:
    rows = [{**row, "language": "de" if at % 2 else "en"} for at, row in enumerate(scored(400, 60))]
    path = table(tmp_path / "s.csv", rows)
    result = calibrate(path, score="jev", label="human", by="language")
    assert [promise.of for promise in result.calibrator.promises] == ["de", "en"]
    assert {promise.delta for promise in result.calibrator.promises} == {0.025}
    assert "of language de" in result.text
    assert result.accept(0.9, "de") and not result.accept(0.9, "fr")


def test_labels_chosen_by_the_score_count_where_they_are_even(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = scored(1000, 100)
    for row in rows:
        # The low scores are rated twice as often.
        if rng.random() > (0.8 if row["jev"] < 0.35 else 0.3):
            row["human"] = ""
    result = calibrate(table(tmp_path / "s.csv", rows), score="jev", label="human")
    assert result.calibrator.labels.chosen.startswith("only scores above 0.4")
    assert result.above is not None and result.above >= 0.4
    assert result.wrong_share is None and "without a check" not in result.text


def test_looks_are_taken_at_their_number_of_labels_alone(tmp_path: Path) -> None:
    rows = scored(200, 10)
    file = tmp_path / "calibrator.json"

    def look(n: int) -> Any:
        shuffled = np.random.default_rng(0).permutation(200)
        labelled = [
            {**row, "human": row["human"] if shuffled[at] < n else ""}
            for at, row in enumerate(rows)
        ]
        path = table(tmp_path / "s.csv", labelled)
        before = file if file.exists() else None
        result = calibrate(path, score="jev", label="human", at_most=0.2, looks=3, previous=before)
        result.write(file)
        return result

    with pytest.raises(InputError, match="look 1 of 3 needs 50 labels; 10 are missing"):
        look(40)
    first = look(60)
    assert first.promise.delta == pytest.approx(0.05 / 3)
    assert "look 1 of 3" in first.text
    between = look(90)
    assert between.calibrator == first.calibrator
    assert "the next look needs 100 labels; 10 are missing" in between.notes[-1]
    assert look(120).calibrator.labels.look == 2
    assert look(200).calibrator.labels.look == 3
    assert "no look is left" in look(200).notes[-1]
    with pytest.raises(UsageError, match="with another score, label, --by, --at-most"):
        calibrate(
            tmp_path / "s.csv", score="jev", label="human", at_most=0.1, looks=3, previous=file
        )


def test_a_promise_between_looks_disputes_no_label(tmp_path: Path) -> None:
    first = calibrate(scored(100, 20), score="jev", label="human", at_most=0.2, looks=3)
    assert first.promise is not None and first.promise.wrong
    path = first.write(tmp_path / "calibrator.json")
    between = calibrate(
        scored(120, 20), score="jev", label="human", at_most=0.2, looks=3, previous=path
    )
    assert (
        "the promise of look 2 of 3 stands" in between.notes[-1] and "disagree" not in between.text
    )


def test_a_later_look_may_bring_new_values_of_by(tmp_path: Path) -> None:
    rows = [{**row, "language": "de" if at % 3 else "en"} for at, row in enumerate(scored(400, 40))]
    early = [row for row in rows if row["language"] == "de"][::4]
    options: dict[str, Any] = {"score": "jev", "label": "human", "by": "language", "looks": 3}
    path = calibrate(early, **options, at_most=[0.2, 0.3]).write(tmp_path / "c.json")
    later = calibrate(rows, **options, at_most=[0.3, 0.2], previous=path)
    promises = [(promise.of, promise.at_most) for promise in later.calibrator.promises]
    assert promises == [("de", 0.3), ("de", 0.2), ("en", 0.3), ("en", 0.2)]
    with pytest.raises(UsageError, match="was made with another score, label, --by"):
        calibrate(rows, **{**options, "by": ""}, at_most=[0.2, 0.3], previous=path)


# labels of people


def test_raters_who_disagree_or_cannot_tell_count_as_wrong(tmp_path: Path) -> None:
    rows = [{"jev": row["jev"], "anna": "yes", "bela": "yes"} for row in scored(200)]
    rows[0]["bela"], rows[1]["anna"], rows[2]["anna"] = "no", "cannot tell", ""
    rows[3]["anna"] = rows[3]["bela"] = ""
    path = table(tmp_path / "s.csv", rows)
    result = calibrate(path, score="jev", label=["anna", "bela"])
    assert (result.calibrator.labels.n, result.calibrator.labels.right) == (199, 197)
    assert result.calibrator.labels.name == "anna, bela"
    assert result.promise is not None and result.promise.wrong == 2
    assert "  2 of these 2 count as wrong because raters disagree or cannot tell" in result.text
    # The same as one row for each rater.
    long = [
        {"id": f"q{at}", "jev": row["jev"], "rater": rater, "verdict": row[rater]}
        for at, row in enumerate(rows)
        for rater in ("anna", "bela")
    ]
    other = calibrate(table(tmp_path / "l.csv", long), score="jev", label="verdict")
    assert other.calibrator.promises == result.calibrator.promises
    for row in long:
        del row["id"]
    with pytest.raises(InputError, match="names 2 raters, but without a column id"):
        calibrate(table(tmp_path / "l.csv", long), score="jev", label="verdict")


def test_several_files_of_ratings_are_several_raters(tmp_path: Path) -> None:
    rows = [{"id": f"a{at}", "jev": row["jev"]} for at, row in enumerate(scored(100))]
    files = [
        table(
            tmp_path / f"{rater}.csv",
            [{"item": row["id"], "rater": rater, "rating": int(at != wrong)} for at, row in rated],
        )
        for rater, wrong, rated in (
            ("anna", 3, list(enumerate(rows))),
            ("bela", 5, list(enumerate(rows))[:50]),
        )
    ]
    result = calibrate(table(tmp_path / "s.csv", rows), score="jev", ratings=files)
    assert (result.calibrator.labels.n, result.calibrator.labels.right) == (100, 98)
    assert result.calibrator.labels.name == "rating"


def test_adjudicated_labels_make_the_promise_include_what_raters_miss(tmp_path: Path) -> None:
    rows = [{**row, "truth": ""} for row in scored(400, 60)]
    # 40 wrong answers were adjudicated, of which the raters missed 4.
    for at, row in enumerate(rows[340:380]):
        row["truth"], row["human"] = "bad", "good" if at < 4 else "bad"
    path = table(tmp_path / "s.csv", rows)
    plain = calibrate(path, score="jev", label="human").calibrator.promises[0]
    result = calibrate(path, score="jev", label="human", truth="truth")
    promise = result.calibrator.promises[0]
    beta = needed("scipy.stats").beta
    assert promise.missed == pytest.approx(beta.ppf(0.975, 5, 36))
    assert promise.accepted < plain.accepted
    assert ", including the errors that raters miss (up to 24 %)" in result.text
    # The bound of what is missed shares delta with the test, whatever delta is.
    surer = calibrate(rows, score="jev", label="human", truth="truth", confidence=0.99)
    assert surer.calibrator.promises[0].missed == pytest.approx(beta.ppf(0.995, 5, 36))
    with pytest.raises(UsageError, match="--truth human: is the label"):
        calibrate(rows, score="jev", label="human", truth="human")
    with pytest.raises(InputError, match="no rated answer is wrong by it"):
        calibrate(
            [{**row, "truth": "good"} for row in rows], score="jev", label="human", truth="truth"
        )


def test_labels_that_mean_the_opposite_are_named(tmp_path: Path) -> None:
    rows = [
        {"jev": row["jev"], "human": "no" if row["human"] == "good" else "yes"}
        for row in scored(200, 60)
    ]
    path = table(tmp_path / "s.csv", rows)
    with pytest.raises(InputError, match="labels mean the opposite, add --positive no"):
        calibrate(path, score="jev", label="human")
    turned = calibrate(path, score="jev", label="human", positive="no")
    assert turned.calibrator.labels.right == 140


def test_labels_of_more_than_two_classes_or_none_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "s.csv", [{"jev": at / 60, "grade": at % 5 + 1} for at in range(60)])
    with pytest.raises(InputError, match=r"label grade: is ordinal.*two classes.*--at-least"):
        calibrate(path, score="jev", label="grade")
    assert calibrate(path, score="jev", label="grade", at_least=2).calibrator.labels.right == 48
    with pytest.raises(InputError, match=r"s\.csv: .*'jef'; did you mean jev"):
        calibrate(path, score="jef", label="grade")
    with pytest.raises(InputError, match="grades"):
        calibrate(path, score="jev", label="grades")


def test_a_cell_that_is_no_score_is_refused_with_its_line(tmp_path: Path) -> None:
    rows = scored(60)
    rows[2]["jev"] = "high"
    with pytest.raises(InputError, match=r"s\.csv:4: jev: expected a number, got 'high'"):
        calibrate(table(tmp_path / "s.csv", rows), score="jev", label="human")


def test_wrong_names_and_numbers(labelled: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="score 'goood'; did you mean good"):
        calibrate(labelled, label="correct", score="goood")
    with pytest.raises(InputError, match=r"--score: name the score .* available: good, bad"):
        calibrate(labelled, label="correct")
    with pytest.raises(ValueError, match="--at-most: expected a share between 0 and 1"):
        calibrate(labelled, label="correct", score="good", at_most=5)
    with pytest.raises(ValueError, match="--confidence"):
        calibrate(labelled, label="correct", score="good", confidence=1)
    with pytest.raises(UsageError, match="--lower: bad is a metric with a known direction"):
        calibrate(labelled, label="correct", score="bad", lower=True)
    with pytest.raises(UsageError, match="expected folders of runs, or one file"):
        calibrate([labelled, tmp_path / "x.csv"], label="correct", score="bad")


# applied


def test_applied_to_a_table(tmp_path: Path) -> None:
    rows = [{**row, "model": "m-1", "language": "de"} for row in scored(200, 40)]
    path = table(tmp_path / "s.csv", rows)
    result = calibrate(path, score="jev", label="human", judge="model")
    file = result.write(tmp_path / "calibrator.json")
    new = [{"text": "=1+1", "jev": value, "model": "m-1"} for value in (0.99, 0.01, "")]
    applied = apply_to_table(file, table(tmp_path / "new.csv", new))
    assert applied.decisions == ["accept", "ask", "ask"]
    applied.write(tmp_path / "decided.csv")
    lines = (tmp_path / "decided.csv").read_text().splitlines()
    assert lines[0] == "text,jev,model,decision,probability"
    # A spreadsheet must not evaluate what a model wrote.
    assert lines[1].startswith("'=1+1,0.99,m-1,accept,0.9")
    assert lines[3].endswith("ask,")
    applied.write(tmp_path / "decided.jsonl")
    assert json.loads((tmp_path / "decided.jsonl").read_text().splitlines()[0])["decision"]
    with pytest.raises(UsageError, match=r"ends with \.csv"):
        applied.write(tmp_path / "decided.xls")
    # Another version of the judge: the promise says nothing about it.
    other = apply_to_table(file, [{"jev": 0.99, "model": "m-2"}])
    assert other.decisions == ["ask"] and "m-2" in other.warnings[0]
    # A withdrawn promise accepts nothing.
    audit = AuditStatus("withdrawn", "2026-11-28", "30 % of 40 are wrong")
    write_calibrator(replace(result.calibrator, audit=audit), file)
    withdrawn = apply_to_table(file, table(tmp_path / "new.csv", new))
    assert withdrawn.decisions == ["ask"] * 3
    assert "withdrawn since 2026-11-28" in withdrawn.warnings[0]


def test_scores_on_another_scale_are_not_accepted(tmp_path: Path) -> None:
    source = table(tmp_path / "s.csv", scored(200, 60))
    path = calibrate(source, score="jev", label="human").write(tmp_path / "c.json")
    others = [{"jev": 100 * row["jev"]} for row in scored(50)]
    rows = [*others, *[{"jev": 0.99}] * 60]
    result = apply_to_table(path, table(tmp_path / "n.csv", rows))
    assert result.decisions == ["ask"] * 50 + ["accept"] * 60
    assert "50 scores not accepted: outside 0 to 1" in result.warnings[0]
    # Where most are so, the whole file is on another scale.
    with pytest.raises(
        InputError, match=r"jev: scores from 2 to 100, but from 0\.005 to 1 .*use the same scale"
    ):
        apply_to_table(path, table(tmp_path / "n.csv", others))
    # Scores of any other range have no bounds that are known.
    tens = [{**row, "jev": 10 * row["jev"]} for row in scored(200, 60)]
    assert calibrate(tens, score="jev", label="human").accept(93)


def test_a_table_with_other_scores_is_warned_of(tmp_path: Path) -> None:
    path = table(tmp_path / "s.csv", scored(200, 40))
    file = calibrate(path, score="jev", label="human").write(tmp_path / "c.json")
    applied = apply_to_table(file, [{"jev": 0.9 + at / 1000} for at in range(60)])
    assert (
        "jev: the scores are distributed differently from those of the calibration"
        in applied.warnings[0]
    )


def test_applied_to_another_run(made: Path, tmp_path: Path) -> None:
    rows = samples(seed=2)
    rows[3]["good"], rows[4]["good"] = "fails", None
    finished = score(rows, metrics=Good(), out=tmp_path / "new", calibrator=made, report=True)
    result = finished.calibrated
    assert result is not None
    assert (result["answers"], result["with_probability"]) == (400, 398)
    assert (result["failed"], result["without_score"]) == (1, 1)
    assert describe_calibration(result).warnings == []
    frame = finished.to_pandas()
    expected = read_calibrator(made).probabilities([row["good"] for row in rows[5:]])
    assert frame["probability"][5:].tolist() == pytest.approx(expected.tolist())
    assert np.isnan(frame["probability"][3]) and np.isnan(frame["probability"][4])
    assert frame["accepted"].sum() == result["accepted"] > 50
    right = np.array([row["correct"] for row in rows])
    assert 1 - right[frame["accepted"].astype(bool)].mean() <= 0.1
    page = (tmp_path / "new" / "report.html").read_text()
    assert "Probability of being right (correct)" in page
    assert f"{result['accepted']:,} of 400" in page and "no probability" in page
    # The page is the same when it is written again, and the copy of the calibrator suffices.
    write_report(RunFolder(tmp_path / "new"), [Good()])
    assert (tmp_path / "new" / "report.html").read_text() == page


def test_applied_to_a_finished_run_and_while_scoring_again(made: Path, tmp_path: Path) -> None:
    path = run(tmp_path / "new", samples(seed=3))
    result = apply_calibrator(RunFolder(path), read_calibrator(made), [Good()])
    summary = json.loads((path / "summary.json").read_text())
    assert summary["calibrated"] == result.to_dict()
    assert (path / "calibrator.json").read_bytes() == made.read_bytes()
    again = score(samples(seed=3), metrics=Good(), out=tmp_path / "third", calibrator=made)
    assert again.calibrated == result.to_dict()
    assert calibrate_run(RunFolder(path), read_calibrator(made)).to_dict() == result.to_dict()


def test_it_warns_of_a_run_that_looks_unlike(made: Path, tmp_path: Path) -> None:
    path = run(tmp_path / "new", samples(seed=4, shift=0.6))
    result = calibrate_run(RunFolder(path), read_calibrator(made)).to_dict()
    (warning,) = describe_calibration(result).warnings
    assert warning.startswith("good: the scores are distributed differently")


def test_another_metric_or_other_options_are_refused(
    labelled: Path, made: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        InputError, match=r"the calibrator was made for the metric good; this run has bad"
    ):
        score(samples(20), metrics=Bad(), out=tmp_path / "bad", calibrator=made)
    with pytest.raises(InputError, match=r"other options.*strict True, not False"):
        score(samples(20), metrics=Good(strict=True), out=tmp_path / "strict", calibrator=made)
    assert not list(tmp_path.iterdir())  # before anything was done
    strict = run(tmp_path / "strict", samples(20), Good(strict=True))
    before = (strict / "summary.json").read_bytes()
    with pytest.raises(InputError, match="strict: good has other options"):
        apply_calibrator(RunFolder(strict), read_calibrator(made))
    assert (strict / "summary.json").read_bytes() == before
    of_table = calibrate(scored(), score="jev", label="human").write(tmp_path / "table.json")
    with pytest.raises(InputError, match=r"for the column jev of a table"):
        score(samples(20), metrics=Good(), out=tmp_path / "x", calibrator=of_table)


def test_another_entailer_is_refused(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"q{i}",
            "question": f"What is number {i}?",
            "response": f"Number {i} is odd." if i % 2 else "It was sold in Turin.",
            "documents": [f"Number {i} is odd."],
            "correct": i % 2,
        }
        for i in range(60)
    ]
    metric = "faithfulness"
    path = tmp_path / "run"
    score(rows, metrics=metric, entailer="lexical", out=path, report=False, cache=None)
    result = calibrate(path, label="correct")
    assert set(result.calibrator.score.source.backends) == {"entailer"}
    file = result.write(tmp_path / "calibrator.json")
    again = rescore(path, out=tmp_path / "again", calibrator=file, cache=None)
    assert again.calibrated is not None

    def other(premise: str, hypothesis: str) -> tuple[float, float, float]:
        return (1.0, 0.0, 0.0)

    with pytest.raises(InputError, match="other models than the calibrator: entail"):
        score(rows, metrics=metric, entailer=other, out=tmp_path / "x", calibrator=file, cache=None)


# the file


def changed(made: Path, change: Callable[[dict[str, Any]], object]) -> str:
    content = json.loads(made.read_text())
    change(content)
    return json.dumps(content)


def test_the_file_comes_back_as_it_was(labelled: Path, made: Path) -> None:
    assert made.stat().st_size < 20_000
    assert read_calibrator(made) == calibrate(labelled, label="correct", score="good").calibrator
    assert json.loads(made.read_text())["version"] == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("labels"), r"labels: is missing"),
        (lambda c: c.update(format="other"), r"is not a calibrator; expected a file that"),
        (lambda c: c.update(version=1), r"version: expected 2, got 1; .* run calibrate again"),
        (lambda c: c["labels"].update(n=1.5), r"labels.n: expected a whole number"),
        (lambda c: c["labels"].update(name="x" * 10_000), r"labels.name: expected a text"),
        (lambda c: c["curve"]["knots"].append(math.nan), r"NaN is not a number of JSON"),
        (lambda c: c["curve"]["knots"].append(10**400), r"curve.knots\[\d+\]: expected a number"),
        (lambda c: c["curve"].update(knots=[1, 0], values=[0, 1]), r"curve: expected as many ris"),
        (lambda c: c["curve"].update(knots=[0, 1], values=[0, 2]), r"curve.values: .*from 0 to 1"),
        (lambda c: c["curve"].update(knots=[], values=[]), r"curve.knots: expected one number"),
        (lambda c: c["score"].update(sign=0), r"score.sign: expected 1 or -1"),
        (lambda c: c["score"]["source"].update(kind="x"), r"score.source.kind: expected 'run'"),
        (lambda c: c["promises"][0].update(above="x"), r"promises\[0\].above: expected a number"),
        (
            lambda c: c["promises"][0].update(share=2),
            r"promises\[0\]: expected numbers from 0 to 1",
        ),
        (
            lambda c: c["promises"][0].update(exact=1),
            r"promises\[0\].exact: expected true or false",
        ),
        (lambda c: c["spread"]["shares"].pop(), r"spread: expected as many rising numbers"),
        (lambda c: c.update(reliability={}), r"reliability: expected a list"),
        (lambda c: c.update(spread=[]), r"spread: expected an object"),
    ],
)
def test_a_damaged_file_is_refused_by_name_and_field(
    made: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    path = tmp_path / "hostile.json"
    path.write_text(changed(made, change))
    with pytest.raises(InputError, match=message) as refused:
        read_calibrator(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, "\ud800", '{"format": NaN}'])
def test_what_is_no_calibrator_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "hostile.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=str(path)):
        read_calibrator(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_bytes(b" " * (2 << 20))
    with pytest.raises(InputError, match="larger than 1 MB"):
        read_calibrator(path)


def test_names_in_a_file_are_escaped_on_the_page(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    path.write_text(changed(made, lambda c: c["labels"].update(name="<script>alert(1)</script>")))
    score(samples(seed=6), metrics=Good(), out=tmp_path / "run", calibrator=path, report=True)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page


def test_the_page(labelled: Path, tmp_path: Path) -> None:
    result = calibrate(labelled, label="correct", score="good", at_most=[0.1, 0.001])
    build_document(result).write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "trustassay calibrate" in page and "Reliability" in page and "<svg" in page
    assert "at most 10 % of the accepted answers are wrong according to" in page
    assert "too few labels: 400; 0.1 % needs at least 2,995" in page


def test_nothing_is_lost_by_writing_twice(made: Path, tmp_path: Path) -> None:
    first: Calibrator = read_calibrator(made)
    write_calibrator(first, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == made.read_bytes()


def test_labels_of_a_table_keyed_by_id_are_not_quoted(labelled: Path, tmp_path: Path) -> None:
    rows = [{"id": row["id"], "verdict": ("no", "yes")[row["correct"]]} for row in samples()]
    file = table(tmp_path / "labels.csv", rows)
    result = calibrate(labelled, score="good", ratings=file, label="verdict")
    assert result.calibrator.labels.n == 400
    assert not any("None" in note for note in result.notes)
    words = calibrate(scored(200, 40), score="jev", label="human")
    assert "label human: good (160) = right; bad (40) = wrong" in words.notes

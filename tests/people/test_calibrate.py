"""From labelled runs to a calibrator, onto other runs; what is refused, and by what words."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from trustassay import calibrate, rescore, score
from trustassay.core import registry
from trustassay.core.metric import Assessment, Context, Figure, Mean, Metric, directions
from trustassay.errors import UnknownNameError
from trustassay.input.records import InputError
from trustassay.people.calibrate.command import build_document
from trustassay.runs.calibrator import (
    Calibrator,
    calibrate_run,
    describe_calibration,
    read_calibrator,
    write_calibrator,
)
from trustassay.runs.folder import RunFolder
from trustassay.runs.report import write_report
from trustassay.runs.results import apply_calibrator
from trustassay.statistics.regression import Isotonic, sigmoid

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
    found = calibrate(labelled, label="correct", metrics="good", method="logistic", resamples=100)
    return found.write(labelled.parent / "calibrator.json")


def test_probabilities_are_those_of_the_population(labelled: Path) -> None:
    found = calibrate(labelled, label="correct", metrics="good", resamples=200)
    made = found.calibrator
    assert (made.answers, made.questions) == (400, 400)
    x = np.linspace(-1.5, 1.5, 7)
    told = made.probabilities(sigmoid(x)[:, None])
    assert told == pytest.approx(sigmoid(4 * x + 2), abs=0.12)
    ours, raw = found.figures["calibrated"], found.figures["good"]
    assert (ours["log_loss"].value or 9) < (raw["log_loss"].value or 0) - 0.05
    assert (ours["brier"].value or 9) < (raw["brier"].value or 0)
    low, high = raw["log_loss"].interval or (0, 0)
    assert low < (raw["log_loss"].value or 0) < high
    assert {one.interval for one in ours.values()} == {None}  # folds share their answers
    chance = found.figures["share of right answers"]["brier"].value
    assert chance == pytest.approx(made.right * (1 - made.right))


def test_a_part_that_orders_the_answers_better_is_named_with_its_command(
    labelled: Path, tmp_path: Path
) -> None:
    rows = samples()
    for row in rows:
        row["good"], row["other"] = row["other"], row["good"]
    path = run(tmp_path / "run", rows, Good())
    notes = calibrate(path, label="correct", resamples=100).notes
    (note,) = [note for note in notes if note.startswith("good.other orders the answers better")]
    assert note.endswith(
        f"To calibrate it: trustassay calibrate {path} --label correct --metric good.other"
    )
    assert "than good: its AUROC is higher by 0." in note
    assert "corrected for 1 test" in note
    turned = calibrate(path, label="correct", metrics="good.other", resamples=100).notes
    plain = calibrate(labelled, label="correct", metrics="good", resamples=100).notes
    assert not [note for note in [*turned, *plain] if "orders the answers better" in note]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda row: {"good": float(row["good"] > 0.5)}, "good: no log loss: it is infinite: "),
        (lambda row: {"good": 1.0}, "good: no AUROC: all scores are the same (1)"),
        (lambda row: {"good": None if row["id"] > "a2" else row["good"]}, "without a score"),
    ],
)
def test_what_cannot_be_computed_is_said_in_words(
    tmp_path: Path, changed: Callable[[dict[str, Any]], dict[str, Any]], words: str
) -> None:
    path = run(tmp_path / "run", [row | changed(row) for row in samples(120)])
    found = calibrate(path, label="correct", resamples=100)
    assert any(words in note for note in found.notes)
    assert "Infinity" not in json.dumps(found.to_dict())


def test_thresholds_say_what_they_accept(labelled: Path) -> None:
    found = calibrate(
        labelled, label="correct", metrics="good", at_most=[0.1, 0.2], resamples=100
    ).calibrator
    assert [(one.kind, one.at_most) for one in found.promises] == [
        ("among accepted", 0.1),
        ("among accepted", 0.2),
        ("of all", 0.1),
        ("of all", 0.2),
    ]
    rows = samples()
    ranks = np.array([row["good"] for row in rows])
    wrong = 1 - np.array([row["correct"] for row in rows])
    for one in found.promises:
        assert not one.without
        taken = one.accepts(ranks)
        assert (int(taken.sum()), int(wrong[taken].sum())) == (one.answers, one.wrong)
        least = one.wrong / one.answers if one.confidence else one.wrong / len(rows)
        assert least <= one.at_most


def test_a_score_of_which_lower_is_better(labelled: Path) -> None:
    found = calibrate(labelled, label="correct", metrics="bad", resamples=100).calibrator
    told = found.probabilities(np.array([[0.1], [1.0], [1.9]]))
    assert told[0] > told[1] > told[2]
    assert found.rank == "-bad"
    (one, *_) = [one for one in found.promises if not one.without]
    values = np.array([row["bad"] for row in samples()])
    assert one.answers == int(one.accepts(found.ranks(values[:, None])).sum())
    assert values[one.accepts(found.ranks(values[:, None]))].max() < values.mean()


def test_several_scores_are_combined(labelled: Path) -> None:
    both = calibrate(labelled, label="correct", metrics=["good", "bad"], resamples=100)
    assert both.calibrator.method == "combination"
    assert [one.name for one in both.calibrator.inputs] == ["good", "bad"]
    auroc = both.figures["calibrated"]["auroc"].value or 0
    assert auroc > 0.8
    # half of the questions test the thresholds
    most = max(one.questions for one in both.calibrator.promises)
    assert most <= 200


def test_a_part_and_its_direction(tmp_path: Path) -> None:
    rows = samples()
    for row in rows:
        row["good"], row["other"] = 0.5, 1 - row["good"]
    path = run(tmp_path / "run", rows)
    wrong_way = calibrate(path, label="correct", metrics="good.other", resamples=100)
    assert any("--lower good.other reverses it" in note for note in wrong_way.notes)
    assert np.ptp(wrong_way.calibrator.probabilities([[0.1], [0.9]])) < 0.05
    found = calibrate(
        path, label="correct", metrics="good.other", lower="good.other", resamples=100
    ).calibrator
    low, high = found.probabilities([[0.1], [0.9]])
    assert low > 0.9
    assert high < 0.5


def test_questions_are_the_units(tmp_path: Path) -> None:
    rows = samples(answers=2)
    found = calibrate(run(tmp_path / "run", rows), label="correct", resamples=100).calibrator
    assert (found.answers, found.questions) == (400, 200)
    assert found.spreads["good"].size == 200


def test_the_file_comes_back_as_it_was(labelled: Path, made: Path) -> None:
    assert made.stat().st_size < 20_000
    first = calibrate(
        labelled, label="correct", metrics="good", method="logistic", resamples=100
    ).calibrator
    assert read_calibrator(made) == first
    isotonic = calibrate(
        labelled, label="correct", metrics="good", method="isotonic", resamples=100
    )
    again = read_calibrator(isotonic.write(made.parent / "isotonic.json"))
    assert isinstance(again.model, Isotonic) and again == isotonic.calibrator
    both = calibrate(labelled, label="correct", metrics=["good", "bad"], resamples=100)
    assert read_calibrator(both.write(made.parent / "both.json")) == both.calibrator
    assert json.loads(made.read_text())["version"] == 1


def test_applied_to_another_run(made: Path, tmp_path: Path) -> None:
    rows = samples(seed=2)
    rows[3]["good"], rows[4]["good"] = "fails", None
    given = score(rows, metrics=Good(), out=tmp_path / "new", calibrator=made, report=True)
    told = given.calibrated
    assert told is not None
    assert (told["answers"], told["with_probability"]) == (400, 398)
    assert (told["failed"], told["without_score"], told["unlike"]) == (1, 1, [])
    calibrator = read_calibrator(made)
    table = given.to_pandas()
    expected = calibrator.probabilities([[row["good"]] for row in rows[5:]])
    assert table["probability"][5:].tolist() == pytest.approx(expected.tolist())
    assert np.isnan(table["probability"][3]) and np.isnan(table["probability"][4])
    first = next(one for one in told["accepted"] if not one["without"])
    assert table["accepted"].sum() == first["accepted"] > 50
    # what is accepted is as right as promised
    right = np.array([row["correct"] for row in rows])
    assert 1 - right[table["accepted"].astype(bool)].mean() <= first["at_most"]
    page = (tmp_path / "new" / "report.html").read_text()
    assert "Probability of being right (correct)" in page
    assert f"{first['accepted']:,} of 400" in page and "no probability" in page
    # the page is the same when it is written again, and the copy of the calibrator suffices
    write_report(RunFolder(tmp_path / "new"), [Good()])
    assert (tmp_path / "new" / "report.html").read_text() == page


def test_applied_to_a_finished_run_and_while_scoring_again(made: Path, tmp_path: Path) -> None:
    path = run(tmp_path / "new", samples(seed=3))
    found = apply_calibrator(RunFolder(path), read_calibrator(made), [Good()])
    summary = json.loads((path / "summary.json").read_text())
    assert summary["calibrated"] == found.to_dict()
    assert (path / "calibrator.json").read_bytes() == made.read_bytes()
    again = score(samples(seed=3), metrics=Good(), out=tmp_path / "third", calibrator=made)
    assert again.calibrated == found.to_dict()
    assert calibrate_run(RunFolder(path), read_calibrator(made)).to_dict() == found.to_dict()


def test_it_warns_of_a_file_that_looks_unlike(made: Path, tmp_path: Path) -> None:
    path = run(tmp_path / "new", samples(seed=4, shift=0.6))
    told = calibrate_run(RunFolder(path), read_calibrator(made)).to_dict()
    assert told["unlike"] == ["good"]
    (warning,) = describe_calibration(told).warnings
    assert warning.startswith("good: its distribution here is unlike")
    rows = samples(seed=5)
    for row in rows:
        row["other"] = row["other"] ** 3
    same_score = run(tmp_path / "part", rows)
    told = calibrate_run(RunFolder(same_score), read_calibrator(made)).to_dict()
    assert told["unlike"] == ["good.other"]


def test_another_metric_or_other_options_are_refused(
    labelled: Path, made: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"calibrator is of the metric good; this run has bad"):
        score(samples(20), metrics=Bad(), out=tmp_path / "bad", calibrator=made)
    with pytest.raises(InputError, match=r"other options.*strict True, not False"):
        score(samples(20), metrics=Good(strict=True), out=tmp_path / "strict", calibrator=made)
    assert not list(tmp_path.iterdir())  # before anything was done
    strict = run(tmp_path / "strict", samples(20), Good(strict=True))
    before = (strict / "summary.json").read_bytes()
    with pytest.raises(InputError, match="strict: good has other options"):
        apply_calibrator(RunFolder(strict), read_calibrator(made))
    assert (strict / "summary.json").read_bytes() == before


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
    found = calibrate(path, label="correct", resamples=100)
    assert found.calibrator.inputs[0].backends == {"entailer": "lexical/1"} or (
        "entailer" in found.calibrator.inputs[0].backends
    )
    file = found.write(tmp_path / "calibrator.json")
    again = rescore(path, out=tmp_path / "again", calibrator=file, cache=None)
    assert again.calibrated is not None

    def other(premise: str, hypothesis: str) -> tuple[float, float, float]:
        return (1.0, 0.0, 0.0)

    with pytest.raises(InputError, match="other models than the calibrator was made with: entail"):
        score(rows, metrics=metric, entailer=other, out=tmp_path / "x", calibrator=file, cache=None)


# labels


def test_labels_that_are_too_few_are_refused_with_the_number_that_would_do(tmp_path: Path) -> None:
    few = run(tmp_path / "few", samples(15))
    with pytest.raises(InputError, match=r"too few for probabilities: 15 answers.*at least 20 que"):
        calibrate(few, label="correct")
    rows = samples(50)
    some = run(tmp_path / "some", rows)
    with pytest.raises(
        InputError, match=r"at most 5 % of them wrong.*50 labelled.*at least 59 are"
    ):
        calibrate(some, label="correct", at_most=0.05)
    found = calibrate(some, label="correct", resamples=100).calibrator
    first = found.promises[0]
    assert first.without.startswith("50 questions test it, at least 59 are needed")
    assert (first.needed or 0) >= 59
    assert not first.accepts([1e9]).any()


def test_labels_that_cannot_be_read_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = samples(60)
    for place, row in enumerate(rows):
        row["label"] = "unclear" if place < 5 else ("👎", "👍")[row["correct"]]
    result = calibrate(run(tmp_path / "run", rows), resamples=100)
    assert result.right.tolist() == [row["correct"] for row in rows[5:]]
    assert result.unread and result.to_dict()["unread"]["words"] == {"unclear": 5}
    assert any(note.startswith("labels label: 5 of 60 cannot be read") for note in result.notes)


def test_a_score_against_the_labels_may_show_that_they_mean_the_opposite(tmp_path: Path) -> None:
    rows = [{**row, "label": ("yes", "no")[row["correct"]]} for row in samples(60)]
    path = run(tmp_path / "run", rows)
    notes = calibrate(path, resamples=100).notes
    assert any("if the labels mean the opposite: --positive no" in note for note in notes)
    turned = calibrate(path, positive="no", resamples=100)
    assert turned.right.tolist() == [row["correct"] for row in rows]
    assert not any("opposite" in note for note in turned.notes)


def test_labels_of_one_class_or_none_are_refused(tmp_path: Path) -> None:
    rows = samples(60)
    for row in rows:
        row |= {"always": 1, "grade": row["good"], "few": row["correct"]}
    path = run(tmp_path / "run", rows)
    with pytest.raises(InputError, match="no sample has the label missing; expected"):
        calibrate(path, label="missing")
    with pytest.raises(InputError, match="no sample has the label label; expected --label"):
        calibrate(path)
    with pytest.raises(InputError, match=r"label (always|grade):"):
        calibrate(path, label="always")
    with pytest.raises(InputError, match=r"label grade: is real.*two classes"):
        calibrate(path, label="grade")


def test_wrong_names_and_numbers(labelled: Path) -> None:
    with pytest.raises(UnknownNameError, match="score of the runs 'goood'; did you mean good"):
        calibrate(labelled, label="correct", metrics="goood")
    with pytest.raises(InputError, match="name the scores to be calibrated; the runs have good, b"):
        calibrate(labelled, label="correct")
    with pytest.raises(ValueError, match="at most: expected a share between 0 and 1, got 5"):
        calibrate(labelled, label="correct", metrics="good", at_most=5)
    with pytest.raises(ValueError, match="confidence"):
        calibrate(labelled, label="correct", metrics="good", confidence=1)
    with pytest.raises(UnknownNameError, match="method"):
        calibrate(labelled, label="correct", metrics="good", method="isotone")


# the file


def changed(made: Path, change: Callable[[dict[str, Any]], object]) -> str:
    content = json.loads(made.read_text())
    change(content)
    return json.dumps(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("label"), r"label: is missing"),
        (lambda c: c.update(format="other"), r"format: expected 'trustassay calibrator'"),
        (lambda c: c.update(version=2), r"version: expected 1"),
        (lambda c: c.update(answers=-1), r"answers: expected a number from 1"),
        (lambda c: c.update(answers=1.5), r"answers: expected a whole number"),
        (lambda c: c.update(right=True), r"right: expected a number from 0 to 1, got True"),
        (lambda c: c["model"].update(intercept=math.nan), r"NaN is not a number of JSON"),
        (lambda c: c["model"].update(intercept=10**400), r"model.intercept: expected a number"),
        (lambda c: c["model"].update(intercept=1e300), r"model.intercept: expected a number"),
        (lambda c: c["model"].update(intercept="1"), r"model.intercept: expected a number"),
        (lambda c: c["model"]["terms"][0].update(scale=0), r"model.terms\[0\].scale"),
        (lambda c: c["model"]["terms"].append(c["model"]["terms"][0]), r"one for each of 1 inputs"),
        (
            lambda c: c.update(method="isotonic", model={"knots": [1, 0], "values": [0, 1]}),
            r"model.knots: expected rising numbers",
        ),
        (
            lambda c: c.update(method="isotonic", model={"knots": [0, 1], "values": [0, 2]}),
            r"model.values: expected a number from 0 to 1, got 2",
        ),
        (lambda c: c["inputs"][0].update(part="other"), r"fingerprint: expected"),
        (lambda c: c["inputs"][0].update(sign=0), r"inputs\[0\].sign: expected 1 or -1"),
        (lambda c: c.update(inputs=[]), r"inputs: expected a list of 1 to"),
        (lambda c: c["promises"][0].update(kind="all"), r"promises\[0\].kind: expected"),
        (lambda c: c["promises"][0].update(above="x"), r"promises\[0\].above: expected a number"),
        (lambda c: c["spreads"]["good"]["shares"].pop(), r"spreads.good.shares: expected"),
        (
            lambda c: c["spreads"].update(other=c["spreads"]["good"]),
            r"spreads: expected names of good, got 'other'",
        ),
        (lambda c: c.update(spreads=[]), r"spreads: expected an object"),
        (lambda c: c.update(label="x" * 10_000), r"label: expected a text of at most"),
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
    content = json.loads(made.read_text())
    content["label"] = "<script>alert(1)</script>"
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(content))
    score(samples(seed=6), metrics=Good(), out=tmp_path / "run", calibrator=path, report=True)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page


def test_the_page(labelled: Path, tmp_path: Path) -> None:
    found = calibrate(labelled, label="correct", metrics="good", resamples=100)
    build_document(found).write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "trustassay calibrate" in page and "Reliability" in page and "<svg" in page
    assert "at most 10 % of them wrong (confidence 95 %)" in page
    json.dumps(found.to_dict(), allow_nan=False)


def test_nothing_is_lost_by_writing_twice(made: Path, tmp_path: Path) -> None:
    first: Calibrator = read_calibrator(made)
    write_calibrator(first, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == made.read_bytes()

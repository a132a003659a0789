"""``--labels``: the share of right answers from a few labels, in each command that has it."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl
from trustassay import score
from trustassay.compare.corrected import LabelFiles, correct
from trustassay.errors import UsageError

N = 240
SHARES = {"old": (0.85, 0.9, 0.7), "new": (0.6, 0.7, 0.9)}
"""Of a run the share of right answers, and how often right and wrong ones are judged so."""
GOOD = "The house by the river is painted blue."
BAD = "A red car waits in front of seven trees."
REFUSAL = "I cannot answer this from the documents."
METRICS = ["reference:parts=em", "faithfulness"]
"""One without a line between passed and failed, and one with a line."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, and one of both, whose judge errs otherwise in each; labels of all."""
    home = tmp_path_factory.mktemp("corrected")
    rng, both = np.random.default_rng(4), []
    for name, (share, se, sp) in SHARES.items():
        right = rng.random(N) < share
        good = rng.random(N) < np.where(right, se, 1 - sp)
        rows = [
            {
                "id": f"q{number}",
                "question": f"Question {number}?",
                "response": GOOD if good[number] else BAD,
                "documents": [GOOD],
                "answers": [GOOD],
                "model": name,
            }
            for number in range(N)
        ]
        both += rows
        source = jsonl(home / f"{name}.jsonl", rows)
        made_run(source, home / name)
        labels(home / f"{name}.csv", dict(enumerate(right)), range(N), name)
    rows = [{**row, "id": f"{row['id']}-{row['model']}"} for row in both]
    made_run(jsonl(home / "both.jsonl", rows), home / "both")
    return home


def made_run(source: Path, out: Path) -> Path:
    score(source, metrics=METRICS, entailer="lexical", out=out)
    return out


def labels(path: Path, right: dict[int, bool], places: object, model: str = "") -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item", "rater", "rating", *(["model"] if model else [])])
        for at in places:  # type: ignore[attr-defined]
            rows.writerow([f"q{at}", "anna", int(right[at]), *([model] if model else [])])
    return path


def some(home: Path, name: str, count: int, out: Path, ids: str = "{}") -> Path:
    """Write the labels of the first answers, which are as good as drawn."""
    lines = (home / f"{name}.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines[1 : count + 1]]
    text = "\n".join(",".join([ids.format(row[0]), *row[1:]]) for row in rows)
    out.write_text(f"{lines[0]}\n{text}\n")
    return out


def test_the_share_of_all_labels_is_the_truth(home: Path) -> None:
    found = correct([home / "new"], LabelFiles([home / "new.csv"]))["reference"]
    one = found.rates[0]
    truth = np.mean([line.split(",")[2] == "1" for line in _rows(home / "new.csv")])
    assert one.value == pytest.approx(truth)
    assert (one.answers, one.labels, one.method) == (N, N, "stratified by outcome")
    assert one.passed is None  # it draws no line
    assert not found.differences
    (rate,) = correct([home / "new"], LabelFiles([home / "new.csv"]))["faithfulness"].rates
    assert rate.value == pytest.approx(truth)
    assert rate.passed is not None
    assert rate.passed < truth - 0.1
    assert rate.strata.keys() == {"supported", "not supported"}


def _rows(path: Path) -> list[str]:
    return path.read_text().splitlines()[1:]


def test_a_gate_holds_the_corrected_share_against_a_bound(
    cli: Cli, home: Path, tmp_path: Path
) -> None:
    given = ("gate", home / "new", "--labels", some(home, "new", 150, tmp_path / "l.csv"))
    said = cli(*given, "--min", "reference.right=45%", "--json")
    assert said.status == 0
    check = json.loads(said.out)["checks"][0]
    assert check["unit"] == "%"
    assert check["interval"][0] < 60 < check["interval"][1]
    assert "from 150 labels" in said.err
    assert "Assumes that within each outcome the labelled answers were drawn at random" in said.err
    said = cli(*given, "--min", "reference.right=56%")
    assert said.status == 4
    assert re.search(
        r"about \d+ more labels would decide it \(pass, if the value stays the same\)",
        on_one_line(said.out),
    )
    assert cli(*given, "--max", "reference.right=30%").status == 1


def test_a_gate_against_an_earlier_run_compares_right_answers(
    cli: Cli, home: Path, tmp_path: Path
) -> None:
    files = [some(home, name, 200, tmp_path / f"{name}.csv") for name in ("new", "old")]
    given = [word for file in files for word in ("--labels", file)]
    said = cli("gate", home / "new", "--no-worse-than", home / "old", *given, "--json")
    assert said.status == 1
    check = next(c for c in json.loads(said.out)["checks"] if c["name"] == "reference.right")
    assert check["result"] == "fail"
    assert check["interval"][0] < -25 < check["interval"][1] < 0
    back = cli("gate", home / "old", "--no-worse-than", home / "new", *given[2:], *given[:2])
    assert "reference.right" in back.out
    assert "old less new" not in back.out  # the earlier run is what is subtracted from
    margin = ("--margin", "60", "--figure", "reference.right")
    assert cli("gate", home / "new", "--no-worse-than", home / "old", *given, *margin).status == 0


def test_compare_tells_the_difference(cli: Cli, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "both.csv"
    head, *rows = (home / "old.csv").read_text().splitlines()
    file.write_text("\n".join([head, *rows[:150], *_rows(home / "new.csv")[:150]]) + "\n")
    page = tmp_path / "page.html"
    labelled = ("--labels", file, "--metric", "reference")
    said = cli(*("compare", home / "old", home / "new", *labelled, "--json", "--page", page))
    assert said.status == 0
    found = json.loads(said.out)["corrected"]
    (change,) = found["differences"]
    assert (change["first"], change["second"]) == ("old", "new")
    assert change["interval"][0] < -0.25 < change["interval"][1]
    assert "new minus old: −" in said.err
    assert "Right answers by human labels" in page.read_text()


def test_rank_and_report_tell_each_model_by_its_own_labels(
    cli: Cli, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "labels.csv"
    texts = []
    for name in ("old", "new"):
        own = some(home, name, 150, tmp_path / f"{name}.csv", f"{{}}-{name}")
        texts += _rows(own)
    file.write_text("item,rater,rating,model\n" + "\n".join(texts) + "\n")
    said = cli("rank", home / "both", "--labels", file, "--json", "--metric", "reference")
    assert said.status == 0
    rates = {one["name"]: one for one in json.loads(said.out)["corrected"]["rates"]}
    assert rates["old"]["value"] > rates["new"]["value"] + 0.1
    shutil.copytree(home / "both", tmp_path / "both")
    said = cli("report", tmp_path / "both", "--labels", file)
    assert said.status == 0
    assert "both: " in said.err
    assert "new: " in said.err
    assert "are right (95 % interval" in (tmp_path / "both" / "report.html").read_text()


def test_labels_of_another_run_correct_by_the_errors_there(
    cli: Cli, home: Path, tmp_path: Path
) -> None:
    given = ("gate", home / "new", "--labels", home / "old.csv", "--labels-of", home / "old")
    said = cli(*given, "--min", "faithfulness.right=1%")
    assert "Rogan-Gladen, from 240 labels" in said.out
    assert (
        "Assumes that the judge has the same error rates here as on the labelled answers."
        in said.out
    )
    assert "the metric has no pass threshold, so it has no error rates" in said.out  # of reference
    two = cli(*given, "--no-worse-than", home / "old")
    assert "Assumes the same error rates for all" in two.out
    other = tmp_path / "other"
    shutil.copytree(home / "old", other)
    about = json.loads((other / "run.json").read_text())
    about["metrics"]["reference"]["threshold"] = 0.123
    (other / "run.json").write_text(json.dumps(about))
    said = cli(*given[:4], "--labels-of", other, "--min", "reference.right=1%")
    assert said.status == 2
    assert "was judged differently from" in said.err


def test_an_outcome_without_labels_gives_no_figure(cli: Cli, home: Path, tmp_path: Path) -> None:
    """Labels of the answers that pass say nothing of the others."""
    responses = [json.loads(line)["response"] for line in _rows_of(home / "new.jsonl")]
    passed = [f"q{at}" for at, response in enumerate(responses) if response == GOOD]
    head, *rows = (home / "new.csv").read_text().splitlines()
    file = tmp_path / "part.csv"
    file.write_text("\n".join([head, *(row for row in rows if row.split(",")[0] in passed)]) + "\n")
    given = ("gate", home / "new", "--labels", file)
    for metric in ("reference", "faithfulness"):
        said = cli(*given, "--min", f"{metric}.right=1%")
        assert said.status == 1
        wanted = f"5 more of the {N - len(passed)} answers with outcome"
        assert wanted in on_one_line(said.out)
        assert "no value: too few labels" in on_one_line(said.out)


def test_refusals_are_part_of_the_share(cli: Cli, home: Path, tmp_path: Path) -> None:
    """Raters call refusals wrong: a share of the other answers alone would pass."""
    lines = [json.loads(line) for line in _rows_of(home / "old.jsonl")]
    for place, row in enumerate(lines):
        row["response"] = REFUSAL if place % 5 else GOOD
    run = made_run(jsonl(tmp_path / "refusing.jsonl", lines), tmp_path / "refusing")
    right = {place: place % 5 == 0 for place in range(N)}
    file = labels(tmp_path / "refusing.csv", right, range(120))
    said = cli("gate", run, "--labels", file, "--min", "faithfulness.right=50%", "--json")
    check = json.loads(said.out)["checks"][0]
    assert said.status == 1
    assert check["value"] == pytest.approx(20, abs=2)
    (rate,) = correct([run], LabelFiles([file]))["faithfulness"].rates
    assert rate.strata == {"supported": (48, 24), "not answered": (192, 96)}


def test_labels_of_the_best_or_worst_answers_are_noticed(
    cli: Cli, home: Path, tmp_path: Path
) -> None:
    """Within an outcome labels have to be of a random sample: its best would look too good."""
    lines = [json.loads(line) for line in _rows_of(home / "old.jsonl")]
    for place, row in enumerate(lines):  # all fail, by one to four wrong sentences of four
        row["response"] = " ".join([GOOD] * (place % 4) + [BAD] * (4 - place % 4))
    run = made_run(jsonl(tmp_path / "graded.jsonl", lines), tmp_path / "graded")
    right = {place: place % 4 == 3 for place in range(N)}
    by_score = sorted(range(N), key=lambda place: place % 4)
    given = ("gate", run, "--min", "faithfulness.right=1%", "--labels")
    best = cli(*given, labels(tmp_path / "best.csv", right, by_score[-80:]))
    assert best.status == 1
    assert "have the best scores; draw answers to label at random" in on_one_line(best.out)
    worst = cli(*given, labels(tmp_path / "worst.csv", right, by_score[:80]))
    assert "have the worst scores; draw answers to label at random" in on_one_line(worst.out)


def _rows_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def on_one_line(text: str) -> str:
    """Return text without its line breaks."""
    return " ".join(text.split())


def test_what_is_refused(cli: Cli, home: Path, tmp_path: Path) -> None:
    def refused(*words: object) -> str:
        said = cli(*words)
        assert said.status == 2
        return said.err

    least = ("--min", "reference.right=50%")
    few = some(home, "new", 9, tmp_path / "few.csv")
    message = refused("gate", home / "new", "--labels", few, *least)
    assert "9; at least 20 are needed" in message
    assert "To draw answers to rate, run `trustassay label" in message
    strange = some(home, "new", 50, tmp_path / "strange.csv", "z{}")
    assert "no id is that of" in refused("gate", home / "new", "--labels", strange, *least)
    bare = tmp_path / "bare.csv"
    bare.write_text("item,rater,rating\n" + "".join(f"q{at},anna,1\n" for at in range(40)))
    two = ("compare", home / "old", home / "new", "--metric", "reference")
    message = refused(*two, "--labels", bare)
    assert "fits several answers" in message
    message = refused("gate", home / "new", "--at-least", "4", *least)
    assert "need --labels FILE" in message
    assert "0 and 1" in refused("gate", home / "new", "--labels", _scale(home, tmp_path), *least)
    unlabelled = refused("gate", home / "new", *least)
    assert "reference.right" in unlabelled
    three = [word for _ in range(3) for word in ("--labels", home / "new.csv")]
    assert "3 files for 2 runs" in refused(*two, *three)


def _scale(home: Path, tmp_path: Path) -> Path:
    file = tmp_path / "scale.csv"
    rows = [f"q{at},anna,{at % 5 + 1},new" for at in range(60)]
    file.write_text("item,rater,rating,model\n" + "\n".join(rows) + "\n")
    return file


def test_a_scale_is_read_from_a_number_on(cli: Cli, home: Path, tmp_path: Path) -> None:
    given = ("gate", home / "new", "--labels", _scale(home, tmp_path), "--at-least", "4")
    said = cli(*given, "--min", "reference.right=10%")
    assert said.status == 0
    assert "from 60 labels" in said.out


def test_options_without_a_file_are_refused() -> None:
    assert LabelFiles.from_options() is None
    with pytest.raises(UsageError, match="need --labels FILE"):
        LabelFiles.from_options(right_words=["yes"])

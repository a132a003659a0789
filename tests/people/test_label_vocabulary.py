"""One vocabulary: a file of labels means the same in every command that reads labels."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from trustassay import calibrate, score, study
from trustassay.compare.corrected import LabelFiles
from trustassay.input.records import InputError
from trustassay.people.label.command import PlanOptions, open_work
from trustassay.people.label.population import read_labels, read_population
from trustassay.people.study.labels import LabelSource

ANSWERS = 60
RIGHT = [float(place % 3 > 0) for place in range(ANSWERS)]

SPELLINGS: Sequence[tuple[object, object, Mapping[str, Any]]] = [
    (1, 0, {}),
    ("1.0", "0.0", {}),
    ("yes", "No", {}),
    ("pass", "FAIL", {}),
    ("passes", "fails", {}),
    (True, False, {}),
    ("right", "wrong", {}),
    ("correct", "incorrect", {}),
    ("supported", "hallucinated", {}),
    ("Supported", "not supported", {}),
    ("entailment", "contradiction", {}),
    ("yes", 0, {}),
    ("ok", "off topic", {"positive": ["OK"]}),
    ("no", "yes", {"positive": ["no"]}),
    (2, 1, {"positive": ["2"]}),
    (2, 1, {"at_least": 2}),
    (4.5, 3, {"at_least": 4}),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vocabulary") / "run"
    rows = [
        {
            "id": f"a{place}",
            "question": f"Question {place}?",
            "response": "blue" if place % 2 else "red",
            "answers": ["blue"],
        }
        for place in range(ANSWERS)
    ]
    score(rows, metrics="reference:parts=em", out=path, report=False)
    return path


def write_labels(path: Path, right: object, wrong: object, *, raters: bool) -> Path:
    header = ["item", "rater", "rating"] if raters else ["id", "label"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for place, is_right in enumerate(RIGHT):
            label = right if is_right else wrong
            writer.writerow([f"a{place}", *(["anna"] if raters else []), label])
    return path


def labels_by_command(run: Path, file: Path, options: Mapping[str, Any]) -> dict[str, list[float]]:
    source = LabelSource([file], **options)
    given = {"right_from": options.get("at_least"), "right_words": options.get("positive")}
    files = LabelFiles.from_options(labels=[str(file)], **given)
    assert files
    work = open_work([run], run.parent / "plan.jsonl", source, PlanOptions())
    studied = study(run, ratings=file, resamples=100, **options)
    calibrated = calibrate(run, ratings=file, resamples=100, **options)
    return {
        "label": work.labels.tolist(),
        "--labels": read_labels(read_population([run], source, "answer", ()), files).tolist(),
        "study": studied.labels[0].label.values.tolist(),
        "calibrate": calibrated.right.tolist(),
    }


@pytest.mark.parametrize("raters", [True, False])
@pytest.mark.parametrize(("right", "wrong", "options"), SPELLINGS)
def test_a_file_means_the_same_in_every_command(
    run: Path,
    tmp_path: Path,
    right: object,
    wrong: object,
    options: Mapping[str, Any],
    raters: bool,
) -> None:
    file = write_labels(tmp_path / "labels.csv", right, wrong, raters=raters)
    labels = labels_by_command(run, file, options)
    assert labels == dict.fromkeys(("label", "--labels", "study", "calibrate"), RIGHT)


@pytest.mark.parametrize("command", ["label", "--labels", "calibrate"])
@pytest.mark.parametrize(("right", "wrong"), [(2, 1), (5, 1), (1, -1)])
def test_of_two_numbers_no_command_guesses_which_is_right(
    run: Path, tmp_path: Path, right: object, wrong: object, command: str
) -> None:
    file = write_labels(tmp_path / "labels.csv", right, wrong, raters=True)
    with pytest.raises(InputError, match=r"is ordinal .*two classes.*--at-least NUMBER"):
        if command == "calibrate":
            calibrate(run, ratings=file, resamples=100)
        else:
            source = LabelSource([file], weighted=command == "label")
            read_labels(read_population([run], source, "answer", ()), source)
    studied = study(run, ratings=file, resamples=100).labels[0].label
    assert studied.kind == "ordinal"
    assert not any(math.isnan(value) for value in studied.values)


@pytest.mark.parametrize("word", ["perhaps", "4x"])
def test_an_unknown_word_is_refused_by_every_command(run: Path, tmp_path: Path, word: str) -> None:
    file = write_labels(tmp_path / "labels.csv", "yes", word, raters=True)
    source = LabelSource([file])
    for read in (
        lambda: study(run, ratings=file, resamples=100),
        lambda: calibrate(run, ratings=file, resamples=100),
        lambda: read_labels(read_population([run], source, "answer", ()), source),
    ):
        with pytest.raises(InputError, match=f"does not say what is right: '{word}'"):
            read()

"""One vocabulary: a file of labels means the same in every command that reads labels."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import jsonl
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
    ("👍", "👎", {}),
    ("✅", "❌", {}),
    ("thumbs_up", "Thumbs down", {}),
    (1, -1, {}),
    ("richtig", "falsch", {}),
    ("100%", "0 %", {}),
    ("0,9", "0,1", {"at_least": 0.5}),
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
    population = read_population([run], source, "answer", ())
    work = open_work([run], run.parent / "plan.jsonl", source, PlanOptions())
    studied = study(run, ratings=file, resamples=100, **options)
    calibrated = calibrate(run, ratings=file, **options)
    return {
        "label": work.labels.tolist(),
        "--labels": read_labels(population, files).values.tolist(),
        "study": studied.labels[0].label.values.tolist(),
        "calibrate": (1 - calibrated.wrong).tolist(),
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
@pytest.mark.parametrize(("right", "wrong"), [(2, 1), (5, 1), (1, -2)])
def test_of_two_numbers_no_command_guesses_which_is_right(
    run: Path, tmp_path: Path, right: object, wrong: object, command: str
) -> None:
    file = write_labels(tmp_path / "labels.csv", right, wrong, raters=True)
    with pytest.raises(InputError, match=r"is ordinal .*two classes.*--at-least NUMBER"):
        if command == "calibrate":
            calibrate(run, ratings=file)
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
        lambda: calibrate(run, ratings=file),
        lambda: read_labels(read_population([run], source, "answer", ()), source),
    ):
        with pytest.raises(InputError, match=f"it is not clear which labels mean right: '{word}'"):
            read()


@pytest.mark.parametrize("raters", [True, False])
@pytest.mark.parametrize(
    ("right", "wrong", "options"), [("yes", "no", {}), (5, 1, {"at_least": 3})]
)
def test_a_few_unknown_words_are_left_out_and_named_by_every_command(
    run: Path, tmp_path: Path, right: object, wrong: object, options: Any, raters: bool
) -> None:
    file = write_labels(tmp_path / "labels.csv", right, wrong, raters=raters)
    # The first four answers.
    lines = file.read_text().splitlines()
    lines[1:5] = [f"{line.rpartition(',')[0]},perhaps" for line in lines[1:5]]
    file.write_text("\n".join(lines) + "\n")
    labels = labels_by_command(run, file, options)
    calibrated = labels.pop("calibrate")
    # A promise counts what cannot be read as wrong.
    assert calibrated == [0, 0, 0, 0, *RIGHT[4:]]
    for values in labels.values():
        assert [value for value in values if not math.isnan(value)] == RIGHT[4:]
    source = LabelSource([file], **options)
    (note,) = read_labels(read_population([run], source, "answer", ()), source).notes
    assert f"labels {file}: 4 of 60 cannot be read and are left out" in note
    assert "'perhaps' (4)" in note
    work = open_work([run], tmp_path / "plan.jsonl", source, PlanOptions())
    work.propose(10)
    labelling = work.summarise((), 0.1, beyond=False)
    assert labelling.to_dict()["unread"] == 4
    assert note in labelling.notes
    assert study(run, ratings=file, resamples=100, **options).labels[0].label.unread


FIELDS = {
    "thumbs": ("👍", "👎"),
    "Daumen": ("Daumen hoch", "Daumen runter"),
    "share": ("100 %", "0%"),
    "is true": (True, False),
}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "frame", "parquet"])
def test_any_column_may_be_the_label_in_any_kind_of_file(tmp_path: Path, kind: str) -> None:
    rows: list[dict[str, Any]] = [
        {"id": f"a{place}", "question": f"Question {place}?", "response": "a", "answers": "a"}
        | {name: words[not is_right] for name, words in FIELDS.items()}
        | {"label": None if place % 10 == 0 else is_right > 0}
        for place, is_right in enumerate(RIGHT)
    ]
    source: Any = tmp_path / f"rows.{kind}"
    if kind == "jsonl":
        jsonl(source, [{**row, "user": {"said": row["thumbs"]}} for row in rows])
    else:
        frame = pytest.importorskip("pandas").DataFrame(rows)
        # An empty cell beside booleans is NA here, and NaN or None in other frames.
        frame["label"] = frame["label"].astype("boolean")
        if kind == "csv":
            frame.to_csv(source, index=False)
        elif kind == "parquet":
            frame.to_parquet(source)
        else:
            source = frame
    path = tmp_path / "run"
    score(source, metrics="reference:parts=em", out=path, report=False)
    names = [*FIELDS, *(["user.said"] if kind == "jsonl" else [])]
    for label in study(path, labels=names, resamples=100).labels:
        assert label.label.values.tolist() == RIGHT, label.label.name
    values = study(path, resamples=100).labels[0].label.values.tolist()
    expected = [math.nan if at % 10 == 0 else value for at, value in enumerate(RIGHT)]
    assert str(values) == str(expected)


def test_a_column_of_a_log_may_hold_the_labels_of_every_command(run: Path, tmp_path: Path) -> None:
    """Also beside a column of numbers, which no command takes for ratings then."""
    rows = [
        {"id": f"a{place}", "latency": place / 7, "user": {"said": "up" if right else "down"}}
        for place, right in enumerate(RIGHT)
    ]
    file = jsonl(tmp_path / "log.jsonl", rows)
    fields = {"rating": "user.said"}
    source = LabelSource([file], columns=fields)
    labels = read_labels(read_population([run], source, "answer", ()), source)
    assert labels.values.tolist() == RIGHT
    assert study(run, ratings=file, labels="user.said").labels[0].label.values.tolist() == RIGHT
    assert calibrate(run, ratings=file, fields=fields).calibrator.labels.right == sum(RIGHT)
    # Without a name the latency counts, which is named.
    with pytest.raises(InputError, match=r"is real \(60 different values, by latency\)"):
        calibrate(run, ratings=file)
    assert "rating: 1 rater (latency), 60 ratings" in study(run, ratings=file).notes[-1]

"""What ``study`` and the commands on its reader make of a table as people have it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lazily import needed
from tests.support import jsonl
from trustassay import study
from trustassay.input.ratings import read_ratings
from trustassay.input.records import InputError
from trustassay.people.agree import leave_out_scores
from trustassay.people.study.command import Study
from trustassay.people.study.labels import Label, LabelSource, read_answer_labels
from trustassay.people.study.tables import read_source
from trustassay.statistics.correlation import auroc

pandas, openpyxl = needed("pandas"), needed("openpyxl")
MLFLOW_TRACE = Path(__file__).parent.parent / "input" / "traces" / "mlflow.json"
LONG = """id,rater,jev,human
a,ann,0.9,correct
a,bob,0.9,incorrect
a,cy,0.9,correct
b,ann,0.8,correct
b,bob,0.8,correct
c,ann,0.4,incorrect
c,bob,0.4,cannot tell
d,ann,0.3,unsure
e,ann,0.2,
f,ann,0.1,correct
f,bob,0.1,incorrect
"""
"""Several raters an answer, who do not always agree."""


def read_label(source: object, *names: str, **options: object) -> list[Label]:
    answers = read_source(source, names, people=names)
    return read_answer_labels(answers, LabelSource(fields=names, **options))[0]  # type: ignore[arg-type]


def test_raters_of_a_long_table_are_pooled_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(LONG)
    (label,) = read_label(path, "human")
    assert label.kind == "binary"
    np.testing.assert_array_equal(label.values, [1, 1, 0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(label.raters["bob"], [0, 1, np.nan, np.nan, np.nan, 0])
    # Whoever could not tell judged neither c nor d; nobody rated e.
    assert label.undecided is not None
    assert label.undecided.tolist() == [False, False, True, True, False, False]
    assert label.tied is not None
    assert label.tied.tolist() == [False] * 5 + [True]
    assert "human: 3 raters (ann, bob, cy), 10 ratings of 4 answers" in label.notes
    assert "human: left out, because raters are split evenly: 1 answer" in label.notes


def test_who_rates_an_answer_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"{LONG}f,bob,0.1,correct\n")
    with pytest.raises(InputError, match=r"long.csv:13: rater 'bob' rated 'f' twice"):
        read_label(path, "human")


def test_undecided_raters_of_a_file_of_ratings_are_kept(tmp_path: Path) -> None:
    path, ratings = tmp_path / "scores.csv", tmp_path / "ratings.csv"
    path.write_text("id,jev\na,.9\nb,.8\nc,.7\nd,.6\n")
    ratings.write_text(
        "item,rater,rating\na,ann,1\na,bob,unsure\nb,ann,0\nc,ann,skip\ne,bot,1\nd,bot,?\n"
    )
    answers = read_source(path, ())
    (label,), (bot,) = read_answer_labels(answers, LabelSource([ratings], machines=["bot"]))
    np.testing.assert_array_equal(label.values, [1, 0, np.nan, np.nan])
    np.testing.assert_array_equal(bot.values, [np.nan] * 4)
    assert label.undecided is not None
    # Nobody but a judge could not tell about d.
    assert label.undecided.tolist() == [True, False, True, False]


def build_rows(n: int = 60) -> list[dict[str, Any]]:
    """Answers whose ``jev`` is higher where ``human`` is right."""
    rng = np.random.default_rng(3)
    right = [int(place % 3 > 0) for place in range(n)]
    jev = [round(float(0.4 * r + 0.6 * rng.random()), 3) for r in right]
    return [
        {"id": f"a{place}", "jev": x, "human": y}
        for place, (x, y) in enumerate(zip(jev, right, strict=True))
    ]


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def study_rows(source: Any, **options: Any) -> Study:
    return study(source, labels=options.pop("labels", "human"), resamples=100, **options)


EXPECTED = auroc([row["jev"] for row in build_rows()], [row["human"] for row in build_rows()])


def write_excel(path: Path) -> Path:
    book = openpyxl.Workbook()
    book.active.append(["notes of May"])
    sheet = book.create_sheet("answers")
    sheet.append(["Ratings, second round"])
    sheet.append(["id", "jev", "human"])
    for row in build_rows():
        sheet.append(list(row.values()))
    book.save(path)
    return path


def write_parquet(path: Path) -> Path:
    pandas.DataFrame(build_rows()).to_parquet(path)
    return path


SOURCES: Mapping[str, Callable[[Path], Any]] = {
    "csv": lambda path: write_csv(path / "s.csv", build_rows()),
    "tsv": lambda path: write_csv(path / "s.tsv", build_rows(), "\t"),
    "semicolons": lambda path: write_csv(
        path / "s.csv",
        [{**row, "jev": str(row["jev"]).replace(".", ",")} for row in build_rows()],
        ";",
    ),
    "percent": lambda path: write_csv(
        path / "s.csv", [{**row, "jev": f"{100 * row['jev']:.1f} %"} for row in build_rows()]
    ),
    "words": lambda path: write_csv(
        path / "s.csv",
        [{**row, "human": ("falsch", "Richtig")[row["human"]]} for row in build_rows()],
    ),
    "excel": lambda path: write_excel(path / "s.xlsx"),
    "parquet": lambda path: write_parquet(path / "s.parquet"),
    "json lines": lambda path: jsonl(path / "s.jsonl", build_rows()),
    "json": lambda path: json_file(path / "s.json", build_rows()),
    "json of pandas": lambda path: json_file(
        path / "s.json", json.loads(pandas.DataFrame(build_rows()).to_json())
    ),
    "frame": lambda _: pandas.DataFrame(build_rows()),
    "records": lambda _: build_rows(),
}


def json_file(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("form", SOURCES)
def test_any_table_is_studied(form: str, tmp_path: Path) -> None:
    result = study_rows(SOURCES[form](tmp_path))
    (label,) = result.labels
    assert (label.label.kind, label.label.n, result.costs) == ("binary", 60, ())
    # Neither the length of responses nor a source is there to be compared with.
    assert list(label.figures) == ["jev", "chance"]
    assert label.figures["jev"]["auroc"].value == pytest.approx(EXPECTED)
    assert label.figures["jev"]["brier"].value is not None


def test_labels_of_two_columns_are_two_labels(tmp_path: Path) -> None:
    rows = [{**row, "ann": row["human"], "bob": 1 - row["human"]} for row in build_rows()]
    labels = study_rows(write_csv(tmp_path / "s.csv", rows), labels=["ann", "bob"], scores="jev")
    first, second = (label.figures["jev"]["auroc"].value for label in labels.labels)
    assert first is not None and second == pytest.approx(1 - first)


def test_scores_are_all_columns_of_numbers_unless_they_are_named(tmp_path: Path) -> None:
    rows = [{**row, "other": row["jev"] / 2, "team": "red"} for row in build_rows()]
    path = write_csv(tmp_path / "s.csv", rows)
    assert set(study_rows(path).labels[0].figures) == {"jev", "other", "chance"}
    assert set(study_rows(path, scores=["other"]).labels[0].figures) == {"other", "chance"}
    with pytest.raises(InputError, match=r"s.csv: unknown column 'othr'; did you mean other\?"):
        study_rows(path, scores=["othr"])
    with pytest.raises(InputError, match=r"s.csv:2: team: expected a number, got 'red'"):
        study_rows(path, scores=["team"])


def test_a_score_that_is_missing_is_counted_and_another_text_named(tmp_path: Path) -> None:
    rows = build_rows()
    rows[4]["jev"], rows[9]["jev"] = "n/a", ""
    path = write_csv(tmp_path / "s.csv", rows)
    result = study_rows(path, scores="jev")
    assert result.labels[0].figures["jev"]["auroc"].n == 58
    assert "jev: 2 answers without a score" in result.notes
    rows[5]["jev"] = "high"
    write_csv(path, rows)
    with pytest.raises(InputError, match=r"s.csv:7: jev: expected a number, got 'high'"):
        study_rows(path, scores="jev")
    assert study_rows(path).labels[0].figures["jev"]["auroc"].n == 57


def test_labels_of_one_class_and_reversed_scores_are_described(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "one.csv", [{**row, "human": 1} for row in build_rows()])
    (label,) = study_rows(path).labels
    assert label.figures["jev"]["auroc"].without == "all labels are the same (1)"
    path = write_csv(tmp_path / "low.csv", [{**r, "jev": 1 - r["jev"]} for r in build_rows()])
    (note,) = (note for note in study_rows(path).notes if "opposite" in note)
    assert note.startswith(
        "label human: jev gives right answers lower scores than wrong ones (AUROC 0."
    )


def test_a_label_that_is_missing_lists_the_columns_that_say_right_and_wrong(
    tmp_path: Path,
) -> None:
    rows = [
        {**row, "hallucinated": ("yes", "no")[row["human"]], "verdict": "unsure"}
        for row in build_rows()
    ]
    rows[0]["human"] = "can't tell"
    with pytest.raises(InputError) as caught:
        study_rows(write_csv(tmp_path / "s.csv", rows), labels="humn")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/s.csv: no answer has the label humn; did you mean human")
    assert (
        "Fields that say right or wrong: --label hallucinated --positive no, --label human. "
        in message
    )
    with pytest.raises(InputError, match="Fields that say right or wrong: --label hallucinated"):
        study(write_csv(tmp_path / "s.csv", rows))


def test_repeated_questions_are_one_unit(tmp_path: Path) -> None:
    rows = [{**row, "question": f"Q{n // 4}?"} for n, row in enumerate(build_rows())]
    assert study_rows(write_csv(tmp_path / "s.csv", rows)).questions == 15
    assert study_rows(build_rows()).questions == 60


def test_two_raters_of_an_answer_give_the_ceiling(tmp_path: Path) -> None:
    rows = [
        {"id": row["id"], "jev": row["jev"], "annotator": who, "human": (row["human"] + late) % 2}
        for n, row in enumerate(build_rows())
        for who, late in (("ann", 0), ("bob", int(n < 6)), ("cy", 0))
    ]
    result = study_rows(write_csv(tmp_path / "s.csv", rows))
    (label,) = result.labels
    assert (result.answers, label.label.n) == (60, 60)
    assert label.figures["jev"]["auroc"].value == pytest.approx(EXPECTED)
    assert label.figures["people"]["auroc"].value == pytest.approx(0.96, abs=0.03)
    rows[1] |= {"jev": 0.77}
    with pytest.raises(InputError, match=r"s.csv:4: jev: the rows of 'a0' have 2 scores"):
        study_rows(write_csv(tmp_path / "s.csv", rows))


def test_ratings_of_a_table_are_matched_by_id(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "s.csv", build_rows())
    ratings = write_csv(
        tmp_path / "r.csv",
        [{"item": r["id"], "rater": "ann", "rating": r["human"]} for r in build_rows()],
    )
    (label,) = study(source, ratings=ratings, scores="jev", resamples=100).labels
    assert (label.label.name, label.label.n) == ("rating", 60)
    assert label.figures["jev"]["auroc"].value == pytest.approx(EXPECTED)


def langfuse(row: Mapping[str, Any]) -> Any:
    scores = [
        {"name": "jev", "value": row["jev"], "source": "EVAL", "dataType": "NUMERIC"},
        {"name": "human", "value": row["human"], "source": "ANNOTATION", "dataType": "BOOLEAN"},
        # A judge has a score of the same name.
        {"name": "human", "value": 1 - row["human"], "source": "EVAL", "dataType": "NUMERIC"},
    ]
    call = {"id": "g", "type": "GENERATION", "input": "Why?", "output": "So.", "model": "m"}
    return {
        **{"id": row["id"], "name": "chat", "input": "Why?", "output": "So."},
        **{"observations": [call], "scores": scores},
    }


def phoenix(row: Mapping[str, Any]) -> Any:
    annotations = [
        {"name": "jev", "annotator_kind": "LLM", "result": {"score": row["jev"], "label": None}},
        {
            **{"name": "human", "annotator_kind": "HUMAN"},
            "result": {"score": None, "label": ("incorrect", "correct")[row["human"]]},
        },
    ]
    return {
        **{"name": "chat", "context": {"trace_id": row["id"], "span_id": f"s{row['id']}"}},
        **{"span_kind": "LLM", "parent_id": None, "annotations": annotations},
        "attributes": {"input.value": "Why?", "output.value": "So."},
    }


def mlflow(row: Mapping[str, Any]) -> Any:
    def assess(name: str, value: Any, kind: str) -> Any:
        source = {"source_type": kind, "source_id": "x"}
        return {"assessment_name": name, "feedback": {"value": value}, "source": source}

    assessments = [
        assess("jev", row["jev"], "LLM_JUDGE"),
        assess("human", bool(row["human"]), "HUMAN"),
    ]
    text = MLFLOW_TRACE.read_text().replace(
        "tr-4ab999de4d4d430cf8af40460fe302fd", f"tr-{row['id']}"
    )
    trace = json.loads(text.replace("SrmZ3k1NQwz4r0BGD+MC/Q==", f"SrmZ{row['id']}"))
    trace["info"]["assessments"] = assessments
    return trace


def langsmith(row: Mapping[str, Any]) -> Any:
    feedback = {"jev": {"n": 1, "avg": row["jev"]}, "human": {"n": 1, "avg": row["human"]}}
    return {
        **{"id": row["id"], "trace_id": row["id"], "name": "chat", "run_type": "chain"},
        **{"inputs": {"question": "Why?"}, "outputs": {"output": "So."}},
        **{"parent_run_id": None, "dotted_order": row["id"], "feedback_stats": feedback},
    }


@pytest.mark.parametrize("build", [langfuse, phoenix, mlflow, langsmith])
def test_traces_with_scores_and_feedback_are_studied(
    build: Callable[[Mapping[str, Any]], Any], tmp_path: Path
) -> None:
    path = jsonl(tmp_path / "traces.jsonl", [build(row) for row in build_rows()])
    result = study_rows(path, scores="jev")
    (label,) = result.labels
    assert (result.answers, label.label.n, label.label.kind) == (60, 60, "binary")
    assert label.figures["jev"]["auroc"].value == pytest.approx(EXPECTED)


@pytest.mark.parametrize("form", ["semicolons", "excel", "parquet", "json of pandas", "frame"])
def test_any_table_has_raters(form: str, tmp_path: Path) -> None:
    source = SOURCES[form](tmp_path)
    ratings = read_ratings(source, raters=["human"])
    assert [rating.value for rating in ratings.ratings] == [row["human"] for row in build_rows()]
    left, remarks = leave_out_scores(read_ratings(source), source)
    assert {rating.rater for rating in left.ratings} == {"human"}
    name = "FILE" if form == "frame" else source
    count = len({row["jev"] for row in build_rows()})
    assert remarks == [
        f"jev: left out as a score, with {count} different values; to use it: trustassay calibrate "
        f"{name} --score jev"
    ]


def test_people_and_judges_of_a_trace_are_raters(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "traces.jsonl", [langfuse(row) for row in build_rows()])
    ratings = read_ratings(path, raters=["human", "human (people)"]).ratings
    by_rater = {
        name: [rating.value for rating in ratings if rating.rater == name]
        for name in ("human", "human (people)")
    }
    assert by_rater["human (people)"] == [row["human"] for row in build_rows()]
    assert by_rater["human"] == [1 - row["human"] for row in build_rows()]


def test_a_score_of_which_lower_is_better_is_turned() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"risk": float(x), "sure": 1 - float(x), "human": int(rng.random() > x)}
        for x in rng.random(200)
    ]
    plain = study(rows, labels="human", scores=["risk", "sure"], resamples=100)
    value = plain.labels[0].figures["risk"]["auroc"].value
    assert value is not None and value < 0.4
    turned = study(rows, labels="human", scores=["risk", "sure"], lower="risk", resamples=100)
    assert turned.labels[0].figures["risk"]["auroc"].value == pytest.approx(1 - value)
    assert "risk: lower is better; reversed here, so that higher is better" in turned.notes
    alone = study(rows, labels="human", scores="risk", resamples=100)
    assert any("if lower is better, add --lower risk" in note for note in alone.notes)
    with pytest.raises(InputError, match=r"--lower: .*'rsk'; did you mean risk"):
        study(rows, labels="human", lower="rsk", resamples=100)

"""``batch``: columns in, columns out, one value a row."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import trustassay
from tests.lazily import needed
from trustassay import InputError, UnknownNameError, UsageError
from trustassay.live import open_scorers
from trustassay.live.columns import Batch

pandas, polars, pyarrow = needed("pandas"), needed("polars"), needed("pyarrow")
PASSAGE = "The stone bridge was opened in 1911."
COLUMNS: dict[str, list[Any]] = {
    "question": ["When?", "When?", None, "When?"],
    "response": [PASSAGE, "It has nine arches.", PASSAGE, " "],
    "documents": [[PASSAGE], [PASSAGE], [PASSAGE], [PASSAGE]],
}
SCORES = [1.0, 0.0, None, None]
VERDICTS = ["supported", "not found", "failed", "failed"]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    open_scorers.close_all()


def faithful(**options: Any) -> Batch:
    return trustassay.batch("faithfulness", entailer="lexical", **options)


def as_ray_gives_it(columns: dict[str, list[Any]]) -> dict[str, Any]:
    result = {name: np.empty(len(values), dtype=object) for name, values in columns.items()}
    for name, values in columns.items():
        for row, value in enumerate(values):
            listed = isinstance(value, list)
            result[name][row] = np.array(value, dtype=object) if listed else value
    return result


def as_duckdb_gives_it(columns: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: pyarrow.chunked_array([pyarrow.array(v)]) for name, v in columns.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "table",
    [
        dict,
        as_ray_gives_it,
        as_duckdb_gives_it,
        lambda given: pandas.DataFrame(given),  # noqa: PLW0108 - imported when it is used
        lambda given: polars.DataFrame(given),  # noqa: PLW0108 - imported when it is used
        lambda given: pyarrow.table(given),  # noqa: PLW0108 - imported when it is used
    ],
    ids=["lists", "numpy", "arrow columns", "pandas", "polars", "arrow"],
)
def test_each_row_has_a_value_in_its_place(table: Callable[[Any], Any]) -> None:
    found = faithful()(table(COLUMNS))
    assert found["faithfulness_score"] == SCORES
    assert found["faithfulness_verdict"] == VERDICTS
    reasons = found["faithfulness_reason"]
    assert reasons[0] == "the passages support the answer"
    assert reasons[1].startswith("1 of 1 sentence not found")
    assert reasons[2].startswith("row 3: question: is missing")
    assert reasons[3] == "the response is blank"
    assert list(found) == [f"faithfulness_{name}" for name in ("score", "verdict", "reason")]


def test_many_rows_keep_their_order() -> None:
    rows = 300
    answers = [PASSAGE if row % 3 else "It has nine arches." for row in range(rows)]
    columns = {"question": ["When?"] * rows, "response": answers, "documents": [[PASSAGE]] * rows}
    found = faithful()(columns)["faithfulness_score"]
    assert found == [float(row % 3 > 0) for row in range(rows)]


def test_a_frame_is_scored_as_score_does_it() -> None:
    frame = pandas.DataFrame({name: values[:2] for name, values in COLUMNS.items()})
    frame["documents"] = ['["' + PASSAGE + '"]'] * 2  # a list in a text, as of a CSV file
    run = trustassay.score(frame, metrics="faithfulness", entailer="lexical").to_pandas()
    found = frame.assign(**faithful()(frame))
    assert list(found["faithfulness_score"]) == list(run["score"])
    assert list(found["faithfulness_verdict"]) == list(run["verdict"])
    assert list(found["faithfulness_reason"]) == list(run["reason"])


def test_a_row_that_a_metric_cannot_score_names_its_field_as_the_table_does() -> None:
    columns = {"q": ["When?"], "a": [PASSAGE], "d": [["not", "text", 7]]}
    found = faithful(fields={"question": "q", "response": "a", "documents": "d"})(columns)
    assert found["faithfulness_verdict"] == ["failed"]
    assert found["faithfulness_reason"][0].startswith("row 1: d[2]: expected")


def test_a_row_of_several_answers_is_one_row() -> None:
    row = {
        "question": "When?",
        "right_answer": "1911.",
        "hallucinated_answer": "1950.",
        "knowledge": PASSAGE,
    }
    found = faithful()({name: [value, value] for name, value in row.items()})
    reasons = [f"row {number}: row: has several answers, expected one" for number in (1, 2)]
    assert found["faithfulness_reason"] == reasons


def test_no_rows_are_no_values() -> None:
    """DuckDB asks with an empty frame what columns there will be."""
    found = faithful()({name: [] for name in COLUMNS})
    assert found == {f"faithfulness_{name}": [] for name in ("score", "verdict", "reason")}
    assert not open_scorers._scorers_by_key


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(InputError, match="of the same length, got question 1, response 2"):
        faithful()({"question": ["a"], "response": ["b", "c"]})


def test_wrong_names_are_told_before_a_worker_has_them() -> None:
    with pytest.raises(UnknownNameError, match="faithfulness"):
        trustassay.batch("faithfulnes")
    with pytest.raises(UsageError, match="out"):
        trustassay.batch("faithfulness", out="runs/x")  # type: ignore[call-arg]


def test_models_are_loaded_once_a_process_however_often_it_is_unpickled() -> None:
    sent = pickle.dumps(faithful())
    for _ in range(3):
        assert pickle.loads(sent)(COLUMNS)["faithfulness_score"] == SCORES
    assert len(open_scorers._scorers_by_key) == 1


@pytest.mark.slow
def test_another_process_takes_it_as_it_is() -> None:
    program = (
        "import pickle, sys\n"
        "found = pickle.load(sys.stdin.buffer)"
        f"({ {name: values[:1] for name, values in COLUMNS.items()}!r})\n"
        "print(found['faithfulness_score'])"
    )
    sent = pickle.dumps(faithful())
    done = subprocess.run(
        [sys.executable, "-c", program], input=sent, capture_output=True, check=True, timeout=60
    )
    assert done.stdout == b"[1.0]\n"


def test_two_metrics_have_columns_each() -> None:
    both = trustassay.batch(["faithfulness", "grounding:correctness=none"], entailer="lexical")
    found = both(COLUMNS)
    assert found["faithfulness_score"] == SCORES
    assert len(found["grounding_score"]) == 4

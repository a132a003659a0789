"""``batch`` as a function of DuckDB's relations and columns, and of Ray Data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import trustassay

PASSAGE = "The stone bridge was opened in 1911. It has seven arches."
RESPONSES = ["The stone bridge was opened in 1911.", "It has nine arches.", None]
SCORES = [1.0, 0.0, None]
VERDICTS = ["supported", "not found", "failed"]
ROWS: list[dict[str, Any]] = [
    {"n": n, "question": "When?", "response": RESPONSES[n % 3], "documents": [PASSAGE]}
    for n in range(60)
]


@pytest.fixture
def duckdb() -> Iterator[Any]:
    with pytest.importorskip("duckdb").connect() as connection:
        arrow = pytest.importorskip("pyarrow")
        connection.register("answers", arrow.Table.from_pylist(ROWS))
        yield connection


def test_a_relation_of_duckdb_is_mapped(duckdb: Any) -> None:
    faithful = trustassay.batch("faithfulness", entailer="lexical")
    new = {"n": "BIGINT", "faithfulness_score": "DOUBLE", "faithfulness_verdict": "VARCHAR"}
    told = duckdb.sql("from answers").map(
        lambda frame: frame.assign(**faithful(frame))[list(new)], schema=new
    )
    found = told.query("t", "select n, faithfulness_score, faithfulness_verdict from t order by n")
    rows = found.fetchall()
    assert [row[0] for row in rows] == list(range(60))
    assert [row[1] for row in rows[:3]] == SCORES
    assert [row[2] for row in rows] == VERDICTS * 20


def test_a_function_of_columns_in_duckdb(duckdb: Any) -> None:
    import pyarrow

    faithful = trustassay.batch("faithfulness", entailer="lexical")

    def score(question: Any, response: Any, documents: Any) -> Any:
        table = {"question": question, "response": response, "documents": documents}
        return pyarrow.array(faithful(table)["faithfulness_score"], pyarrow.float64())

    kinds = ["VARCHAR", "VARCHAR", "VARCHAR[]"]
    told = {"type": "arrow", "null_handling": "special"}
    duckdb.create_function("faithful", score, kinds, "DOUBLE", **told)
    found = duckdb.sql(
        "select n, faithful(question, response, documents) from answers order by n"
    ).fetchall()
    assert found[:3] == list(enumerate(SCORES))
    assert len(found) == 60


@pytest.fixture
def ray() -> Iterator[Any]:
    result = pytest.importorskip("ray")
    result.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1"
    )
    yield result
    result.shutdown()


def test_ray_data_maps_batches_in_its_workers(ray: Any) -> None:
    import ray.data

    faithful = trustassay.batch("faithfulness", entailer="lexical")
    told = ray.data.from_items(ROWS).map_batches(
        lambda part: {**part, **faithful(part)}, batch_size=16
    )
    rows = sorted(told.take_all(), key=lambda row: row["n"])
    assert [row["n"] for row in rows] == list(range(60))
    assert [row["faithfulness_verdict"] for row in rows] == VERDICTS * 20
    assert [row["faithfulness_score"] for row in rows[:2]] == SCORES[:2]
    assert rows[2]["faithfulness_score"] in (None, pytest.approx(float("nan"), nan_ok=True))
    assert rows[2]["faithfulness_reason"] == "the response is blank"

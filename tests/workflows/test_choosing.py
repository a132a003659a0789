"""Which metric runs where none is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import Recorder
from trustassay import score
from trustassay.api import default_metric
from trustassay.workflows.choosing import LOOKED_AT, choose_metric


def records(n: int, response: str = "It is red.", **fields: Any) -> list[dict[str, Any]]:
    row = {"question": "Which colour?", "response": response, "documents": ["It is red."]}
    return [{"id": str(i), **row, **fields} for i in range(n)]


@pytest.mark.parametrize(
    ("rows", "metric", "why"),
    [
        (records(3), "faithfulness", "3 of 3 answers bring documents and cite none"),
        (records(3, "It is red [1]."), "grounding", "3 of 3 answers cite their documents"),
        (records(3, "It is red [7]."), "faithfulness", "3 of 3 answers bring documents and cite"),
        (records(19) + records(1, "It is red [1]."), "faithfulness", "19 of 20 answers bring"),
        (records(18) + records(2, "Red [1]."), "grounding", "2 of 20 answers cite"),
        (records(2, documents=[]), "grounding", "no answer brings documents of its own"),
        (records(2, ""), "grounding", "no answer brings documents of its own"),
    ],
)
def test_what_the_samples_bring_decides(rows: list[dict[str, Any]], metric: str, why: str) -> None:
    found = choose_metric(rows)
    assert found.metric == metric
    assert found.why.startswith(why)
    assert found.source is rows


def test_nothing_of_an_iterator_is_lost() -> None:
    def samples() -> Iterator[dict[str, Any]]:
        yield from records(LOOKED_AT + 5)

    run = score(samples(), entailer=Recorder(), cache=None)
    assert len(run.assessments) == LOOKED_AT + 5
    assert list(run.summary) == ["faithfulness"]


def test_of_a_file_the_fields_are_read(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('question,said,shown\nWhich colour?,It is red.,"[""It is red.""]"\n')
    fields = {"response": "said", "documents": "shown"}
    assert default_metric(path, fields)[0] == "faithfulness"

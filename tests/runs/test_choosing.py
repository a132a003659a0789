"""Which metric runs where none is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import Recorder
from trustassay import score
from trustassay.runs import choose_metric as choosing
from trustassay.runs.choose_metric import MAX_RECORDS_READ, choose_metric
from trustassay.text.limits import MAX_ANSWER_CHARACTERS

ENTAILER: Any = {"entailer": Recorder(), "cache": None}


def records(n: int, response: str = "It is red.", **fields: Any) -> list[dict[str, Any]]:
    row = {"question": "Which colour?", "response": response, "documents": ["It is red."]}
    return [{**row, **fields} for _ in range(n)]


REFUSAL = "I could not find an answer in the documents."
GOLD: Any = {"documents": None, "answers": ["red"]}
CITED_ALONE = ["faithfulness", "grounding:cited_only=yes"]


def log(citing: int, of: int = 40, **fields: Any) -> list[dict[str, Any]]:
    """Return a log in which some answers cite; they are not the first ones."""
    return records(of - citing, **fields) + records(citing, "It is red [1].", **fields)


@pytest.mark.parametrize(
    ("rows", "metrics", "why"),
    [
        (log(0), ["faithfulness"], "0 of 40 answers cite"),
        (log(1), CITED_ALONE, "1 of 40 answers cite"),
        (log(4), CITED_ALONE, "4 of 40 answers cite"),
        (log(12), CITED_ALONE, "12 of 40 answers cite"),
        (log(20), CITED_ALONE, "20 of 40 answers cite"),
        (log(28), ["grounding"], "28 of 40 answers cite"),
        (log(40), ["grounding"], "40 of 40 answers cite"),
        (log(4, answers=["red"]), CITED_ALONE, "4 of 40 answers cite"),
        (
            log(0) + records(9, REFUSAL),
            ["faithfulness"],
            "0 of 40 answers cite their documents, 9 others are refusals",
        ),
        (
            log(9, 9) + records(31, REFUSAL),
            ["grounding"],
            "9 of 9 answers cite their documents, 31 others",
        ),
        (records(40, "Use `a[1]`:\n\n```\nx[1] = 2\n```"), ["faithfulness"], "0 of 40"),
        (records(40, "A list:\n1. red\n2. [blue]\n- no. [7]"), ["faithfulness"], "0 of 40"),
        (records(40, "It is red.\n\nSources:\n[1] Colours"), ["faithfulness"], "0 of 40"),
        (records(40, **GOLD), ["judge:by=entailer"], "40 of 40 records have gold answers"),
        (records(40, documents=[], answers=["red"]), ["judge:by=entailer"], "40 of 40 records"),
        (records(40, documents=None), ["faithfulness"], "no answer has documents"),
        (records(40, documents=[]), ["faithfulness"], "no answer has documents"),
        (records(2, ""), ["grounding"], "no record has both an answer and documents"),
        (records(3, "It is red [7]."), ["faithfulness"], "0 of 3 answers cite"),
    ],
)
def test_what_most_answers_are_decides(
    rows: list[dict[str, Any]], metrics: list[str], why: str
) -> None:
    found = choose_metric(rows)
    assert found.metrics == metrics
    assert found.reason.startswith(why)
    assert found.source is rows


def test_a_run_that_retrieves_documents_needs_none_beside_gold_answers() -> None:
    assert choose_metric(records(3, **GOLD), retrieves=True).metrics == ["grounding"]


def test_the_other_choice_is_an_option_that_works() -> None:
    for rows in (log(0, 3), log(1, 3), log(2, 3), records(3, **GOLD)):
        _, _, option = choose_metric(rows).reason.rpartition("--metric ")
        run = score(
            rows, metrics=option, **ENTAILER if option in ("faithfulness", "grounding") else {}
        )
        assert not any(one.error for one in run.assessments)


def test_answers_that_do_not_cite_need_no_look_for_that() -> None:
    run = score(log(4), **ENTAILER)
    assert list(run.summary) == ["faithfulness", "grounding"]
    assert run.looks().look_counts.flagged == 0
    assert run.summary["grounding"]["num_samples"] == 4
    found = [one for one in run.assessments if one.metric == "grounding" and one.score is None]
    assert {one.reason for one in found} == {"the answer cites no document"}
    assert len(found) == 36


def test_nothing_of_an_iterator_is_lost() -> None:
    def samples() -> Iterator[dict[str, Any]]:
        yield from records(MAX_RECORDS_READ + 5)

    run = score(samples(), entailer=Recorder(), cache=None)
    assert len(run.assessments) == MAX_RECORDS_READ + 5
    assert list(run.summary) == ["faithfulness"]


def test_of_a_file_the_fields_are_read(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('question,said,shown\nWhich colour?,It is red.,"[""It is red.""]"\n')
    fields = {"response": "said", "documents": "shown"}
    assert choose_metric(path, fields).metrics == ["faithfulness"]


def test_of_an_answer_that_is_too_long_to_assess_only_the_beginning_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths: list[int] = []
    monkeypatch.setattr(choosing, "find_refusal_in_words", lambda text: lengths.append(len(text)))
    choose_metric(records(1) + records(1, "a b " * MAX_ANSWER_CHARACTERS))
    assert lengths == [len("It is red."), MAX_ANSWER_CHARACTERS]

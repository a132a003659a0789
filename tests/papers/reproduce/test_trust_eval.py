"""The 28 figures of Trust-Eval by system, and the page's example."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from trustassay.calls.client import CallOptions
from trustassay.core.testing import ScriptedChat, ScriptedEntailer
from trustassay.errors import BackendError, UsageError
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import RecordSelection
from trustassay.papers.reproduce.setup import ReproductionSetup, load_paper
from trustassay.papers.reproduce.tables import ReproducedCell, ReproducedTable, Reproduction
from trustassay.papers.reproduce.trust_eval import PRINTED, recompute_example, reproduce
from trustassay.runs.intake import BadInputError, RunOptions
from trustassay.text.sentences import load_splitter

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared"))
REFUSAL = "I apologize, but I couldn't find an answer to your question in the search results."


def record(name: str, response: str | None, supports: int, model: str) -> dict[str, Any]:
    passage = {"title": "T", "text": "the tower is red", "supports": [supports]}
    answered = {} if response is None else {"response": response}
    return {
        "id": f"{model}-{name}",
        "question": f"Which {name}?",
        "answers": [["red"]],
        "documents": [passage],
        "model": model,
    } | answered


RECORDS = [
    record("a", "It is red [1].", 1, "good"),
    record("b", REFUSAL, 0, "good"),
    record("a", REFUSAL, 1, "bad"),
    record("b", "It is red [1].", 0, "bad"),
]


def write(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def entails(premise: str, hypothesis: str) -> tuple[float, float, float]:
    is_entailed = "red" in premise and "red" in hypothesis
    return (1.0, 0.0, 0.0) if is_entailed else (0.0, 1.0, 0.0)


def setup_of(data: Path | None, tmp_path: Path, **options: Any) -> ReproductionSetup:
    defaults = {
        "backends": {"entailer": ScriptedEntailer(entails)},
        "options": RunOptions(calls=CallOptions(cache=None), report=False),
    }
    return ReproductionSetup(tmp_path / "out", data, **{**defaults, **options})


def table(result: Reproduction, title: str) -> ReproducedTable:
    return next(one for one in result.tables if one.title.startswith(title))


def cell(result: Reproduction, title: str, key: str, system: str) -> ReproducedCell:
    wanted = table(result, title)
    cells = next(one.cells for one in wanted.rows if one.name == key)
    return cells[list(wanted.columns).index(system)]


def test_each_system_has_its_own_figures(tmp_path: Path) -> None:
    data = write(tmp_path / "answers.jsonl", RECORDS)
    result = reproduce(setup_of(data, tmp_path))
    title = "The 28 figures, profile=paper"
    assert table(result, title).columns == ["all", "good", "bad"]
    assert [row.name for row in table(result, title).rows] == list(PRINTED)
    expected = {
        # "good" answers what can be answered and refuses the rest; "bad" does the opposite.
        "reject_rec": (50, 100, 0),
        "answerable_prec": (50, 100, 0),
        "macro_f1": (50, 100, 0),
        "calib_claims_nli_f1": (50, 100, 0),
        "parametric_answered_claims_nli": (50, 0, 100),
        "answered_citation_f1": (100, 100, 100),
        "trust_score": (200 / 3, 100, 100 / 3),
    }
    for key, values in expected.items():
        cells = [cell(result, title, key, system) for system in ("all", "good", "bad")]
        assert [one.values["value"] for one in cells] == pytest.approx(values), key
    assert cell(result, title, "answered_num", "all").text == "2"
    exact = "Correctness by exact match, profile=paper"
    assert cell(result, exact, "calib_str_em_f1", "good").values["value"] == pytest.approx(100)


def test_the_printed_example_is_never_beside_other_answers(tmp_path: Path) -> None:
    data = write(tmp_path / "answers.jsonl", RECORDS)
    for one in reproduce(setup_of(data, tmp_path)).tables[:-1]:
        assert one.not_comparable
        assert not one.has_printed_figures


def test_ratios_of_the_page_follow_from_its_counts() -> None:
    rows = recompute_example().rows
    assert len(rows) == 13
    for row in rows:
        assert row.cells[0].values["value"] == pytest.approx(PRINTED[row.name], rel=1e-12)
        assert row.cells[0].text == row.cells[0].paper
    # A recall of 3 of 4 by hand: four cannot be answered, three of them are refused.
    assert rows[1].name == "reject_rec"
    assert rows[1].cells[0].values["value"] == 75


def test_a_changed_count_changes_the_recomputed_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {**PRINTED, "answered_num": 4}
    monkeypatch.setattr("trustassay.papers.reproduce.trust_eval.PRINTED", changed)
    ratios = {row.name: row.cells[0] for row in recompute_example().rows}
    assert ratios["reject_rec"].values["value"] == 50
    assert ratios["reject_rec"].text != ratios["reject_rec"].paper


@pytest.mark.skipif(not SHARED.exists(), reason="no shared data (TRUSTASSAY_SHARED)")
def test_the_printed_figures_are_those_of_the_page() -> None:
    text = next((SHARED / "seeds").glob("003_*.txt")).read_text()
    printed_pairs = re.findall(r'^    "([a-z_0-9]+)": ([\d.]+)', text, re.MULTILINE)
    assert [(key, float(value)) for key, value in printed_pairs] == list(PRINTED.items())


def test_without_punkt_the_other_splitter_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_without_punkt(name: Any) -> Any:
        if name == "punkt":
            raise BackendError("no punkt here")
        return load_splitter(name)

    monkeypatch.setattr("trustassay.metrics.grounding.options.load_splitter", load_without_punkt)
    data = write(tmp_path / "answers.jsonl", RECORDS)
    result = reproduce(setup_of(data, tmp_path))
    assert any(
        "instead of trust_eval's Punkt" in line and "no punkt here" in line
        for line in result.differences
    )


def test_sentences_as_gold_answers_have_no_exact_match(tmp_path: Path) -> None:
    gold = {"answers": [["The tower on the hill is painted in a bright red."]]}
    data = write(tmp_path / "answers.jsonl", [{**RECORDS[0], **gold}])
    result = reproduce(setup_of(data, tmp_path))
    assert "Correctness by exact match" in result.missing
    assert len(result.tables) == 3


def test_without_gold_answers_correctness_is_missing(tmp_path: Path) -> None:
    records = [{k: v for k, v in one.items() if k != "answers"} for one in RECORDS]
    data = write(tmp_path / "answers.jsonl", records)
    result = reproduce(setup_of(data, tmp_path))
    trust = cell(result, "The 28 figures, profile=paper", "trust_score", "all")
    assert trust.text == "–"
    assert trust.values["reason"]
    assert "Correctness and trust_score" in result.missing


def test_a_model_that_is_given_answers_the_questions(tmp_path: Path) -> None:
    records = [{**one, "model": ""} for one in RECORDS[:2]]
    data = write(tmp_path / "questions.jsonl", records)
    models = [ScriptedChat("It is red [1].", name="one"), ScriptedChat(REFUSAL, name="two")]
    result = reproduce(setup_of(data, tmp_path, models=models))
    title = "The 28 figures, profile=paper"
    assert cell(result, title, "answered_num", "one").text == "2"
    assert cell(result, title, "answered_num", "two").text == "0"
    # Three tables, and each question was asked once.
    assert [len(model.requests) for model in models] == [2, 2]


def test_a_model_is_asked_the_bundled_questions_whoever_answered_them(tmp_path: Path) -> None:
    model = ScriptedChat("It is red [1].", name="new")
    setup = setup_of(None, tmp_path, models=[model], selection=RecordSelection(limit=2))
    result = reproduce(setup)
    # Two questions of each of the two bundled files.
    assert result.data.startswith("4 answers by the given models to the bundled questions")
    assert table(result, "The 28 figures, profile=paper").columns == ["new"]
    assert len(model.requests) == 4


def test_a_model_of_no_row_is_refused_and_the_error_says_what_model_does(tmp_path: Path) -> None:
    data = write(tmp_path / "answers.jsonl", RECORDS)
    model = ScriptedChat("It is red [1].", name="new")
    with pytest.raises(InputError, match=r"bad, good.*only rows that name it .* or no model"):
        reproduce(setup_of(data, tmp_path, models=[model]))
    assert not model.requests


def test_systems_with_few_answers_have_the_reason_why_no_interval_is_shown(tmp_path: Path) -> None:
    data = write(tmp_path / "answers.jsonl", RECORDS)
    result = reproduce(setup_of(data, tmp_path))
    notes = " ".join(table(result, "The 28 figures, profile=paper").notes)
    assert "good (" in notes
    assert "bad (" in notes
    assert "too few scored answers: 2" in notes


def test_bad_data_say_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        reproduce(setup_of(tmp_path / "nowhere", tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"answers\.jsonl.*documents"):
        reproduce(setup_of(tmp_path / "empty", tmp_path))
    with pytest.raises(InputError, match=r"blank\.jsonl"):
        reproduce(setup_of(write(tmp_path / "blank.jsonl", []), tmp_path))
    bare = write(tmp_path / "bare.jsonl", [{"question": "Who?", "response": "She."}])
    with pytest.raises(BadInputError, match="documents"):
        reproduce(setup_of(bare, tmp_path))
    with pytest.raises(UsageError, match="--judge"):
        reproduce(setup_of(bare, tmp_path, judge="openai:gpt-4o"))


@pytest.mark.slow
def test_the_bundled_answers_have_figures_for_three_systems(tmp_path: Path) -> None:
    result = reproduce(ReproductionSetup(tmp_path / "out"))
    result.write(tmp_path / "out")
    columns = table(result, "The 28 figures, profile=default").columns
    assert columns == ["all", "Qwen2.5-Coder-1.5B-Instruct", "model-a", "model-b"]
    assert cell(result, "The 28 figures, profile=paper", "num_samples", "all").text == "92"
    page = (tmp_path / "out/reproduction.html").read_text()
    assert "recomputed from its counts" in page


# Without a question it is no sample; without documents it lacks what the metric needs.
@pytest.mark.parametrize("field", ["question", "documents"])
def test_skipped_records_are_counted(tmp_path: Path, field: str) -> None:
    faulty = {name: value for name, value in RECORDS[0].items() if name != field}
    data = write(tmp_path / "answers.jsonl", [*RECORDS, {**faulty, "id": "c"}])
    skipping = RunOptions(calls=CallOptions(cache=None), report=False, skip_bad=True)
    selection = RecordSelection(skip_bad=True)
    setup = setup_of(data, tmp_path, options=skipping, selection=selection)
    result = load_paper("trust-eval")(setup)
    assert result.data.endswith(" 1 faulty record was skipped.")

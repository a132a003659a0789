"""FEWL's tables, on small files whose figures are computed by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.papers.material import question, scripted
from tests.support import ROOT, jsonl
from trustassay.calls.client import CallOptions
from trustassay.errors import UsageError
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import RecordSelection
from trustassay.papers.reproduce.fewl import reproduce
from trustassay.papers.reproduce.fewl.inputs import FILES
from trustassay.papers.reproduce.fewl.models import (
    PUBLISHED_RATES,
    PublishedRate,
    digest_outputs,
)
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.papers.reproduce.tables import (
    ReproducedCell,
    ReproducedTable,
    Reproduction,
)
from trustassay.report.document import Bars
from trustassay.runs.intake import BadInputError, RunOptions

N = 24
Reproduce = Callable[..., Reproduction]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reproduce:
    """Compute the tables of the files in `data`, with a similarity of words and no real model."""
    scripted(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("scripted", "quick"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    (tmp_path / "data").mkdir()

    def call(
        data: Path | None = None, limit: int | None = None, out: str = "out", **options: Any
    ) -> Reproduction:
        backends = {"similarity": "python:scripted:alike", "embedder": "python:quick:embedder"}
        setup = ReproductionSetup(
            folder=tmp_path / out,
            data=data or tmp_path / "data",
            backends=backends | options.pop("backends", {}),
            options=RunOptions(calls=CallOptions(cache=None)),
            selection=RecordSelection(limit=limit),
            **options,
        )
        return reproduce(setup)

    return call


def chale(n: int, *, kinds: Sequence[str] = ("mid-halu", "halu")) -> list[dict[str, Any]]:
    """Right answers, and wrong ones that have one word in common with them."""
    rows = []
    for i in range(n):
        texts = {"non-halu": f"right {i}", "mid-halu": f"wrong {i}", "halu": f"odd thing {i}"}
        rows += [
            {"id": f"q{i}-{kind}", "question": f"what is thing {i}", "response": texts[kind],
             "label": int(kind == "non-halu"), "kind": kind}
            for kind in ("non-halu", *kinds)
        ]  # fmt: skip
    return rows


def references(n: int, **answers: Callable[[int], Any]) -> list[dict[str, Any]]:
    rows = []
    for i in range(n):
        texts = {name: answer(i) for name, answer in answers.items()}
        rows.append({"question": f"what is thing {i}", "references": texts})
    return rows


def tables_of(result: Reproduction, number: str) -> list[ReproducedTable]:
    return [table for table in result.tables if table.number == number]


def value_of(table: ReproducedTable, row: str, column: int = 0) -> Any:
    (match,) = [one for one in table.rows if one.name == row]
    return match.cells[column].values["value"]


def half_right(i: int) -> list[str]:
    """A right answer first for even numbers, a wrong one first for odd ones; two of three right."""
    texts = [f"right {i}", f"wrong {i}", f"right {i}"]
    return texts if i % 2 == 0 else [texts[1], texts[0], texts[0]]


def cell_of(table: ReproducedTable, row: str, column: int = 0) -> ReproducedCell:
    (match,) = [one for one in table.rows if one.name == row]
    return match.cells[column]


def test_single_counts_one_answer_and_multi_all_of_them(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(N))
    jsonl(tmp_path / "data" / "references.jsonl", references(N, half=half_right))
    result = run(repeats=200)
    (table,) = tables_of(result, "Table 1")
    assert table.columns == ["non-hallu > half-hallu", "non-hallu > hallu"]
    cell = cell_of(table, "single + no penalty")
    # The wrong answer is like itself (1) and like the right one by a third.
    assert cell.values["as_recorded"]["value"] == pytest.approx(50)
    # The drawn answer is right two times of three: mean and deviation of a binomial share.
    expected = 100 * (2 / 3 * 1 / 3 / N) ** 0.5
    assert cell.values["sd"] == pytest.approx(expected, rel=0.2)
    assert cell.values["mean_of_repeats"] == pytest.approx(100 * 2 / 3, abs=3 * expected / 200**0.5)
    assert cell.values["value"] == cell.values["mean_of_repeats"]
    assert cell.text.startswith(f"{cell.values['value']:.1f} ± {cell.values['sd']:.2f} (")
    low, high = cell.values["interval"]
    assert low < cell.values["value"] < high
    # "odd thing 3" is less like either than the right answer is.
    assert value_of(table, "single + no penalty", 1) == pytest.approx(100)
    multi = cell_of(table, "multi + no penalty").values
    assert multi["as_recorded"]["value"] == pytest.approx(100)
    # Of three that are drawn two or more are right: 20 of 27.
    assert multi["value"] == pytest.approx(100 * 20 / 27, abs=3 * multi["sd"] / 200**0.5)
    # Without pairs there are no weights by expertise; with labelled answers there are ideal ones.
    assert value_of(table, "FEWL (Ours)") is None
    (ablation,) = tables_of(result, "Table 2")
    assert value_of(ablation, "FEWL (Ideal)") is not None
    assert not table.has_printed_figures
    assert table.not_comparable


def test_figures_do_not_depend_on_the_order_of_references(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(N))
    cells = []
    orders = {
        "right": lambda i: [f"right {i}", f"wrong {i}", f"wrong {i}"],
        "wrong": lambda i: [f"wrong {i}", f"wrong {i}", f"right {i}"],
    }
    for first, answers in orders.items():
        jsonl(tmp_path / "data" / "references.jsonl", references(N, some=answers))
        (table,) = tables_of(run(repeats=300, out=first), "Table 1")
        cells.append(cell_of(table, "single + no penalty").values)
    assert [cell["as_recorded"]["value"] for cell in cells] == [100, 0]
    for cell in cells:
        assert cell["value"] == pytest.approx(100 / 3, abs=3 * cell["sd"] / 300**0.5)


def test_one_repeat_gives_the_figures_as_recorded(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(N))
    jsonl(tmp_path / "data" / "references.jsonl", references(N, half=half_right))
    result = run(repeats=1)
    (table,) = tables_of(result, "Table 1")
    assert cell_of(table, "single + no penalty").text.startswith("50.0 (")
    assert any(line.startswith("No ±") for line in result.differences)


def test_rows_without_pairs_count_all_questions(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(N))
    known = references(N, half=half_right)
    for i, row in enumerate(known[:9]):
        row |= {"wrong_answers": [f"wrong {i}"], "corrected_answers": [f"right {i}"]}
    jsonl(tmp_path / "data" / "references.jsonl", known)
    (table,) = tables_of(run(), "Table 1")
    assert cell_of(table, "single + penalty").values["n"] == N
    assert cell_of(table, "single + penalty").values["questions_with_pairs"]["n"] == 9
    assert cell_of(table, "multi + no penalty").values["n"] == N
    assert cell_of(table, "FEWL (Ours)").values["n"] == 9
    assert any("use the 9 questions that have" in note for note in table.notes)


def test_a_generator_without_pairs_empties_the_rows_that_need_them(
    run: Reproduce, tmp_path: Path
) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(N))
    jsonl(tmp_path / "data" / "TruthfulQA.jsonl", [question(i) for i in range(N)])
    jsonl(tmp_path / "data" / "references.jsonl", references(N, half=half_right))
    result = run(backends={"generator": "python:scripted:mumbling"})
    (table,) = tables_of(result, "Table 1")
    assert value_of(table, "multi + no penalty") is not None
    assert cell_of(table, "FEWL (Ours)").text == "–"
    for place in ("FEWL (Ours), single-best (half)", "Figures 3 and 4"):
        assert "has no pair" in result.missing[place]


def test_a_limited_set_is_described_as_one(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(N))
    jsonl(tmp_path / "data" / "references.jsonl", references(N, half=half_right))
    assert run(limit=6).data.startswith("Only the first 6 records of each file of the data.")


def test_charts_without_data_are_left_out(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "TruthfulQA.jsonl", [question(i) for i in range(N)])
    known = references(N, some=lambda i: f"right {i}")
    for i, row in enumerate(known):
        row |= {"wrong_answers": [f"odd {i}"], "corrected_answers": [f"right {i}"]}
    jsonl(tmp_path / "data" / "references.jsonl", known)
    charts = {chart.title: chart for chart in run().charts}
    # No neighbour's answer is right of another question.
    assert "Right answers by rank" not in charts
    (bars,) = charts["Answers nearer to a right answer (1) or not (0)"].parts
    assert isinstance(bars, Bars)
    assert bars.axis == ("0", "1")


def test_the_page_and_the_messages_name_the_same_files(run: Reproduce, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run()
    # Without labels these answers rank no models, so that Table 4 is missing too.
    answers = [{**row, "label": None} for row in models_of(2)]
    jsonl(tmp_path / "data" / "samples.jsonl", answers)
    missing = " ".join(run().missing.values())
    page = (ROOT / "docs" / "papers" / "fewl.md").read_text()
    for kind, file in FILES.items():
        for pattern in file.patterns:
            assert f"`{pattern}`" in str(caught.value)
            assert f"`{pattern}`" in missing or kind == "samples"
            assert f"`{pattern}`" in page


def test_the_best_answer_is_counted_of_all_questions(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "TruthfulQA.jsonl", [question(i) for i in range(N)])
    # The first answer is right for every third question only.
    known = references(N, some=lambda i: [f"right {i}" if i % 3 == 0 else f"odd {i}", f"right {i}"])
    for i, row in enumerate(known):
        row |= {"wrong_answers": [f"odd {i}"], "corrected_answers": [f"right {i}"]}
    jsonl(tmp_path / "data" / "references.jsonl", known)
    result = run()
    (table,) = tables_of(result, "Table 3")
    (cell,) = next(row for row in table.rows if row.name == "single + no penalty").cells
    assert cell.values["as_recorded"]["count"] == N / 3
    sd = cell.values["count_sd"]
    # The right one of two is drawn half of the times, and where both are right always.
    assert cell.values["count"] == pytest.approx(N * 2 / 3, abs=3 * sd / 10**0.5)
    assert cell.text.startswith(f"{cell.values['count']:.1f} ± {sd:.2f} of {N} (")
    chance = next(row for row in table.rows if row.name.startswith("chance"))
    assert chance.cells[0].values["value"] == pytest.approx(100 / 3)
    # The second answer is the better one wherever they differ, so expertise finds all of them.
    (ablation,) = tables_of(result, "Table 9")
    assert value_of(ablation, "FEWL (Ours)") == value_of(ablation, "FEWL (Ideal)")
    (experts,) = tables_of(result, "Figures 3 and 4")
    assert experts.rows[0].cells[0].values["mean"] == pytest.approx(1 / 3)
    assert [chart.title for chart in result.charts]
    assert "Table 7" in result.missing


def test_models_with_several_answers_have_a_table_each(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(N))
    known = references(
        N, several=half_right, one=lambda i: f"right {i}", other=lambda i: f"wrong {i}"
    )
    jsonl(tmp_path / "data" / "references.jsonl", known)
    first, second = tables_of(run(), "Table 1")
    assert first.title.endswith("references: several")
    assert second.title.endswith("references: one, other")
    single, multi = (cell_of(second, f"{row} + no penalty").values for row in ("single", "multi"))
    assert single["as_recorded"]["value"] == pytest.approx(100)
    assert multi["as_recorded"]["value"] == pytest.approx(0)
    # Either model is drawn half of the times.
    assert single["value"] == pytest.approx(50, abs=3 * single["sd"] / 10**0.5)


def test_one_reference_answer_has_no_row_of_several(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(N))
    jsonl(tmp_path / "data" / "references.jsonl", references(N, one=lambda i: f"right {i}"))
    (table,) = tables_of(run(), "Table 1")
    assert value_of(table, "single + no penalty") == pytest.approx(100)
    assert value_of(table, "multi + no penalty") is None
    assert all("±" not in cell.text for row in table.rows for cell in row.cells)


def test_questions_without_references_are_left_out_and_counted(
    run: Reproduce, tmp_path: Path
) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(N))
    jsonl(tmp_path / "data" / "references.jsonl", references(N - 4, half=half_right))
    (table,) = tables_of(run(), "Table 1")
    assert "12 of 72 records have no references." in table.notes
    assert table.rows[0].cells[0].values["n"] == N - 4


def test_references_are_asked_for_five_answers_and_for_pairs(
    run: Reproduce, tmp_path: Path
) -> None:
    jsonl(tmp_path / "data" / "halueval.jsonl", chale(N, kinds=["halu"]))
    result = run(
        references=["several=python:scripted:several"],
        backends={"generator": "python:scripted:pairs"},
    )
    (table,) = tables_of(result, "Table 10")
    assert "3 reference answers each" in table.notes[0]
    assert value_of(table, "FEWL (Ours)") is not None
    assert len((tmp_path / "pairs.asked").read_text().splitlines()) == N


def test_a_judge_that_always_says_a_ties_all_answers_after_examples(
    run: Reproduce, tmp_path: Path
) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(N))
    jsonl(tmp_path / "data" / "references.jsonl", references(N, half=half_right))
    result = run(models=["python:scripted:true"], judge="python:scripted:first")
    (table,) = tables_of(result, "Table 6")
    assert table.columns == ("baseline, %", "FEWL, %", "tie, %")
    # The judge names the first answer in both orders, which contradict each other.
    assert [cell.values["value"] for cell in table.rows[0].cells] == [0, 0, 100]
    assert "(half)" in table.rows[0].name
    # Some questions are examples: where the first reference is wrong, the choices differ.
    assert any(note.endswith(f"; {N} questions asked") for note in table.notes)


def test_without_references_the_tables_say_what_they_need(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "chale.jsonl", chale(2))
    result = run()
    assert not result.tables
    for number in ("Table 1", "Table 2", "Table 8", "Table 11", "Table 12"):
        assert "--reference" in result.missing[number]
    assert result.missing["Table 4"] == "needs a file `five-choice*` or `*trivia_questions*`"


def models_of(n: int) -> list[dict[str, Any]]:
    """Answers of two models, of which one is right of all and the other of even questions."""
    rows = []
    for i in range(n):
        good = {"model": "good", "response": f"right {i}", "label": 1}
        poor = {
            "model": "poor",
            "response": f"{'odd' if i % 2 else 'right'} {i}",
            "label": 1 - i % 2,
        }
        rows += [
            question(i, references={"judge": f"right {i}"}, **answer) | {"id": f"{i}-{k}"}
            for k, answer in enumerate((good, poor))
        ]
    return rows


def test_models_are_ranked_and_their_pairs_ordered(run: Reproduce, tmp_path: Path) -> None:
    jsonl(tmp_path / "data" / "samples.jsonl", models_of(N))
    jsonl(tmp_path / "data" / "five-choice.jsonl", models_of(N))
    result = run()
    (ranking,) = tables_of(result, "Table 4")
    assert [row.name for row in ranking.rows] == ["good", "poor"]
    assert ranking.rows[1].cells[0].values["value"] == 0.5
    assert ranking.rows[0].cells[1].values["mean"] > ranking.rows[1].cells[1].values["mean"]
    (pairs,) = tables_of(result, "Table 5")
    # Where they differ, the better answer is the reference's: both variants order all pairs.
    assert [cell.values["value"] for cell in pairs.rows[0].cells] == [100, 100]
    assert pairs.rows[0].cells[0].values["n"] == N / 2
    # Questions without pairs of wrong and corrected answers are no loss for this table.
    assert not any("weights `ours`" in note for note in pairs.notes)
    assert any(
        note.startswith(f"True rates: over {N} questions. FEWL, order and tau: over {N} questions")
        for note in ranking.notes
    )


def test_answers_without_a_label_are_counted_beside_the_true_rates(
    run: Reproduce, tmp_path: Path
) -> None:
    rows = models_of(N)
    for row in rows[:2]:
        del row["label"]
    jsonl(tmp_path / "data" / "five-choice.jsonl", rows)
    (ranking,) = tables_of(run(), "Table 4")
    assert [row.cells[0].values["n"] for row in ranking.rows] == [N - 1, N - 1]
    assert any("Left out of the true rates: 2 answers" in note for note in ranking.notes)


def test_two_models_that_never_differ_have_no_order(run: Reproduce, tmp_path: Path) -> None:
    rows = [
        question(i, references={"judge": f"right {i}"}, model=model, response=f"right {i}", label=1)
        | {"id": f"{i}-{model}"}
        for i in range(N)
        for model in ("one", "other")
    ]
    jsonl(tmp_path / "data" / "samples.jsonl", rows)
    result = run()
    (ordered,) = tables_of(result, "Table 5")
    assert [cell.text for cell in ordered.rows[0].cells] == ["–", "–"]
    (ranking,) = tables_of(result, "Table 4")
    assert any("(1 pair does not differ significantly)" in note for note in ranking.notes)


RESULTS = """Total score: 0 of 4

Question 1: what is thing 0
    A. right 0
    B. wrong 0
    C. I don't know
B. wrong 0 (incorrect A.)
"""


def test_the_printed_rate_stands_beside_the_published_outputs_alone(
    run: Reproduce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"question": f"what is thing {i}", "answers": [
            {"text": f"right {i}", "correct": True, "choice": "A"},
            {"text": f"wrong {i}", "correct": False, "choice": "B"},
            {"text": "I don't know", "correct": False, "choice": "C"}]}
        for i in range(2)
    ]  # fmt: skip
    jsonl(tmp_path / "data" / "trivia_questions.jsonl", rows)
    path = tmp_path / "data" / "test_results_x.json_any-name.txt"
    path.write_text(RESULTS)
    from trustassay.papers.experiments.answers import read_records

    questions = read_records(tmp_path / "data" / "trivia_questions.jsonl", RecordSelection())
    table = {digest_outputs(path, questions): PublishedRate(".1954", 144)}
    monkeypatch.setattr("trustassay.papers.reproduce.fewl.models.PUBLISHED_RATES", table)
    (ranking,) = tables_of(run(), "Table 4")
    assert ranking.rows[0].name == "any-name"
    assert ranking.rows[0].cells[0].paper == ".1954"
    assert ranking.rows[0].cells[0].values["value"] == 0.5
    expected = "any-name: 1 of 2 are right in the file, 144 of 737 in the paper."
    assert ranking.notes[0] == expected
    assert "nothing can be ranked" in ranking.notes[1]
    path.write_text(RESULTS.replace("B. wrong 0 (incorrect A.)", "C. I don't know (uncertain)"))
    (ranking,) = tables_of(run(), "Table 4")
    assert not ranking.has_printed_figures


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"question": "what?", "response": "this"}], "label"),
        ([{"question": "what?", "response": "this", "label": 1}], "right and a wrong answer"),
    ],
)
def test_faulty_files_are_named(
    run: Reproduce, tmp_path: Path, rows: list[dict[str, Any]], message: str
) -> None:
    path = jsonl(tmp_path / "data" / "chale.jsonl", rows)
    with pytest.raises((InputError, BadInputError), match=message):
        run()
    known = [{"question": "what?", "references": {"one": "this"}}]
    jsonl(tmp_path / "data" / "references.jsonl", known)
    with pytest.raises((InputError, BadInputError), match=message) as caught:
        run()
    assert path.name in str(caught.value)


def test_a_folder_without_the_files_lists_their_names(run: Reproduce, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"truthfulqa.*Table 3.*samples.*Table 5"):
        run()
    with pytest.raises(InputError, match="no such file or folder"):
        run(data=tmp_path / "nowhere")
    jsonl(tmp_path / "data" / "chale.jsonl", chale(2))
    jsonl(tmp_path / "data" / "references.jsonl", [{"question": "what is thing 0"}])
    with pytest.raises(InputError, match=r"references\.jsonl: no record has `references`"):
        run()


@pytest.mark.parametrize(
    ("rows", "table"),
    [
        (chale(2), "Table 1"),
        ([question(i) for i in range(2)], "Table 3"),
        (models_of(2), "Table 5"),
    ],
)
def test_a_single_file_is_recognised_by_its_records(
    run: Reproduce, tmp_path: Path, rows: list[dict[str, Any]], table: str
) -> None:
    path = jsonl(tmp_path / "any.jsonl", [{"references": {"one": "right 0"}} | row for row in rows])
    assert tables_of(run(data=path), table)


SHARED_RESULTS = "test_results_truthfulqa_trivia_questions.json_text-davinci-003.txt"


def test_the_authors_outputs_are_recognised(shared_haltt4llm: Path) -> None:
    from trustassay.papers.experiments.answers import read_records

    source = shared_haltt4llm / "truthfulqa_trivia_questions.json"
    questions = read_records(source, RecordSelection())
    assert (
        PUBLISHED_RATES[digest_outputs(shared_haltt4llm / SHARED_RESULTS, questions)].text
        == ".1954"
    )
    other = shared_haltt4llm / SHARED_RESULTS.replace("-003", "-002")
    assert digest_outputs(other, questions) not in PUBLISHED_RATES


@pytest.fixture
def shared_haltt4llm() -> Path:
    from tests.papers.test_choices import HALTT

    if not HALTT.exists():
        pytest.skip("haltt4llm's files are not there")
    return HALTT


@pytest.mark.slow
def test_the_bundled_set_gives_the_tables_without_a_model(tmp_path: Path) -> None:
    setup = ReproductionSetup(folder=tmp_path, options=RunOptions(calls=CallOptions(cache=None)))
    result = reproduce(setup)
    numbers = {table.number.partition(" (")[0] for table in result.tables}
    figures = {"Figure 2", "Figures 3 and 4"}
    assert numbers >= {f"Table {n}" for n in (1, 2, 3, 4, 5, 8, 9, 10, 11, 12)} | figures
    assert {"Table 6", "Table 7"} <= set(result.missing)
    first = tables_of(result, "Table 1")[0]
    # Its answers were made to be told apart: wrong ones answer another question.
    assert value_of(first, "single + no penalty", 1) > 80
    assert value_of(first, "multi + no penalty", 1) > 80
    assert value_of(first, "FEWL (Ours)", 1) > 80
    (ranking,) = tables_of(result, "Table 4")
    assert ranking.rows[0].name == "Qwen2.5-Coder-1.5B-Instruct"
    assert ranking.rows[0].cells[0].values["count"] == 27
    assert not any(table.has_printed_figures for table in result.tables)
    # Killed and started again it goes on: nothing is computed anew.
    assert reproduce(setup).to_dict() == result.to_dict()


def test_a_backend_that_no_table_uses_is_refused(run: Reproduce) -> None:
    with pytest.raises(UsageError, match="--backend entailer: has no effect on the tables of fewl"):
        run(backends={"entailer": "lexical"})

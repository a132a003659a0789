"""The tables of Kersting et al., from small data whose gamma is known by hand.

The scripted embedder gives the texts "A" and "B" vectors at a right angle: of ten answers with k
times "B" to the original "A", gamma is k / sqrt((10 - k)^2 + k^2).
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trustassay.calls.client import CallOptions
from trustassay.core.testing import ScriptedChat, ScriptedEmbedder
from trustassay.errors import UsageError
from trustassay.input.records import InputError
from trustassay.papers.reproduce.harmonicity import published, reproduce
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.papers.reproduce.tables import ReproducedCell, ReproducedTable, Reproduction
from trustassay.report.document import DrawingBlock, Panels
from trustassay.runs.intake import BadInputError, RunOptions

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared"))
RATINGS = {"w1": (5, 5), "w2": (4, 4), "p1": (1, 1), "p2": (3, 4)}
"""Ratings of two people by item; the means are 5, 4, 1 and 3.5."""
TURNED = {"w1": 0, "w2": 1, "p1": 3, "p2": 0}
"""How many of ten answers are "B"."""


def gamma(turned: int) -> float:
    return turned / sqrt((10 - turned) ** 2 + turned**2)


def record(name: str, **fields: Any) -> dict[str, Any]:
    turned = TURNED.get(name, 0)
    resamples = ["B"] * turned + ["A"] * (10 - turned)
    question = f"What is {name}?"
    return {"id": name, "question": question, "response": "A", "resamples": resamples} | fields


def write(folder: Path, files: Mapping[str, Sequence[Mapping[str, Any]]]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, records in files.items():
        if name.endswith(".csv"):
            with (folder / name).open("w", newline="") as file:
                writer = csv.DictWriter(file, list(records[0]))
                writer.writeheader()
                writer.writerows(records)
        else:
            (folder / name).write_text("".join(json.dumps(one) + "\n" for one in records))
    return folder


def rows_of_ratings(ratings: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    return [
        {"item": item, "rater": f"person{number}", "rating": rating}
        for item, values in ratings.items()
        for number, rating in enumerate(values)
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two domains by file, one model each, and two raters."""
    return write(
        tmp_path / "questions",
        {
            "webqa.jsonl": [record("w1", model="big"), record("w2", model="big")],
            "programmingqa.jsonl": [record("p1", model="small"), record("p2", model="small")],
            "ratings.csv": rows_of_ratings(RATINGS),
        },
    )


def setup_of(data: Path | None, tmp_path: Path, **options: Any) -> ReproductionSetup:
    calls = CallOptions(cache=None)
    backends = {"embedder": ScriptedEmbedder()}
    return ReproductionSetup(
        tmp_path / "out",
        data,
        **{"backends": backends, "options": RunOptions(calls=calls, report=False), **options},
    )


def table(result: Reproduction, heading: str) -> ReproducedTable:
    return next(one for one in result.tables if one.heading.startswith(heading))


def cell(result: Reproduction, heading: str, row: str, column: str) -> ReproducedCell:
    wanted = table(result, heading)
    cells = next(one.cells for one in wanted.rows if one.name.startswith(row))
    return cells[list(wanted.columns).index(column)]


def test_means_are_those_of_the_answers_and_of_the_stable_ones(data: Path, tmp_path: Path) -> None:
    result = reproduce(setup_of(data, tmp_path))
    heading = "Table 8: means by model, webqa"
    assert cell(result, heading, "big", "⟨γ⟩").values["value"] == pytest.approx(gamma(1) / 2)
    # The standard error of 0 and g is g / 2, in the paper's form.
    assert cell(result, heading, "big", "⟨γ⟩").text == "0.055(55)"
    assert cell(result, heading, "big", "⟨γ | γ<.05⟩").values["value"] == pytest.approx(0)
    assert cell(result, heading, "big", "⟨R⟩").text == "4.50(50)"
    assert cell(result, heading, "big", "⟨R | γ<.05⟩").text == "5.00"
    assert cell(result, heading, "big", "γ<.05, %").values["value"] == 50
    assert "40" in cell(result, heading, "big", "⟨R⟩").values["reason"]
    programming = cell(result, "Table 9: means by model, programmingqa", "small", "⟨R⟩")
    assert programming.values["value"] == pytest.approx((1 + 3.5) / 2)


def test_intervals_hold_the_mean_from_forty_answers_on(tmp_path: Path) -> None:
    records = [{**record("w2"), "id": f"q{n}", "question": f"Who is {n}?"} for n in range(40)]
    for n, one in enumerate(records):
        one["label"] = n % 2
    path = write(tmp_path / "many", {"answers.jsonl": records})
    result = reproduce(setup_of(path, tmp_path))
    share = cell(result, "Tables 8 to 10", "no model named", "⟨R⟩").values
    low, high = share["interval"]
    assert low < share["value"] == 0.5 < high
    low, high = cell(result, "Tables 8 to 10", "no model named", "⟨γ⟩").values["interval"]
    assert low <= gamma(1) <= high


def test_agreement_is_that_of_statsmodels(data: Path, tmp_path: Path) -> None:
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    all_in_one = [record(name, domain="one") for name in RATINGS]
    for path in data.glob("*.jsonl"):
        path.unlink()
    write(data, {"answers.jsonl": all_in_one})
    kappa = cell(
        reproduce(setup_of(data, tmp_path)), "Section 4: agreement", "one", "Fleiss' kappa"
    )
    counts, _ = aggregate_raters(np.array(list(RATINGS.values())))
    assert kappa.values["value"] == pytest.approx(fleiss_kappa(counts))


def test_one_rater_has_no_agreement_and_the_cell_says_so(data: Path, tmp_path: Path) -> None:
    write(data, {"ratings.csv": rows_of_ratings({k: v[:1] for k, v in RATINGS.items()})})
    result = reproduce(setup_of(data, tmp_path))
    kappa = cell(result, "Section 4: agreement", "webqa", "Fleiss' kappa")
    assert kappa.text == "–"
    assert "at least two" in kappa.values["reason"]
    reason = "1 rater: agreement needs at least two for an answer."
    assert any(reason in note for note in table(result, "Section 4: agreement").notes)
    assert cell(result, "Table 8", "big", "⟨R⟩").text == "4.50(50)"


def test_the_line_of_figure_1_is_that_of_least_squares(data: Path, tmp_path: Path) -> None:
    result = reproduce(setup_of(data, tmp_path))
    gammas = [gamma(TURNED[name]) for name in RATINGS]
    slope, intercept = np.polyfit(gammas, [np.mean(r) for r in RATINGS.values()], 1)
    row = "all domains, all models"
    assert cell(result, "Figure 1", row, "m").values["value"] == pytest.approx(slope)
    assert cell(result, "Figure 1", row, "b").values["value"] == pytest.approx(intercept)


def test_examples_and_extremes_are_chosen_by_gamma_and_rating(data: Path, tmp_path: Path) -> None:
    result = reproduce(setup_of(data, tmp_path))
    names = [row.name for row in table(result, "Tables 1 to 4").rows]
    assert [name.rpartition(": ")[2] for name in names] == [
        # Of two with gamma 0 the one that is rated right, the smallest above 0, the largest rated
        # wrong; no further answer is rated right.
        "What is w1?",
        "What is w2?",
        "What is p1?",
        "What is p2?",
    ]
    notes = table(result, "Tables 1 to 4").notes
    assert "2 answers have gamma 0, 0 of them rated wrong; Table 1 shows one of them." in notes
    assert "Table 4" in result.missing
    assert [row.name for row in table(result, "Table 7").rows] == ["What is p1?"]
    outputs = [row.cells[0].text for row in table(result, "Table 3").rows]
    assert outputs == ["A", "B", "B", "B", *["A"] * 7]


def test_without_ratings_r_is_missing_with_what_it_needs(data: Path, tmp_path: Path) -> None:
    (data / "ratings.csv").unlink()
    result = reproduce(setup_of(data, tmp_path))
    rating = cell(result, "Table 8", "big", "⟨R⟩")
    assert (rating.text, rating.values["value"]) == ("–", None)
    assert "ratings.csv" in rating.values["reason"]
    assert {"Tables 7 and 13", "R of Tables 8 to 10 and Figure 1"} <= set(result.missing)


def test_each_model_is_asked_about_its_own_answers(tmp_path: Path) -> None:
    records = [
        {"id": "1", "question": "Who is one?", "model": "big"},
        {"id": "2", "question": "Who is two?", "model": "small"},
        {"id": "3", "question": "Who is three?", "model": "third"},
        {"id": "4", "question": "Who is everyone?"},
    ]
    path = write(tmp_path / "asked", {"questions.jsonl": records})
    big, small = (
        ScriptedChat({"\x00": "B", "": "A"}, name="big"),
        ScriptedChat("A", name="small"),
    )
    result = reproduce(setup_of(path, tmp_path, models=[big, small]))
    asked_big, asked_small = (
        {request.messages[-1].content[:11] for request in model.requests} for model in (big, small)
    )
    assert asked_big == {"Who is one?", "Who is ever"}
    assert asked_small == {"Who is two?", "Who is ever"}
    assert {row.name for row in table(result, "Tables 8 to 10").rows} == {"big", "small"}
    assert any("third 1" in difference for difference in result.differences)
    # Ten perturbed prompts and the question itself: a search would have asked for more.
    assert [len(model.requests) for model in (big, small)] == [22, 22]
    assert "papers attack PROMPT --model URI" in result.missing["Tables 11 and 12"]


def test_a_label_is_not_about_an_answer_that_was_just_asked_for(tmp_path: Path) -> None:
    records = [
        {"id": "1", "question": "Who?", "label": 1},
        {"id": "2", "question": "Where?", "response": "A", "label": 1},
    ]
    path = write(tmp_path / "asked", {"questions.jsonl": records})
    result = reproduce(setup_of(path, tmp_path, models=[ScriptedChat("A", name="big")]))
    assert cell(result, "Tables 8 to 10", "big", "⟨R⟩").text == "–"


def test_a_printed_gamma_stands_beside_ours_only_for_the_printed_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = record("w1")
    digest = published.digest_answers(one["question"], "A", one["resamples"])
    printed = published.PrintedExample("Table 1", "0", any_embedder=True)
    monkeypatch.setattr(published, "PRINTED_EXAMPLES", {digest: printed})
    data = write(tmp_path / "same", {"answers.jsonl": [one]})
    assert (
        cell(reproduce(setup_of(data, tmp_path)), "Tables 1 to 4", "Table 1", "gamma").paper == "0"
    )
    one["resamples"][9] = "A."
    changed = write(tmp_path / "changed", {"answers.jsonl": [one]})
    setup = replace(setup_of(changed, tmp_path), folder=tmp_path / "other")
    result = reproduce(setup)
    assert cell(result, "Tables 1 to 4", "Table 1", "gamma").paper == ""
    assert table(result, "Tables 1 to 4").not_comparable
    # With another embedder gamma of different answers has another scale.
    needs_embedder = printed._replace(any_embedder=False)
    monkeypatch.setattr(published, "PRINTED_EXAMPLES", {digest: needs_embedder})
    find = published.find_printed_gamma
    texts = ["A"] * 10
    assert find("What is w1?", "A", texts, "embedded") is None
    assert find("What is w1?", "A", texts, published.PAPER_EMBEDDER) is needs_embedder


@pytest.mark.skipif(not SHARED.exists(), reason="no shared data (TRUSTASSAY_SHARED)")
def test_the_printed_examples_are_known_by_their_digests() -> None:
    text = next((SHARED / "seeds").glob("002_*.txt")).read_text()
    printed = {}
    for block in text.split("\nQuery\tGPT-4 Output\n")[1:]:
        cells = [line.split("\t") for line in block.splitlines()[:11]]
        question = cells[0][0].removeprefix("Orig: ").strip('"')
        answers = [re.sub(r'^"|"$', "", one[1]) for one in cells]
        digest = published.digest_answers(question, answers[0], answers[1:])
        printed[question[:10]] = published.PRINTED_EXAMPLES.get(digest)
    gammas = {key: example and example.gamma for key, example in printed.items()}
    assert list(gammas.values()).count(None) == 2  # Tables 3 and 4 shorten their answers
    assert sorted(filter(None, gammas.values())) == ["0", "0.044"]


@pytest.mark.skipif(not SHARED.exists(), reason="no shared data (TRUSTASSAY_SHARED)")
def test_truthfulqa_is_known_by_its_questions_and_no_part_of_it() -> None:
    from trustassay.core.sample import Sample

    path = SHARED / "data/truthfulqa/TruthfulQA_817_original.csv"
    with path.open(newline="", encoding="utf-8") as file:
        questions = [row["Question"] for row in csv.DictReader(file)]
    samples = [Sample(str(n), question) for n, question in enumerate(questions)]
    assert published.digest_questions(samples[::-1]) == published.TRUTHFULQA_DIGEST
    assert published.digest_questions(samples[1:]) != published.TRUTHFULQA_DIGEST


def test_printed_means_are_counted_as_they_are_printed(data: Path, tmp_path: Path) -> None:
    result = reproduce(setup_of(data, tmp_path))
    # Counted by eye in Table 8: Claude-2.1 and 3.0, Mistral, GPT-4, Llama and MPT.
    row = "WebQA, from the paper's Table 8"
    assert cell(result, "Section 4: is R", row, "R higher at γ<.05").text == "6 of 10"


def test_models_with_equal_r_are_not_compared(tmp_path: Path) -> None:
    # All answers have gamma 0, so that R at low gamma is R.
    records = [record(f"q{n}", domain="one", label=label) for n, label in enumerate((1, 1, 0))]
    data = write(tmp_path / "equal", {"answers.jsonl": records})
    result = reproduce(setup_of(data, tmp_path))
    assert cell(result, "Section 4: is R", "one, here", "R higher at γ<.05").text == "–"


def test_a_mean_of_zeros_has_no_bound_beyond_the_data(tmp_path: Path) -> None:
    records = [{**record("w1"), "id": f"q{n}", "question": f"Who is {n}?"} for n in range(45)]
    data = write(tmp_path / "zeros", {"answers.jsonl": records})
    result = reproduce(setup_of(data, tmp_path))
    zeros = cell(result, "Tables 8 to 10", "no model named", "⟨γ | γ<.05⟩")
    assert zeros.text == "0.000(0)"
    notes = table(result, "Tables 8 to 10").notes
    assert "No interval for no model named (⟨γ | γ<.05⟩): all 45 are 0." in notes


def test_a_line_through_two_ratings_has_no_interval_and_the_reason(
    data: Path, tmp_path: Path
) -> None:
    fits = table(reproduce(setup_of(data, tmp_path)), "Figure 1")
    reason = "too few ratings: 2; at least 3 are needed"
    (note,) = [note for note in fits.notes if reason in note]
    assert "No interval for programmingqa, small (m)" in note


def test_figure_1_draws_gamma_0_at_0_on_an_axis_of_gamma(data: Path, tmp_path: Path) -> None:
    result = reproduce(setup_of(data, tmp_path))
    (panels,) = next(chart for chart in result.charts if chart.title.startswith("Figure 1")).parts
    assert isinstance(panels, Panels)
    (block,) = panels.charts[-1].parts
    assert isinstance(block, DrawingBlock)
    assert ">gamma</text>" in block.drawing
    (left,) = re.findall(r'<text x="([\d.]+)"[^>]*>0</text>', block.drawing)[-1:]
    centres = re.findall(r'<circle class="dot[^"]*" cx="([\d.]+)"', block.drawing)
    assert min(map(float, centres)) == pytest.approx(float(left), abs=0.5)


def test_ratings_of_no_answer_are_named_and_answers_without_one_counted(
    data: Path, tmp_path: Path
) -> None:
    rows = rows_of_ratings({"w1": (5, 5), "w2": (4,), "x8": (1, 2), "x9": (3,)})
    write(data, {"ratings.csv": rows})
    result = reproduce(setup_of(data, tmp_path))
    sentence = "Left out: 3 ratings of 2 items that are not in the data: x8, x9."
    assert sentence in result.differences
    assert "2 of 4 answers without a rating." in result.differences


BAD_BEFORE_ASKING: Mapping[str, dict[str, Sequence[Mapping[str, Any]]]] = {
    "words": {"ratings.csv": [{"item": "1", "rater": "a", "rating": "good"}]},
    "another scale": {"ratings.csv": [{"item": "1", "rater": "a", "rating": 80}]},
    "other items": {"ratings.csv": [{"item": "x9", "rater": "a", "rating": 3}]},
    "a label": {"more.jsonl": [{"id": "2", "question": "Where?", "resamples": ["A"], "label": 9}]},
}


@pytest.mark.parametrize("kind", BAD_BEFORE_ASKING)
def test_bad_files_are_refused_before_a_model_is_asked(kind: str, tmp_path: Path) -> None:
    questions = {"questions.jsonl": [{"id": "1", "question": "Who?"}]}
    if "more.jsonl" in BAD_BEFORE_ASKING[kind]:
        questions = {"webqa.jsonl": questions["questions.jsonl"]}
    path = write(tmp_path / "bad", {**questions, **BAD_BEFORE_ASKING[kind]})
    model = ScriptedChat("A", name="big")
    with pytest.raises(InputError):
        reproduce(setup_of(path, tmp_path, models=[model]))
    assert not model.requests


BAD_RATINGS: Mapping[str, tuple[list[dict[str, Any]], str]] = {
    "another scale": ([{"item": "w1", "rater": "a", "rating": 80}], "item w1, rater a.*80.*0 to 5"),
    "words": (
        [{"item": item, "rater": "a", "rating": r} for item, r in (("w1", "fine"), ("w2", "odd"))],
        "numbers from 0 to 5",
    ),
    "other items": (
        [{"item": "x9", "rater": "a", "rating": 3}],
        "no item is the id of an answer.*x9",
    ),
    "another model": (
        [{"item": "w1", "rater": "a", "rating": 3, "model": "tiny"}],
        "no item is the id of an answer.*tiny",
    ),
}


@pytest.mark.parametrize("kind", BAD_RATINGS)
def test_bad_ratings_name_file_and_item(kind: str, data: Path, tmp_path: Path) -> None:
    rows, message = BAD_RATINGS[kind]
    write(data, {"ratings.csv": rows})
    with pytest.raises(InputError, match=f"ratings.csv.*{message}"):
        reproduce(setup_of(data, tmp_path))


def test_bad_data_say_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        reproduce(setup_of(tmp_path / "nowhere", tmp_path))
    empty = write(tmp_path / "empty", {})
    with pytest.raises(InputError, match=r"answers\.jsonl or questions\.jsonl.*ratings\.csv"):
        reproduce(setup_of(empty, tmp_path))
    no_rows = write(tmp_path / "blank", {"answers.jsonl": []})
    with pytest.raises(InputError, match=r"answers\.jsonl"):
        reproduce(setup_of(no_rows, tmp_path))
    unanswered = write(tmp_path / "bare", {"questions.jsonl": [{"question": "Who?"}]})
    with pytest.raises(BadInputError, match=r"resamples.*--model"):
        reproduce(setup_of(unanswered, tmp_path))
    labelled = write(tmp_path / "labelled", {"answers.jsonl": [record("w1", label=7)]})
    with pytest.raises(InputError, match="w1: label: 7 is not from 0 to 5"):
        reproduce(setup_of(labelled, tmp_path))
    foreign = [{"id": "1", "question": "Who?", "model": "third"}]
    with pytest.raises(InputError, match=r"big.*third"):
        reproduce(
            setup_of(
                write(tmp_path / "foreign", {"questions.jsonl": foreign}),
                tmp_path,
                models=[ScriptedChat("A", name="big")],
            )
        )


@pytest.mark.parametrize("option", ["references", "judge", "repeats"])
def test_options_of_other_papers_are_refused(option: str, data: Path, tmp_path: Path) -> None:
    value: Any = {"references": ["a"], "judge": "a", "repeats": 3}[option]
    flag = option.replace("references", "reference")
    with pytest.raises(UsageError, match=f"--{flag}: has no effect on the tables of harmonicity"):
        reproduce(setup_of(data, tmp_path, **{option: value}))


def test_hostile_answers_are_only_text_on_the_page(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\x1b[31m\u202e"
    records = [
        record("w1", response=evil, model="../../<b>", label=0),
        record("w2", domain="<i>|domain", label=1),
    ]
    data = write(tmp_path / "evil", {"answers.jsonl": records})
    result = reproduce(setup_of(data, tmp_path))
    result.write(tmp_path / "written")
    page = (tmp_path / "written/reproduction.html").read_text()
    assert "<script>alert" not in page
    assert "<i>|" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert (
        json.loads((tmp_path / "written/reproduction.json").read_text())["paper"] == "harmonicity"
    )


def test_the_same_command_again_asks_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "asked", {"questions.jsonl": [{"question": "Who?"}]})
    first, second = ScriptedChat("A", name="big"), ScriptedChat("A", name="big")
    once = reproduce(setup_of(path, tmp_path, models=[first]))
    again = reproduce(setup_of(path, tmp_path, models=[second]))
    assert first.requests
    assert not second.requests
    assert once.to_dict() == again.to_dict()


@pytest.mark.slow
def test_the_bundled_set_has_the_tables_without_a_model(tmp_path: Path) -> None:
    result = reproduce(ReproductionSetup(tmp_path / "out"))
    result.write(tmp_path / "out")
    numbers = " ".join(one.heading for one in result.tables)
    for name in ("Table 1,", "Table 4,", "Tables 8 to 10", "Table 7", "Table 13", "Figure 1"):
        assert name in numbers
    assert cell(result, "Tables 8 to 10", "Qwen", "⟨γ⟩").text == "0.076(21), 0.041 to 0.129"
    steps = [row.cells[1].values["value"] for row in table(result, "Tables 11 and 12").rows]
    assert len(steps) == 3
    # The paper's rule moves to the best prompt of a step, also when that is less.
    assert steps[1] > steps[0] > steps[2]
    page = (tmp_path / "out/reproduction.html").read_text()
    assert page.count("<circle cx=") >= 60

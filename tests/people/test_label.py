"""Plans of answers to rate, and what ``label`` says of their ratings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import jsonl
from trustassay import Labelling, label, score, study
from trustassay.errors import RunFolderError
from trustassay.input.records import InputError
from trustassay.people.label.command import default_plan
from trustassay.people.label.plan import read_plan

MODELS = ("good", "poor")


def rows(n: int = 120, models: Sequence[str] = MODELS) -> list[dict[str, Any]]:
    """Answers of which some repeat the gold answer; ``good`` is right more often."""
    rng = np.random.default_rng(11)
    found = []
    for question in range(n):
        for model in models:
            right = rng.random() < (0.8 if model == "good" else 0.4)
            alike = rng.random() < (0.8 if right else 0.2)
            found.append(
                {
                    "id": f"q{question}-{model}",
                    "question": f"Question {question}?",
                    "response": "the blue house" if alike else "a red car",
                    "answers": ["the blue house"],
                    "model": model,
                    "right": int(right),
                    "grade": int(right) * 3 + int(rng.integers(0, 3)),
                }
            )
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("label") / "runs" / "one"
    score(rows(), metrics="reference:parts=em", out=folder, report=False)
    return folder


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return tmp_path / "plan.jsonl"


def told(keys: Sequence[tuple[str, str]], path: Path, name: str = "right") -> Path:
    """Write the labels of these answers as a table of ratings."""
    by_id = {one["id"]: one for one in rows()}
    return jsonl(
        path,
        [{"id": one, "rater": "anna", "rating": by_id[one][name], "model": m} for one, m in keys],
    )


def planned(plan: Path) -> list[tuple[str, str]]:
    return [key for draw in read_plan(plan).draws for key in draw.answers]


def rated(run: Path, plan: Path, folder: Path, *numbers: int, **options: Any) -> Labelling:
    """Propose batches and rate each; return what is found at the end."""
    found = None
    for number in numbers:
        ratings = told(planned(plan), folder / "ratings.jsonl") if plan.exists() else ()
        label(run, plan=plan, propose=number, ratings=ratings, **options)
    found = label(run, plan=plan, ratings=told(planned(plan), folder / "ratings.jsonl"), **options)
    assert isinstance(found, Labelling)
    return found


def test_the_first_call_proposes_fifty_answers(run: Path, plan: Path) -> None:
    found = label(run, plan=plan)
    assert (found.answers, found.units, found.unit) == (240, 120, "question")
    assert len(found.proposed) == found.drawn == 50
    assert (found.rated, found.used, list(found.figures)) == (0, 0, [])
    lines = [json.loads(line) for line in plan.read_text().splitlines()]
    assert lines[0]["version"] == 1
    assert lines[0]["scores"] == ["reference"]
    assert [line["action"] for line in lines[:3]] == ["start", "batch", "draw"]
    assert all(0 < line["probability"] <= 1 for line in lines[2:])
    # a question is drawn with all its answers
    assert {one["id"].split("-")[0] for one in lines[2]["answers"]} == {
        lines[2]["answers"][0]["id"].split("-")[0]
    }
    assert [one["model"] for one in lines[2]["answers"]] == list(MODELS)


def test_a_second_call_changes_nothing_and_another_number_goes_on(run: Path, plan: Path) -> None:
    first = label(run, plan=plan, propose=20)
    before = plan.read_bytes()
    again = label(run, plan=plan)
    assert again.proposed == ()
    assert plan.read_bytes() == before
    ratings = told(first.proposed, plan.with_name("r.jsonl"))
    more = label(run, plan=plan, ratings=ratings, propose=20)
    assert plan.read_bytes().startswith(before)
    assert not set(more.proposed) & set(first.proposed)
    assert (more.drawn, more.rated) == (40, 20)


def test_what_has_a_rating_is_never_proposed(run: Path, plan: Path) -> None:
    elsewhere = [(f"q{q}-{model}", model) for q in range(40) for model in MODELS]
    half = [("q50-good", "good")]
    ratings = told([*elsewhere, *half], plan.with_name("r.jsonl"))
    found = label(run, plan=plan, ratings=ratings, propose=500)
    assert not set(found.proposed) & {*elsewhere, *half}
    assert ("q50-poor", "poor") in found.proposed
    assert found.drawn == 240 - 80 - 1
    assert not label(run, plan=plan, ratings=ratings, propose=5).proposed


def test_all_labels_give_the_truth(run: Path, plan: Path, tmp_path: Path) -> None:
    found = rated(run, plan, tmp_path, 100, 140)
    truth = np.mean([one["right"] for one in rows()])
    share = found.figures[0]
    assert share.value == pytest.approx(truth)
    assert share.interval == pytest.approx((truth, truth))
    assert share.beyond is not None
    assert share.beyond[1] - share.beyond[0] > 0.08  # other questions differ
    assert found.needs[0].more == 0


def test_figures_of_some_labels(run: Path, plan: Path, tmp_path: Path) -> None:
    found = rated(run, plan, tmp_path, 50, 50, width=0.08)
    data = rows()
    truth = {m: np.mean([one["right"] for one in data if one["model"] == m]) for m in MODELS}
    by_title = {one.figure.title: one for one in found.figures}
    assert list(by_title) == [
        "right answers",
        "right answers: good",
        "right answers: poor",
        "AUROC: reference",
    ]
    share = by_title["right answers"]
    assert share.interval and share.beyond and share.evenly
    low, high = share.interval
    assert low <= np.mean(list(truth.values())) <= high
    assert share.beyond[0] < low < high < share.beyond[1]
    assert high - low < share.evenly[1] - share.evenly[0]
    for model in MODELS:
        low, high = by_title[f"right answers: {model}"].interval or (1, 0)
        assert low <= truth[model] <= high
    need = found.needs[0]
    assert need.more and need.evenly and 0 < need.more < need.evenly
    assert found.to_dict()["figures"][0]["figure"] == "share"
    json.dumps(found.to_dict())


def test_two_models_are_told_apart(run: Path, plan: Path, tmp_path: Path) -> None:
    few = rated(run, plan, tmp_path, 46, compare=MODELS)
    assert few.figures[0].figure.title == "right answers: good – poor"
    many = rated(run, plan, tmp_path, 100)  # the plan knows what it was made for
    difference = many.figures[0]
    assert difference.figure.kind == "difference"
    assert difference.interval and 0 < difference.interval[0] < 0.4 < difference.interval[1]
    assert [need.more for need in many.needs][1] == 0
    assert read_plan(plan).start["models"] == list(MODELS)


def test_models_that_are_alike_need_more_labels_than_there_are(tmp_path: Path, plan: Path) -> None:
    data = rows(60)
    for number, one in enumerate(data):
        one["right"] = number // 2 % 2  # both models are right on the same questions
    data[0]["right"] = 1
    folder = tmp_path / "alike"
    score(data, metrics="reference:parts=em", out=folder, report=False)
    label(folder, plan=plan, compare=MODELS, propose=60)
    keys = planned(plan)
    by_id = {one["id"]: one["right"] for one in data}
    table = [{"id": one, "rater": "a", "rating": by_id[one], "model": m} for one, m in keys]
    found = label(folder, plan=plan, ratings=jsonl(tmp_path / "r.jsonl", table), beyond=True)
    assert found.needs[1].more is None


def test_two_scores(tmp_path: Path, plan: Path) -> None:
    folder = tmp_path / "scores"
    score(rows(), metrics="reference:parts=em", out=folder, report=False)
    other = tmp_path / "other"
    score(rows(), metrics="reference:parts=token_f1", out=other, report=False)
    names = ("reference (scores)", "reference (other)")
    label([folder, other], plan=plan, compare=names, propose=100)
    ratings = told(planned(plan), tmp_path / "r.jsonl")
    found = label([folder, other], plan=plan, compare=names, ratings=ratings)
    first = found.figures[0]
    assert first.figure.kind == "auroc difference"
    assert first.interval and first.value is not None
    assert first.interval[0] <= first.value <= first.interval[1]
    assert {one.figure.kind for one in found.figures} >= {"share", "auroc"}


def test_levels_need_a_threshold(run: Path, plan: Path, tmp_path: Path) -> None:
    label(run, plan=plan)
    ratings = told(planned(plan), tmp_path / "r.jsonl", "grade")
    with pytest.raises(InputError, match="the lowest right number with --at-least NUMBER"):
        label(run, plan=plan, ratings=ratings)
    found = label(run, plan=plan, ratings=ratings, at_least=3)
    same = label(run, plan=plan, ratings=told(planned(plan), tmp_path / "s.jsonl"))
    assert found.figures[0].value == same.figures[0].value


def test_raters_make_up_one_label_of_thresholds(run: Path, plan: Path, tmp_path: Path) -> None:
    (first, *_), keys = label(run, plan=plan, propose=44).proposed, planned(plan)
    table = [
        {"id": one, "model": m, "rater": rater, "rating": rating}
        for one, m in keys
        for rater, rating in (("anna", 5), ("bela", 4 if (one, m) != first else 0))
    ]
    found = label(run, plan=plan, ratings=jsonl(tmp_path / "r.jsonl", table), at_least=4)
    assert found.rated == 43  # of one answer the two are divided
    assert any("without a label" in note for note in found.notes)
    assert found.figures[0].value and found.figures[0].value > 0.9


def test_labels_of_a_field(run: Path, plan: Path) -> None:
    label(run, plan=plan, propose=60)
    found = label(run, plan=plan, field="right")
    assert (found.drawn, found.rated, found.used) == (60, 60, 60)
    assert any("180 labels" in note for note in found.notes)


def test_nothing_to_choose_where_all_is_labelled(run: Path, plan: Path) -> None:
    with pytest.raises(InputError, match="all answers have a label"):
        label(run, plan=plan, field="right")
    assert not plan.exists()


def test_answers_by_themselves(run: Path, plan: Path, tmp_path: Path) -> None:
    found = rated(run, plan, tmp_path, 40, unit="answer")
    assert (found.units, found.drawn) == (240, 40)
    assert found.figures[0].interval
    assert found.figures[0].beyond is None  # answers to one question are alike
    assert all(len(draw.answers) == 1 for draw in read_plan(plan).draws)


def test_too_few_units_give_no_interval(run: Path, plan: Path, tmp_path: Path) -> None:
    found = rated(run, plan, tmp_path, 20)
    assert found.figures[0].interval is None
    assert "too few rated questions: 10; at least 20 are needed" in found.figures[0].without
    assert found.needs == []


def test_skipped_answers_are_told(run: Path, plan: Path, tmp_path: Path) -> None:
    keys = label(run, plan=plan, propose=60).proposed
    found = label(run, plan=plan, ratings=told([*keys[:3], *keys[4:]], tmp_path / "r.jsonl"))
    assert found.used == 59
    assert any("1 answer of the plan without a label" in note for note in found.notes)
    early = label(run, plan=plan, ratings=told(keys[:45], tmp_path / "e.jsonl"))
    assert early.used == 44  # the last question is not whole
    assert early.figures[0].interval


def test_equal_probabilities(run: Path, plan: Path, tmp_path: Path) -> None:
    rated(run, plan, tmp_path, 50, 50, equal=True)
    found = read_plan(plan)
    assert found.equal
    assert [draw.probability for draw in found.draws[:2]] == pytest.approx([1 / 120, 1 / 119])


def test_the_plan_of_a_run_is_beside_it(run: Path) -> None:
    assert default_plan(run) == run.parent / "one.label.jsonl"


def test_seeds_decide(run: Path, tmp_path: Path) -> None:
    found = [
        label(run, plan=tmp_path / f"{n}.jsonl", seed=seed).proposed
        for n, seed in enumerate((0, 0, 1))
    ]
    assert found[0] == found[1] != found[2]


def test_a_plan_is_of_its_answers_and_options(run: Path, plan: Path, tmp_path: Path) -> None:
    label(run, plan=plan)
    other = tmp_path / "other"
    score(rows(90), metrics="reference:parts=em", out=other, report=False)
    with pytest.raises(InputError, match="the plan was made for other answers"):
        label(other, plan=plan)
    with pytest.raises(ValueError, match="was made with the unit question"):
        label(run, plan=plan, unit="answer")
    with pytest.raises(ValueError, match="was made with unequal probabilities"):
        label(run, plan=plan, equal=True)
    with pytest.raises(ValueError, match="was made with the seed 0;"):
        label(run, plan=plan, seed=1)
    with pytest.raises(ValueError, match="was made with the scores reference;"):
        label(run, plan=plan, scores="reference.em")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"propose": 0}, "propose: expected 1 or more"),
        ({"width": 0}, "width: expected above 0"),
        ({"compare": ("good", "bad")}, "compare good bad: "),
        ({"compare": ("good", "reference")}, "expected two models, or two scores"),
        ({"compare": ("good", "good")}, "two different names"),
        ({"compare": MODELS, "auroc": "reference"}, "expected only one of them"),
        ({"auroc": "refrence"}, "reference"),
        ({"scores": "gone"}, "gone"),
        ({"field": "gone"}, "no answer has the label gone"),
    ],
)
def test_bad_options(run: Path, plan: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        label(run, plan=plan, **options)
    assert not plan.exists()


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="holds no run"):
        label(tmp_path)


def test_answers_that_ratings_cannot_tell_apart(tmp_path: Path, plan: Path) -> None:
    paths = []
    for name in ("a", "b"):
        data = [
            {"id": f"q{q}", "question": f"Q{q}?", "response": f"{name} {q}", "answers": ["b 1"]}
            for q in range(4)
        ]
        paths.append(tmp_path / name)
        score(data, metrics="reference:parts=em", out=paths[-1], report=False)
    with pytest.raises(InputError, match="two answers have the id 'q0' and the same model"):
        label(paths, plan=plan)


GOOD_START = {
    "action": "start",
    "kind": "label plan",
    "version": 1,
    "runs": [],
    "input": "x",
    "unit": "question",
    "chances": "unequal",
    "scores": [],
    "models": [],
    "seed": 0,
}
BATCH = {"action": "batch", "batch": 1, "known": []}
DRAW = {"action": "draw", "probability": 0.5, "answers": [{"id": "a"}]}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["nothing"], ":1: the line is damaged (not JSON); restore or remove it"),
        ([[1]], ":1: the line is damaged (expected an object); restore or remove it"),
        ([{"action": "start"}], ":1: not a plan that"),
        ([{**GOOD_START, "version": 2}], ":1: version: expected 1, got 2"),
        ([{**GOOD_START, "scores": "all"}], ":1: scores: expected a list, got 'all'"),
        ([GOOD_START, DRAW], ":2: action: expected batch"),
        ([GOOD_START, {"action": "batch"}], ":2: known: expected a list, got None"),
        ([GOOD_START, BATCH, {**DRAW, "probability": 0}], ":3: probability: expected above 0"),
        ([GOOD_START, BATCH, {**DRAW, "probability": "1"}], ":3: probability: expected above 0"),
        ([GOOD_START, BATCH, {**DRAW, "answers": []}], ":3: answers: expected one or more"),
        ([GOOD_START, BATCH, {**DRAW, "answers": ["a"]}], ":3: answers: expected objects"),
        ([GOOD_START, BATCH, DRAW, DRAW], ":4: answers: 'a' was drawn before"),
        ([], "is empty; expected a plan"),
    ],
)
def test_damaged_plans_name_line_and_field(plan: Path, lines: list[Any], words: str) -> None:
    text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    plan.write_text("".join(f"{line}\n" for line in text))
    with pytest.raises(InputError) as error:
        read_plan(plan)
    assert f"{plan}{words}" in str(error.value) or words in str(error.value)


def test_a_plan_that_names_strangers(run: Path, plan: Path) -> None:
    label(run, plan=plan, propose=20)
    with plan.open("a") as file:
        file.write(json.dumps(DRAW) + "\n")
    with pytest.raises(InputError, match="batch 1: 'a' is not among the answers"):
        label(run, plan=plan)


def test_a_line_without_its_end_is_left_out(run: Path, plan: Path) -> None:
    whole = label(run, plan=plan, propose=20)
    sound = plan.read_bytes()
    plan.write_bytes(sound + b'{"action": "draw", "proba')
    assert label(run, plan=plan).drawn == whole.drawn
    label(run, plan=plan, propose=20)
    assert plan.read_bytes().startswith(sound + b'{"action": "batch"')


def test_ratings_that_disagree(run: Path, plan: Path, tmp_path: Path) -> None:
    keys = label(run, plan=plan, propose=20).proposed
    first = told(keys, tmp_path / "r.jsonl")
    turned = [{**json.loads(line)} for line in first.read_text().splitlines()]
    turned[0]["rating"] = 1 - turned[0]["rating"]
    with pytest.raises(InputError, match="has a different label in another source"):
        label(run, plan=plan, ratings=[first, jsonl(tmp_path / "s.jsonl", turned)])


def test_a_model_without_its_partner_is_left_out(tmp_path: Path, plan: Path) -> None:
    folder = tmp_path / "part"
    score(rows(30)[1:], metrics="reference:parts=em", out=folder, report=False)
    found = label(folder, plan=plan, compare=MODELS)
    assert found.answers == 58
    assert any("because only one model answered: 1 answer" in note for note in found.notes)


def test_study_refuses_answers_that_were_chosen(run: Path, plan: Path, tmp_path: Path) -> None:
    keys = label(run, plan=plan, propose=40).proposed
    start = {"action": "start", "input": "x", "pairs": False, "choices": ["1", "0"]}
    by_id = {one["id"]: one["right"] for one in rows()}
    lines = [{"item": i, "rater": "a", "rating": by_id[i], "model": m} for i, m in keys]
    chosen = jsonl(tmp_path / "chosen.jsonl", [{**start, "chances": "unequal"}, *lines])
    with pytest.raises(InputError, match="chose these answers with unequal probabilities"):
        study(run, ratings=chosen, resamples=100)
    assert label(run, plan=plan, ratings=chosen).rated == 40
    even = jsonl(tmp_path / "even.jsonl", [{**start, "chances": "equal"}, *lines])
    assert study(run, ratings=even, resamples=100).labels[0].label.n == 40

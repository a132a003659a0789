"""A part of an input, drawn: which answers, by which order, and what is said of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.support import Recorder, jsonl, lines, record, records, repeats, results, summary_of
from trustassay import rescore, score
from trustassay.core.sample import Sample
from trustassay.errors import RunFolderError, UsageError
from trustassay.input.records import InputError
from trustassay.runs.drawing import SampleDraw, read_size
from trustassay.runs.intake import BadInputError

METRIC = "grounding"


def sample(question: int, answer: int = 0, **others: Any) -> Sample:
    return Sample.parse({"id": f"{question}-{answer}", "question": f"q{question}", **others})


def drawn(drawing: SampleDraw, samples: Iterable[Sample]) -> set[str]:
    taken = [one.id for one in samples if drawing.may_draw(one)]
    return {name for name, kept in zip(taken, drawing.select(), strict=True) if kept}


def scored(folder: Path, **options: Any) -> list[dict[str, Any]]:
    score(folder / "a.jsonl", metrics=METRIC, entailer=Recorder(), out=folder / "run", **options)
    return lines(folder / "run/samples.jsonl")


@pytest.mark.parametrize(
    ("given", "size"), [("2000", 2000), (7, 7), ("2,000", 2000), ("1%", 0.01), (" 12.5% ", 0.125)]
)
def test_a_size_is_a_number_or_a_share(given: str | int, size: float) -> None:
    assert read_size(given) == size
    assert type(read_size(given)) is type(size)


@pytest.mark.parametrize("given", ["", "0", "-3", "1.5", "100%", "0%", "nan%", "inf%", "some"])
def test_anything_else_is_refused_with_what_is_expected(given: str) -> None:
    with pytest.raises(UsageError, match=r"sample: expected a number of answers \(2000\)"):
        read_size(given)


@pytest.mark.parametrize(("size", "by"), [(30, ""), ("20%", ""), (30, "model"), ("20%", "model")])
def test_the_order_of_the_input_changes_nothing(size: int | str, by: str) -> None:
    samples = [sample(q, a, model="ab"[q % 3 > 0]) for q in range(100) for a in range(1 + q % 4)]
    first = drawn(SampleDraw(size, by), samples)
    assert first
    assert first != drawn(SampleDraw(size, by, seed=1), samples)
    for seed in range(3):
        random.Random(seed).shuffle(samples)
        assert drawn(SampleDraw(size, by), samples) == first


@pytest.mark.parametrize("size", [25, "20%"])
def test_answers_of_a_unit_are_drawn_together(size: int | str) -> None:
    samples = [sample(q, a, chat=a) for a in range(3) for q in range(50)]
    found = Counter(name.split("-")[0] for name in drawn(SampleDraw(size), samples))
    assert set(found.values()) == {3}
    assert size == "20%" or sum(found.values()) == 27, "until there are so many"
    by_chat = Counter(n.split("-")[1] for n in drawn(SampleDraw(60, unit="chat"), samples))
    assert list(by_chat.values()) == [50, 50]
    assert len(drawn(SampleDraw(25, unit="answer"), samples)) == 25


def test_one_instruction_for_many_texts_is_many_units() -> None:
    samples = [sample(0, n, documents=[f"text {n // 2}"]) for n in range(400)]
    found = drawn(SampleDraw(20), samples)
    assert len(found) == 20
    assert Counter(int(name[2:]) // 2 for name in found) == Counter(
        {int(name[2:]) // 2: 2 for name in found}
    )
    with pytest.raises(InputError, match=r"400 of 400 drawn answers share one question"):
        drawn(SampleDraw(20), [sample(0, n) for n in range(400)])


def test_each_answer_has_the_same_probability() -> None:
    samples = [sample(q, a, model="a" * (q < 3)) for q in range(20) for a in range(1 + q % 2)]
    for size, by in (("30%", ""), ("30%", "model"), (9, "model")):
        seeds = repeats(450)
        often = Counter(
            n for s in range(seeds) for n in drawn(SampleDraw(size, by, seed=s), samples)
        )
        rates = np.array([often[one.id] / seeds for one in samples])
        assert np.abs(rates - 0.3).max() < 5 * np.sqrt(0.3 * 0.7 / seeds), (size, by)


def test_strata_get_their_share_up_to_less_than_one_unit() -> None:
    sizes = {"a": 700, "b": 270, "c": 29, "d": 1}
    samples = [sample(sum(map(ord, m)) * 1000 + n, model=m) for m in sizes for n in range(sizes[m])]
    model = {one.id: one.model for one in samples}
    rare = 0
    for seed in range(12):
        found = Counter(model[name] for name in drawn(SampleDraw(100, "model", seed=seed), samples))
        assert found.total() == 100
        assert all(abs(found[m] - sizes[m] / 10) < 1 for m in sizes)
        rare += found["d"]
    assert 0 < rare < 8, "a stratum of a tenth of a unit is drawn now and then"


def test_models_that_answered_the_same_questions_are_drawn_with_the_same_ones() -> None:
    samples = [sample(q, a, model="ab"[a]) for q in range(200) for a in range(2)]
    found = drawn(SampleDraw(40, "model"), samples)
    assert Counter(Counter(name.split("-")[0] for name in found).values())[2] >= 19


def test_by_a_share_what_was_drawn_stays_drawn_when_the_input_grows() -> None:
    samples = [sample(q) for q in range(500)]
    assert drawn(SampleDraw("10%"), samples[:300]) == {
        name for name in drawn(SampleDraw("10%"), samples) if int(name[:-2]) < 300
    }


def test_few_of_the_answers_are_held_on_the_way() -> None:
    drawing = SampleDraw(20)
    taken = sum(drawing.may_draw(sample(q)) for q in range(5000))
    assert taken < 20 * (1 + np.log(5000 / 20)) * 1.5


def test_a_run_says_of_what_it_is_a_sample(tmp_path: Path) -> None:
    rows = records(200)
    jsonl(tmp_path / "a.jsonl", rows)
    found = scored(tmp_path, sample=40, seed=3)
    assert [one["id"] for one in found] == [
        one["id"] for one in rows if one["id"] in {other["id"] for other in found}
    ]
    expected = {"answers": 40, "of": 200, "units": 40, "sample": "40", "seed": 3}
    assert summary_of(tmp_path / "run")["drawn"] == expected
    assert summary_of(tmp_path / "run")["metrics"][METRIC]["n"] == 40
    page = (tmp_path / "run/report.html").read_text()
    assert "40 of 200 answers were drawn at random (seed 3)." in page
    before = results(tmp_path / "run")
    again = score(
        tmp_path / "a.jsonl",
        metrics=METRIC,
        entailer=(recorder := Recorder()),
        out=tmp_path / "run",
        sample=40,
        seed=3,
    )
    assert again.outcome.scored_before == 40
    assert not recorder.batches
    assert results(tmp_path / "run") == before
    with pytest.raises(RunFolderError, match=r"drawn\.answers was 40, now 41"):
        scored(tmp_path, sample=41, seed=3)
    rescore(tmp_path / "run", out=tmp_path / "other", entailer=Recorder())
    assert summary_of(tmp_path / "other")["drawn"] == expected


def test_the_terminal_and_the_plan_say_it(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", [record(i, model="ab"[i % 2], lang="x") for i in range(60)])
    options = ("a.jsonl", "--entailer", "lexical", "--metric", METRIC, "--sample-by", "model,lang")
    said = cli("score", *options, "--sample", "20", "--out", "run")
    sentence = "20 of 60 answers were drawn at random from 2 strata by model, lang (seed 0)"
    assert said.err.count(sentence) == 2, "when they are drawn, and at the end"
    assert Counter(one["model"] for one in lines(tmp_path / "run/samples.jsonl")) == {
        "a": 10,
        "b": 10,
    }
    said = cli("plan", *options, "--sample", "20")
    assert sentence in said.err
    assert "20 samples" in said.err
    first, other = (
        cli("score", "a.jsonl", *options[1:5], "--sample", "10", "--seed", seed).err
        for seed in "01"
    )
    assert first.splitlines()[-1] != other.splitlines()[-1], "another sample is another folder"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": 5, "limit": 7}, "sample: cannot be used with limit"),
        ({"sample_by": "model"}, "sample_by: needs sample"),
        ({"sample": 5, "sample_by": "model,nowhere"}, "no sample has the field 'nowhere'"),
        ({"sample": "0.000001%"}, "none of 30 answers was drawn; ask for more"),
        ({"sample": 5, "engine": "ray"}, "sample: not with engine='ray'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    tmp_path: Path, options: Mapping[str, Any], message: str
) -> None:
    jsonl(tmp_path / "a.jsonl", [record(i, model="m") for i in range(30)])
    with pytest.raises(UsageError, match=message):
        scored(tmp_path, **options)


def test_a_generator_is_read_once(tmp_path: Path) -> None:
    rows = [record(i, model="m", day=date(2026, 11, 1 + i)) for i in range(30)]
    options: dict[str, Any] = {"metrics": METRIC, "entailer": Recorder(), "sample": 5}
    for others in ({}, {"sample_by": "model"}, {"sample_by": "day"}, {"unit": "day"}):
        assert len(score((row for row in rows), **(options | others)).assessments) == 5


def test_faults_of_answers_that_are_not_drawn_count_as_well(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", records(30))
    path.write_text(path.read_text() + '{"id": "bad"\n')
    with pytest.raises(BadInputError, match=r"a\.jsonl:31: column 13: is not JSON"):
        scored(tmp_path, sample=2)
    scored(tmp_path, sample=2, skip_bad=True)
    summary = summary_of(tmp_path / "run")
    assert (summary["skipped"], summary["drawn"]["of"]) == (1, 30)


def test_more_than_there_are_is_all_of_them(tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", records(5))
    assert len(scored(tmp_path, sample=100)) == 5

"""Variants are what the metric itself gives with these options, number by number."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.metrics.fewl.helpers import Angles, Known
from trustassay import score
from trustassay.core.sample import Sample
from trustassay.metrics.fewl import Fewl
from trustassay.papers.experiments.measuring import (
    FewlArrays,
    FewlSetup,
    FewlVariant,
    MeasuredAnswers,
    measure,
    scores_of,
    variants_of,
)
from trustassay.papers.experiments.results import build_share_cells
from trustassay.runs.intake import build_run_options

N, TOLERANCE = 6, 1e-12


def records() -> list[dict[str, Any]]:
    """Six questions, three references of which one is silent once."""
    return [
        {
            "id": f"q{i}",
            "question": f"at {10 * i}",
            "response": f"y{i}",
            "references": {
                "a": f"a{i}",
                "b": f"b{i}" if i != 2 else "",
                "c": f"c{i}",
            },
            "wrong_answers": [f"w{i}"],
            "corrected_answers": [f"v{i}"],
            "answers": [[f"g{i}"]],
            "incorrect_answers": [f"h{i}"],
        }
        for i in range(N)
    ]


def similarity() -> Known:
    rng = np.random.default_rng(0)
    kinds = [f"{kind}{i}" for kind in "yabcwvgh" for i in range(N)]
    table = {(x, y): float(round(rng.uniform(-0.2, 1), 6)) for x in kinds for y in kinds}
    return Known(table)


def measured(folder: Path) -> MeasuredAnswers:
    setup = FewlSetup(
        embedder=Angles(),
        similarities=(similarity(),),  # type: ignore[arg-type]
        metric=Fewl(neighbours=2, max_similarity=1.0, temperature=0.5),
        options=build_run_options(cache=None),
    )
    samples = [Sample.parse(one) for one in records()]
    return asyncio.run(measure(samples, setup, folder))


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> FewlArrays:
    return next(iter(measured(tmp_path_factory.mktemp("experiment")).numbers.values()))


OPTIONS = "neighbours=2,max_similarity=1,temperature=0.5"


@pytest.mark.parametrize(
    ("variant", "options"),
    [
        (FewlVariant("uniform", "none", "eq1", "tv"), "weights=uniform,penalty=none"),
        (FewlVariant("ours", "nearest", "eq1", "tv"), "weights=ours"),
        (FewlVariant("ours", "random", "theory", "js"), "penalty=random,form=theory,divergence=js"),
        (
            FewlVariant("ideal", "nearest", "theory", "kl"),
            "weights=ideal,form=theory,divergence=kl",
        ),
        (FewlVariant("single-best", "nearest", "eq1", "kl"), "weights=single-best,divergence=kl"),
        (FewlVariant("agreement", "nearest", "agreement", "tv"), "form=agreement"),
        (FewlVariant("agreement", "random", "agreement", "tv"), "form=agreement,penalty=random"),
    ],
)
def test_a_variant_is_the_metric_with_these_options(
    variant: FewlVariant, options: str, numbers: FewlArrays
) -> None:
    run = score(
        records(),
        metrics=f"fewl:{OPTIONS},{options}",
        similarity=similarity(),
        embedder=None if variant.penalty == "none" else Angles(),
    )
    expected = [one.score for one in run.assessments]
    assert len(set(expected)) == N
    assert scores_of(variant, numbers) == pytest.approx(expected, abs=TOLERANCE)


def test_single_is_the_metric_with_the_first_reference_alone(numbers: FewlArrays) -> None:
    alone = [{**one, "references": {"a": one["references"]["a"]}} for one in records()]
    metric = f"fewl:{OPTIONS},weights=uniform"
    run = score(alone, metrics=metric, similarity=similarity(), embedder=Angles())
    expected = [one.score for one in run.assessments]
    variant = FewlVariant("single", "nearest", "eq1", "tv")
    assert scores_of(variant, numbers) == pytest.approx(expected, abs=TOLERANCE)


def test_all_combinations_stand_once(numbers: FewlArrays) -> None:
    found = variants_of(numbers)
    # 3 divergences x 3 penalties x (2 alone + 3 weightings in 2 forms), and our form
    assert len(found) == len(set(found)) == 3 * 3 * (2 + 3 * 2) + 3
    assert len({one.name for one in found}) == len(found)
    published = {table for one in found for table in one.tables}
    assert published == {1, 2, 3, 4, 5, 8, 9, 10, 11, 12}


def test_a_second_measurement_goes_on_from_the_first(tmp_path: Path) -> None:
    first = measured(tmp_path)
    again = measured(tmp_path)
    one, other = (next(iter(m.numbers.values())) for m in (first, again))
    assert (one.similarity == other.similarity).all()
    assert (one.random.values == other.random.values).all()


def test_shares_have_intervals_even_where_no_draw_differs() -> None:
    won = np.array([[1.0] * 30, [0.0] * 30, [1.0, 0.0] * 15])
    every, none, half = build_share_cells(won, 1 - won)
    assert every.values["interval"][0] == pytest.approx(100 * 0.05 ** (1 / 30))
    assert none.values["interval"] == pytest.approx((0, 100 * (1 - 0.05 ** (1 / 30))))
    low, high = half.values["interval"]
    assert 30 < low < 40
    assert 60 < high < 70
    assert every.text == "100.0 (90.5 to 100.0)"
    assert none.values["ties"] == 100
    few = build_share_cells(won[:, :19], won[:, :19])
    assert few[2].values["interval"] is None


def test_several_units_of_a_question_are_one_in_the_interval() -> None:
    won = np.array([[1.0, 0.0] * 100])
    (apart,), (together,) = (
        build_share_cells(won, 1 - won),
        build_share_cells(won, 1 - won, np.arange(200) // 4),
    )
    assert together.values["interval"] != apart.values["interval"]
    (few,) = build_share_cells(won, 1 - won, np.arange(200) // 20)
    assert few.values["interval"] is None

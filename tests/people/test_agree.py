"""What ``agree`` says of raters of known character."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.metrics.judge import helpers
from trustassay import score
from trustassay.input.ratings import Rating, Ratings
from trustassay.metrics import Judge
from trustassay.people.agree import JudgeDeviations, add_report_links, measure_agreement
from trustassay.statistics.agreement import cohen_kappa, krippendorff_alpha


def table(**columns: list[float | None]) -> Ratings:
    return Ratings(
        [
            Rating(f"i{place}", rater, value)
            for rater, values in columns.items()
            for place, value in enumerate(values)
            if value is not None
        ]
    )


def test_pairs_and_all_raters() -> None:
    rng = np.random.default_rng(4)
    truth = rng.integers(1, 6, 40).astype(float)
    near = np.clip(truth + rng.integers(-1, 2, 40), 1, 5)
    strict = np.maximum(truth - 1, 1)
    found = measure_agreement(table(a=truth.tolist(), b=near.tolist(), c=strict.tolist()))
    assert (found.items, found.raters) == (40, {"a": 40, "b": 40, "c": 40})
    assert list(found.pairs) == [("a", "b"), ("a", "c"), ("b", "c")]
    pair = found.pairs["a", "b"]
    known = [1, 2, 3, 4, 5]
    assert pair["kappa"].value == pytest.approx(cohen_kappa(truth, near, "none", known))
    assert pair["kappa_quadratic"].value == pytest.approx(
        cohen_kappa(truth, near, "quadratic", known)
    )
    assert pair["percent"].value == pytest.approx(100 * np.mean(truth == near))
    assert pair["mean_absolute_difference"].value == pytest.approx(np.abs(truth - near).mean())
    together = np.stack([truth, near, strict])
    assert found.overall["alpha_ordinal"].value == pytest.approx(
        krippendorff_alpha(together, "ordinal")
    )
    shares = [one["percent"].value for one in found.pairs.values()]
    assert found.overall["percent"].value == pytest.approx(np.mean(shares))  # type: ignore[arg-type]
    for estimate in (*found.overall.values(), *pair.values()):
        assert estimate.interval is not None
        low, high = estimate.interval
        assert low <= (estimate.value or 0) <= high


def test_missing_ratings_leave_out_what_cannot_be_compared() -> None:
    found = measure_agreement(table(a=[1, 2, None, 4], b=[1, 3, 3, None]))
    assert found.pairs["a", "b"]["percent"].value == 50
    assert found.pairs["a", "b"]["percent"].n == 2
    assert found.overall["fleiss_kappa"].n == 2
    assert found.overall["percent"].without == "too few items: 2; at least 20 are needed"


def test_fleiss_kappa_says_that_no_item_was_rated_by_all() -> None:
    found = measure_agreement(table(a=[1, 2, None], b=[1, None, 3], c=[None, 2, 3])).overall
    fleiss = found["fleiss_kappa"]
    assert (fleiss.value, fleiss.n, fleiss.without) == (None, 0, "no item was rated by all raters")
    assert found["alpha_nominal"].n == 3


def test_weights_are_the_distances_on_the_whole_scale() -> None:
    pairs = [(0, 0), (0, 2), (2, 3), (3, 3), (0, 0), (2, 0)]  # nobody said "fair"
    ratings = [
        Rating(f"i{n}", rater, value)
        for n, pair in enumerate(pairs)
        for rater, value in zip("xy", pair, strict=True)
    ]
    found = measure_agreement(
        Ratings(ratings, ("poor", "fair", "good", "best"), scale=(0, 1, 2, 3))
    )
    a, b = zip(*pairs, strict=True)
    told = found.pairs["x", "y"]["kappa_quadratic"].value
    assert told == pytest.approx(cohen_kappa(a, b, "quadratic", [0, 1, 2, 3]))
    assert told != pytest.approx(cohen_kappa(a, b, "quadratic", [0, 2, 3]))


def test_a_rater_with_themselves() -> None:
    ratings = [Rating(f"i{n}", "ann", 4, 0) for n in range(4)]
    ratings += [Rating("i0", "ann", 4, 1), Rating("i1", "ann", 2, 1)]
    ratings += [Rating("i0", "bob", 1), Rating("i1", "bob", 1)]
    found = measure_agreement(Ratings(ratings))
    assert list(found.intra) == ["ann"]
    intra = found.intra["ann"]
    assert (intra["percent"].value, intra["percent"].n) == (50, 2)
    assert intra["sd"].value == pytest.approx(2**0.5 / 2)  # (0 + sqrt 2) / 2
    assert found.pairs["ann", "bob"]["mean_absolute_difference"].value == 3  # first ratings


def test_one_rater_is_enough_where_there_are_repeats_and_not_else() -> None:
    found = measure_agreement(Ratings([Rating("a", "x", 1, 0), Rating("a", "x", 2, 1)]))
    assert found.intra["x"]["percent"].value == 0
    assert not found.overall
    with pytest.raises(ValueError, match="nothing to compare: 'x' is the only rater"):
        measure_agreement(Ratings([Rating("a", "x", 1)]))


def test_by_model() -> None:
    ratings = [
        Rating(f"i{n}", rater, value, model=model)
        for model, pairs in {"m1": [(1, 1), (2, 2)], "m2": [(1, 2), (2, 1)]}.items()
        for n, values in enumerate(pairs)
        for rater, value in zip("ab", values, strict=True)
    ]
    found = measure_agreement(Ratings(ratings))
    assert found.items == 4
    assert found.models["m1"]["percent"].value == 100
    assert found.models["m2"]["percent"].value == 0
    assert found.overall["percent"].value == 50


def test_categories_have_no_distances() -> None:
    found = measure_agreement(
        Ratings([Rating("a", "x", 0), Rating("a", "y", 1)], ("fair", "good"), ordered=False)
    )
    assert set(found.pairs["x", "y"]) == {"percent", "kappa", "ac1"}
    assert set(found.overall) == {"percent", "mean_kappa", "fleiss_kappa", "ac1", "alpha_nominal"}
    assert found.disputes[0].ratings == {"x": "fair", "y": "good"}


def test_ratings_that_are_all_the_same_have_no_kappa() -> None:
    found = measure_agreement(table(a=[3.0] * 30, b=[3.0] * 30))
    assert found.pairs["a", "b"]["percent"].value == 100
    kappa = found.pairs["a", "b"]["kappa"]
    assert (kappa.value, kappa.without) == (None, "all of these ratings are the same")
    assert found.disputes == []


def test_where_raters_part_the_farthest_apart_first() -> None:
    found = measure_agreement(table(a=[1, 2, 5, 3], b=[1, 3, 1, 3], c=[1, 2, 5, None]))
    assert [(one.item, one.distance) for one in found.disputes] == [("i2", 4), ("i1", 1)]
    assert found.disputes[0].ratings == {"a": "5", "b": "1", "c": "5"}


def test_disputes_link_to_the_answers_of_a_run(tmp_path: Path) -> None:
    judge = helpers.Scripted(helpers.steady)
    run = score(
        helpers.answers([1, 2]), metrics=Judge(), judge=judge, out=tmp_path / "run", cache=None
    )
    ratings = Ratings([Rating("a1", "x", 1), Rating("a1", "y", 2), Rating("z", "x", 1)])
    ratings = Ratings([*ratings.ratings, Rating("z", "y", 5)])
    found = add_report_links(run.path, measure_agreement(ratings).disputes)
    assert [one.link for one in found] == ["", f"{run.path / 'report.html'}#a2"]
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert 'id="a2"><summary><span class="id">' in page or 'id="a2" data-problem>' in page


def test_answers_to_one_question_are_one_unit() -> None:
    rng = np.random.default_rng(0)
    ratings = table(a=rng.integers(1, 4, 60).tolist(), b=rng.integers(1, 4, 60).tolist())
    alone = measure_agreement(ratings).overall["fleiss_kappa"]
    units = {f"i{place}": place // 6 for place in range(60)}
    together = measure_agreement(ratings, units=units).overall
    assert alone.interval is not None
    assert together["fleiss_kappa"].value == alone.value
    for one in together.values():
        assert one.without in (
            f"too few independent units (of equal size): 10; at least {needed} are needed; "
            "score with --unit answer to take each answer as a unit"
            for needed in (20, 40)
        )


def test_answers_of_several_models_to_an_item_are_one_unit() -> None:
    rng = np.random.default_rng(0)
    ratings = [
        Rating(f"i{place}", rater, float(rng.integers(1, 4)), model=model)
        for place in range(15)
        for model in ("m1", "m2")
        for rater in "ab"
    ]
    without = measure_agreement(Ratings(ratings)).overall["alpha_ordinal"].without
    assert without.startswith("too few independent units (of equal size): 15; at least 20 are")
    assert without.endswith("; score with --unit answer to take each answer as a unit")
    alone = measure_agreement(Ratings(ratings), each_answer=True).overall["alpha_ordinal"]
    assert alone.interval is not None


def test_a_scale_that_is_known_gives_the_weights_and_leaves_the_rest() -> None:
    rng = np.random.default_rng(2)
    columns = {rater: rng.choice([1.0, 2.0, 5.0], 40).tolist() for rater in "ab"}
    occurring = measure_agreement(table(**columns))
    known = measure_agreement(replace(table(**columns), scale=(1, 2, 3, 4, 5)))
    assert (occurring.levels, occurring.levels_declared) == (["1", "2", "5"], False)
    assert (known.levels, known.levels_declared) == (["1", "2", "3", "4", "5"], True)
    for name, same in (
        ("percent", True),
        ("kappa", True),
        ("kappa_quadratic", False),
        ("kappa_linear", False),
        ("ac1", False),
    ):
        one, other = (found.pairs["a", "b"][name].value for found in (occurring, known))
        assert (one == pytest.approx(other)) == same, name
    assert known.pairs["a", "b"]["kappa_linear"].value == pytest.approx(
        cohen_kappa(columns["a"], columns["b"], "linear", [1, 2, 3, 4, 5])
    )


def test_a_judge_has_the_mean_of_its_kappas_with_people() -> None:
    rng = np.random.default_rng(3)
    ann, bob, judge = (rng.integers(1, 4, 30).astype(float).tolist() for _ in range(3))
    found = measure_agreement(table(ann=ann, judge=judge, bob=bob), machines={"judge"})
    kappas = [cohen_kappa(judge, one, "none", [1, 2, 3]) for one in (ann, bob)]
    assert list(found.judges) == ["judge"]
    own = found.judges["judge"]
    assert own["mean_kappa"].value == pytest.approx(np.mean(kappas))  # type: ignore[arg-type]
    assert own["fleiss_kappa"].value == pytest.approx(found.overall["fleiss_kappa"].value)
    assert measure_agreement(table(ann=ann, judge=judge), machines={"ann", "judge"}).judges == {}


def test_a_judge_is_above_at_and_below_the_ratings_of_each_person() -> None:
    ratings = table(ann=[1, 2, 3, 4], judge=[2, 2, None, 1], bob=[None, 1, 3, 1])
    result = measure_agreement(ratings, machines={"judge"})
    # With ann: above, equal, below; with bob: above, equal.
    assert result.deviations == {"judge": JudgeDeviations(higher=2, equal=2, lower=1)}
    assert result.to_dict()["deviations"] == {"judge": {"higher": 2, "equal": 2, "lower": 1}}
    assert measure_agreement(ratings).deviations == {}
    names = Ratings(ratings.ratings, ("a", "b", "c", "d", "e"), ordered=False)
    assert measure_agreement(names, machines={"judge"}).deviations == {}


def test_one_rater_of_several_models_is_compared_with_themselves() -> None:
    ratings = [Rating(f"i{i}", "ann", i % 3, k, f"m{i % 2}") for i in range(6) for k in range(2)]
    found = measure_agreement(Ratings(ratings))
    assert (found.overall, found.models, found.pairs) == ({}, {}, {})
    assert found.intra["ann"]["percent"].value == 100

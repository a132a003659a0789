"""The figures of a data set: support, intervals, failures, order and bounds."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metrics.grounding.helpers import Item, Knows, docs, item, run_of
from trustassay import Summary
from trustassay.core.metric import Assessment
from trustassay.metrics import Grounding
from trustassay.metrics.grounding.summary import FIGURES
from trustassay.statistics import intervals
from trustassay.statistics.intervals import binomial_interval, mean_interval

A = Knows({"A is.": ["1"], "B is.": ["2"]})


def summary_of(items: Any, entails: Any = A, **options: Any) -> Summary:
    return run_of(items, entails, **options).summaries["grounding"]


def mixed() -> list[Item]:
    """Eight answers of every kind.

    1 answered, answerable; 2 the same; 3 answered, unanswerable; 4 refused, answerable; 5 refused,
    unanswerable; 6 blank, answerable; 7 answered, nothing known; 8 refused, nothing known.
    """
    yes, no = docs(2, [1], [1]), docs(2, [0], [0])
    return [
        item("A is [1].", yes, answers=["A is"]),
        item("A is [1]. B is [1].", yes, answers=["zzz"]),
        item("B is [2][1].", no, answers=["B is"]),
        item("I don't know.", yes, answers=["x"]),
        item("I do not know.", no, answers=["x"]),
        item("", yes, answers=["x"]),
        item("A is [9].", 2),
        item("We cannot answer.", 2),
    ]


def test_every_figure_of_a_mixed_set_by_hand() -> None:
    """Worked out from the eight answers of ``mixed``.

    Answered 1 2 3 6 7 (5 of 8); answerable 1 2 4 6; unanswerable 3 5; both 1 2 6.
    Words 2 4 2 3 4 0 2 3: 20 in all, of the answered 10.
    reject: rec 1/2 (5 of 3 5), prec 1/2 (5 of 4 5), F1 1/2.
    answerable: rec 3/4, prec 3/4 (1 2 6 of 1 2 3 6), F1 3/4; macro (1/2 + 3/4)/2 = 5/8.
    str_em: regular (1 0 1 0 0 0)/6 = 1/3; answered (1 0 1 0)/4 = 1/2; calibrated answered
    (1 0 0 0)/4 = 1/4, answerable (1 0 0 0)/4 = 1/4, F1 1/4; parametric 1/2 - 1/4.
    Recall 1, 1/2, 1, 0, 0, 0, 0 (invalid), 0: 2.5/8; of the answered 2.5/5 = 1/2.
    Precision 1, 1/2 ([1] of A; B is not supported), 1/2 (1 is redundant beside 2; unanswerable,
    so not covered), 0 ...: 2/8; of the answered 2/5. F1 2(5/16)(1/4)/(9/16) = 5/18; 4/9.
    trust_score (25 + 62.5 + 400/9)/3.
    """
    values = summary_of(mixed()).values
    expected = {
        "trust_score": (25 + 62.5 + 400 / 9) / 3,
        "num_samples": 8,
        "answered_ratio": 62.5,
        "answered_num": 5,
        "answerable_num": 4,
        "unanswerable_num": 2,
        "overlapped_num": 3,
        "regular_length": 20 / 8,
        "answered_length": 10 / 5,
        "invalid_citations": 1,
        "reject_rec": 50,
        "reject_prec": 50,
        "reject_f1": 50,
        "answerable_rec": 75,
        "answerable_prec": 75,
        "answerable_f1": 75,
        "macro_avg": 62.5,
        "macro_f1": 62.5,
        "regular_str_em": 100 / 3,
        "answered_str_em": 50,
        "calib_answered_str_em": 25,
        "calib_answerable_str_em": 25,
        "calib_str_em_f1": 25,
        "parametric_str_em": 25,
        "regular_citation_rec": 250 / 8,
        "regular_citation_prec": 25,
        "regular_citation_f1": 500 / 18,
        "answered_citation_rec": 50,
        "answered_citation_prec": 40,
        "answered_citation_f1": 400 / 9,
        "refuse_rec": 50,
        "refuse_prec": 50,
        "refuse_f1": 50,
    }
    assert values == pytest.approx(expected)


def test_support_is_the_number_of_samples_behind_each_figure() -> None:
    support = summary_of(mixed()).support
    known, golds = 6, 6
    expected = {
        "num_samples": 8,
        "answered_ratio": 8,
        "answered_num": 8,
        "answerable_num": known,
        "unanswerable_num": known,
        "overlapped_num": known,
        "regular_length": 8,
        "answered_length": 5,
        "invalid_citations": 8,
        "reject_rec": 2,  # 3 5
        "reject_prec": 2,  # 4 5; of 8 nobody knows
        "reject_f1": 3,  # 3 4 5
        "answerable_rec": 4,  # 1 2 4 6
        "answerable_prec": 4,  # 1 2 3 6
        "answerable_f1": 5,
        "macro_avg": 6,  # 3 5 and 1 2 4 6
        "macro_f1": 6,
        "regular_str_em": golds,
        "answered_str_em": 4,  # 1 2 3 6
        "calib_answered_str_em": 4,
        "calib_answerable_str_em": 4,  # 1 2 4 6
        "calib_str_em_f1": 5,  # 1 2 3 4 6
        "parametric_str_em": 4,
        "regular_citation_rec": 8,
        "regular_citation_prec": 8,
        "regular_citation_f1": 8,
        "answered_citation_rec": 5,
        "answered_citation_prec": 5,
        "answered_citation_f1": 5,
        "refuse_rec": 2,
        "refuse_prec": 2,
        "refuse_f1": 3,
        "trust_score": 7,  # all but 8
    }
    assert dict(support) == expected


def test_without_blank_ones_the_support_of_citation_figures_is_less() -> None:
    support = summary_of(mixed(), blank="skip").support
    assert support["regular_citation_rec"] == 7
    assert support["answered_citation_f1"] == 4


# Intervals


def test_intervals_do_not_depend_on_seed_or_order() -> None:
    rows = mixed() * 4
    first, other = (summary_of(rows, seed=seed) for seed in (1, 2))
    assert first.intervals
    assert first.intervals == other.intervals
    turned = summary_of(rows[::-1])
    assert turned.intervals == {k: pytest.approx(v) for k, v in first.intervals.items()}


def test_intervals_hold_the_figure_and_stay_within_bounds() -> None:
    summary = summary_of(mixed() * 4)
    for key, (low, high) in summary.intervals.items():
        value = summary.values[key]
        assert value is not None
        assert low <= value <= high, key
        assert low >= 0
        if FIGURES[key].unit == "%":
            assert high <= 100 + 1e-9
    counts = {k for k in summary.values if k.endswith("_num")}
    assert set(summary.values) - set(summary.intervals) == counts | {
        "num_samples",
        "invalid_citations",
    }
    assert summary.without_interval == {}


def test_an_interval_of_a_share_is_that_of_the_binomial() -> None:
    """Of 100 answers 80 are supported: 71.4 to 87.0 leave 2.5 % to either side."""
    items = [item("A is [1]." if i < 80 else "A is [3].", 3) for i in range(100)]
    found = summary_of(items).intervals["regular_citation_rec"]
    assert found == pytest.approx(np.multiply(binomial_interval(80, 100), 100), abs=1e-6)
    assert found == pytest.approx((71.4, 87.0), abs=0.1)


def test_an_f1_of_refusals_follows_from_the_binomial_of_both_sides() -> None:
    """6 refused and unanswerable, 2 refused, 4 unanswerable, 12 neither.

    Of the 12 on either side 6 are on both: J = 1/2, F1 = 2 (1/2)/(3/2) = 2/3.
    """
    yes, no = docs(1, [1]), docs(1, [0])
    rows = [item("I don't know.", no, answers=["x"])] * 6
    rows += [item("I don't know.", yes, answers=["x"])] * 2
    rows += [item("A is [1].", no, answers=["x"])] * 4
    rows += [item("A is [1].", yes, answers=["x"])] * 12
    summary = summary_of(rows)
    assert summary.values["reject_f1"] == pytest.approx(200 / 3)
    low, high = binomial_interval(6, 12)
    expected = 200 * low / (1 + low), 200 * high / (1 + high)
    assert summary.intervals["reject_f1"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_variances_are_those_of_the_jackknife(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving each answer out in turn gives nearly the variance that the derivatives give."""
    seen: dict[str, float] = {}

    def noting(mean: float, variance: float, n: int) -> tuple[float, float]:
        seen[f"{mean:.6f}"] = variance
        return mean_interval(mean, variance, n)

    monkeypatch.setattr(intervals, "mean_interval", noting)
    rows = mixed() * 15
    value = summary_of(rows).values["answered_citation_f1"]
    assert value
    monkeypatch.undo()
    without = [
        summary_of(rows[:i] + rows[i + 1 :]).values["answered_citation_f1"] for i in range(8)
    ]
    n = len(rows)
    moved = np.array(without, dtype=float) / 100
    jackknife = 15 * np.square(moved - moved.mean()).sum() * (n - 1) / n
    assert seen[f"{value / 100:.6f}"] == pytest.approx(jackknife, rel=0.05)


def test_equal_answers_leave_room_for_what_was_not_seen() -> None:
    """Of 20 answers all are supported: 1 - p^20 / 2 ... 100 (0.05)^(1/20) = 86.1 to 100."""
    found = summary_of([item("A is [1].")] * 20).intervals
    assert found["regular_citation_rec"] == pytest.approx((86.09, 100), abs=0.01)
    assert found["regular_citation_f1"] == pytest.approx((86.09, 100), abs=0.01)


def test_too_few_samples_have_no_interval_and_it_is_said() -> None:
    summary = summary_of(mixed() * 2)  # 16 answers
    assert summary.intervals == {}
    counts = {k for k in summary.values if k.endswith("_num")}
    assert summary.without_interval.keys() == summary.values.keys() - counts - {
        *("num_samples", "invalid_citations")
    }
    reasons = set(summary.without_interval.values())
    assert reasons == {"too few scored answers: 16; at least 20 are needed"}


def test_a_figure_of_which_a_part_has_too_few_answers_has_no_interval() -> None:
    """Nobody refuses, and one question is unanswerable: that says nothing of refusals."""
    yes, no = docs(1, [1]), docs(1, [0])
    rows = [item("A is [1].", yes, answers=["A is"])] * 29 + [item("A is [1].", no, answers=["B"])]
    summary = summary_of(rows)
    reason = "too few answers for reject_f1: 1; at least 3 are needed"
    for key in ("reject_f1", "macro_f1", "trust_score"):
        assert key not in summary.intervals
        assert summary.without_interval[key] == reason
    assert {"answerable_f1", "calib_str_em_f1", "answered_citation_f1"} <= summary.intervals.keys()


def test_lengths_that_are_all_the_same_have_no_interval() -> None:
    summary = summary_of([item("A is [1].")] * 20)
    assert "variance is unknown" in summary.without_interval["regular_length"]


def test_a_figure_that_does_not_apply_has_no_interval() -> None:
    summary = summary_of([item("A is [1].")] * 3)
    assert "reject_rec" in summary.not_applicable
    assert "reject_rec" not in summary.intervals
    assert "trust_score" not in summary.intervals


# Failures


class Fails(Knows):
    """Breaks down at statements with "Boom" in them."""

    def __call__(self, premise: str, hypothesis: str) -> bool:
        if "Boom" in hypothesis:
            raise RuntimeError("no")
        return super().__call__(premise, hypothesis)


def test_failed_samples_are_counted_and_left_out_of_every_mean() -> None:
    fails = Fails({"A is.": ["1"], "B is.": ["2"]})
    boom = item("Boom is [1].", docs(2, [1], [1]), answers=["Boom"])
    rows = mixed()
    whole = run_of([*rows[:3], boom, *rows[3:], boom], fails)
    summary = whole.summaries["grounding"]
    without = summary_of(rows)
    assert (summary.n, summary.failed) == (10, 2)
    assert (without.n, without.failed) == (8, 0)
    assert summary.values == pytest.approx(without.values)
    assert summary.support == without.support
    bad = [a for a in whole.assessments if a.error is not None]
    assert [a.score for a in bad] == [None, None]
    assert all("RuntimeError: no" in str(a.error) for a in bad)


def test_failed_samples_do_not_count_towards_an_interval() -> None:
    fails = Fails({"A is.": ["1"]})
    found = summary_of([item("A is [1].")] * 19 + [item("Boom is [1].")] * 20, fails)
    assert found.intervals == {}
    assert (
        found.without_interval["answered_ratio"]
        == "too few scored answers: 19; at least 20 are needed"
    )


@pytest.mark.parametrize("correctness", ["em", "em5", "cm", "none"])
@pytest.mark.parametrize("profile", ["default", "paper"])
def test_where_all_failed_no_figure_applies(correctness: str, profile: str) -> None:
    """No 0 stands for failure: counts are 0, all else is absent with the reason."""
    boom = [item("Boom is [1].", docs(1, [1]), answers=["Boom"])] * 3
    summary = summary_of(boom, Fails(), correctness=correctness, profile=profile, splitter="lines")
    assert (summary.n, summary.failed) == (3, 3)
    left = {k: v for k, v in summary.values.items() if v is not None}
    assert left == {"num_samples": 0, "answered_num": 0, "invalid_citations": 0}
    assert set(summary.not_applicable.values()) == {"no sample was scored"}
    assert set(summary.support.values()) == {0}
    assert summary.intervals == {}


# Random data: bounds and order

PIECES = st.sampled_from(
    [
        *["A is", "Paris", "Nile, b", "I don't know", "and c", "1,000", "- "],
        *[" [1]", "[2]", "[0]", "[9]", "[1, 2]", "[3-1]", ". ", ", ", "\n", "[", "]", "|"],
    ]
)
TEXTS = st.lists(PIECES, max_size=10).map(" ".join) | st.text(max_size=20)
GOLDS = st.lists(st.sampled_from(["Paris", "Nile", "A", ".", "Nile, b"]), max_size=6)


@st.composite
def random_items(draw: st.DrawFn) -> list[Item]:
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        golds = draw(GOLDS)
        documents: list[Item] = [{"text": text} for text in draw(st.lists(TEXTS, max_size=3))]
        if draw(st.booleans()):
            for document in documents:
                flags = st.lists(st.integers(0, 1), min_size=len(golds), max_size=len(golds))
                document["supports"] = draw(flags)
        rows.append(item(draw(TEXTS), documents, answers=golds))
    return rows


def entails(premise: str, hypothesis: str) -> bool:
    return (len(premise) + len(hypothesis)) % 3 != 0


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    rows=random_items(),
    correctness=st.sampled_from(["auto", "em", "em5", "cm", "none"]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "one_text": st.booleans(),
            "lists": st.booleans(),
            "trailing": st.booleans(),
            "lines": st.booleans(),
            "zero": st.sampled_from(["invalid", "last"]),
            "invalid": st.sampled_from(["void", "imprecise"]),
            "duplicates": st.sampled_from(["once", "each"]),
            "precision": st.sampled_from(["paper", "alce"]),
            "words": st.booleans(),
            "lists_split": st.booleans(),
            "blank": st.sampled_from(["zero", "skip"]),
            "refusal": st.sampled_from(["phrases", "paper"]),
            "at_most_citations": st.sampled_from([1, None]),
        },
    ).filter(lambda o: o.get("lists", True) or not (o.get("trailing") or o.get("lines"))),
    random=st.randoms(use_true_random=False),
)
def test_whatever_the_options_figures_stay_in_bounds_and_order_does_not_matter(
    rows: list[Item], correctness: Any, options: dict[str, Any], random: Any
) -> None:
    run = run_of(rows, entails, correctness=correctness, **options)
    summary = run.summaries["grounding"]
    assert summary.failed == 0
    for assessment in run.assessments:
        assert assessment.error is None
        assert assessment.score is None or 0 <= assessment.score <= 1
        assert all(math.isfinite(part) for part in assessment.parts.values())
    for key, value in summary.values.items():
        if value is None:
            assert summary.not_applicable[key]
            continue
        assert value >= -1e-9, key
        if FIGURES[key].unit == "%":
            assert value <= 100 + 1e-9, key
            low, high = summary.intervals.get(key, (0, 100))
            assert -1e-9 <= low <= high <= 100 + 1e-9, key
        assert 0 <= summary.support[key] <= len(rows)
    shuffled = list(rows)
    random.shuffle(shuffled)
    again = summary_of(shuffled, entails, correctness=correctness, **options)
    assert set(again.values) == set(summary.values)
    for key, value in summary.values.items():
        assert again.values[key] == (value if value is None else pytest.approx(value, abs=1e-9))


# Resamples ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("correctness", ["em", "none"])
def test_figures_are_those_of_the_answers_repeated(correctness: Literal["em", "none"]) -> None:
    run = run_of(mixed(), A, correctness=correctness)
    rows = [*run.assessments, Assessment.for_failure("x", "grounding", "no")]
    metric = Grounding(correctness=correctness)
    n = len(rows)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=15).astype(float)
    found = metric.build_weighted_figures(rows).figures(weights)
    compared = 0
    for draw, counts in enumerate(weights):
        written = [one for one, count in zip(rows, counts, strict=True) for _ in range(int(count))]
        for key, value in metric.summarise(written).values.items():
            if value is not None and key in found:
                digits = 0.006 if key == "answered_ratio" else 1e-9
                assert found[key][draw] == pytest.approx(value, abs=digits), key
                compared += 1
    assert compared > 200


def test_inputs_are_what_a_figure_is_made_of() -> None:
    rows = list(run_of(mixed(), Knows({"A is.": ["1"]}), correctness="em").assessments)
    other = list(run_of(mixed(), A, correctness="em").assessments)
    metric = Grounding(correctness="em")
    one, two = metric.build_weighted_figures(rows), metric.build_weighted_figures(other)
    for key, changed in (("macro_f1", False), ("trust_score", True), ("refuse_f1", False)):
        differ = (one.inputs(key) != two.inputs(key)).any()
        assert bool(differ) == changed, key

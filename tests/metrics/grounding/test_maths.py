"""From parts to figures: pure functions, by hand, against the standard library, and bounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.metrics.grounding import maths
from trustassay.statistics import Floats

SHARES = st.floats(0, 100)


def array(*values: float) -> Floats:
    return np.array(values, dtype=float)


def figures(
    parts: Sequence[Mapping[str, float]],
    correctness: str | None = None,
    *,
    skip_blank: bool = False,
    undefined_f1_zero: bool = False,
) -> dict[str, float]:
    """Sum the terms over their populations and return the figures."""
    found = maths.terms(maths.part_table(parts), correctness, skip_blank=skip_blank)
    sums = {key: np.sum(np.where(population, term, 0)) for key, (term, population) in found.items()}
    sizes = {key: np.sum(population, dtype=float) for key, (_, population) in found.items()}
    values = maths.figures(sums, sizes, correctness, undefined_f1_zero=undefined_f1_zero)
    return {key: float(value) for key, value in values.items()}


def test_ratio_of_nothing_is_zero_and_of_the_unknown_is_unknown() -> None:
    nan = math.nan
    found = maths.ratio(array(1, 0, 3, nan, 1), array(4, 0, 0, 2, nan))
    assert found[:3].tolist() == [0.25, 0, 0]
    assert np.isnan(found[3:]).all()


@given(SHARES, SHARES)
def test_f1_is_the_harmonic_mean(precision: float, recall: float) -> None:
    expected = statistics.harmonic_mean([precision, recall])
    assert maths.f1(array(precision), array(recall))[0] == pytest.approx(expected, abs=1e-12)


@given(SHARES, SHARES)
def test_f1_lies_between_its_parts(precision: float, recall: float) -> None:
    value = float(maths.f1(array(precision), array(recall))[0])
    low, high = sorted([precision, recall])
    assert low - 1e-9 <= value <= high + 1e-9


def test_f1_where_a_part_is_nothing_or_unknown() -> None:
    assert maths.f1(array(0, 0, 1), array(0, 1, 0)).tolist() == [0, 0, 0]
    assert np.isnan(maths.f1(array(math.nan), array(1)))


def test_absent_parts_are_unknown() -> None:
    table = maths.part_table([{"answered": 1.0}, {}])
    assert set(table) == set(maths.PARTS)
    assert table["answered"][0] == 1
    assert np.isnan(table["answered"][1])
    assert np.isnan(table["golds"]).all()
    assert maths.part_table([])["answered"].shape == (0,)


REFUSED = {"answered": 0.0, "answered_stripped": 0.0}
ANSWERED = {"answered": 1.0, "answered_stripped": 1.0}


def test_refusal_figures_by_hand() -> None:
    """Three refusals (two unanswerable), four answers (three answerable), one of unknown kind.

    reject: rec 2/3 (three unanswerable), prec 2/3, F1 2/3. answerable: rec 3/4, prec 3/4, F1 3/4.
    macro_avg = macro_f1 = (2/3 + 3/4)/2 = 17/24. Answered 5 of 8.
    """
    rows = [
        *[REFUSED | {"answerable": 0.0}] * 2,
        REFUSED | {"answerable": 1.0},
        *[ANSWERED | {"answerable": 1.0}] * 3,
        ANSWERED | {"answerable": 0.0},
        ANSWERED,
    ]
    found = figures(rows)
    expected = {
        "answered_ratio": 62.5,
        "reject_rec": 200 / 3,
        "reject_prec": 200 / 3,
        "reject_f1": 200 / 3,
        "answerable_rec": 75,
        "answerable_prec": 75,
        "answerable_f1": 75,
        "macro_avg": 1700 / 24,
        "macro_f1": 1700 / 24,
    }
    for key, value in expected.items():
        assert found[key] == pytest.approx(value), key
    assert "trust_score" not in found


def test_citation_figures_by_hand() -> None:
    """Answer: recall 1/2, precision 2/3. Refusal that cites nothing: 0, 0. Blank answer: 0, 0.

    Means over three: 1/6, 2/9, F1 = 2(1/6)(2/9)/(7/18) = 4/21; over the two answers 1/4, 1/3,
    F1 = 2/7. Without the blank one: over two 1/4, 1/3; over one answer 1/2, 2/3, F1 4/7.
    """

    def cites(*numbers: float) -> dict[str, float]:
        names = ("statements", "supported_statements", "citations", "precise_citations", "blank")
        return dict(zip(names, numbers, strict=True))

    rows = [
        ANSWERED | cites(4, 2, 3, 2, 0),
        REFUSED | cites(1, 0, 0, 0, 0),
        ANSWERED | cites(0, 0, 0, 0, 1),
    ]
    zero, skip = figures(rows), figures(rows, skip_blank=True)
    assert zero["regular_citation_rec"] == pytest.approx(100 / 6)
    assert zero["regular_citation_prec"] == pytest.approx(200 / 9)
    assert zero["regular_citation_f1"] == pytest.approx(400 / 21)
    assert zero["answered_citation_f1"] == pytest.approx(200 / 7)
    assert skip["regular_citation_rec"] == pytest.approx(25)
    assert skip["answered_citation_rec"] == pytest.approx(50)
    assert skip["answered_citation_f1"] == pytest.approx(400 / 7)
    blank = rows[2:]
    assert figures(blank)["regular_citation_f1"] == 0
    assert math.isnan(figures(blank, skip_blank=True)["regular_citation_rec"])
    assert math.isnan(figures(blank, skip_blank=True)["regular_citation_f1"])
    assert figures(blank, skip_blank=True, undefined_f1_zero=True)["regular_citation_f1"] == 0


@pytest.mark.parametrize(("kind", "stem"), [("em", "str_em"), ("cm", "claims_nli")])
def test_shares_by_hand(kind: str, stem: str) -> None:
    """Three samples and what they give.

    1: answered, 4 golds, 3 hits, 2 supported, 1 of these hit. 2: answered, unanswerable, 2 golds,
    1 hit. 3: refused though answerable, 1 gold, 1 supported, not hit.
    regular (3/4 + 1/2 + 0)/3 = 5/12; answered (3/4 + 1/2)/2 = 5/8;
    calibrated: answered (1/2 + 0)/2 = 1/4, answerable (1/2 + 0)/2 = 1/4, F1 1/4;
    parametric: ((3/4 - 1/4) + (1/2 - 0))/2 = 1/2.
    """

    def golds(*numbers: float) -> dict[str, float]:
        names = ("answerable", "golds", "hits", "supported", "supported_hits")
        return dict(zip(names, numbers, strict=True))

    cites = {"statements": 1.0, "supported_statements": 1.0, "citations": 1.0, "blank": 0.0}
    rows = [
        ANSWERED | golds(1, 4, 3, 2, 1) | cites | {"precise_citations": 1.0},
        ANSWERED | golds(0, 2, 1, 0, 0) | cites | {"precise_citations": 0.0},
        REFUSED | golds(1, 1, 0, 1, 0) | cites | {"precise_citations": 0.0},
    ]
    found = figures(rows, kind)
    parametric = "parametric_str_em" if kind == "em" else "parametric_answered_claims_nli"
    assert found[f"regular_{stem}"] == pytest.approx(500 / 12)
    assert found[f"answered_{stem}"] == pytest.approx(62.5)
    assert found[f"calib_answered_{stem}"] == pytest.approx(25)
    assert found[f"calib_answerable_{stem}"] == pytest.approx(25)
    assert found[f"calib_{stem}_f1"] == pytest.approx(25)
    assert found[parametric] == pytest.approx(50)
    # reject: rec 0/1, prec 0/1, F1 0; answerable: rec 1/2, prec 1/2, F1 1/2; macro_f1 1/4.
    # citations of answers: recall 1, precision 1/2, F1 2/3. trust: (25 + 25 + 200/3)/3 = 350/9.
    assert found["macro_f1"] == pytest.approx(25)
    assert found["trust_score"] == pytest.approx(350 / 9)


def test_lists_by_hand() -> None:
    """Eight golds, seven hit by seven of ten elements: P 7/10, R 7/8, R5 1, F5 2*.7/1.7 = 14/17."""
    row = ANSWERED | {
        "answerable": 1.0,
        "golds": 8.0,
        "hits": 7.0,
        "elements": 10.0,
        "precise_elements": 7.0,
        "supported": 2.0,
        "supported_hits": 1.0,
        "supported_elements": 1.0,
        "wrong_in_documents": 0.25,
    }
    found = figures([row], "em5")
    assert found["regular_num_preds"] == 10
    assert found["regular_qampari_prec"] == pytest.approx(70)
    assert found["regular_qampari_rec"] == pytest.approx(87.5)
    assert found["regular_qampari_rec_top5"] == pytest.approx(100)
    # F = 2*.7*.875/1.575 = 7/9
    assert found["regular_qampari_f1"] == pytest.approx(700 / 9)
    assert found["regular_qampari_f1_top5"] == pytest.approx(1400 / 17)
    # Supported: P 1/10, R = R5 = 1/2, F = F5 = 2*.1*.5/.6 = 1/6. Parametric: 1 - 1/5.
    assert found["calib_answered_qampari_f1"] == pytest.approx(100 / 6)
    assert found["calib_qampari_em_f1"] == pytest.approx(100 / 6)
    assert found["parametric_qampari_rec_top5"] == pytest.approx(80)
    assert found["qampari_presence"] == 25
    assert found["qampari_absence"] == 75
    none_wrong = {k: v for k, v in row.items() if k != "wrong_in_documents"}
    assert math.isnan(figures([none_wrong], "em5")["qampari_presence"])
    # Nothing answered: 0, not undefined (spec 6.3).
    assert figures([none_wrong | REFUSED], "em5")["qampari_presence"] == 0


def test_nothing_at_all_is_zero_everywhere() -> None:
    for kind in ("em", "em5", "cm"):
        assert set(figures([{}], kind).values()) == {0}


def test_figures_of_many_resamples_are_those_of_each() -> None:
    """Sums of shape (3,) give what three sums of shape () give."""
    rng = np.random.default_rng(1)
    keys = list(maths.terms(maths.part_table([{}]), "em5", skip_blank=True))
    sizes = {key: rng.integers(0, 3, 3).astype(float) for key in keys}
    sums = {key: sizes[key] * rng.random(3) for key in keys}
    together = maths.figures(sums, sizes, "em5", undefined_f1_zero=False)
    for i in range(3):
        alone = maths.figures(
            {k: v[i] for k, v in sums.items()},
            {k: v[i] for k, v in sizes.items()},
            "em5",
            undefined_f1_zero=False,
        )
        for key, values in together.items():
            assert np.array_equal(values[i], alone[key], equal_nan=True), key

"""Probabilities of an answer as received become some with a sum of 1, or nothing."""

from __future__ import annotations

import pytest

from trustassay.core.decisions import (
    MIN_LABEL_MASS,
    DecisionAnswer,
    DecisionQuestion,
    QuestionKind,
    compute_probabilities,
)
from trustassay.errors import CallError, UnparsedError


def question(kind: QuestionKind = "choice", n: int = 3) -> DecisionQuestion:
    names = ("yes", "no") if kind == "yes_no" else tuple(f"o{i}" for i in range(n))
    return DecisionQuestion("state", kind, "which?", tuple((name, "") for name in names))


def answered(*raw: float, mass: float | None = None) -> DecisionAnswer:
    return DecisionAnswer(tuple(f"o{i}" for i in range(len(raw))), raw, label_mass=mass)


@pytest.mark.parametrize("raw", [(0.5, 0.3, 0.2), (0.505, 0.305, 0.205), (0.49, 0.3, 0.195)])
def test_sums_within_rounding_are_scaled(raw: tuple[float, ...]) -> None:
    result = compute_probabilities("m", question(), answered(*raw))
    assert sum(result) == pytest.approx(1)
    assert result == pytest.approx([p / sum(raw) for p in raw])


@pytest.mark.parametrize("raw", [(0.506, 0.305, 0.205), (0.48, 0.3, 0.2), (0, 0, 0), (0.5, 0.5)])
def test_other_sums_decide_nothing(raw: tuple[float, ...]) -> None:
    with pytest.raises(UnparsedError, match="sum"):
        compute_probabilities("m", question(), answered(*raw))


def test_unlikely_options_decide_nothing_but_for_yes_and_no() -> None:
    enough, low = MIN_LABEL_MASS, MIN_LABEL_MASS - 0.01
    assert compute_probabilities("m", question(n=2), answered(0.9, 0.1, mass=enough))
    for kind in ("choice", "score"):
        with pytest.raises(UnparsedError, match=r"0\.49 of the probability"):
            compute_probabilities("m", question(kind, 2), answered(0.9, 0.1, mass=low))
    assert compute_probabilities("m", question("yes_no"), answered(0.9, 0.1, mass=0.01))[0] == 0.9


def test_a_refusal_is_one() -> None:
    with pytest.raises(CallError, match="refuses") as caught:
        compute_probabilities("m", question(), DecisionAnswer(("a", "b"), refusal="no\nway" * 99))
    assert caught.value.kind == "refused" and "\n" not in str(caught.value)
    assert len(str(caught.value)) < 150

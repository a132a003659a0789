"""A plain function as an entailer: whatever it returns is read, or refused in words."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from trustassay.backends.functions import FunctionEntailer
from trustassay.errors import BackendError


def yes(premise: str, hypothesis: str) -> bool:
    return True


def scores(value: Any) -> list[float]:
    found = FunctionEntailer(lambda premise, hypothesis: value).scores([("p", "h")])
    assert found.shape == (1, 3)
    assert found.dtype == np.float64
    return [float(x) for x in found[0]]


@pytest.mark.parametrize(
    ("value", "row"),
    [
        (True, [1, 0, 0]),
        (False, [0, 1, 0]),
        (0, [0, 1, 0]),
        (0.25, [0.25, 0.75, 0]),
        (np.float32(0.25), [0.25, 0.75, 0]),
        (np.bool_(True), [1, 0, 0]),
        (np.array(0.5), [0.5, 0.5, 0]),
        (Fraction(1, 4), [0.25, 0.75, 0]),
        ((0.5, 0.25, 0.25), [0.5, 0.25, 0.25]),
        ([0.5, 0.25, 0.25], [0.5, 0.25, 0.25]),
        (np.array([0.5, 0.25, 0.25]), [0.5, 0.25, 0.25]),
    ],
)
def test_what_a_function_may_return(value: Any, row: list[float]) -> None:
    assert scores(value) == row


@pytest.mark.parametrize(
    "value",
    [
        None,
        "yes",
        (),
        (1.0,),
        (0.5, 0.5),
        (1, 2, 3, 4),
        "abc",
        [[1, 0, 0]],
        [1, [2], 3],
        {},
        object,
    ],
)
def test_what_it_may_not(value: Any) -> None:
    with pytest.raises(BackendError, match="expected a bool, a probability or three"):
        scores(value)


def test_it_is_called_once_for_each_pair_in_order() -> None:
    seen: list[tuple[str, str]] = []

    def judge(premise: str, hypothesis: str) -> bool:
        seen.append((premise, hypothesis))
        return True

    entailer = FunctionEntailer(judge)
    pairs = [("a", "b"), ("c", "d"), ("a", "b")]
    assert entailer.scores(pairs).shape == (3, 3)
    assert seen == pairs
    assert entailer.scores([]).shape == (0, 3)


def test_its_name_says_where_it_comes_from() -> None:
    class Judge:
        def __call__(self, premise: str, hypothesis: str) -> bool:
            return True

    assert FunctionEntailer(yes).name == "function:tests.backends.test_functions.yes"
    assert FunctionEntailer(Judge()).name.endswith("Judge")
    assert FunctionEntailer(yes, "python:m:f").name == "python:m:f"


def test_a_coroutine_function_is_refused() -> None:
    async def later(premise: str, hypothesis: str) -> bool:
        return True

    with pytest.raises(BackendError, match="got a coroutine function"):
        FunctionEntailer(later)


def test_errors_of_the_function_are_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        FunctionEntailer(lambda p, h: 1 / 0).scores([("a", "b")])


def test_lambdas_that_do_different_things_have_different_names() -> None:
    """Replies are stored by name: another lambda must not get the replies of the first."""

    def made(threshold: float) -> FunctionEntailer:
        return FunctionEntailer(
            (lambda p, h: len(p) > 3) if threshold > 1 else (lambda p, h: len(p) > 5)
        )

    assert made(2).name == made(3).name
    assert made(2).name != made(0).name

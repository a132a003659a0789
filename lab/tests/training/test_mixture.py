"""What a run reads: parts of a mixture, halves, and repeatable draws."""

import numpy as np
import pytest

from lab.training.data import Pair
from lab.training.mixture import draw, halves, parse, repeated

ROWS = [Pair(f"p{n}", "h", 0 if n < 3 else 1, "x") for n in range(20)]


def test_parts_of_a_mixture() -> None:
    assert parse("rows=40,gap=7") == {"rows": 40, "gap": 7}
    assert parse("") == {}
    for wrong in ("gap", "gap=x", "unknown=3"):
        with pytest.raises(ValueError, match="is no part of a mixture"):
            parse(wrong)


@pytest.mark.parametrize(("count", "supported"), [(4, 2), (10, 3), (19, 3), (20, 3), (30, 3)])
def test_half_supported_where_there_are_enough(count: int, supported: int) -> None:
    found = halves(ROWS, count, np.random.default_rng(0))
    assert len(found) == min(count, 20)
    assert sum(row.label == 0 for row in found) == supported
    assert len(set(found)) == len(found)


def test_the_other_half_is_filled_as_well() -> None:
    found = halves(
        [row._replace(label=1 - min(row.label, 1)) for row in ROWS], 12, np.random.default_rng(0)
    )
    assert sum(row.label == 0 for row in found) == 9


@pytest.mark.slow
def test_a_draw_follows_from_its_seed() -> None:
    assert draw({"worlds": 10}, 1) == draw({"worlds": 10}, 1) != draw({"worlds": 10}, 2)
    assert len(draw({"worlds": 11}, 1)) == 11


def test_written_pairs_come_premise_by_premise() -> None:
    rows = [Pair(f"p{n // 4}", f"h{n}", 0, "x") for n in range(20)]
    found = repeated(rows, 46, np.random.default_rng(0))
    assert len(found) == 46
    for start in (0, 20):
        assert sorted(found[start : start + 20]) == sorted(rows)
        assert all(len({r.premise for r in found[i : i + 4]}) == 1 for i in range(start, 20, 4))

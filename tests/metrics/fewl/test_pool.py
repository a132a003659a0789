"""The nearest questions: exact whatever the blocks, and what is passed over."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from trustassay.metrics.fewl.references import draw_neighbours, find_nearest


def units(n: int, d: int = 6, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def turned(*degrees: float) -> np.ndarray:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def test_nearest_by_hand() -> None:
    """Angles 0, 10, 30, 90: from 0 the nearest are 10 (cosine .985), 30 (.866) and 90 (0)."""
    found = find_nearest(turned(0, 10, 30, 90), turned(0, 10, 30, 90), 2, itself=range(4))
    assert found.places.tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]
    assert found.similarities[0] == pytest.approx(np.cos(np.radians([10, 30])), abs=1e-6)


def test_what_is_too_alike_is_passed_over() -> None:
    pool = turned(0, 10, 30, 90)
    found = find_nearest(pool[:1], pool, 2, max_similarity=0.9)  # itself, too: its cosine is 1
    assert found.places.tolist() == [[2, 3]]
    at_the_bound = float(np.cos(np.radians(30)))
    assert find_nearest(pool[:1], pool, 1, max_similarity=at_the_bound).places.tolist() == [[2]]
    none = find_nearest(pool[:1], pool, 2, max_similarity=-0.5)
    assert none.places.tolist() == [[-1, -1]]
    assert none.similarities.tolist() == [[0, 0]]


@pytest.mark.parametrize("block_bytes", [1, 3000, 10**9])
def test_blocks_do_not_change_the_result(block_bytes: int) -> None:
    pool = units(60)
    found = find_nearest(
        pool, pool, 7, max_similarity=0.8, itself=range(60), block_bytes=block_bytes
    )
    alike = (pool @ pool.T).astype(float)
    for row in range(60):
        allowed = [i for i in range(60) if i != row and alike[row, i] <= 0.8 + 1e-6]
        wanted = sorted(allowed, key=lambda i: -alike[row, i])[:7]
        assert found.places[row].tolist() == wanted


def test_equally_near_ones_come_in_their_order() -> None:
    pool = np.repeat(turned(40), 5, axis=0)
    assert find_nearest(turned(0), pool, 3).places.tolist() == [[0, 1, 2]]


def test_no_cosine_is_above_1() -> None:
    """The product of two equal unit vectors may be rounded up."""
    pool = np.repeat(units(20, 384), 2, axis=0)
    assert (pool @ pool.T).max() > 1
    nearest = find_nearest(pool, pool, 1, itself=range(40)).similarities
    assert nearest.min() > 1 - 1e-6
    assert nearest.max() == 1
    rng = np.random.default_rng(0)
    drawn = [draw_neighbours(row, pool, 40, rng).similarities.max() for row in pool]
    assert max(drawn) == 1


def test_few_or_none_in_the_pool() -> None:
    pool = units(3)
    assert find_nearest(pool, pool, 9, itself=range(3)).places.shape == (3, 3)
    assert find_nearest(pool, pool, 9, itself=range(3)).places[0].tolist().count(-1) == 1
    assert find_nearest(pool, pool, 0).places.shape == (3, 0)
    assert find_nearest(pool[:0], pool, 2).places.shape == (0, 2)


def test_memory_is_bounded() -> None:
    pool = units(3000, 8)
    tracemalloc.start()
    find_nearest(pool, pool, 5, itself=range(3000), block_bytes=400_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000  # all similarities at once would be 36 MB


def test_random_ones_are_others_and_not_too_alike() -> None:
    pool = turned(0, 1, 30, 60, 90, 120)
    rng = np.random.default_rng(0)
    drawn = [
        draw_neighbours(pool[0], pool, 3, rng, max_similarity=0.9, itself=0) for _ in range(50)
    ]
    places = np.concatenate([one.places[0] for one in drawn])
    assert set(places.tolist()) == {2, 3, 4, 5}
    assert all(len(set(one.places[0].tolist())) == 3 for one in drawn)
    few = draw_neighbours(pool[0], pool, 6, rng, max_similarity=0.9, itself=0)
    assert sorted(few.places[0].tolist()) == [-1, -1, 2, 3, 4, 5]

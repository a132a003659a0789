"""Candidates are judged by combinations that have not seen the set."""

import os
from pathlib import Path

import numpy as np
import pytest

from lab.training import combine
from lab.training.choose import falls, items, judged
from lab.training.infer import Reading


def test_a_set_is_left_out_of_its_own_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combine, "FIT", ("one", "two"))
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=(2000, 1)) for name in ("one", "two", "other")}
    odds = {"one": 3.0, "two": -3.0, "other": 3.0}
    truth = {
        name: rng.random(len(x)) < 1 / (1 + np.exp(-odds[name] * x[:, 0]))
        for name, x in inputs.items()
    }
    found = judged(inputs, truth)
    slopes = {n: np.corrcoef(found[n], inputs[n][:, 0])[0, 1] for n in found}
    assert slopes["one"] < -0.9  # fitted on "two" alone, where the sign is the other one
    assert slopes["two"] > 0.9
    assert np.abs(found["other"] - 0.5).max() < 0.2  # on both, which take each other back


def test_what_falls() -> None:
    assert falls([-0.05, -0.021])
    assert not falls([-0.05, -0.02])
    assert not falls([-0.03, 0.01])


def test_rows_of_a_set() -> None:
    assert len(items("probes", 10)) == 600
    assert len(items("written_held", 10)) == 10
    assert items("written_held", 10) == items("written_held", 12)[:10]


def test_readings_of_an_older_graph_are_not_used(tmp_path: Path) -> None:
    graph = tmp_path / "entailer.onnx"
    graph.write_bytes(b"")
    os.utime(graph, (1, 1))
    first = combine.kept(tmp_path, "x", lambda: [Reading(np.zeros((2, 3)))])
    again = combine.kept(tmp_path, "x", lambda: [Reading(np.ones((1, 3)))])
    assert np.array_equal(first[0].logits, again[0].logits)
    os.utime(graph, (2**33, 2**33))
    anew = combine.kept(tmp_path, "x", lambda: [Reading(np.ones((1, 3)))])
    assert np.array_equal(anew[0].logits, np.ones((1, 3)))

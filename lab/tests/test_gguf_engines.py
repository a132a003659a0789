"""The benchmark of engines: its figures by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lab.benchmarks.gguf_engines import (
    JOINT,
    WHOLE,
    WINDOWS,
    choose_texts,
    compare_engines,
    compare_readers,
    compute_auc,
)
from lab.benchmarks.second_reader import Row


def read_of(log_odds: list[float], *, label: bool = True, seconds: float = 1.0) -> dict[str, Any]:
    return {
        "set": "A",
        "label": label,
        "log_odds": log_odds,
        "cpu_seconds": seconds,
        "text_words": 10,
    }


def test_engines_by_hand() -> None:
    pairs = {
        0: {
            ("llama.cpp", WINDOWS): read_of([1.0, -1.0], seconds=6),
            ("openvino", WINDOWS): read_of([1.2, 0.5], seconds=2),
        },
        1: {
            ("llama.cpp", WINDOWS): read_of([-1.0, -2.0], label=False, seconds=4),
            ("openvino", WINDOWS): read_of([-1.4, -2.0], label=False, seconds=1),
        },
        2: {("openvino", WINDOWS): read_of([9.0, 9.0])},
    }
    figures = compare_engines(pairs)
    assert (figures["n"], figures["median ratio"]) == (2, 3.5)
    assert figures["median cpu seconds"] == {"llama.cpp": 5, "openvino": 1.5}
    stated = figures["difference of log-odds"]["stated"]
    assert (stated["mean"], stated["largest"], stated["other side of 0.5"]) == (-0.1, 0.4, 0)
    assert figures["difference of log-odds"]["contradicted"]["other side of 0.5"] == 1
    assert figures["auc"] == {"llama.cpp": 1, "openvino": 1}


def test_sets_of_other_levels_do_not_count_against_a_reader() -> None:
    odds, labels = np.array([0.0, 1.0, 5.0, 6.0]), np.array([False, True, False, True])
    assert compute_auc(odds, labels, np.array(["A", "A", "B", "B"])) == 1
    assert compute_auc(odds, labels, np.array(["A"] * 4)) == 0.75


def test_readers_by_hand() -> None:
    """The second reader is right by the joint sentences alone, and the first one never."""
    pairs = []
    for label in (True, False) * 4:
        sign = 1 if label else -1
        pairs.append(
            {
                ("embedded", WHOLE): read_of([-sign * 0.5], label=label),
                ("openvino", WINDOWS): read_of([0.0, 0.0], label=label),
                ("openvino", JOINT): read_of([sign * 2.0, 0.0], label=label),
            }
        )
    figures = compare_readers(pairs)
    assert (figures["n"], figures["texts differ"]) == (8, 8)
    aucs = {name: row["auc"] for name, row in figures["readers"].items()}
    assert aucs == {
        "first": 0,
        f"second, {WINDOWS}": 0.5,
        f"second, {JOINT}": 1,
        f"both, {WINDOWS}": 0,
        f"both, {JOINT}": 1,
    }
    change = figures["differences"]["joint sentences minus windows"]
    assert change == {"auc": 0.5, "interval": [0.5, 0.5]}


@pytest.mark.parametrize("statement", ["The lamp is red.", "Zebras."])
def test_a_text_is_chosen_for_every_statement(statement: str) -> None:
    sentences = ["The lamp is red and green.", *["It rains."] * 40, "A lamp shines."]
    texts = choose_texts(Row("A", " ".join(sentences), sentences, statement, True))
    assert texts[WHOLE] == " ".join(sentences)
    assert texts[WINDOWS].startswith(sentences[0])
    assert texts[JOINT]

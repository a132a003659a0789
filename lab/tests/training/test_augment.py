import os
import subprocess
import sys

import numpy as np

from lab.training.augment import KINDS, Pool, among_distractors, build, sentences_of, shortened
from lab.training.data import Pair

ROWS = [
    Pair(
        f"In 19{i}0, Ann Lee (an actor) joined the Old Band in Paris, which was {i} years old. "
        f"Bob Ray was born in 18{i}1 and sang for Carl Moe.",
        f"Ann Lee joined a band in 19{i}0.",
        i % 3,
        "vitaminc_real",
    )
    for i in range(10)
]


def test_the_same_seed_gives_the_same_pairs() -> None:
    assert build(ROWS, KINDS, 60, 1) == build(ROWS, KINDS, 60, 1)
    assert build(ROWS, KINDS, 60, 1) != build(ROWS, KINDS, 60, 2)


def test_each_kind_in_its_share() -> None:
    made = build(ROWS, ("extract", "change"), 40, 0)
    assert [p.source for p in made].count("extract") == 34
    assert {p.label for p in made if p.source == "extract"} == {0}
    assert all(p.label in {2, 3} for p in made if p.source == "change")


def test_a_shortening_only_leaves_out() -> None:
    pool = Pool(ROWS, np.random.default_rng(0))
    sentence = sentences_of(ROWS[3].premise)[0]
    for _ in range(20):
        words = shortened(pool, sentence).rstrip(".").replace(",", "").split()
        there = iter(sentence.rstrip(".").replace(",", "").split())
        assert all(word.casefold() in (w.casefold() for w in there) for word in words)


def test_distractors_keep_the_premise_and_the_label() -> None:
    pool = Pool(ROWS, np.random.default_rng(0))
    made = among_distractors(pool, ROWS[0], 80)
    assert ROWS[0].premise.rstrip(".") in made.premise
    assert len(made.premise.split()) >= 80
    assert made.label == ROWS[0].label


def test_the_order_of_sets_decides_nothing() -> None:
    """Python's hash seed differs from run to run; a run taken up must see the same pairs."""
    code = (
        "from lab.tests.training.test_augment import ROWS\n"
        "from lab.training.augment import KINDS, build\n"
        "print(build(ROWS, KINDS, 60, 1))"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(made) == 1

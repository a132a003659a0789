"""What ``study`` and the commands on its reader make of a table as people have it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trustassay.input.records import InputError
from trustassay.people.study.labels import Label, LabelSource, read_answer_labels
from trustassay.people.study.tables import read_source

LONG = """id,rater,jev,human
a,ann,0.9,correct
a,bob,0.9,incorrect
a,cy,0.9,correct
b,ann,0.8,correct
b,bob,0.8,correct
c,ann,0.4,incorrect
c,bob,0.4,cannot tell
d,ann,0.3,unsure
e,ann,0.2,
f,ann,0.1,correct
f,bob,0.1,incorrect
"""
"""Several raters an answer, who do not always agree."""


def read_label(source: object, *names: str, **options: object) -> list[Label]:
    answers = read_source(source, names, people=names)
    return read_answer_labels(answers, LabelSource(fields=names, **options))[0]  # type: ignore[arg-type]


def test_raters_of_a_long_table_are_pooled_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(LONG)
    (label,) = read_label(path, "human")
    assert label.kind == "binary"
    np.testing.assert_array_equal(label.values, [1, 1, 0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(label.raters["bob"], [0, 1, np.nan, np.nan, np.nan, 0])
    # Whoever could not tell judged neither c nor d; nobody rated e.
    assert label.undecided is not None
    assert label.undecided.tolist() == [False, False, True, True, False, False]
    assert label.tied is not None
    assert label.tied.tolist() == [False] * 5 + [True]
    assert "human: 3 raters (ann, bob, cy), 10 ratings, of 4 answers" in label.notes
    assert "human: raters are divided equally on 1 answers, left out" in label.notes


def test_who_rates_an_answer_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"{LONG}f,bob,0.1,correct\n")
    with pytest.raises(InputError, match=r"long.csv:13: rater 'bob' rated 'f' twice"):
        read_label(path, "human")


def test_undecided_raters_of_a_file_of_ratings_are_kept(tmp_path: Path) -> None:
    path, ratings = tmp_path / "scores.csv", tmp_path / "ratings.csv"
    path.write_text("id,jev\na,.9\nb,.8\nc,.7\nd,.6\n")
    ratings.write_text(
        "item,rater,rating\na,ann,1\na,bob,unsure\nb,ann,0\nc,ann,skip\ne,bot,1\nd,bot,?\n"
    )
    answers = read_source(path, ())
    (label,), (bot,) = read_answer_labels(answers, LabelSource([ratings], machines=["bot"]))
    np.testing.assert_array_equal(label.values, [1, 0, np.nan, np.nan])
    np.testing.assert_array_equal(bot.values, [np.nan] * 4)
    assert label.undecided is not None
    # Nobody but a judge could not tell about d.
    assert label.undecided.tolist() == [True, False, True, False]

"""Written pairs: the form of the files, what is held out, and the probes kept apart."""

import re
from pathlib import Path

import numpy as np
import pytest

from lab.training import written
from lab.training.data import Pair
from lab.training.mixture import repeated
from lab.training.probes import probes

GROUP = """#> units
P> The crate holds 2 kg.
It is red.
+> 2,000 grams fit into the crate.
-> The crate is green.
?> The crate is heavy.

#> roles
P> Ada taught Ben.
+> Ben learnt from Ada.
"""


def test_groups_become_pairs() -> None:
    found = written.parse(GROUP, "x.txt")
    passage = "The crate holds 2 kg.\nIt is red."
    assert found == [
        Pair(passage, "2,000 grams fit into the crate.", 0, "written:units"),
        Pair(passage, "The crate is green.", 2, "written:units"),
        Pair(passage, "The crate is heavy.", 1, "written:units"),
        Pair("Ada taught Ben.", "Ben learnt from Ada.", 0, "written:roles"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("P> A.\n+> B.", "x.txt, group 1: kind, passage and statements are needed"),
        ("#> k\n+> B.", "kind, passage and statements are needed"),
        ("#> k\nP> A.\n+> B.\n\n#> k\nP> A.\n+>", "group 2: kind, passage"),
        ("#> k\nP> A.\n+> B.\nmore", "'more' after a statement has no mark"),
    ],
)
def test_what_is_not_like_that_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        written.parse(text, "x.txt")


@pytest.mark.slow
def test_passages_are_held_out_whole() -> None:
    kept, left = written.rows(), written.held_out()
    assert len(kept) + len(left) == len(written.every())
    assert not {row.premise for row in kept} & {row.premise for row in left}
    assert 0.02 < len(left) / len(written.every()) < 0.07


def test_labels_are_balanced() -> None:
    labels = [row.label for row in written.every()]
    assert 0.4 < labels.count(0) / len(labels) < 0.6


def _runs(text: str, words: int) -> set[tuple[str, ...]]:
    found = re.findall(r"\w+", text.lower())
    return {tuple(found[i : i + words]) for i in range(len(found) - words + 1)}


@pytest.mark.slow
def test_probes_share_no_sentence_with_what_is_trained_on() -> None:
    seen = {run for row in written.every() for text in row[:2] for run in _runs(text, 7)}
    assert not [row for row in probes() if any(_runs(t, 7) & seen for t in row[1:3])]


def test_each_row_once_before_any_comes_again() -> None:
    rows = [Pair(f"p{n}", "h", 0, "x") for n in range(5)]
    found = repeated(rows, 12, np.random.default_rng(0))
    assert len(found) == 12
    assert set(found[:5]) == set(found[5:10]) == set(rows)


def test_every_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(GROUP)
    (tmp_path / "b.txt").write_text(GROUP + "-> Ada learnt from Ben.\n")
    assert len(written.every(tmp_path)) == 5


def test_near_copies_stand_in_their_passage() -> None:
    passage = (
        "The mill burnt down in May, which ended the feud. He left. She said: go away now then."
    )
    rows = [Pair(passage, "x", 0, "written:k"), Pair("It is the one they all want.", "x", 0, "k")]
    found = {row.hypothesis for seed in range(20) for row in written.near_copies(rows, seed)}
    assert found == {
        "The mill burnt down in May, which ended the feud.",
        "The mill burnt down in May.",
    }

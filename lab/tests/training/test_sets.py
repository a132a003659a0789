"""The sets of hard kinds: no document of a test file is trained on, and each has its licence."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from lab.training.data import folded
from lab.training.sets import SAYING, SOURCES, dev, rows, taken

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared"))
needs_data = pytest.mark.skipif(
    not (SHARED / "data" / "fib").is_dir(), reason="the public data (TRUSTASSAY_SHARED) is not here"
)


@pytest.mark.parametrize(
    ("premise", "said"),
    [
        ("Someone grumbled that a particular thing happened.", True),
        ("Someone pointed out that a particular thing happened.", True),
        ("Someone replied that a particular thing happened.", True),
        ("Someone regretted that a particular thing happened.", False),
        ("A particular person managed to do a particular thing.", False),
    ],
)
def test_verbs_of_saying(premise: str, said: bool) -> None:
    assert bool(SAYING.search(premise)) is said


def test_every_source_has_a_licence_and_is_no_test_file() -> None:
    for name, source in SOURCES.items():
        assert source.licence, name
        assert "test" not in source.path
        assert "nc" not in source.path.split("/")[-2].split("_"), name


@needs_data
@pytest.mark.slow
def test_what_is_trained_on_is_in_no_other_file() -> None:
    known = taken()
    for name, source in SOURCES.items():
        found = rows(name)
        assert len(found) > 200, name
        assert {row.label == 0 for row in found} == {True, False}
        if not source.long:
            assert not {folded(row.premise) for row in found} & known, name
        if source.held_out:
            held = {(folded(i.premise), folded(i.hypothesis)) for i in dev(f"{name}_held")}
            assert held
            assert not held & {(folded(r.premise), folded(r.hypothesis)) for r in found}, name


@needs_data
@pytest.mark.slow
def test_long_premises_are_read_in_one_window() -> None:
    for name in (name for name, source in SOURCES.items() if source.long):
        lengths = Counter(len(row.premise.split()) > 180 for row in rows(name))
        assert lengths[True] <= 0.01 * lengths.total(), name

"""How sure the judge is: the figures of the shipped entailers, and what is said of others."""

from __future__ import annotations

import re
from pathlib import Path

import trustassay
from trustassay.judging.entailer_quality import find_entailer_quality

DOCS = Path(__file__).parents[2]


def test_the_figures_are_those_of_the_shipped_weights() -> None:
    """New weights have a new name: measure them and put the figures into ``measured.json``."""
    for name in ("embedded", "lexical"):
        told = find_entailer_quality(trustassay.entailer(name).name, ["faithfulness"])
        assert told.sets, f"{told.name} has no figures in backends/weights/measured.json"
        assert (DOCS / told.page).exists()


def test_the_sentence_names_the_best_the_worst_and_what_is_missed() -> None:
    told = find_entailer_quality("embedded:3", ["faithfulness"])
    assert told.sentence == (
        "The entailer embedded:3 agrees with people at an AUC of .91 on answers of dialogue models "
        "and .63 on claims about health (.5 is chance, 1 is perfect); on 300 hand-written minimal "
        "pairs hardly better than chance, AUC .551; it misses changed roles, swapped names, "
        "pronouns, reported speech, conditions and exceptions."
    )
    assert find_entailer_quality("embedded:3", ["grounding"]).sets[0].auc == 0.92


def test_the_figures_are_those_of_the_documentation() -> None:
    told = find_entailer_quality(trustassay.entailer("embedded").name, ["grounding"])
    page = (DOCS / "docs/models/embedded.md").read_text(encoding="utf-8")
    page = re.sub("<!-- .*? -->", "", page)
    for one in told.sets:
        row = next(line for line in page.splitlines() if line.startswith(f"| {one.set} |"))
        assert f"| {one.n:,} (" in row
        assert f"**{one.auc:.3f}**".replace("0.", ".") in row
    copies = told.near_copies
    assert copies is not None
    value, low, high = (f"{end:.3f}".removeprefix("0") for end in (copies.auc, *copies.interval))
    assert f"AUC {value} [{low}, {high}]" in page


def test_the_documentation_of_faithfulness_has_its_figures() -> None:
    page = (DOCS / "lab/results/faithfulness.md").read_text(encoding="utf-8")
    for one in find_entailer_quality(trustassay.entailer("embedded").name, ["faithfulness"]).sets:
        row = next(line for line in page.splitlines() if line.startswith(f"| {one.set}"))
        assert f"{one.n:,}" in row
        low, high = (f"{end:.3f}".removeprefix("0") for end in one.interval)
        assert f"{one.auc:.3f}".removeprefix("0") + f" ({low} to {high})" in row


def test_another_entailer_was_not_measured_here() -> None:
    told = find_entailer_quality("hf:some/model", ["grounding"])
    assert not told.sets
    assert "not measured here" in told.sentence
    assert "trustassay entailers FILE --entailer URI" in told.sentence

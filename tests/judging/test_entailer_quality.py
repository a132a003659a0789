"""How sure the judge is: the figures of the shipped entailers, and what is said of others."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

import trustassay
from tests.docs.guide import value_of
from trustassay.judging.entailer_quality import (
    AGENT_ENTAILERS,
    AGENT_WEAKNESSES,
    WEAKNESSES,
    MeasuredText,
    find_entailer_quality,
)
from trustassay.judging.input_kind import INPUT_KINDS, InputKind

SHIPPED = trustassay.entailer("embedded").name
ALL_WEAKNESSES = [
    *chain.from_iterable(of_kind.values() for of_kind in WEAKNESSES.values()),
    *AGENT_WEAKNESSES.values(),
]
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
        "The judge embedded:3 agrees with human labels with an AUC of .91 on answers of dialogue "
        "models and .63 on claims about health (.5 is chance, 1 is perfect). On 300 hand-written "
        "minimal pairs its AUC is .551, hardly better than chance. It misses changed roles, "
        "swapped names, pronouns, reported speech, conditions and exceptions."
    )
    assert find_entailer_quality("embedded:3", ["grounding"]).sets[0].auc == 0.92


def test_the_figures_are_those_of_the_documentation() -> None:
    told = find_entailer_quality(trustassay.entailer("embedded").name, ["grounding"])
    page = (DOCS / "docs/models/embedded.md").read_text(encoding="utf-8")
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
    assert "has not been compared with human labels" in told.sentence
    assert "trustassay entailers FILE --entailer URI" in told.sentence


# What it misses in files of a kind


@pytest.mark.parametrize(
    "figure",
    [figure for weakness in ALL_WEAKNESSES for figure in weakness.figures],
    ids=lambda figure: figure.source.replace("/", "."),
)
def test_each_figure_about_a_kind_is_that_of_its_source(figure: MeasuredText) -> None:
    value = value_of(*figure.source.split("#", 1))
    share = float(str(value).split()[0])
    share = 1 - share if figure.is_complement else share
    _, _, total = figure.text.partition(" of ")
    expected = f"{share * int(total):.0f} of {total}" if total else f"{100 * share:.0f} %"
    assert figure.text == expected


def test_the_shipped_entailer_has_a_line_for_every_kind() -> None:
    assert {*WEAKNESSES[SHIPPED], "tools"} == {*INPUT_KINDS}
    assert SHIPPED in AGENT_ENTAILERS


@pytest.mark.parametrize("name", [SHIPPED, "lexical", "python:mine:words"])
@pytest.mark.parametrize("kind", [*INPUT_KINDS, None])
@pytest.mark.parametrize("metrics", [["faithfulness"], ["tool_use"], ["faithfulness", "tool_use"]])
def test_two_lines_of_a_terminal_say_what_it_misses_and_what_to_do(
    name: str, kind: InputKind | None, metrics: list[str]
) -> None:
    quality = find_entailer_quality(name, metrics, {"usd": 12.34}, kind=kind)
    misses, better = quality.lines
    assert misses.startswith(f"Judge {name}")
    assert max(len(misses), len(better)) <= 100
    command, _, page = better.partition("; see ")
    assert (DOCS / page).exists()
    assert re.match(
        r"(Better verdicts|Larger judge): --\w+|Measure it on your labels: trustassay entailers",
        command,
    )


def test_better_is_said_only_of_what_was_measured() -> None:
    def better(kind: InputKind, *metrics: str, second: str | None = None) -> str:
        return find_entailer_quality(SHIPPED, metrics, second=second, kind=kind).lines[1]

    local = "Better verdicts: --second qwen2.5-coder-1.5b (1.1 GB, runs offline); "
    larger = "Larger judge: --entailer openai:gpt-4o-mini (needs a key); "
    assert better("copied", "faithfulness").startswith(local)
    assert better("reworded", "faithfulness").startswith(larger)
    assert better("copied", "faithfulness", second="gguf:model.gguf").startswith(larger)
    # Takes no second reader.
    assert better("copied", "rag").startswith(larger)
    assert better("tools", "faithfulness").startswith("Better verdicts: --metric tool_use; ")
    # The second reader was better on planted errors and on replies in dialogues, and on no other.
    planted = value_of("second-planted-1.5b", "figures")
    alone = planted["first reader alone"]
    both = planted["50% read by the second, both verdicts"]
    assert both["flagged"] < alone["flagged"] and both["flagged_wrong"] > alone["flagged_wrong"]
    aucs = {
        (row["set"], row["entailer"]): row["auc"]["value"]
        for row in value_of("local-judges", "figures")
    }
    assert aucs["Q2, Wizard of Wikipedia", "1.5b"] > aucs["Q2, Wizard of Wikipedia", "embedded"]
    assert aucs["HealthVer", "1.5b"] < aucs["HealthVer", "embedded"]


def test_a_metric_without_passages_has_the_figures_of_all_sets() -> None:
    misses, _ = find_entailer_quality(SHIPPED, ["judge"], kind="copied").lines
    assert misses == (
        f"Judge {SHIPPED} picks the true answer in 64 % (claims about health) to 92 % of pairs "
        "(chance: 50 %)"
    )

"""The table of the papers' items: well-formed, and judged as its outcomes say."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from pathlib import Path

import pytest

from lab.benchmarks.paper_items.fewl_by_hand import cost, equation_1, gain, softmax
from lab.benchmarks.paper_items.papers import ALL_ITEMS, PAPERS
from lab.benchmarks.paper_items.reproduced import row_below
from lab.benchmarks.paper_items.running import (
    Bench,
    PaperItem,
    ValuePair,
    judge_pairs,
    numbers_of,
    prepare_nothing,
)

REPRODUCED = ("trustassay papers reproduce truthfulness",)


def test_every_item_has_a_name_of_its_own_a_place_and_commands() -> None:
    assert [name for name, n in Counter(item.id for item in ALL_ITEMS).items() if n > 1] == []
    assert len(ALL_ITEMS) == 86
    for item in ALL_ITEMS:
        assert item.place and item.what, item.id
        assert item.commands, item.id
        assert all(shlex.split(command)[0] == "trustassay" for command in item.commands), item.id


def test_every_paper_is_covered() -> None:
    counts = Counter(item.paper for item in ALL_ITEMS)
    assert set(counts) == set(PAPERS)
    assert min(counts.values()) >= 10


def pairs_of_outcomes() -> dict[str, list[ValuePair]]:
    right, wrong = ValuePair("right", 1.0, 1.0), ValuePair("wrong", 1.0, 2.0)
    return {
        "works": [right],
        "in part": [right, wrong],
        "fails": [wrong],
    }


@pytest.mark.parametrize("outcome", ["works", "in part", "fails"])
def test_an_outcome_follows_from_values(outcome: str) -> None:
    item = PaperItem("zheng-0", "here", "something", ("trustassay",), lambda bench: ())
    assert judge_pairs(item, pairs_of_outcomes()[outcome]).outcome == outcome


def test_a_value_that_nobody_sees_counts_in_part() -> None:
    item = PaperItem("zheng-0", "here", "something", ("trustassay",), lambda bench: ())
    hidden = judge_pairs(item, [ValuePair("kappa", 0.5, 0.5, "hidden"), ValuePair("n", 1, 1)])
    assert (hidden.outcome, hidden.reason) == ("in part", "kappa stands in the run's JSON alone")
    on_page = [ValuePair("higher", 1, 1, "page", must_print=True), ValuePair("n", 1, 1)]
    assert judge_pairs(item, on_page).outcome == "in part"
    assert judge_pairs(item, []).outcome == "fails"


def test_a_command_that_does_not_exist_is_not_here(tmp_path: Path) -> None:
    from lab.benchmarks.paper_items.running import run_item

    def check(bench: Bench) -> list[ValuePair]:
        return [ValuePair("status", 0, bench.statuses[0])]

    item = PaperItem(
        "zheng-0", "here", "x", ("trustassay no-such-command",), check, prepare_nothing
    )
    assert run_item(item).outcome == "not here"


def test_figures_are_found_on_the_terminal_and_on_the_page(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.printed, bench.messages = ["mean   0.593  0.512 to 0.671  60\n"], [""]
    bench.write("page.html", "<p>higher <b>1</b></p><script>lower 4</script>")
    assert bench.row("mean") == [0.593, 0.512, 0.671, 60]
    assert bench.place_of_figure("mean", 0.59333, "page.html") == "terminal"
    assert bench.place_of_figure("higher", 1, "page.html") == "page"
    assert bench.place_of_figure("lower", 4, "page.html") == "hidden"
    with pytest.raises(LookupError):
        bench.row("me")


def test_numbers_of_a_printed_line() -> None:
    assert numbers_of("1,234 −0.5 50.0 % q3 .25") == [1234, -0.5, 50, 0.25]


def test_equation_1_by_hand() -> None:
    """Two references, likeness 1 and 0, weights 0.75 and 0.25, penalty 0.5 each."""
    half = math.tanh(0.5) / 2
    expected = (math.tanh(0.75) / 2 - half + 0 - half) / 2
    assert equation_1([1, 0], [0.75, 0.25], [0.5, 0.5]) == pytest.approx(expected)
    assert softmax([0, math.log(3)]) == pytest.approx([0.25, 0.75])
    assert cost(0, "kl") == pytest.approx(math.exp(-1))
    assert gain(0, "js") == pytest.approx(0)
    assert cost(0.7, "js") == pytest.approx(math.log((1 + math.exp(0.7)) / 2))


def test_a_reproduced_figure_is_compared_with_one_computed_from_the_votes(tmp_path: Path) -> None:
    (item,) = [one for one in ALL_ITEMS if one.commands == REPRODUCED]
    bench = Bench(tmp_path)
    bench.run(*item.commands)
    assert judge_pairs(item, list(item.check(bench))).outcome == "works"
    text = bench.terminal
    matched = f"{row_below(text, 'Graph 1', 'truthfulness, majority of 10 runs')[1]:.0f} of 21"
    bench.printed, bench.messages = [text.replace(matched, "20 of 21")], [""]
    (wrong,) = [pair for pair in item.check(bench) if not pair.agrees]
    assert wrong.name == "truthfulness: matched, lower, higher"


def test_a_row_is_read_below_its_heading() -> None:
    text = "First\nmean 1\nmean of all 3\nSecond\nmean 2 (1.5 to 2.5)\n"
    assert row_below(text, "First", "mean of all") == [3]
    assert row_below(text, "Second", "mean") == [2, 1.5, 2.5]
    with pytest.raises(LookupError, match="no row 'mean of all' below 'Second'"):
        row_below(text, "Second", "mean of all")

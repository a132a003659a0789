"""Tables in terminals of every width: whatever is narrow, no number is cut."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.cli.conftest import Cli
from tests.support import jsonl, records
from trustassay.report.terminal import show_table

WIDTHS = (*range(20, 100, 3), 120, 160, 200)
HEADINGS = ("figure", "value", "95 % interval", "n", "what it is")
ROWS = [
    ("trust_score", "61.1 %", "-1,234.5 to 78.2", "1,234,567", "the mean of three figures\nof all"),
    ("effective_dimensions_of_cloud", "0.063(4)", "", "6", "dimensions"),
]
NUMBER = re.compile(r"[−+-]?\d[\d.,]*(?:\(\d+\))?")


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


@pytest.mark.parametrize("width", WIDTHS)
def test_every_number_is_whole_at_every_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    show_table(HEADINGS, ROWS, {"what it is"})
    printed = shown(capsys)
    for _, value, interval, n, _ in ROWS:
        for number in NUMBER.findall(f"{value} {interval} {n}"):
            assert number in printed.split(), printed
    assert "…" not in printed
    lines = [line for line in printed.splitlines() if " " in line.strip()]
    assert max(map(cell_len, lines)) <= width


def test_a_wide_terminal_has_a_table_and_a_narrow_one_lists(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    show_table(HEADINGS, ROWS[1:], {"what it is"})
    assert [line.rstrip() for line in shown(capsys).splitlines()] == [
        "figure                            value  95 % interval  n  what it is",
        "effective_dimensions_of_cloud  0.063(4)                 6  dimensions",
    ]
    monkeypatch.setenv("COLUMNS", "40")
    show_table(HEADINGS, ROWS[1:], {"what it is"})
    assert shown(capsys).splitlines() == [
        "effective_dimensions_of_cloud",
        "  value: 0.063(4)",
        "  n: 6",
        "  what it is: dimensions",
    ]


@given(cells=st.lists(st.text(max_size=30), min_size=3, max_size=3), width=st.integers(20, 90))
def test_no_cell_breaks_a_table(cells: list[str], width: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        show_table(("one", "two", "three"), [cells], {"three"})


RESAMPLED = [
    {
        "id": f"q{i}",
        "question": f"Who built bridge {i}?",
        "response": "It is so.",
        "resamples": ["It is so.", f"No, it was {i}."],
        "model": f"a-name-of-a-model-that-is-{'long' if i % 2 else 'longer'}",
    }
    for i in range(6)
]


def test_no_command_cuts_a_number(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a table holds in a wide terminal stands, whole, in narrow ones."""
    jsonl(tmp_path / "asked.jsonl", RESAMPLED)
    jsonl(tmp_path / "answers.jsonl", records(25))
    assert cli("score", "asked.jsonl", "--metric", "harmonicity", "--out", "a").status == 0
    assert cli("score", "asked.jsonl", "--metric", "harmonicity", "--out", "b").status == 0
    commands = [
        ["score", "answers.jsonl", "--entailer", "lexical", "--out", "c"],
        ["score", "asked.jsonl", "--metric", "harmonicity", "--out", "a"],
        ["compare", "a", "b"],
        ["papers", "isotropy", "asked.jsonl", "--perturbation", "typo", "--perturbations", "3"],
        ["models"],
    ]
    assert cli(*commands[0]).status == 0  # what is shown while it scores is not shown again
    for arguments in commands:
        monkeypatch.setenv("COLUMNS", "200")
        wide = set(NUMBER.findall(cli(*arguments).err)) - {"95"}  # stands in a heading
        for width in (20, 40, 66):
            monkeypatch.setenv("COLUMNS", str(width))
            narrow = cli(*arguments).err
            assert wide <= set(NUMBER.findall(narrow)), narrow
            assert "…" not in narrow

"""Which commands there are: those of installed packages, and earlier names."""

from importlib.metadata import EntryPoint

import pytest

from tests.cli.conftest import Cli
from trustassay.cli import commands


@pytest.fixture
def without_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_added", dict)


@pytest.mark.parametrize("earlier", ["experiment", "dataset", "select", "tune"])
def test_earlier_names_work_and_say_the_new_one(cli: Cli, earlier: str) -> None:
    said = cli(earlier, "--help")
    assert said.status == 0
    assert said.err.splitlines() == [
        f"trustassay: {earlier} is now called papers {earlier}; the old name will go in the next "
        "version"
    ]
    assert said.out.startswith(f"Usage: trustassay papers {earlier} ")


@pytest.mark.parametrize("line", ["papers", "papers --help", "papers select icl x --out y"])
def test_without_the_package_one_line_says_how_to_install_it(
    cli: Cli, without_papers: None, line: str
) -> None:
    said = cli(*line.split())
    assert (said.status, said.out) == (2, "")
    assert said.err.count("\n") == 1
    assert "pip install ./papers" in said.err
    assert "pip install ./papers" in cli("experiment", "fewl-pairs", "x.json").err


def test_a_package_adds_a_command_by_an_entry_point(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = EntryPoint("extra", "trustassay_papers.cli.select:app", commands.ENTRY_POINTS)
    monkeypatch.setattr(commands, "_added", lambda: {"extra": added})
    assert "icl" in cli("extra", "--help").out
    assert "extra " in cli("--help").out

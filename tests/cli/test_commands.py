"""Which commands there are, and those of installed packages."""

from importlib.metadata import EntryPoint

import pytest

from tests.cli.conftest import Cli
from trustassay.cli import main
from trustassay.cli.main import COMMANDS


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "_find_entry_points", dict)


def test_help_shows_every_command_in_a_group(cli: Cli) -> None:
    shown = cli("--help").out
    for title, names in COMMANDS.items():
        section = shown.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        lines = [line.split()[0] for line in section.splitlines()]
        assert set(names) <= set(lines), title
        assert "..." not in section, title


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a.jsonl --threshold 0.5", "--threshold: has an effect with --follow alone"),
        ("a.jsonl --once", "--once: has an effect with --follow alone"),
        ("a.jsonl --follow --threshold 1 --out x --style rag", "--style: has no effect with"),
        ("a.jsonl --follow --threshold 1 --out x --limit 2", "--limit: has no effect with"),
        ("a.jsonl b.jsonl --follow --threshold 1 --out x", "expected one file and one metric"),
        ("a.jsonl --follow --threshold 1", "--follow: needs --out"),
        ("a.jsonl --follow --out x", "--follow: needs --threshold"),
    ],
)
def test_options_of_a_growing_file_and_of_a_whole_one_do_not_mix(
    cli: Cli, line: str, says: str
) -> None:
    said = cli("score", *line.split())
    assert said.status == 2
    assert says in said.err


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        *((line, "papers") for line in ("papers", "papers --help", "papers select icl x --out y")),
        *(("cite x", "papers"), ("probe attack x", "papers")),
        *(("shard x --into 2", "cluster"), ("merge --help", "cluster")),
        *(("serve --port 0", "serve"), ("serve --help", "serve"), ("mcp", "serve[mcp]")),
        ("monitor x --state y", "serve"),
    ],
)
def test_without_the_package_one_line_says_how_to_install_it(
    cli: Cli, without_packages: None, line: str, folder: str
) -> None:
    said = cli(*line.split())
    assert (said.status, said.out) == (2, "")
    assert said.err.count("\n") == 1
    assert f"pip install ./{folder}\n" in said.err


def test_help_names_commands_that_are_not_installed(cli: Cli, without_packages: None) -> None:
    shown = cli("--help").out
    section = shown.partition("\nFor other programs:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in section.splitlines()] == ["serve", "push", "pull", "mcp"]
    assert "(pip install ./serve)" in section
    assert "(pip install ./serve[mcp])" in section


@pytest.mark.parametrize(("wrong", "right"), [("scroe", "score"), ("serv", "serve")])
def test_a_misspelt_command_is_suggested_also_of_another_package(
    cli: Cli, without_packages: None, wrong: str, right: str
) -> None:
    said = cli(wrong)
    assert said.status == 2
    assert f"Did you mean '{right}'" in said.err


@pytest.mark.parametrize("line", ["cite", "probe attack", "probe isotropy", "probe distractors"])
def test_a_command_that_moved_to_the_papers_is_still_found(cli: Cli, line: str) -> None:
    said = cli(*line.split(), "--help")
    assert said.status == 0
    assert said.err.startswith(f"trustassay: {line.split(maxsplit=1)[0]} is now: trustassay papers")
    assert said.err.count("\n") == 1
    assert said.out.startswith(f"Usage: trustassay {line}")


def test_a_package_adds_a_command_by_an_entry_point(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = EntryPoint("extra", "trustassay.cli.papers.select:app", main.ENTRY_POINTS)
    monkeypatch.setattr(main, "_find_entry_points", lambda: {"extra": added})
    assert "icl" in cli("extra", "--help").out
    assert "extra " in cli("--help").out

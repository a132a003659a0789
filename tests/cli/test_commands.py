"""Which commands there are, and those of installed packages."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from trustassay.cli import main
from trustassay.cli.main import COMMANDS


def test_help_shows_every_command_in_a_group(cli: Cli) -> None:
    shown = cli("--help").out
    for name, entry in COMMANDS.items():
        section = shown.partition(f"\n{entry.group}:\n")[2].partition("\n\n")[0]
        assert name in [line.split()[0] for line in section.splitlines()]
        assert "..." not in section, entry.group


def test_help_shows_the_most_used_options_and_help_all_the_others(cli: Cli) -> None:
    short, long = cli("score", "--help").out, cli("score", "--help-all").out
    assert "--model" in short and "--longest-answer" not in short
    assert "Show 44 more options, too." in short and "--help-all" not in long
    assert "--longest-answer" in long.partition("\nCost and speed:\n")[2]
    assert "--help-all" not in cli("view", "--help").out  # it has few


def test_an_experiment_refuses_what_it_does_not_read(cli: Cli) -> None:
    said = cli("papers", "experiment", "fewl-pairs", "x.jsonl", "--shuffle")
    assert (said.status, said.err) == (
        2,
        "trustassay: --shuffle: has no effect with fewl-pairs\n",
    )


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("linkr=spacy", "--backend: unknown role 'linkr'; did you mean linker?"),
        ("spacy", "--backend: expected ROLE=URI, got 'spacy'"),
    ],
)
def test_a_backend_is_named_by_its_role(cli: Cli, value: str, says: str) -> None:
    said = cli("score", "x.jsonl", "--backend", value)
    assert said.status == 2
    assert says in said.err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a.jsonl --threshold 0.5", "--threshold: needs --follow"),
        ("a.jsonl --once", "--once: needs --follow"),
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


@pytest.mark.parametrize(("wrong", "right"), [("scroe", "score"), ("serv", "serve")])
def test_a_misspelt_command_is_suggested(cli: Cli, wrong: str, right: str) -> None:
    said = cli(wrong)
    assert said.status == 2
    assert f"Did you mean '{right}'" in said.err


def test_a_package_adds_a_command_by_an_entry_point(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = EntryPoint("extra", "trustassay.cli.papers.select:app", main.ENTRY_POINTS)
    monkeypatch.setattr(main, "_find_entry_points", lambda: {"extra": added})
    assert "icl" in cli("extra", "--help").out
    assert "extra " in cli("--help").out


@pytest.mark.parametrize(
    "line", ["rank a.jsonl --retriever x", "score a.jsonl --generator x", "mcp --linker x"]
)
def test_an_option_of_a_rare_backend_names_the_form_that_a_command_has(cli: Cli, line: str) -> None:
    said = cli(*line.split())
    role = line.split()[-2].removeprefix("--")
    assert said.status == 2 and f"--backend {role}=URI" in said.err


def test_a_backend_that_is_given_twice_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"question": "q", "response": "r"}\n')
    output = cli("plan", "a.jsonl", "--judge", "openai:a", "--backend", "judge=openai:b")
    assert output.status == 2 and "--judge: is given twice" in output.err

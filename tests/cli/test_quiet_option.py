"""``--quiet``: faults and the last line alone; and lines that a narrow terminal folds."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.cli.conftest import Cli
from tests.support import jsonl, record, records
from trustassay.cli.main import COMMANDS
from trustassay.report.terminal import complain, wrap_lines

LEXICAL = ["--entailer", "lexical"]


def test_the_option_may_stand_anywhere(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "in.jsonl", records(3))
    said = cli("-q", "score", "in.jsonl", *LEXICAL, "--out", "run")
    assert (said.status, said.out, said.err) == (0, "", "run:    run\n")
    assert cli("score", "--quiet", "in.jsonl", *LEXICAL, "--out", "run").err == "run:    run\n"


def test_a_command_whose_lines_are_its_result_has_no_such_option(cli: Cli) -> None:
    loud = [name for name, entry in COMMANDS.items() if not entry.quiet]
    assert "serve" in loud
    for name in loud:
        said = cli(name, "--quiet")
        assert said.status == 2
        assert "No such option: --quiet" in said.err


def test_only_the_last_line_is_printed(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "in.jsonl", records(3))
    said = cli("score", "in.jsonl", *LEXICAL, "--out", "run", "--quiet")
    assert (said.status, said.out, said.err) == (0, "", "run:    run\n")
    again = cli("score", "in.jsonl", *LEXICAL, "--out", "run", "-q", "--json")
    assert again.err == "run:    run\n" and '"grounding"' in again.out
    assert "trust_score" in cli("score", "in.jsonl", *LEXICAL, "--out", "run").err  # it is over


def test_faults_and_failures_are_printed_all_the_same(cli: Cli, tmp_path: Path) -> None:
    said = cli("score", "missing.jsonl", "--quiet")
    assert said.status == 2 and "missing.jsonl" in said.err
    assert "metric " not in said.err
    jsonl(tmp_path / "in.jsonl", [record(0), {**record(1), "response": " "}])
    failed = cli("score", "in.jsonl", "--metric", "faithfulness", *LEXICAL, "-q", "--out", "r")
    assert failed.status == 0
    assert failed.err.splitlines()[0] == "1 score could not be computed:"
    assert failed.err.splitlines()[-1] == "run:    r"


def test_that_nothing_could_be_judged_is_printed_all_the_same(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "in.jsonl", [{**record(0), "response": "I cannot find that."}])
    said = cli("score", "in.jsonl", "--metric", "faithfulness", *LEXICAL, "-q", "--out", "r")
    assert said.status == 1
    assert said.err.splitlines()[0] == "0 of 1 answer could be judged: refused (1)."


def test_the_worst_answers_come_before_the_figures(cli: Cli, tmp_path: Path) -> None:
    jsonl(
        tmp_path / "in.jsonl",
        [{**record(n), "response": "Bananas grow on Mars."} for n in range(5)],
    )
    lines = cli("score", "in.jsonl", "--metric", "faithfulness", *LEXICAL).err.splitlines()
    first = lines.index("5 of 5 answers need a look:")
    assert lines[first - 1].startswith("faithfulness: 0 % supported, 100 % not supported, 0 % not")
    assert lines[first - 2].startswith("first result of 5: ")
    assert lines[first + 1].startswith("  ") and "(q" in lines[first + 1]
    assert re.match(r"    not found: ", lines[first + 2])
    assert lines.index("  ... and 2 more") < lines.index("Faithfulness to the passages")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_terminal_gets_whole_words(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = "hf:/a/folder/whose/name/is/long/" + "x" * 70
    words = f"  one: the model {uri} says that nothing of this is in the passages: 日本語の質問です"
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    complain(words)
    lines = terminal.getvalue().splitlines()
    assert uri in terminal.getvalue()  # in one piece: it can be copied
    assert all(cell_len(line) <= width or uri in line for line in lines)
    assert "".join("".join(lines).split()) == "".join(words.split())
    assert all(line.startswith("  ") for line in lines)


def test_what_is_no_terminal_gets_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    complain("word " * 100)
    assert capsys.readouterr().err == "word " * 100 + "\n"


@given(st.text(alphabet="ab 日本　\t", max_size=60), st.integers(4, 30))
def test_folding_loses_nothing(text: str, width: int) -> None:
    lines = wrap_lines(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    for line in lines:
        alone = len(line.split()) <= 1
        assert cell_len(line) <= width or alone or line[:1].isspace()


def test_all_faults_come_at_once_and_before_a_model_is_loaded(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    loaded: list[object] = []
    monkeypatch.setattr("trustassay.backends.embedded.load_embedded_model", loaded.append)
    monkeypatch.setattr("trustassay.backends.hf_entailer.HuggingFaceEntailer", loaded.append)
    jsonl(tmp_path / "q.jsonl", [{"question": "Why?", "documents": ["So."]}])
    asked = ["q.jsonl", "--metric", "grounding", "--model", "openai:m", "--cache", "off"]
    said = cli("score", *asked, "--entailer", "hf:/not/there")
    assert said.status == 2
    assert said.err.splitlines()[0] == "trustassay: 2 faults; nothing was started"
    assert "OPENAI_API_KEY" in said.err and "hf:/not/there: there is no such folder" in said.err
    said = cli("score", *asked, "--entailer", "hf:some/model?devise=cpu")
    assert "did you mean device?" in said.err and "OPENAI_API_KEY" in said.err
    said = cli("score", *asked)
    assert said.status == 2 and "OPENAI_API_KEY" in said.err
    for command in (
        ["generate", "q.jsonl", "--model", "openai:m", "--out", "a.jsonl", "--cache", "off"],
        ["papers", "attack", "Why?", "--model", "openai:m", "--out", "a"],
    ):
        said = cli(*command)
        assert said.status == 2 and "OPENAI_API_KEY" in said.err
    assert loaded == []

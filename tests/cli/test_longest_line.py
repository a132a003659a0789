"""``--longest-line``: each command that reads a file refuses a line that is too long, and reads it
with a higher limit."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from trustassay import score
from trustassay.input.places import STANDARD_INPUT
from trustassay.runs.intake import BadInputError

TEXT = "The river is long and deep."
SAMPLES: list[dict[str, Any]] = [
    {"id": f"q{number}", "question": f"Q{number}?", "response": TEXT, "documents": [TEXT]}
    for number in range(4)
]
NOTE = {"note": "0" * 2**20}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write records, of which the second has more than a MiB."""
    rows = [row | NOTE if number == 1 else row for number, row in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    "command",
    [
        "score FILE --metric grounding --entailer lexical --out run",
        "plan FILE --metric grounding --entailer lexical",
        "shard FILE --into 2 --out shards",
        "annotate FILE --rater anna --export sheet.csv",
    ],
)
def test_samples(cli: Cli, tmp_path: Path, command: str) -> None:
    path = write(tmp_path / "log.jsonl", SAMPLES)
    arguments = command.replace("FILE", str(path)).split()
    refused = cli(*arguments, "--longest-line", "1")
    assert refused.status == 2
    assert "log.jsonl:2: record: has more than 1 MiB" in refused.err
    assert "--longest-line 2" in refused.err
    assert cli(*arguments, "--longest-line", "2").status == 0


@pytest.mark.parametrize(
    "command",
    [
        "agree FILE",
        "study FILE --label label --score score --resamples 100",
        "calibrate FILE --label label --score score",
    ],
)
def test_tables(cli: Cli, tmp_path: Path, command: str) -> None:
    rows: list[dict[str, Any]] = [
        {"id": str(number), "rater": "anna", "rating": number % 2, "label": number % 2}
        | {"score": number % 7, "question": f"Q{number}?"}
        for number in range(40)
    ]
    path = write(tmp_path / "table.jsonl", rows)
    arguments = command.replace("FILE", str(path)).split()
    refused = cli(*arguments, "--longest-line", "1")
    assert refused.status == 2
    assert "table.jsonl:2: record: has more than 1 MiB" in refused.err
    assert "has more than" not in cli(*arguments, "--longest-line", "2").err


def test_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin(io.TextIOWrapper):
        """A stream of which a digest is taken."""

    content = b"\n" * (2**20 + 1) + b"question,response\nQ?," + b"0" * 2**20 + b"\n"
    monkeypatch.setattr("sys.stdin", Stdin(io.BytesIO(content)))
    refused = cli("score", STANDARD_INPUT, "--metric", "grounding", "--longest-line", "1")
    assert refused.status == 2
    assert "standard input:1048579: the row has more than 1 MiB" in refused.err


def test_a_line_that_is_too_long_is_skipped_and_counted(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", SAMPLES)
    arguments = ("--metric", "grounding", "--entailer", "lexical", "--out", "run", "--skip-bad")
    result = cli("score", path, *arguments, "--longest-line", "1")
    assert result.status == 0
    assert "1 faulty record skipped" in result.err


def test_the_keyword_in_python(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", SAMPLES)
    with pytest.raises(BadInputError, match="jsonl:2: record: has more than 1 MiB"):
        score(path, metrics="grounding", entailer="lexical", longest_line=1)
    run = score(path, metrics="grounding", entailer="lexical", longest_line=2)
    assert len(run.assessments) == 4
    with pytest.raises(ValueError, match="longest_line"):
        score(path, metrics="grounding", entailer="lexical", longest_line=0)

"""Standard output and standard error that are closed or full cost no result and no status."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support import command, jsonl, records

pytestmark = pytest.mark.slow

FILES = 7
"""Files in the folder of a finished run."""


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    (tmp_path / "mine.py").write_text(
        "def fails(premise, hypothesis):\n    raise ValueError('no')\n"
        "def agrees(premise, hypothesis):\n    return True\n"
    )
    jsonl(tmp_path / "bad.jsonl", [{"question": "Which?"}])
    return jsonl(tmp_path / "sound.jsonl", records(3))


def shell(cwd: Path, arguments: str, streams: str) -> subprocess.CompletedProcess[str]:
    line = f"{shlex.join(command(*arguments.split()))} {streams}"
    return subprocess.run(
        ["bash", "-c", line], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


BROKEN = ["2>&-", "2>/dev/full", ">&-", ">/dev/full", "<&- >&- 2>&-"]


@pytest.mark.parametrize("streams", BROKEN)
@pytest.mark.parametrize(
    ("arguments", "status", "written"),
    [
        ("score sound.jsonl --entailer python:mine:agrees --out run", 0, FILES),
        ("score sound.jsonl --entailer python:mine:fails --out run", 1, FILES),
        ("score bad.jsonl --entailer lexical --out run", 2, 0),
    ],
)
def test_the_status_is_what_the_run_has_earned(
    sound: Path, tmp_path: Path, arguments: str, status: int, written: int, streams: str
) -> None:
    done = shell(tmp_path, arguments, streams)
    assert (done.returncode, done.stdout) == (status, "")
    assert "Traceback" not in done.stderr
    assert len([*tmp_path.glob("run/*")]) == written


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full"])
def test_what_a_program_reads_is_whole_without_standard_error(
    sound: Path, tmp_path: Path, streams: str
) -> None:
    done = shell(tmp_path, "score sound.jsonl --entailer lexical --out run --json", streams)
    assert done.returncode == 0
    assert json.loads(done.stdout) == json.loads((tmp_path / "run" / "summary.json").read_text())


@pytest.mark.parametrize(
    ("streams", "said"),
    [(">/dev/full", "No space left on device"), (">&-", "it is closed")],
)
@pytest.mark.parametrize(
    "arguments", ["score sound.jsonl --entailer lexical --out run --json", "--version", "--help"]
)
def test_output_that_cannot_be_written_is_an_error(
    sound: Path, tmp_path: Path, arguments: str, streams: str, said: str
) -> None:
    done = shell(tmp_path, arguments, streams)
    assert done.returncode == 1
    assert done.stderr.endswith(f"standard output cannot be written ({said})\n")
    assert "Traceback" not in done.stderr
    if arguments.startswith("score"):
        assert len([*tmp_path.glob("run/*")]) == FILES


def test_nobody_who_reads_messages_any_more_stops_no_run(sound: Path, tmp_path: Path) -> None:
    done = shell(tmp_path, "score sound.jsonl --entailer lexical --out run", "2>&1 | true")
    assert done.returncode == 0
    assert len([*tmp_path.glob("run/*")]) == FILES

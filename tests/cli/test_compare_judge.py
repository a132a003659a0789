"""``trustassay compare --judge`` through the command line, with a local endpoint."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llm_server import LlmServer
from tests.support import command, jsonl, run_command
from trustassay.compare.preferences import WinRateOptions, plan_win_rate, win_rate

JUDGES = """
import re

def longer(prompt):
    a, b = re.search(r"Reply A =+\\n(.*?)\\n=+ Reply B =+\\n(.*?)\\n=+ end", prompt, re.S).groups()
    return "A" if len(a) > len(b) else "B"

def first(prompt):
    return "A"
"""


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, Path]:
    """Of 40 shared questions the first file has the longer answer to 30; each has two more."""
    one = [
        {
            "id": f"a{i}",
            "question": f"What is {i}?",
            "model": "m1",
            "response": "a long answer" if i < 30 else "short",
        }
        for i in range(42)
    ]
    other = [
        {"id": f"b{i}", "question": f" what IS {i}? ", "model": "m2", "response": "a middling"}
        for i in (*reversed(range(40)), 50, 51)
    ]
    (tmp_path / "judges.py").write_text(JUDGES)
    return jsonl(tmp_path / "one.jsonl", one), jsonl(tmp_path / "other.jsonl", other)


@pytest.mark.slow
def test_the_win_rate_of_two_files(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    arguments: list[str | Path] = ["compare", *inputs, "--judge", "python:judges:longer", "--json"]
    done = run_command(*arguments, "--out", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["wins"], found["losses"], found["win_rate"]) == (30, 10, 75)
    assert (found["questions"], found["only_first"], found["only_second"]) == (40, 2, 2)
    low, high = found["intervals"]["win_rate"]
    assert 55 < low < 75 < high < 90
    words = " ".join(done.stderr.split())
    assert "one.jsonl wins 75.0 %" in words
    assert ": 30 won, 10 lost, 0 dropped" in words
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "a middling" in page and "one.jsonl against other.jsonl" in page
    again = run_command(*arguments, cwd=tmp_path)
    assert json.loads(again.stdout) == found
    runs = list((tmp_path / "trustassay-runs").iterdir())
    assert len(runs) == 1
    turned = run_command(
        "compare", *reversed(inputs), "--judge", "python:judges:longer", "--json", cwd=tmp_path
    )
    assert json.loads(turned.stdout)["win_rate"] == 25
    # A run is an input, too: its samples.
    from_run = run_command(
        "compare",
        runs[0],
        inputs[1],
        "--judge",
        "python:judges:longer",
        "--limit",
        "35",
        "--json",
        cwd=tmp_path,
    )
    assert json.loads(from_run.stdout)["wins"] == 30


@pytest.mark.slow
def test_bad_inputs(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    one, other = inputs
    strange = jsonl(tmp_path / "strange.jsonl", [{"question": "Else?", "response": "x"}])
    twice = jsonl(tmp_path / "twice.jsonl", [{"question": "Q?", "response": r} for r in "xy"])
    blank = jsonl(tmp_path / "blank.jsonl", [{"question": "What is 1?", "response": " "}])
    judge = ["--judge", "python:judges:first"]
    cases: list[tuple[list[str | Path], str]] = [
        ([one, strange, *judge], "have no question in common (42 and 1 questions)"),
        ([twice, one, *judge], "several answers to 'Q?'"),
        ([one, blank, *judge], "none of 1 common questions has answers in both"),
        ([one, tmp_path / "none.jsonl", *judge], "no such file"),
        ([one, other, "--judge", "python:judges:nobody"], "nobody"),
        ([one, other, *judge, "--metric", "x"], "--judge, which compares answers"),
        ([one, other], "one.jsonl: is a file; expected the folder of a run, or --judge"),
        ([one, other, "--limit", "3"], "--limit: works only with --judge"),
        ([one, other, *judge, "--prompt", tmp_path / "no.jinja"], "no.jinja"),
    ]
    for arguments, words in cases:
        done = run_command("compare", *arguments, cwd=tmp_path)
        assert done.returncode == 2, (arguments, done.stderr)
        assert words in " ".join(done.stderr.split())
    assert not (tmp_path / "trustassay-runs").exists()


def test_a_plan_makes_no_call(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    def refuses(prompt: str) -> str:
        raise AssertionError("asked")

    found = plan_win_rate(*inputs, refuses, tmp_path / "run")
    assert [part.calls for part in found.parts] == [80]
    assert found.samples == 40
    done = run_command(
        "compare", *inputs, "--judge", "python:judges:first", "--dry-run", cwd=tmp_path
    )
    assert done.returncode == 0
    assert "40 samples" in done.stderr and "no call was made" in " ".join(done.stderr.split())
    assert not (tmp_path / "trustassay-runs").exists()


def test_from_python_with_samples(tmp_path: Path) -> None:
    one = [{"question": f"q{i}", "response": "x"} for i in range(3)]
    other = [{"question": f"q{i}", "response": "y"} for i in range(3)]
    found = win_rate(one, other, lambda prompt: "A", tmp_path / "run", WinRateOptions(report=False))
    assert found.to_dict()["inconsistent"] == 3
    assert found.summary.values["win_rate"] is None


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer() as server:
        yield server


@pytest.mark.slow
def test_killed_it_goes_on_and_asks_nothing_twice(
    inputs: tuple[Path, Path],
    tmp_path: Path,
    server: LlmServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRUSTASSAY_CACHE", "off")
    server.change(latency_ms=50)
    uri = f"openai:judge@{server.base_url}?concurrency=4"
    arguments: list[str | Path] = [
        "compare",
        *inputs,
        "--judge",
        uri,
        "--run",
        "run",
        "--json",
    ]
    process = subprocess.Popen(
        command(*arguments), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    stored = tmp_path / "run" / "assessments.jsonl"
    for _ in range(600):
        if stored.exists() and stored.read_bytes().count(b"\n") > 4:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = stored.read_bytes().count(b"\n")
    assert 4 < before < 40
    asked = server.stats()["received"]
    done = run_command(*arguments, cwd=tmp_path)
    whole = server.stats()["received"]
    server.reset()
    fresh = run_command(*arguments[:6], "other", *arguments[7:], cwd=tmp_path)
    needed = server.stats()["received"]
    assert asked < needed
    assert needed <= whole <= needed + 8  # at most those that were under way
    drop = ("run",)
    one, two = (
        {k: v for k, v in json.loads(found.stdout).items() if k not in drop}
        for found in (done, fresh)
    )
    assert one == two


def test_a_judge_that_nobody_can_read(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "vague.py").write_text("def judge(prompt):\n    return 'Both are fine.'\n")
    done = run_command("compare", *inputs, "--judge", "python:vague:judge", cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # nothing could be judged
    words = " ".join(done.stderr.split())
    assert "No question was won or lost in both orders: 40 dropped (40 unreadable)." in words

"""Ctrl-C at any moment: a sentence, status 130, and what is paid for is stored."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.serving import one_server, questions, server, uri
from tests.llm_server import LlmServer
from tests.support import FULL

__all__ = ["one_server", "server"]

pytestmark = pytest.mark.slow

MAIN = "from trustassay.__main__ import main; main()"


def generating(server: LlmServer, folder: Path, *python: str) -> subprocess.Popen[str]:
    """Start as the installed command does."""
    arguments = ["generate", "q.jsonl", "--model", uri(server), "--out", "a.jsonl"]
    return subprocess.Popen(
        [sys.executable, *python, "-c", MAIN, *arguments, "--cache", "cache"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(process: subprocess.Popen[str], server: LlmServer, *, after: int) -> float:
    """Interrupt a process once the server has heard from it so often; return the time."""
    while server.stats()["received"] < after:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    return time.monotonic()


def stored(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "cache" / "calls.sqlite")) as connection:
        found: int = connection.execute("SELECT count(*) FROM calls").fetchone()[0]
    return found


MOMENTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)


@pytest.mark.parametrize("after_s", MOMENTS if FULL else MOMENTS[::2])
def test_from_the_first_moment_on_it_is_a_sentence_and_130(
    server: LlmServer, tmp_path: Path, after_s: float
) -> None:
    """Counted from the first import of the command: Python's own start is not ours."""
    questions(tmp_path / "q.jsonl", 2000)
    server.change(latency_ms=50)
    process = generating(server, tmp_path, "-X", "importtime")
    assert process.stderr
    for line in process.stderr:
        if line.rstrip().endswith("trustassay.__main__"):
            next(process.stderr)
            break
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    said = [line for line in process.stderr if not line.startswith("import time:")]
    assert process.wait(60) == 130
    assert re.fullmatch(r"interrupted; .*\n", said[-1])
    assert not re.search("Traceback|KeyboardInterrupt|Abort|ignored", "".join(said))


def test_replies_that_are_under_way_have_a_second(tmp_path: Path) -> None:
    questions(tmp_path / "q.jsonl", 500)
    with LlmServer(latency_ms=400) as server:
        process = generating(server, tmp_path)
        interrupted = interrupt(process, server, after=40)
        _, said = process.communicate(timeout=60)
        seconds = time.monotonic() - interrupted
        stats = server.stats()
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("interrupted; run the same command again")
    assert stored(tmp_path) == stats["answered"] == stats["received"] < 500
    assert seconds < 30


@pytest.mark.parametrize(("twice", "at_least", "at_most"), [(False, 0.8, 50.0), (True, 0.0, 50.0)])
def test_a_reply_that_does_not_come_holds_it_up_for_no_more_than_that(
    tmp_path: Path, twice: bool, at_least: float, at_most: float
) -> None:
    questions(tmp_path / "q.jsonl", 50)
    with LlmServer(latency_ms=60_000) as server:
        process = generating(server, tmp_path)
        interrupted = interrupt(process, server, after=20)
        if twice:
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert at_least < time.monotonic() - interrupted < at_most
    assert process.returncode == 130
    assert "Traceback" not in said

"""What a person is told about the progress of a run."""

import io
import re
import time

import pytest

from trustassay.core.progress import Progress, format_duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (89.4, "89 s"),
        (90, "2 min"),
        (60 * 89.4, "89 min"),
        (60 * 90, "1 h 30 min"),
        (60 * 125, "2 h 05 min"),
        (3600 * 100, "100 h 00 min"),
    ],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_rate_and_remaining_time() -> None:
    progress = Progress("scoring", 100)
    assert progress.describe(0.0) == "scoring: 0/100"
    progress.done = 20
    assert progress.describe(10.0) == "scoring: 20/100, 2.0/s, 40 s left"


def test_the_rate_is_that_of_the_last_half_minute_and_not_that_of_work_done_before() -> None:
    progress = Progress("scoring", 1000)
    progress.done = 900  # stood in the folder already
    progress.describe(0.0)
    progress.done = 910
    assert progress.describe(10.0).endswith(", 1.0/s, 2 min left")
    progress.done = 940
    assert "1.0/s" in progress.describe(40.0)
    progress.done = 960
    assert "1.0/s" not in progress.describe(45.0)


def test_no_rate_while_nothing_moves_and_no_remaining_time_without_a_total() -> None:
    stuck = Progress("scoring", 10)
    stuck.describe(0.0)
    assert stuck.describe(10.0) == "scoring: 0/10"
    endless = Progress("checking")
    endless.describe(0.0)
    endless.done = 5
    assert endless.describe(10.0) == "checking: 5, 0.5/s"


def test_plain_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Progress("scoring", 100) as progress:
        for _ in range(100):
            now[0] += 0.1
            progress.step()
    shown = capsys.readouterr()
    assert shown.out == ""
    first, *_ = shown.err.splitlines()
    assert re.fullmatch(r"scoring: 5\d/100, 10.0/s, [45] s left", first)
    assert "\x1b" not in shown.err and "\r" not in shown.err


def test_silence_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("scoring", 1, visible=False) as progress:
        progress._last_line = -1e9
        progress.step()
    assert capsys.readouterr() == ("", "")


def test_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress("scoring", 4) as progress:
        progress.step(3)
    assert "scoring" in terminal.getvalue() and "3/4" in terminal.getvalue()

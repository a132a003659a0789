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


class Clock:
    """The time of day of a test, which only the test moves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def step(self, progress: Progress, steps: int, every_s: float) -> None:
        for _ in range(steps):
            self.now += every_s
            progress.step()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_rate_and_remaining_time(clock: Clock) -> None:
    progress = Progress("scoring", 2000, visible=False)
    assert progress.describe(0.0) == "scoring: 0/2000"
    clock.step(progress, 10, 0.1)
    assert progress.describe(clock.now) == "scoring: 10/2000"
    clock.step(progress, 190, 0.1)
    assert progress.describe(clock.now) == "scoring: 200/2000, 10.0/s, about 3 min left"
    clock.step(progress, 1250, 0.1)
    assert progress.describe(clock.now) == "scoring: 1450/2000, 10.0/s, less than a minute left"
    clock.step(progress, 550, 0.1)
    assert progress.describe(clock.now) == "scoring: 2000/2000, 10.0/s"


def test_steps_of_an_earlier_process_are_counted_and_no_evidence(clock: Clock) -> None:
    progress = Progress("scoring", 1000, visible=False)
    progress.resume(900)
    assert progress.describe(0.0) == "scoring: 900/1000"
    clock.step(progress, 7, 1.0)
    assert progress.describe(clock.now) == "scoring: 907/1000"
    clock.step(progress, 13, 1.0)
    assert progress.describe(clock.now) == "scoring: 920/1000, 1.0/s, about 1 min left"


def test_no_rate_while_nothing_moves_and_no_remaining_time_without_a_total(clock: Clock) -> None:
    stuck = Progress("scoring", 10, visible=False)
    clock.now = 60.0
    stuck.step(0)
    assert stuck.describe(100.0) == "scoring: 0/10"
    endless = Progress("checking", visible=False)
    clock.step(endless, 20, 0.5)
    assert re.fullmatch(r"checking: 20, \d\.\d/s", endless.describe(clock.now))


def test_plain_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with Progress("scoring", 1000) as progress:
        clock.step(progress, 100, 0.1)
    shown = capsys.readouterr()
    assert shown.out == ""
    first, *_ = shown.err.splitlines()
    assert re.fullmatch(r"scoring: 5\d/1000, \d+\.\d/s, about 2 min left", first)
    assert "\x1b" not in shown.err and "\r" not in shown.err


def test_silence_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("scoring", 1, visible=False) as progress:
        progress._last_line = -1e9
        progress.step()
    assert capsys.readouterr() == ("", "")


def test_a_bar_in_a_terminal_has_the_same_rate_and_remaining_time(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with Progress("scoring", 1000) as progress:
        progress.resume(100)
        clock.step(progress, 100, 0.1)
        speed = progress.describe_speed(clock.now)
    assert speed.endswith("about 1 min left")
    assert "scoring" in terminal.getvalue() and "200/1000" in terminal.getvalue()
    assert speed in terminal.getvalue()

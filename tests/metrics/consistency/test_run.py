"""Planned, killed and taken up again, scored anew: nothing is asked that need not be."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.metrics.consistency.helpers import RIGHT, Asked, Chooser, Likely, sample
from tests.support import command, jsonl, killed_at_work, lines, results, run_command
from trustassay import score
from trustassay.api import plan, rescore
from trustassay.metrics import Consistency

ROWS = [sample(i) for i in range(5)]

MODULE = """
import time

def chooser(prompt):
    last = prompt.rsplit("Question: ", 1)[1]
    with open("asked.log", "a") as log:
        log.write(str(hash(last)) + "\\n")
    time.sleep(0.02)
    options = last.splitlines()[1:6]
    if "lamp 3 " in last and "D) The lamp stands in the red" in last:
        return "E"
    return next(option[0] for option in options if option[3:] == RIGHT)
"""


def given(**options: Any) -> Consistency:
    return Consistency(sources="given", **options)


def moody(asked: Asked) -> str:
    """Keeps to its answer for the first lamps, and not for others; sometimes says nothing."""
    number = int(asked.question.split()[3])
    if number == 2 and asked.right == "C":
        return "E"
    if number == 3 and asked.right == "B":
        return "Well."
    if number == 4:
        return f"({asked.right})"
    return asked.right


# -------------------------------------------------------------------------------------- planning


def test_a_plan_counts_the_most_that_may_be_asked_and_asks_nothing() -> None:
    model = Chooser(lambda _: "E")
    (part,) = plan(ROWS, metrics=given(), model=model).parts
    assert (part.metric, part.capability, part.calls, part.cached) == ("consistency", "chat", 50, 0)
    assert not model.requests
    (part,) = plan(ROWS, metrics=given(checks=3), model=model).parts
    assert part.calls == 15
    (part,) = plan(ROWS, metrics=given(by="auto"), model=Likely()).parts
    assert (part.capability, part.calls) == ("likelihood", 5 * 10 * 10)


def test_a_plan_goes_on_from_what_is_stored(tmp_path: Path) -> None:
    model = Chooser(lambda asked: asked.right if "lamp 0" in asked.question else "E")
    score(ROWS, metrics=given(), model=model, out=tmp_path / "run")
    assert len(model.requests) == 10 + 4
    (part,) = plan(ROWS, metrics=given(), model=model, out=tmp_path / "run").parts
    assert (part.calls, part.cached) == (14, 14)
    (part,) = plan(ROWS, metrics=given(stop=False), model=model, out=tmp_path / "run").parts
    assert (part.calls, part.cached) == (50, 14)


# --------------------------------------------------------------------------------- taken up again


def test_interrupted_it_goes_on_without_asking_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Chooser(moody)
    score(ROWS, metrics=given(), model=whole, out=tmp_path / "whole")
    model, reply = Chooser(moody), Chooser.reply

    async def until_it_breaks(self: Chooser, request: Any) -> Any:
        if len(self.requests) >= 17:
            raise KeyboardInterrupt
        return await reply(self, request)

    monkeypatch.setattr(Chooser, "reply", until_it_breaks)
    with pytest.raises(KeyboardInterrupt):
        score(ROWS, metrics=given(), model=model, out=tmp_path / "run")
    monkeypatch.setattr(Chooser, "reply", reply)
    score(ROWS, metrics=given(), model=model, out=tmp_path / "run")
    asked = Counter(model.prompts)
    assert set(asked) == set(whole.prompts)
    assert sum(asked.values()) <= len(whole.prompts) + 5  # what was under way may be asked again
    assert results(tmp_path / "run") == results(tmp_path / "whole")


@pytest.mark.slow
def test_killed_it_goes_on_to_the_same_files(tmp_path: Path) -> None:
    (tmp_path / "choosing.py").write_text(f"RIGHT = {RIGHT!r}\n{MODULE}")
    jsonl(tmp_path / "in.jsonl", [sample(i, distractors=6) for i in range(16)])
    asking = ["score", "in.jsonl", "--model", "python:choosing:chooser", "--samples-at-once", "4"]
    asking += ["--metric", "consistency:sources=given", "--cache", "off"]
    here: dict[str, Any] = {"cwd": tmp_path, "PYTHONHASHSEED": "0"}
    assert run_command(*asking, "--out", "whole", **here).returncode == 0
    needed = Counter(lines_of(tmp_path / "asked.log"))
    (tmp_path / "asked.log").unlink()
    part = tmp_path / "run" / "assessments.jsonl"
    killed_at_work(command(*asking, "--out", "run"), part, **here)
    assert 5 <= len(lines(part)) < 16
    time.sleep(0.1)
    assert run_command(*asking, "--out", "run", **here).returncode == 0
    asked = Counter(lines_of(tmp_path / "asked.log"))
    assert set(asked) == set(needed)
    assert sum(asked.values()) <= sum(needed.values()) + 2 * 4
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


# ----------------------------------------------------------------------------------- scored anew


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run in which all choices were made."""
    score(ROWS, metrics=given(stop=False), model=Chooser(moody), out=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("options", "scores"),
    [
        ({"stop": False}, [1, 1, 0, 1, 1]),
        ({"stop": True}, [1, 1, 0, 1, 1]),
        ({"stop": True, "unparsed": "apart"}, [1, 1, 0, None, 1]),
        ({"stop": True, "checks": 1}, [1, 1, 1, 1, 1]),
        ({"stop": True, "unparsed": "inconsistent"}, [1, 1, 0, 0, 1]),
        ({"stop": True, "parser": "exact", "unparsed": "apart"}, [1, 1, 0, None, None]),
        ({"stop": False, "aggregate": "share"}, [1, 1, "share", 1, 1]),
        (
            {"stop": False, "aggregate": "share", "parser": "exact", "unparsed": "inconsistent"},
            [1, 1, "share", "share", 0],
        ),
    ],
)
def test_scored_anew_with_another_rule_nobody_is_asked(
    run: Path, tmp_path: Path, options: dict[str, Any], scores: list[Any]
) -> None:
    """The run's model is an object that cannot be had again by its name: it cannot be asked."""
    again = rescore(run, metrics=given(**options), out=tmp_path / "again")
    assert [a.error for a in again.assessments] == [None] * 5
    found = [a.score for a in again.assessments]
    if options == {"stop": True, "checks": 1}:  # where the answer stood at the only place
        first = [a.evidence[0]["right"] for a in again.assessments]
        scores = [1, 1, 0 if first[2] == "C" else 1, 1, 1]
    for score_, wanted, before in zip(found, scores, read_back(run), strict=True):
        if wanted == "share":
            stood = [row["right"] for row in before["evidence"][:10]]
            other = "C" if before["id"] == "q2" else "B"
            assert score_ == pytest.approx(1 - stood.count(other) / 10)
        else:
            assert score_ == wanted
    assert again.outcome.counts["chat chooser"].computed == 0


def read_back(run: Path) -> list[dict[str, Any]]:
    return lines(run / "assessments.jsonl")


def test_stored_replies_of_a_run_that_asked_nothing_again_serve(tmp_path: Path) -> None:
    """The first asking of each check is stored under the same key, whatever the rule."""
    old = given(unparsed="apart", stop=False)
    readable = [row for row in ROWS if row["id"] != "q3"]
    score(readable, metrics=old, model=Chooser(moody), out=tmp_path / "run")
    again = rescore(tmp_path / "run", metrics=given(), out=tmp_path / "again")
    assert again.outcome.counts["chat chooser"].computed == 0
    assert [a.score for a in again.assessments] == [1, 1, 0, 1]
    score(ROWS, metrics=old, model=Chooser(moody), out=tmp_path / "all")
    whole = rescore(tmp_path / "all", metrics=given(), out=tmp_path / "again2")
    (unread,) = [a for a in whole.assessments if a.error]
    assert unread.id == "q3"
    assert "cannot be used here" in (unread.error or "")


def test_open_answers_and_unreadable_replies_are_on_the_terminal(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "in.jsonl", [sample(i, distractors=5) for i in range(4)])
    (tmp_path / "mute.py").write_text(
        f"RIGHT = {RIGHT!r}\n{MODULE}\n\ndef mute(prompt):\n"
        "    return 'Hm.' if 'lamp 2 ' in prompt.rsplit('Question: ', 1)[1] else chooser(prompt)\n"
    )
    metric = "consistency:sources=given,checks=4"
    asking = ("in.jsonl", "--metric", metric, "--model", "python:mute:mute", "--out", "run")
    found = cli("score", *asking)
    assert "unparsed" in found.err
    words = (
        "consistency: 1 of 4 answers is left open, because replies could not be read; "
        "the mean over all answers is between 0.500 and 0.750"
    )
    assert words in found.err
    assert words in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_a_run_that_stopped_early_lacks_the_calls_of_one_that_does_not(tmp_path: Path) -> None:
    score(ROWS, metrics=given(), model=Chooser(moody), out=tmp_path / "run")
    again = rescore(tmp_path / "run", metrics=given(stop=False), out=tmp_path / "again")
    failed = {a.id: a.error for a in again.assessments if a.error}
    assert set(failed) == {"q2"}  # the one that ended early
    assert "cannot be used here" in (failed["q2"] or "")


def test_the_command_line(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "choosing_here.py").write_text(f"RIGHT = {RIGHT!r}\n{MODULE}")
    monkeypatch.syspath_prepend(tmp_path)
    jsonl(tmp_path / "in.jsonl", [sample(i, distractors=5) for i in range(4)])
    metric = "consistency:sources=given,stop=no,checks=4"
    asking = ("in.jsonl", "--metric", metric, "--model", "python:choosing_here:chooser")
    found = json.loads(cli("plan", *asking, "--json").out)
    assert [part["calls"] for part in found["parts"]] == [16]
    said = cli("score", *asking, "--out", "run", "--json")
    assert said.status == 0
    values = json.loads(said.out)["metrics"]["consistency"]["values"]
    assert (values["mean"], values["consistent"], values["checks"]) == (0.75, 75.0, 4.0)
    assert values["none_chosen"] == 100 / 16
    asked = len(lines_of(tmp_path / "asked.log"))
    assert asked == 16
    metric = "consistency:sources=given,stop=yes,checks=2,unparsed=inconsistent"
    assert cli("rescore", "run", "--metric", metric, "--out", "again").status == 0
    assert len(lines_of(tmp_path / "asked.log")) == asked

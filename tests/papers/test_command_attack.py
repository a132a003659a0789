"""``trustassay papers attack`` through the command line: traces, going on, other settings."""

import dataclasses
import inspect
import itertools
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.cli.serving import one_server, server, uri
from tests.llm_server import LlmServer
from tests.support import command, quick_embedder
from trustassay.cli.main import app
from trustassay.cli.papers import harmonicity as attack_command
from trustassay.papers.harmonicity.ascent import AscentOptions

__all__ = ["one_server", "server"]

MODEL = """
from pathlib import Path
import zlib

def answer(prompt):
    with Path("asked.txt").open("a") as file:
        file.write("x")
    return f"Answer number {zlib.crc32(prompt.encode()) % 3}: <script>alert(1)</script>"
"""
ARGUMENTS = ["--model", "python:wobbly:answer", "--candidates", "2", "--perturbations", "3"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "wobbly.py").write_text(MODEL)
    return tmp_path


def attack(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["papers", "attack", "Say it.", *ARGUMENTS, *arguments])
    return result.exit_code, result.output


def test_a_search_leaves_its_trace_and_goes_on_without_asking_again(here: Path) -> None:
    code, output = attack("--out", "one", "--steps", "2")
    assert code == 0, output
    rows = [json.loads(line) for line in (here / "one" / "trace.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 1, 2, 2]
    assert rows[0]["prompt"] == "Say it."
    assert rows[0]["kept"]
    asked = len((here / "asked.txt").read_text())
    assert asked <= 5 * 4
    before = (here / "one" / "trace.jsonl").read_bytes()
    page = (here / "one" / "ascent.html").read_bytes()
    assert b"Say it." in page
    assert b"<script>" not in page
    assert attack("--out", "one", "--steps", "2")[0] == 0
    assert (here / "one" / "trace.jsonl").read_bytes() == before
    assert (here / "one" / "ascent.html").read_bytes() == page
    assert len((here / "asked.txt").read_text()) == asked
    assert attack("--out", "one", "--steps", "3")[0] == 0
    assert (here / "one" / "trace.jsonl").read_bytes().startswith(before)


def test_other_settings_take_another_folder(here: Path) -> None:
    assert attack("--out", "one", "--steps", "1")[0] == 0
    code, output = attack("--out", "one", "--steps", "1", "--seed", "3")
    assert code == 2
    assert "seed was 0, now 3" in output


def test_a_folder_with_something_else_is_left_alone(here: Path) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "letter.txt").write_text("dear")
    code, output = attack("--out", "mine")
    assert code == 2
    assert "holds no session" in output
    assert [path.name for path in (here / "mine").iterdir()] == ["letter.txt"]


def test_the_search_of_the_authors_goes_on_from_the_extremum_and_tells_the_best(here: Path) -> None:
    options = ["--step-rule", "extremum", "--perturbation", "codes", "--candidate", "ball"]
    options += ["--range", "4095", "--length", "1", "--steps", "6"]
    result = CliRunner().invoke(
        app, ["papers", "attack", "Say it.", *ARGUMENTS, "--out", "one", *options, "--json"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    points = found["points"]
    kept = [point for point in points if point["kept"]]
    assert [point["step"] for point in kept] == list(range(7))
    angles = [point["angle_degrees"] for point in kept]
    assert any(after < before for before, after in itertools.pairwise(angles))
    assert found["best"]["angle_degrees"] == max(point["angle_degrees"] for point in points)
    assert found["best"]["prompt"] != found["end"]["prompt"] == kept[-1]["prompt"]
    assert [len(point["prompt"]) - len("Say it.") for point in kept] == [0, 2, 4, 6, 8, 10, 12]
    assert any("\x7f" < c <= "\u0fff" for c in found["end"]["prompt"])
    best = f"gamma {found['best']['gamma']:.3f} at step {found['best']['step']}"
    assert f"best prompt found: {best}" in result.stderr
    page = (here / "one" / "ascent.html").read_text("utf-8")
    assert f"The best prompt found has gamma {found['best']['gamma']:.3f}, at step" in page
    assert page.count("<b>best found</b>") == 1
    assert "codes 0 to 4095" in page
    # Each step asks about N prompts for each of two candidates; what they answer is known.
    assert found["requests"] == len((here / "asked.txt").read_text()) <= 4 + 6 * 2 * 3


def test_the_defaults_of_the_command_are_those_of_the_search() -> None:
    defaults = inspect.signature(attack_command.attack).parameters
    for field in dataclasses.fields(AscentOptions):
        name = {"max_calls": "calls", "range": "last"}.get(field.name, field.name)
        if name in defaults:
            assert defaults[name].default == field.default, name


def test_options_that_cannot_be_are_told_in_one_line(here: Path) -> None:
    for options, words in (
        (("--step-rule", "uphil"), "unknown step rule 'uphil'; did you mean uphill?"),
        (("--range", "99"), "range: applies to the perturbation codes, not to unicode, unicode"),
        (("--candidate", "ball", "--candidates", "9"), "ball has only 3 prompts"),
    ):
        code, output = attack("--out", "one", *options)
        assert code == 2
        assert words in output
        assert output.count("\n") == 1
    assert not (here / "one").exists()


def test_a_budget_of_calls_and_json(here: Path) -> None:
    result = CliRunner().invoke(
        app, ["papers", "attack", "Say it.", *ARGUMENTS, "--out", "one", "--calls", "9", "--json"]
    )
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert len(found["points"]) == 2
    assert found["start"] == found["points"][0]
    assert found["requests"] == 8
    assert len((here / "asked.txt").read_text()) == 8


# calls that leave


def asked(
    server: LlmServer, out: str, *arguments: str, model: str = "", cache: str = "off"
) -> dict[str, Any]:
    """Attack a server with small rounds and without a shared cache; return what it says."""
    small = ("--candidates", "2", "--perturbations", "3", "--out", out, "--json")
    words = ["papers", "attack", "Say it.", "--model", model or uri(server), *small, *arguments]
    result = CliRunner().invoke(app, words, env={"TRUSTASSAY_CACHE": cache})
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["share_500", "share_429", "share_dropped", "share_malformed"])
def test_failed_tries_are_calls_and_all_are_counted(
    server: LlmServer, here: Path, fault: str
) -> None:
    server.change(**{fault: 0.2}, retry_after_s=0.01, seed=3)
    found = asked(server, "one", "--steps", "2")
    received = server.stats()["received"]
    assert found["requests"] == received == found["points"][-1]["calls"]
    assert found["failed_requests"] == received - server.stats()["answered"] > 0
    failures = (here / "one" / "failures.jsonl").read_text().splitlines()
    assert len(failures) == found["failed_requests"]
    page = (here / "one" / "ascent.html").read_text()
    assert f"{received}, {found['failed_requests']} of them failed" in page


@pytest.mark.slow
@pytest.mark.parametrize("most", [8, 13, 20, 27])
def test_no_more_requests_leave_than_the_budget_when_some_fail(
    server: LlmServer, here: Path, most: int
) -> None:
    server.change(share_500=0.15, seed=5)
    model = uri(server, tries=20, concurrency=3)
    found = asked(server, "one", "--steps", "9", "--calls", str(most), model=model)
    received = server.stats()["received"]
    assert received <= most
    assert found["requests"] == received
    # It stops only where what is left is too little for another candidate.
    assert received > most - 4
    # Whoever is out of calls says so; going on with the same budget asks nothing.
    errors = {point["error"] for point in found["points"]} - {None}
    assert all(f"the limit of {most} calls is reached" in error for error in errors)
    trace = (here / "one" / "trace.jsonl").read_bytes()
    assert asked(server, "one", "--steps", "9", "--calls", str(most), model=model) == found
    assert server.stats()["received"] == received
    assert (here / "one" / "trace.jsonl").read_bytes() == trace
    # A larger one goes on.
    more = asked(server, "one", "--steps", "9", "--calls", str(most + 8), model=model)
    assert most < server.stats()["received"] == more["requests"] <= most + 8


def test_a_start_that_the_budget_does_not_reach(server: LlmServer, here: Path) -> None:
    server.change(share_500=1.0)
    arguments = [
        "papers",
        "attack",
        "Say it.",
        "--model",
        uri(server, tries=20),
        "--perturbations",
        "3",
    ]
    arguments += ["--out", "one", "--calls"]
    result = CliRunner().invoke(app, [*arguments, "5"])
    assert result.exit_code == 2
    assert "the limit of 5 calls is reached" in result.output
    assert server.stats()["received"] == 5
    server.change(share_500=0.0)
    result = CliRunner().invoke(app, [*arguments, "9"])
    assert result.exit_code == 0, result.output
    assert "calls: 9 of at most 9, 5 of them failed" in result.output


def test_cached_replies_are_no_calls(server: LlmServer, here: Path) -> None:
    first = asked(server, "one", "--steps", "2", cache="shared")
    received = server.stats()["received"]
    assert first["requests"] == received
    again = asked(server, "two", "--steps", "2", "--calls", "8", cache="shared")
    assert server.stats()["received"] == received
    assert again["requests"] == 0
    assert [point["gamma"] for point in again["points"]] == [
        point["gamma"] for point in first["points"]
    ]


def test_a_request_sent_again_without_a_parameter_counts_twice(
    server: LlmServer, here: Path
) -> None:
    server.change(refuse="temperature")
    found = asked(server, "one", "--steps", "1", model=uri(server, concurrency=1))
    assert found["requests"] == server.stats()["received"]
    assert found["failed_requests"] == 1


REFUSING = """
from pathlib import Path
from trustassay.errors import CallError

def answer(prompt):
    with Path("asked.txt").open("a") as file:
        file.write("x")
    if len(prompt) > 10:
        raise CallError("no such length", "refused")
    return f"Answer {len(prompt) % 3}"
"""


def test_what_was_refused_counts_and_is_not_asked_again(server: LlmServer, here: Path) -> None:
    (here / "choosy.py").write_text(REFUSING)
    model = "python:choosy:answer"
    first = asked(server, "one", "--perturbation", "control", "--steps", "1", model=model)
    received = len((here / "asked.txt").read_text())
    assert first["requests"] == received
    assert first["failed_requests"] > 0
    errors = [point["error"] for point in first["points"]]
    assert "no such length" in errors
    page = (here / "one" / "ascent.html").read_bytes()
    again = asked(server, "one", "--perturbation", "control", "--steps", "1", model=model)
    assert again == first
    assert (here / "one" / "ascent.html").read_bytes() == page
    assert len((here / "asked.txt").read_text()) == received


@pytest.mark.slow
def test_killed_at_any_point_it_ends_with_the_files_of_an_unbroken_one(tmp_path: Path) -> None:
    files = ("trace.jsonl", "ascent.html", "session.json")
    arguments = ["--steps", "3", "--candidates", "3", "--perturbations", "4", "--calls", "43"]
    arguments += quick_embedder(tmp_path)
    environment = os.environ | {"TRUSTASSAY_CACHE": "off"}
    with LlmServer(latency_ms=15) as one:
        words = command(
            "papers", "attack", "Say it.", "--model", uri(one, concurrency=2), *arguments
        )
        words += ["--out"]

        def run(out: str) -> None:
            subprocess.run(
                [*words, out], cwd=tmp_path, env=environment, check=True, capture_output=True
            )

        run("whole")
        expected = [(tmp_path / "whole" / name).read_bytes() for name in files]
        unbroken = one.stats()["received"]
        assert unbroken <= 43
        one.reset()
        for goal in (3, 12, 30):
            process = subprocess.Popen(
                [*words, "broken"], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
            )
            while one.stats()["answered"] < goal and process.poll() is None:
                time.sleep(0.003)
            process.kill()
            process.wait()
        run("broken")
        assert one.stats()["received"] <= unbroken + 3 * 2  # what was under way is asked again
        found = [(tmp_path / "broken" / name).read_bytes() for name in files]
    assert found == expected

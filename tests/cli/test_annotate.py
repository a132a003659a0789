"""``trustassay annotate``, as a user meets it; of the page see ``tests/people/annotate``."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from lab.benchmarks.annotating import Served, many_raters, measure, stored

from tests.cli.conftest import Cli
from tests.people.annotate.helpers import answers
from tests.support import ROOT, jsonl, lines
from trustassay import score
from trustassay.people.annotate.session import RatingsFile


def test_a_sheet_there_and_back_and_how_far_its_raters_agree(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", answers(12))
    raters = ("--rater", "anna", "--rater", "bela")
    said = cli("annotate", "a.jsonl", *raters, "--export", "sheet.csv")
    assert said.status == 0
    assert "anna: 24 rows: sheet-anna.csv" in said.err
    for rater in ("anna", "bela"):
        path = tmp_path / f"sheet-{rater}.csv"
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file)
        for row in rows:  # a question's number is in its answer, too
            number = int(row[3].split()[-1].rstrip("?"))
            row[1] = str(number % 6 if rater == "anna" or number % 4 else 5)
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    sheets = ("--import", "sheet-anna.csv", "--import", "sheet-bela.csv")
    said = cli("annotate", "a.jsonl", *raters, *sheets)
    assert said.status == 0
    assert "stored 48 new or changed of 48 ratings: ratings.jsonl" in said.err
    assert (
        "stored 0 new or changed of 48 ratings" in cli("annotate", "a.jsonl", *raters, *sheets).err
    )
    said = cli("agree", "ratings.jsonl", "--json")
    assert said.status == 0
    found = json.loads(said.out)
    assert found["raters"] == {"anna": 24, "bela": 24}
    assert set(found["models"]) == {"secret-model-a", "secret-model-b"}
    assert 50 < found["overall"]["percent"]["value"] < 100
    assert found["disputes"][0]["ratings"] == {"anna": "0", "bela": "5"}


def test_one_rubric_of_several_is_read_by_every_command(cli: Cli, tmp_path: Path) -> None:
    rows = answers(4)
    jsonl(tmp_path / "a.jsonl", rows)
    assert cli("score", "a.jsonl", "--entailer", "lexical", "--out", "run").status == 0
    raters = ["--rater", "anna", "--rater", "bela"]
    start = ["annotate", "run", *raters, "--rubric", "answer", "--rubric", "verdict"]
    cli(*start, "--export", "s.csv")
    for sheet in ("s-anna.csv", "s-bela.csv"):
        with (tmp_path / sheet).open(encoding="utf-8-sig", newline="") as file:
            header, *table = csv.reader(file)
        for place, row in enumerate(table):
            row[1:3] = str(place % 6), ("yes", "no")[place % 2]
        with (tmp_path / sheet).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *table])
    said = cli(*start, "--import", "s-anna.csv", "--import", "s-bela.csv")
    assert "stored 32 new or changed of 32 ratings" in said.err
    verdict = ("--field", "rating=verdict")
    for command in (
        ("agree", "ratings.jsonl"),
        ("study", "run", "--ratings", "ratings.jsonl"),
        ("label", "run", "--ratings", "ratings.jsonl", "--number", "2"),
        ("calibrate", "run", "--ratings", "ratings.jsonl"),
        ("report", "run", "--ratings", "ratings.jsonl"),
    ):
        said = cli(*command)
        assert said.status == 2, command
        assert "expected --field rating=RUBRIC with one of answer, verdict" in said.err, command
        said = cli(*command, *verdict)
        assert "rubrics" not in said.err, command
    found = json.loads(cli("agree", "ratings.jsonl", *verdict, "--json").out)
    assert found["raters"] == {"anna": 8, "bela": 8}
    said = cli("report", "run", *verdict)
    assert said.status == 2
    assert "--field: needs --ratings FILE" in said.err


def test_bad_input_is_told_and_nothing_started(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", answers(4))
    (tmp_path / "empty.jsonl").touch()
    jsonl(tmp_path / "none.jsonl", [{"question": "q?"}])
    (tmp_path / "diary.txt").write_text("mine\n")
    rater = ("--rater", "anna")
    for arguments, words in (
        (("a.jsonl",), "expected --rater NAME"),
        (rater, "expected either a file or a run to rate, or two with --pairs"),
        (("empty.jsonl", *rater), "empty.jsonl: contains no records"),
        (("none.jsonl", *rater), "no sample has a response; there is nothing to rate"),
        (("a.jsonl", *rater, "--rubric", "trut"), "unknown rubric 'trut'"),
        (("a.jsonl", *rater, "--per-group", "3"), "the smallest group"),
        (("a.jsonl", *rater, "--out", "diary.txt"), "not a file that `annotate` wrote"),
        (("a.jsonl", *rater, "--host", "host.invalid"), "cannot listen at host.invalid:8765"),
        (("a.jsonl", *rater, "--together", "--pairs", "a.jsonl", "a.jsonl"), "expected either"),
        (("--together", *rater, "--pairs", "a.jsonl", "a.jsonl"), "a pair is shown together"),
        (("a.jsonl", *rater, "--import", "a.jsonl"), "row 1: expected the columns key and rating"),
        (("a.jsonl", *rater, "--import", "x", "--export", "x"), "expected only one of them"),
    ):
        said = cli("annotate", *arguments)
        assert said.status == 2, arguments
        assert words in said.err, arguments
    assert (tmp_path / "diary.txt").read_text() == "mine\n"
    assert not (tmp_path / "ratings.jsonl").exists()


def test_an_export_without_ratings_is_no_import(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", answers(2))
    cli("annotate", "a.jsonl", "--rater", "anna", "--export", "s.csv")
    said = cli("annotate", "a.jsonl", "--rater", "anna", "--import", "s.csv")
    assert said.status == 2
    assert "s.csv: no row has a rating; nothing was stored" in said.err


def test_a_file_that_another_process_writes_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", answers(2))
    held = RatingsFile(tmp_path / "ratings.jsonl")
    try:
        said = cli("annotate", "a.jsonl", "--rater", "anna", "--port", "0")
    finally:
        held.close()
    assert said.status == 2
    assert "another process is writing to this file" in said.err


# The server as a process


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a process in another folder find the package that is tested."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))


@pytest.fixture
def served(tmp_path: Path, environment: None) -> Iterator[Served]:
    rows = answers(6)
    for row in rows:
        row["response"] = f"confidential {row['response']}"
    jsonl(tmp_path / "a.jsonl", rows)
    found = Served(tmp_path, ["a.jsonl", "--rater", "anna", "--rater", "bela"])
    found.start()
    yield found
    found.kill()


def post(link: str, action: str, **fields: str) -> int:
    body = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
    with urlopen(Request(f"{link}/{action}", body), timeout=60) as reply:
        return int(reply.status)


@pytest.mark.slow
def test_ctrl_c_ends_and_the_same_command_goes_on(served: Served, tmp_path: Path) -> None:
    anna = served.links["anna"]
    assert post(anna, "rate", step="0", choice="4") == 200
    assert served.process
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(60) == 130
    said = (tmp_path / "said").read_text()
    assert "interrupted; run the same command again to continue" in said
    assert "confidential" not in said
    assert "Traceback" not in said
    served.start()
    assert served.links["anna"] == anna
    assert "(1 of 12 rated)" in (tmp_path / "said").read_text()
    assert post(anna, "rate", step="1", choice="3") == 200
    assert [row["rating"] for row in lines(tmp_path / "ratings.jsonl")[1:]] == [4, 3]


@pytest.mark.slow
def test_ten_clients_and_two_kills_lose_no_rating(tmp_path: Path, environment: None) -> None:
    served = many_raters(tmp_path, raters=10, number=40)
    served.start()
    try:
        measured = asyncio.run(measure(served, number=40, kills=2))
    finally:
        served.kill()
    found = stored(tmp_path / "ratings.jsonl")
    assert len(measured.confirmed) == 400
    assert found == measured.confirmed
    assert measured.sent_again > 0


def sheet(cli: Cli, folder: Path, *arguments: str) -> Path:
    """Return a filled sheet of two answers, for these arguments of ``annotate``."""
    path = folder / "sheet.csv"
    path.unlink(missing_ok=True)
    assert cli("annotate", *arguments, "--export", path).status == 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    for row in rows:
        row[1] = "3"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    """Return the folder of a run."""
    score(answers(2), metrics="faithfulness", entailer="lexical", out=tmp_path / "sent")
    return tmp_path / "sent"


def test_ratings_are_not_written_through_a_link_in_a_run(
    cli: Cli, tmp_path: Path, sent: Path
) -> None:
    filled = sheet(cli, tmp_path, "sent", "--rater", "anna")
    asked = ("annotate", "sent", "--rater", "anna", "--import", filled)
    for name in ("ratings.jsonl", "samples.jsonl"):
        path = sent / name
        path.unlink(missing_ok=True)
        for target in (tmp_path / "outside", sent / "inside"):
            path.symlink_to(target)
            result = cli(*asked, "--out", sent / "ratings.jsonl")
            assert result.status == 2 and str(path) in result.err.replace("\n", "")
            assert not target.exists()
            path.unlink()
        if name == "samples.jsonl":
            assert cli("annotate", "sent", "--rater", "anna", "--export", "x.csv").status == 2


def test_a_link_that_the_user_names_as_output_is_followed(
    cli: Cli, tmp_path: Path, sent: Path
) -> None:
    filled = sheet(cli, tmp_path, "sent", "--rater", "anna")
    (tmp_path / "ratings.jsonl").symlink_to(tmp_path / "deep" / "r.jsonl")
    (tmp_path / "deep").mkdir()
    assert cli("annotate", "sent", "--rater", "anna", "--import", filled).status == 0
    assert len(lines(tmp_path / "deep" / "r.jsonl")) == 5
    (tmp_path / "link").symlink_to(sent)
    named = ("annotate", "link", "--rater", "anna", "--import", filled)
    assert cli(*named, "--out", "link/ratings.jsonl").status == 0
    assert (sent / "ratings.jsonl").stat().st_mode & 0o777 == 0o600


def test_what_another_user_owns_is_not_written_until_one_says_so(
    cli: Cli, tmp_path: Path, sent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = sheet(cli, tmp_path, "sent", "--rater", "anna")
    asked = ("annotate", "sent", "--rater", "anna", "--import", filled)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    result = cli(*asked, "--out", "sent/ratings.jsonl")
    assert result.status == 2
    assert "--out: sent belongs to another user; add --write-others" in " ".join(result.err.split())
    assert not (sent / "ratings.jsonl").exists()
    assert cli(*asked, "--out", "sent/ratings.jsonl", "--write-others").status == 0

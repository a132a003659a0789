"""``trustassay monitor`` as a user meets it: alarms, states, clocks, webhooks."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from serve.tests.days import day_run, day_runs
from tests.cli.conftest import Cli

from trustassay.files import alone
from trustassay_serve import monitor as monitoring

CALM = [6, 8, 5, 7, 6, 9, 5, 7]
WORSE = [25, 28, 24]
BY_ANSWER = ("--unit", "answer", "--baseline", "5")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return day_runs(tmp_path_factory.mktemp("days"), CALM + WORSE)


def test_a_change_is_told_with_its_day_its_group_and_answers(cli: Cli, runs: list[Path]) -> None:
    calm = cli("monitor", *runs[: len(CALM)], "--state", "s.json", *BY_ANSWER)
    assert calm.status == 0
    assert "8 days, 0 alarms" in calm.err
    said = cli(
        "monitor", *runs, "--state", "s.json", *BY_ANSWER, "--json", "--prometheus", "p.prom"
    )
    assert said.status == 3
    assert "ALARM faithfulness.look (all): 10.7 % → " in said.err
    assert "contradicted: " in said.err
    assert "What of 2026-10-11-0? (2026-10-11-0): contradicted!" in said.err
    told = {(one["figure"], one["group"]): one for one in json.loads(said.out)["streams"]}
    whole = told["faithfulness.look", "all"]
    assert whole["since"][0] == "2026-10-09"
    assert whole["evidence"] > whole["needed"] == 600
    assert set(told) == {
        (f, g)
        for f in ("faithfulness.look", "faithfulness.unscored")
        for g in ("all", "model=a", "model=b")
    }
    line = 'trustassay_evidence{figure="faithfulness.look",group="all",kind="change"} '
    assert line in Path("p.prom").read_text()


def test_day_by_day_is_the_same_as_all_at_once(cli: Cli, runs: list[Path]) -> None:
    for run in (*runs, runs[3], *runs[-2:]):
        last = cli("monitor", run, "--state", "daily.json", *BY_ANSWER)
    whole = cli("monitor", *runs, "--state", "once.json", *BY_ANSWER)
    assert (last.status, last.err) == (whole.status, whole.err)
    assert (
        json.loads(Path("daily.json").read_text())["days"]
        == json.loads(Path("once.json").read_text())["days"]
    )


def test_days_as_units_ask_for_more(cli: Cli, runs: list[Path]) -> None:
    days = ("--baseline", "5", "--figure", "faithfulness.look")
    by_day = cli("monitor", *runs, "--state", "d.json", *days, "--json")
    by_answer = cli("monitor", *runs, "--state", "a.json", *days, "--unit", "answer", "--json")
    first, second = (json.loads(one.out)["streams"][0]["evidence"] for one in (by_day, by_answer))
    assert 0 < first < second


def test_a_line_holds_from_the_first_day(cli: Cli, runs: list[Path]) -> None:
    line = ("--max", "faithfulness.look=20%")
    assert cli("monitor", *runs[:4], "--state", "s.json", *line).status == 0
    said = cli("monitor", *runs, "--state", "s.json", *line)
    assert said.status == 3
    assert "ALARM faithfulness.look (all): 20.0 % → " in said.err
    for wrong in ("faithfulness.mean=20%", "faithfulness.look=200%"):
        assert cli("monitor", *runs, "--state", "t.json", "--max", wrong).status == 2


def test_a_clock_that_goes_back_rewrites_nothing(
    cli: Cli, runs: list[Path], tmp_path: Path
) -> None:
    cli("monitor", *runs[:3], "--state", "s.json")
    before = Path("s.json").read_bytes()
    other = day_run(tmp_path / "again" / runs[2].name, 60, 60)
    for late in (other, day_run(tmp_path / "2026-09-30", 60, 60)):
        said = cli("monitor", late, "--state", "s.json")
        assert said.status == 0
        assert "left out: " in said.err
        assert "is not after 2026-10-03" in said.err
    assert Path("s.json").read_bytes() == before


def test_a_judge_that_drifts_is_seen_by_its_probes(cli: Cli, tmp_path: Path) -> None:
    probes = day_runs(tmp_path / "probes", [10, 10, 11, 10], ids="probe")
    fixed = ("--fixed", "--state", "judge.json")
    assert cli("monitor", *probes, *fixed).status == 0
    later = day_run(tmp_path / "2026-11-01", 40, 60, ids="probe")
    said = cli("monitor", later, *fixed)
    assert said.status == 3
    assert "faithfulness.look (all): 16.7 % → 66.7 % since 2026-11-01" in said.err
    milder = day_runs(tmp_path / "milder", [40, 40, 0], ids="probe")
    assert cli("monitor", *milder, "--fixed", "--state", "mild.json").status == 3
    assert cli("monitor", later, *fixed, "--restart", "2026-11-01").status == 2


def test_a_restart_begins_another_baseline(cli: Cli, runs: list[Path]) -> None:
    assert cli("monitor", *runs, "--state", "s.json", *BY_ANSWER).status == 3
    again = ("--state", "s.json", *BY_ANSWER, "--restart")
    said = cli("monitor", runs[-1], *again, "2026-10-09")
    assert (said.status, "3 days, 0 alarms" in said.err) == (0, True)
    assert cli("monitor", runs[-1], *again, "2027-01-01").status == 2


def test_bad_input_is_told_and_changes_nothing(cli: Cli, runs: list[Path], tmp_path: Path) -> None:
    cli("monitor", *runs[:2], "--state", "s.json")
    before = Path("s.json").read_bytes()
    unfinished = tmp_path / "2026-10-20"
    shutil.copytree(runs[0], unfinished)
    (unfinished / "summary.json").unlink()
    other = shutil.copytree(runs[0], tmp_path / "2026-10-21")
    run = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps(run | {"backends": {"entailer": "another"}}))
    for arguments, told in (
        ([unfinished], "the run is not finished"),
        ([other], "the entailer was none, then another"),
        ([runs[0], "--figure", "faithfulness.loook"], "figure was [], now ['faithfulness.loook']"),
        ([runs[0], "--restart", "x"], "--restart x: expected a day of a run"),
        ([runs[0], "--webhook", "file:///etc/passwd"], "--webhook: expected an address"),
    ):
        said = cli("monitor", *arguments, "--state", "s.json")
        assert (said.status, told in " ".join(said.err.split())) == (2, True), said.err
        assert Path("s.json").read_bytes() == before
    unknown = cli("monitor", runs[0], "--state", "t.json", "--figure", "faithfulness.loook")
    assert (unknown.status, Path("t.json").exists()) == (2, False)
    assert "faithfulness.look" in unknown.err
    for damaged in ("", "[]", '{"days": 3}'):
        Path("s.json").write_text(damaged)
        said = cli("monitor", runs[0], "--state", "s.json")
        assert (said.status, "is no state of monitor" in said.err) == (2, True)


def test_two_processes_do_not_write_one_state(cli: Cli, runs: list[Path]) -> None:
    with alone(Path(".s.json.lock")):
        said = cli("monitor", runs[0], "--state", "s.json")
    assert (said.status, "another process is using it" in said.err) == (2, True)
    assert cli("monitor", runs[0], "--state", "s.json").status == 0


@contextmanager
def hook(statuses: list[int], got: list[tuple[str, dict[str, object]]]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers.get("Authorization", ""), json.loads(body)))
            self.send_response(statuses.pop(0) if statuses else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook"
    finally:
        server.shutdown()
        server.server_close()


def test_an_alarm_is_posted_until_it_was_taken_and_then_not_again(
    cli: Cli, runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "WAITS_S", (0.0, 0.0))
    monkeypatch.setenv(monitoring.KEY, "secret-key")
    got: list[tuple[str, dict[str, object]]] = []
    call = ("monitor", *runs, "--state", "s.json", *BY_ANSWER, "--figure", "faithfulness.mean")
    call = (*call, "--by", "nothing", "--webhook")
    with hook([500, 500, 302, 200], got) as url:
        lost = cli(*call, url)
        assert (lost.status, len(got)) == (3, 2)
        assert "did not take an alarm (status 500); the next call tries again" in lost.err
        assert "secret" not in lost.err
        assert cli(*call, url).status == 3
        assert len(got) == 4
        assert cli(*call, url).status == 3
        assert len(got) == 4
    assert got[0][0] == "Bearer secret-key"
    assert str(got[0][1]["text"]).startswith("trustassay: faithfulness.mean (all): 0.8")
    assert "secret" not in Path("s.json").read_text()

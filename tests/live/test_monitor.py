"""``trustassay monitor`` as a user meets it: alarms, states, clocks, webhooks."""

from __future__ import annotations

import json
import re
import shutil
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Said
from tests.live.days import day_run, day_runs
from trustassay.core.files import open_locked, write_atomic
from trustassay.live import monitor as monitoring

CALM = [6, 8, 5, 7, 6, 9, 5, 7]
WORSE = [25, 28, 24]
BY_ANSWER = ("--unit", "answer", "--baseline", "5")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of days of which the last one is today."""
    days = [""]
    monkeypatch.setattr(monitoring, "current_day", lambda: date.fromisoformat(days[-1]))
    return days


@pytest.fixture
def cli(cli: Cli, clock: list[str]) -> Cli:
    """Return what runs a command on the last day of the runs that it or an earlier call has, or
    later, as a test sets the clock."""

    def run_on_last_day(*arguments: str | Path) -> Said:
        names = [one.name for one in arguments if isinstance(one, Path)]
        days = [day for name in names for day in re.findall(r"20\d\d-\d\d-\d\d", name)]
        clock.append(max([*days, clock[-1]]))
        return cli(*arguments)

    return run_on_last_day


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return day_runs(tmp_path_factory.mktemp("days"), CALM + WORSE)


def days_of(state: str) -> dict[str, Any]:
    """Return the days that a state has."""
    days: dict[str, Any] = json.loads(Path(state).read_text())["days"]
    return days


def one_line(said: Said) -> str:
    """Return what was printed for people, unfolded."""
    return " ".join(said.err.split())


def test_skipped_records_of_the_last_day_are_mentioned(cli: Cli, tmp_path: Path) -> None:
    runs = day_runs(tmp_path, [5, 5])
    for run in runs:
        summary = json.loads((run / "summary.json").read_text())
        (run / "summary.json").write_text(json.dumps(summary | {"skipped": 40}))
    output = one_line(cli("monitor", *runs, "--state", tmp_path / "s.json"))
    assert output.count("40 unreadable records of the input") == 1
    assert "2026-10-02: 40 unreadable" in output


def test_a_change_is_told_with_its_day_its_group_and_answers(cli: Cli, runs: list[Path]) -> None:
    calm = cli("monitor", *runs[: len(CALM)], "--state", "s.json", *BY_ANSWER)
    assert calm.status == 0
    assert "8 days, 0 alarms" in calm.err
    said = cli(
        "monitor", *runs, "--state", "s.json", *BY_ANSWER, "--json", "--prometheus", "p.prom"
    )
    assert said.status == 3
    assert "ALARM faithfulness.failed (all): 10.7 % → " in said.err
    assert "contradicted: " in said.err
    assert "What of 2026-10-11-0? (2026-10-11-0): contradicted!" in said.err
    told = {(one["figure"], one["group"]): one for one in json.loads(said.out)["streams"]}
    whole = told["faithfulness.failed", "all"]
    assert whole["since"][0] == "2026-10-09"
    assert whole["evidence"] > whole["needed"] == 600
    assert set(told) == {
        (f, g)
        for f in ("faithfulness.failed", "faithfulness.not_answered")
        for g in ("all", "model=a", "model=b")
    }
    line = 'trustassay_evidence{figure="faithfulness.failed",group="all",kind="change"} '
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
    days = ("--baseline", "5", "--figure", "faithfulness.failed")
    by_day = cli("monitor", *runs, "--state", "d.json", *days, "--json")
    by_answer = cli("monitor", *runs, "--state", "a.json", *days, "--unit", "answer", "--json")
    first, second = (json.loads(one.out)["streams"][0]["evidence"] for one in (by_day, by_answer))
    assert 0 < first < second


def test_a_line_holds_from_the_first_day(cli: Cli, runs: list[Path]) -> None:
    line = ("--max", "faithfulness.failed=20%")
    assert cli("monitor", *runs[:4], "--state", "s.json", *line).status == 0
    said = cli("monitor", *runs, "--state", "s.json", *line)
    assert said.status == 3
    assert "ALARM faithfulness.failed (all): 20.0 % → " in said.err
    for wrong in ("faithfulness.mean=20%", "faithfulness.failed=200%"):
        assert cli("monitor", *runs, "--state", "t.json", "--max", wrong).status == 2


def test_a_clock_that_goes_back_rewrites_nothing(
    cli: Cli, runs: list[Path], tmp_path: Path
) -> None:
    cli("monitor", *runs[:4], "--state", "s.json")
    before = days_of("s.json")
    other = day_run(tmp_path / "again" / runs[2].name, 60, 60)
    for late in (other, day_run(tmp_path / "2026-09-30", 60, 60)):
        said = cli("monitor", late, "--state", "s.json")
        assert said.status == 3
        assert "ALARM left out: " in said.err
        assert "is before 2026-10-04, which was counted" in " ".join(said.err.split())
    assert days_of("s.json") == before


def test_a_judge_that_drifts_is_seen_by_its_probes(cli: Cli, tmp_path: Path) -> None:
    probes = day_runs(tmp_path / "probes", [10, 10, 11, 10], ids="probe")
    fixed = ("--fixed", "--state", "judge.json")
    assert cli("monitor", *probes, *fixed).status == 0
    later = day_run(tmp_path / "2026-11-01", 40, 60, ids="probe")
    said = cli("monitor", later, *fixed)
    assert said.status == 3
    assert "faithfulness.failed (all): 16.7 % → 66.7 % since 2026-11-01" in said.err
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
        ([other], "entailer changed: none → another"),
        ([runs[0], "--figure", "faithfulness.loook"], "figure was [], now ['faithfulness.loook']"),
        ([runs[0], "--restart", "x"], "--restart x: expected the day of a counted run"),
        ([runs[0], "--webhook", "file:///etc/passwd"], "--webhook: expected an address"),
    ):
        said = cli("monitor", *arguments, "--state", "s.json")
        assert (said.status, told in " ".join(said.err.split())) == (2, True), said.err
        assert Path("s.json").read_bytes() == before
    unknown = cli("monitor", runs[0], "--state", "t.json", "--figure", "faithfulness.loook")
    assert (unknown.status, Path("t.json").exists()) == (2, False)
    assert "faithfulness.failed" in unknown.err
    for damaged in ("", "[]", '{"days": 3}'):
        Path("s.json").write_text(damaged)
        said = cli("monitor", runs[0], "--state", "s.json")
        assert (said.status, "not a state file of monitor" in " ".join(said.err.split())) == (
            2,
            True,
        )


def test_two_processes_do_not_write_one_state(cli: Cli, runs: list[Path]) -> None:
    with open_locked(Path(".s.json.lock")):
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
    monkeypatch.setenv(monitoring.WEBHOOK_KEY_VARIABLE, "secret-key")
    got: list[tuple[str, dict[str, object]]] = []
    call = ("monitor", *runs, "--state", "s.json", *BY_ANSWER, "--figure", "faithfulness.mean")
    call = (*call, "--by", "nothing", "--webhook")
    with hook([500, 500, 302, 200], got) as url:
        lost = cli(*call, url)
        assert (lost.status, len(got)) == (3, 2)
        assert "1 alarm not delivered (status 500); the next call tries again" in lost.err
        assert "secret" not in lost.err
        assert cli(*call, url).status == 3
        assert len(got) == 4
        assert cli(*call, url).status == 3
        assert len(got) == 4
    assert got[0][0] == "Bearer secret-key"
    assert str(got[0][1]["text"]).startswith("trustassay: faithfulness.mean (all): 0.8")
    assert "secret" not in Path("s.json").read_text()


@contextmanager
def raw_server(reply: Callable[[socket.socket], None]) -> Iterator[int]:
    """Serve one connection after the other as ``reply`` does; the request was read before."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        connection.recv(65536)
                        reply(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def drip(connection: socket.socket) -> None:
    """Send a header that never ends, slowly enough that no wait for a byte is long."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        connection.sendall(b"y")
        time.sleep(0.02)


def flood(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000)


REPLIES: dict[str, bytes | Callable[[socket.socket], None]] = {
    "no HTTP": b"220 mail.example.org ESMTP\r\n\r\n",
    "half a status line": b"HTTP/1.1",
    "nothing": b"",
    "endless headers": flood,
    "a header that never ends": drip,
    "a long line": b"HTTP/1.1 200 " + b"x" * 200_000,
    "invalid chunks": b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc",
    "a wrong length": b"HTTP/1.1 500 X\r\nContent-Length: -7\r\n\r\n",
    "two lengths": b"HTTP/1.1 500 X\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
    "a reset": reset,
    "a redirect to itself": b"HTTP/1.1 307 X\r\nLocation: /SECRET\r\nContent-Length: 0\r\n\r\n",
    "a redirect to a file": b"HTTP/1.1 302 X\r\nLocation: file:///etc/passwd\r\n\r\n",
    "no text": b"HTTP/1.1 500 \xff\xfe\r\nX: \xc3\x28\r\n\r\n",
    "status 99": b"HTTP/1.1 99 X\r\n\r\n",
    "status 999": b"HTTP/1.1 999 X\r\n\r\n",
    "no status": b"HTTP/1.1 abc X\r\n\r\n",
    "another protocol": b"HTTP/9.9 200 OK\r\n\r\n",
    "only interim replies": b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
}


@pytest.fixture
def overdue(
    runs: list[Path], clock: list[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[str | Path, ...]:
    """Return a call with one alarm, which tries to deliver it once."""
    monkeypatch.setattr(monitoring, "WAITS_S", (0.0,))
    monkeypatch.setattr(monitoring, "TIMEOUT_S", 0.3)
    clock.append("2026-10-08")
    return ("monitor", *runs[:3], "--state", "s.json", "--json", "--prometheus", "p.prom")


def check_told(said: Said, reason: str = "") -> None:
    """Check that an alarm is in all outputs although it was not delivered."""
    assert said.status == 3, said.err
    assert said.err.count("ALARM stale") == 1
    assert json.loads(said.out)["volume_alarms"][0]["kind"] == "stale"
    assert 'volume_alarms{kind="stale"} 1' in Path("p.prom").read_text()
    last = said.err.splitlines()[-1]
    assert "--webhook" not in "".join(said.err.splitlines()[:-1])
    assert last.startswith("--webhook http")
    assert "1 alarm not delivered (" in last
    assert reason in last
    assert "SECRET" not in said.err
    (alarm,) = json.loads(Path("s.json").read_text())["alarms"].values()
    assert not alarm["sent"]


@pytest.mark.parametrize("name", REPLIES)
def test_an_alarm_is_not_hidden_by_what_the_webhook_replies(
    cli: Cli, overdue: tuple[str | Path, ...], name: str
) -> None:
    reply = REPLIES[name]
    with raw_server(reply if callable(reply) else lambda one: one.sendall(reply)) as port:
        output = cli(*overdue, "--webhook", f"http://127.0.0.1:{port}/SECRET?token=SECRET")
    check_told(output)
    got: list[tuple[str, dict[str, object]]] = []
    with hook([], got) as url:
        assert cli(*overdue, "--webhook", url).status == 3
    assert len(got) == 1


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ("https://127.0.0.1:{}/SECRET", "no connection"),
        ("http://127.0.0.1:1/SECRET", "no connection"),
        ("http://SECRET.invalid/".lower(), ""),
    ],
)
def test_an_alarm_is_not_hidden_by_a_webhook_that_is_not_reached(
    cli: Cli, overdue: tuple[str | Path, ...], form: str, reason: str
) -> None:
    with raw_server(lambda one: one.sendall(b"no TLS")) as port:
        check_told(cli(*overdue, "--webhook", form.format(port)), reason)


def test_a_reply_whose_body_never_ends_is_a_reply(
    cli: Cli, overdue: tuple[str | Path, ...]
) -> None:
    def talk(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"a")

    with raw_server(talk) as port:
        output = cli(*overdue, "--webhook", f"http://127.0.0.1:{port}/")
    assert (output.status, "--webhook" in output.err) == (3, False)


def test_alarms_that_are_not_delivered_are_one_line_and_few_tries(
    cli: Cli, runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "WAITS_S", (0.0, 0.0))
    got: list[tuple[str, dict[str, object]]] = []
    call = ("monitor", *runs, "--state", "s.json", *BY_ANSWER, "--webhook")
    with hook([500] * 50, got) as url:
        output = cli(*call, url)
    count = len(json.loads(Path("s.json").read_text())["alarms"])
    assert count > 1
    assert output.err.count("--webhook") == 1
    assert f"{count} alarms not delivered (status 500)" in output.err
    assert len(got) == count + 1, "the first is tried again"


def test_a_state_that_cannot_be_written_after_the_delivery_is_one_line(
    cli: Cli, overdue: tuple[str | Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(28, "No space left on device")

    def fail(path: Path, content: bytes) -> None:
        if b'"sent": true' in content:
            raise full
        write_atomic(path, content)

    monkeypatch.setattr(monitoring, "write_atomic", fail)
    with hook([], []) as url:
        output = cli(*overdue, "--webhook", url)
    assert (output.status, output.err.count("ALARM")) == (3, 1)
    assert (
        "the state does not record which alarms were delivered ([Errno 28] No space left on device)"
        in output.err
    )


def test_an_alarm_is_posted_although_standard_output_is_closed(
    cli: Cli, overdue: tuple[str | Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(content: object) -> None:
        raise SystemExit(1)

    monkeypatch.setattr("trustassay.cli.monitor.print_json", fail)
    got: list[tuple[str, dict[str, object]]] = []
    with hook([], got) as url:
        output = cli(*overdue, "--webhook", url)
    assert (output.status, output.err.count("ALARM"), len(got)) == (1, 1, 1)


def test_an_alarm_is_not_hidden_by_a_file_for_prometheus(
    cli: Cli, overdue: tuple[str | Path, ...], clock: list[str]
) -> None:
    Path("p.prom").mkdir()
    got: list[tuple[str, dict[str, object]]] = []
    with hook([], got) as url:
        output = cli(*overdue, "--webhook", url)
    assert (output.status, len(got)) == (3, 1)
    assert "ALARM stale" in output.err
    assert "--prometheus p.prom: Is a directory" in output.err
    assert json.loads(output.out)["volume_alarms"]
    clock.append("2026-10-04")
    calm = cli(*(one if one != "s.json" else "calm.json" for one in overdue))
    assert (calm.status, "3 days, 0 alarms" in calm.err) == (1, True)
    assert "--prometheus p.prom: Is a directory" in calm.err


def test_alarms_are_not_hidden_by_a_run_that_was_damaged_later(
    cli: Cli, runs: list[Path], tmp_path: Path
) -> None:
    copies = [shutil.copytree(run, tmp_path / run.name) for run in runs]
    call = ("--state", "s.json", *BY_ANSWER)
    whole = cli("monitor", *copies, *call)
    (copies[-1] / "run.json").write_text("{")
    output = cli("monitor", copies[0], *call)
    assert (output.status, output.err.count("ALARM")) == (3, whole.err.count("ALARM"))
    assert "no examples, since a run cannot be read" in output.err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("hooks.example.org/SECRET", "begins with http:// or https://, got a text without ://"),
        ("ftp://hooks.example.org/SECRET", "http:// or https://, got ftp://hooks.example.org..."),
        ("https:/SECRET", "got a text without ://"),
        ("https:///SECRET", "with a host name, got https://..."),
        ("https://a..b/SECRET", "got https://a..b..."),
        ("https://host:99999/SECRET", "got https://host..."),
        ("https://host:0/SECRET", "a port from 1 to 65535, got https://host..."),
        ("https://host/SECRET#x", "without #, got https://host..."),
        ("https://host/a SECRET", "without spaces and control characters, got https://host..."),
        ("https://host/\nSECRET", "without spaces and control characters, got https://host..."),
        ("https://me:SECRET@host/", "the address contains a password"),
        ("https://SECRET@host", "the address contains a password"),
        ("https://[SECRET", "got https://..."),
    ],
)
def test_a_webhook_that_cannot_be_one_is_refused_before_a_run_is_counted(
    cli: Cli, runs: list[Path], url: str, message: str
) -> None:
    output = cli("monitor", runs[0], "--state", "s.json", "--webhook", url)
    assert (output.status, "--webhook: " in output.err) == (2, True)
    assert message in one_line(output)
    assert "SECRET" not in output.err
    assert not Path("s.json").exists()


def test_a_key_of_a_webhook_that_is_none_is_refused_before_a_run_is_counted(
    cli: Cli, runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(monitoring.WEBHOOK_KEY_VARIABLE, "a\nSECRET: b")
    output = cli("monitor", runs[0], "--state", "s.json", "--webhook", "http://127.0.0.1:1/")
    assert (output.status, Path("s.json").exists()) == (2, False)
    assert "TRUSTASSAY_WEBHOOK_KEY is not a valid API key" in output.err
    assert "SECRET" not in output.err


# ---- how many answers there are, and when ----


def test_each_day_has_its_number_of_answers_and_the_last_run_its_age(
    cli: Cli, runs: list[Path], clock: list[str]
) -> None:
    clock.append("2026-10-13")
    said = cli("monitor", *runs[: len(CALM)], "--state", "s.json", "--json", "--prometheus", "p")
    assert said.status == 3, "five days without a run, of one a day"
    assert "answers per day: 10-02: 60, 10-03: 60" in one_line(said)
    assert "10-08: 60; usually 60" in one_line(said)
    assert "last run: 2026-10-08, 5 days ago; usually 1 day between runs" in one_line(said)
    content = json.loads(said.out)
    assert [one["answers"] for one in content["volume"]] == [60] * len(CALM)
    assert content["staleness"] == {
        "last": "2026-10-08",
        "age_days": 5,
        "usual_gap_days": 1.0,
        "is_stale": True,
    }
    lines = Path("p").read_text().splitlines()
    assert "trustassay_answers 60" in lines
    assert 'trustassay_volume_alarms{kind="stale"} 1' in lines
    assert 'trustassay_volume_alarms{kind="vanished"} 0' in lines
    (at,) = (line for line in lines if line.startswith("trustassay_last_run_timestamp_seconds "))
    assert (
        datetime.fromtimestamp(int(at.split()[1]), UTC).isoformat() == "2026-10-08T00:00:00+00:00"
    )


def test_a_last_run_is_stale_after_three_usual_gaps(
    cli: Cli, runs: list[Path], clock: list[str]
) -> None:
    call = ("monitor", *runs[:3], "--state", "s.json")
    clock.append("2026-10-06")
    assert cli(*call).status == 0, "three days, as over a weekend"
    clock.append("2026-10-07")
    said = cli(*call)
    assert said.status == 3
    assert "ALARM stale: last run: 2026-10-03, 4 days ago" in said.err
    weekly = [runs[0], runs[7]]
    clock.append("2026-10-29")
    assert cli("monitor", *weekly, "--state", "w.json").status == 0
    clock.append("2026-10-30")
    assert cli("monitor", *weekly, "--state", "w.json").status == 3


def test_a_run_of_the_future_is_an_alarm(cli: Cli, tmp_path: Path, clock: list[str]) -> None:
    cli("monitor", day_run(tmp_path / "2026-10-05", 6, 60), "--state", "s.json")
    later = day_run(tmp_path / "2099-01-01", 6, 60)
    (tmp_path / "link").symlink_to(later)
    said = cli("monitor", tmp_path / "link", "--state", "s.json")
    assert said.status == 3
    assert "ALARM future: last run: 2099-01-01" in said.err


def test_the_clock_is_that_of_utc() -> None:
    before = datetime.now(UTC).date()
    assert before <= monitoring.current_day() <= datetime.now(UTC).date()


def test_a_folder_without_a_date_is_an_alarm_and_is_not_placed_by_its_file(
    cli: Cli, runs: list[Path], tmp_path: Path
) -> None:
    cli("monitor", *runs[:3], "--state", "s.json")
    before = days_of("s.json")
    undated = day_run(tmp_path / "latest", 60, 60)
    said = cli("monitor", *runs[:3], undated, "--state", "s.json", "--json")
    assert said.status == 3
    assert "latest: has no date, so it is left out; rename it, as in 2026-11-28" in one_line(said)
    assert "3 days, 1 alarm" in said.err
    assert [one["kind"] for one in json.loads(said.out)["volume_alarms"]] == ["undated"]
    assert days_of("s.json") == before
    alone = cli("monitor", undated, "--state", "t.json")
    assert alone.status == 3
    assert "last run: unknown, since no run has a date" in alone.err


def test_a_run_whose_name_has_no_date_is_of_the_day_on_which_it_began(
    cli: Cli, tmp_path: Path, clock: list[str]
) -> None:
    clock.append("2026-10-06")
    run = day_run(tmp_path / "2026-02-31-nightly", 6, 60)
    content = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(content | {"started": "2026-10-05T23:59:00Z"}))
    assert cli("monitor", str(run), "--state", "s.json").status == 0
    assert list(days_of("s.json")) == ["2026-10-05"]


def test_all_runs_of_a_day_count_and_are_an_alarm(
    cli: Cli, runs: list[Path], tmp_path: Path
) -> None:
    second = day_run(tmp_path / "2026-10-04-evening", 60, 60)
    first = cli("monitor", *runs[:4], "--state", "s.json", "--json")
    assert first.status == 0
    said = cli("monitor", second, "--state", "s.json", "--json", "--figure", "faithfulness.failed")
    assert said.status == 2, "the options of the state"
    said = cli("monitor", second, "--state", "s.json", "--json")
    assert said.status == 3
    assert "ALARM several runs: 2026-10-04 has 2 runs; all 120 answers count" in one_line(said)
    content = json.loads(said.out)
    assert [one["answers"] for one in content["volume"]] == [60, 60, 60, 120]
    for one in (runs[3], second):  # given again they change nothing
        again = cli("monitor", one, "--state", "s.json", "--json")
        assert json.loads(again.out) == content
    at_once = cli("monitor", *runs[:4], second, "--state", "t.json", "--json")
    assert json.loads(at_once.out) == content
    sums = days_of("t.json")["2026-10-04"]["sums"]["faithfulness.failed"]["all"]
    assert sums == [7 + 60, 120]


def test_a_question_that_two_runs_of_a_day_asked_is_one_unit(cli: Cli, tmp_path: Path) -> None:
    pair = [
        day_run(tmp_path / f"2026-10-04-{name}", bad, 60, ids="q")
        for name, bad in (("a", 0), ("b", 60))
    ]
    cli("monitor", *pair, "--state", "s.json")
    (day,) = days_of("s.json").values()
    assert day["sums"]["faithfulness.failed"]["all"] == [30.0, 60]
    assert sum(day["said"]["faithfulness"]["all"].values()) == 120


def test_a_copy_of_a_run_counts_once_and_is_an_alarm(
    cli: Cli, runs: list[Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(runs[1], tmp_path / "2026-10-02-copy")
    said = cli("monitor", *runs[:2], copy, "--state", "s.json", "--json")
    assert said.status == 3
    assert "2026-10-02-copy: is a copy of " in one_line(said)
    assert [one["answers"] for one in json.loads(said.out)["volume"]] == [60, 60]


def test_a_run_that_went_on_takes_the_place_of_what_was_counted(cli: Cli, tmp_path: Path) -> None:
    run = day_run(tmp_path / "2026-10-02", 6, 40)
    cli("monitor", run, "--state", "s.json")
    shutil.rmtree(run)
    day_run(run, 9, 60)
    said = cli("monitor", run, "--state", "s.json", "--json")
    assert said.status == 0
    (day,) = json.loads(said.out)["volume"]
    assert (day["answers"], day["runs"]) == (60, 1)


def test_a_run_that_overwrote_another_of_its_day_does_not_replace_it_silently(
    cli: Cli, tmp_path: Path
) -> None:
    run = tmp_path / "2026-10-02"
    for hour, bad, n in ((1, 6, 60), (5, 0, 9)):
        shutil.rmtree(run, ignore_errors=True)
        day_run(run, bad, n)
        content = json.loads((run / "run.json").read_text())
        content["started"] = f"2026-10-02T0{hour}:00:00Z"
        (run / "run.json").write_text(json.dumps(content))
        said = cli("monitor", run, "--state", "s.json", "--json")
    assert said.status == 3
    assert "2026-10-02, which is gone" in one_line(said)
    assert [one["answers"] for one in json.loads(said.out)["volume"]] == [60]


def test_a_second_run_without_the_first_is_left_out_with_a_word(cli: Cli, tmp_path: Path) -> None:
    first = day_run(tmp_path / "2026-10-02", 6, 60)
    cli("monitor", first, "--state", "s.json")
    shutil.rmtree(first)
    said = cli("monitor", day_run(tmp_path / "2026-10-02-b", 7, 60), "--state", "s.json")
    assert said.status == 3
    assert "it counts only together with the run " in one_line(said)


def test_a_day_with_too_few_answers_is_an_alarm_until_it_is_acknowledged(
    cli: Cli, runs: list[Path], tmp_path: Path
) -> None:
    few = day_run(tmp_path / "2026-10-09", 0, 1)
    said = cli("monitor", *runs[:8], few, "--state", "s.json", "--json")
    assert said.status == 3
    assert "ALARM few answers: 2026-10-09 has 1 answer; 60 are usual" in said.err
    assert "10-08: 60, 10-09: 1; usually 60" in one_line(said)
    content = json.loads(said.out)
    (whole,) = (
        one
        for one in content["streams"]
        if (one["figure"], one["group"]) == ("faithfulness.failed", "all")
    )
    assert (whole["now"], whole["units_now"]) == (0.0, 1)
    next_day = day_run(tmp_path / "2026-10-10", 6, 60)
    assert cli("monitor", next_day, "--state", "s.json").status == 3
    again = ("monitor", next_day, "--state", "s.json", "--acknowledge")
    assert cli(*again, "2026-10-08").status == 3
    assert cli(*again, "2027-01-01").status == 2
    assert cli(*again, "2026-10-09").status == 0
    assert cli("monitor", next_day, "--state", "s.json").status == 0


def test_a_group_that_vanished_is_an_alarm(cli: Cli, runs: list[Path], tmp_path: Path) -> None:
    gone = day_run(tmp_path / "2026-10-09", 6, 60)
    samples = (gone / "samples.jsonl").read_text().replace('"model": "b"', '"model": "a"')
    (gone / "samples.jsonl").write_text(samples)
    said = cli("monitor", *runs[:8], gone, "--state", "s.json", "--json", "--baseline", "5")
    assert said.status == 3
    text = "ALARM vanished: model=b had 240 answers until 2026-10-08, and none since"
    assert text in one_line(said)
    assert "1 alarm;" in said.err
    streams = json.loads(said.out)["streams"]
    (of_group,) = (
        one
        for one in streams
        if (one["figure"], one["group"]) == ("faithfulness.not_answered", "model=b")
    )
    now = of_group["before"], of_group["now"], of_group["units_now"]
    assert now == (0.0, None, 0), "no answers are no share of 0"


def test_alarms_about_volume_are_posted_once(
    cli: Cli, runs: list[Path], tmp_path: Path, clock: list[str]
) -> None:
    got: list[tuple[str, dict[str, object]]] = []
    with hook([], got) as url:
        call = ("monitor", *runs[:3], "--state", "s.json", "--webhook", url)
        for today in ("2026-10-08", "2026-10-09"):
            clock.append(today)
            assert cli(*call).status == 3
    assert [body["text"] for _, body in got] == [
        "trustassay: stale: last run: 2026-10-03, 5 days ago; usually 1 day between runs"
    ]


def test_a_state_of_an_earlier_version_goes_on(cli: Cli, runs: list[Path]) -> None:
    cli("monitor", *runs[:4], "--state", "s.json")
    state = json.loads(Path("s.json").read_text())
    for day in state["days"].values():
        (run,) = day.pop("runs")
        day.update(run)
    del state["acknowledged"]
    Path("s.json").write_text(json.dumps(state))
    said = cli("monitor", *runs[:5], "--state", "s.json")
    assert (said.status, "5 days, 0 alarms" in said.err) == (0, True)

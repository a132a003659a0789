"""``trustassay monitor --audit`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.people.calibrators import calibrator
from tests.people.test_promise_audit import BAD, GOOD, table


def test_the_promise_is_watched_and_withdrawn(cli: Cli, tmp_path: Path) -> None:
    made = calibrator(tmp_path / "c.json")
    calm = cli("monitor", table(tmp_path / "a.csv", *GOOD), "--audit", made, "--state", "s.json")
    assert calm.status == 0
    assert "the promise holds: 10 of 100 labelled accepted answers on 10 days are wrong" in calm.err
    bad = cli(
        "monitor", table(tmp_path / "b.csv", *BAD), "--audit", made, "--state", "s.json", "--json"
    )
    assert bad.status == 3
    text = " ".join(bad.err.split())
    assert "ALARM promise withdrawn since 2026-10-11: 15 of 30" in text
    assert "wrong: 2026-10-11-5 (2026-10-11): jev 0.895" in text
    assert json.loads(bad.out)["status"]["status"] == "withdrawn"
    assert json.loads((tmp_path / "s.json").read_text())["status"]["day"] == "2026-10-11"


@pytest.mark.parametrize(
    ("place", "status"),
    [("cli.monitor.print_json", 1), ("people.calibrate.promise_audit.write_calibrator", 3)],
)
def test_an_alarm_is_not_hidden_by_what_cannot_be_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, status: int
) -> None:
    made = calibrator(tmp_path / "c.json")
    cli("monitor", table(tmp_path / "a.csv", *GOOD), "--audit", made)

    def fail(*_: object) -> None:
        raise SystemExit(1) if "json" in place else OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(f"trustassay.{place}", fail)
        bad = cli("monitor", table(tmp_path / "b.csv", *BAD), "--audit", made, "--json")
    assert bad.status == status
    assert "ALARM promise withdrawn since 2026-10-11" in bad.err
    if status == 3:
        assert "c.json: cannot be written (Read-only file system), so it still accepts" in bad.err
        assert json.loads(bad.out)["status"]["status"] == "withdrawn"
    assert cli("monitor", table(tmp_path / "b.csv", *BAD), "--audit", made).status == 3
    assert json.loads(made.read_text())["audit"]["status"] == "withdrawn"


def test_options_of_the_other_watch_are_refused(cli: Cli, tmp_path: Path) -> None:
    made = calibrator(tmp_path / "c.json")
    source = table(tmp_path / "a.csv", *GOOD)
    for options, message in (
        (("--audit", made, "--baseline", "5"), "--baseline: has no effect with --audit"),
        (("--audit", made, "--webhook", "http://x"), "--webhook: has no effect with --audit"),
        (("--audit", made, "--acknowledge", "x"), "--acknowledge: has no effect with --audit"),
        (("--state", "s.json", "--label", "human"), "--label: needs --audit"),
        ((), "--state: is required"),
        (("--audit", made, "--label", "humn"), "did you mean human"),
    ):
        result = cli("monitor", source, *options)
        assert result.status == 2
        assert message in " ".join(result.err.split())
    assert not (tmp_path / "c.audit.json").exists()

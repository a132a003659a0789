"""Days of rated answers in; a promise that holds, is suspended or withdrawn out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.live.days import METRIC, day_run
from tests.people.calibrators import calibrator, promise
from trustassay.core.files import open_locked
from trustassay.errors import UsageError
from trustassay.input.records import InputError
from trustassay.people.calibrate import promise_audit as module
from trustassay.people.calibrate.answers import SourceOptions
from trustassay.people.calibrate.apply import apply_to_table
from trustassay.people.calibrate.promise_audit import PromiseAudit, audit_promise
from trustassay.runs.calibrator import ScoreOrigin, read_calibrator
from trustassay.runs.folder import to_stored

Rows = list[dict[str, Any]]


def rows_of(day: int, right: int, wrong: int, *, unrated: int = 0, **others: Any) -> Rows:
    """Return rows of a day in October: rated ones that the threshold accepts, and unrated ones."""
    labels = ["yes"] * right + ["no"] * wrong
    date = f"2026-10-{day:02}"
    rows: Rows = [
        {"id": f"{date}-{i}", "day": date, "jev": 0.9 - i / 1000, "human": label, **others}
        for i, label in enumerate(labels)
    ]
    spread = [round((i + 0.5) / unrated, 4) for i in range(unrated)]
    return rows + [
        {"id": f"{date}-u{i}", "day": date, "jev": score, "human": "", **others}
        for i, score in enumerate(spread)
    ]


def table(path: Path, *days: Rows) -> str:
    rows = [row for day in days for row in day]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def audit(path: Path, *sources: str, restart: str = "", **options: Any) -> PromiseAudit:
    return audit_promise(path, sources, SourceOptions(**options), restart=restart)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return calibrator(tmp_path / "c.json")


GOOD = [rows_of(day, 9, 1) for day in range(1, 11)]
BAD = [rows_of(day, 5, 5) for day in range(11, 16)]


def test_a_promise_that_is_kept_holds(made: Path, tmp_path: Path) -> None:
    result = audit(made, table(tmp_path / "a.csv", *GOOD))
    assert (result.days, result.rated, result.wrong, result.is_alarm) == (10, 100, 10, False)
    assert result.evidence < 1
    status = read_calibrator(made).audit
    assert status is not None
    assert (status.status, status.day) == ("holds", "2026-10-01")


def test_more_wrong_answers_withdraw_it_from_the_day_of_the_change(
    made: Path, tmp_path: Path
) -> None:
    source = table(tmp_path / "a.csv", *GOOD, *BAD)
    result = audit(made, source)
    assert result.is_alarm
    status = read_calibrator(made).audit
    assert status is not None
    assert (status.status, status.day) == ("withdrawn", "2026-10-11")
    assert status.reason == (
        "15 of 30 accepted answers rated since then are wrong, but the "
        "promise allows at most 10 %; "
        "alarm on 2026-10-13"
    )
    # The wrong answers with the best scores, at most five.
    assert len(result.answers) == 5
    assert result.answers[0] == "2026-10-11-5 (2026-10-11): jev 0.895"
    applied = apply_to_table(made, source)
    assert not applied.accepted.any()
    assert "the promise has been withdrawn since 2026-10-11" in applied.warnings[0]
    with pytest.raises(UsageError, match="calibrate again"):
        audit(made, source, restart="2026-10-20")


def test_days_together_or_one_by_one_are_the_same(made: Path, tmp_path: Path) -> None:
    together = audit(calibrator(tmp_path / "other.json"), table(tmp_path / "a.csv", *GOOD))
    for number, day in enumerate(GOOD):
        result = audit(made, table(tmp_path / f"{number}.csv", day))
    assert result.evidence == together.evidence
    # What was counted is not counted again, whatever file it comes from.
    again = audit(made, table(tmp_path / "a.csv", *GOOD))
    assert (again.rated, again.evidence) == (100, together.evidence)


def test_labels_that_come_later_count_on_their_day_and_the_first_one_stands(
    made: Path, tmp_path: Path
) -> None:
    early = rows_of(1, 2, 0)
    audit(made, table(tmp_path / "a.csv", early, GOOD[1]))
    late = [early[0] | {"human": "no"}, *rows_of(1, 2, 3)[1:]]
    result = audit(made, table(tmp_path / "a.csv", late))
    assert (result.days, result.rated, result.wrong) == (2, 15, 4)
    assert (
        f"{tmp_path / 'a.csv'}: 1 rating changed since an earlier call; the first one counts"
        in result.notes
    )


def test_only_rated_answers_count_that_the_threshold_accepts(made: Path, tmp_path: Path) -> None:
    rows = rows_of(1, 3, 1, unrated=40)
    rows += [{"id": f"low{i}", "day": "2026-10-01", "jev": 0.5, "human": "no"} for i in range(9)]
    rows += [{"id": "unsure", "day": "2026-10-01", "jev": 0.8, "human": "cannot tell"}]
    result = audit(made, table(tmp_path / "a.csv", rows))
    assert (result.rated, result.wrong) == (5, 2)


def test_lower_scores_may_be_better(tmp_path: Path) -> None:
    made = calibrator(tmp_path / "c.json", [promise(-0.5)], sign=-1)
    rows = rows_of(1, 3, 1)
    low = [{**row, "id": f"l{row['id']}", "jev": 1 - row["jev"]} for row in rows]
    assert audit(made, table(tmp_path / "a.csv", rows, low)).rated == 4


def test_one_answer_of_a_question_counts_a_day_where_they_depend(tmp_path: Path) -> None:
    made = calibrator(tmp_path / "c.json", group="case")
    rows = [row | {"case": i // 2} for i, row in enumerate(rows_of(1, 8, 0))]
    assert audit(made, table(tmp_path / "a.csv", rows)).rated == 4


def test_each_promise_has_its_own_evidence_and_the_mean_decides(tmp_path: Path) -> None:
    of = [promise(of="de"), promise(of="en"), promise(of="fr", without="too few")]
    made = calibrator(tmp_path / "c.json", of, by="language")
    good = [rows_of(day, 9, 1, language="en") for day in range(1, 6)]
    bad = [
        [row | {"id": f"b{row['id']}"} for row in rows_of(day, 4, 6, language="de")]
        for day in range(3, 6)
    ]
    none = [[row | {"id": f"f{row['id']}"} for row in rows_of(1, 0, 5, language="fr")]]
    assert not audit(made, table(tmp_path / "a.csv", *good, *none)).is_alarm
    result = audit(made, table(tmp_path / "a.csv", *bad))
    assert result.is_alarm
    assert result.status is not None
    assert result.status.day == "2026-10-03"


def test_another_judge_suspends_it_until_a_restart(tmp_path: Path) -> None:
    made = calibrator(tmp_path / "c.json", judges={"version": ["1"]})
    same = table(tmp_path / "a.csv", rows_of(1, 9, 1, version=1))
    other = table(tmp_path / "b.csv", rows_of(2, 9, 1, version=2))
    assert not audit(made, same).is_alarm
    result = audit(made, other)
    assert result.status is not None
    assert (result.status.status, result.status.day) == ("suspended", "2026-10-02")
    assert "version is '2'" in result.status.reason
    # It is another judge's, so it says nothing about the promise.
    assert result.rated == 10
    assert audit(made, same).is_alarm
    with pytest.raises(UsageError, match="a day after 2026-10-02"):
        audit(made, same, restart="2026-10-02")
    with pytest.raises(UsageError, match="--restart today: expected a day"):
        audit(made, same, restart="today")
    later = table(tmp_path / "c.csv", rows_of(3, 9, 1, version=1))
    assert not audit(made, later, restart="2026-10-03").is_alarm
    assert read_calibrator(made).is_valid
    # The same command again restarts nothing, and days before the restart are ignored.
    assert not audit(made, other, later, restart="2026-10-03").is_alarm
    with pytest.raises(InputError, match="no column version"):
        audit(made, table(tmp_path / "d.csv", rows_of(4, 9, 1)))


def test_scores_unlike_those_of_the_calibration_suspend_it(made: Path, tmp_path: Path) -> None:
    assert not audit(made, table(tmp_path / "a.csv", rows_of(1, 2, 0, unrated=200))).is_alarm
    moved = [row | {"jev": row["jev"] ** 3} for row in rows_of(2, 0, 0, unrated=200)]
    result = audit(made, table(tmp_path / "b.csv", moved))
    assert result.status is not None
    assert (result.status.status, result.status.day) == ("suspended", "2026-10-02")
    assert "distributed differently from those of the calibration" in result.status.reason
    assert not audit(
        made, table(tmp_path / "c.csv", rows_of(3, 2, 0, unrated=200)), restart="2026-10-03"
    ).is_alarm


def test_small_shifts_add_up_over_a_week(made: Path, tmp_path: Path) -> None:
    statuses = []
    for day in range(1, 8):
        moved = [row | {"jev": row["jev"] ** 1.7} for row in rows_of(day, 0, 0, unrated=60)]
        statuses.append(audit(made, table(tmp_path / "a.csv", moved)).is_alarm)
    assert not statuses[0]
    assert statuses[-1]


def test_a_sheet_of_rated_answers_alone_is_not_compared(made: Path, tmp_path: Path) -> None:
    # All of these scores are high: the answers were chosen for rating.
    result = audit(made, table(tmp_path / "a.csv", rows_of(1, 180, 10)))
    assert not result.is_alarm
    assert any("all answers of 1 day are rated, so their scores are not" in n for n in result.notes)


def test_a_kill_between_the_two_files_is_made_good_by_the_next_call(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = table(tmp_path / "a.csv", *GOOD, *BAD)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_calibrator", killed)
        with pytest.raises(KeyboardInterrupt):
            audit(made, source)
    assert read_calibrator(made).is_valid
    result = audit(made, table(tmp_path / "b.csv", GOOD[0]))
    assert result.is_alarm
    assert result.status == read_calibrator(made).audit
    assert result.rated == 150


def test_a_kill_within_a_restart_is_made_good_and_another_state_restarts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = calibrator(tmp_path / "c.json", judges={"version": ["1"]})
    audit(made, table(tmp_path / "a.csv", rows_of(1, 9, 1, version=1)))
    audit(made, table(tmp_path / "b.csv", rows_of(2, 9, 1, version=2)))
    same = table(tmp_path / "c.csv", rows_of(3, 9, 1, version=1))
    # A state that knows nothing of the other judge does not bring the promise back.
    other = tmp_path / "other.json"
    for _ in range(2):
        assert audit_promise(made, [same], SourceOptions(), state_path=other).is_alarm

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_calibrator", killed)
        with pytest.raises(KeyboardInterrupt):
            audit(made, same, restart="2026-10-03")
    assert not read_calibrator(made).is_valid
    assert not audit(made, same).is_alarm
    assert read_calibrator(made).is_valid


def test_a_kill_before_the_state_is_written_leaves_all_as_it_was(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made.read_bytes()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_atomic", killed)
        with pytest.raises(KeyboardInterrupt):
            audit(made, table(tmp_path / "a.csv", *BAD))
    assert made.read_bytes() == before
    assert not (tmp_path / "c.audit.json").exists()


def test_a_second_process_is_refused(made: Path, tmp_path: Path) -> None:
    source = table(tmp_path / "a.csv", *GOOD)
    with open_locked(tmp_path / ".c.json.lock"), pytest.raises(UsageError, match="another process"):
        audit(made, source)
    assert audit(made, source).rated == 100


def test_a_lost_state_does_not_bring_the_promise_back(made: Path, tmp_path: Path) -> None:
    audit(made, table(tmp_path / "a.csv", *GOOD, *BAD))
    (tmp_path / "c.audit.json").unlink()
    assert audit(made, table(tmp_path / "b.csv", GOOD[0])).is_alarm
    assert not read_calibrator(made).is_valid


def test_states_of_others_and_damaged_ones_are_refused(made: Path, tmp_path: Path) -> None:
    source = table(tmp_path / "a.csv", GOOD[0])
    audit(made, source)
    calibrator(made, [promise(0.7)])
    with pytest.raises(UsageError, match="belongs to another calibrator; name another --state"):
        audit(made, source)
    (tmp_path / "c.audit.json").write_text('{"promise": 3}')
    with pytest.raises(UsageError, match="not a state file of monitor --audit"):
        audit(made, source)


def test_a_year_of_rated_days_begins_anew(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AUDIT_DAYS", 4)
    result = audit(made, table(tmp_path / "a.csv", *GOOD))
    assert (result.days, result.rated) == (2, 20)
    state = json.loads((tmp_path / "c.audit.json").read_text())
    assert state["since"] == "2026-10-09"
    assert set(state["days"]) == {"2026-10-09", "2026-10-10"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"day": "yesterday"}, "2026-10-01-0: day or date or timestamp: expected a day"),
        ({"day": "2026-13-01"}, "expected a day such as 2026-11-28, got '2026-13-01'"),
        ({"human": "perhaps so"}, "label human"),
        ({"jev": "high"}, "jev: expected a number"),
    ],
)
def test_what_cannot_be_read_is_named(
    made: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        audit(made, table(tmp_path / "a.csv", [row | change for row in GOOD[0]]))
    assert not (tmp_path / "c.audit.json").exists()


def test_days_may_be_times_in_any_zone_and_another_column(made: Path, tmp_path: Path) -> None:
    rows = [row | {"day": "", "when": "2026-10-05T23:30:00-02:00"} for row in GOOD[0]]
    audit_promise(made, [table(tmp_path / "a.csv", rows)], SourceOptions(), day="when")
    state = json.loads((tmp_path / "c.audit.json").read_text())
    assert list(state["days"]) == ["2026-10-06"]


def test_answers_without_any_label_are_a_remark(made: Path, tmp_path: Path) -> None:
    result = audit(made, table(tmp_path / "a.csv", rows_of(1, 0, 0, unrated=5)))
    assert result.rated == 0
    assert "no answer has a label (human)" in result.notes[0]


def test_a_calibrator_without_a_promise_is_refused(tmp_path: Path) -> None:
    made = calibrator(tmp_path / "c.json", [promise(without="too few")])
    with pytest.raises(InputError, match="no promise to check"):
        audit(made, table(tmp_path / "a.csv", GOOD[0]))


def labelled_run(path: Path, wrong: int, **backends: str) -> str:
    """Write a run of 20 good answers and 10 bad ones, of which each tenth is rated."""
    day_run(path, 10, 30)
    samples = [json.loads(line) for line in (path / "samples.jsonl").read_text().splitlines()]
    for place, sample in enumerate(samples[20:]):
        sample["human"] = "no" if place < wrong else "yes"
    (path / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    run = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(run | {"backends": run["backends"] | backends}))
    return str(path)


def test_runs_are_read_and_a_changed_backend_suspends(tmp_path: Path) -> None:
    settings = to_stored(METRIC.settings())
    origin = ScoreOrigin("run", "faithfulness", "", settings, {"entailer": "none"})
    made = calibrator(tmp_path / "c.json", origin=origin)
    first = labelled_run(tmp_path / "2026-10-01", 1)
    state = json.loads(made.read_text())
    # The scores of these runs are 0 and 1; the spread of the calibrator is made the same.
    state["spread"] |= {"points": [0.0, 1.0], "shares": [0.33, 1.0]}
    made.write_text(json.dumps(state))
    result = audit(made, first)
    assert (result.rated, result.wrong, result.is_alarm) == (10, 1, False)
    other = labelled_run(tmp_path / "2026-10-02", 1, entailer="another")
    result = audit(made, first, other)
    assert result.status is not None
    assert (result.status.status, result.status.day) == ("suspended", "2026-10-02")
    assert "entailer 'another', not 'none'" in result.status.reason
    assert result.rated == 10
    with pytest.raises(InputError, match="the folder of a finished run"):
        audit(made, table(tmp_path / "a.csv", GOOD[0]))


def test_one_comparison_a_day_keeps_false_ones_below_one_in_a_hundred_years() -> None:
    assert np.isclose(module.UNLIKE_P * 365, 0.01)

"""The folder of a run: stopped at any moment it goes on, and another run's it stays."""

import fcntl
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import (
    YES,
    Probe,
    Recorder,
    command,
    jsonl,
    lines,
    record,
    records,
    results,
    run_command,
    summary_of,
)
from trustassay import rescore, score
from trustassay.core.capabilities import Models
from trustassay.core.metric import Assessment
from trustassay.core.sample import Sample
from trustassay.errors import BackendError, RunFolderError
from trustassay.runs.folder import RunFolder

METRICS = ["grounding"]


def states(folder: Path) -> dict[str, tuple[int, int]]:
    """Return for each file when it was written last, and which file it is."""
    return {p.name: (p.stat().st_mtime_ns, p.stat().st_ino) for p in folder.iterdir()}


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    out = tmp_path / "run"
    score(records(4), metrics=METRICS, entailer=Recorder(), out=out)
    return out


# ---- when the run was ----


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], str]:
    """Return what sets the clock to an hour, and returns the time as a run writes it."""

    def set_clock(hour: int) -> str:
        text = f"2026-11-29T{hour:02}:34:50Z"
        for module in ("folder", "execute", "growing"):
            monkeypatch.setattr(f"trustassay.runs.{module}.utc_now", lambda: text)
        return text

    return set_clock


def times_of(folder: Path) -> tuple[str | None, str | None]:
    run = json.loads((folder / "run.json").read_bytes())
    return run.get("started"), run.get("ended")


def test_a_run_has_its_start_and_its_end_in_utc(finished: Path) -> None:
    for text in times_of(finished):
        assert text and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
        age = datetime.now(UTC) - datetime.fromisoformat(text)
        assert timedelta() <= age < timedelta(minutes=10)


def test_a_run_that_goes_on_keeps_its_start_and_ends_anew(
    tmp_path: Path, probe_installed: Path, clock: Callable[[int], str]
) -> None:
    begun, finished, failing = clock(1), "", [True]

    async def ask(sample: Sample, models: Models) -> float:
        if failing:
            assert times_of(tmp_path) == (begun, None), "no end while it goes on"
            raise BackendError("out")
        assert times_of(tmp_path) == (begun, None), "the first end is gone"
        return 1.0

    score(records(3), metrics=[Probe(ask)], out=tmp_path)
    assert times_of(tmp_path) == (begun, begun)
    failing.clear()
    finished = clock(2)
    score(records(3), metrics=[Probe(ask)], out=tmp_path)
    assert times_of(tmp_path) == (begun, finished)


def test_outputs_that_are_made_again_do_not_move_the_end(
    finished: Path, clock: Callable[[int], str]
) -> None:
    before = times_of(finished)
    (finished / "report.html").unlink()
    clock(3)
    score(records(4), metrics=METRICS, entailer=Recorder(), out=finished)
    assert (finished / "report.html").exists()
    assert times_of(finished) == before


def test_an_input_that_grew_moves_the_end_alone(
    tmp_path: Path, clock: Callable[[int], str]
) -> None:
    options: dict[str, Any] = {"metrics": METRICS, "entailer": "lexical", "append": True}
    begun = clock(1)
    score(records(3), out=tmp_path, **options)
    later = clock(2)
    score(records(4), out=tmp_path, **options)
    assert times_of(tmp_path) == (begun, later)


def test_a_run_scored_again_has_times_of_its_own(
    finished: Path, tmp_path: Path, clock: Callable[[int], str]
) -> None:
    now = clock(5)
    rescore(finished, entailer="lexical", out=tmp_path / "again")
    assert times_of(tmp_path / "again") == (now, now)
    assert now not in times_of(finished)


def test_a_run_written_before_goes_on_without_a_start(finished: Path) -> None:
    run = json.loads((finished / "run.json").read_bytes())
    del run["started"], run["ended"]
    (finished / "run.json").write_text(json.dumps(run))
    score(records(4), metrics=METRICS, entailer=Recorder(), out=finished)
    assert times_of(finished) == (None, None)


# ---- whose folder it is ----


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"metrics": ["grounding:threshold=0.75"]}, "metrics.grounding.threshold was 0.5, now 0.7"),
        ({"metrics": ["grounding:splitter=lines"]}, "splitter was 'sentencex', now 'lines'"),
        ({"entailer": "lexical"}, "backends.entailer was 'recorder', now 'lexical'"),
        ({"seed": 5}, "seed was 0, now 5"),
        ({"limit": 3}, "Different: the input"),
        ({"samples": records(5)}, "Different: the input"),
        ({"samples": [*records(3), record(9)]}, "Different: the input"),
    ],
)
def test_another_run_is_kept_out_with_what_is_different(
    finished: Path, change: dict[str, Any], named: str
) -> None:
    before = states(finished)
    options: dict[str, Any] = {"metrics": METRICS, "entailer": Recorder(), **change}
    samples = options.pop("samples", records(4))
    with pytest.raises(RunFolderError) as error:
        score(samples, out=finished, **options)
    assert named in str(error.value)
    assert str(error.value).startswith(f"{finished}: holds another run; choose another folder")
    assert states(finished) == before


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(RunFolderError, match="is not empty and holds no run"):
        score(records(1), metrics=METRICS, out=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    score(records(1), metrics=METRICS, out=tmp_path)
    assert (tmp_path / "summary.json").exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", "{}", '{"samples": 3}', "\ufeff{}", '{"a": "\ud800"}']
)
def test_a_damaged_run_json_is_named(finished: Path, content: str) -> None:
    (finished / "run.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(RunFolderError, match=r"run\.json: damaged"):
        score(records(4), metrics=METRICS, entailer=Recorder(), out=finished)


def test_only_one_process_works_in_a_folder(finished: Path) -> None:
    other = os.open(finished, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(RunFolderError, match="another process is using this run"):
        score(records(4), metrics=METRICS, entailer=Recorder(), out=finished)
    os.close(other)
    score(records(4), metrics=METRICS, entailer=Recorder(), out=finished)


@pytest.mark.parametrize("out", ["run", "a/b/run"])
def test_bad_input_leaves_no_folder_behind(tmp_path: Path, out: str) -> None:
    with pytest.raises(ValueError, match="question"):
        score([{"id": "x"}], metrics=METRICS, out=tmp_path / out)
    assert list(tmp_path.iterdir()) == []


def test_bad_input_leaves_the_users_own_folders(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ValueError, match="question"):
        score([{"id": "x"}], metrics=METRICS, out=tmp_path / "a" / "run")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


# ---- going on ----


def test_a_finished_run_is_left_as_it_is(finished: Path) -> None:
    before = states(finished)
    recorder = Recorder()
    run = score(records(4), metrics=METRICS, entailer=recorder, out=finished)
    assert run.outcome.scored_before == 4
    assert not recorder.batches
    assert states(finished) == before
    assert run.summary["grounding"]["num_samples"] == 4


@pytest.mark.parametrize("name", ["summary.json", "assessments.parquet", "report.html"])
def test_what_is_missing_at_the_end_is_made_again(finished: Path, name: str) -> None:
    before = summary_of(finished)
    (finished / name).unlink()
    recorder = Recorder()
    score(records(4), metrics=METRICS, entailer=recorder, out=finished)
    assert (finished / name).exists()
    assert not recorder.batches
    assert summary_of(finished) == before


def test_failures_are_tried_again_by_the_same_command(tmp_path: Path) -> None:
    sick = True

    def judge(premise: str, hypothesis: str) -> tuple[float, float, float]:
        if sick and "umber 2" in hypothesis:
            raise RuntimeError("not today")
        return YES

    def once(out: Path) -> Recorder:
        recorder = Recorder(judge)
        score(records(4), metrics=METRICS, entailer=recorder, out=out)
        return recorder

    once(tmp_path / "a")
    assert summary_of(tmp_path / "a")["metrics"]["grounding"]["failed"] == 1
    sick = False
    again = once(tmp_path / "a")
    assert all("umber 2" in hypothesis for _, hypothesis in again.asked)
    once(tmp_path / "b")
    assert results(tmp_path / "a") == results(tmp_path / "b")


def test_a_failure_that_stays_stands_there_once(tmp_path: Path) -> None:
    def judge(premise: str, hypothesis: str) -> tuple[float, float, float]:
        raise RuntimeError("never")

    for _ in range(3):
        run = score(records(2), metrics=METRICS, entailer=Recorder(judge), out=tmp_path / "run")
    assert len(lines(tmp_path / "run" / "assessments.jsonl")) == 2
    assert run.summaries["grounding"].failed == 2


@pytest.mark.parametrize("killed_in", ["write_parquet", "write_report"])
def test_killed_among_the_outputs_of_a_second_try_no_stale_file_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_in: str
) -> None:
    """The first try leaves a report with a failure; the second is killed after its summary."""
    sick = True

    def judge(premise: str, hypothesis: str) -> tuple[float, float, float]:
        if sick:
            raise RuntimeError("unwell-today")
        return YES

    def run() -> None:
        score(records(2), metrics=METRICS, entailer=Recorder(judge), out=tmp_path / "run")

    def kill(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    run()
    sick = False
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"trustassay.runs.results.{killed_in}", kill)
        run()
    run()
    assert "unwell-today" not in (tmp_path / "run" / "report.html").read_text()
    again = score(records(2), metrics=METRICS, entailer=Recorder(judge), out=tmp_path / "run")
    assert again.to_pandas()["error"].isna().all()


# ---- torn and damaged lines ----


@pytest.mark.parametrize("keep", [0, 1, 20, -2, -1])
def test_a_torn_last_line_is_cut_off_and_scored_again(finished: Path, keep: int) -> None:
    expected = results(finished)
    path = finished / "assessments.jsonl"
    *whole, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole) + last[:keep])
    run = score(records(4), metrics=METRICS, entailer=Recorder(), out=finished)
    assert run.outcome.scored_before == 3
    assert results(finished) == expected


@pytest.mark.parametrize(
    "line", [b"garbage\n", b"\x00\x00\x00\n", b"\xff\n", b"\n", b'{"id": "q1"}\n', b"[1]\n"]
)
def test_a_damaged_line_in_the_middle_is_named(finished: Path, line: bytes) -> None:
    path = finished / "assessments.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + line + b"".join(rest))
    with pytest.raises(RunFolderError, match=r"assessments\.jsonl:2: damaged"):
        score(records(4), metrics=METRICS, entailer=Recorder(), out=finished)


@pytest.mark.parametrize(("sample", "metric"), [("stranger", "grounding"), ("q1", "other")])
def test_a_line_of_another_run_is_named(finished: Path, sample: str, metric: str) -> None:
    line = json.dumps(Assessment(sample, metric, 0.5).to_dict()) + "\n"
    with (finished / "assessments.jsonl").open("a") as file:
        file.write(line)
    (finished / "summary.json").unlink()
    with pytest.raises(RunFolderError, match=r"assessments\.jsonl:5: belongs to no sample"):
        score(records(4), metrics=METRICS, entailer=Recorder(), out=finished)


def test_a_damaged_call_store_is_named(finished: Path) -> None:
    (finished / "calls.sqlite").write_bytes(b"damaged" * 100)
    (finished / "assessments.jsonl").unlink()
    with pytest.raises(OSError, match=r"calls\.sqlite: is not a store of model calls"):
        score(records(4), metrics=METRICS, entailer=Recorder(), out=finished)


def test_ids_of_all_kinds_find_their_place(tmp_path: Path) -> None:
    ids = ['"', "\\", "ü", "\x00", "a\u2028b", "a\nb", "a\x1fb", "{", "😀", "0", " x ", "\ud800"]
    samples = [record(i) | {"id": name} for i, name in enumerate(ids)]
    out = tmp_path / "run"
    for _ in range(2):
        run = score(samples, metrics=METRICS, entailer="lexical", out=out)
        assert [a.id for a in run.assessments] == [*ids[:-1], "\ufffd"]
    assert run.outcome.scored_before == len(ids)


def test_a_json_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path)
    folder.write_json("run", {"a": 1})

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        folder.write_json("run", {"a": 2})
    assert folder.read_json("run") == {"a": 1}


def test_a_folder_reads_what_it_wrote(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_json("run") is None
    folder.write_json("run", {"a": ["ü", None]})
    assert folder.read_json("run") == {"a": ["ü", None]}
    with pytest.raises(ValueError, match="JSON"):
        folder.write_json("run", {"a": float("nan")})
    assert folder.read_json("run") == {"a": ["ü", None]}


# ---- kill -9 ----

SLOW = """
import os, time

def judge(premise, hypothesis):
    time.sleep(float(os.environ.get("PAIR_S", "0")))
    with open("asked.log", "a") as log:
        log.write(repr((premise, hypothesis)) + "\\n")
    return len(hypothesis) % 7 / 7
"""


def asked(folder: Path) -> Counter[str]:
    log = folder / "asked.log"
    return Counter(log.read_text().splitlines() if log.exists() else ())


def stored(out: Path) -> set[str]:
    """Return the requests whose replies are in the store, as the log writes them."""
    if not (out / "calls.sqlite").exists():
        return set()
    connection = sqlite3.connect(out / "calls.sqlite")
    try:
        rows = connection.execute("SELECT request FROM calls").fetchall()
    except sqlite3.OperationalError:  # killed before the table was made
        rows = []
    finally:
        connection.close()
    return {repr(tuple(json.loads(request))) for (request,) in rows}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW)
    jsonl(tmp_path / "in.jsonl", [record(i, answers=[[f"{i}"]]) for i in range(60)])
    return tmp_path


def more_asked_than(count: int, folder: Path) -> bool:
    return asked(folder).total() > count


def more_stored_than(count: int, out: Path) -> bool:
    return len(stored(out)) > count


def arguments(out: str) -> list[str]:
    return [
        *("score", "in.jsonl", "--entailer", "python:slow:judge"),
        *("--out", out, "--samples-at-once", "4"),
    ]


def start(place: Path, out: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments(out)),
        cwd=place,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(there: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not there():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_killed_at_ten_random_moments_and_resumed(place: Path) -> None:
    unbroken = run_command(*arguments("unbroken"), cwd=place)
    assert unbroken.returncode == 0, unbroken.stderr
    pairs = set(asked(place))
    assert set(asked(place).values()) == {1}
    (place / "asked.log").unlink()
    out = place / "broken"
    rng = random.Random(20260101)
    for kill in range(10):
        known, before = stored(out), asked(place)
        process = start(place, "broken", PAIR_S="0.05")
        if kill == 8:
            wait_for(partial(more_stored_than, len(known), out), process)
        elif kill % 3:  # the others end somewhere between import and the first question
            wait_for(partial(more_asked_than, before.total(), place), process)
        time.sleep(rng.uniform(0, 0.25))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        now = asked(place)
        assert {p: now[p] for p in known} == {p: before[p] for p in known}
    assert 0 < len(stored(out)) < len(pairs)
    known, before = stored(out), asked(place)
    final = run_command(*arguments("broken"), cwd=place)
    assert final.returncode == 0, final.stderr
    now = asked(place)
    assert {p: now[p] for p in known} == {p: before[p] for p in known}
    assert set(now) == pairs
    assert results(place / "unbroken") == results(out)
    assert not [p.name for p in out.iterdir() if p.name.startswith(".") or "-" in p.name]


KILLED = """
import os, pathlib, signal, sys
from trustassay import score
from trustassay.runs import execute, results  # what a run imports, once for all

replace = pathlib.Path.replace

def work(folder, moment, after):
    calls = 0

    def killing(self, target):
        nonlocal calls
        calls += 1
        if calls == moment and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(self, target)
        if calls == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    pathlib.Path.replace = killing
    os.chdir(folder)
    entailer = "python:slow:judge"
    score("in.jsonl", metrics=["grounding"], entailer=entailer, out="broken", samples_at_once=7)

for moment in range(1, int(sys.argv[1]) + 1):
    child = os.fork()  # nothing runs here yet but this thread
    if child == 0:
        work(str(moment), moment, sys.argv[2] == "after")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
MOMENTS = 7
"""Files put into place by a run: run.json, samples.jsonl, sorted assessments, run.json with the end
of the run, three outputs."""


@pytest.mark.parametrize("after", ["before", "after"])
@pytest.mark.slow
def test_killed_as_any_file_is_put_into_place(
    place: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    jsonl(place / "in.jsonl", records(12))

    def run(out: str) -> None:
        score("in.jsonl", metrics=METRICS, entailer="python:slow:judge", out=out)

    run("unbroken")
    for moment in range(1, MOMENTS + 1):
        folder = place / str(moment)
        folder.mkdir()
        jsonl(folder / "in.jsonl", records(12))
        (folder / "slow.py").write_text(SLOW)
    program = [sys.executable, "-c", KILLED, str(MOMENTS), after]
    said = subprocess.run(program, cwd=place, stdout=subprocess.PIPE, timeout=60, check=True).stdout
    codes = [int(code) for code in said.split()]
    assert len(codes) == MOMENTS
    # One is not killed where assessments came in input order and needed no sorting.
    assert codes[:2] == [-signal.SIGKILL] * 2
    assert codes.count(-signal.SIGKILL) >= MOMENTS - 1
    for moment in range(1, MOMENTS + 1):
        run(f"{moment}/broken")
        assert results(place / f"{moment}/broken") == results(place / "unbroken")
        assert (place / f"{moment}/broken/report.html").exists()
        before = states(place / f"{moment}/broken")
        run(f"{moment}/broken")
        assert states(place / f"{moment}/broken") == before


@pytest.mark.slow
def test_killed_while_the_input_is_checked(tmp_path: Path) -> None:
    program = """
import sys, time
from trustassay import score
sys.path.insert(0, %r)
from tests.support import records

def slowly():
    for row in records(20):
        yield row
        print("read", flush=True)
        time.sleep(float(sys.argv[1]))

score(slowly(), metrics=["grounding"], out="run")
"""
    source = program % str(Path(__file__).parents[2])

    def start(pause: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command("-c", source, pause),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )

    process = start("0.05")
    assert process.stdout
    assert [process.stdout.readline() for _ in range(5)]
    process.kill()
    process.communicate()
    assert not (tmp_path / "run" / "run.json").exists()
    again = start("0")
    again.communicate(timeout=60)
    assert again.returncode == 0
    assert len(lines(tmp_path / "run" / "assessments.jsonl")) == 20


@pytest.mark.slow
def test_a_second_process_is_refused_while_the_first_goes_on(place: Path) -> None:
    first = start(place, "run", PAIR_S="0.02")
    wait_for(lambda: asked(place), first)
    second = run_command(*arguments("run"), cwd=place)
    first.kill()
    first.communicate()
    assert second.returncode == 2
    assert second.stderr.endswith("trustassay: run: another process is using this run\n")


@pytest.mark.slow
def test_interrupted_it_ends_with_130_and_goes_on_later(place: Path) -> None:
    process = start(place, "run", PAIR_S="0.02")
    wait_for(lambda: len(asked(place)) > 10, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; run the same command again to continue" in said
    assert "Traceback" not in said
    assert "Warning" not in said
    assert not (place / "run" / "summary.json").exists()
    assert stored(place / "run") == set(asked(place))
    final = run_command(*arguments("run"), cwd=place)
    assert final.returncode == 0
    assert set(asked(place).values()) == {1}
    run_command(*arguments("unbroken"), cwd=place)
    assert results(place / "run") == results(place / "unbroken")


def test_a_run_in_a_url_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunFolderError, match="trustassay export RUN --to URL"):
        score([record(0)], metrics="grounding", entailer="lexical", out="s3://bucket/run")
    assert list(tmp_path.iterdir()) == []

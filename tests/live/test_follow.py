"""``trustassay score --follow``: what arrives is scored once, whatever the file does meanwhile."""

import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support import ROOT, command, fresh_command
from trustassay.cli.main import app
from trustassay.core.files import Appender, DiskFullError

CALM, WILD = ["It is so."] * 3, ["A cat sat.", "Prices fell by half.", "The moon is far away."]


def record(i: int, *, wild: bool = False, **others: Any) -> dict[str, Any]:
    answers = WILD if wild else CALM
    question = {"id": f"q{i}", "question": f"What of {i}?", "response": "It is so."}
    return {**question, "resamples": answers, **others}


def append(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def watch(path: Path, out: Path, *arguments: str) -> tuple[int, str]:
    words = ["score", str(path), "--follow", "--out", str(out), "--threshold", "0.3", *arguments]
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (gzip.compress(b"{}", mtime=0), "is a gzip file, which cannot be followed"),
        ("{}\n".encode("utf-16"), "is UTF-16, expected UTF-8"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    code, output = watch(path, tmp_path / "run", "--once")
    assert code == 2
    assert told in output
    assert not (tmp_path / "run").exists()


def scored(out: Path) -> list[str]:
    lines = (out / "assessments.jsonl").read_text().splitlines()
    return [json.loads(line)["id"] for line in lines]


def test_records_are_scored_once_and_the_folder_is_a_run(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(0), record(1, wild=True)])
    code, output = watch(path, out, "--once")
    assert code == 0, output
    assert "q1: harmonicity" in output
    assert "q0" not in output
    append(path, [record(2)])
    assert watch(path, out, "--once")[0] == 0
    assert watch(path, out, "--once")[0] == 0
    assert scored(out) == ["q0", "q1", "q2"]
    assert json.loads((out / "summary.json").read_text())["metrics"]["harmonicity"]["n"] == 3
    assert CliRunner().invoke(app, ["report", str(out)]).exit_code == 0
    again = ["rescore", str(out), "--metric", "harmonicity:seed=1", "--out", str(tmp_path / "new")]
    assert CliRunner().invoke(app, again).exit_code == 0


def test_a_line_without_its_end_waits(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(0)])
    text = json.dumps(record(1))
    with path.open("a") as file:
        file.write(text[:20])
    code, output = watch(path, out, "--once")
    assert code == 0
    assert f"{path}:2: the line has no line end yet, so it was not read" in output.replace("\n", "")
    assert scored(out) == ["q0"]
    with path.open("a") as file:
        file.write(text[20:] + "\n")
    code, output = watch(path, out, "--once")
    assert code == 0
    assert "has no end" not in output
    assert scored(out) == ["q0", "q1"]


def test_a_last_record_needs_no_line_end(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(0)])
    with path.open("a") as file:
        file.write(json.dumps(record(1)))
    assert watch(path, out, "--once")[0] == 0
    assert scored(out) == ["q0", "q1"]
    with path.open("a") as file:
        file.write("\n")
    append(path, [record(2)])
    code, output = watch(path, out, "--once")
    assert code == 0
    assert "rewritten" not in output
    assert scored(out) == ["q0", "q1", "q2"]


def test_a_faulty_line_is_told_with_its_place_and_left_out(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(0), {"question": 3, "response": "x", "resamples": ["x"]}])
    with path.open("a") as file:
        file.write("{broken\n[1]\n")
    append(path, [record(0), {"question": "no answers?", "response": "x"}, record(9)])
    said = {"pred": "x", "human_eval": "1"}
    append(path, [{"question": "two systems?", "one": said, "other": said}])
    code, output = watch(path, out, "--once")
    assert code == 0
    for place in ("log.jsonl:2: question", "log.jsonl:3: record: is not JSON", "log.jsonl:4: "):
        assert place in output
    assert "log.jsonl:5: id: 'q0' is already used by an earlier record" in output
    assert "log.jsonl:6: resamples: is missing" in output
    assert "log.jsonl:8: record: has answers of several systems" in output
    assert "6 faulty records" in output
    assert scored(out) == ["q0", "q9"]


def test_answers_beyond_the_threshold_are_counted_and_raise_no_alarm(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(i, wild=True) for i in range(60)])
    code, output = watch(path, out, "--once")
    assert code == 0, output
    assert "60 answers scored, 60 worse than 0.3" in output
    assert len(scored(out)) == 60


@pytest.mark.parametrize("option", ["--share", "--window"])
def test_the_options_of_the_former_alarm_are_unknown(tmp_path: Path, option: str) -> None:
    append(tmp_path / "log.jsonl", [record(0)])
    code, output = watch(tmp_path / "log.jsonl", tmp_path / "run", "--once", option, "0.5")
    assert code == 2
    assert f"No such option: {option}" in output


def test_a_file_that_is_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(0), record(1)])
    assert watch(path, out, "--once")[0] == 0
    fresh = tmp_path / "fresh"
    append(fresh, [record(5)])
    fresh.replace(path)
    code, output = watch(path, out, "--once")
    assert code == 0
    assert "this is a new file; reading from its start" in output
    path.write_text("")
    append(path, [])
    code, output = watch(path, out, "--once")
    assert "earlier lines have changed; reading from its start" in output
    assert scored(out) == ["q0", "q1", "q5"]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_ended_in_the_middle_and_started_again(tmp_path: Path, how: signal.Signals) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(i) for i in range(5)])
    words = fresh_command("score", path, "--follow", "--out", out)
    with subprocess.Popen(
        [*words, "--threshold", "0.3"],
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=os.environ | {"TRUSTASSAY_CACHE": str(tmp_path / "cache")},
    ) as process:
        lines, deadline = out / "assessments.jsonl", time.monotonic() + 60
        while not lines.exists() or lines.read_bytes().count(b"\n") < 5:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        append(path, [record(i) for i in range(5, 8)])
        while lines.read_bytes().count(b"\n") < 8:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(process.pid, how)
        status = process.wait()
    assert status == (130 if how is signal.SIGINT else -signal.SIGKILL)
    append(path, [record(8)])
    assert watch(path, out, "--once")[0] == 0
    assert scored(out) == [f"q{i}" for i in range(9)]


def test_other_options_and_missing_files_are_refused(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    assert watch(path, out, "--once")[0] == 2
    append(path, [record(0)])
    assert watch(path, out, "--once")[0] == 0
    before = (out / "run.json").read_bytes()
    for words, told in (
        (["--metric", "harmonicity:seed=4"], "metrics.harmonicity.seed was"),
        (["--seed", "7"], "seed was 0, now 7"),
    ):
        code, output = watch(path, out, "--once", *words)
        assert code == 2
        assert "holds another run; choose another folder, or use the same settings" in output
        assert told in output
        assert (out / "run.json").read_bytes() == before


@pytest.mark.slow
def test_interrupted_while_a_record_is_being_scored(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    (tmp_path / "slowly.py").write_text(
        "import time\n"
        "def answer(prompt):\n"
        "    time.sleep(0 if prompt.startswith('Fast') else 30)\n"
        "    return 'so'\n"
    )
    append(path, [{"id": "q0", "question": "Fast?"}, {"id": "q1", "question": "Slow?"}])
    words = command("score", path, "--follow", "--out", out)
    options = ["--threshold", "0.3", "--model", "python:slowly:answer"]
    with subprocess.Popen(
        [*words, *options],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"TRUSTASSAY_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)},
    ) as process:
        lines, deadline = out / "assessments.jsonl", time.monotonic() + 60
        while not lines.exists() or not lines.read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130, errors
    summary = json.loads((out / "summary.json").read_text())["metrics"]["harmonicity"]
    assert (summary["n"], summary["failed"]) == (2, 1)
    (tmp_path / "slowly.py").write_text("def answer(prompt): return 'so'\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        code, output = watch(path, out, "--once", "--model", "python:slowly:answer")
        assert code == 0, output
    assert scored(out) == ["q0", "q1"]


def test_a_record_without_a_field_that_was_named_is_a_fault(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    row = record(0)
    row["answer"] = row.pop("response")
    append(path, [row, {"question": "x?", "resamples": ["a"]}, {**row, "id": "q2"}])
    code, output = watch(path, out, "--once", "--field", "response=answer")
    assert code == 0, output
    assert "log.jsonl:2: " in output
    assert scored(out) == ["q0", "q2"]


def test_a_file_that_was_cut_and_grew_again_is_noticed(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(i) for i in range(3)])
    assert watch(path, out, "--once")[0] == 0
    path.write_text("")
    append(path, [record(2), *(record(i) for i in range(5, 8))])
    code, output = watch(path, out, "--once")
    assert code == 0
    assert "earlier lines have changed; reading from its start" in output
    assert "faulty" in output
    assert "0 faulty records" in output
    assert scored(out) == ["q0", "q1", "q2", "q5", "q6", "q7"]


def test_records_without_ids_are_not_scored_again_after_a_cut(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    rows = [record(i) for i in range(3)]
    for row in rows:
        del row["id"]
    append(path, rows)
    assert watch(path, out, "--once")[0] == 0
    path.write_text("")
    append(path, rows[1:])
    assert watch(path, out, "--once")[0] == 0
    assert len(scored(out)) == 3


@pytest.mark.slow
def test_lines_of_a_file_that_is_about_to_be_replaced_are_read(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(0)])
    words = command("score", path, "--follow", "--out", out)
    with subprocess.Popen(
        [*words, "--threshold", "0.3", "--idle", "2"],
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=os.environ | {"TRUSTASSAY_CACHE": str(tmp_path / "cache")},
    ) as process:
        lines, deadline = out / "assessments.jsonl", time.monotonic() + 60
        while not lines.exists() or not lines.read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        append(path, [record(1)])
        path.rename(tmp_path / "log.1")
        append(path, [record(2)])
        assert process.wait() == 0
    assert scored(out) == ["q0", "q1", "q2"]


def test_faults_are_counted_over_all_starts_and_told_once(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(0), {"question": 1}])
    assert "log.jsonl:2" in watch(path, out, "--once")[1]
    assert "log.jsonl:2" not in watch(path, out, "--once")[1]
    assert json.loads((out / "run.json").read_text())["skipped"] == 1


@pytest.mark.parametrize(("threshold", "beyond"), [("20%", 1), ("100%", 0)])
def test_a_threshold_in_percent_of_the_range(tmp_path: Path, threshold: str, beyond: int) -> None:
    path = tmp_path / "log.jsonl"
    append(path, [record(0), record(1, wild=True)])
    code, output = watch(path, tmp_path / "run", "--once", "--threshold", threshold)
    assert code == 0, output
    assert f"{beyond} worse than {threshold}" in output


@pytest.mark.parametrize(
    "words",
    [
        ["--threshold", "nan"],
        ["--threshold", "80"],
        ["--idle", "-1"],
    ],
)
def test_options_that_cannot_be(tmp_path: Path, words: list[str]) -> None:
    append(tmp_path / "log.jsonl", [record(0)])
    assert watch(tmp_path / "log.jsonl", tmp_path / "run", "--once", *words)[0] == 2


def test_a_record_without_a_score_is_counted_too(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    document = {"text": "The bridge was opened in 1932."}
    said = ["I am sorry, but I cannot answer.", "The bridge was opened in 1932 [1]."]
    append(path, [{"question": "?", "response": r, "documents": [document]} for r in said])
    code, output = watch(path, out, "--once", "--metric", "grounding", "--entailer", "lexical")
    assert code == 0, output
    assert "1 answer scored" in output
    assert "1 answer has no score" in output


def test_a_full_disk_ends_it_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(i) for i in range(3)])
    write = Appender.append

    def fails(self: Appender, line: bytes) -> None:
        if self._path.name == "assessments.jsonl":
            raise DiskFullError(self._path)
        write(self, line)

    with monkeypatch.context() as patch:
        patch.setattr(Appender, "append", fails)
        code, output = watch(path, out, "--once")
    assert code == 1
    assert "assessments.jsonl" in output.replace("\n", "") and "No space left" in output
    assert "failed" not in output  # it ended; no answer failed, and no line sums them up
    assert watch(path, out, "--once")[0] == 0
    assert scored(out) == ["q0", "q1", "q2"]


def test_a_last_line_of_nested_lists_waits_for_its_end(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(0)])
    with path.open("a") as file:
        file.write("[" * 100_000)
    code, output = watch(path, out, "--once")
    assert code == 0
    assert "the line has no line end yet, so it was not read" in output.replace("\n", "")


def test_a_line_that_is_too_long_is_a_fault_and_the_others_are_scored(tmp_path: Path) -> None:
    path, out = tmp_path / "log.jsonl", tmp_path / "run"
    append(path, [record(1), record(2, more="0" * 2**20), record(3)])
    limits = ("--metric", "harmonicity", "--once", "--longest-line", "1")
    code, output = watch(path, out, *limits)
    assert code == 0, output
    assert f"{path}:2: record: has more than 1 MiB" in output
    assert scored(out) == ["q1", "q3"]
    # The mark of the last line is found again without reading a line whole.
    append(path, [record(4, more="0" * 2**20)])
    watch(path, out, *limits)
    append(path, [record(5)])
    assert "cut or rewritten" not in watch(path, out, *limits)[1]
    assert scored(out) == ["q1", "q3", "q5"]

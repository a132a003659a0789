"""The Python door: what goes in, what comes out, and that it works inside a notebook."""

import ast
import asyncio
import contextlib
import gc
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trustassay
from tests.support import (
    ROOT,
    YES,
    Probe,
    Recorder,
    jsonl,
    record,
    records,
    results,
    summary_of,
)
from trustassay import Sample, ascore, score
from trustassay.api import rescore
from trustassay.backends.chat_entailer import ChatEntailer, EntailmentOptions
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.core.metric import Assessment
from trustassay.errors import BackendError, RunFolderError, UnknownNameError
from trustassay.metrics import Grounding

METRICS = ["grounding"]


# ---- what comes out ----


def test_assessments_are_a_sequence() -> None:
    found = score(records(10), metrics=METRICS, entailer=Recorder()).assessments
    assert len(found) == 10
    assert found[0].id == "q0"
    assert found[-1].id == "q9"
    assert [a.id for a in found[2:8:3]] == ["q2", "q5"]
    assert [a.id for a in found[::-1]] == [f"q{i}" for i in range(9, -1, -1)]
    assert found[20:] == []
    assert found[3] in found
    assert list(found) == found[:]
    assert isinstance(found[0], Assessment)
    for index in (10, -11):
        with pytest.raises(IndexError):
            found[index]


def test_summary_is_the_mapping_of_figures() -> None:
    run = score(records(3), metrics=METRICS, entailer=Recorder())
    assert run.summary["grounding"]["num_samples"] == 3
    assert run.summary["grounding"]["answered_citation_f1"] == 100.0
    assert run.summaries["grounding"].support["answered_citation_f1"] == 3
    assert "answered_citation_f1" in run.summaries["grounding"].without_interval
    run = score(records(20), metrics=METRICS, entailer=Recorder())
    low, high = run.summaries["grounding"].intervals["answered_citation_f1"]
    assert 80 < low < high == 100.0
    with pytest.raises(KeyError):
        run.summary["nothing"]


def test_a_table_of_everything(probe_installed: Path) -> None:
    run = score(records(3), metrics=[Grounding(), Probe()], entailer=Recorder())
    table = run.to_pandas()
    assert table["id"].tolist() == ["q0", "q0", "q1", "q1", "q2", "q2"]
    assert table["metric"].tolist() == ["grounding", "probe"] * 3
    assert table["score"].tolist() == [1.0] * 6
    assert table["parts.statements"].tolist()[0] == 2.0
    assert math.isnan(table["parts.statements"].tolist()[1])
    assert list(table.columns)[:3] == ["id", "question", "response"]
    assert table["response"].tolist()[::2] == [one["response"] for one in records(3)]


def test_the_table_of_a_frame_has_its_index(probe_installed: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(records(5), index=list("abcde"))
    frame.loc["b", "question"] = ""
    options: dict[str, Any] = {"metrics": [Grounding(), Probe()], "entailer": Recorder()}
    run = score(frame, skip_bad=True, limit=4, **options)
    table = run.to_pandas()
    assert table.index.tolist() == ["a", "a", "c", "c", "d", "d"]
    assert frame["question"][table.index].tolist() == table["question"].tolist()


def test_the_worst_show_the_answer() -> None:
    found = score(records(1), metrics=METRICS, entailer=Recorder(lambda *_: (0.0, 1.0, 0.0))).worst(
        1
    )
    assert records(1)[0]["response"][:40] in repr(found)


def test_a_report_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    run = score(records(2), metrics=METRICS, entailer=Recorder())
    assert not (run.path / "report.html").exists()
    assert run.report() == run.path / "report.html"
    assert run.report(tmp_path / "mine.html") == tmp_path / "mine.html"
    assert "<html" in (tmp_path / "mine.html").read_text()


def test_a_temporary_folder_goes_with_the_run() -> None:
    run = score(records(1), metrics=METRICS)
    path = run.path
    assert (path / "summary.json").exists()
    del run
    gc.collect()
    assert not path.exists()


def test_assessments_can_be_read_when_the_run_itself_was_not_kept() -> None:
    assessments = score(records(2), metrics=METRICS, entailer=Recorder()).assessments
    path = assessments._path
    gc.collect()
    assert [a.id for a in assessments] == ["q0", "q1"]
    del assessments
    gc.collect()
    assert not path.exists()


def test_nothing_temporary_is_left_where_a_run_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="question"):
        score([{}], metrics=METRICS)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_named_stays(tmp_path: Path) -> None:
    run = score(records(1), metrics=METRICS, out=str(tmp_path / "run"))
    del run
    gc.collect()
    files = {"run.json", "samples.jsonl", "assessments.jsonl", "calls.sqlite"}
    files |= {"summary.json", "assessments.parquet", "report.html"}
    assert {p.name for p in (tmp_path / "run").iterdir()} == files


# ---- what goes in ----


def test_every_kind_of_source_gives_the_same_assessments(tmp_path: Path) -> None:
    rows = records(3)
    trust_eval = [
        {
            "id": r["id"],
            "question": r["question"],
            "output": r["response"],
            "docs": [{"title": "", "text": text} for text in r["documents"]],
        }
        for r in rows
    ]
    ragas = [
        {
            "id": r["id"],
            "user_input": r["question"],
            "response": r["response"],
            "retrieved_contexts": r["documents"],
        }
        for r in rows
    ]
    deepeval = [
        {
            "id": r["id"],
            "input": r["question"],
            "actual_output": r["response"],
            "retrieval_context": r["documents"],
        }
        for r in rows
    ]
    path = jsonl(tmp_path / "in.jsonl", rows)
    mixed = [Sample.parse(rows[0]), trust_eval[1], deepeval[2]]
    sources: list[Any] = [rows, trust_eval, ragas, deepeval, mixed, path, str(path), iter(rows)]
    sources += [(r for r in rows), tuple(rows), np.array(rows, dtype=object)]
    found = [list(score(s, metrics=METRICS, entailer="lexical").assessments) for s in sources]
    assert all(assessments == found[0] for assessments in found)


def test_options_as_text_or_as_instances(tmp_path: Path) -> None:
    one = score(records(2), metrics=["grounding:threshold=0.9,splitter=lines"], out=tmp_path / "a")
    two = score(records(2), metrics=[Grounding(threshold=0.9, splitter="lines")])
    assert list(one.assessments) == list(two.assessments)
    assert one.summaries["grounding"].settings == two.summaries["grounding"].settings


def test_entailers_of_every_kind() -> None:
    class Own:
        name = "own"

        def scores(self, pairs: Any) -> Any:
            return [YES] * len(pairs)

    entailers: list[Any] = [lambda p, h: True, lambda p, h: 1.0, lambda p, h: YES, Own()]
    for entailer in entailers:
        run = score(records(1), metrics=METRICS, entailer=entailer)
        assert run.assessments[0].score == 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"metrics": []}, ValueError, "no metric"),
        ({"metrics": ["grounding", Grounding(threshold=0.9)]}, ValueError, "more than once"),
        ({"metrics": ["grouding"]}, UnknownNameError, "did you mean grounding?"),
        ({"metrics": "grouding"}, UnknownNameError, "did you mean grounding?"),
        ({"metrics": ["grounding"], "entailer": "lexicl"}, UnknownNameError, "lexical"),
        ({"metrics": ["grounding"], "entailer": 3}, BackendError, "entailer"),
        ({"metrics": ["grounding"], "entailer": Recorder}, BackendError, "class"),
        ({"metrics": ["grounding"], "colour": "red"}, UnknownNameError, "colour"),
        ({"metrics": ["grounding"], "fields": {"answr": "x"}}, ValueError, "answers"),
    ],
)
def test_wrong_arguments_are_refused_in_words(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        score(records(1), out=tmp_path / "run", **arguments)
    assert list(tmp_path.iterdir()) == []


# ---- event loops ----


def test_ascore_inside_a_loop_and_score_inside_a_loop_agree() -> None:
    async def notebook() -> tuple[list[Assessment], list[Assessment]]:
        one = await ascore(records(3), metrics=METRICS, entailer=Recorder())
        two = score(records(3), metrics=METRICS, entailer=Recorder())
        return list(one.assessments), list(two.assessments)

    one, two = asyncio.run(notebook())
    assert one == two == list(score(records(3), metrics=METRICS, entailer=Recorder()).assessments)


def test_errors_come_through_from_inside_a_loop() -> None:
    async def notebook() -> None:
        score([{}], metrics=METRICS)

    with pytest.raises(ValueError, match="question: is missing"):
        asyncio.run(notebook())


def test_two_runs_at_once_in_one_loop() -> None:
    async def both() -> list[int]:
        runs = await asyncio.gather(
            *(ascore(records(n), metrics=METRICS, entailer=Recorder()) for n in (2, 5))
        )
        return [len(run.assessments) for run in runs]

    assert asyncio.run(both()) == [2, 5]


def test_a_cancelled_run_stops_and_goes_on_later(tmp_path: Path) -> None:
    def patient(premise: str, hypothesis: str) -> tuple[float, float, float]:
        time.sleep(0.01)
        return YES

    slow = Recorder(patient)

    async def impatient() -> None:
        await asyncio.wait_for(
            ascore(
                records(60), metrics=METRICS, entailer=slow, out=tmp_path / "run", samples_at_once=2
            ),
            0.5,
        )

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    assert not (tmp_path / "run" / "summary.json").exists()
    fast = Recorder()
    score(records(60), metrics=METRICS, entailer=fast, out=tmp_path / "run")
    assert not set(slow.asked) & set(fast.asked)
    score(records(60), metrics=METRICS, entailer=Recorder(), out=tmp_path / "unbroken")
    assert results(tmp_path / "run") == results(tmp_path / "unbroken")


NOTEBOOK = """
import asyncio, time
from trustassay import score
from tests.support import records

def slow(premise, hypothesis):
    print("asked", flush=True)
    time.sleep(0.02)
    return True

async def cell():
    score(records(1000), metrics=["grounding"], entailer=slow, samples_at_once=2)

try:
    asyncio.new_event_loop().run_until_complete(cell())  # as Jupyter does
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_an_interruption_stops_the_work_inside_a_notebook_too() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdout
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert out.splitlines()[-1] == "stopped"
    assert time.monotonic() - started < 30
    assert "Traceback" not in err


# ---- a budget ----


def told(prompt: str) -> str:
    return "word " * 200


def test_a_budget_is_a_text_as_on_the_command_line() -> None:
    rows = [{"id": f"q{n}", "question": "Who?", "answers": [["Ada"]]} for n in range(20)]
    judge: dict[str, Any] = {"metrics": "judge:by=entailer", "entailer": Recorder()}
    run = score(rows, model=told, cache=None, budget="300", **judge)
    assert any("the budget of 300 tokens is reached" in (a.error or "") for a in run.assessments)
    given = trustassay.chat(told, cache=False, budget="300").ask([str(n) for n in range(20)])
    assert any("the budget of 300 tokens is reached" in str(one) for one in given)


@pytest.mark.parametrize(("budget", "words"), [("five", "got 'five'"), (300, "got 300")])
def test_a_budget_that_cannot_be_read_is_named_before_the_start(budget: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"budget: expected .*{words}"):
        score(records(1), metrics=METRICS, entailer=Recorder(), budget=budget)
    with pytest.raises(ValueError, match=f"budget: expected .*{words}"):
        trustassay.chat(told, budget=budget)


# ---- rescore ----


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    score(records(5), metrics=METRICS, entailer=half_sure("half"), out=tmp_path / "old")
    return tmp_path / "old"


def half_sure(name: str) -> Recorder:
    recorder = Recorder(lambda premise, hypothesis: (0.6, 0.4, 0.0))
    recorder.name = name
    return recorder


def test_another_threshold_asks_nothing_anew(tmp_path: Path, stored: Path) -> None:
    recorder = half_sure("half")
    strict = ["grounding:threshold=0.7"]
    run = rescore(stored, metrics=strict, entailer=recorder, out=tmp_path / "new")
    assert not recorder.batches
    assert run.summary["grounding"]["answered_citation_f1"] == 0.0
    assert run.outcome.counts["entailment"].computed == 0
    assert run.outcome.counts["entailment"].from_store > 0
    score(records(5), metrics=strict, entailer=half_sure("half"), out=tmp_path / "fresh")
    assert (tmp_path / "new" / "assessments.jsonl").read_bytes() == (
        tmp_path / "fresh" / "assessments.jsonl"
    ).read_bytes()


def test_another_entailer_is_asked(tmp_path: Path, stored: Path) -> None:
    recorder = half_sure("another")
    rescore(stored, metrics=METRICS, entailer=recorder, out=tmp_path / "new")
    assert recorder.batches


def test_the_old_run_stays_as_it_was(tmp_path: Path, stored: Path) -> None:
    before = {p.name: p.read_bytes() for p in stored.iterdir()}
    rescore(stored, metrics=METRICS, entailer=half_sure("half"), out=tmp_path / "new")
    assert {p.name: p.read_bytes() for p in stored.iterdir()} == before
    assert summary_of(tmp_path / "new") == summary_of(stored)


def test_a_run_is_not_scored_into_itself_and_not_out_of_nothing(
    tmp_path: Path, stored: Path
) -> None:
    with pytest.raises(
        RunFolderError, match="holds the stored run; give the new run another folder"
    ):
        rescore(stored, metrics=METRICS, entailer=Recorder(), out=stored)
    with pytest.raises(RunFolderError, match="holds no run"):
        rescore(tmp_path / "nothing", metrics=METRICS, entailer=Recorder(), out=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "nothing").exists()


def test_a_function_that_cannot_be_loaded_answers_from_what_is_stored(tmp_path: Path) -> None:
    score(records(1), metrics=METRICS, entailer=lambda p, h: True, out=tmp_path / "old")
    again = rescore(tmp_path / "old", metrics=METRICS, out=tmp_path / "again", seed=1, cache=None)
    assert (again.assessments[0].score, again.outcome.counts["entailment"].computed) == (1.0, 0)
    (tmp_path / "old" / "calls.sqlite").unlink()
    with pytest.raises(ValueError, match="unknown entailer 'function'"):
        rescore(tmp_path / "old", metrics=METRICS, out=tmp_path / "new", cache=None)
    run = rescore(
        tmp_path / "old", metrics=METRICS, entailer=lambda p, h: True, out=tmp_path / "new"
    )
    assert run.assessments[0].score == 1.0


class OwnChat:
    """A chat model without a URI."""

    name = "own"
    asked = 0

    async def reply(self, request: ChatRequest) -> Reply:
        OwnChat.asked += 1
        return Reply("supports")


@pytest.mark.parametrize("judging", [EntailmentOptions(), EntailmentOptions(repeats=2)])
def test_a_chat_model_that_entails_answers_from_what_is_stored(
    tmp_path: Path, judging: EntailmentOptions
) -> None:
    entailer = ChatEntailer(OwnChat(), judging)
    old = score(records(2), metrics=METRICS, entailer=entailer, out=tmp_path / "old", cache=None)
    asked = OwnChat.asked
    strict = ["grounding:threshold=0.7"]
    new = rescore(tmp_path / "old", metrics=strict, out=tmp_path / "new", cache=None)
    assert [a.score for a in new.assessments] == [a.score for a in old.assessments]
    assert [a.error for a in new.assessments] == [None, None]
    assert OwnChat.asked == asked


def test_an_entailer_that_is_not_here_refuses_what_is_not_stored(tmp_path: Path) -> None:
    score(records(1), metrics=METRICS, entailer=lambda p, h: True, out=tmp_path / "old")
    with contextlib.closing(sqlite3.connect(tmp_path / "old" / "calls.sqlite")) as calls, calls:
        calls.execute("DELETE FROM calls WHERE rowid = 1")
    run = rescore(tmp_path / "old", metrics=METRICS, out=tmp_path / "new", cache=None)
    assert "cannot be used here" in (run.assessments[0].error or "")
    assert "give --entailer" in (run.assessments[0].error or "")


# ---- the package ----


def test_everything_that_the_package_offers_is_there() -> None:
    for name in trustassay.__all__:
        assert getattr(trustassay, name) is not None
    assert dir(trustassay) == trustassay.__all__
    with pytest.raises(AttributeError, match="scoer"):
        trustassay.scoer  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_are_told_of_the_same_names_from_the_same_modules() -> None:
    path = Path(trustassay.__file__).with_suffix(".pyi")
    body = ast.parse(path.read_text(encoding="utf-8")).body
    told = {
        name.name: one.module
        for one in body
        if isinstance(one, ast.ImportFrom)
        for name in one.names
    }
    assert told == trustassay._MODULES_OF_NAMES  # type: ignore[attr-defined]
    exported = next(ast.literal_eval(one.value) for one in body if isinstance(one, ast.Assign))
    assert exported == trustassay.__all__


def test_a_generator_is_read_once() -> None:
    read = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal read
        for i in range(3):
            read += 1
            yield record(i)

    score(rows(), metrics=METRICS)
    assert read == 3

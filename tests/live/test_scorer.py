"""The resident scorer: what a run gives, sample by sample, with nothing lost and nobody harmed."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT, Probe, Recorder, lines, record, records, results
from trustassay import Assay, SampleError, Scorer, ScorerClosedError, score, scorer
from trustassay.calls.store import CallStore
from trustassay.core.capabilities import ChatRequest, Models, Reply
from trustassay.core.fair_queue import CURRENT_FLOW, Flow
from trustassay.core.files import Appender, DiskFullError
from trustassay.core.sample import Sample
from trustassay.errors import BackendError, CallError, RunFolderError, UnknownNameError
from trustassay.live.scorer import EXAMPLE


def with_scorer(work: Callable[[Scorer], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """Return the result of ``work`` with a scorer."""

    async def opened() -> Any:
        usual: dict[str, Any] = {"metrics": "grounding", "entailer": Recorder()}
        async with scorer(**(usual | options)) as found:
            return await work(found)

    return asyncio.run(opened())


async def all_scored(found: Scorer, n: int = 5) -> list[Assay]:
    return await asyncio.gather(*(found.score(one) for one in records(n)))


# ---- what comes out ----


def test_the_assessments_are_those_of_a_run(tmp_path: Path) -> None:
    metrics = ["grounding", "faithfulness"]
    run = score(records(5), metrics=metrics, entailer="lexical", out=tmp_path / "run")
    options: dict[str, Any] = {"metrics": metrics, "entailer": "lexical"}
    assays = with_scorer(all_scored, out=tmp_path / "scorer", **options)
    assert [assay[name] for assay in assays for name in metrics] == list(run.assessments)
    assert results(tmp_path / "scorer") == results(tmp_path / "run")
    assert (tmp_path / "scorer" / "report.html").exists()
    assert [a[name] for a in with_scorer(all_scored, **options) for name in metrics] == list(
        run.assessments
    )


def test_samples_of_many_callers_are_asked_together_and_equal_ones_once() -> None:
    entailer = Recorder()

    async def twice(found: Scorer) -> list[Assay]:
        return [*await all_scored(found, 8), *await all_scored(found, 8)]

    assert len(with_scorer(twice, entailer=entailer)) == 16
    assert max(map(len, entailer.batches)) >= 8
    assert set(entailer.asked.values()) == {1}


def test_a_failure_is_a_value_and_the_scorer_goes_on(probe_installed: Path) -> None:
    async def fail(sample: Sample, models: Models) -> float:
        if sample.id == "q1":
            raise RuntimeError("unlucky")
        return 0.5

    assays = with_scorer(all_scored, metrics=[Probe(fail), "grounding"])
    (error,) = assays[1].errors.values()
    assert error.startswith("probe failed: RuntimeError: unlucky (tests/live/test_scorer.py:")
    assert assays[1]["grounding"].score is not None
    assert [assay["probe"].score for assay in assays] == [0.5, None, 0.5, 0.5, 0.5]


def test_options_on_auto_are_settled_by_each_sample_without_a_folder_by_the_first_with_one(
    tmp_path: Path,
) -> None:
    given = [record(0), record(1, answers=[["red"]])]

    async def both(found: Scorer) -> list[Assay]:
        return [await found.score(one) for one in given]

    alone = with_scorer(both)
    assert [assay["grounding"] for assay in alone] == [
        score([one], metrics="grounding", entailer=Recorder()).assessments[0] for one in given
    ]
    kept = with_scorer(both, out=tmp_path / "run")
    assert kept[0]["grounding"] == alone[0]["grounding"]
    assert kept[1]["grounding"] != alone[1]["grounding"]
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert settings["metrics"]["grounding"]["correctness"] == "none"


def test_the_example_of_the_documentation_prints_what_it_says(capsys: Any) -> None:
    page = (ROOT / "docs" / "live/serve.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    assert found
    exec(compile(found[1], "docs/live/serve.md", "exec"), {})
    assert capsys.readouterr().out == found[2]


# ---- misuse ----


def test_a_sample_that_cannot_be_scored_is_refused_with_every_fault() -> None:
    async def wrong(found: Scorer) -> None:
        with pytest.raises(SampleError) as caught:
            await found.score({"question": 3, "documents": [{"title": "x"}]})
        assert [problem.field for problem in caught.value.problems] == [
            "question",
            "documents[0].text",
        ]
        with pytest.raises(SampleError, match="user_input: is blank"):
            await found.score({"user_input": "", "response": "x", "retrieved_contexts": ["x"]})
        with pytest.raises(SampleError, match="expected an object, got text"):
            await found.score("what?")  # type: ignore[arg-type]
        assert found.in_progress == 0

    with_scorer(wrong)


def test_a_sample_with_nothing_to_check_against_is_refused() -> None:
    async def wrong(found: Scorer) -> None:
        with pytest.raises(SampleError, match="documents: factcheck: needs a retriever"):
            await found.score({"question": "a?", "response": "b"})

    with_scorer(wrong, metrics="factcheck:by=entailer")


def test_a_closed_scorer_says_so() -> None:
    async def kept(found: Scorer) -> Scorer:
        return found

    closed = with_scorer(kept)
    with pytest.raises(ScorerClosedError, match="closed"):
        asyncio.run(closed.score(record(0)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metrics": "fewl", "entailer": None}, "compares all samples"),
        ({"limit": 3}, "limit: not for a scorer"),
        ({"documents": 3}, "documents: not for a scorer"),
        ({"judge": "openai:x"}, "grounding does not use it"),
        ({"outt": "x"}, "unknown keyword 'outt'"),
        ({"metrics": "judge:rubric=answer", "entailer": None}, "needs a judge"),
    ],
)
def test_what_no_scorer_can_do_is_refused_when_it_is_opened(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises((ValueError, UnknownNameError), match=words):
        with_scorer(all_scored, **options)


# ---- callers ----


class Held:
    """An entailer that answers when it is let."""

    name = "held"

    def __init__(self) -> None:
        self.go, self.asked = threading.Event(), threading.Event()
        self.inner = Recorder()

    def scores(self, pairs: Any) -> Any:
        self.asked.set()
        assert self.go.wait(20)
        return self.inner.scores(pairs)


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_cancelled_caller_harms_no_other(tmp_path: Path, keeps: bool) -> None:
    held = Held()

    async def cancel(found: Scorer) -> list[Assay]:
        callers = [asyncio.create_task(found.score(one)) for one in records(4)]
        await until(held.asked.is_set)
        callers[2].cancel()
        with pytest.raises(asyncio.CancelledError):
            await callers[2]
        await until(lambda: found.in_progress == (4 if keeps else 3))
        held.go.set()
        return [await callers[i] for i in (0, 1, 3)]

    out = tmp_path / "run"
    assays = with_scorer(cancel, entailer=held, **({"out": out} if keeps else {}))
    assert [assay["grounding"].score for assay in assays] == [1.0, 1.0, 1.0]
    if keeps:  # what was accepted is finished
        assert [(line["id"], line["error"]) for line in lines(out / "assessments.jsonl")] == [
            (f"q{i}", None) for i in range(4)
        ]


def test_closing_waits_for_what_was_accepted_and_takes_nothing_more() -> None:
    held = Held()

    async def main() -> None:
        async with scorer(metrics="grounding", entailer=held) as found:
            callers = [asyncio.create_task(found.score(one)) for one in records(3)]
            await until(held.asked.is_set)
            closing = asyncio.create_task(found.close())
            await asyncio.sleep(0)
            with pytest.raises(ScorerClosedError):
                await found.score(record(9))
            assert not closing.done()
            held.go.set()
            await closing
            assert [(await caller)["grounding"].score for caller in callers] == [1.0, 1.0, 1.0]

    asyncio.run(main())


def test_who_waits_is_told_when_the_closing_is_interrupted(tmp_path: Path) -> None:
    held, out = Held(), tmp_path / "run"

    async def main() -> None:
        async with scorer(metrics="grounding", entailer=held, out=out) as found:
            caller = asyncio.create_task(found.score(record(0)))
            await until(held.asked.is_set)
            closing = asyncio.create_task(found.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(ScorerClosedError, match="interrupted before 'q0'"):
                await caller
            held.go.set()

    asyncio.run(main())
    assert lines(out / "assessments.jsonl")[0]["error"] == "the scorer ended before it was scored"
    with_scorer(lambda found: asyncio.sleep(0), entailer=held, out=out)
    assert [line["score"] for line in lines(out / "assessments.jsonl")] == [1.0]


def test_no_more_than_concurrency_are_in_progress(probe_installed: Path) -> None:
    most = now = 0

    async def count(sample: Sample, models: Models) -> float:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return 1.0

    with_scorer(all_scored, metrics=[Probe(count)], entailer="lexical", samples_at_once=2)
    assert most == 2


# ---- the folder ----


def test_a_sample_that_comes_again_is_stored_once_and_another_under_its_id_refused(
    tmp_path: Path,
) -> None:
    async def again(found: Scorer) -> None:
        first, second = await all_scored(found, 1), await all_scored(found, 1)
        assert first == second
        with pytest.raises(SampleError, match="'q0' is already used by an earlier sample"):
            await found.score(record(0, response="Another answer [1]."))

    for _ in range(2):
        with_scorer(again, out=tmp_path / "run")
    assert len(lines(tmp_path / "run" / "samples.jsonl")) == 1
    assert len(lines(tmp_path / "run" / "assessments.jsonl")) == 1


def test_a_failure_is_tried_again_when_the_folder_is_opened_again(
    tmp_path: Path, probe_installed: Path
) -> None:
    healthy: list[bool] = []

    async def ask(sample: Sample, models: Models) -> float:
        if not healthy:
            raise BackendError("out")
        return 1.0

    options: dict[str, Any] = {"metrics": [Probe(ask)], "entailer": None, "out": tmp_path / "run"}
    assert with_scorer(all_scored, **options)[0].errors == {"probe": "out"}
    healthy.append(True)
    with_scorer(lambda found: asyncio.sleep(0), **options)
    assert [line["score"] for line in lines(tmp_path / "run" / "assessments.jsonl")] == [1.0] * 5


def test_a_folder_that_is_opened_again_keeps_its_first_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run" / "run.json"

    async def read_run(found: Scorer) -> Any:
        await found.score(record(0))
        return json.loads(path.read_text())

    for hour in (1, 2):
        for module in ("folder", "growing"):
            time = f"2026-11-29T0{hour}:34:50Z"
            monkeypatch.setattr(f"trustassay.runs.{module}.utc_now", lambda time=time: time)
        open_ = with_scorer(read_run, out=tmp_path / "run")
        assert (open_["started"], open_.get("ended")) == ("2026-11-29T01:34:50Z", None)
        closed = json.loads(path.read_text())
        assert (closed["started"], closed["ended"]) == ("2026-11-29T01:34:50Z", time)


def test_a_folder_is_refused_where_it_holds_something_else(tmp_path: Path) -> None:
    with_scorer(all_scored, out=tmp_path / "a")
    score(records(2), metrics="grounding", entailer=Recorder(), out=tmp_path / "b")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "letter.txt").write_text("hello")
    for out, options, words in (
        ("a", {"seed": 1}, "seed was 0, now 1"),
        ("a", {"metrics": "grounding:threshold=0.6"}, "metrics.grounding.threshold was 0.5"),
        ("b", {}, "not made by a scorer"),
        ("c", {}, "is not empty and holds no run"),
    ):
        with pytest.raises(RunFolderError, match=words):
            with_scorer(all_scored, out=tmp_path / out, **options)

    async def second(found: Scorer) -> None:
        with pytest.raises(RunFolderError, match="another process is using"):
            async with scorer(metrics="grounding", entailer=Recorder(), out=tmp_path / "a"):
                pass

    with_scorer(second, out=tmp_path / "a")


def test_a_scorer_that_scored_nothing_leaves_a_folder_that_can_be_used(tmp_path: Path) -> None:
    for _ in range(2):
        with_scorer(lambda found: asyncio.sleep(0), out=tmp_path / "run")
    assert with_scorer(all_scored, out=tmp_path / "run")[0]["grounding"].score == 1.0


def test_a_full_disk_is_a_value_and_the_next_opening_scores_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, full = Appender.append, [False]

    def fails(self: Appender, line: bytes) -> None:
        if full[0]:
            raise DiskFullError(self._path)
        append(self, line)

    monkeypatch.setattr(Appender, "append", fails)

    async def work(found: Scorer) -> None:
        assert (await found.score(record(0))).errors == {}
        full[0] = True
        assert "No space left" in (await found.score(record(1))).errors["grounding"]
        full[0] = False
        assert (await found.score(record(2))).errors == {}

    with_scorer(work, out=tmp_path / "run")
    assert [line["id"] for line in lines(tmp_path / "run" / "assessments.jsonl")] == ["q0", "q2"]


KILLED = """
import asyncio, trustassay
from tests.support import records

async def main():
    async with trustassay.scorer(metrics="grounding", entailer="lexical", out="run") as scorer:
        async def caller(one):
            await scorer.score(one)
            print(one["id"], flush=True)
        async with asyncio.TaskGroup() as group:
            for one in records(200):
                group.create_task(caller(one))
                await asyncio.sleep(0.002)
asyncio.run(main())
"""


@pytest.mark.slow
def test_killed_and_opened_again_nothing_is_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{KILLED}"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        answered = [process.stdout.readline().strip() for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        answered += process.stdout.read().split()
    out = tmp_path / "run"
    accepted = [line["id"] for line in lines_of_killed(out / "samples.jsonl")]
    assert set(answered) <= set(accepted)
    assert set(answered) <= {line["id"] for line in lines_of_killed(out / "assessments.jsonl")}
    assert len(accepted) < 200
    with (out / "samples.jsonl").open("a") as file:
        file.write('{"id": "torn')
    with_scorer(lambda found: all_scored(found, 200), entailer="lexical", out=out)
    score(records(200), metrics="grounding", entailer="lexical", out=tmp_path / "whole")
    assert results(out) == results(tmp_path / "whole")


def lines_of_killed(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if "\n" in line]


# ---- endpoints ----


class Service:
    """A chat model that can be out for good, as one whose key was withdrawn."""

    name = "service"

    def __init__(self) -> None:
        self.error: CallError | None = None
        self.asked = 0

    async def reply(self, request: ChatRequest) -> Reply:
        self.asked += 1
        if self.error:
            raise self.error
        return Reply("Score: 5")


def test_a_model_that_refused_all_is_asked_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, clock = Service(), [0.0]
    service.error = CallError("no such key", "closed")
    monkeypatch.setattr("trustassay.calls.endpoints.time.monotonic", lambda: clock[0])

    async def work(found: Scorer) -> list[bool]:
        failed = []
        for i, at in enumerate((0.0, 1.0, 31.0)):
            clock[0] = at
            if at > 30:
                service.error = None
            failed.append("no such key" in (await found.score(record(i))).errors.get("judge", ""))
        return failed

    options: dict[str, Any] = {"metrics": "judge:rubric=answer", "entailer": None}
    assert with_scorer(work, judge=service, cache=None, **options) == [True, True, False]
    assert service.asked == 2


# ---- threads ----


def test_threads_share_one_scorer() -> None:
    entailer = Recorder()
    with scorer(metrics="grounding", entailer=entailer) as found:
        with ThreadPoolExecutor(8) as threads:
            assays = list(threads.map(found.score, records(16)))
        assert [assay.sample.id for assay in assays] == [f"q{i}" for i in range(16)]
        assert {assay["grounding"].score for assay in assays} == {1.0}
        with pytest.raises(SampleError, match="question: is missing"):
            found.score({})
    with pytest.raises(ScorerClosedError):
        found.score(record(0))
    assert not [t for t in threading.enumerate() if t.name == "trustassay-scorer"]


def test_threads_are_told_what_opening_and_closing_tell(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("hello")
    with (
        pytest.raises(RunFolderError, match="holds no run"),
        scorer(metrics="grounding", entailer=Recorder(), out=tmp_path),
    ):
        pass
    with (
        pytest.raises(OSError),
        scorer(metrics="grounding", entailer=Recorder(), out=tmp_path / "run") as found,
    ):
        found.score(record(0))
        (tmp_path / "run" / "samples.jsonl").unlink()


def test_samples_accepted_before_a_restart_are_those_of_one_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flows: list[Flow] = []

    async def note_flow(_: Scorer, sample: Sample) -> Assay:
        flows.append(CURRENT_FLOW.get())
        return Assay(sample, {})

    monkeypatch.setattr(Scorer, "assay", note_flow)

    async def run() -> None:
        async with scorer(metrics="faithfulness", entailer="lexical") as opened:
            opened.resume([opened.check(record(number)) for number in range(2)])

    asyncio.run(run())
    assert flows[0] == flows[1]
    # The empty caller is this process itself, whose work shares no turns.
    assert flows[0].caller


# ---- warming up ----


def test_warming_up_asks_the_models_and_keeps_nothing(tmp_path: Path) -> None:
    recorder = Recorder()

    async def run() -> None:
        folder = tmp_path / "run"
        async with scorer(metrics="faithfulness", entailer=recorder, out=folder) as opened:
            await opened.warm_up()
            assert recorder.asked
            assert opened.in_progress == 0
            assert not (folder / "samples.jsonl").read_bytes()
            assert not (folder / "assessments.jsonl").read_bytes()
            store = CallStore(folder / "calls.sqlite")
            assert store.counts() == {}
            store.close()
            # what was asked then is not remembered: the first sample's calls are stored
            await opened.score(EXAMPLE)
        assert max(recorder.asked.values()) == 2

    asyncio.run(asyncio.wait_for(run(), 20))


def test_warming_up_calls_no_function_of_the_user_and_no_endpoint() -> None:
    recorder = Recorder()
    recorder.name = "python:mine:entail"

    async def run() -> None:
        async with scorer(metrics="faithfulness", entailer=recorder) as opened:
            await opened.warm_up()
        assert not recorder.asked

    asyncio.run(asyncio.wait_for(run(), 20))

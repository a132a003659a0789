"""Whole runs: the same bytes whatever the concurrency, failures alone, and a bounded window."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import (
    YES,
    Probe,
    Recorder,
    lines,
    record,
    records,
    repeats,
    results,
    summary_of,
)
from trustassay import Sample, score
from trustassay.core.capabilities import BatchLimits, ChatRequest, EndpointLimits, Models, Reply
from trustassay.core.metric import Assessment
from trustassay.errors import AssessmentError, BackendError
from trustassay.runs.folder import RunFolder

Ask = Callable[[Sample, Models], Any]


def judge_by_text(premise: str, hypothesis: str) -> Sequence[float]:
    """Probabilities that depend on the pair alone, and failures of some pairs."""
    if "number 13" in f"{premise} {hypothesis}".lower():
        raise RuntimeError("unlucky")
    share = random.Random(premise + hypothesis).random()
    return share, (1 - share) / 2, (1 - share) / 2


# ---- determinism ----


@pytest.mark.parametrize("concurrency", [7, 256])
def test_concurrency_changes_no_byte(tmp_path: Path, concurrency: int) -> None:
    golds = [record(i, answers=[[f"{i}"], ["red"]]) for i in range(40)]
    folders = []
    for n in (1, concurrency):
        folders.append(tmp_path / f"c{n}")
        entailer = Recorder(judge_by_text, limits=BatchLimits(items=3, tokens=64))
        score(golds, metrics=["grounding"], entailer=entailer, out=folders[-1], samples_at_once=n)
    assert results(folders[0]) == results(folders[1])
    assert summary_of(folders[0])["metrics"]["grounding"]["failed"] == 1


def test_the_seed_changes_intervals_and_nothing_else(tmp_path: Path) -> None:
    summaries = []
    for seed in (0, 1):
        folder = tmp_path / str(seed)
        score(records(20), metrics=["grounding"], entailer="lexical", out=folder, seed=seed)
        summaries.append(summary_of(folder)["metrics"]["grounding"])
    assert summaries[0]["values"] == summaries[1]["values"]
    assert len({(tmp_path / f"{s}" / "assessments.jsonl").read_bytes() for s in (0, 1)}) == 1


def test_assessments_stand_in_input_order_metric_by_metric(
    tmp_path: Path, probe_installed: Path
) -> None:
    async def later(sample: Sample, models: Models) -> float:
        for _ in range(random.Random(sample.id).randrange(20)):
            await asyncio.sleep(0)
        return 0.5

    out = tmp_path / "run"
    score(records(30), metrics=[Probe(later), "grounding"], out=out)
    found = [(line["id"], line["metric"]) for line in lines(out / "assessments.jsonl")]
    assert found == [(f"q{i}", name) for i in range(30) for name in ("probe", "grounding")]


# ---- asked once ----


def test_samples_share_their_questions_to_the_entailer() -> None:
    recorder = Recorder()
    same = [record(1) | {"id": f"q{i}"} for i in range(5)]
    run = score(same, metrics=["grounding"], entailer=recorder)
    assert set(recorder.asked.values()) == {1}
    counts = run.outcome.counts["entailment"]
    assert counts.requested == 5 * len(recorder.asked)
    assert counts.repeated == 4 * len(recorder.asked)
    assert counts.computed == len(recorder.asked)


def test_calls_in_the_summary_do_not_depend_on_who_answered(tmp_path: Path) -> None:
    score(records(3), metrics=["grounding"], entailer=Recorder(), out=tmp_path / "a")
    assert summary_of(tmp_path / "a")["calls"] == {"entailment": {"requests": 12, "stored": 12}}
    unstored = Recorder(stored=False)
    score(records(3), metrics=["grounding"], entailer=unstored, out=tmp_path / "b")
    assert summary_of(tmp_path / "b")["calls"] == {"entailment": {"requests": 12, "stored": 0}}


# ---- failures ----


def test_a_failing_pair_fails_its_own_sample_alone() -> None:
    run = score(records(20), metrics=["grounding"], entailer=Recorder(judge_by_text))
    errors = {a.id: a.error for a in run.assessments if a.error is not None}
    assert errors == {"q13": "recorder failed: RuntimeError: unlucky"}
    assert all(a.score is not None for a in run.assessments if a.id != "q13")
    assert run.summaries["grounding"].failed == 1
    assert run.summaries["grounding"].n == 20


@pytest.mark.parametrize(
    "row",
    [(float("nan"),) * 3, (2.0, -1.0, 0.0), (0.5, 0.1, 0.1), (1.0, 0.0), None, "yes"],
)
def test_what_is_no_probability_is_a_failed_sample(row: Any) -> None:
    run = score(records(2), metrics=["grounding"], entailer=lambda p, h: row)
    assert run.summaries["grounding"].failed == 2
    for assessment in run.assessments:
        assert assessment.score is None
        assert assessment.error
        assert "probabilit" in assessment.error


async def no_luck(sample: Sample, models: Models) -> float:
    raise AssessmentError("no luck today")


async def bug(sample: Sample, models: Models) -> float:
    return 1 / 0


async def deep(sample: Sample, models: Models) -> float:
    return await deep(sample, models)


async def nan(sample: Sample, models: Models) -> float:
    return float("nan")


async def beyond(sample: Sample, models: Models) -> float:
    return 7.0


async def text(sample: Sample, models: Models) -> Any:
    return "0.5"


async def numpy_numbers(sample: Sample, models: Models) -> Assessment:
    return Assessment(sample.id, "probe", 0.5, parts={"x": np.float32(1)})  # type: ignore[dict-item]


async def nan_part(sample: Sample, models: Models) -> Assessment:
    return Assessment(sample.id, "probe", 0.5, parts={"x": float("inf")})


async def text_part(sample: Sample, models: Models) -> Assessment:
    return Assessment(sample.id, "probe", 0.5, parts={"x": "one"})  # type: ignore[dict-item]


async def other_id(sample: Sample, models: Models) -> Assessment:
    return Assessment("somebody else", "probe", 0.5)


async def other_metric(sample: Sample, models: Models) -> Assessment:
    return Assessment(sample.id, "another", 0.5)


async def number_verdict(sample: Sample, models: Models) -> Assessment:
    return Assessment(sample.id, "probe", 0.5, verdict=3)  # type: ignore[arg-type]


async def odd_evidence(sample: Sample, models: Models) -> Assessment:
    return Assessment(sample.id, "probe", 0.5, evidence=[{"x": object()}])


async def cancels_itself(sample: Sample, models: Models) -> float:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (no_luck, "no luck today"),
        (bug, "ZeroDivisionError"),
        (deep, "RecursionError"),
        (nan, "nan"),
        (beyond, "7"),
        (text, "0.5"),
        (numpy_numbers, "float32"),
        (nan_part, "inf"),
        (text_part, "one"),
        (other_id, "somebody else"),
        (other_metric, "another"),
        (number_verdict, "verdict"),
        (odd_evidence, "object"),
        (cancels_itself, "CancelledError"),
    ],
)
def test_whatever_a_metric_does_wrong_is_a_failed_sample(
    tmp_path: Path, probe_installed: Path, ask: Ask, words: str
) -> None:
    async def wrong_for_one(sample: Sample, models: Models) -> Any:
        return await ask(sample, models) if sample.id == "q1" else 0.5

    out = tmp_path / "run"
    run = score(records(3), metrics=[Probe(wrong_for_one)], entailer="lexical", out=out)
    assert [a.score for a in run.assessments] == [0.5, None, 0.5]
    assert words in str(run.assessments[1].error)
    assert run.summary["probe"]["mean"] == 0.5
    assert run.summaries["probe"].failed == 1


def test_whole_numbers_and_absent_scores_are_fine(tmp_path: Path, probe_installed: Path) -> None:
    async def odd(sample: Sample, models: Models) -> Assessment:
        if sample.id == "q0":
            return Assessment(sample.id, "probe", 1, "v", "r", {"n": 3, "b": True}, [{"a": None}])
        return Assessment(sample.id, "probe", None, reason="nothing to say", parts={"m": 0.25})

    run = score(records(2), metrics=[Probe(odd)], entailer="lexical", out=tmp_path / "run")
    assert run.summaries["probe"].failed == 0
    frame = run.to_pandas()
    assert frame["parts.n"].tolist()[0] == 3
    assert run.assessments[1].reason == "nothing to say"


def test_a_request_given_up_by_one_sample_is_answered_to_another(probe_installed: Path) -> None:
    async def impatient(sample: Sample, models: Models) -> float:
        request = asyncio.ensure_future(models.entail("same", "pair"))
        if sample.id == "q0":
            request.cancel()
            return 0.0
        return (await request).entailment

    run = score(records(3), metrics=[Probe(impatient)], entailer=Recorder())
    assert [a.score for a in run.assessments] == [0.0, 1.0, 1.0]


def test_errors_that_nobody_awaits_make_no_noise(
    probe_installed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def first_of_many(sample: Sample, models: Models) -> float:
        asked = [models.entail(f"{sample.id} {i}", "x") for i in range(4)]
        return float((await asked[0]).entailment)

    def judge(premise: str, hypothesis: str) -> Sequence[float]:
        raise BackendError("out of order")

    run = score(records(5), metrics=[Probe(first_of_many)], entailer=Recorder(judge))
    assert run.summaries["probe"].failed == 5
    del run
    assert caplog.records == []


def test_errors_that_no_file_can_hold_are_written_all_the_same(tmp_path: Path) -> None:
    def judge(premise: str, hypothesis: str) -> Sequence[float]:
        raise ValueError("\ud800 \x00 \x1b[31m")

    run = score(records(1), metrics=["grounding"], entailer=Recorder(judge), out=tmp_path / "run")
    assert run.summaries["grounding"].failed == 1
    assert run.to_pandas()["error"][0].startswith("recorder failed: ValueError:")


# ---- the window ----


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 5])
def test_no_more_samples_are_in_flight_than_allowed(
    probe_installed: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    flying, most, read, finished, ahead = set(), 0, 0, 0, 0
    samples_of = RunFolder.samples

    def counted(folder: RunFolder) -> Iterator[Sample]:
        nonlocal read, ahead
        for sample in samples_of(folder):
            read += 1
            ahead = max(ahead, read - finished)
            yield sample

    async def flight(sample: Sample, models: Models) -> float:
        nonlocal most, finished
        flying.add(sample.id)
        most = max(most, len(flying))
        found = await models.entail(sample.id, "x")
        flying.discard(sample.id)
        finished += 1
        return found.entailment

    monkeypatch.setattr(RunFolder, "samples", counted)
    many = ({"id": f"{i}", "question": "q"} for i in range(2_000))
    recorder = Recorder(stored=False)
    run = score(many, metrics=[Probe(flight)], entailer=recorder, samples_at_once=concurrency)
    assert len(run.assessments) == 2_000
    assert most == concurrency
    assert ahead <= concurrency + 2
    assert max(map(len, recorder.batches)) == concurrency


@pytest.mark.slow
def test_samples_from_a_generator_are_streamed(probe_installed: Path) -> None:
    alive, most, n = 0, 0, repeats(6_000)

    class Row(dict[str, Any]):
        def __init__(self, i: int) -> None:
            nonlocal alive, most
            super().__init__(id=f"{i}", question="q")
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    async def one(sample: Sample, models: Models) -> float:
        return 1.0

    run = score((Row(i) for i in range(n)), metrics=[Probe(one)], entailer="lexical")
    assert len(run.assessments) == n
    assert most < 10


# ---- options ----


@pytest.mark.parametrize(
    "options",
    [{"samples_at_once": 0}, {"samples_at_once": -1}, {"seed": -1}, {"limit": 0}, {"limit": -3}],
)
def test_senseless_options_are_refused_before_anything_starts(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    recorder = Recorder()
    with pytest.raises(ValueError, match=next(iter(options))):
        score(records(1), metrics=["grounding"], entailer=recorder, out=tmp_path / "x", **options)
    assert not recorder.batches
    assert not (tmp_path / "x").exists()


@dataclass(frozen=True)
class Listing(Probe):
    """Has options that JSON writes otherwise, or cannot write at all."""

    several: tuple[str, ...] = ("a", "b")
    callback: Callable[[str], object] | None = None


class Callback:
    def __call__(self, value: str) -> object:
        return value


@pytest.mark.parametrize("callback", [None, str.lower, Callback()])
def test_a_run_whose_options_are_no_json_goes_on_all_the_same(
    tmp_path: Path, probe_installed: Path, callback: Callable[[str], object] | None
) -> None:
    metric = Listing(several=("x", "y"), callback=callback)
    for _ in range(2):
        run = score(records(2), metrics=[metric], entailer=Recorder(), out=tmp_path / "run")
    assert run.outcome.scored_before == 2
    stored = json.loads((tmp_path / "run" / "run.json").read_bytes())["metrics"]["probe"]
    assert stored["several"] == ["x", "y"]


def test_a_kill_leaves_sorted_results_the_same(tmp_path: Path) -> None:
    """Replies that pass through the store and fresh ones are the same to the last digit."""

    def thirds(premise: str, hypothesis: str) -> Sequence[float]:
        return 1 / 3 + 1e-9, 1 / 3, 1 / 3

    for folder in ("a", "b"):
        score(records(3), metrics=["grounding"], entailer=Recorder(thirds), out=tmp_path / folder)
    (tmp_path / "b" / "assessments.jsonl").unlink()
    again = Recorder(thirds)
    score(records(3), metrics=["grounding"], entailer=again, out=tmp_path / "b")
    assert not again.batches
    assert results(tmp_path / "a") == results(tmp_path / "b")


def test_a_yes_from_the_entailer_is_a_full_score() -> None:
    run = score(records(2), metrics=["grounding"], entailer=Recorder(lambda p, h: YES))
    assert [a.score for a in run.assessments] == [1.0, 1.0]


@dataclass
class Counting:
    """A chat model that counts the calls that are under way at once."""

    name: str = "openai:m@http://h/v1"
    limits: EndpointLimits = field(default_factory=lambda: EndpointLimits(concurrency=400))
    under_way: int = 0
    most: int = 0

    async def reply(self, request: ChatRequest) -> Reply:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(1.0)  # others begin meanwhile
        self.under_way -= 1
        return Reply("1")


@pytest.mark.slow
def test_the_window_lets_an_endpoint_have_as_many_calls_as_it_takes(
    probe_installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def asks(sample: Sample, models: Models) -> float:
        return float((await models.chat(sample.question)).text)

    many = [{"id": f"{i}", "question": f"{i}", "response": "r"} for i in range(1200)]
    model = Counting()
    score(many, metrics=[Probe(asks)], model=model, cache=None)
    assert model.most == 400
    model = Counting()
    score(
        many[:300],
        metrics=[Probe(asks)],
        model=model,
        cache=None,
        samples_at_once=50,
        progress=True,
    )
    assert model.most == 50
    assert "50 overrides the larger concurrency=400 of openai:m" in capsys.readouterr().err

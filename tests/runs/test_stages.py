"""The stage before scoring: order, how far ahead is asked, failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import jsonl
from tests.support import lines as read_lines
from trustassay import score
from trustassay.backends import resolve
from trustassay.calls.backends import Backends
from trustassay.calls.client import Client, SampleModels
from trustassay.core.capabilities import Reply
from trustassay.core.sample import Document, Sample
from trustassay.errors import UsageError
from trustassay.metrics.fewl import Fewl
from trustassay.runs.answering import Answering
from trustassay.runs.execute import fill_samples
from trustassay.runs.fill import (
    FilledSample,
    FillOptions,
    FillOutcome,
    ResponseStage,
    choose_stages,
    collect_stage_settings,
    fill_in_order,
)
from trustassay.runs.folder import RunFolder

Function = Callable[[str], Any]


class FewlOfAnotherName(Fewl):
    name = "fewl_again"


Work = Callable[[Client], Coroutine[Any, Any, Any]]


async def with_model(function: Function, work: Work) -> Any:
    gatherers = Client(Backends.of(chat={"model": resolve.chat(function)}))
    try:
        return await work(gatherers)
    finally:
        await gatherers.close()


def responses(gatherers: Client, style: str = "closed-book", repeat: int = 0) -> ResponseStage:
    return ResponseStage(Answering(style), repeat)


def models(gatherers: Client) -> SampleModels:
    return SampleModels(gatherers)


def told(
    function: Function, samples: Sequence[Sample], style: str = "closed-book", repeats: int = 1
) -> list[FilledSample]:
    async def work(gatherers: Client) -> list[FilledSample]:
        todo = (
            (sample, [responses(gatherers, style, repeat)], repeat)
            for sample in samples
            for repeat in range(1 if sample.answered else repeats)
        )
        return [one async for one in fill_in_order(todo, models(gatherers), 8)]

    result: list[FilledSample] = asyncio.run(with_model(function, work))
    return result


def why(found: FilledSample) -> str | None:
    failure = found.failures.get("response")
    return failure and failure.error


def questions(n: int) -> list[Sample]:
    return [Sample(f"q{i}", f"number {i}?") for i in range(n)]


async def number(prompt: str) -> str:
    """Reply with the last number of the prompt, later to smaller ones."""
    found = int(prompt.rsplit("number ", 1)[1].split("?", maxsplit=1)[0])
    await asyncio.sleep(0.01 / (1 + found))
    if found == 3:
        raise ValueError("three")
    return f" {found} \n"


def test_samples_come_in_their_order_with_responses_or_reasons() -> None:
    samples = [*questions(5), Sample("own", "?", response="mine", model="me")]
    found = told(number, samples)
    assert [one.sample.id for one in found] == ["q0", "q1", "q2", "q3", "q4", "own"]
    assert [one.sample.response for one in found] == ["0", "1", "2", None, "4", "mine"]
    name = resolve.chat(number).name
    assert [one.sample.model for one in found] == [*([name] * 3), None, name, "me"]
    assert [one.calls["response"] for one in found] == [1, 1, 1, 0, 1, 0]
    assert "three" in str(why(found[3]))
    assert [why(one) for one in found if one.sample.id != "q3"] == [None] * 5


def test_a_question_that_lacks_documents_keeps_its_place_and_is_not_asked() -> None:
    asked: list[str] = []

    def function(prompt: str) -> str:
        asked.append(prompt)
        return "x"

    passages = (Document("d", "A passage.", "A title"),)
    samples = [
        Sample("a", "number 1?", documents=passages),
        Sample("b", "number 2?"),
        Sample("c", "number 3?", documents=passages),
    ]
    found = told(function, samples, "rag")
    assert [one.sample.id for one in found] == ["a", "b", "c"]
    assert "documents" in str(why(found[1]))
    assert len(asked) == 2


def test_a_sample_that_names_its_model_keeps_the_name() -> None:
    (one,) = told(lambda _: "x", [Sample("a", "?", model="theirs")])
    assert (one.sample.response, one.sample.model) == ("x", "theirs")


def test_repeats_are_asked_one_by_one_and_stand_together() -> None:
    count = iter(range(100))
    samples = [*questions(2), Sample("own", "?", response="mine")]
    found = told(lambda _: str(next(count)), samples, repeats=3)
    places = [(one.sample.id, one.repeat) for one in found]
    assert places == [*(("q0", i) for i in range(3)), *(("q1", i) for i in range(3)), ("own", 0)]
    assert sorted(str(one.sample.response) for one in found[:6]) == list("012345")


def test_a_slow_answer_does_not_hold_up_the_others() -> None:
    answered: list[str] = []

    async def slow_first(prompt: str) -> str:
        if "number 0?" in prompt:
            while len(answered) < 99:
                await asyncio.sleep(0)
        answered.append(prompt)
        return "ok"

    found = told(slow_first, questions(100))
    assert [one.sample.id for one in found] == [one.id for one in questions(100)]
    assert "number 0?" in answered[-1]


def test_a_slow_answer_does_not_have_the_whole_input_read() -> None:
    async def work(gatherers: Client) -> int:
        read = 0

        def samples() -> Any:
            nonlocal read
            for sample in questions(500):
                read += 1
                yield sample, [responses(gatherers)], 0

        stream = fill_in_order(samples(), models(gatherers), 8)
        task = asyncio.ensure_future(anext(stream))
        async with asyncio.timeout(60):
            while read < 8:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return read

    async def never(prompt: str) -> str:
        await asyncio.Event().wait()
        return ""

    assert asyncio.run(with_model(never, work)) == 8


def stored(folder: RunFolder, function: Function) -> FillOutcome:
    async def work(gatherers: Client) -> FillOutcome:
        stages = [responses(gatherers)]
        return await fill_samples(folder, stages, gatherers, 4, lambda: None)

    result: FillOutcome = asyncio.run(with_model(function, work))
    return result


def test_answers_are_written_into_the_runs_samples(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    jsonl(folder.samples_path, [sample.to_dict() for sample in questions(5)])
    found = stored(folder, number)
    assert (found.calls["response"], list(found.failed)) == (4, [("q3", "response")])
    assert found.failed["q3", "response"].error.startswith("no response: ")
    written = read_lines(folder.samples_path)
    assert [one.get("response") for one in written] == ["0", "1", "2", None, "4"]
    again = stored(folder, lambda _: Reply("cut", finish="length"))
    assert (again.calls["response"], again.failed) == (1, {})
    written = read_lines(folder.samples_path)
    assert written[3]["response"] == "cut"
    assert [one.get("response_cut") for one in written] == [None, None, None, True, None]


def test_a_blank_response_is_asked_for_and_belongs_to_who_answered(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    samples = [Sample("a", "q", response=" \u200b\n", model="old", metadata={"response_cut": True})]
    jsonl(folder.samples_path, [sample.to_dict() for sample in samples])
    assert stored(folder, lambda _: "new").calls["response"] == 1
    (written,) = read_lines(folder.samples_path)
    assert written["response"] == "new"
    assert written["model"] != "old"
    assert "response_cut" not in written


def test_interrupted_the_samples_stay_as_they_were(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    jsonl(folder.samples_path, [sample.to_dict() for sample in questions(40)])
    before = folder.samples_path.read_bytes()

    def step() -> None:
        raise_in[0].cancel()

    raise_in: list[asyncio.Task[Any]] = []

    async def work(gatherers: Client) -> FillOutcome:
        task = asyncio.current_task()
        assert task
        raise_in.append(task)
        return await fill_samples(folder, [responses(gatherers)], gatherers, 4, step)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(with_model(lambda _: "x", work))
    assert folder.samples_path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["samples.jsonl"]


def test_templates_of_a_metric_ask_for_pairs_and_for_several_answers(tmp_path: Path) -> None:
    (tmp_path / "pairs.jinja").write_text("PAIRS {{ pairs }}: {{ question }}")
    (tmp_path / "several.jinja").write_text("ANSWERS {{ answers }}: {{ question }}")
    requests: list[str] = []

    def model(prompt: str) -> str:
        requests.append(prompt)
        if prompt.startswith("PAIRS"):
            return "1. Wrong Answer: Rome\n1. Non-Wrong Answer: Not Rome but Paris"
        return "1. Paris\n2. In Paris"

    metric = Fewl(
        pairs=7,
        answers=2,
        penalty="none",
        pairs_prompt=str(tmp_path / "pairs.jinja"),
        answers_prompt=str(tmp_path / "several.jinja"),
    )
    run = score(
        [{"id": "q", "question": "Where?", "response": "Paris"}],
        metrics=metric,
        references={"one": model},
        generator=model,
        similarity=lambda first, second: float(first == second),
        cache=None,
    )
    assert sorted(requests) == ["ANSWERS 2: Where?", "PAIRS 7: Where?"]
    assert run.assessments[0].parts["references"] == 2
    assert run.assessments[0].parts["pairs"] == 1


def test_metrics_with_different_templates_need_runs_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "pairs.jinja").write_text("{{ question }}")
    other = FewlOfAnotherName(pairs_prompt=str(tmp_path / "pairs.jinja"))
    backends = Backends.of(chat={"generator": resolve.chat(lambda _: "x")})
    with pytest.raises(UsageError, match=r"25 wrong_answers per call with the prompt .*pairs\.j"):
        choose_stages([Fewl(), other], backends, FillOptions())
    # Without the option the settings are those of runs of earlier versions.
    stages = choose_stages([Fewl()], backends, FillOptions())
    assert collect_stage_settings(stages)["wrong_answers"]["prompt"] == "wrong-answers/1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"answers_prompt": "a.jinja"}, "answers_prompt: applies to several answers"),
        ({"pairs_prompt": "a.jinja", "weights": "uniform"}, "weights=uniform asks for no pairs"),
    ],
)
def test_a_template_that_would_not_be_used_is_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Fewl(**options)

"""Replies that are asked for: until the verdict is known, and to perturbed prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trustassay import score
from trustassay.api import plan, rescore
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.core.registry import metric_from_text
from trustassay.core.testing import ScriptedChat, ScriptedEntailer
from trustassay.errors import CallError, UsageError
from trustassay.metrics.harmonicity import Harmonicity
from trustassay.metrics.uncertainty import Uncertainty
from trustassay.statistics.sequential import decide_sides

SAMPLE = {
    "id": "q",
    "question": "What is the capital of Australia?",
    "response": "Canberra is the capital. It was once Sydney.",
}
AUTO = "uncertainty:samples=auto,alternatives=-1"


def judge(premise: str, hypothesis: str) -> tuple[float, float, float]:
    """Return other numbers for each pair of texts, the same in any order of the pairs."""
    rng = np.random.default_rng([*premise.encode(), 0, *hypothesis.encode()])
    entailed, neutral, contradicted = rng.dirichlet([0.3, 0.3, 0.3])
    return entailed, neutral, contradicted


def always(entailed: float) -> ScriptedEntailer:
    return ScriptedEntailer(lambda *_: (entailed, 0.0, 1 - entailed))


def by_number(texts: Sequence[str]) -> Callable[[ChatRequest], Reply]:
    """Answer the repeat number n of a question with the text n - 1; an empty one fails."""

    def answer(request: ChatRequest) -> Reply:
        text = texts[(request.repeat - 1) % len(texts)]
        if not text:
            raise CallError("the reply is empty", "empty")
        return Reply(text, "stop", 9, 2)

    return answer


def run(texts: Sequence[str], metric: str = AUTO, **options: Any) -> tuple[Any, ScriptedChat]:
    model = ScriptedChat(by_number(texts))
    chosen = {"entailer": always(0.0), "cache": None} | options
    return score([SAMPLE], metrics=[metric_from_text(metric)], model=model, **chosen), model


def different(n: int, seed: int = 0) -> list[str]:
    return [f"Reply {seed}-{i}." for i in range(n)]


@pytest.mark.parametrize(("entailed", "verdict"), [(0.0, "doubtful"), (1.0, "sure")])
def test_asking_stops_when_the_verdict_is_known(
    entailed: float, verdict: str, tmp_path: Path
) -> None:
    result, model = run(different(20), entailer=always(entailed), out=tmp_path / "run")
    found = result.assessments[0]
    assert found.verdict == verdict
    assert [one.repeat for one in model.requests] == [1, 2, 3, 4, 5]
    assert (found.parts["asked"], found.parts["undecided"], found.parts["replies"]) == (5, 0, 5)
    stop = {"kind": "stop", "asked": 5, "most": 20, "why": "confident"}
    assert [row for row in found.evidence if row["kind"] == "stop"] == [stop]
    assert found.reason.endswith(" (5 of at most 20 replies asked for)")
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "5 of at most 20 replies were asked for: the verdict is known with the" in page


def test_what_is_asked_is_the_beginning_of_a_fixed_run() -> None:
    _, few = run(different(20))
    _, all_ = run(different(20), "uncertainty:samples=20,alternatives=-1")
    assert few.requests == all_.requests[: len(few.requests)]
    assert len(all_.requests) == 20


def test_all_are_asked_where_the_verdict_stays_open() -> None:
    even = ScriptedEntailer(lambda premise, _: (0.5, 0.0, 0.5) if premise else (0, 1, 0))
    result, model = run(different(12), f"{AUTO},most=12", entailer=even)
    assert len(model.requests) == 12
    assert result.assessments[0].parts["undecided"] == 1
    assert result.assessments[0].evidence[-1]["why"] == "most"
    values = result.summary["uncertainty"]
    assert (values["asked"], values["undecided"]) == (12, 1)


def test_with_certainty_asking_goes_on_until_nothing_can_change() -> None:
    result, model = run(different(10), f"{AUTO},most=10,confidence=1")
    assert len(model.requests) == 6  # five of ten at 1 are on the line, and rounding may decide
    assert result.assessments[0].evidence[-1]["why"] == "certain"


@pytest.mark.parametrize("part", ["selfcheck_nli", "disagreement"])
@pytest.mark.parametrize("seed", range(4))
def test_the_values_are_the_scores_of_replies_alone(part: str, seed: int) -> None:
    texts = different(12, seed)
    settings = f"most=12,least=2,score={part},confidence=0.7,doubtful_from=0.4"
    result, _ = run(texts, f"{AUTO},{settings}", entailer=ScriptedEntailer(judge))
    metric = Uncertainty(parts="sentences", score=part)
    rows = [
        {**SAMPLE, "id": str(place), "resamples": [text, text]} for place, text in enumerate(texts)
    ]
    each = score(rows, metrics=[metric], entailer=ScriptedEntailer(judge), cache=None)
    alone = [one.score or 0.0 for one in each.assessments]
    told = decide_sides(alone, 0.4, 12, 0.7)
    told[0] = 0
    asked = int((told != 0).argmax()) + 1 if told.any() else 12
    found = result.assessments[0]
    assert found.parts["asked"] == asked
    assert found.score == pytest.approx(np.mean(alone[:asked]))


def test_equal_replies_have_one_value_and_count_as_often() -> None:
    result, _ = run(["Sydney", "sydney.", " SYDNEY"])
    assert result.assessments[0].parts["different"] == 1
    assert result.assessments[0].parts["asked"] == 5


def test_empty_replies_move_nothing_and_are_not_enough_to_stop() -> None:
    result, model = run(["", "", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"])
    found = result.assessments[0]
    # five replies decide if none is empty; the two empty ones neither help nor hinder
    assert len(model.requests) == found.parts["asked"] == 7
    assert (found.parts["replies"], found.parts["empty"]) == (5, 2)
    lost, model = run(["", "", "a"], f"{AUTO},most=9")
    assert "6 of 9 replies are blank" in (lost.assessments[0].error or "")
    assert len(model.requests) == 9


def test_recorded_replies_are_not_cut() -> None:
    sample = {**SAMPLE, "resamples": different(9)}
    result = score([sample], metrics=[metric_from_text(AUTO)], entailer=always(0.0), cache=None)
    assert result.assessments[0].parts["replies"] == 9
    assert "asked" not in result.assessments[0].parts
    assert result.summary["uncertainty"]["asked"] is None


def test_an_answer_that_claims_nothing_costs_the_first_replies_alone() -> None:
    model = ScriptedChat(by_number(different(20)))
    sample = {**SAMPLE, "response": "What do you mean?"}
    result = score(
        [sample], metrics=[metric_from_text(AUTO)], model=model, entailer=always(0.0), cache=None
    )
    assert result.assessments[0].score is None
    assert len(model.requests) == 5


@pytest.mark.parametrize(("alternatives", "calls"), [(-1, 20), (5, 21)])
def test_the_plan_counts_the_most_and_the_call_for_tokens(alternatives: int, calls: int) -> None:
    metric = metric_from_text(f"uncertainty:samples=auto,alternatives={alternatives}")
    options: dict[str, Any] = {"metrics": [metric], "entailer": always(0.0)}
    counted = plan([SAMPLE], model=ScriptedChat(by_number(different(20))), **options)
    assert sum(one.calls for one in counted.parts if one.capability == "chat") == calls
    assert not counted.unsure


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "score=weakest_sentence",
            r"samples: auto needs a score that is a mean over replies .self",
        ),
        ("parts=meanings", "auto needs .*, got semantic_sets"),
        ("least=1", "least: expected 2 or more, got 1"),
        ("most=2", "most: expected 3 or more, got 2"),
        ("confidence=0", "confidence: expected a number above 0 and up to 1"),
        ("replies=others", "unknown value of replies 'others'"),
    ],
)
def test_what_auto_cannot_promise_is_refused(settings: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        metric_from_text(f"uncertainty:samples=auto,{settings}")


def test_a_number_of_samples_or_auto() -> None:
    with pytest.raises(UsageError, match=r"samples: expected a whole number or auto, got 'many'"):
        metric_from_text("uncertainty:samples=many")
    wrong: Any = "many"
    with pytest.raises(UsageError, match=r"samples: expected a whole number or auto, got 'many'"):
        Uncertainty(samples=wrong)


def by_prompt(request: ChatRequest) -> Reply:
    """Answer each prompt differently, and the question itself like the sample."""
    asked = request.messages[-1].content
    plain = asked == SAMPLE["question"]
    return Reply(SAMPLE["response"] if plain else f"Reply to {asked!r}.", "stop", len(asked), 2)


@pytest.mark.parametrize(("samples", "more"), [("10", 0), ("4", 0), ("12", 2), ("auto", 0)])
def test_replies_that_harmonicity_asked_for_are_read_again(samples: str, more: int) -> None:
    model = ScriptedChat(by_prompt)
    metric = metric_from_text(f"uncertainty:replies=perturbed,alternatives=-1,samples={samples}")
    metrics = [Harmonicity(), metric]
    score([SAMPLE], metrics=metrics, model=model, entailer=always(0.0), cache=None)
    assert len(model.requests) == 11 + more
    assert {one.temperature for one in model.requests} == {0.0}


def test_a_run_of_harmonicity_is_scored_again_without_a_call(tmp_path: Path) -> None:
    model = ScriptedChat(by_prompt)
    options: Mapping[str, Any] = {"model": model, "out": tmp_path / "run"}
    score([SAMPLE], metrics=[Harmonicity()], **options)
    asked = len(model.requests)
    result = rescore(
        tmp_path / "run",
        metrics=[Uncertainty(replies="perturbed", samples=10, alternatives=-1)],
        out=tmp_path / "again",
        entailer=always(0.0),
        model=model,
    )
    assert len(model.requests) == asked
    assert result.assessments[0].parts["replies"] == 10

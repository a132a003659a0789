"""The contract of metrics: all that are built in keep it, and what breaks a rule of it is found."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from tests.metrics.consistency import helpers as consistency
from tests.metrics.trustscore import helpers as trustscore
from tests.support import metric_names
from trustassay.core.capabilities import ChatRequest
from trustassay.core.metric import Assessment, Context, Figure, Mean, Metric, Need, Share
from trustassay.core.registry import load_metric_class, metric_from_text
from trustassay.core.testing import (
    MetricContract,
    ScriptedChat,
    ScriptedEmbedder,
    ScriptedEntailer,
    ScriptedRetriever,
    ScriptedSimilarity,
)
from trustassay.errors import BackendError

RECORDS = [
    {
        "id": f"q{i}",
        "question": f"Where does lamp {i} stand?",
        "response": f"Lamp {i} stands in the red house [1]. It is {['old', 'new'][i % 2]} [1][2].",
        "answers": [["red house", "the red one"]],
        "documents": [f"Lamp {i} stands in the red house.", "It is old."],
        "references": {"one": f"Lamp {i} stands in the red house.", "two": "It is lost."},
        "wrong_answers": ["In the blue house."],
        "corrected_answers": ["In the red house."],
        "other_response": f"It is lamp {i}.",
    }
    for i in range(4)
]
STEPS = [
    {
        **{key: one[key] for key in ("id", "question", "response", "documents")},
        "steps": [
            {"user": "Hello"},
            {"assistant": "Hello. Lamp 9 stands in the blue house."},
            {"user": one["question"]},
            {"tool": "find", "arguments": {"lamp": "Lamp 7"}, "passages": [1], "error": ""},
            {"tool": "find", "arguments": None, "passages": [2], "error": "out of service"},
        ],
    }
    for one in RECORDS
]
PLAIN = [{key: one[key] for key in ("id", "question", "response")} for one in RECORDS]


def longer(request: ChatRequest) -> str:
    """Prefer the longer of two answers."""
    first, second = request.messages[0].content.split("Reply B ==", 1)
    return "A" if len(first.split("Reply A ==", 1)[1]) > len(second) else "B"


ENTAILER = {"entailer": ScriptedEntailer()}
CASES: Sequence[tuple[str, Sequence[Mapping[str, Any]], Mapping[str, Any]]] = (
    (
        "consistency:sources=given",
        [consistency.sample(i) for i in range(3)],
        {"model": consistency.Chooser()},
    ),
    ("factcheck", RECORDS, ENTAILER),
    ("factcheck:k=2", PLAIN, {**ENTAILER, "retriever": ScriptedRetriever("a red house", "b")}),
    ("factcheck:by=model", RECORDS, {"judge": ScriptedChat("SUPPORTS. Passage 1 says so.")}),
    ("faithfulness", RECORDS, ENTAILER),
    (
        "faithfulness:claims=model",
        RECORDS,
        {**ENTAILER, "judge": ScriptedChat("1. Lamp 1 stands in the red house.")},
    ),
    ("fewl", RECORDS, {"similarity": ScriptedSimilarity(), "embedder": ScriptedEmbedder()}),
    ("fewl:form=agreement,penalty=none", RECORDS, {"similarity": ScriptedSimilarity()}),
    ("grounding", RECORDS, ENTAILER),
    ("grounding:correctness=cm,invalid=imprecise", RECORDS, ENTAILER),
    ("harmonicity", PLAIN, {"model": ScriptedChat("Paris."), "embedder": ScriptedEmbedder()}),
    (
        "semantic_harmonicity",
        PLAIN,
        {"model": ScriptedChat({"0?": "Paris.", "": "Rome."}), **ENTAILER},
    ),
    ("judge", RECORDS, {"judge": ScriptedChat("Score: 4\nReason: it is in the red house.")}),
    ("judge:by=entailer", RECORDS, ENTAILER),
    ("pairwise", RECORDS, {"judge": ScriptedChat(longer)}),
    ("rag", RECORDS, ENTAILER),
    ("tool_use", STEPS, ENTAILER),
    ("reference:parts=em+token_f1+token_recall", RECORDS, {}),
    (
        "trustscore",
        [trustscore.sample(i) for i in range(2)],
        {k: v for k, v in trustscore.who().items() if k != "cache"},
    ),
    (
        "uncertainty:samples=3",
        PLAIN,
        {"model": ScriptedChat(lambda one: f"In house {one.repeat}."), **ENTAILER},
    ),
    (
        "uncertainty:samples=auto,most=6",
        PLAIN,
        {"model": ScriptedChat(lambda one: f"In house {one.repeat}."), **ENTAILER},
    ),
)
REPLIES_DECIDE = {
    "faithfulness",
    "faithfulness:claims=model",
    "grounding",
    "grounding:correctness=cm,invalid=imprecise",
    "harmonicity",
    "rag",
    "semantic_harmonicity",
    "tool_use",
    "uncertainty:samples=3",
    "uncertainty:samples=auto,most=6",
}
"""What these ask depends on earlier replies, or equal replies spare them calls."""


class _Case(MetricContract):
    def __init__(self, text: str | Metric, samples: Any = RECORDS, backends: Any = None) -> None:
        self.metric = metric_from_text(text) if isinstance(text, str) else text
        self.samples, self.backends = samples, backends or {}
        self.plan_is_exact = text not in REPLIES_DECIDE


RULES = sorted(name for name in vars(MetricContract) if name.startswith("test_"))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_what_is_built_in_keeps_the_contract(case: Any, rule: str) -> None:
    if rule == "test_a_worker_process_gets_the_same_metric":  # one process, below, is enough
        metric = _Case(*case).metric
        _Case(*case).run()
        assert pickle.loads(pickle.dumps(metric)) == metric
        return
    getattr(_Case(*case), rule)()


def test_every_metric_of_this_package_is_among_the_cases() -> None:
    own = {
        name
        for name in metric_names()
        if load_metric_class(name).__module__.startswith("trustassay.")
    }
    assert {text.partition(":")[0] for text, *_ in CASES} == own


def test_a_metric_reaches_another_process_after_its_use() -> None:
    case = _Case(*CASES[0])
    case.test_a_worker_process_gets_the_same_metric()


# What breaks a rule ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Echo(Metric):
    """How much of the answer only repeats the question? Keeps the contract."""

    name: ClassVar[str] = "echo"
    title: ClassVar[str] = "Answers that repeat the question"
    verdicts: ClassVar[Sequence[str]] = ("new", "echo")
    figures: ClassVar[Mapping[str, Figure]] = {
        "mean": Figure("mean", "mean likeness", "", headline=True, statistic=Mean()),
        "echo": Figure("echo", "answers that repeat the question", statistic=Share("echo")),
    }

    threshold: float = 0.9

    def needs(self) -> Sequence[Need]:
        return [Need("compare")]

    async def assess(self, context: Context) -> Assessment:
        sample = context.sample
        score = await context.models.compare(sample.response or "", sample.question)
        return self.told(sample.id, min(max(score, 0.0), 1.0))

    def told(self, name: str, score: float, **others: Any) -> Assessment:
        verdict = "echo" if score >= self.threshold else "new"
        return Assessment(name, self.name, score, verdict=verdict, **others)


BACKENDS = {"similarity": ScriptedSimilarity()}


@pytest.mark.parametrize("rule", RULES)
def test_a_metric_of_another_package_keeps_it(rule: str) -> None:
    getattr(_Case(Echo(), PLAIN, BACKENDS), rule)()


@dataclass(frozen=True)
class Pairs(Echo):
    places: tuple[int, ...] = (1, 2)


def unpicklable() -> Metric:
    @dataclass(frozen=True)
    class Local(Echo):
        pass

    return Local()


@dataclass(frozen=True)
class OffTheScale(Echo):
    async def assess(self, context: Context) -> Assessment:
        return self.told(context.sample.id, 7.0)


@dataclass(frozen=True)
class Undeclared(Echo):
    async def assess(self, context: Context) -> Assessment:
        return self.told(context.sample.id, 0.5, parts={"strange": 1.0})


@dataclass(frozen=True)
class AnotherVerdict(Echo):
    async def assess(self, context: Context) -> Assessment:
        return Assessment(context.sample.id, self.name, 0.5, verdict="perhaps")


@dataclass(frozen=True)
class NoJson(Echo):
    async def assess(self, context: Context) -> Assessment:
        return self.told(context.sample.id, 0.5, evidence=[{"words": {"a", "b"}}])


@dataclass(frozen=True)
class NoView(Echo):
    def view(self, sample: Any, assessment: Assessment) -> Any:
        return assessment.evidence[0]


@dataclass(frozen=True)
class NoLine(Echo):
    line: ClassVar[str] = ""

    def problem(self, assessment: Assessment) -> str | None:
        return "it is bad"


@dataclass(frozen=True)
class Drawn(Echo):
    async def assess(self, context: Context) -> Assessment:
        return self.told(context.sample.id, random.random())


COUNT = itertools.count()


@dataclass(frozen=True)
class Counted(Echo):
    async def assess(self, context: Context) -> Assessment:
        return self.told(context.sample.id, 1 / (1 + next(COUNT)))


@dataclass(frozen=True)
class AsksAgain(Echo):
    async def assess(self, context: Context) -> Assessment:
        found = await super().assess(context)
        if found.score and found.score < 0.4:  # which a plan's stand-in is not
            await context.models.compare(context.sample.question, "once more")
        return found


@dataclass(frozen=True)
class Zero(Echo):
    async def assess(self, context: Context) -> Assessment:
        try:
            return await super().assess(context)
        except BackendError:
            return self.told(context.sample.id, 0.0)


@dataclass(frozen=True)
class Divides(Echo):
    async def assess(self, context: Context) -> Assessment:
        await super().assess(context)
        return self.told(context.sample.id, 1 / len((context.sample.response or "").split()))


@pytest.mark.parametrize(
    ("rule", "make", "words"),
    [
        ("options_survive_json", Pairs, "options change when written as JSON: .*places"),
        ("results_keep_the_contract", OffTheScale, "q0: echo: the score must lie between"),
        ("results_keep_the_contract", Undeclared, "part_directions lacks 'strange'"),
        ("results_keep_the_contract", AnotherVerdict, "'perhaps' is not in verdicts"),
        ("results_keep_the_contract", NoJson, "q0: echo failed: .*not JSON serializable"),
        ("results_keep_the_contract", NoLine, "returns a problem, but line is empty"),
        ("resumed_results_are_equal", Drawn, "the resumed run gives other results"),
        ("the_order_of_samples_changes_nothing", Counted, "depends on the order"),
        ("the_plan_counts_the_calls", AsksAgain, "planned: .*4.*, made: .*8"),
        (
            "a_failed_call_is_a_failed_sample",
            Zero,
            "q0: has the score 0.0 although its calls failed",
        ),
        ("empty_text_is_no_accident", Divides, "q0, '': echo failed: ZeroDivisionError"),
    ],
)
def test_a_broken_metric_is_found(rule: str, make: Callable[[], Metric], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        getattr(_Case(make(), PLAIN, BACKENDS), f"test_{rule}")()


@pytest.mark.parametrize(
    ("rule", "make"),
    [("results_keep_the_contract", NoView), ("a_worker_process_gets_the_same_metric", unpicklable)],
)
def test_one_that_raises_is_found(rule: str, make: Callable[[], Metric]) -> None:
    with pytest.raises((IndexError, AttributeError)):
        getattr(_Case(make(), PLAIN, BACKENDS), f"test_{rule}")()


def test_a_script_says_what_it_has_no_reply_to() -> None:
    chat = ScriptedChat({"Paris": "yes"})
    case = _Case("judge", PLAIN[:1], {"judge": chat})
    (one,) = case.run([{**RECORDS[0]}]).assessments
    assert one.error is not None and "the script has no reply to" in one.error
    assert len(chat.requests) == 1

import asyncio
import threading

import pytest

from tests.metrics.grounding.helpers import docs, item
from trustassay import score, scorer
from trustassay.core.metric import Metric
from trustassay.core.sample import Sample
from trustassay.errors import AssessmentError
from trustassay.metrics import Faithfulness, Grounding
from trustassay.text.limits import TextLimits
from trustassay.text.sentences import load_splitter

CITED = "The tower is tall [1]. " * 60
"""Longer than what is worked on in the event loop, and within all limits."""


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"response": "x" * 101}, "response: 101 characters"),
        ({"question": "x" * 101}, "question: 101 characters"),
        ({"answers": ["x" * 101]}, "a gold or reference answer: 101 characters"),
        ({"documents": ["x" * 600, "y" * 600]}, "passages: 1,200 characters"),
        ({"documents": ["x"] * 6}, "6 passages"),
    ],
)
def test_what_is_too_long(record: dict[str, object], words: str) -> None:
    sample = Sample.parse({"question": "q", "response": "r", **record})
    with pytest.raises(AssessmentError, match=f"too long to assess: {words}") as found:
        TextLimits(100).check(sample)
    assert found.value.kind == "too_long"
    TextLimits(200).check(sample)


def test_many_answers_to_compare_with_are_limited_together() -> None:
    resamples = [f"{n} {'x' * 900}" for n in range(12)]  # as of many perturbed prompts
    sample = Sample.parse({"question": "q", "response": "r", "resamples": resamples})
    with pytest.raises(AssessmentError, match="gold and reference answers: 10,826 characters"):
        TextLimits(1_000).check(sample)
    TextLimits(1_100).check(sample)


def test_the_outcome_is_counted_and_others_are_scored() -> None:
    long, many, short = "[1]" * 600_000, "A is [1]. " * 1_500, "A is d1 [1]."
    rows = [{**item(text, docs(1)), "id": str(n)} for n, text in enumerate((long, many, short))]
    run = score(rows, metrics=[Grounding(), Faithfulness()], entailer="lexical")
    for metric in ("grounding", "faithfulness"):
        found = [one for one in run.assessments if one.metric == metric]
        assert [one.fault for one in found] == ["too_long", "too_long", None]
    allowed = score(rows[1:], metrics=[Grounding()], entailer="lexical", longest_answer=200_000)
    assert [one.fault for one in allowed.assessments] == [None, None]


@pytest.mark.parametrize("metric", [Grounding, Faithfulness])
def test_a_long_text_is_not_worked_on_in_the_event_loop(
    metric: type[Metric], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = load_splitter("sentencex")
    where: dict[str, set[str]] = {"short": set(), "long": set()}
    kind = "short"

    def split(text: str) -> list[str]:
        where[kind].add(threading.current_thread().name)
        return kept(text)

    monkeypatch.setattr(metric, "split", staticmethod(split))

    async def run() -> None:
        nonlocal kind
        async with scorer(metrics=[metric()], entailer="lexical") as found:
            for length, text in (("short", "It is tall [1]."), ("long", CITED)):
                kind = length
                assay = await found.score(item(text, docs(1)))
                assert not assay.errors

    asyncio.run(run())
    assert where["short"] == {threading.current_thread().name}
    assert {name.split("_")[0] for name in where["long"]} == {"trustassay-text"}


def test_a_splitter_gets_a_long_text_in_parts_that_end_with_lines() -> None:
    text = "One line of it. Another.\n" * 1_000
    assert "".join(load_splitter("lines")(text)) == text.replace("\n", "")
    assert len(load_splitter("lines")(text)) == 1_000
    assert len(load_splitter("sentencex")(text)) == 2_000
    fences = "`a` " * 10_000
    assert "".join(load_splitter("sentencex")(fences)).split() == fences.split()

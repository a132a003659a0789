"""What becomes of each question: shares, weights, intervals, words; what each metric decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.metric import BLANK_RESPONSE, REFUSED_PART, Assessment, Metric
from trustassay.core.outcome import (
    BLANK,
    ERROR,
    FAILED,
    LANGUAGE_NOT_READ,
    MAX_REASONS,
    NO_CLAIM,
    NO_PASSAGES,
    NOT_ANSWERED,
    NOT_ASSESSABLE,
    NOT_SCORED,
    OTHER_REASONS,
    PASSED,
    REFUSED,
    REFUSED_RIGHTLY,
    REFUSED_WRONGLY,
    SCORED,
    TOO_LONG,
    WITH_LINE,
    Outcome,
    OutcomeCounter,
    OutcomeKind,
    Outcomes,
    compute_question_weights,
    round_percents,
)
from trustassay.judging.refusal import NO_ANSWER
from trustassay.metrics import (
    FactCheck,
    Faithfulness,
    Fewl,
    Grounding,
    Harmonicity,
    Judge,
    Rag,
    Reference,
    ToolUse,
    TrustScore,
    Uncertainty,
)
from trustassay.metrics.factcheck.metric import NO_EVIDENCE
from trustassay.metrics.pairwise.metric import Pairwise
from trustassay.statistics import Places
from trustassay.text.language import OTHER_LANGUAGE
from trustassay.text.limits import TOO_LONG as TOO_LONG_FAULT

WORDS: dict[OutcomeKind, str] = {
    PASSED: "supported",
    FAILED: "not supported",
    NOT_ANSWERED: "not answered",
    SCORED: "scored",
    NOT_SCORED: "not scored",
}


def counted(
    *outcomes: Outcome, questions: Any = None, units: Any = None, has_line: bool = True
) -> Outcomes:
    counter = OutcomeCounter("faithfulness", WORDS, has_line=has_line)
    for outcome in outcomes:
        counter.add(outcome)
    return counter.outcomes(as_places(questions), as_places(units))


def as_places(numbers: Any) -> Places | None:
    return None if numbers is None else np.array(numbers, dtype=np.int64)


def percents(outcomes: Outcomes) -> list[float]:
    return [share.percent for share in outcomes.shares.values()]


GOOD, BAD, SILENT = Outcome(PASSED), Outcome(FAILED), Outcome(NOT_ANSWERED, REFUSED)


# Shares


@given(st.lists(st.tuples(st.sampled_from(WITH_LINE), st.integers(-1, 5)), min_size=1))
def test_the_shares_add_up_to_100(answers: list[tuple[OutcomeKind, int]]) -> None:
    outcomes = counted(*(Outcome(kind) for kind, _ in answers), questions=[q for _, q in answers])
    assert sum(percents(outcomes)) == pytest.approx(100)
    assert sum(share.answers for share in outcomes.shares.values()) == len(answers)
    printed = round_percents(percents(outcomes))
    assert sum(printed) == 100
    assert all(abs(p - q) < 1 for p, q in zip(printed, percents(outcomes), strict=True))


@pytest.mark.parametrize(
    ("exact", "rounded"),
    [
        ([100 / 3] * 3, [33, 34, 33]),
        ([160 / 3, 115 / 3, 25 / 3], [53, 39, 8]),  # 32, 23 and 5 of 60
        ([12.5, 87.5, 0.0], [12, 88, 0]),
        ([0.4, 0.3, 99.3], [1, 0, 99]),
        ([99.6, 0.4, 0.0], [100, 0, 0]),
        ([0.0, 0.0, 0.0], [0, 0, 0]),
    ],
)
def test_printed_percentages_add_up_as_the_exact_ones(
    exact: list[float], rounded: list[int]
) -> None:
    assert round_percents(exact) == rounded


def test_copies_of_right_answers_do_not_raise_the_share() -> None:
    """Six of ten are right; each right answer under six ids made 36 of 40 of them."""
    questions = [*np.repeat(range(6), 6), *[-1] * 4]
    outcomes = counted(*[GOOD] * 36, *[BAD] * 4, questions=questions)
    assert outcomes.questions == 10 and outcomes.answers == 40
    assert percents(outcomes) == pytest.approx([60, 40, 0])
    assert percents(counted(*[GOOD] * 36, *[BAD] * 4)) == pytest.approx([90, 10, 0])


def test_the_shares_of_some_answers_are_those_that_they_have_alone() -> None:
    answers, questions, units = (
        [GOOD, BAD, SILENT, GOOD] * 20,
        [0, 0, 1, -1] * 20,
        [3, 3, 3, -1] * 20,
    )
    counter = OutcomeCounter("faithfulness", WORDS, has_line=True)
    for outcome in answers:
        counter.add(outcome)
    # Of question 0 only its 20 right answers are among them: they weigh one question.
    where = np.array([True, False, True, True] * 20)
    total, shares = counter.shares(as_places(questions), as_places(units), where)
    chosen = np.flatnonzero(where)
    alone = counted(
        *[answers[at] for at in chosen],
        questions=[questions[at] for at in chosen],
        units=[units[at] for at in chosen],
    )
    assert (total, shares) == (alone.questions, alone.shares)
    assert total == 22
    percents_here = [share.percent for share in shares.values()]
    assert percents_here == pytest.approx([2100 / 22, 0, 100 / 22])


def test_the_answers_to_a_question_share_its_weight() -> None:
    weights = compute_question_weights(np.array([0, 0, 0, -1, 5, 5, -1]), 7)
    assert weights.tolist() == pytest.approx([1 / 3] * 3 + [1] + [1 / 2] * 2 + [1])
    mixed = counted(GOOD, BAD, SILENT, GOOD, questions=[0, 0, 0, -1])
    assert percents(mixed) == pytest.approx([100 * (1 / 3 + 1) / 2, 100 / 6, 100 / 6])


# Intervals


def test_answers_of_one_unit_count_as_one_in_the_interval() -> None:
    alone = counted(*[GOOD] * 15, *[BAD] * 5)
    units = np.repeat(range(20), 3)
    three_each = counted(*[GOOD] * 45, *[BAD] * 15, units=units)
    assert percents(three_each) == percents(alone) == pytest.approx([75, 25, 0])
    for kind in WITH_LINE:
        assert three_each.shares[kind].interval == pytest.approx(alone.shares[kind].interval)
    independent = counted(*[GOOD] * 45, *[BAD] * 15).passed
    assert independent and independent.interval and alone.passed and alone.passed.interval
    assert independent.interval[0] > alone.passed.interval[0]


def test_too_few_questions_or_units_have_no_interval_and_say_why() -> None:
    few = counted(*[GOOD] * 19).passed
    assert few and few.interval is None
    assert few.without_interval == "too few questions: 19; at least 20 are needed"
    one_unit = counted(*[GOOD] * 40, units=[0] * 40).passed
    assert one_unit and one_unit.interval is None
    assert "too few independent units" in one_unit.without_interval
    assert counted().without.without_interval == "there are no questions"


# Words


def test_the_sentence_has_all_shares_of_all_questions() -> None:
    outcomes = counted(*[GOOD] * 30, *[BAD] * 6, *[SILENT] * 3, Outcome(NOT_ANSWERED, BLANK))
    assert outcomes.sentence.startswith("faithfulness: 75 % supported (95 % interval ")
    assert outcomes.sentence.endswith(" of 40 questions")
    assert outcomes.sentence.count(" to ") == 3
    assert outcomes.reasons_in_words == "not answered: refused (3), blank (1)"
    assert outcomes.lines == [outcomes.sentence, outcomes.reasons_in_words]
    assert outcomes.judged == 36
    assert counted().sentence == "faithfulness: no questions"
    alone = counted(GOOD)
    assert alone.lines == [
        "faithfulness: 100 % supported, 0 % not supported, 0 % not answered of 1 question"
    ]


def test_a_metric_without_a_line_counts_scored_and_not_scored() -> None:
    outcomes = counted(Outcome(SCORED), Outcome(NOT_SCORED, REFUSED), has_line=False)
    assert outcomes.sentence == "faithfulness: 50 % scored, 50 % not scored of 2 questions"
    assert outcomes.reasons_in_words == "not scored: refused (1)"
    assert outcomes.passed is outcomes.failed is outcomes.not_answered is None


def test_many_reasons_are_counted_together() -> None:
    outcomes = counted(*(Outcome(NOT_ANSWERED, f"reason {n}") for n in range(MAX_REASONS + 3)))
    assert len(outcomes.reasons) == MAX_REASONS + 1
    assert outcomes.reasons[OTHER_REASONS] == 3


def test_the_json_form_is_read_again() -> None:
    for outcomes in (
        counted(*[GOOD] * 30, SILENT),
        counted(GOOD, BAD),
        counted(Outcome(SCORED), has_line=False),
    ):
        assert Outcomes.from_dict("faithfulness", outcomes.to_dict()) == outcomes


# What each metric decides


def assessed(metric: Metric, score: float | None = None, verdict: str | None = None, **more: Any):  # type: ignore[no-untyped-def]
    return metric.outcome(Assessment("q", metric.name, score, verdict, **more))


FAITHFULNESS, GROUNDING = Faithfulness(), Grounding()


@pytest.mark.parametrize("metric", [FAITHFULNESS, GROUNDING, ToolUse(), Rag(), FactCheck()])
def test_every_metric_with_a_line_gives_the_same_reasons(metric: Metric) -> None:
    assert assessed(metric, error=BLANK_RESPONSE) == (NOT_ANSWERED, BLANK)
    assert assessed(metric, error="no reply") == (NOT_ANSWERED, ERROR)
    assert assessed(metric, error="long", fault=TOO_LONG_FAULT) == (NOT_ANSWERED, TOO_LONG)
    foreign = assessed(metric, parts={OTHER_LANGUAGE: 1.0})
    assert foreign == (NOT_ANSWERED, LANGUAGE_NOT_READ)


@pytest.mark.parametrize(
    ("score", "verdict", "expected"),
    [
        (1.0, "supported", (PASSED, "")),
        (0.5, "not found", (FAILED, "")),
        (0.5, "contradicted", (FAILED, "")),
        (None, "no claim", (NOT_ANSWERED, NO_CLAIM)),
        (None, "refused", (NOT_ANSWERED, REFUSED)),
        (None, None, (NOT_ANSWERED, NOT_ASSESSABLE)),
    ],
)
def test_faithfulness(score: float | None, verdict: str | None, expected: Outcome) -> None:
    assert assessed(FAITHFULNESS, score, verdict, parts={"statements": 2.0}) == expected


def test_faithfulness_without_passages() -> None:
    outcome = assessed(FAITHFULNESS, parts={"no_passages": 1.0})
    assert outcome == (NOT_ANSWERED, NO_PASSAGES)


SOUND = {"statements": 2.0, "supported_statements": 2.0, "citations": 1.0, "precise_citations": 1.0}


@pytest.mark.parametrize(
    ("score", "verdict", "parts", "expected"),
    [
        (0.5, "answered", SOUND, (PASSED, "")),
        (1.0, "answered", SOUND | {"supported_statements": 1.0}, (FAILED, "")),
        (1.0, "answered", SOUND | {"precise_citations": 0.0}, (FAILED, "")),
        (1.0, "refused", {}, (NOT_ANSWERED, REFUSED_RIGHTLY)),
        (0.0, "refused", {}, (NOT_ANSWERED, REFUSED_WRONGLY)),
        (None, "refused", {}, (NOT_ANSWERED, REFUSED)),
        (0.0, "refused", {"false_denials": 1.0}, (FAILED, "")),
        (0.0, "answered", {"blank": 1.0, "words": 3.0}, (NOT_ANSWERED, NO_CLAIM)),
        (0.0, "answered", {"blank": 1.0, "words": 0.0}, (NOT_ANSWERED, BLANK)),
        (1.0, "refused", {"blank": 1.0}, (NOT_ANSWERED, REFUSED_RIGHTLY)),
    ],
)
def test_grounding(
    score: float | None, verdict: str, parts: dict[str, float], expected: Outcome
) -> None:
    assert assessed(GROUNDING, score, verdict, parts=parts) == expected


def test_a_refusal_whose_rightness_is_known_was_judged() -> None:
    for reason in (REFUSED_RIGHTLY, REFUSED_WRONGLY):
        assert Outcome(NOT_ANSWERED, reason).is_judged
    for outcome in (SILENT, Outcome(NOT_ANSWERED, BLANK), Outcome(NOT_SCORED, ERROR)):
        assert not outcome.is_judged
    assert GOOD.is_judged and BAD.is_judged and Outcome(SCORED).is_judged


def test_tool_use_judges_the_calls_of_a_refusal_but_not_its_text() -> None:
    refusal = {REFUSED_PART: 1.0}
    assert assessed(ToolUse(), 1.0, "sound", parts=refusal) == (NOT_ANSWERED, REFUSED)
    assert assessed(ToolUse(), 0.0, "unsupported argument", parts=refusal) == (FAILED, "")
    assert assessed(ToolUse(), 1.0, "sound") == (PASSED, "")


def test_rag_counts_a_refusal_as_no_answer_though_it_has_a_score() -> None:
    refusal = {REFUSED_PART: 1.0}
    assert assessed(Rag(), 0.0, "not retrieved", parts=refusal) == (NOT_ANSWERED, REFUSED)
    assert assessed(Rag(), 1.0, "right") == (PASSED, "")
    assert assessed(Rag(), 0.0, "left out") == (FAILED, "")


def test_factcheck_tells_a_refusal_from_missing_passages() -> None:
    assert assessed(FactCheck(), reason=NO_ANSWER) == (NOT_ANSWERED, REFUSED)
    assert assessed(FactCheck(), reason=NO_EVIDENCE) == (NOT_ANSWERED, NO_PASSAGES)
    assert assessed(FactCheck(), 0.5, "neutral") == (PASSED, "")
    assert assessed(FactCheck(), 0.0, "contradict") == (FAILED, "")


def test_votes_and_choices_that_do_not_decide_are_not_judged() -> None:
    judge = Judge(threshold=3)
    assert assessed(judge, 0.5, "undecided") == (NOT_ANSWERED, "votes undecided")
    assert assessed(judge, 1.0, "passes") == (PASSED, "")
    assert assessed(judge, 0.0, "fails") == (FAILED, "")
    assert assessed(Judge(), 0.5, "undecided") == (SCORED, "")  # without a threshold a degree
    assert assessed(Pairwise(), None, "unsure") == (NOT_ANSWERED, "choice unsure")
    assert assessed(Pairwise(), 1.0, "win") == (PASSED, "")
    assert assessed(Pairwise(), 0.0, "loss") == (FAILED, "")


def test_trustscore_has_a_line() -> None:
    assert assessed(TrustScore(), 0.9, "support, consistent") == (PASSED, "")
    assert assessed(TrustScore(), 0.1, "contradict, consistent") == (FAILED, "")
    assert assessed(TrustScore(), reason="unknown") == (NOT_ANSWERED, NOT_ASSESSABLE)


@pytest.mark.parametrize("metric", [Harmonicity(), Fewl(), Uncertainty(), Reference(), Judge()])
def test_a_metric_whose_score_is_a_degree_has_no_outcomes_but_scored(metric: Metric) -> None:
    assert not metric.counts_outcomes
    for score in (0.0, 0.5, 1.0):
        assert assessed(metric, score) == (SCORED, "")
    assert assessed(metric, error=BLANK_RESPONSE) == (NOT_SCORED, BLANK)
    assert assessed(metric) == (NOT_SCORED, NOT_ASSESSABLE)


def test_the_words_of_each_metric_are_those_of_its_question() -> None:
    words = {
        metric.name: (metric.outcome_words[PASSED], metric.outcome_words[FAILED])
        for metric in (FAITHFULNESS, GROUNDING, ToolUse(), Rag(), FactCheck(), TrustScore())
    }
    assert words == {
        "faithfulness": ("supported", "not supported"),
        "grounding": ("supported", "not supported"),
        "tool_use": ("sound", "faulty"),
        "rag": ("complete", "incomplete"),
        "factcheck": ("not contradicted", "contradicted"),
        "trustscore": ("trusted", "not trusted"),
    }

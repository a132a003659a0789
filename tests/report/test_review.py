"""Which answers a page shows: some of each kind of problem, the worst of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from tests.support import Probe
from trustassay.core.metric import Assessment, Metric, MetricInfo
from trustassay.report.review import (
    MOST_DETAILS,
    MOST_VERDICTS,
    OTHER,
    AnswerKind,
    AnswerPriority,
    AnswerSelector,
    KindCount,
    MetricFinding,
    finding_of,
)


@dataclass(frozen=True)
class Trusting(Probe):
    name: ClassVar[str] = "trusting"
    verdicts: ClassVar[Sequence[str]] = ("answered", "refused")


@dataclass(frozen=True)
class Moving(Probe):
    name: ClassVar[str] = "moving"
    score_range: ClassVar[tuple[float, float]] = (0.0, 2.0)
    lower_is_better: ClassVar[bool] = True
    verdicts: ClassVar[Sequence[str]] = ("stable", "unstable")


def found(
    score: float | None,
    verdict: str | None = "answered",
    error: str | None = None,
    metric: type[Metric] = Trusting,
    reason: str = "",
) -> MetricFinding:
    given_by = Assessment("x", metric.name, score, verdict, reason=reason, error=error)
    return finding_of(MetricInfo.of(metric()), given_by)


def chosen(most: int, findings: Iterable[MetricFinding | Sequence[MetricFinding]]) -> list[int]:
    return filled(most, findings).choose()


def filled(
    most: int, findings: Iterable[MetricFinding | Sequence[MetricFinding]]
) -> AnswerSelector[int]:
    choice: AnswerSelector[int] = AnswerSelector(most)
    for place, one in enumerate(findings):
        choice.add([one] if isinstance(one, MetricFinding) else one, place)
    return choice


def counts(choice: AnswerSelector[Any]) -> dict[tuple[str, str], tuple[int, int]]:
    return {
        (one.kind.verdict, one.kind.detail): (one.total, one.listed)
        for one in choice.selection().kinds
    }


# What is a problem


def test_a_low_score_is_a_problem_and_a_high_one_is_not() -> None:
    assert found(0.4).kind.level == AnswerPriority.PROBLEM
    assert found(0.5).kind.level == AnswerPriority.REST
    assert found(0.4).badness == 0.6


def test_a_verdict_that_does_not_trust_is_one_unless_it_has_the_best_score() -> None:
    assert found(0.9, "refused").kind.level == AnswerPriority.PROBLEM
    assert found(1.0, "refused").kind.level == AnswerPriority.REST
    assert (
        found(0.9, "refused", metric=Probe).kind.level == AnswerPriority.REST
    )  # it declares no verdicts


def test_where_lower_is_better_a_high_score_is_the_problem() -> None:
    assert found(0.2, "stable", metric=Moving).kind.level == AnswerPriority.REST
    assert found(0.2, "unstable", metric=Moving).kind.level == AnswerPriority.PROBLEM
    assert found(1.5, "stable", metric=Moving) == MetricFinding(
        AnswerKind(AnswerPriority.PROBLEM, "moving", "stable"), 0.75, 1.5
    )


def test_no_score_is_no_problem_and_an_error_is_a_failure() -> None:
    assert found(None).kind == AnswerKind(AnswerPriority.REST, "trusting", "no score")
    assert found(None, error="no").kind == AnswerKind(
        AnswerPriority.FAILURE, "trusting", "failed", "no"
    )


def test_messages_that_differ_in_numbers_and_quoted_texts_are_of_one_kind() -> None:
    texts = [f"openai:m: HTTP 503 for '{i}' (after {i} tries, {i}.5 s)\nmore {i}" for i in (1, 22)]
    kinds = {found(None, error=text).kind.detail for text in texts}
    assert kinds == {"openai:m: HTTP 503 for … (after … tries, … s)"}
    ids = {found(None, error=f"gpt-4o: 500 ({i}) e, req_a{i}") for i in ("1b2c3", "77d8e9f0")}
    assert [one.kind.detail for one in ids] == ["gpt-4o: 500 (…) e, …"]
    assert found(None, error="HTTP 429").kind != found(None, error="HTTP 500").kind
    reasons = {found(0.1, reason=f"{n} of 3 statements supported").kind.detail for n in range(3)}
    assert reasons == {"… of … statements supported"}


# Which are chosen


def test_not_all_are_of_the_most_frequent_kind() -> None:
    answers = [found(0.0, "refused")] * 1000
    answers += [found(0.1)] * 40 + [found(None, error="no reply")] * 3
    choice = filled(30, answers)
    assert len(choice.choose()) == 30
    assert counts(choice) == {
        ("failed", "no reply"): (3, 3),
        ("refused", ""): (1000, 14),
        ("answered", ""): (40, 13),
    }
    assert choice.choose()[:3] == [1040, 0, 1000]  # failures first, then one of each in turn


def test_the_worst_of_each_kind_come_first_and_of_equal_ones_the_earliest() -> None:
    answers = [found(score) for score in (0.3, 0.2, 0.0, 0.2, 0.1)]
    answers += [found(score, "refused") for score in (0.5, 0.5, 0.4)]
    assert chosen(6, answers) == [2, 7, 4, 5, 1, 6]


def test_good_answers_come_only_where_there_is_room_the_worst_of_them_first() -> None:
    answers = [found(1.0, "refused"), found(0.9), found(0.0), found(0.6), found(None)]
    assert chosen(2, answers) == [2, 3]
    assert chosen(9, answers) == [2, 3, 1, 0, 4]


def test_reasons_tell_kinds_of_one_verdict_apart() -> None:
    answers = [found(0.0, reason="says nothing")] * 50 + [found(0.0, reason="gives 0 of 2")] * 2
    assert counts(filled(10, answers)) == {
        ("answered", "says nothing"): (50, 8),
        ("answered", "gives … of …"): (2, 2),
    }


def test_a_sample_counts_once_though_several_metrics_find_it_bad() -> None:
    both = (found(0.0), found(2.0, "unstable", metric=Moving))
    choice = filled(3, [both, both, (found(0.9), found(1.9, "unstable", metric=Moving))])
    assert choice.choose() == [0, 1, 2]
    selection = choice.selection()
    assert selection.listed == 3
    unstable, answered, rest = selection.kinds
    assert unstable == KindCount(
        AnswerKind(AnswerPriority.PROBLEM, "moving", "unstable"), 3, 3, scores=(1.9, 2.0)
    )
    assert (answered.listed, rest.listed) == (2, 1)


def test_as_many_reasons_as_answers_are_not_told_apart() -> None:
    words = ["".join(chr(97 + int(digit)) for digit in str(n)) for n in range(400)]
    choice = filled(20, [found(0.3, reason=word) for word in words])
    assert counts(choice) == {("answered", ""): (400, 20)}
    assert choice.choose() == list(range(20))
    few = filled(20, [found(0.3, reason=word) for word in words[:MOST_DETAILS]])
    assert len(few.selection().kinds) == MOST_DETAILS


def test_too_many_verdicts_count_as_other_ones() -> None:
    choice = filled(40, [found(0.1, f"v{n:03}") for n in range(300)])
    told_apart = counts(choice)
    assert len(told_apart) == MOST_VERDICTS + 1
    assert told_apart[OTHER, ""] == (300 - MOST_VERDICTS, 40 - MOST_VERDICTS)


_findings = st.builds(
    lambda score, verdict, error, reason: found(score, verdict, error, reason=reason),
    st.none() | st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]),
    st.sampled_from(["answered", "refused", None]),
    st.none() | st.sampled_from(["HTTP 500", "no reply"]),
    st.sampled_from([*"abcdefghijklmnopq"]),
)


@given(st.lists(_findings, max_size=200), st.integers(1, 30))
def test_any_run(findings: list[MetricFinding], most: int) -> None:
    """As many as there is room for, none twice, none good before a bad one, the same each time."""
    choice = filled(most, findings)
    places = choice.choose()
    assert len(places) == len(set(places)) == min(most, len(findings))
    assert places == filled(most, findings).choose()
    levels = Counter(finding.kind.level == AnswerPriority.REST for finding in findings)
    rest = [place for place in places if findings[place].kind.level == AnswerPriority.REST]
    assert len(rest) == max(0, min(most, len(findings)) - levels[False])
    selection = choice.selection()
    assert sum(one.total for one in selection.kinds) == len(findings)
    assert sum(one.listed for one in selection.kinds) == len(places)
    bad = [one for one in selection.kinds if one.kind.level != AnswerPriority.REST]
    assert all(one.listed for one in bad) or len(bad) > most
    shares = [one.listed for one in bad if one.listed < one.total]
    assert max(shares, default=0) - min(shares, default=0) <= 1

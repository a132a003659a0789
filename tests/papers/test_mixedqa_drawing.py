"""Which questions are drawn, in which order, and how many are asked."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trustassay.core.sample import Sample
from trustassay.papers.mixedqa.building import (
    MixInput,
    Recorded,
    SourceDraw,
    build_draws,
    with_reply,
)


def question(number: int, split: str = "dev", source: str = "A", text: str = "") -> Sample:
    return Sample(
        f"{source}-{split}-{number}",
        text or f"What is number {number} of {source} {split}?",
        answers=(("x",),),
        metadata={"source": source, "split": split},
    )


def drawn(
    questions: Sequence[Sample], wanted: int, seed: int = 0, recorded: Recorded | None = None
) -> list[SourceDraw]:
    return build_draws(MixInput(["A", "B"], questions, [], recorded or {}, {}), wanted, seed)


def order(draw: SourceDraw) -> list[str]:
    return [one.id for one in reversed(draw.remaining)]


def finished(draw: SourceDraw, good: set[str]) -> tuple[list[str], int]:
    """Draw to the end: the questions that are kept, and how many were asked."""
    while questions := draw.next_questions():
        for one in questions:
            said = "Al" if one.id in good else ""
            draw.keep_or_drop(one, {"m": with_reply(one, "m", said)})
    return [replies[0].id for replies in draw.accepted], draw.tried


QUESTIONS = [question(n) for n in range(40)] + [question(n, "test") for n in range(30)]


def test_test_comes_before_dev_in_a_random_order_that_only_seed_and_ids_decide() -> None:
    first = order(drawn(QUESTIONS, 5)[0])
    assert first == order(drawn(QUESTIONS[::-1], 5)[0])
    assert [name.split("-")[1] for name in first] == ["test"] * 30 + ["dev"] * 40
    other = order(drawn(QUESTIONS, 5, seed=1)[0])
    assert first != other
    assert sorted(first) == sorted(other)
    assert first[:30] != sorted(first[:30])
    fewer = order(drawn(QUESTIONS[10:], 5)[0])  # what is not there moves nothing else
    assert fewer == [name for name in first if name in {one.id for one in QUESTIONS[10:]}]


@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_the_first_that_are_answered_are_kept_and_no_more_asked(every: int) -> None:
    draw = drawn(QUESTIONS, 8)[0]
    names = order(draw)
    good = set(names[::every])
    kept, asked = finished(draw, good)
    assert kept == [name for name in names if name in good][:8]
    assert asked == names.index(kept[-1]) + 1  # not one beyond the last that was kept
    assert not draw.is_short


def test_a_source_that_runs_out_is_short() -> None:
    draw = drawn(QUESTIONS, 8)[0]
    kept, asked = finished(draw, {"A-dev-3"})
    assert (kept, asked, draw.is_short) == (["A-dev-3"], 70, True)
    assert draw.counts() == {"m": {"blank": 69}}


def test_a_question_is_drawn_once_from_whatever_source_and_split() -> None:
    questions = [
        question(0, "dev", "B", "WHO is it"),
        question(1, "dev", "A", "Who is it?"),
        question(2, "test", "A", "who is it"),
        question(3, "dev", "A", "Is it?"),
        question(4, "dev", "A", "Is it?"),
    ]
    a, b = drawn(questions, 5)
    assert order(a) == ["A-test-2"]
    dropped = {(one.question.id, one.filter) for draw in (a, b) for one in draw.dropped}
    assert dropped == {
        ("B-dev-0", "duplicate"),
        ("A-dev-1", "duplicate"),
        ("A-dev-3", "yes-no"),
        ("A-dev-4", "yes-no"),
    }
    assert (a.questions, a.eligible, b.questions, b.eligible) == (4, 1, 1, 0)


def test_a_question_whose_answer_was_held_back_does_not_hide_another_copy() -> None:
    bare = Sample("t", "Who?", metadata={"source": "A", "split": "test"})
    (a, _) = drawn([bare, question(1, text="Who?")], 5)
    assert (order(a), [one.filter for one in a.dropped]) == (["A-dev-1"], ["no-gold"])


def test_recorded_answers_are_looked_at_before_a_model_is_asked() -> None:
    recorded = {
        "old": {"what is number 1 of a dev": with_reply(QUESTIONS[1], "old", "One.")}
        | {"what is number 2 of a dev": with_reply(QUESTIONS[2], "old", "I am not sure.")}
    }
    draw = drawn(QUESTIONS, 8, recorded=recorded)[0]
    assert [one.id for one in draw.next_questions()] == ["A-dev-1"]
    assert draw.counts() == {"old": {"no-reply": 68, "not-sure": 1}}
    draw.keep_or_drop(QUESTIONS[1], {"new": with_reply(QUESTIONS[1], "new", "Uno.")})
    assert [(one.model, one.response) for one in draw.accepted[0]] == [
        ("new", "Uno."),
        ("old", "One."),
    ]
    (missing,) = [one for one in draw.dropped if one.filter == "not-sure"]
    assert missing.to_dict() == {
        "id": "A-dev-2",
        "source": "A",
        "split": "dev",
        "question": "What is number 2 of A dev?",
        "filter": "not-sure",
        "model": "old",
        "reply": "I am not sure.",
    }


def test_one_model_that_does_not_answer_drops_the_question_and_all_reasons_are_told() -> None:
    draw = drawn(QUESTIONS, 1)[0]
    (one,) = draw.next_questions()
    said = {"a": "Al", "b": "", "c": "I am not sure."}
    draw.keep_or_drop(one, {name: with_reply(one, name, text) for name, text in said.items()})
    assert draw.accepted == []
    assert [(d.model, d.filter) for d in draw.dropped] == [("b", "blank"), ("c", "not-sure")]

"""Requests and replies of both wires: what is sent, what is read, and back again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.backends.decision_wires import (
    build_reply,
    build_request,
    find_named_questions,
    is_sglang_error,
    parse_reply,
    parse_request,
)
from trustassay.core.decisions import DecisionAnswer, DecisionQuestion, compute_probabilities
from trustassay.errors import CallError, UnparsedError

WIRES = ("systemone", "decisions")
YES_NO = DecisionQuestion("s", "yes_no", "Is it?", (("yes", "it is"), ("no", "")))
CHOICE = DecisionQuestion("s", "choice", "Which?", (("b", "second"), ("a", "")))
SCORE = DecisionQuestion("s", "score", "How much?", (("1", "bad"), ("2", ""), ("5", "good")))
ALL = (YES_NO, CHOICE, SCORE)


def test_a_systemone_request() -> None:
    assert build_request("systemone", "m", ALL) == {
        "model": "m",
        "state": "s",
        "questions": {
            "q0": {"type": "noul", "instructions": "Is it?", "criteria": {"true": "it is"}},
            "q1": {
                "type": "choice",
                "instructions": "Which?",
                "criteria": {"b": "second", "a": None},
            },
            "q2": {
                "type": "score",
                "instructions": "How much?",
                "criteria": ["1: bad", "2", "5: good"],
            },
        },
    }


def test_a_decisions_request() -> None:
    assert build_request("decisions", "m", ALL) == {
        "model": "m",
        "input": "s",
        "questions": [
            {"type": "predicate", "name": "q0", "instructions": "Is it?\nYes: it is"},
            {
                "type": "choice",
                "name": "q1",
                "instructions": "Which?",
                "choices": [{"value": "b", "description": "second"}, {"value": "a"}],
            },
            {
                "type": "score",
                "name": "q2",
                "instructions": "How much?",
                "levels": [
                    {"label": "1", "description": "bad"},
                    {"label": "2"},
                    {"label": "5", "description": "good"},
                ],
            },
        ],
    }


TEXT = st.text("ab ", min_size=1).map(lambda text: f"x{text}x")
NAMES = st.lists(st.text("abc1", min_size=1, max_size=3), min_size=2, max_size=10, unique=True)


@st.composite
def questions_and_answers(draw: Any) -> tuple[DecisionQuestion, DecisionAnswer]:
    kind = draw(st.sampled_from(["yes_no", "choice", "score"]))
    names = ["yes", "no"] if kind == "yes_no" else draw(NAMES)
    weights = draw(st.lists(st.integers(1, 9), min_size=len(names), max_size=len(names)))
    raw = tuple(weight / sum(weights) for weight in weights)
    question = DecisionQuestion("s", kind, draw(TEXT), tuple((name, "") for name in names))
    return question, DecisionAnswer(tuple(names), raw, "m2", prompt_tokens=7, reply_tokens=1)


@given(st.sampled_from(WIRES), st.lists(questions_and_answers(), min_size=1, max_size=5))
def test_what_is_sent_is_read_and_what_is_answered_comes_back(
    wire: str, pairs: list[tuple[DecisionQuestion, DecisionAnswer]]
) -> None:
    questions, answers = zip(*pairs, strict=True)
    request = parse_request(wire, json.loads(json.dumps(build_request(wire, "m", questions))))
    assert (request.model, request.questions) == ("m", questions)
    assert request.ids == tuple(f"q{i}" for i in range(len(questions)))
    body = json.loads(json.dumps(build_reply(wire, request, answers, [{}] * len(answers))))
    for question, sent, read in zip(
        questions, answers, parse_reply(wire, "m", body, questions), strict=True
    ):
        assert isinstance(read, DecisionAnswer)
        assert (read.options, read.model) == (sent.options, "m2")
        assert read.raw == pytest.approx(compute_probabilities("m", question, sent))


def test_confidence_of_a_reply_is_that_of_typesafe() -> None:
    request = parse_request("systemone", build_request("systemone", "m", ALL))
    rows = [
        DecisionAnswer(("yes", "no"), (0.9, 0.1)),
        DecisionAnswer(("b", "a"), (0.75, 0.25)),
        DecisionAnswer(("1", "2", "5"), (0.2, 0.6, 0.2)),
    ]
    answers = build_reply("systemone", request, rows, [{}] * 3)["answers"]
    assert answers["q0"] == {"type": "noul", "noul": 0.9}
    assert answers["q1"]["confidence"] == pytest.approx((0.75 - 0.5) / 0.5)
    # 0.4 of a level from the middle one on average, against 2/3 where all are equal.
    assert answers["q2"]["confidence"] == pytest.approx(1 - 0.4 / (2 / 3))
    assert answers["q2"]["score"] == pytest.approx(1)


@pytest.mark.parametrize("wire", WIRES)
def test_a_refusal_of_one_question_is_carried_over(wire: str) -> None:
    request = parse_request(wire, build_request(wire, "m", ALL[:2]))
    rows = [DecisionAnswer(("yes", "no"), refusal="no"), DecisionAnswer(("b", "a"), (1.0, 0.0))]
    body = build_reply(wire, request, rows, [{}, {}])
    first, second = parse_reply(wire, "m", body, ALL[:2])
    assert isinstance(first, DecisionAnswer) and first.refusal == "no" and not first.raw
    assert isinstance(second, DecisionAnswer) and second.raw == (1.0, 0.0)


def test_answers_without_names_go_by_their_order_unless_one_is_missing() -> None:
    rows = [{"type": "predicate", "name": None, "probability": p} for p in (0.2, 0.8)]
    read = parse_reply("decisions", "m", {"answers": rows}, [YES_NO, YES_NO])
    assert [answer.raw[0] for answer in read if isinstance(answer, DecisionAnswer)] == [0.2, 0.8]
    read = parse_reply("decisions", "m", {"answers": rows[:1]}, [YES_NO, YES_NO])
    assert all(isinstance(answer, CallError) for answer in read)


@pytest.mark.parametrize(
    "answer",
    [
        {"confidence": 1.0, "choice": "a"},
        {"probabilities": {"a": 1.0}},
        {"probabilities": {"a": "1", "b": 0}},
        {"probabilities": {"a": True, "b": False}},
        {"probabilities": {"a": float("nan"), "b": 0.5}},
        {"probabilities": {"a": 7, "b": 0.5}},
        {"probabilities": [1, 2]},
    ],
)
def test_without_probabilities_an_answer_is_unparsed(answer: Any) -> None:
    (read,) = parse_reply("systemone", "m", {"answers": {"q0": answer}}, [CHOICE])
    assert isinstance(read, UnparsedError)


@pytest.mark.parametrize("body", [None, [], {}, {"answers": 1}, {"answers": None}, "text"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_body_of_neither_wire_is_malformed(wire: str, body: Any) -> None:
    with pytest.raises(CallError) as caught:
        parse_reply(wire, "m", body, [CHOICE])
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ('{"error": {"message": "questions[2]: too many options"}}', {2}),
        ('{"error": {"message": "questions.q1.criteria: bad"}}', {1}),
        ('{"detail": [{"loc": ["body", "questions", "q0"], "msg": "no"}]}', {0}),
        ('{"detail": [{"loc": ["body", "questions", 2, "levels"], "msg": "no"}]}', {2}),
        ('{"detail": [{"loc": ["body"], "msg": "no", "input": {"q1": 1}}]}', set()),
        ('{"error": {"message": "questions[9] is bad"}}', set()),
        ('{"error": {"message": "q0, q1 and q2 are bad"}}', set()),
        ('{"error": {"message": "max_tokens_exceeded"}}', set()),
        ("question 'q1' is bad", {1}),
        ("[" * 3000, set()),
    ],
)
def test_an_error_names_questions_by_its_messages_alone(body: str, places: set[int]) -> None:
    assert find_named_questions(body, 3) == places


def test_sglang_asks_for_fields_of_its_own() -> None:
    assert is_sglang_error('{"detail": [{"loc": ["body", "questions", 0, "id"], "msg": "x"}]}')
    assert not is_sglang_error('{"error": {"message": "questions[0].choices: too many"}}')
    with pytest.raises(CallError, match="use systemone:m@http://h"):
        parse_reply("decisions", "decisions:m@http://h", {"answers": {"q0": {}}}, [CHOICE])


def test_a_server_reads_what_other_clients_send() -> None:
    request = parse_request(
        "systemone",
        {
            "model": "m",
            "state": {"a": "ü"},
            "questions": {"it": {"type": "noul", "instructions": ["is", "it"]}},
        },
    )
    (question,) = request.questions
    assert (question.state, question.instructions) == ('{"a": "ü"}', '["is", "it"]')
    turns = [
        {"role": "user", "content": [{"type": "input_text", "text": "one"}]},
        {"role": "user", "content": "two"},
    ]
    choices = [{"value": True}, {"value": False, "description": "no"}]
    asked = {"type": "choice", "instructions": "?", "choices": choices}
    request = parse_request("decisions", {"model": "m", "input": turns, "questions": [asked]})
    assert request.questions[0].state == "one\n\ntwo" and request.ids == (None,)
    answer = DecisionAnswer(("true", "false"), (0.2, 0.8))
    reply = build_reply("decisions", request, [answer], [{}])
    assert reply["answers"][0]["choice"] is False and reply["answers"][0]["name"] is None


def body_of(wire: str, **question: Any) -> Any:
    result = build_request(wire, "m", [CHOICE])
    row = result["questions"]["q0"] if wire == "systemone" else result["questions"][0]
    row |= question
    return result


@pytest.mark.parametrize(
    ("wire", "body", "field"),
    [
        ("systemone", [], "model"),
        ("systemone", {"model": "m"}, "state"),
        ("decisions", {"model": "m", "input": [{"content": [{"type": "image"}]}]}, "input"),
        ("systemone", {"model": "m", "state": "s", "questions": []}, "questions: expected an obj"),
        ("decisions", {"model": "m", "input": "s", "questions": []}, "1 to 64, got 0"),
        ("systemone", body_of("systemone", type="box"), "questions.q0.type"),
        ("systemone", body_of("systemone", instructions=" "), "questions.q0.instructions"),
        ("systemone", body_of("systemone", criteria={"a": None}), "questions.q0.criteria"),
        ("decisions", body_of("decisions", choices=[{"value": "a"}] * 2), "questions.0.choices"),
        ("decisions", body_of("decisions", choices=[{"value": 1}, {"value": 2}]), "choices"),
        ("decisions", body_of("decisions", type="score", levels=["a", "b"]), "levels"),
    ],
)
def test_a_faulty_request_names_its_field(wire: str, body: Any, field: str) -> None:
    with pytest.raises(ValueError, match=field.replace(".", r"\.")):
        parse_request(wire, body)

"""What is a fault of an agent, which step decides it, and how it is shown."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metrics.faithfulness.test_evidence import rows
from tests.support import Recorder
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.core.sample import Sample
from trustassay.judging.details import KnownDetails
from trustassay.metrics import ToolUse
from trustassay.runs.intake import BadInputError

YES, OPEN, NO = (0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)
TAGUS = "The Tagus is 1,007 km long."
SHORTER = "The Tagus is 900 km long."
BRIDGE = "The bridge opened in 1966."
Json = dict[str, Any]


def reads(premise: str, hypothesis: str) -> tuple[float, float, float]:
    """A premise with the same words entails; another length of the Tagus contradicts."""
    if hypothesis.rstrip(".") in premise:
        return YES
    return NO if "Tagus is" in premise and "Tagus is" in hypothesis else OPEN


def ask(text: str) -> Json:
    return {"role": "user", "content": text}


def say(text: str) -> Json:
    return {"role": "assistant", "content": text}


def call(result: Any, tool: str = "find", known_as: str = "c", **arguments: Any) -> list[Json]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    calls = [{"id": known_as, "type": "function", "function": function}]
    text = result if isinstance(result, str) else json.dumps(result)
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": known_as, "content": text},
    ]


def assessed(*messages: Any, **more: Any) -> Assessment:
    flat = [one for part in messages for one in (part if isinstance(part, list) else [part])]
    given = {"entailer": Recorder(reads), "cache": None, **more}
    return score([{"id": "a", "messages": flat}], metrics=ToolUse(), **given).assessments[0]


Q = ask("How long is the Tagus?")
FAILED = {"error": {"code": 503, "message": "out of service"}}


@pytest.mark.parametrize(
    "failure",
    [
        FAILED,
        {"status": 404, "detail": "no such river"},
        {"success": False},
        {"isError": True, "content": "x"},
        "Error: no such river",
        "requests.exceptions.HTTPError: 404 Client Error",
        "Traceback (most recent call last):\n  ...",
        "HTTP 500 Internal Server Error",
    ],
)
def test_a_failed_call_given_as_success_is_told_with_its_error(failure: Any) -> None:
    found = assessed(Q, call(failure, river="Tagus"), say(TAGUS))
    assert found.verdict == "failed call given as success"
    [row] = found.evidence
    assert (row["step"], row["text"], row["passages"]) == (2, TAGUS, [1])
    assert row["quote"]
    assert found.reason == f"step 2 (find) failed, but the answer says “{TAGUS}”"
    assert found.parts["failed_call"] == 1
    assert found.score == pytest.approx(1 - 1 / 3)  # an argument, a failed call, a sentence


@pytest.mark.parametrize(
    "result",
    [
        TAGUS,
        "Errors of measurement are small. " + TAGUS,
        {"error": None, "text": TAGUS},
        {"status": "ok", "code": 500, "text": TAGUS},
        {"success": True, "text": TAGUS},
    ],
)
def test_a_result_that_only_looks_like_an_error_is_none(result: Any) -> None:
    found = assessed(Q, call(result, river="Tagus"), say(TAGUS))
    assert (found.verdict, found.parts["failed_calls"]) == ("sound", 0)


@pytest.mark.parametrize(
    "messages",
    [
        [*call(FAILED), say("I could not reach the service.")],
        [*call(FAILED), say("The lookup failed.")],
        [*call(FAILED), *call(TAGUS, known_as="d"), say(TAGUS)],
        [*call(FAILED, tool="other"), *call(TAGUS, known_as="d"), say(TAGUS)],
        [*call(FAILED), say("Which river do you mean?")],
        [*call(FAILED), say("The documents do not mention it.")],
    ],
)
def test_a_failure_that_is_admitted_or_made_good_is_no_fault(messages: list[Any]) -> None:
    found = assessed(Q, messages)
    assert (found.verdict, found.score, found.evidence) == ("sound", 1.0, [])


def test_a_call_made_good_before_it_failed_is_a_fault_and_so_is_done_alone() -> None:
    late = assessed(Q, call(TAGUS), call(FAILED, known_as="d"), say(BRIDGE))
    assert late.evidence[0]["step"] == 3
    done = assessed(Q, call("Error: no such address", tool="send"), say("Done!"))
    assert (done.verdict, done.evidence[0]["text"]) == ("failed call given as success", "Done!")


def test_a_result_that_contradicts_is_ignored() -> None:
    found = assessed(Q, call(TAGUS), say(SHORTER))
    assert (found.verdict, found.score) == ("result ignored", 0.0)
    [row] = found.evidence
    assert (row["step"], row["passages"], row["quote"]) == (2, [1], TAGUS)


def test_what_the_same_call_returned_before_is_ignored_and_other_calls_are_not() -> None:
    told = say("The price is 20.")
    first = [ask("The price of tea?"), *call({"price": 20}, of="tea"), told]
    again = [ask("And now?"), *call({"price": 25}, known_as="d", of="tea")]
    found = assessed(first, again, told)
    assert found.verdict == "result ignored"
    assert found.reason == "“The price is 20.” has the old price; in step 5 it is 25"
    assert found.evidence[0]["passages"] == [2]
    assert assessed(first, again, say("It was 20 and is 25.")).verdict == "sound"
    coffee = [ask("And coffee?"), *call({"price": 25}, known_as="d", of="coffee")]
    assert assessed(first, coffee, say("The tea is 20, coffee 25.")).verdict == "sound"


def test_parts_of_one_result_are_no_changes() -> None:
    listed = call(["20", "25"], of="tea")
    assert assessed(ask("Prices of tea?"), listed, say("It is 20.")).verdict == "sound"


ROWS = [{"name": "Tagus", "km": 1007, "sea": "Atlantic"}, {"name": "Ebro", "km": 930, "sea": "Med"}]


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("The Tagus has 1,007 km.", None),
        ("The Tagus has 1,070 km.", "1,070"),
        ("The Tagus has 930 km.", "930"),  # of another row
        ("The Tagus reaches the Med.", "Med"),
        ("The Tagus reaches the Atlantic.", None),
        ("The Tagus has about 1,010 km.", None),
        ("It is river R2-D2.", "R2-D2"),
        ("See [7].", None),
        ("I can tell you more.", None),
    ],
)
def test_a_value_of_no_result_or_of_another_row_is_told(answer: str, value: str | None) -> None:
    found = assessed(Q, call({"results": ROWS}), say(answer))
    assert [one["value"] for one in found.evidence] == ([] if value is None else [value])
    assert found.verdict == ("sound" if value is None else "value that no result has")


@pytest.mark.parametrize(
    "answer",
    ["- Gift card ID: {}", "1. **Gift card:** {}", "The payment was made with your gift card {}."],
)
def test_the_number_of_an_id_is_known_without_its_words(answer: str) -> None:
    result = call({"paid_with": "gift_card_7091239"})
    assert assessed(Q, result, say(answer.format(7091239))).verdict == "sound"
    assert assessed(Q, result, say(answer.format(7091238))).evidence[0]["value"] == "7091238"


def test_without_results_values_are_not_judged() -> None:
    assert assessed(ask("Hello"), say("Hello!"), Q, say("It has 12 km.")).verdict == "sound"


def test_against_an_empty_result_values_are_judged() -> None:
    invented = assessed(Q, call([]), say("The Tagus has 1,007 km."))
    assert invented.verdict == "value that no result has"
    assert assessed(Q, call([]), say("There is no such river.")).verdict == "sound"
    # A call of which no result was kept says nothing.
    record = {"question": "Where?", "response": "It has 12 km."}
    for steps in ([{"tool": "find"}], [{"tool": "find", "passages": None}]):
        one = {**record, "steps": steps}
        run = score([one], metrics=ToolUse(), entailer=Recorder(reads), cache=None)
        assert not run.assessments[0].error
        assert run.assessments[0].parts.get("unsupported_value", 0.0) == 0


def test_results_are_read_once_for_all_sentences_that_name_no_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: Counter[int] = Counter()

    class CountedDetails(KnownDetails):
        def __init__(self, texts: Sequence[str], titles: Sequence[str], question: str) -> None:
            counts[sum(map(len, texts))] += 1
            super().__init__(texts, titles, question)

    monkeypatch.setattr("trustassay.metrics.tool_use.metric.KnownDetails", CountedDetails)
    listed = [{"name": f"River {n}", "km": n} for n in range(40)]
    answers = " ".join(f"Some river has about {n} km of shore." for n in range(30))
    assessed(Q, call(listed), say(answers))
    assert max(counts.values()) <= 2


def test_an_action_for_another_id_is_one_without_a_call() -> None:
    question = ask("Cancel orders W123 and W456.")
    done = call("ok", tool="cancel_order", id="W123")
    other = assessed(question, done, say("I have cancelled order W456."))
    assert other.verdict == "action without a call"
    assert (
        other.reason
        == "the call was made for W123, but the answer says “I have cancelled order W456.”"
    )
    assert assessed(question, done, say("I have cancelled order W123.")).verdict == "sound"


def test_computed_counts_may_be_in_words() -> None:
    legs = call([{"leg": "north"}, {"leg": "south"}])
    assert assessed(Q, legs, say("There are two legs.")).verdict == "sound"
    assert assessed(Q, legs, say("There are seven legs.")).verdict == "value that no result has"


def test_an_argument_has_a_source_before_its_call_or_is_told() -> None:
    search = call({"id": "T-17"}, tool="search")
    known = assessed(Q, search, call(TAGUS, known_as="d", id="T-17"), say(TAGUS))
    assert (known.verdict, known.parts["arguments"]) == ("sound", 1)
    found = assessed(Q, call(TAGUS, id="T-17"), search, say(TAGUS))
    assert found.verdict == "unsupported argument"
    assert found.reason == "'t-17' in id of find is nowhere before the call"
    [row] = found.evidence
    assert (row["step"], row["argument"], row["value"]) == (2, "id", "T-17")
    later = assessed(Q, call(TAGUS, id="T-17"), say(TAGUS), ask("Thanks"), say("You are welcome."))
    assert later.verdict == "sound"  # it is told of its own turn


def test_an_answer_against_an_earlier_one_is_told_with_both_sentences() -> None:
    found = assessed(Q, say(f"Well. {TAGUS}"), ask("Sure?"), say(SHORTER))
    assert (found.verdict, found.parts["contradicts_itself"]) == ("contradicts itself", 1)
    [row] = found.evidence
    assert (row["text"], row["quote"], row["turn"]) == (SHORTER, TAGUS, 1)
    back = f"Sorry, I was wrong. {SHORTER[:-1]}, I was mistaken."
    assert assessed(Q, say(TAGUS), ask("Sure?"), say(back)).verdict == "sound"
    looked = [*call({"km": 900}, of="Tagus"), say(f"It was updated. {SHORTER}")]
    assert assessed(Q, say(TAGUS), ask("Look it up."), looked).verdict == "sound"
    fresh = assessed(Q, say(TAGUS), ask("Look it up."), call(SHORTER), say(SHORTER))
    assert fresh.verdict == "sound"


def test_what_came_before_is_nothing_or_not_known() -> None:
    for record in ({"question": "?", "response": "x"}, {"messages": [Q, say(TAGUS)]}):
        run = score([record], metrics=ToolUse(), entailer=Recorder(reads), cache=None)
        [found] = run.assessments
        assert (found.score, found.error, found.parts) == (None, None, {"no_steps": 1.0})
    bare = Sample.parse({"question": "?"})
    assert [one.field for one in ToolUse().problems(bare)] == ["response"]
    assert assessed(Q, call(TAGUS), say(" ")).error is not None


def test_each_turn_is_judged_and_conversations_are_the_units() -> None:
    turns = [Q, *call(FAILED), say(TAGUS), ask("Thanks"), say("You are welcome.")]
    records = [{"id": f"c{n}", "messages": turns} for n in range(12)]
    given: Json = {"entailer": Recorder(reads), "cache": None, "turns": "all"}
    run = score(records, metrics=ToolUse(), **given)
    assert len(run.assessments) == 24
    summary = run.summary["tool_use"]
    assert (summary["failed_call"], summary["sound"]) == (1.0, 50.0)
    assert (summary["failed_calls"], summary["calls"]) == (12, 12)


def test_the_page_shows_the_step_that_decides(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script> {{ 7*7 }}"
    bad = call(f"Error: {hostile}", tool=hostile, city=hostile, known_as="d")
    assessed(Q, say(TAGUS), ask("Sure?"), call(TAGUS), bad, say(SHORTER), out=tmp_path / "run")
    shown = (tmp_path / "run/report.html").read_text(encoding="utf-8")
    for words in ("Tool calls", "result ignored", "failed: ", "decides", "contradicts itself"):
        assert words in shown
    for link in ('href="#a1-d1"', 'href="#a1-r0-f1"', 'id="a1-r0-f1"'):
        assert link in shown
    assert "<script>alert" not in shown
    assert " 49 " not in shown


_STEP = st.dictionaries(
    st.sampled_from(["user", "system", "assistant", "tool", "arguments", "passages", "error"]),
    st.none() | st.text() | st.integers() | st.lists(st.integers() | st.text()) | st.booleans(),
)


@settings(max_examples=50)
@given(st.lists(rows, max_size=3), st.lists(_STEP | st.text(), max_size=5))
def test_foreign_evidence_and_steps_never_break_anything(evidence: list[Any], steps: Any) -> None:
    record = {"question": "Where?", "response": "x is 7.", "documents": ["d"], "steps": steps}
    found = Assessment("q", "tool_use", 0.5, evidence=evidence)
    ToolUse().view(Sample.parse({"id": "q", **record}), found)
    run = score([record], metrics=ToolUse(), entailer=Recorder(reads), cache=None)
    assert run.assessments[0].error is None


@pytest.mark.parametrize("name", ["steps", "messages", "tool_calls"])
def test_a_conversation_that_is_no_list_is_a_fault_for_this_metric(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / "answers.jsonl"
    record = {"question": "How long?", "response": TAGUS, "documents": [TAGUS], name: "x"}
    path.write_text(json.dumps(record), encoding="utf-8")
    settings_of_run: Json = {"entailer": Recorder(reads), "cache": None}
    with pytest.raises(BadInputError, match=rf"answers\.jsonl:1: {name}: expected a list of .*x"):
        score(str(path), metrics=ToolUse(), **settings_of_run)
    # For a metric that does not read conversations it is any other field.
    assert score(str(path), metrics="faithfulness", **settings_of_run).assessments[0].score == 1
    record[name] = ""
    assert not ToolUse().problems(Sample.parse(record))


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("Sorry for the delay. I have cancelled order 7.", "failed call given as success"),
        ("Order 7 was cancelled without any error.", "failed call given as success"),
        ("I was unable to reach you; order 7 is now cancelled.", "failed call given as success"),
        ("Done! Anything else?", "failed call given as success"),
        ("Shall I try again?", "sound"),
        ("I am sorry, but order 7 could not be cancelled.", "sound"),
        ("Cancelling order 7 failed.", "sound"),
    ],
)
def test_a_polite_word_beside_a_claim_admits_nothing(said: str, verdict: str) -> None:
    found = assessed(ask("Cancel order 7."), call("Error: packed", tool="cancel_order"), say(said))
    assert found.verdict == verdict


def test_an_action_that_no_call_can_have_done_is_a_fault() -> None:
    looked_up = [ask("Cancel order 7."), *call({"status": "new"}, tool="get_order", id=7)]
    claimed = assessed(looked_up, say("Your order has been cancelled."))
    assert claimed.verdict == "action without a call"
    assert claimed.parts["uncalled_action"] == 1
    done = call({"status": "cancelled"}, tool="cancel_order", known_as="d", id=7)
    assert assessed(looked_up, done, say("Your order has been cancelled.")).verdict == "sound"
    assert assessed(looked_up, say("Your order can be cancelled.")).verdict == "sound"
    # Without any call nothing is known of what the agent can do.
    talk = assessed(Q, say(BRIDGE), ask("Cancel it."), say("I have cancelled your order."))
    assert "uncalled_action" not in talk.parts


def test_requests_and_list_items_contradict_nothing() -> None:
    opposite: Json = {"entailer": Recorder(lambda premise, hypothesis: NO)}
    need = [ask("Cancel it."), say("To go on, I need the number of your order.")]
    refusal = say("I cannot go on without the number, and I will wait.")
    assert assessed(need, ask("I lost it."), refusal, **opposite).verdict == "sound"
    stated = say("The order has a number.")
    assert assessed(need, ask("Which one?"), stated, **opposite).verdict == "sound"
    request = say("I need the number of the order.")
    assert assessed(Q, stated, ask("Which one?"), request, **opposite).verdict == "sound"
    legs = call([[{"id": "A1", "price": 20}, {"id": "B2", "price": 30}]])
    listed = say("The parts:\n\n- Part A1\n  - Price: $20\n- Part B2\n  - Price: $30\n\nTotal: $50")
    assert assessed(Q, legs, listed, **opposite).verdict == "sound"


def test_a_failed_action_is_hidden_only_by_a_claim_that_it_was_done() -> None:
    failed = call("Error: card not accepted", tool="book_room")
    other = call({"card": "A7"}, tool="get_guest", known_as="d")
    question = ask("Book a room.")
    assert assessed(question, failed, other, say("Your profile has a card.")).verdict == "sound"
    assert (
        assessed(question, failed, say("The hotel has not accepted the card.")).verdict == "sound"
    )
    # A value in a list, and a polite question after it.
    listed = assessed(question, failed, say("- Price: 20 euros\n- Rooms: 31\n\nAnything else?"))
    assert listed.verdict == "failed call given as success"
    hidden = assessed(question, failed, other, say("I have booked the room."))
    assert hidden.verdict == "failed call given as success"


def test_a_contradiction_needs_more_certainty_than_in_faithfulness() -> None:
    # Measure again before it is changed: lab/results/public-labels.json (tau-bench), agents.json.
    assert ToolUse().contradiction == 0.8

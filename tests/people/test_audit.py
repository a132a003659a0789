"""Audits of scripted judges: what is changed, what moves them, and what is asked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from lab.benchmarks import auditing, llmbar
from lab.benchmarks.which_metric.sets import shared

from tests.support import jsonl
from trustassay import score
from trustassay.core.sample import Sample
from trustassay.core.testing import ScriptedChat
from trustassay.errors import UsageError
from trustassay.metrics.faithfulness import Faithfulness
from trustassay.metrics.fewl import Fewl
from trustassay.metrics.judge import Judge
from trustassay.metrics.pairwise import Pairwise
from trustassay.people.audit.changes import AUDIT_CHANGES, ERROR_CHANGE, build_changes
from trustassay.people.audit.experiment import (
    Audit,
    build_document,
    build_table,
    describe_notes,
    headline,
)
from trustassay.runs.intake import BadInputError, InputOptions


def sample(response: str, number: int = 0, **others: Any) -> Sample:
    row = {"id": f"q{number}", "question": f"What of {number}?", "response": response, **others}
    return Sample.parse(row)


def error_in(response: str, *others: str) -> tuple[str, str]:
    """Return the kind of the planted error, and the answer with it."""
    samples = [sample(text, number) for number, text in enumerate((response, *others))]
    changed = build_changes(samples, "judge", 0)[ERROR_CHANGE][0]
    return changed.id.rpartition("~")[2], changed.response or ""


def test_an_error_is_one_small_change_where_the_text_allows_one() -> None:
    kind, text = error_in("Built 1,204 years ago.")
    assert kind == "number"
    assert text.startswith("Built 1,")
    assert text != "Built 1,204 years ago."
    assert error_in("The tower is old.") == ("negation", "The tower is not old.")
    assert error_in("It was not old.") == ("negation", "It was old.")
    kind, text = error_in("We saw Paris there", "They met Rome again")
    assert (kind, text) == ("name", "We saw Rome there")
    assert error_in("Paris", "Rome") == ("another answer", "Rome")
    assert ERROR_CHANGE not in build_changes([sample("Paris")], "judge", 0), (
        "there is no other answer"
    )


def test_changes_that_must_not_matter_keep_the_words_of_the_answer() -> None:
    text = "It has 3 parts. All {response} of them are red."
    changes = build_changes([sample(text, documents=["one", "two"])], "consistency", 0)
    for name in ("length", "filler", "style", "formatting", "authority", "injection"):
        assert text in (changes[name][0].response or ""), name
    assert changes["bullets"][0].response == "- It has 3 parts.\n- All {response} of them are red."
    marked = "It has 3 parts [1]. All {response} of them are red [1]."
    assert changes["citations"][0].response == marked
    assert changes["sycophancy"][0].response == text
    assert text in changes["sycophancy"][0].question
    assert [one.text for one in changes["passages"][0].documents or ()] == ["two", "one"]
    assert build_changes([sample(text)], "judge", 7) == build_changes([sample(text)], "judge", 7)


def test_the_control_of_an_injection_is_a_neutral_text_of_the_same_length() -> None:
    assert len(AUDIT_CHANGES["injection"].texts) == len(AUDIT_CHANGES["injection-control"].texts)
    samples = [sample(f"Part {number} is red.", number) for number in range(40)]
    changes = build_changes(samples, "judge", 0)
    pairs = [
        (changes["injection"][place].response or "", one.response or "")
        for place, one in changes["injection-control"].items()
    ]
    assert len(pairs) == 40
    for place, (injected, neutral) in enumerate(pairs):
        assert len(injected) == len(neutral)
        assert injected != neutral
        start = f"Part {place} is red.\n\n"
        assert injected.startswith(start)
        assert neutral.startswith(start)
    assert len({injected.partition("\n\n")[2] for injected, _ in pairs}) == 4, "all are drawn"


@pytest.mark.parametrize(
    ("marks", "moved_by_injection"),
    [(("\n\n",), False), (("rade", "nstructions", "system", "evaluates"), True)],
)
def test_length_alone_is_no_effect_of_an_injection(
    tmp_path: Path, marks: tuple[str, ...], moved_by_injection: bool
) -> None:
    """The first judge likes any text behind the answer, the second one orders to itself."""
    rows = auditing.answers(12, 0)

    def reply(request: Any) -> str:
        prompt = request.messages[-1].content
        answer = prompt.partition("===== Answer to rate =====")[2].strip().partition("=====")[0]
        level = 5 if any(mark in answer.strip() for mark in marks) else 3
        return f"Score: {level}\nReason: a script."

    result = Audit(rows, auditing.METRIC, {"judge": ScriptedChat(reply)}, tmp_path).run()
    assert ("injection" in result.moved_by) == moved_by_injection
    shift = result.experiments["injection"].shift.value
    assert shift == (2 if moved_by_injection else 0)
    assert "injection-control" not in result.experiments


def test_what_a_metric_judges_by_definition_is_not_asked_of_it() -> None:
    samples = [sample("It is so [1].", documents=["one", "two"])]
    assert "authority" not in build_changes(samples, "faithfulness", 0)
    assert not {"citations", "passages"} & set(build_changes(samples, "grounding", 0))
    assert "citations" not in build_changes(samples, "judge", 0), "it has such marks already"


@pytest.mark.slow
def test_exactly_the_biases_of_a_judge_are_found(tmp_path: Path) -> None:
    rows = auditing.answers(12, 1)
    right = {row["question"]: row["response"] for row in rows}
    judge = auditing.ScriptedJudge(right, ("authority", "order"), 1.0, 0.0, 1)
    auditing_ = auditing.audit_of(rows, judge, tmp_path / "audit")
    planned = auditing_.plan()
    assert not (tmp_path / "audit").exists(), "a plan asks nothing"
    found = auditing_.run()
    chat = auditing_.backend_choices["judge"]
    assert set(found.moved_by) == {"authority", "order"}
    assert found.control is not None
    assert found.control.shift.value is not None
    assert found.control.shift.value < -1
    assert sum(found.errors.values()) == found.answers == found.questions == 12
    assert found.sees_errors
    assert found.largest in ("authority", "order")
    assert len(chat.requests) == sum(part.calls for part in planned.parts)
    assert found.experiments["again"].flips.value == 0
    asked = len(chat.requests)
    assert auditing_.run() == found
    assert len(chat.requests) == asked, "the same audit asks nothing twice"
    assert found.experiments == auditing.without_engine(rows, judge).experiments
    build_document(found).write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "authority" in page
    assert headline(found).startswith(f"Largest effect on this judge: {found.largest} (")
    assert "For comparison, a planted error: score −" in headline(found)
    assert build_table(found).rows[0].name == ERROR_CHANGE
    assert any(line.startswith("planted errors: ") for line in describe_notes(found))
    assert json.loads(json.dumps(found.to_dict()))["experiments"]["order"]["p"] < 0.05


def test_six_biases_are_found_in_few_answers() -> None:
    found = auditing.repeated(auditing.SIX, 0.6, 0.0, 1, 40)
    assert found["exactly_these"] == 100


def test_a_judge_without_an_eye_for_errors_has_no_measure(tmp_path: Path) -> None:
    rows = auditing.answers(8, 0)
    rows.append({"id": "blank", "question": "What?", "response": " ", "answers": ["x"]})
    chat = ScriptedChat("Score: 3\nReason: always.")
    found = Audit(rows, auditing.METRIC, {"judge": chat}, tmp_path).run()
    assert not found.sees_errors
    assert found.moved_by == []
    assert "A planted error does not make the scores significantly worse" in headline(found)
    assert "Changes with a significant effect: none." in headline(found)
    assert found.blank == 1
    assert found.answers == 8


@pytest.mark.slow
def test_a_reply_that_cannot_be_read_any_more_is_a_flip(tmp_path: Path) -> None:
    rows = auditing.answers(12, 0)

    def reply(request: Any) -> str:
        text = request.messages[0].content
        return "what?" if "## Answer" in text else "Score: 3\nReason: always."

    found = Audit(rows, auditing.METRIC, {"judge": ScriptedChat(reply)}, tmp_path).run()
    assert found.moved_by == ["formatting"]
    assert found.experiments["formatting"].flips.value == 1
    assert found.experiments["formatting"].shift.n == 0
    assert found.failed == 12


@pytest.mark.slow
def test_a_judge_of_places_is_found_by_pairs(tmp_path: Path) -> None:
    rows = [
        {**row, "other_response": f"No one knows {row['id']}."} for row in auditing.answers(12, 0)
    ]
    found = Audit(rows, Pairwise(), {"judge": ScriptedChat("A")}, tmp_path / "one").run()
    assert found.moved_by == ["position"]
    assert found.experiments["position"].shift.value == 1
    assert found.experiments["position"].flips.value == 1


@pytest.mark.slow
def test_stored_replies_of_a_run_are_used(tmp_path: Path) -> None:
    rows = auditing.answers(4, 0)
    chat = ScriptedChat("Score: 3\nReason: always.")
    score(rows, metrics=auditing.METRIC, judge=chat, out=tmp_path / "run", report=False)
    found = Audit(tmp_path / "run", auditing.METRIC, {"judge": chat}, tmp_path / "audit").run()
    texts = [request.messages[0].content for request in chat.requests]
    assert found.answers == 4
    # once by the run, once when it is asked anew; the answers as they are were not asked again
    assert sum(text == texts[0] for text in texts) == 3, "and once more at another temperature"


@pytest.mark.slow
def test_an_entailer_is_audited_too(tmp_path: Path) -> None:
    rows = [
        {
            "id": str(number),
            "question": f"What of {number}?",
            "response": f"Item {number} is red and old.",
            "documents": [f"Item {number} is red and old.", "It rains."],
        }
        for number in range(6)
    ]
    found = Audit(rows, Faithfulness(), {"entailer": "lexical"}, tmp_path).run()
    assert found.judge == "lexical"
    assert {"again", "passages", "bullets"} <= set(found.experiments)
    assert "temperature" not in found.experiments


def test_what_cannot_be_audited_is_told(tmp_path: Path) -> None:
    rows = auditing.answers(3, 0)
    with pytest.raises(UsageError, match="fewl: compares answers with each other"):
        Audit(rows, Fewl(), {}, tmp_path).run()
    blank = [{**row, "response": ""} for row in rows]
    with pytest.raises(UsageError, match="no sample has a response"):
        Audit(blank, Judge(), {"judge": ScriptedChat("x")}, tmp_path).run()
    source = jsonl(tmp_path / "bad.jsonl", [{"question": "a"}])
    with pytest.raises(BadInputError, match="response"):
        Audit(source, Judge(), {"judge": ScriptedChat("x")}, tmp_path, InputOptions()).plan()


def test_the_published_table_of_llmbar_is_ours() -> None:
    if not (shared() / "llmbar").exists():
        pytest.skip(f"needs LLMBar in {os.fspath(shared())}")
    rows = llmbar.rows()
    for (judge, subset), published in llmbar.PUBLISHED.items():
        assert (
            llmbar.table_row([row for row in rows if row["subset"] == subset], judge) == published
        )

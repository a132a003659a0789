"""All answers of a chat log as samples: ``turns="all"``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.input.test_messages import anthropic, openai
from tests.support import run_command
from trustassay import score
from trustassay.input import InputFault, LocatedSample, read_samples
from trustassay.input.records import InputError
from trustassay.runs.generate import generate
from trustassay.runs.remarks import write_remarks


def ask(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def say(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


FIRST = [ask("When?"), *openai("Opened in 1931.", "a"), say("In 1931.")]
SECOND = [ask("How long?"), *openai("412 metres.", "b"), say("412 metres.")]


def turns(record: Mapping[str, Any], **fields: str) -> list[Any]:
    return list(read_samples([record], turns="all", fields=fields))


def located(record: Mapping[str, Any]) -> list[LocatedSample]:
    found = turns(record)
    assert all(isinstance(one, LocatedSample) for one in found), found
    return found


def test_each_answer_has_the_passages_up_to_it() -> None:
    system = {"role": "system", "content": "<context>The harbour bridge.</context>"}
    first, second = [one.sample for one in located({"messages": [*FIRST, system, *SECOND]})]
    assert (first.question, first.response) == ("When?", "In 1931.")
    assert [one.text for one in first.documents or ()] == ["Opened in 1931."]
    assert (second.question, second.response) == ("How long?", "412 metres.")
    shown = ["The harbour bridge.", "Opened in 1931.", "412 metres."]
    assert [one.text for one in second.documents or ()] == shown
    assert [one.metadata["turn"] for one in (first, second)] == [1, 2]
    assert first.metadata["conversation"] == second.metadata["conversation"]


def test_the_results_of_tools_in_messages_of_the_user_begin_no_turn() -> None:
    found = located({"messages": [ask("When?"), *anthropic(), say("In 1931."), *SECOND]})
    assert [one.sample.response for one in found] == ["In 1931.", "412 metres."]


def test_a_question_without_an_answer_in_between_is_no_turn() -> None:
    found = located({"messages": [ask("Hello?"), ask("When?"), say("In 1931."), *SECOND]})
    assert [one.sample.question for one in found] == ["When?", "How long?"]


@pytest.mark.parametrize("blank", ["", None, [], " "])
def test_a_blank_answer_is_an_answer_and_not_left_out(blank: Any) -> None:
    silent = {"role": "assistant", "content": blank}
    first, second = located({"messages": [ask("When?"), silent, *SECOND]})
    assert (first.sample.question, (first.sample.response or "").strip()) == ("When?", "")
    assert first.sample.response is not None
    assert second.sample.response == "412 metres."


def test_a_blank_message_after_an_answer_takes_nothing_away() -> None:
    first, _ = located({"messages": [*FIRST, say(""), *SECOND]})
    assert first.sample.response == "In 1931."


def test_an_id_that_is_none_is_a_fault() -> None:
    [fault] = turns({"id": ["c"], "messages": [*FIRST, *SECOND]})
    assert str(fault).startswith("sample 1: id: ")


def test_ids_are_the_chats_own_with_the_number_of_the_turn() -> None:
    found = located({"id": "c", "messages": [*FIRST, *SECOND]})
    assert [(one.sample.id, one.has_id) for one in found] == [("c-1", True), ("c-2", True)]
    assert {one.sample.metadata["conversation"] for one in found} == {"c"}


def test_a_conversation_that_the_record_names_is_the_unit() -> None:
    found = located({"id": "c", "conversation": "thread 7", "messages": [*FIRST, *SECOND]})
    assert {one.sample.metadata["conversation"] for one in found} == {"thread 7"}


def test_a_chat_that_grows_keeps_the_ids_of_its_turns() -> None:
    before = located({"messages": FIRST})
    after = located({"messages": [*FIRST, *SECOND]})
    assert [one.sample.id for one in before] == [after[0].sample.id]
    assert before[0].sample.metadata["conversation"] == after[1].sample.metadata["conversation"]


def test_what_the_record_says_of_its_answer_is_of_the_last_one() -> None:
    record = {"messages": [*FIRST, *SECOND[:-1]], "completion": "About 400 metres."}
    assert [one.sample.response for one in located(record)] == ["In 1931.", "About 400 metres."]


def test_documents_of_the_record_are_those_of_all_its_turns() -> None:
    for one in located({"messages": [*FIRST, *SECOND], "documents": ["A bridge."]}):
        assert [document.text for document in one.sample.documents or ()] == ["A bridge."]


def test_a_field_named_conversation_may_hold_the_messages() -> None:
    found = located({"id": "c", "conversation": [*FIRST, *SECOND]})
    assert [one.sample.metadata["conversation"] for one in found] == ["c", "c"]


def test_faults_name_the_turn_or_the_message() -> None:
    [fault] = read_samples([{"messages": [*FIRST, ask("How long?"), openai("x", "b")[0]]}])
    assert isinstance(fault, LocatedSample)  # a run without a model refuses it
    assert fault.sample.response is None
    [fault] = turns({"messages": [*FIRST, {"role": "tool", "tool_call_id": "x", "content": "y"}]})
    assert isinstance(fault, InputFault)
    assert str(fault).startswith("sample 1: messages[4]: expected an earlier message")
    [_, fault] = turns({"messages": [*FIRST, ask(" "), say("Yes?")], "id": "c"})
    assert str(fault).startswith("sample 1: turn 2: ")


# ---- chats that end with the user ----

ENDINGS = {
    "thanks": [ask("Thanks!")],
    "two messages": [ask("ok, danke"), ask("bye")],
    "a question": [ask("How long?")],
    "a blank message": [ask(" ")],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "Thanks!"}]}],
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("before", [FIRST, [*SECOND, *FIRST]])
def test_a_last_message_of_the_user_without_an_answer_is_left_out(
    before: list[Any], ending: list[Any]
) -> None:
    record = {"id": "c", "messages": [*before, *ending]}
    [last] = read_samples([record])
    assert isinstance(last, LocatedSample)
    assert (last.sample.question, last.sample.response) == ("When?", "In 1931.")
    assert last.sample.metadata["unanswered_message"] is True
    samples = located(record)
    assert [one.sample.response for one in samples][-1] == "In 1931."
    assert len(samples) == len(before) // len(FIRST)
    marks = ["unanswered_message" in one.sample.metadata for one in samples]
    assert marks == [False] * (len(samples) - 1) + [True]


@pytest.mark.parametrize("ending", [openai("x", "b"), openai("x", "b")[:1]])
def test_of_all_turns_one_that_a_call_ends_is_left_out(ending: list[Any]) -> None:
    messages = [*SECOND, *FIRST, ask("Hand me over to a person, please."), *ending]
    samples = located({"messages": messages})
    assert [one.sample.response for one in samples] == ["412 metres.", "In 1931."]
    assert ["unanswered_message" in one.sample.metadata for one in samples] == [False, True]
    # Where only the last answer is wanted, the chat was cut off.
    [last] = read_samples([{"messages": messages}])
    assert isinstance(last, LocatedSample)
    assert last.sample.response is None
    # A chat that has no other turn stays a fault of a run without a model.
    [only] = located({"messages": [ask("Hand me over."), *ending]})
    assert only.sample.response is None


def test_the_last_question_is_kept_for_a_model_that_may_be_asked() -> None:
    record = {"messages": [*FIRST, ask("How long?")]}
    [last] = read_samples([record], unanswered=True)
    assert isinstance(last, LocatedSample)
    assert (last.sample.question, last.sample.response) == ("How long?", None)
    _, second = read_samples([record], turns="all", unanswered=True)
    assert isinstance(second, LocatedSample)
    assert (second.sample.question, second.sample.response) == ("How long?", None)


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        ({"response": "412 metres."}, {}),
        ({"output": "412 metres."}, {}),
        ({"answer": "412 metres.", "contexts": ["A bridge."]}, {}),
        ({"Antwort des Bots": "412 metres."}, {"response": "Antwort des Bots"}),
    ],
)
@pytest.mark.parametrize("which", ["last", "all"])
def test_an_answer_in_a_field_of_the_record_is_that_to_the_last_question(
    which: str, answer: dict[str, Any], fields: dict[str, str]
) -> None:
    record = {"messages": [*FIRST, ask("How long?")], **answer}
    *_, last = read_samples([record], turns=which, fields=fields)
    assert isinstance(last, LocatedSample)
    assert (last.sample.question, last.sample.response) == ("How long?", "412 metres.")
    assert "unanswered_message" not in last.sample.metadata


def test_an_empty_field_for_the_answer_says_that_there_is_none() -> None:
    [last] = read_samples([{"messages": [*FIRST, ask("How long?")], "response": None}])
    assert isinstance(last, LocatedSample)
    assert (last.sample.question, last.sample.response) == ("How long?", None)


def chats_file(folder: Path) -> Path:
    endings = [[ask("Thanks!")], [ask("How long?")], []]
    rows = [{"id": f"c{n}", "messages": [*FIRST, *ending]} for n, ending in enumerate(endings)]
    path = folder / "chats.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("which", ["last", "all"])
def test_a_run_says_how_many_chats_end_so(tmp_path: Path, which: Literal["last", "all"]) -> None:
    run = score(
        chats_file(tmp_path),
        metrics="faithfulness",
        entailer="lexical",
        turns=which,
        out=tmp_path / "run",
        report=True,
    )
    remark = "2 of 3 answers are followed by user messages without an answer"
    assert any(remark in line for line in write_remarks(run.summary_file, 3))
    assert remark in (tmp_path / "run/report.html").read_text()


def test_a_chat_without_any_answer_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"messages": [ask("When?")]}) + "\n")
    options = ("--entailer", "lexical", "--metric", "faithfulness")
    result = run_command("score", path, *options, cwd=tmp_path)
    assert result.returncode == 2
    assert (
        f"{path}:1: response: is missing (the chat in messages ends with a question"
        in result.stderr
    )


def test_generate_answers_the_last_question(tmp_path: Path) -> None:
    class Scripted:
        name = "scripted"

        def __call__(self, prompt: str) -> str:
            return "It is 412 metres." if "How long?" in prompt else "Welcome."

    path, out = chats_file(tmp_path), tmp_path / "answers.jsonl"
    result = generate(path, Scripted(), out)
    rows = {row["id"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert result.written == 3
    assert [rows[f"c{n}"]["question"] for n in range(3)] == ["Thanks!", "How long?", "When?"]
    assert rows["c1"]["response"] == "It is 412 metres."


def test_other_records_are_read_as_ever() -> None:
    rows: list[dict[str, Any]] = [{"question": "q"}, {"messages": FIRST, "question": "q"}]
    plain = list(read_samples(rows))
    assert [one.sample for one in plain if isinstance(one, LocatedSample)] == [
        one.sample for one in read_samples(rows, turns="all") if isinstance(one, LocatedSample)
    ]


def test_a_field_that_the_user_names_reads_the_whole_chat() -> None:
    found = turns({"messages": [*FIRST, *SECOND], "ask": "Which?"}, question="ask")
    assert [one.sample.question for one in found] == ["Which?"]


def test_unknown_turns_are_refused() -> None:
    with pytest.raises(InputError, match="unknown turns 'first'"):
        list(read_samples([{}], turns="first"))


def test_many_turns_are_read_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message is looked at once for its turn, and once more for the last one."""
    from trustassay.input import messages

    looked: list[Any] = []
    own = messages._read_value

    def counted(given: Any) -> Any:
        looked.append(given)
        return own(given)

    monkeypatch.setattr(messages, "_read_value", counted)
    chat = [one for n in range(50) for one in (ask(f"{n}?"), say(f"{n}."))]
    assert len(located({"messages": chat})) == 50
    assert len(looked) <= 3 * len(chat)


def test_conversations_are_the_units_of_a_run(tmp_path: Path) -> None:
    rows = [{"id": f"c{n}", "messages": [*FIRST, *SECOND]} for n in range(3)]
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "run"
    given = ("--entailer", "lexical", "--metric", "faithfulness", "--turns", "all")
    result = run_command("score", path, *given, "--out", out, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    message = " ".join(result.stderr.split())
    assert (
        ": 3; at least 20 are needed; score with --unit answer to take each answer as a unit"
        in message
    )
    assert json.loads((out / "run.json").read_text())["unit"] == "conversation"


def test_a_file_without_a_chat_is_refused(tmp_path: Path) -> None:
    rows = [{"question": "q", "response": "a", "documents": ["d"]}]
    with pytest.raises(InputError, match="turns: no record is a chat log"):
        score(rows, metrics=["faithfulness"], entailer="lexical", turns="all")


def test_turns_have_no_effect_on_a_log_that_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"messages": FIRST}) + "\n")
    given = ("--follow", "--threshold", "1", "--out", "run", "--turns", "all")
    result = run_command("score", path, *given, cwd=tmp_path)
    assert result.returncode == 2
    assert "--turns: has no effect with --follow" in result.stderr

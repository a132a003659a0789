"""Which span of a trace answers: helpers around it, agents in agents, spans without texts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.input.test_traces import (
    SHOWN,
    A,
    Json,
    Q,
    chat,
    faults,
    lines,
    otlp,
    replying,
    samples,
    span,
    texts,
    tool,
)
from tests.support import run_command
from trustassay.input import InputError, read_samples

HERE = Path(__file__).parent / "traces"
CONTEXT = "\n\n".join(SHOWN)
SEARCH = "river Lisbon name"
REWRITE = f"Rewrite as a search query: {Q}"
SAFE = f"Is this text safe? {A}"
TITLE = f"Write a title for a chat that begins so: {Q}"
MUTE: Json = {"gen_ai.output.messages": ""}


@pytest.mark.parametrize("exporter", ["genai", "langfuse", "mlflow", "openinference", "phoenix"])
def test_a_service_with_helpers_behind_another_one_is_read(exporter: str) -> None:
    """Recorded: a remote parent, a rewritten query, passages in the prompt, a guard, a title."""
    [sample] = samples(HERE / f"{exporter}-service.json")
    assert (sample.question, sample.response, sample.model) == (Q, A, "m")
    assert texts(sample) == SHOWN


def one(spans: Sequence[Json], **options: Any) -> Any:
    [result] = read_samples([otlp(*spans)], **options)
    return getattr(result, "sample", result)


def kind(number: int, parent: int, value: str, name: str = "", **attributes: Any) -> Json:
    return span(number, parent, name=name, openinference__span__kind=value, **attributes)


ROOT = span(1, name="POST /chat", http__request__method="POST")
FOUND = tool(3, 1, json.dumps(SHOWN))
ANSWER = chat(4, 1, name="chat m")


def helper(number: int, parent: int, ask: str, say: str, name: str = "", **more: Any) -> Json:
    return chat(number, parent, ask, say, name=name, **more)


AFTER = {
    "guardrail by its name": [helper(5, 1, SAFE, "SAFE", "guardrail chat")],
    "title by its name": [helper(5, 1, TITLE, "Rivers of Lisbon", "generateTitle")],
    "summary by its name": [helper(5, 1, A, "They spoke of the Tagus.", "update_memory")],
    "judge by its name": [helper(5, 1, A, "It is good.", "LLM-as-judge")],
    "follow-ups by their name": [helper(5, 1, A, "How long is it?", "suggest follow-ups")],
    "guard by the kind around it": [
        kind(5, 1, "GUARDRAIL", "check"),
        helper(6, 5, SAFE, "It is harmless.", "chat m"),
    ],
    "judge by the kind around it": [
        kind(5, 1, "EVALUATOR", "check"),
        helper(6, 5, A, "It is right.", "chat m"),
    ],
    "guard by the name around it": [
        kind(5, 1, "CHAIN", "output_moderation", output__value="fine, all of it."),
        helper(6, 5, SAFE, "It is harmless.", "chat m"),
    ],
    "guard by its model": [
        helper(5, 1, A, "safe.", "chat", **{"gen_ai.request.model": "llama-guard-3"})
    ],
    "guard by its verdict": [helper(5, 1, SAFE, "unsafe\nS1", "chat m")],
    "two of them": [
        helper(5, 1, SAFE, "SAFE", "chat m"),
        helper(6, 1, TITLE, "Rivers of Lisbon", "title"),
    ],
    "an embedding": [kind(5, 1, "EMBEDDING", input__value=A, output__value="[0.1]")],
    "a call without texts": [span(5, 1, gen_ai__operation__name="chat")],
}


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
@pytest.mark.parametrize("root", [ROOT, None])
def test_a_helper_behind_the_answer_is_not_the_answer(after: list[Json], root: Json | None) -> None:
    spans = [*([root] if root else []), FOUND, ANSWER, *after]
    sample = one(spans)
    assert (sample.question, sample.response) == (Q, A)
    assert texts(sample)[:2] == SHOWN


BEFORE = {
    "rewriting by its name": helper(2, 1, REWRITE, SEARCH, "rewrite_query"),
    "a request to rewrite": helper(
        2, 1, f"Chat History:\nUser: Hi\nFollow Up Input: {Q}\nStandalone question:", Q, "chat m"
    ),
    "an unknown call": helper(2, 1, REWRITE, SEARCH, "chat m"),
    "a passage that a model made up": helper(2, 1, f"Write a passage on: {Q}", A, "hyde"),
    "a route": helper(2, 1, f"Which tool? {Q}", "search", "router"),
    "a failed try": {
        **helper(2, 1, Q, "", "chat m", **MUTE),
        "status": {"code": 2, "message": "429"},
    },
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_a_helper_before_the_answer_is_neither_question_nor_answer(before: Json) -> None:
    sample = one([ROOT, before, FOUND, ANSWER])
    assert (sample.question, sample.response) == (Q, A)


def test_the_user_s_question_is_that_of_the_root_and_not_the_rewritten_one() -> None:
    prompt = f"Context:\n{CONTEXT}\n\nQuestion: river of Lisbon, name"
    answer = chat(4, 2, prompt, name="chat m")
    for top in (
        [span(1, input__value=Q), kind(2, 1, "CHAIN")],
        [ROOT, kind(2, 1, "CHAIN", input__value=Q)],
    ):
        sample = one([*top, helper(3, 2, REWRITE, SEARCH, "rewrite"), answer])
        assert (sample.question, sample.response) == (Q, A)
        assert texts(sample) == SHOWN


def test_what_the_root_returns_is_the_answer_whatever_its_name() -> None:
    root = kind(1, 0, "CHAIN", "summarize", input__value=Q, output__value="Edited: " + A)
    draft = chat(4, 1, answer=A, **{"gen_ai.request.model": "writer"})
    later = chat(5, 1, "Anything else?", "No, that was all of it.", **{"gen_ai.request.model": "x"})
    sample = one([root, draft, later])
    assert (sample.response, sample.model) == ("Edited: " + A, "writer")


def test_the_call_whose_output_the_root_returns_in_unknown_fields_answers() -> None:
    output = json.dumps({"reply": {"markdown": A}, "topic": "Rivers of Lisbon", "ms": 12})
    root = kind(1, 0, "CHAIN", input__value=Q, output__value=output)
    after = helper(5, 1, TITLE, "A title of several words.", "chat m")
    assert one([root, ANSWER, after]).response == A


def test_an_agent_s_output_comes_before_those_of_its_calls() -> None:
    agent = span(2, 1, gen_ai__operation__name="invoke_agent", gen_ai__output__messages=replying(A))
    sample = one([ROOT, agent, chat(3, 2, answer="Draft."), chat(4, 2, answer="Second draft.")])
    assert (sample.question, sample.response) == (Q, A)


def test_the_answer_of_an_agent_that_is_a_tool_is_no_final_answer() -> None:
    inner = [tool(2, 1, "The Tagus."), chat(3, 2, "Find the river.", "It is the Tagus, I found.")]
    assert one([ROOT, *inner, chat(4, 1)]).response == A
    after = [tool(5, 1, "Saved."), chat(6, 5, A, "I will save it.")]
    assert one([ROOT, chat(4, 1), *after]).response == A
    nested = span(2, 1, gen_ai__operation__name="invoke_agent", name="researcher")
    assert one([ROOT, nested, chat(3, 2, "Find it.", "Notes."), chat(4, 1)]).response == A


def test_a_name_of_what_holds_all_the_work_says_nothing() -> None:
    router = span(2, 1, name="router agent", gen_ai__operation__name="invoke_agent")
    found, answer = tool(3, 2, json.dumps(SHOWN)), chat(4, 2)
    assert one([ROOT, router, found, answer]).response == A


def test_calls_side_by_side_before_the_answer_are_no_answers() -> None:
    long = {"endTimeUnixNano": str(10**18 + 3)}
    parts = [
        chat(2, 1, "Part one?", "One of them.") | long,
        chat(3, 1, "Part two?", "Two of them."),
    ]
    assert one([ROOT, *parts, chat(4, 1)]).response == A


def test_a_call_inside_the_same_call_is_read_with_it() -> None:
    outer = chat(2, 1, name="ChatModel", **MUTE)
    inner = chat(3, 2, name="chat m", **{"gen_ai.request.model": "m"})
    sample = one([ROOT, outer, inner])
    assert (sample.question, sample.response) == (Q, A)


REQUESTS = (
    "Generate a short title (max 5 words) for this conversation.",
    "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.",
    "Suggest 3-5 relevant follow-up questions that the user might ask next in this conversation.",
    "Erzeuge einen kurzen Titel für dieses Gespräch.",
)


@pytest.mark.parametrize("reply", ["Lisbon", "Rivers of Lisbon?", '{"title": "One. Two. Three."}'])
@pytest.mark.parametrize("request_text", REQUESTS)
def test_a_title_of_the_chat_is_no_answer_whatever_its_call_is_named(
    request_text: str, reply: str
) -> None:
    later = helper(5, 1, f"{request_text}\n\nuser: {Q}\nassistant: {A}", reply, "chat m")
    assert one([ROOT, FOUND, ANSWER, later]).response == A
    messages = [("system", request_text), ("user", Q), ("assistant", A), ("user", "Go on.")]
    parts = [
        {"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages
    ]
    later = chat(5, 1, answer=reply, name="chat m", gen_ai__input__messages=json.dumps(parts))
    assert one([ROOT, FOUND, ANSWER, later]).response == A


def test_an_answer_to_a_question_about_titles_is_one() -> None:
    draft = "I will look for the title of the book in the catalogue."
    ask = f"What is the title of the book?\n\nDraft: {draft}"
    last = chat(5, 1, ask, "The title is Emma, as printed.", name="chat m")
    sample = one([ROOT, chat(4, 1, "What is the title of the book?", draft), last])
    assert sample.response == "The title is Emma, as printed."


def test_several_roots_are_read_as_parts_of_one() -> None:
    roots = [
        kind(1, 0, "RETRIEVER", "find", input__value=SEARCH, output__value=json.dumps(SHOWN)),
        chat(2, 0, name="answer"),
        helper(3, 0, TITLE, "Rivers of Lisbon", "title"),
    ]
    sample = one(roots)
    assert (sample.question, sample.response, texts(sample)) == (Q, A, SHOWN)
    assert sample.metadata["root_span"] == "s2"


# ---- parents that are not in the file ----


def test_a_parent_in_another_service_makes_a_root() -> None:
    remote = kind(2, 99, "CHAIN", "answer", input__value=Q, output__value=A)
    result = tool(3, 2, json.dumps(SHOWN))
    sample = one([remote, result])
    assert (sample.question, sample.response, texts(sample)) == (Q, A, SHOWN)
    assert sample.metadata["root_span"] == "s2"
    # A gateway in the same file, with an unknown service between them.
    sample = one([span(1, name="gateway"), remote, result])
    assert (sample.question, sample.response) == (Q, A)


def test_spans_whose_common_parent_was_filtered_out_are_read_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [tool(3, 1, json.dumps(SHOWN)), ANSWER, helper(5, 1, SAFE, "SAFE", "guardrail")]
    [sample] = samples(lines(tmp_path, [otlp(*spans)]))
    assert sample.response == A
    assert "; traces without a root (1); " in capsys.readouterr().err


CALL = {"type": "tool_call", "id": "c", "name": "search", "arguments": {}}


@pytest.mark.parametrize(
    "spans",
    [
        [tool(3, 1, json.dumps(SHOWN))],
        [chat(2, 1), tool(3, 1, json.dumps(SHOWN))],
        [chat(2, 1, **{"gen_ai.output.messages": replying("I look.", CALL)})],
        [tool(2, 1, json.dumps(SHOWN)), chat(3, 1, **MUTE)],
    ],
)
def test_a_trace_that_was_cut_in_its_work_is_a_fault(spans: list[Json]) -> None:
    [message] = faults([otlp(*spans)])
    assert "parent: expected a span of the file, got 's1' (the trace is truncated)" in message


# ---- nothing is guessed ----

OPTION = "name the span with the answer (--answer-span NAME); spans with outputs: "


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        (
            [ROOT, helper(2, 1, SAFE, "SAFE", "guardrail"), helper(3, 1, TITLE, "Rivers", "title")],
            f"every model call looks like a helper (guardrail, title); {OPTION}guardrail, title",
        ),
        (
            [
                ROOT,
                chat(2, 1, answer="One answer.", name="left")
                | {"endTimeUnixNano": str(10**18 + 9)},
                chat(3, 1, answer="Another one.", name="right"),
            ],
            f"right, left ran at the same time; {OPTION}left, right",
        ),
        (
            [ROOT, ANSWER, helper(5, 1, f"Name this: {A}", "Rivers of Lisbon", "chat small")],
            "'chat small' received the output of 'chat m' and returned no sentence; "
            f"{OPTION}chat m, chat small",
        ),
    ],
)
def test_an_answer_that_is_not_certain_is_a_fault_with_the_names(
    spans: list[Json], message: str
) -> None:
    [fault] = faults([otlp(*spans)])
    assert fault.endswith(f"response: is not certain: {message}")


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (chat(5, 1, name="stream", **MUTE), "'stream'"),
        (
            chat(5, 1, name="retry", **MUTE) | {"status": {"code": 2, "message": "timeout"}},
            "'retry', which failed ('timeout')",
        ),
    ],
)
def test_a_last_call_without_an_output_does_not_get_the_one_before(
    last: Json, message: str
) -> None:
    [fault] = faults([otlp(ROOT, helper(2, 1, REWRITE, SEARCH, "chat m"), last)])
    assert fault.endswith(f"response: is missing in the last model call, {message}")


def test_a_root_s_output_stands_in_for_a_stream_without_one() -> None:
    root = span(1, input__value=Q, output__value=A)
    assert one([root, helper(2, 1, REWRITE, SEARCH, "rewrite"), chat(3, 1, **MUTE)]).response == A


# ---- rows that are calls of models ----


def test_helpers_among_calls_that_are_samples_each_are_left_out() -> None:
    rows = [
        {"id": f"g{n}", "traceId": "t", "type": "GENERATION", "name": name, "input": Q, "output": A}
        | {"startTime": f"2025-01-01T00:00:0{n}Z"}
        for n, name in enumerate(["model", "make_title", "model"])
    ]
    assert [sample.id for sample in samples(rows)] == ["g0", "g2"]
    [alone] = samples([rows[1] | {"traceId": "u"}])
    assert alone.response == A


# ---- the user's choice ----


def test_the_span_of_a_name_answers() -> None:
    spans = [ROOT, helper(2, 1, REWRITE, SEARCH, "rewrite"), FOUND, ANSWER]
    assert one(spans, answer_span="rewrite").response == SEARCH
    again = chat(5, 1, answer="And again.", name="chat m")
    assert one([*spans, again], answer_span="chat m").response == "And again."
    cut = [chat(2, 1, name="chat m"), tool(3, 1, "x")]
    assert one(cut, answer_span="chat m").response == A


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no span is named 'chat'.*outputs: chat m") as error:
        samples_named = read_samples([otlp(ROOT, ANSWER)], answer_span="chat")
        list(samples_named)
    assert "the samples: " in str(error.value)
    with pytest.raises(InputError, match="outputs: none"):
        list(read_samples([{"question": Q, "response": A}], answer_span="chat"))


def test_a_trace_without_the_name_is_a_fault() -> None:
    other = [one_span | {"traceId": "t2"} for one_span in (ROOT, helper(2, 1, TITLE, "R", "title"))]
    first, second = read_samples([otlp(ROOT, ANSWER), otlp(*other)], answer_span="chat m")
    assert getattr(first, "sample").response == A  # noqa: B009
    assert "response: is missing: no span named 'chat m' (--answer-span)" in str(second)


def test_the_option_reaches_the_run_and_the_choice_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(otlp(ROOT, FOUND, ANSWER, helper(5, 1, SAFE, "SAFE", "guard"))))
    options = ("--entailer", "lexical", "--metric", "faithfulness", "--out")
    result = run_command("score", path, *options, "a", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (
        f"{path}: traces: question from gen_ai.input.messages of 'chat m' (1); "
        "response from gen_ai.output.messages of 'chat m' (1); passages (2); "
        "ignored helper calls 'guard' (1)\n"
    ) in result.stderr
    result = run_command("score", path, *options, "b", "--answer-span", "guard", cwd=tmp_path)
    assert "response from gen_ai.output.messages of 'guard' (1)" in result.stderr
    result = run_command("score", path, *options, "c", "--answer-span", "x", cwd=tmp_path)
    assert result.returncode == 2
    assert "no span is named 'x' (--answer-span); spans with outputs: " in result.stderr


def test_many_names_are_told_by_their_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [chat(n, 0, trace=f"t{n}", name=f"call {n}") for n in range(1, 9)]
    samples(lines(tmp_path, [otlp(*spans)]))
    line = capsys.readouterr().err
    assert line.count("'call ") == 10
    assert "others (3)" in line


def test_the_question_asked_in_a_prompt_of_text_alone_is_read() -> None:
    prompt = f"Use the following context.\n\n{CONTEXT}\n\nQuestion: {Q}\nAnswer:"
    llm = kind(2, 1, "LLM", "Completion", input__value=prompt, output__value=A)
    sample = one([ROOT, llm])
    assert (sample.question, texts(sample)) == (Q, SHOWN)


def test_a_single_root_answers_whatever_its_name() -> None:
    answer = json.dumps({"answer": A})
    root = span(1, name="guardrail service", input__value=Q, output__value=answer)
    assert one([root, chat(2, 1, answer="A draft that is not the answer.")]).response == A


def test_a_server_of_tools_that_asks_a_model_is_a_root_that_answers() -> None:
    server = tool(1, 0, json.dumps({"answer": A}), input__value=Q)
    sample = one([server, chat(2, 1, REWRITE, "A draft that is not the answer.")])
    assert (sample.question, sample.response) == (Q, A)


def test_a_chat_in_which_a_title_was_once_asked_for_has_its_answer() -> None:
    plan = "First I look up the river in the atlas of Portugal."
    earlier = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": plan}]
    title = [{"role": "user", "content": TITLE}, {"role": "assistant", "content": "Rivers"}]
    messages = json.dumps([*earlier, *title, {"role": "user", "content": Q}])
    last = chat(3, 1, name="chat m", **{"gen_ai.input.messages": messages})
    assert one([ROOT, chat(2, 1, answer=plan, name="chat m"), last]).response == A


def test_a_parent_of_zeros_is_no_parent() -> None:
    root = ROOT | {"parentSpanId": "0000000000000000"}
    assert "question: is missing" in str(one([root, FOUND]))


def test_a_passage_that_a_prompt_shows_with_other_spaces_counts_once() -> None:
    context = CONTEXT.replace(" ", "  ")
    asked = f"Use the following context.\n\n{context}\n\nQuestion: {Q}\nAnswer:"
    assert texts(one([ROOT, FOUND, chat(4, 1, asked, name="chat m")])) == SHOWN

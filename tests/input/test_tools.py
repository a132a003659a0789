"""One file of each tool, laid out as the tool writes it, read without an option."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from trustassay.core.sample import Problem, Sample
from trustassay.input import InputError, InputFault, LocatedSample, read_samples

Q = "Which river runs through Lisbon?"
A = "The Tagus runs through Lisbon."
GOLD = "The Tagus."
SHOWN = ["The Tagus reaches the sea at Lisbon.", "Lisbon has seven hills."]
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": Q}]


def table(header: Sequence[str], row: Sequence[Any], delimiter: str = ",") -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows([header, row])
    return file.getvalue()


def langchain(kind: str, text: str) -> dict[str, Any]:
    kwargs = {"content": text, "type": kind.removesuffix("Message").lower()}
    return {"lc": 1, "type": "constructor", "id": ["langchain", kind], "kwargs": kwargs}


RAGCHECKER = {
    "query_id": "0",
    "query": Q,
    "gt_answer": GOLD,
    "response": A,
    "retrieved_context": [{"doc_id": f"00{n}", "text": text} for n, text in enumerate(SHOWN)],
}
PASSAGES = [{"page_content": text, "metadata": {}, "type": "Document"} for text in SHOWN]
EVENT = {"run_id": "r", "sample_id": "e.0", "created_by": "", "created_at": "2025-01-01"}
FILES: dict[str, tuple[str, Any]] = {
    "Ragas": (
        "x.jsonl",
        {"user_input": Q, "response": A, "retrieved_contexts": SHOWN, "reference": GOLD},
    ),
    "Ragas, written by pandas": (
        "x.csv",
        table(
            ["user_input", "retrieved_contexts", "response", "reference", "faithfulness"],
            [Q, str(SHOWN), A, GOLD, 0.5],
        ),
    ),
    "Ragas before 0.2": (
        "x.jsonl",
        {"question": Q, "answer": A, "contexts": SHOWN, "ground_truths": [GOLD]},
    ),
    "DeepEval": (
        "x.json",
        [{"input": Q, "actual_output": A, "expected_output": GOLD, "retrieval_context": SHOWN}],
    ),
    "DeepEval, a test run": (
        "x.json",
        {
            "testCases": [
                {
                    "name": "test_0",
                    "input": Q,
                    "actualOutput": A,
                    "expectedOutput": GOLD,
                    "retrievalContext": SHOWN,
                    "metricsData": [],
                }
            ]
        },
    ),
    "DeepEval, a table": (
        "x.csv",
        table(
            [
                *("input", "actual_output", "expected_output", "retrieval_context", "context"),
                *("name", "comments", "source_file", "additional_metadata"),
            ],
            [Q, A, GOLD, "|".join(SHOWN), "", "", "", "", ""],
        ),
    ),
    "LangSmith, a run": (
        "x.jsonl",
        {
            "id": "r1",
            "name": "rag",
            "run_type": "chain",
            "inputs": {"question": Q},
            "outputs": {"answer": A, "documents": PASSAGES},
            "reference_outputs": {"answer": GOLD},
        },
    ),
    "LangSmith, an experiment's frame": (
        "x.csv",
        table(
            [
                *("inputs.question", "outputs.answer", "outputs.contexts", "error"),
                *("reference.answer", "feedback.correctness", "example_id", "id"),
            ],
            [Q, A, str(SHOWN), "", GOLD, 1, "e1", "r1"],
        ),
    ),
    "LangSmith, a table": (
        "x.csv",
        table(
            ["id", "inputs", "outputs", "reference_outputs"],
            [
                "r1",
                json.dumps({"question": Q}),
                json.dumps({"answer": A, "contexts": SHOWN}),
                json.dumps({"answer": GOLD}),
            ],
        ),
    ),
    "Langfuse, traces": (
        "x.json",
        [
            {
                "id": "t1",
                "name": "chat",
                "input": {"question": Q},
                "output": {"answer": A},
                "expectedOutput": {"answer": GOLD},
                "metadata": {"contexts": SHOWN},
                "observations": [],
            }
        ],
    ),
    "Langfuse, a table": (
        "x.csv",
        table(
            ["id", "name", "input", "output", "expectedOutput", "metadata"],
            ["t1", "chat", json.dumps({"question": Q}), A, GOLD, json.dumps({"contexts": SHOWN})],
        ),
    ),
    "promptfoo": (
        "x.json",
        {
            "evalId": "eval-1",
            "results": {
                "version": 3,
                "prompts": [{"raw": "Answer {{question}}", "provider": "openai:m"}],
                "results": [
                    {
                        "id": "p1",
                        "testIdx": 0,
                        "testCase": {"vars": {"question": Q}, "assert": []},
                        "provider": {"id": "openai:m", "label": ""},
                        "prompt": {"raw": f"Answer {Q}", "label": "Answer {{question}}"},
                        "vars": {"question": Q, "context": SHOWN, "expected": GOLD},
                        "response": {"output": A, "tokenUsage": {"total": 9}},
                        "success": True,
                        "score": 1,
                    }
                ],
                "stats": {},
            },
            "config": {},
        },
    ),
    "promptfoo, JSON Lines": (
        "x.jsonl",
        {
            "provider": {"id": "openai:m", "label": ""},
            "prompt": {"raw": f"Answer {Q}", "label": "Answer {{question}}"},
            "promptIdx": 0,
            "gradingResult": {"pass": False, "reason": "The expected answer is another."},
            "testCase": {"vars": {"question": Q, "expected": GOLD}, "assert": []},
            "vars": {"question": Q, "context": SHOWN, "expected": GOLD},
            "response": {"output": A},
            "error": "The expected answer is another.",
        },
    ),
    "RAGChecker, what it gets": ("x.json", {"input_data": [RAGCHECKER]}),
    "RAGChecker, what it writes": (
        "x.json",
        {
            "results": [{**RAGCHECKER, "metrics": {}, "response_claims": [["a", "b", "c"]]}],
            "metrics": {"overall_metrics": {}},
        },
    ),
    "lm-evaluation-harness": (
        "x.jsonl",
        {
            "doc_id": 0,
            "doc": {"question": Q, "context": SHOWN, "answer": GOLD},
            "target": GOLD,
            "arguments": {"gen_args_0": {"arg_0": f"Q: {Q}\nA:", "arg_1": {"until": ["\n"]}}},
            "resps": [[f"{A} And so on."]],
            "filtered_resps": [A],
            "filter": "none",
            "exact_match": 0.0,
        },
    ),
    "inspect_ai": (
        "x.json",
        {
            "version": 2,
            "status": "success",
            "eval": {"task": "rivers", "model": "m"},
            "results": {"scores": [{"name": "match"}]},
            "samples": [
                {
                    "id": "s",
                    "epoch": 1,
                    "input": Q,
                    "target": GOLD,
                    "messages": [*MESSAGES, {"role": "assistant", "content": A}],
                    "output": {
                        "model": "m",
                        "choices": [{"message": {"role": "assistant", "content": A}}],
                        "completion": A,
                    },
                    "scores": {"match": {"value": "I", "answer": A, "explanation": GOLD}},
                    "metadata": {"context": SHOWN},
                    "events": [],
                }
            ],
        },
    ),
    "DeepEval, the last test run": (
        "x.json",
        {
            "testRunData": {
                "testCases": [
                    {
                        "name": "test_0",
                        "input": Q,
                        "actualOutput": A,
                        "expectedOutput": GOLD,
                        "retrievalContext": SHOWN,
                        "metricsData": [{"name": "Faithfulness", "reason": "Not so."}],
                    }
                ],
                "conversationalTestCases": [],
            }
        },
    ),
    "DeepEval, results": (
        "x.json",
        {
            "test_results": [
                {
                    "name": "test_0",
                    "success": False,
                    "input": Q,
                    "actual_output": A,
                    "expected_output": GOLD,
                    "context": None,
                    "retrieval_context": SHOWN,
                }
            ],
            "confident_link": None,
        },
    ),
    "Braintrust": (
        "x.jsonl",
        {
            "id": "b",
            "span_id": "b",
            "root_span_id": "b",
            "input": Q,
            "output": A,
            "expected": GOLD,
            "scores": {"Factuality": 0.4},
            "metadata": {"contexts": SHOWN},
        },
    ),
    "Braintrust, objects": (
        "x.jsonl",
        {
            "id": "b",
            "input": {"question": Q},
            "output": {"answer": A, "contexts": SHOWN},
            "expected": {"answer": GOLD},
            "scores": {},
        },
    ),
    "Azure's evaluators": (
        "x.jsonl",
        {
            "inputs.query": Q,
            "inputs.response": A,
            "inputs.context": SHOWN,
            "inputs.ground_truth": GOLD,
            "outputs.groundedness.groundedness": 1.0,
            "outputs.groundedness.groundedness_reason": "The response is not in the context.",
        },
    ),
    "Giskard, an evaluation": (
        "x.jsonl",
        {
            "id": "g",
            "question": Q,
            "reference_answer": GOLD,
            "reference_context": "Document 1: of the data set",
            "conversation_history": [],
            "metadata": {"question_type": "simple"},
            "agent_answer": A,
            "correctness": False,
            "correctness_reason": "The agent names another river.",
            "contexts": SHOWN,
        },
    ),
    "Ragas, a conversation": (
        "x.jsonl",
        {
            "user_input": [
                {"content": "Hello", "metadata": None, "type": "human"},
                {"content": "Yes?", "metadata": None, "type": "ai", "tool_calls": None},
                {"content": Q, "metadata": None, "type": "human"},
                {
                    "content": "",
                    "metadata": None,
                    "type": "ai",
                    "tool_calls": [{"name": "search", "args": {"q": "Lisbon"}}],
                },
                {"content": json.dumps(SHOWN), "metadata": None, "type": "tool"},
                {"content": A, "metadata": None, "type": "ai", "tool_calls": None},
            ],
            "reference": GOLD,
            "reference_topics": ["rivers"],
        },
    ),
    "Ragas, a conversation in a table of pandas": (
        "x.csv",
        table(
            ["user_input", "reference", "retrieved_contexts"],
            [
                [{"content": Q, "type": "human"}, {"content": A, "type": "ai", "metadata": None}],
                GOLD,
                SHOWN,
            ],
        ),
    ),
    "DeepEval, a conversation": (
        "x.json",
        {
            "testCases": [],
            "conversationalTestCases": [
                {
                    "name": "c",
                    "success": True,
                    "turns": [
                        {"role": "user", "content": Q, "order": 0},
                        {
                            "role": "assistant",
                            "content": A,
                            "order": 1,
                            "retrievalContext": SHOWN,
                        },
                    ],
                    "scenario": "A tourist asks.",
                    "context": None,
                    "ground_truth": GOLD,
                }
            ],
        },
    ),
    "OpenAI's evals, output items": (
        "x.json",
        {
            "object": "list",
            "data": [
                {
                    "object": "eval.run.output_item",
                    "id": "oi1",
                    "datasource_item": {"question": Q, "contexts": SHOWN, "reference": GOLD},
                    "results": [],
                    "sample": {
                        "input": [{"role": "user", "content": f"Read this. {Q}"}],
                        "output": [{"role": "assistant", "content": A}],
                        "model": "m",
                    },
                }
            ],
        },
    ),
    "a spreadsheet": (
        "x.csv",
        "\ufeff"
        + table(["Question", "Answer", "Contexts", "Ground Truth"], [Q, A, SHOWN, GOLD], ";"),
    ),
    "a table with tabs": (
        "x.csv",
        table(["Question", "Output", "Retrieved Contexts", "Reference"], [Q, A, SHOWN, GOLD], "\t"),
    ),
    "a table with camel case": (
        "x.jsonl",
        {"Input": Q, "ActualOutput": A, "RetrievalContext": SHOWN, "groundTruth": GOLD},
    ),
}


def read(folder: Path, name: str, content: Any) -> list[LocatedSample | InputFault]:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / name).write_text(text, encoding="utf-8")
    return list(read_samples(folder / name))


def sample_of(record: Mapping[str, Any]) -> Sample:
    [result] = read_samples([record])
    assert isinstance(result, LocatedSample), str(result)
    return result.sample


@pytest.mark.parametrize("tool", list(FILES))
def test_a_file_of_each_tool_is_read_whole(tool: str, tmp_path: Path) -> None:
    [result] = read(tmp_path, *FILES[tool])
    assert isinstance(result, LocatedSample), str(result)
    sample = result.sample
    assert (sample.question, sample.response, sample.claims) == (Q, A, (GOLD,))
    assert [document.text for document in sample.documents or ()] == SHOWN
    if tool.startswith(("promptfoo", "OpenAI", "inspect")):
        assert sample.model == ("openai:m" if tool.startswith("promptfoo") else "m")
    assert Sample.parse(sample.to_dict()) == sample


def test_what_was_read_is_not_kept_twice_and_the_rest_is_kept() -> None:
    sample = sample_of(FILES["LangSmith, a run"][1])
    assert sample.metadata == {"name": "rag", "run_type": "chain"}
    run = {"inputs": {"question": Q, "user_id": 7}, "outputs": {"answer": A}, "run_type": "llm"}
    assert sample_of(run).metadata == {"inputs": {"user_id": 7}, "run_type": "llm"}


# ---- several answers to a question, and none ----

LM_EVAL = FILES["lm-evaluation-harness"][1]
INSPECT = FILES["inspect_ai"][1]["samples"][0]


def test_a_filter_and_an_epoch_have_ids_of_their_own() -> None:
    filtered = [LM_EVAL, {**LM_EVAL, "filter": "strict"}]
    assert [found.sample.id for found in read_samples(filtered)] == ["0", "0-strict"]  # type: ignore[union-attr]
    repeated = [{**INSPECT, "id": 1}, {**INSPECT, "id": 1, "epoch": 2}]
    assert [found.sample.id for found in read_samples(repeated)] == ["1", "1-2"]  # type: ignore[union-attr]


@pytest.mark.parametrize("doc", [{"answer": GOLD}, {"problem": Q, "answer": GOLD}, {"text": ""}])
def test_where_a_document_has_no_question_the_prompt_is_it(doc: Any) -> None:
    sample = sample_of({**LM_EVAL, "doc": doc})
    assert (sample.question, sample.response) == (f"Q: {Q}\nA:", A)
    asked = [json.dumps(MESSAGES)]
    sample = sample_of({**LM_EVAL, "doc": doc, "arguments": {"gen_args_0": {"arg_0": asked}}})
    assert sample.question == Q


def test_a_filter_that_finds_nothing_leaves_the_reply() -> None:
    assert sample_of({**LM_EVAL, "filtered_resps": ["[invalid]"]}).response == f"{A} And so on."


@pytest.mark.parametrize("target", ["['Tagus', 'Tejo']", ["Tagus", "Tejo"]])
def test_several_targets_are_aliases(target: Any) -> None:
    for record in ({**LM_EVAL, "target": target}, {**INSPECT, "target": target}):
        assert sample_of(record).answers == (("Tagus", "Tejo"),)


@pytest.mark.parametrize(
    "likelihoods",
    [
        [["-1.5", "False"], ["-2.5", "True"]],
        [["-1.5", "False"]],
        [[-1.5, False], [-2.5, True]],
    ],
)
def test_likelihoods_of_choices_are_no_response(likelihoods: Any) -> None:
    record = {**LM_EVAL, "resps": [[pair] for pair in likelihoods], "filtered_resps": likelihoods}
    [located] = read_samples([record])
    assert isinstance(located, LocatedSample)
    assert located.sample.response is None
    problem = Problem("response", "is missing (expected the text to assess)")
    assert "response: is missing (filtered_resps has log-likelihoods of choices" in str(
        located.use_original_names(problem)
    )
    assert located.find_unknown_fields([problem]) is None


def test_the_error_of_a_record_says_why_it_has_no_answer() -> None:
    record = {**FILES["promptfoo, JSON Lines"][1], "response": {}, "error": "401: no key"}
    [located] = read_samples([record])
    assert isinstance(located, LocatedSample)
    problem = Problem("response", "is missing (expected the text to assess)")
    assert str(located.use_original_names(problem)).startswith(
        "response: is missing (error: 401: no key; "
    )


def test_results_of_tools_in_a_log_of_inspect_ai_are_passages() -> None:
    messages = [
        {"role": "user", "content": Q},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "t", "function": "search"}]},
        {"role": "tool", "tool_call_id": "t", "content": json.dumps(SHOWN)},
        {"role": "assistant", "content": A},
    ]
    sample = sample_of({**INSPECT, "messages": messages, "metadata": {}})
    assert [document.text for document in sample.documents or ()] == SHOWN
    assert sample.metadata["steps"]


def test_passages_in_the_question_of_inspect_ai_are_no_part_of_it() -> None:
    prompt = f"Use this context.\n\nContext:\n{SHOWN[0]}\n\nQuestion: {Q}\nAnswer:"
    asked = [{"role": "user", "content": prompt}]
    record = {**INSPECT, "input": asked, "metadata": {}}
    sample = sample_of({**record, "messages": [*asked, {"role": "assistant", "content": A}]})
    assert (sample.question, sample.response) == (Q, A)
    assert [document.text for document in sample.documents or ()] == SHOWN[:1]


def test_both_kinds_of_test_cases_of_a_run_are_read(tmp_path: Path) -> None:
    _, one = FILES["DeepEval, the last test run"]
    _, chats = FILES["DeepEval, a conversation"]
    run = one["testRunData"] | {k: v for k, v in chats.items() if v}
    reading = read(tmp_path, "x.json", run)
    assert [result.sample.response for result in reading] == [A, A]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.eval", "PK", r"inspect log dump .*x\.eval > log\.json"),
        ("x.yaml", "evalId: x", "promptfoo eval --output results.json"),
        ("x.json", '{"testRunLink": "https://x"}', r"\.deepeval/\.latest_run_full\.json"),
        ("x.csv", "response,sampled_responses\na,b\n", "add a field prompt"),
    ],
)
def test_a_file_that_is_not_read_names_the_one_to_give(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, name, content)


# ---- uqlm, and tables of promptfoo: no gold answers ----


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", table(["prompt", "response", "sampled_responses", "p"], [Q, A, SHOWN, 0.5])),
        ("x.jsonl", {"prompt": Q, "response": A, "sampled_responses": SHOWN, "logprob": 0.1}),
        (
            "x.json",
            {
                "data": {"prompts": [Q], "responses": [A], "sampled_responses": [SHOWN], "p": [1]},
                "metadata": {"temperature": 1.0},
            },
        ),
    ],
)
def test_results_of_uqlm_have_resamples(tmp_path: Path, name: str, content: Any) -> None:
    [found] = read(tmp_path, name, content)
    assert isinstance(found, LocatedSample), found
    assert (found.sample.question, found.sample.response) == (Q, A)
    assert found.sample.resamples == tuple(SHOWN)


def test_results_of_uqlm_without_prompts_say_what_to_add(tmp_path: Path) -> None:
    content = {"data": {"responses": [A], "sampled_responses": [SHOWN]}, "metadata": {}}
    [fault] = read(tmp_path, "x.json", content)
    assert "question: is missing (uqlm writes no prompts when it only scores" in str(fault)


def test_a_table_of_promptfoo_has_its_answers_below_the_prompt(tmp_path: Path) -> None:
    header = ["question", "context", "[openai:m] Answer by\n{{context}}", "Status", "Score"]
    content = table([*header, "Grader Reason"], [Q, SHOWN[0], A, "FAIL", 0, "No."])
    [found] = read(tmp_path, "x.csv", content)
    assert isinstance(found, LocatedSample), found
    assert (found.sample.question, found.sample.response) == (Q, A)


# ---- messages ----


@pytest.mark.parametrize(
    "asked",
    [
        MESSAGES,
        {"messages": MESSAGES},
        {"messages": [[langchain("SystemMessage", "Be brief."), langchain("HumanMessage", Q)]]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": Q}]}]},
        [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}, *MESSAGES],
        json.dumps({"messages": MESSAGES}),
    ],
)
@pytest.mark.parametrize(
    "said",
    [
        A,
        {"role": "assistant", "content": A},
        [*MESSAGES, {"role": "assistant", "content": A}],
        {"choices": [{"message": {"role": "assistant", "content": A}, "finish_reason": "stop"}]},
        {"generations": [[{"text": A, "type": "ChatGeneration"}]]},
        {"output": langchain("AIMessage", A)},
    ],
)
@pytest.mark.parametrize("names", [("input", "output"), ("inputs", "outputs")])
def test_the_last_message_of_each_role_counts(
    asked: Any, said: Any, names: tuple[str, str]
) -> None:
    sample = sample_of(dict(zip(names, (asked, said), strict=True)))
    assert (sample.question, sample.response) == (Q, A)


def test_earlier_messages_are_kept() -> None:
    sample = sample_of({"input": MESSAGES, "output": A})
    assert sample.metadata == {"input": MESSAGES}


def test_an_answer_that_is_json_stays_text() -> None:
    sample = sample_of({"input": "List two towns.", "output": '["Rome", "Lisbon"]'})
    assert sample.response == '["Rome", "Lisbon"]'
    sample = sample_of({"input": MESSAGES, "output": '{"town": "Rome", "river": "Tiber"}'})
    assert sample.response == '{"town": "Rome", "river": "Tiber"}'


# ---- chat logs ----

CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "t", "type": "function"}]}


def tool(content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "t", "content": content}


def turn(*between: Any, system: str = "Be brief.") -> list[Any]:
    parts = [{"type": "text", "text": Q}, {"type": "image_url", "image_url": {"url": "x"}}]
    return [
        {"role": "developer", "content": system},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": parts},
        *between,
        {"role": "assistant", "content": A},
    ]


@pytest.mark.parametrize(
    ("messages", "shown"),
    [
        (turn(), None),
        (turn(CALL, tool("one")), ["one"]),
        (turn(CALL, tool("one"), tool([{"type": "text", "text": "two"}])), ["one", "two"]),
        (turn(CALL, tool('["one", "two"]')), ["one", "two"]),
        (turn(CALL, tool('{"results": [{"title": "t", "content": "one"}]}')), ["one"]),
        (turn(CALL, tool('{"degrees": 20}')), ['{"degrees": 20}']),
        (turn(system="Context:\n[1] one\n[2] two\n\nQuestion: below"), ["one", "two"]),
        (turn(system="Use the following passages:\n\none\n\ntwo"), ["one", "two"]),
        (
            turn(system="Cite.\n<context>\nDocument 1: one\nDocument 2: two</context>"),
            ["one", "two"],
        ),
        (turn(system="You are given documents. Context matters: be brief."), None),
        ([{"from": "human", "value": Q}, {"from": "gpt", "value": A}], None),
    ],
)
def test_a_chat_log_gives_its_last_turn(messages: list[Any], shown: list[str] | None) -> None:
    for record in ({"messages": messages}, {"messages": json.dumps(messages)}):
        sample = sample_of(record)
        assert (sample.question, sample.response) == (Q, A)
        documents = sample.documents
        assert (None if documents is None else [one.text for one in documents]) == shown
        assert sample.metadata["messages"] == messages
        assert sample.metadata.keys() <= {"messages", "steps"}


def test_a_question_that_has_no_answer_yet_does_not_get_the_one_before() -> None:
    sample = sample_of({"messages": turn()[:-1]})
    assert (sample.question, sample.response) == ("Hello", "Yes?")
    asked = {"messages": turn()[:-1], "choices": [{"message": {"role": "assistant", "content": A}}]}
    assert sample_of(asked).response == A


def test_what_a_record_says_beside_its_messages_has_precedence() -> None:
    beside = {"messages": turn(CALL, tool("one")), "contexts": ["two"], "response": "B."}
    sample = sample_of(beside)
    assert (sample.question, sample.response) == (Q, "B.")
    assert [document.text for document in sample.documents or ()] == ["two"]
    assert sample_of({"question": "Own?", "messages": turn()}).question == "Own?"


# ---- examples, and logs of events ----


@pytest.mark.parametrize(
    "example",
    [
        {"id": "e", "dataset_id": "d", "inputs": {"question": Q}, "outputs": {"answer": GOLD}},
        {"id": "e", "datasetName": "d", "input": {"question": Q}, "expectedOutput": GOLD},
        {"inputs": {"question": Q}, "reference_outputs": {"answer": GOLD}},
    ],
)
def test_an_example_has_a_gold_answer_and_no_response(example: Mapping[str, Any]) -> None:
    sample = sample_of(example)
    assert (sample.question, sample.response, sample.claims) == (Q, None, (GOLD,))


@pytest.mark.parametrize(("ideal", "aliases"), [(GOLD, (GOLD,)), ([GOLD, "Tejo"], (GOLD, "Tejo"))])
@pytest.mark.parametrize("asked", [Q, MESSAGES])
def test_ideal_answers_of_openai_s_evals(asked: Any, ideal: Any, aliases: tuple[str, ...]) -> None:
    sample = sample_of({"input": asked, "ideal": ideal})
    assert (sample.question, sample.answers) == (Q, (aliases,))


def test_of_a_log_of_events_only_answers_are_read(tmp_path: Path) -> None:
    prompt = {"prompt": MESSAGES, "sampled": [A]}
    lines = [
        {"spec": {"eval_name": "rivers"}},
        {**EVENT, "event_id": 0, "type": "sampling", "data": prompt},
        {**EVENT, "event_id": 1, "type": "match", "data": {"correct": True, "expected": GOLD}},
        {"final_report": {"accuracy": 1.0}},
    ]
    [found] = read(tmp_path, "x.jsonl", "\n".join(map(json.dumps, lines)))
    assert isinstance(found, LocatedSample)
    assert (found.where[-2:], found.sample.question, found.sample.response) == (":2", Q, A)
    with pytest.raises(InputError, match="contains no records"):
        read(tmp_path, "y.jsonl", json.dumps(lines[0]))


# ---- names in faults, and --field ----


def test_faults_bear_the_nested_or_capital_names() -> None:
    [fault] = read_samples([{"inputs": {"question": Q}, "outputs": {"answer": A, "docs": [7]}}])
    assert str(fault) == "sample 1: outputs.docs[0]: expected a document or its text, got 7"
    [fault] = read_samples([{"Question": Q, "Answer": [7], "Contexts": ["a"]}])
    assert str(fault) == "sample 1: Answer: expected text, got a list"


def test_a_field_that_is_named_is_read_from_the_record_as_it_is() -> None:
    record = {"inputs": {"question": Q, "hint": "H"}, "outputs": {"answer": A}, "Answer": "own"}
    [found] = read_samples([record], fields={"question": "inputs.hint", "response": "Answer"})
    assert isinstance(found, LocatedSample)
    assert (found.sample.question, found.sample.response) == ("H", "own")


def test_a_known_name_is_not_displaced_by_another_spelling() -> None:
    sample = sample_of({"question": Q, "Question": "other", "response": A})
    assert (sample.question, sample.metadata) == (Q, {"Question": "other"})


@pytest.mark.parametrize(
    "record",
    [
        {"inputs": {"a": "x", "b": "y"}, "outputs": {"answer": A}},
        {"inputs": [], "outputs": None},
        {"inputs": 3},
        {"vars": {}, "response": {}},
        {"input": [{"role": "user"}], "output": "x"},
        {"datasource_item": {}, "sample": {"input": [], "output": []}},
        {"inputs": "[" * 5000, "outputs": "{" * 5000},
    ],
)
def test_a_nested_record_without_a_question_is_a_fault(record: Mapping[str, Any]) -> None:
    [fault] = read_samples([record])
    assert isinstance(fault, InputFault)


def test_nesting_of_any_depth_is_read_or_a_fault() -> None:
    deep: Any = Q
    for _ in range(20):
        deep = {"input": deep}
    [fault] = read_samples([{"inputs": deep}])
    assert isinstance(fault, InputFault)

"""Published data sets are read as they are; texts here are made up in their layouts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from trustassay.core.sample import Sample
from trustassay.input.chats import SUMMARIZE
from trustassay.input.reading import LocatedSample, read_samples

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")).resolve() / "data"


def samples(source: Any, **options: Any) -> list[Sample]:
    found = list(read_samples(source, **options))
    assert all(isinstance(one, LocatedSample) for one in found), found
    return [one.sample for one in found if isinstance(one, LocatedSample)]


CHALE = {
    "Question": ["capital of x", "capital of y"],
    "Short_ans": ["A", "B"],
    "Long_ans": ["A is the capital of x .", "B is the capital of y ."],
    "halu": ["C . It is large .", "D . It is small ."],
    "mid-halu": ["C . It is large .", "D . It is old ."],
    "non-halu": ["A . It is large .", "B . It is small ."],
}


def test_chale_holds_three_answers_a_question(tmp_path: Path) -> None:
    path = tmp_path / "chale.json"
    path.write_text(json.dumps(CHALE))
    found = samples(path)
    assert [one.metadata["kind"] for one in found] == ["non-halu", "mid-halu", "halu"] * 2
    assert [one.label for one in found] == [1, 0, 0] * 2
    assert [one.response for one in found[:2]] == ["A . It is large .", "C . It is large ."]
    assert found[0].answers == (("A",),)
    assert found[0].incorrect_answers == ("C . It is large .",)  # both say the same
    assert len(found[3].incorrect_answers) == 2
    assert [d.text for d in found[3].documents or ()] == ["B is the capital of y ."]


def test_truthfulqa_joins_its_lists_by_semicolons(tmp_path: Path) -> None:
    path = tmp_path / "TruthfulQA.csv"
    path.write_text(
        "Type,Category,Question,Best Answer,Correct Answers,Incorrect Answers,Source\n"
        'Adversarial,Law,"May one, here?",No,No; You may not ; ,Yes; You may;Always,https://x\n'
    )
    (found,) = samples(path)
    assert found.question == "May one, here?"
    assert found.answers == (("No", "You may not"),)
    assert found.incorrect_answers == ("Yes", "You may", "Always")
    assert found.response is None
    assert found.metadata["Category"] == "Law"


HALUEVAL = {
    "knowledge": "A is in x.",
    "question": "where is A",
    "right_answer": "x",
    "hallucinated_answer": "A is in y.",
}


def test_halueval_holds_two_answers_a_question(tmp_path: Path) -> None:
    path = tmp_path / "qa_data.json"  # published as JSON Lines under this name
    path.write_text((json.dumps(HALUEVAL) + "\n") * 2)
    found = samples(path)
    assert [(one.response, one.label) for one in found] == [("x", 1), ("A is in y.", 0)] * 2
    assert found[0].incorrect_answers == ("A is in y.",)
    assert [d.text for d in found[0].documents or ()] == ["A is in x."]


def test_halueval_general_is_labelled_by_what_it_lacks() -> None:
    rows = [
        {"ID": "7", "user_query": "q", "chatgpt_response": "r", "hallucination": "yes"},
        {"ID": " ", "user_query": "q", "chatgpt_response": "r", "hallucination": "no"},
    ]
    found = samples(rows)
    assert [one.label for one in found] == [0, 1]
    assert found[0].id == "7"
    assert len(found[1].id) == 12  # a blank one is none


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (True, 0),
        (False, 1),
        (" No ", 1),
        ("nein", 1),
        ("1", 0),
        (0, 1),
        (None, None),
        ("maybe", "maybe"),
        ("factual", "factual"),
        (["yes"], None),
    ],
)
def test_yes_or_no_in_halueval_says_whether_there_is_a_hallucination(
    value: Any, label: int | str | None
) -> None:
    row = {"user_query": "q", "chatgpt_response": "r", "hallucination": value}
    (found,) = samples([row], fields={"label": "hallucination"})
    assert found.label == label


def test_one_name_of_a_set_makes_no_layout() -> None:
    """A rating, or a list of right answers, is a column that any file may have."""
    row = {"question": "q", "response": "r", "human_eval": "good"}
    (found,) = samples([row])
    assert (found.label, found.metadata["human_eval"]) == (None, "good")
    (found,) = samples([{"question": "q", "Correct Answers": "a; b"}])
    assert (found.answers, found.metadata["Correct Answers"]) == ((), "a; b")


def test_haltt4llm_says_which_choices_are_right() -> None:
    row = {
        "question": "what happens",
        "source": "https://x",
        "answers": [
            {"text": "Nothing", "correct": True, "choice": "A"},
            {"text": "All", "correct": False, "choice": "B"},
            {"text": "None of the above", "correct": False, "choice": "D"},
            {"text": "I don't know", "correct": False, "choice": "E"},
        ],
    }
    (found,) = samples([row])
    assert found.answers == (("Nothing",),)
    assert found.incorrect_answers == ("All",)
    assert found.metadata["choices"] == ["Nothing", "All", "None of the above", "I don't know"]
    blank = {**row, "answers": [{"text": "", "correct": True}, {"text": "All", "correct": False}]}
    (without,) = samples([blank])
    assert without.answers == ()
    assert (found.metadata["right_choice"], without.metadata["right_choice"]) == (0, 0)
    row["answers"][1]["correct"] = True  # type: ignore[index]
    assert "right_choice" not in samples([row])[0].metadata


def test_a_record_of_this_project_is_left_alone() -> None:
    (found,) = samples([{"question": "q", "answers": ["a", ["b", "c"]]}])
    assert found.answers == (("a",), ("b", "c"))


def test_who_names_a_field_of_a_set_reads_it_by_himself() -> None:
    (found,) = samples([HALUEVAL], fields={"response": "hallucinated_answer"})
    assert (found.response, found.label) == ("A is in y.", None)
    (found,) = samples([HALUEVAL], fields={"question": "knowledge", "response": "right_answer"})
    assert (found.question, found.response, found.answers) == ("A is in x.", "x", ())


@pytest.mark.parametrize("layout", [HALUEVAL, {key: value[0] for key, value in CHALE.items()}])
def test_an_own_response_is_the_only_answer_of_a_record(layout: dict[str, Any]) -> None:
    row = {**layout, "id": "7"}
    (own,) = samples([{**row, "response": "mine"}])
    (named,) = samples([{**row, "out": {"text": "mine"}}], fields={"response": "out.text"})
    two = samples([row])
    for found in (own, named):
        assert (found.id, found.response, found.label) == ("7", "mine", None)
        assert "kind" not in found.metadata
        assert found.answers == two[0].answers
        assert found.incorrect_answers == two[0].incorrect_answers
        assert found.documents == two[0].documents
    (labelled,) = samples([{**row, "response": "mine", "label": 1, "kind": "k"}])
    assert (labelled.label, labelled.metadata["kind"]) == (1, "k")


@pytest.mark.parametrize("name", ["id", "number"])
def test_the_answers_of_a_record_have_ids_of_their_own(name: str) -> None:
    found = samples([{**HALUEVAL, name: 7}], fields={"id": name})
    assert [one.id for one in found] == ["7-right", "7-hallucinated"]
    (fault, _) = read_samples([{**HALUEVAL, name: " "}], fields={"id": name})
    assert "is blank" in str(fault)


def test_a_choice_is_right_by_a_boolean_alone() -> None:
    row = {"question": "q", "answers": [{"text": "a", "correct": "false"}]}
    (fault,) = read_samples([row])
    assert "answers[0]: expected text" in str(fault)


# ---- data sets of reading and of hallucinations ----

PASSAGE = "The hall was built in 1902. It has 14 doors."
ASKED = "How many doors does the hall have?"
SQUAD = {
    "id": "s1",
    "title": "Hall",
    "context": PASSAGE,
    "question": ASKED,
    "answers": {"text": ["14", "14 doors", "14"], "answer_start": [35, 35, 35]},
}


@pytest.mark.parametrize(
    "answers",
    [
        SQUAD["answers"],
        [{"text": "14", "answer_start": 35}, {"text": "14 doors", "answer_start": 35}],
    ],
)
def test_answers_of_squad_are_gold_and_no_response(answers: Any) -> None:
    (found,) = samples([{**SQUAD, "answers": answers}])
    assert (found.answers, found.response) == ((("14", "14 doors"),), None)
    assert [d.text for d in found.documents or ()] == [PASSAGE]


def test_a_prediction_beside_squad_s_answers_is_the_response(tmp_path: Path) -> None:
    (found,) = samples([{**SQUAD, "prediction_text": "15"}])
    assert (found.response, found.answers) == ("15", (("14", "14 doors"),))
    path = tmp_path / "squad.csv"
    cell = json.dumps(SQUAD["answers"]).replace('"', '""')
    path.write_text(f'id,question,context,answers,prediction_text\na,{ASKED},c,"{cell}",15\n')
    (found,) = samples(path)
    assert (found.response, found.answers) == ("15", (("14", "14 doors"),))


def test_squad_s_own_file_has_a_record_an_article(tmp_path: Path) -> None:
    gold = [{"text": "14", "answer_start": 35}]
    questions = [
        {"id": "a", "question": ASKED, "answers": gold, "is_impossible": False},
        {"id": "b", "question": "Who built it?", "answers": [], "is_impossible": True},
    ]
    article = {"title": "Hall", "paragraphs": [{"context": PASSAGE, "qas": questions}] * 2}
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"version": "v2.0", "data": [article]}))
    result = samples(path)
    assert [one.id for one in result] == ["a", "b"] * 2
    assert [one.answers for one in result[:2]] == [(("14",),), ()]
    assert {(d.title, d.text) for one in result for d in one.documents or ()} == {("Hall", PASSAGE)}


@pytest.mark.parametrize("gold", ["answer", "reference_answer", "gold", "target"])
@pytest.mark.parametrize("mine", ["output", "prediction", "model_output", "generated_answer"])
def test_beside_the_output_of_a_model_a_right_answer_is_no_response(gold: str, mine: str) -> None:
    (found,) = samples([{"question": ASKED, "context": PASSAGE, gold: "14", mine: "15"}])
    assert found.response == "15"


def test_a_prediction_that_is_a_number_is_no_response() -> None:
    (found,) = samples([{"question": ASKED, "context": PASSAGE, "answer": "15", "prediction": 0.9}])
    assert found.response == "15"


def test_halubench_has_the_answer_to_judge() -> None:
    row = {"id": "h", "passage": PASSAGE, "question": ASKED, "answer": "15", "source_ds": "DROP"}
    (found,) = samples([row])
    assert (found.response, found.answers) == ("15", ())
    assert [d.text for d in found.documents or ()] == [PASSAGE]


LETTUCE = {
    "answer": "It has 15.",
    "labels": [{"start": 7, "end": 9, "label": "x"}],
    "split": "test",
}


def test_lettucedetect_judges_by_the_context_or_the_whole_prompt() -> None:
    separate = {"prompt": f"{ASKED}\n{PASSAGE}", "context": PASSAGE, "question": ASKED}
    (found,) = samples([{**LETTUCE, **separate}])
    assert (found.question, found.response) == (ASKED, "It has 15.")
    assert [d.text for d in found.documents or ()] == [PASSAGE]
    prompt = f"Summarize the following text: {PASSAGE} output:"
    (found,) = samples([{**LETTUCE, "prompt": prompt, "context": None, "question": None}])
    assert (found.response, found.metadata["labels"]) == ("It has 15.", LETTUCE["labels"])
    assert [d.text for d in found.documents or ()] == [prompt]


def test_ragtruth_s_answers_alone_name_the_file_with_the_questions() -> None:
    row = {"id": "0", "source_id": "7", "model": "m", "labels": [], "response": "It has 15."}
    (fault,) = read_samples([row])
    assert "question: is missing (RAGTruth keeps it in source_info.jsonl" in str(fault)


@pytest.mark.parametrize("more", [{"model": "m"}, {"sample_id": 3, "annotations": []}])
def test_a_summary_is_judged_by_its_source(tmp_path: Path, more: dict[str, Any]) -> None:
    path = tmp_path / "summaries.jsonl"
    path.write_text(json.dumps({"source": PASSAGE, "summary": "It has 15 doors.", **more}))
    (found,) = samples(path)
    assert (found.question, found.response) == (SUMMARIZE, "It has 15 doors.")
    assert [d.text for d in found.documents or ()] == [PASSAGE]


def test_a_link_is_no_source_of_a_summary() -> None:
    (fault,) = read_samples([{"source": "https://example.org/a", "summary": "It has 15 doors."}])
    assert "question: is missing" in str(fault)


TREC = {
    "topic_id": "7",
    "topic": ASKED,
    "references": ["msmarco_1", "msmarco_2"],
    "answer": [
        {"text": "It has 15.", "citations": [0, 1]},
        {"text": "It is old.", "citations": []},
    ],
}


def test_parts_of_an_answer_cite_references_from_zero() -> None:
    (found,) = samples([TREC])
    assert (found.question, found.response) == (ASKED, "It has 15.[1][2] It is old.")
    assert (found.documents, found.metadata["reference_ids"]) == (None, TREC["references"])
    passages = [{"id": "msmarco_1", "text": PASSAGE}]
    about = {"metadata": {"narrative": ASKED}, "answer": TREC["answer"], "references": passages}
    (found,) = samples([about])
    assert (found.question, [d.text for d in found.documents or ()]) == (ASKED, [PASSAGE])


@pytest.mark.parametrize(
    ("more", "question"),
    [
        ({}, "How many?"),
        ({"user": "anna", "system_prompt": "Be brief.", "prompt_tokens": 7}, "How many?"),
        ({"question": "Which?"}, "Which?"),
        ({"user_message": "Which?"}, None),
    ],
)
def test_a_prompt_is_the_question_where_nothing_else_may_be(
    more: dict[str, Any], question: str | None
) -> None:
    (found,) = read_samples([{"prompt": "How many?", "response": "15.", **more}])
    assert (found.sample.question if isinstance(found, LocatedSample) else None) == question


def test_a_prompt_of_messages_has_its_last_question() -> None:
    messages = [
        {"role": "system", "content": "Context:\n[1] one passage\n[2] another"},
        {"role": "user", "content": ASKED},
    ]
    (found,) = samples([{"prompt": messages, "completion": "It has 15."}])
    assert (found.question, found.response) == (ASKED, "It has 15.")
    assert [d.text for d in found.documents or ()] == ["one passage", "another"]


@pytest.mark.parametrize(
    ("name", "n", "faults"),
    [
        ("chale/hallucinated_ans_final_filtered.json.gz", 3 * 2226, 0),
        ("truthfulqa/TruthfulQA_817_original.csv", 817, 0),
        ("truthfulqa/TruthfulQA_790_2025.csv", 790, 0),
        ("halueval/qa_data_first1000.json", 2000, 0),
        ("halueval/general_data.json.gz", 4507, 0),
        ("haltt4llm/truthfulqa_trivia_questions.json", 737, 0),
    ],
)
def test_the_published_files_are_read_whole(name: str, n: int, faults: int) -> None:
    if not (SHARED / name).exists():
        pytest.skip(f"no {SHARED / name}; set TRUSTASSAY_SHARED")
    found = list(read_samples(SHARED / name))
    assert (len(found), sum(not isinstance(one, LocatedSample) for one in found)) == (n, faults)

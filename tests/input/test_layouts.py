"""Each layout as its tool writes it, through `read_samples`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trustassay.core.sample import Document, Sample
from trustassay.input import InputError, InputFault, LocatedSample, read_samples


def sample_of(record: Mapping[str, Any], **fields: str) -> Sample:
    [result] = read_samples([record], fields=fields)
    assert isinstance(result, LocatedSample), str(result)
    return result.sample


def problems_of(record: Mapping[str, Any], **fields: str) -> list[str]:
    [result] = read_samples([record], fields=fields)
    assert isinstance(result, InputFault), result
    return [str(problem) for problem in result.problems]


TRUST_EVAL = {
    "question": "Where does the Nile end?",
    "output": "In the sea [1].",
    "docs": [
        {
            "id": 7,
            "title": "Nile",
            "text": "The Nile is long. It ends in the sea.",
            "sent": "It ends in the sea.",
            "answers_found": [1, 0],
            "rec_score": 50.0,
        },
        {"title": "Other", "text": "Nothing here.", "answers_found": [0, 0]},
    ],
    "answers": [["the sea", "Mediterranean"], ["a delta"]],
    "answer": "A long answer.",
}

RAGAS = {
    "user_input": "Q?",
    "response": "A.",
    "retrieved_contexts": ["one", "two"],
    "reference": "The gold answer.",
    "reference_contexts": ["gold context"],
    "faithfulness": 0.5,
}

DEEPEVAL = {
    "input": "Q?",
    "actual_output": "A.",
    "retrieval_context": ["one"],
    "expected_output": "Gold.",
    "context": ["ideal"],
}


# ---- logs and spreadsheets ----


@pytest.mark.parametrize("name", ["contexts", "context"])
@pytest.mark.parametrize("shown", ["One passage.", ["One passage."]])
def test_a_log_needs_no_option(name: str, shown: Any) -> None:
    sample = sample_of({"question": "Q?", "answer": "A.", name: shown, "ground_truth": "Gold."})
    assert (sample.question, sample.response, sample.claims) == ("Q?", "A.", ("Gold.",))
    assert [document.text for document in sample.documents or ()] == ["One passage."]


@pytest.mark.parametrize(
    "record",
    [
        {"query": "Q?", "result": "A.", "source_documents": [{"page_content": "One passage."}]},
        {"question": "Q?", "answer": "A.", "source_documents": [{"page_content": "One passage."}]},
        {"query": "Q?", "response": "A.", "source_nodes": [{"node": {"text": "One passage."}}]},
        {
            "query": "Q?",
            "result": "A.",
            "source_documents": "[Document(page_content='One passage.')]",
        },
    ],
)
def test_what_langchain_and_llama_index_return_needs_no_option(record: Any) -> None:
    sample = sample_of(record)
    assert (sample.question, sample.response) == ("Q?", "A.")
    assert [document.text for document in sample.documents or ()] == ["One passage."]


def test_an_answer_without_passages_is_not_taken_for_a_response() -> None:
    sample = sample_of({"question": "Q?", "answer": "Gold?"})
    assert sample.response is None
    assert sample.metadata == {"answer": "Gold?"}


def test_faults_of_a_log_bear_its_names() -> None:
    record = {"question": "Q?", "answer": [3], "contexts": [1]}
    assert [problem.split(":")[0] for problem in problems_of(record)] == ["contexts[0]", "answer"]


# ---- Trust-Eval and ALCE ----


def test_trust_eval_record_is_read_whole() -> None:
    sample = sample_of(TRUST_EVAL)
    assert sample.response == "In the sea [1]."
    assert sample.answers == (("the sea", "Mediterranean"), ("a delta",))
    assert sample.documents == (
        Document(
            "7",
            "The Nile is long. It ends in the sea.",
            "Nile",
            (1, 0),
            "It ends in the sea.",
        ),
        Document("2", "Nothing here.", "Other", (0, 0)),
    )
    assert sample.metadata == {"answer": "A long answer."}


def test_trust_eval_answers_may_be_plain_strings() -> None:
    sample = sample_of({"question": "q", "output": "o", "answers": ["The Nile.", "The Po."]})
    assert sample.answers == (("The Nile.",), ("The Po.",))


def test_alce_claims_are_kept() -> None:
    assert sample_of({"question": "q", "docs": [], "claims": ["c", "d"]}).claims == ("c", "d")


def test_alce_asqa_takes_answers_from_the_sub_questions() -> None:
    pairs = [
        {"question": "a?", "short_answers": ["x", "y"], "context": "…"},
        {"question": "b?", "short_answers": ["z"]},
    ]
    sample = sample_of({"question": "q", "qa_pairs": pairs, "docs": [], "answer": "long"})
    assert sample.answers == (("x", "y"), ("z",))
    assert sample.metadata == {"answer": "long"}


def test_alce_asqa_sub_questions_stored_as_columns() -> None:
    pairs = {"question": ["a?", "b?"], "short_answers": [["x", "y"], ["z"]]}
    assert sample_of({"question": "q", "qa_pairs": pairs}).answers == (("x", "y"), ("z",))


def test_answers_win_over_sub_questions() -> None:
    pairs = [{"short_answers": ["other"]}]
    sample = sample_of({"question": "q", "output": "o", "answers": ["mine"], "qa_pairs": pairs})
    assert sample.answers == (("mine",),)
    assert sample.metadata == {"qa_pairs": pairs}


def test_trust_eval_documents_stored_as_columns() -> None:
    docs = {"title": ["t", "u"], "text": ["x", "y"], "answers_found": [[1], [0]]}
    documents = sample_of({"question": "q", "docs": docs, "answers": ["a"]}).documents
    assert documents is not None
    assert [d.supports for d in documents] == [(1,), (0,)]


def test_trust_eval_flags_count_in_canonical_documents_too() -> None:
    documents = sample_of(
        {"question": "q", "documents": [{"text": "t", "answers_found": [1]}], "answers": ["a"]}
    ).documents
    assert documents is not None
    assert documents[0].supports == (1,)


# ---- Ragas ----


def test_ragas_record_is_read_whole() -> None:
    sample = sample_of(RAGAS)
    assert (sample.question, sample.response) == ("Q?", "A.")
    assert sample.documents == (Document("1", "one"), Document("2", "two"))
    assert sample.claims == ("The gold answer.",)
    assert sample.metadata == {"reference_contexts": ["gold context"], "faithfulness": 0.5}


@pytest.mark.parametrize("blank", ["", "  ", None])
def test_blank_gold_text_is_absent(blank: str | None) -> None:
    assert sample_of({**RAGAS, "reference": blank}).claims == ()
    assert sample_of({**DEEPEVAL, "expected_output": blank}).claims == ()


# ---- DeepEval ----


def test_deepeval_record_is_read_whole() -> None:
    sample = sample_of(DEEPEVAL)
    assert (sample.question, sample.response) == ("Q?", "A.")
    assert sample.documents == (Document("1", "one"),)
    assert sample.claims == ("Gold.",)
    assert sample.metadata == {"context": ["ideal"]}


def test_deepeval_camel_case() -> None:
    record = {"input": "Q?", "actualOutput": "A.", "retrievalContext": ["one"]}
    sample = sample_of({**record, "expectedOutput": "Gold."})
    assert (sample.question, sample.response, sample.claims) == ("Q?", "A.", ("Gold.",))
    assert sample.documents == (Document("1", "one"),)
    assert sample.metadata == {}


@pytest.mark.parametrize("retrieved", [{}, {"retrieval_context": None}])
def test_deepeval_context_stands_in_for_what_was_retrieved(retrieved: dict[str, None]) -> None:
    record = {"input": "Q?", "actual_output": "A.", "context": ["ideal"], **retrieved}
    sample = sample_of(record)
    assert sample.documents == (Document("1", "ideal"),)
    assert "context" not in sample.metadata


def test_deepeval_golden_of_an_input_alone() -> None:
    assert sample_of({"input": "Q?"}).question == "Q?"


# ---- canonical names and the user's own ----


def test_canonical_record_keeps_what_it_has_no_field_for() -> None:
    record = {"id": "a", "question": "q", "input": "i", "answer": "a", "knowledge": "k"}
    sample = sample_of(record)
    assert (sample.question, sample.response, sample.documents) == ("q", None, None)
    assert sample.metadata == {"input": "i", "answer": "a", "knowledge": "k"}


def test_passages_and_gold_answers_need_no_layout() -> None:
    sample = sample_of({"question": "q", "response": "a", "context": "c", "reference": "r"})
    assert [document.text for document in sample.documents or ()] == ["c"]
    assert sample.claims == ("r",)
    with_answers = sample_of({"question": "q", "answers": ["gold"], "reference": "r"})
    assert (with_answers.claims, with_answers.metadata) == ((), {"reference": "r"})


def test_canonical_name_wins_and_the_other_stays_in_metadata() -> None:
    sample = sample_of({"question": "q", "response": "mine", "output": "theirs"})
    assert sample.response == "mine"
    assert sample.metadata == {"output": "theirs"}


def test_canonical_name_without_a_value_does_not_win() -> None:
    assert sample_of({"question": "q", "response": None, "output": "theirs"}).response == "theirs"


def test_canonical_name_wins_inside_documents() -> None:
    document = {"text": "t", "supports": [1], "answers_found": [0]}
    documents = sample_of({"question": "q", "docs": [document], "answers": ["a"]}).documents
    assert documents is not None
    assert documents[0].supports == (1,)


def test_user_fields_win_over_canonical_names_and_layouts() -> None:
    record = {"question": "q", "response": "canonical", "output": "layout", "mine": "own"}
    sample = sample_of(record, response="mine")
    assert sample.response == "own"
    assert sample.metadata == {"output": "layout"}


def test_user_fields_do_not_fall_back_to_another_column() -> None:
    records = [{"question": "q", "mine": "own"}, {"question": "q", "response": "canonical"}]
    results = list(read_samples(records, fields={"response": "mine"}))
    assert [r.sample.response for r in results if isinstance(r, LocatedSample)] == ["own", None]


def test_user_fields_may_swap_canonical_ones() -> None:
    sample = sample_of({"question": "r", "response": "q"}, question="response", response="question")
    assert (sample.question, sample.response) == ("q", "r")


def test_one_column_may_feed_two_fields() -> None:
    sample = sample_of({"question": "q", "gold": "g"}, answers="gold", claims="gold")
    assert (sample.answers, sample.claims) == ((("g",),), ("g",))


def test_dotted_field_reaches_into_objects() -> None:
    record = {"question": "q", "scores": {"human": {"mean": 4}}}
    sample = sample_of(record, label="scores.human.mean")
    assert sample.label == 4.0
    assert sample.metadata == {"scores": {"human": {"mean": 4}}}


def test_a_key_with_a_dot_in_it_is_found_first() -> None:
    assert sample_of({"question": "q", "a.b": 1, "a": {"b": 2}}, label="a.b").label == 1.0


def test_field_name_that_is_not_canonical_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="'respnse'; did you mean response"):
        read_samples([], fields={"respnse": "x"})


def test_field_that_no_record_has_is_refused_with_a_suggestion() -> None:
    records = [{"question": "q", "generated": "r"}, {"question": "q"}]
    results = read_samples(records, fields={"response": "generatd"})
    with pytest.raises(InputError, match=r"response=generatd.*did you mean generated"):
        list(results)


def test_field_that_one_record_has_is_fine() -> None:
    records = [{"question": "q"}, {"question": "q", "generated": "r"}]
    results = list(read_samples(records, fields={"response": "generated"}))
    assert [r.sample.response for r in results if isinstance(r, LocatedSample)] == [None, "r"]


# ---- faults in the author's words ----


def test_trust_eval_fault_bears_trust_eval_names() -> None:
    documents = [{"text": "a", "answers_found": [1]}, {"text": "b", "answers_found": [2]}]
    record = {"question": "q", "output": [5], "docs": documents, "answers": ["x"]}
    assert problems_of(record) == [
        "docs[1].answers_found[0]: expected 0 or 1, got 2",
        "output: expected text, got a list",
    ]


def test_missing_flags_bear_the_name_that_the_other_documents_use() -> None:
    record = {"question": "q", "docs": [{"text": "a", "answers_found": [1]}, {"text": "b"}]}
    assert problems_of(record) == ["docs[1].answers_found: is missing, but other documents have it"]


def test_canonical_document_fault_keeps_the_canonical_name() -> None:
    documents = [{"text": "a", "supports": [3]}, {"text": "b", "answers_found": [1]}]
    assert problems_of({"question": "q", "docs": documents}) == [
        "docs[0].supports[0]: expected 0 or 1, got 3"
    ]
    documents = [{"text": "a", "supports": [1]}, {"text": "b"}]
    assert problems_of({"question": "q", "documents": documents}) == [
        "documents[1].supports: is missing, but other documents have it"
    ]


def test_fault_in_documents_stored_as_columns() -> None:
    docs = {"text": ["x", "y"], "answers_found": [[1], [7]]}
    assert problems_of({"question": "q", "docs": docs}) == [
        "docs[1].answers_found[0]: expected 0 or 1, got 7"
    ]


def test_fault_in_sub_questions_names_their_place() -> None:
    pairs = [{"short_answers": ["x"]}, {"short_answers": ["y", None]}, {"question": "?"}, 3]
    assert problems_of({"question": "q", "qa_pairs": pairs}) == [
        "qa_pairs[1].short_answers[1]: expected text, got null",
        "qa_pairs[2].short_answers: expected text, got null",
        "qa_pairs[3].short_answers: expected text, got null",
    ]
    assert problems_of({"question": "q", "qa_pairs": "x"}) == [
        "qa_pairs: expected a list of questions with short_answers, got 'x'"
    ]


def test_ragas_and_deepeval_faults_bear_their_names() -> None:
    assert problems_of({**RAGAS, "retrieved_contexts": ["a", 2], "reference": {"a": 1}}) == [
        "reference: expected text, got an object",
        "retrieved_contexts[1]: expected a document or its text, got 2",
    ]
    assert problems_of({"actual_output": ["a"]}) == [
        "input: is missing (expected text)",
        "actual_output: expected text, got a list",
    ]


def test_user_field_fault_bears_the_user_s_name() -> None:
    record = {"prompt": "", "extra": {"passages": [{"text": "a", "supports": [2]}]}}
    fields = {"question": "prompt", "documents": "extra.passages"}
    assert problems_of(record, **fields) == [
        "prompt: is blank (expected text)",
        "extra.passages[0].supports[0]: expected 0 or 1, got 2",
    ]


# ---- TrustScore: one record, the answers of several systems ----

TRUSTSCORE = {
    "question": "Who built the first saxophone?",
    "answers": ["Adolphe Sax", "Sax"],
    "source": "OurQuestions",
    "o_pop": 12,
    "small": {"pred": "A Belgian.", "human_eval": "0"},
    "large": {"pred": "Adolphe Sax built it.", "human_eval": "1", "tokens": 5},
}


def samples_of(record: Mapping[str, Any], **fields: str) -> list[Sample]:
    found = list(read_samples([record], fields=fields))
    assert all(isinstance(one, LocatedSample) for one in found), found
    return [one.sample for one in found if isinstance(one, LocatedSample)]


def test_each_system_of_a_trustscore_record_is_a_sample() -> None:
    small, large = samples_of(TRUSTSCORE)
    assert (small.model, small.response, small.label) == ("small", "A Belgian.", 0.0)
    assert (large.model, large.response, large.label) == ("large", "Adolphe Sax built it.", 1.0)
    assert small.answers == large.answers == (("Adolphe Sax",), ("Sax",))
    assert small.metadata == {"source": "OurQuestions", "o_pop": 12}
    assert large.metadata == {"source": "OurQuestions", "o_pop": 12, "tokens": 5}


def test_ids_of_systems_stay_when_answers_change() -> None:
    before = [one.id for one in samples_of(TRUSTSCORE)]
    assert before == [f"{before[0].removesuffix('-small')}-small", before[1]]
    assert before[1] == before[0].removesuffix("small") + "large"
    other = {**TRUSTSCORE, "small": {"pred": "Sax.", "human_eval": "1"}}
    del other["large"]
    assert [one.id for one in samples_of(other)] == before[:1]
    assert [one.id for one in samples_of({**TRUSTSCORE, "id": 7})] == ["7-small", "7-large"]
    assert [one.id for one in samples_of(TRUSTSCORE, id="o_pop")] == ["12-small", "12-large"]


def test_a_field_named_by_the_user_reads_one_system_alone() -> None:
    [sample] = samples_of(TRUSTSCORE, response="small.pred", label="small.human_eval")
    assert (sample.model, sample.response, sample.label) == (None, "A Belgian.", 0.0)


def test_faults_of_a_system_say_where_it_stands_in_the_words_of_the_file() -> None:
    record = {**TRUSTSCORE, "small": {"pred": [3], "human_eval": "right"}}
    fault, sound = read_samples([record])
    assert isinstance(fault, InputFault) and isinstance(sound, LocatedSample)
    assert str(fault).splitlines() == ["sample 1: small: pred: expected text, got a list"]


def test_one_answer_with_a_trustscore_label_is_read_as_it_is() -> None:
    sample = sample_of({"question": "Q?", "pred": "A.", "human_eval": "1"})
    assert (sample.response, sample.label, sample.model) == ("A.", 1.0, None)


def test_a_record_nested_too_deeply_is_a_fault_also_with_systems() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    [fault] = read_samples([{**TRUSTSCORE, "more": deep}])
    assert isinstance(fault, InputFault)
    assert "nested too deeply" in str(fault)


@pytest.mark.parametrize("name", ["response", "output", "prediction"])
@pytest.mark.parametrize("blank", ["", "nan"])
def test_a_right_answer_never_stands_for_a_blank_one(tmp_path: Path, name: str, blank: str) -> None:
    path = tmp_path / "x.csv"
    rows = [f"question,{name},answer,context", "When?,In 1902.,1902,C", f"Where?,{blank},Rome,C"]
    path.write_text("\n".join(rows))
    samples = [result.sample for result in read_samples(path) if isinstance(result, LocatedSample)]
    assert [sample.response for sample in samples] == ["In 1902.", ""]
    record = {"question": "Where?", name: None, "answer": "Rome", "context": "C"}
    [result] = read_samples([record])
    assert isinstance(result, LocatedSample) and result.sample.response is None

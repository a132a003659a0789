"""Columns with numbers are one field, in tables and in JSON."""

from pathlib import Path
from typing import Any

import pytest

from trustassay.core.sample import Sample
from trustassay.input import InputError, InputFault, LocatedSample, read_samples

ROW = {"question": "Q?", "answer": "It opened in 1902."}


def sample_of(row: dict[str, Any], **fields: Any) -> Sample:
    [result] = read_samples([{**ROW, **row}], fields=fields)
    assert isinstance(result, LocatedSample), result
    return result.sample


def texts(sample: Sample) -> list[str] | None:
    return None if sample.documents is None else [document.text for document in sample.documents]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Context 1", "Context 2"),
        ("context_2", "context_10"),
        ("Quelle 1", "Quelle 2"),
        ("Kontext Nr. 1", "Kontext Nr. 2"),
        ("Contexte n°1", "Contexte n°2"),
        ("Fuente #1", "Fuente #2"),
        ("passage_1", "passage_2"),
        ("document1", "document2"),
        ("retrieved_context_3", "retrieved_context_4"),
        ("chunk_0", "chunk_1"),
        ("retrievedContexts[0]", "retrievedContexts[1]"),
        ("sources.0", "sources.1"),
        ("contexts/0/text", "contexts/1/text"),
        ("Abschnitt 1 Text", "Abschnitt 2 Text"),
        ("文脈1", "文脈２"),
        ("context", "context_2"),
        ("Kontext", "Kontext 2"),
        ("documents", "Document 1"),
    ],
)
def test_columns_with_numbers_are_the_passages_in_their_order(first: str, second: str) -> None:
    one, two = "It opened in 1902.", "It has 14 halls.\n\nThey are large."
    sample = sample_of({second: two, first: one})
    assert (sample.response, texts(sample)) == (ROW["answer"], [one, two])
    assert sample.metadata == {}
    assert texts(sample_of({first: one, second: " "})) == [one]
    assert texts(sample_of({first: None, second: "nan"})) == []


def test_a_single_column_with_a_number_is_read_and_numbers_are_texts() -> None:
    assert texts(sample_of({"Context 1": "It opened."})) == ["It opened."]
    assert texts(sample_of({"Context 1": 1902.0, "Context 2": 0.5})) == ["1902", "0.5"]


def test_a_column_may_have_a_list_or_an_object() -> None:
    row = {"context_1": '["A.", "B."]', "context_2": {"text": "C.", "title": "T"}}
    sample = sample_of({**row, "context_3": "Document(page_content='D.')"})
    assert texts(sample) == ["A.", "B.", "C.", "D."]
    assert texts(sample_of({"context_1": "[1]"})) == ["[1]"]


@pytest.mark.parametrize("names", [("Title", "Text"), ("titre", "texte"), ("title", "content")])
def test_titles_in_columns_of_their_own_belong_to_their_passage(names: tuple[str, str]) -> None:
    title, text = names
    row = {f"Context 1 {title}": "Guide", f"Context 1 {text}": "It opened.", "Context 1 score": 0.5}
    sample = sample_of({**row, f"Context 2 {title}": "Alone"})
    assert [(d.title, d.text) for d in sample.documents or ()] == [("Guide", "It opened.")]
    assert sample.metadata == {"Context 1 score": 0.5}


def test_sources_with_numbers_are_passages_only_where_they_are_texts() -> None:
    links = {"Source 1": "https://example.org/a", "Source 2": "guide.pdf"}
    assert texts(sample_of({**links, "contexts": ["A."]})) == ["A."]
    beside = sample_of({**links, "Context 1": "A."})
    assert (texts(beside), beside.metadata) == (["A."], links)
    [result] = read_samples([{"question": "Q?", "response": "A.", **links}])
    assert isinstance(result, LocatedSample)
    assert (result.sample.documents, result.sample.metadata) == (None, links)


def test_other_lists_may_have_columns_with_numbers() -> None:
    row = {"sample_1": "[1] A.", "sample_2": "B.", "gold_answer_1": "C.", "gold_answer_2": "D."}
    sample = sample_of(row)
    assert sample.resamples == ("[1] A.", "B.")
    assert sample.claims == ("C.", "D.")


def test_columns_with_numbers_inside_of_objects_are_passages() -> None:
    row = {"inputs": {"question": "Q?", "context_1": "A.", "context_2": "B."}}
    for record in (
        {**row, "outputs": {"answer": "C."}},
        {"inputs.question": "Q?"}
        | {f"inputs.context_{n}": text for n, text in ((2, "B."), (1, "A."))}
        | {"outputs.answer": "C."},
    ):
        [result] = read_samples([record])
        assert isinstance(result, LocatedSample)
        assert (texts(result.sample), result.sample.response) == (["A.", "B."], "C.")


def test_a_header_with_numbers_is_that_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Titel\nFrage;Antwort;Quelle 1;Quelle 2\nQ?;;Es hat 14 Hallen.;\n")
    [result] = read_samples(path)
    assert isinstance(result, LocatedSample)
    assert (result.sample.response, texts(result.sample)) == ("", ["Es hat 14 Hallen."])


# ---- several names for the documents ----


def test_several_names_for_the_documents_add_up_in_their_order(tmp_path: Path) -> None:
    row = {"b": '["C."]', "a": "A.\n\nB.", "contexts": ["no"], "m": {"c": ["D."]}}
    sample = sample_of(row, documents=["a", "b", "m.c"])
    assert texts(sample) == ["A.", "B.", "C.", "D."]
    assert texts(sample_of({**row, "a": None}, documents=["a", "b"])) == ["C."]
    blank = {"a": None, "b": ""}
    assert texts(sample_of(blank, documents=("a", "b"), response="answer")) == []
    path = tmp_path / "x.csv"
    path.write_text("question,answer,a,b\nQ?,A,one,two\n")
    [result] = read_samples(path, fields={"documents": ["b", "a"], "response": "answer"})
    assert isinstance(result, LocatedSample)
    assert texts(result.sample) == ["two", "one"]


def test_faults_of_several_names_say_which_one(tmp_path: Path) -> None:
    row = {**ROW, "a": "['x', y]", "b": ["B.", {"title": "T"}]}
    [fault] = read_samples([row], fields={"documents": ["a", "b"]})
    assert isinstance(fault, InputFault)
    assert "sample 1: a: cannot be read as a list" in str(fault)
    with pytest.raises(InputError, match="no record has c"):
        list(read_samples([row], fields={"documents": ["b", "c"]}))
    (tmp_path / "x.csv").write_text("question,b\nQ?,B\n")
    with pytest.raises(InputError, match="no record has c"):
        list(read_samples(tmp_path / "x.csv", fields={"documents": ["b", "c"]}))


@pytest.mark.parametrize("names", [["a", "b"], []])
def test_other_fields_have_one_name(names: list[str]) -> None:
    with pytest.raises(InputError, match="response: expected one name, got"):
        read_samples([ROW], fields={"response": names})


def test_a_source_with_a_number_is_no_passage_beside_another_name_for_the_passages() -> None:
    row = {"context": "It opened in 1902.", "Source 1": "Seen in the guide of the town."}
    assert texts(sample_of(row)) == ["It opened in 1902."]

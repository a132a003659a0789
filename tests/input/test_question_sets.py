"""Published sets of questions, each in the layouts that people have on disk."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from arro3.io import write_parquet

from tests.input.test_formats import save_dataset, table
from trustassay.core.sample import Sample
from trustassay.input import InputError, InputFault, LocatedSample
from trustassay.papers.mixedqa.question_sets import QuestionFile, read_questions

HOTPOT = {"_id": "5ab", "answer": "Oslo", "question": "Where is it?", "context": [["T", ["s"]]]}
TRIVIA = {
    "Answer": {"Aliases": ["Ella", "The Ella", ""], "Value": "Ella F.", "NormalizedValue": "ella"},
    "Question": "Who sang it?",
    "QuestionId": "tc_3",
    "SearchResults": [{"Title": "t"}],
}
POPQA = {"id": 42, "subj": "Rome", "question": "What is Rome?", "s_pop": 7, "o_pop": 9}


def read(name: str, path: Path | str) -> list[LocatedSample | InputFault]:
    return list(read_questions(QuestionFile.of(name, str(path))))


def only(name: str, path: Path | str) -> Sample:
    (found,) = read(name, path)
    assert isinstance(found, LocatedSample), found
    return found.sample


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


NQ = {"question": "when was it?", "answer": ["1066", "in 1066"]}


def test_nq_open_as_published_packed_or_not(tmp_path: Path) -> None:
    plain = only("nq", written(tmp_path / "NQ-open.dev.jsonl", NQ))
    assert plain.answers == (("1066", "in 1066"),)  # two names of one answer
    assert plain.metadata == {"source": "NaturalQuestions", "split": "dev"}
    packed = tmp_path / "nq.dev.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(NQ).encode()))
    assert only("nq", packed) == plain
    assert plain.id.startswith("nq-dev-")
    assert len(plain.id) == len("nq-dev-") + 12  # made of the question's words


def test_nq_open_as_parquet_and_as_a_folder(tmp_path: Path) -> None:
    write_parquet(table([NQ]), tmp_path / "validation-00000-of-00001.parquet")
    save_dataset(tmp_path / "nq" / "validation", {"data.arrow": [NQ]})
    found = only("nq", tmp_path / "validation-00000-of-00001.parquet")
    assert found.answers == (("1066", "in 1066"),)
    assert found == only("nq", tmp_path / "nq" / "validation")


def test_dpr_tables_without_a_header(tmp_path: Path) -> None:
    rows = "who's \"it\"?\t['Al', \"O'Al\"]\nwhich?\t['b']\n"
    found = read("nq", written(tmp_path / "nq-test.qa.csv", rows))
    assert [one.sample.answers for one in found if isinstance(one, LocatedSample)] == [
        (("Al", "O'Al"),),
        (("b",),),
    ]
    assert isinstance(found[0], LocatedSample)
    assert found[0].sample.question == 'who\'s "it"?'
    (first, _) = read("webq", written(tmp_path / "webquestions-test.qa.csv", rows))
    assert isinstance(first, LocatedSample)
    assert first.sample.answers == (("Al",), ("O'Al",))  # two answers


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("[__import__('os').getcwd()]", "expected a list of texts in Python syntax"),
        ("['a', ['b']]", 'column 2[1]: expected text, got ["b"]'),
        ("[]", "column 2: expected a list of texts, got []"),
        ("[" * 5000, "expected a list of texts in Python syntax"),
        ("['a'", "expected a list of texts in Python syntax"),
    ],
)
def test_dpr_answers_are_read_and_never_evaluated(tmp_path: Path, cell: str, words: str) -> None:
    path = written(tmp_path / "trivia-test.qa.csv", f"who?\t['a']\nwhat?\t{cell}\n")
    _, second = read("triviaqa", path)
    assert isinstance(second, InputFault)
    assert second.where == f"{path}:2"
    assert words in str(second)


def test_webquestions_as_published(tmp_path: Path) -> None:
    content = [
        {
            "url": "http://x",
            "utterance": "who is it?",
            "targetValue": '(list (description Jo) (description "Al \\"B\\"") (description 1984))',
        }
    ]
    found = only("webq", written(tmp_path / "webquestions.examples.test.json", content))
    assert found.answers == (("Jo",), ('Al "B"',), ("1984",))


def test_webquestions_of_datasets_and_with_ids(tmp_path: Path) -> None:
    row = {"url": "http://x", "question": "who?", "answers": ["Jo", "Al"]}
    write_parquet(table([row]), tmp_path / "test.parquet")
    assert only("webq", tmp_path / "test.parquet").answers == (("Jo",), ("Al",))
    other = [{"qId": "wqr000007", "qText": "who?", "answers": ["Jo"]}]
    assert only("webq", written(tmp_path / "test.json", other)).id == "webq-test-wqr000007"


def test_triviaqa_as_published(tmp_path: Path) -> None:
    path = written(tmp_path / "unfiltered-web-dev.json", {"Data": [TRIVIA], "Version": 1.0})
    found = only("triviaqa", path)
    assert found.id == "triviaqa-dev-tc_3"
    assert found.answers == (("Ella F.", "Ella", "The Ella"),)
    assert "SearchResults" not in found.to_dict()
    bare = {name: value for name, value in TRIVIA.items() if name != "Answer"}
    path = written(tmp_path / "web-test-without-answers.json", {"Data": [bare]})
    assert only("triviaqa", path).answers == ()


def test_triviaqa_of_datasets(tmp_path: Path) -> None:
    rows = [
        {"question": "a?", "question_id": "1", "answer": {"aliases": ["x"], "value": "X"}},
        {"question": "b?", "question_id": "2", "answer": {"aliases": [], "value": "<unk>"}},
    ]
    write_parquet(table(rows), tmp_path / "validation.parquet")
    found = read("triviaqa", tmp_path / "validation.parquet")
    assert [one.sample.answers for one in found if isinstance(one, LocatedSample)] == [
        (("X", "x"),),
        (),
    ]


def test_hotpotqa_as_published_and_of_datasets(tmp_path: Path) -> None:
    content = [HOTPOT | {"type": "bridge"}]
    found = only("hotpotqa", written(tmp_path / "hotpot_dev_distractor_v1.json", content))
    assert (found.id, found.answers) == ("hotpotqa-dev-5ab", (("Oslo",),))
    assert found.metadata["type"] == "bridge"
    row = {"id": "5ab", "question": "Where is it?", "answer": "Oslo", "type": "bridge"}
    write_parquet(table([row]), tmp_path / "validation.parquet")
    assert only("hotpotqa", tmp_path / "validation.parquet") == found
    bare = {name: value for name, value in HOTPOT.items() if name != "answer"}
    path = written(tmp_path / "hotpot_test_fullwiki_v1.json", [bare])
    assert only("hotpotqa", path).answers == ()


def test_popqa_as_published(tmp_path: Path) -> None:
    header = "\t".join([*POPQA, "possible_answers"])
    cells = "\t".join(map(str, POPQA.values())) + '\t"[""city"", ""old city"", 5]"'
    found = only("popqa", written(tmp_path / "popQA.tsv", f"{header}\n{cells}\n"))
    assert found.id == "popqa-test-42"  # the set has one split
    assert found.answers == (("city", "old city", "5"),)
    assert (found.metadata["s_pop"], found.metadata["o_pop"]) == ("7", "9")
    write_parquet(table([POPQA | {"possible_answers": '["city"]'}]), tmp_path / "test.parquet")
    assert only("popqa", tmp_path / "test.parquet").answers == (("city",),)


@pytest.mark.parametrize(
    ("name", "record", "words"),
    [
        ("nq", {"question": "q?", "answer": "x"}, 'answer: expected a list of texts, got "x"'),
        ("nq", {"question": " ", "answer": ["x"]}, 'question: expected text, got " "'),
        ("nq", {"question": 3, "answer": ["x"]}, "question: expected text, got 3"),
        ("nq", {"question": "q?", "answer": None}, "answer: is missing (expected a gold answer)"),
        ("nq", {"question": "q?", "answer": ["x", True]}, "answer[1]: expected text, got true"),
        ("nq", HOTPOT | {"answer": ""}, 'answer: expected a list of texts, got ""'),
        ("nq", [1], "record: expected an object"),
        ("nq", POPQA, "has the fields id, subj, question, s_pop, o_pop; NaturalQuestions has"),
        (
            "webq",
            {"utterance": "q?", "targetValue": "(list)"},
            'targetValue: expected (list (description "...") ...), got "(list)"',
        ),
        ("webq", {"utterance": "q?", "targetValue": "(list (description a b))"}, "targetValue: "),
        ("triviaqa", TRIVIA | {"Answer": 3}, "Answer: expected an object with a value"),
        ("triviaqa", TRIVIA | {"Answer": {"Value": "x", "Aliases": [{}]}}, "Answer.aliases[0]: "),
        ("triviaqa", TRIVIA | {"Answer": {"Value": 3}}, "Answer: expected text, got 3"),
        ("hotpotqa", HOTPOT | {"answer": ["x"]}, 'answer: expected text, got ["x"]'),
        (
            "popqa",
            POPQA | {"possible_answers": "x"},
            "possible_answers: expected a list of texts as",
        ),
        ("popqa", POPQA | {"possible_answers": "3"}, "possible_answers: expected a list of texts"),
    ],
)
def test_a_faulty_record_is_named_by_file_line_and_field(
    tmp_path: Path, name: str, record: Any, words: str
) -> None:
    good = {
        "nq": NQ,
        "webq": {"question": "q?", "answers": ["a"]},
        "triviaqa": TRIVIA,
        "hotpotqa": HOTPOT,
        "popqa": POPQA | {"possible_answers": ["a"]},
    }[name]
    path = tmp_path / "x.dev.jsonl"
    path.write_text(f"{json.dumps(good)}\n{json.dumps(record)}\nnot JSON\n")
    first, second, third = read(name, path)
    assert isinstance(first, LocatedSample)
    assert str(second).startswith(f"{path}:2: ")
    assert words in str(second)
    assert str(third).startswith(f"{path}:3: column ")


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("NQ-open.dev.jsonl", "dev"),
        ("NQ-open.efficientqa.test.1.1.jsonl", "test"),
        ("hotpot_dev_distractor_v1.json", "dev"),
        ("validation-00000-of-00001.parquet", "dev"),
        ("val.json", "dev"),
        ("nq/test/data.parquet", "test"),
        ("test=latest.jsonl", "test"),
        ("dev=test.jsonl", "dev"),
    ],
)
def test_the_split_is_read_from_the_name_or_given(path: str, split: str) -> None:
    assert QuestionFile.of("nq", path).split == split


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("latest.jsonl", "does not say which split it is; write test=latest.jsonl or dev="),
        ("dev-test.jsonl", "does not say which split"),
        ("NQ-open.train.jsonl", "is a training split; expected the test or dev split"),
    ],
)
def test_no_split_that_is_read(path: str, words: str) -> None:
    with pytest.raises(InputError, match="split") as raised:
        QuestionFile.of("nq", path)
    assert words in str(raised.value)
    assert QuestionFile.of("popqa", "popQA.tsv").split == "test"


def test_files_that_cannot_be_read_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean triviaqa"):
        QuestionFile.of("trivaqa", "dev.json")
    with pytest.raises(InputError, match="no such file"):
        read("nq", tmp_path / "dev.jsonl")
    with pytest.raises(InputError, match="has no records"):
        read("nq", written(tmp_path / "dev.jsonl", ""))
    with pytest.raises(InputError, match="no such file"):
        read("nq", tmp_path / "dev.csv")

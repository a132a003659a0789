from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.backends.corpus import TEXT_WORDS, compute_corpus_mark, cut_passages, read_corpus
from trustassay.core.capabilities import Passage
from trustassay.input.records import InputError

ROWS = [
    {"id": "a", "title": "One", "text": "First passage."},
    {"id": "b", "title": "Two", "text": 'Second [1] passage, with "quotes".'},
]
PASSAGES = [Passage(row["id"], row["text"], row["title"]) for row in ROWS]


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def faults(source: Path) -> str:
    with pytest.raises(InputError) as error:
        list(read_corpus(source))
    return str(error.value)


def test_every_kind_of_file_gives_the_same_passages(tmp_path: Path) -> None:
    from arro3.core import Array, DataType, Table
    from arro3.io import write_parquet

    jsonl = lines(tmp_path / "c.jsonl", ROWS)
    names = ("id", "text", "title")
    columns = {n: Array([row[n] for row in ROWS], type=DataType.string()) for n in names}
    write_parquet(Table.from_pydict(columns), str(tmp_path / "c.parquet"))
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        with (tmp_path / f"c{suffix}").open("w", newline="") as file:
            table = csv.DictWriter(file, names, delimiter=delimiter)
            table.writeheader()
            table.writerows(ROWS)
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(jsonl.read_bytes()))
    for name in ("c.jsonl", "c.jsonl.gz", "c.tsv", "c.csv", "c.parquet"):
        assert list(read_corpus(tmp_path / name)) == PASSAGES, name


def test_other_tools_names_and_missing_ids(tmp_path: Path) -> None:
    rows = [{"_id": "x", "text": "one"}, {"docid": 7, "contents": "two"}, {"passage": "three"}]
    found = list(read_corpus(lines(tmp_path / "c.jsonl", rows)))
    assert [p.id for p in found] == ["x", "7", "c.jsonl:3"]
    assert [p.text for p in found] == ["one", "two", "three"]


def test_a_folder_is_read_in_the_order_of_names_and_cuts_plain_text(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "z.txt").write_text("Word is here. " * 60)
    (tmp_path / "b.md").write_text("Short.")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / ".hidden.txt").write_text("not read")
    lines(tmp_path / "a.jsonl", [{"id": "long", "text": "word " * 300}])
    found = list(read_corpus(tmp_path))
    assert [p.id for p in found] == ["long", "b.md#1", "z.txt#1", "z.txt#2"]
    assert len(found[0].text.split()) == 300
    assert [len(p.text.split()) for p in found[2:]] == [99, 81]  # whole sentences of three words
    assert found[2].title == "z"
    assert len(list(read_corpus(tmp_path / "a.jsonl", words=50))) == 6


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", ":2: column 2: is not JSON"),
        (
            '{"title": "x"}',
            ":2: text: is missing (expected text or contents or passage; it has title",
        ),
        ('{"text": "  "}', ":2: text: is blank"),
        ('{"text": 3}', ":2: text: expected text, got int"),
        ('{"text": "x", "id": [1]}', ":2: id: expected text, got list"),
        ("[1]", ":2: record: expected an object with the field text"),
    ],
)
def test_faults_name_file_line_and_field(tmp_path: Path, line: str, expected: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "good"}\n' + line + "\n")
    assert expected in faults(path)
    assert faults(path).startswith(str(path))


def test_all_faults_are_told_up_to_twenty(tmp_path: Path) -> None:
    few = lines(tmp_path / "few.jsonl", [{"text": ""}, {"text": "x"}, {"id": "q"}])
    assert [line.split(":")[1] for line in faults(few).splitlines()] == ["1", "3"]
    many = lines(tmp_path / "many.jsonl", [{"text": ""}] * 1000)
    assert faults(many).endswith("20: text: is blank\n... the remaining records were not checked")


def test_bad_files(tmp_path: Path) -> None:
    assert "no such file or folder" in faults(tmp_path / "nothing")
    assert "contains no file that can be read" in faults(tmp_path)
    picture = tmp_path / "x.png"
    picture.write_bytes(b"")
    assert "is not a corpus" in faults(picture)
    empty = lines(tmp_path / "e.jsonl", [])
    assert "contains no passage" in faults(empty)
    table = tmp_path / "t.tsv"
    table.write_text("1\tsome words\tTitle\n")
    assert f"{table}:1: expected a header with a column text" in faults(table)
    table.write_text("id\ttext\n1\tgood\textra\n")
    assert f"{table}:2: record: has 3 cells, but the header has 2" in faults(table)
    table.write_bytes(b"id\ttext\n1\t\xff\n")
    assert "is not UTF-8" in faults(table)
    text = tmp_path / "l.txt"
    text.write_bytes(b"good\n\xff\n")
    assert faults(text) == f"{text}:2: byte 1 is not UTF-8"


def test_the_mark_changes_with_the_files(tmp_path: Path) -> None:
    path = lines(tmp_path / "c.jsonl", ROWS)
    first = compute_corpus_mark(tmp_path)
    assert compute_corpus_mark(tmp_path) == first
    os.utime(path, ns=(0, 0))
    second = compute_corpus_mark(tmp_path)
    (tmp_path / "d.txt").write_text("more")
    assert len({first, second, compute_corpus_mark(tmp_path)}) == 3


@given(st.text(alphabet="ab .\n!?", max_size=300), st.integers(1, 12))
def test_cutting_loses_no_word_and_keeps_to_the_length(text: str, words: int) -> None:
    passages = list(cut_passages(text, words))
    assert " ".join(passages).split() == text.split()
    assert all(0 < len(p.split()) <= words for p in passages)


def test_cutting_keeps_sentences_whole() -> None:
    text = "One two three. Four five. Six seven eight nine."
    assert list(cut_passages(text, 5)) == ["One two three. Four five.", "Six seven eight nine."]
    assert list(cut_passages("one two three four five six seven", 3)) == [
        "one two three",
        "four five six",
        "seven",
    ]


def test_a_large_text_file_is_read_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    path.write_text("\n\n".join("Some words stand here. " * 200 for _ in range(60)))
    found = list(read_corpus(path))
    assert len({p.id for p in found}) == len(found)
    assert sum(len(p.text.split()) for p in found) == len(path.read_text().split())
    assert max(len(p.text.split()) for p in found) <= TEXT_WORDS


def test_the_dump_of_dpr_is_read_as_it_is(tmp_path: Path) -> None:
    """Tabs between, texts in quotes, quotes within them doubled, titles quoted where they must."""
    dump = tmp_path / "psgs_w100.tsv"
    dump.write_text(
        "id\ttext\ttitle\n"
        '1\t"Aaron ( or ; ""Ahärôn"") is a prophet, high\tpriest."\tAaron\n'
        '2\t"He sang ""Heroes"" in 1977."\t"""Heroes"" (song)"\n'
        '21015324\t"The last one."\tThe "last" one\n',
        encoding="utf-8",
    )
    assert list(read_corpus(dump)) == [
        Passage("1", 'Aaron ( or ; "Ahärôn") is a prophet, high\tpriest.', "Aaron"),
        Passage("2", 'He sang "Heroes" in 1977.', '"Heroes" (song)'),
        Passage("21015324", "The last one.", 'The "last" one'),
    ]


@pytest.mark.parametrize("name", ["c.tsv.gz", "c.jsonl.gz", "c.txt.gz"])
def test_a_packed_line_of_any_length_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from trustassay.backends import corpus

    monkeypatch.setattr(corpus, "LONGEST_LINE_MIB", 1)
    path = tmp_path / name
    start = b"id\ttext\na\tb\n" if ".tsv" in name else b'{"text": "b"}\n'
    size = 70 if ".jsonl" in name else 2
    path.write_bytes(gzip.compress(start + b"0" * (size * 2**20) + b"\n", 1))
    assert "has more than" in faults(path)

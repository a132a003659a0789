"""Labelled pairs: what a label is called, where columns are called otherwise, and faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trustassay.input.labelled_pairs import read_pairs
from trustassay.input.records import InputError


def written(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def row(label: object, **more: str) -> dict[str, object]:
    return {"premise": "p", "hypothesis": "h", "label": label, **more}


@pytest.mark.parametrize(
    ("yes", "no"),
    [("entailment", "neutral"), ("Supported", "not supported"), (1, 0), (True, False),
     ("SUPPORTS", "REFUTES"), ("entailment", "not_entailment"), ("yes", "contradiction")],
)  # fmt: skip
def test_labels_of_the_field(tmp_path: Path, yes: object, no: object) -> None:
    found = read_pairs(written(tmp_path / "p.jsonl", row(yes), row(no, kind="units")))
    assert [pair.supported for pair in found] == [True, False]
    assert [pair.kind for pair in found] == ["", "units"]


def test_tables_with_other_names_and_another_word(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("passage,claim,mark\nRain fell.,It rained.,ok\nRain fell.,It snowed.,bad\n")
    names = {"premise": "passage", "hypothesis": "claim", "label": "mark"}
    found = read_pairs(path, fields=names, supported="ok")
    assert [(pair.hypothesis, pair.supported) for pair in found] == [
        ("It rained.", True),
        ("It snowed.", False),
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row("entailment"), row("perhaps")], r"p.jsonl:2: label: expected .* got 'perhaps'"),
        ([row("entailment"), row(None)], "got None"),
        (
            [row("entailment"), {"premise": "p", "label": 0}],
            "hypothesis: expected a text, got None",
        ),
        (
            [row("entailment"), row("entailment")],
            "expected both supported and unsupported pairs, got 2",
        ),
        ([row("?")] * 9, "and 4 more"),
    ],
)
def test_faults_name_the_row(tmp_path: Path, rows: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pairs(written(tmp_path / "p.jsonl", *rows))


def test_an_unknown_field_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="premise"):
        read_pairs(written(tmp_path / "p.jsonl", row(1)), fields={"premis": "x"})


def test_a_field_that_no_row_has_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("passage,claim,label\na,b,1\nc,d,0\n")
    words = (
        "expected a field premise, or --field premise=COLUMN; the file has passage, claim, label"
    )
    with pytest.raises(InputError, match=words):
        read_pairs(path)

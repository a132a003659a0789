"""A line of assessments.jsonl, read only as far as needed, is the line that was written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.metric import Assessment
from trustassay.core.sample import clean
from trustassay.runs.lines import (
    EvidenceOnDisk,
    encode_assessment,
    is_scored,
    parse_identity,
    parse_sample_id,
    read_line,
)

MARKS = ['], "calls": {', ', "evidence": [', "\\", '"', "}", "]", "\x00", "é", "\ud800", "😀", "\n"]
_texts = st.text(st.characters(codec=None), max_size=8) | st.lists(
    st.sampled_from(MARKS), max_size=4
).map("".join)
_keys = _texts | st.sampled_from(["evidence", "calls", "error", "id"])
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
_assessments = st.builds(
    Assessment,
    id=_texts,
    metric=_texts,
    score=st.none() | st.floats(0, 1),
    verdict=st.none() | _texts,
    reason=_texts,
    parts=st.dictionaries(_keys, st.floats(-9, 9), max_size=3),
    evidence=st.lists(st.dictionaries(_keys, _json, max_size=3), max_size=3),
    calls=st.dictionaries(_keys, st.integers(0, 9), max_size=2),
    usage=st.dictionaries(_keys, st.dictionaries(_keys, st.integers(0, 9)), max_size=2),
    error=st.none() | _texts,
)


@given(_assessments)
def test_any_line(written: Assessment) -> None:
    line = encode_assessment(written)
    decoded: dict[str, Any] = json.loads(line)
    evidence = decoded.pop("evidence")
    read = read_line(line)
    assert {**read.fields, "evidence": None} == {**decoded, "evidence": None}
    assert json.loads(b"[" + read.evidence + b"]") == evidence
    assert read.start > 0
    assert read.evidence_text() == clean(json.dumps(evidence, ensure_ascii=False))
    assert parse_identity(line) == sample_id_and_metric(decoded)
    assert parse_sample_id(line) == decoded["id"]
    assert is_scored(line) == (written.error is None)


def sample_id_and_metric(decoded: dict[str, Any]) -> tuple[str, str]:
    return decoded["id"], decoded["metric"]


EVIDENCE: list[dict[str, Any]] = [{"kind": "sentence", "text": "é ], 1"}, {"n": [1, 2]}]


def test_a_line_that_another_program_wrote_is_read_as_well(tmp_path: Path) -> None:
    fields = Assessment("a", "m", 0.5, evidence=EVIDENCE).to_dict()
    for line in (
        json.dumps(fields, separators=(",", ":")),
        json.dumps({name: fields[name] for name in sorted(fields)}),
        json.dumps(fields, indent=0).replace("\n", " "),
    ):
        (tmp_path / "lines").write_text(line)
        read = read_line(line.encode())
        found = Assessment.from_dict(read.locate_evidence(tmp_path / "lines", 0))
        assert list(found.evidence) == EVIDENCE
        assert json.loads(read.evidence_text()) == EVIDENCE


@pytest.mark.parametrize("line", ["", "{", "[1]", "{}", '{"id": "a", "metric": "m"}', "{} {}"])
def test_a_damaged_line_is_an_error(line: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        read_line(line.encode())


def test_evidence_is_read_when_it_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    first = encode_assessment(Assessment("ü", "m", 0.5))
    second = encode_assessment(Assessment("b", "m", 0.5, evidence=EVIDENCE))
    path.write_bytes(first + second)
    empty = read_line(first).locate_evidence(path, 0)["evidence"]
    assert (list(empty), len(empty), bool(empty)) == ([], 0, False)
    found: Sequence[Any] = read_line(second).locate_evidence(path, len(first))["evidence"]
    assert isinstance(found, EvidenceOnDisk)
    assert found == EVIDENCE
    assert found[1] == EVIDENCE[1]
    assert found[:1] == EVIDENCE[:1]
    assert (len(found), [*found], found == "no") == (2, EVIDENCE, False)

"""A line of ``assessments.jsonl``: how it is written, and how it is read only as far as needed.

Evidence makes up most of a line, and most readers do without it. It stands between two marks that
no JSON string can hold (a quotation mark inside a string has a backslash before it), so it is cut
out before the rest is decoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

from trustassay.metric import Assessment
from trustassay.sample import Sample, clean

__all__ = [
    "EvidenceOnDisk",
    "Line",
    "decoded",
    "encoded",
    "encoded_sample",
    "identity",
    "is_scored",
    "read_line",
    "sample_id",
]

BEFORE_EVIDENCE = b', "evidence": ['
AFTER_EVIDENCE = b'], "calls": {'
WITHOUT_ERROR = b'"error": null}'
REQUIRED = frozenset(Assessment.__slots__) - {"usage", "fault", "unit"}
_decode = json.JSONDecoder().raw_decode
_PLAIN = rb'"([^"\\\x00-\x1f\x80-\xff]*)"'
_PLAIN_ID = re.compile(rb'\{"id": ' + _PLAIN)
_PLAIN_IDENTITY = re.compile(_PLAIN_ID.pattern + rb', "metric": ' + _PLAIN + rb"[,}]")


def encoded(assessment: Assessment) -> bytes:
    """Return the line of an assessment.

    Raises:
        TypeError, ValueError: it holds something that JSON cannot say.
    """
    return json.dumps(assessment.to_dict(), allow_nan=False).encode() + b"\n"


def encoded_sample(sample: Sample) -> bytes:
    """Return the line of a sample."""
    return json.dumps(sample.to_dict(), default=str).encode() + b"\n"


def decoded(line: bytes) -> dict[str, Any]:
    """Return what ``json.loads`` returns for the line of an object, in less time.

    Raises:
        ValueError: it is damaged.
    """
    text = line.decode()
    found, end = _decode(text)
    if not isinstance(found, dict) or text[end:].strip():
        raise ValueError("expected one JSON object")
    return found


def is_scored(line: bytes) -> bool:
    """Whether the line tells of no failure."""
    return line.rstrip().endswith(WITHOUT_ERROR)


def sample_id(line: bytes) -> str:
    """Return the id of a sample's line, without decoding the rest of it."""
    if plain := _PLAIN_ID.match(line):
        return plain[1].decode()
    return str(_decode(line.decode(), len('{"id": '))[0])


def identity(line: bytes) -> tuple[str, str]:
    """Return id and metric of an assessment's line, without decoding the rest of it.

    Raises:
        ValueError: it does not begin with them.
    """
    if plain := _PLAIN_IDENTITY.match(line):
        return plain[1].decode(), plain[2].decode()
    text = line.decode()
    found, end = _decode(text, len('{"id": '))
    metric, _ = _decode(text, end + len(', "metric": '))
    return found, metric


class Line(NamedTuple):
    """A line that was read: all fields decoded but ``evidence``, which is the JSON text between
    the brackets of its list and begins at the byte ``start`` of the line.

    A line that is not as :func:`encoded` writes it is decoded whole, and ``start`` is -1.
    """

    fields: Mapping[str, Any]
    evidence: bytes
    start: int

    def located(self, path: Path, offset: int) -> dict[str, Any]:
        """Return the fields of an assessment whose line begins at the byte ``offset`` of a file."""
        if self.start < 0:
            return dict(self.fields)
        later = EvidenceOnDisk(path, offset + self.start, len(self.evidence))
        return {**self.fields, "evidence": later}

    def evidence_text(self) -> str:
        """Return the evidence as the JSON text of a list, with all characters as themselves."""
        text = f"[{self.evidence.decode()}]"
        if "\\u" not in text:
            return text
        return clean(json.dumps(json.loads(text), ensure_ascii=False))


def read_line(line: bytes) -> Line:
    """Read an assessment's line without decoding its evidence.

    Raises:
        ValueError, KeyError: it is damaged.
    """
    before, after = line.find(BEFORE_EVIDENCE), line.rfind(AFTER_EVIDENCE)
    start = before + len(BEFORE_EVIDENCE)
    if before < 0 or after < start:
        fields = decoded(line)
        evidence, start = json.dumps(list(fields["evidence"]))[1:-1].encode(), -1
    else:
        fields, evidence = decoded(line[:start] + line[after:]), line[start:after]
    if not fields.keys() >= REQUIRED:
        raise ValueError(f"has no {' and no '.join(sorted(REQUIRED - fields.keys()))}")
    return Line(fields, evidence, start)


class EvidenceOnDisk(Sequence[Mapping[str, Any]]):
    """The evidence of one assessment: where it stands; read again each time it is looked at."""

    __hash__ = None  # type: ignore[assignment]  # as a list
    __slots__ = ("_length", "_path", "_start")

    def __init__(self, path: Path, start: int, length: int) -> None:
        self._path, self._start, self._length = path, start, length

    def _read(self) -> list[Mapping[str, Any]]:
        with self._path.open("rb") as file:
            file.seek(self._start)
            found: list[Mapping[str, Any]] = json.loads(b"[" + file.read(self._length) + b"]")
        return found

    def __len__(self) -> int:
        return len(self._read()) if self._length else 0

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | list[Mapping[str, Any]]:
        return self._read()[index]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._read())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._read() == list(other)

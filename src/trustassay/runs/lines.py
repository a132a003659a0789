"""Lines of samples and assessments, decoded only as far as needed, and sets of hashes.

Evidence makes up most of a line, and most readers do without it. It stands between two marks that
no JSON string can contain (a quotation mark inside a string has a backslash before it), so it is
cut out before the rest is decoded. Damaged lines raise :class:`ValueError` or :class:`KeyError`.
"""

import hashlib
import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from trustassay.core.metric import Assessment
from trustassay.core.sample import Sample, clean
from trustassay.errors import RunFolderError
from trustassay.statistics import Places

# The spaces are those that ``json.dumps`` writes by default.
BEFORE_EVIDENCE = b', "evidence": ['
AFTER_EVIDENCE = b'], "calls": {'
# The last field of an assessment, so that the end of a line tells whether it failed.
WITHOUT_ERROR = b'"error": null}'
# Earlier versions wrote lines without these fields.
REQUIRED_FIELDS = frozenset(Assessment.__slots__) - {"usage", "asked", "fault", "unit"}
_decode_json = json.JSONDecoder().raw_decode
# A JSON string of printable ASCII without escapes: "q1", but not "caf\u00e9" or "a\"b".
_PLAIN_STRING = rb'"([^"\\\x00-\x1f\x80-\xff]*)"'
_PLAIN_ID = re.compile(rb'\{"id": ' + _PLAIN_STRING)
_PLAIN_IDENTITY = re.compile(_PLAIN_ID.pattern + rb', "metric": ' + _PLAIN_STRING + rb"[,}]")


def encode_assessment(assessment: Assessment) -> bytes:
    """Return the line of an assessment.

    Raises:
        TypeError, ValueError: it holds a value that JSON cannot express, such as NaN.
    """
    return json.dumps(assessment.to_dict(), allow_nan=False).encode() + b"\n"


def encode_sample(sample: Sample) -> bytes:
    """Return the line of a sample."""
    return json.dumps(sample.to_dict(), default=str).encode() + b"\n"


def decode_object(line: bytes) -> dict[str, Any]:
    """Decode the line of an object, in less time than ``json.loads`` takes."""
    text = line.decode()
    result, end = _decode_json(text)
    if not isinstance(result, dict) or text[end:].strip():
        raise ValueError("expected one JSON object")
    return result


def is_scored(line: bytes) -> bool:
    """Whether the line of an assessment reports no failure."""
    return line.rstrip().endswith(WITHOUT_ERROR)


def parse_sample_id(line: bytes) -> str:
    """Return the id in a sample's line, without decoding the rest of it."""
    if plain := _PLAIN_ID.match(line):
        return plain[1].decode()
    # An id with escapes or other characters: decode this one string.
    return str(_decode_json(line.decode(), len('{"id": '))[0])


def parse_identity(line: bytes) -> tuple[str, str]:
    """Return id and metric in an assessment's line, without decoding the rest of it."""
    if plain := _PLAIN_IDENTITY.match(line):
        return plain[1].decode(), plain[2].decode()
    text = line.decode()
    result, end = _decode_json(text, len('{"id": '))
    metric, _ = _decode_json(text, end + len(', "metric": '))
    return result, metric


def read_identity(path: Path, line: bytes, number: int) -> tuple[str, str]:
    """Return id and metric of line ``number`` of the assessments at ``path``.

    Raises:
        RunFolderError: it is damaged.
    """
    try:
        return parse_identity(line)
    except ValueError:
        raise build_assessment_error(path, number) from None


class AssessmentLine(NamedTuple):
    """The line of an assessment, decoded except for its evidence."""

    fields: Mapping[str, Any]
    """All fields but ``evidence``, or all, if the line could not be cut."""
    evidence: bytes
    """The JSON text between the brackets of the list of evidence."""
    start: int
    """The byte of the line at which ``evidence`` begins; -1 if the line is not as
    :func:`encode_assessment` writes it and was decoded as a whole."""

    def locate_evidence(self, path: Path, offset: int) -> dict[str, Any]:
        """Return the fields of an assessment whose line begins at the byte ``offset`` of a file."""
        if self.start < 0:
            return dict(self.fields)
        later = EvidenceOnDisk(path, offset + self.start, len(self.evidence))
        return {**self.fields, "evidence": later}

    def evidence_text(self) -> str:
        """Return the evidence as the JSON text of a list, with all characters as themselves."""
        # Most evidence is ASCII and is passed on as it is; only escapes have to be decoded.
        text = f"[{self.evidence.decode()}]"
        if "\\u" not in text:
            return text
        return clean(json.dumps(json.loads(text), ensure_ascii=False))


def read_line(line: bytes) -> AssessmentLine:
    """Read an assessment's line without decoding its evidence."""
    # The second mark is searched from the right, since "calls" stands behind the evidence.
    mark_before, mark_after = line.find(BEFORE_EVIDENCE), line.rfind(AFTER_EVIDENCE)
    start = mark_before + len(BEFORE_EVIDENCE)
    # Another program wrote the line: the marks are missing, or in another order.
    if mark_before < 0 or mark_after < start:
        fields = decode_object(line)
        evidence, start = json.dumps(list(fields["evidence"]))[1:-1].encode(), -1
    else:
        fields, evidence = decode_object(line[:start] + line[mark_after:]), line[start:mark_after]
    if not fields.keys() >= REQUIRED_FIELDS:
        raise ValueError(f"has no {' and no '.join(sorted(REQUIRED_FIELDS - fields.keys()))}")
    return AssessmentLine(fields, evidence, start)


class EvidenceOnDisk(Sequence[Mapping[str, Any]]):
    """The evidence of one assessment, read from its file each time it is accessed.

    A table or a summary of a million assessments would not fit into memory with all evidence.
    """

    __hash__ = None  # type: ignore[assignment]  # as a list
    __slots__ = ("_length", "_path", "_start")

    def __init__(self, path: Path, start: int, length: int) -> None:
        self._path, self._start, self._length = path, start, length

    def _read(self) -> list[Mapping[str, Any]]:
        with self._path.open("rb") as file:
            file.seek(self._start)
            result: list[Mapping[str, Any]] = json.loads(b"[" + file.read(self._length) + b"]")
        return result

    def __len__(self) -> int:
        return len(self._read()) if self._length else 0

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._read())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._read() == list(other)


StepCallback = Callable[[], object]
"""Called for each processed line, for progress; an exception it raises ends the work."""


class StoredAssessments(Sequence[Assessment]):
    """The assessments in a file; only their offsets are held in memory.

    They keep a reference to their ``owner``, so that a temporary folder exists as long as they do.
    """

    def __init__(
        self,
        path: Path,
        metric: str | None,
        owner: object,
        step: StepCallback,
        units: NDArray[np.int64] | None,
        *,
        evidence_later: bool,
    ) -> None:
        self._path, self._owner, self._step, self._units = path, owner, step, units
        self._evidence_later, self._offsets = evidence_later, array("q")
        for number, (offset, line) in enumerate(read_located_lines(self._path), 1):
            if metric is None or read_identity(self._path, line, number)[1] == metric:
                self._offsets.append(offset)

    def iter_failures(self) -> Iterator[Assessment]:
        """Yield the assessments that failed, without decoding the others."""
        for offset, line in self._read_lines_at(self._offsets):
            # The end of the line is a quick test; a line of another program is decoded to be sure.
            if not is_scored(line) and (result := self._read(offset, line)).error is not None:
                yield result

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Assessment]:
        result = self._read_at(self._offsets)
        if self._units is None:
            return result
        return (
            # -1: a unit of one sample, which needs no number.
            assessment if unit < 0 else replace(assessment, unit=unit)
            for assessment, unit in zip(result, self._units.tolist(), strict=True)
        )

    @overload
    def __getitem__(self, index: int) -> Assessment: ...
    @overload
    def __getitem__(self, index: slice) -> list[Assessment]: ...
    def __getitem__(self, index: int | slice) -> Assessment | list[Assessment]:
        if isinstance(index, slice):
            return list(self._read_at(self._offsets[index]))
        return next(self._read_at([self._offsets[index]]))

    def _read_at(self, offsets: Iterable[int]) -> Iterator[Assessment]:
        for offset, line in self._read_lines_at(offsets):
            self._step()
            yield self._read(offset, line)

    def _read_lines_at(self, offsets: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        position = 0
        with self._path.open("rb") as file:
            for offset in offsets:
                # Consecutive lines are read without seeking, which would empty the buffer.
                if offset != position:
                    file.seek(offset)
                line = file.readline()
                position = offset + len(line)
                yield offset, line

    def _read(self, offset: int, line: bytes) -> Assessment:
        try:
            if self._evidence_later:
                fields = read_line(line).locate_evidence(self._path, offset)
            else:
                fields = json.loads(line)
            return Assessment.from_dict(fields)
        except (ValueError, KeyError, TypeError):
            raise build_error_at(self._path, offset) from None


def build_error_at(path: Path, offset: int) -> RunFolderError:
    """Return the error for a damaged line that begins at the byte ``offset``."""
    with path.open("rb") as file:
        return build_assessment_error(path, 1 + file.read(offset).count(b"\n"))


def build_assessment_error(path: Path, number: int) -> RunFolderError:
    """Return the error for a damaged line with this number."""
    return RunFolderError(f"{path}:{number}: damaged; delete this line and score again")


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; none if it does not exist."""
    if path.exists():
        with path.open("rb") as file:
            yield from file


def read_located_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, each with its offset in bytes."""
    offset = 0
    for line in read_lines(path):
        yield offset, line
        offset += len(line)


MAX_RECENT_HASHES = 65_536
"""Hashes that are collected before they are merged into the sorted array."""


def hash64(*parts: str) -> int:
    """Return 64 bits of BLAKE2b of the parts, which are separated by the character U+001F."""
    # Half of a surrogate pair, as some JSON has it, must not raise here.
    text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


class HashIndex:
    """Finds the places of 64-bit hashes in an array; of equal hashes the first place."""

    def __init__(self, hashes: Sequence[int] | NDArray[np.uint64]) -> None:
        values = np.asarray(hashes, dtype=np.uint64)
        self._places = np.argsort(values, kind="stable")
        self._sorted = values[self._places]

    def find(self, value: int) -> int:
        """Return the place of a hash; -1 if it is not in the array."""
        # The search returns where the hash would be inserted, which may be behind the last one.
        at = int(np.searchsorted(self._sorted, np.uint64(value)))
        is_known = at < len(self._sorted) and int(self._sorted[at]) == value
        return int(self._places[at]) if is_known else -1

    def find_all(self, hashes: NDArray[np.uint64]) -> Places:
        """Return the places of hashes, in the shape of ``hashes``; -1 for unknown ones."""
        at = np.searchsorted(self._sorted, hashes)
        # A hash above all others is searched for at the end, where the appended -1 stands.
        places = np.append(self._places, -1)[at]
        return np.where(np.append(self._sorted, 0)[at] == hashes, places, -1)


class HashSet:
    """A growing set of 64-bit hashes: recent ones in a set, the others in one sorted array.

    8 bytes are held of each, where a set of integers takes about 60. Two different texts among a
    million share a hash with a probability of about 3e-8.
    """

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._sorted: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def __contains__(self, value: int) -> bool:
        if value in self._recent:
            return True
        if not len(self._sorted):
            return False
        position = int(np.searchsorted(self._sorted, np.uint64(value)))
        return position < len(self._sorted) and int(self._sorted[position]) == value

    def __len__(self) -> int:
        self._merge()
        return len(self._sorted)

    def add(self, value: int) -> None:
        """Put a hash in."""
        self._recent.add(value)
        if len(self._recent) >= MAX_RECENT_HASHES:
            self._merge()

    def _merge(self) -> None:
        fresh = np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent))
        self._sorted = np.union1d(self._sorted, fresh)
        self._recent.clear()

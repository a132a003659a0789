"""Raw records, their values in JSON's types, the faults in them, and summaries of many faults."""

import datetime
import json
import math
import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from trustassay.core.sample import Problem
from trustassay.errors import UsageError, did_you_mean
from trustassay.input.printed import parse_printed


class InputError(UsageError):
    """The input as a whole cannot be read. The message names it and says what was expected."""


class RawRecord(NamedTuple):
    """A record as it was read, before its fields are recognised."""

    where: str
    """Its place in the input, for messages."""
    record: Any
    """The record; ``None`` if it was unreadable."""
    problems: tuple[Problem, ...] = ()
    """The problems of reading it."""
    of_table: bool = False
    """Whether it has every column of its table, with ``None`` for empty cells."""


def build_missing_source_error(
    name: str, canonical: str, theirs: str, names: Iterable[str]
) -> InputError:
    """Return the error for a ``--field`` whose source no record has."""
    hint = did_you_mean("field", theirs, names)
    return InputError(f"{name}: no record has {theirs} (--field {canonical}={theirs}): {hint}")


FieldNames = Mapping[str, str | Sequence[str]]
"""The user's names of fields, by canonical field."""
_SEPARATOR = "\x1f"


def join_names(fields: FieldNames) -> dict[str, str]:
    """Return the user's names of fields, of which the documents may have several, one text each.

    :func:`split_names` returns the names in such a text.

    Raises:
        InputError: another field has several names.
    """
    result = {}
    for canonical, names in fields.items():
        several = [names] if isinstance(names, str) else list(map(str, names))
        if not several or (len(several) > 1 and canonical != "documents"):
            raise InputError(
                f"--field {canonical}: expected one name, got {', '.join(several) or 'none'}; only "
                "documents may have several names"
            )
        result[canonical] = _SEPARATOR.join(several)
    return result


def split_names(joined: str) -> list[str]:
    """Return the names that :func:`join_names` joined."""
    return joined.split(_SEPARATOR)


MAX_MISSING_LISTED = 3
"""Records without a field that are listed one by one; more of them are reported in one line."""
MAX_FAULTS_OF_TABLE = 10
"""Faults of a table that a message lists; the others are counted."""
MAX_FAULTS_LISTED = 20
"""Faults of one kind that are listed one by one."""
MAX_NAMES_LISTED = 20


class UnknownFields(NamedTuple):
    """Canonical fields of a record whose names are unknown, with guesses."""

    names: tuple[str, ...]
    """The names that the record has."""
    fields: Mapping[str, str]
    """For each missing canonical field the likeliest name, empty without a guess."""
    complete: bool = False
    """Whether these names give the record a question, a response and passages."""
    preview: Mapping[str, str] = MappingProxyType({})
    """The beginnings of the question and the response that are read with these names."""
    values: Mapping[str, str] = MappingProxyType({})
    """The beginnings of the values that have no meaning yet, by name."""
    shape: str = ""
    """What to do with a record that looks like a chat or a trace; empty for others."""

    def __str__(self) -> str:
        """Return the fields found and how to name them, in the form for Python."""
        guesses_text = ", ".join(f'"{k}": "{v or "NAME"}"' for k, v in self.nameable.items())
        message = f"the fields are {self.names_text}"
        if self.shape:
            return f"{message}; {self.shape}"
        return f"{message}; name them with fields={{{guesses_text}}}" if guesses_text else message

    @property
    def nameable(self) -> Mapping[str, str]:
        """The fields to name. Documents are left out without a guess, because many records have
        only questions and answers.
        """
        return {k: v for k, v in self.fields.items() if v or k != "documents"}

    @property
    def names_text(self) -> str:
        """The names of the record as a text; of many, the first ones."""
        names_text = ", ".join(self.names[:MAX_NAMES_LISTED]) or "(none)"
        more = len(self.names) - MAX_NAMES_LISTED
        return f"{names_text} and {more} more" if more > 0 else names_text


class UnknownFieldsError(InputError):
    """The header of a table has no column for the question."""

    def __init__(self, message: str, unknown_fields: UnknownFields) -> None:
        super().__init__(message, unknown_fields)
        self.message, self.unknown_fields = message, unknown_fields

    def __str__(self) -> str:
        return f"{self.message}; {self.unknown_fields}"


@dataclass(frozen=True, slots=True)
class InputFault:
    """A record that is not a sample, with everything that is wrong with it."""

    where: str
    """Its place: ``answers.jsonl:12`` (a line), ``x.parquet: row 3``, ``x.json: item 3`` or
    ``sample 3`` (of an iterable); all count from 1."""
    problems: tuple[Problem, ...]
    """Its problems; their fields have the names that the record uses."""
    unknown_fields: UnknownFields | None = None
    """The fields that are missing because the record has no known name for them."""

    def __str__(self) -> str:
        """Return one line for each problem."""
        return "\n".join(f"{self.where}: {_format_problem(p)}" for p in self.problems)


def find_common_unknown_fields(faults: Sequence[InputFault]) -> UnknownFields | None:
    """Return the unknown fields that most faulty records share; ``None`` if there are none."""
    unknown = [fault.unknown_fields for fault in faults if fault.unknown_fields]
    counts = Counter(map(str, unknown))
    # Of records with the same names the first one is returned.
    return max(unknown, key=lambda fields: counts[str(fields)], default=None)


def summarise_faults(faults: Sequence[InputFault], records: int = 0) -> list[str]:
    """Return lines that report all faults: of each kind the first ones, and the number of others.

    A field that more than three records lack, or all of them, is reported in one line.

    Args:
        faults: the faults.
        records: the number of records of the input; 0 if it is not known.
    """
    rows = [
        (fault.where, problem, _kind_of_problem(problem))
        for fault in faults
        for problem in fault.problems
    ]
    counts, listed_counts = Counter(kind for *_, kind in rows), Counter[str]()
    # A field that many records lack is one mistake, and not many.
    lacking = {
        k
        for _, p, k in rows
        if p.message.startswith("is missing")
        and (counts[k] > MAX_MISSING_LISTED or 1 < counts[k] == records)
    }
    lines = []
    for where, problem, kind in rows:
        listed_counts[kind] += 1
        if listed_counts[kind] <= (1 if kind in lacking else MAX_FAULTS_LISTED):
            more = f" and {counts[kind] - 1:,} more" if kind in lacking else ""
            lines.append(f"{where}{more}: {_format_problem(problem)}")
    over = [kind for kind, n in counts.items() if n > MAX_FAULTS_LISTED and kind not in lacking]
    return lines + [f"... {counts[kind] - MAX_FAULTS_LISTED:,} more: {kind}" for kind in over]


def _kind_of_problem(problem: Problem) -> str:
    # Without indices and received values, so that equal mistakes in different records are counted
    # as one.
    return re.sub(r"\[\d+\]", "[]", problem.field) + ": " + problem.message.split(", got")[0]


def _format_problem(problem: Problem) -> str:
    return " ".join(str(problem).split())


_PLAIN = frozenset({str, int, float, bool, type(None)})


def to_json_types(value: Any) -> Any:
    """Return a value in JSON's types; bytes, dates and decimals become text, and dataclasses and
    models of pydantic become objects.

    An object of an unknown type is not changed.
    """
    # Most values end here, so this test comes first; subclasses such as NumPy's floats do not.
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple | deque):
        return [to_json_types(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(to_json_types, value), key=str)
    if isinstance(value, np.generic | np.ndarray):
        # ``tolist`` returns a NumPy scalar itself for types that Python lacks, such as long double;
        # converting it again would not end.
        listed = value.tolist()
        return listed if isinstance(listed, np.generic) else to_json_types(listed)
    content = _content_of(value)
    return _as_text(value) if content is None else to_json_types(content)


def _content_of(value: Any) -> dict[str, Any] | None:
    """Return the fields of a document of LangChain, LlamaIndex or Haystack, or of a like object."""
    if hasattr(type(value), "model_dump"):
        content: dict[str, Any] = value.model_dump()
        return content
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    return None


def arrow_to_json_types(value: Any) -> Any:
    """Return a value that came from Arrow in JSON's types.

    Arrow gives every object all fields that any object has: empty ones are left out. A map comes as
    a list of pairs and becomes an object.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        return {key: arrow_to_json_types(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        # A map of Arrow comes as a list of pairs.
        if value and all(type(item) is tuple for item in value):
            return {str(key): arrow_to_json_types(item) for key, item in value if item is not None}
        return [arrow_to_json_types(item) for item in value]
    return to_json_types(value)


def is_nan(value: Any) -> bool:
    """Whether ``value`` is NaN, which is how pandas and others write an empty cell."""
    return isinstance(value, float) and math.isnan(value)


MISSING_TEXTS = frozenset(
    "nan NaN -nan -NaN NaT NA N/A n/a <NA> #NA #N/A None NULL null 1.#IND -1.#IND 1.#QNAN "
    "-1.#QNAN".split()
)
"""Texts that pandas, Excel and SQL write for an empty cell."""


def is_missing(value: Any) -> bool:
    """Whether ``value`` is an empty cell: ``None``, NaN, or a text that stands for one.

    "None." and "none" are answers; only the texts of :data:`MISSING_TEXTS` stand for no answer. In
    a label, which is no answer, they are missing too (:func:`trustassay.core.labels.is_missing`).
    """
    if isinstance(value, str):
        return len(value) < 20 and value.strip() in MISSING_TEXTS
    return value is None or is_nan(value)


_MIDNIGHT = datetime.time()


def _as_text(value: Any) -> Any:
    # Other empty cells of pandas, which need not be installed.
    if type(value).__name__ in {"NaTType", "NAType"}:
        return math.nan
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "backslashreplace")
    # Excel and pandas store a date as its midnight.
    if isinstance(value, datetime.datetime):
        is_date = value == datetime.datetime.combine(value, _MIDNIGHT)
        value = value.date() if is_date else value
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta | Decimal | UUID):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    return value


# ---- values that are written as texts: JSON, and lists and objects as Python prints them ----


def decode_json(value: Any) -> Any:
    """Return a JSON text as its value, and anything else as it is."""
    if isinstance(value, str) and value.startswith(("{", "[", '"')):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def parse_value(text: str) -> Any:
    """Return the list or object that a text is in JSON or as Python prints it, or else ``None``."""
    if text.startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return parse_printed(text)


def raise_faults(faults: Sequence[str], max_listed: int = MAX_FAULTS_OF_TABLE) -> None:
    """Raise an :class:`InputError` that lists the first faults, if there are any."""
    if faults:
        more = f"; and {len(faults) - max_listed:,} more" if len(faults) > max_listed else ""
        raise InputError("; ".join(faults[:max_listed]) + more)

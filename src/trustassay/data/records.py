"""Raw records: their values in JSON's types, what is wrong with them, and how faults are listed."""

import datetime
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from trustassay.errors import UsageError, did_you_mean
from trustassay.sample import Problem


class InputError(UsageError):
    """The input as a whole cannot be read; the message names it and says what was expected."""


class Raw(NamedTuple):
    """A record as read; with ``problems`` and no ``record`` if it was unreadable.

    A record ``of_table`` has every column of its table, ``None`` if its cell is empty.
    """

    where: str
    record: Any
    problems: tuple[Problem, ...] = ()
    of_table: bool = False


def missing_source(name: str, canonical: str, theirs: str, known: Iterable[str]) -> InputError:
    """Return the error of a ``--field`` whose source no record has."""
    hint = did_you_mean("field", theirs, known)
    return InputError(f"{name}: no record has {theirs} (--field {canonical}={theirs}): {hint}")


LISTED = 3
"""Records of which nothing is there for a field that are listed each; more are told in one line."""
SHOWN = 20
"""Faults of a kind that are listed each."""
NAMES_TOLD = 20


class Untold(NamedTuple):
    """Fields that cannot be told: the names that a record has, and for each field that is missing
    the name that it probably has, empty where there is no guess.

    ``complete``: with these names a record has a question, a response and passages.
    """

    names: tuple[str, ...]
    fields: Mapping[str, str]
    complete: bool = False

    def __str__(self) -> str:
        """Return what was found and how to name the fields, for Python."""
        named = ", ".join(f'"{k}": "{v or "NAME"}"' for k, v in self.nameable.items())
        message = f"found the fields {self.found}"
        return f"{message}; name them with fields={{{named}}}" if named else message

    @property
    def nameable(self) -> Mapping[str, str]:
        """The fields to name. Documents are among them where a name may be theirs: records of
        questions and answers alone are common.
        """
        return {k: v for k, v in self.fields.items() if v or k != "documents"}

    @property
    def found(self) -> str:
        """The names of the record, the first of many."""
        told = ", ".join(self.names[:NAMES_TOLD]) or "(none)"
        more = len(self.names) - NAMES_TOLD
        return f"{told} and {more} more" if more > 0 else told


class UntoldError(InputError):
    """The header of a table names no question; ``untold`` says what it names."""

    def __init__(self, message: str, untold: Untold) -> None:
        super().__init__(message, untold)
        self.message, self.untold = message, untold

    def __str__(self) -> str:
        return f"{self.message}; {self.untold}"


@dataclass(frozen=True, slots=True)
class Fault:
    """A record that is not a sample: its place, and everything that is wrong with it.

    ``where`` reads ``answers.jsonl:12`` (a line), ``x.parquet: row 3``, ``x.json: item 3`` or
    ``sample 3`` (of an iterable); all count from one. Fields have the names that the record uses.
    ``untold`` says what is missing because no name of the record is known for it.
    """

    where: str
    problems: tuple[Problem, ...]
    untold: Untold | None = None

    def __str__(self) -> str:
        """Return one line for each problem."""
        return "\n".join(f"{self.where}: {_one_line(p)}" for p in self.problems)


def untold_of(faults: Sequence[Fault]) -> Untold | None:
    """Return what most of the faulty records do not tell; ``None`` where they tell all."""
    result = {str(one.untold): one.untold for one in faults if one.untold}
    most = Counter(str(one.untold) for one in faults if one.untold).most_common(1)
    return result[most[0][0]] if most else None


def summarised(faults: Sequence[Fault]) -> list[str]:
    """Return lines that tell all faults: of a kind the first ones, and how many more there are.

    What more than :data:`LISTED` records lack is one line.
    """
    rows = [(one.where, problem, _kind(problem)) for one in faults for problem in one.problems]
    counts, told = Counter(kind for *_, kind in rows), Counter[str]()
    lacking = {k for _, p, k in rows if counts[k] > LISTED and p.message.startswith("is missing")}
    lines = []
    for where, problem, kind in rows:
        told[kind] += 1
        if told[kind] <= (1 if kind in lacking else SHOWN):
            more = f" and {counts[kind] - 1:,} more" if kind in lacking else ""
            lines.append(f"{where}{more}: {_one_line(problem)}")
    over = [kind for kind, n in counts.items() if n > SHOWN and kind not in lacking]
    return lines + [f"... {counts[kind] - SHOWN:,} more: {kind}" for kind in over]


def _kind(problem: Problem) -> str:
    return re.sub(r"\[\d+\]", "[]", problem.field) + ": " + problem.message.split(", got")[0]


def _one_line(problem: Problem) -> str:
    return " ".join(str(problem).split())


_PLAIN = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """Return ``value`` in JSON's types; bytes, dates, decimals become text.

    An object of an unknown type is not changed.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=str)
    if isinstance(value, np.generic | np.ndarray):
        listed = value.tolist()
        return listed if isinstance(listed, np.generic) else plain(listed)
    return _as_text(value)


def from_arrow(value: Any) -> Any:
    """Return a value that came from Arrow in JSON's types.

    Arrow gives every object all fields that any object has: empty ones are left out. A map comes as
    a list of pairs and becomes an object.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        return {key: from_arrow(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        if value and all(type(item) is tuple for item in value):
            return {str(key): from_arrow(item) for key, item in value if item is not None}
        return [from_arrow(item) for item in value]
    return plain(value)


def is_nan(value: Any) -> bool:
    """Whether ``value`` is NaN, which is how pandas and others write an empty cell."""
    return isinstance(value, float) and math.isnan(value)


def _as_text(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta | Decimal | UUID):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    return value

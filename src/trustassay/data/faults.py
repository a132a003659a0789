"""Faults of records, and how many of one kind are told: once, with what would mend them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trustassay.data.raw import InputError
from trustassay.sample import Problem

__all__ = ["Fault", "Untold", "UntoldError", "summarised", "untold_of"]

LISTED = 3
"""Records of which nothing is there for a field that are listed each; more are told in one line."""
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
        words = f"found the fields {self.found}"
        return f"{words}; name them with fields={{{named}}}" if named else words

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
    found = {str(one.untold): one.untold for one in faults if one.untold}
    most = Counter(str(one.untold) for one in faults if one.untold).most_common(1)
    return found[most[0][0]] if most else None


def summarised(faults: Sequence[Fault]) -> list[tuple[str, str]]:
    """Return lines that tell all faults, each with the kind of its problem.

    What more than :data:`LISTED` records lack is one line.
    """
    counts = Counter(_kind(problem) for fault in faults for problem in fault.problems)
    told: set[str] = set()
    lines = []
    for fault in faults:
        for problem in fault.problems:
            kind = _kind(problem)
            together = problem.message.startswith("is missing") and counts[kind] > LISTED
            if together and kind in told:
                continue
            told.add(kind)
            more = f" and {counts[kind] - 1:,} more" if together else ""
            lines.append((f"{fault.where}{more}: {_one_line(problem)}", kind))
    return lines


def _kind(problem: Problem) -> str:
    return re.sub(r"\[\d+\]", "[]", problem.field) + ": " + problem.message.split(", got")[0]


def _one_line(problem: Problem) -> str:
    return " ".join(str(problem).split())

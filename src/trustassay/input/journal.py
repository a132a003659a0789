"""Reads the journal that ``trustassay annotate`` writes: one line for each action of a rater.

The first line describes what is rated and how. Each further line is about one showing of an answer:
who rated (``rater``), which answer (``item``, ``model``, ``repeat``), the ``rating`` with a note
and the time, and the ``rubric`` if there are several. Its ``action`` is ``skip`` where the rater
gave no rating, ``undo`` where the rater withdrew the previous line of the same showing, and absent
otherwise. Lines are only appended, never changed; the last one of a showing counts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trustassay.core.sample import LONGEST_LINE_MIB
from trustassay.input.bounds import iter_lines
from trustassay.input.records import InputError

ACTION = "action"
START, SKIP, UNDO = "start", "skip", "undo"
UNEQUAL = "unequal"
"""The ``chances`` of a first line where ``label`` chose the answers with unequal probabilities."""
BEGINNING = f'{{"{ACTION}": "{START}"'.encode()
"""The first bytes of every journal."""
RUBRIC = "rubric"
# The fields that together identify a showing.
SHOWING = ("rater", "item", "model", "repeat", RUBRIC)


@dataclass(frozen=True, slots=True)
class Journal:
    """The contents of a journal."""

    path: Path
    """The file."""
    start: Mapping[str, Any]
    """The first line; empty if the process was killed before it was written completely."""
    lines: Sequence[tuple[str, dict[str, Any]]]
    """The other lines, each with its place ("FILE:NUMBER")."""
    sound_bytes: int
    """Bytes of complete lines; the bytes behind them are a line that was cut off."""

    @property
    def levels(self) -> tuple[str, ...]:
        """The words of the scale, the lowest first; none for numbers and for categories."""
        levels = self.start.get("levels")
        return tuple(map(str, levels)) if isinstance(levels, list) else ()

    @property
    def choices(self) -> tuple[str, ...]:
        """The options that a rater could choose from; none for numbers."""
        choices = self.start.get("choices")
        return tuple(map(str, choices)) if isinstance(choices, list) else ()

    def select_rubric(self, name: str | None) -> "Journal":
        """Return the part of the journal about one rubric, as if there were no other.

        A journal with a single rubric is returned as it is.

        Raises:
            InputError: there are several rubrics, and ``name`` is none of them.
        """
        rubrics = self.start.get("rubrics")
        if not isinstance(rubrics, dict):
            return self
        if name not in rubrics:
            name_received = "" if name is None else f", got {name[:40]!r}"
            raise InputError(
                f"{self.path}: has ratings of {len(rubrics)} rubrics; expected --field "
                f"rating=RUBRIC with one of {', '.join(rubrics)}{name_received}"
            )
        lines = [(where, line) for where, line in self.lines if line.get(RUBRIC) == name]
        return replace(self, start={**self.start, **rubrics[name], "rubrics": None}, lines=lines)

    def last_states(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the last line of each showing, without showings that were undone.

        A skipped answer is included, without a rating.
        """
        result: dict[tuple[str, ...], tuple[str, dict[str, Any]]] = {}
        for where, line in self.lines:
            showing = tuple(str(line.get(name)) for name in SHOWING)
            # Removed first, so that a showing that is rated anew moves to the end.
            result.pop(showing, None)
            if line.get(ACTION) != UNDO:
                result[showing] = (where, line)
        return list(result.values())


def is_journal(path: Path) -> bool:
    """Whether a file is a journal, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(BEGINNING)) == BEGINNING
    except OSError:
        return False


def read_journal(path: Path) -> Journal:
    """Read a journal.

    A last line without a line end is left out: the process was killed while it wrote the line, and
    no rater had been told that it was stored.

    Raises:
        InputError: another line is damaged; the message names it.
        OSError: the file cannot be read.
    """
    start: Mapping[str, Any] = {}
    lines: list[tuple[str, dict[str, Any]]] = []
    sound = 0
    for where, content, line in read_complete_lines(path):
        if content.get(ACTION) == START:
            if lines or start:
                raise InputError(f"{where}: expected one start line in a file, got a second one")
            start = content
        elif not all(isinstance(content.get(name), str) for name in ("rater", "item")):
            raise InputError(f"{where}: expected the fields item and rater")
        else:
            lines.append((where, content))
        # Counted so that a writer can cut off the rest before it appends.
        sound += len(line)
    return Journal(path, start, lines, sound)


def read_complete_lines(path: Path) -> Iterator[tuple[str, dict[str, Any], bytes]]:
    """Yield the objects of a JSON Lines file, each with its place and its bytes.

    A last line without a line end is left out.

    Raises:
        InputError: a line is damaged; the message names it.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in enumerate(iter_lines(file, LONGEST_LINE_MIB), 1):
            where = f"{path}:{number}"
            if line is None:
                raise InputError(f"{where}: the line is damaged (too long); restore or remove it")
            # Cut off by a crash, or still being written.
            if not line.endswith(b"\n"):
                return
            try:
                content = json.loads(line)
            except (ValueError, RecursionError):
                raise InputError(
                    f"{where}: the line is damaged (not JSON); restore or remove it"
                ) from None
            if not isinstance(content, dict):
                raise InputError(
                    f"{where}: the line is damaged (expected an object); restore or remove it"
                )
            yield where, content, line

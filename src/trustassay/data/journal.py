"""The file that ``trustassay annotate`` writes: a line for all that a rater does, in order of time.

The first line says what is rated and how. Each line after it is about one showing of an answer:
who (``rater``), what (``item``, ``model``, ``repeat``), and the ``rating`` with a note and the
time; if there are several rubrics, by which one (``rubric``). Its ``action`` is ``skip`` where the
rater gave no rating, ``undo`` where the former line of the same showing was taken back, and absent
otherwise. No line is ever changed; the last one counts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trustassay.data.records import InputError

ACTION = "action"
START, SKIP, UNDO = "start", "skip", "undo"
UNEQUAL = "unequal"
"""The ``chances`` of a first line where ``label`` chose the answers with unequal probabilities."""
BEGINNING = f'{{"{ACTION}": "{START}"'.encode()
"""How the first line of every such file begins."""
RUBRIC = "rubric"
SHOWING = ("rater", "item", "model", "repeat", RUBRIC)


@dataclass(frozen=True, slots=True)
class Journal:
    """What such a file holds.

    start: the first line; empty if the process that wrote it was killed before it was whole.
    lines: the others, each with its place. sound: bytes of whole lines; what follows was cut short.
    """

    path: Path
    start: Mapping[str, Any]
    lines: Sequence[tuple[str, dict[str, Any]]]
    sound: int

    @property
    def levels(self) -> tuple[str, ...]:
        """The words of the scale, the lowest first; none for numbers and for categories."""
        levels = self.start.get("levels")
        return tuple(map(str, levels)) if isinstance(levels, list) else ()

    @property
    def choices(self) -> tuple[str, ...]:
        """What a rater could choose from."""
        choices = self.start.get("choices")
        return tuple(map(str, choices)) if isinstance(choices, list) else ()

    def of_rubric(self, name: str | None) -> "Journal":
        """Return what is about one rubric, as if it were the only one; all if there is but one.

        Raises:
            InputError: there are several, and ``name`` is none of them.
        """
        rubrics = self.start.get("rubrics")
        if not isinstance(rubrics, dict):
            return self
        if name not in rubrics:
            got = "" if name is None else f", got {name[:40]!r}"
            raise InputError(
                f"{self.path}: holds the ratings of {len(rubrics)} rubrics; expected --field "
                f"rating=RUBRIC with one of {', '.join(rubrics)}{got}"
            )
        lines = [(where, line) for where, line in self.lines if line.get(RUBRIC) == name]
        return replace(self, start={**self.start, **rubrics[name], "rubrics": None}, lines=lines)

    def last_states(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the line that counts of each showing, without those that were taken back.

        A skipped answer stays, with no rating.
        """
        result: dict[tuple[str, ...], tuple[str, dict[str, Any]]] = {}
        for where, line in self.lines:
            showing = tuple(str(line.get(name)) for name in SHOWING)
            result.pop(showing, None)
            if line.get(ACTION) != UNDO:
                result[showing] = (where, line)
        return list(result.values())


def is_journal(path: Path) -> bool:
    """Whether a file is one that ``annotate`` wrote, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(BEGINNING)) == BEGINNING
    except OSError:
        return False


def read_journal(path: Path) -> Journal:
    """Read a file that ``annotate`` wrote. A last line without its end is left out: the process was
    killed while it wrote it, and no rater was told that it is stored.

    Raises:
        InputError: another line is damaged; the message names it.
        OSError: the file cannot be read.
    """
    start: Mapping[str, Any] = {}
    lines: list[tuple[str, dict[str, Any]]] = []
    sound = 0
    for where, content, line in whole_lines(path):
        if content.get(ACTION) == START:
            if lines or start:
                raise InputError(f"{where}: a second first line; each file is of one `annotate`")
            start = content
        elif not all(isinstance(content.get(name), str) for name in ("rater", "item")):
            raise InputError(f"{where}: expected an item and a rater")
        else:
            lines.append((where, content))
        sound += len(line)
    return Journal(path, start, lines, sound)


def whole_lines(path: Path) -> Iterator[tuple[str, dict[str, Any], bytes]]:
    """Yield the objects of a file of JSON Lines, each with its place and its line.

    A last line without its end is left out.

    Raises:
        InputError: a line is damaged; the message names it.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}:{number}"
            if not line.endswith(b"\n"):
                return
            try:
                content = json.loads(line)
            except (ValueError, RecursionError):
                raise InputError(f"{where}: damaged (is not JSON); restore or remove it") from None
            if not isinstance(content, dict):
                raise InputError(f"{where}: damaged (expected an object); restore or remove it")
            yield where, content, line

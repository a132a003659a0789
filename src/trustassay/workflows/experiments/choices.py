"""Questions with choices: how replies are graded, and the outputs that haltt4llm published."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Literal, NamedTuple

from trustassay.calls.choosing import chosen
from trustassay.data.records import InputError
from trustassay.sample import Problem, Sample, clean

__all__ = [
    "Choices",
    "Grade",
    "Output",
    "Verdict",
    "choices_of",
    "first_letter",
    "graded",
    "published_grade",
    "published_outputs",
]

Verdict = Literal["right", "wrong", "unknown", "unreadable"]
DONT_KNOW = "i don't know"
LONGEST_FILE = 64_000_000
"""Bytes of a file of outputs; haltt4llm's have 300,000."""
_BLOCK = re.compile(r"^Question (\d{1,9}): ", re.MULTILINE)
_MARK = re.compile(r"\s*\((incorrect [A-Z]\.|uncertain)\)")
_FIRST = re.compile(r"\s*\(?([A-Z])[.):]")


@dataclass(frozen=True)
class Choices:
    """The choices of a question in the order shown; ``right`` is the place of the right one."""

    texts: tuple[str, ...]
    right: int

    @property
    def lettered(self) -> list[tuple[str, str]]:
        """Each with its letter."""
        return list(zip(ascii_uppercase, self.texts, strict=False))

    def shuffled(self, order: Sequence[int]) -> Choices:
        """Return the choices in another order, given as places in this one."""
        return Choices(tuple(self.texts[k] for k in order), list(order).index(self.right))


class Grade(NamedTuple):
    """What a reply amounts to; ``choice`` is the place of the choice that it names."""

    verdict: Verdict
    choice: int | None = None


class Output(NamedTuple):
    """A published output that its grader did not call right, and what it called it."""

    text: str
    verdict: Verdict


def choices_of(sample: Sample) -> Choices | Problem:
    """Return the choices of a question as haltt4llm's file has them, or what is wrong with them."""

    given = sample.metadata.get("choices")
    if not (
        isinstance(given, list | tuple)
        and 2 <= len(given) <= len(ascii_uppercase)
        and all(isinstance(one, str) for one in given)
    ):
        return Problem("choices", f"expected 2 to {len(ascii_uppercase)} texts")
    texts = tuple(" ".join(clean(one).split()) for one in given)
    marked = sample.metadata.get("right_choice")  # it may be blank, and so be no answer
    if isinstance(marked, int) and 0 <= marked < len(texts):
        return Choices(texts, marked)
    gold = {" ".join(alias.split()) for aliases in sample.answers for alias in aliases}
    right = [place for place, text in enumerate(texts) if text in gold]
    if len(right) != 1:
        return Problem("answers", f"{len(right)} of the choices are right; expected one")
    return Choices(texts, right[0])


def graded(reply: str, choices: Choices) -> Grade:
    """Return what a reply amounts to: the choice that it repeats, or whose letter it names.

    Any text gives a grade. "I don't know" as a choice is unknown; a reply that names no choice, or
    several, is unreadable.
    """
    place = chosen(reply, choices.texts)
    if place is None:
        return Grade("unreadable")
    if place == choices.right:
        return Grade("right", place)
    known = choices.texts[place].casefold() != DONT_KNOW
    return Grade("wrong" if known else "unknown", place)


def published_grade(reply: str, choices: Choices) -> Verdict:
    """Return what haltt4llm's grader says of a reply.

    Right: the reply contains the right choice's words, or its letter behind a space and before a
    full stop, or in brackets. Else unknown: it contains "I don't know", or is no more than "D" or
    "D.". So "A." before other words is wrong even if A is right, and D, which is "None of the
    above" there, means that nothing is known.
    """
    letter, text = choices.lettered[choices.right]
    said = reply.lower().strip()
    if text.lower().strip() in said or f" {letter}." in reply or f"({letter})" in reply:
        return "right"
    return "unknown" if DONT_KNOW in said or said in ("d", "d.") else "wrong"


def first_letter(reply: str) -> str | None:
    """Return the capital letter that a reply begins with as the label of a choice, if it does."""
    found = _FIRST.match(reply)
    return found[1] if found else None


def published_outputs(path: Path, questions: Sequence[Sample]) -> dict[int, Output]:
    """Read a file of haltt4llm's results: the outputs that were not graded right, by place.

    ``questions`` are those of the file that was asked, in its order. Blocks beyond them are left
    out. A question that has no block was graded right; what was replied to it is not published.

    Raises:
        InputError: the file is not one of results, or belongs to other questions.
    """
    if path.stat().st_size > LONGEST_FILE:
        raise InputError(
            f"{path}: is larger than {LONGEST_FILE:,} bytes; expected a file of results"
        )
    text = path.read_text(encoding="utf-8", errors="replace")
    if not text.startswith("Total score:"):
        raise InputError(f"{path}: expected haltt4llm's results, which begin with 'Total score:'")
    parts = _BLOCK.split(text)
    found: dict[int, Output] = {}
    for number, block in zip(parts[1::2], parts[2::2], strict=True):
        place = int(number) - 1
        if not 0 <= place < len(questions):
            continue
        question = questions[place].question.strip()
        if not block.startswith(question):
            raise InputError(
                f"{path}: question {number} is not that of the input; expected {question[:60]!r}"
            )
        found[place] = _output(block[len(question) :], f"{path}: question {number}")
    return found


def _output(block: str, where: str) -> Output:
    """Return the output behind the question's line and those of the choices, which are indented."""
    lines = block.partition("\n")[2].splitlines(keepends=True)
    while lines and re.match(r"\s{2,}[A-Z]\. ", lines[0]):
        lines.pop(0)
    mark = _MARK.search(said := "".join(lines))
    if mark is None:
        raise InputError(f"{where}: expected '(incorrect A.)' or '(uncertain)' behind the output")
    return Output(said[: mark.start()].strip(), "unknown" if mark[1] == "uncertain" else "wrong")

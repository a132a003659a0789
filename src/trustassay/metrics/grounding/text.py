"""Text primitives: normalisation, citation markers, list answers. Two readings of each.

The plain functions are the default reading; those whose name ends in ``_as_in_paper`` behave like
trust_eval 0.1.6, oddities included.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "Marker",
    "citation_markers",
    "citations_as_in_paper",
    "contains_part",
    "contains_words",
    "list_elements",
    "list_elements_as_in_paper",
    "normalise",
    "normalise_squad",
    "without_citations",
    "without_citations_as_in_paper",
]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")

LARGEST_CITATION = 999
"""A longer number in brackets is text (a year, say), not a citation."""


def normalise_squad(text: str) -> str:
    """Lower-case, delete ASCII punctuation, drop a/an/the, squeeze white space (SQuAD)."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


@lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """Fold case, width and typographic forms; dashes and slashes part words; drop articles.

    A text that is an article alone ("A", "The") keeps it: an answer never becomes empty by that.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = []
    for character in folded:
        category = unicodedata.category(character)
        if category == "Pd" or character in "/\\":
            kept.append(" ")
        elif category[0] != "P":
            kept.append(character)
    bare = "".join(kept)
    words = _ARTICLES.sub(" ", bare).split() or bare.split()
    return " ".join(words)


def contains_words(text: str, answer: str) -> bool:
    """Whether normalised ``answer`` stands in normalised ``text`` as whole words."""
    return bool(answer) and f" {answer} " in f" {text} "


def contains_part(text: str, answer: str) -> bool:
    """Whether ``answer`` stands anywhere in ``text``; the empty answer always does."""
    return answer in text


class Marker(NamedTuple):
    """Citations written together: ``text[start:end]``, and the numbers they name."""

    start: int
    end: int
    numbers: tuple[int, ...]


_NUMBER = r"\d{1,3}"
_MARKER = re.compile(
    rf"[\[【]\s*\^?(?:doc(?:ument)?s?\.?\s*)?({_NUMBER}(?:\s*(?:,|;|&|and|-|–|—)\s*{_NUMBER})*)\s*[\]】]",
    re.IGNORECASE | re.ASCII,
)
_RANGE_OR_NUMBER = re.compile(rf"({_NUMBER})\s*[-–—]\s*({_NUMBER})|({_NUMBER})", re.ASCII)


def citation_markers(text: str) -> list[Marker]:
    """Find ``[1]``, ``[1, 2]``, ``[1-3]``, ``[^1]``, ``[Doc 2]`` and ``【3】`` in reading order.

    A range that runs backwards names its two ends. ``[note]``, ``[-2]`` and ``[2023]`` are text.
    """
    return [Marker(m.start(), m.end(), _numbers(m.group(1))) for m in _MARKER.finditer(text)]


def _numbers(inside: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for first, last, single in _RANGE_OR_NUMBER.findall(inside):
        if single:
            numbers.append(int(single))
        elif int(first) <= int(last):
            numbers.extend(range(int(first), int(last) + 1))
        else:
            numbers.extend((int(first), int(last)))
    return tuple(numbers)


def without_citations(text: str) -> str:
    """Remove citation markers and the blanks before them; nothing else changes."""
    pieces, position = [], 0
    for marker in citation_markers(text):
        pieces.append(text[position : marker.start].rstrip(" \t"))
        position = marker.end
    return "".join([*pieces, text[position:]])


def citations_as_in_paper(text: str) -> tuple[int, ...]:
    """Return the number after each ``[`` that digits follow at once; ``[1, 2]`` gives 1 alone."""
    return tuple(map(_whole, re.findall(r"\[(\d+)", text)))


def _whole(digits: str) -> int:
    """Read digits; past 18 of them the exact number is no matter (and would cost to read)."""
    return int(digits[:18])


def without_citations_as_in_paper(text: str) -> str:
    """Delete `` [`` + digits, ``[`` + digits, `` |`` and every ``]``, in this order (spec 4.2)."""
    text = re.sub(r" \[\d+", "", text)
    text = re.sub(r"\[\d+", "", text)
    return text.replace(" |", "").replace("]", "")


def list_elements_as_in_paper(text: str) -> list[str]:
    """Split a list answer at commas, after trimming blanks, full stops and commas at its end."""
    trimmed = text.rstrip().rstrip(".").rstrip(",")
    return [element.strip() for element in trimmed.split(",")]


_BREAK = re.compile(r",(?!\d{3}\b)|[;\n]")
_NUMBERING = re.compile(r"^\s*(?:[-*•–]\s+|\(?\d{1,3}[.)]\s+|#+\s+)+")
_JOINING = re.compile(r"^(?:and|or|&)\s+", re.IGNORECASE)


def without_numbering(line: str) -> str:
    """Drop a bullet, a number or heading marks at the start of a line."""
    return _NUMBERING.sub("", line)


def list_elements(text: str, known: Collection[str] = ()) -> list[str]:
    """Split a list answer at commas, semicolons and line ends, but not inside citations.

    Bullets, numbering and a leading "and" are dropped. Neighbours are joined again where together
    they are, normalised, one of the ``known`` names ("Mai, the Psychic Girl").
    """
    spans = [(m.start, m.end) for m in citation_markers(text)]
    elements, position = [], 0
    for match in _BREAK.finditer(text):
        if not any(start <= match.start() < end for start, end in spans):
            elements.append(text[position : match.start()])
            position = match.end()
    elements.append(text[position:])
    tidy = [_JOINING.sub("", without_numbering(e).strip()) for e in elements]
    tidy = [e.rstrip(" .") if not citation_markers(e) else e for e in tidy]
    return _joined([e for e in tidy if e], known)


def _joined(elements: list[str], known: Collection[str], longest: int = 5) -> list[str]:
    joined, index = [], 0
    while index < len(elements):
        for length in range(min(longest, len(elements) - index), 0, -1):
            candidate = ", ".join(elements[index : index + length])
            if length == 1 or normalise(without_citations(candidate)) in known:
                joined.append(candidate)
                index += length
                break
    return joined

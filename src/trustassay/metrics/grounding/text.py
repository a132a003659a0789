"""Text primitives: normalisation, citation markers, code and lists of references, list answers.

There are two readings of each. The plain functions are the default reading; those whose name ends
in ``_as_in_paper`` behave like trust_eval 0.1.6, oddities included.
"""

import re
import string
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from trustassay.prose import read_patterns

_P = read_patterns("text.toml", __package__)
_CODE = re.compile(_P["code"], re.DOTALL)
_OPENING = str.maketrans("[【", "\ue000\ue001")
_OPENED = str.maketrans("\ue000\ue001", "[【")
_ENTRY = re.compile(_P["entry"], re.ASCII)
_HEADING = re.compile(_P["heading"], re.IGNORECASE)
POLITE = re.compile(_P["polite"], re.IGNORECASE)
"""A sentence that only greets, thanks or leads on."""


def masked(text: str) -> str:
    """Return a text of the same length in which brackets of code begin no citation."""
    if "[" not in text and "【" not in text:
        return text
    return _CODE.sub(lambda code: code.group().translate(_OPENING), text)


def unmasked(text: str) -> str:
    """Return a text, or a part of it, as it was before :func:`masked`."""
    return text.translate(_OPENED)


def without_references(text: str) -> str:
    """Return a response without the list of references that ends it.

    That is lines which begin with a marker, below a heading such as "Sources:", or each with a
    colon after the marker or a link in it.
    """
    lines = text.splitlines(keepends=True)
    end = len(lines)
    while end and (not lines[end - 1].strip() or _ENTRY.fullmatch(lines[end - 1].rstrip())):
        end -= 1
    entries = [found for line in lines[end:] if (found := _ENTRY.fullmatch(line.rstrip()))]
    headed = end > 0 and _HEADING.fullmatch(lines[end - 1].rstrip()) is not None
    are_references = headed or all(one["colon"] or "://" in one.group() for one in entries)
    body = "".join(lines[: end - headed])
    return body if entries and body.strip() and are_references else text


_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


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
    bare = unicodedata.normalize("NFKC", "".join(kept))
    words = _ARTICLES.sub(" ", bare).split() or bare.split()
    return " ".join(words)


class Marker(NamedTuple):
    """Citations written together: ``text[start:end]``, and the numbers they name."""

    start: int
    end: int
    numbers: tuple[int, ...]


LONGEST_RANGE = 20
"""A longer range names its two ends, so that no response grows by what it claims to cite."""

_NUMBER = r"\d{1,3}"  # a longer one in brackets is text: a year, say
_DOCUMENT = r"(?:doc(?:ument)?s?\.?\s*)?"
_SEPARATOR = r"(?:,\s*(?:and|&)|[,;&–—-]|and)"
_MARKER = re.compile(
    rf"[\[【]\s*\^?{_DOCUMENT}({_NUMBER}(?:\s*{_SEPARATOR}\s*{_DOCUMENT}{_NUMBER})*)\s*[\]】]",
    re.IGNORECASE | re.ASCII,
)
_BETWEEN = re.compile(r"[ \t]*[,;][ \t]*")
_RANGE_OR_NUMBER = re.compile(rf"({_NUMBER})\s*[-–—]\s*({_NUMBER})|({_NUMBER})", re.ASCII)


def citation_markers(text: str) -> list[Marker]:
    """Find ``[1]``, ``[1, 2]``, ``[1-3]``, ``[^1]``, ``[Doc 2]`` and ``【3】`` in reading order.

    Markers with a comma or semicolon between them, ``[1], [2]``, are one. A range that runs
    backwards names its two ends. ``[note]``, ``[-2]`` and ``[2023]`` are text, and so is code: what
    is between backticks, ``a[1]``, ``row_names[2]``, ``x = [1, 2]``.
    """
    text = masked(text)
    result: list[tuple[int, int, list[int]]] = []
    for match in _MARKER.finditer(text):
        start, end = match.span()
        numbers = _numbers(match.group(1))
        if result and result[-1][1] < start and _BETWEEN.fullmatch(text, result[-1][1], start):
            start, _, before = result.pop()
            before.extend(numbers)
            numbers = before
        result.append((start, end, numbers))
    return [Marker(start, end, tuple(numbers)) for start, end, numbers in result]


def cites(response: str, documents: int) -> bool:
    """Whether a response cites one of its documents, apart from a list of references."""
    markers = citation_markers(without_references(response))
    return any(0 < number <= documents for marker in markers for number in marker.numbers)


def _numbers(inside: str) -> list[int]:
    if inside.isdigit():
        return [int(inside)]
    numbers: list[int] = []
    for first, last, single in _RANGE_OR_NUMBER.findall(inside):
        if single:
            numbers.append(int(single))
        elif 0 <= int(last) - int(first) < LONGEST_RANGE:
            numbers.extend(range(int(first), int(last) + 1))
        else:
            numbers.extend((int(first), int(last)))
    return numbers


def without_citations(text: str) -> str:
    """Remove citation markers and the blanks before them; nothing else changes."""
    return without_markers(text)[0]


def without_markers(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without citations, and where in it how many characters were taken out."""
    pieces, removed, position, length = [], [], 0, 0
    for marker in citation_markers(text):
        kept = text[position : marker.start].rstrip(" \t")
        pieces.append(kept)
        length += len(kept)
        removed.append((length, marker.end - position - len(kept)))
        position = marker.end
    return "".join([*pieces, text[position:]]), removed


def citations_as_in_paper(text: str) -> tuple[int, ...]:
    """Return the number after each ``[`` that digits follow at once; ``[1, 2]`` gives 1 alone."""
    numbers = re.findall(r"\[(\d+)", text)
    return tuple(int(digits[:18]) for digits in numbers)  # of more the exact number does not matter


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

    Bullets, numbering and a leading "and" are dropped, but not from a name that is, normalised,
    one of the ``known``. Neighbours are joined again where together they are one of these ("Mai,
    the Psychic Girl"). Citations alone belong to the element before them.
    """
    pieces: list[str] = []
    for piece in _broken(text):
        if without_citations(piece).strip(" ."):
            pieces.append(piece)
        elif pieces and citation_markers(piece):
            pieces[-1] += f" {piece}"
    elements = [e if citation_markers(e) else e.rstrip(" .") for e in _joined(pieces, known)]
    return [e for e in elements if without_citations(e).strip()]


def _broken(text: str) -> list[str]:
    markers = iter(citation_markers(text))
    marker = next(markers, None)
    pieces, position = [], 0
    for match in _BREAK.finditer(text):
        while marker and marker.end <= match.start():
            marker = next(markers, None)
        if not (marker and marker.start <= match.start()):
            pieces.append(text[position : match.start()].strip())
            position = match.end()
    return [*pieces, text[position:].strip()]


def _joined(pieces: Sequence[str], known: Collection[str]) -> list[str]:
    longest = min(5, max((len(name.split()) for name in known), default=1))
    heads = {name.split(" ")[0] for name in known}
    elements, index = [], 0
    while index < len(pieces):
        alone = _readings(pieces[index])
        begins = not heads.isdisjoint(normal.split(" ")[0] for normal in alone.values())
        for length in range(min(longest if begins else 1, len(pieces) - index), 0, -1):
            whole = ", ".join(pieces[index : index + length])
            readings = alone if length == 1 else _readings(whole)
            name = next((r for r, normal in readings.items() if normal in known), None)
            if name is not None or length == 1:
                elements.append([*readings][-1] if name is None else name)
                index += length
                break
    return elements


def _readings(element: str) -> dict[str, str]:
    """Return an element as written, without its numbering, and without "and"; each normalised."""
    bare = without_numbering(element)
    readings = dict.fromkeys((element, bare, _JOINING.sub("", bare)))
    return {reading: normalise(without_citations(reading)) for reading in readings}

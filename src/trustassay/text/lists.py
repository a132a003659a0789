"""Answers that are lists: their elements, each with the citations behind it.

The function whose name ends in ``_as_in_paper`` behaves like trust_eval 0.1.6, oddities included.
"""

import re
from collections.abc import Collection, Sequence

from trustassay.text.citations import citation_markers, without_citations
from trustassay.text.words import normalise


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

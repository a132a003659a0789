"""Splits answers that are lists into their elements, each with the citations behind it.

The function whose name ends in ``_as_in_paper`` behaves like trust_eval 0.1.6, oddities included.
"""

import re
from collections.abc import Collection, Sequence

from trustassay.text.citations import find_citations, strip_citations
from trustassay.text.markdown import strip_numbering
from trustassay.text.words import normalise


def split_list_as_in_paper(text: str) -> list[str]:
    """Split a list answer at commas, after trimming blanks, full stops and commas at its end."""
    trimmed = text.rstrip().rstrip(".").rstrip(",")
    return [element.strip() for element in trimmed.split(",")]


# A comma, but not the one in "1,000"; a semicolon; the end of a line.
_BREAK = re.compile(r",(?!\d{3}\b)|[;\n]")
_JOINING = re.compile(r"^(?:and|or|&)\s+", re.IGNORECASE)


def split_list(text: str, known_names: Collection[str] = ()) -> list[str]:
    """Split a list answer at commas, semicolons and line ends, but not inside citations.

    Bullets, numbering and a leading "and" are dropped, except from a name whose normal form is in
    ``known_names``. Neighbours that together are one of these names are joined again ("Mai, the
    Psychic Girl"). A piece that consists of citations belongs to the element before it.

    Args:
        text: the answer.
        known_names: normalised names that may contain a comma or begin like a numbering.
    """
    pieces: list[str] = []
    for piece in _split_outside_citations(text):
        if strip_citations(piece).strip(" ."):
            pieces.append(piece)
        elif pieces and find_citations(piece):
            pieces[-1] += f" {piece}"
    # An element with a citation keeps its end as it is written.
    elements = [
        e if find_citations(e) else e.rstrip(" .") for e in _join_names(pieces, known_names)
    ]
    return [e for e in elements if strip_citations(e).strip()]


def _split_outside_citations(text: str) -> list[str]:
    markers = iter(find_citations(text))
    marker = next(markers, None)
    pieces, position = [], 0
    for match in _BREAK.finditer(text):
        # Breaks and markers are both in reading order, so one pass over each is enough.
        while marker and marker.end <= match.start():
            marker = next(markers, None)
        if not (marker and marker.start <= match.start()):
            pieces.append(text[position : match.start()].strip())
            position = match.end()
    return [*pieces, text[position:].strip()]


def _join_names(pieces: Sequence[str], known_names: Collection[str]) -> list[str]:
    # Names of more than five pieces are not looked for: the work stays linear.
    max_pieces = min(5, max((len(name.split()) for name in known_names), default=1))
    heads = {name.split(" ")[0] for name in known_names}
    elements, index = [], 0
    while index < len(pieces):
        piece_readings = _build_readings(pieces[index])
        # Joining is only tried where a name begins with the first word of this piece.
        begins = not heads.isdisjoint(normal.split(" ")[0] for normal in piece_readings.values())
        # The longest name first: "A, B" and "A, B, C" may both be names.
        for length in range(min(max_pieces if begins else 1, len(pieces) - index), 0, -1):
            candidate = ", ".join(pieces[index : index + length])
            readings = piece_readings if length == 1 else _build_readings(candidate)
            # The first reading that is a name wins: as written, then without numbering, then
            # without "and".
            name = next((r for r, normal in readings.items() if normal in known_names), None)
            if name is not None or length == 1:
                # Not a name: the last reading, which is the barest one.
                elements.append([*readings][-1] if name is None else name)
                index += length
                break
    return elements


def _build_readings(element: str) -> dict[str, str]:
    """Return an element as written, without its numbering, and without "and"; each normalised."""
    bare = strip_numbering(element)
    readings = dict.fromkeys((element, bare, _JOINING.sub("", bare)))
    return {reading: normalise(strip_citations(reading)) for reading in readings}

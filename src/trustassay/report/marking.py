"""The response in short, with the pieces marked that a metric judged to be bad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trustassay.views import Judged

__all__ = ["Excerpt", "Piece", "excerpt_of"]

MOST = 420
"""Characters of the response that an excerpt shows; a bad piece is shown up to this length."""
AROUND = 110
"""Characters shown before and after a bad piece of a longer response."""
LEFT_OUT = " … "


class Piece(NamedTuple):
    """A piece of the response; ``word`` says what is wrong with it, empty if nothing is."""

    text: str
    word: str = ""


class Excerpt(NamedTuple):
    """Pieces in the order of the response; ``marked`` tells whether any is bad."""

    pieces: Sequence[Piece]
    marked: bool


def excerpt_of(response: str, judged: Sequence[Judged]) -> Excerpt:
    """Return the response with its bad pieces; of a long one what stands around these alone.

    A judged text that is not in the response word for word, as a claim that a model splits off, is
    not marked.
    """
    pieces = list(_pieces(response, judged))
    marked = any(piece.word for piece in pieces)
    if len(response) <= MOST:
        return Excerpt(pieces, marked)
    if not marked:
        return Excerpt([Piece(_head(response, MOST))], marked=False)
    return Excerpt(list(_shortened(pieces)), marked)


def _pieces(response: str, judged: Sequence[Judged]) -> Iterator[Piece]:
    at = 0
    for one in judged:
        text = one.text.strip()
        start = response.find(text, at) if text else -1
        if one.mark.tone != "bad" or start < 0:
            continue
        if start > at:
            yield Piece(response[at:start])
        at = start + len(text)
        yield Piece(text, one.mark.word)
    if at < len(response):
        yield Piece(response[at:])


def _shortened(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Cut what is between bad pieces, and end when enough is shown."""
    shown = 0
    for place, piece in enumerate(pieces):
        if shown >= MOST:
            yield Piece(LEFT_OUT)
            return
        text = piece.text
        if piece.word:
            text = _head(text, MOST)
        else:
            first, last = place == 0, place == len(pieces) - 1
            text = _middle(text, 0 if first else AROUND, 0 if last else AROUND)
        shown += len(text)
        yield Piece(text, piece.word)


def _middle(text: str, head: int, tail: int) -> str:
    """Leave ``head`` characters at the beginning and ``tail`` at the end."""
    if len(text) <= head + tail + len(LEFT_OUT):
        return text
    before = _head(text, head)[:-1] if head else ""
    after = text[-tail:].partition(" ")[2] or text[-tail:] if tail else ""
    return f"{before}{LEFT_OUT}{after}"


def _head(text: str, most: int) -> str:
    """Return the beginning of a text, cut between words, with an ellipsis if anything is left."""
    if len(text) <= most:
        return text
    cut = text[:most]
    return f"{cut.rpartition(' ')[0] or cut}…"

"""The view of an assessment for the report: plain data, drawn by the metric's own template; and the
differences of two texts, word by word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rapidfuzz.distance import Indel


@dataclass(frozen=True, slots=True)
class Mark:
    """A judgement as class, symbol and word, so that it never depends on colour alone.

    ``tone`` is ``good``, ``fair``, ``bad`` or ``none``.
    """

    tone: str
    symbol: str
    word: str


class Tie(NamedTuple):
    """A link from a passage to a place in the evidence, and its judgement.

    ``anchor`` is the end of the place's id, which the template writes as
    ``{{ here }}-r{{ result.place }}-ANCHOR``.
    """

    anchor: str
    label: str
    mark: Mark


class Judged(NamedTuple):
    """A piece of the response, as it stands there, its judgement, and the reason in one line."""

    text: str
    mark: Mark
    why: str = ""


@dataclass(frozen=True, slots=True)
class PassageNote:
    """What a metric found out about a passage; ``None`` if it did not check.

    supports: names of the gold answers that the passage supports. computed: by a model, and not
    given by the sample. citing: the places in the evidence that cite it, or that it decides.
    tied_by: the words before these places.
    """

    supports: Sequence[str] | None = None
    computed: bool = False
    citing: Sequence[Tie] | None = None
    tied_by: str = "cited by"


@dataclass(frozen=True, slots=True)
class View:
    """What the report needs to show the evidence of one assessment.

    data: the template's ``view``. tells_response: the evidence shows the whole response, which is
    then not shown separately. tells_golds: the same for the gold answers.
    passages: notes by the number of the passage, from 1. shows: a key; of several metrics with
    equal keys only the first one's evidence is drawn. judged: pieces of the response in their
    order, so that the bad ones can be marked in it. mark: the judgement of the whole answer, where
    it says more than the verdict. why: the reason in one line, where no bad piece has one.
    """

    data: Any = None
    tells_response: bool = False
    tells_golds: bool = False
    passages: Mapping[int, PassageNote] = field(default_factory=dict)
    shows: object = None
    judged: Sequence[Judged] = ()
    mark: Mark | None = None
    why: str = ""


# Readers of evidence, which may be older than this code, or another metric's.


def text_in(item: Mapping[str, Any], name: str) -> str:
    """Return a text of the evidence; empty if it is absent or of another type."""
    value = item.get(name)
    return value if isinstance(value, str) else ""


def number_in(item: Mapping[str, Any], name: str) -> float | None:
    """Return a number of the evidence; ``None`` if it is absent or of another type."""
    value = item.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def truth_in(item: Mapping[str, Any], name: str) -> bool | None:
    """Return a yes or no of the evidence; ``None`` if it is absent or of another type."""
    value = item.get(name)
    return value if isinstance(value, bool) else None


def as_data(item: Any) -> Mapping[str, Any]:
    """Return evidence of an unknown kind as it is listed in a report."""
    return item if isinstance(item, Mapping) else {"value": item}


MOST_WORDS = 4000
"""Words beyond which two answers are shown without marks: comparing takes their product."""
_WORDS = re.compile(r"\s*\S+|\s+$")


class Piece(NamedTuple):
    """A stretch of an answer; ``kind`` is ``same``, ``new``, or ``gone`` (in the original only)."""

    kind: str
    text: str


def word_differences(original: str, other: str) -> list[Piece] | None:
    """Return ``other`` in pieces, words of ``original`` that it lacks among them; ``None`` if
    the two are too long.
    """
    before, after = _WORDS.findall(original), _WORDS.findall(other)
    if max(len(before), len(after)) > MOST_WORDS:
        return None
    alike = [[word.strip() for word in words] for words in (before, after)]
    pieces: list[Piece] = []
    gone = new = ""
    for step in Indel.opcodes(*alike):
        if step.tag == "equal":
            pieces += _marked(gone, new)
            pieces.append(Piece("same", "".join(after[step.dest_start : step.dest_end])))
            gone = new = ""
        else:
            gone += "".join(before[step.src_start : step.src_end])
            new += "".join(after[step.dest_start : step.dest_end])
    return pieces + _marked(gone, new)


def _marked(gone: str, new: str) -> list[Piece]:
    """Return the removed and the new words as pieces; the space before them is not marked."""
    pieces = []
    for kind, text in (("gone", gone), ("new", new)):
        words = text.lstrip()
        if space := text[: len(text) - len(words)]:
            pieces.append(Piece("same", space))
        if words:
            pieces.append(Piece(kind, words))
    return pieces

"""What a metric tells the report of an assessment: plain data, drawn by a template of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Mark", "PassageNote", "Tie", "View"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A judgement as class, symbol and word: never by colour alone.

    ``tone`` is ``good``, ``fair``, ``bad`` or ``none``.
    """

    tone: str
    symbol: str
    word: str


class Tie(NamedTuple):
    """What leads from a passage to a place in the evidence, and how it is judged.

    ``anchor`` is the end of the place's id, which the template writes as
    ``{{ here }}-r{{ result.place }}-ANCHOR``.
    """

    anchor: str
    label: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class PassageNote:
    """What a metric found out about a passage; ``None`` where it did not look.

    supports: names of the gold answers that the passage supports. computed: by a model, and not
    told by the sample. citing: the places in the evidence that cite it.
    """

    supports: Sequence[str] | None = None
    computed: bool = False
    citing: Sequence[Tie] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What the report needs to know of the evidence of one assessment.

    data: what the template finds as ``view``. tells_response: the evidence shows the whole
    response, which is then not shown by itself. tells_golds: likewise the gold answers.
    passages: notes by the number of the passage, from 1. shows: what several metrics of a run may
    show alike, which is then drawn for the first of them alone.
    """

    data: Any = None
    tells_response: bool = False
    tells_golds: bool = False
    passages: Mapping[int, PassageNote] = field(default_factory=dict)
    shows: object = None

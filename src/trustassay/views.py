"""The view of an assessment for the report: plain data, drawn by the metric's own template; and the
differences of two texts, word by word."""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

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


# Rows of evidence, which may be older than this code, or another metric's.

R = TypeVar("R", bound="EvidenceRow")


class EvidenceRow:
    """A row of evidence. Subclass as a dataclass: its fields are the keys of the row, in order.

    A field without a default is always written, one with a default only where it differs from it.
    Reading is total: a row is of this kind where the fields named in ``told_by`` have their types,
    and another field of a wrong type counts as absent. Both settings of a kind may be keywords of
    its class.
    """

    __slots__ = ()
    row_kind: ClassVar[str] = ""
    """The value of the key ``kind``, which comes first; empty for rows without it."""
    told_by: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, row_kind: str = "", told_by: tuple[str, ...] = ()) -> None:
        # ``slots=True`` makes a class anew, without the keywords
        cls.row_kind, cls.told_by = row_kind or cls.row_kind, told_by or cls.told_by

    def to_json(self) -> dict[str, Any]:
        """Return the row as it is stored."""
        row = {"kind": self.row_kind} if self.row_kind else {}
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if f.default is dataclasses.MISSING or value != f.default:
                row[f.name] = _as_json(value)
        return row

    @classmethod
    def read(cls, item: Any) -> Self | None:
        """Return a stored row; ``None`` for one of another kind."""
        if not isinstance(item, Mapping) or (cls.row_kind and item.get("kind") != cls.row_kind):
            return None
        result: dict[str, Any] = {}
        for name, (kind, default) in _fields_of(cls).items():  # type: ignore[arg-type]
            typed = _read_typed(item.get(name), kind)
            if not typed and name in cls.told_by:
                return None
            result[name] = typed[0] if typed else default
        return cls(**result)


class Rows:
    """Evidence sorted by kind; ``rest`` is what is of none of them, as a report lists it."""

    def __init__(self, evidence: Iterable[Any], *kinds: type[EvidenceRow]) -> None:
        self._rows: list[EvidenceRow] = []
        self.rest: list[Mapping[str, Any]] = []
        for item in evidence:
            row = next((row for kind in kinds if (row := kind.read(item)) is not None), None)
            if row is not None:
                self._rows.append(row)
            else:
                self.rest.append(item if isinstance(item, Mapping) else {"value": item})

    def of(self, kind: type[R]) -> list[R]:
        """Return the rows of a kind, in their order."""
        return [row for row in self._rows if isinstance(row, kind)]


_ABSENT_VALUES: Mapping[Any, Any] = {str: "", int: 0, bool: False}


def _as_json(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return value.to_json() if isinstance(value, EvidenceRow) else value


@cache
def _fields_of(kind: Any) -> dict[str, tuple[Any, Any]]:
    """Return the type of each field, and what it is where it is absent."""
    hints, result = get_type_hints(kind), {}
    for f in dataclasses.fields(kind):
        hint = hints[f.name]
        absent = () if get_origin(hint) is Sequence else _ABSENT_VALUES.get(hint)
        result[f.name] = hint, absent if f.default is dataclasses.MISSING else f.default
    return result


def _read_typed(value: Any, kind: Any) -> tuple[Any, ...]:
    """Return a value of JSON as a type says, in a tuple; an empty one if it has another type. What
    does not fit in a list is left out.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return next(filter(None, (_read_typed(value, option) for option in inner)), ())
    if origin is Sequence:
        listed = isinstance(value, list | tuple)
        return (
            ([option for item in value for option in _read_typed(item, inner[0])],)
            if listed
            else ()
        )
    if origin is Literal:
        return (value,) if isinstance(value, str) and value in inner else ()
    if kind is not Any and issubclass(kind, EvidenceRow):
        row = kind.read(value)
        return () if row is None else (row,)
    fits = kind is Any or isinstance(value, int | float if kind is float else kind)
    return (value,) if fits and (kind in (Any, bool) or not isinstance(value, bool)) else ()


MOST_WORDS = 4000
"""Words beyond which two answers are shown without marks: comparing takes their product."""
_WORD_WITH_SPACE = re.compile(r"\s*\S+|\s+$")


class Piece(NamedTuple):
    """A stretch of an answer; ``kind`` is ``same``, ``new``, or ``gone`` (in the original only)."""

    kind: str
    text: str


def word_differences(original: str, other: str) -> list[Piece] | None:
    """Return ``other`` in pieces, words of ``original`` that it lacks among them; ``None`` if
    the two are too long.
    """
    before, after = _WORD_WITH_SPACE.findall(original), _WORD_WITH_SPACE.findall(other)
    if max(len(before), len(after)) > MOST_WORDS:
        return None
    alike = [[word.strip() for word in words] for words in (before, after)]
    pieces: list[Piece] = []
    gone = new = ""
    for step in Indel.opcodes(*alike):
        if step.tag == "equal":
            pieces += _mark_changes(gone, new)
            pieces.append(Piece("same", "".join(after[step.dest_start : step.dest_end])))
            gone = new = ""
        else:
            gone += "".join(before[step.src_start : step.src_end])
            new += "".join(after[step.dest_start : step.dest_end])
    return pieces + _mark_changes(gone, new)


def _mark_changes(gone: str, new: str) -> list[Piece]:
    """Return the removed and the new words as pieces; the space before them is not marked."""
    pieces = []
    for kind, text in (("gone", gone), ("new", new)):
        words = text.lstrip()
        if space := text[: len(text) - len(words)]:
            pieces.append(Piece("same", space))
        if words:
            pieces.append(Piece(kind, words))
    return pieces

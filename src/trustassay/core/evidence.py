"""The view of an assessment for the report: plain data that the metric's own template draws. Also
the differences of two texts, word by word."""

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
    """A judgement as tone, symbol and word, so that it never depends on colour alone."""

    tone: str
    """``good``, ``fair``, ``bad`` or ``none``; a class of the style sheet."""
    symbol: str
    """One character."""
    word: str
    """The judgement in words."""


class EvidenceLink(NamedTuple):
    """A link from a passage to a place in the evidence, and the judgement there."""

    anchor: str
    """The end of the place's id, which the template writes as ``{{ here }}-r{{ result.place
    }}-ANCHOR``."""
    label: str
    """The text of the link."""
    mark: Mark
    """The judgement."""


class JudgedPiece(NamedTuple):
    """A piece of the response and its judgement."""

    text: str
    """The piece as it stands in the response."""
    mark: Mark
    """The judgement."""
    reason: str = ""
    """The reason in one line."""
    verdict: str = ""
    """The verdict of the whole answer if this piece decides it, else any other text."""


@dataclass(frozen=True, slots=True)
class PassageNote:
    """What a metric found out about a passage; ``None`` in a field if it did not check."""

    supports: Sequence[str] | None = None
    """Names of the gold answers that the passage supports."""
    computed: bool = False
    """Whether a model determined this, and not the sample's annotation."""
    citing: Sequence[EvidenceLink] | None = None
    """The places in the evidence that cite the passage, or that it decides."""
    tied_by: str = "cited by"
    """The words before these places."""


@dataclass(frozen=True, slots=True)
class View:
    """What the report needs to show the evidence of one assessment."""

    data: Any = None
    """The template's ``view``. Its ``other_items``, if it has any, are listed below as data."""
    shows_golds: bool = False
    """Whether the evidence shows the gold answers, which are then not shown separately."""
    passages: Mapping[int, PassageNote] = field(default_factory=dict)
    """Notes on passages by their number, from 1."""
    shared_key: object = None
    """A key: of several metrics with equal keys only the first one's evidence is drawn."""
    judged: Sequence[JudgedPiece] = ()
    """Pieces of the response in their order, so that the bad ones can be marked in it."""
    mark: Mark | None = None
    """The judgement of the whole answer, if it says more than the verdict."""
    reason: str = ""
    """The reason in one line, if no bad piece has one."""


# Rows of evidence, which may be older than this code, or another metric's.

R = TypeVar("R", bound="EvidenceRow")


class EvidenceRow:
    """A row of evidence. Subclass as a dataclass: its fields are the keys of the row, in order.

    A field without a default is always written, a field with one only if its value differs. Reading
    accepts any JSON value: a row is of this kind if the fields named in ``required`` have the right
    type, and any other field of a wrong type counts as absent. ``row_kind`` and ``required`` may be
    given as keywords of the class.
    """

    __slots__ = ()
    row_kind: ClassVar[str] = ""
    """The value of the key ``kind``, which comes first; empty for rows without it."""
    required: ClassVar[tuple[str, ...]] = ()
    """Fields that a row of this kind must have, with the right type."""

    def __init_subclass__(cls, row_kind: str = "", required: tuple[str, ...] = ()) -> None:
        # `slots=True` makes dataclass create the class a second time, without these keywords. The
        # values of the first time are in the class's dictionary, which is copied.
        cls.row_kind, cls.required = row_kind or cls.row_kind, required or cls.required

    def to_json(self) -> dict[str, Any]:
        """Return the row in the form in which it is stored."""
        row = {"kind": self.row_kind} if self.row_kind else {}
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            # Evidence is most of a run's bytes, so defaults are not written.
            if f.default is dataclasses.MISSING or value != f.default:
                row[f.name] = _to_json(value)
        return row

    @classmethod
    def read(cls, item: Any) -> Self | None:
        """Return a stored row as an object; ``None`` if it is of another kind."""
        if not isinstance(item, Mapping) or (cls.row_kind and item.get("kind") != cls.row_kind):
            return None
        result: dict[str, Any] = {}
        for name, (kind, default) in _read_fields(cls).items():  # type: ignore[arg-type]
            typed = _read_typed(item.get(name), kind)
            if not typed and name in cls.required:
                return None
            result[name] = typed[0] if typed else default
        return cls(**result)


class EvidenceRows:
    """Evidence sorted by kind; ``other_items`` holds items of none of these kinds, which a report
    lists as data."""

    def __init__(self, evidence: Iterable[Any], *kinds: type[EvidenceRow]) -> None:
        self._rows: list[EvidenceRow] = []
        self.other_items: list[Mapping[str, Any]] = []
        for item in evidence:
            # The first kind that fits: kinds without a `row_kind` are told apart by their required
            # fields.
            row = next((row for kind in kinds if (row := kind.read(item)) is not None), None)
            if row is not None:
                self._rows.append(row)
            else:
                self.other_items.append(item if isinstance(item, Mapping) else {"value": item})

    def select(self, kind: type[R]) -> list[R]:
        """Return the rows of one kind, in their order."""
        return [row for row in self._rows if isinstance(row, kind)]


# The value of an absent field without a default, by type; any other type gets None.
_ABSENT_VALUES: Mapping[Any, Any] = {str: "", int: 0, bool: False}


def _to_json(value: Any) -> Any:
    """Return rows within a value as JSON."""
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    return value.to_json() if isinstance(value, EvidenceRow) else value


@cache
def _read_fields(kind: Any) -> dict[str, tuple[Any, Any]]:
    """Return for each field of a row class its type and the value that it has if absent."""
    hints, result = get_type_hints(kind), {}
    for f in dataclasses.fields(kind):
        hint = hints[f.name]
        absent = () if get_origin(hint) is Sequence else _ABSENT_VALUES.get(hint)
        result[f.name] = hint, absent if f.default is dataclasses.MISSING else f.default
    return result


def _read_typed(value: Any, kind: Any) -> tuple[Any, ...]:
    """Return a JSON value converted to a type, in a tuple; an empty tuple if it has another type.

    Items that do not fit in a list are left out.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return next(filter(None, (_read_typed(value, option) for option in inner)), ())
    if origin is Sequence:
        is_list = isinstance(value, list | tuple)
        return (
            ([option for item in value for option in _read_typed(item, inner[0])],)
            if is_list
            else ()
        )
    if origin is Literal:
        return (value,) if isinstance(value, str) and value in inner else ()
    if kind is not Any and issubclass(kind, EvidenceRow):
        row = kind.read(value)
        return () if row is None else (row,)
    fits = kind is Any or isinstance(value, int | float if kind is float else kind)
    # bool is a subclass of int, but `true` is no number.
    return (value,) if fits and (kind in (Any, bool) or not isinstance(value, bool)) else ()


MAX_WORDS_COMPARED = 4000
"""Words beyond which two answers are shown without marks: the comparison takes time in proportion
to their product."""
# A word with the space before it; or the space at the end, so that the matches add up to the text.
_WORD_WITH_SPACE = re.compile(r"\s*\S+|\s+$")


class Piece(NamedTuple):
    """A stretch of an answer; ``kind`` is ``same``, ``new``, or ``gone`` (in the original only)."""

    kind: str
    text: str


def diff_words(original: str, other: str) -> list[Piece] | None:
    """Return ``other`` in pieces, including words of ``original`` that it lacks.

    ``None`` if one of the two has more than :data:`MAX_WORDS_COMPARED` words.
    """
    original_words = _WORD_WITH_SPACE.findall(original)
    other_words = _WORD_WITH_SPACE.findall(other)
    if max(len(original_words), len(other_words)) > MAX_WORDS_COMPARED:
        return None
    # Words are compared without their space, so that a line break is no difference.
    alike = [[word.strip() for word in words] for words in (original_words, other_words)]
    pieces: list[Piece] = []
    # Removed and new words are collected up to the next equal word, and shown as one change.
    gone = new = ""
    for step in Indel.opcodes(*alike):
        if step.tag == "equal":
            pieces += _mark_changes(gone, new)
            pieces.append(Piece("same", "".join(other_words[step.dest_start : step.dest_end])))
            gone = new = ""
        else:
            gone += "".join(original_words[step.src_start : step.src_end])
            new += "".join(other_words[step.dest_start : step.dest_end])
    return pieces + _mark_changes(gone, new)


def _mark_changes(gone: str, new: str) -> list[Piece]:
    """Return removed and new words as pieces; the space before them is not marked."""
    pieces = []
    for kind, text in (("gone", gone), ("new", new)):
        marked = text.lstrip()
        if space := text[: len(text) - len(marked)]:
            pieces.append(Piece("same", space))
        if marked:
            pieces.append(Piece(kind, marked))
    return pieces

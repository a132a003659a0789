"""The parts of the metric: what each one is, how users name them, and how a report shows them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import make_dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, cast

from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.views import EvidenceRow, Mark

Family = Literal[
    "tokens", "bleu", "rouge_l", "meteor", "chrf", "bertscore", "bartscore", "gptscore"
]
"""Parts that are computed together, by the same code."""
Form = Literal["ref", "src", "evid"]
FORMS: tuple[Form, ...] = ("ref", "src", "evid")
"""What an answer's likelihood is conditioned on: gold answers, the question, the passages."""


class Part(NamedTuple):
    """One number of an answer.

    bounds: its least and largest value; ``None`` for a mean log-probability, which is 0 or less.
    form: of a likelihood, what it is conditioned on.
    """

    name: str
    explanation: str
    family: Family
    bounds: tuple[float, float] | None = (0.0, 1.0)
    form: Form | None = None

    @property
    def needs_gold(self) -> bool:
        """Whether a sample without gold answers cannot have it."""
        return self.form in (None, "ref")


def _read() -> Iterator[Part]:
    table = files(__package__).joinpath("parts.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(io.StringIO(table)):
        bounds = (float(row["least"]), float(row["largest"])) if row["least"] else None
        family, form = cast("Family", row["family"]), cast("Form | None", row["form"] or None)
        yield Part(row["name"], row["explanation"], family, bounds, form)


PARTS: Mapping[str, Part] = {part.name: part for part in _read()}
"""All parts, in the order in which they are shown."""

_BY_MODELS = frozenset({"bertscore", "bartscore", "gptscore"})
LEXICAL = tuple(part.name for part in PARTS.values() if part.family not in _BY_MODELS)
"""The parts that ask no model."""


def selected(text: str) -> tuple[str, ...]:
    """Return the parts that a text names, in the order of :data:`PARTS`.

    Names are joined by ``+``: of a part, of a family (``rouge_l`` is all three, ``bartscore`` all
    forms, ``bartscore_ref`` the three of that form), or ``lexical``. A name that nothing has raises
    UnknownNameError.
    """
    known: dict[str, set[str]] = {"lexical": set(LEXICAL), **{name: {name} for name in PARTS}}
    for part in PARTS.values():
        groups = [part.family] if part.form is None else [part.family, f"{part.family}_{part.form}"]
        for group in groups:
            known.setdefault(group, set()).add(part.name)
    chosen: set[str] = set()
    for name in filter(None, text.split("+")):
        if name not in known:
            raise UnknownNameError(did_you_mean("part of reference", name, known))
        chosen |= known[name]
    return tuple(name for name in PARTS if name in chosen)


@cache
def gold_row(part: str) -> Any:
    """Return the class of a row of evidence: a gold answer, and its value by a part."""
    fields: list[Any] = [("gold", str), (part, float | None, None)]
    told_by = {"told_by": ("gold",)}
    return make_dataclass("GoldRow", fields, bases=(EvidenceRow,), namespace=told_by)


class Gold(NamedTuple):
    """A gold answer, its value, and how that is marked; ``None`` where it has none of its own."""

    text: str
    value: float | None
    mark: Mark | None


class Golds(NamedTuple):
    """The gold answers, the nearest first; ``rest`` is evidence of any other kind."""

    part: str
    golds: Sequence[Gold]
    rest: Sequence[Mapping[str, Any]]


def mark_of(value: float | None, part: Part) -> Mark | None:
    """Return the mark of a value from 0 to 1; other scales have no such ends."""
    if value is None or part.bounds != (0.0, 1.0):
        return None
    if value >= 1:
        return Mark("good", "✓", "the whole")
    return Mark("fair", "≈", "in part") if value > 0 else Mark("bad", "✕", "nothing")

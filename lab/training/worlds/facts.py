"""What can be true in a world. A passage tells facts; a statement claims one.

All are frozen and compared by value. A field that is empty says nothing about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

__all__ = [
    "Cause",
    "Compared",
    "Condition",
    "Dated",
    "Event",
    "Fact",
    "Group",
    "Measure",
    "Member",
    "Not",
    "Order",
    "Person",
    "Quantified",
    "Report",
    "Rule",
    "Several",
    "Stated",
    "Verb",
    "Wish",
]


@dataclass(frozen=True)
class Person:
    """A person (or firm): gender f, m, or empty for a firm."""

    name: str
    gender: str = ""
    job: str = ""


@dataclass(frozen=True)
class Verb:
    """What one does to another: "hired", "hire", "hired by", "got a job from", "gave work to"."""

    past: str
    base: str
    participle: str
    reverse: str
    other: str


@dataclass(frozen=True)
class Event:
    """Agent did it to the patient, on a day, at a place."""

    verb: Verb
    agent: Person
    patient: Person
    day: date | None = None
    place: str = ""


@dataclass(frozen=True)
class Stated:
    """It happened."""

    event: Event


@dataclass(frozen=True)
class Dated:
    """It happened in, before or after a year; ``month`` and ``day`` 0 leave these open."""

    event: Event
    relation: str
    year: int
    month: int = 0
    day: int = 0


@dataclass(frozen=True)
class Not:
    """It did not happen."""

    event: Event


@dataclass(frozen=True)
class Several:
    """The agent did it to each of the patients, and (without) to none of the others named."""

    verb: Verb
    agent: Person
    patients: tuple[Person, ...]
    without: tuple[Person, ...] = ()


@dataclass(frozen=True)
class Report:
    """A speaker said so; ``factive``: the word used implies that it is so (knew, regretted)."""

    speaker: Person
    event: Event
    factive: bool = False


@dataclass(frozen=True)
class Wish:
    """It is planned, possible or tried: of ``degree`` planned, possible, tried."""

    degree: str
    event: Event


@dataclass(frozen=True)
class Condition:
    """If the condition holds, it will happen; ``met``: yes, no (it would have happened), open."""

    condition: str
    event: Event
    met: str = "open"


@dataclass(frozen=True)
class Cause:
    """One event was the reason for another; both happened."""

    cause: Event
    effect: Event


@dataclass(frozen=True)
class Order:
    """One event came before another; both happened."""

    first: Event
    second: Event


@dataclass(frozen=True)
class Measure:
    """A thing's quantity: 2,500 millilitres."""

    thing: str
    quantity: str
    amount: float
    unit: str


@dataclass(frozen=True)
class Compared:
    """The first thing has more of the quantity than the second."""

    more: str
    less: str
    quantity: str


@dataclass(frozen=True)
class Rule:
    """Whether an act is allowed in general, and for which cases it is the other way round."""

    act: str
    allowed: bool
    exceptions: tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """Whether the act is allowed in one case."""

    act: str
    case: str
    allowed: bool


@dataclass(frozen=True)
class Group:
    """Of so many in a group, so many have a property."""

    group: str
    has: str
    count: int
    total: int


@dataclass(frozen=True)
class Quantified:
    """A quantifier (all, none, some, not all, most, half, more than N, exactly N, lacking N)."""

    group: str
    has: str
    quantifier: str
    number: int = 0


Fact = (
    Stated
    | Dated
    | Not
    | Several
    | Report
    | Wish
    | Condition
    | Cause
    | Order
    | Measure
    | Compared
    | Rule
    | Member
    | Group
    | Quantified
)

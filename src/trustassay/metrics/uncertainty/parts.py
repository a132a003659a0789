"""The parts of the metric: their names and groups, and each as a number from 0 to 1."""

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from typing import Literal, cast

from trustassay.errors import UnknownNameError, did_you_mean, install

Family = Literal[
    "sentences", "pairs", "meanings", "words", "vectors", "tokens", "both", "claims", "asked"
]
"""Parts that need the same: of ``both``, replies and tokens; of ``vectors``, those of tokens."""
AUTO: tuple[Family, ...] = ("sentences", "meanings", "tokens", "both")
"""Those that ask for nothing but replies, one matrix of entailment, and tokens where known."""
OF_TOKENS = frozenset({"tokens", "both", "claims"})
_NEEDS: Mapping[str, str] = {"rouge_l": "rouge_score", "bleu": "nltk"}


@dataclass(frozen=True, slots=True)
class Part:
    """One statistic; a larger value is more doubt.

    bounds: its least and largest value, where it has both. scale: how it becomes a score.
    """

    name: str
    explanation: str
    family: Family
    scale: Literal["", "sets", "entropy", "length", "nll"]
    bounds: tuple[float, float] | None

    def score(self, value: float, replies: int) -> float:
        """Return the value as a score, 0 to 1, in the same order for equally many replies."""
        most = max(2, replies)
        if self.scale == "sets":
            result = (value - 1) / (most - 1)
        elif self.scale == "entropy":
            result = value / math.log(most)
        elif self.scale == "length":
            result = value / math.sqrt(most)
        elif self.scale == "nll":
            result = 1 - math.exp(-value)
        else:
            result = value if self.bounds == (0.0, 1.0) else 1 / (1 + math.exp(-value))
        return min(max(result, 0.0), 1.0)


def _read() -> Iterator[Part]:
    table = files(__package__).joinpath("parts.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(io.StringIO(table)):
        ends = row["least"], row["largest"]
        bounds = (float(ends[0]), float(ends[1])) if all(ends) else None
        scale = cast('Literal["", "sets", "entropy", "length", "nll"]', row["scale"])
        family = cast("Family", row["family"])
        yield Part(row["name"], row["explanation"], family, scale, bounds)


PARTS: Mapping[str, Part] = {part.name: part for part in _read()}
"""All parts, in the order in which they are shown."""
FAMILIES = tuple(dict.fromkeys(part.family for part in PARTS.values()))


def selected(names: str) -> tuple[str, ...]:
    """Return parts by names of parts and families joined by ``+``; ``auto`` and ``all`` are names.

    Raises:
        UnknownNameError: a name is none of these.
    """
    result: set[str] = set()
    for name in filter(None, (one.strip() for one in names.split("+"))):
        families = {"auto": AUTO, "all": FAMILIES}.get(name, (name,))
        own = {part.name for part in PARTS.values() if part.family in families}
        if not own and name not in PARTS:
            known = [*PARTS, *FAMILIES, "auto", "all"]
            raise UnknownNameError(did_you_mean("part of uncertainty", name, known))
        result |= own or {name}
    return tuple(name for name in PARTS if name in result)


def missing(name: str) -> str | None:
    """Return which package a part needs that is not installed, and how to get it."""
    needed = _NEEDS.get(name)
    if needed is None or find_spec(needed) is not None:
        return None
    return f"{name} needs {needed.replace('_', '-')}: {install('reference')}"

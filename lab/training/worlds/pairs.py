"""Labelled pairs of made-up worlds: ``python -m lab.training.worlds.pairs --count 20`` prints some.

Both members of a minimal pair are there, with the same passage. Pair ``n`` depends on the seed and
on ``n`` alone, so that a longer list begins with the shorter one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lab.training.data import LABELS, NOT_ENTAILMENT, Pair
from lab.training.worlds.facts import Fact, Measure
from lab.training.worlds.kinds import KINDS
from lab.training.worlds.making import World
from lab.training.worlds.passages import passage, table
from lab.training.worlds.sentences import claim, tell
from lab.training.worlds.truth import CONTRADICTED, SUPPORTED, judge

__all__ = ["Made", "build", "make"]

OTHERS = 3
"""Most unrelated facts in a passage; ``LONG_SHARE`` of the passages have up to three times that."""
LONG_SHARE = 0.1
UNDIRECTED = frozenset({"roles", "coreference", "swapped_entity", "attribution"})
"""Kinds whose near copies people call contradicted as often as not stated."""


@dataclass(frozen=True)
class Made:
    """A statement about a passage, with the facts behind both."""

    kind: str
    premise: str
    hypothesis: str
    told: tuple[Fact, ...]
    claim: Fact
    verdict: str

    @property
    def pair(self) -> Pair:
        """The pair as the training reads it."""
        label = LABELS.index("neutral")
        if self.verdict == SUPPORTED:
            label = LABELS.index("entailment")
        elif self.kind in UNDIRECTED:
            label = NOT_ENTAILMENT
        elif self.verdict == CONTRADICTED:
            label = LABELS.index("contradiction")
        return Pair(self.premise, self.hypothesis, label, f"worlds:{self.kind}")


def make(seed: int, count: int, kinds: Sequence[str] = tuple(KINDS)) -> Iterator[Made]:
    """Yield ``count`` minimal pairs (twice as many statements), kinds in turn.

    ValueError when a supported claim is not supported by what was told, or its near copy is.
    """
    for n in range(count):
        kind = kinds[n % len(kinds)]
        yield from _case(kind, World(np.random.default_rng([seed, 8, n])))


def _case(kind: str, world: World) -> list[Made]:
    rng = world.rng
    case = KINDS[kind](world)
    others = [world.other() for _ in range(int(rng.integers(OTHERS)))]
    if rng.random() < LONG_SHARE:
        others += [world.other() for _ in range(2 * OTHERS)]
    told = (*case.told, *others)
    verdicts = (judge(told, case.supported), judge(told, case.other))
    if verdicts[0] != SUPPORTED or verdicts[1] == SUPPORTED:
        raise ValueError(f"{kind}: {verdicts} for {case}")
    if case.table:
        text = table([fact for fact in case.told if isinstance(fact, Measure)], rng)
        rest = [tell(fact, rng) for fact in others[:2]]
        text, told = "\n".join([*rest, text]), (*case.told, *others[:2])
    else:
        sentences = [case.sentences.get(i) or tell(fact, rng) for i, fact in enumerate(case.told)]
        place = int(rng.integers(len(others) + 1))
        rest = [tell(fact, rng) for fact in others]
        text = passage([*rest[:place], *sentences, *rest[place:]], rng)
    return [
        Made(kind, text, claim(said, rng), told, said, verdict)
        for said, verdict in zip((case.supported, case.other), verdicts, strict=True)
    ]


def build(count: int, seed: int, kinds: Sequence[str] = tuple(KINDS)) -> list[Pair]:
    """Return ``count`` labelled pairs for training."""
    return [made.pair for made in make(seed, -(-count // 2), kinds)][:count]


def main() -> None:
    """Print pairs as JSON Lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    args = parser.parse_args()
    for made in make(args.seed, args.count, args.kinds.split(",")):
        row = {"kind": made.kind, "premise": made.premise, "hypothesis": made.hypothesis}
        print(json.dumps(row | {"label": made.verdict}, ensure_ascii=False))


if __name__ == "__main__":
    main()

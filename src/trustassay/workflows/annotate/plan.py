"""Who rates what, in which order: drawn by the seed, so that the same command finds it again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from trustassay.errors import UsageError
from trustassay.statistics.resampling import generator

__all__ = [
    "Step",
    "drawn_per_group",
    "order_with_repeats",
    "shares",
    "shares_in_order",
    "steps",
    "steps_in_order",
]

Page = tuple[int, ...]
"""Places of the items that are shown together."""


class Step(NamedTuple):
    """One rating that is asked for: of the item at the place ``item``.

    repeat: 0 for the first showing to this rater, 1 for the second. page: steps of the same number
    are shown together. swapped: of a pair, ``b`` is shown first.
    """

    item: int
    repeat: int
    page: int
    swapped: bool = False


def drawn_per_group(groups: Sequence[Hashable], number: int, seed: int) -> list[int]:
    """Return the places of ``number`` members drawn from each group, in their order.

    ``groups`` names the group of each member.

    Raises:
        ValueError: a group has fewer; names the smallest and its size.
    """
    members: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    smallest = min(members, key=lambda group: len(members[group]))
    if len(members[smallest]) < number:
        named = smallest if isinstance(smallest, tuple) else (smallest,)
        name = ", ".join(repr(str(part)[:40]) for part in named if part)
        raise UsageError(
            f"--per-group {number}: the smallest group{f' ({name})' if name else ''} has "
            f"{len(members[smallest]):,}; expected a number up to that"
        )
    chosen: list[int] = []
    for group, places in members.items():
        rng = generator(seed, "annotate", "group", repr(group))
        chosen += rng.choice(places, number, replace=False).tolist()
    return sorted(chosen)


def shares(pages: int, raters: Sequence[str], double: float, seed: int) -> dict[str, list[int]]:
    """Return the pages of each rater: a share ``double`` of them is for all raters, the others are
    divided among them as evenly as can be.
    """
    order = generator(seed, "annotate", "shares").permutation(pages).tolist()
    common = round(double * pages)
    return {
        rater: sorted(order[:common] + order[common + place :: len(raters)])
        for place, rater in enumerate(raters)
    }


def shares_in_order(
    pages: int, raters: Sequence[str], double: float, seed: int
) -> dict[str, list[int]]:
    """Return the pages of each rater as :func:`shares` does, for a list of pages that may grow: who
    rates a page does not depend on those behind it. Each page is for all raters with the
    probability ``double``, else the raters take turns.
    """
    common = generator(seed, "annotate", "plan").random(pages) < double
    return {
        rater: [page for page in range(pages) if common[page] or page % len(raters) == place]
        for place, rater in enumerate(raters)
    }


def steps_in_order(pages: Sequence[Page], numbers: Sequence[int], seed: int) -> list[Step]:
    """Return what a rater is asked of the pages with these numbers, in their order; within a page
    the order is drawn.
    """
    return [
        Step(item, 0, place)
        for place, number in enumerate(numbers)
        for item in generator(seed, "annotate", "page", str(number))
        .permutation(pages[number])
        .tolist()
    ]


def order_with_repeats(size: int, again: float, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return (place, repeat) of ``size`` pages in a random order, a share ``again`` of them twice.

    A second showing comes later than the first with at least one page between them, as a rule a
    third of all. A single page is not shown again, since nothing could stand between.
    """
    order = rng.permutation(size).tolist()
    twice = min(round(again * size), size) if size > 1 else 0
    gap = max(2, size // 3)
    early = max(size - gap, 0)
    repeated = rng.choice(max(twice, early), twice, replace=False).tolist() if twice else []
    showings = [(float(place), page, 0) for place, page in enumerate(order)]
    for place in sorted(repeated):
        # The last third is repeated behind everything, in its order.
        at = place + gap + rng.uniform(0, early - place) if place < early else size + place
        showings.append((at, order[place], 1))
    # Of two at one place the first showing is first: the other comes behind, never before.
    return [(page, repeat) for _, page, repeat in sorted(showings, key=lambda s: (s[0], s[2]))]


def steps(
    pages: Sequence[Page], rater: str, again: float, seed: int, *, pairs: bool = False
) -> list[Step]:
    """Return what a rater is asked, in order. Within a page the order is drawn as well, and the
    sides of pairs.
    """
    rng = generator(seed, "annotate", "order", rater)
    found = []
    for number, (place, repeat) in enumerate(order_with_repeats(len(pages), again, rng)):
        for item in rng.permutation(pages[place]).tolist():
            swapped = bool(pairs and rng.integers(2))
            found.append(Step(item, repeat, number, swapped))
    return found

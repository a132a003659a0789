"""Which of the retrieved documents are kept: pure decisions on support flags."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["chosen"]


def chosen(supports: Sequence[Sequence[int]], k: int) -> list[int]:
    """Return the indices of the ``k`` documents to keep (Song et al. 2025, data construction).

    ``supports[d][g]`` says whether document ``d`` supports gold answer ``g``; documents are in
    the order of retrieval. The ``k`` that support most gold answers are taken, earlier ones first
    where equal. Then each in turn gives way to the remaining document by which the number of gold
    answers that some kept document supports grows most, if it grows at all. Fewer than ``k``
    documents are all kept; without any flag set the first ``k`` stay in their order.
    """
    order = sorted(range(len(supports)), key=lambda d: -sum(supports[d]))
    kept, rest = order[:k], order[k:]
    golds = [frozenset(g for g, flag in enumerate(flags) if flag) for flags in supports]
    for place in range(len(kept)):
        others = frozenset().union(*(golds[d] for i, d in enumerate(kept) if i != place))
        covered = len(others | golds[kept[place]])
        best = max(rest, key=lambda d: len(others | golds[d]), default=None)
        if best is not None and len(others | golds[best]) > covered:
            rest[rest.index(best)], kept[place] = kept[place], best
    return kept

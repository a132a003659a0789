"""The mathematics of behavioural consistency (Zheng et al. 2024, section 2.1), on plain values.

A check offers the model's own answer and three distractors as A to D, and "none of the above" as E.
The model is consistent if it takes its own answer in every check.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from math import comb
from typing import NamedTuple

import numpy as np

LETTERS = "ABCDE"
"""The letters of the options; the last one is "none of the above"."""
NONE = LETTERS.index("E")
ANSWER_PLACES = 4
"""Number of places at which the answer may stand."""

Triple = tuple[int, int, int]


class ChoiceCheck(NamedTuple):
    """One choice."""

    right: int
    """Index of the model's answer among the options, 0 to 3."""
    chosen: int | None
    """Index of the option that was chosen, 0 to 4; ``None`` if the reply names none."""
    asked_again: bool = False
    """Whether the model was asked a second time."""

    @property
    def consistent(self) -> bool:
        """Whether the model took its own answer."""
        return self.chosen == self.right

    @property
    def inconsistent(self) -> bool:
        """Whether it took another option; a reply that names none is neither."""
        return self.chosen is not None and self.chosen != self.right


def count_possible_checks(candidates: int, wanted: int) -> int:
    """Return how many of the wanted checks can have different triples: at most C(candidates, 3).

    0 for fewer than three candidates, 1 for three, 4 for four, 10 for five.
    """
    return min(wanted, comb(candidates, 3))


def count_replaceable_checks(checks: int) -> int:
    """Return how many checks may be replaced by another one: half of them, rounded up.

    So a model whose replies are never readable is asked for at most half of the checks more.
    """
    return (checks + 1) // 2


def draw_triples(candidates: int, n: int, rng: np.random.Generator) -> list[Triple]:
    """Return ``n`` different triples of ``range(candidates)``; fewer if there are no more.

    "The distracting options are different across different attempts" (section 2.1): no triple
    occurs twice, and those that were used least come first, so that no distractor recurs before all
    were offered. Ties are broken at random. The first k of n triples are those of n = k.
    """
    uses = np.zeros(candidates, dtype=int)
    result: dict[frozenset[int], Triple] = {}
    for _ in range(count_possible_checks(candidates, n)):
        drawn = rng.permutation(candidates)
        # A stable sort of a random order: by number of uses, and at random among equals.
        order = drawn[np.argsort(uses[drawn], kind="stable")].tolist()
        # While one was not offered yet, the first triple holds it, and so is a new one.
        triple = next(t for t in combinations(order, 3) if frozenset(t) not in result)
        result[frozenset(triple)] = triple
        uses[list(triple)] += 1
    return list(result.values())


def draw_places(n: int, rng: np.random.Generator) -> list[int]:
    """Return where the answer stands in each of ``n`` checks, 0 to 3.

    Every four checks have it once at each place, in random order: over any number of checks the
    counts of places differ by at most one, and a model that always says the same letter takes its
    answer once in four checks. The first k of n places are those of n = k.
    """
    rounds = (rng.permutation(ANSWER_PLACES).tolist() for _ in range(0, n, ANSWER_PLACES))
    return list(chain.from_iterable(rounds))[:n]


def ends_checks(check: ChoiceCheck, *, unparsed_counts: bool) -> bool:
    """Whether the checks may end with this one.

    "The process terminates when inconsistent behavior occurs"; with ``unparsed_counts`` a reply
    that names no option is such behaviour as well.
    """
    return check.inconsistent or (unparsed_counts and check.chosen is None)


def trust_bc(checks: Sequence[ChoiceCheck], wanted: int, *, unparsed_counts: bool) -> float | None:
    """Return Trust_BC (section 2.1): 0 if any check is inconsistent, 1 if all are consistent.

    Args:
        checks: the checks that were made.
        wanted: how many have to be consistent, 1 or more. A reply that names no option is no
            check of the answer; another one takes its place. If fewer can be read and none is
            inconsistent, there is no score.
        unparsed_counts: whether a reply without an option is inconsistent.
    """
    if any(ends_checks(check, unparsed_counts=unparsed_counts) for check in checks):
        return 0.0
    return 1.0 if 0 < wanted <= sum(check.consistent for check in checks) else None


def score_bounds(score: float | None) -> tuple[float, float]:
    """Return the smallest and largest score that an answer may have: 0 and 1 if it is open."""
    return (0.0, 1.0) if score is None else (score, score)


def share_consistent(checks: Sequence[ChoiceCheck], *, unparsed_counts: bool) -> float | None:
    """Return the share of consistent checks, 0 to 1; ``None`` if there are none to count.

    It is a share of the checks whose reply names an option, or of all with ``unparsed_counts``.
    """
    n = sum(unparsed_counts or check.chosen is not None for check in checks)
    return sum(check.consistent for check in checks) / n if n else None


def count_choices(checks: Sequence[ChoiceCheck]) -> dict[str, int]:
    """Return the counts from which the figures of a data set are summed.

    ``offered_a`` ... ``offered_d`` count where the answer stood, ``chosen_a`` ... ``chosen_d`` what
    was chosen, and ``none_chosen`` option E, all among the checks whose reply names an option.
    """
    parsed = [check for check in checks if check.chosen is not None]
    result = {
        "checks": len(checks),
        "consistent": sum(check.consistent for check in checks),
        "none_chosen": sum(check.chosen == NONE for check in parsed),
        "asked_again": sum(check.asked_again for check in checks),
        "unparsed": len(checks) - len(parsed),
    }
    for i, letter in enumerate(LETTERS[:ANSWER_PLACES].lower()):
        result[f"offered_{letter}"] = sum(check.right == i for check in parsed)
        result[f"chosen_{letter}"] = sum(check.chosen == i for check in parsed)
    return result


def position_bias(totals: Mapping[str, float]) -> float | None:
    """Return how far the distribution of chosen places is from that of the answer's places.

    Half the sum of |share chosen - share offered| over A to D, the total variation distance: 0 for
    a model that always takes its answer, 0.75 for one that always takes the same place while the
    answer stands at each equally often. If some choices are wrong, chance alone makes it larger
    than 0. ``totals`` are sums of :func:`count_choices`; ``None`` if A to D were never chosen.
    """
    letters = LETTERS[:ANSWER_PLACES].lower()
    offered = np.array([totals[f"offered_{letter}"] for letter in letters], dtype=float)
    chosen = np.array([totals[f"chosen_{letter}"] for letter in letters], dtype=float)
    if not chosen.sum():
        return None
    return float(np.abs(chosen / chosen.sum() - offered / offered.sum()).sum() / 2)

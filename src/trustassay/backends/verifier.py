"""Compares the quantities of a statement with those of a passage.

Which quantity of the passage is the counterpart is told by its dimension, by what is counted, and
by the words around both. Where that is not clear nothing is said.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from trustassay.text.quantities import Quantity, Reading, may_have_quantities, read

LONGEST_STATEMENT, LONGEST_PREMISE = 2_000, 100_000
"""Characters; of longer ones nothing is said."""
LONGEST_PASSAGE = 400
"""Words; in a longer one, such as a whole page, another thing than meant has the other quantity."""
MOST = 24
"""Quantities of a statement that are compared; of one with more, nothing is said."""
MOST_CANDIDATES = 200
"""Quantities of one dimension in a passage; among more, nothing is said."""
REACH = 6.0
"""Tokens at which a word of the statement counts half of what its neighbours count."""
NEAR, ELSEWHERE = 30.0, 0.35
"""Tokens over which a word of the passage counts less and less, and what one counts in another
sentence."""

ALONE, BESIDE, MARGIN = 0.4, 0.5, 0.25
"""Least ``differs`` of a quantity that is contradicted: without one in the passage that agrees, and
beside one, by how much more."""
LIKE = 1.25
"""How many times as large one of two bounds may be."""
AGREES, SLACK = 0.35, 0.1
"""Least ``agrees`` of a quantity that is supported, and by how much more another may differ."""


class Finding(NamedTuple):
    """What a passage says of one quantity of a statement.

    agrees, differs: the share of the statement's words that are around the best quantity of the
    passage that agrees with it, and around the best that cannot be the same, 0..1; -1: none.
    span: characters of the quantity in the statement. agreeing, differing: of those in the passage,
    where there are such.
    """

    agrees: float
    differs: float
    span: tuple[int, int]
    agreeing: tuple[int, int]
    differing: tuple[int, int]


def verdict(premise: str, hypothesis: str) -> float:
    """Return how far the quantities of a passage bear out (above 0) or contradict (below 0) those
    of a statement, -1..1; 0: nothing is said.

    One that is contradicted is enough; all are to be supported, and one of them not word for word:
    what is copied, the words that a statement shares with the passage tell already.
    """
    findings = compare(premise, hypothesis)
    against = [
        one.differs
        for one in findings
        if one.differs >= (ALONE if one.agrees <= 0 else BESIDE)
        and one.differs - max(one.agrees, 0) >= MARGIN
    ]
    if against and len(premise.split()) > LONGEST_PASSAGE:
        return 0.0
    if against or not findings:
        return -max(against, default=0.0)
    folded = premise.casefold()
    rewritten = any(hypothesis[slice(*one.span)].casefold() not in folded for one in findings)
    supported = all(one.agrees >= max(AGREES, one.differs - SLACK) for one in findings)
    return min(one.agrees for one in findings) if supported and rewritten else 0.0


def compare(premise: str, hypothesis: str) -> list[Finding]:
    """Return a finding for each quantity of a statement, none where there are too many."""
    if len(hypothesis) > LONGEST_STATEMENT or len(premise) > LONGEST_PREMISE:
        return []
    if not may_have_quantities(hypothesis):
        return []
    said = read(hypothesis)
    if not 0 < len(said.quantities) <= MOST:
        return []
    told = read(premise)
    dated = {(q.start, q.end) for q in said.quantities if q.dimension == "date"}
    with_year = {(q.start, q.end) for q in told.quantities if q.dimension == "date"}
    made: dict[tuple[int, int], Finding] = {}
    for one in said.quantities:
        full = (one.start, one.end) in dated
        others = [
            q
            for q in told.quantities
            if q.dimension == one.dimension
            # The days of two dates are compared where one of these has no year.
            and not (q.dimension == "day" and full and (q.start, q.end) in with_year)
        ]
        result = _finding(one, said, others if len(others) <= MOST_CANDIDATES else [], told)
        made[result.span] = max(made.get(result.span, result), result)
    return list(made.values())


def _finding(one: Quantity, said: Reading, others: Sequence[Quantity], told: Reading) -> Finding:
    weights = {
        word: 1 / (1 + min(abs(place - one.place) for place in places) / REACH)
        for word, places in said.places.items()
    }
    total = sum(weights.values()) or 1.0
    nothing = (-1.0, one)
    best = {1: nothing, -1: nothing}
    denied = said.sentences[one.place] in said.negated
    for other in others:
        if denied != (told.sentences[other.place] in told.negated) or (
            one.nouns and not {*one.nouns} & {*other.nouns}
        ):
            continue
        verdict = relation(other, one)
        unclear = denied or (other.nouns and not one.nouns)
        if not verdict or (verdict < 0 and unclear):
            continue
        near = sum(weight * _presence(word, other, told) for word, weight in weights.items())
        best[verdict] = max(best[verdict], (near / total, other))
    if best[-1][0] > 0 and _is_computed(one, best[-1][1], told):
        best[-1] = nothing
    (agrees, agreeing), (differs, differing) = best[1], best[-1]
    spans = ((q.start, q.end) for q in (one, agreeing, differing))
    return Finding(agrees, differs, *spans)


def _is_computed(one: Quantity, other: Quantity, told: Reading) -> bool:
    """Return whether a statement's quantity is the sum, difference, product or quotient of one of
    the passage and another that is in the same sentence or next to it."""
    here = told.sentences[other.place]
    near = [q for q in told.quantities if abs(told.sentences[q.place] - here) <= 1 and q != other]
    made: list[float] = []
    for q in near[:MOST]:
        if q.dimension == other.dimension:
            made += [other.low + q.low, abs(other.low - q.low)]
        if q.dimension == "count":
            made += [other.low * q.low, other.low / (q.low or 1.0)]
    return any(math.isclose(one.low, value, rel_tol=1e-3) for value in made)


def _presence(word: str, other: Quantity, told: Reading) -> float:
    """Return how near a word is to a quantity of the passage, 0..1."""
    places = told.places.get(word)
    if not places:
        return 0.0
    k = bisect_left(places, other.place)
    near = [
        1 - abs(place - other.place) / NEAR
        for place in places[max(0, k - 1) : k + 1]
        if told.sentences[place] == told.sentences[other.place]
    ]
    return max(ELSEWHERE, *near, 0.0)


def relation(told: Quantity, said: Quantity) -> int:
    """Return 1 where a quantity of the passage bears out one of the statement, -1 where not both
    can be true, and 0 where it is open. Numbers are the same within what their last digits stand
    for, and within 3 % where units are converted."""
    ends = (told.low, told.high, said.low, said.high)
    size = max((abs(x) for x in ends if abs(x) < math.inf), default=0.0)
    step = min(max(told.step, said.step), 0.1 * size)
    same = min(said.step, 0.03 * size)
    apart = max(step, 0.03 * size) if told.factor != said.factor else step
    if said.form == told.form == "range":
        gap = max(abs(told.low - said.low), abs(told.high - said.high))
        return 1 if gap <= same else -1 if gap > apart else 0
    if said.form == "bound" and told.form == "point" and told.factor == said.factor:
        # "More than 100" is open where "100" may be rounded.
        same, apart = 0.0, told.step if told.step > told.factor / 2 else 0.0
    elif "about" in (told.form, said.form) or told.form == "bound":
        apart = max(apart, 0.0 if said.dimension in ("date", "day") else 0.1 * size)
    if told.form == "about" and said.form == "point" and told.high != math.inf:
        middle = (told.low + told.high) / 2
        told = told._replace(low=middle, high=middle)
    same_side = (told.low == -math.inf) == (said.low == -math.inf)
    if told.form == said.form == "bound" and same_side and size > LIKE * min(map(abs, ends)):
        return 0  # "more than 40 years" bears out "more than 40 months", but nobody says so
    if told.low >= said.low - same and told.high <= said.high + same:
        return 1
    return -1 if told.low > said.high + apart or told.high < said.low - apart else 0

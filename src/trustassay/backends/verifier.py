"""Compares the quantities of a statement with those of a passage.

The counterpart of a quantity in the passage is found by its dimension, by what is counted, and by
the words around both. If that is not clear, the quantity has no effect.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from trustassay.text.quantities import (
    Quantity,
    TextQuantities,
    may_have_quantities,
    read_quantities,
)

MAX_STATEMENT_CHARACTERS, MAX_PREMISE_CHARACTERS = 2_000, 100_000
"""Characters of a statement, and of a premise; longer ones are not compared."""
MAX_PASSAGE_WORDS = 400
"""Words of a passage in which a contradiction counts.

In a longer one, such as a whole page, the other quantity may belong to something else.
"""
MAX_QUANTITIES = 24
"""Quantities of a statement that are compared; a statement with more is not."""
MOST_CANDIDATES = 200
"""Quantities of one dimension in a passage; if there are more, none is compared."""
REACH_TOKENS = 6.0
"""Distance in tokens at which a word of the statement counts half as much as a neighbour."""
NEAR_TOKENS, OTHER_SENTENCE_WEIGHT = 30.0, 0.35
"""Distance in tokens over which the weight of a word in the passage falls to 0; its weight in
another sentence."""

MIN_DIFFERS, MIN_DIFFERS_BESIDE_AGREEING, MIN_DIFFERS_MARGIN = 0.4, 0.5, 0.25
"""Least ``differs`` of a contradicted quantity: if none in the passage agrees; if one agrees; and
by how much it must then exceed ``agrees``."""
MAX_BOUND_RATIO = 1.25
"""Largest ratio of two bounds that are compared."""
MIN_AGREES, MAX_DIFFERS_EXCESS = 0.35, 0.1
"""Least ``agrees`` of a supported quantity; by how much ``differs`` may exceed it."""


class QuantityMatch(NamedTuple):
    """What a passage says about one quantity of a statement.

    A share is that of the statement's words, weighted by distance, that are around a quantity of
    the passage.
    """

    agrees: float
    """Share of the best quantity that agrees, 0..1; -1 if there is none."""
    differs: float
    """Share of the best quantity that cannot be the same, 0..1; -1 if there is none."""
    span: tuple[int, int]
    """Characters of the quantity in the statement."""
    agreeing: tuple[int, int]
    """Characters in the passage of the quantity that agrees, if there is one."""
    differing: tuple[int, int]
    """Characters in the passage of the quantity that differs, if there is one."""


def compute_verdict(premise: str, hypothesis: str) -> float:
    """Return how far the quantities of a passage support or contradict those of a statement.

    Above 0: supported; below 0: contradicted; 0: open; the range is -1..1. One contradicted
    quantity is enough. To be supported, all must be, and at least one must be written in another
    way: copied words are already counted as words in common.
    """
    findings = match_quantities(premise, hypothesis)
    against = [
        finding.differs
        for finding in findings
        if finding.differs >= (MIN_DIFFERS if finding.agrees <= 0 else MIN_DIFFERS_BESIDE_AGREEING)
        and finding.differs - max(finding.agrees, 0) >= MIN_DIFFERS_MARGIN
    ]
    # See MAX_PASSAGE_WORDS: neither contradicted nor supported then.
    if against and len(premise.split()) > MAX_PASSAGE_WORDS:
        return 0.0
    if against or not findings:
        return -max(against, default=0.0)
    # Copied quantities alone say no more than the words that are shared.
    folded = premise.casefold()
    rewritten = any(
        hypothesis[slice(*finding.span)].casefold() not in folded for finding in findings
    )
    supported = all(
        finding.agrees >= max(MIN_AGREES, finding.differs - MAX_DIFFERS_EXCESS)
        for finding in findings
    )
    return min(finding.agrees for finding in findings) if supported and rewritten else 0.0


def match_quantities(premise: str, hypothesis: str) -> list[QuantityMatch]:
    """Return a finding for each quantity of a statement; none if there are too many."""
    if len(hypothesis) > MAX_STATEMENT_CHARACTERS or len(premise) > MAX_PREMISE_CHARACTERS:
        return []
    if not may_have_quantities(hypothesis):
        return []
    statement = read_quantities(hypothesis)
    if not 0 < len(statement.quantities) <= MAX_QUANTITIES:
        return []
    passage = read_quantities(premise)
    dated = {(q.start, q.end) for q in statement.quantities if q.dimension == "date"}
    with_year = {(q.start, q.end) for q in passage.quantities if q.dimension == "date"}
    finding_by_span: dict[tuple[int, int], QuantityMatch] = {}
    for quantity in statement.quantities:
        full = (quantity.start, quantity.end) in dated
        candidates = [
            q
            for q in passage.quantities
            if q.dimension == quantity.dimension
            # The days of two dates are compared where one of these has no year.
            and not (q.dimension == "day" and full and (q.start, q.end) in with_year)
        ]
        result = _find_counterparts(
            quantity, statement, candidates if len(candidates) <= MOST_CANDIDATES else [], passage
        )
        # Several readings of one span ("3 May" as a date and as a count): the best one counts.
        finding_by_span[result.span] = max(finding_by_span.get(result.span, result), result)
    return list(finding_by_span.values())


def _find_counterparts(
    quantity: Quantity,
    statement: TextQuantities,
    candidates: Sequence[Quantity],
    passage: TextQuantities,
) -> QuantityMatch:
    """Return the finding for one quantity of a statement.

    Args:
        quantity: the quantity.
        statement: the statement.
        candidates: quantities of the passage of the same dimension.
        passage: the passage.
    """
    weights = {
        word: 1 / (1 + min(abs(place - quantity.place) for place in places) / REACH_TOKENS)
        for word, places in statement.places.items()
    }
    total = sum(weights.values()) or 1.0
    nothing = (-1.0, quantity)
    best = {1: nothing, -1: nothing}
    # A denied number agrees with a denied one only.
    denied = statement.sentences[quantity.place] in statement.negated
    for other in candidates:
        if denied != (passage.sentences[other.place] in passage.negated) or (
            quantity.nouns and not {*quantity.nouns} & {*other.nouns}
        ):
            continue
        verdict = compare_quantities(other, quantity)
        # Contradiction needs more certainty than support: what is counted must be the same.
        unclear = denied or (other.nouns and not quantity.nouns)
        if not verdict or (verdict < 0 and unclear):
            continue
        near = sum(
            weight * _compute_presence(word, other, passage) for word, weight in weights.items()
        )
        best[verdict] = max(best[verdict], (near / total, other))
    # A total of two numbers in the passage differs from both without contradicting them.
    if best[-1][0] > 0 and _is_computed(quantity, best[-1][1], passage):
        best[-1] = nothing
    (agrees, agreeing), (differs, differing) = best[1], best[-1]
    spans = ((q.start, q.end) for q in (quantity, agreeing, differing))
    return QuantityMatch(agrees, differs, *spans)


def _is_computed(quantity: Quantity, other: Quantity, passage: TextQuantities) -> bool:
    """Whether a statement's quantity can be computed from two quantities of the passage.

    So if it is the sum, difference, product or quotient of one of them and another in the same
    sentence or next to it.
    """
    sentence = passage.sentences[other.place]
    near = [
        q
        for q in passage.quantities
        if abs(passage.sentences[q.place] - sentence) <= 1 and q != other
    ]
    computable: list[float] = []
    for q in near[:MAX_QUANTITIES]:
        if q.dimension == other.dimension:
            computable += [other.low + q.low, abs(other.low - q.low)]
        if q.dimension == "count":
            computable += [other.low * q.low, other.low / (q.low or 1.0)]
    return any(math.isclose(quantity.low, value, rel_tol=1e-3) for value in computable)


def _compute_presence(word: str, other: Quantity, passage: TextQuantities) -> float:
    """Return how near a word is to a quantity of the passage, 0..1."""
    places = passage.places.get(word)
    if not places:
        return 0.0
    # The two occurrences around the quantity are the nearest ones.
    k = bisect_left(places, other.place)
    near = [
        1 - abs(place - other.place) / NEAR_TOKENS
        for place in places[max(0, k - 1) : k + 1]
        if passage.sentences[place] == passage.sentences[other.place]
    ]
    return max(OTHER_SENTENCE_WEIGHT, *near, 0.0)


def compare_quantities(in_passage: Quantity, in_statement: Quantity) -> int:
    """Return 1 if a quantity of the passage supports one of the statement, -1 if it contradicts it.

    0 if it is open. Numbers are equal within the precision of their last digits, and within 3 % if
    units are converted.
    """
    ends = (in_passage.low, in_passage.high, in_statement.low, in_statement.high)
    size = max((abs(x) for x in ends if abs(x) < math.inf), default=0.0)
    # A number in round thousands stands for a wide range, but not for more than a tenth of itself.
    step = min(max(in_passage.step, in_statement.step), 0.1 * size)
    same = min(in_statement.step, 0.03 * size)
    apart = max(step, 0.03 * size) if in_passage.factor != in_statement.factor else step
    # 1. Two ranges must have equal ends.
    if in_statement.form == in_passage.form == "range":
        gap = max(abs(in_passage.low - in_statement.low), abs(in_passage.high - in_statement.high))
        return 1 if gap <= same else -1 if gap > apart else 0
    # 2. Widen or narrow the tolerance by how each is expressed.
    if (
        in_statement.form == "bound"
        and in_passage.form == "point"
        and in_passage.factor == in_statement.factor
    ):
        # "More than 100" is open where "100" may be rounded.
        same, apart = 0.0, in_passage.step if in_passage.step > in_passage.factor / 2 else 0.0
    elif "about" in (in_passage.form, in_statement.form) or in_passage.form == "bound":
        apart = max(apart, 0.0 if in_statement.dimension in ("date", "day") else 0.1 * size)
    # "about 100" supports "100", but not every number that it may stand for.
    if in_passage.form == "about" and in_statement.form == "point" and in_passage.high != math.inf:
        middle = (in_passage.low + in_passage.high) / 2
        in_passage = in_passage._replace(low=middle, high=middle)
    # 3. Two bounds on the same side are only compared if they are similar.
    same_side = (in_passage.low == -math.inf) == (in_statement.low == -math.inf)
    if (
        in_passage.form == in_statement.form == "bound"
        and same_side
        and size > MAX_BOUND_RATIO * min(map(abs, ends))
    ):
        return 0  # "more than 40 years" bears out "more than 40 months", but nobody says so
    # 4. Inside the statement's range: supported. Outside the tolerance: contradicted.
    if in_passage.low >= in_statement.low - same and in_passage.high <= in_statement.high + same:
        return 1
    return (
        -1
        if in_passage.low > in_statement.high + apart or in_passage.high < in_statement.low - apart
        else 0
    )

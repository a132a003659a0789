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
MAX_QUANTITIES = 24
"""Quantities of a statement that are compared; a statement with more is not."""
MOST_CANDIDATES = 200
"""Quantities of one dimension in a passage; if there are more, none is compared."""
REACH_TOKENS = 6.0
"""Distance in tokens at which a word of the statement counts half as much as a neighbour."""
NEAR_TOKENS, OTHER_SENTENCE_WEIGHT = 60.0, 0.35
"""Distance in tokens over which the weight of a word in the passage falls to 0; its weight in
another sentence."""

MIN_DIFFERS, MIN_DIFFERS_MARGIN = 0.4, 0.25
"""Least ``differs`` of a contradicted quantity; by how much it must exceed that of one that
agrees."""
MAX_BOUND_RATIO = 2.0
"""Largest ratio of a bound and the nearest end of a quantity that supports it."""
TIMES, AMOUNTS = ("date", "day", "time"), ("count", "points", "%", "USD", "GBP", "EUR")
"""Dimensions by which two events are told apart: amounts by their times, times by their amounts."""
MIN_AGREES, MAX_DIFFERS_EXCESS = 0.3, 0.1
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
        if finding.differs >= MIN_DIFFERS
        and finding.differs - max(finding.agrees, 0) >= MIN_DIFFERS_MARGIN
    ]
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
    for quantity in (q for q in statement.quantities if q.form != "period"):
        full = (quantity.start, quantity.end) in dated
        candidates = [
            q
            for q in passage.quantities
            if q.dimension == quantity.dimension
            and q.form != "period"
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
    supporting = contradicting = agreeing_elsewhere = nothing
    # A denied number agrees with a denied one only.
    denied = statement.sentences[quantity.place] in statement.negated
    for other in candidates:
        if denied != (passage.sentences[other.place] in passage.negated) or (
            quantity.nouns and not {*quantity.nouns} & {*other.nouns}
        ):
            continue
        verdict = compare_quantities(other, quantity)
        if not verdict:
            continue
        near = sum(
            weight * _compute_presence(word, other, passage) for word, weight in weights.items()
        )
        match = (near / total, other)
        is_same = (
            _have_same_noun(quantity, other)
            and _may_have_same_subject(quantity, statement, other, passage)
            and _may_be_same_event(quantity, statement, other, passage)
        )
        if verdict > 0 and is_same and _is_similar(quantity, other):
            supporting = max(supporting, match)
        elif verdict > 0:
            agreeing_elsewhere = max(agreeing_elsewhere, match)
        # Contradiction needs more certainty than support.
        elif (
            is_same
            and not denied
            and _is_of_known_kind(quantity, statement, other, passage)
            and not any(_are_equal(other, q) for q in statement.quantities)
        ):
            contradicting = max(contradicting, match)
    # A total of two numbers in the passage differs from both without contradicting them. A number
    # that is nearly as likely to belong to the statement's subject does not contradict either.
    if contradicting[0] > 0 and (
        _is_computed(quantity, contradicting[1], passage)
        or contradicting[0] - max(agreeing_elsewhere[0], 0) < MIN_DIFFERS_MARGIN
    ):
        contradicting = nothing
    (agrees, agreeing), (differs, differing) = supporting, contradicting
    spans = ((q.start, q.end) for q in (quantity, agreeing, differing))
    return QuantityMatch(agrees, differs, *spans)


def _have_same_noun(quantity: Quantity, other: Quantity) -> bool:
    """Whether two quantities count the same: a noun of both is the last one of either.

    "Three large dogs" are like "two dogs", but not like "two large cats". A quantity of the
    statement without a noun may count anything.
    """
    if not quantity.nouns or not other.nouns:
        return not quantity.nouns
    return other.nouns[-1] in quantity.nouns or quantity.nouns[-1] in other.nouns


def _may_have_same_subject(
    quantity: Quantity, statement: TextQuantities, other: Quantity, passage: TextQuantities
) -> bool:
    """Whether two quantities may belong to the same person or thing.

    They do not if the passage has the statement's names elsewhere, and beside the other quantity
    only names that the statement does not have.
    """
    if not quantity.subject or not other.subject:
        return True
    return not (
        all(name in passage.places for name in quantity.subject)
        and not any(name in statement.places for name in other.subject)
    )


def _may_be_same_event(
    quantity: Quantity, statement: TextQuantities, other: Quantity, passage: TextQuantities
) -> bool:
    """Whether the sentences of two quantities may be about the same event.

    They are not if both say when, or over which time, an amount was, and no two of these agree; nor
    if both have amounts of one kind beside a date or a duration, and no two of these agree.
    """
    beside = statement.by_sentence[statement.sentences[quantity.place]]
    beside_other = passage.by_sentence[passage.sentences[other.place]]
    kinds: tuple[str, ...]
    if quantity.dimension not in TIMES:
        # The year counts more than the day, and both more than a duration.
        kinds = TIMES
    elif quantity.dimension != "time" and any(q.form == "period" for q in beside_other):
        # "This year" is a date as well, but which one is not known.
        return False
    else:
        kinds = AMOUNTS if quantity.form != "bound" else ()
    for kind in kinds:
        pairs = [
            (q, q_other)
            for q in beside
            for q_other in beside_other
            if q.dimension == q_other.dimension == kind and _have_same_noun(q, q_other)
        ]
        if pairs:
            return any(compare_quantities(q_other, q) >= 0 for q, q_other in pairs)
    return True


def _is_of_known_kind(
    quantity: Quantity, statement: TextQuantities, other: Quantity, passage: TextQuantities
) -> bool:
    """Whether it is known that two quantities are of the same kind.

    The kind of a count is its noun, that of a date, a duration or an age the word nearest to it.
    """
    if other.nouns and not quantity.nouns:
        return False
    if quantity.dimension == "count":
        return bool(quantity.nouns)
    return (
        quantity.dimension not in ("date", "day", "time", "age")
        or other.neighbour in statement.places
        or _compute_presence(quantity.neighbour, other, passage) > OTHER_SENTENCE_WEIGHT
    )


def _are_equal(quantity: Quantity, other: Quantity) -> bool:
    """Whether each of two quantities supports the other."""
    return (
        quantity.dimension == other.dimension
        and compare_quantities(quantity, other) > 0
        and compare_quantities(other, quantity) > 0
    )


def _is_similar(quantity: Quantity, other: Quantity) -> bool:
    """Whether a bound of the statement is near the quantity of the passage.

    "More than 100" is not borne out by 5,000: these are hardly the same.
    """
    if quantity.form != "bound" or quantity.dimension in ("date", "day"):
        return True
    bound, *ends = (
        abs(x) for x in (quantity.low, quantity.high, other.low, other.high) if abs(x) < math.inf
    )
    return any(max(bound, x) <= MAX_BOUND_RATIO * min(bound, x) for x in ends)


def _is_computed(quantity: Quantity, other: Quantity, passage: TextQuantities) -> bool:
    """Whether a statement's quantity is the sum or the difference of two quantities of the passage.

    One of them is ``other``, the second one of the same dimension and in its sentence or beside it.
    """
    sentence = passage.sentences[other.place]
    near = [
        q
        for number in (sentence - 1, sentence, sentence + 1)
        for q in passage.by_sentence.get(number, ())
        if q != other and q.dimension == other.dimension
    ]
    return any(
        math.isclose(quantity.low, value, rel_tol=1e-3)
        for q in near[:MAX_QUANTITIES]
        for value in (other.low + q.low, abs(other.low - q.low))
    )


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

"""Checks the comparisons of a claim by the numbers of a table.

Entailment models do not compare the numbers of a table, so "A is cheaper than B" and "B is cheaper
than A" get the same probabilities. The steps:

1. The rows and columns with numbers are read from the table with their names
   (:class:`NumericTable`).
2. Runs of words of the claim that occur in these names mention them (:func:`find_mentions`).
3. In each clause a word of comparison is searched ("outperforms", "cheaper", "best"). What stands
   before it is compared with what stands behind it; mentions on the other axis say by which
   measures (:meth:`_ComparisonReader._read_comparison`).
4. The comparison is right or wrong if it is so for all pairs of cells. Otherwise, and wherever a
   step is unclear, nothing is said (:meth:`_ComparisonReader._decide`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple

from trustassay.judging.table_lines import (
    Mention,
    NumericTable,
    TableLine,
    Token,
    find_direction,
    find_mentions,
    read_tokens,
)
from trustassay.text.tables import TableGrid

MAX_CLAIM_TOKENS = 120
"""Tokens of a claim beyond which it is not compared."""
MAX_PAIRS = 1_000
"""Pairs of rows, or of columns, beyond which they are not compared."""
CLEAR_MARGIN = 0.25
"""Difference, as a share of the smaller number, from which nobody calls it insignificant."""
MAX_REASONS = 2
"""Pairs of cells that a reason names."""


class TableComparison(NamedTuple):
    """What a table says about the comparisons of a claim."""

    agrees: bool
    """Whether the table bears them out."""
    reason: str
    """The cells that decide, as a sentence: "Lamp A, price: 20 is below 35 of Lamp B"."""
    quote: str
    """These cells with the names of their rows and columns."""
    share: float
    """The share of the claim's text that the decided clauses take up, 0 to 1."""


# Rows and columns that compete with no others.
_NO_COMPETITOR = re.compile(r"\b(?:average|avg|mean|total|sum|overall)\b", re.IGNORECASE)
# Measures that stand for the others where a claim names none.
_SUMMARY = re.compile(
    r"\b(?:overall|average|avg|total|f-?1|f-?scores?|f-?measure|combined)\b", re.IGNORECASE
)


# Comparisons in a claim --------------------------------------------------------------------------


class _Cue(NamedTuple):
    """A word of comparison."""

    kind: str
    """``outdo``, ``better``, ``larger`` (of numbers), ``change``, ``best`` or ``largest``."""
    sign: int
    """1, or -1 for "worse", "smaller" and so on."""
    start: int
    """Offset of its first character."""
    end: int
    """Offset behind its last character."""
    clause: tuple[int, int]
    """Offsets of its clause."""
    opening: tuple[int, int]
    """Offsets of the text before the first word of comparison of the clause: the subject."""

    @property
    def is_superlative(self) -> bool:
        """Whether it compares with all others."""
        return self.kind in ("best", "largest")

    @property
    def is_of_quality(self) -> bool:
        """Whether it says better and worse, and not larger and smaller."""
        return self.kind in ("outdo", "better", "best", "change")


_CUES = [
    ("outdo", 1, r"out-?s?perform\w*|outs?perform\w*|surpass\w*|beats?|exceed\w*"),
    ("outdo", -1, r"under-?perform\w*"),
    ("better", 1, r"superior|better"),
    ("better", -1, r"worse|inferior"),
    ("larger", 1, r"higher|larger|greater|bigger|longer|more expensive|costlier|more"),
    ("larger", -1, r"lower|smaller|fewer|shorter|cheaper|less expensive|less"),
    ("change", 1, r"improv\w+|gain(?:s|ed)?|boost\w*|increas\w+|rises?|rose|grow\w*|grew"),
    ("change", -1, r"decreas\w+|reduc\w+|drop\w*|declin\w+|falls?|fell|loss(?:es)? (?=over)"),
    ("best", 1, r"best"),
    ("best", -1, r"worst"),
    ("largest", 1, r"highest|largest|greatest|biggest|most expensive|longest|most"),
    ("largest", -1, r"lowest|smallest|fewest|cheapest|least expensive|shortest|least"),
]
_CUE = re.compile(
    "|".join(rf"(?P<c{n}>\b(?:{words})\b)" for n, (_, _, words) in enumerate(_CUES)), re.IGNORECASE
)
# These compare only where the name of a measure follows: "more employees".
_AMOUNT = re.compile(r"more|less|most|least", re.IGNORECASE)
_OF_PRICE = re.compile(r"cheap|expensive|costl", re.IGNORECASE)
_PRICE = re.compile(r"(?:\b|_)(?:price|cost|fee|fare)s?(?:\b|_)", re.IGNORECASE)
# "Nor" is left out, since "neither ... nor" denies once.
_NEGATION = re.compile(
    r"\b(?:not(?! only| just)|no|never|cannot|fails? to|neither|hardly|barely|scarcely)\b|n't\b",
    re.IGNORECASE,
)
# Words by which a clause does not say what is, but what was, would be, or what others say.
_NOT_ASSERTED = re.compile(
    r"\b(?:if|unless|would|once|formerly|previously|used to|say|says|said|believed?|expected"
    r"|wrong|false|untrue|incorrect)\b",
    re.IGNORECASE,
)
# Words by which a comparison is about a degree, which numbers alone do not show.
_DEGREE = re.compile(
    r"\b(?:significant\w*|substantial\w*|considerabl\w+|noticeabl\w+|much|necessarily|only"
    r"|consistent\w*|always|marginal\w*|slight\w*|large margin|wide margin)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[;:]\s|\.\s|,?\s\b(?:but|while|whereas|although|though|however|despite|suggesting"
    r"|indicating|showing|demonstrating|implying|because|since|which|(?<!well )as(?! well))\b"
    r"|,\s(?=(?:and )?(?:\w+ ){1,6}(?:outperform|perform|achiev|obtain|get|is|are|has|have)\w*\b)",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:others?|alternatives?|baselines?|competitors?|rest|remaining|previous|prior|existing"
    r"|state-of-the-art)\b",
    re.IGNORECASE,
)
_OTHER_PLACE = re.compile(
    r"\b(?:second|previous|prior|current|former|one of the|among the|than the|over the|existing"
    r"|next|third|\d(?:nd|rd|th)|its|their|his|her)[\s-]*$",
    re.IGNORECASE,
)
_OF_CHANGE = re.compile(
    r"\s+(?:[\w-]+\s+){0,2}(?:increase|decrease|drop|gain|improvement|difference|gap|change|growth"
    r"|reduction|number)s?\b",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"\b(?:than|over|upon|compar\w+ (?:to|with)|relative to|against|versus|vs\.?)\s", re.IGNORECASE
)
_TO = re.compile(r"\s+to\s", re.IGNORECASE)
_FROM_TO = re.compile(r"\bfrom\b(?P<old>.{1,60}?)\bto\b(?P<new>.{1,60})", re.IGNORECASE)
_END_OF_OBJECT = re.compile(
    r"\b(?:on|in|for|under|at|when|by|with respect|in terms|regarding|using)\b", re.IGNORECASE
)
_IS = re.compile(r"\b(?:is|are|was|were|when)\b", re.IGNORECASE)
_IS_NOT = re.compile(r"\b(?:is|are|was|were) (?:not|neither)\b", re.IGNORECASE)
# Words that leave lines out: "all except B", "of those under 30", "among the lamps with ...".
_OF_PART = re.compile(
    r"\b(?:except(?:ing| for)?|exception of|excluding|apart (?:from|of)|all but|save for|other than"
    r"|among (?:(?:all|the|those|these) )*(?:\w+ )?(?:with|without|from|in)"
    r"|(?:among|of) (?:(?:all|the|those|these) )+(?:\w+ )?"
    r"(?:under|below|above|over|that|which|who|whose))\b",
    re.IGNORECASE,
)
# What something has more or better of: "a better warranty".
_POSSESSION = re.compile(r"\b(?:has|have|had|having)\s(?:(?:a|an|the|much|far)\s)*$", re.IGNORECASE)
# Larger numbers of these are lower ones of the measure: a loss is a negative profit.
_LOSS = re.compile(r"\b(?:loss(?:es)?|deficits?|declines?|drops?|falls?|debts?)\b", re.IGNORECASE)
# The highest rank is the lowest number.
_RANK = re.compile(r"(?:\b|_)(?:rank(?:ing)?|position|place|seed)(?:\b|_)", re.IGNORECASE)
_NOUN = re.compile(r"\s+(?:than\b)?\s*([^\W\d_][\w-]*)?")
_ENUMERATION = re.compile(r"\b(?:and|or|both)\b|,|/", re.IGNORECASE)
_SCOPE_BEFORE = re.compile(r"\b(?:on|in|for|under|at|of) (?:the )?$", re.IGNORECASE)


def find_comparison(text: str) -> re.Match[str] | None:
    """Return the first word of comparison in a text: "cheaper", "best", "rose"."""
    return _CUE.search(text)


class _Compared(NamedTuple):
    """The rows, or the columns, that a claim compares."""

    subject: frozenset[int]
    """Those that are called better, larger and so on."""
    other: frozenset[int]
    """Those that they are compared with."""
    certain: bool = True
    """Whether all of ``other`` are meant, and not an unknown part of them."""


class _StatedComparison(NamedTuple):
    """A comparison of a claim."""

    cue: _Cue
    axis: int
    """0 if rows are compared, 1 if columns are."""
    compared: _Compared
    scope: Sequence[frozenset[int]]
    """Groups of measures by which they are compared."""
    is_scope_named: bool
    """Whether the claim names measures; else there is one group of all."""
    negated: bool


class _CellPair(NamedTuple):
    """The numbers of two lines by one measure."""

    holds: bool | None
    """Whether the comparison is right for them; ``None`` without two numbers of a unit."""
    reason: str = ""
    quote: str = ""
    margin: float = 0.0
    """The difference as a share of the smaller number."""


def check_comparisons(claim: str, grids: Iterable[TableGrid]) -> TableComparison | None:
    """Return what tables say about the comparisons of a claim, or ``None`` if that is unclear.

    One comparison that a table contradicts decides against the claim.

    Args:
        claim: the claim, folded.
        grids: the tables.
    """
    if _CUE.search(claim) is None or _OF_PART.search(claim):
        return None
    tokens = read_tokens(claim)
    if len(tokens) > MAX_CLAIM_TOKENS:
        return None
    for grid in grids:
        clauses = _ComparisonReader(claim, tokens, _build_table(grid)).read()
        results = [(span, result) for span, result in clauses if result is not None]
        if results:
            share = sum(end - start for start, end in {span for span, _ in results}) / len(claim)
            against = [result for _, result in results if not result.agrees]
            return (against or [results[0][1]])[0]._replace(share=share)
    return None


@lru_cache(maxsize=64)
def _build_table(grid: TableGrid) -> NumericTable:
    return NumericTable(grid)


class _ComparisonReader:
    """Reads the comparisons of one claim and decides them by one table."""

    def __init__(self, claim: str, tokens: Sequence[Token], table: NumericTable) -> None:
        self._claim, self._table = claim, table
        self._mentions = self._assign_mentions(tokens)
        # "no" and "with" in a name are part of it: "A (no filter)".
        masked = list(claim)
        for mention in (*self._mentions[0], *self._mentions[1]):
            masked[mention.start : mention.end] = "_" * (mention.end - mention.start)
        self._masked = "".join(masked)

    def _assign_mentions(self, tokens: Sequence[Token]) -> tuple[list[Mention], list[Mention]]:
        """Return the mentions of rows and those of columns; no word counts for both."""
        rows, columns = (find_mentions(tokens, lines) for lines in self._table.axes)
        for row, column in product(list(rows), list(columns)):
            if row.start < column.end and column.start < row.end:
                # The longer one counts; of equal ones "on News" is a measure, "News is" a row.
                as_scope = _SCOPE_BEFORE.search(self._claim[: row.start]) is not None
                drops_row = (column.length, as_scope) > (row.length, False)
                mentions, mention = (rows, row) if drops_row else (columns, column)
                if mention in mentions:
                    mentions.remove(mention)
        return rows, columns

    def read(self) -> Iterator[tuple[tuple[int, int], TableComparison | None]]:
        """Yield the clauses with a comparison, and what the table says about each."""
        borders = [0, *(match.end() for match in _CLAUSE.finditer(self._claim)), len(self._claim)]
        for clause in pairwise(borders):
            for cue in self._find_cues(clause):
                comparison = self._read_comparison(cue)
                yield clause, comparison and self._decide(comparison)

    def _find_cues(self, clause: tuple[int, int]) -> Iterator[_Cue]:
        starts = {mention.start for mentions in self._mentions for mention in mentions}
        subject = None
        for match in _CUE.finditer(self._claim, *clause):
            if not _AMOUNT.fullmatch(match[0]) or match.end() + 1 in starts:
                kind, sign, _ = _CUES[int(str(match.lastgroup)[1:])]
                # Each comparison of a clause has the subject before the first one.
                subject = subject or (clause[0], match.start())
                yield _Cue(kind, sign, *match.span(), clause, subject)

    def _between(self, axis: int, start: int, end: int) -> list[Mention]:
        return [mention for mention in self._mentions[axis] if start <= mention.start < end]

    # Step 3: what is compared

    def _read_comparison(self, cue: _Cue) -> _StatedComparison | None:
        options = [
            (axis, compared)
            for axis in (0, 1)
            if (compared := self._find_compared(cue, axis)) is not None
        ]
        is_negated = self._is_negated(cue)
        if not options or is_negated is None or _NOT_ASSERTED.search(self._masked, *cue.clause):
            return None
        # Rows before columns, but "the fewest goals": the measure follows a superlative directly.
        axis, compared = min(options, key=lambda option: self._is_measure_of(cue, option[0]))
        mentions = self._between(1 - axis, *cue.clause)
        of_price = _OF_PRICE.search(self._claim, cue.start, cue.end)
        every = frozenset(
            line.place
            for line in self._table.axes[1 - axis]
            if not of_price or _PRICE.search(line.text)
        )
        lines = [mention.lines for mention in mentions] or [every]
        # "2020" and "price" may be one column, "price and stock" are two.
        common = frozenset.intersection(*lines)
        scope = [common] if common else lines
        return _StatedComparison(cue, axis, compared, scope, bool(mentions), is_negated)

    def _is_negated(self, cue: _Cue) -> bool | None:
        """Whether a comparison is denied; ``None`` if that is unclear."""
        start, end = cue.clause
        negations = len(_NEGATION.findall(self._masked, start, cue.start))
        if cue.is_superlative:
            # "The cheapest is not A."
            negations += len(_IS_NOT.findall(self._claim, cue.end, end))
        elif _NEGATION.search(self._masked, cue.end, end):
            # "The gain is not significant"
            return None
        return negations % 2 == 1

    def _is_measure_of(self, cue: _Cue, axis: int) -> bool:
        """Whether a mention on an axis follows a superlative directly."""
        return cue.is_superlative and bool(self._between(axis, cue.end + 1, cue.end + 2))

    def _find_compared(self, cue: _Cue, axis: int) -> _Compared | None:
        lines, measures = self._table.axes[axis], self._table.axes[1 - axis]
        if len(lines) < 2 or not measures:
            return None
        every = frozenset(line.place for line in lines if not _NO_COMPETITOR.search(line.text))
        subject = self._name_lines(axis, *cue.opening)
        if cue.is_superlative:
            return self._find_best(cue, axis, subject, every)
        if cue.kind == "change" and (
            change := _FROM_TO.search(self._claim, cue.end, cue.clause[1])
        ):
            old, new = (self._name_lines(axis, *change.span(name)) for name in ("old", "new"))
            return _Compared(new, old) if old and new and not old & new else None
        return self._find_two_sides(cue, axis, subject, every)

    def _find_best(
        self, cue: _Cue, axis: int, subject: frozenset[int], every: frozenset[int]
    ) -> _Compared | None:
        """Return what a superlative compares: "A is the cheapest", "The cheapest is A"."""
        end = cue.clause[1]
        # "A beats the best B" does not call A the best.
        if cue.start != cue.opening[1]:
            return None
        # "The second best", "the best increase": no cell of the table is that.
        if _OTHER_PLACE.search(self._claim[: cue.start]) or _OF_CHANGE.match(self._claim, cue.end):
            return None
        if not subject and (verb := _IS.search(self._claim, cue.end, end)):
            subject = self._name_lines(axis, verb.end(), end)
        rest = every - subject
        return _Compared(subject, rest) if subject and rest else None

    def _find_two_sides(
        self, cue: _Cue, axis: int, subject: frozenset[int], every: frozenset[int]
    ) -> _Compared | None:
        """Return what stands before a cue and what it is compared with behind the cue."""
        end = cue.clause[1]
        begin = cue.end
        if cue.kind != "outdo":
            over = _OVER.search(self._claim, cue.end, end) or _TO.match(self._claim, cue.end)
            if over is None:
                return None
            begin = over.end()
            # "The price is lower in A than in B."
            subject = subject or self._name_lines(axis, cue.end, over.start())
        # "Outperformed by B" names nothing before its "by", and is left out.
        stop = _END_OF_OBJECT.search(self._masked, begin + 1, end)
        until = stop.start() if stop else end
        other = self._name_lines(axis, begin, until)
        compared = None
        if not subject and other and _OTHERS.search(self._claim, *cue.opening):
            # "All others outperform A."
            compared = _Compared(every - other, other, certain=False)
        elif other:
            # "A outperforms A with B": the longer name is the other one.
            other = other - subject or other
            compared = _Compared(subject - other, other)
        elif _OTHERS.search(self._claim, begin, until):
            compared = _Compared(subject, every - subject, certain=False)
        return compared if compared and compared.subject and compared.other else None

    def _name_lines(self, axis: int, start: int, end: int) -> frozenset[int]:
        """Return the lines that a part of the claim names: "A and B" are two, "A on B" is one."""
        groups: list[frozenset[int]] = []
        conditions: list[frozenset[int]] = []
        behind = start
        for mention in self._between(axis, start, end):
            enumerated = _ENUMERATION.search(self._claim, behind, mention.start)
            if _SCOPE_BEFORE.search(self._claim[start : mention.start]):
                conditions.append(mention.lines)
            elif groups and not enumerated and groups[-1] & mention.lines:
                groups[-1] &= mention.lines
            else:
                groups.append(mention.lines)
            behind = mention.end
        # "On the small data, A": the rows of A with small data. "Revenue in the North" is the
        # North's.
        result = frozenset[int]().union(*(groups or conditions))
        for condition in conditions:
            result = result & condition or result
        return result

    # Step 4: whether it is right

    def _decide(self, comparison: _StatedComparison) -> TableComparison | None:
        cells = self._collect_cells(comparison)
        outcomes = {pair.holds for pair in cells}
        fits = False not in outcomes
        if not outcomes - {None}:
            return None
        # "The best" of all is not known where one has no number.
        must_know = comparison.cue.is_superlative or comparison.is_scope_named
        if fits and must_know and None in outcomes:
            return None
        # "Not significantly better" may be true of a slightly higher number.
        is_clear = all(pair.margin >= CLEAR_MARGIN for pair in cells if pair.holds)
        degree = _DEGREE.search(self._masked, *comparison.cue.clause)
        if comparison.negated and fits and degree and not is_clear:
            return None
        deciding = [pair for pair in cells if pair.holds == fits][:MAX_REASONS]
        return TableComparison(
            fits != comparison.negated,
            "; ".join(pair.reason for pair in deciding),
            "; ".join(pair.quote for pair in deciding),
            0.0,
        )

    def _collect_cells(self, comparison: _StatedComparison) -> list[_CellPair]:
        """Return the pairs of cells that a comparison is about; none where they disagree."""
        subject, other, certain = comparison.compared
        is_named = comparison.is_scope_named or self._may_concern_all(comparison)
        if not is_named or len(subject) * len(other) > MAX_PAIRS:
            return []
        lines = {line.place: line for line in self._table.axes[comparison.axis]}
        pairs = [(lines[one], lines[two]) for one, two in product(sorted(subject), sorted(other))]
        if certain and not comparison.cue.is_superlative:
            pairs = _keep_nearest(pairs)
        # "A beats B and C" is wrong where A beats B only. Of several subjects, or of unknown
        # others, some may be meant.
        all_are_meant = certain and len(subject) == 1
        cells: list[_CellPair] = []
        for group in comparison.scope:
            verdicts: set[bool] = set()
            for measure in self._choose_measures(comparison, group):
                of_measure = list(self._compare_cells(comparison, pairs, measure))
                values = {pair.holds for pair in of_measure if pair.holds is not None}
                if len(values) == 2 and not all_are_meant:
                    return []
                verdicts |= {all(values)} if values else set()
                cells += of_measure
            # Better by one measure and worse by another.
            if len(verdicts) == 2:
                return []
        return cells

    def _may_concern_all(self, comparison: _StatedComparison) -> bool:
        """Whether a comparison without a known measure may be about all of them.

        It is not where it names a measure that the table does not have: "higher accuracy", "has a
        better warranty".
        """
        cue, measures = comparison.cue, self._table.axes[1 - comparison.axis]
        if _OF_PRICE.search(self._claim, cue.start, cue.end):
            return True
        noun = _NOUN.match(self._claim, cue.end)
        word = noun[1].casefold() if noun and noun[1] else ""
        is_metric = find_direction(word) != 0
        if _POSSESSION.search(self._claim[: cue.start]) and not is_metric:
            return False
        # "A is better than B", "A gains over B"
        if cue.kind == "change":
            is_general = _OVER.match(self._claim, cue.end + 1) is not None
        else:
            is_general = cue.is_of_quality
        texts = " ".join([self._table.caption, *(line.text for line in measures)])
        return is_general or (is_metric and word in texts.casefold())

    def _choose_measures(
        self, comparison: _StatedComparison, group: frozenset[int]
    ) -> list[TableLine]:
        """Return the measures of a group of which a direction is known, or their summary."""
        lines = [ln for ln in self._table.axes[1 - comparison.axis] if ln.place in group]
        if not comparison.cue.is_of_quality:
            return lines
        known = [line for line in lines if line.direction]
        return [line for line in known if _SUMMARY.search(line.text)] or known

    def _compare_cells(
        self,
        comparison: _StatedComparison,
        pairs: Sequence[tuple[TableLine, TableLine]],
        measure: TableLine,
    ) -> Iterator[_CellPair]:
        axis, cue = comparison.axis, comparison.cue
        sign = cue.sign * (measure.direction if cue.is_of_quality else 1)
        # A larger loss is a lower profit, and a higher rank a lower number.
        is_loss = _LOSS.search(f"{self._claim[: cue.start]} {self._claim[cue.end :]}")
        is_rank = not cue.is_of_quality and _RANK.search(measure.text)
        for one, two in pairs:
            first = self._table.get_number(axis, one.place, measure.place)
            second = self._table.get_number(axis, two.place, measure.place)
            if first is None or second is None or not first.is_comparable(second):
                yield _CellPair(None)
                continue
            smaller, larger = sorted((first.value, second.value))
            if is_rank or (is_loss and smaller < 0):
                yield _CellPair(None)
                continue
            word = "equal to"
            if smaller != larger:
                word = "above" if first.value == larger else "below"
            difference = (first.value - second.value) * sign
            yield _CellPair(
                difference > 0 or (difference == 0 and cue.is_superlative),
                f"{measure.text}: {first.text} for {one.text} is {word} {second.text} for "
                f"{two.text}",
                f"{measure.text}: {first.text} for {one.text}, {second.text} for {two.text}",
                abs(difference) / (min(abs(smaller), abs(larger)) or 1.0),
            )


def _keep_nearest(
    pairs: Sequence[tuple[TableLine, TableLine]],
) -> list[tuple[TableLine, TableLine]]:
    """Return for each first line the pairs that have most of their names in common.

    So "A, small" is compared with "B, small", and not with "B, large".
    """
    shared = [len(set(one.keys) & set(two.keys)) for one, two in pairs]
    most: dict[int, int] = {}
    for (one, _), count in zip(pairs, shared, strict=True):
        most[one.place] = max(count, most.get(one.place, 0))
    return [pair for pair, count in zip(pairs, shared, strict=True) if count == most[pair[0].place]]

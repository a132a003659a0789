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
    find_mentions,
    find_metrics,
    read_tokens,
)
from trustassay.text.tables import TableGrid

MAX_LINES = 300
"""Rows, or columns, of a table beyond which it is not compared."""
MAX_CLAIM_TOKENS = 120
"""Tokens of a claim beyond which it is not compared."""
MAX_CUES = 8
"""Words of comparison in a claim beyond which it is not compared."""
MAX_PAIRS = 1_000
"""Pairs of rows, or of columns, beyond which they are not compared."""
MAX_CHARACTERS_BEFORE = 60
"""Characters before a word of comparison in which a negation belongs to it."""
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


# Rows and columns that compete with no others: sums, averages and bounds.
_NO_COMPETITOR = re.compile(
    r"\b(?:average|avg|mean|total|sum|overall|diff|difference|impv|improvement|delta|human"
    r"|oracle|upper|gold)\b|Δ",
    re.IGNORECASE,
)
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
    end: int

    @property
    def is_superlative(self) -> bool:
        """Whether it compares with all others."""
        return self.kind in ("best", "largest")


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
_EXCEPTION = re.compile(
    r"\b(?:except(?:ing| for)?|exception of|excluding|apart (?:from|of)|all but|save for"
    r"|other than)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:others?|alternatives?|baselines?|competitors?|rest|remaining|previous|prior|existing"
    r"|state-of-the-art)\b",
    re.IGNORECASE,
)
# By these words one measure decides against a claim: "on all markets", "consistently".
_BY_ALL = re.compile(
    r"\b(?:on|in|for|under|of|across|by) (?:all|every|each|both|any)\b|\b(?:consistently|always)\b",
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
_BY = re.compile(r"\s+by\s", re.IGNORECASE)
_FROM_TO = re.compile(r"\bfrom\b(?P<old>.{1,60}?)\bto\b(?P<new>.{1,60})", re.IGNORECASE)
_YEAR = re.compile(r"\s*[12]\d{3}\b")
_END_OF_OBJECT = re.compile(
    r"\b(?:on|in|for|under|at|when|by|with respect|in terms|regarding|using)\b", re.IGNORECASE
)
_IS = re.compile(r"\b(?:is|are|was|were|when)\b", re.IGNORECASE)
_IS_NOT = re.compile(r"\b(?:is|are|was|were) (?:not|neither)\b", re.IGNORECASE)
# A superlative of a part of the lines: "of those under 30", "among the lamps with ...".
_OF_PART = re.compile(
    r"\b(?:among (?:(?:all|the|those|these) )*(?:\w+ )?(?:with|without|from|in)"
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
_OF_QUALITY = re.compile(
    r"\s+(?:[\w-]+\s+)?(?:performances?|results|quality|scores)\b", re.IGNORECASE
)
_NOUN = re.compile(r"\s+(?:than\b)?\s*([^\W\d_][\w-]*)?")
_ENUMERATION = re.compile(r"\b(?:and|or|both)\b|,|/", re.IGNORECASE)
_SCOPE_BEFORE = re.compile(r"\b(?:on|in|for|under|at|of) (?:the )?$", re.IGNORECASE)


def states_comparison(text: str) -> bool:
    """Whether a text has a word of comparison: "cheaper", "best", "rose"."""
    return _CUE.search(text) is not None


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
    clause: tuple[int, int]
    """Offsets of its clause."""
    axis: int
    """0 if rows are compared, 1 if columns are."""
    compared: _Compared
    scope: Sequence[frozenset[int]]
    """Groups of measures by which they are compared."""
    is_scope_named: bool
    """Whether the claim names measures; else there is one group of all."""
    negated: bool
    by_quality: bool
    """Whether it says better and worse, and not larger and smaller."""


class _CellPair(NamedTuple):
    holds: bool | None
    """Whether the comparison is right for these cells; ``None`` without two numbers of a unit."""
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
    if _CUE.search(claim) is None or _EXCEPTION.search(claim):
        return None
    tokens = read_tokens(claim)
    if len(tokens) > MAX_CLAIM_TOKENS or len(_CUE.findall(claim)) > MAX_CUES:
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
        self._mentions = self._assign_mentions(tokens) if self._is_small() else ([], [])
        # "no" and "with" in a name are part of it: "A (no filter)".
        masked = list(claim)
        for mention in (*self._mentions[0], *self._mentions[1]):
            masked[mention.start : mention.end] = "_" * (mention.end - mention.start)
        self._masked = "".join(masked)
        borders = [0, *(match.end() for match in _CLAUSE.finditer(claim)), len(claim)]
        self._clauses = list(pairwise(borders))

    def _is_small(self) -> bool:
        return max(map(len, self._table.axes)) <= MAX_LINES

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
        for clause in self._clauses:
            cues = list(self._find_cues(*clause))
            for cue in cues:
                # Each comparison of a clause has the subject before the first one.
                comparison = self._read_comparison(cue, clause, cues[0].start)
                yield clause, comparison and self._decide(comparison)

    def _find_cues(self, start: int, end: int) -> Iterator[_Cue]:
        starts = {mention.start for mentions in self._mentions for mention in mentions}
        for match in _CUE.finditer(self._claim, start, end):
            if not _AMOUNT.fullmatch(match[0]) or match.end() + 1 in starts:
                kind, sign, _ = _CUES[int(str(match.lastgroup)[1:])]
                yield _Cue(kind, sign, *match.span())

    def _between(self, axis: int, start: int, end: int) -> list[Mention]:
        return [mention for mention in self._mentions[axis] if start <= mention.start < end]

    # Step 3: what is compared

    def _read_comparison(
        self, cue: _Cue, clause: tuple[int, int], first_cue: int
    ) -> _StatedComparison | None:
        options = [
            (axis, compared)
            for axis in (0, 1)
            if (compared := self._find_compared(cue, clause, first_cue, axis)) is not None
        ]
        if not options:
            return None
        # "The fewest goals": what follows a superlative directly is the measure. Otherwise what
        # stands nearest to the cue is compared: "On the new data, A is best".
        axis, compared = min(
            options,
            key=lambda option: (
                cue.is_superlative and self._is_followed_by(cue, option[0]),
                self._distance(cue, clause, option[0]),
            ),
        )
        mentions = self._between(1 - axis, *clause) or [
            # "As for the price, A is ...": a clause without a comparison may name the measure.
            mention
            for start, end in self._clauses
            if not list(self._find_cues(start, end))
            for mention in self._between(1 - axis, start, end)
        ]
        every = frozenset(
            line.place
            for line in self._table.axes[1 - axis]
            if not _OF_PRICE.search(self._claim, cue.start, cue.end) or _PRICE.search(line.text)
        )
        lines = [mention.lines for mention in mentions] or [every]
        # "2020" and "price" may be one column, "price and stock" are two.
        common = frozenset.intersection(*lines)
        if _NOT_ASSERTED.search(self._masked, *clause):
            return None
        before = self._masked[max(clause[0], cue.start - MAX_CHARACTERS_BEFORE) : cue.start]
        negations = len(_NEGATION.findall(before))
        if cue.is_superlative:
            # "The cheapest is not A."
            negations += len(_IS_NOT.findall(self._claim, cue.end, clause[1]))
        elif _NEGATION.search(self._masked, cue.end, clause[1]):
            # "The gain is not significant"
            return None
        of_quality = _OF_QUALITY.match(self._claim, cue.end) is not None
        return _StatedComparison(
            cue,
            clause,
            axis,
            compared,
            [common] if common else lines,
            bool(mentions),
            negations % 2 == 1,
            cue.kind in ("outdo", "better", "best", "change") or of_quality,
        )

    def _is_followed_by(self, cue: _Cue, axis: int) -> bool:
        return any(mention.start == cue.end + 1 for mention in self._mentions[axis])

    def _distance(self, cue: _Cue, clause: tuple[int, int], axis: int) -> int:
        """Return the characters between a cue and the nearest mention before it, or else behind."""
        starts = [mention.start for mention in self._between(axis, *clause)]
        before = [cue.start - start for start in starts if start < cue.start]
        return min(before) if before else len(self._claim) + min(starts, default=0)

    def _find_compared(
        self, cue: _Cue, clause: tuple[int, int], first_cue: int, axis: int
    ) -> _Compared | None:
        lines, measures = self._table.axes[axis], self._table.axes[1 - axis]
        if len(lines) < 2 or not measures:
            return None
        every = frozenset(line.place for line in lines if not _NO_COMPETITOR.search(line.text))
        subject = self._name_lines(axis, clause[0], first_cue)
        if cue.is_superlative:
            # "A beats the best B" does not call A the best.
            is_first = cue.start == first_cue
            return self._find_best(cue, clause, subject, every, axis) if is_first else None
        if cue.kind == "change" and (change := _FROM_TO.search(self._claim, cue.end, clause[1])):
            old, new = (self._name_lines(axis, *change.span(name)) for name in ("old", "new"))
            # "from 10 to 20" are numbers of a measure, "from 2020 to 2021" are names.
            are_numbers = all(part.strip()[:1].isdigit() for part in change.groups())
            are_names = not are_numbers or all(map(_YEAR.match, change.groups()))
            return _Compared(new, old) if old and new and not old & new and are_names else None
        return self._find_two_sides(cue, clause, subject, every, axis)

    def _find_best(
        self,
        cue: _Cue,
        clause: tuple[int, int],
        subject: frozenset[int],
        every: frozenset[int],
        axis: int,
    ) -> _Compared | None:
        """Return what a superlative compares: "A is the cheapest", "The cheapest is A"."""
        start, end = clause
        # "The second best", "the best increase": no cell of the table is that.
        if _OTHER_PLACE.search(self._claim[start : cue.start]):
            return None
        if _OF_CHANGE.match(self._claim, cue.end) or _OF_PART.search(self._claim):
            return None
        if not subject and (verb := _IS.search(self._claim, cue.end, end)):
            subject = self._name_lines(axis, verb.end(), end)
        rest = every - subject
        return _Compared(subject, rest) if subject and rest else None

    def _find_two_sides(
        self,
        cue: _Cue,
        clause: tuple[int, int],
        subject: frozenset[int],
        every: frozenset[int],
        axis: int,
    ) -> _Compared | None:
        """Return what stands before a cue and what it is compared with behind the cue."""
        start, end = clause
        before = self._claim[start : cue.start]
        # "A is cheaper than B", "A outperforms B", but "A is outperformed by B" is left out.
        begin: int | None = None
        if cue.kind == "outdo":
            begin = None if _BY.match(self._claim, cue.end) else cue.end
        elif over := _OVER.search(self._claim, cue.end, end) or _TO.match(self._claim, cue.end):
            begin = over.end()
            # "The price is lower in A than in B."
            subject = subject or self._name_lines(axis, cue.end, over.start())
        # "Than B, A ...": the order is reversed.
        if begin is None or _OVER.search(before):
            return None
        stop = _END_OF_OBJECT.search(self._masked, begin + 1, end)
        until = stop.start() if stop else end
        other = self._name_lines(axis, begin, until)
        compared = None
        if not subject and other and _OTHERS.search(before):
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
        subject, other, certain = comparison.compared
        is_named = comparison.is_scope_named or self._may_concern_all(comparison)
        if not is_named or len(subject) * len(other) > MAX_PAIRS:
            return None
        lines = {line.place: line for line in self._table.axes[comparison.axis]}
        pairs = [(lines[one], lines[two]) for one, two in product(sorted(subject), sorted(other))]
        if certain and not comparison.cue.is_superlative:
            pairs = _keep_nearest(pairs)
        cells: list[_CellPair] = []
        outcomes: set[bool] = set()
        by_all = _BY_ALL.search(self._masked, *comparison.clause) is not None
        for group in comparison.scope:
            by_measure = [
                list(self._compare_cells(comparison, pairs, measure))
                for measure in self._choose_measures(comparison, group)
            ]
            cells += [pair for cells_of_measure in by_measure for pair in cells_of_measure]
            values = [
                {pair.holds for pair in cells_of_measure if pair.holds is not None}
                for cells_of_measure in by_measure
            ]
            # "A beats B and C" is wrong where A beats B only. Of several subjects, or of unknown
            # others, some may be meant.
            if any(len(both) == 2 for both in values) and not (certain and len(subject) == 1):
                return None
            verdicts = {all(of_measure) for of_measure in values if of_measure}
            # Better by one measure and worse by another.
            if len(verdicts) == 2 and not by_all:
                return None
            outcomes |= {all(verdicts)} if verdicts else set()
        fits = all(outcomes)
        # "Not significantly better" may be true of a higher number.
        degree = _DEGREE.search(self._masked, *comparison.clause)
        is_clear = all(pair.margin >= CLEAR_MARGIN for pair in cells if pair.holds)
        if not outcomes or (comparison.negated and fits and degree and not is_clear):
            return None
        # "The best" of all is not known where one has no number.
        must_know = comparison.cue.is_superlative or comparison.is_scope_named
        if fits and must_know and any(pair.holds is None for pair in cells):
            return None
        deciding = [pair for pair in cells if pair.holds == fits][:MAX_REASONS]
        return TableComparison(
            fits != comparison.negated,
            "; ".join(pair.reason for pair in deciding),
            "; ".join(pair.quote for pair in deciding),
            0.0,
        )

    def _may_concern_all(self, comparison: _StatedComparison) -> bool:
        """Whether a comparison without a known measure may be about all of them.

        It is not where it names a measure that the table does not have: "higher accuracy", "has a
        better warranty".
        """
        cue, measures = comparison.cue, self._table.axes[1 - comparison.axis]
        noun = _NOUN.match(self._claim, cue.end)
        word = noun[1].casefold() if noun and noun[1] else ""
        if _OF_PRICE.search(self._claim, cue.start, cue.end):
            return True
        if _OF_QUALITY.match(self._claim, cue.end):
            return True
        if _POSSESSION.search(self._claim[: cue.start]) and not find_metrics(word):
            return False
        is_better = comparison.by_quality and cue.kind != "change"
        # "A gains over B"
        is_gain = cue.kind == "change" and _OVER.match(self._claim, cue.end + 1)
        if is_better or is_gain or len(measures) == 1:
            return True
        texts = " ".join([self._table.caption, *(line.text for line in measures)])
        return bool(find_metrics(word)) and word in texts.casefold()

    def _choose_measures(
        self, comparison: _StatedComparison, group: frozenset[int]
    ) -> list[TableLine]:
        """Return the measures of a group of which a direction is known, or their summary."""
        lines = [ln for ln in self._table.axes[1 - comparison.axis] if ln.place in group]
        if not comparison.by_quality:
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
        sign = cue.sign * (measure.direction if comparison.by_quality else 1)
        for pair in pairs:
            one, two = pair
            first, second = (self._table.get_number(axis, n.place, measure.place) for n in pair)
            # Columns of different measures, such as price and stock, are not compared.
            if axis and find_metrics(one.text) != find_metrics(two.text):
                continue
            if first is None or second is None or not first.is_comparable(second):
                yield _CellPair(None)
                continue
            # A larger loss is a lower profit, and a higher rank a lower number.
            others = f"{self._claim[: cue.start]} {self._claim[cue.end :]}"
            is_reversed = min(first.value, second.value) < 0 and _LOSS.search(others)
            if is_reversed or (not comparison.by_quality and _RANK.search(measure.text)):
                yield _CellPair(None)
                continue
            difference = (first.value - second.value) * sign
            word = "equal to"
            if first.value != second.value:
                word = "above" if first.value > second.value else "below"
            yield _CellPair(
                difference > 0 or (difference == 0 and cue.is_superlative),
                f"{one.text}, {measure.text}: {first.text} is {word} {second.text} of {two.text}",
                f"{measure.text} of {one.text}: {first.text}, of {two.text}: {second.text}",
                abs(difference) / (min(abs(first.value), abs(second.value)) or 1.0),
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

"""Reads the rows and columns of a table, and finds the words of a claim that name them.

1. :class:`NumericTable` has the lines of a table: its rows and columns with numbers, with names.
2. :func:`find_mentions` returns the runs of a claim's words that occur in these names.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from trustassay.text.grammar import is_common_word
from trustassay.text.tables import TableGrid
from trustassay.text.words import is_empty_word

MAX_RUN_TOKENS = 8
"""Tokens of the longest mention."""
MAX_CELL_CHARACTERS = 40
"""Characters of the longest cell that is read as a number."""
MIN_ABBREVIATION_LETTERS = 3
"""Letters of the shortest abbreviation in a name: "acc" for "accuracy"."""

_TOKEN = re.compile(r"\d+(?:\.\d+)+|[^\W_]+")
# A number, perhaps with a currency before it, and a unit, a deviation and marks behind it:
# "$1,250", "20 USD", "60.62±3.54", "76.5 (± 2.7)", "+0.20%", "0.571*".
_CELL = re.compile(
    r"(?P<before>[^\w.+-]{0,3})(?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+(?:e[-+]?\d+)?))\s?"
    r"(?P<unit>%|[^\W\d_]{1,12})?\s*(?:±\s*[\d.]+)?(?:\s*\([^()]*\))?[^\w.]{0,3}",
    re.IGNORECASE,
)
_OURS = frozenset("our ours proposed".split())
_SYSTEMS = frozenset("model method system approach algorithm framework network agent".split())
# Words for a kind of thing, which mention no row or column by themselves.
_GENERIC = _SYSTEMS | frozenset(
    "data dataset set test training product version result score value number table other type name"
    " rate level best better high higher low lower".split()
)
_LOWER_IS_BETTER = re.compile(
    r"\b(?:errors?|err|loss(?:es)?|perplexity|ppl|wer|cer|ter|eer|mae|mse|rmse|fid|latency|delay"
    r"|complaints?|defects?|failures?|churn|divergence|(?:the )?lower (?:is|the) better)\b|↓",
    re.IGNORECASE,
)
_HIGHER_IS_BETTER = re.compile(
    r"\b(?:acc(?:uracy|uracies)?|f-?1|f-?scores?|f-?measure|micro|macro|prec(?:isions?)?|rec"
    r"|recalls?|bleu\d?|rouge\w*|meteor|cider|spice|auc|auroc|map|mrr|ndcg|scores?"
    r"|performances?|correlations?|pearson|spearman|uas|las|success|hits?"
    r"|ratings?|quality|satisfaction|revenues?|profits?|sales|results"
    r"|higher is better)\b|↑|@\d|(?-i:\b[PRF])\s?(?:\(%\))?$",
    re.IGNORECASE,
)
# Measures of which neither end is better by itself.
_COUNTS = re.compile(
    r"#|\b(?:counts?|sizes?|num|numbers?|dims?|dimensions?|params?|time|hours?|epochs?|steps?"
    r"|iters?|iterations?|samples?|turns?|lengths?|p-values?)\b",
    re.IGNORECASE,
)


class Token(NamedTuple):
    """A word or a number of a text."""

    key: str
    """The form in which tokens are compared."""
    text: str
    """The token as it is written."""
    start: int
    """Offset of its first character."""
    end: int
    """Offset behind its last character."""


def read_tokens(text: str) -> list[Token]:
    """Return the tokens of a text; "our", "ours" and "proposed" are the same."""
    return [
        Token(_make_key(match[0].casefold()), match[0], *match.span())
        for match in _TOKEN.finditer(text)
    ]


def _make_key(word: str) -> str:
    if word in _OURS:
        return "ours"
    # Not a stem: "finetuned" in a claim is not the "finetuning" of a name.
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


class CellNumber(NamedTuple):
    """The number in a cell of a table."""

    value: float
    """The number, without its deviation."""
    unit: str
    """The word or sign behind it, in small letters; may be empty."""
    text: str
    """The cell as it is written."""
    currency: str = ""
    """The sign of a currency before it; may be empty."""

    def is_comparable(self, other: "CellNumber") -> bool:
        """Whether both have the same unit; the sign of a currency may stand in one cell only."""
        one_currency = not (self.currency and other.currency) or self.currency == other.currency
        return self.unit == other.unit and one_currency


@lru_cache(maxsize=4096)
def read_number(cell: str) -> CellNumber | None:
    """Return the number that a cell is; ``None`` for anything else."""
    match = _CELL.fullmatch(cell) if len(cell) <= MAX_CELL_CHARACTERS else None
    if match is None:
        return None
    value = float(match["number"].replace(",", ""))
    currency = next((sign for sign in match["before"] if sign in "$€£¥₹"), "")
    return CellNumber(value, (match["unit"] or "").casefold(), cell, currency)


class TableLine(NamedTuple):
    """A row or a column with numbers."""

    place: int
    """Its index in the table."""
    text: str
    """Its name."""
    parts: Sequence[Sequence[Token]]
    """The tokens of its names: of each text in a row, or of a column's header."""
    keys: Sequence[str]
    """The keys of all these tokens."""
    direction: int
    """As a measure: 1 where a higher number is better, -1 where a lower one is, 0 if unknown."""


class NumericTable:
    """The rows and columns of a table, and its numbers."""

    def __init__(self, grid: TableGrid) -> None:
        self.caption = grid.caption
        cells = [[cell.strip() for cell in row] for row in grid.rows]
        self._numbers = [list(map(read_number, row)) for row in cells]
        columns = range(len(grid.header))
        # Columns of which at least half of the cells are numbers.
        numeric = [
            column
            for column in columns
            if 2 * sum(row[column] is not None for row in self._numbers)
            >= max(1, sum(bool(row[column]) for row in cells))
        ]
        texts = [column for column in columns if column not in numeric]
        firsts = {row[0] for row in cells}
        if not texts and len(numeric) > 1 and len(firsts) == len(cells) > 1:
            # A first column of distinct numbers names the rows: "month: 1, 2, 3".
            cells = [[f"{grid.header[0]} {row[0]}", *row[1:]] for row in cells]
            texts, numeric = [0], numeric[1:]
        rows = [
            (place, [row[column] for column in texts if row[column]])
            for place, row in enumerate(cells)
            if any(self._numbers[place][column] is not None for column in numeric)
        ]
        headers = [(column, [_spell_field(grid.header[column])]) for column in numeric]
        self.axes = self._build_lines(rows), self._build_lines(headers)
        """Rows and columns; the lines of each axis are measures for those of the other one."""

    def _build_lines(self, places: Sequence[tuple[int, Sequence[str]]]) -> list[TableLine]:
        # A caption is about all measures, unless one of them is known by its name.
        directions = [find_direction(", ".join(names)) for _, names in places]
        common = 0 if any(directions) else find_direction(self.caption)
        # Where the first names of rows are not distinct, all names are shown.
        is_distinct = len({tuple(names[:1]) for _, names in places}) == len(places)
        lines = []
        for (place, names), direction in zip(places, directions, strict=True):
            text = ", ".join(names)
            parts = [read_tokens(name) for name in names]
            keys = [token.key for part in parts for token in part]
            by_caption = 0 if _COUNTS.search(text) or common < 0 else common
            short = names[0] if is_distinct and names else text
            lines.append(TableLine(place, short, parts, keys, direction or by_caption))
        return lines

    def get_number(self, axis: int, line: int, measure: int) -> CellNumber | None:
        """Return the number of a line of an axis by a measure, which is a line of the other."""
        return self._numbers[measure][line] if axis else self._numbers[line][measure]


def _spell_field(name: str) -> str:
    """Return the name of a column with spaces: "latency_ms", "monthlyFee"."""
    is_camel = re.fullmatch(r"[a-z]{2,}(?:[A-Z][a-z]+)+", name)
    return re.sub(r"(?=[A-Z])", " ", name).casefold() if is_camel else name.replace("_", " ")


@lru_cache(maxsize=4096)
def find_direction(text: str) -> int:
    """Return 1 where a text is about a measure that is better if higher, -1 if lower, else 0."""
    patterns = (-1, _LOWER_IS_BETTER), (1, _HIGHER_IS_BETTER)
    # The last word is the measure: "loss, F1".
    places = [(m.end(), sign) for sign, pattern in patterns for m in pattern.finditer(text)]
    return max(places, default=(0, 0))[1]


class Mention(NamedTuple):
    """Words of a claim that name rows or columns."""

    start: int
    """Offset of its first character."""
    end: int
    """Offset behind its last character."""
    length: int
    """How many tokens it has."""
    lines: frozenset[int]
    """Places of the rows or columns."""


class _LinesOfRun(NamedTuple):
    """The lines whose names have a run of tokens, by where it stands in the name."""

    whole: set[int]
    """The run is the whole name."""
    first: set[int]
    """The name begins with it."""
    last: set[int]
    """The name ends with it."""
    anywhere: set[int]
    """The name contains it."""


def find_mentions(claim: Sequence[Token], lines: Sequence[TableLine]) -> list[Mention]:
    """Return the mentions of rows or of columns in order, at each place the longest one.

    A run of tokens mentions the lines with this name, or else those whose names begin with it, or
    else those whose names contain it.
    """
    tokens_of_names = [token for line in lines for part in line.parts for token in part]
    capitals = {token.text for token in tokens_of_names if not token.text.islower()}
    claim = _abbreviate(claim, {token.key for token in tokens_of_names})
    runs = _collect_runs(lines, {token.key for token in claim})
    mentions: list[Mention] = []
    place = 0
    while place < len(claim):
        for end in range(min(len(claim), place + MAX_RUN_TOKENS), place, -1):
            run = claim[place:end]
            of_run = runs.get(tuple(token.key for token in run))
            if of_run and _is_mention(run, claim[end : end + 2], of_run, capitals):
                places = of_run.whole or of_run.first or of_run.anywhere
                mentions.append(Mention(run[0].start, run[-1].end, len(run), frozenset(places)))
                place = end
                break
        else:
            place += 1
    return mentions


def _abbreviate(claim: Sequence[Token], keys: Collection[str]) -> list[Token]:
    """Return a claim in which words that names abbreviate have the key of the abbreviation."""
    short_keys = [
        key
        for key in sorted(keys, key=len, reverse=True)
        if len(key) >= MIN_ABBREVIATION_LETTERS and key.isalpha() and not is_common_word(key)
    ]
    tokens = []
    for token in claim:
        key = token.key
        if key not in keys:
            key = next((short for short in short_keys if key.startswith(short)), key)
        tokens.append(token._replace(key=key))
    return tokens


def _collect_runs(
    lines: Sequence[TableLine], keys: Collection[str]
) -> Mapping[tuple[str, ...], _LinesOfRun]:
    """Return the runs of tokens of names, as far as a claim has all of their keys."""
    runs: defaultdict[tuple[str, ...], _LinesOfRun] = defaultdict(
        lambda: _LinesOfRun(set(), set(), set(), set())
    )
    for line in lines:
        for part in line.parts:
            name = tuple(token.key for token in part)
            for start in range(len(name)):
                for end in range(start + 1, min(len(name), start + MAX_RUN_TOKENS) + 1):
                    if name[end - 1] not in keys:
                        break
                    of_run = runs[name[start:end]]
                    of_run.anywhere.add(line.place)
                    if start == 0:
                        of_run.first.add(line.place)
                    if end == len(name):
                        of_run.last.add(line.place)
                    if end - start == len(name):
                        of_run.whole.add(line.place)
    return runs


def _is_mention(
    run: Sequence[Token], after: Sequence[Token], of_run: _LinesOfRun, capitals: Collection[str]
) -> bool:
    """Whether tokens that occur in a name mention it, unlike "is", "model" or "3"."""

    def is_telling(token: Token) -> bool:
        word = token.text.casefold()
        if word[0].isdigit():
            return bool(of_run.whole)
        if token.key == "ours":
            return len(run) > 1 or any(token.text.rstrip("s") in _SYSTEMS for token in after)
        # A function word, or a letter, is a name only where it has a capital in the table, too.
        if is_empty_word(word) or len(word) == 1:
            return token.text in capitals and (len(word) > 1 or bool(of_run.whole))
        return token.key not in _GENERIC

    telling = [token for token in run if is_telling(token)]
    if of_run.first or of_run.last:
        return bool(telling)
    # A common word in the middle of a name is none: "action" of "multi-action data".
    return not all(is_common_word(token.text) for token in telling)

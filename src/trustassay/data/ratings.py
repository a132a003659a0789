"""Ratings by people or judges, of long tables (a row a rating) and wide ones (a column a rater).

Nothing is guessed: columns are found by their names, or by what the user says they are called.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from trustassay.data.journal import UNEQUAL, is_journal, read_journal
from trustassay.data.labels import LARGEST, as_number, is_known
from trustassay.data.reading import raw_records
from trustassay.data.records import InputError
from trustassay.data.tables import SAVE_AS_UTF8, check_columns, csv_rows, header_of, not_utf8
from trustassay.errors import did_you_mean
from trustassay.sample import clean

RATING_FIELDS: Mapping[str, tuple[str, ...]] = {
    "item": ("item", "id"),
    "rater": ("rater", "annotator", "judge"),
    "rating": ("rating", "label", "score", "level"),
    "repeat": ("repeat",),
    "model": ("model",),
    "note": ("note",),
}
"""What a column is, and the names under which it is found."""
MOST_LEVELS = 1000
"""Levels of a range."""
FAULTS_TOLD = 10
"""Faults of a file that are told; the others are counted."""


@dataclass(frozen=True, slots=True)
class Rating:
    """One rating of an item (of one model's answer, where there are several) by a rater.

    value: a number; of words, their place among the categories. repeat: 0 for the first one.
    note: what the rater wrote beside it; of long tables alone.
    """

    item: str
    rater: str
    value: float
    repeat: int = 0
    model: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Ratings:
    """All ratings of a file; ``categories`` names the values where they are words.

    ordered: whether values can be compared by size. scale: all values that could be given, the
    lowest first; empty where that is not known. missing: empty cells. pairs: each rating is a
    choice between two answers, and not of one. chosen: ``label`` chose the answers with unequal
    probabilities, so they are not like the others.
    """

    ratings: Sequence[Rating]
    categories: Sequence[str] = ()
    ordered: bool = True
    scale: Sequence[float] = ()
    missing: int = 0
    pairs: bool = False
    chosen: bool = False


@dataclass(slots=True)
class _Cell:
    where: str
    item: str
    rater: str
    text: str
    repeat: str
    model: str
    note: str


def refuse(faults: Sequence[str], told: int = FAULTS_TOLD) -> None:
    """Raise an :class:`InputError` that tells the first faults, if there are any."""
    if faults:
        more = f"; and {len(faults) - told:,} more" if len(faults) > told else ""
        raise InputError("; ".join(faults[:told]) + more)


def read_ratings(
    path: Path,
    *,
    fields: Mapping[str, str] | None = None,
    raters: Sequence[str] = (),
    levels: Sequence[str] = (),
) -> Ratings:
    """Read ratings from ``.csv``, ``.tsv``, ``.jsonl`` or ``.json``.

    A table with a column for the rater and one for the rating is a long one, unless ``raters`` are
    columns of it. Any other is a wide one: its raters are the columns named in ``raters``, or all
    columns that hold numbers alone.
    Of a file that ``annotate`` wrote, what was taken back is left out, what was skipped is missing,
    and its rubric gives the scale; if it has several rubrics, the field ``rating`` is the name of
    the one to read.

    Args:
        path: of the file.
        fields: names of columns by what they are: ``{"item": "question_id"}``.
        raters: the only ones that are read: of a wide table the names of their columns.
        levels: all of an ordinal scale: numbers, a range of whole numbers as ``1..5``, or words,
            the lowest first.

    Raises:
        InputError: the file cannot be read, a column or one of ``raters`` is missing, or ratings
            are neither all numbers nor all words (of ``levels``, where given); names the first ten
            faults, and counts the others.
    """
    fields = dict(fields or {})
    strange = [name for name in fields if name not in RATING_FIELDS]
    refuse([did_you_mean("field of a rating", name, RATING_FIELDS) for name in strange])
    faults: list[str] = []
    of_annotate, pairs, unequal = is_journal(path), False, False
    choices: Sequence[str] = ()
    if of_annotate:
        journal = read_journal(path)
        if "rubrics" in journal.start:
            journal = journal.of_rubric(fields.pop("rating", None))
        pairs = journal.start.get("pairs") is True
        choices = () if pairs else journal.choices
        numeric = all(_number(one) is not None for one in choices)
        rows = journal.last_states()
        levels = levels or journal.levels or (choices if numeric else ())
        unequal = journal.start.get("chances") == UNEQUAL
    else:
        rows = list(table_rows(path, faults))
        refuse(faults)
    if not rows:
        raise InputError(f"{path}: no ratings in it")
    columns = list(dict.fromkeys(key for _, row in rows for key in row))
    named = _columns(path, columns, fields)
    by_column = bool(raters) and not of_annotate and set(raters) <= set(columns)
    chosen = raters
    if long := "rater" in named and "rating" in named and not by_column:
        known = {name for _, row in rows if (name := _text(row.get(named["rater"])))}
        if strange := [name for name in raters if name not in known]:
            raise InputError(f"{path}: {did_you_mean('rater', strange[0], known)}")
    else:
        # A column of words is a rater where it is called rating or label, and no other column is.
        alone = [named["rating"]] if "rating" in named else []
        chosen = raters or _rater_columns(rows, columns, named) or alone
        strange = [name for name in chosen if name not in columns]
        refuse([f"{path}: {did_you_mean('column', name, columns)}" for name in strange])
        if not chosen:
            raise InputError(
                f"{path}: expected columns rater and rating, or a column of numbers for each "
                f"rater (--rater names them); it has {', '.join(columns)}"
            )
    cells = list(_cells(rows, named, chosen, faults, long=long))
    filled = [cell for cell in cells if cell.text]
    result = _ratings(path, filled, faults, levels, choices)
    return replace(result, missing=len(cells) - len(filled), pairs=pairs, chosen=unequal)


def table_rows(path: Path, faults: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row of ``.csv``, ``.tsv``, ``.jsonl`` or ``.json`` with where it is.

    What is no row is added to the ``faults``.
    """
    name = str(path)
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1] in (".csv", ".tsv") and path.is_file():
        yield from _table(path, name, "\t" if suffixes[-1] == ".tsv" else ",", faults)
        return
    for raw in raw_records(name, {}):
        if raw.problems:
            faults.append(f"{raw.where}: {raw.problems[0]}")
        elif isinstance(raw.record, Mapping):
            yield raw.where, {str(key): value for key, value in raw.record.items()}
        else:
            faults.append(f"{raw.where}: expected an object")


def _table(
    path: Path, name: str, delimiter: str, faults: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    result = header_of(path, name, delimiter, lambda cells: "item" in cells or "id" in cells)
    header: list[str] = []
    for where, row in csv_rows(path, name, result):
        if isinstance(row, csv.Error):
            raise InputError(f"{where}: is not CSV ({row})") from None
        if not header:
            header = [cell.strip() for cell in row]
            check_columns(header, name, {})
            if not_utf8(header):
                raise InputError(f"{name}: the first line is not UTF-8; {SAVE_AS_UTF8}")
        elif len(row) > len(header):
            faults.append(f"{where}: more cells than the header names")
        elif bad := [k for k, v in zip(header, row, strict=False) if not_utf8([v])]:
            faults.append(f"{where}: {bad[0]}: is not UTF-8; {SAVE_AS_UTF8}")
        else:
            yield where, {k: v for k, v in zip_longest(header, row) if k}


def _columns(path: Path, columns: Sequence[str], fields: Mapping[str, str]) -> dict[str, str]:
    """Return the columns by what they are."""
    result = dict(fields)
    for what, known in RATING_FIELDS.items():
        if what not in fields and (there := [name for name in known if name in columns]):
            result[what] = there[0]
    wanted = [fields[what] for what in RATING_FIELDS if what in fields]
    strange = [column for column in wanted if column not in columns]
    refuse([f"{path}: {did_you_mean('column', column, columns)}" for column in strange])
    if "item" not in result:
        raise InputError(
            f"{path}: expected a column item or id, or --field item=COLUMN; it has "
            f"{', '.join(columns)[:200]}"
        )
    return result


def _rater_columns(
    rows: Sequence[tuple[str, Mapping[str, Any]]], columns: Sequence[str], named: Mapping[str, str]
) -> list[str]:
    taken = {named[what] for what in ("item", "repeat", "model", "note") if what in named}
    taken.update(RATING_FIELDS["item"])
    result = []
    for column in columns:
        texts = [_text(row.get(column)) for _, row in rows]
        filled = [text for text in texts if text]
        if column not in taken and filled and all(_number(text) is not None for text in filled):
            result.append(column)
    return result


def _cells(
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    named: Mapping[str, str],
    chosen: Sequence[str],
    faults: list[str],
    *,
    long: bool,
) -> Iterator[_Cell]:
    """Yield the ratings of a long table, of the ``chosen`` raters alone where there are any, or of
    a wide one, in whose columns; some may be empty."""
    columns = [(name, name) for name in chosen]
    for where, row in rows:
        cell = dict.fromkeys(RATING_FIELDS, "")
        cell |= {what: _text(row.get(column)) for what, column in named.items()}
        if long and chosen and cell["rater"] not in chosen:
            continue
        if long:
            columns = [(cell["rater"], named["rating"])]
        if not cell["item"] or (long and not cell["rater"]):
            faults.append(f"{where}: expected an item{' and a rater' if long else ''}")
            continue
        own = cell["repeat"], cell["model"], cell["note"] if long else ""
        for rater, column in columns:
            yield _Cell(where, cell["item"], rater, _text(row.get(column)), *own)


def _ratings(
    path: Path,
    cells: Sequence[_Cell],
    faults: list[str],
    levels: Sequence[str],
    choices: Sequence[str],
) -> Ratings:
    """Turn cells into ratings: numbers, or words by their place. ``choices`` are all words that
    could be given, if that is known of words without an order.
    """
    numbers = [_number(cell.text) for cell in cells]
    scale, categories = _levels(levels)
    if levels:
        faults += [
            f"{cell.where}: rating: {cell.text[:40]!r} is not among the levels"
            for cell, number in zip(cells, numbers, strict=True)
            if (cell.text.lower() not in categories if categories else number not in scale)
        ]
    # 1 and 0 beside yes and no are words, too; a single 4 among words is a slip.
    elif all(number is None for number in numbers) or (
        None in numbers and all(is_known(cell.text) for cell in cells)
    ):
        categories = sorted({text.lower() for text in (*choices, *(c.text for c in cells))})
        scale = tuple(map(float, range(len(categories)))) if choices else ()
    else:
        faults += [
            f"{cell.where}: rating: expected a number, as other ratings are, got {cell.text[:40]!r}"
            for cell, number in zip(cells, numbers, strict=True)
            if number is None
        ]
    repeats = _repeats(cells, faults)
    refuse(faults)
    if not cells:
        raise InputError(f"{path}: no ratings in it")
    result = []
    for cell, number, repeat in zip(cells, numbers, repeats, strict=True):
        value = float(categories.index(cell.text.lower())) if categories else float(number or 0)
        names = clean(cell.item), clean(cell.rater)
        result.append(Rating(*names, value, repeat, clean(cell.model), clean(cell.note)))
    return Ratings(result, tuple(categories), bool(levels) or not categories, scale)


def _levels(levels: Sequence[str]) -> tuple[tuple[float, ...], list[str]]:
    """Return the values of a scale, the lowest first, and its words if it is one of words; raises
    :class:`InputError` for a level that is named twice, fewer than two, or too many."""
    texts = [level.strip().lower() for level in levels]
    if len(texts) == 1 and (ends := re.fullmatch(r"(-?\d{1,9})\.\.(-?\d{1,9})", texts[0])):
        low, high = int(ends[1]), int(ends[2])
        if not low < high <= low + MOST_LEVELS - 1:
            raise InputError(
                f"levels: expected the lowest and the highest of at most {MOST_LEVELS} levels, as "
                f"1..5, got {texts[0]}"
            )
        texts = [str(level) for level in range(low, high + 1)]
    if not texts:
        return (), []
    numbers = [number for text in texts if (number := _number(text)) is not None]
    numeric = len(numbers) == len(texts)
    if twice := [
        text for text, count in Counter(numbers if numeric else texts).items() if count > 1
    ]:
        raise InputError(f"levels: {twice[0]} is named twice; expected each level once")
    if numeric:
        return tuple(sorted(numbers)), []
    return tuple(map(float, range(len(texts)))), texts


def _repeats(cells: Sequence[_Cell], faults: list[str]) -> list[int]:
    """Return the place of each cell among the ratings of an item by a rater, by the column repeat
    or in the order of the file; a repeat that occurs twice, or in some cells only, is a fault."""
    groups: dict[tuple[str, str, str], list[int]] = {}
    for place, cell in enumerate(cells):
        groups.setdefault((cell.item, cell.model, cell.rater), []).append(place)
    result = [0] * len(cells)
    for places in groups.values():
        told = {place: _number(cells[place].repeat) for place in places}
        seen: set[float | str] = set()
        for place in places:
            cell = cells[place]
            whose = f"{cell.where}: {cell.rater[:40]!r} rated {cell.item[:40]!r}"
            if bool(cell.repeat) != bool(cells[places[0]].repeat):
                faults.append(
                    f"{whose} with and without a repeat; expected a repeat in all of these rows, "
                    "or in none"
                )
                continue
            number = told[place]
            repeat = cell.repeat if number is None else number
            if cell.repeat and repeat in seen:
                faults.append(f"{whose} twice at the repeat {cell.repeat[:20]!r}")
            seen.add(repeat)
        if all(number is not None for number in told.values()):
            places.sort(key=lambda place: told[place] or 0.0)
        for order, place in enumerate(places):
            result[place] = order
    return result


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value).strip()


def _number(text: str) -> float | None:
    number = as_number(text)
    return number if number is not None and abs(number) <= LARGEST else None

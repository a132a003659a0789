"""Reads ratings by people or judges from long tables (one row for each rating), wide tables (one
column for each rater) and journals.

Nothing is guessed: columns are found by their names, or by the names that the user gives.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trustassay.core.labels import (
    NO,
    YES,
    fold_label,
    is_missing,
    is_undecided,
    parse_number,
    read_word,
)
from trustassay.core.sample import LONGEST_LINE_MIB, clean
from trustassay.errors import did_you_mean
from trustassay.input.answer_tables import read_answer_table
from trustassay.input.journal import UNEQUAL, is_journal, read_journal
from trustassay.input.labels import MAX_LABEL, MIN_READABLE_SHARE, UnreadLabels
from trustassay.input.recognising import ABSENT, reach
from trustassay.input.records import InputError, raise_faults

RATING_FIELDS: Mapping[str, tuple[str, ...]] = {
    "item": ("item", "id"),
    "rater": ("rater", "annotator", "judge"),
    "rating": ("rating", "label", "score", "level"),
    "repeat": ("repeat",),
    "model": ("model",),
    "note": ("note",),
}
"""By field, the names of columns in which it is found, the preferred one first."""
MAX_RANGE_LEVELS = 1000
"""Levels that a range such as ``1..5`` may have."""


@dataclass(frozen=True, slots=True)
class Rating:
    """One rating of an item by a rater."""

    item: str
    """The id of the item."""
    rater: str
    """The name of the rater."""
    value: float
    """The rating; for words, their index among the categories."""
    repeat: int = 0
    """0 for the rater's first rating of the item, 1 for the second, and so on."""
    model: str = ""
    """The model whose answer was rated; empty where each item has a single answer."""
    note: str = ""
    """The rater's note; only long tables have notes."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """All ratings of a file."""

    ratings: Sequence[Rating]
    """The ratings in the order of the file."""
    categories: Sequence[str] = ()
    """The words for the values 0, 1, ...; empty where ratings are numbers."""
    ordered: bool = True
    """Whether values can be compared by size."""
    scale: Sequence[float] = ()
    """All values that could be given, the lowest first; empty where that is not known."""
    missing_count: int = 0
    """The number of empty cells, and of such as "N/A" where ratings are numbers or levels."""
    unread: UnreadLabels | None = None
    """Ratings that are left out, since they are not numbers, or levels, as nearly all others
    are."""
    pairs: bool = False
    """Whether each rating is a choice between two answers."""
    wide: bool = False
    """Whether each rater is a column."""
    has_unequal_chances: bool = False
    """Whether ``label`` drew the answers with unequal probabilities, so that they do not represent
    the others."""
    undecided: Collection[tuple[str, str, str]] = ()
    """The item, model and rater of what a rater skipped, could not judge, or rated unreadably, and
    did not rate otherwise."""


@dataclass(slots=True)
class _RatingCell:
    """The cell of a rating with the other cells of its row, as texts."""

    where: str
    """The place of its row, for messages."""
    item: str
    """The id of the item."""
    rater: str
    """The name of the rater."""
    text: str
    """The rating; may be empty."""
    repeat: str
    """The number of the repeat; empty without one."""
    model: str
    """The model whose answer was rated; empty without one."""
    note: str
    """The rater's note; empty without one."""


def read_ratings(
    source: Any,
    *,
    fields: Mapping[str, str] | None = None,
    raters: Sequence[str] = (),
    levels: Sequence[str] = (),
    sheet: str = "",
    longest_line: int = LONGEST_LINE_MIB,
) -> Ratings:
    """Read ratings from a file, a frame or records.

    A table with a column for the rater and one for the rating is a long table, unless ``raters``
    are columns of it. Any other table is a wide one: its raters are the columns in ``raters``, or
    all columns that contain numbers, of which at most one in five cells may be a word.

    In a journal of ``annotate``, ratings that were undone are left out, skipped ones are missing,
    and the rubric defines the scale. If the journal has several rubrics, the field ``rating`` is
    the name of the one to read.

    Args:
        source: a path, a frame or an iterable of records, as for
            :func:`~trustassay.input.answer_tables.read_answer_table`; or a journal.
        fields: names of columns by field: ``{"item": "question_id"}``.
        raters: the only raters to read; for a wide table the names of their columns.
        levels: all levels of an ordinal scale, the lowest first: numbers, a range of whole numbers
            such as ``1..5``, or words.
        sheet: the sheet of a workbook.
        longest_line: MiB of the longest record.

    Raises:
        InputError: the file cannot be read, a column or one of ``raters`` is missing, or ratings
            are neither all numbers nor all words (of ``levels``, where given); names the first ten
            faults, and counts the others.
    """
    # Step 1: the fields that the user names must be known.
    fields = dict(fields or {})
    strange = [name for name in fields if name not in RATING_FIELDS]
    raise_faults([did_you_mean("field of a rating", name, RATING_FIELDS) for name in strange])
    faults: list[str] = []
    # Step 2: the rows, of a journal or of a table.
    is_path, pairs, unequal = isinstance(source, str | os.PathLike), False, False
    of_annotate = is_path and is_journal(Path(source))
    choices: Sequence[str] = ()
    if of_annotate:
        path, journal = str(source), read_journal(Path(source))
        if "rubrics" in journal.start:
            # The user names the rubric as the field "rating", which is then no name of a column.
            journal = journal.select_rubric(fields.pop("rating", None))
        pairs = journal.start.get("pairs") is True
        choices = () if pairs else journal.choices
        # Choices that are all numbers are levels; words without an order stay categories.
        numeric = all(_parse_rating(choice) is not None for choice in choices)
        rows = journal.last_states()
        # Levels of the user win over those of the rubric.
        levels = levels or journal.levels or (choices if numeric else ())
        unequal = journal.start.get("chances") == UNEQUAL
    else:
        wanted = {"item", "id", *fields.values(), *raters}
        table = read_answer_table(source, wanted, sheet, longest_line)
        path, rows = table.name, table.list_records()
    if not rows:
        raise InputError(f"{path}: contains no ratings")
    # Step 3: the columns, and whether the table is long or wide.
    columns = list(dict.fromkeys(key for _, row in rows for key in row))
    column_names = _find_columns(path, columns, fields)
    # The user's raters may be columns although the table also has a column "rater".
    by_column = bool(raters) and not of_annotate and set(raters) <= set(columns)
    chosen = raters
    if long := "rater" in column_names and "rating" in column_names and not by_column:
        raters_present = {
            name for _, row in rows if (name := _read_text(row.get(column_names["rater"])))
        }
        if strange := [name for name in raters if name not in raters_present]:
            raise InputError(f"{path}: {did_you_mean('rater', strange[0], raters_present)}")
    else:
        # A column of words is a rater where it is called rating or label, and no other column is.
        rating_column = [column_names["rating"]] if "rating" in column_names else []
        chosen = raters or _find_rater_columns(rows, columns, column_names) or rating_column
        strange = [name for name in chosen if not _is_column(name, columns)]
        raise_faults([f"{path}: {did_you_mean('column', name, columns)}" for name in strange])
        if not chosen:
            raise InputError(
                f"{path}: expected columns rater and rating, or a column of numbers for each "
                f"rater (name it with --rater); the file has {', '.join(columns)}"
            )
    # Step 4: one cell for each rating, then the ratings themselves. Empty cells are only counted.
    cells = list(_read_cells(rows, column_names, chosen, faults, long=long))
    filled = [cell for cell in cells if cell.text]
    result = _build_ratings(path, filled, faults, levels, choices)
    # An empty cell of a table was not rated; an answer without a rating in a journal was skipped.
    skipped = {(c.item, c.model, c.rater) for c in cells if not c.text} if of_annotate else set()
    judged = {(rating.item, rating.model, rating.rater) for rating in result.ratings}
    return replace(
        result,
        missing_count=result.missing_count + len(cells) - len(filled),
        pairs=pairs,
        wide=not long,
        has_unequal_chances=unequal,
        undecided={*result.undecided, *skipped} - judged,
    )


def _find_columns(path: str, columns: Sequence[str], fields: Mapping[str, str]) -> dict[str, str]:
    """Return the names of columns by field."""
    result = dict(fields)
    for what, usual_names in RATING_FIELDS.items():
        if what not in fields and (
            names_present := [name for name in usual_names if name in columns]
        ):
            result[what] = names_present[0]
    wanted = [fields[what] for what in RATING_FIELDS if what in fields]
    strange = [column for column in wanted if not _is_column(column, columns)]
    raise_faults([f"{path}: {did_you_mean('column', column, columns)}" for column in strange])
    if "item" not in result:
        raise InputError(
            f"{path}: expected a column item or id, or --field item=COLUMN; the file has "
            f"{', '.join(columns)[:200]}"
        )
    return result


def _find_rater_columns(
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    columns: Sequence[str],
    column_names: Mapping[str, str],
) -> list[str]:
    columns_of_fields = {
        column_names[what] for what in ("item", "repeat", "model", "note") if what in column_names
    }
    columns_of_fields.update(RATING_FIELDS["item"])
    result = []
    for column in columns:
        texts = [_read_text(row.get(column)) for _, row in rows]
        filled = [text for text in texts if not (is_missing(text) or is_undecided(text))]
        numbers = [text for text in filled if _parse_rating(text) is not None]
        are_numbers = bool(filled) and len(numbers) >= MIN_READABLE_SHARE * len(filled)
        if are_numbers and column not in columns_of_fields:
            result.append(column)
    return result


def _read_cells(
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    column_names: Mapping[str, str],
    chosen: Sequence[str],
    faults: list[str],
    *,
    long: bool,
) -> Iterator[_RatingCell]:
    """Yield the cells with ratings, some of them empty.

    Args:
        rows: the rows, each with its place.
        column_names: names of columns by field.
        chosen: for a long table the only raters to read, if any; for a wide one its columns.
        faults: a list to which rows without an item or a rater are added.
        long: whether the table is a long one.
    """
    columns = [(name, name) for name in chosen]
    for where, row in rows:
        cell = dict.fromkeys(RATING_FIELDS, "")
        cell |= {what: _read_text(_get_cell(row, c)) for what, c in column_names.items()}
        # Only the raters that the user names are read.
        if long and chosen and cell["rater"] not in chosen:
            continue
        if long:
            columns = [(cell["rater"], column_names["rating"])]
        # A long table of all answers has rows that nobody rated.
        if long and not cell["rater"] and not _read_text(_get_cell(row, column_names["rating"])):
            continue
        if not cell["item"] or (long and not cell["rater"]):
            faults.append(f"{where}: expected an item{' and a rater' if long else ''}")
            continue
        repeat_model_note = cell["repeat"], cell["model"], cell["note"] if long else ""
        # A long row has one rating, a wide row one for each rater.
        for rater, column in columns:
            yield _RatingCell(
                where, cell["item"], rater, _read_text(_get_cell(row, column)), *repeat_model_note
            )


def _build_ratings(
    path: str,
    cells: Sequence[_RatingCell],
    faults: list[str],
    levels: Sequence[str],
    choices: Sequence[str],
) -> Ratings:
    """Turn cells into ratings: numbers, or words by their index.

    Args:
        path: the file, for messages.
        cells: the cells with a text.
        faults: the faults so far; ratings that do not fit are added, and all are raised.
        levels: the levels of the scale, if the user or the rubric gives any.
        choices: all words that could be given, if they have no order and are known.
    """
    numbers = [_parse_rating(cell.text) for cell in cells]
    scale, categories = _read_levels(levels)
    number_count = len(numbers) - numbers.count(None)
    word_count = sum(read_word(cell.text) is not None for cell in cells)
    # 1 and 0 beside yes and no are words as well; a single 4 among words is a mistake.
    if not levels and (not number_count or word_count > number_count):
        categories = sorted({text.lower() for text in (*choices, *(c.text for c in cells))})
        # One rater writes yes, another 1 or true.
        if len(categories) > 2 and {fold_label(text) for text in categories} <= YES | NO:
            cells = [replace(c, text="yes" if fold_label(c.text) in YES else "no") for c in cells]
            categories = ["no", "yes"]
        scale = tuple(map(float, range(len(categories)))) if choices else ()
    readable: list[tuple[_RatingCell, float]] = []
    unread_cells, missing_count = [], 0
    for cell, number in zip(cells, numbers, strict=True):
        if categories and cell.text.lower() in categories:
            readable.append((cell, float(categories.index(cell.text.lower()))))
        elif not categories and number is not None and (not levels or number in scale):
            readable.append((cell, number))
        elif is_missing(cell.text):
            missing_count += 1
        else:
            unread_cells.append(cell)
    # A few ratings that are no numbers or levels are left out; many show a wrong column or scale.
    unread = UnreadLabels.of(
        ((cell.text, cell.where) for cell in unread_cells), len(readable) + len(unread_cells)
    )
    if unread.too_many:
        faults += [
            f"{cell.where}: rating: expected one of the levels {', '.join(levels)[:80]}, got "
            f"{cell.text[:40]!r}"
            if levels
            else f"{cell.where}: rating: expected a number like the other ratings, got "
            f"{cell.text[:40]!r}"
            for cell in unread_cells
            if not is_undecided(cell.text)
        ]
    repeats = _number_repeats([cell for cell, _ in readable], faults)
    raise_faults(faults)
    if not readable:
        raise InputError(f"{path}: contains no ratings")
    result = []
    for (cell, value), repeat in zip(readable, repeats, strict=True):
        names = clean(cell.item), clean(cell.rater)
        result.append(Rating(*names, value, repeat, clean(cell.model), clean(cell.note)))
    return Ratings(
        result,
        tuple(categories),
        bool(levels) or not categories,
        scale,
        missing_count,
        unread if unread.count else None,
        undecided={(clean(c.item), clean(c.model), clean(c.rater)) for c in unread_cells},
    )


def _read_levels(levels: Sequence[str]) -> tuple[tuple[float, ...], list[str]]:
    """Return the values of a scale, the lowest first, and its words if it consists of words.

    Raises:
        InputError: a level is named twice, or a range has fewer than two levels or too many.
    """
    texts = [level.strip().lower() for level in levels]
    if len(texts) == 1 and (ends := re.fullmatch(r"(-?\d{1,9})\.\.(-?\d{1,9})", texts[0])):
        low, high = int(ends[1]), int(ends[2])
        if not low < high <= low + MAX_RANGE_LEVELS - 1:
            raise InputError(
                f"levels: expected a range of 2 to {MAX_RANGE_LEVELS} levels, for example 1..5, "
                f"got {texts[0]}"
            )
        texts = [str(level) for level in range(low, high + 1)]
    if not texts:
        return (), []
    numbers = [number for text in texts if (number := _parse_rating(text)) is not None]
    # Numbers are compared as numbers, so "1" and "1.0" are the same level.
    numeric = len(numbers) == len(texts)
    if twice := [
        text for text, count in Counter(numbers if numeric else texts).items() if count > 1
    ]:
        raise InputError(f"levels: {twice[0]} is named twice; expected each level once")
    if numeric:
        return tuple(sorted(numbers)), []
    return tuple(map(float, range(len(texts)))), texts


def _number_repeats(cells: Sequence[_RatingCell], faults: list[str]) -> list[int]:
    """Return the index of each cell among the ratings of its item by its rater.

    The order is that of the column ``repeat``, or else that of the file. A repeat that occurs
    twice, or only in some of the cells, is a fault.
    """
    groups: dict[tuple[str, str, str], list[int]] = {}
    for place, cell in enumerate(cells):
        groups.setdefault((cell.item, cell.model, cell.rater), []).append(place)
    result = [0] * len(cells)
    for places in groups.values():
        repeat_numbers = {place: _parse_rating(cells[place].repeat) for place in places}
        repeats_so_far: set[float | str] = set()
        for place in places:
            cell = cells[place]
            whose = f"{cell.where}: {cell.rater[:40]!r} rated {cell.item[:40]!r}"
            # A missing number among numbered ones leaves the order open.
            if bool(cell.repeat) != bool(cells[places[0]].repeat):
                faults.append(
                    f"{whose} with and without a repeat; expected a repeat in all of these rows, "
                    "or in none"
                )
                continue
            number = repeat_numbers[place]
            repeat = cell.repeat if number is None else number
            if cell.repeat and repeat in repeats_so_far:
                faults.append(f"{whose} twice with the repeat {cell.repeat[:20]!r}")
            repeats_so_far.add(repeat)
        # Repeats that are not numbers keep the order of the file.
        if all(number is not None for number in repeat_numbers.values()):
            places.sort(key=lambda place: repeat_numbers[place] or 0.0)
        for order, place in enumerate(places):
            result[place] = order
    return result


def _is_column(name: str, columns: Collection[str]) -> bool:
    """Whether a name is that of a column, or of a field in an object there (``user.feedback``)."""
    return name in columns or name.partition(".")[0] in columns


def _get_cell(row: Mapping[str, Any], column: str) -> Any:
    value = reach(row, column)
    return None if value is ABSENT else value


def _read_text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value).strip()


def _parse_rating(text: str) -> float | None:
    number = parse_number(text)
    return number if number is not None and abs(number) <= MAX_LABEL else None

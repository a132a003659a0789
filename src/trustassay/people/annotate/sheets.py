"""CSV sheets for people who rate in a spreadsheet: written for each rater, and read back."""

import asyncio
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trustassay.core.files import open_atomic
from trustassay.input.records import InputError
from trustassay.people.annotate.project import AnnotationProject, RatingScale, RatingStep
from trustassay.people.annotate.session import MAX_NOTE_CHARS, AnnotationSession
from trustassay.report.document import defuse_formula

KEY_COLUMN, RATING_COLUMN, NOTE_COLUMN = "key", "rating", "note"
"""Names of columns; with several rubrics there is a column ``rating RUBRIC`` for each."""
MAX_CELL_CHARS = 2**27
MAX_FAULTS_LISTED = 20


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A rating in a sheet that was filled in."""

    rater: str
    step: int
    """The place of the step among those of the rater."""
    choice: str
    """The choice, as :meth:`AnnotationSession.rate` takes it."""
    note: str


def write_sheets(project: AnnotationProject, path: Path) -> list[Path]:
    """Write a sheet for each rater, and return their paths.

    Like the page, sheets do not show models, scores or ids. A single sheet is written to ``path``,
    several to ``NAME-RATER.csv``.

    Raises:
        InputError: a file exists and may hold ratings; nothing is written then.
        OSError: a file cannot be written.
    """
    result = [path.with_name(f"{path.stem}-{rater}{path.suffix}") for rater in project.steps]
    result = [path] if len(result) == 1 else result
    if existing_files := [target for target in result if target.exists()]:
        raise InputError(
            f"{existing_files[0]}: the file exists and would be overwritten; choose another "
            "--export, or remove the file"
        )
    for target, (rater, steps) in zip(result, project.steps.items(), strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(target, private=False) as file:
            # With a byte order mark, as Excel reads other files in a legacy encoding.
            text = io.TextIOWrapper(file, "utf-8-sig", newline="", write_through=True)
            rows = csv.writer(text)
            answers = ["first", "second"] if project.pairs else ["answer"]
            gold = ["gold"] if project.options.shows_gold else []
            header = [
                KEY_COLUMN,
                *_rating_columns(project),
                NOTE_COLUMN,
                "question",
                *answers,
                *gold,
                "passages",
            ]
            rows.writerow(header)
            for place, step in enumerate(steps):
                # Answers are hostile input: a cell like "=HYPERLINK(...)" must not run in a
                # spreadsheet.
                cells = [defuse_formula(cell) for cell in _build_cells(project, step)]
                empty = [""] * (len(_rating_columns(project)) + 1)
                # The key identifies rater and step, so that rows may be sorted or deleted.
                rows.writerow([project.row_key(rater, place), *empty, *cells])
            # Otherwise the wrapper closes the file before it is renamed into place.
            text.detach()
    return result


def _remove_defusing(cell: str) -> str:
    """Remove the quote that :func:`defuse_formula` put before a cell that looks like a formula."""
    return cell[1:] if cell.startswith("'") and defuse_formula(cell[1:]) != cell[1:] else cell


def _rating_columns(project: AnnotationProject) -> dict[str, RatingScale]:
    """Return the scale of each column of ratings."""
    if len(project.scales) == 1:
        return {RATING_COLUMN: project.scales[0]}
    return {f"{RATING_COLUMN} {scale.name}".lower(): scale for scale in project.scales}


def _build_cells(project: AnnotationProject, step: RatingStep) -> list[str]:
    item = project.items[step.item]
    golds = "\n".join(" / ".join(aliases) for aliases in item.golds)
    gold = [golds] if project.options.shows_gold else []
    passages = "\n\n".join(
        f"[{number}] {document.title}\n{document.text}"
        for number, document in enumerate(item.documents, 1)
    )
    return [item.question, *item.shown_answers(swapped=step.swapped), *gold, passages]


def read_sheet(project: AnnotationProject, path: Path) -> list[SheetRow]:
    """Read the rows of a sheet that hold a rating, in any order; other columns are ignored.

    Raises:
        InputError: the file is no such sheet, or rows have faults; the message names row and column
            of each. None of its ratings should be stored then.
    """
    step_by_key = {
        project.row_key(rater, place): (rater, place)
        for rater, steps in project.steps.items()
        for place in range(len(steps))
    }
    columns = _rating_columns(project)
    result, faults, keys_read = [], [], set()
    for number, cells in _read_rows(path, list(columns)):
        where = f"{path}: row {number}"
        key = cells[KEY_COLUMN].strip()
        ratings_by_column = {name: cells[name].strip() for name in columns if cells[name].strip()}
        if not ratings_by_column:
            continue
        if key not in step_by_key:
            faults.append(
                f"{where}: {KEY_COLUMN}: {key[:20]!r} does not belong to this input with these "
                "options and raters"
            )
            continue
        if key in keys_read:
            faults.append(f"{where}: {KEY_COLUMN}: {key!r} is already rated in an earlier row")
        keys_read.add(key)
        note = _remove_defusing(cells.get(NOTE_COLUMN, "").strip())
        if len(note) > MAX_NOTE_CHARS:
            faults.append(
                f"{where}: {NOTE_COLUMN}: expected at most {MAX_NOTE_CHARS:,} characters, got "
                f"{len(note):,}"
            )
        for name, rating in ratings_by_column.items():
            scale = columns[name]
            # Spreadsheets may write 4 as 4.0, which the scale accepts.
            choice = scale.parse_cell(_remove_defusing(rating))
            if choice is None:
                offered = ", ".join(choice_of_scale.value for choice_of_scale in scale.choices)
                faults.append(f"{where}: {name}: expected one of {offered}, got {rating[:40]!r}")
                continue
            result.append(
                SheetRow(
                    *step_by_key[key],
                    f"{scale.name}/{choice}" if len(columns) > 1 else choice,
                    note,
                )
            )
    # All faults are collected first: whoever filled in the sheet fixes them in one go.
    if faults:
        more = len(faults) - MAX_FAULTS_LISTED
        message = "\n".join(faults[:MAX_FAULTS_LISTED]) + (
            f"\n... {more:,} more" if more > 0 else ""
        )
        raise InputError(f"{message}\nnothing was stored")
    return result


def _read_rows(path: Path, ratings: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows with their numbers as a spreadsheet counts them, from 1 for the header."""
    # The default limit of 128 KiB is smaller than some cells with passages.
    csv.field_size_limit(MAX_CELL_CHARS)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start + 1} is not UTF-8; save it as CSV in UTF-8"
        ) from None
    first = text.partition("\n")[0]
    # Spreadsheets choose the delimiter by the language of the system.
    delimiter = max(",;\t", key=first.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number = 0
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        if not {KEY_COLUMN, *ratings} <= set(header):
            wanted = " and ".join((KEY_COLUMN, *ratings))
            raise InputError(
                f"{path}: row 1: expected the columns {wanted}, as --export writes them, "
                f"got {', '.join(header)[:200] or 'nothing'}"
            )
        number = 1
        for number, cells in enumerate(rows, 2):
            if any(cell.strip() for cell in cells):
                if len(cells) > len(header):
                    raise InputError(f"{path}: row {number}: has more cells than the header")
                # Spreadsheets drop empty cells at the end of a row.
                padded = [*cells, *[""] * (len(header) - len(cells))]
                yield number, dict(zip(header, padded, strict=True))
    except csv.Error as error:
        raise InputError(f"{path}: row {number + 1}: not valid CSV ({error})") from None


async def store_rows(session: AnnotationSession, rows: Sequence[SheetRow]) -> int:
    """Store ratings of sheets together; return how many are new or different."""
    # Started together, so the file is synchronised once and not for each rating.
    rates = [session.rate(row.rater, row.step, row.choice, row.note) for row in rows]
    return sum(await asyncio.gather(*rates))

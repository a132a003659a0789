"""Sheets for those who rate in a spreadsheet: a CSV for each rater, and the way back."""

import asyncio
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trustassay.data.records import InputError
from trustassay.files import whole
from trustassay.show.document import defused
from trustassay.workflows.annotate.project import Project, Scale, Step
from trustassay.workflows.annotate.session import LONGEST_NOTE, Session

KEY, RATING, NOTE = "key", "rating", "note"
"""Columns; with several rubrics there is a column ``rating RUBRIC`` for each."""
MAX_CELL_CHARS = 2**27
MAX_FAULTS_LISTED = 20


@dataclass(frozen=True, slots=True)
class Row:
    """A rating of a sheet that came back. choice: as of :meth:`Session.rate`."""

    rater: str
    step: int
    choice: str
    note: str


def write_sheets(project: Project, path: Path) -> list[Path]:
    """Write a sheet for each rater, blind as the page is, and return their paths: ``path``, or
    ``NAME-RATER.csv`` where there are several raters.

    Raises:
        InputError: there is such a file, which may hold ratings; nothing is written then.
        OSError: a file cannot be written.
    """
    result = [path.with_name(f"{path.stem}-{rater}{path.suffix}") for rater in project.steps]
    result = [path] if len(result) == 1 else result
    if existing_files := [target for target in result if target.exists()]:
        raise InputError(
            f"{existing_files[0]}: this file exists, and what it holds would be lost; choose another "
            "--export, or remove it"
        )
    for target, (rater, steps) in zip(result, project.steps.items(), strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole(target) as file:
            text = io.TextIOWrapper(file, "utf-8-sig", newline="", write_through=True)
            rows = csv.writer(text)
            answers = ["first", "second"] if project.pairs else ["answer"]
            gold = ["gold"] if project.options.shows_gold else []
            header = [KEY, *_rating_columns(project), NOTE, "question", *answers, *gold, "passages"]
            rows.writerow(header)
            for place, step in enumerate(steps):
                cells = [defused(cell) for cell in _build_cells(project, step)]
                empty = [""] * (len(_rating_columns(project)) + 1)
                rows.writerow([project.row_key(rater, place), *empty, *cells])
            text.detach()
    return result


def _remove_defusing(cell: str) -> str:
    """Return a cell without what :func:`defused` put before it."""
    return cell[1:] if cell.startswith("'") and defused(cell[1:]) != cell[1:] else cell


def _rating_columns(project: Project) -> dict[str, Scale]:
    """Return the columns of ratings, each with its scale."""
    if len(project.scales) == 1:
        return {RATING: project.scales[0]}
    return {f"{RATING} {scale.name}".lower(): scale for scale in project.scales}


def _build_cells(project: Project, step: Step) -> list[str]:
    item = project.items[step.item]
    golds = "\n".join(" / ".join(aliases) for aliases in item.golds)
    gold = [golds] if project.options.shows_gold else []
    passages = "\n\n".join(
        f"[{number}] {document.title}\n{document.text}"
        for number, document in enumerate(item.documents, 1)
    )
    return [item.question, *item.sides(swapped=step.swapped), *gold, passages]


def read_sheet(project: Project, path: Path) -> list[Row]:
    """Read the rows of a sheet that hold a rating; any order, other columns are left alone.

    Raises:
        InputError: the file is not such a sheet, or rows of it have faults: names row and column of
            each. Nothing of it should be stored then.
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
        key = cells[KEY].strip()
        ratings_by_column = {name: cells[name].strip() for name in columns if cells[name].strip()}
        if not ratings_by_column:
            continue
        if key not in step_by_key:
            faults.append(
                f"{where}: {KEY}: {key[:20]!r} is not of this input with these options and raters"
            )
            continue
        if key in keys_read:
            faults.append(f"{where}: {KEY}: {key!r} is already rated in an earlier row")
        keys_read.add(key)
        note = _remove_defusing(cells.get(NOTE, "").strip())
        if len(note) > LONGEST_NOTE:
            faults.append(f"{where}: {NOTE}: has {len(note):,} characters, of {LONGEST_NOTE:,}")
        for name, rating in ratings_by_column.items():
            scale = columns[name]
            choice = scale.choice_named(_remove_defusing(rating))
            if choice is None:
                offered = ", ".join(choice_of_scale.value for choice_of_scale in scale.choices)
                faults.append(f"{where}: {name}: expected one of {offered}, got {rating[:40]!r}")
                continue
            result.append(
                Row(
                    *step_by_key[key],
                    f"{scale.name}/{choice}" if len(columns) > 1 else choice,
                    note,
                )
            )
    if faults:
        more = len(faults) - MAX_FAULTS_LISTED
        message = "\n".join(faults[:MAX_FAULTS_LISTED]) + (
            f"\n... {more:,} more" if more > 0 else ""
        )
        raise InputError(f"{message}\nnothing was stored")
    return result


def _read_rows(path: Path, ratings: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows with their numbers, as a spreadsheet counts them."""
    csv.field_size_limit(MAX_CELL_CHARS)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start + 1} is not UTF-8; save it as CSV in UTF-8"
        ) from None
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)  # spreadsheets write what their language does
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number = 0
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        if not {KEY, *ratings} <= set(header):
            wanted = " and ".join((KEY, *ratings))
            raise InputError(
                f"{path}: row 1: expected the columns {wanted}, as --export writes them, "
                f"got {', '.join(header)[:200] or 'nothing'}"
            )
        number = 1
        for number, cells in enumerate(rows, 2):
            if any(cell.strip() for cell in cells):
                if len(cells) > len(header):
                    raise InputError(f"{path}: row {number}: more cells than the header names")
                padded = [*cells, *[""] * (len(header) - len(cells))]
                yield number, dict(zip(header, padded, strict=True))
    except csv.Error as error:
        raise InputError(f"{path}: row {number + 1}: is not CSV ({error})") from None


async def store_rows(session: Session, rows: Sequence[Row]) -> int:
    """Store ratings of sheets, with one wait for the disk; return how many are new or different."""
    rates = [session.rate(row.rater, row.step, row.choice, row.note) for row in rows]
    return sum(await asyncio.gather(*rates))

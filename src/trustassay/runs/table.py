"""The assessments of a run as a table, ``assessments.parquet``."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import arro3.io
from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema

from trustassay.files import whole
from trustassay.runs.calibrated import Calibrated
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import Line, Step, nothing
from trustassay.sample import clean

__all__ = ["write_parquet"]

ROWS = 4096
BATCH_BYTES = 1 << 22
"""About how much evidence is held at once while the table is written."""

_COLUMNS: dict[str, Any] = {
    "id": DataType.string(),
    "metric": DataType.string(),
    "score": DataType.float64(),
    "verdict": DataType.string(),
    "reason": DataType.string(),
    "error": DataType.string(),
    "evidence": DataType.string(),
}


def write_parquet(
    folder: RunFolder,
    parts: Sequence[str],
    step: Step = nothing,
    calibrated: Calibrated | None = None,
) -> None:
    """Write the assessments as a table: one column per part (``parts.NAME``), evidence as JSON.

    ``parts`` names all of them. With ``calibrated`` each line has the answer's ``probability`` of
    being right, and whether it is ``accepted``.
    """
    types = _COLUMNS | {f"parts.{name}": DataType.float64() for name in parts}
    if calibrated:
        types |= {"probability": DataType.float64(), "accepted": DataType.bool()}
    schema = Schema([Field(name, kind, nullable=True) for name, kind in types.items()])
    batches = (
        _batch(lines, types, schema) for lines in _batches(_chances(folder, calibrated), step)
    )
    with whole(folder.parquet_path) as file:
        target = _Target(file)
        arro3.io.write_parquet(
            RecordBatchReader.from_batches(schema, batches),
            target,
            compression="zstd(1)",
            max_row_group_size=ROWS,
        )
        if target.error:
            raise target.error


class _Target(io.RawIOBase):
    """Keeps the first error of a file, as arro3 panics at one, on standard error."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        """Say that it can be written."""
        return True

    def write(self, data: Any) -> int:
        """Write to the file, or keep the error."""
        try:
            self._file.write(data)
        except OSError as error:
            self.error = self.error or error
        return len(data)

    def flush(self) -> None:
        """Leave it to the block that opened the file."""


def _chances(folder: RunFolder, calibrated: Calibrated | None) -> Iterator[tuple[int, Line]]:
    """Yield the lines, with what a calibrator says of the answer among their fields."""
    if calibrated is None:
        yield from folder.lines()
        return
    number, sample = -1, None
    for offset, line in folder.lines():
        if line.fields["id"] != sample:
            number, sample = number + 1, line.fields["id"]
        chance = calibrated.of(number)
        told = {"probability": chance.probability, "accepted": chance.accepted}
        yield offset, line._replace(fields={**line.fields, **told})


def _batches(lines: Iterable[tuple[int, Line]], step: Step) -> Iterator[list[Line]]:
    batch: list[Line] = []
    held = 0
    for _, line in lines:
        batch.append(line)
        held += len(line.evidence)
        if len(batch) == ROWS or held >= BATCH_BYTES:
            yield batch
            batch, held = [], 0
        step()
    if batch:
        yield batch


def _batch(lines: Sequence[Line], types: Mapping[str, Any], schema: Any) -> RecordBatch:
    rows = [line.fields for line in lines]
    columns: dict[str, list[Any]] = {
        name: [_storable(row[name]) for row in rows] for name in _COLUMNS if name != "evidence"
    }
    columns["evidence"] = [line.evidence_text() for line in lines]
    for name in types.keys() & {"probability", "accepted"}:
        columns[name] = [row[name] for row in rows]
    for name in types.keys() - columns.keys():
        columns[name] = [row["parts"].get(name.removeprefix("parts.")) for row in rows]
    arrays = [Array(columns[name], kind) for name, kind in types.items()]
    return RecordBatch.from_arrays(arrays, schema=schema)


def _storable(value: Any) -> Any:
    return clean(value) if isinstance(value, str) else value

"""Files of JSON lines with one row per answer, and what identifies a row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ResultRow = dict[str, Any]
RowKey = tuple[str, str, str]
RUN = "run"
"""The measurement of rows that describe a run and not an answer."""


def key_of(row: Mapping[str, Any]) -> RowKey:
    """Return what identifies a row: its measurement, set and id."""
    return row["measure"], row["set"], row["id"]


def digest(*texts: str) -> str:
    """Return a short hash of texts; it stands for documents that may not be passed on."""
    joined = json.dumps(texts).encode()
    return hashlib.blake2b(joined, digest_size=8).hexdigest()


def read_rows(pattern: str | Path) -> dict[RowKey, ResultRow]:
    """Return the rows of a file, or of all files that match a pattern such as ``before-*.jsonl``.

    Of rows with one key the last counts. A last line that an interrupted run left unfinished is
    skipped, so that its answer is scored again.

    Raises:
        FileNotFoundError: no file matches.
    """
    pattern = Path(pattern)
    paths = sorted(pattern.parent.glob(pattern.name))
    if not paths:
        raise FileNotFoundError(f"no file matches {pattern}; write one with `run --out {pattern}`")
    rows = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                row = json.loads(line)
                rows[key_of(row)] = row
    return rows


def append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows to a file; an unfinished last line of an interrupted run is removed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.seek(0)
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def rows_of(rows: Mapping[RowKey, ResultRow], measure: str) -> list[ResultRow]:
    """Return the rows of a measurement, in the order of the file."""
    return [row for key, row in rows.items() if key[0] == measure]


def pair_rows(
    before: Mapping[RowKey, ResultRow], after: Mapping[RowKey, ResultRow], measure: str
) -> tuple[list[tuple[ResultRow, ResultRow]], int]:
    """Return the rows of a measurement that both files hold, and how many were left out.

    A row is left out if one file lacks it, or if its sample differs (``sample`` is a digest of the
    question, the answer and the passages): a difference would then be one of the data.
    """
    keys = {key for key in (*before, *after) if key[0] == measure}
    pairs = [
        (row, after[key])
        for key, row in before.items()
        if key in keys and key in after and row.get("sample") == after[key].get("sample")
    ]
    return pairs, len(keys) - len(pairs)


def group_by(rows: Iterable[ResultRow], field: str) -> dict[str, list[ResultRow]]:
    """Return rows by the value of a field, in the order in which values first occur."""
    groups: dict[str, list[ResultRow]] = {}
    for row in rows:
        groups.setdefault(str(row[field]), []).append(row)
    return groups


def missing_from(
    answers: Sequence[Mapping[str, Any]], rows: Mapping[RowKey, ResultRow]
) -> list[Mapping[str, Any]]:
    """Return the answers that have no row yet."""
    return [answer for answer in answers if key_of(answer) not in rows]

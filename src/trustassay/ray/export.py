"""``trustassay export``: write the table of a finished run as Parquet, in folders like its input's.

1. Refuse a folder that holds other files; mark an earlier export in ``_trustassay.json`` as
   incomplete.
2. Write the new files.
3. Remove the files of the earlier export.
4. List the valid files in ``_trustassay.json``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from trustassay.core.progress import SILENT, StepProgress
from trustassay.core.sample import clean
from trustassay.errors import RunFolderError, UsageError
from trustassay.input.places import find_place, list_files, list_record_files, read_folder_keys
from trustassay.input.urls import describe_error, file_system, refuse_secret
from trustassay.ray.store import Store
from trustassay.runs.folder import RunFolder
from trustassay.runs.units import read_domain

LIST_FILE = "_trustassay.json"
NO_FOLDERS = "none"
"""The value of ``by`` for a single folder."""
EMPTY_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The folder of rows without a value, as Hive, Spark and DuckDB name it."""
MAX_FILE_ROWS = 100_000
"""Maximum number of rows in a file."""
MAX_WAITING_BYTES = 2**26
"""Maximum bytes of rows that wait to be written, over all folders."""
MAX_FOLDER_CHARS = 200
"""Maximum characters of a folder's name, ``FIELD=VALUE``; most file systems allow 255 bytes."""
MAX_FOLDERS = 10_000
"""Maximum number of folders."""
# Only files with such a name are ever removed, as `part-0a1b2c3d-00000.parquet`.
_EXPORTED_FILE = re.compile(r"part-[0-9a-f]{8}-\d{5}\.parquet")
FolderKey = tuple[str, ...]


@dataclass(frozen=True)
class ExportResult:
    """What an export wrote."""

    to: str
    """The folder or URL."""
    by: Sequence[str]
    """The fields that the folders are named after."""
    files: int
    """The number of files."""
    rows: int
    """The number of rows."""


def export(run: Path, to: str, by: str | None = None, steps: StepProgress = SILENT) -> ExportResult:
    """Write the table of a run, a row for each answer and metric, as Parquet below ``to``.

    ``by`` are fields of the samples, or columns, with commas: each value has a folder
    ``FIELD=VALUE``, and is no column of the files in it. Default: the folders of the run's input.

    Raises:
        RunFolderError: there is no finished run.
        UsageError: ``to`` holds other files, or cannot be written; a field is none, or has too many
            or too long values; the folders of the input cannot be listed.
    """
    folder = RunFolder(run)
    content, _ = folder.read_finished()
    if not folder.parquet_path.exists():
        raise RunFolderError(
            f"{folder.parquet_path}: is missing; run the command of this run again to write it"
        )
    names = _read_partitions(content["input"]) if by is None else _split_names(by)
    with folder.parquet_path.open("rb") as file:
        # The tag in the names follows from the table: exporting the same table again writes the
        # same names, and a changed table never overwrites a file that the list calls valid.
        tag = hashlib.file_digest(file, "sha256").hexdigest()[:8]
    refuse_secret(to)
    target, metrics, samples = _ExportTarget(to), len(content["metrics"]), content["samples"]
    target.begin()
    with (
        TemporaryDirectory(prefix="trustassay-") as temporary_folder,
        steps.begin("writing the table", metrics * samples["samples"]) as step,
    ):
        writer = _PartWriter(target.store, Path(temporary_folder), names, tag)
        try:
            for batch, keys in _read_batches(folder, names, metrics):
                writer.add(batch, keys)
                for _ in keys:
                    step()
            writer.close()
        # Also on Ctrl-C: the earlier export must stay readable.
        except BaseException:
            target.undo(writer.files)
            raise
    target.end(writer.files, {"run": samples["sha256"], "by": names, "rows": writer.rows})
    return ExportResult(to, names, len(writer.files), writer.rows)


def _split_names(by: str) -> list[str]:
    names = [name.strip() for name in by.split(",") if name.strip()]
    return [] if names == [NO_FOLDERS] else names


def _read_partitions(source: str) -> list[str]:
    """Return the names ``KEY`` of the folders ``KEY=VALUE`` that every file of an input lies in."""
    if (location := find_place(source)) is not None:
        files: Mapping[str, Any] = location.files
        # A table (SQL, Delta, Iceberg) has no folders.
        if location.table:
            return []
    else:
        path = Path(source)
        files = list_files(path) if path.is_dir() else {"": path} if path.is_file() else {}
    if not files:
        raise UsageError(
            f"export: {source:.200}: the input was moved, or consists of several inputs, so its "
            f"folders are not known; set --by FIELD,..., or --by {NO_FOLDERS}"
        )
    # A single file is listed under the empty path: it has no folders.
    if "" in files:
        return []
    keys = [read_folder_keys(path) for path in list_record_files(files, source)]
    return [name for name in keys[0] if all(name in keys_of_file for keys_of_file in keys)]


def _read_batches(
    folder: RunFolder, names: Sequence[str], metrics: int
) -> Iterator[tuple[Any, list[FolderKey]]]:
    """Yield batches of the run's table and the folder of each row.

    A sample has one row for each of the ``metrics``.

    Raises:
        RunFolderError: table and samples do not belong together.
        UsageError: a field is in no sample.
    """
    from arro3.io import read_parquet

    # The table is in the order of the samples, so both are read side by side in constant memory.
    records = (sample_record for sample_record in folder.sample_records() for _ in range(metrics))
    value_counts: Counter[str] = Counter()
    with folder.parquet_path.open("rb") as file:
        for batch in read_parquet(file):
            used = {"id", *names}.intersection(batch.column_names)
            columns = {name: batch.column(name).to_pylist() for name in used}
            keys = []
            for row, (sample, record) in enumerate(zip(columns["id"], records, strict=False)):
                # A table of an earlier state of the run would put rows into the wrong folders.
                if clean(str(record["id"])) != sample:
                    message = f"has {record['id']!r:.80} where the table has {sample!r:.80}"
                    raise RunFolderError(f"{folder.samples_path}: {message}")
                path_values = [
                    columns[n][row] if n in columns else read_domain(record, n) for n in names
                ]
                value_counts.update(
                    n for n, value in zip(names, path_values, strict=True) if value is not None
                )
                keys.append(tuple(map(_name_folder, names, path_values)))
            if len(keys) < batch.num_rows:
                raise RunFolderError(f"{folder.samples_path}: has fewer samples than the table")
            yield batch, keys
    # Known only at the end; the caller removes what was written.
    if unused_names := [name for name in names if not value_counts[name]]:
        raise UsageError(f"--by: no sample has the field {unused_names[0]!r}")


def _name_folder(name: str, value: Any) -> str:
    text = EMPTY_PARTITION if value in (None, "") else str(value)
    result = f"{quote(name, safe='')}={quote(text, safe='')}"
    if len(result) > MAX_FOLDER_CHARS:
        message = f"{name} has a value of {len(text):,} characters ({text[:40]!r}...), which is"
        raise UsageError(f"--by: {message} too long for a folder's name; choose another field")
    return result


@dataclass
class _PartWriter:
    """Collects rows by folder and writes a file when a folder has many rows or all have many bytes.

    ``files`` and ``rows`` count what was written so far. ``tag`` is part of the files' names.
    """

    store: Store
    temporary_folder: Path
    names: Sequence[str]
    tag: str
    files: list[str] = field(default_factory=list)
    rows: int = 0
    _batches_waiting: dict[FolderKey, list[Any]] = field(default_factory=dict)
    _bytes_waiting: Counter[FolderKey] = field(default_factory=Counter)
    _rows_waiting: Counter[FolderKey] = field(default_factory=Counter)
    _file_numbers: Counter[FolderKey] = field(default_factory=Counter)

    def add(self, batch: Any, keys: Sequence[FolderKey]) -> None:
        """Add the rows of a batch; ``keys`` holds the folder of each."""
        from arro3.core import Array, DataType

        rows_by_key: dict[FolderKey, list[int]] = {}
        for row, key in enumerate(keys):
            rows_by_key.setdefault(key, []).append(row)
        # Readers of such folders take these values from the path; a column as well would be
        # ambiguous.
        columns = [name for name in batch.column_names if name not in self.names]
        for key, rows in rows_by_key.items():
            part = batch.select(columns).take(Array(rows, DataType.uint32()))
            self._batches_waiting.setdefault(key, []).append(part)
            self._bytes_waiting[key] += part.nbytes
            self._rows_waiting[key] += part.num_rows
            if self._rows_waiting[key] >= MAX_FILE_ROWS:
                self._flush(key)
        # Rows spread over thousands of folders never fill a file: write the largest.
        while self._bytes_waiting.total() > MAX_WAITING_BYTES:
            self._flush(self._bytes_waiting.most_common(1)[0][0])

    def close(self) -> None:
        """Write all rows that wait."""
        for key in list(self._batches_waiting):
            self._flush(key)

    def _flush(self, key: FolderKey) -> None:
        from arro3.core import RecordBatchReader
        from arro3.io import write_parquet

        batches = self._batches_waiting.pop(key)
        # Usually a field with a value for every sample, as an id; object stores would need a
        # request for each.
        if key not in self._file_numbers and len(self._file_numbers) >= MAX_FOLDERS:
            raise UsageError(
                f"--by {','.join(self.names)}: would make more than {MAX_FOLDERS:,} folders; "
                "choose other fields"
            )
        name = "/".join([*key, f"part-{self.tag}-{self._file_numbers[key]:05d}.parquet"])
        self._file_numbers[key] += 1
        file = self.temporary_folder / "part.parquet"
        reader = RecordBatchReader.from_batches(batches[0].schema, batches)
        write_parquet(reader, file, compression="zstd(1)")
        with _name_url_in_errors(self.store.url):
            self.store.put(file, name)
        self.files.append(name)
        self.rows += self._rows_waiting.pop(key)
        del self._bytes_waiting[key]


class _ExportTarget:
    """The folder that is written to, on this machine or at a URL."""

    def __init__(self, to: str) -> None:
        self._files, self._root = file_system(to, UsageError)
        self.store = Store(to)
        self._before: Mapping[str, Any] = {}

    def _list_files(self) -> list[str]:
        # fsspec remembers listings, also those from before another process wrote.
        self._files.invalidate_cache()
        try:
            paths = self._files.find(self._root)
        except FileNotFoundError:
            return []
        root = f"{self._root.lstrip('/')}/"
        return [path.lstrip("/").removeprefix(root) for path in paths]

    def begin(self) -> None:
        """Refuse a folder with other files; mark an earlier export as incomplete."""
        with _name_url_in_errors(self.store.url):
            existing = self._list_files()
            self._before = self.store.read(LIST_FILE) or {}
        if existing and LIST_FILE not in existing:
            raise UsageError(
                f"{self.store.url}: has other files, for example {existing[0]!r:.80}; expected an "
                "empty folder, or the folder of an earlier export"
            )
        self._write({**self._before, "complete": False})

    def undo(self, files: Sequence[str]) -> None:
        """Remove what was written, so that an earlier export is valid again."""
        # Files of the same name as before belong to both exports.
        for name in set(files) - set(self._before.get("files", ())):
            self.store.remove(name)
        if self._before:
            self._write(self._before)
        else:
            self.store.remove(LIST_FILE)

    def end(self, files: Sequence[str], about: Mapping[str, Any]) -> None:
        """Remove the files of an earlier export, and list the valid ones."""
        valid = set(files)
        with _name_url_in_errors(self.store.url):
            for path in self._list_files():
                if _EXPORTED_FILE.fullmatch(path.rpartition("/")[2]) and path not in valid:
                    self.store.remove(path)
        self._write({**about, "files": files, "complete": True})

    def _write(self, content: Mapping[str, Any]) -> None:
        text = json.dumps(content, indent=1).encode()
        with _name_url_in_errors(self.store.url):
            self.store.write(LIST_FILE, text)


@contextmanager
def _name_url_in_errors(url: str) -> Iterator[None]:
    """Turn every error of a file system into one that names the URL."""
    try:
        yield
    except Exception as error:
        raise UsageError(f"export: {url}: cannot be written: {describe_error(error)}") from error

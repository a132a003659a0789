"""``trustassay export``: the table of a finished run, in files by the folders of its input.

A folder that was exported to has a file ``_trustassay.json``, which says what is valid in it: files
are written first, then those of an earlier export are removed, and the list comes last.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from trustassay.data.places import files_below, keys_of, place_of, record_files
from trustassay.errors import RunFolderError, UsageError
from trustassay.progress import SILENT, Steps
from trustassay.runs.counts import domain_of
from trustassay.runs.folder import RunFolder
from trustassay.sample import clean
from trustassay_cluster.store import Store
from trustassay_cluster.urls import file_system, reason, refuse_secret

LIST = "_trustassay.json"
NONE = "none"
"""What ``by`` is to have one folder."""
EMPTY = "__HIVE_DEFAULT_PARTITION__"
"""The folder of rows without a value, as Hive, Spark and DuckDB name it."""
ROWS = 100_000
"""Rows of a file, at most."""
HELD = 2**26
"""Bytes of rows that wait for their file, of all folders together."""
LONGEST = 200
MOST = 10_000
_OWN = re.compile(r"part-[0-9a-f]{8}-\d{5}\.parquet")
Key = tuple[str, ...]


@dataclass(frozen=True)
class Exported:
    """What was written. by: fields that the folders are named by. files, rows: how many."""

    to: str
    by: Sequence[str]
    files: int
    rows: int


def export(run: Path, to: str, by: str | None = None, steps: Steps = SILENT) -> Exported:
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
        raise RunFolderError(f"{folder.parquet_path}: is missing; run the run's command again")
    names = _partitions(content["input"]) if by is None else _named(by)
    with folder.parquet_path.open("rb") as file:
        tag = hashlib.file_digest(file, "sha256").hexdigest()[:8]
    refuse_secret(to)
    target, metrics, samples = _Target(to), len(content["metrics"]), content["samples"]
    target.begin()
    with (
        TemporaryDirectory(prefix="trustassay-") as place,
        steps.begin("writing the table", metrics * samples["samples"]) as step,
    ):
        writer = _Writer(target.store, Path(place), names, tag)
        try:
            for batch, keys in _keyed(folder, names, metrics):
                writer.add(batch, keys)
                for _ in keys:
                    step()
            writer.close()
        except BaseException:
            target.undo(writer.files)
            raise
    target.end(writer.files, {"run": samples["sha256"], "by": names, "rows": writer.rows})
    return Exported(to, names, len(writer.files), writer.rows)


def _named(by: str) -> list[str]:
    names = [name.strip() for name in by.split(",") if name.strip()]
    return [] if names == [NONE] else names


def _partitions(source: str) -> list[str]:
    """Return the fields ``KEY=VALUE`` of which each file of an input has a folder."""
    if (place := place_of(source)) is not None:
        found: Mapping[str, Any] = place.files
        if place.table:
            return []
    else:
        path = Path(source)
        found = files_below(path) if path.is_dir() else {"": path} if path.is_file() else {}
    if not found:
        raise UsageError(
            f"export: {source:.200}: is not there any more, or is several inputs, so its folders "
            f"are not known; give --by FIELD,..., or --by {NONE}"
        )
    if "" in found:
        return []
    keys = [keys_of(path) for path in record_files(found, source)]
    return [name for name in keys[0] if all(name in one for one in keys)]


def _keyed(
    folder: RunFolder, names: Sequence[str], metrics: int
) -> Iterator[tuple[Any, list[Key]]]:
    """Yield batches of the run's table, with the folder of each row; a sample has a row for each of
    the ``metrics``."""
    from arro3.io import read_parquet

    records = (one for one in folder.sample_records() for _ in range(metrics))
    seen: Counter[str] = Counter()
    with folder.parquet_path.open("rb") as file:
        for batch in read_parquet(file):
            used = {"id", *names}.intersection(batch.column_names)
            columns = {name: batch.column(name).to_pylist() for name in used}
            keys = []
            for row, (sample, record) in enumerate(zip(columns["id"], records, strict=False)):
                if clean(str(record["id"])) != sample:
                    message = f"has {record['id']!r:.80} where the table has {sample!r:.80}"
                    raise RunFolderError(f"{folder.samples_path}: {message}")
                own = [columns[n][row] if n in columns else domain_of(record, n) for n in names]
                seen.update(n for n, value in zip(names, own, strict=True) if value is not None)
                keys.append(tuple(map(_folder, names, own)))
            if len(keys) < batch.num_rows:
                raise RunFolderError(f"{folder.samples_path}: has fewer samples than the table")
            yield batch, keys
    if absent := [name for name in names if not seen[name]]:
        raise UsageError(f"export: no sample has the field {absent[0]!r} (--by)")


def _folder(name: str, value: Any) -> str:
    text = EMPTY if value in (None, "") else str(value)
    result = f"{quote(name, safe='')}={quote(text, safe='')}"
    if len(result) > LONGEST:
        message = f"{name} has a value of {len(text):,} characters, {text[:40]!r}..."
        raise UsageError(f"export: {message}; choose other fields (--by)")
    return result


@dataclass
class _Writer:
    """Collects rows by folder, and writes a file where they are many, or all are many bytes."""

    store: Store
    place: Path
    names: Sequence[str]
    tag: str
    files: list[str] = field(default_factory=list)
    rows: int = 0
    _waiting: dict[Key, list[Any]] = field(default_factory=dict)
    _held: Counter[Key] = field(default_factory=Counter)
    _count: Counter[Key] = field(default_factory=Counter)
    _number: Counter[Key] = field(default_factory=Counter)

    def add(self, batch: Any, keys: Sequence[Key]) -> None:
        """Take the rows of a batch, each with its folder."""
        from arro3.core import Array, DataType

        places: dict[Key, list[int]] = {}
        for row, key in enumerate(keys):
            places.setdefault(key, []).append(row)
        kept = [name for name in batch.column_names if name not in self.names]
        for key, rows in places.items():
            part = batch.select(kept).take(Array(rows, DataType.uint32()))
            self._waiting.setdefault(key, []).append(part)
            self._held[key] += part.nbytes
            self._count[key] += part.num_rows
            if self._count[key] >= ROWS:
                self._flush(key)
        while self._held.total() > HELD:
            self._flush(self._held.most_common(1)[0][0])

    def close(self) -> None:
        """Write what waits."""
        for key in list(self._waiting):
            self._flush(key)

    def _flush(self, key: Key) -> None:
        from arro3.core import RecordBatchReader
        from arro3.io import write_parquet

        batches = self._waiting.pop(key)
        if key not in self._number and len(self._number) >= MOST:
            raise UsageError(f"export: {', '.join(self.names)} would have {MOST:,} folders or more")
        name = "/".join([*key, f"part-{self.tag}-{self._number[key]:05d}.parquet"])
        self._number[key] += 1
        file = self.place / "part.parquet"
        reader = RecordBatchReader.from_batches(batches[0].schema, batches)
        write_parquet(reader, file, compression="zstd(1)")
        _told(self.store.url, lambda: self.store.put(file, name))
        self.files.append(name)
        self.rows += self._count.pop(key)
        del self._held[key]


class _Target:
    """The folder that is written to, here or at a URL."""

    def __init__(self, to: str) -> None:
        self._files, self._root = file_system(to, UsageError)
        self.store = Store(to)
        self._before: Mapping[str, Any] = {}

    def _there(self) -> list[str]:
        self._files.invalidate_cache()
        try:
            found = self._files.find(self._root)
        except FileNotFoundError:
            return []
        root = f"{self._root.lstrip('/')}/"
        return [one.lstrip("/").removeprefix(root) for one in found]

    def begin(self) -> None:
        """Refuse a folder with other files; say that it is being written."""
        there = _told(self.store.url, self._there)
        if there and LIST not in there:
            raise UsageError(
                f"{self.store.url}: holds other files, as {there[0]!r:.80}; expected an empty "
                "folder, or one of an earlier export"
            )
        self._before = _told(self.store.url, lambda: self.store.read(LIST)) or {}
        self._write({**self._before, "complete": False})

    def undo(self, files: Sequence[str]) -> None:
        """Remove what was written, so that an earlier export is valid again."""
        for one in set(files) - set(self._before.get("files", ())):
            self.store.remove(one)
        if self._before:
            self._write(self._before)
        else:
            self.store.remove(LIST)

    def end(self, files: Sequence[str], about: Mapping[str, Any]) -> None:
        """Remove what an earlier export left, and list what is valid."""
        valid = set(files)
        for one in _told(self.store.url, self._there):
            if _OWN.fullmatch(one.rpartition("/")[2]) and one not in valid:
                _told(self.store.url, lambda name=one: self.store.remove(name))  # type: ignore[misc]
        self._write({**about, "files": files, "complete": True})

    def _write(self, content: Mapping[str, Any]) -> None:
        text = json.dumps(content, indent=1).encode()
        _told(self.store.url, lambda: self.store.write(LIST, text))


def _told(url: str, work: Callable[[], Any]) -> Any:
    """Turn every error of a file system into one that names the URL."""
    try:
        return work()
    except Exception as error:
        raise UsageError(f"export: {url}: cannot be written: {reason(error)}") from error

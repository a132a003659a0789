"""Copies of the shards' runs in a shared store, so that another worker can continue a shard.

A run's folder is locked and its calls are in SQLite, so it must be on a local disk. The store holds
copies of its files, in a folder or at any URL that fsspec knows.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import fsspec

from trustassay.calls.store import CACHE_FILE, CallStore, StoredCall
from trustassay.core.files import cut_unfinished, make_private_folder, tighten
from trustassay.core.metric import Metric
from trustassay.errors import BackendError
from trustassay.runs.folder import RunFolder
from trustassay.runs.prepare import CALLS, PREPARED, Preparation, name_array_file

MAX_SMALL_FILE_BYTES = 2**30
"""Upper bound of the range that is requested of a small file."""
STATE_FILE, FINISHED_FILE = "state.json", "finished.json"


class Store:
    """Files by name, in a folder or at a URL of fsspec; a file is stored in full or not at all.

    Raises:
        BackendError: the URL's protocol is unknown, or needs a package.
        OSError: by all methods, what the file system reports.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._files, root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise BackendError(f"the store {url} cannot be used: {error}") from None
        self._root = root.rstrip("/")
        self.local = "file" in self._files.protocol

    def _path_of(self, name: str) -> str:
        return f"{self._root}/{name}"

    def put(self, source: Path, name: str) -> None:
        """Copy a file into the store."""
        target = self._path_of(name)
        # Object stores show an object only when its upload is complete; in a folder a file of
        # another name is renamed at the end.
        part = f"{target}.{os.getpid()}.part" if self.local else target
        self._write_with_folder(target, lambda: self._files.put_file(str(source), part))
        if self.local:
            Path(part).replace(target)

    def get(self, name: str, target: Path) -> bool:
        """Copy a file out of the store; ``False`` if it is not there."""
        make_private_folder(target.parent)
        # Workers on one machine may fetch the same file; each writes its own part.
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            self._files.get_file(self._path_of(name), str(part))
        except FileNotFoundError:
            part.unlink(missing_ok=True)
            return False
        tighten(part)
        part.replace(target)
        return True

    def size(self, name: str) -> int | None:
        """Return the size of a file; ``None`` if it is not there."""
        try:
            return int(self._files.size(self._path_of(name)))
        except FileNotFoundError:
            return None

    def read(self, name: str) -> dict[str, Any] | None:
        """Return the content of a small JSON file; ``None`` if it is not there."""
        try:
            content = json.loads(self._files.cat_file(self._path_of(name)))
        except FileNotFoundError:
            return None
        return content if isinstance(content, dict) else None

    def write(self, name: str, content: bytes) -> None:
        """Write a small file; in a folder, a killed process may leave an incomplete one."""
        target = self._path_of(name)
        self._write_with_folder(target, lambda: self._files.pipe_file(target, content))

    def read_all(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of the small files that exist, by name.

        The range saves requests: without one, s3fs first asks for the size of each file.
        """
        paths = [self._path_of(name) for name in names]
        contents = self._files.cat_ranges(paths, 0, MAX_SMALL_FILE_BYTES, on_error="return")
        pairs = zip(names, contents, strict=True)
        return {name: content for name, content in pairs if isinstance(content, bytes)}

    def _write_with_folder(self, target: str, write: Callable[[], object]) -> None:
        """Write a file; if its folder is missing, make it and write again."""
        try:
            write()
        except FileNotFoundError:
            # Only now: object stores have no folders, and asking for one costs a request.
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
            write()

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            self._files.rm_file(self._path_of(name))


class RunBackup:
    """Keeps a copy of the folder of one shard's run under a name in the store."""

    def __init__(self, folder: RunFolder, store: Store, name: str) -> None:
        self._folder, self._store, self._name = folder, store, name
        self._stored_states: dict[str, tuple[int, int]] = {}
        self._part = folder.path.with_name(f".{folder.path.name}.keeping")

    def fetch(self) -> bool:
        """Replace the folder by the stored copy if that has more; return whether it did."""
        stored_size = (self._store.read(f"{self._name}/{STATE_FILE}") or {}).get("assessments", -1)
        local_path = self._folder.assessments_path
        # A run without assessments yet still has more than nothing.
        empty_size = 0 if (self._folder.path / "run.json").exists() else -1
        # Assessments are only ever appended, so the longer file is the newer one.
        if (local_path.stat().st_size if local_path.exists() else empty_size) >= stored_size:
            return False
        return fetch(self._store, self._name, self._folder.path)

    def keep(self, *, finished: bool = False) -> None:
        """Copy what is new into the store; ``finished`` marks the copy as complete."""
        folder = self._folder
        if folder.read_run() is None or not folder.samples_path.exists():
            return
        make_private_folder(self._part)
        # Assessments are read first and stored last: the stored calls are never fewer than those
        # that the stored assessments are based on.
        size = _copy_lines(folder.assessments_path, self._part / "assessments.jsonl")
        if folder.calls_path.exists():
            with (
                # SQLite's own backup copies a consistent state while the run writes.
                closing(sqlite3.connect(folder.calls_path)) as read,
                closing(sqlite3.connect(self._part / "calls.sqlite")) as write,
            ):
                read.backup(write)
            self._store.put(self._part / "calls.sqlite", f"{self._name}/calls.sqlite")
        for name in ("run.json", "samples.jsonl", "prepared.json", "summary.json"):
            self._upload_changed(folder.path / name)
        self._store.put(self._part / "assessments.jsonl", f"{self._name}/assessments.jsonl")
        # The state comes last: it promises that everything before it is stored.
        for name in (STATE_FILE, *([FINISHED_FILE] if finished else [])):
            (self._part / name).write_text(json.dumps({"assessments": size}))
            self._store.put(self._part / name, f"{self._name}/{name}")
        shutil.rmtree(self._part)

    def _upload_changed(self, path: Path) -> None:
        if not path.exists():
            return
        stat = path.stat()
        # Size and time tell whether the file was written since the last copy.
        if self._stored_states.get(path.name) != (state := (stat.st_size, stat.st_mtime_ns)):
            self._store.put(path, f"{self._name}/{path.name}")
            self._stored_states[path.name] = state


def fetch(store: Store, name: str, target: Path) -> bool:
    """Copy the stored folder of a run to ``target``, in full or not at all."""
    part = target.with_name(f".{target.name}.fetching")
    shutil.rmtree(part, ignore_errors=True)
    make_private_folder(part)
    # These are missing while a run is unfinished, or if no model was asked.
    optional = ("prepared.json", "calls.sqlite", "summary.json")
    for file in ("assessments.jsonl", *optional, "samples.jsonl", "run.json"):
        if not store.get(f"{name}/{file}", part / file) and file not in optional:
            shutil.rmtree(part)
            return False
    if target.exists():
        shutil.rmtree(target)
    part.replace(target)
    return True


def is_finished(store: Store, name: str) -> bool:
    """Whether the store holds the complete run of a shard."""
    return store.read(f"{name}/{FINISHED_FILE}") is not None


def keep_prepared(
    preparation: Preparation, metrics: Sequence[Metric], store: Store, name: str
) -> None:
    """Store what was prepared for all shards, if it is complete and not stored yet."""
    if preparation.read() is None or store.size(f"{name}/{PREPARED}") is not None:
        return
    # `PREPARED` comes last: whoever finds it finds all other files.
    for file in (*(name_array_file(metric.name) for metric in metrics), CALLS, PREPARED):
        if (path := preparation.path / file).exists():
            store.put(path, f"{name}/{file}")


def fetch_prepared(
    store: Store, name: str, preparation: Preparation, metrics: Sequence[Metric], *, calls: bool
) -> bool:
    """Copy what was prepared for all shards out of the store; return whether it is complete here.

    The calls behind it are copied only if a metric needs them, or if ``calls`` is set.
    """
    if store.size(f"{name}/{PREPARED}") is None:
        return preparation.read() is not None
    files = [name_array_file(metric.name) for metric in metrics if metric.pool]
    present = [
        _fetch_if_missing(store, f"{name}/{file}", preparation.path / file) for file in files
    ]
    # A metric without a packed file prepares again from the calls.
    if calls or not all(present):
        _fetch_if_missing(store, f"{name}/{CALLS}", preparation.calls_path)
    return _fetch_if_missing(store, f"{name}/{PREPARED}", preparation.path / PREPARED)


def _fetch_if_missing(store: Store, name: str, path: Path) -> bool:
    return path.exists() or store.get(name, path)


def _copy_lines(source: Path, target: Path) -> int:
    """Copy the complete lines of a file that is being appended to; return their size in bytes."""
    target.write_bytes(b"")
    if source.exists():
        shutil.copyfile(source, target)
        cut_unfinished(target)
    return target.stat().st_size


class SharedReplies(CallStore):
    """The calls that workers share: a local file, and behind it objects in a store.

    A call is written to the file at once, and to the store a moment later by a thread. If an object
    cannot be written or read, the worst case is a repeated call. ``cached`` says whether another
    run paid for a call.

    Raises:
        OSError: as :class:`~trustassay.calls.store.CallStore`.
    """

    tells_payer = True

    def __init__(self, folder: Path, store: Store, home: str, run: str) -> None:
        """``home`` is the folder of the objects in the store; ``run`` names the paying run."""
        make_private_folder(folder)
        super().__init__(folder / CACHE_FILE)
        self._store, self._home, self._run = store, home, run
        self._queue: queue.SimpleQueue[StoredCall | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, daemon=True)
        self._writer.start()

    def add(self, calls: Iterable[StoredCall]) -> None:
        """Write calls into the file, and then into the store."""
        rows = list(calls)
        super().add(rows)
        for row in rows:
            self._queue.put(row)

    def fetch(self, keys: Sequence[bytes]) -> None:
        """Copy the calls that only the store has into the file."""
        local_calls = self.find(keys)
        names = [self._object_name(key) for key in keys if key not in local_calls]
        if not names:
            return
        with suppress(OSError):
            contents = self._store.read_all(names)
            super().add(row for content in contents.values() if (row := self._parse_call(content)))

    def remove(self, replies: Mapping[bytes, str]) -> None:
        """Remove calls from the file and from the store."""
        super().remove(replies)
        for key in replies:
            with suppress(OSError):
                self._store.remove(self._object_name(key))

    def close(self, *, is_last_user: bool = True) -> None:
        """Write the calls that wait for the store, and close the file."""
        # `None` ends the thread after the calls that were queued before it.
        self._queue.put(None)
        self._writer.join()
        super().close(is_last_user=is_last_user)

    def _object_name(self, key: bytes) -> str:
        # 256 folders: file systems slow down with many files in one.
        return f"{self._home}/{key.hex()[:2]}/{key.hex()}.json"

    def _write_all(self) -> None:
        while (row := self._queue.get()) is not None:
            fields = row._asdict() | {"key": row.key.hex(), "run": self._run}
            # Whether a call is `cached` depends on who reads it; `run` says who paid.
            del fields["cached"]
            with suppress(OSError):
                self._store.write(self._object_name(row.key), json.dumps(fields).encode())

    def _parse_call(self, content: bytes) -> StoredCall | None:
        """Return a call; ``None`` if the object is damaged."""
        try:
            fields = json.loads(content)
            run, key = fields.pop("run"), bytes.fromhex(fields.pop("key"))
            return StoredCall(key=key, cached=int(run != self._run), **fields)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

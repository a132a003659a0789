"""Each kind of file as a stream of raw records: JSON, CSV, Excel, Parquet, `datasets` folders.

This module does not know about samples. A record that cannot be read is passed on with its
problems; a file that cannot be read raises an error.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from trustassay.data.arrow import batch_records, in_slices, of_arrow
from trustassay.data.csv_files import LARGEST_CELL, csv_records
from trustassay.data.published import is_published
from trustassay.data.raw import InputError, Raw, missing_source, opened
from trustassay.data.recognising import tells_question
from trustassay.data.standard_input import NAME, STANDARD_INPUT, kept_input
from trustassay.data.workbooks import workbook_records
from trustassay.sample import Problem

__all__ = ["KNOWN_KINDS", "LARGEST_CELL", "InputError", "Raw", "csv_records", "missing_source"]
__all__ += ["opened", "raw_records"]

KNOWN_KINDS = (
    ".jsonl, .ndjson, .json, .csv, .tsv (each also with .gz or .zst), .xlsx, .parquet, "
    "a folder written by save_to_disk of Hugging Face datasets, or - for standard input"
)
TEXTS = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv"})
"""Kinds of text, which may be compressed."""
_LISTS: tuple[str, ...] = (
    *("Data", "data", "results", "testCases", "test_cases", "examples", "runs", "traces"),
    *("observations", "items"),
)
"""Under what name an object holds the list of records: TriviaQA writes a capital letter."""
LONGEST_LINE = 2**24
"""Bytes of a first line that may be one record of many."""


def raw_records(name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    """Open the file or folder ``name`` and return its records; ``fields`` are the user's names.

    Raises:
        InputError: it does not exist or is of no known kind; while iterating: it is broken.
    """
    if name == STANDARD_INPUT:
        kept = kept_input()
        return _records_of(kept.kind, kept.path, NAME, fields)
    path = Path(name)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:  # no permission, or a name that no file can have
        raise InputError(f"{name[:200]}: cannot be read ({error.strerror})") from error
    if is_folder:
        return _folder(path, name, fields)
    if not exists:
        raise InputError(f"{name}: no such file")
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    kind = suffixes.pop() if suffixes else ""
    packed = kind if kind in {".gz", ".zst"} else ""
    if packed:
        kind = suffixes.pop() if suffixes else ""
    if (packed and kind not in TEXTS) or kind not in {*TEXTS, ".parquet", ".xlsx"}:
        shown = f"{kind}{packed}" or "(none)"
        raise InputError(f"{name}: unknown kind of file, suffix {shown}; expected {KNOWN_KINDS}")
    return _records_of(kind, path, name, fields)


def _records_of(kind: str, path: Path, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    if kind in {".jsonl", ".ndjson"}:
        return _json_lines(path, name)
    if kind == ".json":
        return _json(path, name, fields)
    if kind == ".xlsx":
        return workbook_records(path, name, fields)
    if kind == ".parquet":
        return _parquet(path, name, fields)
    return csv_records(path, name, fields, "\t" if kind == ".tsv" else ",")


# ---- JSON ----


def _json_lines(path: Path, name: str) -> Iterator[Raw]:
    with opened(path, name) as stream:
        for number, line in enumerate(stream, 1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text and not text.isspace():
                yield _json_line(text, f"{name}:{number}")


def _json_line(line: bytes, where: str) -> Raw:
    try:
        return Raw(where, json.loads(line.decode()))
    except UnicodeDecodeError as error:
        problem = Problem(f"byte {error.start + 1}", "is not UTF-8")
    except json.JSONDecodeError as error:
        column = min(error.pos, len(error.doc.rstrip())) + 1  # the line's end belongs to the line
        problem = Problem(f"column {column}", f"is not JSON ({error.msg})")
    except (ValueError, RecursionError) as error:
        problem = Problem("record", f"is not readable JSON ({_reason(error)})")
    return Raw(where, None, (problem,))


def _json(path: Path, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    if _one_object_a_line(path, name):
        yield from _json_lines(path, name)
        return
    content = _json_file(path, name)
    records = content
    if isinstance(content, dict):
        records = _rows(content, fields)
        if records is None:
            records = _list_in(content)
    if not isinstance(records, list):
        raise InputError(
            f"{name}: expected a list of records, an object with one under `data` or `results`, or "
            "an object of columns, lists of one length, with a question column"
        )
    for number, record in enumerate(records, 1):
        yield Raw(f"{name}: item {number}", record)


def _list_in(content: Mapping[str, Any]) -> Any:
    """Return the list of records of an object; promptfoo's is two objects deep."""
    found = next((content[name] for name in _LISTS if name in content), None)
    inside = found.get("results") if isinstance(found, Mapping) else None
    return inside if isinstance(inside, list) else found


def _one_object_a_line(path: Path, name: str) -> bool:
    """Whether a .json file is JSON Lines by its content, as some data sets are published."""
    with opened(path, name) as stream:
        first = stream.readline(LONGEST_LINE)
        more = any(line.strip() for line in stream)
    try:
        return more and isinstance(json.loads(first.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False


def _rows(columns: Mapping[str, Any], fields: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Return the rows of columns of one length; ``None`` where it is no such object."""
    lists = [value for value in columns.values() if isinstance(value, list)]
    if not lists or len(lists) < len(columns) or len({len(one) for one in lists}) != 1:
        return None
    asks = tells_question(columns, fields) or is_published(columns.keys())
    return (
        [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)] if asks else None
    )


def _json_file(path: Path, name: str) -> Any:
    with opened(path, name) as stream:
        text = stream.read()
    try:
        return json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: byte {error.start + 1} is not UTF-8") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise InputError(f"{name}: is not JSON ({place}: {error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: is not readable JSON ({_reason(error)})") from error


def _reason(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "a number with too many digits"  # the only other ValueError of json.loads


# ---- Arrow ----


def _parquet(path: Path, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, io.SEEK_END)
            stream.seek(max(0, size - 8))
            tail = stream.read(8)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    if tail[4:] != b"PAR1" or int.from_bytes(tail[:4], "little") > size - 12:
        raise InputError(f"{name}: is not a complete Parquet file")
    return (yield from _arrow_records([(path, name)], name, fields, "Parquet"))


def _folder(path: Path, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    if (path / "state.json").is_file():
        state = _json_file(path / "state.json", f"{name}/state.json")
        try:
            shards = [path / Path(entry["filename"]).name for entry in state["_data_files"]]
        except (KeyError, TypeError) as error:
            raise InputError(f"{name}/state.json: names no data files") from error
        return _arrow_records([(shard, str(shard)) for shard in shards], name, fields, "Arrow")
    if not (path / "dataset_dict.json").is_file():
        raise InputError(
            f"{name}: is a folder, but not one written by save_to_disk of Hugging Face datasets "
            "(it has no state.json)"
        )
    content = _json_file(path / "dataset_dict.json", f"{name}/dataset_dict.json")
    splits = content.get("splits") if isinstance(content, dict) else None
    if not isinstance(splits, list) or not all(isinstance(split, str) for split in splits):
        raise InputError(f"{name}/dataset_dict.json: names no splits")
    if len(splits) != 1:
        raise InputError(
            f"{name}: has the splits {', '.join(splits) or '(none)'}; name one of them, "
            f"as in {name.rstrip('/')}/{(splits or ['SPLIT'])[0]}"
        )
    split = path / splits[0]
    if not (split / "state.json").is_file():
        raise InputError(f"{split}: the split is missing, or has no state.json")
    return _folder(split, str(split), fields)


def _arrow_records(
    files: Sequence[tuple[Path, str]], name: str, fields: Mapping[str, str], kind: str
) -> Iterator[Raw]:
    batches = chain.from_iterable(_batches(path, shown, kind) for path, shown in files)
    return batch_records(batches, name, fields)


def _batches(path: Path, name: str, kind: str) -> Iterator[Any]:
    from arro3.io import read_ipc_stream, read_parquet

    try:
        reader = read_parquet(str(path)) if kind == "Parquet" else read_ipc_stream(str(path))
        yield from in_slices(reader)
    except BaseException as error:
        if not of_arrow(error):
            raise
        raise InputError(f"{name}: is not a readable {kind} file ({error})") from error

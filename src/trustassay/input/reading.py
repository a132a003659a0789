"""Reads samples from a file, a folder, a table or an iterable, one at a time, each with its place.

A record that is not a sample becomes an :class:`InputFault` at its place, so that one bad line does
not prevent the others from being read, and the user sees all faults together.
"""

import io
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

from trustassay.core.files import is_run_folder
from trustassay.core.sample import (
    CANONICAL_FIELDS,
    LONGEST_LINE_MIB,
    UNANSWERED_FIELD,
    Problem,
    Sample,
    SampleError,
    clean,
)
from trustassay.errors import did_you_mean
from trustassay.input import arrow, otlp, places, recognising
from trustassay.input.bounds import (
    describe_excess,
    describe_many_fields,
    iter_lines,
    read_document,
)
from trustassay.input.chats import CHATS, is_no_answer, split_turns
from trustassay.input.json_tables import read_rows
from trustassay.input.layouts import NAMES, explain_missing
from trustassay.input.messages import read_messages
from trustassay.input.places import (
    STANDARD_INPUT,
    STANDARD_INPUT_NAME,
    InputFile,
    InputPlace,
    find_place,
    open_text,
    store_standard_input,
)
from trustassay.input.proposals import find_unknown_fields, shorten
from trustassay.input.records import (
    FieldNames,
    InputError,
    InputFault,
    RawRecord,
    UnknownFields,
    build_missing_source_error,
    is_nan,
    join_names,
    split_names,
    to_json_types,
)
from trustassay.input.tables import build_table_record, read_csv_records, read_workbook_records
from trustassay.input.traces import is_trace, read_traces

_LISTS: Sequence[Sequence[str]] = [paths.split() for paths in NAMES["lists"]["records"]]
"""Paths of the lists of records in an object; those of one element are read one after another."""
MAX_JSON_CHARACTERS = 30
"""Characters of a line that is not JSON in a message."""
MAX_FIRST_LINE_BYTES = 2**24
"""Bytes of a first line of a ``.json`` file that may be one record of many."""
PARQUET_ROWS = 16
"""Rows of a Parquet file that are unpacked at a time: each may have the same huge cell, which is
stored once. With 1,024 rows reading takes 1.3 microseconds a row less."""


class FileReading(NamedTuple):
    """How the files of an input are read; as :func:`read_raw_records`."""

    fields: Mapping[str, str]
    sheet: str
    wanted: Collection[str]
    longest_line: int


def read_raw_records(
    name: str,
    fields: Mapping[str, str],
    sheet: str = "",
    wanted: Collection[str] = (),
    longest_line: int = LONGEST_LINE_MIB,
) -> Iterator[RawRecord]:
    """Open a file, folder or other input and return its records.

    Args:
        name: the path or URL, as the user wrote it.
        fields: the user's names of fields, by canonical field.
        sheet: the sheet of a workbook, by title or number; empty for the one with questions.
        wanted: the columns by which the header of a CSV file or a workbook is known; without any,
            by that of a question.
        longest_line: MiB of the longest record (:mod:`trustassay.input.bounds`).

    Raises:
        InputError: at once, if it does not exist or its kind is unknown; while iterating, if it is
            damaged.
    """
    reading = FileReading(fields, sheet, wanted, longest_line)
    if name == STANDARD_INPUT:
        stored_input = store_standard_input()
        return _read_file(stored_input.path, STANDARD_INPUT_NAME, reading, stored_input.kind)
    if (place := find_place(name)) is not None:
        return _read_place(place, name, reading)
    path = Path(name)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        # No permission, or a name that no file can have, such as one that is too long.
        raise InputError(f"{name[:200]}: cannot be read ({error.strerror})") from error
    if is_folder:
        return _read_folder(path, name, reading)
    if not exists:
        raise InputError(f"{name}: no such file")
    return _read_file(path, name, reading)


def _read_place(place: InputPlace, name: str, reading: FileReading) -> Iterator[RawRecord]:
    if place.table:
        batches = arrow.slice_batches(place.table(), reading.longest_line)
        return arrow.read_batches(batches, f"{name:.80}", reading.fields, reading.longest_line)
    if not place.files:
        raise InputError(f"{name}: no such file, and no file matches")
    single_file = place.files.get("")
    return (
        _read_file(single_file, name, reading)
        if single_file
        else _read_files(place.files, name, reading)
    )


def _read_file(
    path: InputFile, name: str, reading: FileReading, kind: str = ""
) -> Iterator[RawRecord]:
    fields, sheet, wanted, longest_line = reading
    # Standard input has no suffix; its kind was determined by its content.
    kind = kind or places.determine_kind(path, name)
    if sheet and kind != ".xlsx":
        raise InputError(f"{name}: is not a workbook, so it has no sheet {sheet!r} (--sheet)")
    if kind in {".jsonl", ".ndjson"}:
        return _read_json_lines(path, name, reading)
    if kind == ".json":
        return _read_json(path, name, reading)
    if kind == ".xlsx":
        return read_workbook_records(path, name, fields, sheet, wanted, longest_line)
    if kind == ".parquet":
        return _read_parquet(path, name, reading)
    if kind in places.OTLP_SUFFIXES:
        return otlp.read_records(path, name, longest_line)
    delimiter = "\t" if kind == ".tsv" else ","
    return read_csv_records(path, name, fields, delimiter, wanted=wanted, longest_line=longest_line)


def _read_json_lines(path: InputFile, name: str, reading: FileReading) -> Iterator[RawRecord]:
    fields, longest_line = reading.fields, reading.longest_line
    with open_text(path, name) as stream:
        lines = (
            (number, line)
            for number, line in enumerate(iter_lines(stream, longest_line), 1)
            if line is None or _without_mark(line, number).strip()
        )
        first_lines = list(islice(lines, 2))
        for number, line in chain(first_lines, lines):
            where = f"{name}:{number}"
            if line is None:
                problem = Problem("record", describe_excess(longest_line))
                yield RawRecord(where, None, (problem,))
                continue
            raw = _parse_json_line(_without_mark(line, number), where)
            rows = _find_rows_of_line(raw.record, fields) if len(first_lines) == 1 else None
            if rows is None:
                yield _build_raw_record(raw.record, raw.where, fields, raw.problems)
            for place, row in enumerate(rows or (), 1):
                yield _build_raw_record(row, f"{name}: item {place}", fields)


def _without_mark(line: bytes, number: int) -> bytes:
    """Return a line without a byte order mark, as Excel and PowerShell write it."""
    return line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def _find_rows_of_line(line: Any, fields: Mapping[str, str]) -> Sequence[Any] | None:
    """Return the records of an only line with a whole list or table; ``None`` for a record."""
    if isinstance(line, Mapping):
        first_value = next(iter(line.values()), None)
        is_table = "0" in line or (isinstance(first_value, Mapping) and "0" in first_value)
        has_rows = "data" in line and not line.keys().isdisjoint(("columns", "schema"))
        return read_rows(line, fields) if is_table or has_rows else None
    is_list = isinstance(line, list) and all(isinstance(record, Mapping) for record in line)
    return line if line and is_list and not read_messages(line) else None


def _parse_json_line(line: bytes, where: str) -> RawRecord:
    try:
        return RawRecord(where, json.loads(line.decode()))
    except UnicodeDecodeError as error:
        problem = Problem(f"byte {error.start + 1}", "is not UTF-8; save the file as UTF-8")
    except json.JSONDecodeError as error:
        # The line end belongs to the line, so an error there is reported behind its last character.
        column = min(error.pos, len(error.doc.rstrip())) + 1
        beginning = shorten(error.doc[column - 1 :], MAX_JSON_CHARACTERS) or "the end of the line"
        message = f"is not JSON ({error.msg}), got {beginning} (expected one object per line)"
        problem = Problem(f"column {column}", message)
    except (ValueError, RecursionError) as error:
        problem = Problem("record", f"is not readable JSON ({_describe_error(error)})")
    return RawRecord(where, None, (problem,))


def _build_raw_record(
    record: Any, where: str, fields: Mapping[str, str], problems: tuple[Problem, ...] = ()
) -> RawRecord:
    """Return a record of JSON or Python; one with NaN, as pandas writes it, is a row of a table."""
    if isinstance(record, Mapping) and any(map(is_nan, record.values())):
        cells = {name: None if is_nan(value) else value for name, value in record.items()}
        return build_table_record(cells, where, fields)
    return RawRecord(where, record, problems)


def _read_json(path: InputFile, name: str, reading: FileReading) -> Iterator[RawRecord]:
    fields = reading.fields
    # Each form of a .json file in turn: JSON Lines with a wrong suffix, a single trace or chat, a
    # table, an object with a list of records, a list.
    if _is_json_lines(path, name):
        yield from _read_json_lines(path, name, reading)
        return
    content = _load_json(path, name, reading.longest_line)
    records = [content] if _is_single_record(content) else content
    if isinstance(records, dict):
        records = read_rows(content, fields)
        if records is None:
            records = _find_list(content, fields)
    if not isinstance(records, list):
        keys = content if isinstance(content, dict) else {}
        reason = explain_missing("records", keys) or (
            f"it has the fields {', '.join(map(str, keys))[:80]}" if keys else "it has no fields"
        )
        raise InputError(
            f"{name}: expected a list of records, an object that has one under `data` or "
            "`results`, or an object of columns of the same length, with a question column; "
            f"{reason}"
        )
    if records and all(_is_row_of_cells(record) for record in records):
        message = "has rows without column names; in pandas, write them with"
        raise InputError(f'{name}: {message} to_json(..., orient="records")')
    for number, record in enumerate(records, 1):
        yield _build_raw_record(record, f"{name}: item {number}", fields)


def _is_single_record(content: Any) -> bool:
    """Whether an object is a trace or a chat by itself."""
    lists = [content.get(name) for name in CHATS] if isinstance(content, Mapping) else []
    return is_trace(content) or any(
        read_messages(messages) for messages in lists if isinstance(messages, list)
    )


def _is_row_of_cells(record: Any) -> bool:
    return isinstance(record, list) and not any(isinstance(cell, Mapping) for cell in record)


def _find_list(content: Mapping[str, Any], fields: Mapping[str, str]) -> list[Any] | None:
    """Return the list of records in an object, or the object if it is a record itself."""
    has_empty_list = False
    for paths in _LISTS:
        values = [recognising.reach(content, path) for path in paths]
        # Columns inside an object, as results of uqlm have them.
        columns = [read_rows(value, fields) for value in values if isinstance(value, Mapping)]
        lists = [value for value in (*values, *columns) if isinstance(value, list)]
        if records := list(chain.from_iterable(lists)):
            return records
        has_empty_list |= bool(lists)
    # Lists alone are columns of different lengths.
    is_columns = all(isinstance(value, list) for value in content.values())
    if recognising.has_question(content, fields) and not is_columns:
        return [content]
    # A list with any other name counts if no other list has objects.
    lists = [value for value in content.values() if isinstance(value, list)]
    lists = [records for records in lists if any(isinstance(record, dict) for record in records)]
    if len(lists) == 1:
        return lists[0]
    has_nothing = bool(content) and is_columns and not any(content.values())
    return [] if has_empty_list or has_nothing else None


def _is_json_lines(path: InputFile, name: str) -> bool:
    """Whether the content of a ``.json`` file is JSON Lines, as in some published data sets."""
    with open_text(path, name) as stream:
        first = stream.readline(MAX_FIRST_LINE_BYTES)
        # In pieces, as the rest may be one line of any length.
        more = any(piece.strip() for piece in iter(partial(stream.read, places.PIECE_BYTES), b""))
    try:
        return more and isinstance(json.loads(first.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False


def _load_json(path: InputFile, name: str, longest_line: int) -> Any:
    with open_text(path, name) as stream:
        text = read_document(stream, name, longest_line)
    try:
        return json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: byte {error.start + 1} is not UTF-8") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        reason = f"is not JSON ({place}: {error.msg})" if text.strip() else "contains no records"
        raise InputError(f"{name}: {reason}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: is not readable JSON ({_describe_error(error)})") from error


def _describe_error(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "a number with too many digits"  # the only other ValueError of json.loads


def _read_parquet(path: InputFile, name: str, reading: FileReading) -> Iterator[RawRecord]:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, io.SEEK_END)
            # A Parquet file ends with the length of its footer and "PAR1". A cut file is reported
            # here, in words, instead of by an error of the library.
            stream.seek(max(0, size - 8))
            tail = stream.read(8)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    if tail[4:] != b"PAR1" or int.from_bytes(tail[:4], "little") > size - 12:
        raise InputError(f"{name}: is not a complete Parquet file")
    batches = _read_batches(path, name, "Parquet", reading.longest_line)
    yield from arrow.read_batches(batches, name, reading.fields, reading.longest_line)


def _read_folder(path: Path, name: str, reading: FileReading) -> Iterator[RawRecord]:
    # A data set of Hugging Face, by ``save_to_disk``: one split, or a folder with a split.
    if (path / "state.json").is_file():
        state = _load_json(path / "state.json", f"{name}/state.json", reading.longest_line)
        try:
            # Only the file's name is used, so that a manipulated state.json cannot name a file
            # elsewhere.
            shards = [path / Path(entry["filename"]).name for entry in state["_data_files"]]
        except (KeyError, TypeError) as error:
            raise InputError(f"{name}/state.json: names no data files") from error
        batches = chain.from_iterable(
            _read_batches(shard, str(shard), "Arrow", reading.longest_line) for shard in shards
        )
        return arrow.read_batches(batches, name, reading.fields, reading.longest_line)
    if not (path / "dataset_dict.json").is_file():
        return _read_files_in(path, name, reading)
    content = _load_json(
        path / "dataset_dict.json", f"{name}/dataset_dict.json", reading.longest_line
    )
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
    return _read_folder(split, str(split), reading)


def _read_files_in(path: Path, name: str, reading: FileReading) -> Iterator[RawRecord]:
    if is_run_folder(path):
        message = "is the folder of a run, not an input"
        raise InputError(
            f"{name}: {message}; to score its answers again: trustassay rescore {name}"
        )
    return _read_files(places.list_files(path), name, reading)


def _read_files(
    files: Mapping[str, InputFile], name: str, reading: FileReading
) -> Iterator[RawRecord]:
    """Return the records of the files below a folder.

    Folders ``KEY=VALUE`` in their paths are fields of records that have no such field.
    """
    # Listed before the generator starts, so that an empty folder is reported at once.
    paths = places.list_record_files(files, name)

    def records() -> Iterator[RawRecord]:
        for path in paths:
            keys, file = places.read_folder_keys(path), files[path]
            for raw in _read_file(file, str(file), reading):
                record = raw.record
                yield (
                    raw._replace(record=keys | record) if keys and isinstance(record, dict) else raw
                )

    return records()


def _read_batches(path: InputFile, name: str, kind: str, longest_line: int) -> Iterator[Any]:
    from arro3.io import read_ipc_stream, read_parquet

    try:
        with path.open("rb") as file:
            reader = (
                read_parquet(file, batch_size=PARQUET_ROWS)
                if kind == "Parquet"
                else read_ipc_stream(file)
            )
            yield from arrow.slice_batches(reader, longest_line)
    except BaseException as error:
        if not arrow.is_arrow_error(error):
            raise
        raise InputError(f"{name}: is not a readable {kind} file ({error})") from error


_NO_FIELDS: FieldNames = MappingProxyType({})
TURNS = LAST, ALL = "last", "all"
"""Turns of a chat log that are samples."""


class LocatedSample(NamedTuple):
    """A sample with its place in the input."""

    where: str
    """Its place, as in :class:`InputFault`."""
    sample: Sample
    """The sample."""
    has_id: bool = True
    """Whether the record has an id; otherwise one was computed from its content."""
    use_original_names: Callable[[Problem], Problem] = lambda problem: problem
    """Returns a problem of the sample with the record's own name of the field."""
    find_unknown_fields: Callable[[Iterable[Problem]], UnknownFields | None] = lambda problems: None  # noqa: ARG005
    """Returns the fields that some problems miss because the record has no known name for them."""


class _Reading(NamedTuple):
    """How the records of an input are read; as :func:`read_samples`."""

    fields: Mapping[str, str]
    turns: str
    unanswered: bool
    answer_span: str


class InputFiles(tuple[str, ...]):
    """Paths of several files that form one input.

    It is a class of its own because a plain list of texts must never be read as paths: a record
    from elsewhere could name a file.
    """

    __slots__ = ()

    @classmethod
    def from_paths(cls, source: Any) -> Any:
        """Return a caller's list of paths as files, a list of one path as this path, and any other
        value as it is.
        """
        if not isinstance(source, list | tuple) or not source:
            return source
        if not all(isinstance(path, str | os.PathLike) for path in source):
            return source
        return cls(map(os.fspath, source)) if len(source) > 1 else source[0]


def paths_of(source: Any) -> list[str]:
    """Return the paths of an input; an empty list where it is not a file."""
    if isinstance(source, InputFiles):
        return list(source)
    return [os.fspath(source)] if isinstance(source, str | os.PathLike) else []


def read_samples(
    source: str
    | os.PathLike[str]
    | arrow.ArrowStream
    | Iterable[Mapping[str, Any] | Sample | str | os.PathLike[str]],
    *,
    fields: FieldNames = _NO_FIELDS,
    turns: str = LAST,
    sheet: str | int | None = None,
    unanswered: bool = False,
    answer_span: str | None = None,
    longest_line: int = LONGEST_LINE_MIB,
) -> Iterator[LocatedSample | InputFault]:
    """Read samples in the layout of this project or of another tool (``docs/input.md``).

    A record of TrustScore, CHALE or HaluEval holds several answers: each is a sample.

    ``source`` is a path, :class:`InputFiles`, a table, or an iterable of records and samples. Paths
    are distinguished by suffix: ``.jsonl``, ``.ndjson``, ``.json``, ``.csv``, ``.tsv`` (each also
    with ``.gz`` or ``.zst``), ``.xlsx``, ``.parquet``, or a folder: one that ``save_to_disk`` of
    Hugging Face ``datasets`` wrote, or one of such files, which are one input; ``-`` is standard
    input. All are read in pieces, except ``.json``, which is loaded completely. Tables are frames
    of pandas and polars, Arrow tables and Hugging Face datasets.

    Of several files the id of an answer is followed by its model, or, where it names none, by the
    name of its file, which then counts as its model: files of several models may share their ids.

    ``fields`` maps canonical names to the record's own, where dots descend into objects
    (``{"label": "scores.human"}``); it overrides any layout. The passages of several names for the
    documents are added up. ``turns`` are those of chat logs that are samples: the ``last`` of each,
    or ``all`` that are answered. A last message of the user without an answer is left out if there
    is an answer before it; with ``unanswered`` it is a question, which a model may be asked. Of
    ``all`` turns a last one that ends with a call of a tool or its result is left out, too.
    ``sheet`` is the sheet of a workbook, by its title or its number from 1; by default the one with
    a question column. ``answer_span`` names the span of a trace whose output is the answer; without
    it the span is chosen (:mod:`trustassay.input.answer_spans`). ``longest_line`` is the MiB of the
    longest record that is read (:mod:`trustassay.input.bounds`).

    Results are in input order; a faulty record raises nothing, it yields an :class:`InputFault`.

    Raises:
        InputError: at once, for a path that is not there or of no known kind and for an unknown
            canonical name, or a path that is given twice; while iterating, for a broken file, a
            header that names no question, an input without records, a field of ``fields`` that no
            record has, and a name ``answer_span`` that no span has.
    """
    if turns not in TURNS:
        raise InputError(did_you_mean("turns", turns, TURNS))
    for name in fields:
        if name not in CANONICAL_FIELDS:
            raise InputError(did_you_mean("canonical field", name, CANONICAL_FIELDS))
    names = join_names(fields)
    reading = _Reading(names, turns, unanswered, answer_span or "")
    # Everything that can be checked without reading is checked before the first sample.
    if paths := paths_of(source):
        file_names = _find_distinct_names(paths)
        title = "" if sheet is None else str(sheet)
        read = [
            _read(read_raw_records(path, names, title, (), longest_line), path, reading)
            for path in paths
        ]
        if len(paths) == 1:
            return read[0]
        return chain.from_iterable(map(_add_model_to_ids, read, file_names))
    if sheet is not None:
        raise InputError("sheet: expected a workbook, since only workbooks have sheets")
    rows, name = read_records_in_memory(source, names)
    return _read(rows, name, reading)


def read_records_in_memory(
    source: Any, fields: Mapping[str, str]
) -> tuple[Iterator[RawRecord], str]:
    """Return the records of a table or of an iterable of records, and its name for messages.

    Args:
        source: as for :func:`read_samples`, without paths.
        fields: the user's names of fields, by canonical field.

    Raises:
        InputError: it is neither; or as :func:`~trustassay.input.arrow.read_frame`.
    """
    if (rows := arrow.read_frame(source, fields)) is not None:
        return rows, arrow.FRAME
    records = _find_rows_in_memory(source, fields) if isinstance(source, Mapping) else source
    if not isinstance(records, Iterable):
        kind = type(source).__name__
        raise InputError(f"expected a path or an iterable of records, got a single {kind}")
    return _read_in_memory(records, fields), "the samples"


def _find_distinct_names(paths: Sequence[str]) -> list[str]:
    """Return distinct names for files, as short as possible: first without folder and suffix.

    Raises:
        InputError: a path is given twice.
    """
    for place, path in enumerate(paths):
        if path in paths[:place]:
            raise InputError(f"{path}: is given twice")
    bare = [
        path_object.with_suffix("") if path_object.name else path_object
        for path_object in map(PurePath, paths)
    ]
    # Add folders until the names differ: "a/answers", "b/answers".
    for parts in range(1, max(len(path_object.parts) for path_object in bare) + 1):
        names = ["/".join(path_object.parts[-parts:]) for path_object in bare]
        if len(set(names)) == len(names):
            return names
    return list(paths)


def _add_model_to_ids(
    results: Iterator[LocatedSample | InputFault], name: str
) -> Iterator[LocatedSample | InputFault]:
    """Yield the samples of one of several files, with the model added to each id."""
    for result in results:
        if isinstance(result, LocatedSample):
            model = result.sample.model or name
            sample = replace(result.sample, id=f"{result.sample.id}-{model}", model=model)
            yield result._replace(sample=sample)
        else:
            yield result


def _find_rows_in_memory(source: Mapping[Any, Any], fields: Mapping[str, str]) -> Any:
    """Return the rows of a table as ``to_dict`` of pandas writes it; ``None`` for a record."""
    columns = {
        str(name): list(column)
        if isinstance(column, Iterable) and not isinstance(column, str | bytes | Mapping)
        else column
        for name, column in source.items()
    }
    try:
        content = to_json_types(columns)
    except RecursionError:
        return None
    return None if _is_single_record(content) else read_rows(content, fields)


def _read_in_memory(records: Iterable[Any], fields: Mapping[str, str]) -> Iterator[RawRecord]:
    for number, record in enumerate(records, 1):
        where = f"sample {number}"
        if not isinstance(record, Mapping):
            yield RawRecord(where, record)
            continue
        try:
            values = {str(key): to_json_types(value) for key, value in record.items()}
        except RecursionError:
            yield RawRecord(where, None, (Problem("record", "is nested too deeply"),))
            continue
        yield _build_raw_record(values, where, fields)


def _read(
    raws: Iterator[RawRecord], name: str, reading: _Reading
) -> Iterator[LocatedSample | InputFault]:
    fields = reading.fields
    # Fields of the user that no record has had so far; at the end any that is left is an error.
    unseen = {(k, name) for k, joined in fields.items() for name in split_names(joined)}
    count = 0
    keys: set[str] = set()
    parsed = (recognising.parse_values(raw, fields) for raw in refuse_many_fields(raws))
    for raw in read_traces(parsed, name, reading.answer_span):
        # Settings and reports in a log are no records, and are not counted.
        if isinstance(raw.record, Mapping) and is_no_answer(raw.record):
            continue
        count += 1
        if isinstance(raw.record, Sample):
            yield _check_sample(raw.where, raw.record)
        elif not isinstance(raw.record, Mapping):
            yield InputFault(raw.where, raw.problems or (_build_not_a_record(raw.record),))
        else:
            if unseen:
                keys.update(raw.record)
                unseen = {
                    (k, name)
                    for k, name in unseen
                    if recognising.reach(raw.record, name) is recognising.ABSENT
                }
            yield from _read_samples_of_record(raw, reading)
    if not count:
        raise InputError(f"{name}: contains no records")
    if keys:
        for canonical, theirs in sorted(unseen):
            raise build_missing_source_error(name, canonical, theirs, keys)


def refuse_many_fields(raws: Iterable[RawRecord]) -> Iterator[RawRecord]:
    """Yield records; one of more fields than a record can have is a fault."""
    for raw in raws:
        message = isinstance(raw.record, Mapping) and describe_many_fields(len(raw.record))
        yield (
            raw._replace(record=None, problems=(Problem("record", message),)) if message else raw
        )


def _check_sample(where: str, sample: Sample) -> LocatedSample | InputFault:
    """Check a sample that was built in Python by the same rules as a record."""
    try:
        return LocatedSample(where, Sample.parse(sample.to_dict()))
    except SampleError as error:
        return InputFault(where, error.problems)


def _build_not_a_record(value: Any) -> Problem:
    names = {type(None): "null", list: "a list", str: "text", bool: "a boolean"}
    kind = names.get(type(value)) or ("a number" if isinstance(value, int | float) else None)
    return Problem("record", f"expected an object, got {kind or type(value).__name__}")


def _read_samples_of_record(
    raw: RawRecord, reading: _Reading
) -> Iterator[LocatedSample | InputFault]:
    """Yield the sample of a record, or one for each answer in it."""
    fields = reading.fields
    # Several answers: of a published data set, of systems in TrustScore's file, turns of a chat.
    flat = recognising.flatten_published(raw.record, fields)
    known_as = recognising.reach(raw.record, fields.get("id", "id"))
    has_id = known_as not in (recognising.ABSENT, None)
    systems: Mapping[str, Mapping[str, Any]] = {}
    if not flat:
        # Where no id can be computed the record cannot be read; ``_read_sample`` reports why.
        with suppress(RecursionError, ValueError):
            systems = recognising.split_systems(raw.record, fields)
    parts = [(f"answer {number}", record) for number, record in enumerate(flat, 1)]
    parts += [(" ".join(clean(name).split()), record) for name, record in systems.items()]
    if reading.turns == ALL and not parts and "question" not in fields:
        # Problems in the chat (``SampleError`` is a ``ValueError``) are reported below as well.
        with suppress(RecursionError, ValueError):
            turn_records = _split_turns(raw.record, known_as if has_id else None, reading)
            parts = [(f"turn {number}", record) for number, record in enumerate(turn_records, 1)]
    if len(flat) == 1 or not parts:
        yield _read_sample(raw._replace(record=flat[0]) if flat else raw, reading)
        return
    # The id of each part was already derived from the record's.
    fields_except_id = {
        canonical: theirs for canonical, theirs in fields.items() if canonical != "id"
    }
    reading = reading._replace(fields=fields_except_id)
    for name, record in parts:
        result = _read_sample(raw._replace(where=f"{raw.where}: {name}", record=record), reading)
        yield result if flat or isinstance(result, InputFault) else result._replace(has_id=has_id)


def _split_turns(
    record: Mapping[str, Any], known_as: Any, reading: _Reading
) -> Sequence[Mapping[str, Any]]:
    result = split_turns(record, known_as)
    # The last record has the fields of the chat, among which may be its answer.
    is_open = len(result) > 1 and not reading.unanswered
    if is_open and recognising.recognise(result[-1], reading.fields).lacks_answer_of_last_turn:
        return split_turns(record, known_as, answered=True)
    return result


def _read_sample(raw: RawRecord, reading: _Reading) -> LocatedSample | InputFault:
    fields, unknown_fields, left_out = reading.fields, None, False
    try:
        recognised = recognising.recognise(raw.record, fields)
        # Where only the last answer is wanted, a chat that ends in a call was cut off: that is a
        # fault. Of all turns, the answered ones before it are worth reading.
        is_open = (
            recognised.lacks_answer_of_last_turn
            if reading.turns == ALL
            else recognised.lacks_last_answer
        )
        if is_open and not reading.unanswered:
            with_answer = recognising.recognise(raw.record, fields, answered=True)
            # A chat without any answer stays as it is, and is a fault where there is no model.
            left_out = with_answer.record.get("response") is not None
            recognised = with_answer if left_out else recognised
        record = recognised.record
        # An empty cell is a missing field.
        if raw.of_table:
            record = {k: v for k, v in record.items() if v is not None}
        problems = [*raw.problems, *recognised.problems]
        try:
            sample = Sample.parse(record)
        except SampleError as error:
            # A field with a problem of reading it needs no second one.
            reported_fields = {problem.field for problem in problems}
            unknown_fields = find_unknown_fields(recognised, error.problems)
            result = map(recognised.use_original_names, error.problems)
            problems += [problem for problem in result if problem.field not in reported_fields]
    except RecursionError:
        problems = [Problem("record", "is nested too deeply")]
    except SampleError as error:
        problems = [*raw.problems, *error.problems]
    except ValueError as error:
        # A number in an iterable with more digits than Python converts to text.
        problems = [Problem("record", f"cannot be read ({error})")]
    if problems:
        cleaned = tuple(Problem(clean(p.field), p.message) for p in problems)
        return InputFault(raw.where, cleaned, unknown_fields)
    if left_out:
        sample = replace(sample, metadata={**sample.metadata, UNANSWERED_FIELD: True})
    has_id = recognised.record.get("id") is not None
    return LocatedSample(
        raw.where,
        sample,
        has_id,
        recognised.use_original_names,
        partial(find_unknown_fields, recognised),
    )

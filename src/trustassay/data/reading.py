"""Samples from a file, a folder or an iterable, one at a time, each with its place.

A record that is not a sample becomes a :class:`Fault` in its place, so that one bad line does not
prevent the others from being read, and a user sees all faults together.
"""

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

from trustassay.data import arrow, otlp, places, recognising
from trustassay.data.conversations import CHATS, is_no_answer, turns_of
from trustassay.data.messages import messages_of
from trustassay.data.places import File, Place, place_of
from trustassay.data.records import Fault, InputError, Raw, Untold, is_nan, missing_source, plain
from trustassay.data.source_files import NAME, STANDARD_INPUT, kept_input, opened
from trustassay.data.tables import csv_records, workbook_records
from trustassay.data.traces import is_trace, traced
from trustassay.errors import did_you_mean
from trustassay.sample import CANONICAL_FIELDS, Problem, Sample, SampleError, clean

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
        return _file(kept.path, NAME, fields, kept.kind)
    if (place := place_of(name)) is not None:
        return _records_at(place, name, fields)
    path = Path(name)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:  # no permission, or a name that no file can have
        raise InputError(f"{name[:200]}: cannot be read ({error.strerror})") from error
    if is_folder:
        return _folder(path, name, fields)
    if not exists:
        raise InputError(f"{name}: no such file")
    return _file(path, name, fields)


def _records_at(place: Place, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    if place.table:
        return arrow.batch_records(arrow.in_slices(place.table()), f"{name:.80}", fields)
    if not place.files:
        raise InputError(f"{name}: no such file, and no file matches")
    alone = place.files.get("")
    return _file(alone, name, fields) if alone else _files(place.files, name, fields)


def _file(path: File, name: str, fields: Mapping[str, str], kind: str = "") -> Iterator[Raw]:
    kind = kind or places.checked_kind(path, name)
    if kind in {".jsonl", ".ndjson"}:
        return _json_lines(path, name)
    if kind == ".json":
        return _json(path, name, fields)
    if kind == ".xlsx":
        return workbook_records(path, name, fields)
    if kind == ".parquet":
        return _parquet(path, name, fields)
    if kind in places.OTLP:
        return otlp.records_of(path, name)
    return csv_records(path, name, fields, "\t" if kind == ".tsv" else ",")


def _json_lines(path: File, name: str) -> Iterator[Raw]:
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


def _json(path: File, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    if _one_object_a_line(path, name):
        yield from _json_lines(path, name)
        return
    content = _json_file(path, name)
    lists = [content.get(name) for name in CHATS] if isinstance(content, dict) else []
    alone = is_trace(content) or any(messages_of(one) for one in lists if isinstance(one, list))
    records = [content] if alone else content
    if isinstance(records, dict):
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
    result = next((content[name] for name in _LISTS if name in content), None)
    inside = result.get("results") if isinstance(result, Mapping) else None
    return inside if isinstance(inside, list) else result


def _one_object_a_line(path: File, name: str) -> bool:
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
    asks = recognising.tells_question(columns, fields) or recognising.is_published(columns.keys())
    return (
        [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)] if asks else None
    )


def _json_file(path: File, name: str) -> Any:
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


def _parquet(path: File, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, io.SEEK_END)
            stream.seek(max(0, size - 8))
            tail = stream.read(8)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    if tail[4:] != b"PAR1" or int.from_bytes(tail[:4], "little") > size - 12:
        raise InputError(f"{name}: is not a complete Parquet file")
    yield from arrow.batch_records(_batches(path, name, "Parquet"), name, fields)


def _folder(path: Path, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    if (path / "state.json").is_file():
        state = _json_file(path / "state.json", f"{name}/state.json")
        try:
            shards = [path / Path(entry["filename"]).name for entry in state["_data_files"]]
        except (KeyError, TypeError) as error:
            raise InputError(f"{name}/state.json: names no data files") from error
        batches = chain.from_iterable(_batches(shard, str(shard), "Arrow") for shard in shards)
        return arrow.batch_records(batches, name, fields)
    if not (path / "dataset_dict.json").is_file():
        return _files_in(path, name, fields)
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


def _files_in(path: Path, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    if (path / "run.json").is_file():
        message = "is the folder of a run, which has answers already"
        raise InputError(f"{name}: {message}; to score them again: trustassay rescore {name}")
    return _files(places.files_below(path), name, fields)


def _files(found: Mapping[str, File], name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    """Return the records of files below a folder; folders ``KEY=VALUE`` are fields of the records
    in them that have none of the name.
    """
    paths = places.record_files(found, name)

    def records() -> Iterator[Raw]:
        for path in paths:
            keys, file = places.keys_of(path), found[path]
            for raw in _file(file, str(file), fields):
                own = raw.record
                yield raw._replace(record=keys | own) if keys and isinstance(own, dict) else raw

    return records()


def _batches(path: File, name: str, kind: str) -> Iterator[Any]:
    from arro3.io import read_ipc_stream, read_parquet

    try:
        with path.open("rb") as file:
            reader = read_parquet(file) if kind == "Parquet" else read_ipc_stream(file)
            yield from arrow.in_slices(reader)
    except BaseException as error:
        if not arrow.of_arrow(error):
            raise
        raise InputError(f"{name}: is not a readable {kind} file ({error})") from error


_NO_FIELDS: Mapping[str, str] = MappingProxyType({})
TURNS = LAST, ALL = "last", "all"
"""Turns of a chat log that are samples."""


class Located(NamedTuple):
    """A sample, its place in the input, and whether it has its own id.

    ``in_own_words`` returns a problem of the sample with its field as the record names it;
    ``untold`` what problems miss because no name of the record is known for it.
    """

    where: str
    sample: Sample
    has_id: bool = True
    in_own_words: Callable[[Problem], Problem] = lambda problem: problem
    untold: Callable[[Iterable[Problem]], Untold | None] = lambda problems: None  # noqa: ARG005


class Files(tuple[str, ...]):
    """Paths of several files that are one input. A list of texts is none: a record from elsewhere
    must never name a file.
    """

    __slots__ = ()

    @classmethod
    def of(cls, source: Any) -> Any:
        """Return the files that a caller's list of paths names, of one path that path alone;
        anything else as it is.
        """
        if not isinstance(source, list | tuple) or not source:
            return source
        if not all(isinstance(one, str | os.PathLike) for one in source):
            return source
        return cls(map(os.fspath, source)) if len(source) > 1 else source[0]


def paths_of(source: Any) -> list[str]:
    """Return the paths of an input, none where it is no file."""
    if isinstance(source, Files):
        return list(source)
    return [os.fspath(source)] if isinstance(source, str | os.PathLike) else []


def read_samples(
    source: str
    | os.PathLike[str]
    | arrow.ArrowStream
    | Iterable[Mapping[str, Any] | Sample | str | os.PathLike[str]],
    *,
    fields: Mapping[str, str] = _NO_FIELDS,
    turns: str = LAST,
) -> Iterator[Located | Fault]:
    """Read samples in the layout of this project or of another tool (``docs/input.md``).

    A record of TrustScore, CHALE or HaluEval holds several answers: each is a sample.

    ``source`` is a path, :class:`Files`, a table, or an iterable of records and samples. Paths are
    distinguished by suffix: ``.jsonl``, ``.ndjson``, ``.json``, ``.csv``, ``.tsv`` (each also with
    ``.gz`` or ``.zst``), ``.xlsx``, ``.parquet``, or a folder: one that ``save_to_disk`` of Hugging
    Face ``datasets`` wrote, or one of such files, which are one input; ``-`` is standard input. All
    are read in pieces, except ``.json``, which is loaded completely. Tables are frames of pandas
    and polars, Arrow tables and Hugging Face datasets.

    Of several files the id of an answer is followed by its model, or, where it names none, by the
    name of its file, which then counts as its model: files of several models may share their ids.

    ``fields`` maps canonical names to the record's own, where dots descend into objects
    (``{"label": "scores.human"}``); it overrides any layout. ``turns`` are those of chat logs that
    are samples: the ``last`` of each, or ``all`` that are answered.

    Results are in input order; a faulty record raises nothing, it yields a ``Fault``.

    Raises:
        InputError: at once, for a path that is not there or of no known kind and for an unknown
            canonical name, or a path that is given twice; while iterating, for a broken file, a
            header that names no question, an input without records, and a field of ``fields`` that
            no record has.
    """
    if turns not in TURNS:
        raise InputError(did_you_mean("turns", turns, TURNS))
    for name in fields:
        if name not in CANONICAL_FIELDS:
            raise InputError(did_you_mean("canonical field", name, CANONICAL_FIELDS))
    if paths := paths_of(source):
        names = _names_of(paths)
        read = [_read(raw_records(path, fields), path, fields, turns) for path in paths]
        return chain.from_iterable(map(_named, read, names)) if len(paths) > 1 else read[0]
    if (rows := arrow.frame_records(source, fields)) is not None:
        return _read(rows, arrow.FRAME, fields, turns)
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        kind = type(source).__name__
        raise InputError(f"expected a path or an iterable of records, got a single {kind}")
    return _read(_in_memory(source), "the samples", fields, turns)


def _names_of(paths: Sequence[str]) -> list[str]:
    """Return a name for each file, without folder and suffix where these tell them apart; raises
    :class:`InputError` for a path that is given twice."""
    for place, path in enumerate(paths):
        if path in paths[:place]:
            raise InputError(f"{path}: is given twice")
    bare = [one.with_suffix("") if one.name else one for one in map(PurePath, paths)]
    for parts in range(1, max(len(one.parts) for one in bare) + 1):
        names = ["/".join(one.parts[-parts:]) for one in bare]
        if len(set(names)) == len(names):
            return names
    return list(paths)


def _named(found: Iterator[Located | Fault], name: str) -> Iterator[Located | Fault]:
    """Yield the samples of one of several files, each with its model in its id."""
    for one in found:
        if isinstance(one, Located):
            model = one.sample.model or name
            sample = replace(one.sample, id=f"{one.sample.id}-{model}", model=model)
            yield one._replace(sample=sample)
        else:
            yield one


def _in_memory(records: Iterable[Any]) -> Iterator[Raw]:
    for number, record in enumerate(records, 1):
        where = f"sample {number}"
        if not isinstance(record, Mapping):
            yield Raw(where, record)
            continue
        try:
            values = {str(key): plain(value) for key, value in record.items()}
        except RecursionError:
            yield Raw(where, None, (Problem("record", "is nested too deeply"),))
            continue
        yield Raw(where, {k: v for k, v in values.items() if not is_nan(v)})


def _read(
    raws: Iterator[Raw], name: str, fields: Mapping[str, str], turns: str
) -> Iterator[Located | Fault]:
    unseen = dict(fields)
    count = 0
    keys: set[str] = set()
    for raw in traced((recognising.with_values(raw, fields) for raw in raws), name):
        if isinstance(raw.record, Mapping) and is_no_answer(raw.record):
            continue
        count += 1
        if isinstance(raw.record, Sample):
            yield _checked(raw.where, raw.record)
        elif not isinstance(raw.record, Mapping):
            yield Fault(raw.where, raw.problems or (_not_a_record(raw.record),))
        else:
            if unseen:
                keys.update(raw.record)
                unseen = {
                    k: v
                    for k, v in unseen.items()
                    if recognising.reach(raw.record, v) is recognising.ABSENT
                }
            yield from _samples(raw, fields, turns)
    if not count:
        raise InputError(f"{name}: contains no records")
    if keys:
        for canonical, theirs in unseen.items():
            raise missing_source(name, canonical, theirs, keys)


def _checked(where: str, sample: Sample) -> Located | Fault:
    """Check a sample that was built in Python by the same rules as a record."""
    try:
        return Located(where, Sample.parse(sample.to_dict()))
    except SampleError as error:
        return Fault(where, error.problems)


def _not_a_record(value: Any) -> Problem:
    names = {type(None): "null", list: "a list", str: "text", bool: "a boolean"}
    kind = names.get(type(value)) or ("a number" if isinstance(value, int | float) else None)
    return Problem("record", f"expected an object, got {kind or type(value).__name__}")


def _samples(raw: Raw, fields: Mapping[str, str], turns: str) -> Iterator[Located | Fault]:
    """Yield the sample of a record, or of each answer that it holds."""
    flat = recognising.flattened(raw.record, fields)
    known_as = recognising.reach(raw.record, fields.get("id", "id"))
    has_id = known_as not in (recognising.ABSENT, None)
    systems: Mapping[str, Mapping[str, Any]] = {}
    if not flat:
        with suppress(RecursionError, ValueError):  # else no id can be made: it cannot be read
            systems = recognising.systems_of(raw.record, fields)
    parts = [(f"answer {number}", record) for number, record in enumerate(flat, 1)]
    parts += [(" ".join(clean(name).split()), record) for name, record in systems.items()]
    if turns == ALL and not parts and "question" not in fields:
        with suppress(RecursionError, ValueError):  # also what is wrong in the chat: told below
            told = turns_of(raw.record, known_as if has_id else None)
            parts = [(f"turn {number}", record) for number, record in enumerate(told, 1)]
    if len(flat) == 1 or not parts:
        yield _sample(raw._replace(record=flat[0]) if flat else raw, fields)
        return
    own = {canonical: theirs for canonical, theirs in fields.items() if canonical != "id"}
    for name, record in parts:
        result = _sample(raw._replace(where=f"{raw.where}: {name}", record=record), own)
        yield result if flat or isinstance(result, Fault) else result._replace(has_id=has_id)


def _sample(raw: Raw, fields: Mapping[str, str]) -> Located | Fault:
    untold = None
    try:
        recognised = recognising.recognise(raw.record, fields)
        record = recognised.record
        if raw.of_table:
            record = {k: v for k, v in record.items() if v is not None}
        problems = [*raw.problems, *recognised.problems]
        try:
            sample = Sample.parse(record)
        except SampleError as error:
            known = {problem.field for problem in problems}
            untold = recognised.untold(error.problems)
            result = map(recognised.in_own_words, error.problems)
            problems += [problem for problem in result if problem.field not in known]
    except RecursionError:
        problems = [Problem("record", "is nested too deeply")]
    except SampleError as error:
        problems = [*raw.problems, *error.problems]
    except ValueError as error:  # of an iterable: a number of more digits than Python writes out
        problems = [Problem("record", f"cannot be read ({error})")]
    if problems:
        shown = tuple(Problem(clean(p.field), p.message) for p in problems)
        return Fault(raw.where, shown, untold)
    has_id = recognised.record.get("id") is not None
    return Located(raw.where, sample, has_id, recognised.in_own_words, recognised.untold)

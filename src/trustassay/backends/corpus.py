"""A corpus as a stream of passages: a folder of texts, JSON Lines, CSV, TSV or Parquet files.

Only the current record is in memory, so that a dump of tens of millions of passages can be read.
"""

import csv
import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from trustassay.core.capabilities import Passage
from trustassay.core.sample import LONGEST_LINE_MIB, Problem, clean
from trustassay.input.bounds import BoundedRows, iter_lines
from trustassay.input.places import open_text
from trustassay.input.reading import read_raw_records
from trustassay.input.records import InputError, RawRecord
from trustassay.input.tables import MAX_CELL_CHARACTERS, SAVE_AS_UTF8
from trustassay.text.sentences import pack_sentences

KNOWN_CORPORA = (
    "a folder of .txt, .md, .jsonl, .csv, .tsv or .parquet files, or one such file "
    "(text files also with .gz)"
)
TEXT_WORDS = 100
"""Words of the passages into which plain text is cut, as in the Wikipedia dump of DPR."""
MAX_FAULTS = 20
BLOCK_CHARS = 100_000
"""Characters of plain text that are processed together; paragraphs are rarely as long."""

_TEXT_SUFFIXES = frozenset({".txt", ".md"})
_TABLE_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_RECORD_SUFFIXES = frozenset({".jsonl", ".ndjson", ".json", ".parquet"})
# Our names of fields first, then those of common dumps, as BEIR's `_id`.
_COLUMN_NAMES = {
    "id": ("id", "_id", "docid"),
    "title": ("title",),
    "text": ("text", "contents", "passage"),
}


def read_corpus(source: str | os.PathLike[str], *, words: int | None = None) -> Iterator[Passage]:
    """Yield the passages of a corpus, files in the order of their names.

    A record has ``text`` (or ``contents`` or ``passage``) and may have ``title`` and ``id`` (or
    ``_id`` or ``docid``); without an id it gets one from its place. The title of a plain text is
    the name of its file.

    Args:
        source: a file or a folder.
        words: the length of passages into which every document is cut, see :func:`cut_passages`; by
            default plain text is cut at 100 words, and records are not cut.

    Raises:
        InputError: at once, for a path that does not exist or is of no known kind; while iterating,
            after the twentieth faulty record or at the end: each fault with file, line and field.
    """
    return _read_passages(_find_files(Path(source)), words)


def compute_corpus_mark(source: str | os.PathLike[str]) -> str:
    """Return a digest of the files' names, sizes and times of change, which changes when a file
    does."""
    root = Path(source)
    digest = hashlib.blake2b(digest_size=8)
    for path in _find_files(root):
        status = path.stat()
        name = path.relative_to(root) if path != root else path.name
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def corpus_size(source: str | os.PathLike[str]) -> int:
    """Return the total size of a corpus's files, in bytes."""
    return sum(path.stat().st_size for path in _find_files(Path(source)))


def cut_passages(text: str, words: int) -> Iterator[str]:
    """Cut a text into passages of at most ``words`` words, at ends of sentences if possible.

    Only a sentence that is itself longer is cut within. White space becomes single spaces; the
    words of all passages, in order, are the words of the text.
    """
    yield from map(" ".join, pack_sentences(_split_sentences(text), words))


def _split_sentences(text: str) -> Iterator[list[str]]:
    """Yield the words of each sentence; a word is never split, whatever the segmenter says."""
    import sentencex

    for paragraph in text.split("\n\n"):
        # Ends of sentences are counted in characters without white space, which the segmenter may
        # change.
        lengths = (len("".join(s.split())) for s in sentencex.segment("en", paragraph))
        sentence_ends = set(accumulate(lengths))
        sentence, characters = list[str](), 0
        for word in paragraph.split():
            sentence.append(word)
            characters += len(word)
            if characters in sentence_ends:
                yield sentence
                sentence = []
        if sentence:
            yield sentence


def _find_files(root: Path) -> list[Path]:
    """Return the files of a corpus in the order of their names."""
    try:
        if not root.exists():
            raise InputError(f"{root}: no such file or folder; expected {KNOWN_CORPORA}")
        result = [] if root.is_dir() else [root]
    except OSError as error:
        raise InputError(f"{str(root)[:200]}: cannot be read ({error.strerror})") from error
    fault = "is not a corpus" if result else "contains no file that can be read"
    # Hidden files and folders are skipped, such as `.git` and editors' copies.
    for folder, folders, names in os.walk(root):  # a file holds none
        folders[:] = [name for name in folders if not name.startswith(".")]
        result += [Path(folder, name) for name in names if not name.startswith(".")]
    result = sorted(path for path in result if _find_suffix(path) is not None)
    if not result:
        raise InputError(f"{root}: {fault}; expected {KNOWN_CORPORA}")
    return result


def _find_suffix(path: Path) -> str | None:
    """Return the suffix that says how a file is read; ``None`` for a file that is not read."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    is_packed = suffixes[-1:] == [".gz"]
    kind = "".join(suffixes[-2:-1] if is_packed else suffixes[-1:])
    known_suffixes = _TEXT_SUFFIXES | set(_TABLE_DELIMITERS) | _RECORD_SUFFIXES
    # Parquet is compressed itself and needs random access.
    return kind if kind in known_suffixes and not (is_packed and kind == ".parquet") else None


def _read_passages(files: list[Path], words: int | None) -> Iterator[Passage]:
    """Yield the passages of all files; raise InputError with the faulty records."""
    faults: list[str] = []
    count = 0
    for path in files:
        is_text = _find_suffix(path) in _TEXT_SUFFIXES
        limit = words or (TEXT_WORDS if is_text else None)
        for location, result in _read_text_blocks(path) if is_text else _read_record_passages(path):
            if isinstance(result, str):
                faults.append(f"{location}: {result}")
                # A wrong format gives a fault in every record; twenty show the pattern.
                if len(faults) == MAX_FAULTS:
                    last_line = "... the remaining records were not checked"
                    raise InputError("\n".join([*faults, last_line]))
            else:
                count += 1
                if not limit:
                    yield result
                    continue
                for number, text in enumerate(cut_passages(result.text, limit), 1):
                    yield Passage(f"{result.id}#{number}", text, result.title)
    if faults:
        raise InputError("\n".join(faults))
    if not count:
        raise InputError(f"{files[0].parent if len(files) > 1 else files[0]}: contains no passage")


def _read_text_blocks(path: Path) -> Iterator[tuple[str, Passage | str]]:
    """Yield a plain text in blocks of whole paragraphs, or a fault of a line, each with its
    place."""
    title = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    number, block, size = 0, list[str](), 0
    with open_text(path, str(path)) as stream:
        for line_number, line in enumerate(iter_lines(stream, LONGEST_LINE_MIB), 1):
            if line is None:
                yield f"{path}:{line_number}", f"has more than {LONGEST_LINE_MIB} MiB; split it"
                continue
            try:
                # A byte order mark can only stand at the beginning.
                text = line.decode("utf-8-sig" if line_number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                yield f"{path}:{line_number}", f"byte {error.start + 1} is not UTF-8"
                continue
            block.append(text)
            size += len(text)
            # At the next blank line, or in a file without any at twice the size.
            if size >= BLOCK_CHARS and (text.isspace() or size >= 2 * BLOCK_CHARS):
                number += 1
                yield str(path), Passage(f"{path.name}:{number}", "".join(block), title)
                block, size = [], 0
    # A file of one block has no number in its id.
    if any(map(str.strip, block)):
        name = f"{path.name}:{number + 1}" if number else path.name
        yield str(path), Passage(name, "".join(block), title)


def _read_record_passages(path: Path) -> Iterator[tuple[str, Passage | str]]:
    """Yield the passages of a file of records, or what is wrong with a record, each with its
    place."""
    kind = _find_suffix(path) or ""
    raws = (
        _read_table(path, _TABLE_DELIMITERS[kind])
        if kind in _TABLE_DELIMITERS
        else read_raw_records(str(path), {})
    )
    for number, raw in enumerate(raws, 1):
        if isinstance(raw.record, Mapping) and not raw.problems:
            yield raw.where, _build_passage(raw.record, f"{path.name}:{number}")
        else:
            problems = "; ".join(map(str, raw.problems))
            yield raw.where, problems or "record: expected an object with the field text"


def _build_passage(record: Mapping[str, Any], default_id: str) -> Passage | str:
    """Return the passage of a record, or what is wrong with the record."""
    result: dict[str, str] = {}
    for field, names in _COLUMN_NAMES.items():
        name = next((n for n in names if record.get(n) is not None), field)
        value = record.get(name)
        # Numbers are common as ids; true and false are not meant as one.
        if field == "id" and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if value is not None and not isinstance(value, str):
            return f"{name}: expected text, got {type(value).__name__}"
        if field == "text" and not (value and value.strip()):
            if value is not None:
                return f"{name}: is blank"
            fields_present = ", ".join(map(str, record))[:80] or "no fields"
            return f"text: is missing (expected {' or '.join(names)}; it has {fields_present})"
        result[field] = clean(value or "")
    return Passage(result["id"] or default_id, result["text"], result["title"])


def _read_table(path: Path, delimiter: str) -> Iterator[RawRecord]:
    """Yield the rows of a table under its header, as in DPR's dump: ``id  text  title``.

    Raises:
        InputError: there is no header with a column of text, or the file is not UTF-8 or not CSV.
    """
    # The default of 128 KB is less than a long document; never lower what the program has set.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL_CHARACTERS))
    with open_text(path, str(path)) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
        lines = BoundedRows(text, LONGEST_LINE_MIB)
        lines.begin_row(f"{path}:1")
        rows = csv.reader(lines, delimiter=delimiter)
        try:
            header = [cell.strip() for cell in next(rows, [])]
            if not set(header) & set(_COLUMN_NAMES["text"]):
                expected = " or ".join(_COLUMN_NAMES["text"])
                message = f"expected a header with a column {expected} in the first line"
                raise InputError(f"{path}:1: {message}, got {' '.join(header)[:80]!r}")
            for row in rows:
                where = f"{path}:{rows.line_num}"
                lines.begin_row(f"{path}:{rows.line_num + 1}")
                if len(row) > len(header):
                    message = f"has {len(row)} cells, but the header has {len(header)} columns"
                    yield RawRecord(where, None, (Problem("record", message),))
                elif any(row):
                    # A short row lacks its last cells; csv has no other form of an absent value
                    # than an empty cell.
                    yield RawRecord(
                        where, {k: v or None for k, v in zip(header, row, strict=False)}
                    )
        except UnicodeDecodeError:
            message_text = f"{path}:{rows.line_num + 1}: is not UTF-8; {SAVE_AS_UTF8}"
            raise InputError(message_text) from None
        except csv.Error as error:
            raise InputError(f"{path}:{rows.line_num}: is not CSV ({error})") from None

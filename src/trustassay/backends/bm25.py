"""``bm25``: passages ranked by the words that they share with a query, on tantivy.

The index is in memory, or in a folder on disk that is written completely or not at all. A query is
a bag of words; nothing in it is read as an operator.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from trustassay.backends.corpus import compute_corpus_mark, corpus_size, read_corpus
from trustassay.core.capabilities import Passage
from trustassay.core.files import DiskFullError, has_no_room, open_locked
from trustassay.core.progress import Progress
from trustassay.core.sample import clean
from trustassay.errors import BackendError, install_command
from trustassay.input.records import InputError

if TYPE_CHECKING:
    import tantivy


MANIFEST = "trustassay-bm25.json"
"""Name of the file that describes a finished index; it is written last."""
# Suffix of the folder in which an index is built.
UNFINISHED = ".part"
LOCK_FILE = "lock"
ANALYSIS = "words, lower case, without accents, English stop words and stems/1"
"""How texts and queries are analysed; an index that was built differently is not used."""
MAX_WORD_CHARS = 100
HEAP_BYTES = 64_000_000
"""Memory that the writer uses before it writes to disk."""
SCORE_DIGITS = 4
"""Scores that agree to this many digits after the decimal point are ties."""


class Bm25:
    """Ranks passages by BM25 with k1 = 1.2 and b = 0.75 (Robertson and Zaragoza 2009).

    Title and text are one text. idf = ln(1 + (N - n + 0.5) / (n + 0.5)); a word that occurs twice
    in a query counts twice; tantivy stores lengths in one byte, so that scores are within a few per
    cent of the formula. Passages with equal scores are in the order of the corpus.
    """

    def __init__(self, index: tantivy.Index, name: str) -> None:
        self.name = name
        self._schema = index.schema
        self._searcher = index.searcher()

    @classmethod
    def of(cls, passages: Iterable[Passage], name: str = "bm25") -> Bm25:
        """Index passages in memory."""
        index = _create_index(None)
        _add_passages(index, passages)
        return cls(index, name)

    @classmethod
    def open(cls, folder: Path) -> Bm25:
        """Open a finished index.

        Raises:
            BackendError: it is no index, was built with other rules, or lacks files.
        """
        content = read_manifest(folder)
        if content is None:
            message = f"is not a finished index (it has no {MANIFEST}); build it again"
            raise BackendError(f"{folder}: {message}")
        # Queries are analysed by today's rules, and would silently miss the words of an older
        # index.
        if content["analysis"] != ANALYSIS:
            raise BackendError(
                f"{folder}: was built with other text rules ({content['analysis']}); remove it to "
                "have it built again"
            )
        for name, size in content["files"].items():
            path = folder / name
            # tantivy would notice only later that a copy cut a file short.
            if not path.is_file() or path.stat().st_size != size:
                raise _build_damage_error(folder, f"{name} is incomplete")
        try:
            index = _import_tantivy().Index.open(str(folder))
            index.register_tokenizer("words", _build_analyzer())
            result = cls(index, f"bm25:{content['corpus']}")
        except (ValueError, OSError) as error:
            raise _build_damage_error(folder, str(error)) from None
        if len(result) != content["passages"]:
            raise _build_damage_error(folder, "passages are missing")
        return result

    def __len__(self) -> int:
        """Return how many passages there are."""
        return int(self._searcher.num_docs)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return for each query the k best passages that share a word with it, best first."""
        return [self._rank_passages(query, k) for query in queries]

    def _rank_passages(self, query: str, k: int) -> list[Passage]:
        """Return the k best passages of a query, equal scores in the order of the corpus."""
        words = Counter(_build_analyzer().analyze(clean(query)))
        if not words or k < 1 or not len(self):
            return []
        hits = self._search_with_ties(self._build_query(words), k)
        numbers = self._searcher.fast_field_values("number", [place for _, place in hits])
        rows = zip(hits, numbers, strict=True)
        # Scores of equal passages can differ in their last digits.
        ranked = [(-round(score, SCORE_DIGITS), number, place) for (score, place), number in rows]
        ranked.sort(key=lambda hit: hit[:2])
        return [self._read_passage(place, -score) for score, _, place in ranked[:k]]

    def _build_query(self, words: Counter[str]) -> tantivy.Query:
        """Return tantivy's query: any of the words, each with its count as weight."""
        kind = _import_tantivy().Query
        terms = []
        for word, count in words.items():
            term = kind.term_query(self._schema, "contents", word, index_option="freq")
            terms.append(term if count == 1 else kind.boost_query(term, float(count)))
        # Built from terms and never parsed, so that "AND" or a quote in a question is a word.
        should = _import_tantivy().Occur.Should
        query: tantivy.Query = kind.boolean_query([(should, term) for term in terms])
        return query

    def _search_with_ties(self, query: tantivy.Query, k: int) -> list[tuple[float, Any]]:
        """Return the k best hits and all that tie with the last one.

        tantivy has an order of its own for ties, and would drop some of them.
        """
        # One hit more shows whether the k-th is tied; if it is, the search is repeated with a
        # larger limit.
        limit = k + 1
        while True:
            hits = self._searcher.search(query, limit, count=False).hits
            if len(hits) < limit or round(hits[-1][0], SCORE_DIGITS) < round(
                hits[k - 1][0], SCORE_DIGITS
            ):
                return hits
            limit *= 4

    def _read_passage(self, place: Any, score: float) -> Passage:
        """Return the stored passage of a hit."""
        stored: Any = self._searcher.doc(place).get_first("passage")
        identifier, title, text = json.loads(stored)
        return Passage(identifier, text, title, score)


def build_index(
    folder: Path, passages: Iterable[Passage], corpus: str, details: Mapping[str, Any] | None = None
) -> Bm25:
    """Write an index into ``folder``, completely or not at all, replacing an index that is there.

    The work is done in ``FOLDER.part``; the rest of a killed process there is removed. Of two
    processes the second waits for the first and uses its index. Memory does not grow with the
    corpus.

    Args:
        folder: the index.
        passages: the corpus.
        corpus: identifies its content; from :func:`compute_corpus_mark`.
        details: further entries of the manifest.

    Raises:
        BackendError: the folder contains something else.
        DiskFullError: there is no room for the index.
    """
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not is_free and read_manifest(folder) is None:
        message = "contains something that is not an index; choose another folder"
        raise BackendError(f"{folder}: {message}")
    part = folder.with_name(f"{folder.name}{UNFINISHED}")
    with _lock_folder(part):
        # Another process has built it while this one waited for the lock.
        if is_current(folder, corpus):
            leftover = part.with_name(f".{part.name}.{os.getpid()}")
            part.replace(leftover)  # at once: whoever waits may take no half of it for a new one
            shutil.rmtree(leftover)
        else:
            for path in part.iterdir():
                # The lock file must stay: it is what other processes wait for.
                if path.name != LOCK_FILE:
                    path.unlink()
            try:
                count = _add_passages(_create_index(part), passages)
                files = {
                    path.name: path.stat().st_size
                    for path in sorted(part.iterdir())
                    if not path.name.startswith(".") and path.name != LOCK_FILE
                }
                content = {**(details or {}), "corpus": corpus, "passages": count}
                content |= {"analysis": ANALYSIS, "tantivy": version("tantivy"), "files": files}
                text = json.dumps(content, indent=2) + "\n"
                # Written last: a folder with a manifest is complete.
                (part / MANIFEST).write_text(text, encoding="utf-8")
            # tantivy reports a full disk as a ValueError with a text of its own.
            except (ValueError, OSError):  # tantivy has other words for a full disk, and no name
                if has_no_room(part):
                    raise DiskFullError(folder) from None
                raise
            shutil.rmtree(folder, ignore_errors=True)
            part.replace(folder)
            # The lock file moved along. Processes that wait find nothing at its old path, and start
            # again.
            (folder / LOCK_FILE).unlink()
    return Bm25.open(folder)


def is_current(folder: Path, corpus: str) -> bool:
    """Whether ``folder`` holds a finished index of exactly this content, built by today's rules."""
    result = read_manifest(folder) or {}
    return result.get("corpus") == corpus and result.get("analysis") == ANALYSIS


def _lock_folder(part: Path) -> IO[bytes]:
    """Lock an unfinished index; a folder that is moved away meanwhile is created again."""
    while True:
        # mkdir(exist_ok=True) raises as well if the folder vanishes between its two checks.
        with suppress(FileExistsError):
            part.mkdir(parents=True)
        with suppress(FileNotFoundError):
            return open_locked(part / LOCK_FILE)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the description of a finished index; ``None`` if there is none."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    wanted = {"analysis", "corpus", "files", "passages"}
    return content if isinstance(content, dict) and wanted <= set(content) else None


def _build_damage_error(folder: Path, reason: str) -> BackendError:
    """Return the error for a damaged index, which says how to repair it."""
    return BackendError(f"{folder}: is damaged ({reason}); remove it to have it built again")


def _create_index(folder: Path | None) -> tantivy.Index:
    """Return an empty index with our schema, in memory if there is no folder."""
    engine = _import_tantivy()
    fields = engine.SchemaBuilder()
    # Only word counts are indexed: positions are of use for phrases, which no query has.
    fields.add_text_field("contents", tokenizer_name="words", index_option="freq")
    fields.add_unsigned_field("number", fast=True)
    fields.add_bytes_field("passage", stored=True)
    path = None if folder is None else str(folder)
    index: tantivy.Index = engine.Index(fields.build(), path=path, reuse=False)
    index.register_tokenizer("words", _build_analyzer())
    return index


def _add_passages(index: tantivy.Index, passages: Iterable[Passage]) -> int:
    """Add passages to an index and return how many."""
    document = _import_tantivy().Document
    count = 0
    # One thread, so that the segments, and with them the last digits of scores, are reproducible.
    with index.writer(HEAP_BYTES, num_threads=1) as writer:
        for number, passage in enumerate(passages):
            stored = json.dumps([passage.id, passage.title, passage.text])
            entry = document()
            entry.add_text("contents", clean(f"{passage.title}\n{passage.text}"))
            entry.add_unsigned("number", number)
            entry.add_bytes("passage", stored.encode())
            writer.add_document(entry)
            count += 1
        writer.commit()
        writer.wait_merging_threads()
    index.reload()
    return count


@cache
def _build_analyzer() -> tantivy.TextAnalyzer:
    """Return the analyser of texts and queries; ``ANALYSIS`` describes it."""
    engine = _import_tantivy()
    filters, builder = engine.Filter, engine.TextAnalyzerBuilder(engine.Tokenizer.simple())
    english = filters.stopword("english"), filters.stemmer("english")
    # The order matters: stop words and stems are those of lower-case words without accents.
    for step in (
        filters.remove_long(MAX_WORD_CHARS),
        filters.lowercase(),
        filters.ascii_fold(),
        *english,
    ):
        builder = builder.filter(step)
    analyzer: tantivy.TextAnalyzer = builder.build()
    return analyzer


def _import_tantivy() -> Any:
    """Return the module, or raise BackendError with the command that installs it."""
    try:
        import tantivy
    except ImportError:
        raise BackendError(f"bm25 needs tantivy: {install_command('retrieval')}") from None
    return tantivy


IN_MEMORY_BYTES = 50_000_000
"""A larger corpus is indexed on disk."""
PASSAGES_PER_UPDATE = 1000
"""Passages after which the progress bar is updated."""


def bm25_retriever(
    path: str | os.PathLike[str],
    index: str | os.PathLike[str] = "",
    *,
    words: int | None = None,
    progress: bool = False,
) -> Bm25:
    """Return the retriever over a corpus, or over an existing index.

    A small corpus is indexed in memory; a large one, or any if ``index`` names a folder, on disk,
    by default in ``PATH.bm25`` next to it. An index of the same files is used again; if the files
    have changed, it is built anew.

    Args:
        path: a corpus or an index. index: the folder of the index.
        words: see :func:`~trustassay.backends.corpus.read_corpus`. progress: whether it is shown.

    Raises:
        InputError: the corpus does not exist, or has faults.
        BackendError: the index is unfinished, damaged, or older than its corpus.
    """
    path = Path(path)
    if read_manifest(path) is not None:
        if index or words is not None:
            message = "is already an index; only a corpus has the options index and words"
            raise BackendError(f"{path}: {message}")
        return _open_current(path)
    # Without this check its files would be read as a corpus.
    if path.name.endswith(UNFINISHED) and (path / "meta.json").exists():
        raise BackendError(f"{path}: is an unfinished index; name the corpus to build it")
    corpus = _build_mark(path, words)
    if not index and corpus_size(path) <= IN_MEMORY_BYTES:
        return Bm25.of(_read_passages(path, words, progress=progress), f"bm25:{corpus}")
    folder = Path(index or f"{path}.bm25")
    if is_current(folder, corpus):
        return Bm25.open(folder)
    about = {"source": str(path.absolute()), "words": words}
    try:
        return build_index(folder, _read_passages(path, words, progress=progress), corpus, about)
    except DiskFullError:
        raise
    except OSError as error:
        raise BackendError(f"{folder}: cannot be written ({error.strerror or error})") from error


def _read_passages(path: Path, words: int | None, *, progress: bool) -> Iterator[Passage]:
    """Yield the passages of a corpus while a progress bar runs."""
    with Progress("indexing", visible=progress) as bar:
        for number, passage in enumerate(read_corpus(path, words=words), 1):
            yield passage
            if number % PASSAGES_PER_UPDATE == 0:
                bar.step(PASSAGES_PER_UPDATE)


def _open_current(folder: Path) -> Bm25:
    """Open an index that the user named, unless its corpus has changed since."""
    content = read_manifest(folder) or {}
    source, words = content.get("source"), content.get("words")
    # An index may be used without its corpus, for example on another machine.
    if source and Path(source).exists():
        try:
            changed = _build_mark(Path(source), words) != content["corpus"]
        except InputError:
            changed = True
        if changed:
            raise BackendError(
                f"{folder}: {source} has changed since it was indexed; name it to build the index "
                f"again: bm25:{source}?index={folder}"
            )
    return Bm25.open(folder)


def _build_mark(path: Path, words: int | None) -> str:
    """Return the mark of a corpus that is cut in this way."""
    return compute_corpus_mark(path) + (f"/{words}" if words else "")

"""``bm25``: passages ranked by the words they share with a query, on tantivy.

In memory, or in a folder on disk that is written whole or not at all. A query is a bag of words;
nothing in it is read as an operator.
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

from trustassay.capabilities import Passage
from trustassay.data.records import InputError
from trustassay.errors import BackendError, install
from trustassay.files import DiskFullError, alone, has_no_room
from trustassay.progress import Progress
from trustassay.retrieval.corpus import corpus_mark, corpus_size, read_corpus
from trustassay.sample import clean

if TYPE_CHECKING:
    import tantivy


MANIFEST = "trustassay-bm25.json"
"""File in every finished index; written last."""
UNFINISHED = ".part"
LOCK_FILE = "lock"
ANALYSIS = "words, lower case, without accents, English stop words and stems/1"
"""How texts and queries are analysed; an index built in another way is not used."""
MAX_WORD_CHARS = 100
HEAP_BYTES = 64_000_000
"""What the writer keeps in memory before it goes to disk."""
SCORE_DIGITS = 4
"""Scores that agree to this many digits after the decimal point are ties."""


class Bm25:
    """Ranks passages by BM25 with k1 = 1.2 and b = 0.75 (Robertson and Zaragoza 2009).

    Title and text are one text. idf = ln(1 + (N - n + 0.5) / (n + 0.5)); a word that occurs
    twice in a query counts twice; lengths are stored in one byte, so that scores are within a few
    per cent of the formula. Passages with equal scores are in the order of the corpus.
    """

    def __init__(self, index: tantivy.Index, name: str) -> None:
        self.name = name
        self._schema = index.schema
        self._searcher = index.searcher()

    @classmethod
    def of(cls, passages: Iterable[Passage], name: str = "bm25") -> Bm25:
        """Index passages in memory."""
        index = _new_index(None)
        _fill(index, passages)
        return cls(index, name)

    @classmethod
    def open(cls, folder: Path) -> Bm25:
        """Open a finished index; raises BackendError if it is none, was built with other rules, or
        lacks files.
        """
        content = manifest_of(folder)
        if content is None:
            message = f"is not a finished index (it has no {MANIFEST}); build it"
            raise BackendError(f"{folder}: {message}")
        if content["analysis"] != ANALYSIS:
            raise BackendError(f"{folder}: was built with other rules ({content['analysis']})")
        for name, size in content["files"].items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != size:
                raise _build_damage_error(folder, f"{name} is not complete")
        try:
            index = _import_tantivy().Index.open(str(folder))
            index.register_tokenizer("words", _analyzer())
            opened = cls(index, f"bm25:{content['corpus']}")
        except (ValueError, OSError) as error:
            raise _build_damage_error(folder, str(error)) from None
        if len(opened) != content["passages"]:
            raise _build_damage_error(folder, "passages are missing")
        return opened

    def __len__(self) -> int:
        """Return how many passages there are."""
        return int(self._searcher.num_docs)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return for each query the k best of the passages that share a word with it."""
        return [self._rank_passages(query, k) for query in queries]

    def _rank_passages(self, query: str, k: int) -> list[Passage]:
        words = Counter(_analyzer().analyze(clean(query)))
        if not words or k < 1 or not len(self):
            return []
        hits = self._search_with_ties(self._build_query(words), k)
        numbers = self._searcher.fast_field_values("number", [place for _, place in hits])
        rows = zip(hits, numbers, strict=True)
        ranked = [(-round(score, SCORE_DIGITS), number, place) for (score, place), number in rows]
        ranked.sort(key=lambda hit: hit[:2])
        return [self._read_passage(place, -score) for score, _, place in ranked[:k]]

    def _build_query(self, words: Counter[str]) -> tantivy.Query:
        kind = _import_tantivy().Query
        terms = []
        for word, count in words.items():
            term = kind.term_query(self._schema, "contents", word, index_option="freq")
            terms.append(term if count == 1 else kind.boost_query(term, float(count)))
        should = _import_tantivy().Occur.Should
        query: tantivy.Query = kind.boolean_query([(should, term) for term in terms])
        return query

    def _search_with_ties(self, query: tantivy.Query, k: int) -> list[tuple[float, Any]]:
        """Return the k best and all that tie with the last: tantivy's order is not ours."""
        limit = k + 1
        while True:
            hits = self._searcher.search(query, limit, count=False).hits
            if len(hits) < limit or round(hits[-1][0], SCORE_DIGITS) < round(
                hits[k - 1][0], SCORE_DIGITS
            ):
                return hits
            limit *= 4

    def _read_passage(self, place: Any, score: float) -> Passage:
        stored: Any = self._searcher.doc(place).get_first("passage")
        identifier, title, text = json.loads(stored)
        return Passage(identifier, text, title, score)


def build_index(
    folder: Path, passages: Iterable[Passage], corpus: str, about: Mapping[str, Any] | None = None
) -> Bm25:
    """Write an index into ``folder``, in full or not at all, replacing one that is there.

    ``corpus`` marks the content that is indexed; ``about`` is kept next to it. The work is done in
    ``FOLDER.part``; what a killed process left there is removed. Of two processes the second
    waits for the first and uses its index. Memory does not grow with the corpus. A folder of
    something else raises BackendError.
    """
    empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not empty and manifest_of(folder) is None:
        message = "contains something that is not an index; choose another folder"
        raise BackendError(f"{folder}: {message}")
    part = folder.with_name(f"{folder.name}{UNFINISHED}")
    with _lock_folder(part):
        if is_current(folder, corpus):
            done_with = part.with_name(f".{part.name}.{os.getpid()}")
            part.replace(done_with)  # at once: whoever waits may take no half of it for a new one
            shutil.rmtree(done_with)
        else:
            for path in part.iterdir():
                if path.name != LOCK_FILE:
                    path.unlink()
            try:
                count = _fill(_new_index(part), passages)
                files = {
                    path.name: path.stat().st_size
                    for path in sorted(part.iterdir())
                    if not path.name.startswith(".") and path.name != LOCK_FILE
                }
                content = {**(about or {}), "corpus": corpus, "passages": count}
                content |= {"analysis": ANALYSIS, "tantivy": version("tantivy"), "files": files}
                text = json.dumps(content, indent=2) + "\n"
                (part / MANIFEST).write_text(text, encoding="utf-8")
            except (ValueError, OSError):  # tantivy has other words for a full disk, and no name
                if has_no_room(part):
                    raise DiskFullError(folder) from None
                raise
            shutil.rmtree(folder, ignore_errors=True)
            part.replace(folder)
            (folder / LOCK_FILE).unlink()
    return Bm25.open(folder)


def is_current(folder: Path, corpus: str) -> bool:
    """Whether ``folder`` holds a finished index of just this content, made by today's rules."""
    result = manifest_of(folder) or {}
    return result.get("corpus") == corpus and result.get("analysis") == ANALYSIS


def _lock_folder(part: Path) -> IO[bytes]:
    """Hold the lock of an unfinished index; a folder moved away meanwhile is created again."""
    while True:
        with suppress(FileExistsError):  # exist_ok would raise where it is moved away just then
            part.mkdir(parents=True)
        with suppress(FileNotFoundError):
            return alone(part / LOCK_FILE)


def manifest_of(folder: Path) -> dict[str, Any] | None:
    """Return the description of a finished index, ``None`` if there is none."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    wanted = {"analysis", "corpus", "files", "passages"}
    return content if isinstance(content, dict) and wanted <= set(content) else None


def _build_damage_error(folder: Path, how: str) -> BackendError:
    return BackendError(f"{folder}: is damaged ({how}); remove it to have it built again")


def _new_index(folder: Path | None) -> tantivy.Index:
    engine = _import_tantivy()
    fields = engine.SchemaBuilder()
    fields.add_text_field("contents", tokenizer_name="words", index_option="freq")
    fields.add_unsigned_field("number", fast=True)
    fields.add_bytes_field("passage", stored=True)
    path = None if folder is None else str(folder)
    index: tantivy.Index = engine.Index(fields.build(), path=path, reuse=False)
    index.register_tokenizer("words", _analyzer())
    return index


def _fill(index: tantivy.Index, passages: Iterable[Passage]) -> int:
    """Add passages and return how many; one writing thread, so that an index is reproducible."""
    document = _import_tantivy().Document
    count = 0
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
def _analyzer() -> tantivy.TextAnalyzer:
    engine = _import_tantivy()
    part, building = engine.Filter, engine.TextAnalyzerBuilder(engine.Tokenizer.simple())
    english = part.stopword("english"), part.stemmer("english")
    for step in (part.remove_long(MAX_WORD_CHARS), part.lowercase(), part.ascii_fold(), *english):
        building = building.filter(step)
    analyzer: tantivy.TextAnalyzer = building.build()
    return analyzer


def _import_tantivy() -> Any:
    try:
        import tantivy
    except ImportError:
        raise BackendError(f"bm25 needs tantivy: {install('retrieval')}") from None
    return tantivy


IN_MEMORY_BYTES = 50_000_000
"""A corpus of larger files is indexed on disk."""
PASSAGES_PER_UPDATE = 1000
"""Passages between two looks at the clock."""


def bm25_retriever(
    path: str | os.PathLike[str],
    index: str | os.PathLike[str] = "",
    *,
    words: int | None = None,
    progress: bool = False,
) -> Bm25:
    """Return the retriever over a corpus, or over an existing index.

    A small corpus is indexed in memory; a large one, or any if ``index`` names a folder, on
    disk, by default in ``PATH.bm25`` next to it. An index of the same files is used again; if the
    files have changed, it is built again. ``words``: see
    :func:`~trustassay.retrieval.corpus.read_corpus`.

    Raises:
        InputError: the corpus is not there, or has faults.
        BackendError: the index is unfinished, damaged, or older than the corpus it was made of.
    """
    path = Path(path)
    if manifest_of(path) is not None:
        if index or words is not None:
            message = "is already an index; index and words are options for a corpus"
            raise BackendError(f"{path}: {message}")
        return _open_current(path)
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
    with Progress("indexing", shown=progress) as bar:
        for number, passage in enumerate(read_corpus(path, words=words), 1):
            yield passage
            if number % PASSAGES_PER_UPDATE == 0:
                bar.step(PASSAGES_PER_UPDATE)


def _open_current(folder: Path) -> Bm25:
    content = manifest_of(folder) or {}
    source, words = content.get("source"), content.get("words")
    if source and Path(source).exists():
        try:
            changed = _build_mark(Path(source), words) != content["corpus"]
        except InputError:
            changed = True
        if changed:
            raise BackendError(
                f"{folder}: {source} has changed since it was indexed; name the corpus and "
                f"index={folder} to build it again"
            )
    return Bm25.open(folder)


def _build_mark(path: Path, words: int | None) -> str:
    return corpus_mark(path) + (f"/{words}" if words else "")

"""From a path to a BM25 retriever: a corpus in memory, a corpus on disk, or an index."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl

from trustassay.capabilities import Passage
from trustassay.data.records import InputError
from trustassay.errors import BackendError, UnknownNameError, did_you_mean
from trustassay.files import DiskFullError
from trustassay.progress import Progress
from trustassay.retrieval.bm25 import UNFINISHED, Bm25, build_index, is_current, manifest_of
from trustassay.retrieval.corpus import corpus_mark, corpus_size, read_corpus

__all__ = ["IN_MEMORY_BYTES", "bm25_retriever", "bm25_retriever_of"]

IN_MEMORY_BYTES = 50_000_000
"""A corpus of larger files is indexed on disk."""
STEP = 1000
"""Passages between two looks at the clock."""


def bm25_retriever(
    path: str | os.PathLike[str],
    index: str | os.PathLike[str] | None = None,
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
        if index is not None or words is not None:
            raise BackendError(
                f"{path}: is already an index; index and words are options for a corpus"
            )
        return _opened(path)
    if path.name.endswith(UNFINISHED) and (path / "meta.json").exists():
        raise BackendError(f"{path}: is an unfinished index; name the corpus to build it")
    corpus = _mark(path, words)
    if index is None and corpus_size(path) <= IN_MEMORY_BYTES:
        return Bm25.of(_passages(path, words, progress=progress), f"bm25:{corpus}")
    folder = Path(f"{path}.bm25") if index is None else Path(index)
    if is_current(folder, corpus):
        return Bm25.open(folder)
    about = {"source": str(path.absolute()), "words": words}
    try:
        passages = _passages(path, words, progress=progress)
        return build_index(folder, passages, corpus, about)
    except DiskFullError:
        raise
    except OSError as error:
        raise BackendError(f"{folder}: cannot be written ({error.strerror or error})") from error


def bm25_retriever_of(uri: str, *, words: int | None = None, progress: bool = False) -> Bm25:
    """Return the retriever that ``bm25:PATH[?index=FOLDER]`` names.

    Raises:
        UnknownNameError: another scheme or option.
        InputError, BackendError: as :func:`bm25_retriever`.
    """
    scheme, _, rest = uri.partition(":")
    if scheme != "bm25" or not rest:
        raise UnknownNameError(did_you_mean("retriever", uri, ["bm25:PATH"]))
    path, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    index = options.pop("index", None)
    if options:
        raise UnknownNameError(did_you_mean("option of bm25", next(iter(options)), ["index"]))
    return bm25_retriever(path, index or None, words=words, progress=progress)


def _passages(path: Path, words: int | None, *, progress: bool) -> Iterator[Passage]:
    with Progress("indexing", shown=progress) as shown:
        for number, passage in enumerate(read_corpus(path, words=words), 1):
            yield passage
            if number % STEP == 0:
                shown.step(STEP)


def _opened(folder: Path) -> Bm25:
    content = manifest_of(folder) or {}
    source, words = content.get("source"), content.get("words")
    if source and Path(source).exists():
        try:
            changed = _mark(Path(source), words) != content["corpus"]
        except InputError:
            changed = True
        if changed:
            raise BackendError(
                f"{folder}: {source} has changed since it was indexed; name the corpus and "
                f"index={folder} to build it again"
            )
    return Bm25.open(folder)


def _mark(path: Path, words: int | None) -> str:
    return corpus_mark(path) + (f"/{words}" if words else "")

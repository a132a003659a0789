from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import jsonl
from trustassay.backends import bm25 as retrieving
from trustassay.backends.bm25 import bm25_retriever, build_index
from trustassay.backends.registry import load
from trustassay.core.capabilities import Passage
from trustassay.errors import BackendError, UnknownNameError
from trustassay.input.records import InputError


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "c.jsonl", [{"id": "a", "text": "bees"}, {"id": "b", "text": "honey"}])


def best(retriever: object, query: str) -> list[str]:
    assert hasattr(retriever, "search")
    return [p.id for p in retriever.search([query], 5)[0]]


def test_a_small_corpus_stays_in_memory(corpus: Path) -> None:
    assert best(bm25_retriever(corpus), "bee") == ["a"]
    assert [p.name for p in corpus.parent.iterdir()] == ["c.jsonl"]


def test_a_large_one_is_indexed_beside_it(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = bm25_retriever(corpus)
    monkeypatch.setattr(retrieving, "IN_MEMORY_BYTES", 10)
    large = bm25_retriever(corpus)
    assert large.name == small.name
    assert best(large, "honey") == ["b"]
    assert (corpus.parent / "c.jsonl.bm25").is_dir()


def test_an_index_is_used_again_until_the_corpus_changes(corpus: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    bm25_retriever(corpus, index)
    made = (index / "meta.json").stat().st_mtime_ns
    bm25_retriever(corpus, index)
    assert best(load("retriever", f"bm25:{index}"), "bee") == ["a"]
    assert (index / "meta.json").stat().st_mtime_ns == made
    jsonl(corpus, [{"id": "z", "text": "bees"}])
    os.utime(corpus, ns=(1, 1))
    with pytest.raises(BackendError, match="has changed since it was indexed"):
        bm25_retriever(index)
    assert best(load("retriever", f"bm25:{corpus}?index={index}"), "bee") == ["z"]
    assert best(bm25_retriever(index), "bee") == ["z"]
    corpus.unlink()
    assert best(bm25_retriever(index), "bee") == ["z"]  # an index can live without its corpus


def test_other_cuts_are_another_index(corpus: Path, tmp_path: Path) -> None:
    jsonl(corpus, [{"id": "a", "text": "one two three four"}])
    assert best(bm25_retriever(corpus, tmp_path / "i", words=2), "four") == ["a#2"]
    assert best(bm25_retriever(corpus, tmp_path / "i"), "four") == ["a"]
    assert bm25_retriever(corpus, words=2).name != bm25_retriever(corpus).name
    with pytest.raises(BackendError, match="is already an index"):
        bm25_retriever(tmp_path / "i", words=2)


def test_a_stopped_building_is_noticed(corpus: Path, tmp_path: Path) -> None:
    build_index(tmp_path / "i", [Passage("a", "b")], "m")
    (tmp_path / "i" / "trustassay-bm25.json").unlink()
    (tmp_path / "i").rename(tmp_path / "i.part")
    with pytest.raises(BackendError, match="is an unfinished index"):
        bm25_retriever(tmp_path / "i.part")
    assert best(bm25_retriever(corpus, tmp_path / "i"), "bee") == ["a"]


def test_a_faulty_corpus_leaves_no_index(tmp_path: Path) -> None:
    corpus = jsonl(tmp_path / "c.jsonl", [{"text": "good"}, {"text": ""}])
    with pytest.raises(InputError, match=r"c\.jsonl:2: text: is blank"):
        bm25_retriever(corpus, tmp_path / "i")
    assert not (tmp_path / "i").exists()


@pytest.mark.parametrize("uri", ["bm52:x", "bm25:", "bm25", "bm25:x?folder=y"])
def test_bad_names(uri: str) -> None:
    with pytest.raises((UnknownNameError, BackendError)):
        load("retriever", uri)


def test_a_missing_corpus() -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        bm25_retriever("nowhere")

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from trustassay.backends import resolve
from trustassay.backends.registry import load
from trustassay.core.capabilities import SubstitutesRequest
from trustassay.errors import BackendError, UnknownNameError
from trustassay.papers.backends.word2vec import read_word2vec

WORDS: dict[str, list[float]] = {
    "Paris": [1, 0, 0],
    "Rome": [0.8, 0.6, 0],
    "New_York": [0.7, 0.7, 0.1],
    "paris": [0.99, 0.1, 0],
    "song": [0, 0, 1],
}


def text_file(path: Path, words: dict[str, list[float]] = WORDS) -> Path:
    lines = [f"{len(words)} 3", *(f"{w} {' '.join(map(str, row))}" for w, row in words.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def binary_file(path: Path, ending: bytes = b"\n") -> Path:
    rows = (w.encode() + b" " + struct.pack("<3f", *row) + ending for w, row in WORDS.items())
    path.write_bytes(b"5 3\n" + b"".join(rows))
    return path


def packed(path: Path) -> Path:
    found = path.with_suffix(".gz")
    found.write_bytes(gzip.compress(path.read_bytes()))
    return found


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_both_formats_hold_the_same(tmp_path: Path, ending: bytes) -> None:
    files = [text_file(tmp_path / "a.txt"), binary_file(tmp_path / "a.bin", ending)]
    files += [packed(files[0]), packed(files[1].rename(tmp_path / "b.bin"))]
    files[1] = tmp_path / "b.bin"
    found = [read_word2vec(path, 100) for path in files]
    for one in found:
        assert one.words == tuple(WORDS)
        np.testing.assert_allclose(np.linalg.norm(one.rows, axis=1), 1, rtol=1e-6)
        np.testing.assert_allclose(one.rows[1], [0.8, 0.6, 0], atol=1e-6)
    assert len({one.digest for one in found}) == 1


def test_damaged_compression_and_sizes_beyond_memory_are_told(tmp_path: Path) -> None:
    path = packed(text_file(tmp_path / "a.txt"))
    whole = path.read_bytes()
    path.write_bytes(whole[:12] + b"\xff\xff\xff\xff" + whole[16:])
    with pytest.raises(BackendError, match="cannot be read"):
        read_word2vec(path, 9)
    for header in (b"9 99999999999999999", b"9 " + b"9" * 40, b"9 999999999999999"):
        (tmp_path / "b").write_bytes(header + b"\nParis 1 2\n")
        with pytest.raises(BackendError, match=r"b: (cannot be read|not enough memory)"):
            read_word2vec(tmp_path / "b", 9)


def test_only_the_first_words_are_read(tmp_path: Path) -> None:
    assert read_word2vec(text_file(tmp_path / "a.txt"), 2).words == ("Paris", "Rome")


def test_gensim_itself_writes_what_is_read(tmp_path: Path) -> None:
    gensim = pytest.importorskip("gensim", reason="gensim is not installed")
    vectors = gensim.models.KeyedVectors(3)
    vectors.add_vectors(list(WORDS), np.array(list(WORDS.values()), dtype=np.float32))
    for binary in (False, True):
        path = tmp_path / f"{binary}"
        vectors.save_word2vec_format(str(path), binary=binary)
        assert read_word2vec(path, 9).words == tuple(WORDS)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "words and dimensions. in its first line"),
        (b"hello world\nx", "words and dimensions. in its first line"),
        (b"0 3\n", "words and dimensions. in its first line"),
        (b"2 3\na 1 2 3\nb 1 2\n", "line 3: expected a word and 3 numbers"),
        (b"2 3\na " + struct.pack("<3f", 1, 2, 3) + b"b " + b"\x00", "ends within word 2 of 2"),
        (b"1 3\n" + b"x" * 3000, "has no end"),
        (b"1 3\na " + struct.pack("<3f", 1, 2, float("nan")), "not finite"),
        (b"\x1f\x8bxx", "cannot be read"),
    ],
)
def test_other_files_are_refused_in_words(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    with pytest.raises(BackendError, match=words):
        read_word2vec(path, 10)


def test_the_source(tmp_path: Path) -> None:
    source = load("distractors", f"word2vec:{text_file(tmp_path / 'a.txt')}")
    ask = [SubstitutesRequest(words, 5) for words in ("Paris", "PARIS", "New York", "Rome song")]
    paris, shouted, york, mean = source.substitutes([*ask])
    assert paris == ["Rome", "New York", "song"]  # "paris" is above the cap
    assert shouted == ["Rome", "New York", "song"]
    assert york == ["Paris", "paris", "song"] or york[0] in ("paris", "Paris")
    assert "Rome" not in york  # cosine 0.98 is above the cap
    assert mean
    assert source.substitutes([SubstitutesRequest("xyz", 5)]) == [[]]
    assert source.name.startswith("embedding:word2vec-")


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("word2vec:/nowhere.bin", "cannot be read"),
        ("word2vec:x?limit=3", "unknown option of word2vec 'limit'"),
        ("word2vec:x?words=no", "cannot be 'no'"),
        ("word2vec:", "needs a file"),
        ("embedding?words=3", "embedding takes nothing after its name"),
        ("embeding", "did you mean embedding"),
        ("pos:x", "source of distractors pos takes nothing after its name"),
    ],
)
def test_wrong_uris_are_explained(uri: str, words: str) -> None:
    with pytest.raises((BackendError, UnknownNameError), match=words):
        load("distractors", uri)


def test_named_sources() -> None:
    assert resolve.resolve_sources("embedding,pos") == {"embedding": "embedding", "pos": "pos"}
    assert resolve.resolve_sources(["mine=python:m:o", "dbpedia:http://h/sparql"]) == {
        "mine": "python:m:o",
        "dbpedia": "dbpedia:http://h/sparql",
    }
    with pytest.raises(ValueError, match="two have the name 'pos'"):
        resolve.resolve_sources("pos,pos")
    with pytest.raises(ValueError, match="sources of distractors: expected at least one"):
        resolve.resolve_sources("")

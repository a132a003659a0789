from __future__ import annotations

import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.backends.bm25 import MANIFEST, Bm25, build_index, is_current
from trustassay.core.capabilities import Passage, Retriever
from trustassay.errors import BackendError

TEXTS = [
    "The Nile flows north into the Mediterranean Sea.",
    "The Amazon carries more water than the Nile.",
    "Bees make honey from nectar.",
    "Honey, honey, honey: bees like it.",
]


def made(texts: list[str]) -> list[Passage]:
    return [Passage(str(i), text, f"T{i}") for i, text in enumerate(texts)]


def ids(found: list[Passage]) -> list[str]:
    return [passage.id for passage in found]


@pytest.fixture
def small() -> Bm25:
    return Bm25.of(made(TEXTS))


def test_it_is_a_retriever(small: Bm25) -> None:
    assert isinstance(small, Retriever)
    (found,) = small.search(["bee honey"], 5)
    assert ids(found) == ["3", "2"]  # stems meet; nothing that shares no word
    assert found[0].title == "T3"
    assert found[0].text == TEXTS[3]
    assert found[0].score > found[1].score > 0


def test_scores_follow_the_formula() -> None:
    """N = 4 passages, "nile" in n = 2; both have six words after stop words with the title."""
    passages = [Passage(str(i), text) for i, text in enumerate(["nile b", "nile c", "d e", "f g"])]
    (found,) = Bm25.of(passages).search(["Nile"], 4)
    idf = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    weight = 1 * 2.2 / (1 + 1.2 * (1 - 0.75 + 0.75 * 2 / 2))
    assert [p.score for p in found] == pytest.approx([idf * weight] * 2, abs=1e-3)
    (twice,) = Bm25.of(passages).search(["Nile nile"], 4)
    assert twice[0].score == pytest.approx(2 * found[0].score, abs=1e-3)


HOSTILE = [
    "", "   ", "the of and", "AND OR NOT", 'title:"bees', "(((", "bees^1e9 ~5 *", "+bees -honey",
    "\x00\ud800 bees", "bees\nhoney" * 5000, "[a TO b]", "🐝 北京", "x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_a_query_is_plain_text(small: Bm25, query: str) -> None:
    (found,) = small.search([query], 2)
    assert all(p.id in ("2", "3") for p in found)
    assert bool(found) == ("bees" in query)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60))
def test_any_text_can_be_asked_and_stored(text: str) -> None:
    passage = Passage("id", text, text)
    index = Bm25.of([passage])
    for found in index.search([text], 3):
        assert [(p.id, p.text, p.title) for p in found] in ([], [("id", text, text)])


def test_ties_come_in_the_order_of_the_corpus_whatever_the_segments(tmp_path: Path) -> None:
    texts = ["same words"] * 3000 + ["same words other"] * 3
    small = Bm25.of(made(texts))
    index = build_index(tmp_path / "i", made(texts), "mark")
    for k in (1, 7, 100):
        for retriever in (small, index):
            (found,) = Bm25.search(retriever, ["words"], k)
            scores = [p.score for p in found]
            assert scores == sorted(scores, reverse=True)
            # titles T0, T1 ... make all lengths equal, so that all 3000 tie
            assert ids(found) == [str(i) for i in range(k)]


def test_on_disk_gives_what_memory_gives(tmp_path: Path, small: Bm25) -> None:
    build_index(tmp_path / "i", made(TEXTS), "mark")
    opened = Bm25.open(tmp_path / "i")
    assert opened.search(TEXTS, 4) == small.search(TEXTS, 4)
    assert len(opened) == 4
    assert opened.name == "bm25:mark"
    assert is_current(tmp_path / "i", "mark")
    assert not is_current(tmp_path / "i", "other")
    assert not (tmp_path / "i.part").exists()


def test_an_index_is_replaced_by_a_new_one_but_nothing_else_is(tmp_path: Path) -> None:
    build_index(tmp_path / "i", made(TEXTS), "old")
    assert len(build_index(tmp_path / "i", made(TEXTS[:2]), "new")) == 2
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(BackendError, match="contains something that is not an index"):
        build_index(other, made(TEXTS), "new")
    assert (other / "thesis.txt").read_text() == "mine"


def test_a_failing_corpus_leaves_the_old_index(tmp_path: Path) -> None:
    build_index(tmp_path / "i", made(TEXTS), "old")

    def broken() -> Iterator[Passage]:
        yield made(TEXTS)[0]
        raise ValueError("line 2 is bad")

    with pytest.raises(ValueError, match="line 2"):
        build_index(tmp_path / "i", broken(), "new")
    assert len(Bm25.open(tmp_path / "i")) == 4
    assert len(build_index(tmp_path / "i", made(TEXTS[:1]), "new")) == 1


@pytest.mark.parametrize("damage", ["manifest", "file", "short", "rules", "garbage"])
def test_a_damaged_index_is_refused(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "i"
    build_index(folder, made(TEXTS), "mark")
    content = json.loads((folder / MANIFEST).read_text())
    store = folder / next(name for name in content["files"] if name.endswith(".store"))
    if damage == "manifest":
        (folder / MANIFEST).unlink()
    elif damage == "garbage":
        (folder / MANIFEST).write_text("{")
    elif damage == "file":
        store.unlink()
    elif damage == "short":
        kept = store.read_bytes()[:-1]
        store.unlink()  # the index may still have the old file mapped: cutting that is a bus error
        store.write_bytes(kept)
    else:
        (folder / MANIFEST).write_text(json.dumps(content | {"analysis": "letters/0"}))
    with pytest.raises(BackendError, match=r"build it|built again|other rules"):
        Bm25.open(folder)


ENDLESS = """
import sys, itertools
from pathlib import Path
from trustassay.backends.bm25 import build_index
from trustassay.core.capabilities import Passage
def endless():
    for i in itertools.count():
        if i == 20000:
            print("under way", flush=True)
        yield Passage(str(i), f"word {i}")
build_index(Path(sys.argv[1]), endless(), "mark")
"""


def test_a_killed_build_leaves_no_index_and_is_built_anew(tmp_path: Path) -> None:
    folder = tmp_path / "i"
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(folder)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"under way\n"
        process.send_signal(signal.SIGKILL)
    assert not folder.exists()
    assert (tmp_path / "i.part").exists()
    with pytest.raises(BackendError, match="not a finished index"):
        Bm25.open(tmp_path / "i.part")
    assert ids(build_index(folder, made(TEXTS), "mark").search(["nectar"], 3)[0]) == ["2"]
    assert not (tmp_path / "i.part").exists()


def _build(folder: Path, delay: float) -> None:
    def slow() -> Iterator[Passage]:
        for passage in made(TEXTS):
            time.sleep(delay)
            yield passage

    assert len(build_index(folder, slow(), "mark")) == 4


@pytest.mark.slow
def test_two_processes_share_one_building(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_build, args=(tmp_path / "i", 0.1)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(Bm25.open(tmp_path / "i")) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


def test_a_moved_index_still_works(tmp_path: Path) -> None:
    build_index(tmp_path / "i", made(TEXTS), "mark")
    shutil.move(tmp_path / "i", tmp_path / "elsewhere")
    assert len(Bm25.open(tmp_path / "elsewhere")) == 4


def test_a_building_that_is_moved_away_while_another_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = os.mkdir
    moved: list[Any] = []

    def mkdir(path: Any, *others: Any) -> None:
        if not moved:
            moved.append(path)
            raise FileExistsError(path)  # it was there, and is no more
        make(path, *others)

    monkeypatch.setattr(os, "mkdir", mkdir)
    assert len(build_index(tmp_path / "i", made(TEXTS), "mark")) == 4
    assert moved == [tmp_path / "i.part"]

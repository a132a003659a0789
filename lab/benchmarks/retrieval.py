"""BM25 on tantivy: speed beside rank-bm25, and memory of a large index on disk.

    python -m lab.benchmarks.retrieval                    # 100,000 passages, 1,000 queries
    python -m lab.benchmarks.retrieval --disk 1000000     # and a million passages on disk

The passages are made from a seed: words drawn by Zipf's law, 100 a passage. Both engines get the
same tokens (rank-bm25 those of our analyser), so that agreement compares rankings and not
tokenisers. Each measurement runs in a process of its own; the operating system says what it needed
at most. rank-bm25 is needed for this alone (pip install rank-bm25) and takes nearly all the time:
about ten minutes, since it ranks twice, with its own idf and with ours.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.backends.bm25 import Bm25, _build_analyzer, bm25_retriever
from trustassay.core.capabilities import Passage

Ranking = list[list[str]]

WORDS = 100
VOCABULARY = 200_000
TOP = 10


def _text(ranks: Any) -> str:
    return " ".join(f"w{rank}" for rank in ranks)


def passages(n: int, seed: int = 0) -> Iterator[Passage]:
    """Yield ``n`` passages of words with Zipf-distributed frequencies."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    cumulative = np.cumsum(weights / weights.sum())
    for index in range(n):
        ranks = np.searchsorted(cumulative, rng.random(WORDS))
        yield Passage(str(index), _text(ranks), f"title {index % 1000}")


def queries(n: int) -> list[str]:
    """Return ``n`` questions of eight words, as frequent as those of passages."""
    return [" ".join(p.text.split()[:8]) for p in passages(n, seed=1)]


def ours(count: int, asked: list[str]) -> tuple[float, float, Ranking]:
    made = list(passages(count))
    started = time.perf_counter()
    retriever = Bm25.of(made)
    indexed = time.perf_counter()
    found = retriever.search(asked, TOP)
    return indexed - started, time.perf_counter() - indexed, [[p.id for p in f] for f in found]


def theirs(count: int, asked: list[str]) -> tuple[float, float, Ranking, Ranking]:
    """Return seconds and ranking of rank-bm25, and its ranking with our idf."""
    from rank_bm25 import BM25Okapi

    made = list(passages(count))
    analyse = _build_analyzer().analyze
    started = time.perf_counter()
    index = BM25Okapi([analyse(f"{p.title}\n{p.text}") for p in made], k1=1.2, b=0.75)
    indexed = time.perf_counter()
    found = _ranked(index, asked)
    seconds = time.perf_counter() - indexed
    frequency = Counter(word for counts in index.doc_freqs for word in counts)
    index.idf = {w: math.log(1 + (count - n + 0.5) / (n + 0.5)) for w, n in frequency.items()}
    return indexed - started, seconds, found, _ranked(index, asked)


def _ranked(index: Any, asked: list[str]) -> Ranking:
    found = []
    for query in asked:
        scores = index.get_scores(_build_analyzer().analyze(query))
        found.append([str(i) for i in np.argsort(-scores, kind="stable")[:TOP]])
    return found


def on_disk(corpus: str, asked: list[str]) -> tuple[float, float, Ranking]:
    started = time.perf_counter()
    retriever = bm25_retriever(corpus, f"{corpus}.bm25")
    indexed = time.perf_counter()
    found = retriever.search(asked, TOP)
    return indexed - started, time.perf_counter() - indexed, [[p.id for p in f] for f in found]


def _child(pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    result = work(*arguments)
    pipe.send((result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def measured(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what ``work`` returns in a process of its own, and its peak resident megabytes."""
    context = multiprocessing.get_context("spawn")
    ours_end, theirs_end = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs_end, work, arguments))
    process.start()
    theirs_end.close()
    try:
        result, megabytes = ours_end.recv()
    except EOFError:
        raise SystemExit(f"{work.__name__} ended without a result") from None
    process.join()
    return result, megabytes


def row(name: str, count: int, result: Sequence[Any], asked: int, peak: float) -> None:
    index, search = result[:2]
    print(
        f"| {name} | {count:,} | {index:.1f} | {1000 * search / asked:.2f} | {peak:,.0f} |",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--disk", type=int, default=0, help="passages of an index on disk")
    args = parser.parse_args()
    asked = queries(args.queries)
    print("| engine | passages | index, s | ms per query | peak memory, MB |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    if args.passages:
        mine, peak = measured(ours, args.passages, asked)
        row("bm25, in memory", args.passages, mine, args.queries, peak)
        other, peak = measured(theirs, args.passages, asked)
        row("rank-bm25", args.passages, other, args.queries, peak)
    if args.disk:
        with tempfile.TemporaryDirectory() as folder:
            corpus = Path(folder) / "corpus.jsonl"
            with corpus.open("w") as file:
                for p in passages(args.disk):
                    file.write(json.dumps({"id": p.id, "title": p.title, "text": p.text}) + "\n")
            built, peak = measured(on_disk, str(corpus), asked)
            row("bm25, on disk, building and searching", args.disk, built, args.queries, peak)
            again, peak = measured(on_disk, str(corpus), asked)
            row("bm25, on disk, opening and searching", args.disk, again, args.queries, peak)
    if args.passages:
        print()
        for name, ranking in (("its own idf", other[2]), ("our idf", other[3])):
            pairs = list(zip(mine[2], ranking, strict=True))
            first = np.mean([a[:1] == b[:1] for a, b in pairs])
            shared = np.mean([len(set(a) & set(b)) / TOP for a, b in pairs])
            print(
                f"rank-bm25 with {name}: first the same {first:.1%}, of {TOP} shared {shared:.1%}"
            )
        faster = other[1] / mine[1]
        print(f"queries {faster:,.0f} times as fast, index {other[0] / mine[0]:.1f} times as fast")
    return 0


if __name__ == "__main__":
    sys.exit(main())

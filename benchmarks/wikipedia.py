"""BM25 over a corpus in the layout of DPR's Wikipedia, and what 21 million passages would take.

    python -m benchmarks.wikipedia        # 100,000, 300,000 and 1,000,000 passages
    python -m benchmarks.wikipedia --passages 50000 --queries 50

The corpus is made from a seed: a file of tab-separated ``id``, ``text`` and ``title`` under a
header, texts in quotes, 100 words each, drawn by Zipf's law. A query is what the fact check asks
for: its own statement around a question of eight such words and an answer of ten. The last row is
no measurement: each column goes on as the straight line through the two largest corpora.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.retrieval import measured, passages
from trustassay.metrics import FactCheck
from trustassay.workflows.dataset import bm25_retriever

WIKIPEDIA = 21_015_324
"""Passages of ``psgs_w100.tsv``."""
TOP = 10


class Row(NamedTuple):
    """One corpus: sizes in MB, times in seconds, and milliseconds a query."""

    passages: float
    corpus_mb: float
    index_mb: float
    index_s: float
    query_ms: float
    build_mb: float
    ask_mb: float


def write_corpus(path: Path, n: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("id\ttext\ttitle\n")
        for number, one in enumerate(passages(n), 1):
            file.write(f'{number}\t"{one.text}"\t{one.title}\n')


def statements(n: int) -> list[str]:
    template = FactCheck().statement_template
    words = (one.text.split() for one in passages(n, seed=1))
    return [
        template.filled(question=" ".join(w[:8]) + "?", answer=" ".join(w[8:18]) + ".")
        for w in words
    ]


def built(corpus: str) -> float:
    started = time.perf_counter()
    bm25_retriever(corpus, f"{corpus}.bm25")
    return time.perf_counter() - started


def asked(corpus: str, queries: list[str]) -> float:
    retriever = bm25_retriever(corpus, f"{corpus}.bm25")
    retriever.search(queries[:5], TOP)
    started = time.perf_counter()
    found = retriever.search(queries, TOP)
    assert all(len(one) == TOP for one in found)
    return (time.perf_counter() - started) / len(queries)


def measure(n: int, queries: list[str]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "psgs_w100.tsv"
        write_corpus(corpus, n)
        index_s, build_mb = measured(built, str(corpus))
        query_s, ask_mb = measured(asked, str(corpus), queries)
        index = sum(file.stat().st_size for file in Path(f"{corpus}.bm25").rglob("*"))
        size = corpus.stat().st_size
        return Row(n, size / 1e6, index / 1e6, index_s, 1000 * query_s, build_mb, ask_mb)


def extrapolated(small: Row, large: Row, n: int) -> Row:
    """Return the point at ``n`` passages of the lines through two measured rows."""
    share = (n - small.passages) / (large.passages - small.passages)
    return Row(*(a + share * (b - a) for a, b in zip(small, large, strict=True)))


def shown(row: Row, note: str = "") -> None:
    cells = [f"{row.passages:,.0f}{note}", *(f"{value:,.0f}" for value in row[1:4])]
    print(f"| {' | '.join([*cells, *(f'{value:,.1f}' for value in row[4:])])} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=200)
    args = parser.parse_args()
    queries = statements(args.queries)
    print(
        "| passages | corpus, MB | index, MB | index, s | ms a query | building, MB | asking, MB |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    rows = []
    for n in args.passages:
        rows.append(measure(n, queries))
        shown(rows[-1])
    if len(rows) > 1:
        shown(extrapolated(rows[-2], rows[-1], WIKIPEDIA), " (extrapolated)")
    return 0


if __name__ == "__main__":
    sys.exit(main())

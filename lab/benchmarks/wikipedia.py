"""BM25 over a corpus in the layout of DPR's Wikipedia, and what 21 million passages would take.

    python -m lab.benchmarks.wikipedia        # 100,000, 300,000 and 1,000,000 passages
    python -m lab.benchmarks.wikipedia --passages 50000 --queries 50

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

from lab.benchmarks.retrieval import measured, passages
from trustassay.backends.bm25 import bm25_retriever
from trustassay.metrics import FactCheck

WIKIPEDIA = 21_015_324
"""Passages of ``psgs_w100.tsv``."""
TOP = 10


class Row(NamedTuple):
    """One corpus: sizes and peak memory in MB; times by the clock, and of all cores together."""

    passages: float
    corpus_mb: float
    index_mb: float
    index_s: float
    index_cpu_s: float
    query_ms: float
    query_cpu_ms: float
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
        template.fill(question=" ".join(w[:8]) + "?", answer=" ".join(w[8:18]) + ".") for w in words
    ]


def built(corpus: str) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    bm25_retriever(corpus, f"{corpus}.bm25")
    return time.perf_counter() - wall, time.process_time() - cpu


def asked(corpus: str, queries: list[str]) -> tuple[float, float]:
    retriever = bm25_retriever(corpus, f"{corpus}.bm25")
    retriever.search(queries[:5], TOP)
    wall, cpu = time.perf_counter(), time.process_time()
    found = retriever.search(queries, TOP)
    assert all(len(one) == TOP for one in found)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return 1000 * wall / len(queries), 1000 * cpu / len(queries)


def measure(n: int, queries: list[str]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "psgs_w100.tsv"
        write_corpus(corpus, n)
        (index_s, index_cpu_s), build_mb = measured(built, str(corpus))
        (query_ms, query_cpu_ms), ask_mb = measured(asked, str(corpus), queries)
        index = sum(file.stat().st_size for file in Path(f"{corpus}.bm25").rglob("*"))
        size = corpus.stat().st_size
        sizes = (n, size / 1e6, index / 1e6)
        return Row(*sizes, index_s, index_cpu_s, query_ms, query_cpu_ms, build_mb, ask_mb)


def extrapolated(small: Row, large: Row, n: int) -> Row:
    """Return the point at ``n`` passages of the lines through two measured rows."""
    share = (n - small.passages) / (large.passages - small.passages)
    return Row(*(a + share * (b - a) for a, b in zip(small, large, strict=True)))


def shown(row: Row, note: str = "") -> None:
    cells = [f"{value:,.0f}" for value in row]
    cells[0] += note
    cells[5:7] = [f"{value:,.1f}" for value in row[5:7]]
    if note:
        cells[7:] = ["", ""]  # mostly mapped pages of files, of which the system lends what it has
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=200)
    args = parser.parse_args()
    queries = statements(args.queries)
    print(
        "| passages | corpus, MB | index, MB | to index, s | of that CPU, s | ms a query "
        "| of that CPU, ms | peak, indexing, MB | peak, asking, MB |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    rows = []
    for n in args.passages:
        rows.append(measure(n, queries))
        shown(rows[-1])
    if len(rows) > 1:
        shown(extrapolated(rows[-2], rows[-1], WIKIPEDIA), " (extrapolated)")
    return 0


if __name__ == "__main__":
    sys.exit(main())

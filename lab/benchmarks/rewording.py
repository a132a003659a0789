"""Right statements that reword their passage, and wrong ones that keep its words.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.rewording [READER ...]

A development set for readers: one that counts words ranks its pairs the wrong way round. READER is
an entailer's URI, a folder of weights, or a baseline of :mod:`lab.training.measure`; without any,
``embedded`` and ``words`` are measured. Printed for each source and for all: the number of pairs
and of documents, the AUC with its 95 % interval over documents, and the shares of supported and of
unsupported pairs that pass 0.5. It writes ``results/rewording.json``. The repository has no row.

The pairs are chosen in these steps, the same ones every time:

1. Rows are of a development file or of the half on which rules are chosen, with labels by people.
   None is a row that reports, and none was trained on.
2. A supported pair has few of its statement's content words in the passage, an unsupported many.
3. A source gives as many pairs of either kind, so that knowing the source is no help. Of one
   statement or passage at most three pairs of a kind are taken, in the order of a hash.

We read some pairs of each source beside their labels:

* WiCE, oracle packs: of 26 supported pairs 4 (two claims) and of 20 unsupported ones 6 (four
  claims) looked wrong; the others hang on one detail. Four numbers that combine the embedded
  entailer's readings were fitted on this file and twelve more; its encoder was not trained on it.
* Stanford-GenSearch, of AttributionBench: of 13 supported pairs 2, of 6 unsupported ones 1 looked
  wrong. Rules of ``faithfulness`` were chosen on this half. Passages above 150 words are left out:
  32 of their 34 claims are unsupported.

With labels so wrong, a reader that makes no error has an AUC of about .8.

Left out, so that there are fewer than 300 pairs:

* HealthVer: of 47 supported pairs with few words about 19 go beyond their passage, or are about
  something else; most passages also occur in its test file, with other claims.
* ExpertQA: of 10 supported pairs 7, of 6 unsupported ones 4 looked wrong: the experts could follow
  a link to the whole page. ``lab.benchmarks.which_metric`` reports on these rows, too.
* HAGRID, AttributedQA and AttrScore, of AttributionBench: of 10 unsupported pairs of HAGRID 7
  looked supported, since its label is about each citation. Statements of AttributedQA are often a
  bare name. AttrScore has one unsupported pair with many words.
* Q2: its only file is a test file. TruthfulQA: its sources are links without a text.
* FIB, XSum, DiaSumFact, SummEdits, FaithDial and FoolMeTwice: the embedded entailer was trained on
  other rows of them.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.benchmarks.public_labels.rows import read_rows
from lab.results import write_result
from lab.training import measure
from lab.training.sets import Item

Json = dict[str, Any]
MAX_OF_ONE = 3
"""Most pairs of a kind that share a statement, or a passage."""
MAX_WORDS_OF_EXTRACT = 150
"""Longest passage of Stanford-GenSearch, in words."""
READERS = ("embedded", "words")


class Source(NamedTuple):
    """A set that pairs are chosen from, with the overlap that they have.

    Overlap is the share of the statement's content words that the passage has, 0 to 1.
    """

    read: Callable[[], Sequence[Item]]
    """Returns the rows."""
    low: float
    """The overlap of a supported pair is below this."""
    high: float
    """The overlap of an unsupported pair is this or more."""


def _read_extracts() -> list[Item]:
    """Return the claims of Stanford-GenSearch whose passages are short."""
    items = [
        Item(
            "\n\n".join(row.record["documents"]),
            row.record["response"],
            0 if row.label == "right" else 1,
            row.cluster,
        )
        for row in read_rows("attributionbench-in", "choose")
        if row.group == "Stanford-GenSearch"
    ]
    return [item for item in items if len(item.premise.split()) <= MAX_WORDS_OF_EXTRACT]


SOURCES = {
    "WiCE, oracle packs": Source(lambda: measure.items("wice_oracle_dev", 0), low=0.65, high=0.7),
    "Stanford-GenSearch": Source(_read_extracts, low=0.6, high=0.6),
}


def choose_pairs(items: Sequence[Item], source: Source) -> list[Item]:
    """Return the supported pairs of a source, and then as many unsupported ones.

    Args:
        items: the rows of the source, in any order. source: the overlap that pairs have.
    """
    overlaps = measure.containment([(item.premise, item.hypothesis) for item in items])
    supported = [
        item
        for item, overlap in zip(items, overlaps, strict=True)
        if item.label == 0 and overlap < source.low
    ]
    unsupported = [
        item
        for item, overlap in zip(items, overlaps, strict=True)
        if item.label != 0 and overlap >= source.high
    ]
    chosen = [list(_limit_repeats(kind)) for kind in (supported, unsupported)]
    count = min(map(len, chosen))
    return chosen[0][:count] + chosen[1][:count]


def _limit_repeats(items: Sequence[Item]) -> Iterator[Item]:
    """Yield pairs in the order of their hash, of one statement or passage only a few."""
    counts: Counter[tuple[str, str]] = Counter()
    for item in sorted(items, key=_hash_pair):
        names = [("document", item.document), ("passage", item.premise)]
        if max(counts[name] for name in names) < MAX_OF_ONE:
            counts.update(names)
            yield item


def _hash_pair(item: Item) -> str:
    return hashlib.sha256(f"55:{item.premise}\n{item.hypothesis}".encode()).hexdigest()


def measure_readers(names: Sequence[str], sets: dict[str, list[Item]]) -> Json:
    """Return the figures of each reader, by source and for all pairs together.

    Args:
        names: the readers, as on the command line. sets: the pairs of each source.
    """
    readers = {name: measure.scorer(name) for name in names}
    figures: Json = {}
    every_item: list[Item] = []
    every_score: dict[str, list[float]] = {name: [] for name in names}
    for source, items in sets.items():
        pairs = [(item.premise, item.hypothesis) for item in items]
        scores = {name: read(pairs) for name, read in readers.items()}
        figures[source] = _measure(source, scores, items)
        every_item += items
        for name in names:
            every_score[name] += scores[name].tolist()
    all_scores = {name: np.array(values) for name, values in every_score.items()}
    return {**figures, "all": _measure("all", all_scores, every_item)}


def _measure(title: str, scores: dict[str, measure.Scores], items: Sequence[Item]) -> Json:
    documents = len({item.document for item in items})
    return {"documents": documents, **measure.measured(title, scores, items)}


def build_lines(figures: Json, names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table: a source and a reader in each."""
    yield "| source | pairs | documents | reader | AUC (95 %) | right passing | wrong passing |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for source, of_source in figures.items():
        for name in names:
            row = of_source[name]
            value, low, high = row["auc"]
            shares = f"{row['true_passed']:.2f} | {row['false_passed']:.2f}"
            auc = f"{value:.3f} ({low:.3f} to {high:.3f})"
            counts = f"{of_source['n']} | {of_source['documents']}"
            yield f"| {source} | {counts} | {name} | {auc} | {shares} |"


def main() -> None:
    """Choose the pairs, measure the readers, print a table and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reader", nargs="*", help="a URI, a folder of weights, words or cosine")
    names = parser.parse_args().reader or list(READERS)
    sets = {name: choose_pairs(source.read(), source) for name, source in SOURCES.items()}
    figures = measure_readers(names, sets)
    for line in build_lines(figures, names):
        print(line)
    command = " ".join(["python -m lab.benchmarks.rewording", *names])
    data = "WiCE, oracle packs, dev; half of AttributionBench; labels by people"
    write_result("rewording", command, data, figures)


if __name__ == "__main__":
    main()

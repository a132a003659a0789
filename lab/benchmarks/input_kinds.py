"""How long the answers of public sets are, and how many of their words their passages have.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.input_kinds        # seconds

The bounds of ``trustassay.judging.input_kind`` lie between these quartiles. Writes
``results/input-kinds.json``.
"""

from __future__ import annotations

from itertools import islice
from statistics import quantiles
from typing import Any

from lab.benchmarks.which_metric.sets import SETS, Row
from lab.results import write_result
from trustassay.text.words import content_words

MAX_ANSWERS = 1500
"""The first answers of each set."""


def measure(rows: list[Row]) -> dict[str, Any]:
    """Return the quartiles of a set: lower, median and upper.

    shared_words: share of an answer's content words that its passages have; of the supported
    answers also by themselves. answer_words, passage_words: words of an answer, of its passages.
    """
    shares = [(row.label, compute_share(row)) for row in rows if content_words(row.response)]
    figures: dict[str, list[float]] = {
        "shared_words": [share for _, share in shares],
        "shared_words_supported": [share for label, share in shares if label],
        "answer_words": [len(row.response.split()) for row in rows],
        "passage_words": [
            sum(len(text.split()) for text in row.fields["documents"]) for row in rows
        ],
    }
    quartiles = {
        name: [round(value, 2) for value in quantiles(values, n=4)]
        for name, values in figures.items()
    }
    return {"answers": len(rows), **quartiles}


def compute_share(row: Row) -> float:
    """Return the share of an answer's content words that its passages have."""
    words = content_words(row.response)
    passage_words = {word for text in row.fields["documents"] for word in content_words(text)}
    return sum(word in passage_words for word in words) / len(words)


def main() -> None:
    """Measure all sets with passages and write the result."""
    rows_of_sets = {one.title: list(islice(one.rows(), MAX_ANSWERS)) for one in SETS}
    figures = {
        title: measure(rows)
        for title, rows in rows_of_sets.items()
        if "documents" in rows[0].fields
    }
    write_result(
        "input-kinds",
        "python -m lab.benchmarks.input_kinds",
        "the public sets with passages of lab.benchmarks.which_metric",
        figures,
    )


if __name__ == "__main__":
    main()

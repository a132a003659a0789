"""How often ``gate --no-worse-than`` is wrong, and how often it sees a loss, by simulation.

    python -m benchmarks.gating                  # the table of docs/ci.md, some minutes
    python -m benchmarks.gating --draws 100

Two made-up runs answer the same n questions. A question is easy or hard for both: each answer's
parts are drawn with the question's own shares. In the second run some answers are junk: none for
runs of equal quality, else so many that the figure is 10 points lower in the long run. "anew": each
answer of the second run is drawn anew; "a tenth anew": nine of ten are those of the first run.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.metric import Mean, MetricInfo, Share
from trustassay.metrics import Faithfulness, Grounding
from trustassay.metrics.grounding.summary import Answers
from trustassay.metrics.grounding.weighted import WeightedAnswers
from trustassay.summaries import Weighted, WeightedColumns
from trustassay.workflows.changes import Scored, figure_changes
from trustassay.workflows.gate import decide
from trustassay.workflows.pairing import Pairing

Floats = NDArray[np.float64]
Rng = np.random.Generator
SIZES = (40, 200)
MARGINS = (0.0, 5.0)
LOSS = 10.0
MANY = 200_000
GROUNDING = Grounding(correctness="em")
FAITHFULNESS = Faithfulness()
FIGURES = (
    ("grounding", "trust_score"),
    ("grounding", "answered_citation_f1"),
    ("faithfulness", "mean"),
    ("faithfulness", "supported"),
)


class Questions(NamedTuple):
    """What is the same for both runs: can it be answered, and how well it goes, shape (n,)."""

    answerable: NDArray[np.bool_]
    skill: Floats

    @classmethod
    def drawn(cls, rng: Rng, n: int) -> Questions:
        return cls(rng.random(n) < 0.75, rng.beta(4, 1, n))


def answers(rng: Rng, questions: Questions, junk: float) -> Mapping[str, Floats]:
    """Return the parts of grounding's assessments; ``junk`` is the share of worthless answers."""
    can, skill = questions
    n = len(can)
    spoilt = rng.random(n) < junk
    answered = np.where(can, rng.random(n) < 0.95, rng.random(n) < 0.2) | spoilt
    hits = np.where(answered & can & ~spoilt, rng.random(n) < skill, 0)
    statements = 1 + rng.binomial(3, 0.5, n)
    held = np.where(answered & ~spoilt, rng.binomial(statements, skill), 0)
    citations = statements
    precise = np.where(held > 0, rng.binomial(citations, 0.9 * skill), 0)
    columns = {
        "answered": answered,
        "answered_stripped": answered,
        "answerable": can,
        "words": np.full(n, 20.0),
        "blank": np.zeros(n),
        "golds": np.ones(n),
        "hits": hits,
        "supported": can,
        "supported_hits": hits,
        "elements": np.zeros(n),
        "precise_elements": np.zeros(n),
        "supported_elements": np.zeros(n),
        "wrong_in_documents": np.zeros(n),
        "statements": np.where(answered, statements, np.nan),
        "supported_statements": np.where(answered, held, np.nan),
        "citations": np.where(answered, citations, np.nan),
        "precise_citations": np.where(answered, precise, np.nan),
        "invalid_citations": np.zeros(n),
    }
    return {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}


def weighted(table: Mapping[str, Floats], metric: str) -> Weighted:
    """Return the figures of a metric over answers with these parts."""
    if metric == "grounding":
        made = Answers(GROUNDING)
        return WeightedAnswers(made, made.rows(table))
    score = table["supported_statements"] / table["statements"]  # a refusal has none
    whole = np.where(np.isnan(score), 0.0, score == 1.0)
    return WeightedColumns(
        {"mean": Mean(), "supported": Share("supported")}, {"mean": score, "supported": whole}
    )


def scored(table: Mapping[str, Floats], metric: str) -> Scored:
    about = GROUNDING if metric == "grounding" else FAITHFULNESS
    n = len(table["answered"])
    nothing = np.zeros(n, dtype=np.bool_)
    info = MetricInfo.of(about)
    return Scored(
        Path(), info, about.figures, np.zeros(n), nothing, [""] * n, weighted(table, metric)
    )


def all_paired(n: int) -> Pairing:
    places = np.arange(n)
    return Pairing(places, places, places, n, 0, 0, 0, 0, 0)


def share_of_junk(metric: str, key: str, anew: float) -> float:
    """Return the share of junk that makes a figure 10 points worse, found by halving."""
    scale = 1.0 if key == "mean" else 100.0

    def value(junk: float) -> float:
        rng = np.random.default_rng(1)
        table = second(rng, Questions.drawn(rng, MANY), None, junk, anew)
        return float(weighted(table, metric).figures(np.ones((1, MANY)))[key][0]) / scale

    low, high, target = 0.0, 0.6, value(0.0) - LOSS / 100
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if value(middle) > target else (low, middle)
    return (low + high) / 2


def second(
    rng: Rng, questions: Questions, first: Mapping[str, Floats] | None, junk: float, anew: float
) -> Mapping[str, Floats]:
    """Return the parts of the second run; those not drawn anew are the first run's, or junk."""
    found = answers(rng, questions, junk)
    if first is None or anew == 1:
        return found
    kept = answers(rng, questions, 1.0)
    n = len(questions.skill)
    spoilt, fresh = rng.random(n) < junk, rng.random(n) < anew
    plain = answers(rng, questions, 0.0)
    return {
        name: np.where(spoilt, kept[name], np.where(fresh, plain[name], first[name]))
        for name in first
    }


def counted(metric: str, key: str, n: int, junk: float, anew: float, draws: int) -> Counter[str]:
    """Return how often each result came at each margin."""
    found: Counter[str] = Counter()
    for draw in range(draws):
        rng = np.random.default_rng([n, draw])
        questions = Questions.drawn(rng, n)
        table = answers(rng, questions, 0.0)
        later = second(rng, questions, table, junk, anew)
        sides = scored(table, metric), scored(later, metric)
        difference = figure_changes(*sides, all_paired(n), [key], draw)[key].difference
        for margin in MARGINS:
            line = -margin / (100 if key == "mean" else 1)
            interval = difference.interval
            result = "none" if interval is None else decide(interval, line, at_least=True)
            found[f"{result} {margin:g}"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    heads = [f"{what}, margin {margin:g}" for what in ("equal", "10 lower") for margin in MARGINS]
    print(f"Per cent of {draws:,} draws: pass / undecided / fail.\n")
    print(f"| answers | figure | n | {' | '.join(heads)} |")
    print(f"| --- | --- | --- | {' | '.join('---' for _ in heads)} |")
    for anew, words in ((1.0, "anew"), (0.1, "a tenth anew")):
        for metric, key in FIGURES:
            junk = share_of_junk(metric, key, anew)
            for n in SIZES:
                cells = []
                for share in (0.0, junk):
                    found = counted(metric, key, n, share, anew, draws)
                    for margin in MARGINS:
                        results = [found[f"{one} {margin:g}"] for one in ("pass", "fail")]
                        rest = draws - sum(results)
                        cells.append(
                            " / ".join(
                                f"{100 * count / draws:.1f}"
                                for count in (results[0], rest, results[1])
                            )
                        )
                print(f"| {words} | `{metric}.{key}` | {n} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

"""All variants on one set, side by side, as rows of Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lab.benchmarks.fewl.figures import (
    Floats,
    Judge,
    Pairs,
    Systems,
    all_once,
    drawn,
    judge_of,
    shorter,
    with_interval,
)
from lab.benchmarks.fewl.measuring import WITHOUT_PENALTY, Measured, Variant, measured
from lab.benchmarks.fewl.sets import SETS, WEIGHTINGS, Record
from trustassay.metrics.fewl.maths import DIVERGENCES

SIMILARITIES = ("cosine", "novel", "agreement")
OURS, OURS_SIMILARITY = Variant("agreement", "agreement"), "novel"


def variants(name: str) -> list[Variant]:
    """Return forms and divergences with equal weights, then the other weights of a set."""
    equal = [
        Variant(form, "uniform", penalty, divergence)
        for penalty in (False, True)
        for form in ("eq1", "theory")
        for divergence in DIVERGENCES
    ]
    equal += [Variant("agreement", "uniform", penalty) for penalty in (False, True)]
    others = [
        Variant(form, weights, penalty)
        for weights in WEIGHTINGS[name]
        for penalty in (False, True)
        for form in ("eq1", "theory", "agreement")
    ]
    return equal + others


def measured_set(
    name: str, similarity: str, work: Path, limit: int | None = None
) -> tuple[list[Record], Measured]:
    """Return the records of a set and their numbers by one similarity."""
    records = SETS[name](limit)
    folder = work / f"{name}-{similarity}{f'-{limit}' if limit else ''}"
    folder.mkdir(parents=True, exist_ok=True)
    return records, measured(records, similarity, WEIGHTINGS[name], folder)


def show(name: str, similarities: Sequence[str], limit: int | None, work: Path) -> None:
    """Print a row for each similarity and variant."""
    records = SETS[name](limit)
    judge = judge_of(records)
    header = ["similarity", "form", *judge.columns]
    header += ["within source"] if isinstance(judge, Systems) else []
    row(header)
    row(["---"] * len(header))
    row(["", "length: the shorter", *cells(judge, shorter(records))])
    for similarity in similarities:
        _, numbers = measured_set(name, similarity, work, limit)
        for variant in variants(name):
            if variant.penalty and similarity in WITHOUT_PENALTY:
                continue
            row([f"`{similarity}`", str(variant), *cells(judge, numbers.scores(variant))])
        print(f"<!-- {int((~numbers.present.any(axis=1)).sum())} answers without a score -->")


def cells(judge: Judge, scores: Floats) -> list[str]:
    """Return the figures with intervals; of pairs a right answer must score strictly higher, and
    in square brackets a tie counts half; of systems also their means within sources."""
    counts, some = all_once(judge.questions), drawn(judge.questions)
    tie = {"tie": 0.0} if isinstance(judge, Pairs) else {}
    values = judge.measure(scores, counts, **tie)[0]
    columns = judge.measure(scores, some, **tie).T
    found = [with_interval(value, column) for value, column in zip(values, columns, strict=True)]
    if isinstance(judge, Systems):
        return [*found, " ".join(f"{value:.1f}" for value in judge.within(scores))]
    halves = judge.measure(scores, counts)[0]
    return [f"{cell} [{value:.1f}]" for cell, value in zip(found, halves, strict=True)]


def row(texts: Sequence[str]) -> None:
    """Print a row of Markdown."""
    print("|", " | ".join(texts), "|", flush=True)


def against(work: Path) -> None:
    """Print the recommended form less each rival on every set, drawn together, a tie as half."""
    rivals = [
        (Variant("eq1", "uniform", penalty=False), "novel"),
        (Variant("eq1", "uniform", penalty=False), "cosine"),
        (Variant("eq1"), "cosine"),
        (Variant("theory"), "cosine"),
        (Variant("eq1"), "novel"),
        (Variant("theory"), "novel"),
    ]
    row(["set", "ours", *(f"{variant} {similarity}" for variant, similarity in rivals)])
    row(["---"] * (len(rivals) + 2))
    for name in SETS:
        records, numbers = measured_set(name, OURS_SIMILARITY, work)
        judge = judge_of(records)
        both = np.vstack([all_once(judge.questions), drawn(judge.questions)])
        ours = judge.one_figure(numbers.scores(own(name, OURS)), both)
        found = [with_interval(ours[0], ours[1:])]
        for variant, similarity in rivals:
            _, numbers = measured_set(name, similarity, work)
            apart = ours - judge.one_figure(numbers.scores(variant), both)
            found.append(with_interval(apart[0], apart[1:]))
        row([name, *found])


def own(name: str, variant: Variant) -> Variant:
    """Return a variant with the weights that a set allows: one reference has the weight 1."""
    return variant if variant.weights in WEIGHTINGS[name] else variant._replace(weights="uniform")

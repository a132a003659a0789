"""From which gamma on an answer is not stable, for an embedder: by answers that people labelled.

    python -m lab.benchmarks.stability                       # the embedded embedder
    python -m lab.benchmarks.stability --embedder URI        # another one on this machine

Three language models answered 1,000 questions, and people said of each answer whether it is right
(TrustScore). Two right answers to a question state the same fact in different words; a right and a
wrong one do not. Answers of four words or more count, so that both are sentences, as those of one
model to one question are. From each ordered pair, sets of ten answers to perturbed prompts are
made: some of the other wording, the others equal to the original answer.

The threshold is the largest at which at most 5 % of the sets are called stable in which five of ten
answers contradict the original. Its interval is by resampling questions. Thresholds of random
halves of the questions are tried on the other halves.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.fewl.sets import SHARED, SYSTEMS
from lab.results import write_result
from trustassay import embedder
from trustassay.metrics.harmonicity.asking import PAPER_BOUND
from trustassay.metrics.harmonicity.maths import angles
from trustassay.statistics.resampling import generator

COMMAND = "python -m lab.benchmarks.stability"
DATA = "TrustScore, 1,000 questions, answers of three models labelled by people"
WORDS, SET, MISSED = 4, 10, 0.05
SHARES = (1, 3, 5, 10)
DRAWS, HALVES = 2000, 200

Floats = NDArray[np.float64]


class Pair(NamedTuple):
    """Two answers to a question; ``same`` says whether both are right."""

    question: int
    original: str
    other: str
    same: bool


def pairs(rows: Sequence[Any]) -> list[Pair]:
    """Return the ordered pairs of different texts of which at least one is right."""
    found = []
    for number, row in enumerate(rows):
        answers = [(row[name]["pred"].strip(), row[name]["human_eval"] == "1") for name in SYSTEMS]
        long = [one for one in answers if len(one[0].split()) >= WORDS]
        for (text, right), (other, other_right) in permutations(long, 2):
            if text != other and (right or other_right):
                found.append(Pair(number, text, other, right and other_right))
    return found


def gammas(found: Sequence[Pair], vectors: dict[str, Any], others: int) -> Floats:
    """Return gamma of each pair's set, in which so many of ten answers are the other one."""
    original = np.stack([vectors[one.original] for one in found])
    other = np.stack([vectors[one.other] for one in found])
    sets = np.stack([other] * others + [original] * (SET - others), axis=1)
    return np.asarray(angles(original, sets).gamma)


def threshold(values: Floats) -> float:
    """Return the quantile below which 5 % of the sets lie that are to be called unstable."""
    return float(np.quantile(values, MISSED, method="lower"))


def missed_elsewhere(values: Floats, questions: Any) -> Floats:
    """Return the shares of sets that thresholds of random halves of the questions miss in the
    other halves.
    """
    rng = generator(0, "stability", "halves")
    known = np.unique(questions)
    found = []
    for _ in range(HALVES):
        own = np.isin(questions, rng.choice(known, len(known) // 2, replace=False))
        found.append((values[~own] < threshold(values[own])).mean())
    return np.array(found)


def interval(values: Floats, questions: Any) -> tuple[float, float]:
    """Return the 95 % percentile interval of the threshold over resampled questions."""
    rng = generator(0, "stability")
    groups = [np.flatnonzero(questions == one) for one in np.unique(questions)]
    drawn = [
        threshold(values[np.concatenate([groups[i] for i in rng.integers(len(groups), size=n)])])
        for n in [len(groups)] * DRAWS
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def measured(uri: str) -> dict[str, Any]:
    """Return the threshold, and what it and the paper's make of sets of both kinds."""
    rows = json.loads((SHARED / "trustscore" / "qa_human_check.json").read_bytes())
    found = pairs(rows)
    texts = sorted({text for one in found for text in (one.original, one.other)})
    model: Any = embedder(uri)
    vectors = dict(zip(texts, model.vectors(texts), strict=True))
    same = [one for one in found if one.same]
    different = [one for one in found if not one.same]
    half = gammas(different, vectors, SET // 2)
    questions = np.array([one.question for one in different])
    bound = threshold(half)
    missed = np.quantile(100 * missed_elsewhere(half, questions), [0.05, 0.5, 0.95])
    sets = [
        {
            "differ": kind,
            "of_ten": others,
            "median": round(float(np.median(values)), 3),
            "unstable": round(100 * float((values >= bound).mean()), 1),
            "unstable_at_paper": round(100 * float((values >= PAPER_BOUND).mean()), 1),
        }
        for kind, some in (("in words", same), ("in fact", different))
        for others in SHARES
        for values in [gammas(some, vectors, others)]
    ]
    return {
        "embedder": model.name,
        "pairs_same": len(same),
        "pairs_different": len(different),
        "questions_different": len(set(questions.tolist())),
        "threshold": round(bound, 3),
        "interval": [round(end, 3) for end in interval(half, questions)],
        "missed_in_other_halves": missed.round(1).tolist(),
        "sets": sets,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--embedder", default="embedded")
    uri = parser.parse_args().embedder
    figures = measured(uri)
    print(json.dumps(figures, indent=1))
    if uri == "embedded":
        print(write_result("stability", COMMAND, DATA, figures))


if __name__ == "__main__":
    main()

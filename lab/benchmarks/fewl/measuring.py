"""The numbers behind a set's scores by one similarity, from which every variant's follow.

All similarities are computed in one pass. What comes of them is held against the metric's own
scores of the set's first questions, by every weighting: the variants are what it would return.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.fewl.sets import Record
from trustassay.api import rescore, score
from trustassay.backends import resolve
from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.calls.capability import STORED_DECIMALS, reads_question
from trustassay.core.sample import is_blank
from trustassay.metrics.fewl import Fewl, maths
from trustassay.metrics.fewl.options import Penalty
from trustassay.metrics.fewl.references import MAX_AGREEMENT_SAMPLES, explain_silence, find_nearest
from trustassay.statistics.resampling import generator

Floats = NDArray[np.float64]
TOLERANCE = 1e-5
"""Similarities of models have six digits, and the last depends on what is embedded together."""
CHECKED = 25
"""Questions that are scored by the metric as well."""
AT_ONCE = 1024
WITHOUT_PENALTY = frozenset({"agreement"})
"""Similarities by which no penalty is measured: ten times as many entailments as without."""


class Variant(NamedTuple):
    """One way to score; ``divergence`` means nothing for the form ``agreement``."""

    form: maths.Form
    weights: str = "uniform"
    penalty: bool = True
    divergence: maths.Divergence = "tv"

    def __str__(self) -> str:
        form = f"`{self.form}`" if self.form == "agreement" else f"`{self.form}` {self.divergence}"
        return f"{form}, {self.weights}{'' if self.penalty else ', no penalty'}"


OWN = Variant("agreement", "agreement")


@dataclass
class Measured:
    """Numbers of n answers and N references, shape (n, N); 0 where a reference does not count.

    expertise: by weighting; for ``agreement`` the abilities.
    """

    similarity: Floats
    penalty: Floats
    present: NDArray[np.bool_]
    has_penalty: NDArray[np.bool_]
    expertise: dict[str, Floats] = field(default_factory=dict)

    def scores(self, variant: Variant, pick: Any = slice(None)) -> Floats:
        """Return the score of each answer; not a number where no reference counts."""
        weights, present = self._weights(variant.weights)
        found = maths.score(
            self.similarity[pick],
            weights[pick],
            self.penalty[pick] if variant.penalty else None,
            divergence=variant.divergence,
            form=variant.form,
            present=present[pick],
            has_penalty=self.has_penalty[pick],
        )
        return np.where(present[pick].any(axis=1), found, np.nan)

    def _weights(self, weights: str) -> tuple[Floats, NDArray[np.bool_]]:
        if weights == "uniform":
            return maths.uniform_weights(self.present), self.present
        if weights == "agreement":
            return maths.ability_weights(self.expertise[weights], self.present), self.present
        if weights == "single-best":
            best = maths.find_best_reference(self.expertise["ours"], self.present)
            return best.astype(float), best
        return maths.softmax_weights(self.expertise[weights], present=self.present), self.present


def measured(
    records: Sequence[Record], similarity: str, weightings: Sequence[str], work: Path
) -> Measured:
    """Compare all texts once; what ``work`` holds is not computed again."""
    kept = work / "numbers.npz"
    if not kept.exists():
        few = [one for one in records if one["number"] < CHECKED]
        check(few, similarity, weightings, work)
        found = Comparing(records, similarity).measured(weightings)
        arrays: dict[str, Any] = {f"expertise {n}": v for n, v in found.expertise.items()}
        arrays |= {name: value for name, value in vars(found).items() if name != "expertise"}
        np.savez(kept, allow_pickle=False, **arrays)
    with np.load(kept, allow_pickle=False) as stored:
        numbers = dict(stored)
    expertise = {
        name.removeprefix("expertise "): numbers.pop(name)
        for name in list(numbers)
        if name.startswith("expertise ")
    }
    return Measured(**numbers, expertise=expertise)


def check(
    records: Sequence[Record], similarity: str, weightings: Sequence[str], work: Path
) -> None:
    """Hold the scores that are computed here against those of the metric."""
    found = Comparing(records, similarity).measured(weightings)
    options: dict[str, Any] = {"similarity": similarity, "report": False}
    penalised = similarity not in WITHOUT_PENALTY
    penalty: Penalty = "nearest" if penalised else "none"
    first = work / "uniform"
    ways = [Variant("eq1", "uniform", penalised)]
    ways += [Variant("eq1", weights, penalised) for weights in weightings]
    ways += [OWN._replace(penalty=penalised)] if "agreement" in weightings else []
    for number, way in enumerate(ways):
        metric = Fewl(
            form=way.form,
            weights=way.weights,  # type: ignore[arg-type]
            penalty=penalty,
            declined="drop",
        )
        out = work / f"{number}" if number else first
        if number:
            run = rescore(first, metrics=metric, out=out, **options)
        else:
            run = score(records, metrics=metric, out=out, **options)
        own = {one.id: one.score for one in run.assessments}
        theirs = np.array([np.nan if (s := own[r["id"]]) is None else s for r in records])
        ours = found.scores(way)
        apart = float(np.nanmax(np.abs(ours - theirs)))
        if (np.isnan(ours) != np.isnan(theirs)).any() or not apart < TOLERANCE:
            raise SystemExit(f"{way}, {similarity}: the metric's scores are up to {apart} away")


class Comparing:
    """Compares the texts of records, each pair once."""

    def __init__(self, records: Sequence[Record], similarity: str) -> None:
        self.records = records
        self.names = list(dict.fromkeys(name for one in records for name in one["references"]))
        self.penalised = similarity not in WITHOUT_PENALTY
        self._backend: Any = resolve.similarity(similarity)
        self._known: dict[tuple[str, str, str], float] = {}
        self._said: dict[str, dict[str, str]] = {}
        for one in records:
            for name, text in one["references"].items():
                self._said.setdefault(one["question"].strip(), {}).setdefault(name, text)

    def measured(self, weightings: Sequence[str]) -> Measured:
        """Return the numbers of all answers."""
        near = self._neighbours() if self.penalised else {}
        jobs: list[_Job] = []
        for row, one in enumerate(self.records):
            response, question = one["response"], one["question"]
            for column, name in enumerate(self.names):
                text = one["references"].get(name, "")
                if explain_silence(text):
                    continue
                place = row, column
                jobs.append(_Job("similarity", place, [(response, text, question)]))
                others = [
                    (response, other, question)
                    for neighbour in near.get(question.strip(), ())
                    if not explain_silence(other := self._said[neighbour].get(name, ""))
                ]
                jobs.append(_Job("penalty", place, others))
                if "ours" in weightings:
                    for sign, texts in (("+", "corrected_answers"), ("-", "wrong_answers")):
                        pairs = [(text, other, question) for other in one[texts]]
                        jobs.append(_Job(f"ours{sign}", place, pairs))
                if "ideal" in weightings:
                    right = [alias for aliases in one["answers"] for alias in aliases]
                    for sign, known in (("+", right), ("-", one["incorrect_answers"])):
                        pairs = [(text, other, question) for other in known]
                        jobs.append(_Job(f"ideal{sign}", place, pairs))
        self._compare(triple for job in jobs for triple in job.triples)
        return self._gathered(jobs, weightings)

    def _gathered(self, jobs: Sequence[_Job], weightings: Sequence[str]) -> Measured:
        shape = (len(self.records), len(self.names))
        found: dict[str, Floats] = {}
        counts: dict[str, Floats] = {}
        for job in jobs:
            into = found.setdefault(job.into, np.zeros(shape))
            counts.setdefault(job.into, np.zeros(shape))[job.place] = len(job.triples)
            values = [self._known[triple] for triple in job.triples]
            if values:
                into[job.place] = max(values) if job.into[-1] in "+-" else np.mean(values)
        expertise = {
            name: found[f"{name}+"] - found[f"{name}-"]
            for name in ("ours", "ideal")
            if name in weightings
        }
        if "agreement" in weightings:
            ability = self._abilities()
            expertise["agreement"] = np.tile([ability[name] for name in self.names], (shape[0], 1))
        has_penalty = counts["penalty"] > 0
        return Measured(
            found["similarity"],
            found["penalty"],
            counts["similarity"] > 0,
            has_penalty,
            expertise,
        )

    def _compare(self, triples: Iterable[tuple[str, str, str]]) -> None:
        """Compute what is not known yet; an answer without words is like nothing."""
        new = [one for one in dict.fromkeys(triples) if one not in self._known]
        self._known |= {one: 0.0 for one in new if is_blank(one[0])}
        new = sorted((one for one in new if not is_blank(one[0])), key=lambda one: len(one[1]))
        for start in range(0, len(new), AT_ONCE):
            some = new[start : start + AT_ONCE]
            asked = some if reads_question(self._backend) else [one[:2] for one in some]
            values = self._backend.scores(asked).round(STORED_DECIMALS)
            self._known |= zip(some, values.tolist(), strict=True)

    def _neighbours(self) -> dict[str, list[str]]:
        questions = list(self._said)
        vectors = EmbeddedEmbedder().vectors(questions).round(STORED_DECIMALS)
        itself = np.arange(len(questions))
        places = find_nearest(vectors, vectors, 10, max_similarity=0.8, itself=itself).places
        return {
            question: [questions[place] for place in row if place >= 0]
            for question, row in zip(questions, places.tolist(), strict=True)
        }

    def _abilities(self) -> dict[str, float]:
        """Return the abilities of raters, learnt from 500 of the answers as the metric does."""
        picks = np.arange(len(self.records))
        if len(picks) > MAX_AGREEMENT_SAMPLES:
            picks = generator(0, "agreement").choice(
                len(picks), MAX_AGREEMENT_SAMPLES, replace=False
            )
        sums: Counter[tuple[str, str]] = Counter()
        counts: Counter[tuple[str, str]] = Counter()
        asked = {}
        for place in picks.tolist():
            one = self.records[place]
            texts = {
                name: text for name, text in one["references"].items() if not explain_silence(text)
            }
            if not is_blank(one["response"] or ""):
                texts[one.get("model", "")] = one["response"]
            for pair in combinations(sorted(texts), 2):
                asked[place, pair] = (texts[pair[0]], texts[pair[1]], one["question"])
        self._compare(asked.values())
        for (_, pair), triple in asked.items():
            sums[pair] += self._known[triple]  # type: ignore[assignment]
            counts[pair] += 1
        raters = sorted({rater for pair in counts for rater in pair})
        agreement, n = np.zeros((2, len(raters), len(raters)))
        for pair, count in counts.items():
            i, j = map(raters.index, pair)
            agreement[i, j] = agreement[j, i] = sums[pair] / count
            n[i, j] = n[j, i] = count
        return dict(zip(raters, maths.abilities(agreement, n).tolist(), strict=True))


class _Job(NamedTuple):
    """What is compared for one answer and reference, and which number comes of it."""

    into: str
    place: tuple[int, int]
    triples: list[tuple[str, str, str]]

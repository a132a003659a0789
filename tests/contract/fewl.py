"""A metric as a third party writes it: a pool, named references, a weight for each of them.

Wei et al. 2024, equation 1 with the total variation, in little space: how much the references,
weighted by their expertise, agree with the answer, less how much they agree with anything.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trustassay.core.capabilities import Models
from trustassay.core.metric import Assessment, Context, Figure, Mean, Metric, Need, Pool


@dataclass(frozen=True)
class TinyFewl(Metric):
    name: ClassVar[str] = "tiny_fewl"
    title: ClassVar[str] = "References, weighted by their expertise"
    fills: ClassVar[tuple[str, ...]] = ("references", "wrong_answers", "corrected_answers")
    pool: ClassVar[bool] = True
    score_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    figures: ClassVar[Mapping[str, Figure]] = {
        "mean": Figure("mean", "mean score", "", headline=True, statistic=Mean()),
        "penalty": Figure("penalty", "mean penalty", "", statistic=Mean("penalty")),
    }
    evidence_template: ClassVar[str] = "fewl.html.jinja"

    neighbours: int = 2

    def needs(self) -> Sequence[Need]:
        return (
            Need("compare"),
            Need("embed"),
            Need("chat", "references", many=True, optional=True),
            Need("chat", "generator", optional=True),
        )

    async def prepare(self, pool: Pool, models: Models) -> Mapping[str, list[int]]:
        vectors = await asyncio.gather(*(models.embed(sample.question) for sample in pool))
        alike = np.stack(vectors) @ np.stack(vectors).T
        np.fill_diagonal(alike, -np.inf)
        order = np.argsort(-alike, axis=1, kind="stable")[:, : self.neighbours]
        near = {
            sample.id: row.tolist()[: len(pool) - 1]
            for sample, row in zip(pool, order, strict=True)
        }
        return {"pool": pool, "near": near}  # type: ignore[dict-item]

    async def assess(self, context: Context) -> Assessment:
        sample, models, prepared = context.sample, context.models, context.prepared
        answer = sample.response or ""
        rows: list[dict[str, Any]] = []
        for name, (text, *_) in sample.references.items():
            right = [models.compare(text, one) for one in sample.corrected_answers]
            wrong = [models.compare(text, one) for one in sample.wrong_answers]
            expertise = max(await asyncio.gather(*right)) - max(await asyncio.gather(*wrong))
            others = [prepared["pool"][i] for i in prepared["near"][sample.id]]
            strangers = [models.compare(answer, o.references[name][0]) for o in others]
            penalty = sum(await asyncio.gather(*strangers)) / max(1, len(strangers))
            agreement = await models.compare(answer, text)
            rows.append(
                {"name": name, "expertise": expertise, "says": text}
                | {"penalty": penalty, "agreement": agreement}
            )
        total = sum(math.exp(row["expertise"]) for row in rows)
        for row in rows:
            row["weight"] = math.exp(row["expertise"]) / total
        terms = [_g(row["weight"] * row["agreement"]) - _g(row["penalty"]) for row in rows]
        penalty = sum(row["penalty"] for row in rows) / len(rows)
        return Assessment(
            sample.id, self.name, sum(terms) / len(terms), parts={"penalty": penalty}, evidence=rows
        )

    def problem(self, assessment: Assessment) -> str | None:
        low = assessment.score is not None and assessment.score < 0
        return "the references agree with it less than with anything else" if low else None


def _g(value: float) -> float:
    return math.tanh(value) / 2

"""The metrics ``harmonicity`` and ``semantic_harmonicity``, with their common base."""

import asyncio
import math
from abc import abstractmethod
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from trustassay.core.assessment import Statistic, Total, compute_summary
from trustassay.core.capabilities import Models, Vectors
from trustassay.core.evidence import View
from trustassay.core.metric import (
    Assessment,
    Context,
    Figure,
    Mean,
    Need,
    Quantile,
    Share,
    Summary,
    directions,
    index_figures,
)
from trustassay.core.sample import Problem, Sample, find_missing
from trustassay.errors import AssessmentError, UsageError, check_least
from trustassay.metrics.harmonicity import maths
from trustassay.metrics.harmonicity.asking import (
    EmptyReply,
    HarmonicityTrace,
    OriginalAnswer,
    PerturbedAnswer,
    PerturbingOptions,
    PromptPerturber,
    RefusedPrompt,
    embed_texts,
    read_recorded,
)
from trustassay.statistics.resampling import generator

_COUNT_FIGURES = (
    Figure("perturbations", "perturbed prompts per question", ""),
    Figure("refused", "perturbed prompts that the endpoint refused", ""),
    Figure("empty", "perturbed prompts that got an empty reply", ""),
    Figure("cut", "answers that were cut at max_tokens", ""),
    Figure("unseen", "perturbed prompts that the endpoint may have stripped", ""),
)
_COUNT_DIRECTIONS = directions(neither=" ".join(figure.key for figure in _COUNT_FIGURES))


@dataclass(frozen=True)
class Perturbing(PerturbingOptions):
    """The common part of metrics that compare an answer with the answers to perturbed prompts."""

    def problems_without_model(self, sample: Sample) -> list[Problem]:
        """A sample without recorded resamples needs a model."""
        wanted = "answers to perturbed prompts, or a --model to ask for them"
        return find_missing(sample, resamples=wanted)

    def problems(self, sample: Sample) -> list[Problem]:
        """Recorded resamples need the response that they are compared with."""
        wants_response = bool(sample.resamples) or self.original == "response"
        return (
            find_missing(sample, response="the answer to the original prompt")
            if wants_response
            else []
        )

    async def assess(self, context: Context) -> Assessment:
        """Ask and compare; the evidence holds every answer."""
        sample = context.sample
        asking = PromptPerturber(self, sample, context.models)
        if sample.resamples:
            # Blank resamples appear among the empty replies.
            original, answers, asking.empty = read_recorded(sample)
            parts = await self._compare(asking, original, answers)
        else:
            original, answers, parts = await self._ask(asking)
        parts |= {
            "perturbations": len(answers),
            "refused": len(asking.refused),
            "empty": len(asking.empty),
            "cut": asking.count_cut(answers),
            "unseen": sum(answer.unseen for answer in answers),
        }
        lost_prompts = [*map(RefusedPrompt, asking.refused), *map(EmptyReply, asking.empty)]
        # Beyond a right angle gamma falls again, so a small one is no sign of stability there.
        score, turned = parts[self.score_part], parts.get("angle_degrees", 0) > 90
        return self.build_assessment(
            sample,
            score,
            (OriginalAnswer(original), *answers, *lost_prompts),
            verdict="stable" if score < self.stability_bound and not turned else "unstable",
            reason=_build_reason(original, answers, asking, turned=turned),
            parts=parts,
        )

    score_part: ClassVar[str]

    def problem(self, assessment: Assessment) -> str | None:
        """Return a sentence if the answer changes."""
        if assessment.verdict != "unstable":
            return None
        return "the answer changes when the prompt is perturbed but keeps its meaning"

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the answers to perturbed prompts next to the original one."""
        result = HarmonicityTrace.read(assessment.evidence, sample.question)
        reason = (
            f"Another answer of the model: “{result.variants[0].text.strip()}”"
            if result.variants
            else ""
        )
        # Both metrics compare the same answers: the page draws equal evidence once.
        shows = result if result.answers else None
        return View(data=result, shared_key=shows, reason=reason)

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return means, shares and quantiles of the scores, with intervals over samples."""
        # Figures without a declared statistic are in _STATISTICS.
        statistics = {k: figure.statistic or _STATISTICS[k] for k, figure in self.figures.items()}
        result = compute_summary(statistics, map(_add_stable_mean, assessments))
        reason_of_gap = "no answer is stable" if result.support["mean"] else "no sample was scored"
        result.not_applicable.update(dict.fromkeys(result.not_applicable, reason_of_gap))
        for key in _TOTAL_PARTS:
            if (total := result.values[key]) is not None:
                # Totals of floats are whole numbers.
                result.values[key] = round(total)
        for reasons in (result.intervals, result.without_interval):  # a setting, no estimate
            reasons.pop("perturbations", None)
        if reason := result.without_interval.get("stable_mean"):
            # The reason counts stable samples alone.
            result.without_interval["stable_mean"] = reason.replace("samples", "stable samples")
        return result.with_settings(self.settings())

    async def _ask(
        self, asking: PromptPerturber
    ) -> tuple[str, list[PerturbedAnswer], dict[str, float]]:
        """Return the original answer, those to the perturbed prompts, and the parts."""
        original, answers = await _await_both(
            asking.ask_original(), asking.ask_more(self.perturbations)
        )
        return original, answers, await self._compare(asking, original, answers)

    @abstractmethod
    async def _compare(
        self, asking: PromptPerturber, original: str, answers: Sequence[PerturbedAnswer]
    ) -> dict[str, float]:
        """Return the parts of the score."""


@dataclass(frozen=True)
class Harmonicity(Perturbing):
    """How far does the answer change when the prompt is perturbed but keeps its meaning?

    The score is gamma, the sine of the angle between the vector of the original answer and the
    sum of the vectors of the answers to perturbed prompts (Kersting et al. 2024, Algorithm 1).
    Near 0 the answer is stable. ``parts`` also hold the angle in degrees, because the sine falls
    again beyond 90, the length of the vector gamma (Section 1), the mean distance between all
    answers, and gamma's interval.

    Args:
        precision: stop when the interval of gamma is at most plus or minus this number.
        decided: stop when the answer is unstable even if all remaining answers equal the original
            one. Without these two options all ``perturbations`` are asked.
        first: number of perturbed prompts to begin with, if one of the two is given.
        replicates: number of resamples of the perturbations for the interval.
        others: see :class:`Perturbing`.

    If the vectors of the perturbed answers cancel out, there is no angle, and the sample fails.
    The interval of a single perturbation has no width.
    """

    name: ClassVar[str] = "harmonicity"
    figures: ClassVar[Mapping[str, Figure]] = index_figures(
        Figure("mean", "mean gamma, the sine of the angle by which answers move; 0 means stable",
            "", headline=True, statistic=Mean()),
        Figure("median", "median of gamma", "", headline=True, statistic=Quantile(0.5)),
        Figure("p90", "90th percentile of gamma", "", statistic=Quantile(0.9)),
        Figure("stable_share", "share of answers with gamma below stable_below", headline=True,
            statistic=Share("stable")),
        Figure("stable_mean", "mean gamma of the stable answers", ""),
        Figure("angle_degrees", "mean angle between the original answer and the others", "°",
            headline=True, statistic=Mean("angle_degrees", (0.0, 180.0)), better="lower"),
        Figure("gamma_length",
            "mean distance of the original answer's vector from the mean of the others", ""),
        Figure("pairwise_distance", "mean cosine distance between any two answers of a question",
            ""),
        *_COUNT_FIGURES,
    )  # fmt: skip
    score_part: ClassVar[str] = "gamma"
    part_directions = _COUNT_DIRECTIONS | directions(
        lower="gamma gamma_length angle_degrees pairwise_distance", neither="gamma_low gamma_high"
    )

    precision: float | None = None
    decided: bool = False
    first: int = 3
    replicates: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.precision is not None and not 0 < self.precision < 1:
            raise UsageError("precision: expected a number between 0 and 1, or none")
        check_least(self, first=2, replicates=1)

    @property
    def title(self) -> str:  # type: ignore[override]
        """What it is called; in a run also what the scale of gamma depends on."""
        of = f"; embedder {self.embedder}, stable below {self.stability_bound:g}"
        return f"Harmonic robustness (gamma{of if self.backend_names else ''})"

    def needs(self) -> Sequence[Need]:
        """An embedder, and a model if samples have no resamples."""
        return (Need("embed"), Need("chat", "model", optional=True, embeddings=bool(self.ball)))

    async def _ask(
        self, asking: PromptPerturber
    ) -> tuple[str, list[PerturbedAnswer], dict[str, float]]:
        # All at once is faster than in steps where nothing could stop the asking.
        if self.precision is None and not self.decided:
            return await super()._ask(asking)
        wanted = min(self.first, self.perturbations)
        original, answers = await _await_both(asking.ask_original(), asking.ask_more(wanted))
        vectors = await embed_texts([original, *(a.answer for a in answers)], asking.models)
        while True:
            parts = self._compute_parts(asking.sample, vectors)
            remaining = self.perturbations - len(answers)
            if remaining == 0 or self._is_decided(parts, vectors, remaining):
                return original, answers, parts
            # Grow by half: few steps, and about a third of the calls in vain at most.
            new_answers = await asking.ask_more(min(max(2, len(answers) // 2), remaining))
            answers += new_answers
            # Only new answers are embedded.
            new_vectors = await embed_texts([a.answer for a in new_answers], asking.models)
            vectors = np.concatenate([vectors, new_vectors])

    def _is_decided(self, parts: Mapping[str, float], vectors: Vectors, remaining: int) -> bool:
        if self.precision and parts["gamma_high"] - parts["gamma_low"] <= 2 * self.precision:
            return True
        if not self.decided:
            return False
        original = vectors[0]
        # The best case for stability: all answers that are left are the original one.
        best_case = np.concatenate([vectors[1:], remaining * original[None]])
        return bool(maths.angles(original, best_case).gamma >= self.stability_bound)

    async def _compare(
        self, asking: PromptPerturber, original: str, answers: Sequence[PerturbedAnswer]
    ) -> dict[str, float]:
        texts = [original, *(answer.answer for answer in answers)]
        return self._compute_parts(asking.sample, await embed_texts(texts, asking.models))

    def _compute_parts(self, sample: Sample, vectors: Vectors) -> dict[str, float]:
        """Return the parts; the first of the vectors is that of the original answer."""
        result = maths.angles(vectors[0], vectors[1:])
        if not result.defined:
            raise AssessmentError(
                "the vectors of the perturbed answers cancel out, so there is no angle"
            )
        rng = generator(self.seed, sample.id, "gamma")
        # Seeded by the sample, so that its interval does not depend on the order of samples.
        resampled = maths.resample_gammas(vectors[0], vectors[1:], rng, self.replicates)
        low, high = maths.gamma_interval(float(result.gamma), resampled)
        return {
            "gamma": float(result.gamma),
            "gamma_length": float(maths.gamma_length(vectors[0], vectors[1:])),
            "angle_degrees": math.degrees(float(result.radians)),
            "gamma_low": low,
            "gamma_high": high,
            "pairwise_distance": maths.pairwise_distance(vectors),
        }


@dataclass(frozen=True)
class SemanticHarmonicity(Perturbing):
    """How far does the answer's meaning change when the prompt is perturbed but keeps its meaning?

    The score is 1 minus the mean, over the perturbed prompts, of the smaller of two probabilities:
    that the original answer entails the other, and the reverse. A rephrased answer counts as
    stable, although its vector moves; the paper suggests such a comparison (Section 6).

    Args:
        others: see :class:`Perturbing`.
    """

    name: ClassVar[str] = "semantic_harmonicity"
    title: ClassVar[str] = "Harmonic robustness of meaning (entailment)"
    figures: ClassVar[Mapping[str, Figure]] = index_figures(
        Figure("mean", "mean divergence of the answers' meaning; 0 means the same meaning", "",
            headline=True, statistic=Mean()),
        Figure("median", "median of the divergence", "", headline=True, statistic=Quantile(0.5)),
        Figure("p90", "90th percentile of the divergence", "", statistic=Quantile(0.9)),
        Figure("stable_share", "share of answers with a divergence below stable_below",
            headline=True, statistic=Share("stable")),
        Figure("stable_mean", "mean divergence of the stable answers", ""),
        Figure("entails_others", "mean probability that the original answer entails another", ""),
        Figure("entailed_by_others", "mean probability that another entails the original", ""),
        *_COUNT_FIGURES,
    )  # fmt: skip
    score_part: ClassVar[str] = "divergence"
    part_directions = _COUNT_DIRECTIONS | directions(
        higher="entails_others entailed_by_others", lower="divergence"
    )

    stable_below: float | None = 0.5

    @property
    def stability_bound(self) -> float:
        """The score from which an answer is no longer stable."""
        return 0.5 if self.stable_below is None else self.stable_below

    def needs(self) -> Sequence[Need]:
        """An entailer, and a model if samples have no resamples."""
        return (Need("entail"), Need("chat", "model", optional=True, embeddings=bool(self.ball)))

    async def _compare(
        self, asking: PromptPerturber, original: str, answers: Sequence[PerturbedAnswer]
    ) -> dict[str, float]:
        forth, back = await asyncio.gather(
            asyncio.gather(*(_entails(asking.models, original, a.answer) for a in answers)),
            asyncio.gather(*(_entails(asking.models, a.answer, original) for a in answers)),
        )
        return {
            # The smaller of both directions: an answer that says less is entailed but does not
            # entail.
            "divergence": 1 - float(np.mean(np.minimum(forth, back))),
            "entails_others": float(np.mean(forth)),
            "entailed_by_others": float(np.mean(back)),
        }


async def _await_both(
    original: Coroutine[Any, Any, str], answers: Coroutine[Any, Any, list[PerturbedAnswer]]
) -> tuple[str, list[PerturbedAnswer]]:
    """Await both; if one fails, the other is cancelled."""
    tasks = asyncio.create_task(original), asyncio.create_task(answers)
    try:
        # Tasks, since gather alone would leave the other call running after an error.
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _entails(models: Models, premise: str, hypothesis: str) -> float:
    """Return the probability of entailment; the same text entails itself."""
    premise, hypothesis = premise.strip(), hypothesis.strip()
    if premise == hypothesis:
        return 1.0
    return (await models.entail(premise, hypothesis)).entailment


def _build_reason(
    original: str, answers: Sequence[PerturbedAnswer], asking: PromptPerturber, *, turned: bool
) -> str:
    n, same = len(answers), sum(answer.answer.strip() == original.strip() for answer in answers)
    # The same words for any number: the report groups answers by reasons without numbers.
    message = f"{same} of {n} answers to perturbed prompts are identical to the original answer"
    if asking.refused:
        message += f"; perturbed prompts refused and replaced: {len(asking.refused)}"
    if asking.empty:
        treatment = "left out" if asking.sample.resamples else "replaced"
        message += f"; empty answers {treatment}: {len(asking.empty)}"
    if cut := asking.count_cut(answers):
        message += f"; answers cut at {asking.metric.max_tokens} tokens: {cut}"
    if unseen := sum(answer.unseen for answer in answers):
        message += f"; perturbed prompts that the endpoint may have stripped: {unseen}"
    if turned:
        message += "; the angle is beyond 90 degrees, where gamma falls again"
    return message


_TOTAL_PARTS = ("refused", "empty", "cut", "unseen")
_STATISTICS: Mapping[str, Statistic] = {
    "stable_mean": Mean("stable_mean", (0.0, 1.0)),
    "gamma_length": Mean("gamma_length", (0.0, 2.0)),
    "pairwise_distance": Mean("pairwise_distance", (0.0, 2.0)),
    "entails_others": Mean("entails_others", (0.0, 1.0)),
    "entailed_by_others": Mean("entailed_by_others", (0.0, 1.0)),
    "perturbations": Mean("perturbations"),
    **{part: Total(part) for part in _TOTAL_PARTS},
}
"""Statistics of figures that declare none, so that `compare` gives their changes no interval."""


def _add_stable_mean(assessment: Assessment) -> Assessment:
    """Return an assessment with the part of which ``stable_mean`` is the mean, if it is stable."""
    if assessment.verdict != "stable" or assessment.score is None:
        return assessment
    return replace(assessment, parts={**assessment.parts, "stable_mean": assessment.score})

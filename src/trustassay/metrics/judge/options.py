"""The options of ``judge``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from trustassay.errors import UsageError, check_choices, check_least
from trustassay.metric import Metric
from trustassay.metrics.judge.maths import Aggregate
from trustassay.metrics.judge.rubric import Rubric, read_rubric
from trustassay.prompts import Prompt

By = Literal["model", "entailer"]
Order = Literal["gold-first", "answer-first", "both"]

ENTAILER_PASSES = 0.5
"""The score from which an answer passes where an entailer judges: entailed more than denied."""


@dataclass(frozen=True)
class JudgeOptions(Metric):
    """Options of :class:`~trustassay.metrics.judge.metric.Judge`, checked.

    Args:
        rubric: ``truthfulness``, ``informativeness``, ``verdict``, ``answer``, ``code``,
            ``categories``, or a YAML file.
        by: ``model`` asks the run's judges; ``entailer`` asks the run's entailer, with no rubric.
        repeats: how often each judge is asked in each order.
        aggregate: how votes become a score: ``mean``, ``median``, ``majority`` (of several, the
            lowest), or ``expected``, the mean over the levels by their log-probabilities.
        threshold: the value from which a vote passes; without it as the rubric says.
        early: stop asking when no further vote can change the verdict. Means and deviations are
            then those of fewer votes.
        order: what the judge reads first; ``both`` asks twice and measures the difference.
        logprobs: ask for the log-probabilities of the levels.
        constrained: hold the reply to a JSON schema, where the endpoint can do so.
        prompt: file of a template in place of the one that ships.
        temperature, max_tokens: of every call; a temperature of ``None`` leaves it to the judge.
    """

    rubric: str = "truthfulness"
    by: By = "model"
    repeats: int = 1
    aggregate: Aggregate = "mean"
    threshold: float | None = None
    early: bool = False
    order: Order = "gold-first"
    logprobs: bool = False
    constrained: bool = False
    prompt: str | None = None
    temperature: float | None = 0.0
    max_tokens: int = 300

    def __post_init__(self) -> None:
        check_choices(self, by=By, aggregate=Aggregate, order=Order)
        check_least(self, repeats=1, max_tokens=1, temperature=0)
        scale = self.scale  # an unknown name or a faulty file is to fail here
        _ = self.template
        if self.by == "entailer":
            self._check_entailer()
        low, high = self.score_range
        if self.threshold is not None and not low <= self.threshold <= high:
            raise UsageError(f"threshold: expected {low:g} to {high:g}, got {self.threshold:g}")
        if self.threshold is not None and not scale.ordinal:
            raise UsageError(f"threshold: the rubric {scale.name} has no order of levels")
        if self.aggregate == "expected" and not (self.logprobs and scale.ordinal):
            raise UsageError("aggregate: expected takes logprobs=yes and an ordinal rubric")
        if self.order != "gold-first" and "gold" not in (*scale.shows, *scale.shows_if_there):
            raise UsageError(f"order: the rubric {scale.name} shows no gold answer")

    def _check_entailer(self) -> None:
        plain = JudgeOptions.__dataclass_fields__
        for option in ("rubric", "repeats", "aggregate", "early", "order", "logprobs", "prompt"):
            if getattr(self, option) != plain[option].default:
                raise UsageError(f"{option}: an entailer judges truthfulness alone, and once")

    @property
    def score_range(self) -> tuple[float, float]:
        """The values of the rubric's levels; 0 to 1 of an entailer."""
        return (0.0, 1.0) if self.by == "entailer" else self.scale.range

    @cached_property
    def scale(self) -> Rubric:
        """The rubric itself."""
        return read_rubric(self.rubric)

    @cached_property
    def template(self) -> Prompt | None:
        """The user's own prompt."""
        return None if self.prompt is None else Prompt.read(self.prompt)

    @property
    def passes_from(self) -> float:
        """The value from which a vote passes."""
        if self.threshold is not None:
            return self.threshold
        return ENTAILER_PASSES if self.by == "entailer" else self.scale.passes

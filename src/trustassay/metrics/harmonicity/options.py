"""The options of metrics that compare an answer with the answers to perturbed prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from trustassay.metric import Metric
from trustassay.metrics.harmonicity.perturbations import (
    LAST_CONTROL,
    MOST,
    Family,
    check_reach,
    family,
)
from trustassay.prompts import Prompt

__all__ = ["PerturbingOptions"]


@dataclass(frozen=True)
class PerturbingOptions(Metric):
    """The common options of metrics that compare an answer with answers to perturbed prompts.

    Args:
        perturbations: perturbed prompts, N; 1 for use in real time.
        perturbation: ``control`` (the paper's: one to three characters of ASCII 0-31 appended),
            ``codes`` (as the authors' program does it: a space first), ``unicode``,
            ``whitespace``, ``typo``, ``synonym``, ``paraphrase`` (asked of the model),
            ``python:MODULE:FUNCTION``, or a function of the text and a generator.
        length: maximum number of characters added or mistyped, or of words replaced.
        range: the highest code point that ``codes`` draws.
        original: ``ask`` for the answer to the original prompt, or use the sample's
            ``response``.
        prompt: file of a template with the question; without it the prompt is the question.
        temperature, max_tokens: of every call.
        stable_below: a score below it counts as stable (but not if the angle exceeds 90 degrees).
        seed: of the perturbations and of resampling.

    A sample with ``resamples`` is scored from them and its response, without calls. An empty
    answer is a failure: one to a perturbed prompt is recorded and replaced by another (a
    recorded one is left out). The sample fails if more are empty than are wanted (for recorded
    ones: than are not), or if the original answer is.
    """

    reads_response: ClassVar[bool] = False
    lower_is_better: ClassVar[bool] = True
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    verdicts: ClassVar[tuple[str, ...]] = ("stable", "unstable")

    perturbations: int = 10
    perturbation: str | Callable[[str, np.random.Generator], str] = "control"
    length: int = MOST
    range: int = LAST_CONTROL
    original: Literal["ask", "response"] = "ask"
    prompt: str | None = None
    temperature: float = 0.0
    max_tokens: int = 512
    stable_below: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        for option, least in (
            ("perturbations", 1),
            ("max_tokens", 1),
            ("temperature", 0),
            ("seed", 0),
        ):
            if getattr(self, option) < least:
                raise ValueError(f"{option}: expected {least} or more")
        if self.original not in ("ask", "response"):
            raise ValueError(f"original: expected ask or response, got {self.original!r}")
        if not 0 < self.stable_below < 1:
            raise ValueError("stable_below: expected a number between 0 and 1")
        _ = self.family, self.template  # an unknown name or a faulty file is to fail here

    @property
    def line(self) -> str:
        """The bound of stable answers."""
        whose = "stable_below, as in the paper" if self.stable_below == 0.05 else "stable_below"
        bound = f"{self.stable_below:g} or more ({whose})"
        return f"answers to perturbed prompts differ from it by {bound}"

    @cached_property
    def family(self) -> Family:
        """The family of perturbations."""
        if self.perturbation == "paraphrase":
            check_reach("paraphrase", self.length, self.range)
            return Family("paraphrase", lambda text, _: text)
        return family(self.perturbation, self.length, self.range)

    @cached_property
    def template(self) -> Prompt | None:
        """The template around the question."""
        return None if self.prompt is None else Prompt.read(self.prompt)

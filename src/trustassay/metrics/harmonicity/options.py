"""The options of metrics that compare an answer with the answers to perturbed prompts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from trustassay.errors import UsageError
from trustassay.metric import Metric
from trustassay.metrics.harmonicity.perturbations import (
    LAST_CONTROL,
    MOST,
    Family,
    check_reach,
    family,
)
from trustassay.prompts import Prompt

__all__ = ["BOUNDS", "PAPER", "PerturbingOptions", "measured_bound"]

PAPER = 0.05
"""What the paper takes for its embedder (section 4)."""
BOUNDS: Mapping[str, float] = {"embedded": 0.18, "openai:text-embedding-ada-002": PAPER}
"""Gamma from which an answer is not stable, by embedder; that of ``embedded`` by
``python -m benchmarks.stability``, that of the paper's embedder from the paper."""
DEFAULT_EMBEDDER = "embedded"


def measured_bound(embedder: str) -> float | None:
    """Return the bound of an embedder by its name, whatever its version or address."""
    name = re.split(r"[@?]", embedder)[0]
    return BOUNDS.get("embedded" if re.fullmatch(r"embedded(:\d+)?", name) else name)


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
        stable_below: a score below it counts as stable (but not if the angle exceeds 90 degrees);
            without it, the bound that was measured for the run's embedder, or the paper's.
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
    stable_below: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for option, least in (
            ("perturbations", 1),
            ("max_tokens", 1),
            ("temperature", 0),
            ("seed", 0),
        ):
            if getattr(self, option) < least:
                raise UsageError(f"{option}: expected {least} or more")
        if self.original not in ("ask", "response"):
            raise UsageError(f"original: expected ask or response, got {self.original!r}")
        if self.stable_below is not None and not 0 < self.stable_below < 1:
            raise UsageError("stable_below: expected a number between 0 and 1")
        _ = self.family, self.template  # an unknown name or a faulty file is to fail here

    @property
    def embedder(self) -> str:
        """The name of the embedder of the run; without a run, of the default one."""
        return str(self.backend_names.get("embedder", DEFAULT_EMBEDDER))

    @property
    def stability_bound(self) -> float:
        """The score from which an answer is no longer stable."""
        if self.stable_below is not None:
            return self.stable_below
        return measured_bound(self.embedder) or PAPER

    @property
    def line(self) -> str:
        """The bound of stable answers, and where it comes from."""
        whose, name = "stable_below", self.embedder
        if self.stable_below is None and measured_bound(name) is None:
            whose = f"stable_below of the paper's embedder; none is measured for {name}"
        elif self.stable_below is None:
            whose = f"stable_below, measured for {name}"
        bound = f"{self.stability_bound:g} or more ({whose})"
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

"""The options of faithfulness."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from typing import Literal, get_args

from trustassay.errors import UnknownNameError, UsageError, did_you_mean
from trustassay.metric import Metric
from trustassay.metrics.grounding.refusal import Detector, detector
from trustassay.metrics.grounding.sentences import Splitter, splitter
from trustassay.prompts import Prompt

__all__ = ["FaithfulnessOptions"]

Claims = Literal["sentences", "model"]


@dataclass(frozen=True)
class FaithfulnessOptions(Metric):
    """The options; see :class:`~trustassay.metrics.faithfulness.metric.Faithfulness`."""

    claims: Claims = "sentences"
    passages: int = 3
    threshold: float = 0.5
    contradiction: float = 0.5
    near: float = 0.5
    joined: bool = True
    splitter: str = "sentencex"
    refusal: str = "phrases"
    prompt: str | None = None
    max_tokens: int = 1024

    def __post_init__(self) -> None:
        for option in ("passages", "max_tokens"):
            if getattr(self, option) < 1:
                raise UsageError(f"{option}: expected 1 or more")
        for option in ("threshold", "contradiction"):
            if not 0 < getattr(self, option) <= 1:
                raise UsageError(f"{option}: expected a number above 0 and up to 1")
        if not 0 <= self.near <= 1:
            raise UsageError("near: expected a number from 0 to 1")
        if self.claims not in get_args(Claims):
            raise UnknownNameError(did_you_mean("claims", self.claims, get_args(Claims)))
        _ = self.split, self.refuses, self.claims_prompt  # may be unknown, or faulty

    @cached_property
    def split(self) -> Splitter:
        """The splitter of sentences."""
        return splitter(self.splitter)

    @cached_property
    def refuses(self) -> Detector:
        """The detector of refusals."""
        return detector(self.refusal)

    @cached_property
    def claims_prompt(self) -> Prompt:
        """The template by which a model is asked for an answer's claims."""
        if self.prompt is not None:
            return Prompt.read(self.prompt)
        with as_file(files(__package__) / "prompts" / "claims.jinja") as own:
            return Prompt.read(own)

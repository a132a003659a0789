"""The options of the fact check, and its templates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from typing import Literal, get_args

from trustassay.errors import UnknownNameError, UsageError, did_you_mean
from trustassay.metric import Metric
from trustassay.metrics.factcheck.maths import Rule
from trustassay.prompts import Prompt

__all__ = ["FactCheckOptions"]

By = Literal["entailer", "model"]


@dataclass(frozen=True)
class FactCheckOptions(Metric):
    """The options; see :class:`~trustassay.metrics.factcheck.metric.FactCheck`."""

    k: int = 10
    by: By = "entailer"
    threshold: float = 0.5
    rule: Rule = "support"
    statement: str | None = None
    hypothesis: str | None = None
    prompt: str | None = None
    max_tokens: int = 256

    def __post_init__(self) -> None:
        for option in ("k", "max_tokens"):
            if getattr(self, option) < 1:
                raise UsageError(f"{option}: expected 1 or more")
        if not 0 < self.threshold <= 1:
            raise UsageError("threshold: expected a number above 0 and up to 1")
        for option, kind in (("by", By), ("rule", Rule)):
            if getattr(self, option) not in (known := get_args(kind)):
                raise UnknownNameError(did_you_mean(option, getattr(self, option), known))
        _ = self.statement_template, self.hypothesis_template, self.judge_prompt  # may be faulty

    @cached_property
    def statement_template(self) -> Prompt:
        """The template of the statement by which passages are searched."""
        return _template(self.statement, "statement")

    @cached_property
    def hypothesis_template(self) -> Prompt:
        """The template of what a passage is to entail."""
        return _template(self.hypothesis, "hypothesis")

    @cached_property
    def judge_prompt(self) -> Prompt:
        """The template around passages, question and answer."""
        return _template(self.prompt, "factcheck")


def _template(path: str | None, name: str) -> Prompt:
    if path is not None:
        return Prompt.read(path)
    with as_file(files(__package__) / "prompts" / f"{name}.jinja") as own:
        return Prompt.read(own)

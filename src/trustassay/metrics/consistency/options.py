"""The options of the metric ``consistency``, and its prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import as_file, files
from typing import Literal, get_args

from trustassay.errors import UnknownNameError, UsageError, did_you_mean
from trustassay.metric import Metric
from trustassay.prompts import Prompt

__all__ = ["ELSEWHERE", "NONE_OF_THEM", "ConsistencyOptions"]

By = Literal["letter", "likelihood", "auto"]
Parser = Literal["letter", "exact"]
Aggregate = Literal["all", "share"]
Unparsed = Literal["again", "apart", "inconsistent"]

ELSEWHERE = ("pool", "llm", "given")
"""Sources of distractors that are no backend: other samples, the generator, the sample itself."""
NONE_OF_THEM = "None of the above."
_PROMPTS = "prompts"


@dataclass(frozen=True)
class ConsistencyOptions(Metric):
    """The options; see :class:`~trustassay.metrics.consistency.metric.Consistency`."""

    checks: int = 10
    stop: bool = True
    sources: str | None = None
    candidates: int = 40
    aliases: bool = False
    by: By = "letter"
    max_tokens: int = 64
    prompt: str | None = None
    parser: Parser = "letter"
    unparsed: Unparsed = "again"
    aggregate: Aggregate = "all"

    def __post_init__(self) -> None:
        for option, least in (("checks", 1), ("candidates", 3), ("max_tokens", 1)):
            if getattr(self, option) < least:
                raise UsageError(f"{option}: expected {least} or more")
        for option, kind in (
            ("by", By),
            ("parser", Parser),
            ("unparsed", Unparsed),
            ("aggregate", Aggregate),
        ):
            if getattr(self, option) not in (known := get_args(kind)):
                raise UnknownNameError(did_you_mean(option, getattr(self, option), known))
        if self.aggregate == "share" and self.stop:
            raise UsageError(
                "aggregate: share needs stop=no (a share of checks that end with the first "
                "inconsistent one says how long they were, and not how consistent the model is)"
            )
        names = self.named_sources
        if names is not None and (not all(names) or len(set(names)) < len(names)):
            raise UsageError(
                f"sources: expected different names with + between them, got {self.sources!r}"
            )
        _ = self.template  # a faulty file is to fail here

    @cached_property
    def named_sources(self) -> tuple[str, ...] | None:
        """The sources of distractors; ``None`` for those of the run."""
        return None if self.sources is None else tuple(self.sources.split("+"))

    def takes(self, source: str) -> bool:
        """Whether a source that is no backend is among those named."""
        return source in (self.named_sources or ())

    @cached_property
    def template(self) -> Prompt:
        """The template around the question, the options and the examples."""
        if self.prompt is not None:
            return Prompt.read(self.prompt)
        return _shipped("choose")

    @property
    def repair(self) -> Prompt:
        """What asks once more after a reply that names no option."""
        return _shipped("again")

    @cached_property
    def examples(self) -> list[dict[str, object]]:
        """The five examples in front of the question."""
        text = (files(__package__) / _PROMPTS / "examples.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]


@cache
def _shipped(name: str) -> Prompt:
    with as_file(files(__package__) / _PROMPTS / f"{name}.jinja") as path:
        return Prompt.read(path)

"""The parts of ``uncertainty``, its options, and what follows from them: figures and needs."""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from importlib.util import find_spec
from typing import Literal, cast

from trustassay.errors import (
    BackendError,
    UnknownNameError,
    UsageError,
    check_choices,
    check_least,
    did_you_mean,
    install,
)
from trustassay.metric import Figure, Mean, Metric, Need, Share
from trustassay.metrics.harmonicity.metric import Harmonicity
from trustassay.metrics.uncertainty.tokens import tokens_problems
from trustassay.prompts import Prompt
from trustassay.sample import Problem, Sample
from trustassay.text.sentences import Splitter, splitter

Family = Literal[
    "sentences", "pairs", "meanings", "words", "vectors", "tokens", "both", "claims", "asked"
]
"""Parts that need the same: of ``both``, replies and tokens; of ``vectors``, those of tokens."""
AUTO: tuple[Family, ...] = ("sentences", "meanings", "tokens", "both")
"""Those that ask for nothing but replies, one matrix of entailment, and tokens where known."""
OF_TOKENS = frozenset({"tokens", "both", "claims"})
_NEEDS: Mapping[str, str] = {"rouge_l": "rouge_score", "bleu": "nltk"}


@dataclass(frozen=True, slots=True)
class Part:
    """One statistic; a larger value is more doubt.

    bounds: its least and largest value, where it has both. scale: how it becomes a score.
    """

    name: str
    explanation: str
    family: Family
    scale: Literal["", "sets", "entropy", "length", "nll"]
    bounds: tuple[float, float] | None

    def score(self, value: float, replies: int) -> float:
        """Return the value as a score, 0 to 1, in the same order for equally many replies."""
        most = max(2, replies)
        if self.scale == "sets":
            result = (value - 1) / (most - 1)
        elif self.scale == "entropy":
            result = value / math.log(most)
        elif self.scale == "length":
            result = value / math.sqrt(most)
        elif self.scale == "nll":
            result = 1 - math.exp(-value)
        else:
            result = value if self.bounds == (0.0, 1.0) else 1 / (1 + math.exp(-value))
        return min(max(result, 0.0), 1.0)


def _read() -> Iterator[Part]:
    table = files(__package__).joinpath("parts.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(io.StringIO(table)):
        ends = row["least"], row["largest"]
        bounds = (float(ends[0]), float(ends[1])) if all(ends) else None
        scale = cast('Literal["", "sets", "entropy", "length", "nll"]', row["scale"])
        family = cast("Family", row["family"])
        yield Part(row["name"], row["explanation"], family, scale, bounds)


PARTS: Mapping[str, Part] = {part.name: part for part in _read()}
"""All parts, in the order in which they are shown."""
FAMILIES = tuple(dict.fromkeys(part.family for part in PARTS.values()))


def selected(names: str) -> tuple[str, ...]:
    """Return parts by names of parts and families joined by ``+``; ``auto`` and ``all`` are names.

    Raises:
        UnknownNameError: a name is none of these.
    """
    result: set[str] = set()
    for name in filter(None, (one.strip() for one in names.split("+"))):
        families = {"auto": AUTO, "all": FAMILIES}.get(name, (name,))
        own = {part.name for part in PARTS.values() if part.family in families}
        if not own and name not in PARTS:
            known = [*PARTS, *FAMILIES, "auto", "all"]
            raise UnknownNameError(did_you_mean("part of uncertainty", name, known))
        result |= own or {name}
    return tuple(name for name in PARTS if name in result)


def missing(name: str) -> str | None:
    """Return which package a part needs that is not installed, and how to get it."""
    needed = _NEEDS.get(name)
    if needed is None or find_spec(needed) is not None:
        return None
    return f"{name} needs {needed.replace('_', '-')}: {install('reference')}"


FEWEST = 2
"""Replies; one alone has no spread."""
MEANS = ("selfcheck_nli", "disagreement")
"""Parts that are a mean over replies of a number from 0 to 1, which each reply has by itself."""
Replies = Literal["resamples", "perturbed"]


@dataclass(frozen=True)
class UncertaintyOptions(Metric):
    """The options; see :class:`~trustassay.metrics.uncertainty.metric.Uncertainty`."""

    parts: str = "auto"
    score: str | None = None
    samples: int | Literal["auto"] = 5
    least: int = 3
    most: int = 20
    confidence: float = 0.95
    replies: Replies = "resamples"
    temperature: float = 1.0
    max_tokens: int = 512
    prompt: str | None = None
    alternatives: int = 5
    doubtful_from: float = 0.5
    splitter: str = "sentencex"

    def __post_init__(self) -> None:
        check_least(self, max_tokens=1, temperature=0, alternatives=-1)
        check_choices(self, replies=Replies)
        if self.score is not None and self.score not in PARTS:
            raise UnknownNameError(did_you_mean("part of uncertainty", self.score, PARTS))
        if not 0 < self.doubtful_from <= 1:
            raise UsageError("doubtful_from: expected a number above 0 and up to 1")
        if not self.chosen:
            raise UsageError("parts: none is left")
        self._check_samples()
        _ = self.split, self.template  # may be unknown, or faulty

    def _check_samples(self) -> None:
        if isinstance(self.samples, int):
            check_least(self, samples=FEWEST)
            return
        if not self.until_decided:
            message = f"expected a whole number or auto, got {self.samples!r}"
            raise UsageError(f"samples: {message}")
        check_least(self, least=FEWEST, most=self.least)
        if not 0 < self.confidence <= 1:
            raise UsageError("confidence: expected a number above 0 and up to 1")
        if self.scored.name not in MEANS:
            message = f"auto needs a score that is a mean over replies ({' or '.join(MEANS)})"
            raise UsageError(f"samples: {message}, got {self.scored.name}")

    @property
    def until_decided(self) -> bool:
        """Whether replies are asked for until the verdict is known."""
        return self.samples == "auto"

    @property
    def most_asked(self) -> int:
        """The most replies that are asked for."""
        return self.most if self.samples == "auto" else self.samples

    @cached_property
    def perturbing(self) -> Harmonicity:
        """The metric whose perturbed prompts are asked with ``replies=perturbed``."""
        return Harmonicity(
            perturbations=self.most_asked,
            original="response",
            prompt=self.prompt,
            max_tokens=self.max_tokens,
        )

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """The parts that are computed; the score's is one of them."""
        names = {*selected(self.parts), *filter(None, [self.score])}
        return tuple(name for name in PARTS if name in names)

    @property
    def scored(self) -> Part:
        """The part that is the score."""
        first = "selfcheck_nli" if "selfcheck_nli" in self.chosen else self.chosen[0]
        return PARTS[self.score or first]

    @cached_property
    def split(self) -> Splitter:
        """The splitter of sentences."""
        return splitter(self.splitter)

    @cached_property
    def template(self) -> Prompt | None:
        """The template around the question."""
        return None if self.prompt is None else Prompt.read(self.prompt)

    @cached_property
    def families(self) -> frozenset[str]:
        """The families of the chosen parts."""
        return frozenset(PARTS[name].family for name in self.chosen)

    @property
    def _entails(self) -> bool:
        return bool(self.families & {"sentences", "pairs", "meanings", "both", "claims"})

    @property
    def reads_replies(self) -> bool:
        """Whether a part compares the answer with other replies."""
        return bool(self.families - {"tokens", "claims"}) and self.chosen != ("p_true",)

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The score's mean, the share of answers in doubt, and the mean of every part."""
        lead = f"mean score, from {self.scored.name}; 0 is no doubt"
        doubtful = Share("doubtful")
        made = {
            "mean": Figure("mean", lead, "", headline=True, statistic=Mean()),
            "doubtful": Figure(
                "doubtful", f"answers with {self._bound}", "%", headline=True, statistic=doubtful
            ),
        }
        if self.until_decided:
            lead = f"mean number of replies asked for, of {self.most} (most)"
            made["asked"] = Figure("asked", lead, "", statistic=Mean("asked", (0.0, self.most)))
            lead = f"share of answers for which all {self.most} were asked for"
            undecided = Mean("undecided", (0.0, 1.0))
            made["undecided"] = Figure("undecided", lead, "", statistic=undecided)
        for name in self.chosen:
            part = PARTS[name]
            mean = Mean(name, part.bounds)
            made[name] = Figure(name, part.explanation, "", group="parts", statistic=mean)
        return made

    @property
    def _bound(self) -> str:
        return f"a score of {self.doubtful_from:g} or more (doubtful_from)"

    @property
    def line(self) -> str:
        """The rule of :meth:`problem`."""
        return f"its {self.scored.name} gives {self._bound}"

    def needs(self) -> Sequence[Need]:
        """An entailer, an embedder of tokens for ``vectors``, and a model where samples bring no
        replies, or parts ask it.

        Raises:
            BackendError: a part needs a package that is not installed.
        """
        for name in self.chosen:
            if reason := missing(name):
                raise BackendError(f"{self.name}: {reason}")
        result = [Need("entail")] if self._entails else []
        if "vectors" in self.families:
            result.append(Need("token_vectors"))
        if "p_true" in self.chosen:
            result.append(Need("choose", "model"))
        return [*result, Need("chat", "model", optional="asked" not in self.families)]

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response; its replies and tokens have to be those of an answer."""
        result = tokens_problems(sample)
        if not sample.answered and sample.resamples:
            result.append(Problem("response", "is missing (expected the answer to assess)"))
        if self.reads_replies and len(sample.resamples) == 1:
            message = f"has 1 reply (expected a list of {FEWEST} or more; in a cell, as JSON)"
            result.append(Problem("resamples", message))
        return result

    def problems_without_model(self, sample: Sample) -> list[Problem]:
        """Without a model a sample needs other replies, for the parts that read them."""
        if sample.resamples or not self.reads_replies:
            return []
        message = "is missing (expected other replies to the question, or a --model to ask)"
        return [Problem("resamples", message)]

    def asks(self, question: str) -> tuple[str, str]:
        """Return what is asked, and the name of the prompt that was made for it."""
        if self.template is None:
            return question, ""
        return self.template.filled(question=question), self.template.name

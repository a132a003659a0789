"""The parts of ``uncertainty``, its options, and the figures and needs that they imply."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Literal

from trustassay.core.metric import Figure, Mean, Metric, Need, Share
from trustassay.core.prompts import Prompt
from trustassay.core.sample import Problem, Sample
from trustassay.errors import (
    BackendError,
    UnknownNameError,
    UsageError,
    check_choices,
    check_least,
    did_you_mean,
    install_command,
)
from trustassay.metrics.harmonicity.metric import Harmonicity
from trustassay.text.sentences import Splitter, load_splitter

Family = Literal[
    "sentences", "pairs", "meanings", "words", "vectors", "tokens", "both", "claims", "asked"
]
"""Parts with the same needs; ``both`` needs replies and tokens, ``vectors`` token vectors."""
AUTO: tuple[Family, ...] = ("sentences", "meanings", "tokens", "both")
"""Families that need only replies, one matrix of entailment, and tokens where they are known."""
TOKEN_FAMILIES = frozenset({"tokens", "both", "claims"})
"""Families that need the tokens of the answer."""
_PACKAGES: Mapping[str, str] = {"rouge_l": "rouge_score", "bleu": "nltk"}


@dataclass(frozen=True, slots=True)
class UncertaintyPart:
    """One statistic; a larger value is more doubt."""

    name: str
    """The name in options and results."""
    family: Family
    """The group that it is computed with."""
    explanation: str
    """One line for the report."""
    scale: Literal["share", "sets", "entropy", "length", "nll", "open"] = "share"
    """What a value is, and so how it becomes a score, see :meth:`score`."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the largest value; ``None`` where one of them does not exist."""
        return (0.0, 1.0) if self.scale == "share" else None

    def score(self, value: float, replies: int) -> float:
        """Return the value as a score, 0 to 1, in the same order for equally many replies."""
        max_replies = max(2, replies)
        # Each scale is divided by its largest value for this many replies.
        if self.scale == "sets":
            result = (value - 1) / (max_replies - 1)
        elif self.scale == "entropy":
            result = value / math.log(max_replies)
        elif self.scale == "length":
            result = value / math.sqrt(max_replies)
        elif self.scale == "nll":
            # -log p becomes 1 - p.
            result = 1 - math.exp(-value)
        elif self.scale == "open":
            result = 1 / (1 + math.exp(-value))
        else:
            result = value
        return min(max(result, 0.0), 1.0)


_ALL_PARTS = (
    UncertaintyPart("selfcheck_nli", "sentences",
        "mean probability that another reply contradicts a sentence of the answer, with neutral "
        "outcomes left aside (SelfCheckGPT, NLI)"),
    UncertaintyPart("disagreement", "sentences",
        "mean probability that another reply does not entail a sentence of the answer"),
    UncertaintyPart("weakest_sentence", "sentences", "largest selfcheck_nli of a sentence"),
    UncertaintyPart("luq_pair", "pairs",
        "selfcheck_nli against the best-agreeing sentence of each reply (LUQ-pair)"),
    UncertaintyPart("semantic_sets", "meanings", "number of sets of replies with the same meaning",
        scale="sets"),
    UncertaintyPart("semantic_entropy", "meanings",
        "entropy over the meanings of the replies (discrete)", scale="entropy"),
    UncertaintyPart("semantic_entropy_weighted", "meanings",
        "semantic_entropy weighted by the replies' likelihoods", scale="open"),
    UncertaintyPart("eigenvalue_sum", "meanings",
        "sum of eigenvalues of the graph of replies (EigV)", scale="sets"),
    UncertaintyPart("degree", "meanings", "1 - mean similarity of two replies (degree matrix)"),
    UncertaintyPart("eccentricity", "meanings",
        "how far replies lie from their centre", scale="length"),
    UncertaintyPart("kernel_entropy", "meanings", "entropy of the heat kernel over the replies"),
    UncertaintyPart("luq", "meanings", "1 - mean agreement of two replies (LUQ)"),
    UncertaintyPart("rouge_l", "words", "1 - mean ROUGE-L of two replies"),
    UncertaintyPart("bleu", "words", "1 - mean BLEU of two replies"),
    UncertaintyPart("selfcheck_ngram", "words",
        "mean over sentences of the rarest word's -log p among all replies (SelfCheckGPT, "
        "unigram)", scale="nll"),
    UncertaintyPart("selfcheck_bertscore", "vectors",
        "1 - mean BERTScore of a sentence and the sentence of another reply that is most like it "
        "(SelfCheckGPT, BERTScore)"),
    UncertaintyPart("nll", "tokens", "-log p of the answer", scale="nll"),
    UncertaintyPart("mean_nll", "tokens",
        "mean -log p of a token (the logarithm of the perplexity)", scale="nll"),
    UncertaintyPart("weakest_token", "tokens", "1 - p of the least likely token"),
    UncertaintyPart("mean_entropy", "tokens",
        "mean entropy of a token among its alternatives", scale="nll"),
    UncertaintyPart("max_entropy", "tokens", "largest entropy of a token among its alternatives",
        scale="nll"),
    UncertaintyPart("self_certainty", "tokens",
        "- mean KL(uniform || p) of a token among its alternatives", scale="open"),
    UncertaintyPart("cocoa_nll", "both", "nll times disagreement", scale="nll"),
    UncertaintyPart("cocoa_mean_nll", "both", "mean_nll times disagreement", scale="nll"),
    UncertaintyPart("cocoa_entropy", "both", "mean_entropy times disagreement", scale="nll"),
    UncertaintyPart("ccp", "claims", "1 - claim-conditioned probability"),
    UncertaintyPart("p_true", "asked", "1 - probability at which the model calls its answer true"),
    UncertaintyPart("selfcheck_prompt", "asked",
        "share of other replies that, according to the model, do not support a sentence "
        "(SelfCheckGPT, prompt)"),
)  # fmt: skip
PARTS: Mapping[str, UncertaintyPart] = {part.name: part for part in _ALL_PARTS}
"""All parts, in the order in which they are shown."""
FAMILIES = tuple(dict.fromkeys(part.family for part in PARTS.values()))


def select_parts(names: str) -> tuple[str, ...]:
    """Return the parts that a text names: parts, families, ``auto`` or ``all``, joined by ``+``.

    Raises:
        UnknownNameError: a name is none of these.
    """
    chosen: set[str] = set()
    for name in filter(None, (item.strip() for item in names.split("+"))):
        families = {"auto": AUTO, "all": FAMILIES}.get(name, (name,))
        # A name may be that of a family, a part, or a group of families.
        parts_of_family = {part.name for part in PARTS.values() if part.family in families}
        if not parts_of_family and name not in PARTS:
            names_of_all = [*PARTS, *FAMILIES, "auto", "all"]
            raise UnknownNameError(did_you_mean("part of uncertainty", name, names_of_all))
        chosen |= parts_of_family or {name}
    return tuple(name for name in PARTS if name in chosen)


def missing(name: str) -> str | None:
    """Return which package of a part is not installed, and how to install it; else ``None``."""
    needed = _PACKAGES.get(name)
    if needed is None or find_spec(needed) is not None:
        return None
    return f"{name} needs {needed.replace('_', '-')}: {install_command('reference')}"


MIN_REPLIES = 2
"""Fewest replies: a single one has no spread."""
MEANS = ("selfcheck_nli", "disagreement")
"""Parts that are means over replies, each of which gives a number from 0 to 1 by itself."""
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
            raise UsageError("parts: no part is chosen; name one")
        self._check_samples()
        # Build these now: an unknown name or a faulty file must fail before a run starts.
        _ = self.split, self.template

    def _check_samples(self) -> None:
        if isinstance(self.samples, int):
            check_least(self, samples=MIN_REPLIES)
            return
        if not self.until_decided:
            message = f"expected a whole number or auto, got {self.samples!r}"
            raise UsageError(f"samples: {message}")
        check_least(self, least=MIN_REPLIES, most=self.least)
        if not 0 < self.confidence <= 1:
            raise UsageError("confidence: expected a number above 0 and up to 1")
        # Only a mean over replies has a value after each reply, which stopping early needs.
        if self.scored.name not in MEANS:
            message = f"auto needs a score that is a mean over replies ({' or '.join(MEANS)})"
            raise UsageError(f"samples: {message}, got {self.scored.name}")

    @property
    def until_decided(self) -> bool:
        """Whether replies are asked for until the verdict is known (``samples=auto``)."""
        return self.samples == "auto"

    @property
    def most_asked(self) -> int:
        """The largest number of replies to ask for."""
        return self.most if self.samples == "auto" else self.samples

    @cached_property
    def perturbing(self) -> Harmonicity:
        """The metric that perturbs prompts with ``replies=perturbed``."""
        return Harmonicity(
            perturbations=self.most_asked,
            # The answer to the original prompt is the response: it is not asked for again.
            original="response",
            prompt=self.prompt,
            max_tokens=self.max_tokens,
        )

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """The parts that are computed; the score's is one of them."""
        names = {*select_parts(self.parts), *filter(None, [self.score])}
        return tuple(name for name in PARTS if name in names)

    @property
    def scored(self) -> UncertaintyPart:
        """The part that is the score."""
        # The default score (docs/methods/uncertainty.md), where it is computed.
        first = "selfcheck_nli" if "selfcheck_nli" in self.chosen else self.chosen[0]
        return PARTS[self.score or first]

    @cached_property
    def split(self) -> Splitter:
        """The splitter of sentences."""
        return load_splitter(self.splitter)

    @cached_property
    def template(self) -> Prompt | None:
        """The template around the question."""
        return None if self.prompt is None else Prompt.read(self.prompt, "question")

    @cached_property
    def families(self) -> frozenset[str]:
        """The families of the chosen parts."""
        return frozenset(PARTS[name].family for name in self.chosen)

    @property
    def _needs_entailer(self) -> bool:
        return bool(self.families & {"sentences", "pairs", "meanings", "both", "claims"})

    @property
    def reads_replies(self) -> bool:
        """Whether a part compares the answer with other replies."""
        # p_true asks the model about its answer; replies are only context for it.
        return bool(self.families - {"tokens", "claims"}) and self.chosen != ("p_true",)

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The score's mean, the share of answers in doubt, and the mean of every part."""
        lead = f"mean score, from {self.scored.name}; 0 means no doubt"
        doubtful = Share("doubtful")
        result = {
            "mean": Figure("mean", lead, "", headline=True, statistic=Mean()),
            "doubtful": Figure(
                "doubtful",
                f"answers with {self._bound_text}",
                "%",
                headline=True,
                statistic=doubtful,
            ),
        }
        if self.until_decided:
            lead = f"mean number of replies asked for, of at most {self.most} (most)"
            result["asked"] = Figure("asked", lead, "", statistic=Mean("asked", (0.0, self.most)))
            lead = f"share of answers for which all {self.most} replies were asked for"
            undecided = Mean("undecided", (0.0, 1.0))
            result["undecided"] = Figure("undecided", lead, "", statistic=undecided)
        for name in self.chosen:
            part = PARTS[name]
            mean = Mean(name, part.bounds)
            result[name] = Figure(name, part.explanation, "", group="parts", statistic=mean)
        return result

    @property
    def _bound_text(self) -> str:
        return f"a score of {self.doubtful_from:g} or more (doubtful_from)"

    @property
    def line(self) -> str:
        """The rule of :meth:`problem`."""
        return f"its {self.scored.name} gives {self._bound_text}"

    def needs(self) -> Sequence[Need]:
        """An entailer, token vectors for ``vectors``, and a model for replies that samples lack or
        for parts that ask it.

        Raises:
            BackendError: a part needs a package that is not installed.
        """
        for name in self.chosen:
            if reason := missing(name):
                raise BackendError(f"{self.name}: {reason}")
        result = [Need("entail")] if self._needs_entailer else []
        if "vectors" in self.families:
            result.append(Need("token_vectors"))
        if "p_true" in self.chosen:
            result.append(Need("choose", "model"))
        return [*result, Need("chat", "model", optional="asked" not in self.families)]

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response, and several replies where it brings any.

        Log-probabilities that cannot be used are none, see :func:`~.tokens.read_tokens`.
        """
        result = []
        # Without resamples a missing response is generated by the model.
        if not sample.answered and sample.resamples:
            result.append(Problem("response", "is missing (expected the answer to assess)"))
        # A list in a CSV cell that is no JSON is read as a single text.
        if self.reads_replies and len(sample.resamples) == 1:
            message = (
                f"has 1 reply (expected a list of {MIN_REPLIES} or more; in a CSV cell, as JSON)"
            )
            result.append(Problem("resamples", message))
        return result

    def problems_without_model(self, sample: Sample) -> list[Problem]:
        """Without a model a sample needs other replies, for the parts that read them."""
        if sample.resamples or not self.reads_replies:
            return []
        message = "is missing (expected other replies to the question, or a --model to ask)"
        return [Problem("resamples", message)]

    def asks(self, question: str) -> tuple[str, str]:
        """Return the prompt for a question, and the name of the template, empty without one."""
        if self.template is None:
            return question, ""
        return self.template.fill(question=question), self.template.name

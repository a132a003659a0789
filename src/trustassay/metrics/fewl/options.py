"""The options of ``fewl``, with ``auto`` resolved, and the needs and score range they imply."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from trustassay.core.metric import Inventory, Metric, Need
from trustassay.errors import UsageError, check_choices, check_least
from trustassay.metrics.fewl.maths import Divergence, Form

Weights = Literal["auto", "ours", "uniform", "ideal", "single-best", "agreement"]
Penalty = Literal["nearest", "random", "none"]
Declining = Literal["auto", "count", "drop"]
Expertise = Literal["similarity", "ask"]
MAX_SIMILARITY = 1.1
"""Similarities are about -1 to 1 (1: the same), with room for rounding and unnormalised ones."""


@dataclass(frozen=True)
class FewlOptions(Metric):
    """The options that a user can set.

    Args:
        form: ``eq1`` (equation 1 of the paper), ``theory`` (its section 3.1), ``agreement`` (a
            form of this project; see docs/methods/fewl.md).
        divergence: ``tv``, ``js`` or ``kl``; the form ``agreement`` has none.
        weights: how references are weighted. ``ours`` (the paper's name): by expertise, from wrong
            and corrected answers; ``uniform``; ``ideal``: by labelled right and wrong answers
            (``answers`` and ``incorrect_answers``); ``single-best``: only the reference with the
            most expertise; ``agreement``: by how much they agree over all samples. ``auto`` is
            ``ours``, and for the form ``agreement`` it is ``agreement``.
        temperature: divides the expertise before its exponential is taken.
        penalty: subtract the similarity to the references' answers to the ``nearest`` questions,
            to ``random`` ones, or to ``none``.
        neighbours: number of questions behind a penalty, K.
        max_similarity: cosine from which two questions are too similar to be neighbours.
        pairs: number of wrong and corrected answers to request from the generator in one call; of
            a sample's own pairs the first ones up to this number count.
        answers: number of different answers to request from each reference model in one call; each
            counts as a reference.
        pairs_prompt: file with a template that asks for the pairs, with ``question``, ``pairs`` and
            ``sample``; the reply must have the standard layout ("1. Wrong Answer: ...").
        answers_prompt: file with a template that asks for several answers, with ``question``,
            ``answers`` and ``sample``; the reply is a numbered list.
        declined: a reference that declines to answer ("I have no comment") counts like any other
            (``count``, as in the paper), or its weight goes to the others (``drop``). ``auto`` is
            ``count``, and for the form ``agreement`` it is ``drop``.
        expertise: by ``similarity`` to wrong and corrected answers, or ``ask``: each reference is
            asked whether its answer says the same as they do (footnote 4).
        allow_missing_references: score a sample by the references that answered, even if a call to
            another one failed. Otherwise the sample fails, because equation 1 would have another
            N. A failed call of ``expertise=ask`` fails the sample in either case: the reference
            has answered, but its weight is not known.
    """

    form: Form = "eq1"
    divergence: Divergence = "tv"
    weights: Weights = "auto"
    temperature: float = 1.0
    penalty: Penalty = "nearest"
    neighbours: int = 10
    max_similarity: float = 0.8
    pairs: int = 25
    answers: int = 1
    declined: Declining = "auto"
    expertise: Expertise = "similarity"
    allow_missing_references: bool = False
    pairs_prompt: str | None = None
    answers_prompt: str | None = None

    def __post_init__(self) -> None:
        check_choices(self, form=Form, divergence=Divergence, weights=Weights, penalty=Penalty)
        check_choices(self, declined=Declining, expertise=Expertise)
        # 0 neighbours switch the penalty off, 0 pairs switch expertise off.
        check_least(self, neighbours=0, pairs=0, answers=1)
        if not 0 < self.temperature < math.inf:
            raise UsageError(f"temperature: expected more than 0, got {self.temperature}")
        if not -1 <= self.max_similarity <= 1:
            raise UsageError(f"max_similarity: expected -1 to 1, got {self.max_similarity}")
        if self.pairs_prompt and not self.wants_pairs:
            raise UsageError(
                f"pairs_prompt: has no effect, because weights={self.weighting} asks for no pairs"
            )
        if self.answers_prompt and self.answers == 1:
            raise UsageError(
                "answers_prompt: applies to several answers; expected answers=2 or more"
            )

    @property
    def weighting(self) -> Weights:
        """The weights in use: ``weights`` with ``auto`` resolved."""
        if self.weights != "auto":
            return self.weights
        return "agreement" if self.form == "agreement" else "ours"

    @property
    def declining(self) -> Declining:
        """How a reference that declines counts: ``declined`` with ``auto`` resolved."""
        if self.declined != "auto":
            return self.declined
        # The published figures of both forms were measured with these defaults.
        return "drop" if self.form == "agreement" else "count"

    @property
    def penalising(self) -> Penalty:
        """The penalty in use; ``none`` without neighbours."""
        return self.penalty if self.neighbours else "none"

    @property
    def wants_pairs(self) -> bool:
        """Whether the score needs wrong and corrected answers."""
        return self.pairs > 0 and self.weighting in ("ours", "single-best")

    def resolve(self, inventory: Inventory) -> Self:  # noqa: ARG002
        """Return these options with ``auto`` written out."""
        return dataclasses.replace(
            self, weights=self.weighting, penalty=self.penalising, declined=self.declining
        )

    @property
    def fills(self) -> tuple[str, ...]:
        """References, and pairs where they count."""
        pairs = ("wrong_answers", "corrected_answers") if self.wants_pairs else ()
        return ("references", *pairs)

    @property
    def filling(self) -> Mapping[str, int]:
        """How many values to ask for, by the field that they fill."""
        result = {"references": self.answers}
        return result | ({"wrong_answers": self.pairs} if self.wants_pairs else {})

    @property
    def filling_prompts(self) -> Mapping[str, str]:
        """The user's templates, by the field that they fill."""
        prompts = {"wrong_answers": self.pairs_prompt, "references": self.answers_prompt}
        return {field: prompt for field, prompt in prompts.items() if prompt}

    def needs(self) -> Sequence[Need]:
        """A similarity; an embedder that finds neighbours; references and a generator, if asked."""
        # "novel" compares the words that the question lacks, which our form was measured with.
        default = "novel" if self.form == "agreement" else None
        result = [
            Need("compare", default=default),
            Need("chat", "references", many=True, optional=True),
        ]
        if self.penalising != "none":
            result.append(Need("embed"))
        if self.wants_pairs:
            result.append(Need("chat", "generator", optional=True))
        return result

    @property
    def score_range(self) -> tuple[float, float]:
        """The least and the largest score for similarities from -1.1 to 1.1."""
        if self.form == "agreement":
            # s - p, each within +-1.1.
            return -2 * MAX_SIMILARITY, 2 * MAX_SIMILARITY
        if self.divergence == "tv":
            # tanh(s) / 2 - tanh(p) / 2, each within +-0.5.
            return -1.0, 1.0
        if self.divergence == "js":
            # log(2 / (1 + e^-s)) - log((1 + e^p) / 2): bounds at s = -1.1, p = 1.1 and the
            # reverse.
            return -1.4, 0.85
        # kl: s - e^(p - 1).
        return -MAX_SIMILARITY - math.exp(MAX_SIMILARITY - 1), MAX_SIMILARITY

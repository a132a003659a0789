"""The other replies: how they are asked for, how like their words are, what a short one says."""

import re
import sys
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from trustassay.event_loop import all_of
from trustassay.judging.claims import Claim
from trustassay.metric import Context, unless_empty
from trustassay.metrics.harmonicity.asking import Asking
from trustassay.metrics.uncertainty import maths
from trustassay.metrics.uncertainty.options import UncertaintyOptions
from trustassay.text.sentences import Splitter


class OtherReplies:
    """Asks for one reply after another; those of few calls are the first of those of many.

    Replies to perturbed prompts are those of a ``harmonicity`` with its own defaults, in its order.
    """

    def __init__(self, options: UncertaintyOptions, context: Context) -> None:
        self._options = options
        self._models, self._question = context.models, context.sample.question
        self._asked = 0  # the number 0 is the answer itself
        self._perturbed: Asking | None = None
        if options.replies == "perturbed":
            self._perturbed = Asking(options.perturbing, context.sample, context.models)

    async def ask_more(self, n: int) -> list[str]:
        """Return the next n replies, an empty text for an empty one.

        Raises:
            AssessmentError: perturbed prompts were refused, or their replies empty, too often.
        """
        if self._perturbed:
            return [one.answer for one in await self._perturbed.ask_more(n)]
        text, name = self._options.asks(self._question)
        temperature, most = self._options.temperature, self._options.max_tokens
        chat = partial(self._models.chat, text, temperature=temperature, max_tokens=most)
        first, self._asked = self._asked + 1, self._asked + n
        asked = (chat(prompt=name, repeat=number) for number in range(first, first + n))
        replies = await all_of(unless_empty(one) for one in asked)
        return [reply.text if reply else "" for reply in replies]


_TOKEN = re.compile(r"\w+|[^\w\s]")
_YES = re.compile(r"\W*yes\b", re.IGNORECASE)
_NO = re.compile(r"\W*no\b", re.IGNORECASE)


def normal(text: str) -> str:
    """Return what is the same for texts that differ in case, white space and their last point."""
    return " ".join(text.casefold().split()).rstrip(".! ")


def unsupported(reply: str) -> float:
    """Return 0 for a reply that begins with yes, 1 for no, and 1/2 for any other (Manakul et al.
    2023).
    """
    return 0.0 if _YES.match(reply) else 1.0 if _NO.match(reply) else 0.5


def parts(
    names: Sequence[str], claims: Sequence[Claim], texts: Sequence[str], split: Splitter
) -> dict[str, float]:
    """Return the parts of ``words``; the first of the texts is the answer, in its ``claims``."""
    result: dict[str, float] = {}
    pairs = list(combinations(texts[1:], 2))
    if "rouge_l" in names:
        result["rouge_l"] = 1 - float(np.mean([_rouge(*pair) for pair in pairs]))
    if "bleu" in names:
        result["bleu"] = 1 - float(np.mean([_bleu(*pair) for pair in pairs]))
    said = [tokens for one in claims if (tokens := _TOKEN.findall(one.text))]
    if "selfcheck_ngram" in names and said:
        others = [[_TOKEN.findall(one) for one in split(text)] for text in texts[1:]]
        result["selfcheck_ngram"] = float(maths.selfcheck_ngram(said, [said, *others])[1].mean())
    return result


def _rouge(one: str, other: str) -> float:
    from rouge_score.rouge_scorer import RougeScorer

    result: Any = RougeScorer(["rougeL"], use_stemmer=True).score(one, other)["rougeL"]
    return float(result.fmeasure)


def _bleu(one: str, other: str) -> float:
    """Return BLEU of up to as many words as the shorter text has (the program of LM-Polygraph)."""
    from nltk.translate.bleu_score import sentence_bleu

    first, second = one.split(), other.split()
    order = min(4, len(first), len(second))
    if not order:
        return 0.0
    return float(sentence_bleu([first], second, (1 / order,) * order, _unsmoothed))


def _unsmoothed(precisions: Sequence[Any], **_: Any) -> list[Any]:
    """Return precisions as NLTK's method 0 does, which warns of each that is 0."""
    return [one if one.numerator else sys.float_info.min for one in precisions]

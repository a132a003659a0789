"""Other replies: requests for them, similarity of their words, and yes-or-no replies."""

import re
import sys
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from trustassay.core.event_loop import gather_all
from trustassay.core.metric import Context, reply_unless_empty
from trustassay.judging.claims import Claim
from trustassay.metrics.harmonicity.asking import PromptPerturber
from trustassay.metrics.uncertainty import maths
from trustassay.metrics.uncertainty.options import UncertaintyOptions
from trustassay.text.sentences import Splitter


class ReplyCollector:
    """Asks for replies in a fixed order, so that a smaller number of them is a prefix of a larger.

    Replies to perturbed prompts are those of ``harmonicity`` with its defaults, in its order.
    """

    def __init__(self, options: UncertaintyOptions, context: Context) -> None:
        self._options = options
        self._models, self._question = context.models, context.sample.question
        self._last_repeat = 0  # repeat 0 is the answer itself
        self._perturbed: PromptPerturber | None = None
        if options.replies == "perturbed":
            self._perturbed = PromptPerturber(options.perturbing, context.sample, context.models)

    async def ask_more(self, n: int) -> list[str]:
        """Return the next n replies, an empty text for an empty one.

        Raises:
            AssessmentError: perturbed prompts were refused, or their replies empty, too often.
        """
        if self._perturbed:
            return [item.answer for item in await self._perturbed.ask_more(n)]
        text, name = self._options.asks(self._question)
        temperature, max_tokens = self._options.temperature, self._options.max_tokens
        chat = partial(self._models.chat, text, temperature=temperature, max_tokens=max_tokens)
        first_repeat, self._last_repeat = self._last_repeat + 1, self._last_repeat + n
        calls = (
            chat(prompt=name, repeat=number) for number in range(first_repeat, first_repeat + n)
        )
        replies = await gather_all(reply_unless_empty(item) for item in calls)
        return [reply.text if reply else "" for reply in replies]


# A word, or a single mark of punctuation.
_TOKEN = re.compile(r"\w+|[^\w\s]")
_YES = re.compile(r"\W*yes\b", re.IGNORECASE)
_NO = re.compile(r"\W*no\b", re.IGNORECASE)


def normalise_reply(text: str) -> str:
    """Return a key that ignores case, white space and final punctuation."""
    return " ".join(text.casefold().split()).rstrip(".! ")


def score_yes_no(reply: str) -> float:
    """Return 0 for a reply that begins with yes, 1 for no, else 1/2 (Manakul et al. 2023)."""
    return 0.0 if _YES.match(reply) else 1.0 if _NO.match(reply) else 0.5


def compute_word_parts(
    names: Sequence[str], claims: Sequence[Claim], texts: Sequence[str], split: Splitter
) -> dict[str, float]:
    """Return the parts of the family ``words``; the first text is the answer of ``claims``."""
    result: dict[str, float] = {}
    # Without the answer: the parts are about how the replies differ among themselves.
    pairs = list(combinations(texts[1:], 2))
    if "rouge_l" in names:
        result["rouge_l"] = 1 - float(np.mean([_compute_rouge(*pair) for pair in pairs]))
    if "bleu" in names:
        result["bleu"] = 1 - float(np.mean([_compute_bleu(*pair) for pair in pairs]))
    sentences = [tokens for item in claims if (tokens := _TOKEN.findall(item.text))]
    # Sentences without a token have no n-gram, and were left out above.
    if "selfcheck_ngram" in names and sentences:
        other_texts = [[_TOKEN.findall(item) for item in split(text)] for text in texts[1:]]
        result["selfcheck_ngram"] = float(
            maths.selfcheck_ngram(sentences, [sentences, *other_texts])[1].mean()
        )
    return result


def _compute_rouge(first: str, second: str) -> float:
    from rouge_score.rouge_scorer import RougeScorer

    result: Any = RougeScorer(["rougeL"], use_stemmer=True).score(first, second)["rougeL"]
    return float(result.fmeasure)


def _compute_bleu(text: str, other_text: str) -> float:
    """Return BLEU of an order that the shorter text still has, as LM-Polygraph's program does."""
    from nltk.translate.bleu_score import sentence_bleu

    first, second = text.split(), other_text.split()
    order = min(4, len(first), len(second))
    # BLEU of an empty text.
    if not order:
        return 0.0
    return float(sentence_bleu([first], second, (1 / order,) * order, _keep_unsmoothed))


def _keep_unsmoothed(precisions: Sequence[Any], **_: Any) -> list[Any]:
    """Return precisions as NLTK's smoothing method 0, but without its warning about zeros."""
    # NLTK takes the logarithm of each, so that 0 becomes the smallest float.
    return [precision if precision.numerator else sys.float_info.min for precision in precisions]

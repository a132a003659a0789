"""Words of replies: which texts are the same, how like they are, and what a short reply says."""

import re
import sys
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from trustassay.metrics.faithfulness.claims import Claim
from trustassay.metrics.grounding.sentences import Splitter
from trustassay.metrics.uncertainty import maths

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

"""The parts that ask no model: words in common, BLEU, ROUGE-L, METEOR, chrF.

Two recipes: ours, and the one by which the TrustScore paper's Table 1 was made (Zheng et al. 2024).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

from trustassay.metrics.grounding.text import normalise_squad
from trustassay.metrics.reference import maths
from trustassay.metrics.reference.maths import Aggregate
from trustassay.metrics.reference.parts import PARTS, Family
from trustassay.metrics.reference.wordnet import ADVICE, wordnet, wordnet_folder

__all__ = ["Recipe", "lexical_parts", "missing", "per_gold"]

Recipe = Literal["default", "trustscore-paper"]
Columns = Mapping[str, Sequence[float]]
"""Of each part, the value against each gold answer."""

_PACKAGES: Mapping[Family, tuple[str, str]] = {
    "bleu": ("sacrebleu", "sacrebleu"),
    "rouge_l": ("rouge_score", "rouge-score"),
    "meteor": ("nltk", "nltk"),
    "chrf": ("sacrebleu", "sacrebleu"),
}
"""By family the module that it needs, and its name on PyPI."""


def missing(part: str, recipe: Recipe) -> str | None:
    """Return what a part needs that is not installed, and how to get it."""
    family = PARTS[part].family
    paper_bleu = family == "bleu" and recipe == "trustscore-paper"
    needed = ("nltk", "nltk") if paper_bleu else _PACKAGES.get(family)
    if needed and find_spec(needed[0]) is None:
        return f"{part} needs {needed[1]}: pip install 'trustassay[reference]'"
    if family == "meteor" and wordnet_folder() is None:
        return f"{part}: {ADVICE}"
    return None


def lexical_parts(
    names: Sequence[str],
    answer: str,
    golds: Sequence[str],
    question: str,
    aggregate: Aggregate,
    recipe: Recipe,
) -> dict[str, float]:
    """Return the lexical ones among ``names`` for an answer and its gold answers.

    BLEU by ``best`` takes all gold answers as its references at once, as it defines. The paper's
    recipe has an aggregate of its own for each of the parts that it knows.
    """
    columns = per_gold(names, answer, golds, question, aggregate, recipe)
    found = {}
    for name in names:
        family = PARTS[name].family
        if name in columns:
            found[name] = maths.aggregated(columns[name], _how(name, aggregate, recipe))
        elif family == "bleu":
            order = int(name[-1])
            if recipe == "trustscore-paper":
                found[name] = _paper_bleu(answer, golds, order)
            elif aggregate == "best":
                found[name] = _bleu(answer, golds, order)
            else:
                values = [_bleu(answer, [gold], order) for gold in golds]
                found[name] = maths.aggregated(values, aggregate)
    return found


def per_gold(
    names: Sequence[str],
    answer: str,
    golds: Sequence[str],
    question: str,
    aggregate: Aggregate,
    recipe: Recipe,
) -> Columns:
    """Return the value of each lexical part against each gold answer, or the first alone where no
    other counts; BLEU has none.
    """
    columns: dict[str, list[float]] = {}
    for family in dict.fromkeys(PARTS[name].family for name in names):
        measure = _MEASURES.get(family)
        if measure is None:
            continue
        own = [name for name in names if PARTS[name].family == family]
        alone = all(_how(name, aggregate, recipe) == "first" for name in own)
        counted = golds[:1] if alone else golds
        rows = [measure(answer, gold, question, recipe) for gold in counted]
        columns |= {name: [row[name] for row in rows] for name in own}
    return columns


_PAPER_AGGREGATE: Mapping[str, Aggregate] = {
    "em": "best",
    "rouge_l": "first",
    "rouge_l_precision": "first",
    "rouge_l_recall": "first",
    "meteor": "first",
}


def _how(name: str, aggregate: Aggregate, recipe: Recipe) -> Aggregate:
    """Return the aggregate of a part; the paper's recipe has one of its own for those it knows."""
    return _PAPER_AGGREGATE.get(name, aggregate) if recipe == "trustscore-paper" else aggregate


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    """Return the words that SQuAD's normalisation leaves; where it leaves none, those there are."""
    return tuple(normalise_squad(text).split() or text.lower().split())


def _tokens(answer: str, gold: str, question: str, _: Recipe) -> Mapping[str, float]:
    ours, theirs = _words(answer), _words(gold)
    overlap = maths.token_overlap(ours, theirs)
    new = maths.novel(ours, frozenset(_words(question)))
    return {
        "em": float(ours == theirs),
        "contains": float(maths.contains(ours, theirs)),
        "token_precision": overlap.precision,
        "token_recall": overlap.recall,
        "token_f1": overlap.f1,
        "novel_token_f1": maths.token_overlap(new, theirs).f1,
    }


def _rouge_l(answer: str, gold: str, _: str, __: Recipe) -> Mapping[str, float]:
    found = _rouge_scorer().score(gold, answer)["rougeL"]
    return {
        "rouge_l": float(found.fmeasure),
        "rouge_l_precision": float(found.precision),
        "rouge_l_recall": float(found.recall),
    }


def _meteor(answer: str, gold: str, _: str, recipe: Recipe) -> Mapping[str, float]:
    from nltk.translate.meteor_score import single_meteor_score

    split = _word_tokenizer(recipe).tokenize
    return {"meteor": float(single_meteor_score(split(gold), split(answer), wordnet=wordnet()))}


def _chrf(answer: str, gold: str, _: str, __: Recipe) -> Mapping[str, float]:
    return {"chrf": _share(_chrf_scorer().sentence_score(answer, [gold]).score)}


_MEASURES: Mapping[Family, Callable[[str, str, str, Recipe], Mapping[str, float]]] = {
    "tokens": _tokens,
    "rouge_l": _rouge_l,
    "meteor": _meteor,
    "chrf": _chrf,
}


def _bleu(answer: str, golds: Sequence[str], order: int) -> float:
    return _share(_bleu_scorer(order).sentence_score(answer, list(golds)).score)


def _share(percentage: float) -> float:
    return min(float(percentage) / 100, 1.0)  # rounding puts the same text a little above 100


def _paper_bleu(answer: str, golds: Sequence[str], order: int) -> float:
    """Return NLTK's BLEU of text parted at white space; of four words with smoothing method 4."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smoothing = SmoothingFunction().method4 if order == 4 else None
    weights = (0.25,) * 4 if order == 4 else (1.0, 0.0, 0.0, 0.0)
    references = [gold.split() for gold in golds]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that without a common word it is 0
        return float(sentence_bleu(references, answer.split(), weights, smoothing))


@cache
def _bleu_scorer(order: int) -> Any:
    from sacrebleu.metrics import BLEU

    return BLEU(effective_order=True, max_ngram_order=order)


@cache
def _chrf_scorer() -> Any:
    from sacrebleu.metrics import CHRF

    return CHRF()


@cache
def _rouge_scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=False)


@cache
def _word_tokenizer(recipe: Recipe) -> Any:
    """Return NLTK's word tokenizer; the paper's as it was in NLTK 3.8.1, which it used.

    Until then dashes parted no words, and an opening quote stayed with a word of two letters or
    more.
    """
    from nltk.tokenize import NLTKWordTokenizer

    if recipe == "default":
        return NLTKWordTokenizer()
    start = re.compile(r"(?i)'(?!re|ve|ll|[mtsdn])(?=\w\b)")

    class Earlier(NLTKWordTokenizer):  # type: ignore[misc]
        PUNCTUATION: ClassVar[Any] = [
            rule for rule in NLTKWordTokenizer.PUNCTUATION if not rule[0].search("\u2013")
        ]
        STARTING_QUOTES: ClassVar[Any] = [*NLTKWordTokenizer.STARTING_QUOTES[:-1], (start, "' ")]

    return Earlier()

"""Measures of doubt, from replies to the same question and from probabilities of tokens.

All functions are pure; more doubt is a larger number. Notation: k replies to one question; E and C,
shape (k, k), are the probabilities that reply i entails, or contradicts, reply j.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.core.capabilities import TokenVectors
from trustassay.statistics import Floats, Places
from trustassay.statistics.token_matching import greedy_match
from trustassay.text.sentences import Splitter

SPECTRUM_BOUND = 0.9
"""Bound of the Laplacian's eigenvalues that count for the eccentricity, as in LM-Polygraph."""
HEAT_TIME = 0.3
"""The parameter t of the heat kernel, as in LM-Polygraph."""


class Matrices(NamedTuple):
    """Probabilities between k texts; row i is the premise, column j the hypothesis."""

    entailment: Floats
    """Shape (k, k); the diagonal is 1."""
    contradiction: Floats
    """Shape (k, k); the diagonal is 0."""


# --------------------------------------------------------------------------- meanings of replies


def semantic_sets(replies: Matrices) -> int:
    """Return the number of sets of replies with the same meaning, 1 to k (Lin et al. 2024).

    Two replies are in one set if each entails the other more than it contradicts it, or a chain
    of such replies joins them. 0 replies have 0 sets.
    """
    entails = replies.entailment > replies.contradiction
    joined = entails & entails.T
    # Connected components of the graph, by a search from any reply that is left.
    unvisited, sets = set(range(len(joined))), 0
    while unvisited:
        sets += 1
        frontier = [unvisited.pop()]
        while frontier:
            near = {int(j) for j in np.flatnonzero(joined[frontier.pop()])} & unvisited
            unvisited -= near
            frontier += near
    return sets


def clusters(replies: Matrices) -> Places:
    """Return the meaning of each reply as a number from 0, shape (k,) (Kuhn et al. 2023).

    A reply joins the first cluster whose first reply entails it and is entailed by it: entailment
    is the likeliest of the three outcomes in both directions.
    """
    e, c = replies
    entails = (e > c) & (e > 1 - e - c)
    both = entails & entails.T
    firsts: list[int] = []
    result = np.empty(len(e), dtype=np.int64)
    for i in range(len(e)):
        # Compared with first replies only, as in the paper; the order of the replies can matter.
        same = next((n for n, first in enumerate(firsts) if both[first, i]), len(firsts))
        if same == len(firsts):
            firsts.append(i)
        result[i] = same
    return result


def semantic_entropy(meanings: ArrayLike, log_likelihoods: ArrayLike | None = None) -> float:
    """Return the entropy over meanings, in nats (Kuhn et al. 2023; Farquhar et al. 2024).

    Args:
        meanings: of each reply, shape (k,), k of 1 or more, as :func:`clusters` gives them.
        log_likelihoods: natural, of each reply, shape (k,); a meaning then has the sum of the
            likelihoods of its replies, and the entropy is the mean over replies of minus its
            logarithm. Without them it has its share of the replies: 0 to log k.
    """
    meaning_of_reply = np.asarray(meanings)
    log_weights: Floats
    if log_likelihoods is None:
        log_weights = np.log(np.bincount(meaning_of_reply) / len(meaning_of_reply))
    else:
        logs = np.asarray(log_likelihoods, dtype=np.float64)
        log_weights = np.array(
            [
                np.logaddexp.reduce(logs[meaning_of_reply == n])
                for n in range(meaning_of_reply.max() + 1)
            ]
        )
    # + 0.0 turns -0.0 into 0.0.
    return float(-np.mean(log_weights[meaning_of_reply])) + 0.0


def similarities(replies: Matrices) -> Floats:
    """Return W, the mean of entailment both ways, shape (k, k) (Lin et al. 2024)."""
    return (replies.entailment + replies.entailment.T) / 2


def _compute_spectrum(weights: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues and eigenvectors of the symmetric normalised Laplacian."""
    # I - D^-1/2 W D^-1/2; the degrees are at least 1, from the diagonal.
    root = 1 / np.sqrt(weights.sum(axis=1))
    values, vectors = np.linalg.eigh(np.eye(len(weights)) - root[:, None] * weights * root)
    return values, vectors


def eigenvalue_sum(weights: Floats) -> float:
    """Return the sum of max(0, 1 - eigenvalue) of the Laplacian, 1 to k (Lin et al. 2024).

    Where all similarities are 0 or 1 it equals the number of semantic sets. ``weights`` has shape
    (k, k) and positive row sums.
    """
    return float(np.maximum(0, 1 - _compute_spectrum(weights)[0]).sum())


def degree(weights: Floats) -> float:
    """Return 1 minus the mean similarity of all pairs, 0 to 1 - 1/k (Lin et al. 2024).

    Pairs of a reply with itself count, too.
    """
    return float(1 - weights.mean())


def eccentricity(weights: Floats) -> float:
    """Return how far replies lie from their centre, 0 or more (Lin et al. 2024).

    The Frobenius norm of the eigenvectors with small eigenvalues, each centred.
    """
    values, vectors = _compute_spectrum(weights)
    small = vectors[:, values < SPECTRUM_BOUND]
    return float(np.linalg.norm(small - small.mean(axis=0)))


def kernel_entropy(replies: Matrices, t: float = HEAT_TIME) -> float:
    """Return the von Neumann entropy of the heat kernel, 0 to 1 (Nikitin et al. 2024).

    A pair weighs 1 for entailment and 1/2 for neither, summed both ways; divided by log k. A
    single reply has no entropy: 0.
    """
    k = len(replies.entailment)
    if k < 2:
        return 0.0
    weights = replies.entailment + 0.5 * (1 - replies.entailment - replies.contradiction)
    weights = weights + weights.T
    values, vectors = np.linalg.eigh(np.diag(weights.sum(axis=0)) - weights)
    kernel = (vectors * np.exp(-t * values)) @ vectors.T
    root = np.sqrt(np.diag(kernel))
    shares = np.linalg.eigvalsh(kernel / np.outer(root, root) / k)
    # 0 log 0 is 0, and rounding leaves eigenvalues just below 0.
    shares = shares[shares > 1e-8]
    return float(-(shares * np.log(shares)).sum() / np.log(k))


def agreement(replies: Matrices) -> Floats:
    """Return E / (E + C), shape (k, k): entailment where nothing is neutral (Zhang et al. 2024)."""
    return ratio(replies.entailment, replies.contradiction)


def ratio(entailment: ArrayLike, contradiction: ArrayLike) -> Floats:
    """Return E / (E + C) of each pair, 0 to 1, and 1/2 where both are 0; any equal shapes."""
    e, c = np.asarray(entailment, dtype=np.float64), np.asarray(contradiction, dtype=np.float64)
    # Divided only where the sum is above 0; else the half stays.
    total = e + c
    return np.divide(e, total, out=np.full_like(total, 0.5), where=total > 0)


def luq(agreements: Floats) -> float:
    """Return 1 minus the mean agreement of pairs of different replies, 0 to 1 (LUQ, Zhang et al.
    2024). agreements: shape (k, k), k of 2 or more.
    """
    k = len(agreements)
    return float(1 - (agreements.sum() - np.trace(agreements)) / (k * (k - 1)))


# -------------------------------------------------------------- sentences of an answer, and words


def selfcheck_ngram(
    sentences: Sequence[Sequence[str]], texts: Sequence[Sequence[Sequence[str]]], n: int = 1
) -> tuple[Floats, Floats]:
    """Return each sentence's mean and largest -log p of its n-grams (Manakul et al. 2023).

    p is an n-gram's share of those of all texts: the answer and its replies.

    Args:
        sentences: the tokens of the answer's sentences, one or more in each.
        texts: the sentences of each text, the answer among them, as tokens.
        n: tokens of an n-gram; a sentence begins with n - 1 of nothing.
    """
    counts = Counter(
        gram for text in texts for sentence in text for gram in _split_grams(sentence, n)
    )
    # The answer is among the texts, so no n-gram of it has a count of 0.
    total = counts.total()
    logs = [
        [-np.log(counts[gram] / total) for gram in _split_grams(sentence, n)]
        for sentence in sentences
    ]
    return np.array([np.mean(values) for values in logs]), np.array(
        [max(values) for values in logs]
    )


def _split_grams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    # The first n-grams of a sentence begin with empty tokens.
    padded = [""] * (n - 1) + [token.lower() for token in tokens]
    return [tuple(padded[i : i + n]) for i in range(len(tokens))]


def selfcheck_bertscore(
    sentences: Sequence[TokenVectors],
    replies: Sequence[Sequence[TokenVectors]],
    weights: ArrayLike,
) -> Floats:
    """Return 1 - the mean over replies of the largest BERTScore of each sentence and a sentence of
    the reply, shape (n,), 0 to 1 (Manakul et al. 2023, section 5.1).

    BERTScore's F is not rescaled: the authors' rescaling changes neither order nor correlations.

    Args:
        sentences: the answer's, n. replies: the sentences of each reply, k replies, one sentence
            or more in each. weights: how often each reply was given, shape (k,).
    """
    best = [
        [
            max(greedy_match(o.vectors, t.vectors, o.special, t.special).f1 for t in reply)
            for reply in replies
        ]
        for o in sentences
    ]
    counts = np.asarray(weights, dtype=np.float64)
    return np.asarray(np.clip(1 - np.array(best) @ (counts / counts.sum()), 0, 1))


# ----------------------------------------------------------------------- probabilities of tokens


def sequence_nll(logprobs: ArrayLike) -> float:
    """Return minus the log-probability of an answer, 0 or more, in nats; shape (t,)."""
    return float(-np.sum(np.asarray(logprobs, dtype=np.float64))) + 0.0


def mean_nll(logprobs: ArrayLike) -> float:
    """Return the logarithm of the perplexity, 0 or more: the mean of -log p; shape (t,), t >= 1."""
    return float(-np.mean(np.asarray(logprobs, dtype=np.float64))) + 0.0


def entropy(alternatives: ArrayLike) -> float:
    """Return the entropy of one token in nats, from the log-probabilities of alternatives.

    What they leave of the probability counts as one more alternative, so that a few give a lower
    bound, and the whole vocabulary the entropy itself.
    """
    p = np.exp(np.asarray(alternatives, dtype=np.float64))
    # Rounding must not add an alternative.
    remainder = 1 - p.sum()
    p = np.append(p, remainder) if remainder > 1e-9 else p
    p = p[p > 0]
    return float(-(p * np.log(p)).sum()) + 0.0


def self_certainty(alternatives: Sequence[ArrayLike]) -> float:
    """Return minus the mean over tokens of KL(uniform || p) (Kang et al. 2025), 0 or less.

    Over the alternatives that are known, which should be as many for each token.
    """
    each = []
    for alternatives_of_token in alternatives:
        logs = np.asarray(alternatives_of_token, dtype=np.float64)
        # KL(uniform || p) is infinite where p is 0.
        logs = logs[np.isfinite(logs)]
        each.append(-logs.mean() - np.log(len(logs)))
    return float(-np.mean(each)) + 0.0


def claim_conditioned(alternatives: Sequence[Sequence[tuple[float, str]]]) -> float:
    """Return 1 minus the claim-conditioned probability, 0 to 1 (Fadeeva et al. 2024).

    Args:
        alternatives: of each token, its own log-probability first: each with its relation to the
            token, ``entail``, ``contra`` or ``neutral``. A token of no alternative counts as
            certain. Those that contradict it make it less so, neutral ones do not.
    """
    result = 0.0
    for token in alternatives:
        same = [
            log for place, (log, relation) in enumerate(token) if place == 0 or relation == "entail"
        ]
        # Place 0 is the token itself.
        other = [
            log for place, (log, relation) in enumerate(token) if place and relation == "contra"
        ]
        # log p(same) - log p(same or contradicting), summed over tokens.
        if same:
            result += np.logaddexp.reduce(same) - np.logaddexp.reduce([*same, *other])
    return float(1 - np.exp(result))


# --------------------------------------------------------------------------- words of replies

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
    names: Sequence[str], sentences: Iterable[str], texts: Sequence[str], split: Splitter
) -> dict[str, float]:
    """Return the parts of the family ``words``; the first text is the answer of ``sentences``."""
    result: dict[str, float] = {}
    # Without the answer: the parts are about how the replies differ among themselves.
    pairs = list(combinations(texts[1:], 2))
    if "rouge_l" in names:
        result["rouge_l"] = 1 - float(np.mean([_compute_rouge(*pair) for pair in pairs]))
    if "bleu" in names:
        result["bleu"] = 1 - float(np.mean([_compute_bleu(*pair) for pair in pairs]))
    # Sentences without a token have no n-gram.
    token_lists = [tokens for item in sentences if (tokens := _TOKEN.findall(item))]
    if "selfcheck_ngram" in names and token_lists:
        other_texts = [[_TOKEN.findall(item) for item in split(text)] for text in texts[1:]]
        measured = selfcheck_ngram(token_lists, [token_lists, *other_texts])
        result["selfcheck_ngram"] = float(measured[1].mean())
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

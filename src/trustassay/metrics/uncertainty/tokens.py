"""Tokens of an answer: reads and checks them, and relates them to their alternatives."""

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

from trustassay.core.capabilities import Models, TokenLogprob, tokens_match_text
from trustassay.core.event_loop import gather_all
from trustassay.core.sample import TOKENS_FIELD, Problem, Sample, is_blank
from trustassay.text.words import amount

REPLY_LOGPROBS = "resample_logprobs"
"""The field with the log-probability of each of the ``resamples``."""
_EDGES = string.punctuation + string.whitespace


def read_tokens(sample: Sample) -> tuple[TokenLogprob, ...]:
    """Return the tokens of a sample, which :func:`find_token_problems` has found valid."""
    value = sample.metadata.get(TOKENS_FIELD)
    return tuple(token for item in value or () if (token := _read_token(item)) is not None)


def read_likelihoods(sample: Sample) -> list[float]:
    """Return the log-probability of each reply that is not blank; empty where unknown."""
    value = sample.metadata.get(REPLY_LOGPROBS) or ()
    return [
        logprob
        for logprob, text in zip(value, sample.resamples, strict=False)
        if not is_blank(text)
    ]


def find_token_problems(sample: Sample) -> list[Problem]:
    """Return the problems of the log-probabilities that came with a sample."""
    result: list[Problem] = []
    value = sample.metadata.get(TOKENS_FIELD)
    if value is not None:
        if not isinstance(value, list):
            result.append(Problem(TOKENS_FIELD, "expected a list of [token, log-probability]"))
        else:
            result += [
                Problem(
                    f"{TOKENS_FIELD}[{place}]", "expected [token, log-probability of 0 or less]"
                )
                for place, item in enumerate(value)
                if _read_token(item) is None
                # Three are enough to find the mistake.
            ][:3]
    # Tokens of another text would mark the wrong words.
    if value and not result and not tokens_match_text(read_tokens(sample), sample.response or ""):
        result.append(Problem(TOKENS_FIELD, "are of another text than the response"))
    replies = sample.metadata.get(REPLY_LOGPROBS)
    if replies is not None:
        if not isinstance(replies, list) or not all(map(_is_logprob, replies)):
            result.append(
                Problem(REPLY_LOGPROBS, "expected a list of log-probabilities, 0 or less")
            )
        # Log-probabilities belong to the replies by their order.
        elif len(replies) != len(sample.resamples):
            message = f"has {amount(len(replies), 'number')} for {len(sample.resamples)} resamples"
            result.append(Problem(REPLY_LOGPROBS, message))
    return result


def _is_logprob(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # Some endpoints report a little more than 0 for certain tokens.
    return number and math.isfinite(value) and value <= 1e-6


def _is_pair(value: Any) -> bool:
    listed = isinstance(value, list | tuple) and len(value) == 2
    return listed and isinstance(value[0], str) and _is_logprob(value[1])


def _read_token(value: Any) -> TokenLogprob | None:
    """Read one token: [text, log-probability, alternatives], or an object as of OpenAI."""
    if isinstance(value, Mapping):
        alternatives = [
            item for item in value.get("top_logprobs") or () if isinstance(item, Mapping)
        ]
        own_pair, *other_pairs = (
            [item.get("token"), item.get("logprob")] for item in (value, *alternatives)
        )
        value = [*own_pair, other_pairs]
    if not isinstance(value, list | tuple) or len(value) not in (2, 3):
        return None
    # Alternatives may be missing.
    token, logprob, raw_alternatives = (*value, ())[:3]
    if not _is_pair((token, logprob)) or not isinstance(raw_alternatives, list | tuple):
        return None
    pairs = tuple((text, float(number)) for text, number in filter(_is_pair, raw_alternatives))
    return TokenLogprob(token, min(float(logprob), 0.0), pairs)


async def relate_alternatives(
    models: Models, tokens: Sequence[TokenLogprob]
) -> list[list[tuple[float, str]]]:
    """Relate each token to its alternatives (Fadeeva et al. 2024).

    Words are compared without punctuation around them, in both directions. If the outcomes differ,
    the one that is not neutral counts; entailment and contradiction together are neutral.

    Returns:
        For each token a list, the token itself first: log-probability, and ``entail``, ``contra``
        or ``neutral``.
    """
    pairs: dict[tuple[str, str], str] = {}
    for token in tokens:
        own_word = token.token.strip(_EDGES)
        for other, _ in token.alternatives:
            word = other.strip(_EDGES)
            if word != own_word:
                pairs |= {(own_word, word): "", (word, own_word): ""}
    # A token of punctuation alone is an empty word, which is related to nothing.
    word_pairs = [pair for pair in pairs if all(pair)]
    entailments = await gather_all(models.entail(*pair) for pair in word_pairs)
    names = ("entail", "neutral", "contra")
    for pair, outcome in zip(word_pairs, entailments, strict=True):
        pairs[pair] = names[max(range(3), key=lambda i: outcome[i])]
    result = []
    for token in tokens:
        own_word = token.token.strip(_EDGES)
        rows = [(token.logprob, "entail")]
        for other, logprob in token.alternatives:
            word = other.strip(_EDGES)
            # The token itself may be among its alternatives.
            if other != token.token:
                relations_both_ways = {pairs.get((own_word, word)), pairs.get((word, own_word))}
                rows.append(
                    (
                        logprob,
                        _combine_relations(relations_both_ways) if word != own_word else "entail",
                    )
                )
        result.append(rows)
    return result


def _combine_relations(outcomes: set[str | None]) -> str:
    # One direction entails, the other contradicts: no relation to rely on.
    if {"entail", "contra"} <= outcomes:
        return "neutral"
    return next((relation for relation in ("entail", "contra") if relation in outcomes), "neutral")

"""Tokens of an answer and of replies: reads them, counts what is left out, relates alternatives."""

import math
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trustassay.core.capabilities import Models, TokenLogprob
from trustassay.core.event_loop import gather_all
from trustassay.core.sample import TOKENS_FIELD, Sample, is_blank
from trustassay.core.token_logprobs import (
    NO_NUMBERS,
    POSITIVE,
    UNUSABLE,
    FittedTokens,
    fit_tokens,
    read_logprob,
)
from trustassay.text.numbers import amount

REPLY_LOGPROBS = "resample_logprobs"
"""The field with the log-probability of each of the ``resamples``, or its tokens."""
NOT_OF_EACH = "not_of_each"
REASONS = {NOT_OF_EACH: "with more or fewer entries than replies", **UNUSABLE}
"""Why log-probabilities of a sample are not used, in the words of a sentence."""
_EDGES = string.punctuation + string.whitespace

TOKENS, TOKENS_LEFT_OUT, TOKENS_UNLIKELY = "tokens", "tokens_left_out", "tokens_unlikely"
TOKEN_COUNTS = (TOKENS, TOKENS_LEFT_OUT, TOKENS_UNLIKELY)
"""Parts: tokens with a log-probability; those without; those that are too unlikely for one."""
UNUSED = {TOKENS_FIELD: "logprobs_unused:", REPLY_LOGPROBS: "resample_logprobs_unused:"}
"""By field, the beginning of a part that is 1 where its log-probabilities could not be used; the
reason, a key of :data:`REASONS`, is the rest of its name."""


def read_tokens(sample: Sample) -> FittedTokens:
    """Return the tokens of a sample's response, or why it has none that can be used."""
    return fit_tokens(sample.metadata.get(TOKENS_FIELD), sample.response or "")


class ReplyLikelihoods(NamedTuple):
    """The log-probability of each reply that is not blank."""

    logprobs: Sequence[float] = ()
    """Empty where they are not known."""
    unusable: str = ""
    """Why those of the sample cannot be used; empty if it has none."""


def read_likelihoods(sample: Sample) -> ReplyLikelihoods:
    """Return the log-probabilities of the replies: of all of them, or of none."""
    values = sample.metadata.get(REPLY_LOGPROBS)
    if not values:
        return ReplyLikelihoods()
    # They belong to the replies by their order.
    if not isinstance(values, list | tuple) or len(values) != len(sample.resamples):
        return ReplyLikelihoods(unusable=NOT_OF_EACH)
    result = []
    for value, text in zip(values, sample.resamples, strict=True):
        if is_blank(text):
            continue
        logprob = read_logprob(value)
        if isinstance(value, list | tuple | Mapping):
            fitted = fit_tokens(value, text)
            if fitted.unusable:
                return ReplyLikelihoods(unusable=fitted.unusable)
            # NaN, if one of them is not known.
            logprob = sum(token.logprob for token in fitted.tokens) if fitted.tokens else math.nan
        if logprob > 0 or not math.isfinite(logprob):
            return ReplyLikelihoods(unusable=POSITIVE if logprob > 0 else NO_NUMBERS)
        result.append(logprob)
    return ReplyLikelihoods(result)


def count_tokens(tokens: Sequence[TokenLogprob], unusable: Mapping[str, str]) -> dict[str, float]:
    """Return the parts that count tokens, and those that say what could not be used.

    Args:
        tokens: of an answer. unusable: by field, why it could not be used, empty if it could.
    """
    left_out = sum(math.isnan(token.logprob) for token in tokens)
    unlikely = sum(math.isinf(token.logprob) for token in tokens)
    result = {TOKENS: float(len(tokens) - left_out)}
    # Only where there are any: for most samples they say nothing.
    result |= {TOKENS_LEFT_OUT: float(left_out)} if left_out else {}
    result |= {TOKENS_UNLIKELY: float(unlikely)} if unlikely else {}
    return result | {UNUSED[field] + reason: 1.0 for field, reason in unusable.items() if reason}


def explain_unused(parts: Mapping[str, float], field: str) -> str:
    """Return in brackets why those of a sample were not used; empty if none were stated."""
    start = UNUSED[field]
    keys = (name.removeprefix(start) for name in parts if name.startswith(start))
    return next((f" ({field}: {REASONS[key]})" for key in keys), "")


class TokenRemarks:
    """Collects from the parts of a run's samples what of their log-probabilities was not used."""

    def __init__(self) -> None:
        self._samples = self._with_tokens = 0
        self._counts, self._totals = Counter[str](), Counter[str]()
        self._firsts: dict[str, str] = {}

    def add(self, sample_id: str, parts: Mapping[str, float]) -> None:
        """Count one more sample."""
        self._samples += 1
        self._with_tokens += bool(parts.get(TOKENS))
        starts = (TOKENS_LEFT_OUT, TOKENS_UNLIKELY, *UNUSED.values())
        for name, value in parts.items():
            if name.startswith(starts):
                self._counts[name] += 1
                self._totals[name] += int(value)
                # In one line, so that an id cannot imitate another remark.
                self._firsts.setdefault(name, " ".join(sample_id.split()))

    def sentences(self) -> list[str]:
        """Return a sentence for each thing that a reader of the figures should know."""
        of_answers = f"of {amount(self._samples, 'answer')}"
        result = []
        for field, start in UNUSED.items():
            # By reason, the most specific first.
            counts = {key: self._counts[start + key] for key in REASONS}
            reasons = [
                f"{count:,} {REASONS[key]} ({self._first(start + key)})"
                for key, count in counts.items()
                if count
            ]
            if reasons:
                what = f"{field} of {sum(counts.values()):,} {of_answers} not used"
                result.append(f"{what}: {', '.join(reasons)}")
        if count := self._counts[TOKENS_LEFT_OUT]:
            what = f"{amount(self._totals[TOKENS_LEFT_OUT], 'token')} of {amount(count, 'answer')}"
            result.append(
                f"{what} left out for lack of a log-probability ({self._first(TOKENS_LEFT_OUT)})"
            )
        if count := self._counts[TOKENS_UNLIKELY]:
            why = f"a token is too unlikely to have a number ({self._first(TOKENS_UNLIKELY)})"
            result.append(f"{count:,} {of_answers} without nll and mean_nll: {why}")
        # Means of answers that have tokens are not those of all.
        if 0 < self._with_tokens < self._samples:
            what = "have log-probabilities; figures about tokens cover only these"
            result.append(f"{self._with_tokens:,} {of_answers} {what}")
        return result

    def _first(self, name: str) -> str:
        return f"first: {self._firsts[name]}"


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

"""The tokens of an answer: read from a sample, checked, and compared with their alternatives."""

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

from trustassay.capabilities import Models, TokenLogprob, spell
from trustassay.event_loop import all_of
from trustassay.sample import TOKENS, Problem, Sample, is_blank
from trustassay.text.words import amount

OF_REPLIES = "resample_logprobs"
"""The field with the log-probability of each of the ``resamples``."""
_EDGES = string.punctuation + string.whitespace


def read_tokens(sample: Sample) -> tuple[TokenLogprob, ...]:
    """Return the tokens of a sample that :func:`tokens_problems` has nothing to say of."""
    value = sample.metadata.get(TOKENS)
    return tuple(token for one in value or () if (token := _token(one)) is not None)


def read_likelihoods(sample: Sample) -> list[float]:
    """Return the log-probability of each reply that is not blank; none where they are not known."""
    value = sample.metadata.get(OF_REPLIES) or ()
    return [one for one, text in zip(value, sample.resamples, strict=False) if not is_blank(text)]


def tokens_problems(sample: Sample) -> list[Problem]:
    """Return what is wrong with the log-probabilities that came with a sample."""
    result: list[Problem] = []
    value = sample.metadata.get(TOKENS)
    if value is not None:
        if not isinstance(value, list):
            result.append(Problem(TOKENS, "expected a list of [token, log-probability]"))
        else:
            result += [
                Problem(f"{TOKENS}[{place}]", "expected [token, log-probability of 0 or less]")
                for place, one in enumerate(value)
                if _token(one) is None
            ][:3]
    if value and not result and not spell(read_tokens(sample), sample.response or ""):
        result.append(Problem(TOKENS, "are of another text than the response"))
    replies = sample.metadata.get(OF_REPLIES)
    if replies is not None:
        if not isinstance(replies, list) or not all(map(_is_logprob, replies)):
            result.append(Problem(OF_REPLIES, "expected a list of log-probabilities, 0 or less"))
        elif len(replies) != len(sample.resamples):
            message = f"has {amount(len(replies), 'number')} for {len(sample.resamples)} resamples"
            result.append(Problem(OF_REPLIES, message))
    return result


def _is_logprob(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value <= 1e-6


def _is_pair(value: Any) -> bool:
    listed = isinstance(value, list | tuple) and len(value) == 2
    return listed and isinstance(value[0], str) and _is_logprob(value[1])


def _token(value: Any) -> TokenLogprob | None:
    """Read one token in either form."""
    if isinstance(value, Mapping):
        told = [one for one in value.get("top_logprobs") or () if isinstance(one, Mapping)]
        own, *rest = ([one.get("token"), one.get("logprob")] for one in (value, *told))
        value = [*own, rest]
    if not isinstance(value, list | tuple) or len(value) not in (2, 3):
        return None
    token, logprob, others = (*value, ())[:3]
    if not _is_pair((token, logprob)) or not isinstance(others, list | tuple):
        return None
    kept = tuple((text, float(number)) for text, number in filter(_is_pair, others))
    return TokenLogprob(token, min(float(logprob), 0.0), kept)


async def relations(
    models: Models, tokens: Sequence[TokenLogprob]
) -> list[list[tuple[float, str]]]:
    """Return, of each token, itself and its alternatives: log-probabilities, and whether each
    entails, or contradicts, the token, or is neutral (Fadeeva et al. 2024).

    Words are compared without punctuation around them, both ways; of two outcomes that differ the
    one that is not neutral counts, and entailment with contradiction is neutral.
    """
    pairs: dict[tuple[str, str], str] = {}
    for one in tokens:
        own = one.token.strip(_EDGES)
        for other, _ in one.alternatives:
            word = other.strip(_EDGES)
            if word != own:
                pairs |= {(own, word): "", (word, own): ""}
    asked = [pair for pair in pairs if all(pair)]
    read = await all_of(models.entail(*pair) for pair in asked)
    names = ("entail", "neutral", "contra")
    for pair, outcome in zip(asked, read, strict=True):
        pairs[pair] = names[max(range(3), key=lambda i: outcome[i])]
    result = []
    for one in tokens:
        own = one.token.strip(_EDGES)
        rows = [(one.logprob, "entail")]
        for other, logprob in one.alternatives:
            word = other.strip(_EDGES)
            if other != one.token:
                both = {pairs.get((own, word)), pairs.get((word, own))}
                rows.append((logprob, _combined(both) if word != own else "entail"))
        result.append(rows)
    return result


def _combined(outcomes: set[str | None]) -> str:
    if {"entail", "contra"} <= outcomes:
        return "neutral"
    return next((one for one in ("entail", "contra") if one in outcomes), "neutral")

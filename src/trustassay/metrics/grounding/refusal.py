"""Does a response decline to answer? Detectors by name, each a function from text to evidence."""

from __future__ import annotations

import re
from collections.abc import Callable

from rapidfuzz.distance import Indel, Levenshtein

from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.metrics.grounding.declining import declines, declines_outright
from trustassay.metrics.grounding.sentences import statements
from trustassay.metrics.grounding.text import normalise_squad

__all__ = ["DETECTORS", "Detector", "detector", "paper_similarity", "refuses_outright"]

Detector = Callable[[str], str | None]
"""Takes a response and returns the words that refuse, or ``None`` for an answer."""

FLAG = normalise_squad("I apologize, but I couldn't find an answer")
THRESHOLD = 85


def paper_similarity(text: str) -> int:
    """Return 0..100: how closely a part of ``text`` resembles the refusal flag of Trust-Eval.

    The partial ratio of fuzzywuzzy on Levenshtein matching blocks (spec 4.5): windows of the
    longer text, as long as the shorter one, are placed where a global alignment matches them, and
    the best similarity 2 LCS / (sum of lengths) counts. Equal texts give 100, a blank text 0.
    """
    normal = normalise_squad(text)
    if normal == FLAG:
        return 100
    if not normal:
        return 0
    short, long = (FLAG, normal) if len(FLAG) <= len(normal) else (normal, FLAG)
    best = 0.0
    for block in Levenshtein.editops(short, long).as_matching_blocks():
        start = max(0, block.b - block.a)
        ratio = Indel.normalized_similarity(short, long[start : start + len(short)])
        if ratio > 0.995:
            return 100
        best = max(best, ratio)
    return round(100 * best)


def refuses_as_in_paper(text: str) -> str | None:
    """Trust-Eval's decision: the flag, or nearly the flag, is anywhere in the response."""
    similarity = paper_similarity(text)
    return f"{similarity} % like the flag" if similarity > THRESHOLD else None


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def refuses_in_words(text: str) -> str | None:
    """Decide by a larger set of English refusals, and by the other sentences of the response.

    A response is a refusal if one of its sentences declines to answer and no other sentence has a
    citation: "the documents do not say. They do mention X [2]." counts as an answer, since it
    makes a statement that can be checked.
    """
    refusal = None
    for sentence in statements(text, _SENTENCE_END.split, trailing=True, lines=True):
        if words := declines(sentence.hypothesis):
            refusal = refusal or words
        elif sentence.numbers:
            return None
    return refusal


def refuses_outright(text: str) -> bool:
    """Whether an answer that was given without passages declines, by its words or its beginning."""
    return declines_outright(text) or refuses_in_words(text) is not None


DETECTORS: dict[str, Detector] = {"phrases": refuses_in_words, "paper": refuses_as_in_paper}


def detector(choice: str | Callable[[str], object]) -> Detector:
    """Return the detector of that name, or wrap a function that returns something true.

    Raises:
        UnknownNameError: no detector of that name.
    """
    if callable(choice):
        return lambda text: getattr(choice, "__name__", "function") if choice(text) else None
    if choice not in DETECTORS:
        raise UnknownNameError(did_you_mean("refusal detector", choice, DETECTORS))
    return DETECTORS[choice]

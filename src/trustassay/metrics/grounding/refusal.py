"""Does a response decline to answer? Detectors by name, each a function from text to evidence."""

from __future__ import annotations

import re
from collections.abc import Callable

from rapidfuzz.distance import Indel, Levenshtein

from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.metrics.grounding.sentences import statements
from trustassay.metrics.grounding.text import normalise_squad

__all__ = ["DETECTORS", "Detector", "detector", "paper_similarity"]

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


_NOT = r"(?:n['’]t| not|not)"
_SOURCES = (
    r"(?:documents?|passages?|sources?|results?|context|excerpts?|texts?|articles?|information"
    r"|materials?|references?|snippets?)"
)
_TELL = (
    r"(?:contain|provide|mention|say|state|specify|include|answer|address|give|indicate|discuss"
    r"|cover|offer|tell|reveal|describe|explain|identify|hold|name)"
)
_FIND = r"(?:find|locate|answer|determine|tell|provide|identify|give|say|verify|confirm)"
_REFUSALS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # I could not find an answer; we are unable to determine; I am not able to say
        rf"\b(?:I|we) (?:could{_NOT}|can{_NOT}|did{_NOT}|do{_NOT}) (?:\w+ )?{_FIND}\b",
        rf"\b(?:I|we)(?: am|['’]m| are|['’]re| was| were) (?:unable|not able) to {_FIND}\b",
        # I do not know; I have no information
        rf"\b(?:I|we) do{_NOT} (?:know|have (?:enough|sufficient|any|the)\b)",
        r"\b(?:I|we) have no (?:idea|comment|information|answer)\b",
        # the provided documents do not say; the context does not contain
        rf"\b{_SOURCES}\b[^.!?\n]{{0,40}}? (?:do|does|did|can|could){_NOT} "
        rf"(?:\w+ ){{0,2}}{_TELL}\b",
        # none of the documents mentions; no passage states
        rf"\b(?:none of|no|neither of)(?: the| these| those)?(?: \w+){{0,2}} {_SOURCES}\b"
        rf"[^.!?\n]{{0,30}}? {_TELL}(?:s|es|ed)?\b",
        # there is not enough information; insufficient context; no information about
        r"\b(?:not enough|insufficient) (?:information|evidence|context|details?|data)\b",
        r"\bno (?:\w+ )?information (?:about|on|regarding|is|was|in|to)\b",
        # the question cannot be answered; it is not possible to determine
        r"\b(?:question|answer|this|that|it) (?:cannot|can['’]t|can not|could not|couldn['’]t) be "
        r"(?:\w+ )?(?:answered|determined|found|verified|inferred)\b",
        rf"\b(?:not possible|impossible) to {_FIND}\b",
        # no answer was found; the answer is not given in the documents
        r"\b(?:no answer|an(?:y)? answer)\b[^.!?\n]{0,20} (?:found|available|given|provided)\b",
        r"\b(?:is|are|was|were)(?: not|n['’]t) (?:\w+ )?"
        r"(?:mentioned|stated|specified|provided|given|available|found|answered|covered)\b"
        rf"[^.!?\n]{{0,30}} {_SOURCES}\b",
    )
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def refuses_in_words(text: str) -> str | None:
    """Decide by a larger set of English refusals, and by the other sentences of the response.

    A response is a refusal if one of its sentences declines to answer and no other sentence has a
    citation: "the documents do not say. They do mention X [2]." counts as an answer, since it
    makes a statement that can be checked.
    """
    refusal = None
    for sentence in statements(text, _SENTENCE_END.split, trailing=True, lines=True):
        match = next((m for p in _REFUSALS if (m := p.search(sentence.hypothesis))), None)
        if match:
            refusal = refusal or match.group()
        elif sentence.numbers:
            return None
    return refusal


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

"""Does a response decline to answer, and what does such a response answer nevertheless?"""

import re
from collections.abc import Callable
from functools import cache

from rapidfuzz.distance import Indel, Levenshtein

from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.metrics.grounding.sentences import statements
from trustassay.metrics.grounding.text import normalise_squad
from trustassay.prose import read_patterns

NO_ANSWER = "not assessable: there is no answer (an engine without passages says Empty Response)"

LONGEST = 2_000
"""Characters of a sentence in which words that decline are looked for."""


_PATTERNS = read_patterns("refusals.toml", __package__)
_DECLINING = [
    re.compile(pattern, re.IGNORECASE)
    for name, pattern in _PATTERNS.items()
    if name.startswith("declines")
]


@cache
def _words(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


def declines(sentence: str) -> str | None:
    """Return the words by which an English sentence declines to answer; ``None`` if none do.

    What it quotes or reports does not count: an answer may explain an error message, or tell that
    a witness said there was no information. Words beyond 2,000 characters are not looked at.
    """
    bare = _words("label").sub("", _words("quoted").sub('""', sentence[:LONGEST]), count=1)
    result = (m for p in _DECLINING if (m := p.search(bare)))
    return next(
        (m.group() for m in result if not _words("reported").search(bare[: m.start()])), None
    )


def answers_apart(sentence: str) -> str:
    """Return the part of a declining sentence that answers, blank if none does.

    "The passages do not say who, but it was in 1889" answers with what follows "but".
    """
    said = declines(sentence)
    start = sentence.find(said) + len(said) if said else 0
    if _words("concession").match(sentence):
        rest = sentence[start:].partition(", ")[2]
    else:
        turn = _words("turn").search(sentence, start)
        rest = sentence[turn.end() :] if turn else ""
    if len(rest.split()) < 3 or declines(rest) or belongs_to_refusal(rest):
        return ""
    return rest[0].upper() + rest[1:]


def belongs_to_refusal(sentence: str) -> bool:
    """Whether a sentence beside one that declines says no more: an apology, a referral elsewhere,
    or what the documents are about.
    """
    return any(_words(name).match(sentence) for name in ("apology", "referral", "about_shown"))


def no_answer(text: str) -> bool:
    """Whether a text stands where an engine has no answer: no model wrote it."""
    return _words("empty").match(text) is not None


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
    """Whether an answer that was given without passages declines, by its words or its beginning:
    "I'm sorry, but I cannot ...". "We Can't Stop" and "I Can't Help Myself" are answers.
    """
    return bool(_words("outright").match(text)) or refuses_in_words(text) is not None


DETECTORS: dict[str, Detector] = {"phrases": refuses_in_words, "paper": refuses_as_in_paper}


def detector(choice: str | Callable[[str], object]) -> Detector:
    """Return the detector of that name, or wrap a function that returns something true."""
    if callable(choice):
        return lambda text: getattr(choice, "__name__", "function") if choice(text) else None
    if choice not in DETECTORS:
        raise UnknownNameError(did_you_mean("refusal detector", choice, DETECTORS))
    return DETECTORS[choice]

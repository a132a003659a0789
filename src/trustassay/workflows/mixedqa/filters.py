"""What keeps a question, or a reply, out of MixedQA: pure decisions, each under a name.

TrustScore, appendix A.3: comparison and yes/no questions are left out, and questions to which a
model's reply repeats words, is blank, repeats the question, or says that it is not sure. The paper
names its filters and prints no rules; these rules are ours, and for English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from trustassay.metrics.grounding.refusal import refuses_in_words
from trustassay.sample import Sample

__all__ = ["QUESTION_FILTERS", "REPLY_FILTERS", "question_filter", "reply_filter", "words_of"]

_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:['’]\w+)*")
"""A number stays one word: the groups of 1,000,000,000,000,000 repeat nothing."""
_AUXILIARY = re.compile(
    r"(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might"
    r"|must)(?:n['’]t)?"
)
_OPEN = frozenset({"who", "whom", "whose", "what", "which", "when", "where", "why", "how"})
_DEGREE = re.compile(
    r"more|less|fewer|most|least|better|best|worse|worst|first|last|farther|farthest|further"
    r"|furthest|greater|greatest|(?:earl|heav|wealth|rich|bus)i(?:er|est)"
    r"|(?:old|young|long|short|tall|high|low|large|small|great|near|close|fast|slow|strong|weak"
    r"|late|new|bigg|wide|deep|cold|hott|warm|hard|soft|rich|poor|few)(?:e?r|e?st)"
)
_ALTERNATIVES = re.compile(r"[,:]([^,:?]+?) or ([^,:?]+)", re.IGNORECASE)
_LAST_WORDS = 8
"""The longest alternative of a comparison, in words."""
_LONGEST_BLOCK = 32
"""The longest run of words whose repetition is looked for."""
_NOT_SURE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # I am not sure; we're really not certain; I am unaware
        r"\b(?:I|we)(?: am| are|['’]m|['’]re) (?:(?:really|quite|still|just) )?"
        r"(?:not (?:\w+ )?(?:sure|certain|aware|familiar)|unsure|uncertain|unaware|unfamiliar)\b",
        # I don't know; I do not have access; as an AI
        r"\bI(?: do not| don['’]t) (?:\w+ )?(?:know|have (?:access|personal))\b",
        r"\bas an AI\b",
        # it is not provided in the question; the question is unclear
        r"(?:\bnot|n['’]t) (?:\w+ )?(?:provided|given|mentioned|specified|stated|included|clear)"
        r" (?:in|by|from) (?:the|this|your) question\b",
        r"\bquestion (?:is|was) (?:(?:not|too) \w+|unclear|incomplete|ambiguous)\b",
        # more context is needed; please provide more information
        r"\b(?:more|additional|further) (?:context|information|details?) (?:is|are) "
        r"(?:needed|required)\b",
        r"\b(?:provide|need) (?:me with )?(?:more|additional|further) "
        r"(?:context|information|detail)",
        # nothing but "unknown"
        r"\A\W*(?:it is |the answer is )?(?:unknown|unsure|uncertain|not (?:known|sure)|no idea"
        r"|n/a)\W*\Z",
    )
)


def words_of(text: str) -> list[str]:
    """Return the words of a text, without case and punctuation."""
    return _WORD.findall(text.casefold())


# ---- questions ----


def no_gold(sample: Sample) -> bool:
    """Whether a question has no gold answer, as in test splits whose answers are held back."""
    return not sample.answers


def comparison(sample: Sample) -> bool:
    """Whether a question offers things to choose from, or its set says that it compares.

    By its form: "X or Y" stands after a comma or colon that follows "who", "which" or the like; or
    a word of degree ("earlier", "more") comes with "X or Y" at the end, or with "between X and Y"
    at the beginning. X and Y have up to eight words.
    """
    if sample.metadata.get("type") == "comparison":
        return True
    words = words_of(sample.question)
    if any(map(_DEGREE.fullmatch, words)):
        if words[0] == "between" and "and" in words:
            return True
        if "or" in words[-_LAST_WORDS - 1 : -1]:
            return True
    return any(
        not _OPEN.isdisjoint(words_of(sample.question[: match.start()]))
        and all(len(words_of(one)) <= _LAST_WORDS for one in match.groups())
        for match in _ALTERNATIVES.finditer(sample.question)
    )


def yes_no(sample: Sample) -> bool:
    """Whether yes or no would answer: so says the gold answer, or the form of the question.

    By its form: it begins with an auxiliary verb and has no word such as "who" or "which" in it, or
    it begins with "true or false".
    """
    golds = [" ".join(words_of(aliases[0])) for aliases in sample.answers]
    if golds and all(gold in ("yes", "no") for gold in golds):
        return True
    words = words_of(sample.question)
    if words[:3] == ["true", "or", "false"]:
        return True
    return bool(words and _AUXILIARY.fullmatch(words[0])) and _OPEN.isdisjoint(words)


QUESTION_FILTERS: Mapping[str, Callable[[Sample], bool]] = {
    "no-gold": no_gold,
    "comparison": comparison,
    "yes-no": yes_no,
}


def question_filter(sample: Sample) -> str | None:
    """Return the name of the first filter that leaves a question out, if any does."""
    return next((name for name, drops in QUESTION_FILTERS.items() if drops(sample)), None)


# ---- replies ----


def blank(sample: Sample) -> bool:
    """Whether a reply has no letter and no digit, and is no gold answer either ("+")."""
    reply = (sample.response or "").strip()
    if any(c.isalnum() for c in reply):
        return False
    return not any(reply == alias for aliases in sample.answers for alias in aliases if reply)


def repeats_words(sample: Sample) -> bool:
    """Whether a reply says a word four times in a row, or several words together three times.

    "Tora! Tora! Tora!" is a film.
    """
    words = words_of(sample.response or "")
    for size in range(1, min(_LONGEST_BLOCK, len(words) // 3) + 1):
        wanted = 3 if size == 1 else 2 * size
        run = 0
        for word, later in zip(words, words[size:], strict=False):
            run = run + 1 if word == later else 0
            if run >= wanted:
                return True
    return False


def repeats_question(sample: Sample) -> bool:
    """Whether a reply is the question, once or over again, or more than half of it at a stretch.

    A gold answer is an answer, even where its words stand in the question.
    """
    question, reply = words_of(sample.question), words_of(sample.response or "")
    if not question or 2 * len(reply) <= len(question):
        return False
    if any(reply == words_of(alias) for aliases in sample.answers for alias in aliases):
        return False
    if len(reply) > len(question):
        over_again = question * (len(reply) // len(question) + 1)
        return reply == over_again[: len(reply)]
    starts = range(len(question) - len(reply) + 1)
    return any(question[start : start + len(reply)] == reply for start in starts)


def not_sure(sample: Sample) -> bool:
    """Whether a reply says that it does not know, is not sure, or was not told enough.

    Words that stand in the question or in a gold answer do not count: "I Don't Know" is a song.
    """
    reply = sample.response or ""
    known = [sample.question, *(alias for aliases in sample.answers for alias in aliases)]
    found = [match.group() for pattern in _NOT_SURE if (match := pattern.search(reply))]
    if refusal := refuses_in_words(reply):
        found.append(refusal)
    told = [" ".join(words_of(text)) for text in known]
    return any(all(" ".join(words_of(one)) not in text for text in told) for one in found)


REPLY_FILTERS: Mapping[str, Callable[[Sample], bool]] = {
    "blank": blank,
    "repeats-words": repeats_words,
    "repeats-question": repeats_question,
    "not-sure": not_sure,
}


def reply_filter(sample: Sample) -> str | None:
    """Return the name of the first filter that drops a reply, if any does."""
    return next((name for name, drops in REPLY_FILTERS.items() if drops(sample)), None)

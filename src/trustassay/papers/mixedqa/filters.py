"""The filters of MixedQA, for questions and for replies.

TrustScore, appendix A.3, leaves out comparisons and yes/no questions, and questions to which a
model's reply repeats words, is blank, repeats the question, or says that it is not sure. The paper
names its filters without rules; these rules are ours, for English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from trustassay.core.sample import Sample
from trustassay.judging.refusal import find_refusal_in_words

DUPLICATE = "duplicate"
"""The filter of questions that have the same words as an earlier one."""
NO_REPLY = "no-reply"
"""The filter of missing replies: not recorded, or refused by the endpoint."""
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:['’]\w+)*")
"""A number is one word: the groups of 1,000,000,000,000,000 must not count as repetition."""
# The first word of a yes/no question: `is`, `didn't`.
_AUXILIARY = re.compile(
    r"(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might"
    r"|must)(?:n['’]t)?"
)
_QUESTION_WORDS = frozenset(
    {"who", "whom", "whose", "what", "which", "when", "where", "why", "how"}
)
# Comparatives and superlatives: `more`, `earlier`, `biggest`.
_DEGREE_WORD = re.compile(
    r"more|less|fewer|most|least|better|best|worse|worst|first|last|farther|farthest|further"
    r"|furthest|greater|greatest|(?:earl|heav|wealth|rich|bus)i(?:er|est)"
    r"|(?:old|young|long|short|tall|high|low|large|small|great|near|close|fast|slow|strong|weak"
    r"|late|new|bigg|wide|deep|cold|hott|warm|hard|soft|rich|poor|few)(?:e?r|e?st)"
)
# `, Paris or London` after a comma or colon.
_ALTERNATIVES = re.compile(r"[,:]([^,:?]+?) or ([^,:?]+)", re.IGNORECASE)
_MAX_ALTERNATIVE_WORDS = 8
"""Maximum words of one alternative of a comparison."""
_MAX_BLOCK_WORDS = 32
"""Maximum words of a block whose repetition is detected."""
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


def split_words(text: str) -> list[str]:
    """Return the words of a text, without case and punctuation."""
    return _WORD.findall(text.casefold())


# questions


def lacks_gold(sample: Sample) -> bool:
    """Whether a question has no gold answer, as in test splits without published answers."""
    return not sample.answers


def is_comparison(sample: Sample) -> bool:
    """Whether a question offers alternatives, or its set calls it a comparison.

    A question offers alternatives if "X or Y" follows a comma or colon after "who", "which" or the
    like; or if it has a word of degree ("earlier", "more") and either ends with "X or Y" or begins
    with "between X and Y". X and Y have up to eight words.
    """
    # HotpotQA labels its comparisons.
    if sample.metadata.get("type") == "comparison":
        return True
    words = split_words(sample.question)
    if any(map(_DEGREE_WORD.fullmatch, words)):
        if words[0] == "between" and "and" in words:
            return True
        # The "or" must be near the end, and not the last word.
        if "or" in words[-_MAX_ALTERNATIVE_WORDS - 1 : -1]:
            return True
    return any(
        not _QUESTION_WORDS.isdisjoint(split_words(sample.question[: match.start()]))
        and all(
            len(split_words(alternative)) <= _MAX_ALTERNATIVE_WORDS
            for alternative in match.groups()
        )
        for match in _ALTERNATIVES.finditer(sample.question)
    )


def is_yes_no(sample: Sample) -> bool:
    """Whether yes or no answers the question, by its gold answers or by its form.

    By form: it begins with an auxiliary verb and contains no word such as "who" or "which", or it
    begins with "true or false".
    """
    golds = [" ".join(split_words(aliases[0])) for aliases in sample.answers]
    if golds and all(gold in ("yes", "no") for gold in golds):
        return True
    words = split_words(sample.question)
    if words[:3] == ["true", "or", "false"]:
        return True
    # "Do you know who ..." asks for a name.
    return bool(words and _AUXILIARY.fullmatch(words[0])) and _QUESTION_WORDS.isdisjoint(words)


QUESTION_FILTERS: Mapping[str, Callable[[Sample], bool]] = {
    "no-gold": lacks_gold,
    "comparison": is_comparison,
    "yes-no": is_yes_no,
}


def find_question_filter(sample: Sample) -> str | None:
    """Return the name of the first filter that drops a question, if any does."""
    return next((name for name, drops in QUESTION_FILTERS.items() if drops(sample)), None)


# replies


def is_blank_reply(sample: Sample) -> bool:
    """Whether a reply has no letter and no digit, unless it is a gold answer such as "+"."""
    reply = (sample.response or "").strip()
    if any(c.isalnum() for c in reply):
        return False
    return not any(reply == alias for aliases in sample.answers for alias in aliases if reply)


def repeats_words(sample: Sample) -> bool:
    """Whether a reply repeats a word four times in a row, or a block of words three times.

    A word may occur three times: "Tora! Tora! Tora!" is a film.
    """
    words = split_words(sample.response or "")
    for size in range(1, min(_MAX_BLOCK_WORDS, len(words) // 3) + 1):
        # A block that occurs three times matches the words one block later over two of its
        # lengths.
        needed_matches = 3 if size == 1 else 2 * size
        run = 0
        for word, later in zip(words, words[size:], strict=False):
            run = run + 1 if word == later else 0
            if run >= needed_matches:
                return True
    return False


def repeats_question(sample: Sample) -> bool:
    """Whether a reply repeats the question, once or several times, or more than half of it.

    A gold answer is never dropped, even if the question contains it.
    """
    question, reply = split_words(sample.question), split_words(sample.response or "")
    # A short overlap is no repetition: an answer may quote some words.
    if not question or 2 * len(reply) <= len(question):
        return False
    if any(reply == split_words(alias) for aliases in sample.answers for alias in aliases):
        return False
    if len(reply) > len(question):
        # The last repetition may be cut off.
        over_again = question * (len(reply) // len(question) + 1)
        return reply == over_again[: len(reply)]
    starts = range(len(question) - len(reply) + 1)
    return any(question[start : start + len(reply)] == reply for start in starts)


def is_unsure(sample: Sample) -> bool:
    """Whether a reply says that the model does not know, is not sure, or lacks information.

    Phrases that the question or a gold answer contains do not count: "I Don't Know" is a song.
    """
    reply = sample.response or ""
    allowed_texts = [sample.question, *(alias for aliases in sample.answers for alias in aliases)]
    phrases = [match.group() for pattern in _NOT_SURE if (match := pattern.search(reply))]
    if refusal := find_refusal_in_words(reply):
        phrases.append(refusal)
    # Compared without case and punctuation, as everywhere here.
    normalised = [" ".join(split_words(text)) for text in allowed_texts]
    return any(
        all(" ".join(split_words(phrase)) not in text for text in normalised) for phrase in phrases
    )


REPLY_FILTERS: Mapping[str, Callable[[Sample], bool]] = {
    "blank": is_blank_reply,
    "repeats-words": repeats_words,
    "repeats-question": repeats_question,
    "not-sure": is_unsure,
}


def find_reply_filter(sample: Sample) -> str | None:
    """Return the name of the first filter that drops a reply, if any does."""
    return next((name for name, drops in REPLY_FILTERS.items() if drops(sample)), None)

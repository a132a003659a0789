"""Tells which sentences of an answer state a fact: no request, plan, offer, condition or fragment.

An entailment model compares any two sentences. It takes "I cannot go on without your number" and
"I need your number" for opposites, and finds a contradiction to some row of data in nearly any
fragment such as "- Price: 20". Only sentences that state a fact are read for contradictions.
"""

import re

from trustassay.text.grammar import WH_WORDS, find_finite_verb, find_words, is_imperative
from trustassay.text.phrases import find_frame_end, find_opener_end

# "- ", "* ", "2. ", "3) " before an item of a list; "#" before a heading.
_ITEM = re.compile(r"\A\s*(?:[-*+•#]+\s+|\d{1,3}[.)]\s+)+")
_MARKUP = re.compile(r"[*_`]{1,3}")
# A label and its colon: "Departure: 14:00", "Flight 2 (return): ORD to PHL".
_LABEL = re.compile(r"[^.!?:\n]{1,60}:(?:\s|$)")
# "Once you confirm, ..."
_CONDITION = re.compile(
    r"(?:if|once|when|whenever|unless|until|should|in case|as soon as|provided)\b", re.IGNORECASE
)
# Words before the main clause, other than those that find_frame_end knows: what the rest is for
# ("To go on, ..."), and a report of the speaker ("I see that", "I'm happy to tell you that").
_BEFORE_MAIN = re.compile(
    r"\A(?:(?:(?:in order )?to|for|before|after|since|as|while|because|regarding|with|without"
    r"|based on)\b[^,]{1,120},"
    r"|(?:I|we)(?:(?: can)?(?: also)? see"
    r"|(?:(?: am|['’]m| are|['’]re) (?:happy|glad|pleased|sorry) to| must| should| have to)"
    r"(?: also)? (?:tell|inform|say|mention|report|confirm|note|add)(?: you)?) that)\s+",
    re.IGNORECASE,
)
# What a speaker wants, will do, can do or cannot do, and what the user may do.
_TALK = re.compile(
    r"(?:(?:so|and|but|then|also|however|alternatively|otherwise|next|first|just),?\s+)*"
    r"(?:(?:I|we)(?: (?:still|also|only|just))?(?:['’](?:ll|d)| will| shall| can| could| cannot"
    r"| can['’]?t| couldn['’]t| would| should| may| might| must| won['’]t| do not| don['’]t"
    r"|(?: am|['’]m| are|['’]re) (?:going|able|unable|not able|ready|here|happy|sorry|afraid)"
    r"| needs?| requires?| want| wish| recommend| suggest| advise| hope| understand| appreciate"
    r"| apologi[sz]e| assume)\b"
    r"|you(?:['’](?:ll|d)| can| could| may| might| should| will| would| must| need| have to)\b"
    # Also behind a label: "Reason: Please say why."
    r"|(?:[^.!?:\n]{1,60}: )?(?:please|kindly)\b"
    r"|(?:let (?:me|us)|let['’]s|feel free|would you|could you|do you)\b)",
    re.IGNORECASE,
)


def strip_item(text: str) -> str:
    """Return a sentence without the marker of a list and without markup."""
    return _MARKUP.sub("", _ITEM.sub("", text, count=1)).strip()


def is_fragment(text: str) -> bool:
    """Whether a text is an item of a list or a label with a value, without a finite verb."""
    bare = strip_item(text)
    label = _LABEL.match(bare)
    # Behind a label a participle alone is a value: "Status: delivered".
    value = bare[label.end() :] if label else bare
    is_item = _ITEM.match(text) is not None or label is not None
    return is_item and bool(value) and find_finite_verb(find_words(value)) is None


def states_fact(text: str) -> bool:
    """Whether a sentence states something that was done or that is so.

    A sentence that asks, requests, offers, plans, sets a condition or tells the user what they may
    do states none, and a fragment does not either.
    """
    bare, before = strip_item(text), ""
    # They may follow each other: "To go on, please note that ...".
    while bare != before:
        before = bare
        bare = bare[find_opener_end(bare) :]
        bare = bare[find_frame_end(bare) :]
        bare = _BEFORE_MAIN.sub("", bare)
    if bare.endswith("?") or is_fragment(text):
        return False
    words = find_words(bare)
    if not words or words[0].lower() in WH_WORDS or _CONDITION.match(bare):
        return False
    return not _TALK.match(bare) and not (is_imperative(words) and find_finite_verb(words) is None)


def has_fact(text: str) -> bool:
    """Whether any sentence of a text states a fact."""
    return any(states_fact(part) for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part.strip())

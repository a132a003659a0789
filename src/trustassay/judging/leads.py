"""Joins items of a list to the lead above them: "Not covered:" and "theft" give "Theft is not
covered".

All words of the lead are kept, and so is its effect on the items: a negated lead negates them.
"""

import re
from collections.abc import Container

from trustassay.text.grammar import (
    AUXILIARIES,
    SUBJECT_PRONOUNS,
    find_finite_verb,
    is_common_word,
    is_statement,
    tag_of,
    words_of,
)
from trustassay.text.phrases import content_stems
from trustassay.text.words import is_negation, plain_words

_AUXILIARY = rf"(?P<aux>{'|'.join(sorted(AUXILIARIES))})"
_THESE = r"(?:the following|these|those|(?:the )?(?:items|ones|points) below)"
# "None of these are covered": negates each item.
_NONE = re.compile(rf"none of {_THESE}(?: \w+){{0,2}}? {_AUXILIARY}\b(?P<rest>.*)", re.IGNORECASE)
# "The following items are covered": each item is the subject.
_SUBJECT = re.compile(rf"{_THESE}(?: \w+){{0,2}}? {_AUXILIARY}\b(?P<rest>.*)", re.IGNORECASE)
# "Everything is covered except": each item is an exception.
_EXCEPT = re.compile(
    rf"(?:everything|everyone|everybody|anything|anyone|all(?: \w+){{0,4}}"
    rf"|any(?: \w+){{1,3}}|every(?: \w+){{1,3}})"
    rf" {_AUXILIARY}\b(?P<rest>.*?),? (?:except(?: for)?|but(?: not)?|apart from"
    rf"|other than|excluding"
    rf"|with the exception of)(?: {_THESE})?",
    re.IGNORECASE,
)
# "You need one of the following documents": each item is the object.
_OBJECT = re.compile(
    rf"(?P<before>.+?) (?:all of |one of |any of )?{_THESE}(?: \w+){{0,3}}", re.IGNORECASE
)
_PRESENTS = re.compile(
    r"(?:here(?:'s| is| are)|below (?:is|are)|these are|this is|there (?:is|are)"
    r"|the following (?:is|are))\s+(?P<rest>.+)",
    re.IGNORECASE,
)
"""Words that only announce the items: "Here are the benefits of membership"."""
# "Exclusions": a heading that says of each item that it is excluded.
_EXCLUDES = re.compile(
    r"(?:the )?(?:exclusions?|exceptions?|exemptions?|excluded|exempt(?:ed)?)(?: items)?",
    re.IGNORECASE,
)
# Words that may stand beside a participle or adjective in a lead: "Not always covered".
_BESIDE_STATUS = frozenset("not never no longer only also always usually currently".split())
_STATUS = frozenset(
    "free available optional mandatory compulsory possible necessary open closed off".split()
)
_NEGATIVE = frozenset(
    "false untrue incorrect wrong excluded excluding exclusions except exceptions former "
    "formerly previous ex myth "
    "myths unless prohibited forbidden banned".split()
)
"""Words, besides negations, by which a lead changes the meaning of the items below it."""


OPEN_CLAUSE = re.compile(
    r"\b(?:if|unless|when|whenever|until|because|that|while|where|who|which|but|except"
    r"|only|without)$",
    re.IGNORECASE,
)
"""The end of a lead that the item continues as a clause: "It is not covered if"."""
_BEFORE_ITEM = frozenset("without avoid skip exclude".split())
_ENDS_WITH_PREPOSITION = re.compile(
    r"\b(?:no|not|without|never|free of)\b.* (?:for|of|to|on|in|with|against|from)$", re.IGNORECASE
)
_WHAT = re.compile(
    rf"(?:what|who|which(?: \w+){{0,2}}|items|things)(?: that| which)? ?(?:(?P<is>['’]s)"
    rf"|{_AUXILIARY}(?P<nt>n['’]t)?)\b(?P<rest>.*)",
    re.IGNORECASE,
)
"""A lead whose question word the item replaces: "What is not covered"."""


def join_to_lead(lead: str, item: str) -> str:
    """Return the statement that an item makes under a lead.

    Args:
        lead: the lead without its colon.
        item: an item that is not a sentence.
    """
    inner, capital = _lower_first(item).rstrip("."), item[:1].upper() + item[1:].rstrip(".")
    # "Here is what is covered" is read as "what is covered", but "Here is no ..." keeps its
    # negation.
    if (presented := _PRESENTS.fullmatch(lead)) and not is_negation(presented["rest"].lower()):
        lead = presented["rest"]
    first = lead.lower().partition(" ")[0]
    # "Without:", "Avoid:", "No need for:" go before the item as they are.
    if is_negation(lead.lower()) or first in _BEFORE_ITEM or _ENDS_WITH_PREPOSITION.search(lead):
        return f"{lead} {inner}"
    # The first pattern that matches the whole lead decides.
    for rule in (_NONE, _EXCEPT, _WHAT, _SUBJECT):
        if match := rule.fullmatch(lead):
            negation = " not" if rule in (_NONE, _EXCEPT) or match.groupdict().get("nt") else ""
            auxiliary = _inflect_auxiliary(match["aux"] or "is", item)
            return f"{capital} {auxiliary}{negation}{match['rest']}"
    # "You need one of the following" becomes "You need a passport".
    if (match := _OBJECT.fullmatch(lead)) and find_finite_verb(
        words_of(match["before"])
    ) is not None:
        return f"{match['before']} {inner}"
    # "Members get" becomes "Members get a discount".
    if _is_open(lead):
        return f"{lead} {inner}"
    if excludes := _EXCLUDES.fullmatch(lead):
        lead = "exempt" if lead.lower().startswith("exempt") else "excluded"
    if excludes or _is_status(lead):
        return f"{capital} {_inflect_auxiliary('is', item)} {_lower_first(lead)}"
    # No rule fits: the lead is put before the item, unless it says nothing ("Details").
    says_something = content_stems(lead) or any(map(is_negation, plain_words(lead)))
    return f"{lead}: {item}" if says_something else item


_INLINE = re.compile(r"(?P<lead>[^:]{1,60}):\s+(?P<items>[^:]+?)[.!]?")
_BETWEEN = re.compile(r"\s*(?:[,;]\s*(?:and|or)?|\band\b|\bor\b)\s+")
MAX_ITEM_WORDS = 5


def split_inline_items(text: str) -> list[tuple[int, int, str]]:
    """Return the statements of a list within a sentence: "Not covered: theft, fire."

    Only leads that make a statement of each item are split; else the list is empty.

    Returns:
        For each item its start, its end and its statement.
    """
    match = _INLINE.fullmatch(text)
    lead = match["lead"].strip() if match else ""
    rules = (_NONE, _EXCEPT, _SUBJECT, _EXCLUDES)
    if not match or not (_is_status(lead) or any(rule.fullmatch(lead) for rule in rules)):
        return []
    result, start = [], match.start("items")
    ends = [*(separator.span() for separator in _BETWEEN.finditer(text, start, match.end("items")))]
    for end, following in [*ends, (match.end("items"), match.end("items"))]:
        item = text[start:end]
        # A long item is a clause, and its commas separate no items.
        if len(item.split()) > MAX_ITEM_WORDS:
            return []
        result.append((start, end, join_to_lead(lead, item)))
        start = following
    return result


def is_incomplete_lead(lead: str) -> bool:
    """Whether a lead says nothing without the items below it: "Members get:", "These apply:"."""
    bare = lead.strip(" :")
    placeholder = re.search(rf"\b{_THESE}\b", bare, re.IGNORECASE)
    presents = placeholder or _PRESENTS.fullmatch(bare) or _EXCEPT.fullmatch(bare)
    return bool(presents or _is_open(bare) or not is_statement(bare))


def adds_meaning(lead: str, text: str, names: Container[str], *, is_sentence: bool) -> bool:
    """Whether a text below a heading or lead needs it to stand alone.

    A complete sentence needs it for a negation, a number or a name that it does not have itself;
    any other text needs every lead with words about a subject.
    """
    if OPEN_CLAUSE.search(lead):
        return True
    if is_sentence and is_statement(lead) and not re.search(_THESE, lead, re.IGNORECASE):
        return False  # the lead is a claim itself
    words_of_text = {word.lower() for word in words_of(text)}
    words = [word for word in words_of(lead) if word.lower() not in words_of_text]
    if not is_sentence:
        return bool(content_stems(" ".join(words)))
    if any(is_negation(word) or word in _NEGATIVE for word in plain_words(" ".join(words))):
        return True
    return any(
        word[0].isdigit() or (word[0].isupper() and (word in names or not is_common_word(word)))
        for word in words
    )


def _is_open(lead: str) -> bool:
    """Whether a lead ends with its verb, so that an item completes it: "Members get"."""
    if OPEN_CLAUSE.search(lead):
        return True
    words = words_of(lead)
    place = find_finite_verb(words)
    if place is None:
        return False
    if (
        words[1:]
        and tag_of(words[-1]) in ("VB", "VBP", "NN")
        and words[-2].lower() in SUBJECT_PRONOUNS
    ):
        return True  # "If you are under 18 you need"
    behind = [word.lower() for word in words[place + 1 :]]
    return all(is_negation(word) or tag_of(word)[:2] in ("VB", "RB", "IN", "TO") for word in behind)


def _is_status(lead: str) -> bool:
    """Whether a lead is only a participle or an adjective: "Not covered", "Included"."""
    words = [word.lower() for word in words_of(lead)]
    bare = [word for word in words if word not in _BESIDE_STATUS]
    tag = tag_of(bare[0]) if len(bare) == 1 else ""
    # Plain adjectives are titles more often than statements ("Legal"), so they need a negation.
    is_negated = len(words) > len(bare) or (bare and bare[0].startswith(("in", "un", "non")))
    return len(bare) == 1 and (
        bare[0] in _STATUS
        or bare[0].endswith("ed")
        or tag == "VBN"
        or (tag == "JJ" and bool(is_negated))  # "Not eligible", "Ineligible"
    )


_PLURAL_FORMS = {"is": "are", "was": "were", "has": "have", "does": "do"}


def _inflect_auxiliary(auxiliary: str, item: str) -> str:
    """Return the form of an auxiliary that agrees with an item in number."""
    lower = auxiliary.lower()
    singular = next(
        (
            singular_form
            for singular_form, plural in _PLURAL_FORMS.items()
            if lower in (singular_form, plural)
        ),
        lower,
    )
    return _PLURAL_FORMS.get(singular, singular) if _is_plural(item) else singular


def _is_plural(item: str) -> bool:
    words = words_of(item)
    return bool(words) and (tag_of(words[-1]) in ("NNS", "NNPS") or " and " in item)


def _lower_first(text: str) -> str:
    """Return a text as it is written inside a sentence: a common first word in small letters."""
    first = words_of(text[:40])[:1]
    common = (
        first
        and text.startswith(first[0])
        and is_common_word(first[0])
        and not first[0][1:2].isupper()
    )
    return text[:1].lower() + text[1:] if common else text

"""Completes fragments of an answer into statements that stand alone.

* A short reply is completed by its question: "30 days." to "How long does the warranty last?". The
  reply alone would be supported by any passage with "30 days" in it. With its question it is "the
  warranty last 30 days". Verbs keep the form that they have in the question, which hardly disturbs
  entailment models (measured by ``lab/benchmarks/short_replies.py``).
* An item of a list is joined to the lead above it: "Not covered:" and "theft" give "Theft is not
  covered". All words of the lead are kept, and so is its effect on the items: a negated lead
  negates them.
"""

import re
from collections.abc import Container, Sequence

from trustassay.text.grammar import (
    AUXILIARIES,
    BE,
    DEMONSTRATIVES,
    DETERMINERS,
    DO,
    HAVE,
    MODALS,
    PREPOSITIONS,
    SUBJECT_PRONOUNS,
    WH_WORDS,
    find_finite_verb,
    find_tag,
    find_words,
    is_common_word,
    is_imperative,
    is_statement,
)
from trustassay.text.phrases import content_stems
from trustassay.text.words import is_empty_word, is_negation, plain_words

# Short replies and their questions --------------------------------------------------------------

_BEFORE_NOUN = DETERMINERS - DEMONSTRATIVES
# Adjectives that stay behind the number: "is 30 metres high".
_MEASURES = frozenset("long old tall high far deep wide big large heavy thick".split())
_PARTICIPLE = re.compile(
    r"\w{2,}ed|\w{3,}ing|born|built|made|held|written|known|found|sold|bought|paid|kept"
    r"|led|lost|won"
    r"|sent|taken|given|driven|chosen|drawn|shown|spoken|broken|begun|become|said|told"
    r"|taught|brought"
    r"|put|cut|shut|open|lent|met|laid"
)
# Words before the question itself: "Hi, can you tell me ...", "Please explain ...".
_BEFORE_QUESTION = re.compile(
    r"(?:hi|hello|hey|please|so|and|ok|okay|thanks|well|also)\b[\s,!.:-]*"
    r"|(?:(?:can|could|would) you (?:please )?)?(?:tell|explain)(?: to)? (?:me"
    r"|us)(?: about)?\b[\s,:]*"
    r"|do you know\b[\s,]*",
    re.IGNORECASE,
)
_ASKS_FOR = re.compile(
    r"(?:(?:please )?(?:give|show|name|list|state|find|provide|describe|identify)(?: me"
    r"| us)?|what about|how about|and)\s+(?=\S)",
    re.IGNORECASE,
)
"""A request in place of a question: "Give me the number of halls."."""
ASSENT = re.compile(
    r"(?:(?:the )?(?:correct |right )?answer is:?\s+)?"
    r"(?:(?P<no>no way|nope|no|negative|false|incorrect|wrong|not (?:at all|really|yet)"
    r"|I (?:don't|do not) think so|(?:absolutely|certainly|definitely|of course) not"
    r"|(?:that|this)(?:'s| is) (?:not (?:correct|right|true|the case)|incorrect|false|wrong))"
    r"|yes|yeah|yep|yup|sure|definitely|correct|right|true|of course|certainly|absolutely|indeed"
    r"|(?:that|this)(?:'s| is) (?:correct|right|true))"
    r"(?=\s*[,.!:;–—]|\s+-\s|\s*$|\s+(?:it|they|he|she|we|you|I)\b|\s+(?:and|but|if|unless)\s)[\s,.!:;–—-]*",
    re.IGNORECASE,
)
"""Yes or no at the start of a reply, with punctuation, a pronoun or a conjunction behind it: "No,",
"No.", "Yes it is". "No dogs" is no such reply."""
ELLIPSIS = re.compile(
    rf"(?:(?:{'|'.join(sorted(SUBJECT_PRONOUNS))}) (?:{'|'.join(sorted(AUXILIARIES))}|ca|wo|sha)"
    r"(?: ?not|n?'?t)?|(?:it|that|he|she|there)'s(?: not)?|(?:they|we|you)'re(?: not)?"
    r"|(?:of course|certainly|indeed|never|not)(?: not)?)[.!]*",
    re.IGNORECASE,
)
"""Words that only repeat yes or no: "it is", "you cannot", "they don't", "never"."""
# An option in a question: "A) 12 halls", up to the next one.
_OPTION = re.compile(
    r"(?:^|[\s(])\(?([A-Ha-h1-8])[).:]\s+(.+?)(?=[\s,;]+(?:or\s+)?\(?[A-Ha-h1-8][).:]\s|[?\n]|$)"
)
# A reply that names an option: "B", "The correct answer is B) 14 halls".
_OPTION_LETTER = re.compile(
    r"\W*(?:the )?(?:correct |right |best )?(?:option|answer|choice)?(?: is)?\W*"
    r"\(?([A-Ha-h1-8])(?:[).:]\s*|$)(.*)",
    re.IGNORECASE,
)
_BEFORE_OPTIONS = re.compile(r"(?:[\s:;,?]|\bor\b)*$", re.IGNORECASE)
_CHOICE = re.compile(r"\b(?:these|following|options?|right|true|correct|best)\b", re.IGNORECASE)
"""Words of a question that asks only for a choice: "Which of these is right?"."""
_WHETHER = re.compile(
    r"\bwhether\b|\bor not\b|, (?:right|correct|isn't it|aren't they|doesn't it)\?", re.IGNORECASE
)


_TRUE_OR_FALSE = re.compile(
    r"(?:is (?:it|this|the following) )?true or false\b[\s:,?]*", re.IGNORECASE
)
_TAG = re.compile(
    r",\s*(?:right|correct|(?:is|are|does|do|was|were|has|have|can)n't \w+)$", re.IGNORECASE
)
_WH_IS = re.compile(r"^(who|what|where|when|how)['’]s\b", re.IGNORECASE)
SUBORDINATE = re.compile(
    r"(?:but )?(?:only )?(?:if|unless|when|whenever|as long as|provided|because|until|once"
    r"|while)\b",
    re.IGNORECASE,
)
"""Conjunctions behind yes or no that continue its sentence: "Yes, if you book ahead"."""
_BOTH_WAYS = re.compile(r"(?:and|or) (?:no|yes|maybe|not)\b", re.IGNORECASE)
"""Words behind yes or no by which it is neither: "Yes and no"."""
NOT_TRUE = "It is not true that"


def complete_reply(question: str, reply: str) -> str | None:
    """Return the statement that a short reply makes; ``None`` where no rule applies.

    There are rules for a choice among options, for questions that ask for yes or no, for requests,
    and for questions with who, what, which, when, where, how many, how much and how long. The
    statement of "no" begins with "It is not true that".
    """
    if option := find_option(question, reply):
        # "Which is larger: A) ... B) ...?" without its options, answered by the option's text.
        stem = _BEFORE_OPTIONS.sub("", _OPTION.sub("", question))
        statement = None if _CHOICE.search(stem) else complete_reply(f"{stem}?", option)
        return statement or make_sentence(option)
    # "Wow!" is no answer, so an exclamation mark is kept in mind before it is cut off.
    words, exclaimed = _question_words(question), reply.rstrip().endswith("!")
    reply = reply.strip().rstrip(".!").strip().replace("’", "'")
    if len(words) < 2 or not reply:
        return None
    assent = ASSENT.match(reply)
    if asks_whether(question):
        return (
            _complete_assent(words, reply, assent) if assent else _choose_alternative(words, reply)
        )
    # A request: "Give me the number of halls." with "14" is "The number of halls is 14."
    if request := find_question_topic(question) if _asks_without_wh(question) else None:
        value = re.sub(
            r"^(?:it's|it is|that's|that is|they're|they are)\s+", "", reply, flags=re.IGNORECASE
        )
        return (
            None
            if find_finite_verb(find_words(value)) is not None or assent
            else make_sentence(f"{request} is {value}")
        )
    inner = find_words(reply)
    if (
        assent
        or exclaimed
        or not inner
        or inner[0].lower() in SUBJECT_PRONOUNS
        or find_finite_verb(inner) is not None
    ):
        return None  # a sentence of its own, or none: "That's it", "Wow!"
    # The reply moves into the sentence, so a common first word loses its capital.
    if is_empty_word(inner[0].lower()) or inner[0].lower() in PREPOSITIONS:
        reply = reply[0].lower() + reply[1:]
    filled = _fill_in_reply(words, reply)
    return None if filled is None else make_sentence(filled)


def asks_whether(question: str) -> bool:
    """Whether a question asks for yes or no."""
    words = _question_words(question)
    first = words[0].casefold().replace("’", "'") if words else ""
    return (
        first in AUXILIARIES
        or first.endswith("n't")
        or _WHETHER.search(question) is not None
        or _TRUE_OR_FALSE.match(question.strip()) is not None
    )


def find_option(question: str, reply: str) -> str | None:
    """Return the text of the option that a reply names, for "B" or "B) 14 halls"."""
    options = {letter.upper(): text.strip(" .,;") for letter, text in _OPTION.findall(question)}
    match = _OPTION_LETTER.fullmatch(reply.strip().rstrip("."))
    if len(options) < 2 or match is None:
        return None
    option, text = options.get(match[1].upper()), match[2].strip(" .")
    # The reply's own words count, in case that they differ from the option's.
    return text if text and option else option


def find_question_topic(question: str) -> str | None:
    """Return the noun phrase that a question is about: "the museum" in "When did the museum open?".

    For a request it is everything that is requested: "the number of halls".
    """
    text = _bare_question(question)
    if _asks_without_wh(question):
        request = _ASKS_FOR.sub("", text, count=1).strip(" .:")
        # Key words that begin with a verb ("replace a tyre") are no noun phrase.
        return None if is_imperative(find_words(request)) else request or None
    words = text.split()
    # The phrase is searched behind the auxiliary: "did | the museum | open".
    place = next((n for n, word in enumerate(words) if word.lower() in AUXILIARIES), len(words))
    phrase: list[str] = []
    behind = ""
    for word in words[place + 1 :]:
        name = word[0].isupper() and word != "I"
        tag = find_tag(word)
        first = phrase[-1:] and phrase[-1].lower() in _BEFORE_NOUN  # "the permit"
        # "the purpose | of the | gate": "it" may stand for either, so both are kept.
        of = phrase[-1:] == ["of"]
        # Names, nouns, adjectives, numbers and unknown words continue the phrase.
        within = phrase and (
            name
            or first
            or not tag
            or tag.startswith(("NN", "JJ", "CD"))
            or word == "of"
            or (of and word.lower() in _BEFORE_NOUN)
        )
        if not (within or name or (not phrase and word.lower() in _BEFORE_NOUN)):
            behind = word.lower()
            break
        phrase.append(word)
    verb_follows = phrase and words[place].lower() in DO | MODALS
    if verb_follows and (not behind or behind in DETERMINERS | PREPOSITIONS):
        # One that the lexicon has as a noun was taken for a part of the subject: "does the trial
        # cost", "does the line stop at noon".
        phrase.pop()
    while phrase and find_tag(phrase[-1]).startswith("JJ") and not phrase[-1][0].isupper():
        phrase.pop()  # "is the shop open"
    # A single common noun is too little to stand for a pronoun.
    return " ".join(phrase) if phrase[1:] or (phrase and phrase[0][0].isupper()) else None


def _asks_without_wh(question: str) -> bool:
    """Whether a text asks without a question word: it is a request, or consists of key words."""
    words = [word.casefold() for word in _question_words(question)]
    asks = WH_WORDS.union(AUXILIARIES)
    return (
        bool(words)
        and asks.isdisjoint(words[:2])
        and words[0] not in PREPOSITIONS
        and find_finite_verb(words) is None
    )


def make_sentence(text: str) -> str:
    """Return a text as a sentence: with a capital letter and a full stop."""
    text = text.strip().rstrip(" :;,")
    ended = text.rstrip("\"')]").endswith((".", "!", "?"))
    return f"{text[:1].upper()}{text[1:]}" + ("" if ended else ".")


def _bare_question(question: str) -> str:
    """Return the last question of a text, without the words that introduce it."""
    text = _TRUE_OR_FALSE.sub("", question.strip())
    text = re.split(r"(?<=[.!?])\s+", text)[-1].rstrip("?!. ")
    text = _WH_IS.sub(r"\1 is", _TAG.sub("", text))
    while match := _BEFORE_QUESTION.match(text):
        text = text[match.end() :]
    return text


def _question_words(question: str) -> list[str]:
    return _bare_question(question).split()


def _complete_assent(words: Sequence[str], reply: str, assent: re.Match[str]) -> str | None:
    """Return the statement of yes or no; behind yes, the rest of the reply is added."""
    first = words[0].casefold().replace("’", "'")
    auxiliary = first.removesuffix("n't")
    statement = " ".join(
        _order_as_statement(auxiliary, words[1:]) if auxiliary in AUXILIARIES else words
    )
    text_behind = reply[assent.end() :].strip(" ,.;:!–—-")
    # "No, if you cancel late": the condition belongs inside the negated sentence.
    if assent["no"] and SUBORDINATE.match(text_behind) and auxiliary in BE | HAVE | MODALS:
        negated_statement = re.sub(rf"\b{auxiliary}\b", f"{auxiliary} not", statement, count=1)
        return make_sentence(f"{negated_statement} {text_behind}")
    if assent["no"]:
        return make_sentence(f"{NOT_TRUE} {statement}")
    if _BOTH_WAYS.match(text_behind):
        return None
    return make_sentence(
        statement if ELLIPSIS.fullmatch(text_behind) else f"{statement} {text_behind}".rstrip()
    )


def _choose_alternative(words: Sequence[str], reply: str) -> str | None:
    """Return the statement of one of two alternatives: "paid" to "Is breakfast free or paid?"."""
    lower = [word.casefold() for word in words]
    place = lower.index("or") if "or" in lower else 0
    # Both alternatives must have the same number of words: only then is it clear where the first
    # begins.
    length = len(words) - place - 1
    answer = [word.casefold() for word in reply.split()]
    alternatives = lower[place + 1 :], lower[place - length : place]
    if not 0 < length < place - 1 or answer not in alternatives or lower[0] not in AUXILIARIES:
        return None
    return make_sentence(
        " ".join(_order_as_statement(lower[0], [*words[1 : place - length], reply]))
    )


def _order_as_statement(auxiliary: str, words_behind: Sequence[str]) -> list[str]:
    """Return a question in the order of a statement: "is it open" becomes "it is open".

    Args:
        auxiliary: the auxiliary at the start of the question, in small letters.
        words_behind: the words behind it.
    """
    words_behind = list(words_behind)
    lower = [word.casefold() for word in words_behind]
    # "does it cost" is "it cost": the auxiliary "do" disappears.
    if auxiliary in DO or not words_behind:
        return words_behind
    if auxiliary in MODALS:
        # "can it be refunded", "can the ticket be refunded"; without "be" the place is unknown, and
        # the auxiliary is left out.
        place = 1 if lower[0] in SUBJECT_PRONOUNS else lower.index("be") if "be" in lower else 0
        return [*words_behind[:place], auxiliary, *words_behind[place:]] if place else words_behind
    if lower[0] in SUBJECT_PRONOUNS:
        return [words_behind[0], auxiliary, *words_behind[1:]]
    place = _find_predicate_start(lower)
    return [*words_behind[:place], auxiliary, *words_behind[place:]]


def _find_participles(words: Sequence[str]) -> list[int]:
    """Return the indices of participles; "opening" in "the opening hours" is not one."""
    pairs = zip(words[1:], words, strict=False)
    return [
        n
        for n, (word, before) in enumerate(pairs, 1)
        if _PARTICIPLE.fullmatch(word) and before not in DETERMINERS
    ]


def _find_predicate_start(words: Sequence[str]) -> int:
    """Return where the predicate begins in the words behind a question's auxiliary.

    In "the museum the largest" it is "the largest".
    """
    for word in ("not", "been"):
        if word in words[1:]:
            return words.index(word)
    behind = [
        n for n, word in enumerate(words) if n and words[n - 1] not in DETERMINERS | PREPOSITIONS
    ]
    # In order of certainty: the last participle, an adjective with nothing but a preposition behind
    # it, a second noun phrase, a phrase of place or time, and else the last word.
    participles = _find_participles(words)
    adjectives = [
        n
        for n in behind
        if find_tag(words[n]).startswith("JJ") and {*words[n + 1 : n + 2]} <= PREPOSITIONS
    ]
    nouns = [n for n in behind if words[n] in _BEFORE_NOUN]
    places = [n for n in behind if words[n] in PREPOSITIONS - {"of", "for", "with"}]
    return (participles[-1:] or adjectives[:1] or nouns[:1] or places[:1] or [len(words) - 1])[0]


def _fill_in_reply(words: list[str], reply: str) -> str | None:
    """Return a question with the reply in place of its question word; ``None`` without a rule."""
    before = ""
    # "In which year ...": the preposition goes before the reply.
    if words[0].casefold() in PREPOSITIONS:
        before, words = words[0], words[1:]
    lower = [word.casefold() for word in words]
    if len(words) < 2 or lower[0] not in WH_WORDS - {"whose", "why"}:
        return None
    # "how many halls", "how much water": the noun goes behind the number of the reply.
    counted = lower[:2] in (["how", "many"], ["how", "much"])
    place = next((n for n, word in enumerate(lower) if n and word in AUXILIARIES), None)
    if place is not None:
        if before and reply.split(maxsplit=1)[0].casefold() not in PREPOSITIONS:
            reply = f"{before.lower()} {reply}"
        # "who", "what" and "how many" may be the subject ("who is buried here"), other words may
        # not.
        subject = not before and (counted or lower[0] in ("who", "what", "which"))
        noun, words_behind = words[1 + counted : place], words[place + 1 :]
        if counted and not {noun_word.casefold() for noun_word in noun[:1]} & set(
            reply.casefold().split()
        ):
            reply = " ".join([reply, *noun])
        # Nothing behind the auxiliary: "who is it?" was cut, or the question is incomplete.
        return (
            _undo_inversion(lower[place], noun, words_behind, reply, subject=subject)
            if words_behind
            else None
        )
    if lower[1] in PREPOSITIONS:
        return None  # "what about refunds"
    if lower[1] in (DETERMINERS | SUBJECT_PRONOUNS):  # "tell me what the trial costs"
        return " ".join([*words[1:], reply])
    if lower[0] in ("when", "where") or (lower[0] == "how" and not counted):
        return None
    # "who built it" replaces one word, "which plan includes it" two.
    replaced_count = 1 if lower[0] in ("who", "what") else 2
    return " ".join([reply, *words[replaced_count:]])


def _undo_inversion(
    auxiliary: str, noun: list[str], words_behind: list[str], reply: str, *, subject: bool
) -> str:
    """Return the words behind a question's auxiliary as a statement with the reply.

    Args:
        auxiliary: the auxiliary, in small letters.
        noun: the words between the question word and the auxiliary.
        words_behind: the words behind the auxiliary.
        reply: the reply, which becomes the subject or stands at the end.
        subject: whether the question may ask for its subject.
    """
    lower = [word.casefold() for word in words_behind]
    # "How many halls are there": "there are 14 halls".
    if lower[0] == "there":
        return " ".join(["there", auxiliary, reply, *words_behind[1:]])
    verb = _PARTICIPLE.fullmatch(lower[0]) or lower[0] in PREPOSITIONS or lower[0] == "not"
    # "Who was elected": the reply is the subject of a participle; "Who will open it": of a verb.
    base_verb = find_tag(words_behind[0]) in ("VB", "VBP") and words_behind[0].islower()
    if subject and ((verb and auxiliary in BE | HAVE) or (base_verb and auxiliary in MODALS)):
        return " ".join([reply, auxiliary, *words_behind])
    # "When was it built": "it was built 1902"; the reply stands at the end.
    if auxiliary not in BE or _find_participles(lower):
        return " ".join([*_order_as_statement(auxiliary, words_behind), reply])
    if find_tag(lower[-1]).startswith("JJ"):
        # "Which plan is best", "How long is it valid"
        parts = (
            [reply, auxiliary, *words_behind]
            if len(words_behind) == 1
            else [*_order_as_statement(auxiliary, words_behind), reply]
        )
        return " ".join(parts)
    # "How high is the tower": "the tower is 30 metres high".
    measure = noun[-1:] if noun and noun[-1].casefold() in _MEASURES else []
    return " ".join([*words_behind, auxiliary, reply, *measure])


# Items of lists and their leads -----------------------------------------------------------------

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
        find_words(match["before"])
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
    words_of_text = {word.lower() for word in find_words(text)}
    words = [word for word in find_words(lead) if word.lower() not in words_of_text]
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
    words = find_words(lead)
    place = find_finite_verb(words)
    if place is None:
        return False
    if (
        words[1:]
        and find_tag(words[-1]) in ("VB", "VBP", "NN")
        and words[-2].lower() in SUBJECT_PRONOUNS
    ):
        return True  # "If you are under 18 you need"
    behind = [word.lower() for word in words[place + 1 :]]
    return all(
        is_negation(word) or find_tag(word)[:2] in ("VB", "RB", "IN", "TO") for word in behind
    )


def _is_status(lead: str) -> bool:
    """Whether a lead is only a participle or an adjective: "Not covered", "Included"."""
    words = [word.lower() for word in find_words(lead)]
    bare = [word for word in words if word not in _BESIDE_STATUS]
    tag = find_tag(bare[0]) if len(bare) == 1 else ""
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
    words = find_words(item)
    return bool(words) and (find_tag(words[-1]) in ("NNS", "NNPS") or " and " in item)


def _lower_first(text: str) -> str:
    """Return a text as it is written inside a sentence: a common first word in small letters."""
    first = find_words(text[:40])[:1]
    common = (
        first
        and text.startswith(first[0])
        and is_common_word(first[0])
        and not first[0][1:2].isupper()
    )
    return text[:1].lower() + text[1:] if common else text

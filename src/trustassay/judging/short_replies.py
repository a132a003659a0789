"""What a short reply says with its question: "30 days." to "How long does the warranty last?".

Such a reply claims nothing by itself, and a passage that says "30 days" of something else has its
words. As the answer to its question it is "the warranty last 30 days". Verbs keep the form of the
question, which hardly disturbs entailers. Measured by ``benchmarks/short_replies.py``.
"""

import re
from collections.abc import Sequence

from trustassay.text.grammar import (
    AUXILIARIES,
    BE,
    DETERMINERS,
    DO,
    HAVE,
    MODALS,
    PREPOSITIONS,
    SUBJECT_PRONOUNS,
    WH_WORDS,
    finite_verb,
    tag_of,
    words_of,
)
from trustassay.text.words import is_empty_word

_BEFORE_NOUN = DETERMINERS - {"this", "that", "these", "those"}
_MEASURES = frozenset("long old tall high far deep wide big large heavy thick".split())
_PARTICIPLE = re.compile(
    r"\w{2,}ed|\w{3,}ing|born|built|made|held|written|known|found|sold|bought|paid|kept"
    r"|led|lost|won"
    r"|sent|taken|given|driven|chosen|drawn|shown|spoken|broken|begun|become|said|told"
    r"|taught|brought"
    r"|put|cut|shut|open|lent|met|laid"
)
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
"""Yes or no at the beginning of a reply, parted from what follows by a mark: "No," and "No."."""
ELLIPSIS = re.compile(
    rf"(?:(?:{'|'.join(sorted(SUBJECT_PRONOUNS))}) (?:{'|'.join(sorted(AUXILIARIES))}|ca|wo|sha)"
    r"(?: ?not|n?'?t)?|(?:it|that|he|she|there)'s(?: not)?|(?:they|we|you)'re(?: not)?"
    r"|(?:of course|certainly|indeed|never|not)(?: not)?)[.!]*",
    re.IGNORECASE,
)
"""What repeats yes or no: "it is", "you cannot", "they don't", "never"."""
_OPTION = re.compile(
    r"(?:^|[\s(])\(?([A-Ha-h1-8])[).:]\s+(.+?)(?=[\s,;]+(?:or\s+)?\(?[A-Ha-h1-8][).:]\s|[?\n]|$)"
)
_OPTION_LETTER = re.compile(
    r"\W*(?:the )?(?:correct |right |best )?(?:option|answer|choice)?(?: is)?\W*"
    r"\(?([A-Ha-h1-8])(?:[).:]\s*|$)(.*)",
    re.IGNORECASE,
)
_BEFORE_OPTIONS = re.compile(r"(?:[\s:;,?]|\bor\b)*$", re.IGNORECASE)
_CHOICE = re.compile(r"\b(?:these|following|options?|right|true|correct|best)\b", re.IGNORECASE)
"""A question that asks for nothing but a choice: "Which of these is right?"."""
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
"""What goes on with the sentence of yes or no: "Yes, if you book ahead"."""
_BOTH_WAYS = re.compile(r"(?:and|or) (?:no|yes|maybe|not)\b", re.IGNORECASE)
"""What stands behind yes or no where it is neither: "Yes and no"."""
NOT_TRUE = "It is not true that"


def complete_reply(question: str, reply: str) -> str | None:
    """Return what a short reply to a question says; ``None`` where no rule applies.

    Rules for questions that ask for yes or no, for who, what, which, when, where, how many, how
    much and how long, for a choice among options, and for requests. What "no" says begins with "It
    is not true that".
    """
    if option := option_of(question, reply):
        stem = _BEFORE_OPTIONS.sub("", _OPTION.sub("", question))
        statement = None if _CHOICE.search(stem) else complete_reply(f"{stem}?", option)
        return statement or sentence_of(option)
    words, exclaimed = _question_words(question), reply.rstrip().endswith("!")
    reply = reply.strip().rstrip(".!").strip().replace("’", "'")
    if len(words) < 2 or not reply:
        return None
    assent = ASSENT.match(reply)
    if asks_whether(question):
        return (
            _complete_assent(words, reply, assent) if assent else _choose_alternative(words, reply)
        )
    if request := question_topic(question) if _asks_without_wh(question) else None:
        value = re.sub(
            r"^(?:it's|it is|that's|that is|they're|they are)\s+", "", reply, flags=re.IGNORECASE
        )
        return (
            None
            if finite_verb(words_of(value)) is not None or assent
            else sentence_of(f"{request} is {value}")
        )
    inner = words_of(reply)
    if (
        assent
        or exclaimed
        or not inner
        or inner[0].lower() in SUBJECT_PRONOUNS
        or finite_verb(inner) is not None
    ):
        return None  # a sentence of its own, or none: "That's it", "Wow!"
    if is_empty_word(inner[0].lower()) or inner[0].lower() in PREPOSITIONS:
        reply = reply[0].lower() + reply[1:]
    filled = _fill_in_reply(words, reply)
    return None if filled is None else sentence_of(filled)


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


def option_of(question: str, reply: str) -> str | None:
    """Return the text of the option that a reply names: "B" or "B) 14 halls"."""
    options = {letter.upper(): text.strip(" .,;") for letter, text in _OPTION.findall(question)}
    match = _OPTION_LETTER.fullmatch(reply.strip().rstrip("."))
    if len(options) < 2 or match is None:
        return None
    option, text = options.get(match[1].upper()), match[2].strip(" .")
    return text if text and option else option


def question_topic(question: str) -> str | None:
    """Return the noun phrase that a question is about: "the museum" of "When did the museum open?".

    Of a request it is all that is asked for: "the number of halls".
    """
    text = _bare_question(question)
    if _asks_without_wh(question):
        return _ASKS_FOR.sub("", text, count=1).strip(" .:") or None
    words = text.split()
    place = next((n for n, word in enumerate(words) if word.lower() in AUXILIARIES), len(words))
    phrase: list[str] = []
    behind = ""
    for word in words[place + 1 :]:
        name = word[0].isupper() and word != "I"
        tag = tag_of(word)
        first = phrase[-1:] and phrase[-1].lower() in _BEFORE_NOUN  # "the permit"
        within = phrase and (name or first or not tag or tag.startswith(("NN", "JJ", "CD")))
        if not (within or name or (not phrase and word.lower() in _BEFORE_NOUN)):
            behind = word.lower()
            break
        phrase.append(word)
    verb_follows = phrase and words[place].lower() in DO | MODALS
    if verb_follows and (not behind or behind in (DETERMINERS | PREPOSITIONS) - {"of"}):
        # One that the lexicon has as a noun was taken for a part of the subject: "does the trial
        # cost", "does the line stop at noon".
        phrase.pop()
    while phrase and tag_of(phrase[-1]).startswith("JJ") and not phrase[-1][0].isupper():
        phrase.pop()  # "is the shop open"
    return " ".join(phrase) if phrase[1:] or (phrase and phrase[0][0].isupper()) else None


def _asks_without_wh(question: str) -> bool:
    """Whether a text asks for something without a question word: a request, or key words."""
    words = [word.casefold() for word in _question_words(question)]
    asks = WH_WORDS.union(AUXILIARIES)
    return (
        bool(words)
        and asks.isdisjoint(words[:2])
        and words[0] not in PREPOSITIONS
        and finite_verb(words) is None
    )


def sentence_of(text: str) -> str:
    """Return a text as a sentence: with a capital letter and a full stop."""
    text = text.strip().rstrip(" :;,")
    ended = text.rstrip("\"')]").endswith((".", "!", "?"))
    return f"{text[:1].upper()}{text[1:]}" + ("" if ended else ".")


def _bare_question(question: str) -> str:
    """Return the last question of a text, without what leads on to it."""
    text = _TRUE_OR_FALSE.sub("", question.strip())
    text = re.split(r"(?<=[.!?])\s+", text)[-1].rstrip("?!. ")
    text = _WH_IS.sub(r"\1 is", _TAG.sub("", text))
    while match := _BEFORE_QUESTION.match(text):
        text = text[match.end() :]
    return text


def _question_words(question: str) -> list[str]:
    return _bare_question(question).split()


def _complete_assent(words: Sequence[str], reply: str, assent: re.Match[str]) -> str | None:
    """Return what yes or no says, and for yes with what stands behind it in the reply."""
    first = words[0].casefold().replace("’", "'")
    auxiliary = first.removesuffix("n't")
    statement = " ".join(_as_statement(auxiliary, words[1:]) if auxiliary in AUXILIARIES else words)
    rest = reply[assent.end() :].strip(" ,.;:!–—-")
    if assent["no"] and SUBORDINATE.match(rest) and auxiliary in BE | HAVE | MODALS:
        denied = re.sub(rf"\b{auxiliary}\b", f"{auxiliary} not", statement, count=1)
        return sentence_of(f"{denied} {rest}")
    if assent["no"]:
        return sentence_of(f"{NOT_TRUE} {statement}")
    if _BOTH_WAYS.match(rest):
        return None
    return sentence_of(statement if ELLIPSIS.fullmatch(rest) else f"{statement} {rest}".rstrip())


def _choose_alternative(words: Sequence[str], reply: str) -> str | None:
    """Return what one of two alternatives says: "paid" to "Is breakfast free or paid?"."""
    lower = [word.casefold() for word in words]
    place = lower.index("or") if "or" in lower else 0
    length = len(words) - place - 1
    answer = [word.casefold() for word in reply.split()]
    alternatives = lower[place + 1 :], lower[place - length : place]
    if not 0 < length < place - 1 or answer not in alternatives or lower[0] not in AUXILIARIES:
        return None
    return sentence_of(" ".join(_as_statement(lower[0], [*words[1 : place - length], reply])))


def _as_statement(auxiliary: str, rest: Sequence[str]) -> list[str]:
    """Return a question without its auxiliary's place in front: "is it open" as "it is open"."""
    rest = list(rest)
    lower = [word.casefold() for word in rest]
    if auxiliary in DO or not rest:
        return rest
    if auxiliary in MODALS:
        place = 1 if lower[0] in SUBJECT_PRONOUNS else lower.index("be") if "be" in lower else 0
        return [*rest[:place], auxiliary, *rest[place:]] if place else rest
    if lower[0] in SUBJECT_PRONOUNS:
        return [rest[0], auxiliary, *rest[1:]]
    place = _predicate_start(lower)
    return [*rest[:place], auxiliary, *rest[place:]]


def _participles(words: Sequence[str]) -> list[int]:
    """Return the places of participles; "opening" of "the opening hours" is none."""
    pairs = zip(words[1:], words, strict=False)
    return [
        n
        for n, (word, before) in enumerate(pairs, 1)
        if _PARTICIPLE.fullmatch(word) and before not in DETERMINERS
    ]


def _predicate_start(words: Sequence[str]) -> int:
    """Return where the predicate begins in a question behind its auxiliary: "the largest" of "the
    museum the largest"."""
    for word in ("not", "been"):
        if word in words[1:]:
            return words.index(word)
    behind = [
        n for n, word in enumerate(words) if n and words[n - 1] not in DETERMINERS | PREPOSITIONS
    ]
    participles = _participles(words)
    adjectives = [
        n
        for n in behind
        if tag_of(words[n]).startswith("JJ") and {*words[n + 1 : n + 2]} <= PREPOSITIONS
    ]
    nouns = [n for n in behind if words[n] in _BEFORE_NOUN]
    places = [n for n in behind if words[n] in PREPOSITIONS - {"of", "for", "with"}]
    return (participles[-1:] or adjectives[:1] or nouns[:1] or places[:1] or [len(words) - 1])[0]


def _fill_in_reply(words: list[str], reply: str) -> str | None:
    """Return a question with the reply in the place of what it asks for."""
    before = ""
    if words[0].casefold() in PREPOSITIONS:
        before, words = words[0], words[1:]
    lower = [word.casefold() for word in words]
    if len(words) < 2 or lower[0] not in WH_WORDS - {"whose", "why"}:
        return None
    counted = lower[:2] in (["how", "many"], ["how", "much"])
    place = next((n for n, word in enumerate(lower) if n and word in AUXILIARIES), None)
    if place is not None:
        if before and reply.split(maxsplit=1)[0].casefold() not in PREPOSITIONS:
            reply = f"{before.lower()} {reply}"
        subject = not before and (counted or lower[0] in ("who", "what", "which"))
        noun, rest = words[1 + counted : place], words[place + 1 :]
        if counted and not {one.casefold() for one in noun[:1]} & set(reply.casefold().split()):
            reply = " ".join([reply, *noun])
        return _undo_inversion(lower[place], noun, rest, reply, subject=subject) if rest else None
    if lower[1] in PREPOSITIONS:
        return None  # "what about refunds"
    if lower[1] in (DETERMINERS | SUBJECT_PRONOUNS):  # "tell me what the trial costs"
        return " ".join([*words[1:], reply])
    if lower[0] in ("when", "where") or (lower[0] == "how" and not counted):
        return None
    taken = 1 if lower[0] in ("who", "what") else 2  # "who built it", "how many people live here"
    return " ".join([reply, *words[taken:]])


def _undo_inversion(
    auxiliary: str, noun: list[str], rest: list[str], reply: str, *, subject: bool
) -> str:
    """Return what follows the auxiliary of a question, with the reply: as its subject, if that may
    be asked for, or at the end.
    """
    lower = [word.casefold() for word in rest]
    if lower[0] == "there":
        return " ".join(["there", auxiliary, reply, *rest[1:]])
    verb = _PARTICIPLE.fullmatch(lower[0]) or lower[0] in PREPOSITIONS or lower[0] == "not"
    if subject and verb and auxiliary in BE | HAVE:
        return " ".join([reply, auxiliary, *rest])
    if auxiliary not in BE or _participles(lower):
        return " ".join([*_as_statement(auxiliary, rest), reply])
    if tag_of(lower[-1]).startswith("JJ"):
        # "Which plan is best", "How long is it valid"
        parts = (
            [reply, auxiliary, *rest]
            if len(rest) == 1
            else [*_as_statement(auxiliary, rest), reply]
        )
        return " ".join(parts)
    measure = noun[-1:] if noun and noun[-1].casefold() in _MEASURES else []
    return " ".join([*rest, auxiliary, reply, *measure])

"""From an answer to the claims that are judged: its sentences, or what a model splits off.

A short reply is judged as the statement that it makes with its question: "30 days." claims nothing
by itself, and a passage that says "30 days" of something else has its words. As the answer to "How
long does the warranty last?" it is "the warranty last 30 days". Verbs keep the form of the
question, which hardly disturbs entailers. Measured by ``benchmarks/short_replies.py``.
"""

import re
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from trustassay.errors import UnparsedError
from trustassay.metrics.grounding.refusal import Detector, answers_apart, belongs_to_refusal
from trustassay.metrics.grounding.sentences import Splitter, claims_nothing, statements
from trustassay.metrics.grounding.text import without_references
from trustassay.prose import numbered, read_patterns
from trustassay.texts import content_words, is_empty_word, plain_words

LONGEST = 6
"""Words of a reply that may be a part of a sentence: "at the end of each quarter"."""

_BE = frozenset("is are was were am".split())
_HAVE = frozenset("has have had".split())
_DO = frozenset("do does did".split())
_MODAL = frozenset("can could will would should shall may might must".split())
_AUXILIARY = _BE | _HAVE | _DO | _MODAL
_VERBS = _AUXILIARY - {"am", "may"}
"""Those by which a reply is a sentence of its own; "11 am" and "3 May" are none."""
_ASKS = frozenset("who whom what which when where how".split())
_PREPOSITIONS = frozenset("at in on for from to into until till since by with of about".split())
_PRONOUNS = frozenset("it they he she we you i there this that these those".split())
_DETERMINERS = frozenset("the a an my your our their his her its".split())
_MEASURES = frozenset("long old tall high far deep wide big large heavy thick".split())
_P = read_patterns("claims.toml", __package__)
_PARTICIPLE = re.compile(_P["participle"])
_LEAD = re.compile(_P["lead"], re.IGNORECASE)
_AGREES = re.compile(_P["agrees"], re.IGNORECASE)
_VERB = f"{'|'.join(sorted(_AUXILIARY))}|ca|wo|sha"
_ELLIPSIS = re.compile(
    rf"(?:(?:{'|'.join(sorted(_PRONOUNS))}) (?:{_VERB}){_P['not']})[.!]*", re.IGNORECASE
)
"""What repeats yes or no: "it is", "you cannot", "they don't", "never"."""


def is_fragment(reply: str) -> bool:
    """Whether a reply is a part of a sentence by its first word: "within 30 days of purchase"."""
    words = reply.casefold().rstrip(".!").split()
    return 0 < len(words) <= LONGEST and words[0] in _PREPOSITIONS and _VERBS.isdisjoint(words)


def stated(question: str, reply: str) -> str | None:
    """Return what a short reply to a question says; ``None`` where no rule applies.

    Rules for questions that ask for yes or no, and for who, what, which, when, where, how many, how
    much and how long. What "no" says begins with "It is not true that".
    """
    words, exclaimed = _asked(question), reply.rstrip().endswith("!")
    reply = reply.strip().rstrip(".!").strip()
    if len(words) < 2 or not reply:
        return None
    result = _AGREES.match(reply)
    if result is not None and reply[result.end() : result.end() + 1].isalnum():
        result = None  # "Nobody", "Trueman"
    if words[0].casefold() in _AUXILIARY:
        if result is None:
            return None
        said = " ".join(_told(words[0].casefold(), words[1:]))
        if result["no"]:
            return _sentence(f"It is not true that {said}")
        rest = reply[result.end() :].strip(" ,.;:!–—-")
        return _sentence(said if _ELLIPSIS.fullmatch(rest) else f"{said} {rest}".rstrip())
    inner = re.split(r"[\s'’]+", reply.casefold())
    if result is not None or exclaimed or inner[0] in _PRONOUNS or not _VERBS.isdisjoint(inner):
        return None  # a sentence of its own, or none: "That's it", "Wow!"
    if is_empty_word(inner[0]):
        reply = reply[0].lower() + reply[1:]
    said_so = _filled(words, reply)
    return None if said_so is None else _sentence(said_so)


def _asked(question: str) -> list[str]:
    """Return the words of the last question of a text, without what leads on to it."""
    text = re.split(r"(?<=[.!?])\s+", question.strip())[-1].rstrip("?!. ")
    while result := _LEAD.match(text):
        text = text[result.end() :]
    return text.split()


def _told(auxiliary: str, rest: list[str]) -> list[str]:
    """Return a question without its auxiliary's place in front: "is it open" as "it is open"."""
    lower = [word.casefold() for word in rest]
    if auxiliary in _DO:
        return rest
    if auxiliary in _MODAL:
        at = 1 if lower[0] in _PRONOUNS else lower.index("be") if "be" in lower else 0
        return [*rest[:at], auxiliary, *rest[at:]] if at else rest
    if lower[0] in _PRONOUNS:
        return [rest[0], auxiliary, *rest[1:]]
    participles = [at for at, word in enumerate(lower) if at and _PARTICIPLE.fullmatch(word)]
    at = participles[-1] if participles else len(rest) - 1
    return [*rest[:at], auxiliary, *rest[at:]]


def _filled(words: list[str], reply: str) -> str | None:
    """Return a question with the reply in the place of what it asks for."""
    before = ""
    if words[0].casefold() in _PREPOSITIONS:
        before, words = words[0], words[1:]
    lower = [word.casefold() for word in words]
    if len(words) < 2 or lower[0] not in _ASKS:
        return None
    counted = lower[:2] in (["how", "many"], ["how", "much"])
    place = next((at for at, word in enumerate(lower) if at and word in _AUXILIARY), None)
    if place is not None:
        if before and reply.split(maxsplit=1)[0].casefold() not in _PREPOSITIONS:
            reply = f"{before.lower()} {reply}"
        subject = not before and (counted or lower[0] in ("who", "what", "which"))
        noun, rest = words[1 + counted : place], words[place + 1 :]
        if counted and not {one.casefold() for one in noun[:1]} & set(reply.casefold().split()):
            reply = " ".join([reply, *noun])
        return _inverted(lower[place], noun, rest, reply, subject=subject) if rest else None
    if lower[1] in _DETERMINERS | _PRONOUNS:  # "tell me what the trial costs"
        return " ".join([*words[1:], reply])
    if lower[0] in ("when", "where") or (lower[0] == "how" and not counted):
        return None
    taken = 1 if lower[0] in ("who", "what") else 2  # "who built it", "how many people live here"
    return " ".join([reply, *words[taken:]])


def _inverted(
    auxiliary: str, noun: list[str], rest: list[str], reply: str, *, subject: bool
) -> str:
    """Return what follows the auxiliary of a question, with the reply: as its subject, if that may
    be asked for, or at the end.
    """
    lower = [word.casefold() for word in rest]
    if lower[0] == "there":
        return " ".join(["there", auxiliary, reply, *rest[1:]])
    verb = _PARTICIPLE.fullmatch(lower[0]) or lower[0] in _PREPOSITIONS
    if subject and verb and auxiliary in _BE | _HAVE:
        return " ".join([reply, auxiliary, *rest])
    if auxiliary not in _BE or any(map(_PARTICIPLE.fullmatch, lower[1:])):
        return " ".join([*_told(auxiliary, rest), reply])
    measure = noun[-1:] if noun and noun[-1].casefold() in _MEASURES else []
    return " ".join([*rest, auxiliary, reply, *measure])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


DECLINES = "it declines to answer"

BARE = 4
"""Words up to which a sentence is taken with its question: "In 1889.", "Gustave Eiffel"."""
_ASSENT = re.compile(
    r"(?:(?:yes|no|yeah|yep|nope|correct|right|true|false)\b[\s,.!:;–—-]*)+", re.IGNORECASE
)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_EMPHASIS = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|`")
_BULLETED = re.compile(r"^[ \t]*(?:[-*]\s|•)[ \t]*(?P<text>.+)$", re.MULTILINE)


class Claim(NamedTuple):
    """A part of an answer as written, and as it is judged; ``None`` where it claims nothing.

    why: why nothing is claimed.
    """

    text: str
    hypothesis: str | None
    why: str = "a question, a greeting or an offer"


def sentences(
    question: str, response: str, split: Splitter, refuses: Detector = lambda _: None
) -> list[Claim]:
    """Return the sentences of a response, each as it is to be judged.

    A sentence of up to four words ("In 1889."), "Yes" and "No" are judged as the statement that
    they make with their question (:func:`stated`), or after it where no rule makes one; what
    follows "Yes" in a longer sentence by itself. Questions, greetings, offers of help, headings,
    the heads of tables and code claim nothing; a sentence that declines claims what it answers
    after "but".
    """
    result: list[Claim] = []
    for part, prose in _parts(without_references(response)):
        if not prose:
            result.append(Claim(part.strip(), None, why="a heading or code"))
            continue
        result += [
            Claim(one.text, answers_apart(one.hypothesis) or None, why=DECLINES)
            if refuses(one.hypothesis)
            else Claim(one.text, _hypothesis(question, _EMPHASIS.sub("", one.hypothesis)))
            for one in statements(part, split, trailing=True, lines=True)
        ]
    return result


def _parts(text: str) -> list[tuple[str, bool]]:
    """Part a text into prose (true), and code, headings and heads of tables (false)."""
    lines, marks, fenced = text.splitlines(), list[bool](), False
    for place, line in enumerate(lines):
        fence = line.lstrip().startswith(("```", "~~~"))
        head = line.lstrip().startswith("|") and _is_rule(lines[place + 1 : place + 2])
        rule = "|" in line and _is_rule([line])
        marks.append(not (fenced or fence or head or rule or _HEADING.match(line)))
        fenced ^= fence
    runs = groupby(zip(marks, lines, strict=True), key=itemgetter(0))
    result = [("\n".join(line for _, line in own), prose) for prose, own in runs]
    return [(part, prose) for part, prose in result if any(map(str.isalnum, part))]


def _is_rule(lines: list[str]) -> bool:
    """Whether a line is the rule below the head of a table: bars, dashes and colons."""
    return bool(lines) and "-" in lines[0] and not lines[0].strip(" \t:|-")


def refusal_of(response: str, refuses: Detector, split: Splitter) -> str | None:
    """Return the words by which a response as a whole declines; ``None`` if any of it answers.

    Beside the sentences that decline, apologies, referrals and what the documents are about
    answer nothing.
    """
    if not (result := refuses(response)):
        return None
    claims = sentences("", response, split, refuses)
    declining = any(claim.why == DECLINES for claim in claims)
    others = [claim.text for claim in claims if claim.hypothesis is not None]
    return result if not declining or all(map(belongs_to_refusal, others)) else None


def _hypothesis(question: str, text: str) -> str | None:
    if claims_nothing(text):
        return None
    rest = _ASSENT.sub("", text, count=1) if _ASSENT.match(text) else text
    short = len(list(plain_words(text))) <= BARE
    if question and (short or is_fragment(rest)):
        return stated(question, text) or f"{question} {text}"
    if rest and len(rest) < len(text) and len(list(plain_words(rest))) > BARE:
        return rest[0].upper() + rest[1:]
    return text if content_words(text) or not question else f"{question} {text}"


def listed(reply: str) -> list[Claim]:
    """Read the claims of a model's reply: lines numbered from 1, or bulleted; "none" for no claim.
    A reply with neither raises UnparsedError.
    """
    lines = (*_BULLETED.finditer(reply), *numbered(reply))  # "- 1. Claim" is a line of both
    result = [text.strip() for _, text in sorted({m.start(): m["text"] for m in lines}.items())]
    if not result and reply.strip().strip(".\"'").casefold() not in ("none", "no claims"):
        shown = " ".join(reply.split())[:80]
        raise UnparsedError(f"the model's reply lists no claims: {shown!r}")
    return [Claim(text, text) for text in result]

"""From an answer to the claims that are judged: its sentences, or what a model splits off."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trustassay.errors import UnparsedError
from trustassay.metrics.faithfulness.short_replies import is_fragment, stated
from trustassay.metrics.grounding.brackets import without_references
from trustassay.metrics.grounding.declining import answers_apart, belongs_to_refusal
from trustassay.metrics.grounding.refusal import Detector
from trustassay.metrics.grounding.sentences import Splitter, claims_nothing, statements
from trustassay.prose import numbered
from trustassay.words import content_words, plain_words

__all__ = ["DECLINES", "Claim", "listed", "refusal_of", "sentences"]

DECLINES = "it declines to answer"

BARE = 4
"""Words up to which a sentence is taken with its question: "In 1889.", "Gustave Eiffel"."""
_ASSENT = re.compile(
    r"(?:(?:yes|no|yeah|yep|nope|correct|right|true|false)\b[\s,.!:;–—-]*)+", re.IGNORECASE
)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_EMPHASIS = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|`")
_BULLETED = re.compile(r"^[ \t]*(?:[-*]\s|•)[ \t]*(?P<text>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Claim:
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
    return [
        claim
        for part, prose in _parts(without_references(response))
        for claim in (_prose(question, part, split, refuses) if prose else [_silent(part)])
    ]


def _prose(question: str, text: str, split: Splitter, refuses: Detector) -> list[Claim]:
    return [
        _declining(one.text, one.hypothesis)
        if refuses(one.hypothesis)
        else Claim(one.text, _hypothesis(question, _EMPHASIS.sub("", one.hypothesis)))
        for one in statements(text, split, trailing=True, lines=True)
    ]


def _silent(text: str) -> Claim:
    return Claim(text.strip(), None, why="a heading or code")


def _declining(text: str, bare: str) -> Claim:
    return Claim(text, answers_apart(bare) or None, why=DECLINES)


def _parts(text: str) -> list[tuple[str, bool]]:
    """Part a text into prose (true), and code, headings and heads of tables (false)."""
    parts: list[tuple[list[str], bool]] = []
    lines, fenced = text.splitlines(), False
    for place, line in enumerate(lines):
        fence = line.lstrip().startswith(("```", "~~~"))
        head = line.lstrip().startswith("|") and _is_rule(lines[place + 1 : place + 2])
        rule = "|" in line and _is_rule([line])
        prose = not (fenced or fence or head or rule or _HEADING.match(line))
        fenced ^= fence
        if parts and parts[-1][1] == prose:
            parts[-1][0].append(line)
        else:
            parts.append(([line], prose))
    found = [("\n".join(part), prose) for part, prose in parts]
    return [(part, prose) for part, prose in found if any(map(str.isalnum, part))]


def _is_rule(lines: list[str]) -> bool:
    """Whether a line is the rule below the head of a table: bars, dashes and colons."""
    return bool(lines) and "-" in lines[0] and not lines[0].strip(" \t:|-")


def refusal_of(response: str, refuses: Detector, split: Splitter) -> str | None:
    """Return the words by which a response as a whole declines; ``None`` if any of it answers.

    Beside the sentences that decline, apologies, referrals and what the documents are about
    answer nothing.
    """
    found = refuses(response)
    if not found:
        return None
    claims = sentences("", response, split, refuses)
    declining = [claim for claim in claims if claim.why == DECLINES]
    others = [claim.text for claim in claims if claim.hypothesis is not None]
    if declining and any(not belongs_to_refusal(text) for text in others):
        return None
    return found


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

    Raises:
        UnparsedError: there is neither.
    """
    lines = (*_BULLETED.finditer(reply), *numbered(reply))  # "- 1. Claim" is a line of both
    found = [text.strip() for _, text in sorted({m.start(): m["text"] for m in lines}.items())]
    if not found and reply.strip().strip(".\"'").casefold() not in ("none", "no claims"):
        shown = " ".join(reply.split())[:80]
        raise UnparsedError(f"the model's reply lists no claims: {shown!r}")
    return [Claim(text, text) for text in found]

"""From an answer to the claims that are judged: its sentences, or what a model splits off."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trustassay.errors import UnparsedError
from trustassay.metrics.grounding.declining import answers_apart, belongs_to_refusal
from trustassay.metrics.grounding.refusal import Detector
from trustassay.metrics.grounding.sentences import Splitter, statements
from trustassay.words import content_words, plain_words

__all__ = ["DECLINES", "Claim", "listed", "refusal_of", "sentences"]

DECLINES = "it declines to answer"

BARE = 4
"""Words up to which a sentence is taken with its question: "In 1889.", "Gustave Eiffel"."""
_ASSENT = re.compile(
    r"(?:(?:yes|no|yeah|yep|nope|correct|right|true|false)\b[\s,.!:;–—-]*)+", re.IGNORECASE
)
_POLITE = re.compile(
    r"(?:sure|certainly|of course|absolutely|great question|good question|hello|hi|hey|thanks?"
    r"|thank you|you(?:'|’)re welcome|sorry|i apologi[sz]e)\b[^.!?]{0,60}[.!]?"
    r"|(?:i |we )?hope (?:this|that|it) (?:helps|answers)\b.*"
    r"|(?:please )?(?:let me know|feel free|don(?:'|’)t hesitate|do not hesitate)\b.*"
    r"|(?:is there )?anything else\b.*|have a (?:nice|great|good) day\b.*"
    r"|here(?:'s| is| are)\b[^.!?]{0,80}:",
    re.IGNORECASE,
)
_LEAD = re.compile(r"(?:[^\W\d]+ ){0,4}[^\W\d]+:")
"""What only leads on to what follows: "Use this:"."""
_DENIAL = re.compile(r"(?:no|nope)[.!]?", re.IGNORECASE)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_EMPHASIS = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|`")
_LISTED = re.compile(r"\s*(?:\(?\d{1,3}[.):]|[-*•])\s*(.+)")


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of an answer as written, and as it is judged; ``None`` where it claims nothing.

    denies: the hypothesis is the opposite of what is claimed, so that what contradicts it
    supports the claim. why: why nothing is claimed.
    """

    text: str
    hypothesis: str | None
    denies: bool = False
    why: str = "a question, a greeting or an offer"


def sentences(
    question: str, response: str, split: Splitter, refuses: Detector = lambda _: None
) -> list[Claim]:
    """Return the sentences of a response, each as it is to be judged.

    A sentence of up to four words ("In 1889.") is judged with its question before it; "Yes, it
    does" without its first word, and "Yes" alone with the question; "No" alone is supported by
    what contradicts "Yes". Questions, greetings, offers of help, headings, the heads of tables and
    code claim nothing; a sentence that declines claims what it answers after "but".
    """
    return [
        claim
        for part, prose in _parts(response)
        for claim in (_prose(question, part, split, refuses) if prose else [_silent(part)])
    ]


def _prose(question: str, text: str, split: Splitter, refuses: Detector) -> list[Claim]:
    return [
        _declining(one.text, one.hypothesis)
        if refuses(one.hypothesis)
        else _claim(question, one.text, _EMPHASIS.sub("", one.hypothesis))
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


def _claim(question: str, text: str, bare: str) -> Claim:
    if question.rstrip().endswith("?") and _DENIAL.fullmatch(bare):
        return Claim(text, f"{question} Yes.", denies=True)
    return Claim(text, _hypothesis(question, bare))


def _hypothesis(question: str, text: str) -> str | None:
    if text.endswith("?") or _POLITE.fullmatch(text) or _LEAD.fullmatch(text):
        return None
    rest = _ASSENT.sub("", text, count=1) if _ASSENT.match(text) else text
    if rest and len(rest) < len(text) and len(list(plain_words(rest))) > BARE:
        return rest[0].upper() + rest[1:]
    if len(list(plain_words(text))) <= BARE and question:
        return f"{question} {text}"
    return text if content_words(text) or not question else f"{question} {text}"


def listed(reply: str) -> list[Claim]:
    """Read the claims of a model's reply: numbered or bulleted lines; "none" for no claim.

    Raises:
        UnparsedError: there is neither.
    """
    found = [match[1].strip() for line in reply.splitlines() if (match := _LISTED.match(line))]
    if not found and reply.strip().strip(".\"'").casefold() not in ("none", "no claims"):
        shown = " ".join(reply.split())[:80]
        raise UnparsedError(f"the model's reply lists no claims: {shown!r}")
    return [Claim(text, text) for text in found]

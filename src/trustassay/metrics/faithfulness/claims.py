"""From an answer to the claims that are judged: its sentences, or what a model splits off."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trustassay.errors import UnparsedError
from trustassay.metrics.grounding.sentences import Splitter, statements
from trustassay.words import content_words, plain_words

__all__ = ["Claim", "listed", "sentences"]

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
_LISTED = re.compile(r"\s*(?:\(?\d{1,3}[.):]|[-*•])\s*(.+)")


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of an answer as written, and as it is judged; ``None`` where it claims nothing."""

    text: str
    hypothesis: str | None


def sentences(question: str, response: str, split: Splitter) -> list[Claim]:
    """Return the sentences of a response, each as it is to be judged.

    A sentence of up to four words ("In 1889.") is judged with its question before it; "Yes, it
    does" without its first word, and "Yes" alone with the question. Questions, greetings and
    offers of help claim nothing.
    """
    found = statements(response, split, trailing=True, lines=True)
    return [Claim(one.text, _hypothesis(question, one.hypothesis)) for one in found]


def _hypothesis(question: str, text: str) -> str | None:
    if text.endswith("?") or _POLITE.fullmatch(text):
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

"""What kind of answer a question asks for, by the word that it asks with."""

from __future__ import annotations

import re

from trustassay.distractors.values import Kind

__all__ = ["asked_for", "kind_asked_for", "likely_types"]

_WORD = re.compile(
    r"\b(who|whom|whose|when|where|why|how (?:many|much|long|old|often|far|tall)|how|which|what)\b"
)
_PERSONS = (
    "person author writer actor actress singer president king queen man woman player director"
).split()
_TYPES = ("city", "town", "country", "state", "county", "province")
_PLACES = "city town country state county province region continent island".split()


def asked_for(question: str) -> str:
    """Return the word by which a question asks: ``who``, ``when``, ``how many``, ..., else empty.

    With ``which`` and ``what`` goes the word after them (``what year``), which tells the kind.
    """
    text = question.lower()
    if not (match := _WORD.search(text)):
        return ""
    after = re.match(r"\s+([a-z]+)", text[match.end() :])
    if match[1] in ("which", "what") and after:
        return f"what {after[1]}"
    return "who" if match[1] in ("whom", "whose") else match[1]


def kind_asked_for(question: str) -> Kind | None:
    """Return the kind of words that answer a question, where its own word tells that."""
    word = asked_for(question)
    if word in ("when", "what year", "what date", "what day", "what decade", "what century"):
        return "date"
    if word in ("how many", "how much", "how long", "how old", "how often", "how far", "how tall"):
        return "number"
    return "entity" if word in ("who", "where") else None


def likely_types(question: str) -> tuple[str, ...]:
    """Return the type of the names that a question asks for.

    ``Person``, ``Place``, or of places ``Country``, ``State``, ``City``; none where it tells none.
    """
    word = asked_for(question)
    if word == "who" or word in (f"what {one}" for one in _PERSONS):
        return ("Person",)
    if word == "where":
        return ("Place",)
    place = next((one for one in _PLACES if word == f"what {one}"), "")
    return (place.capitalize() if place in _TYPES else "Place",) if place else ()
